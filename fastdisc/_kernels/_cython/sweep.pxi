# Sums over rows: loss, gradient, Hessian. What this file sets up serves `hessian_product` and
# `sweep_many` as well: the same struct describes the pass, and the same buffers score a block.

# A batch without its rows.
cdef struct Targets:
    const int32_t* r    # (n,)
    const double* s     # (n,) or (1,)
    Py_ssize_t s_step   # 0 if one weight serves all rows
    const double* o     # (n, K), or NULL

# Packed weights, in the type of the products.
cdef struct Weights:
    const void* W
    const double* w0    # (K,)

# Which rows each of many problems has, and their class.
cdef struct Problems:
    Py_ssize_t groups        # 0 in other passes
    const int32_t* target    # (K, groups): the class, 0 or 1
    const double* part       # (K, groups): 1 if rows of the group are included, else 0
    bint all_included

# The partial sums of a chunk: totals, and from here on gradients by the intercepts, by the other
# weights, Hessians.
cdef struct SumsLayout:
    Py_ssize_t g0, G, H, size

# A pass, as all threads share it.
cdef struct SweepJob:
    Plan plan
    const LossFunctions* loss
    int order
    Targets targets
    Weights weights
    Weights direction        # of `hessian_product`
    Problems problems        # of `sweep_many`
    SumsLayout sums
    double* part             # (chunks, part_size)
    Py_ssize_t part_size, chunk

cdef extern from *:
    """
    template <class T> struct SweepBuffers {
        T *x, *w0, *s, *own, *Z, *work, *tally, *G;
        T *v0 = nullptr, *U = nullptr;
        int32_t *r = nullptr;
        double *c = nullptr, *Y = nullptr, *P = nullptr, *Q = nullptr;
    };
    """
    # A thread's buffers; NULL if the pass does not need them.
    cdef cppclass SweepBuffers[T]:
        T* x            # for `fetch`
        T* w0           # (K,)
        T* v0           # (K,)
        T* s            # (block,) row weights
        T* own          # (block,) row weights in one problem
        int32_t* r      # (block,) classes in one problem
        T* Z            # (K, block) scores, then errors
        T* U            # (K, block) scores of the direction
        T* work         # (4, block)
        T* tally        # (problems, TALLY)
        T* G            # sums of a block, if products are float32
        double* c       # (block,) curvatures
        double* Y       # (K, block) what curvatures need
        double* P       # (block, D) padded rows
        double* Q       # (block, D) the same times c


cdef Py_ssize_t lay_out_sweep(char* base, const SweepJob* job,
                              SweepBuffers[real]* b) noexcept nogil:
    """Lay out a thread's buffers from base on, or only measure if it is NULL; returns bytes."""
    cdef Arena arena = open_arena(base)
    cdef Py_ssize_t K = job.plan.K, B = job.plan.block, D = job.plan.D
    cdef bint many = job.problems.groups > 0, hessian = job.order == 2
    b.w0 = <real*>take(&arena, K, sizeof(real))
    b.s = <real*>take(&arena, B, sizeof(real))
    b.Z = <real*>take(&arena, K * B, sizeof(real))
    b.work = <real*>take(&arena, 4 * B, sizeof(real))
    b.tally = <real*>take(&arena, TALLY * (K if many else 1), sizeof(real))
    b.own = b.s
    if many:
        b.r = <int32_t*>take(&arena, B, sizeof(int32_t))
        if not job.problems.all_included:
            b.own = <real*>take(&arena, B, sizeof(real))
    if job.direction.W != NULL:
        b.v0 = <real*>take(&arena, K, sizeof(real))
        b.U = <real*>take(&arena, K * B, sizeof(real))
    if hessian:
        b.c = <double*>take(&arena, B, sizeof(double))
        b.Y = <double*>take(&arena, K * B, sizeof(double))
        if not job.plan.in_place:
            b.P = <double*>take(&arena, B * D, sizeof(double))
            b.Q = <double*>take(&arena, B * D, sizeof(double))
    b.G = <real*>take(&arena, weight_size(&job.plan) if real is float else 0, sizeof(real))
    b.x = <real*>take(&arena, fetch_size(&job.plan), sizeof(real))
    return arena.used


