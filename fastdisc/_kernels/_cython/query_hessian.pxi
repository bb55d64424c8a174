# Hessians of the losses of pairs: X' L X, query by query. L is the Laplacian of the query's pairs,
# weighted by their curvatures.

cdef enum:
    # Rows of small queries whose X' L X is added at once: H is too large to be read for each query.
    GATHERED_ROWS = 128

cdef struct HessianProblem:
    Plan plan
    Queries queries
    const double* z
    Py_ssize_t D             # columns of H: d, padded to whole vectors
    Py_ssize_t block         # rows of L X at a time

# A thread's buffers.
cdef struct HessianWorkspace:
    Strip* strip
    double* C                # (n, n) curvatures of a small query
    double* Y                # (rows, D) L X
    double* P                # (rows, D) X


cdef HessianWorkspace make_hessian_workspace(
    Arena* arena, const HessianProblem* problem
) noexcept nogil:
    cdef HessianWorkspace work
    cdef Py_ssize_t D = problem.D
    work.strip = <Strip*>arena_bytes(arena, sizeof(Strip))
    work.C = arena_doubles(arena, MAX_PAIRWISE_ROWS * MAX_PAIRWISE_ROWS)
    work.Y = arena_doubles(arena, max(problem.block, GATHERED_ROWS) * D)
    # Four more rows: `axpy4` prefetches beyond the last.
    work.P = arena_doubles(arena, (max(problem.queries.longest, GATHERED_ROWS) + 4) * D)
    return work


cdef Py_ssize_t hessian_workspace_size(const HessianProblem* problem) noexcept nogil:
    cdef Arena arena = make_arena(NULL)
    make_hessian_workspace(&arena, problem)
    return arena.used


cdef inline void add_weighted_rows(
    const double* c, Py_ssize_t m, const double* x, Py_ssize_t D, double* y
) noexcept nogil:
    """y += sum_i c_i x_i over m rows"""
    cdef Py_ssize_t i
    for i in range(0, m - 3, 4):
        if c[i] != 0 or c[i + 1] != 0 or c[i + 2] != 0 or c[i + 3] != 0:
            axpy4(x + i * D, x + (i + 1) * D, x + (i + 2) * D, x + (i + 3) * D, c + i, D, y,
                  x + (i + 4) * D)
    for i in range(m - m % 4, m):
        axpy(x + i * D, c[i], D, y)


cdef double add_laplacian_row(
    const HessianProblem* problem, Py_ssize_t u, Py_ssize_t lo, Py_ssize_t hi, Wanted wanted,
    const HessianWorkspace* work, double* y, double degree
) noexcept nogil:
    """y -= sum_v c_uv x_v over the rows v of the query lo to hi that are preferred to row u
    (CURVATURES_AS_OTHER) or to which it is: degree + sum_v c_uv, c being curvatures"""
    cdef const Queries* q = &problem.queries
    cdef Py_ssize_t v = q.below[u], last = hi, i, m, D = problem.D
    cdef double* p = work.strip.p
    if wanted == CURVATURES_AS_OTHER:
        v, last = lo, q.above[u]
    while v < last:
        m = min(STRIP, last - v)
        pair_weights(q, u, v, m, p)
        evaluate_pairs(&q.rule, problem.z[u], problem.z + v, m, work.strip, wanted)
        degree += sum(<const double*>p, m)
        for i in range(m):
            p[i] = -p[i]
        add_weighted_rows(p, m, work.P + (v - lo) * D, D, y)
        v += m
    return degree


cdef void add_large_query(
    const HessianProblem* problem, Py_ssize_t lo, Py_ssize_t hi, double* H,
    const HessianWorkspace* work
) noexcept nogil:
    """H += X' L X, on and above the diagonal; L X is computed for a block of rows at a time, so
    that all sums stay in cache"""
    cdef Py_ssize_t D = problem.D, u, i, m, first = lo
    cdef const double* P = work.P
    cdef double* y
    cdef double degree
    load_rows(&problem.plan.rows, lo, hi - lo, work.P, D)
    while first < hi:
        m = min(problem.block, hi - first)
        memset(work.Y, 0, m * D * sizeof(double))
        for i in range(m):
            u, y = first + i, work.Y + i * D
            degree = add_laplacian_row(problem, u, lo, hi, CURVATURES_AS_OTHER, work, y, 0)
            degree = add_laplacian_row(problem, u, lo, hi, CURVATURES, work, y, degree)
            axpy(P + (u - lo) * D, degree, D, y)
        gram(work.Y, P + (first - lo) * D, D, m, D, H)
        first += m


