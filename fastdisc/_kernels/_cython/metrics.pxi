# Metrics of an order: a query's rows sorted by score, then one pass over them.

# A thread's buffers for queries of up to n rows.
cdef struct MetricWorkspace:
    pair[double, double]* items   # (n,)
    double* first                 # (n,)
    double* second                # (n,)


cdef MetricWorkspace make_metric_workspace(Arena* arena, Py_ssize_t n) noexcept nogil:
    cdef MetricWorkspace work
    work.items = <pair[double, double]*>arena_doubles(arena, 2 * n)
    work.first = arena_doubles(arena, n)
    work.second = arena_doubles(arena, n)
    return work


cdef Py_ssize_t metric_workspace_size(Py_ssize_t n) noexcept nogil:
    cdef Arena arena = make_arena(NULL)
    make_metric_workspace(&arena, n)
    return arena.used


cdef double best_gain(
    const double* y, Py_ssize_t n, Py_ssize_t k, const double* discount, double* work
) noexcept nogil:
    """The discounted gains of the best order."""
    cdef Py_ssize_t i
    cdef double total = 0
    for i in range(n):
        work[i] = -y[i]
    partial_sort(work, work + min(n, k), work + n)
    for i in range(min(n, k)):
        total -= work[i] * discount[i]
    return total


cdef double ndcg(
    const pair[double, double]* items, Py_ssize_t n, Py_ssize_t k, bint average,
    const double* discount, double best
) noexcept nogil:
    """Gains over log2(1 + rank), averaged over the orders of tied scores, relative to the best."""
    cdef Py_ssize_t i = 0, last
    cdef double gain, share, total = 0
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


cdef double precision(
    const pair[double, double]* items, Py_ssize_t n, Py_ssize_t k, RankMetric metric
) noexcept nogil:
    """Average precision, reciprocal rank, or expected reciprocal rank."""
    cdef Py_ssize_t i, relevant = 0, hits = 0
    cdef double total = 0, reach = 1
    for i in range(n):
        relevant += items[i].second > 0
    if not relevant:
        return NAN
    for i in range(min(n, k)):
        if metric == RankMetric.EXPECTED_RECIPROCAL_RANK:
            total += reach * items[i].second / (i + 1)
            reach *= 1 - items[i].second
        elif items[i].second > 0:
            hits += 1
            total += <double>hits / (i + 1)
            if metric == RankMetric.RECIPROCAL_RANK:
                return total
    return total / min(relevant, k) if metric == RankMetric.AVERAGE_PRECISION else total


cdef int64_t inversions(double* a, double* b, Py_ssize_t n) noexcept nogil:
    """Pairs i < j with a_i > a_j, and a sorted, by bottom-up merges; b is a buffer."""
    cdef Py_ssize_t width = 1, lo, mid, hi, i, j, t
    cdef int64_t count = 0
    cdef double* result = a
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
        a, b = b, a
        width *= 2
    if a != result:
        memcpy(result, a, n * sizeof(double))
    return count


cdef double tied_pairs(const double* a, Py_ssize_t n) noexcept nogil:
    """Pairs of equal numbers in a sorted array."""
    cdef Py_ssize_t i
    cdef double run_length = 0, total = 0
    for i in range(1, n):
        run_length = run_length + 1 if a[i] == a[i - 1] else 0
        total += run_length
    return total


cdef double agreement(Py_ssize_t n, RankMetric metric, const MetricWorkspace* work) noexcept nogil:
    """Kendall's tau-b, or the share of pairs in the right order: with rows sorted by y, then by z,
    each inversion of z is a wrong pair."""
    cdef Py_ssize_t i
    cdef double every = <double>n * (n - 1) / 2, run_length = 0, both = 0
    cdef double apart, equal, wrong, tied
    cdef double* z = work.first
    cdef double* y = work.second
    for i in range(n):
        y[i] = work.items[i].first
        z[i] = work.items[i].second
        run_length = run_length + 1 if i and y[i] == y[i - 1] and z[i] == z[i - 1] else 0
        both += run_length
    apart = every - tied_pairs(y, n)
    wrong = inversions(z, y, n)
    equal = tied_pairs(z, n)
    tied = equal - both                      # equal scores of rows that differ
    if apart == 0:
        return NAN
    if metric == RankMetric.PAIRS:
        return (apart - wrong - tied / 2) / apart
    if every <= equal:
        return 0
    return (apart - tied - 2 * wrong) / (sqrt(apart) * sqrt(every - equal))


