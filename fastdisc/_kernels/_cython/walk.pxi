# The online kernel: rows one after the other, each with the weights that the last one left.
#
# A perceptron changes at a mistake alone, so scores can be had ahead of time, and the weights still are, bit for bit, those of
# the plain loop: a row's score is the same sequence of operations wherever it is computed.
#   On one thread four rows are scored at a time, which is valid up to the first mistake; the rows after it are scored again.
#   On several threads thousands of rows are, with weights that are soon out of date. By Cauchy and Schwarz a weight vector that
# has since moved by D changes the score of a row by at most D ||[1 x]||: the rows whose margin is larger are right without
# another look, and only the others are visited, in their order, and scored exactly. D costs no pass over the weights: when
# a x is added, D^2 grows by 2 a (z - z_then) + a^2 ||x||^2. A bound on all rounding is added. Where mistakes are so frequent that
# most rows need that second look, it is the plain loop for a while.

from libc.math cimport INFINITY, sqrt

cdef extern from "tiles.h" namespace "tiles" nogil:
    void prefetch "tiles::prefetch<1>"(const void* p)
    void dot_classes(const double* x, const double* w, Py_ssize_t ldw, Py_ssize_t K, Py_ssize_t d, double* z, Py_ssize_t ldz)
    void dot4_square(const double* x0, const double* x1, const double* x2, const double* x3, const double* w, Py_ssize_t d, double* z, double* q)

cdef enum:
    GROUP = 4              # rows that are scored at a time
    LEAST = 4096           # rows that are scored ahead, at least and at most
    MOST = 32768
    SHARE = 1024           # rows that a thread takes at a time
    NEXT = 4096            # bytes that are called into cache ahead of the row that is read

cdef struct Cursor:
    Py_ssize_t i           # of the run
    Py_ssize_t t, end      # the next row, and the end of the run

# What has been scored ahead: safe[place] is the squared distance that the weights may move before that row can be wrong.
cdef struct Ahead:
    Py_ssize_t first, last   # runs
    double* safe
    double* w              # the weights then
    double* w0
    double* norm           # (K) of those
    double* moved          # (K) squares of how far they have moved since, and the size of the terms that these were summed of
    double* terms
    double limit           # the square of how far they may have moved, rounding included
    double rounding        # of a score, relative to ||w|| ||[1 x]||
    Py_ssize_t looks       # rows that were looked at again


cdef inline void call(const Learner* job, Py_ssize_t t, Py_ssize_t skip, Py_ssize_t m) noexcept nogil:
    """Call m rows from t on, or as much memory `skip` bytes behind their start, into cache: what a row waits for is memory."""
    cdef Py_ssize_t j, stride = job.plan.rows.row
    cdef const char* p = job.plan.rows.data + t * stride + skip
    if not job.plan.rows.csr and stride >= job.plan.rows.d * job.plan.rows.col:   # not where columns lie together
        for j in range(0, m * stride, 64):
            prefetch(p + j)


cdef inline void open_run(const Learner* job, Cursor* c, Py_ssize_t i) noexcept nogil:
    """Go to run i; call the start of a later one into cache."""
    cdef Py_ssize_t later = i + (1 if job.run >= 8 else 8), stride = max(1, job.plan.rows.row)
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
    for k in range(K):
        for i in range(GROUP):
            Z[k * GROUP + i] = job.w0[k]
    if job.plan.rows.csr:
        score_csr(&job.plan, t, m, w, Z, z)
        return
    while j < d:   # panels as in score_dense
        width = d - j if K == 1 or d - j < 2 * PANEL else PANEL
        if m == 1 and K > 1:
            dot_classes(x + j, w + j, ldw, K, width, Z, GROUP)
            j += width
            continue
        for k in range(0, K - 1, 2):
            dot4x2(x + j, x1 + j, x2 + j, x3 + j, w + k * ldw + j, w + k * ldw + ldw + j, width, Z + k * GROUP, Z + k * GROUP + GROUP)
        if K % 2:
            dot4(x + j, x1 + j, x2 + j, x3 + j, w + (K - 1) * ldw + j, width, Z + (K - 1) * GROUP)
        j += width


cdef inline void score_row(const Learner* job, Py_ssize_t t, const double* x, double* Z, double* z) noexcept nogil:
    """The scores of one row where no others are scored along: several sums at once, and the scale"""
    cdef Py_ssize_t K = job.plan.K, k
    if job.plan.rows.csr:
        for k in range(K):
            Z[k * GROUP] = 0
        score_csr(&job.plan, t, 1, job.w, Z, z)
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