cdef void multiply_small_query(
    const HessianProblem* problem, Py_ssize_t lo, Py_ssize_t hi, const HessianWorkspace* work,
    Py_ssize_t filled
) noexcept nogil:
    """Y = L X of a query with a matrix of its pairs: each curvature is computed once"""
    cdef const Queries* q = &problem.queries
    cdef Py_ssize_t n = hi - lo, D = problem.D, u, v, first
    cdef const double* P = work.P + filled * D
    cdef double* Y = work.Y + filled * D
    cdef double* p = work.strip.p
    cdef double* c
    memset(work.C, 0, n * n * sizeof(double))
    for u in range(n):
        c, first = work.C + u * n, q.below[lo + u] - lo
        pair_weights(q, lo + u, lo + first, n - first, p)
        evaluate_pairs(&q.rule, problem.z[lo + u], problem.z + lo + first, n - first, work.strip,
                       CURVATURES)
        for v in range(first, n):
            c[v] = -p[v - first]
            work.C[v * n + u] = c[v]
    memset(Y, 0, n * D * sizeof(double))
    for u in range(n):
        c = work.C + u * n
        add_weighted_rows(c, n, P, D, Y + u * D)
        axpy(P + u * D, -sum(<const double*>c, n), D, Y + u * D)


cdef void hessian_of_chunk(
    const HessianProblem* problem, Py_ssize_t g, Py_ssize_t last, double* H, double* buffers
) noexcept nogil:
    """The queries g to last: several small ones at once, large ones one by one"""
    cdef const Queries* q = &problem.queries
    cdef Arena arena = make_arena(buffers)
    cdef HessianWorkspace work = make_hessian_workspace(&arena, problem)
    cdef Py_ssize_t D = problem.D, lo, hi, filled = 0
    for g in range(g, last + 1):
        lo, hi = q.starts[g], q.starts[g + 1] if g < last else 0
        if filled and (
            g == last or hi - lo > MAX_PAIRWISE_ROWS or filled + hi - lo > GATHERED_ROWS
        ):
            gram(work.Y, work.P, D, filled, D, H)
            filled = 0
        if g == last or q.below[lo] == hi:
            continue
        if hi - lo > MAX_PAIRWISE_ROWS:
            add_large_query(problem, lo, hi, H, &work)
            continue
        load_rows(&problem.plan.rows, lo, hi - lo, work.P + filled * D, D)
        multiply_small_query(problem, lo, hi, &work, filled)
        filled += hi - lo


def query_hessian(X, z, queries, rule, grid, int n_threads):
    """The Hessian of the loss over the pairs of queries: of (10.46), as used by (10.48)."""
    cdef HessianProblem problem
    problem.queries = open_queries(queries, rule)
    problem.plan = make_plan(X, 1, grid[0], False)
    cdef const double[::1] z_ = z
    cdef const int64_t[::1] bounds = grid[1]
    cdef Py_ssize_t chunks = bounds.shape[0] - 1, c, d = problem.plan.rows.d
    cdef Py_ssize_t lanes_ = max(4, lanes[double]()), D = (d + lanes_ - 1) // lanes_ * lanes_
    problem.z, problem.D, problem.block = &z_[0], D, grid[0]
    cdef int threads = max(1, min(n_threads, chunks))
    cdef double[:, ::1] part = aligned_zeros(chunks, D * D)
    cdef double[:, ::1] work = aligned_zeros(threads, hessian_workspace_size(&problem))
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            hessian_of_chunk(
                &problem, bounds[c], bounds[c + 1], &part[c, 0], &work[threadid(), 0])
    upper = np.triu(np.asarray(part)[:, :D * D].sum(axis=0).reshape(D, D)[:d, :d])
    return upper + np.triu(upper, 1).T
