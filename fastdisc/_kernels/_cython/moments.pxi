# Moments of classes, and the quadratic scores that they lead to. Rows go to queues, a queue for each group of classes with a
# scatter matrix of its own, and a full queue through the register tiles: see moments.h.

cdef extern from "moments.h" namespace "tiles" nogil:
    Py_ssize_t whole_lanes()
    void push[S](const S* x, const double* c, Py_ssize_t d, double s, double* u, double* m)
    void push_quartic[S](const S* x, const double* c, Py_ssize_t d, double s, double* u, double* v, double* m)
    void push_whole[S](const S* x, const double* c, Py_ssize_t d, int16_t* u, double* m)
    void push_squares[S](const S* x, const double* c, Py_ssize_t d, double s, double* m, double* q)
    void push_sums[S](const S* x, const double* c, Py_ssize_t d, double s, double* m)
    void push_counts[S](const S* x, const double* c, Py_ssize_t d, double s, double* m)
    void gram_panels(const double* Q, const double* P, Py_ssize_t m, Py_ssize_t D, double* H)
    void spans(const double* At, Py_ssize_t d, Py_ssize_t P, Py_ssize_t* span)
    void norms(const double* U, Py_ssize_t ld, Py_ssize_t m, const double* At, Py_ssize_t P, const Py_ssize_t* spans, double* Z, double* z)
    void gram_whole(const int16_t* U, Py_ssize_t m, Py_ssize_t D, int32_t* pairs, double* H)

ctypedef fused cell:
    double
    float
    uint8_t
    int8_t
    int16_t

cdef enum Moment:
    SUMS
    COUNTS
    SQUARES
    SCATTER
    QUARTIC

# What the threads share.
cdef struct Tally:
    Plan plan
    int kind
    bint whole               # bytes, each row of the same weight: sums in whole numbers
    bint direct              # a row's columns stand side by side: no copy before the shift
    Py_ssize_t K, groups, D, W, queue, step
    const int32_t* r
    const double* s
    const double* c          # (K, d)
    const int32_t* group     # (K,)

# One thread's place of work, and one chunk's sums.
cdef struct Desk:
    double* u                # (groups, queue, W): rows less their shift; 16-bit where whole
    double* weight           # (groups, queue)
    double* Q                # (queue, W): a queue's rows times their weights, or in pairs; W numbers behind it
    int64_t* filled          # (groups,)
    double* rows             # (block, d)
    double* n                # (K,)
    double* M                # (K, d)
    double* S                # (K, d), or (groups, W, W), or for CSR (groups, d + 1, d)


cdef Py_ssize_t desk_room(const Tally* job) noexcept nogil:
    cdef Py_ssize_t queues = job.groups if job.kind >= SCATTER and not job.plan.rows.csr else 0
    return (queues * (job.queue * (job.W + 1) + 1) + (job.queue + 1) * job.W * (queues > 0)
            + (0 if job.direct or job.plan.rows.csr else job.plan.block * job.plan.rows.d) + 64)


cdef Desk open_desk(const Tally* job, double* work, double* part) noexcept nogil:
    cdef Desk desk
    cdef Py_ssize_t queues = job.groups if job.kind >= SCATTER and not job.plan.rows.csr else 0
    desk.u = work
    desk.Q = desk.u + queues * job.queue * job.W
    desk.weight = desk.Q + (job.queue + 1) * job.W * (queues > 0)
    desk.filled = <int64_t*>(desk.weight + queues * job.queue)
    desk.rows = <double*>(desk.filled + queues)
    memset(desk.filled, 0, queues * sizeof(int64_t))
    desk.n = part
    desk.M = desk.n + job.K
    desk.S = desk.M + job.K * job.plan.rows.d
    return desk


