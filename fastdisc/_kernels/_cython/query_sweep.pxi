# A ranker's gradient: scores, pairs of scores, and rows times errors, for queries whose rows are
# next to each other, while these are in cache.

cdef enum:
    # Of the queries that are worked on together, unless one alone has more: 128 KB, to stay in L2.
    MAX_CELLS_IN_CACHE = 1 << 14

# What chunks of queries read and write, shared by all threads.
cdef struct QuerySweep:
    Plan plan
    Queries queries
    const int64_t* places
    const double* o          # offsets of the scores, or NULL
    const double* w          # packed
    double* z                # by rows of X
    double* e
    double* z_sorted         # in the order of the queries
    double* e_sorted
    const int64_t* bounds    # of chunks
    double* part             # (chunks, part_size): loss, active weight, 6 padding doubles, gradient
    Py_ssize_t part_size

# A thread's buffers.
cdef struct QuerySweepWorkspace:
    double* z                # (block,)
    double* x
    QueryWorkspace query


cdef QuerySweepWorkspace make_query_sweep_workspace(
    Arena* arena, const QuerySweep* sweep
) noexcept nogil:
    cdef QuerySweepWorkspace work
    work.z = take_doubles(arena, sweep.plan.block)
    work.x = take_doubles(arena, fetch_size(&sweep.plan))
    work.query = make_query_workspace(arena, &sweep.queries)
    return work


cdef Py_ssize_t query_sweep_workspace_size(const QuerySweep* sweep) noexcept nogil:
    cdef Arena arena = open_arena(NULL)
    make_query_sweep_workspace(&arena, sweep)
    return arena.used


cdef void score_queries(
    const QuerySweep* sweep, Py_ssize_t lo, Py_ssize_t hi, const QuerySweepWorkspace* work
) noexcept nogil:
    """z of rows lo to hi"""
    cdef Py_ssize_t m, i, ld = 0
    cdef double zero = 0
    cdef const double* x
    while lo < hi:
        m = min(sweep.plan.block, hi - lo)
        x = fetch(&sweep.plan, lo, m, work.x, &ld)
        score(&sweep.plan, lo, m, x, ld, sweep.w, <const double*>&zero, work.z)
        for i in range(m):
            sweep.z[lo + i] = work.z[i] + (sweep.o[lo + i] if sweep.o != NULL else 0)
        lo += m


cdef void sweep_queries(const void* task, Py_ssize_t c, char* workspace) noexcept nogil:
    """The sums of the queries of a chunk"""
    cdef const QuerySweep* sweep = <const QuerySweep*>task
    cdef const int64_t* starts = sweep.queries.starts
    cdef double* out = sweep.part + c * sweep.part_size
    cdef Arena arena = open_arena(workspace)
    cdef QuerySweepWorkspace work = make_query_sweep_workspace(&arena, sweep)
    cdef Py_ssize_t g = sweep.bounds[c], last = sweep.bounds[c + 1]
    cdef Py_ssize_t h, i, lo, hi, max_rows = max(1, MAX_CELLS_IN_CACHE // sweep.plan.rows.d)
    while g < last:
        h, lo = g + 1, starts[g]
        while h < last and starts[h + 1] - lo <= max_rows:
            h += 1
        hi = starts[h]
        score_queries(sweep, lo, hi, &work)
        for i in range(lo, hi):
            sweep.z_sorted[i] = sweep.z[sweep.places[i]]
        for g in range(g, h):
            loss_of_query(
                &sweep.queries, g, sweep.z_sorted, sweep.e_sorted, out, &work.query, 1)
        g = h
        for i in range(lo, hi):
            sweep.e[sweep.places[i]] = sweep.e_sorted[i]
        add_weighted_rows(&sweep.plan, lo, hi, sweep.e, out + 8, work.x)


def query_sweep(X, places, queries, rule, w, o, grid, int n_threads):
    """Loss over the pairs of queries, its gradient, and the scores: (10.46)-(10.48)."""
    cdef QuerySweep sweep
    sweep.queries = open_queries(queries, rule)
    sweep.plan = make_plan(X, 1, grid[0], False)
    cdef const int64_t[::1] places_ = places, bounds = grid[1]
    cdef const double[::1] o_ = o
    cdef Py_ssize_t chunks = bounds.shape[0] - 1
    packed_w = pack_weights(&sweep.plan, np.concatenate([[0.0], w])[None, :])
    rows = np.empty((4, len(places)))
    cdef double[:, ::1] rows_ = rows
    sweep.places, sweep.o = &places_[0], &o_[0] if o_.shape[0] else NULL
    sweep.w = <const double*>cnp.PyArray_DATA(packed_w)
    sweep.z, sweep.e = &rows_[0, 0], &rows_[1, 0]
    sweep.z_sorted, sweep.e_sorted = &rows_[2, 0], &rows_[3, 0]
    part = aligned_zeros(chunks, 8 + weight_size(&sweep.plan))
    sweep.part, sweep.part_size, sweep.bounds = (
        <double*>cnp.PyArray_DATA(part), part.shape[1], &bounds[0])
    run_chunks(sweep_queries, &sweep, chunks, n_threads, query_sweep_workspace_size(&sweep))
    total = part[:, :2].sum(axis=0)
    g = merge_chunks(&sweep.plan, part, 8, thread_count(n_threads, chunks))[0]
    return total[0], total[1], g, rows[0]
