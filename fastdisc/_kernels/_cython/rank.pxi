# Ranking works on scores alone: a row's partners, the rows of its query with a worse grade, stand side by side in the order of
# `Queries`, so that all its pairs are one plain loop that the compiler vectorises. Large queries with a loss that counts pairs
# go through the tree of rank_tree.pxi instead, where pairs are never formed.

cdef extern from "rank_pairs.h" namespace "rank_pairs" nogil:
    cdef struct Side:
        const double* z
        const double* E
        const double* F
        double* e
    cdef struct Lanes:
        double[8] product
        double[8] loss
        double[8] active
    double equal_pairs(const Side& q, Py_ssize_t u, Py_ssize_t v, Py_ssize_t end, Lanes& lanes)
    double weighted_pairs(const Side& q, Py_ssize_t u, Py_ssize_t v, Py_ssize_t end, const double* p, double* ratio, Lanes& lanes)

cdef enum Pairwise:
    PAIR_HINGE
    PAIR_SQUARED
    PAIR_HUBER
    PAIR_LOGISTIC

cdef enum:
    STRIP = 512      # partners that are worked on at a time: four buffers of them stay in L1
    SMALL = 96       # rows of a query up to which its pairs are looked at one by one
    GATHERED = 128   # rows of small queries that go into a Hessian at once: it is too large to be touched for each query
    FAR = 690        # scores further apart than that: exp of their difference has no place in float64
    PAD = 8          # rows that count nothing after a query's own: the lanes of the widest vectors
    FACTORS = 400    # of a product, each up to 2, after which its logarithm is taken: those of one more strip fit in float64

cdef struct Orders:
    const int64_t* starts
    const int64_t* above
    const int64_t* below
    const double* s
    Py_ssize_t step          # of s: 0 where one weight serves all rows
    const double* gain       # or NULL
    const double* discount
    int loss
    double margin, width


cdef Orders open_orders(queries, rule):
    cdef Orders q
    cdef const int64_t[::1] starts = queries[0], above = queries[1], below = queries[2]
    cdef const double[::1] s = queries[3], gain = queries[4], discount = queries[5]
    q.starts, q.above, q.below = &starts[0], &above[0], &below[0]
    q.s, q.step = &s[0], s.shape[0] > 1
    q.gain = q.discount = NULL   # one without the other weighs nothing
    if gain.shape[0] and discount.shape[0]:
        q.gain, q.discount = &gain[0], &discount[0]
    q.loss, q.margin, q.width = rule[0], rule[1], rule[2]
    return q


cdef inline void pair_weights(const Orders* q, Py_ssize_t u, Py_ssize_t v, Py_ssize_t m, double* p) noexcept nogil:
    """The weights of row u's pairs with the rows v to v + m."""
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


cdef void slopes(const Orders* q, double zu, const double* z, Py_ssize_t m, const double* p, double* loss, double* slope,
                 double* active) noexcept nogil:
    """Of one row's pairs: p times loss, derivative by a, and whether the pair counts   (10.46)"""
    cdef Py_ssize_t i
    cdef double a, up, near, low
    if q.loss == PAIR_LOGISTIC:
        for i in range(m):
            a = (z[i] - zu) + q.margin
            low = exp_nonpositive(-abs(a))
            slope[i] = p[i] * ((1 if a > 0 else low) / (1 + low))
            loss[i] = p[i] * (log1p_ratio(low / (2 + low)) + (a if a > 0 else 0))
            active[i] = p[i] if z[i] - zu >= 0 else 0
    elif q.loss == PAIR_HUBER:
        for i in range(m):
            a = (z[i] - zu) + q.margin
            up = a if a > 0 else 0
            near = up if up < q.width else q.width
            slope[i] = p[i] * (near / q.width)
            loss[i] = slope[i] * (up - near / 2)
            active[i] = p[i] if a > 0 else 0
    elif q.loss == PAIR_SQUARED:
        for i in range(m):
            a = (z[i] - zu) + q.margin
            up = a if a > 0 else 0
            slope[i] = p[i] * (2 * up)
            loss[i] = p[i] * (up * up)
            active[i] = p[i] if a > 0 else 0
    else:
        for i in range(m):
            a = (z[i] - zu) + q.margin
            slope[i] = p[i] if a > 0 else 0
            loss[i] = p[i] * (a if a > 0 else 0)
            active[i] = slope[i]


cdef void bends(const Orders* q, double zu, const double* z, double sign, Py_ssize_t m, double* p) noexcept nogil:
    """Of one row's pairs: p becomes p times the curvature; a = margin + sign (z_v - z_u)"""
    cdef Py_ssize_t i
    cdef double a, u
    if q.loss == PAIR_LOGISTIC:
        for i in range(m):
            u = exp_nonpositive(-abs(sign * (z[i] - zu) + q.margin))
            p[i] *= u / ((1 + u) * (1 + u))
    elif q.loss == PAIR_HUBER:
        for i in range(m):
            a = sign * (z[i] - zu) + q.margin
            p[i] *= 1 / q.width if a > 0 and a <= q.width else 0
    else:
        for i in range(m):
            a = sign * (z[i] - zu) + q.margin
            p[i] *= 2 if a > 0 else 0


