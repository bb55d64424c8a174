# Ranking works on scores alone: a row's partners, the rows of its query with a worse grade, stand side by side in the order of
# `Queries`, so that all its pairs are one plain loop that the compiler vectorises. Large queries with a loss that counts pairs
# go through the tree of rank_tree.pxi instead, where pairs are never formed.

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


cdef void slopes(const Orders* q, double zu, double Eu, const double* z, const double* E, Py_ssize_t m, const double* p,
                 double* loss, double* slope, double* active) noexcept nogil:
    """Of one row's pairs: p times loss, derivative by a, and whether the pair counts   (10.46)

    With E = exp(z - max), where that is finite, sigmoid(z_v - z_u) = E_v / (E_u + E_v): one exp a row, none a pair.
    """
    cdef Py_ssize_t i
    cdef double a, up, near, low, high
    if q.loss == PAIR_LOGISTIC and E != NULL:
        for i in range(m):
            a = z[i] - zu
            low = Eu if Eu < E[i] else E[i]
            high = E[i] if Eu < E[i] else Eu
            slope[i] = p[i] * (E[i] / (Eu + E[i]))
            loss[i] = p[i] * (log1p_ratio(low / (2 * high + low)) + (a if a > 0 else 0))
            active[i] = p[i] if a >= 0 else 0
    elif q.loss == PAIR_LOGISTIC:
        for i in range(m):
            a = (z[i] - zu) + q.margin
            low = exp_(-abs(a))
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
            u = exp_(-abs(sign * (z[i] - zu) + q.margin))
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
    cdef double* E = active + STRIP
    cdef Py_ssize_t u, v, i, m
    cdef double top = z[lo], least = z[lo]
    cdef bint quick = False
    for u in range(lo, hi):
        e[u] = 0
        top, least = max(top, z[u]), min(least, z[u])
    if q.loss == PAIR_LOGISTIC and q.margin == 0 and top - least < FAR:
        quick = True
        for u in range(lo, hi):
            E[u - lo] = exp_(z[u] - top)
    for u in range(lo, hi):
        v = q.below[u]
        while v < hi:
            m = min(STRIP, hi - v)
            pair_weights(q, u, v, m, p)
            slopes(q, z[u], E[u - lo], z + v, E + (v - lo) if quick else NULL, m, p, loss, slope, active)
            for i in range(m):
                e[v + i] += slope[i]
            e[u] -= sum(slope, m)
            out[0] += sum(loss, m)
            out[1] += sum(active, m)
            v += m


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
    if not isfinite(spoiled(z + lo, hi - lo)):   # NaN has no place in an order: nothing is compared, and the sums show it
        out[0] = NAN
        for i in range(lo, hi):
            e[i] = NAN
    elif q.loss == PAIR_LOGISTIC or hi - lo <= SMALL:
        link_pairs(q, lo, hi, z, e, out, work)
    else:
        link_tree(q, lo, hi, z, e, out, work, threads)


cdef Py_ssize_t longest_query(starts) except -1:
    """Rows of the longest query; places in the tree are 32-bit numbers."""
    longest = int(np.diff(starts).max())
    if longest >= 1 << 31:
        raise ValueError(f"a query has {longest:,} rows: the most are {(1 << 31) - 1:,}")
    return longest


def rank_link(z, queries, rule, grid, int n_threads):
    """Loss over all ordered pairs within queries, and its derivative by the scores: (10.46), (10.48)."""
    cdef Orders q = open_orders(queries, rule)
    cdef const double[::1] z_ = z
    cdef const int64_t[::1] bounds = grid[1]
    cdef Py_ssize_t chunks = bounds.shape[0] - 1, c, g, longest = longest_query(queries[0])
    cdef int threads = max(1, min(n_threads, chunks))
    result = np.empty(z.shape[0])
    cdef double[::1] e = result
    cdef double[:, ::1] part = aligned(chunks, 2)
    cdef double[:, ::1] work = aligned(threads, tree_room(longest))
    with nogil:
        for c in range(chunks):   # queries that all threads work on, one after the other
            for g in range(bounds[c], bounds[c + 1]):
                if q.starts[g + 1] - q.starts[g] > LARGE:
                    link_query(&q, q.starts[g], q.starts[g + 1], &z_[0], &e[0], &part[c, 0], &work[0, 0], n_threads)
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            for g in range(bounds[c], bounds[c + 1]):
                if q.starts[g + 1] - q.starts[g] <= LARGE:
                    link_query(&q, q.starts[g], q.starts[g + 1], &z_[0], &e[0], &part[c, 0], &work[threadid(), 0], 1)
    total = np.asarray(part).sum(axis=0)
    return total[0], total[1], result


