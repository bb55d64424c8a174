# The online kernel: rows one after the other, each with the weights that the last one left.
#
# Dense rows of one output are learned from in blocks (chain.h), others singly.
#   A perceptron changes at a mistake alone, so scores can be had ahead of time, and the weights still are, bit for bit, those of
# the plain loop: a row's score is the same sequence of operations wherever it is computed. Four rows are scored at a time, which
# is valid up to the first mistake; the rows after it are scored again. On several threads see ahead.pxi.

from libc.math cimport INFINITY

cdef extern from "tiles.h" namespace "tiles" nogil:
    void prefetch_line "tiles::prefetch_line<3>"(const void* p)
    void dot_classes(const double* x, const double* w, Py_ssize_t ldw, Py_ssize_t K, Py_ssize_t d, double* z, Py_ssize_t ldz)

cdef extern from "chain.h" namespace "chain" nogil:
    double learn_early "chain::learn<true>"(int loss, double one, Py_ssize_t d, const double* x, Py_ssize_t ld, const char* next,
                                            Py_ssize_t stride, const int32_t* r, Py_ssize_t m, Pace* pace, double* w, double w0)
    double learn_late "chain::learn<false>"(int loss, double one, Py_ssize_t d, const double* x, Py_ssize_t ld, const char* next,
                                            Py_ssize_t stride, const int32_t* r, Py_ssize_t m, Pace* pace, double* w, double w0)

cdef enum:
    GROUP = 4              # rows that are scored at a time
    STRETCH = 512          # rows after which it is asked anew whether mistakes are rare
    NEXT = 4096            # bytes that are called into cache ahead of the row that is read

cdef struct Cursor:
    Py_ssize_t i           # of the run
    Py_ssize_t t, end      # the next row, and the end of the run

# A thread's own memory.
cdef struct Shelf:
    double* Z              # (K, GROUP) scores
    double* z              # (K) of one row, for CSR
    double* x              # rows that are not read where they are


cdef inline bint one_output(const Plan* plan) noexcept nogil:
    """Whether rows are dense, with a single score."""
    return plan.K == 1 and not plan.in_place


