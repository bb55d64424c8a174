# Quadratic scores of classes.

cdef extern from "moments.h" namespace "tiles" nogil:
    void nonzero_ranges(const double* At, Py_ssize_t d, Py_ssize_t P, Py_ssize_t* range)
    void squared_norms(const double* U, Py_ssize_t ld, Py_ssize_t m, const double* At, Py_ssize_t P,
                       const Py_ssize_t* ranges, double* Z, double* z)

cdef struct QuadraticJob:
    Plan plan
    Py_ssize_t K, P          # classes; rows of A_k, padded, or 0 if A_k is diagonal
    const double* mean       # (K, d)
    const double* A          # (K, d, P), each A_k transposed, or (K, ldw)
    const double* c          # (K,)
    const Py_ssize_t* ranges   # (K, range_size), see `nonzero_ranges`
    Py_ssize_t A_size, range_size, chunk
    double* out              # (n, K)
    double* check            # (chunks,): NaN if a score is not finite, else 0

# A thread's buffers, for a multiple of four rows.
cdef struct QuadraticBuffers:
    double* x                # (block, ldw)
    double* u                # (block, ldw): x - mean
    double* z                # (block,)
    double* Z                # (4, P)


cdef Py_ssize_t lay_out_quadratic(char* base, const QuadraticJob* job,
                                  QuadraticBuffers* b) noexcept nogil:
    """Lay out a thread's buffers from base on, or only measure if it is NULL; returns bytes."""
    cdef Arena arena = open_arena(base)
    cdef Py_ssize_t rows = (job.plan.block + 3) // 4 * 4, ld = job.plan.ldw
    b.x = <double*>take(&arena, rows * ld, sizeof(double))
    b.u = <double*>take(&arena, rows * ld, sizeof(double))
    b.z = <double*>take(&arena, rows, sizeof(double))
    b.Z = <double*>take(&arena, 4 * job.P, sizeof(double))
    return arena.used


cdef void subtract(const double* x, const double* mean, Py_ssize_t ld, Py_ssize_t d, Py_ssize_t m,
                   double* u) noexcept nogil:
    """u_i = x_i - mean"""
    cdef Py_ssize_t i, j
    for i in range(m):
        for j in range(d):
            u[i * ld + j] = x[i * ld + j] - mean[j]


cdef void diagonal_norms(double* u, Py_ssize_t ld, Py_ssize_t m, const double* a,
                         double* z) noexcept nogil:
    """z_i = sum_j (a_j u_ij)^2"""
    cdef Py_ssize_t i, j
    for i in range(m):
        for j in range(ld):
            u[i * ld + j] *= a[j]
        z[i] = dot(u + i * ld, u + i * ld, ld)


cdef void quadratic_chunk(const void* task, Py_ssize_t c, char* workspace) noexcept nogil:
    """z_k = c_k - |A_k (x - mean_k)|^2 / 2 of the rows of a chunk   (10.34)"""
    cdef const QuadraticJob* job = <const QuadraticJob*>task
    cdef Py_ssize_t lo = c * job.chunk, hi = min(job.plan.rows.n, lo + job.chunk)
    cdef Py_ssize_t d = job.plan.rows.d, ld = job.plan.ldw, B = job.plan.block, m, k, i
    cdef const double* A
    cdef QuadraticBuffers b
    lay_out_quadratic(workspace, job, &b)
    memset(b.u, 0, (B + 3) // 4 * 4 * ld * sizeof(double))
    while lo < hi:
        m = min(B, hi - lo)
        load_rows(&job.plan.rows, lo, m, b.x, ld)
        for k in range(job.K):
            A = job.A + k * job.A_size
            subtract(b.x, job.mean + k * d, ld, d, m, b.u)
            if job.P:
                squared_norms(b.u, ld, (m + 3) // 4 * 4, A, job.P, job.ranges + k * job.range_size,
                              b.Z, b.z)
            else:
                diagonal_norms(b.u, ld, m, A, b.z)
            for i in range(m):
                job.out[(lo + i) * job.K + k] = job.c[k] - b.z[i] / 2
            job.check[c] += nan_if_not_finite(b.z, m)
        lo += m


cdef object set_quadratic(QuadraticJob* job, object mean, object A, object c):
    """The functions of the classes; returns the arrays that job then points to."""
    cdef Py_ssize_t K = len(mean), d = mean.shape[1], p = 0 if A.ndim == 2 else A.shape[1], k
    cdef Py_ssize_t L = lanes[double](), P = (p + L - 1) // L * L, ld = job.plan.ldw
    cdef const double[:, ::1] mean_ = mean
    cdef const double[::1] c_ = c
    packed_A = np.zeros((K, d if p else 1, P if p else ld))   # A', or its diagonal, padded
    packed_A[:, :, :p or d] = A.swapaxes(1, 2) if p else A[:, None, :]
    cdef const double[:, :, ::1] A_ = packed_A
    cdef Py_ssize_t[:, ::1] ranges = np.zeros((K, 2 * (P // L) + 2), dtype=np.intp)
    if p:
        for k in range(K):
            nonzero_ranges(&A_[k, 0, 0], d, P, &ranges[k, 0])
    job.K, job.P, job.A_size = K, P, A_.shape[1] * A_.shape[2]
    job.range_size = ranges.shape[1]
    job.mean, job.A, job.c, job.ranges = &mean_[0, 0], &A_[0, 0, 0], &c_[0], &ranges[0, 0]
    return packed_A, np.asarray(ranges)


def quadratic_scores(X, mean, A, c, grid, int n_threads):
    """Quadratic scores of classes, and whether all are finite: (10.2), (10.34)."""
    cdef QuadraticJob job
    cdef QuadraticBuffers b
    cdef Py_ssize_t chunks
    memset(&job, 0, sizeof(QuadraticJob))
    job.plan, job.chunk = make_plan(X, 1, grid[0], False), grid[1]
    chunks = chunk_count(job.plan.rows.n, job.chunk)
    arrays = set_quadratic(&job, mean, A, c)
    out, check = np.empty((job.plan.rows.n, job.K)), np.zeros(chunks)
    job.out = <double*>cnp.PyArray_DATA(out)
    job.check = <double*>cnp.PyArray_DATA(check)
    run_chunks(quadratic_chunk, &job, chunks, n_threads, lay_out_quadratic(NULL, &job, &b))
    del arrays
    return out, not bool(np.isnan(check).any())
