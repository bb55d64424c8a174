# Scores, and the outputs that activations make of them.

cdef struct OutputsJob:
    Plan plan
    Activation activation
    Weights weights
    Py_ssize_t chunk
    double* out      # (n, columns)
    double* check    # (chunks,): NaN if a score is not finite, else 0

# A thread's buffers.
cdef struct OutputsBuffers:
    double* x        # for `fetch`
    double* Z        # (K, block)
    double* work     # (4, block)


cdef Py_ssize_t lay_out_outputs(char* base, const OutputsJob* job,
                                OutputsBuffers* b) noexcept nogil:
    """Lay out a thread's buffers from base on, or only measure if it is NULL; returns bytes."""
    cdef Arena arena = open_arena(base)
    b.Z = <double*>take(&arena, job.plan.K * job.plan.block, sizeof(double))
    b.work = <double*>take(&arena, 4 * job.plan.block, sizeof(double))
    b.x = <double*>take(&arena, fetch_size(&job.plan), sizeof(double))
    return arena.used


cdef void store_outputs(const double* Z, Py_ssize_t ld, Py_ssize_t K, Py_ssize_t m,
                        double* out) noexcept nogil:
    """Z (K, m) transposed to out (m, K)"""
    cdef Py_ssize_t i, k
    for k in range(K):
        for i in range(m):
            out[i * K + k] = Z[k * ld + i]


cdef void activate_sigmoid(double* Z, Py_ssize_t m, double* work, double* out) noexcept nogil:
    """y = sigmoid(z): 1 - y and y   (10.15)"""
    cdef Py_ssize_t i
    cdef double u, v
    for i in range(m):
        u = exp_nonpositive(-Z[i] if Z[i] > 0 else Z[i])
        v = 1 / (1 + u)
        work[i] = u * v if Z[i] > 0 else v
        Z[i] = v if Z[i] > 0 else u * v
    for i in range(m):
        out[2 * i], out[2 * i + 1] = work[i], Z[i]


cdef void activate_softmax(double* Z, Py_ssize_t ld, Py_ssize_t K, Py_ssize_t m, double* work,
                           double* out) noexcept nogil:
    """y_k = exp(z_k) / sum_j exp(z_j)   (10.29)"""
    cdef Py_ssize_t i, k
    softmax_rows(Z, ld, K, m, work, work + ld, work + 2 * ld)
    for k in range(K):
        for i in range(m):
            Z[k * ld + i] /= work[ld + i]
    store_outputs(Z, ld, K, m, out)


cdef void outputs_chunk(const void* task, Py_ssize_t c, char* workspace) noexcept nogil:
    cdef const OutputsJob* job = <const OutputsJob*>task
    cdef Py_ssize_t lo = c * job.chunk, hi = min(job.plan.rows.n, lo + job.chunk)
    cdef Py_ssize_t K = job.plan.K, B = job.plan.block, m, k, ld = 0
    cdef const double* x
    cdef OutputsBuffers b
    lay_out_outputs(workspace, job, &b)
    while lo < hi:
        m = min(B, hi - lo)
        x = fetch(&job.plan, lo, m, b.x, &ld)
        score(&job.plan, lo, m, x, ld, <const double*>job.weights.W, job.weights.w0, b.Z)
        for k in range(K):
            job.check[c] += nan_if_not_finite(b.Z + k * B, m)
        if job.activation == Activation.SIGMOID:
            activate_sigmoid(b.Z, m, b.work, job.out + 2 * lo)
        elif job.activation == Activation.SOFTMAX:
            activate_softmax(b.Z, B, K, m, b.work, job.out + K * lo)
        elif job.activation == Activation.IDENTITY:
            store_outputs(b.Z, B, K, m, job.out + K * lo)
        lo += m


def outputs(X, int activation, W, grid, int n_threads):
    """Scores (10.6), or outputs (10.15), (10.29); and whether all scores are finite."""
    cdef OutputsJob job
    cdef OutputsBuffers b
    cdef Py_ssize_t chunks
    memset(&job, 0, sizeof(OutputsJob))
    job.activation = <Activation>checked("activation", activation, "Activation")
    job.plan = make_plan(X, W.shape[0], grid[0], False)   # scores are float64 for all types of X
    job.chunk = grid[1]
    chunks = chunk_count(job.plan.rows.n, job.chunk)
    arrays = set_weights(&job.weights, &job.plan, W)
    columns = 2 if job.activation == Activation.SIGMOID else job.plan.K
    out, check = np.empty((job.plan.rows.n, columns)), np.zeros(chunks)
    job.out = <double*>cnp.PyArray_DATA(out)
    job.check = <double*>cnp.PyArray_DATA(check)
    run_chunks(outputs_chunk, &job, chunks, n_threads, lay_out_outputs(NULL, &job, &b))
    del arrays
    return out, not bool(np.isnan(check).any())
