# Losses of pairs from scores. A row's pairs, those with the rows of its query that have a lower
# grade, are next to each other in the order of `Queries`, so that they are one plain loop that the
# compiler vectorises. Large queries are in rank_tree.pxi, except for LOGISTIC, whose loss is not a
# sum of powers.

cdef extern from "pair_exponentials.h" namespace "pair_exponentials" nogil:
    cdef struct QueryRows:
        double* z
        double* E
        double* F
        double* e
    cdef struct Lanes:
        double[8] product
        double[8] loss
        double[8] active
    double equal_pairs(
        const QueryRows& q, Py_ssize_t u, Py_ssize_t v, Py_ssize_t end, Lanes& lanes)
    double weighted_pairs(
        const QueryRows& q, Py_ssize_t u, Py_ssize_t v, Py_ssize_t end, const double* p,
        double* ratio, Lanes& lanes)

cdef enum:
    MAX_PAIRWISE_ROWS = 96   # of a query whose pairs are visited one by one, if there is a choice
    MAX_EXPONENT = 690       # of a difference of scores whose exponential is a positive float64
    MAX_FACTORS = 400        # of a product, each up to 2, so that one more strip stays in float64

# As in contract.py; `rule` has the loss of the pairs.
cdef struct Queries:
    const int64_t* starts
    const int64_t* above
    const int64_t* below
    const double* s
    Py_ssize_t step          # of s: 0 if all rows have the same weight
    const double* gain       # or NULL
    const double* discount
    Py_ssize_t longest       # rows of a query
    PairRule rule

# A thread's buffers.
cdef struct QueryWorkspace:
    Strip* strip
    QueryRows rows           # (n + MAX_LANES,) each, for LOGISTIC
    TreeWorkspace tree       # for other losses


cdef Queries open_queries(queries, rule) except *:
    cdef Queries q
    cdef const int64_t[::1] starts = queries[0], above = queries[1], below = queries[2]
    cdef const double[::1] s = queries[3], gain = queries[4], discount = queries[5]
    q.starts, q.above, q.below = &starts[0], &above[0], &below[0]
    q.s, q.step = &s[0], s.shape[0] > 1
    q.gain = q.discount = NULL   # one without the other is not a weight
    if gain.shape[0] and discount.shape[0]:
        q.gain, q.discount = &gain[0], &discount[0]
    q.rule, q.longest = pair_rule(rule), longest_query(queries[0])
    return q


cdef QueryWorkspace make_query_workspace(Arena* arena, const Queries* q) noexcept nogil:
    cdef QueryWorkspace work
    cdef Py_ssize_t padded = q.longest + MAX_LANES
    memset(&work, 0, sizeof(QueryWorkspace))
    work.strip = <Strip*>arena_bytes(arena, sizeof(Strip))
    if q.rule.loss == PairLoss.LOGISTIC:
        work.rows.z, work.rows.E = arena_doubles(arena, padded), arena_doubles(arena, padded)
        work.rows.F, work.rows.e = arena_doubles(arena, padded), arena_doubles(arena, padded)
    elif q.longest > MAX_PAIRWISE_ROWS:
        work.tree = make_tree_workspace(arena, q.longest)
    return work


cdef Py_ssize_t query_workspace_size(const Queries* q) noexcept nogil:
    cdef Arena arena = make_arena(NULL)
    make_query_workspace(&arena, q)
    return arena.used


cdef Py_ssize_t longest_query(starts) except -1:
    """Rows of the longest query; places in a tree are 32-bit numbers."""
    longest = int(np.diff(starts).max())
    if longest >= 1 << 31:
        raise ValueError(f"a query has {longest:,} rows: the most are {(1 << 31) - 1:,}")
    return longest


cdef inline void pair_weights(
    const Queries* q, Py_ssize_t u, Py_ssize_t v, Py_ssize_t m, double* p
) noexcept nogil:
    """The weights of the pairs of row u with rows v to v + m."""
    cdef Py_ssize_t i
    cdef double s = q.s[u * q.step]
    if q.step:
        for i in range(m):
            p[i] = s * q.s[v + i]
    else:
        for i in range(m):
            p[i] = s * s
    if q.gain != NULL:
        for i in range(m):
            p[i] *= abs(q.gain[u] - q.gain[v + i]) * abs(q.discount[u] - q.discount[v + i])


cdef void loss_by_pairs(
    const Queries* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, double* e, double* out,
    Strip* strip
) noexcept nogil:
    """e = dE/dz of one query, pair by pair; out += loss, weight of the active pairs   (10.46)"""
    cdef Py_ssize_t u, v, i, m
    memset(e + lo, 0, (hi - lo) * sizeof(double))
    for u in range(lo, hi):
        v = q.below[u]
        while v < hi:
            m = min(STRIP, hi - v)
            pair_weights(q, u, v, m, strip.p)
            evaluate_pairs(&q.rule, z[u], z + v, m, strip, LOSSES)
            for i in range(m):
                e[v + i] += strip.slope[i]
            e[u] -= sum(<const double*>strip.slope, m)
            out[0] += sum(<const double*>strip.loss, m)
            out[1] += sum(<const double*>strip.active, m)
            v += m


