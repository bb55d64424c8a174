# Rows one after the other, each with the weights that the last one left.
#
# Dense rows of a single score are learned in blocks (online.h), others one by one. A perceptron
# changes its weights only at a mistake, so scores can be computed in advance, and the weights still
# are, bit for bit, those of the sequential loop: a row's score is the same sequence of operations
# wherever it is computed. Four rows are scored at a time, which is valid up to the first mistake;
# the rows after it are scored again. For several threads see online_speculation.pxi.

cdef extern from "tiles.h" namespace "tiles" nogil:
    void dot_classes(
        const double* x, const double* w, Py_ssize_t ldw, Py_ssize_t K, Py_ssize_t d, double* z,
        Py_ssize_t ldz)

cdef extern from "online.h" namespace "online" nogil:
    void prefetch_bytes(const char* p, Py_ssize_t n)
    cdef struct RowBlock "online::RowBlock":
        const double* x
        Py_ssize_t ld
        const int32_t* r
        Py_ssize_t m
        const char* next
        Py_ssize_t prefetch
    double learn_early "online::learn<true>"(
        MarginLoss loss, double one, Py_ssize_t d, const RowBlock& block, Schedule* schedule,
        double* w, double w0)
    double learn_late "online::learn<false>"(
        MarginLoss loss, double one, Py_ssize_t d, const RowBlock& block, Schedule* schedule,
        double* w, double w0)

cdef enum:
    CHECKED_ROWS = 512      # after which the number of mistakes decides between groups and blocks
    PREFETCH_BYTES = 4096   # of the start of a run; distance of the prefetches of a block

cdef struct Cursor:
    Py_ssize_t i            # of the run
    Py_ssize_t t, end       # the next row, and the end of the run

# A thread's buffers.
cdef struct OnlineWorkspace:
    double* Z               # (K, GROUP_ROWS) scores
    double* z               # (K,) of one row, for CSR
    double* x               # rows that are not read in place