cdef double square(const Plan* plan, Py_ssize_t t, const double* x) noexcept nogil:
    """||x_t||^2"""
    cdef Py_ssize_t u, end
    cdef double v, total = 0
    if not plan.rows.csr:
        return inner(plan, x, x)
    u, end = at(plan.rows.indptr, plan.rows.wide, t), at(plan.rows.indptr, plan.rows.wide, t + 1)
    for u in range(u, end):
        v = value(plan.rows.data, plan.rows.kind == F32, u)
        total += v * v
    return total


cdef void look_ahead(const Learner* job, const Ahead* ahead, Py_ssize_t i, Py_ssize_t last, double* work) noexcept nogil:
    """How far the weights may move before a row of runs i to last can be a mistake: its margin over ||[1 x]||, squared."""
    cdef Py_ssize_t K = job.plan.K, m, j, ld = 0
    cdef Learner then = job[0]   # with the weights of then; the others change meanwhile
    cdef Cursor c
    cdef double* Z = work
    cdef double* z = Z + (GROUP * K + 7) // 8 * 8
    cdef double* buffer = z + (K + 7) // 8 * 8
    cdef double* out
    cdef const double* x
    cdef double q[GROUP]
    cdef double a, share = 0.25 if job.loss == WINNER else 1   # two vectors may move
    then.w, then.w0 = ahead.w, ahead.w0
    c.t = c.end = 0
    for i in range(i, last):
        open_run(&then, &c, i)
        out = ahead.safe + (i - ahead.first) * job.run
        while c.t < c.end:
            m = min(GROUP, c.end - c.t)
            call(&then, c.t, NEXT, m)
            x = fetch(&then.plan, c.t, m, buffer, &ld)
            if K == 1 and not then.plan.rows.csr:
                Z[0] = Z[1] = Z[2] = Z[3] = then.w0[0]
                dot4_square(x, x + min(1, m - 1) * ld, x + min(2, m - 1) * ld, x + min(3, m - 1) * ld, then.w, then.plan.width, Z, q)
            else:
                score_group(&then, c.t, m, x, ld, Z, z)
                for j in range(m):
                    q[j] = square(&then.plan, c.t + j, x + j * ld)
            for j in range(m):
                a = margin(&then, Z + j, then.r[c.t + j])
                out[j] = share * a * a / (1 + q[j]) if a > 0 else 0
            c.t, out = c.t + m, out + m


