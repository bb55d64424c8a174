# Hessians of pairs of scores: X' L X, query by query, with the curvatures of rank.pxi.

cdef void laplace(const Orders* q, Py_ssize_t u, Py_ssize_t v, Py_ssize_t last, Py_ssize_t lo, double sign, const double* z, const double* P,
                  Py_ssize_t D, double* y, double* degree, double* p) noexcept nogil:
    """y -= sum over the rows from v to last of c x, with c the curvature of their pairs with row u; the degree gets the sum of c"""
    cdef Py_ssize_t i, m
    cdef const double* x
    while v < last:
        m = min(STRIP, last - v)
        pair_weights(q, u, v, m, p)
        bends(q, z[u], z + v, sign, m, p)
        degree[0] += sum(p, m)
        for i in range(m):
            p[i] = -p[i]
        for i in range(0, m - 3, 4):
            if p[i] != 0 or p[i + 1] != 0 or p[i + 2] != 0 or p[i + 3] != 0:
                x = P + (v + i - lo) * D
                axpy4(x, x + D, x + 2 * D, x + 3 * D, <const double*>p + i, D, y, x + 4 * D)
        for i in range(m - m % 4, m):
            axpy(P + (v + i - lo) * D, p[i], D, y)
        v += m


cdef void hessian_query(const Orders* q, Plan* plan, Py_ssize_t lo, Py_ssize_t hi, const double* z, Py_ssize_t D, Py_ssize_t block,
                        double* H, double* work) noexcept nogil:
    """H += X' L X, on and above the diagonal, L being the Laplacian of the query's pairs, weighted by their curvatures

    L X is had a block of rows at a time, so that all sums stay in cache.
    """
    cdef double* p = work
    cdef double* Y = p + STRIP
    cdef double* P = Y + block * D
    cdef Py_ssize_t u, i, m, first = lo
    cdef double degree
    if q.below[lo] == hi:
        return
    load_rows(&plan.rows, lo, hi - lo, P, D)
    while first < hi:
        m = min(block, hi - first)
        memset(Y, 0, m * D * sizeof(double))
        for i in range(m):
            u, degree = first + i, 0
            laplace(q, u, lo, q.above[u], lo, -1, z, P, D, Y + i * D, &degree, p)
            laplace(q, u, q.below[u], hi, lo, 1, z, P, D, Y + i * D, &degree, p)
            axpy(<const double*>P + (u - lo) * D, degree, D, Y + i * D)
        gram_strips(Y, P + (first - lo) * D, D, m, D, H)
        first += m


cdef void laplace_small(const Orders* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, const double* P, Py_ssize_t D, double* Y,
                        double* C) noexcept nogil:
    """Y = L P of a query that is small enough for a matrix of its pairs: each curvature is computed once"""
    cdef Py_ssize_t n = hi - lo, u, v, i, first
    cdef double* c
    cdef const double* x
    memset(C, 0, n * n * sizeof(double))
    for u in range(n):
        c, first = C + u * n, q.below[lo + u] - lo
        pair_weights(q, lo + u, lo + first, n - first, c + first)
        bends(q, z[lo + u], z + lo + first, 1, n - first, c + first)
        for v in range(first, n):
            c[v] = -c[v]
            C[v * n + u] = c[v]
    memset(Y, 0, n * D * sizeof(double))
    for u in range(n):
        c = C + u * n
        for i in range(0, n - 3, 4):
            if c[i] != 0 or c[i + 1] != 0 or c[i + 2] != 0 or c[i + 3] != 0:
                x = P + i * D
                axpy4(x, x + D, x + 2 * D, x + 3 * D, <const double*>c + i, D, Y + u * D, x + 4 * D)
        for i in range(n - n % 4, n):
            axpy(P + i * D, c[i], D, Y + u * D)
        axpy(P + u * D, -sum(<const double*>c, n), D, Y + u * D)


cdef void hessian_chunk(const Orders* q, Plan* plan, Py_ssize_t first, Py_ssize_t last, const double* z, Py_ssize_t D, Py_ssize_t block,
                        double* H, double* work) noexcept nogil:
    """The queries first to last: small ones some at a time, large ones by themselves"""
    cdef double* C = work
    cdef double* Y = C + SMALL * SMALL
    cdef double* P = Y + GATHERED * D
    cdef Py_ssize_t g, lo, hi, filled = 0
    for g in range(first, last + 1):
        lo, hi = q.starts[g], q.starts[g + 1] if g < last else 0
        if filled and (g == last or hi - lo > SMALL or filled + hi - lo > GATHERED):   # a large one takes all of `work`
            gram_strips(Y, P, D, filled, D, H)
            filled = 0
        if g == last or q.below[lo] == hi:
            continue
        if hi - lo > SMALL:
            hessian_query(q, plan, lo, hi, z, D, block, H, work)
            continue
        load_rows(&plan.rows, lo, hi - lo, P + filled * D, D)
        laplace_small(q, lo, hi, z, P + filled * D, D, Y + filled * D, C)
        filled += hi - lo


def query_hessian(X, z, queries, rule, grid, int n_threads):
    """The Hessian of the loss over the pairs of queries: of (10.46), as used by (10.48)."""
    cdef Orders q = open_orders(queries, rule)
    cdef Plan plan = make_plan(X, 1, grid[0], False)
    cdef const double[::1] z_ = z
    cdef const int64_t[::1] bounds = grid[1]
    cdef Py_ssize_t chunks = bounds.shape[0] - 1, c, longest = np.diff(queries[0]).max(), block = grid[0]
    cdef Py_ssize_t d = plan.rows.d, wide = max(4, lanes[double]()), D = (d + wide - 1) // wide * wide
    cdef int threads = max(1, min(n_threads, chunks))
    cdef double[:, ::1] part = aligned_zeros(chunks, D * D)
    cdef double[:, ::1] work = aligned_zeros(threads, STRIP + SMALL * SMALL + (max(block, GATHERED) + max(longest, GATHERED) + 4) * D)
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            hessian_chunk(&q, &plan, bounds[c], bounds[c + 1], &z_[0], D, block, &part[c, 0], &work[threadid(), 0])
    upper = np.triu(np.asarray(part)[:, :D * D].sum(axis=0).reshape(D, D)[:d, :d])
    return upper + np.triu(upper, 1).T
