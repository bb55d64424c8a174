# Perceptrons on several threads: speculative scoring.
#
# One thread learns rows, while the others score the rows after those, a part each, with weights
# that are soon out of date. By Cauchy and Schwarz a weight vector that has since moved by D
# changes the score of a row by at most D ||[1 x]||: a row whose margin is larger is still
# classified correctly, and only the others are scored again, in their order. D is computed once,
# and then costs no pass over the weights: if a x is added, D^2 grows by 2 a (z - z_then) + a^2
# ||x||^2. A bound on all rounding errors is added. While mistakes are so frequent that many rows
# must be scored again, rows are learned sequentially.

cdef extern from "tiles.h" namespace "tiles" nogil:
    void dot4_square(
        const double* x0, const double* x1, const double* x2, const double* x3, const double* w,
        Py_ssize_t d, double* z, double* q)

cdef enum:
    MIN_SPECULATED_ROWS = 1024    # of a thread at a time
    MAX_SPECULATED_ROWS = 4096
    MAX_SEQUENTIAL_ROWS = 32768   # until speculation is tried again

cdef struct Speculation:
    Py_ssize_t first, last   # the runs that have been scored
    double* safe             # of each row: the squared distance up to which it stays correct
    double* w                # the weights at the time, in the layout's own order
    double* w0               # (K,)
    double* norm             # (K,) of these weights
    double* moved            # (K,) squared distance of the weights since then, and the size of the
    double* terms            # terms of which it has been summed
    double distance          # the square of the largest, rounding included
    double rounding          # error of a score, relative to ||w|| ||[1 x]||
    Py_ssize_t rescored      # rows


cdef Speculation make_speculation(
    Arena* arena, const Epoch* epoch, int threads
) noexcept nogil:
    cdef Speculation spec
    cdef Py_ssize_t K = epoch.plan.K
    memset(&spec, 0, sizeof(Speculation))
    if threads > 1:
        spec.safe = arena_doubles(arena, (threads - 1) * (MAX_SPECULATED_ROWS + epoch.run))
        spec.w = arena_doubles(arena, weight_size(&epoch.plan))
        spec.w0, spec.norm = arena_doubles(arena, K), arena_doubles(arena, K)
        spec.moved, spec.terms = arena_doubles(arena, K), arena_doubles(arena, K)
        spec.rounding = 4 * (epoch.plan.rows.d + 32) * 2.3e-16
    return spec


cdef void score_speculatively(
    const Epoch* then, const Speculation* spec, Py_ssize_t i, Py_ssize_t last,
    const OnlineWorkspace* work
) noexcept nogil:
    """The squared distance up to which each row of runs i to last stays correct: its margin over
    ||[1 x]||, squared. `then` has a copy of the weights: the others change meanwhile."""
    cdef const Plan* plan = &then.plan
    cdef Py_ssize_t m, j, ld = 0
    cdef Cursor c
    cdef double* Z = work.Z
    cdef double* safe
    cdef const double* x
    cdef double q[GROUP_ROWS]
    cdef double a, share = 1
    if then.loss == MarginLoss.PERCEPTRON_MULTICLASS:
        share = 0.25   # two vectors may move
    c.t = c.end = 0
    for i in range(i, last):
        open_run(then, &c, i)
        safe = spec.safe + (i - spec.first) * then.run
        while c.t < c.end:
            m = min(GROUP_ROWS, c.end - c.t)
            x = fetch(plan, c.t, m, work.x, &ld)
            if single_dense(plan):
                Z[0] = Z[1] = Z[2] = Z[3] = then.w0[0]
                dot4_square(x, x + min(1, m - 1) * ld, x + min(2, m - 1) * ld,
                            x + min(3, m - 1) * ld, then.w, plan.width, Z, q)
            else:
                score_group(then, c.t, m, x, ld, work)
                for j in range(m):
                    q[j] = squared_norm(plan, c.t + j, x + j * ld)
            for j in range(m):   # in this order: a^2 may overflow
                a = margin_of_row(then, Z + j, then.r[c.t + j])
                safe[j] = share * (a / (1 + q[j])) * a if a > 0 else 0
            c.t, safe = c.t + m, safe + m