cdef void link_pairs(const Orders* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, double* e, double* out, double* work) noexcept nogil:
    """e = dE/dz of one query, pair by pair; out = loss, weight of the pairs that count"""
    cdef double* p = work
    cdef double* loss = p + STRIP
    cdef double* slope = loss + STRIP
    cdef double* active = slope + STRIP
    cdef Py_ssize_t u, v, i, m
    memset(e + lo, 0, (hi - lo) * sizeof(double))
    for u in range(lo, hi):
        v = q.below[u]
        while v < hi:
            m = min(STRIP, hi - v)
            pair_weights(q, u, v, m, p)
            slopes(q, z[u], z + v, m, p, loss, slope, active)
            for i in range(m):
                e[v + i] += slope[i]
            e[u] -= sum(slope, m)
            out[0] += sum(loss, m)
            out[1] += sum(active, m)
            v += m


cdef inline double settle_product(Lanes* lanes) noexcept nogil:
    """The logarithm of the lanes' products, which begin anew"""
    cdef double total = 0, t
    cdef Py_ssize_t i
    for i in range(PAD):
        t = lanes.product[i]
        total += log_of_1_or_more(1 + t) if t > 1 else log1p_ratio(t / (2 + t))
        lanes.product[i] = 0
    return total


cdef bint near_scores(const double* z, Py_ssize_t n, double* middle) noexcept nogil:
    """Whether exponentials of all differences have a place in float64, and what to count scores from"""
    cdef double top = z[0], low = z[0]
    cdef Py_ssize_t i
    for i in range(n):
        top, low = (z[i] if z[i] > top else top), (z[i] if z[i] < low else low)
    middle[0] = low + (top - low) / 2
    return top - low < FAR