cdef void open_sweep_buffers(char* base, const SweepJob* job, SweepBuffers[real]* b) noexcept nogil:
    """The buffers of a chunk, those that are not written by each block filled in."""
    cdef Py_ssize_t i, k, problems = job.plan.K if job.problems.groups else 1
    lay_out_sweep(base, job, b)
    memset(b.tally, 0, problems * TALLY * sizeof(real))
    for k in range(job.plan.K):
        b.w0[k] = <real>job.weights.w0[k]
        if b.v0 != NULL:
            b.v0[k] = <real>job.direction.w0[k]
    for i in range(job.plan.block):
        b.s[i] = <real>job.targets.s[0]


cdef inline void weigh_rows(const SweepJob* job, Py_ssize_t lo, Py_ssize_t m, real* s,
                            real* Z) noexcept nogil:
    """The weights of rows lo to lo + m, unless they are equal; offsets are added to the scores."""
    cdef Py_ssize_t K = job.plan.K, B = job.plan.block, i, k
    if job.targets.s_step:
        for i in range(m):
            s[i] = <real>job.targets.s[lo + i]
    if job.targets.o != NULL:
        for k in range(K):
            for i in range(m):
                Z[k * B + i] += <real>job.targets.o[(lo + i) * K + k]


cdef inline const real* score_block(const SweepJob* job, Py_ssize_t lo, Py_ssize_t m,
                                    SweepBuffers[real]* b, Py_ssize_t* ld) noexcept nogil:
    """Fetch rows lo to lo + m, with their weights and scores."""
    cdef const real* x = fetch(&job.plan, lo, m, b.x, ld)
    score(&job.plan, lo, m, x, ld[0], <const real*>job.weights.W, <const real*>b.w0, b.Z)
    if b.U != NULL:
        score(&job.plan, lo, m, x, ld[0], <const real*>job.direction.W, <const real*>b.v0, b.U)
    weigh_rows(job, lo, m, b.s, b.Z)
    return x


cdef inline void add_gradient(const SweepJob* job, Py_ssize_t lo, Py_ssize_t m, const real* x,
                              Py_ssize_t ld, const real* E, real* G, double* out) noexcept nogil:
    """The errors E of a block and their products with the rows, added to the sums of a chunk. G, a
    zeroed buffer, sums those of a block in float32."""
    cdef Py_ssize_t k, i
    cdef double* g = out + job.sums.G
    for k in range(job.plan.K):
        out[job.sums.g0 + k] += sum(E + k * job.plan.block, m)
    if real is double:
        accumulate(&job.plan, lo, m, x, ld, E, g)
    else:
        accumulate(&job.plan, lo, m, x, ld, E, G)
        for i in range(weight_size(&job.plan)):
            g[i] += G[i]
            G[i] = 0


cdef WeightMode weight_mode(const SweepJob* job) noexcept nogil:
    """How the rows of a pass are weighted."""
    if job.targets.s_step or not job.loss.equal_weights:
        return PER_ROW
    if job.problems.groups and not job.problems.all_included:
        return EQUAL_OR_ZERO
    return EQUAL


cdef inline void open_loss_block(const SweepJob* job, SweepBuffers[real]* b,
                                 LossBlock[real]* block) noexcept nogil:
    """What a loss reads and writes that is the same for all blocks."""
    block.K, block.ld, block.Z, block.work = job.plan.K, job.plan.block, b.Z, b.work
    block.tally, block.s, block.Y, block.weight_mode = b.tally, b.s, b.Y, weight_mode(job)


cdef inline double tally_weight(const SweepJob* job, int mode) noexcept nogil:
    """The weight that tallies leave out."""
    return 1 if mode == PER_ROW else job.targets.s[0]