cdef void product_by_pairs(
    const Queries* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, const double* x, double* out,
    Strip* strip
) noexcept nogil:
    """The curvature of one query times x, pair by pair"""
    cdef double* p = strip.p
    cdef Py_ssize_t u, v, i, m
    for u in range(lo, hi):
        out[u] = 0
    for u in range(lo, hi):
        v = q.below[u]
        while v < hi:
            m = min(STRIP, hi - v)
            pair_weights(q, u, v, m, p)
            evaluate_pairs(&q.rule, z[u], z + v, m, strip, CURVATURES)
            for i in range(m):
                p[i] *= x[v + i] - x[u]
                out[v + i] += p[i]
            out[u] -= sum(<const double*>p, m)
            v += m


cdef inline double flush_product(Lanes* lanes) noexcept nogil:
    """The logarithm of the lanes' products, which start again at 1"""
    cdef double total = 0, t
    cdef Py_ssize_t i
    for i in range(MAX_LANES):
        t = lanes.product[i]
        total += log_of_1_or_more(1 + t) if t > 1 else log1p_ratio(t / (2 + t))
        lanes.product[i] = 0
    return total


cdef bint close_scores(const double* z, Py_ssize_t n, double* center) noexcept nogil:
    """Whether the exponentials of all differences are in float64, and what to count scores from"""
    cdef double top = z[0], low = z[0]
    cdef Py_ssize_t i
    for i in range(n):
        top, low = (z[i] if z[i] > top else top), (z[i] if z[i] < low else low)
    center[0] = low + (top - low) / 2
    return top - low < MAX_EXPONENT