def rank_bend(z, u, queries, rule, grid, int n_threads):
    """The second derivative by the scores times a direction's scores u: of (10.46), as used by (10.48)."""
    cdef Orders q = open_orders(queries, rule)
    cdef const double[::1] z_ = z, u_ = u
    cdef const int64_t[::1] bounds = grid[1]
    cdef Py_ssize_t chunks = bounds.shape[0] - 1, c, g, longest = longest_query(queries[0]), q_count = len(queries[0]) - 1
    cdef int threads = max(1, min(n_threads, chunks))
    result = np.empty(z.shape[0])
    cdef double[::1] out = result
    cdef double[:, ::1] work = aligned(threads, tree_room(longest))
    with nogil:
        for g in range(q_count):
            if q.starts[g + 1] - q.starts[g] > LARGE:
                bend_query(&q, q.starts[g], q.starts[g + 1], &z_[0], &u_[0], &out[0], &work[0, 0], n_threads)
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            for g in range(bounds[c], bounds[c + 1]):
                if q.starts[g + 1] - q.starts[g] <= LARGE:
                    bend_query(&q, q.starts[g], q.starts[g + 1], &z_[0], &u_[0], &out[0], &work[threadid(), 0], 1)
    return result


cdef void bend_query(const Orders* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, const double* u, double* out, double* work,
                     int threads) noexcept nogil:
    cdef Py_ssize_t i
    if not isfinite(spoiled(z + lo, hi - lo)):   # as in link_query
        for i in range(lo, hi):
            out[i] = NAN
    elif q.loss == PAIR_LOGISTIC or hi - lo <= SMALL:
        bend_pairs(q, lo, hi, z, u, out, work)
    else:
        bend_tree(q, lo, hi, z, u, out, work, threads)


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
    load(&plan.rows, lo, hi - lo, P, D)
    while first < hi:
        m = min(block, hi - first)
        memset(Y, 0, m * D * sizeof(double))
        for i in range(m):
            u, degree = first + i, 0
            laplace(q, u, lo, q.above[u], lo, -1, z, P, D, Y + i * D, &degree, p)
            laplace(q, u, q.below[u], hi, lo, 1, z, P, D, Y + i * D, &degree, p)
            axpy(<const double*>P + (u - lo) * D, degree, D, Y + i * D)
        gram(Y, P + (first - lo) * D, D, m, D, H)
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
            gram(Y, P, D, filled, D, H)
            filled = 0
        if g == last or q.below[lo] == hi:
            continue
        if hi - lo > SMALL:
            hessian_query(q, plan, lo, hi, z, D, block, H, work)
            continue
        load(&plan.rows, lo, hi - lo, P + filled * D, D)
        laplace_small(q, lo, hi, z, P + filled * D, D, Y + filled * D, C)
        filled += hi - lo


def rank_hessian(X, z, queries, rule, grid, int n_threads):
    """The Hessian of the loss over all ordered pairs within queries: of (10.46), as used by (10.48)."""
    cdef Orders q = open_orders(queries, rule)
    cdef Plan plan = make_plan(X, 1, grid[0], False)
    cdef const double[::1] z_ = z
    cdef const int64_t[::1] bounds = grid[1]
    cdef Py_ssize_t chunks = bounds.shape[0] - 1, c, longest = np.diff(queries[0]).max(), block = grid[0]
    cdef Py_ssize_t d = plan.rows.d, wide = max(4, lanes[double]()), D = (d + wide - 1) // wide * wide
    cdef int threads = max(1, min(n_threads, chunks))
    cdef double[:, ::1] part = aligned(chunks, D * D)
    cdef double[:, ::1] work = aligned(threads, STRIP + SMALL * SMALL + (max(block, GATHERED) + max(longest, GATHERED) + 4) * D)
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            hessian_chunk(&q, &plan, bounds[c], bounds[c + 1], &z_[0], D, block, &part[c, 0], &work[threadid(), 0])
    upper = np.triu(np.asarray(part)[:, :D * D].sum(axis=0).reshape(D, D)[:d, :d])
    return upper + np.triu(upper, 1).T


