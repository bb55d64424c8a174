# How good an order is: a query's rows sorted by score, then one walk over them.

cdef enum Measure:
    NDCG
    NDCG_WORST
    AVERAGE_PRECISION
    RECIPROCAL_RANK
    EXPECTED_RECIPROCAL_RANK
    KENDALL
    PAIRS


cdef double best_gain(const double* y, Py_ssize_t n, Py_ssize_t k, const double* discount, double* work) noexcept nogil:
    """The discounted gains of the best order."""
    cdef Py_ssize_t i
    cdef double total = 0
    for i in range(n):
        work[i] = -y[i]
    partial_sort(work, work + min(n, k), work + n)
    for i in range(min(n, k)):
        total -= work[i] * discount[i]
    return total


cdef double ndcg(const double* y, const pair[double, double]* items, Py_ssize_t n, Py_ssize_t k, bint average, const double* discount,
                 double* work) noexcept nogil:
    """Gains over log2(1 + rank), averaged over the orders of equal scores, beside the same in the best order."""
    cdef Py_ssize_t i = 0, j, last
    cdef double gain, share, total = 0, best = best_gain(y, n, k, discount, work)
    if not best > 0:
        return NAN
    while i < min(n, k):
        last, gain, share = i, 0, 0
        while last < n and (last == i or (average and items[last].first == items[i].first)):
            gain += items[last].second
            share += discount[last] if last < k else 0
            last += 1
        total += gain * share / (last - i)
        i = last
    return total / best


cdef double precision(const pair[double, double]* items, Py_ssize_t n, Py_ssize_t k, int measure) noexcept nogil:
    """Average precision, reciprocal rank, expected reciprocal rank."""
    cdef Py_ssize_t i, relevant = 0, hits = 0
    cdef double total = 0, reach = 1
    for i in range(n):
        relevant += items[i].second > 0
    if not relevant:
        return NAN
    for i in range(min(n, k)):
        if measure == EXPECTED_RECIPROCAL_RANK:
            total += reach * items[i].second / (i + 1)
            reach *= 1 - items[i].second
        elif items[i].second > 0:
            hits += 1
            total += <double>hits / (i + 1)
            if measure == RECIPROCAL_RANK:
                return total
    return total / min(relevant, k) if measure == AVERAGE_PRECISION else total


cdef int64_t inversions(double* a, double* b, Py_ssize_t n) noexcept nogil:
    """Pairs i < j with a_i > a_j; a ends up sorted. Merges from runs of 1 up."""
    cdef Py_ssize_t width = 1, lo, mid, hi, i, j, t
    cdef int64_t count = 0
    cdef double* swap
    cdef double* home = a
    while width < n:
        lo = 0
        while lo < n:
            mid, hi = min(lo + width, n), min(lo + 2 * width, n)
            i, j = lo, mid
            for t in range(lo, hi):
                if j >= hi or (i < mid and a[i] <= a[j]):
                    b[t] = a[i]
                    i += 1
                else:
                    b[t] = a[j]
                    j += 1
                    count += mid - i
            lo = hi
        swap, a, b = a, b, a
        width *= 2
    if a != home:
        memcpy(home, a, n * sizeof(double))
    return count


cdef double ties(const double* a, Py_ssize_t n) noexcept nogil:
    """Pairs of equal numbers, which stand side by side."""
    cdef Py_ssize_t i
    cdef double run = 0, total = 0
    for i in range(1, n):
        run = run + 1 if a[i] == a[i - 1] else 0
        total += run
    return total


cdef double agreement(pair[double, double]* items, Py_ssize_t n, int measure, double* work) noexcept nogil:
    """Kendall's tau-b, or the share of pairs in the right order: sorted by y, then by z, every inversion of z is a wrong pair."""
    cdef Py_ssize_t i
    cdef double all = <double>n * (n - 1) / 2, run = 0, both = 0, apart, equal, wrong, tied
    cdef double* z = work
    cdef double* y = work + n
    for i in range(n):
        y[i] = items[i].first
        z[i] = items[i].second
        run = run + 1 if i and y[i] == y[i - 1] and z[i] == z[i - 1] else 0
        both += run
    apart = all - ties(y, n)
    wrong = inversions(z, work + n, n)
    equal = ties(z, n)
    tied = equal - both                      # equal scores of rows that differ
    if apart == 0:
        return NAN
    if measure == PAIRS:
        return (apart - wrong - tied / 2) / apart
    return (apart - tied - 2 * wrong) / (sqrt(apart) * sqrt(all - equal)) if all > equal else 0


cdef double measure_query(int measure, const double* y, const double* z, Py_ssize_t n, Py_ssize_t k, const double* discount,
                          double* work) noexcept nogil:
    cdef pair[double, double]* items = <pair[double, double]*>work
    cdef Py_ssize_t i
    cdef double* more = work + 2 * n
    for i in range(n):
        if measure >= KENDALL:
            items[i].first, items[i].second = y[i], z[i]
        else:   # highest scores first, of equal ones the worse
            items[i].first, items[i].second = -z[i], y[i]
    if measure >= KENDALL or measure == AVERAGE_PRECISION or n - k <= k:
        sort(items, items + n)
    elif measure == NDCG:   # equal scores share what they get: the k-th score's block may reach beyond k
        nth_element(items, items + (k - 1), items + n)
        sort(items, items + k)
        join_block(items, n, k)
    else:
        partial_sort(items, items + k, items + n)
    if measure <= NDCG_WORST:
        return ndcg(y, items, n, k, measure == NDCG, discount, more)
    if measure < KENDALL:
        return precision(items, n, k, measure)
    return agreement(items, n, measure, more)


cdef void join_block(pair[double, double]* items, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Move the rows whose score equals the k-th next to it."""
    cdef Py_ssize_t i, last = k
    cdef pair[double, double] item
    for i in range(k, n):
        if items[i].first == items[k - 1].first:
            item = items[i]
            items[i] = items[last]
            items[last] = item
            last += 1


def query_metric(int metric, y, z, starts, Py_ssize_t k, grid, int n_threads):
    """A metric of the order of the scores within each query, as (10.46) judges pairs."""
    cdef const double[::1] y_ = y, z_ = z
    cdef const int64_t[::1] starts_ = starts, bounds = grid[1]
    cdef Py_ssize_t chunks = bounds.shape[0] - 1, c, g, longest = np.diff(starts).max()
    cdef int threads = max(1, min(n_threads, chunks))
    cdef const double[::1] discount = 1 / np.log2(np.arange(2.0, max(2, longest) + 2))
    result = np.empty(starts.shape[0] - 1)
    cdef double[::1] out = result
    cdef double[:, ::1] work = aligned_zeros(threads, 4 * longest)
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            for g in range(bounds[c], bounds[c + 1]):
                out[g] = measure_query(metric, &y_[starts_[g]], &z_[starts_[g]], starts_[g + 1] - starts_[g], k, &discount[0],
                                       &work[threadid(), 0])
    return result