cdef bint equal_weights(const Queries* q, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    """Whether all pairs of a query have the same weight"""
    cdef Py_ssize_t i
    if q.gain != NULL:
        return False
    for i in range(lo * q.step, hi * q.step):
        if q.s[i] != q.s[lo]:
            return False
    return True


cdef void fill_rows(
    const double* z, Py_ssize_t n, double center, const QueryRows* rows
) noexcept nogil:
    """A query's scores and exponentials, with padding that contributes 0"""
    cdef Py_ssize_t i, padded = n + MAX_LANES
    for i in range(n):
        rows.z[i] = z[i]
        rows.E[i] = exp_nonpositive(z[i] - center)
        rows.F[i] = exp_nonpositive(center - z[i])
    memset(rows.E + n, 0, MAX_LANES * sizeof(double))
    memset(rows.F + n, 0, MAX_LANES * sizeof(double))
    memset(rows.e, 0, padded * sizeof(double))
    for i in range(n, padded):
        rows.z[i] = -INFINITY


cdef void loss_by_exponentials(
    const Queries* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, double* e, double* out,
    const QueryWorkspace* work
) noexcept nogil:
    """As `loss_by_pairs`, for LOGISTIC and `close_scores`: two exp per row, none per pair"""
    cdef QueryRows rows = work.rows
    cdef double* p = work.strip.p
    cdef double* ratio = work.strip.loss
    cdef Py_ssize_t n = hi - lo, lanes_ = lanes[double](), u, v, i, m, factors = 0
    cdef bint equal = equal_weights(q, lo, hi)
    cdef double unit = q.s[lo * q.step] * q.s[lo * q.step] if equal else 1
    cdef Lanes sums
    memset(&sums, 0, sizeof(Lanes))
    for u in range(n):
        v = q.below[lo + u] - lo
        while v < n:
            m = min(STRIP, n - v)
            if equal:
                rows.e[u] -= equal_pairs(rows, u, v, v + m, sums)
                factors += (m + lanes_ - 1) // lanes_
                if factors > MAX_FACTORS:
                    out[0] += unit * flush_product(&sums)
                    factors = 0
            else:
                pair_weights(q, lo + u, lo + v, m, p)
                memset(p + m, 0, MAX_LANES * sizeof(double))
                rows.e[u] -= weighted_pairs(rows, u, v, v + m, p, ratio, sums)
                for i in range(m):
                    ratio[i] = p[i] * log1p_ratio(ratio[i])
                out[0] += sum(<const double*>ratio, m)
            v += m
    out[0] += unit * (flush_product(&sums) + sum(<const double*>sums.loss, MAX_LANES))
    out[1] += unit * sum(<const double*>sums.active, MAX_LANES)
    for i in range(n):
        e[lo + i] = unit * rows.e[i]


cdef void loss_of_query(
    const Queries* q, Py_ssize_t g, const double* z, double* e, double* out,
    const QueryWorkspace* work, int threads
) noexcept nogil:
    """One query of `query_loss`"""
    cdef Py_ssize_t lo = q.starts[g], hi = q.starts[g + 1], i
    cdef bint logistic = q.rule.loss == PairLoss.LOGISTIC
    cdef double center
    # NaN cannot be sorted: nothing is compared, and the sums show it.
    if not isfinite(nan_if_not_finite(z + lo, hi - lo)):
        out[0] = NAN
        for i in range(lo, hi):
            e[i] = NAN
    elif logistic and q.rule.margin == 0 and close_scores(z + lo, hi - lo, &center):
        fill_rows(z + lo, hi - lo, center, &work.rows)
        loss_by_exponentials(q, lo, hi, z, e, out, work)
    elif logistic or hi - lo <= MAX_PAIRWISE_ROWS:
        loss_by_pairs(q, lo, hi, z, e, out, work.strip)
    else:
        loss_by_tree(q, lo, hi, z, e, out, &work.tree, threads)


cdef void product_of_query(
    const Queries* q, Py_ssize_t g, const double* z, const double* u, double* out,
    const QueryWorkspace* work, int threads
) noexcept nogil:
    """One query of `query_curvature_product`"""
    cdef Py_ssize_t lo = q.starts[g], hi = q.starts[g + 1], i
    if not isfinite(nan_if_not_finite(z + lo, hi - lo)):   # as in `loss_of_query`
        for i in range(lo, hi):
            out[i] = NAN
    elif q.rule.loss == PairLoss.LOGISTIC or hi - lo <= MAX_PAIRWISE_ROWS:
        product_by_pairs(q, lo, hi, z, u, out, work.strip)
    else:
        product_by_tree(q, lo, hi, z, u, out, &work.tree, threads)


cdef inline bint is_shared(const Queries* q, Py_ssize_t g) noexcept nogil:
    """Whether all threads work on a query: a large tree. Pairs that are visited one by one are
    summed by one thread, query by query."""
    return (q.rule.loss != PairLoss.LOGISTIC
            and q.starts[g + 1] - q.starts[g] > MIN_SHARED_ROWS)


cdef void loss_of_chunk(
    const Queries* q, Py_ssize_t g, Py_ssize_t last, const double* z, double* e, double* out,
    double* buffers, int threads
) noexcept nogil:
    """Queries g to last: those that `threads` threads share; with 0, all others"""
    cdef Arena arena = make_arena(buffers)
    cdef QueryWorkspace work = make_query_workspace(&arena, q)
    for g in range(g, last):
        if is_shared(q, g) == (threads > 0):
            loss_of_query(q, g, z, e, out, &work, max(1, threads))


cdef void product_of_chunk(
    const Queries* q, Py_ssize_t g, Py_ssize_t last, const double* z, const double* u, double* out,
    double* buffers, int threads
) noexcept nogil:
    """The same of `query_curvature_product`"""
    cdef Arena arena = make_arena(buffers)
    cdef QueryWorkspace work = make_query_workspace(&arena, q)
    for g in range(g, last):
        if is_shared(q, g) == (threads > 0):
            product_of_query(q, g, z, u, out, &work, max(1, threads))


def query_loss(z, queries, rule, grid, int n_threads):
    """Loss over the pairs of queries and its derivative by the scores: (10.46), (10.48)."""
    cdef Queries q = open_queries(queries, rule)
    cdef const double[::1] z_ = z
    cdef const int64_t[::1] bounds = grid[1]
    cdef Py_ssize_t chunks = bounds.shape[0] - 1, c
    cdef int threads = max(1, min(n_threads, chunks)), shared = max(1, n_threads)
    result = np.empty(z.shape[0])
    cdef double[::1] e = result
    cdef double[:, ::1] part = aligned_zeros(chunks, 2)
    cdef double[:, ::1] work = aligned_zeros(threads, query_workspace_size(&q))
    with nogil:
        for c in range(chunks):
            loss_of_chunk(&q, bounds[c], bounds[c + 1], &z_[0], &e[0], &part[c, 0], &work[0, 0],
                          shared)
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            loss_of_chunk(&q, bounds[c], bounds[c + 1], &z_[0], &e[0], &part[c, 0],
                          &work[threadid(), 0], 0)
    total = np.asarray(part).sum(axis=0)
    return total[0], total[1], result


def query_curvature_product(z, u, queries, rule, grid, int n_threads):
    """The second derivative by the scores times u: of (10.46), as used by (10.48)."""
    cdef Queries q = open_queries(queries, rule)
    cdef const double[::1] z_ = z, u_ = u
    cdef const int64_t[::1] bounds = grid[1]
    cdef Py_ssize_t chunks = bounds.shape[0] - 1, c
    cdef int threads = max(1, min(n_threads, chunks)), shared = max(1, n_threads)
    result = np.empty(z.shape[0])
    cdef double[::1] out = result
    cdef double[:, ::1] work = aligned_zeros(threads, query_workspace_size(&q))
    with nogil:
        product_of_chunk(&q, bounds[0], bounds[chunks], &z_[0], &u_[0], &out[0], &work[0, 0],
                         shared)
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            product_of_chunk(&q, bounds[c], bounds[c + 1], &z_[0], &u_[0], &out[0],
                             &work[threadid(), 0], 0)
    return result
