# Moments of classes. Rows are appended to queues, one for each group of classes with a scatter
# matrix of its own, and a full queue goes through the register tiles: see moments.h.

cdef extern from "moments.h" namespace "tiles" nogil:
    Py_ssize_t integer_lanes()
    void enqueue[S](const S* x, const double* c, Py_ssize_t d, double s, double* u, double* m)
    void enqueue_quartic[S](const S* x, const double* c, Py_ssize_t d, double s, double* u,
                            double* v, double* m)
    void enqueue_integers[S](const S* x, const double* c, Py_ssize_t d, int16_t* u, double* m)
    void add_squares[S](const S* x, const double* c, Py_ssize_t d, double s, double* m, double* q)
    void add_sums[S](const S* x, const double* c, Py_ssize_t d, double s, double* m)
    void add_counts[S](const S* x, const double* c, Py_ssize_t d, double s, double* m)
    void gram_panels(const double* Q, const double* P, Py_ssize_t m, Py_ssize_t D, double* H)
    void gram_integers(const int16_t* U, Py_ssize_t m, Py_ssize_t D, int32_t* pairs, double* H)

ctypedef fused cell:
    double
    float
    uint8_t
    int8_t
    int16_t

cdef struct MomentsJob:
    Plan plan
    MomentKind kind
    bint scatter             # sums of products, not of columns alone
    bint integers            # bytes of equal weight: exact integer sums
    bint direct              # cells of a row are contiguous: no copy before the shift
    Py_ssize_t K, groups
    Py_ssize_t D, W          # columns of a row, and of a queue, padded
    Py_ssize_t queue         # rows of a queue
    Targets targets
    const double* shift      # (K, d)
    const int32_t* group     # (K,)
    Py_ssize_t M, S          # where they begin in the sums of a chunk, which begin with n
    double* part             # (chunks, part_size)
    Py_ssize_t part_size, chunk

# A thread's buffers, and the sums of its chunk.
cdef struct MomentsBuffers:
    double* u                # (groups, queue, W): shifted rows; int16 if `integers`
    double* weight           # (groups, queue)
    double* Q                # (queue, W): a queue's rows times their weights, or in pairs
    double* unread           # (W,) the sum of Q's rows, which is not used
    int64_t* queued          # (groups,)
    double* x                # (block, d)
    double* n                # (K,)
    double* M                # (K, d)
    double* S                # (K, d), or (groups, W, W), or in place (groups, d + 1, d)


cdef Py_ssize_t lay_out_moments(char* base, const MomentsJob* job,
                                MomentsBuffers* b) noexcept nogil:
    """Lay out a thread's buffers from base on, or only measure if it is NULL; returns bytes."""
    cdef Arena arena = open_arena(base)
    cdef Py_ssize_t queues = job.groups if job.scatter and not job.plan.in_place else 0
    b.u = <double*>take(&arena, queues * job.queue * job.W, sizeof(double))
    b.Q = <double*>take(&arena, job.queue * job.W if queues else 0, sizeof(double))
    b.unread = <double*>take(&arena, job.W if queues else 0, sizeof(double))
    b.weight = <double*>take(&arena, queues * job.queue, sizeof(double))
    b.queued = <int64_t*>take(&arena, queues, sizeof(int64_t))
    b.x = NULL
    if not job.direct and not job.plan.in_place:
        b.x = <double*>take(&arena, job.plan.block * job.plan.rows.d, sizeof(double))
    return arena.used


cdef void flush(const MomentsJob* job, MomentsBuffers* b, Py_ssize_t g) noexcept nogil:
    """S_g += sum_i s_i u_i u_i' over the rows in a group's queue   (4.28)"""
    cdef Py_ssize_t W = job.W, m = b.queued[g]
    cdef double* u = b.u + g * job.queue * W
    cdef const double* Q = u
    cdef int16_t* v
    if job.integers:
        v = <int16_t*>b.u + g * job.queue * W
        memset(v + m * W, 0, (m % 2) * W * sizeof(int16_t))
        gram_integers(v, m + m % 2, W, <int32_t*>b.Q, b.S + g * W * W)
    else:
        if job.targets.s_step:
            scale_rows(u, W, b.weight + g * job.queue, m, W, b.Q, b.unread)
            Q = b.Q
        gram_panels(Q, u, m, W, b.S + g * W * W)
    b.queued[g] = 0