cdef void flush(const Tally* job, Desk* desk, Py_ssize_t g) noexcept nogil:
    """S_g += sum_i s_i u_i u_i' over the rows in a group's queue   (4.28)"""
    cdef Py_ssize_t W = job.W, m = desk.filled[g]
    cdef double* u = desk.u + g * job.queue * W
    cdef const double* Q = u
    cdef int16_t* v
    if job.whole:
        v = <int16_t*>desk.u + g * job.queue * W
        memset(v + m * W, 0, (m % 2) * W * sizeof(int16_t))
        gram_whole(v, m + m % 2, W, <int32_t*>desk.Q, desk.S + g * W * W)
    else:
        if job.step:
            scale_rows(u, W, desk.weight + g * job.queue, m, W, desk.Q, desk.Q + job.queue * W)
            Q = desk.Q
        gram_panels(Q, u, m, W, desk.S + g * W * W)
    desk.filled[g] = 0


cdef void push_rows(const Tally* job, Desk* desk, const cell* x, Py_ssize_t row, Py_ssize_t lo, Py_ssize_t m) noexcept nogil:
    """Rows lo to lo + m, `row` bytes apart, into sums and queues."""
    cdef Py_ssize_t d = job.plan.rows.d, W = job.W, i, k, g, place
    cdef double s = 1
    cdef const double* c
    cdef double* M
    for i in range(m):
        k = job.r[lo + i]
        if job.step:
            s = job.s[lo + i]
        desk.n[k] += s
        c, M = job.c + k * d, desk.M + k * d
        if job.kind == SUMS:
            push_sums(x, c, d, s, M)
        elif job.kind == COUNTS:
            push_counts(x, c, d, s, M)
        elif job.kind == SQUARES:
            push_squares(x, c, d, s, M, desk.S + k * d)
        else:
            g = job.group[k]
            place = g * job.queue + desk.filled[g]
            if job.whole:
                if cell is uint8_t or cell is int8_t:
                    push_whole(x, c, d, <int16_t*>desk.u + place * W, M)
            elif job.kind == SCATTER:
                push(x, c, d, s, desk.u + place * W, M)
            else:
                push_quartic(x, c, d, s, desk.u + place * W, desk.u + place * W + job.D, M)
            desk.weight[place] = s
            desk.filled[g] += 1
            if desk.filled[g] == job.queue:
                flush(job, desk, g)
        x = <const cell*>(<const char*>x + row)


cdef void push_csr(const Tally* job, Desk* desk, Py_ssize_t lo, Py_ssize_t m) noexcept nogil:
    """Rows lo to lo + m as they are stored; COUNTS, of the stored values only."""
    cdef Py_ssize_t d = job.plan.rows.d, i, j, k, t, end
    cdef bint wide = job.plan.rows.index64, single = job.plan.rows.kind == F32
    cdef double s = 1, v
    for i in range(lo, lo + m):
        k = job.r[i]
        if job.step:
            s = job.s[i]
        desk.n[k] += s
        t, end = index_at(job.plan.rows.indptr, wide, i), index_at(job.plan.rows.indptr, wide, i + 1)
        for t in range(t, end):
            j = k * d + index_at(job.plan.rows.indices, wide, t)
            v = value_at(job.plan.rows.data, single, t)
            if job.kind == COUNTS:
                # a cell that is not stored is 0, which has been counted where 0 > c
                desk.M[j] += s * ((v > job.c[j]) - (0 > job.c[j]) + (v - v))
            else:
                desk.M[j] += s * v
            if job.kind == SQUARES:
                desk.S[j] += s * v * v
        if job.kind == SCATTER:
            gram_csr(&job.plan, i, 1, &s, desk.S + job.group[k] * d * (d + 1))


