# Many two-class problems over the same rows: each row is read, and scored against all weights, while it is in cache. A table says
# for each kind of row, and each problem, on which side the row stands, or that the problem leaves it out.

cdef struct Sides:
    Py_ssize_t kinds
    const int32_t* target    # (problems, kinds) 1 or 0
    const double* part       # (problems, kinds) 1, or 0 for kinds that a problem leaves out
    bint all_take_part


cdef void link_problem(const Job* job, const Sides* sides, Py_ssize_t k, Py_ssize_t lo, Py_ssize_t m, const real* s, Weights weights,
                       int32_t* r, real* own, real* Z, real* tally, double* Y, real* more) noexcept nogil:
    """The link of problem k, with its own targets r and weights `own`, which are s where all rows take part."""
    cdef const int32_t* target = sides.target + k * sides.kinds
    cdef const double* part = sides.part + k * sides.kinds
    cdef Py_ssize_t i
    if sides.kinds == 1:
        for i in range(m):
            r[i] = target[0]
    else:
        for i in range(m):
            r[i] = target[job.r[lo + i]]
    if not sides.all_take_part:
        for i in range(m):
            own[i] = s[i] * <real>part[job.r[lo + i]]
    if job.link == LOGISTIC:
        link_logistic(Z, r, own, weights, m, tally)
    elif job.link == SIGMOID_SQUARED:
        link_sigmoid(Z, r, own, m, tally, Y, more)
    else:
        link_linear(Z, r, own, m, tally, Y, more)