cdef void begin_ahead(const Learner* job, Ahead* ahead, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Remember the weights with which runs first to last are scored ahead."""
    cdef Py_ssize_t K = job.plan.K, i, k, size = room(&job.plan)
    cdef const double* w
    ahead.first, ahead.last, ahead.looks = first, last, 0
    memcpy(ahead.w, job.w, size * sizeof(double))
    for k in range(K):
        ahead.w0[k] = job.w0[k]
        ahead.norm[k], ahead.moved[k], ahead.terms[k] = job.w0[k] * job.w0[k], 0, 0
    if job.plan.rows.csr:
        for i in range(size):
            ahead.norm[i % K] += job.w[i] * job.w[i]
    else:
        for k in range(K):
            w = job.w + k * job.plan.ldw
            ahead.norm[k] += dot(w, w, job.plan.ldw)
    for k in range(K):
        ahead.norm[k] = sqrt(ahead.norm[k])
    set_limit(job, ahead)


cdef void set_limit(const Learner* job, Ahead* ahead) noexcept nogil:
    cdef Py_ssize_t k
    cdef double far = 0, moved
    for k in range(job.plan.K):
        moved = sqrt(max(ahead.moved[k], 0) + ahead.rounding * ahead.terms[k])
        far = max(far, moved + ahead.rounding * (2 * ahead.norm[k] + moved))
    ahead.limit = far * far * (1 + 1e-9) if far == far else INFINITY


cdef void widen(const Learner* job, Ahead* ahead, Py_ssize_t t, const double* x, const double* z) noexcept nogil:
    """Row t, whose scores were z, has moved the weights by job.a x."""
    cdef Py_ssize_t k, i
    cdef double n2 = 1 + square(&job.plan, t, x), a, then
    for i in range(job.changes):
        k = job.which[i]
        a = job.a[k]
        if a != 0:
            then = dot_row(&job.plan, t, x, k, ahead.w) + ahead.w0[k]
            ahead.terms[k] += 2 * abs(a) * (ahead.norm[k] + sqrt(max(ahead.moved[k], 0))) * sqrt(n2) + a * a * n2
            ahead.moved[k] += 2 * a * (z[k * GROUP] - then) + a * a * n2
    set_limit(job, ahead)


cdef void walk_groups(Learner* job, Cursor* c, Py_ssize_t last, double* work) noexcept nogil:
    """Learn from the rows up to run `last`, four at a time up to the first mistake."""
    cdef Py_ssize_t K = job.plan.K, m, i, ld = 0, size = GROUP
    cdef double* Z = work
    cdef double* z = Z + (GROUP * K + 7) // 8 * 8
    cdef double* buffer = z + (K + 7) // 8 * 8
    cdef const double* x
    cdef double a
    while c.i < last:
        if c.t == c.end:
            open_run(job, c, c.i + 1)
            continue
        m = min(size, c.end - c.t)
        call(job, c.t, NEXT, m)
        x = fetch(&job.plan, c.t, m, buffer, &ld)
        score_group(job, c.t, m, x, ld, Z, z)
        if K > 1 or job.plan.rows.csr:
            size = GROUP   # unless there is a mistake: then rows are scored singly until one is right
        for i in range(m):
            a = margin(job, Z + i, job.r[c.t])
            c.t += 1
            if 0 < a < INFINITY:
                job.tick += job.s[(c.t - 1) * job.step] != 0
            elif learn(job, c.t - 1, x + i * ld, Z + i):
                if K > 1 or job.plan.rows.csr:
                    size = 1
                break   # what was scored behind this row is out of date


cdef void call_unsafe(const Learner* job, const Ahead* ahead, Py_ssize_t i) noexcept nogil:
    """Call the rows of run i that will be looked at into cache: another core had them last."""
    cdef Py_ssize_t t, j, begin, width = job.plan.rows.d * job.plan.rows.col
    cdef const double* safe
    if i >= ahead.last or job.plan.rows.csr or width > 4096:
        return
    begin = job.order[i] * job.run
    safe = ahead.safe + (i - ahead.first) * job.run - begin
    for t in range(begin, min(job.plan.rows.n, begin + job.run)):
        if not safe[t] > ahead.limit:
            for j in range(0, width, 64):
                prefetch(job.plan.rows.data + t * job.plan.rows.row + j)


cdef void walk_unsafe(Learner* job, Cursor* c, Ahead* ahead, Ahead* next, double* work) noexcept nogil:
    """Learn from the rows that were scored ahead, without those that are known to be right."""
    cdef Py_ssize_t K = job.plan.K, begin, ld = 0
    cdef double* Z = work
    cdef double* z = Z + (GROUP * K + 7) // 8 * 8
    cdef double* buffer = z + (K + 7) // 8 * 8
    cdef const double* safe
    cdef const double* x
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
        x = fetch(&job.plan, c.t, 1, buffer, &ld)
        score_group(job, c.t, 1, x, ld, Z, z)
        ahead.looks += 1
        if learn(job, c.t, x, Z):
            widen(job, ahead, c.t, x, Z)
            if next.last > next.first:
                widen(job, next, c.t, x, Z)
        c.t += 1


cdef void walk_rows(Learner* job, Cursor* c, double* work) noexcept nogil:
    """Learn from all rows, where every one changes the weights.

    To score the next row early, with the weights of before, and add a x'y once a is known, gained nothing (log loss, 1M x 28: 66.8 ms
    for 65.6): the arithmetic of the slope takes the time, not the wait for the weights.
    """
    cdef Py_ssize_t K = job.plan.K, ld = 0
    cdef double* Z = work
    cdef double* z = Z + (GROUP * K + 7) // 8 * 8
    cdef double* buffer = z + (K + 7) // 8 * 8
    cdef const double* x
    while c.i < job.runs:
        for c.t in range(c.t, c.end):
            call(job, c.t, NEXT, 1)
            x = fetch(&job.plan, c.t, 1, buffer, &ld)
            if job.lasso and job.plan.rows.csr:
                pay(job, c.t)   # the row reads weights that are up to date
            score_row(job, c.t, x, Z, z)
            learn(job, c.t, x, Z)
        open_run(job, c, c.i + 1)


cdef Py_ssize_t rows_to_runs(const Learner* job, Py_ssize_t rows) noexcept nogil:
    return max(1, rows // job.run)


cdef Py_ssize_t least_ahead(const Learner* job) noexcept nogil:
    """Rows that must be scored ahead at a time to be worth a copy of the weights."""
    cdef Py_ssize_t n = job.plan.rows.n, width = job.plan.rows.d
    if job.plan.rows.csr:
        width = at(job.plan.rows.indptr, job.plan.rows.wide, n) // n
    return max(LEAST, 32 * room(&job.plan) // (job.plan.K * max(1, width)))


cdef void walk_all(Learner* job, Cursor* c, Ahead* ahead, int threads, double[:, ::1] work) noexcept nogil:
    """All rows. On several threads one walks over what has been scored ahead, while the others score what comes next."""
    cdef Py_ssize_t least = least_ahead(job)
    cdef Py_ssize_t rows = least, rest = least, pause = least, share = rows_to_runs(job, SHARE), p, before, last
    cdef Ahead* now = ahead
    cdef Ahead* next = ahead + 1
    now.first = now.last = 0
    while c.i < job.runs:
        if rest:   # the plain loop, as long as more than an eighth of the rows are mistakes
            before = job.updates
            walk_groups(job, c, min(job.runs, c.i + rows_to_runs(job, rest)), &work[0, 0])
            pause = min(2 * pause, MOST) if 8 * (job.updates - before) > rest else least
            rest = pause if pause > least else 0
            now.first = now.last = c.i
            continue
        last = min(job.runs, now.last + rows_to_runs(job, rows))
        begin_ahead(job, next, now.last, last)
        for p in prange(1 + (last - next.first + share - 1) // share, num_threads=threads, schedule="dynamic", chunksize=1):
            if p == 0:
                walk_unsafe(job, c, now, next, &work[threadid(), 0])
            else:
                look_ahead(job, next, next.first + (p - 1) * share, min(last, next.first + p * share), &work[threadid(), 0])
        if now.last > now.first:
            before = (now.last - now.first) * job.run
            if 16 * now.looks < before:
                rows = min(2 * rows, MOST)
            elif 5 * now.looks > before:
                rest = pause if rows == least and 3 * now.looks > before else 0
                rows = max(least, rows // 2)
        now, next = next, now


def online(X, r, s, W, U, Q, clock, rule, walk, int n_threads):
    """One pass of an online rule, as (4.55), with a step for each row; W is changed; the loss and the number of updates."""
    cdef Learner job
    cdef Ahead ahead[2]
    cdef Cursor c
    cdef Py_ssize_t K = W.shape[0], size, k
    memset(&job, 0, sizeof(Learner))
    job.plan = make_plan(X, K, GROUP, False)
    job.loss, job.rate, job.eta, job.power, job.alpha, job.l1, job.intercept, job.begin = rule
    cdef const int32_t[::1] r_ = r
    cdef const double[::1] s_ = s
    cdef const int64_t[::1] order = walk[0]
    job.r, job.s, job.step = &r_[0], &s_[0], s_.shape[0] > 1
    job.order, job.runs, job.run = &order[0], order.shape[0], walk[1]
    job.averaged, job.lasso, size = len(U) > 0, len(Q) > 0, room(&job.plan)
    laid = [lay_out(&job.plan, A) if len(A) else None for A in (W, -U, Q)]
    small = np.zeros((11, K))
    small[0], small[1] = W[:, 0], -U[:, 0] if len(U) else 0
    cdef double[:, ::1] rows = small
    cdef double[::1] w = laid[0], u = laid[1], q = laid[2]
    cdef Py_ssize_t[::1] which = np.zeros(K + 1, np.intp)
    job.w, job.w0, job.u0, job.a, job.which = &w[0], &rows[0, 0], &rows[1, 0], &rows[2, 0], &which[0]
    job.u, job.q = &u[0] if job.averaged else NULL, &q[0] if job.lasso else NULL
    job.scale, job.product, job.owed = 1, 1, clock[1]
    job.tick = job.seen = clock[0]
    cdef int threads = max(1, n_threads)
    cdef bint still = job.loss <= WINNER and job.alpha == 0   # weights change at mistakes alone
    threads = threads if still else 1
    cdef double[:, ::1] safe = np.empty((2, MOST + job.run if threads > 1 else 1)), then = aligned(2, size if threads > 1 else 1)
    for k in range(2):
        ahead[k].safe, ahead[k].w, ahead[k].w0, ahead[k].norm = &safe[k, 0], &then[k, 0], &rows[3 + 4 * k, 0], &rows[4 + 4 * k, 0]
        ahead[k].moved, ahead[k].terms, ahead[k].rounding = &rows[5 + 4 * k, 0], &rows[6 + 4 * k, 0], 4 * (job.plan.rows.d + 32) * 2.3e-16
    cdef double[:, ::1] work = aligned(threads, 2 * GROUP * K + 16 + GROUP * job.plan.ldw)
    with nogil:
        open_run(&job, &c, 0)
        if not still:
            walk_rows(&job, &c, &work[0, 0])
        elif threads == 1 or least_ahead(&job) > min(MOST, job.plan.rows.n // 4):
            walk_groups(&job, &c, job.runs, &work[0, 0])
        else:
            walk_all(&job, &c, ahead, threads, work)
        advance(&job, job.tick)
        job.total += job.s[0] * log_(job.product)
        if job.lasso:
            clip(&job, 0, size)
    clock[0], clock[1] = job.tick, job.scale * job.owed
    W[:, 0], W[:, 1:] = small[0], job.scale * pick_up(&job.plan, laid[0])
    if job.averaged:
        U[:, 0], U[:, 1:] = job.count * small[0] - small[1], job.mass * pick_up(&job.plan, laid[0]) - pick_up(&job.plan, laid[1])
    if job.lasso:
        Q[:, 1:] = job.scale * pick_up(&job.plan, laid[2])
    return job.total, job.updates