cdef void moments_chunk(const Tally* job, Py_ssize_t lo, Py_ssize_t hi, double* part, double* work) noexcept nogil:
    """Sums of rows lo to hi: part = n (K), M (K, d), S."""
    cdef const Rows* rows = &job.plan.rows
    cdef Desk desk = open_desk(job, work, part)
    cdef Py_ssize_t m, g
    cdef const char* p
    while lo < hi:
        m = min(job.plan.block, hi - lo)
        p = rows.data + lo * rows.row
        if rows.csr:
            push_csr(job, &desk, lo, m)
        elif not job.direct:
            load_rows(rows, lo, m, desk.rows, rows.d)
            push_rows(job, &desk, desk.rows, rows.d * 8, lo, m)
        elif rows.kind == F64:
            push_rows(job, &desk, <const double*>p, rows.row, lo, m)
        elif rows.kind == F32:
            push_rows(job, &desk, <const float*>p, rows.row, lo, m)
        elif rows.kind == U8:
            push_rows(job, &desk, <const uint8_t*>p, rows.row, lo, m)
        elif rows.kind == I8:
            push_rows(job, &desk, <const int8_t*>p, rows.row, lo, m)
        else:
            push_rows(job, &desk, <const int16_t*>p, rows.row, lo, m)
        lo += m
    if job.kind >= SCATTER and not rows.csr:
        for g in range(job.groups):
            if desk.filled[g]:
                flush(job, &desk, g)


cdef object mirrored(upper):
    """Full matrices from upper triangles."""
    d = upper.shape[1]
    return np.where(np.arange(d)[:, None] <= np.arange(d), upper, upper.swapaxes(1, 2))


def class_moments(batch, shift, group, int kind, grid, int n_threads):
    """Weights, sums and scatter of classes: (4.21), (4.28)."""
    cdef Tally job
    cdef Py_ssize_t chunk = grid[1], d, c, size, wide
    X, r, s, _ = batch
    cdef const int32_t[::1] r_ = r, group_ = group
    cdef const double[::1] s_ = s
    cdef const double[:, ::1] shift_ = shift
    memset(&job, 0, sizeof(Tally))
    job.plan = make_plan(X, 1, grid[0], False)
    cdef Rows rows = job.plan.rows
    d, job.K, job.kind, job.queue = rows.d, shift_.shape[0], kind, job.plan.block
    job.groups = int(group.max()) + 1
    job.r, job.s, job.c, job.group, job.step = &r_[0], &s_[0], &shift_[0, 0], &group_[0], s_.shape[0] > 1
    itemsize = (8, 4, 1, 1, 2)[rows.kind]
    job.direct = not rows.csr and rows.table == NULL and (rows.col == itemsize or d == 1)
    job.whole = job.direct and kind == SCATTER and not job.step and itemsize == 1 and whole_lanes() > 1
    wide = max(4, whole_lanes() if job.whole else lanes[double]())
    job.D = (d + wide - 1) // wide * wide
    job.W = 2 * job.D if kind == QUARTIC else job.D
    size = job.K * (d + 1)
    if kind == SQUARES:
        size += job.K * d
    elif kind >= SCATTER:
        size += job.groups * (d * (d + 1) if rows.csr else job.W * job.W)
    cdef Py_ssize_t n = rows.n, chunks = (n + chunk - 1) // chunk
    cdef int threads = max(1, min(n_threads, chunks))
    cdef double[:, ::1] part = aligned_zeros(chunks, size)
    cdef double[:, ::1] work = aligned_zeros(threads, desk_room(&job))
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            moments_chunk(&job, c * chunk, min(n, c * chunk + chunk), &part[c, 0], &work[threadid(), 0])
    total = np.asarray(part).sum(axis=0) if chunks > 1 else np.asarray(part)[0]
    if not job.step:
        total *= s[0]
    weights, M, rest = total[:job.K].copy(), total[job.K:job.K * (d + 1)].reshape(job.K, d).copy(), total[job.K * (d + 1):size]
    if rows.csr and kind == COUNTS:
        M += weights[:, None] * (0 > np.asarray(shift))
    if kind == SQUARES:
        return weights, M, rest.reshape(job.K, d).copy()
    if kind < SCATTER:
        return weights, M, None
    if rows.csr:
        return weights, M, mirrored(rest.reshape(job.groups, d + 1, d)[:, :d])
    columns = np.arange(d)
    if kind == QUARTIC:
        columns = np.concatenate([columns, columns + job.D])
    H = rest.reshape(job.groups, job.W, job.W)
    return weights, M, mirrored(H[:, :d, :d] if kind == SCATTER else H[:, columns[:, None], columns])