cdef void sweeps_chunk(const Job* job, const Sides* sides, Py_ssize_t lo, Py_ssize_t hi, double* out, double* work,
                       const real* marker) noexcept nogil:
    """Sums of rows lo to hi: out = loss and errors of each problem, intercept gradients, G, H."""
    cdef Py_ssize_t K = job.plan.K, B = job.plan.block, D = job.D, size = weight_size(&job.plan), m, i, k, ld = 0
    cdef bint second = job.order == 2
    cdef double* c = work
    cdef double* Y = c + B
    cdef double* P = Y + B                                        # (B, D) rows, padded
    cdef double* Q = P + (B * D if second else 0)                 # (B, D) the same times c
    cdef real* s = <real*>(Q + (B * D if second else 0))
    cdef real* own = s + B if not sides.all_take_part else s      # a problem's weights
    cdef int32_t* r = <int32_t*>(s + 2 * B)                       # and targets
    cdef real* tally = <real*>(r + 2 * B)                         # (K, TALLY)
    cdef real* Z = tally + K * TALLY                              # (K, B) scores, then errors
    cdef real* more = Z + K * B
    cdef real* w0 = more + 4 * B
    cdef real* G = w0 + (K + 7) // 8 * 8                          # sums of a block where products are float32
    cdef real* buffer = G + (0 if real is double else (size + 7) // 8 * 8)
    cdef double* g = out + 3 * K
    cdef const real* x
    cdef const double* wide
    cdef Py_ssize_t apart
    cdef Weights weights = OWN if job.step or job.link != LOGISTIC else EQUAL if sides.all_take_part else EQUAL_OR_NONE
    cdef double unit = 1 if weights == OWN else job.s[0]
    cdef Py_ssize_t due = lo + PERIOD * LANES
    if real is double:
        G = g
    memset(tally, 0, K * TALLY * sizeof(real))
    for k in range(K):
        w0[k] = <real>job.w0[k]
    for i in range(B):
        s[i] = <real>job.s[0]
    while lo < hi:
        m = min(B, hi - lo)
        x = fetch(&job.plan, lo, m, buffer, &ld)
        score(&job.plan, lo, m, x, ld, <const real*>job.W, w0, Z)
        take_rows(job, lo, m, s, Z)
        if real is double:
            wide, apart = x, ld
            if second and not job.plan.rows.csr and D != job.plan.width:
                load_rows(&job.plan.rows, lo, m, P, D)
                wide, apart = P, D
        for k in range(K):
            link_problem(job, sides, k, lo, m, s, weights, r, own, Z + k * B, tally + k * TALLY, Y if second else NULL, more)
            if lo >= due:
                settle(tally + k * TALLY, unit, out + 2 * k)
            if job.order:
                out[2 * K + k] += sum(Z + k * B, m)
            if real is double:
                if second:
                    curvature(job.link, 0, 0, Z + k * B, Y, B, own, m, c)
                    gram_block(job, lo, m, wide, apart, c, Q, g + size + k * D * (D + 2))
        if lo >= due:
            due = lo + PERIOD * LANES
        if job.order:
            accumulate(&job.plan, lo, m, x, ld, Z, G)
            if real is float:
                for i in range(size):
                    g[i] += G[i]
                    G[i] = 0
        lo += m
    for k in range(K):
        settle(tally + k * TALLY, unit, out + 2 * k)


def sweep_many(batch, int loss, signs, W, int order, grid, int n_threads):
    """Sums of many two-class problems over shared rows: (10.7)-(10.9), (10.23)-(10.24)."""
    cdef Job job
    cdef Sides table
    cdef Py_ssize_t block = grid[0], chunk = grid[1], K = W.shape[0], n, c, size
    X, r, s, _ = batch
    sides = signs
    job.plan = make_plan(X, K, block, order < 2 and grid[2])
    job.link, job.order = loss, order
    job.o = NULL
    cdef const int32_t[::1] r_ = r
    cdef const double[::1] s_ = s
    target, part_ = np.ascontiguousarray(sides.T > 0, dtype=np.int32), np.ascontiguousarray(sides.T != 0, dtype=np.float64)
    table.kinds, table.all_take_part = sides.shape[0], bool(sides.all())
    table.target, table.part = <const int32_t*>cnp.PyArray_DATA(target), <const double*>cnp.PyArray_DATA(part_)
    n = job.plan.rows.n
    job.r, job.s, job.step = &r_[0], &s_[0], s_.shape[0] > 1
    laid = pack_weights(&job.plan, W)
    w0 = np.ascontiguousarray(W[:, 0])
    job.W, job.w0 = cnp.PyArray_DATA(laid), <const double*>cnp.PyArray_DATA(w0)
    cdef Py_ssize_t d = job.plan.rows.d, wide = max(4, lanes[double]())
    job.D = d if job.plan.rows.csr else (d + wide - 1) // wide * wide
    size = weight_size(&job.plan)
    cdef Py_ssize_t chunks = (n + chunk - 1) // chunk
    cdef int threads = max(1, min(n_threads, chunks))
    sums = borrow(chunks, 3 * K + size + (K * job.D * (job.D + 2) if order == 2 else 0))
    cdef double[:, ::1] part = sums
    cdef double[:, ::1] work = aligned_zeros(threads, workspace(&job) + K * TALLY + 3 * block)
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            memset(&part[c, 0], 0, part.shape[1] * sizeof(double))
            if job.plan.float32:
                sweeps_chunk(&job, &table, c * chunk, min(n, c * chunk + chunk), &part[c, 0], &work[threadid(), 0], <const float*>NULL)
            else:
                sweeps_chunk(&job, &table, c * chunk, min(n, c * chunk + chunk), &part[c, 0], &work[threadid(), 0], <const double*>NULL)
    total = sums[:, :3 * K].sum(axis=0)
    G = np.hstack([total[2 * K:, None], merge_chunks(&job.plan, part, 3 * K, threads)])  # (K, d+1)
    H = None
    if order == 2:
        first = 3 * K + size
        H = unfold_blocks(sums[:, first:first + K * job.D * (job.D + 2)].sum(axis=0), d, job.D)
    give_back(sums)
    return total[:2 * K:2].copy(), total[1:2 * K:2].copy(), G, H