cdef void add_hessians(const SweepJob* job, Py_ssize_t lo, LossBlock[double]* block,
                       const double* x, Py_ssize_t ld, SweepBuffers[double]* b,
                       double* H) noexcept nogil:
    """H_jk += sum_i c_jk,i [x_i 1][x_i 1]', for each pair of outputs j <= k   (10.32), (10.33)"""
    cdef Py_ssize_t j, k
    x = fetch_padded(&job.plan, lo, block.m, x, b.P, &ld)
    for j in range(block.K):
        for k in range(j, block.K):
            job.loss.curvature(j, k, block, b.c)
            gram(&job.plan, lo, block.m, x, ld, b.c, b.Q, H)
            H += hessian_size(&job.plan)


cdef void sweep_rows(const SweepJob* job, Py_ssize_t lo, Py_ssize_t hi, double* out,
                     SweepBuffers[real]* b) noexcept nogil:
    """Sums of rows lo to hi   (10.23)-(10.24), (10.31)-(10.33)"""
    cdef Py_ssize_t flush_at = lo + FLUSH_PERIOD * LANES, ld = 0
    cdef LossBlock[real] block
    cdef const real* x
    open_loss_block(job, b, &block)
    cdef double weight = tally_weight(job, block.weight_mode)
    while lo < hi:
        block.m, block.r = min(job.plan.block, hi - lo), job.targets.r + lo
        x = score_block(job, lo, block.m, b, &ld)
        evaluate(job.loss, &block)
        if lo >= flush_at:
            flush_tally(b.tally, weight, out)
            flush_at = lo + FLUSH_PERIOD * LANES
        if job.order:
            add_gradient(job, lo, block.m, x, ld, b.Z, b.G, out)
        if job.order == 2:
            if real is double:
                add_hessians(job, lo, &block, x, ld, b, out + job.sums.H)
        lo += block.m
    flush_tally(b.tally, weight, out)


cdef void sweep_chunk(const void* task, Py_ssize_t c, char* workspace) noexcept nogil:
    cdef const SweepJob* job = <const SweepJob*>task
    cdef Py_ssize_t lo = c * job.chunk, hi = min(job.plan.rows.n, lo + job.chunk)
    cdef SweepBuffers[float] b32
    cdef SweepBuffers[double] b64
    cdef double* out = job.part + c * job.part_size
    memset(out, 0, job.part_size * sizeof(double))
    if job.plan.float32:
        open_sweep_buffers(workspace, job, &b32)
        sweep_rows(job, lo, hi, out, &b32)
    else:
        open_sweep_buffers(workspace, job, &b64)
        sweep_rows(job, lo, hi, out, &b64)


cdef int check_length(str name, Py_ssize_t length, Py_ssize_t n) except -1:
    """ValueError unless an array has a number for each row."""
    if length != n:
        raise ValueError(f"{name} has {length} numbers, X has {n} rows")
    return 0


cdef void set_targets(Targets* targets, const Plan* plan, object r, object s, object o) except *:
    """The targets, weights and offsets of a batch; r or o may be None."""
    cdef Py_ssize_t n = plan.rows.n
    cdef const int32_t[::1] r_
    cdef const double[::1] s_ = s
    cdef const double[:, ::1] o_
    check_length("s", s_.shape[0], n if s_.shape[0] != 1 else 1)
    targets.s, targets.s_step = &s_[0], s_.shape[0] > 1
    if r is not None:
        r_ = r
        check_length("r", r_.shape[0], n)
        targets.r = &r_[0]
    if o is not None and len(o):
        o_ = o
        check_length("o", o_.shape[0] * o_.shape[1], n * plan.K)
        targets.o = &o_[0, 0]


cdef object set_weights(Weights* weights, const Plan* plan, object W):
    """Pack weights; returns the arrays that `weights` then points to."""
    packed_weights, w0 = pack_weights(plan, W), np.ascontiguousarray(W[:, 0])
    weights.W = cnp.PyArray_DATA(packed_weights)
    weights.w0 = <const double*>cnp.PyArray_DATA(w0)
    return packed_weights, w0