cdef Epoch start_speculation(
    const Epoch* epoch, Speculation* spec, Py_ssize_t first, Py_ssize_t last
) noexcept nogil:
    """Copy the weights with which runs first to last are scored: an epoch that has those."""
    cdef Epoch then = epoch[0]
    cdef Py_ssize_t k
    cdef double total
    spec.first, spec.last, spec.rescored = first, last, 0
    memcpy(spec.w, epoch.w, weight_size(&epoch.plan) * sizeof(double))
    for k in range(epoch.plan.K):
        spec.w0[k] = epoch.w0[k]
        total = epoch.w0[k] * epoch.w0[k] + squared_distance(&epoch.plan, k, epoch.w, NULL)
        spec.norm[k] = sqrt(total)
    then.w, then.w0 = spec.w, spec.w0
    return then


cdef void measure_distance(const Epoch* epoch, Speculation* spec) noexcept nogil:
    """How far the weights have moved since they were copied."""
    cdef Py_ssize_t k
    cdef double gap
    for k in range(epoch.plan.K):
        gap = epoch.w0[k] - spec.w0[k]
        spec.moved[k] = gap * gap + squared_distance(&epoch.plan, k, epoch.w, spec.w)
        spec.terms[k] = spec.moved[k]
    bound_distance(epoch, spec)


cdef void bound_distance(const Epoch* epoch, Speculation* spec) noexcept nogil:
    cdef Py_ssize_t k
    cdef double largest = 0, moved
    for k in range(epoch.plan.K):
        moved = sqrt(max(spec.moved[k], 0) + spec.rounding * spec.terms[k])
        moved += spec.rounding * (2 * spec.norm[k] + moved)
        largest = max(largest, moved if moved == moved else INFINITY)
    spec.distance = largest * largest * (1 + 1e-9)


cdef void add_to_distance(
    const Epoch* epoch, Speculation* spec, Py_ssize_t t, const double* x, const double* z
) noexcept nogil:
    """Row t, whose scores were z, has moved the weights by epoch.a x."""
    cdef Py_ssize_t k, i
    cdef double n2 = 1 + squared_norm(&epoch.plan, t, x), a, then, length
    for i in range(epoch.changes):
        k = epoch.changed[i]
        a = epoch.a[k]
        if a != 0:
            then = dot_row(&epoch.plan, t, x, k, spec.w) + spec.w0[k]
            length = spec.norm[k] + sqrt(max(spec.moved[k], 0))
            spec.terms[k] += 2 * abs(a) * length * sqrt(n2) + a * a * n2
            spec.moved[k] += 2 * a * (z[k * GROUP_ROWS] - then) + a * a * n2
    bound_distance(epoch, spec)


cdef void prefetch_unsafe(
    const Epoch* epoch, const Speculation* spec, Py_ssize_t i
) noexcept nogil:
    """Prefetch the rows of run i that must be scored again: another core has read them."""
    cdef Py_ssize_t t, begin, width = prefetchable_bytes(&epoch.plan)
    cdef const double* safe
    if i >= spec.last or width == 0:
        return
    begin = epoch.order[i] * epoch.run
    safe = spec.safe + (i - spec.first) * epoch.run - begin
    for t in range(begin, min(epoch.plan.rows.n, begin + epoch.run)):
        if not safe[t] > spec.distance:
            prefetch_bytes(epoch.plan.rows.data + t * epoch.plan.rows.row, width)