def combine(X, e, grid, int n_threads):
    """Rows times errors, summed: (10.24)."""
    cdef Plan plan = make_plan(X, 1, grid[0], False)
    call_ahead(&plan)
    cdef const double[::1] e_ = e
    cdef Py_ssize_t n = plan.rows.n, chunk = grid[1], chunks = (n + chunk - 1) // chunk, c
    cdef int threads = max(1, min(n_threads, chunks))
    cdef double[:, ::1] part = aligned(chunks, room(&plan))
    cdef double[:, ::1] work = aligned(threads, plan.block * plan.ldw * (not plan.rows.csr) + 16)
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            combine_chunk(&plan, c * chunk, min(n, c * chunk + chunk), &e_[0], &part[c, 0], &work[threadid(), 0])
    return add_up(&plan, part, 0, threads)[0]


cdef void combine_chunk(const Plan* plan, Py_ssize_t lo, Py_ssize_t hi, const double* e, double* G, double* buffer) noexcept nogil:
    cdef const double* x
    cdef Py_ssize_t m, ld = 0
    while lo < hi:
        m = min(plan.block, hi - lo)
        x = fetch(plan, lo, m, buffer, &ld)
        accumulate(plan, lo, m, x, ld, e + lo, G)
        lo += m


cdef inline void one_pair(int loss, double a, double width, double* values) noexcept nogil:
    """values = loss, derivative by a, curvature"""
    cdef double up = a if a > 0 else 0, near, u
    if loss == PAIR_LOGISTIC:
        u = exp_(-abs(a))
        values[0], values[1], values[2] = up + log1p_ratio(u / (2 + u)), (1 if a > 0 else u) / (1 + u), u / ((1 + u) * (1 + u))
    elif loss == PAIR_HUBER:
        near = up if up < width else width
        values[0], values[1], values[2] = near / width * (up - near / 2), near / width, 1 / width if a > 0 and a <= width else 0
    elif loss == PAIR_SQUARED:
        values[0], values[1], values[2] = up * up, 2 * up, 2 if a > 0 else 0
    else:
        values[0], values[1], values[2] = up, 1 if a > 0 else 0, 0


def pair_link(z, pairs, s, rule):
    """Loss over given pairs, and its derivative by the scores: (10.46), (10.48)."""
    cdef const double[::1] z_ = z, s_ = s
    cdef const int64_t[:, ::1] pairs_ = pairs
    cdef int kind = rule[0]
    cdef double margin = rule[1], width = rule[2], loss = 0, active = 0, a
    cdef Py_ssize_t step = s_.shape[0] > 1, t, u, v
    cdef double[3] values
    result = np.zeros(z.shape[0])
    cdef double[::1] e = result
    with nogil:
        for t in range(pairs_.shape[0]):
            u, v = pairs_[t, 0], pairs_[t, 1]
            a = z_[v] - z_[u] + margin
            one_pair(kind, a, width, &values[0])
            loss += s_[t * step] * values[0]
            e[v] += s_[t * step] * values[1]
            e[u] -= s_[t * step] * values[1]
            active += s_[t * step] if (z_[v] >= z_[u] if kind == PAIR_LOGISTIC else a > 0) else 0
    return loss, active, result


def pair_bend(z, u, pairs, s, rule):
    """The second derivative by the scores times a direction's scores u, over given pairs: of (10.46), as used by (10.48)."""
    cdef const double[::1] z_ = z, u_ = u, s_ = s
    cdef const int64_t[:, ::1] pairs_ = pairs
    cdef int kind = rule[0]
    cdef double margin = rule[1], width = rule[2], bend
    cdef Py_ssize_t step = s_.shape[0] > 1, t, i, j
    cdef double[3] values
    result = np.zeros(z.shape[0])
    cdef double[::1] out = result
    with nogil:
        for t in range(pairs_.shape[0]):
            i, j = pairs_[t, 0], pairs_[t, 1]
            one_pair(kind, z_[j] - z_[i] + margin, width, &values[0])
            bend = s_[t * step] * values[2] * (u_[j] - u_[i])
            out[j] += bend
            out[i] -= bend
    return result