cdef Py_ssize_t block_rows(const Plan* plan) noexcept nogil:
    """Rows of a single score in a block: few enough that their copy stays in cache."""
    return min(BLOCK_ROWS, max(GROUP_ROWS, 4096 // max(1, plan.ldw)))


cdef OnlineWorkspace make_online_workspace(Arena* arena, const Plan* plan) noexcept nogil:
    cdef OnlineWorkspace work
    work.Z = take_doubles(arena, plan.K * GROUP_ROWS)
    work.z = take_doubles(arena, plan.K)
    work.x = take_doubles(
        arena, fetch_rows_size(plan, block_rows(plan) if plan.K == 1 else GROUP_ROWS))
    return work


cdef inline void open_run(const Epoch* epoch, Cursor* c, Py_ssize_t i) noexcept nogil:
    """Go to run i; prefetch the start of a later one.

    What is in sequence is left to the hardware: instructions for it cost 15% (200k x 28, K = 1:
    2.1 ms, not 1.8). Single rows in random order: 11 ms, 21 without.
    """
    cdef const DenseArray* array = &epoch.plan.rows.array
    cdef bint is_packed
    cdef Py_ssize_t later = i + (1 if epoch.run >= 8 else 8), size
    c.i = i
    if i >= epoch.runs:
        return
    c.t = epoch.order[i] * epoch.run
    c.end = min(epoch.plan.rows.n, c.t + epoch.run)
    is_packed = packed(array, epoch.plan.rows.d)
    if later < epoch.runs and is_packed and epoch.order[later] - epoch.order[i] != later - i:
        size = max(1, min(epoch.run, PREFETCH_BYTES // max(1, array.row))) * array.row
        prefetch_bytes(array.data + epoch.order[later] * epoch.run * array.row, size)


cdef inline void score_group(
    const Epoch* epoch, Py_ssize_t t, Py_ssize_t m, const double* x, Py_ssize_t ld,
    const OnlineWorkspace* work
) noexcept nogil:
    """Z[k, i] = w_k' x_i + w_k0 of up to four rows, each by the same operations   (10.6)"""
    cdef const Plan* plan = &epoch.plan
    cdef Py_ssize_t K = plan.K, ldw = plan.ldw, d = plan.width, width, i, j = 0, k
    cdef const double* w = epoch.w
    cdef const double* x1 = x + min(1, m - 1) * ld
    cdef const double* x2 = x + min(2, m - 1) * ld
    cdef const double* x3 = x + min(3, m - 1) * ld
    cdef double* Z = work.Z
    if single_dense(plan):
        for i in range(m):
            Z[i] = dot(x + i * ld, w, d) + epoch.w0[0]   # as in online.h
        return
    for k in range(K):
        for i in range(GROUP_ROWS):
            Z[k * GROUP_ROWS + i] = epoch.w0[k]
    if plan.in_place:
        add_scores(plan, t, m, w, Z, work.z)
        return
    while j < d:   # panels as in `score_dense`
        width = d - j if d - j < 2 * PANEL else PANEL
        if m == 1:
            dot_classes(x + j, w + j, ldw, K, width, Z, GROUP_ROWS)
            j += width
            continue
        dot4xk(x + j, x1 + j, x2 + j, x3 + j, w + j, ldw, K, width, Z, GROUP_ROWS)
        j += width


cdef inline void score_row(
    const Epoch* epoch, Py_ssize_t t, const double* x, const OnlineWorkspace* work
) noexcept nogil:
    """The scores of one row, by several sums at once, with the scale factor"""
    cdef const Plan* plan = &epoch.plan
    cdef Py_ssize_t K = plan.K, k
    cdef double* Z = work.Z
    if plan.in_place:
        for k in range(K):
            Z[k * GROUP_ROWS] = 0
        add_scores(plan, t, 1, epoch.w, Z, work.z)
    else:
        for k in range(K):
            Z[k * GROUP_ROWS] = dot(x, <const double*>epoch.w + k * plan.ldw, plan.width)
    for k in range(K):
        Z[k * GROUP_ROWS] = epoch.scale * Z[k * GROUP_ROWS] + epoch.w0[k]


cdef inline double margin_of_row(
    const Epoch* epoch, const double* z, Py_ssize_t own
) noexcept nogil:
    """The least y_k z_k, or the own score less that of the best competitor: > 0 if the row is
    classified correctly"""
    cdef Py_ssize_t K = epoch.plan.K, k
    cdef double m
    if K == 1:
        return (2 * own - 1) * z[0]
    if epoch.loss == MarginLoss.PERCEPTRON_MULTICLASS:
        return z[own * GROUP_ROWS] - z[best_competitor(z, GROUP_ROWS, K, own) * GROUP_ROWS]
    m = INFINITY
    for k in range(K):
        m = min(m, z[k * GROUP_ROWS] if own == k else -z[k * GROUP_ROWS])
    return m


cdef void learn_in_groups(
    Epoch* epoch, Cursor* c, Py_ssize_t last, const OnlineWorkspace* work
) noexcept nogil:
    """Learn the rows up to run `last`, four at a time up to the first mistake."""
    cdef Py_ssize_t m, i, ld = 0, size = GROUP_ROWS
    cdef bint single = single_dense(&epoch.plan)
    cdef const double* x
    cdef double margin
    while c.i < last:
        if c.t == c.end:
            open_run(epoch, c, c.i + 1)
            continue
        m = min(size, c.end - c.t)
        x = fetch(&epoch.plan, c.t, m, work.x, &ld)
        score_group(epoch, c.t, m, x, ld, work)
        if not single:
            size = GROUP_ROWS   # after a mistake, rows are scored singly up to a correct one
        for i in range(m):
            margin = margin_of_row(epoch, work.Z + i, epoch.r[c.t])
            c.t += 1
            if 0 < margin < INFINITY:
                epoch.clock += epoch.s[(c.t - 1) * epoch.step] != 0
            elif learn_row(epoch, c.t - 1, x + i * ld, work.Z + i):
                if not single:
                    size = 1
                break   # the scores of the rows after this one are out of date


cdef void learn_block(
    Epoch* epoch, Py_ssize_t t, Py_ssize_t m, const double* x, Py_ssize_t ld, bint early
) noexcept nogil:
    """Learn rows t to t + m of a single score, whose schedule has been made."""
    cdef Schedule* schedule = &epoch.schedule
    cdef const DenseArray* array = &epoch.plan.rows.array
    cdef Py_ssize_t d = epoch.plan.width, i
    cdef double weight, step
    cdef RowBlock block
    block.x, block.ld, block.r, block.m = x, ld, epoch.r + t, m
    block.prefetch = array.row if packed(array, epoch.plan.rows.d) else 0
    block.next = array.data + t * block.prefetch + PREFETCH_BYTES
    if early:
        epoch.w0[0] = learn_early(
            epoch.loss, epoch.intercept, d, block, schedule, epoch.w, epoch.w0[0])
    else:
        epoch.w0[0] = learn_late(
            epoch.loss, epoch.intercept, d, block, schedule, epoch.w, epoch.w0[0])
    for i in range(m):
        weight = epoch.s[(t + i) * epoch.step]
        if epoch.loss == MarginLoss.LOG:
            schedule.loss[i].value += take_log(epoch, schedule.loss[i].sigmoid)
        epoch.total += weight * schedule.loss[i].value if weight > 0 else 0
        epoch.updates += schedule.a[i] != 0
    if epoch.has_average:
        for i in range(m):
            if schedule.a[i] != 0:
                epoch.u0[0] += schedule.averaged[i] * (schedule.a[i] if epoch.intercept else 0)
                step = schedule.inverse_scale[i] * schedule.a[i]
                axpy(x + i * ld, schedule.scale_sum[i] * step, d, epoch.u)
    if schedule.inverse_scale[m - 1] == 0:
        apply_scale(epoch)
        axpy(x + (m - 1) * ld, schedule.a[m - 1], d, epoch.w)


cdef void learn_in_blocks(
    Epoch* epoch, Cursor* c, Py_ssize_t last, bint early, const OnlineWorkspace* work
) noexcept nogil:
    """Learn the rows of a single score up to run `last`."""
    cdef Py_ssize_t m, ld = 0, size = block_rows(&epoch.plan)
    cdef const double* x
    while c.i < last:
        while c.t < c.end:
            m = min(size, c.end - c.t)
            x = fetch(&epoch.plan, c.t, m, work.x, &ld)
            m = make_schedule(epoch, c.t, m)
            learn_block(epoch, c.t, m, x, ld, early)
            c.t += m
        open_run(epoch, c, c.i + 1)


cdef void learn_one_by_one(
    Epoch* epoch, Cursor* c, const OnlineWorkspace* work
) noexcept nogil:
    """Learn all rows, each of which may change the weights."""
    cdef Py_ssize_t ld = 0
    cdef bint apply_before = epoch.has_l1 and epoch.plan.in_place
    cdef const double* x
    while c.i < epoch.runs:
        for c.t in range(c.t, c.end):
            x = fetch(&epoch.plan, c.t, 1, work.x, &ld)
            if apply_before:
                apply_l1_to_row(epoch, c.t)
            score_row(epoch, c.t, x, work)
            learn_row(epoch, c.t, x, work.Z)
        open_run(epoch, c, c.i + 1)


cdef Py_ssize_t rows_to_runs(const Epoch* epoch, Py_ssize_t rows) noexcept nogil:
    return max(1, rows // epoch.run)


cdef void learn_from_mistakes(
    Epoch* epoch, Cursor* c, Py_ssize_t last, const OnlineWorkspace* work
) noexcept nogil:
    """Learn the rows up to run `last` if only mistakes change the weights: in groups as long as
    they are rare.

    1M x 28, K = 1: 17 ms in groups and 64 ns more for each mistake, 23 ms in blocks.
    """
    cdef Py_ssize_t before, checked_runs = rows_to_runs(epoch, CHECKED_ROWS), end
    if not single_dense(&epoch.plan):
        learn_in_groups(epoch, c, last, work)
    while c.i < last:
        end, before = min(last, c.i + checked_runs), epoch.updates
        if epoch.frequent_updates:
            learn_in_blocks(epoch, c, end, False, work)
        else:
            learn_in_groups(epoch, c, end, work)
        epoch.frequent_updates = 10 * (epoch.updates - before) > checked_runs * epoch.run