cdef void gather_ties(pair[double, double]* items, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Move the rows whose score equals the k-th next to it."""
    cdef Py_ssize_t i, last = k
    cdef pair[double, double] item
    for i in range(k, n):
        if items[i].first == items[k - 1].first:
            item = items[i]
            items[i] = items[last]
            items[last] = item
            last += 1


cdef void sort_ranks(
    pair[double, double]* items, Py_ssize_t n, Py_ssize_t k, RankMetric metric
) noexcept nogil:
    """The first k ranks, and as many others as the metric needs"""
    if metric == RankMetric.AVERAGE_PRECISION or n - k <= k:
        sort(items, items + n)
    elif metric == RankMetric.NDCG:   # averages over ties, which may continue after rank k
        nth_element(items, items + (k - 1), items + n)
        sort(items, items + k)
        gather_ties(items, n, k)
    else:
        partial_sort(items, items + k, items + n)


# What chunks of queries read and write, shared by all threads.
cdef struct Metric:
    RankMetric code
    Py_ssize_t k
    const int64_t* starts
    const double* y
    const double* z
    const double* discount
    double* out
    Py_ssize_t longest       # rows of a query


cdef double measure(const Metric* metric, Py_ssize_t g, const MetricWorkspace* work) noexcept nogil:
    """The metric of one query."""
    cdef Py_ssize_t lo = metric.starts[g], n = metric.starts[g + 1] - lo, k = metric.k, i
    cdef bint of_pairs = metric.code == RankMetric.KENDALL or metric.code == RankMetric.PAIRS
    cdef RankMetric code = metric.code
    cdef const double* y = metric.y + lo
    cdef const double* z = metric.z + lo
    cdef pair[double, double]* items = work.items
    cdef double best
    for i in range(n):
        if of_pairs:
            items[i].first, items[i].second = y[i], z[i]
        else:   # highest scores first; of equal ones, lowest utilities
            items[i].first, items[i].second = -z[i], y[i]
    sort_ranks(items, n, n if of_pairs else k, code)
    if of_pairs:
        return agreement(n, code, work)
    if code == RankMetric.NDCG or code == RankMetric.NDCG_WORST:
        best = best_gain(y, n, k, metric.discount, work.first)
        return ndcg(items, n, k, code == RankMetric.NDCG, metric.discount, best)
    return precision(items, n, k, code)


cdef void measure_chunk(
    const Metric* metric, Py_ssize_t g, Py_ssize_t last, double* buffers
) noexcept nogil:
    """The metric of queries g to last"""
    cdef Arena arena = make_arena(buffers)
    cdef MetricWorkspace work = make_metric_workspace(&arena, metric.longest)
    for g in range(g, last):
        metric.out[g] = measure(metric, g, &work)


def query_metric(int metric, y, z, starts, Py_ssize_t k, grid, int n_threads):
    """A metric of the order of the scores within each query, as (10.46) judges pairs."""
    cdef Metric shared
    shared.code = <RankMetric>checked("metric", metric, "RankMetric")
    shared.k, shared.longest = k, np.diff(starts).max()
    cdef const double[::1] y_ = y, z_ = z
    cdef const int64_t[::1] starts_ = starts, bounds = grid[1]
    cdef const double[::1] discount = 1 / np.log2(np.arange(2.0, max(2, shared.longest) + 2))
    result = np.empty(starts.shape[0] - 1)
    cdef double[::1] out = result
    shared.starts, shared.y, shared.z = &starts_[0], &y_[0], &z_[0]
    shared.discount, shared.out = &discount[0], &out[0]
    cdef Py_ssize_t chunks = bounds.shape[0] - 1, c
    cdef int threads = max(1, min(n_threads, chunks))
    cdef double[:, ::1] work = aligned_zeros(threads, metric_workspace_size(shared.longest))
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            measure_chunk(&shared, bounds[c], bounds[c + 1], &work[threadid(), 0])
    return result