cdef void learn_speculated(
    Epoch* epoch, Cursor* c, Speculation* spec, const OnlineWorkspace* work
) noexcept nogil:
    """Learn the rows that were scored speculatively: those that may be mistakes."""
    cdef Py_ssize_t begin, ld = 0
    cdef const double* safe
    cdef const double* x
    measure_distance(epoch, spec)
    prefetch_unsafe(epoch, spec, c.i)
    prefetch_unsafe(epoch, spec, c.i + 1)
    while c.i < spec.last:
        if c.t == c.end:
            open_run(epoch, c, c.i + 1)
            prefetch_unsafe(epoch, spec, c.i + 1)
            continue
        safe, begin = spec.safe + (c.i - spec.first - epoch.order[c.i]) * epoch.run, c.t
        while c.t < c.end and safe[c.t] > spec.distance:
            c.t += 1
        epoch.clock += c.t - begin
        if epoch.step:
            for begin in range(begin, c.t):
                epoch.clock -= epoch.s[begin] == 0
        if c.t == c.end:
            continue
        x = fetch(&epoch.plan, c.t, 1, work.x, &ld)
        score_group(epoch, c.t, 1, x, ld, work)
        spec.rescored += 1
        if learn_row(epoch, c.t, x, work.Z):
            add_to_distance(epoch, spec, c.t, x, work.Z)
        c.t += 1


cdef Py_ssize_t min_speculated_rows(const Epoch* epoch) noexcept nogil:
    """Rows of a thread at a time that are worth a copy of the weights."""
    cdef Py_ssize_t size = epoch.plan.K * max(1, mean_row_size(&epoch.plan))
    return max(MIN_SPECULATED_ROWS, 32 * weight_size(&epoch.plan) // size)


cdef void learn_while_scoring(
    Epoch* epoch, Cursor* c, Speculation* spec, Py_ssize_t part, int threads,
    const OnlineWorkspace* works
) noexcept nogil:
    """Learn `part` runs while the other threads score the runs after those, `part` each; then
    learn these"""
    cdef Py_ssize_t runs = epoch.runs, last = c.i + part, p
    cdef Epoch then = start_speculation(
        epoch, spec, min(runs, last), min(runs, last + (threads - 1) * part))
    for p in prange(threads, num_threads=threads, schedule="static", chunksize=1):
        if p == 0:
            learn_from_mistakes(epoch, c, spec.first, &works[0])
        else:
            score_speculatively(&then, spec, min(runs, last + (p - 1) * part),
                                min(runs, last + p * part), &works[p])
    learn_speculated(epoch, c, spec, &works[0])


cdef void learn_with_speculation(
    Epoch* epoch, Cursor* c, Speculation* spec, int threads, const OnlineWorkspace* works
) noexcept nogil:
    """Learn all rows on several threads; what is done next depends on the mistakes so far."""
    cdef Py_ssize_t min_rows = min_speculated_rows(epoch), rows = min_rows, before, scored
    cdef Py_ssize_t sequential = min_rows, pause = min_rows   # rows to learn sequentially
    # 500k x 28, 1.4% mistakes: 8 ms sequentially, 10 on two threads.
    cdef Py_ssize_t max_share = 80 if single_dense(&epoch.plan) else 8
    while c.i < epoch.runs:
        if sequential:   # as long as more than one row in `max_share` is a mistake
            before = epoch.updates
            learn_from_mistakes(
                epoch, c, min(epoch.runs, c.i + rows_to_runs(epoch, sequential)), &works[0])
            if max_share * (epoch.updates - before) > sequential:
                pause = min(2 * pause, MAX_SEQUENTIAL_ROWS)
            else:
                pause = min_rows
            sequential = pause if pause > min_rows else 0
            continue
        learn_while_scoring(epoch, c, spec, rows_to_runs(epoch, rows), threads, works)
        scored = (spec.last - spec.first) * epoch.run
        if 64 * spec.rescored < scored:
            rows = min(2 * rows, MAX_SPECULATED_ROWS)
        elif 16 * spec.rescored > scored:
            sequential = pause if rows == min_rows and 3 * spec.rescored > scored else 0
            rows = max(min_rows, rows // 2)
