# The Hessian times a direction, without forming the Hessian.

cdef void product_rows(const SweepJob* job, Py_ssize_t lo, Py_ssize_t hi, double* out,
                       SweepBuffers[real]* b) noexcept nogil:
    """Sums of rows lo to hi   (10.32), (10.33)"""
    cdef Py_ssize_t ld = 0
    cdef LossBlock[real] block
    cdef const real* x
    open_loss_block(job, b, &block)
    while lo < hi:
        block.m = min(job.plan.block, hi - lo)
        x = score_block(job, lo, block.m, b, &ld)
        curvature_product(job.loss, &block, b.U)
        add_gradient(job, lo, block.m, x, ld, b.U, b.G, out)
        lo += block.m


cdef void product_chunk(const void* task, Py_ssize_t c, char* workspace) noexcept nogil:
    cdef const SweepJob* job = <const SweepJob*>task
    cdef Py_ssize_t lo = c * job.chunk, hi = min(job.plan.rows.n, lo + job.chunk)
    cdef SweepBuffers[float] b32
    cdef SweepBuffers[double] b64
    cdef double* out = job.part + c * job.part_size
    memset(out, 0, job.part_size * sizeof(double))
    if job.plan.float32:
        open_sweep_buffers(workspace, job, &b32)
        product_rows(job, lo, hi, out, &b32)
    else:
        open_sweep_buffers(workspace, job, &b64)
        product_rows(job, lo, hi, out, &b64)


def hessian_product(batch, int loss, W, V, grid, int n_threads):
    """The Hessian at W times V, without forming the Hessian: (10.32), as used by (10.33)."""
    cdef SweepJob job
    memset(&job, 0, sizeof(SweepJob))
    X, _, s, o = batch
    job.loss, job.order = find_loss(loss, len(W)), 1
    job.plan = make_plan(X, W.shape[0], grid[0], grid[2])
    shorten_blocks(&job.plan)
    set_targets(&job.targets, &job.plan, None, s, o)
    arrays = (set_weights(&job.weights, &job.plan, W), set_weights(&job.direction, &job.plan, V))
    part = run_sweep(&job, product_chunk, 0, 0, grid[1], n_threads)
    result = merge_gradient(&job, merge_totals(&job, part), part, n_threads)
    return_buffer(part)
    del arrays
    return result
