# Sums of many two-class problems over shared rows: each row is read, and scored against all
# weights, while it is in cache. A table says for each group of rows, and each problem, in which
# class the rows are, or that the problem excludes them.

cdef inline void assign(const SweepJob* job, Py_ssize_t k, Py_ssize_t lo, Py_ssize_t m,
                        SweepBuffers[real]* b) noexcept nogil:
    """The classes and weights of rows in problem k"""
    cdef const Problems* problems = &job.problems
    cdef const int32_t* target = problems.target + k * problems.groups
    cdef const double* part = problems.part + k * problems.groups
    cdef const int32_t* group = job.targets.r + lo
    cdef const real* s = b.s
    cdef real* own = b.own
    cdef int32_t* r = b.r
    cdef Py_ssize_t i
    if problems.groups == 1:
        for i in range(m):
            r[i] = target[0]
    else:
        for i in range(m):
            r[i] = target[group[i]]
    if not problems.all_included:
        for i in range(m):
            own[i] = s[i] * <real>part[group[i]]


cdef void sweep_many_rows(const SweepJob* job, Py_ssize_t lo, Py_ssize_t hi, double* out,
                          SweepBuffers[real]* b) noexcept nogil:
    """Sums of rows lo to hi; totals are loss and errors of each problem."""
    cdef Py_ssize_t flush_at = lo + FLUSH_PERIOD * LANES, K = job.plan.K, k, ld = 0, padded_ld
    cdef LossBlock[real] block
    cdef const real* x
    cdef const double* padded
    open_loss_block(job, b, &block)
    cdef double weight = tally_weight(job, block.weight_mode)
    block.K, block.r, block.s = 1, b.r, b.own
    while lo < hi:
        block.m = min(job.plan.block, hi - lo)
        x = score_block(job, lo, block.m, b, &ld)
        if real is double:
            padded, padded_ld = x, ld
            if job.order == 2:
                padded = fetch_padded(&job.plan, lo, block.m, x, b.P, &padded_ld)
        for k in range(K):
            assign(job, k, lo, block.m, b)
            block.Z, block.tally = b.Z + k * block.ld, b.tally + k * TALLY
            evaluate(job.loss, &block)
            if lo >= flush_at:
                flush_tally(block.tally, weight, out + 2 * k)
            if real is double:
                if job.order == 2:
                    job.loss.curvature(0, 0, &block, b.c)
                    gram(&job.plan, lo, block.m, padded, padded_ld, b.c, b.Q,
                         out + job.sums.H + k * hessian_size(&job.plan))
        if lo >= flush_at:
            flush_at = lo + FLUSH_PERIOD * LANES
        if job.order:
            add_gradient(job, lo, block.m, x, ld, b.Z, b.G, out)
        lo += block.m
    for k in range(K):
        flush_tally(b.tally + k * TALLY, weight, out + 2 * k)


cdef void sweep_many_chunk(const void* task, Py_ssize_t c, char* workspace) noexcept nogil:
    cdef const SweepJob* job = <const SweepJob*>task
    cdef Py_ssize_t lo = c * job.chunk, hi = min(job.plan.rows.n, lo + job.chunk)
    cdef SweepBuffers[float] b32
    cdef SweepBuffers[double] b64
    cdef double* out = job.part + c * job.part_size
    memset(out, 0, job.part_size * sizeof(double))
    if job.plan.float32:
        open_sweep_buffers(workspace, job, &b32)
        sweep_many_rows(job, lo, hi, out, &b32)
    else:
        open_sweep_buffers(workspace, job, &b64)
        sweep_many_rows(job, lo, hi, out, &b64)


def sweep_many(batch, int loss, signs, W, int order, grid, int n_threads):
    """Sums of many two-class problems over shared rows: (10.7)-(10.9), (10.23)-(10.24)."""
    cdef SweepJob job
    cdef Py_ssize_t K = W.shape[0]
    memset(&job, 0, sizeof(SweepJob))
    X, r, s, _ = batch
    job.loss, job.order = find_loss(loss, 1), order
    job.plan = make_plan(X, K, grid[0], order < 2 and grid[2])
    target = np.ascontiguousarray(signs.T > 0, dtype=np.int32)
    part = np.ascontiguousarray(signs.T != 0, dtype=np.float64)
    job.problems.groups, job.problems.all_included = signs.shape[0], bool(signs.all())
    job.problems.target = <const int32_t*>cnp.PyArray_DATA(target)
    job.problems.part = <const double*>cnp.PyArray_DATA(part)
    set_targets(&job.targets, &job.plan, r, s, None)
    arrays = set_weights(&job.weights, &job.plan, W), target, part
    sums = run_sweep(&job, sweep_many_chunk, 2 * K, K if order == 2 else 0, grid[1], n_threads)
    total = merge_totals(&job, sums)
    G = merge_gradient(&job, total, sums, n_threads)
    H = merge_hessians(&job, sums) if order == 2 else None
    return_buffer(sums)
    del arrays
    return total[:2 * K:2].copy(), total[1:2 * K:2].copy(), G, H