cdef Py_ssize_t block_rows(const Plan* plan) noexcept nogil:
    """Rows of one output in a block: few enough that their copy stays in cache."""
    return min(BLOCK, max(GROUP, 4096 // max(1, plan.ldw)))


cdef Py_ssize_t shelf_size(const Plan* plan) noexcept nogil:
    return 2 * GROUP * plan.K + 16 + (block_rows(plan) if plan.K == 1 else GROUP) * plan.ldw


cdef Shelf shelves(const Plan* plan, double* work) noexcept nogil:
    """The parts of a thread's memory, each on a cache line."""
    cdef Shelf parts
    parts.Z = work
    parts.z = parts.Z + (GROUP * plan.K + 7) // 8 * 8
    parts.x = parts.z + (plan.K + 7) // 8 * 8
    return parts


cdef inline bint called_by_row(const Learner* job) noexcept nogil:
    return not job.plan.in_place and packed(&job.plan.rows.array, job.plan.rows.d)


cdef inline void call(const Learner* job, Py_ssize_t t, Py_ssize_t skip, Py_ssize_t m) noexcept nogil:
    """Call m rows from t on, or as much memory `skip` bytes behind their start, into cache: what a row waits for is memory."""
    cdef Py_ssize_t j, stride = job.plan.rows.array.row
    cdef const char* p = job.plan.rows.array.data + t * stride + skip
    if called_by_row(job):
        for j in range(0, m * stride, 64):
            prefetch_line(p + j)


cdef inline void open_run(const Learner* job, Cursor* c, Py_ssize_t i) noexcept nogil:
    """Go to run i; call the start of a later one into cache."""
    cdef Py_ssize_t later = i + (1 if job.run >= 8 else 8), stride = max(1, job.plan.rows.array.row)
    c.i = i
    if i >= job.runs:
        return
    c.t = job.order[i] * job.run
    c.end = min(job.plan.rows.n, c.t + job.run)
    if later < job.runs:
        call(job, job.order[later] * job.run, 0, max(1, min(job.run, NEXT // stride)))


cdef inline void score_group(const Learner* job, Py_ssize_t t, Py_ssize_t m, const double* x, Py_ssize_t ld, double* Z, double* z) noexcept nogil:
    """Z[k, i] = w_k' x_i + w_k0 of up to four rows   (10.6), each by the same operations wherever it stands"""
    cdef Py_ssize_t K = job.plan.K, ldw = job.plan.ldw, d = job.plan.width, width, i, j = 0, k
    cdef const double* w = job.w
    cdef const double* x1 = x + min(1, m - 1) * ld
    cdef const double* x2 = x + min(2, m - 1) * ld
    cdef const double* x3 = x + min(3, m - 1) * ld
    if one_output(&job.plan):
        for i in range(m):
            Z[i] = dot(x + i * ld, w, d) + job.w0[0]   # as in chain.h
        return
    for k in range(K):
        for i in range(GROUP):
            Z[k * GROUP + i] = job.w0[k]
    if job.plan.in_place:
        add_scores(&job.plan, t, m, w, Z, z)
        return
    while j < d:   # panels as in score_dense
        width = d - j if d - j < 2 * PANEL else PANEL
        if m == 1:
            dot_classes(x + j, w + j, ldw, K, width, Z, GROUP)
            j += width
            continue
        dot4xk(x + j, x1 + j, x2 + j, x3 + j, w + j, ldw, K, width, Z, GROUP)
        j += width


cdef inline void score_row(const Learner* job, Py_ssize_t t, const double* x, double* Z, double* z) noexcept nogil:
    """The scores of one row where no others are scored along: several sums at once, and the scale"""
    cdef Py_ssize_t K = job.plan.K, k
    if job.plan.in_place:
        for k in range(K):
            Z[k * GROUP] = 0
        add_scores(&job.plan, t, 1, job.w, Z, z)
    else:
        for k in range(K):
            Z[k * GROUP] = dot(x, <const double*>job.w + k * job.plan.ldw, job.plan.width)
    for k in range(K):
        Z[k * GROUP] = job.scale * Z[k * GROUP] + job.w0[k]


cdef inline double margin(const Learner* job, const double* z, Py_ssize_t own) noexcept nogil:
    """By how much a row is right: the least of y_k z_k, or one's own score less that of the best other class"""
    cdef Py_ssize_t K = job.plan.K, k
    cdef double m
    if K == 1:
        return (2 * own - 1) * z[0]
    if job.loss == WINNER:
        return z[own * GROUP] - z[rival(z, GROUP, K, own) * GROUP]
    m = INFINITY
    for k in range(K):
        m = min(m, z[k * GROUP] if own == k else -z[k * GROUP])
    return m


cdef inline double inner(const Plan* plan, const double* x, const double* y) noexcept nogil:
    """x'y of two dense rows"""
    cdef Py_ssize_t j, body = plan.width - plan.width % lanes[double]()
    cdef double total = dot(x, y, body)
    for j in range(body, plan.width):
        total += x[j] * y[j]
    return total


cdef void walk_groups(Learner* job, Cursor* c, Py_ssize_t last, double* work) noexcept nogil:
    """Learn from the rows up to run `last`, four at a time up to the first mistake."""
    cdef Py_ssize_t m, i, ld = 0, size = GROUP
    cdef bint single = one_output(&job.plan)
    cdef Shelf own = shelves(&job.plan, work)
    cdef const double* x
    cdef double a
    while c.i < last:
        if c.t == c.end:
            open_run(job, c, c.i + 1)
            continue
        m = min(size, c.end - c.t)
        call(job, c.t, NEXT, m)
        x = fetch(&job.plan, c.t, m, own.x, &ld)
        score_group(job, c.t, m, x, ld, own.Z, own.z)
        if not single:
            size = GROUP   # unless there is a mistake: then rows are scored singly until one is right
        for i in range(m):
            a = margin(job, own.Z + i, job.r[c.t])
            c.t += 1
            if 0 < a < INFINITY:
                job.tick += job.s[(c.t - 1) * job.step] != 0
            elif learn(job, c.t - 1, x + i * ld, own.Z + i):
                if not single:
                    size = 1
                break   # what was scored behind this row is out of date


cdef void learn_block(Learner* job, Py_ssize_t t, Py_ssize_t m, const double* x, Py_ssize_t ld, bint early) noexcept nogil:
    """Learn from rows t to t + m of one output, which have been paced."""
    cdef Pace* pace = &job.pace
    cdef Py_ssize_t d = job.plan.width, i, stride = job.plan.rows.array.row if called_by_row(job) else 0
    cdef const char* next = job.plan.rows.array.data + t * stride + NEXT
    cdef double weight
    if early:
        job.w0[0] = learn_early(job.loss, job.intercept, d, x, ld, next, stride, job.r + t, m, pace, job.w, job.w0[0])
    else:
        job.w0[0] = learn_late(job.loss, job.intercept, d, x, ld, next, stride, job.r + t, m, pace, job.w, job.w0[0])
    for i in range(m):
        weight = job.s[(t + i) * job.step]
        if job.loss == LOG:
            pace.value[i] += multiplied(job, pace.other[i])
        job.total += weight * pace.value[i] if weight > 0 else 0
        job.updates += pace.a[i] != 0
    if job.averaged:
        for i in range(m):
            if pace.a[i] != 0:
                job.u0[0] += pace.count[i] * (pace.a[i] if job.intercept else 0)
                axpy(x + i * ld, pace.mass[i] * (pace.lift[i] * pace.a[i]), d, job.u)
    if pace.lift[m - 1] == 0:
        fold(job)
        axpy(x + (m - 1) * ld, pace.a[m - 1], d, job.w)


cdef void walk_blocks(Learner* job, Cursor* c, Py_ssize_t last, bint early, double* work) noexcept nogil:
    """Learn from the rows of one output up to run `last`."""
    cdef Py_ssize_t m, ld = 0, size = block_rows(&job.plan)
    cdef Shelf own = shelves(&job.plan, work)
    cdef const double* x
    while c.i < last:
        while c.t < c.end:
            m = min(size, c.end - c.t)
            x = fetch(&job.plan, c.t, m, own.x, &ld)
            m = pace(job, c.t, m)
            learn_block(job, c.t, m, x, ld, early)
            c.t += m
        open_run(job, c, c.i + 1)


cdef Py_ssize_t rows_to_runs(const Learner* job, Py_ssize_t rows) noexcept nogil:
    return max(1, rows // job.run)


cdef void walk_plainly(Learner* job, Cursor* c, Py_ssize_t last, double* work) noexcept nogil:
    """Learn from the rows up to run `last`, where mistakes alone change the weights: in groups as long as they are rare.

    Of one output and dense rows, that is: 1M x 28 take 17 ms in groups and 64 ns more for each mistake, 23 ms in blocks.
    """
    cdef Py_ssize_t before, stretch = rows_to_runs(job, STRETCH), end
    if not one_output(&job.plan):
        walk_groups(job, c, last, work)
    while c.i < last:
        end, before = min(last, c.i + stretch), job.updates
        if job.often:
            walk_blocks(job, c, end, False, work)
        else:
            walk_groups(job, c, end, work)
        job.often = 10 * (job.updates - before) > stretch * job.run


cdef void call_unsafe(const Learner* job, const Ahead* ahead, Py_ssize_t i) noexcept nogil:
    """Call the rows of run i that will be looked at into cache: another core had them last."""
    cdef Py_ssize_t t, j, begin, width = job.plan.rows.d * job.plan.rows.array.col
    cdef const double* safe
    if i >= ahead.last or job.plan.in_place or width > 4096:
        return
    begin = job.order[i] * job.run
    safe = ahead.safe + (i - ahead.first) * job.run - begin
    for t in range(begin, min(job.plan.rows.n, begin + job.run)):
        if not safe[t] > ahead.limit:
            for j in range(0, width, 64):
                prefetch_line(job.plan.rows.array.data + t * job.plan.rows.array.row + j)


cdef void walk_unsafe(Learner* job, Cursor* c, Ahead* ahead, double* work) noexcept nogil:
    """Learn from the rows that were scored ahead, without those that are known to be right."""
    cdef Py_ssize_t begin, ld = 0
    cdef Shelf own = shelves(&job.plan, work)
    cdef const double* safe
    cdef const double* x
    measure(job, ahead)
    call_unsafe(job, ahead, c.i)
    call_unsafe(job, ahead, c.i + 1)
    while c.i < ahead.last:
        if c.t == c.end:
            open_run(job, c, c.i + 1)
            call_unsafe(job, ahead, c.i + 1)
            continue
        safe, begin = ahead.safe + (c.i - ahead.first - job.order[c.i]) * job.run, c.t
        while c.t < c.end and safe[c.t] > ahead.limit:
            c.t += 1
        job.tick += c.t - begin
        if job.step:
            for begin in range(begin, c.t):
                job.tick -= job.s[begin] == 0
        if c.t == c.end:
            continue
        x = fetch(&job.plan, c.t, 1, own.x, &ld)
        score_group(job, c.t, 1, x, ld, own.Z, own.z)
        ahead.looks += 1
        if learn(job, c.t, x, own.Z):
            widen(job, ahead, c.t, x, own.Z)
        c.t += 1


cdef void walk_rows(Learner* job, Cursor* c, double* work) noexcept nogil:
    """Learn from all rows singly, where every one changes the weights."""
    cdef Py_ssize_t ld = 0
    cdef Shelf own = shelves(&job.plan, work)
    cdef const double* x
    while c.i < job.runs:
        for c.t in range(c.t, c.end):
            call(job, c.t, NEXT, 1)
            x = fetch(&job.plan, c.t, 1, own.x, &ld)
            if job.lasso and job.plan.in_place:
                pay(job, c.t)   # the row reads weights that are up to date
            score_row(job, c.t, x, own.Z, own.z)
            learn(job, c.t, x, own.Z)
        open_run(job, c, c.i + 1)


cdef void walk_ahead(Learner* job, Cursor* c, Ahead* ahead, int threads, double[:, ::1] work) noexcept nogil:
    """Learn from all rows on several threads: one goes on, the others score what lies behind its part."""
    cdef Learner then
    cdef Py_ssize_t least = least_ahead(job)
    cdef Py_ssize_t rows = least, rest = least, pause = least, part, p, before, last
    cdef Py_ssize_t few = 80 if one_output(&job.plan) else 8   # 500k x 28, 1.4% mistakes: 8 ms plainly, 10 on two threads
    while c.i < job.runs:
        if rest:   # the plain loop, as long as more than one row in `few` is a mistake
            before = job.updates
            walk_plainly(job, c, min(job.runs, c.i + rows_to_runs(job, rest)), &work[0, 0])
            pause = min(2 * pause, REST) if few * (job.updates - before) > rest else least
            rest = pause if pause > least else 0
            continue
        part = rows_to_runs(job, rows)
        last = c.i + part
        then = begin_ahead(job, ahead, min(job.runs, last), min(job.runs, last + (threads - 1) * part))
        for p in prange(threads, num_threads=threads, schedule="static", chunksize=1):
            if p == 0:
                walk_plainly(job, c, ahead.first, &work[0, 0])
            else:
                look_ahead(&then, ahead, min(job.runs, last + (p - 1) * part), min(job.runs, last + p * part), &work[p, 0])
        before = (ahead.last - ahead.first) * job.run
        walk_unsafe(job, c, ahead, &work[0, 0])
        if 64 * ahead.looks < before:
            rows = min(2 * rows, MOST)
        elif 16 * ahead.looks > before:
            rest = pause if rows == least and 3 * ahead.looks > before else 0
            rows = max(least, rows // 2)


cdef bint mistakes_alone(const Learner* job) noexcept nogil:
    """Whether no row but a mistake changes the weights."""
    return job.loss <= WINNER and job.alpha == 0


cdef int useful_threads(const Learner* job, int threads) noexcept nogil:
    return threads if mistakes_alone(job) and least_ahead(job) <= min(MOST, job.plan.rows.n // 4) else 1


cdef void walk_all(Learner* job, Ahead* ahead, int threads, double[:, ::1] work) noexcept:
    """Learn from all rows, in the way that suits the rule and the layout."""
    cdef Cursor c
    with nogil:
        open_run(job, &c, 0)
        if threads > 1:
            walk_ahead(job, &c, ahead, threads, work)
        elif mistakes_alone(job):
            walk_plainly(job, &c, job.runs, &work[0, 0])
        elif one_output(&job.plan) and not job.lasso:
            walk_blocks(job, &c, job.runs, True, &work[0, 0])
        else:
            walk_rows(job, &c, &work[0, 0])
        advance(job, job.tick)
        job.total += job.s[0] * log_of_1_or_more(1 / job.product)
        if job.lasso:
            clip(job, 0, weight_size(&job.plan))


def online_epoch(batch, state, rule, order, int n_threads):
    """One epoch of an online rule, as (4.55), with an update for each row."""
    X, r, s, _ = batch
    W, U, Q, clock = state
    cdef Learner job
    cdef Ahead ahead
    cdef Py_ssize_t K = W.shape[0]
    memset(&job, 0, sizeof(Learner))
    job.plan = make_plan(X, K, GROUP, False)
    job.loss, job.rate, job.eta, job.power, job.alpha, job.l1, job.intercept, job.begin = rule
    cdef const int32_t[::1] r_ = r
    cdef const double[::1] s_ = s
    cdef const int64_t[::1] runs = order[0]
    job.r, job.s, job.step = &r_[0], &s_[0], s_.shape[0] > 1
    job.order, job.runs, job.run = &runs[0], runs.shape[0], order[1]
    job.averaged, job.lasso = len(U) > 0, len(Q) > 0
    laid = [pack_weights(&job.plan, A) if len(A) else None for A in (W, -U, Q)]
    cdef double[::1] w = laid[0], u = laid[1], q = laid[2]
    cdef double[::1] w0 = W[:, 0].copy(), u0 = -U[:, 0] if len(U) else np.zeros(K), a = np.zeros(K)
    cdef Py_ssize_t[::1] which = np.zeros(K + 1, np.intp)
    job.w, job.w0, job.u0, job.a, job.which = &w[0], &w0[0], &u0[0], &a[0], &which[0]
    job.u, job.q = &u[0] if job.averaged else NULL, &q[0] if job.lasso else NULL
    job.scale, job.product, job.owed = 1, 1, clock[1]
    job.tick = job.seen = clock[0]
    cdef int threads = useful_threads(&job, max(1, n_threads))
    held = make_ahead(&job, &ahead, threads)
    walk_all(&job, &ahead, threads, aligned_zeros(threads, shelf_size(&job.plan)))
    del held
    clock[0], clock[1] = job.tick, job.scale * job.owed
    W[:, 0], W[:, 1:] = w0, job.scale * unpack_weights(&job.plan, laid[0])
    if job.averaged:
        U[:, 0], U[:, 1:] = job.count * np.asarray(w0) - u0, job.mass * unpack_weights(&job.plan, laid[0]) - unpack_weights(&job.plan, laid[1])
    if job.lasso:
        Q[:, 1:] = job.scale * unpack_weights(&job.plan, laid[2])
    return job.total, job.updates
