# Rows times errors.

cdef struct RowSumJob:
    Plan plan
    Py_ssize_t chunk
    const double* e          # (n,)
    double* part             # (chunks, part_size), packed
    Py_ssize_t part_size


cdef void add_weighted_rows(const Plan* plan, Py_ssize_t lo, Py_ssize_t hi, const double* e,
                            double* G, double* buffer) noexcept nogil:
    """G += sum_i e_i x_i over rows lo to hi"""
    cdef const double* x
    cdef Py_ssize_t m, ld = 0
    while lo < hi:
        m = min(plan.block, hi - lo)
        x = fetch(plan, lo, m, buffer, &ld)
        accumulate(plan, lo, m, x, ld, e + lo, G)
        lo += m


cdef void row_sum_chunk(const void* task, Py_ssize_t c, char* workspace) noexcept nogil:
    cdef const RowSumJob* job = <const RowSumJob*>task
    cdef Py_ssize_t lo = c * job.chunk, hi = min(job.plan.rows.n, lo + job.chunk)
    add_weighted_rows(&job.plan, lo, hi, job.e, job.part + c * job.part_size, <double*>workspace)


def weighted_row_sum(X, e, grid, int n_threads):
    """The sum of rows times errors: (10.24)."""
    cdef RowSumJob job
    cdef const double[::1] e_ = e
    cdef Py_ssize_t chunks
    job.plan, job.chunk, job.e = make_plan(X, 1, grid[0], False), grid[1], &e_[0]
    shorten_blocks(&job.plan)
    chunks = chunk_count(job.plan.rows.n, job.chunk)
    part = aligned_zeros(chunks, weight_size(&job.plan))
    job.part, job.part_size = <double*>cnp.PyArray_DATA(part), part.shape[1]
    run_chunks(row_sum_chunk, &job, chunks, n_threads, fetch_size(&job.plan) * sizeof(double))
    return merge_chunks(&job.plan, part, 0, thread_count(n_threads, chunks))[0]
