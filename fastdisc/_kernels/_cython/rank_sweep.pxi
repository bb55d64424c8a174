# A ranker's gradient: scores, pairs of scores, and rows times errors. Queries whose rows stand together do all three while their
# rows are in cache; of others each is a pass of its own.

cdef enum:
    WARM = 1 << 14   # cells of the queries that are worked on together, unless one alone has more: 128 KB, to stay in L2


# What a chunk of queries needs: pointers that all threads share.
cdef struct Ranking:
    Plan plan
    Orders orders
    const int64_t* places
    const double* o          # offsets of the scores, or NULL
    const double* w          # in the layout's own order
    double* z                # by row
    double* e
    double* ordered          # scores, then errors, in the order of the queries
    double* errors


cdef void score_rows(const Ranking* job, Py_ssize_t lo, Py_ssize_t hi, double* Z, double* buffer) noexcept nogil:
    """z of rows lo to hi; Z: room for a block"""
    cdef Py_ssize_t m, i, ld = 0
    cdef double zero = 0
    cdef const double* x
    while lo < hi:
        m = min(job.plan.block, hi - lo)
        x = fetch(&job.plan, lo, m, buffer, &ld)
        score(&job.plan, lo, m, x, ld, job.w, <const double*>&zero, Z)
        for i in range(m):
            job.z[lo + i] = Z[i] + (job.o[lo + i] if job.o != NULL else 0)
        lo += m


cdef void rank_chunk(const Ranking* job, Py_ssize_t g, Py_ssize_t last, double* out, double* work) noexcept nogil:
    """Sums of queries g to last: out = loss, weight of the pairs that count, six numbers of nothing, gradient"""
    cdef const int64_t* starts = job.orders.starts
    cdef double* Z = work
    cdef double* buffer = Z + job.plan.block + PAD
    cdef double* more = buffer + fetch_size(&job.plan) + PAD
    cdef Py_ssize_t h, i, lo, hi, most = max(1, WARM // job.plan.rows.d)
    while g < last:
        h, lo = g + 1, starts[g]
        while h < last and starts[h + 1] - lo <= most:
            h += 1
        hi = starts[h]
        score_rows(job, lo, hi, Z, buffer)
        for i in range(lo, hi):
            job.ordered[i] = job.z[job.places[i]]
        while g < h:
            link_query(&job.orders, starts[g], starts[g + 1], job.ordered, job.errors, out, more, 1)
            g += 1
        for i in range(lo, hi):
            job.e[job.places[i]] = job.errors[i]
        combine_chunk(&job.plan, lo, hi, job.e, out + PAD, buffer)


def query_sweep(X, places, queries, rule, w, o, grid, int n_threads):
    """Loss over the pairs of queries, its gradient, and the scores: (10.46)-(10.48)."""
    cdef Ranking job
    cdef Py_ssize_t block = grid[0], chunks, c, longest = longest_query(queries[0]), n = len(places)
    job.plan = make_plan(X, 1, block, False)
    job.orders = open_orders(queries, rule)
    cdef const int64_t[::1] places_ = places, bounds = grid[1]
    cdef const double[::1] o_ = o
    laid = pack_weights(&job.plan, np.concatenate([[0.0], w])[None, :])
    room_ = np.empty((4, n))
    cdef double[:, ::1] rows = room_
    job.places, job.o, job.w = &places_[0], &o_[0] if o_.shape[0] else NULL, <const double*>cnp.PyArray_DATA(laid)
    job.z, job.e, job.ordered, job.errors = &rows[0, 0], &rows[1, 0], &rows[2, 0], &rows[3, 0]
    chunks = bounds.shape[0] - 1
    cdef int threads = max(1, min(n_threads, chunks))
    cdef double[:, ::1] part = aligned_zeros(chunks, PAD + weight_size(&job.plan))
    cdef Py_ssize_t buffers = block + fetch_size(&job.plan) + 2 * PAD
    cdef double[:, ::1] work = aligned_zeros(threads, buffers + pairs_room(&job.orders, longest))
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            rank_chunk(&job, bounds[c], bounds[c + 1], &part[c, 0], &work[threadid(), 0])
    total = np.asarray(part)[:, :2].sum(axis=0)
    return total[0], total[1], merge_chunks(&job.plan, part, PAD, threads)[0], room_[0]


def weighted_row_sum(X, e, grid, int n_threads):
    """The sum of rows times errors: (10.24)."""
    cdef Plan plan = make_plan(X, 1, grid[0], False)
    shorten_blocks(&plan)
    cdef const double[::1] e_ = e
    cdef Py_ssize_t n = plan.rows.n, chunk = grid[1], chunks = (n + chunk - 1) // chunk, c
    cdef int threads = max(1, min(n_threads, chunks))
    cdef double[:, ::1] part = aligned_zeros(chunks, weight_size(&plan))
    cdef double[:, ::1] work = aligned_zeros(threads, fetch_size(&plan) + 16)
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            combine_chunk(&plan, c * chunk, min(n, c * chunk + chunk), &e_[0], &part[c, 0], &work[threadid(), 0])
    return merge_chunks(&plan, part, 0, threads)[0]


cdef void combine_chunk(const Plan* plan, Py_ssize_t lo, Py_ssize_t hi, const double* e, double* G, double* buffer) noexcept nogil:
    cdef const double* x
    cdef Py_ssize_t m, ld = 0
    while lo < hi:
        m = min(plan.block, hi - lo)
        x = fetch(plan, lo, m, buffer, &ld)
        accumulate(plan, lo, m, x, ld, e + lo, G)
        lo += m