cdef object run_sweep(SweepJob* job, ChunkFunction chunk_function, Py_ssize_t g0,
                      Py_ssize_t hessians, Py_ssize_t chunk, int n_threads):
    """The sums of all chunks, (chunks, size), g0 totals first; for `return_buffer` in the end."""
    cdef Py_ssize_t chunks = chunk_count(job.plan.rows.n, chunk), bytes_
    cdef SweepBuffers[float] b32
    cdef SweepBuffers[double] b64
    cdef SumsLayout* sums = &job.sums
    sums.g0 = g0
    sums.G = (g0 + job.plan.K + 7) // 8 * 8
    sums.H = sums.G + (weight_size(&job.plan) + 7) // 8 * 8
    sums.size = sums.H + hessians * hessian_size(&job.plan)
    part = take_buffer(chunks, sums.size)
    job.part, job.part_size = <double*>cnp.PyArray_DATA(part), part.shape[1]
    job.chunk = chunk
    if job.plan.float32:
        bytes_ = lay_out_sweep(NULL, job, &b32)
    else:
        bytes_ = lay_out_sweep(NULL, job, &b64)
    run_chunks(chunk_function, job, chunks, n_threads, bytes_)
    return part


cdef object merge_totals(const SweepJob* job, object part):
    """The totals, and behind them the gradient by the intercepts, from the sums of chunks."""
    return part[:, :job.sums.g0 + job.plan.K].sum(axis=0)


cdef object merge_gradient(const SweepJob* job, object total, object part, int n_threads):
    """The (K, d+1) gradient from the totals and the sums of chunks."""
    G = merge_chunks(&job.plan, part, job.sums.G, thread_count(n_threads, part.shape[0]))
    return np.hstack([total[job.sums.g0:, None], G])


cdef object merge_hessians(const SweepJob* job, object part):
    """The (n, d+1, d+1) Hessians from the sums of chunks, each an upper triangle."""
    cdef Py_ssize_t d = job.plan.rows.d, D = job.plan.D
    blocks = part[:, job.sums.H:job.sums.size].sum(axis=0).reshape(-1, D + 2, D)
    H = np.empty((len(blocks), d + 1, d + 1))
    H[:, 0, 0] = blocks[:, D + 1, 0]
    H[:, 0, 1:] = H[:, 1:, 0] = blocks[:, D, :d]
    H[:, 1:, 1:] = mirror(blocks[:, :d, :d])
    return H


cdef object mirror(triangles):
    """Symmetric matrices from their upper triangles."""
    d = triangles.shape[2]
    upper = np.arange(d)[:, None] <= np.arange(d)
    return np.where(upper, triangles, triangles.swapaxes(1, 2))


cdef object unfold(blocks, Py_ssize_t K):
    """The Hessian (K (d+1), K (d+1)) from its K (K+1) / 2 blocks."""
    D = blocks.shape[2]
    H = np.empty((K, D, K, D))
    pairs = [(j, k) for j in range(K) for k in range(j, K)]
    for block, (j, k) in zip(blocks, pairs, strict=True):
        H[j, :, k, :] = H[k, :, j, :] = block
    return H.reshape(K * D, K * D)


def sweep(batch, int loss, W, int order, grid, int n_threads):
    """Loss, errors, gradient and Hessian: (10.23)-(10.24), (10.31)-(10.33)."""
    cdef SweepJob job
    cdef Py_ssize_t K = W.shape[0], pairs = K * (K + 1) // 2 if order == 2 else 0
    memset(&job, 0, sizeof(SweepJob))
    X, r, s, o = batch
    job.loss, job.order = find_loss(loss, K), order
    job.plan = make_plan(X, K, grid[0], order < 2 and grid[2])
    if order < 2:   # a Hessian takes long blocks, and `gram_strips` prefetches the next one
        shorten_blocks(&job.plan)
    set_targets(&job.targets, &job.plan, r, s, o)
    arrays = set_weights(&job.weights, &job.plan, W)
    part = run_sweep(&job, sweep_chunk, 2, pairs, grid[1], n_threads)
    total = merge_totals(&job, part)
    G = merge_gradient(&job, total, part, n_threads)
    H = unfold(merge_hessians(&job, part), K) if order == 2 else None
    return_buffer(part)
    del arrays
    return total[0], total[1], G, H