cdef inline void enqueue_row(const MomentsJob* job, MomentsBuffers* b, const cell* x, Py_ssize_t k,
                             double s) noexcept nogil:
    """A row of class k into its group's queue, and its sums."""
    cdef Py_ssize_t d = job.plan.rows.d, W = job.W, g = job.group[k]
    cdef Py_ssize_t place = g * job.queue + b.queued[g]
    cdef const double* c = job.shift + k * d
    cdef double* M = b.M + k * d
    if job.integers:
        if cell is uint8_t or cell is int8_t:
            enqueue_integers(x, c, d, <int16_t*>b.u + place * W, M)
    elif job.kind == MomentKind.SCATTER:
        enqueue(x, c, d, s, b.u + place * W, M)
    elif job.kind == MomentKind.QUARTIC:
        enqueue_quartic(x, c, d, s, b.u + place * W, b.u + place * W + job.D, M)
    b.weight[place] = s
    b.queued[g] += 1
    if b.queued[g] == job.queue:
        flush(job, b, g)


cdef void add_dense_rows(const MomentsJob* job, MomentsBuffers* b, const cell* x, Py_ssize_t stride,
                         Py_ssize_t lo, Py_ssize_t m) noexcept nogil:
    """Rows lo to lo + m, `stride` bytes apart, into sums and queues."""
    cdef Py_ssize_t d = job.plan.rows.d, i, k
    cdef double s = 1
    cdef const double* c
    cdef double* M
    for i in range(m):
        k = job.targets.r[lo + i]
        if job.targets.s_step:
            s = job.targets.s[lo + i]
        b.n[k] += s
        c, M = job.shift + k * d, b.M + k * d
        if job.kind == MomentKind.SUMS:
            add_sums(x, c, d, s, M)
        elif job.kind == MomentKind.COUNTS:
            add_counts(x, c, d, s, M)
        elif job.kind == MomentKind.SQUARES:
            add_squares(x, c, d, s, M, b.S + k * d)
        else:
            enqueue_row(job, b, x, k, s)
        x = <const cell*>(<const char*>x + stride)


cdef void add_rows_in_place(const MomentsJob* job, MomentsBuffers* b, Py_ssize_t lo,
                            Py_ssize_t m) noexcept nogil:
    """Rows lo to lo + m into sums, by the layout's functions."""
    cdef const Layout* layout = job.plan.rows.layout
    cdef Py_ssize_t d = job.plan.rows.d, i, k
    cdef double s = 1
    for i in range(lo, lo + m):
        k = job.targets.r[i]
        if job.targets.s_step:
            s = job.targets.s[i]
        b.n[k] += s
        layout.add_moments(&job.plan.rows, i, s, job.kind, job.shift + k * d, b.M + k * d,
                           b.S + k * d)
        if job.kind == MomentKind.SCATTER:
            layout.gram(&job.plan, i, 1, &s, b.S + job.group[k] * d * (d + 1))


cdef void add_block(const MomentsJob* job, MomentsBuffers* b, Py_ssize_t lo,
                    Py_ssize_t m) noexcept nogil:
    """Rows lo to lo + m, of any layout and type of cells."""
    cdef const Rows* rows = &job.plan.rows
    cdef Py_ssize_t stride = rows.array.row
    cdef const char* p = rows.array.data + lo * stride
    if job.plan.in_place:
        add_rows_in_place(job, b, lo, m)
    elif not job.direct:
        load_rows(rows, lo, m, b.x, rows.d)
        add_dense_rows(job, b, <const double*>b.x, rows.d * 8, lo, m)
    elif rows.array.cell == CellType.FLOAT64:
        add_dense_rows(job, b, <const double*>p, stride, lo, m)
    elif rows.array.cell == CellType.FLOAT32:
        add_dense_rows(job, b, <const float*>p, stride, lo, m)
    elif rows.array.cell == CellType.UINT8:
        add_dense_rows(job, b, <const uint8_t*>p, stride, lo, m)
    elif rows.array.cell == CellType.INT8:
        add_dense_rows(job, b, <const int8_t*>p, stride, lo, m)
    elif rows.array.cell == CellType.INT16:
        add_dense_rows(job, b, <const int16_t*>p, stride, lo, m)


