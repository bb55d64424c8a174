# Rows times errors.

cdef void add_weighted_chunk(
    const Plan* plan, Py_ssize_t lo, Py_ssize_t hi, const double* e, double* G, double* buffer
) noexcept nogil:
    """G += sum_i e_i x_i over rows lo to hi"""
    cdef const double* x
    cdef Py_ssize_t m, ld = 0
    while lo < hi:
        m = min(plan.block, hi - lo)
        x = fetch(plan, lo, m, buffer, &ld)
        accumulate(plan, lo, m, x, ld, e + lo, G)
        lo += m


cdef double* make_block_buffer(Arena* arena, const Plan* plan) noexcept nogil:
    """For the rows of a block that `fetch` converts"""
    return arena_doubles(arena, plan.block * plan.ldw * (not plan.rows.csr) + 16)


cdef Py_ssize_t block_buffer_size(const Plan* plan) noexcept nogil:
    cdef Arena arena = make_arena(NULL)
    make_block_buffer(&arena, plan)
    return arena.used


def weighted_row_sum(X, e, grid, int n_threads):
    """The sum of rows times errors: (10.24)."""
    cdef Plan plan = make_plan(X, 1, grid[0], False)
    choose_block(&plan)
    cdef const double[::1] e_ = e
    cdef Py_ssize_t n = plan.rows.n, chunk = grid[1], chunks = (n + chunk - 1) // chunk, c
    cdef int threads = max(1, min(n_threads, chunks))
    cdef double[:, ::1] part = aligned_zeros(chunks, weight_size(&plan))
    cdef double[:, ::1] work = aligned_zeros(threads, block_buffer_size(&plan))
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            add_weighted_chunk(&plan, c * chunk, min(n, c * chunk + chunk), &e_[0], &part[c, 0],
                               &work[threadid(), 0])
    return merge_chunks(&plan, part, 0, threads)[0]