cdef void subtract(const double* x, const double* mean, Py_ssize_t ld, Py_ssize_t d, Py_ssize_t m, double* u) noexcept nogil:
    """u_i = x_i - mean"""
    cdef Py_ssize_t i, j
    for i in range(m):
        for j in range(d):
            u[i * ld + j] = x[i * ld + j] - mean[j]


cdef void diagonal_norms(double* u, Py_ssize_t ld, Py_ssize_t m, const double* a, double* z) noexcept nogil:
    """z_i = sum_j (a_j u_ij)^2"""
    cdef Py_ssize_t i, j
    for i in range(m):
        for j in range(ld):
            u[i * ld + j] *= a[j]
        z[i] = dot(u + i * ld, u + i * ld, ld)


cdef void dense_rows(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, double* x) noexcept nogil:
    """Rows lo to lo + m, ldw numbers apart, whatever the layout."""
    cdef Py_ssize_t i, t, end
    if not plan.rows.csr:
        load_rows(&plan.rows, lo, m, x, plan.ldw)
        return
    memset(x, 0, m * plan.ldw * sizeof(double))
    for i in range(m):
        t, end = index_at(plan.rows.indptr, plan.rows.index64, lo + i), index_at(plan.rows.indptr, plan.rows.index64, lo + i + 1)
        for t in range(t, end):
            x[i * plan.ldw + index_at(plan.rows.indices, plan.rows.index64, t)] += value_at(plan.rows.data, plan.rows.kind == F32, t)


def quadratic_scores(X, mean, A, c, grid, int n_threads):
    """Quadratic scores of classes, and whether all are finite: (10.2), (10.34)."""
    cdef Plan plan = make_plan(X, 1, grid[0], False)
    cdef Py_ssize_t chunk = grid[1], K = mean.shape[0], d = mean.shape[1], p = 0 if A.ndim == 2 else A.shape[1], n = plan.rows.n
    cdef Py_ssize_t ld = plan.ldw, B = plan.block, L = lanes[double](), P = (p + L - 1) // L * L, chunks = (n + chunk - 1) // chunk
    cdef Py_ssize_t t, k, i, m, lo, hi
    cdef int threads = max(1, min(n_threads, chunks)), me
    laid = np.zeros((K, d if p else 1, P if p else ld))   # A', or its diagonal, padded
    laid[:, :, :p or d] = A.swapaxes(1, 2) if p else A[:, None, :]
    cdef const double[:, :, ::1] A_ = laid
    cdef const double[:, ::1] mean_ = mean
    cdef const double[::1] c_ = c
    cdef Py_ssize_t[:, ::1] span = np.zeros((K, 2 * (P // L) + 2), dtype=np.intp)
    if p:
        for k in range(K):
            spans(&A_[k, 0, 0], d, P, &span[k, 0])
    result = np.empty((n, K))
    cdef double[:, ::1] out = result
    cdef double[::1] check = np.zeros(chunks)
    cdef double[:, ::1] work = aligned_zeros(threads, B * (2 * ld + 1) + 4 * P + 64)
    cdef double* x
    cdef double* u
    cdef double* z
    with nogil, parallel(num_threads=threads):
        for t in prange(chunks, schedule="dynamic", chunksize=1):
            me = threadid()
            lo, hi = t * chunk, min(n, t * chunk + chunk)
            x = &work[me, 0]
            u = x + B * ld
            z = u + B * ld
            memset(u, 0, B * ld * sizeof(double))
            while lo < hi:
                m = min(B, hi - lo)
                dense_rows(&plan, lo, m, x)
                for k in range(K):
                    subtract(x, &mean_[k, 0], ld, d, m, u)
                    if p:
                        norms(u, ld, (m + 3) // 4 * 4, &A_[k, 0, 0], P, &span[k, 0], z + B, z)
                    else:
                        diagonal_norms(u, ld, m, &A_[k, 0, 0], z)
                    for i in range(m):
                        out[lo + i, k] = c_[k] - z[i] / 2
                    check[t] = check[t] + nan_if_not_finite(z, m)
                lo = lo + m
    return result, not bool(np.isnan(np.asarray(check)).any())