cdef bint weigh_alike(const Orders* q, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    """Whether all pairs of a query weigh the same"""
    cdef Py_ssize_t i
    if q.gain != NULL:
        return False
    for i in range(lo * q.step, hi * q.step):
        if q.s[i] != q.s[lo]:
            return False
    return True


cdef void link_near(const Orders* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, double middle, double* e, double* out,
                    double* work) noexcept nogil:
    """As link_pairs, for the logistic loss of scores that are near each other: two exp a row, none a pair"""
    cdef double* p = work
    cdef double* ratio = p + STRIP + PAD
    cdef double* Z = ratio + STRIP + PAD
    cdef Py_ssize_t n = hi - lo, N = n + PAD, wide = lanes[double](), u, v, i, m, factors = 0
    cdef double* E = Z + N
    cdef double* F = E + N
    cdef double* own = F + N
    cdef bint alike = weigh_alike(q, lo, hi)
    cdef double unit = q.s[lo * q.step] * q.s[lo * q.step] if alike else 1
    cdef Side side
    cdef Lanes sums
    memset(Z, 0, 4 * N * sizeof(double))
    memset(&sums, 0, sizeof(Lanes))
    for i in range(n):
        Z[i] = z[lo + i]
        E[i] = exp_nonpositive(z[lo + i] - middle)
        F[i] = exp_nonpositive(middle - z[lo + i])
    for i in range(n, N):
        Z[i] = -INFINITY
    side.z, side.E, side.F, side.e = Z, E, F, own
    for u in range(n):
        v = q.below[lo + u] - lo
        while v < n:
            m = min(STRIP, n - v)
            if alike:
                own[u] -= equal_pairs(side, u, v, v + m, sums)
                factors += (m + wide - 1) // wide
                if factors > FACTORS:
                    out[0] += unit * settle_product(&sums)
                    factors = 0
            else:
                pair_weights(q, lo + u, lo + v, m, p)
                memset(p + m, 0, PAD * sizeof(double))
                own[u] -= weighted_pairs(side, u, v, v + m, p, ratio, sums)
                for i in range(m):
                    ratio[i] = p[i] * log1p_ratio(ratio[i])
                out[0] += sum(ratio, m)
            v += m
    out[0] += unit * (settle_product(&sums) + sum(<const double*>sums.loss, PAD))
    out[1] += unit * sum(<const double*>sums.active, PAD)
    for i in range(n):
        e[lo + i] = unit * own[i]


cdef void bend_pairs(const Orders* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, const double* x, double* out, double* p) noexcept nogil:
    """The curvature times x of one query, pair by pair"""
    cdef Py_ssize_t u, v, i, m
    for u in range(lo, hi):
        out[u] = 0
    for u in range(lo, hi):
        v = q.below[u]
        while v < hi:
            m = min(STRIP, hi - v)
            pair_weights(q, u, v, m, p)
            bends(q, z[u], z + v, 1, m, p)
            for i in range(m):
                p[i] *= x[v + i] - x[u]
                out[v + i] += p[i]
            out[u] -= sum(p, m)
            v += m


cdef void link_query(const Orders* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, double* e, double* out, double* work,
                     int threads) noexcept nogil:
    """One query's share of `rank_link`"""
    cdef Py_ssize_t i
    cdef double middle
    if not isfinite(nan_if_not_finite(z + lo, hi - lo)):   # NaN has no place in an order: nothing is compared, and the sums show it
        out[0] = NAN
        for i in range(lo, hi):
            e[i] = NAN
    elif q.loss == PAIR_LOGISTIC and q.margin == 0 and near_scores(z + lo, hi - lo, &middle):
        link_near(q, lo, hi, z, middle, e, out, work)
    elif q.loss == PAIR_LOGISTIC or hi - lo <= SMALL:
        link_pairs(q, lo, hi, z, e, out, work)
    else:
        link_tree(q, lo, hi, z, e, out, work, threads)


cdef Py_ssize_t pairs_room(const Orders* q, Py_ssize_t n) noexcept nogil:
    """Numbers of a thread's buffers, for queries of up to n rows; a tree's are so many that to clear them takes its time."""
    cdef Py_ssize_t strips = 4 * STRIP + 4 * (n + PAD)
    return strips if q.loss == PAIR_LOGISTIC or n <= SMALL else max(strips, tree_room(n))


cdef inline bint takes_all(const Orders* q, Py_ssize_t g) noexcept nogil:
    """Whether all threads work on a query: a large tree. Pairs that are looked at one by one are one thread's, query by query."""
    return q.loss != PAIR_LOGISTIC and q.starts[g + 1] - q.starts[g] > LARGE


cdef Py_ssize_t longest_query(starts) except -1:
    """Rows of the longest query; places in the tree are 32-bit numbers."""
    longest = int(np.diff(starts).max())
    if longest >= 1 << 31:
        raise ValueError(f"a query has {longest:,} rows: the most are {(1 << 31) - 1:,}")
    return longest


def query_loss(z, queries, rule, grid, int n_threads):
    """Loss over the pairs of queries and its derivative by the scores: (10.46), (10.48)."""
    cdef Orders q = open_orders(queries, rule)
    cdef const double[::1] z_ = z
    cdef const int64_t[::1] bounds = grid[1]
    cdef Py_ssize_t chunks = bounds.shape[0] - 1, c, g, longest = longest_query(queries[0])
    cdef int threads = max(1, min(n_threads, chunks))
    result = np.empty(z.shape[0])
    cdef double[::1] e = result
    cdef double[:, ::1] part = aligned_zeros(chunks, 2)
    cdef double[:, ::1] work = aligned_zeros(threads, pairs_room(&q, longest))
    with nogil:
        for c in range(chunks):   # queries that all threads work on, one after the other
            for g in range(bounds[c], bounds[c + 1]):
                if takes_all(&q, g):
                    link_query(&q, q.starts[g], q.starts[g + 1], &z_[0], &e[0], &part[c, 0], &work[0, 0], n_threads)
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            for g in range(bounds[c], bounds[c + 1]):
                if not takes_all(&q, g):
                    link_query(&q, q.starts[g], q.starts[g + 1], &z_[0], &e[0], &part[c, 0], &work[threadid(), 0], 1)
    total = np.asarray(part).sum(axis=0)
    return total[0], total[1], result


def query_curvature_product(z, u, queries, rule, grid, int n_threads):
    """The second derivative by the scores times u: of (10.46), as used by (10.48)."""
    cdef Orders q = open_orders(queries, rule)
    cdef const double[::1] z_ = z, u_ = u
    cdef const int64_t[::1] bounds = grid[1]
    cdef Py_ssize_t chunks = bounds.shape[0] - 1, c, g, longest = longest_query(queries[0]), q_count = len(queries[0]) - 1
    cdef int threads = max(1, min(n_threads, chunks))
    result = np.empty(z.shape[0])
    cdef double[::1] out = result
    cdef double[:, ::1] work = aligned_zeros(threads, pairs_room(&q, longest))
    with nogil:
        for g in range(q_count):
            if takes_all(&q, g):
                bend_query(&q, q.starts[g], q.starts[g + 1], &z_[0], &u_[0], &out[0], &work[0, 0], n_threads)
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            for g in range(bounds[c], bounds[c + 1]):
                if not takes_all(&q, g):
                    bend_query(&q, q.starts[g], q.starts[g + 1], &z_[0], &u_[0], &out[0], &work[threadid(), 0], 1)
    return result


cdef void bend_query(const Orders* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, const double* u, double* out, double* work,
                     int threads) noexcept nogil:
    cdef Py_ssize_t i
    if not isfinite(nan_if_not_finite(z + lo, hi - lo)):   # as in link_query
        for i in range(lo, hi):
            out[i] = NAN
    elif q.loss == PAIR_LOGISTIC or hi - lo <= SMALL:
        bend_pairs(q, lo, hi, z, u, out, work)
    else:
        bend_tree(q, lo, hi, z, u, out, work, threads)