cdef void moments_chunk(const void* task, Py_ssize_t c, char* workspace) noexcept nogil:
    """Sums of the rows of a chunk   (4.21), (4.28)"""
    cdef const MomentsJob* job = <const MomentsJob*>task
    cdef Py_ssize_t lo = c * job.chunk, hi = min(job.plan.rows.n, lo + job.chunk), m, g
    cdef bint queues = job.scatter and not job.plan.in_place
    cdef MomentsBuffers b
    lay_out_moments(workspace, job, &b)
    b.n = job.part + c * job.part_size
    b.M, b.S = b.n + job.M, b.n + job.S
    if queues:
        memset(b.queued, 0, job.groups * sizeof(int64_t))
    while lo < hi:
        m = min(job.plan.block, hi - lo)
        add_block(job, &b, lo, m)
        lo += m
    if queues:
        for g in range(job.groups):
            if b.queued[g]:
                flush(job, &b, g)


cdef void plan_moments(MomentsJob* job) noexcept:
    """How rows are summed, and where the sums are."""
    cdef const DenseArray* array = &job.plan.rows.array
    cdef Py_ssize_t d = job.plan.rows.d, lane, item = cell_size(array.cell)
    job.scatter = job.kind == MomentKind.SCATTER or job.kind == MomentKind.QUARTIC
    job.direct = array.data != NULL and (array.col == item or d == 1)
    job.integers = (job.direct and job.kind == MomentKind.SCATTER and not job.targets.s_step
                    and item == 1 and integer_lanes() > 1)
    lane = max(4, integer_lanes() if job.integers else lanes[double]())
    job.D = (d + lane - 1) // lane * lane
    job.W = 2 * job.D if job.kind == MomentKind.QUARTIC else job.D
    job.queue = job.plan.block
    job.M = job.K
    job.S = job.M + job.K * d
    job.part_size = job.S
    if job.kind == MomentKind.SQUARES:
        job.part_size += job.K * d
    elif job.scatter:
        job.part_size += job.groups * (d * (d + 1) if job.plan.in_place else job.W * job.W)


cdef object run_moments(MomentsJob* job, int n_threads):
    """The sums of all rows."""
    cdef MomentsBuffers b
    cdef Py_ssize_t chunks = chunk_count(job.plan.rows.n, job.chunk), size = job.part_size
    part = aligned_zeros(chunks, size)
    job.part, job.part_size = <double*>cnp.PyArray_DATA(part), part.shape[1]
    run_chunks(moments_chunk, job, chunks, n_threads, lay_out_moments(NULL, job, &b))
    total = part.sum(axis=0) if chunks > 1 else part[0]
    if not job.targets.s_step:
        total *= job.targets.s[0]
    return total[:size]


cdef object scatter_matrices(const MomentsJob* job, object sums):
    """Full matrices from the upper triangles of the groups."""
    cdef Py_ssize_t d = job.plan.rows.d
    if job.plan.in_place:
        return mirror(sums.reshape(job.groups, d + 1, d)[:, :d])
    H = sums.reshape(job.groups, job.W, job.W)
    if job.kind == MomentKind.SCATTER:
        return mirror(H[:, :d, :d])
    columns = np.concatenate([np.arange(d), np.arange(job.D, job.D + d)])
    return mirror(H[:, columns[:, None], columns])


def class_moments(batch, shift, group, int kind, grid, int n_threads):
    """Weights, sums and scatter of classes: (4.21), (4.28)."""
    cdef MomentsJob job
    cdef const double[:, ::1] shift_ = shift
    cdef const int32_t[::1] group_ = group
    memset(&job, 0, sizeof(MomentsJob))
    job.kind = <MomentKind>checked("moment kind", kind, "MomentKind")
    X, r, s, _ = batch
    job.plan = make_plan(X, 1, grid[0], False)
    set_targets(&job.targets, &job.plan, r, s, None)
    job.shift, job.group, job.chunk = &shift_[0, 0], &group_[0], grid[1]
    job.K, job.groups = shift_.shape[0], int(group.max()) + 1
    plan_moments(&job)
    total = run_moments(&job, n_threads)
    n, M, S = total[:job.M].copy(), total[job.M:job.S].reshape(job.K, -1).copy(), total[job.S:]
    if job.plan.in_place and job.kind == MomentKind.COUNTS:
        M += n[:, None] * (0 > shift)
    if job.kind == MomentKind.SQUARES:
        return n, M, S.reshape(job.K, -1).copy()
    return n, M, scatter_matrices(&job, S) if job.scatter else None
