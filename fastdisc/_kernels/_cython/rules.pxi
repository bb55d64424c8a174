# What an online rule does with one row: losses of margins, step lengths, penalties and averages.
#
# Both would touch every weight at every row, so both are lazy. Weights are scale times w: an L2 penalty changes the scale alone.
# The sum of the weights after each row is mass w - u: `mass` adds up the scales, and u takes back what a change of w would add
# for the rows before it. What the L1 penalty takes of a weight is taken when the weight is next read: `owed` is what it has come
# to in all, and q what each weight has paid (Tsuruoka's cumulative penalty), both in units of w.

cdef extern from "chain.h" namespace "chain" nogil:
    enum Loss "chain::Loss":
        PERCEPTRON "chain::PERCEPTRON"
        WINNER "chain::WINNER"
        HINGE "chain::HINGE"
        LOG "chain::LOG"
    enum:
        BLOCK "chain::BLOCK"
    struct Pace:   # arrays there, which are as good as pointers here
        double* step
        double* scale
        double* lift
        double* mass
        double* count
        double* value
        double* other
        double* a
    double slope(int loss, double m, double* value, double* other)

cdef enum Rate:
    CONSTANT
    OPTIMAL
    INVSCALING

cdef double SMALLEST = 1e-4          # as in fastdisc/_kernels/__init__.py
cdef double LEAST_PRODUCT = 1e-150   # of sigmoids, none of them below 1e-152

cdef struct Learner:
    Plan plan
    Pace pace
    int loss, rate
    double eta, power, alpha, l1, begin
    bint intercept, averaged, lasso
    const int32_t* r
    const double* s
    Py_ssize_t step         # of s: 0 where one weight serves all rows
    const int64_t* order    # of the runs
    Py_ssize_t run, runs
    double* w               # in the layout's own order
    double* w0              # (K) intercepts, which are not scaled
    double* u               # like w
    double* u0
    double* q               # like w
    double* a               # (K) the last row's step for each class, 0 where it made none
    Py_ssize_t* which       # (K) the classes where it made one
    Py_ssize_t changes      # their number
    double scale, mass, count, tick, seen, owed   # tick: the rows so far, those without weight not counted
    double toll             # what the last row that was paced adds to the L1 penalty
    double total, product   # the sum of losses; the product of sigmoids whose logarithm is still to be taken off
    Py_ssize_t updates
    bint often              # whether mistakes were, of late


cdef inline double multiplied(Learner* job, double other) noexcept nogil:
    """-log(other), or 0 and `other` in the product: a logarithm for many rows, if all weigh the same"""
    cdef double product = job.product * other
    if job.step or product < LEAST_PRODUCT:
        job.product = 1
        return log_of_1_or_more(1 / product)
    job.product = product
    return 0


cdef Py_ssize_t rival(const double* z, Py_ssize_t ldz, Py_ssize_t K, Py_ssize_t own) noexcept nogil:
    """The best class other than one's own; the first of equals."""
    cdef Py_ssize_t k, best = 1 if own == 0 else 0
    cdef double top = z[best * ldz]
    cdef bint more
    for k in range(K):
        more = (z[k * ldz] > top) & (k != own)
        best = k if more else best
        top = z[k * ldz] if more else top
    return best


cdef inline Py_ssize_t learn_scores(Learner* job, const double* z, Py_ssize_t own, double weight) noexcept nogil:
    """z -> loss, and its derivative by z in job.a; the number of updates"""
    cdef Py_ssize_t K = job.plan.K, k, count = 0
    cdef double y, value, other = 1, loss = 0
    if job.loss == WINNER:
        k = rival(z, GROUP, K, own)
        if not z[own * GROUP] > z[k * GROUP]:
            job.a[own], job.a[k], job.which[0], job.which[1] = -1, 1, own, k
            loss, count = z[k * GROUP] - z[own * GROUP], 2
        job.updates += count // 2
    else:
        for k in range(K):
            y = 2.0 * (own == (k if K > 1 else 1)) - 1
            job.a[k] = y * slope(job.loss, y * z[k * GROUP], &value, &other)
            job.which[count] = k
            count += job.a[k] != 0
            loss += value + multiplied(job, other)
        job.updates += count
    job.total += weight * loss
    job.changes = count
    return count


cdef inline void advance(Learner* job, double tick) noexcept nogil:
    """The rows up to the tick-th have passed with the weights as they are."""
    cdef double rows = tick - max(job.seen, job.begin - 1)
    if job.averaged and rows > 0:
        job.mass += rows * job.scale
        job.count += rows
    job.seen = tick


cdef void fold(Learner* job) noexcept nogil:
    """The scale into the weights, before it gets too small."""
    cdef Py_ssize_t i
    for i in range(weight_size(&job.plan)):
        if job.averaged:
            job.u[i] -= job.mass * job.w[i]
        if job.lasso:
            job.q[i] *= job.scale
        job.w[i] *= job.scale
    job.owed *= job.scale
    job.mass, job.scale = 0, 1


cdef inline void add_rows(const Learner* job, Py_ssize_t t, const double* x, double factor, double* W) noexcept nogil:
    """w_k += factor a_k x_t, for each class that made a step"""
    cdef const Plan* plan = &job.plan
    cdef const double* a = job.a
    cdef Py_ssize_t K = plan.K, u, k
    if not plan.in_place or job.changes < K:
        for u in range(job.changes):
            k = job.which[u]
            add_row(plan, t, x, k, factor * a[k], W)
    else:
        add_row_to_all(plan, t, x, factor, a, W)


cdef inline void clip(Learner* job, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    """Weights lo to hi pay what they owe of the L1 penalty: towards 0, and not beyond."""
    cdef Py_ssize_t i
    cdef double old, new
    for i in range(lo, hi):
        old = job.w[i]
        new = max(0, old - (job.owed + job.q[i])) if old > 0 else min(0, old + (job.owed - job.q[i]))
        job.q[i] += new - old
        job.w[i] = new
        if job.averaged:
            job.u[i] += job.mass * (new - old)


cdef void pay(Learner* job, Py_ssize_t t) noexcept nogil:
    """The weights that row t reads pay what they owe."""
    cdef Py_ssize_t K = job.plan.K, u, j
    if not job.plan.in_place:
        clip(job, 0, weight_size(&job.plan))
        return
    for u in range(row_start(&job.plan.rows.csr, t), row_start(&job.plan.rows.csr, t + 1)):
        j = stored_column(&job.plan.rows.csr, u) * K
        clip(job, j, j + K)


cdef inline double step_length(const Learner* job, double tick) noexcept nogil:
    if job.rate == OPTIMAL:
        return job.eta / (job.power + tick - 1)
    return job.eta / tick ** job.power if job.rate == INVSCALING else job.eta


cdef Py_ssize_t pace(Learner* job, Py_ssize_t t, Py_ssize_t m) noexcept nogil:
    """Steps, scales and sums of rows t to t + m, BLOCK at most; the number of rows, fewer where the scale is to be folded.

    What goes from row to row is not kept in job meanwhile: each row would wait for the last one's on its way through memory.
    """
    cdef Pace* to = &job.pace
    cdef Py_ssize_t i
    cdef double weight, eta = 0, first = job.tick, tick = first, scale = job.scale, lift = 1 / scale, mass, count
    advance(job, tick)
    mass, count = job.mass, job.count
    for i in range(m):
        weight = job.s[(t + i) * job.step]
        to.step[i], to.scale[i], to.lift[i] = 0, scale, lift
        if weight == 0:
            continue
        if job.averaged and tick > first and tick >= job.begin:   # the row before has passed
            mass += scale
            count += 1
        tick += 1
        eta = step_length(job, tick)
        to.step[i], to.mass[i], to.count[i] = eta * weight, mass, count
        if job.alpha != 0:
            scale *= max(0.0, 1 - eta * job.alpha * (1 - job.l1))
            if scale < SMALLEST:
                to.lift[i], m = 0, i + 1
                break
            to.lift[i] = lift = 1 / scale
    job.tick, job.seen, job.scale, job.mass, job.count = tick, max(first, tick - 1), scale, mass, count
    job.toll = eta * job.alpha * job.l1
    return m


cdef bint learn(Learner* job, Py_ssize_t t, const double* x, const double* z) noexcept nogil:
    """The step of row t, whose scores are z (K, GROUP); whether a weight changed by more than a penalty   (4.55)"""
    cdef Py_ssize_t K = job.plan.K, k, i, changes
    cdef double weight = job.s[t * job.step], lift, mass
    for k in range(K):
        job.total += z[k * GROUP] - z[k * GROUP]   # NaN if one is not finite
    if weight == 0:
        return False
    changes = learn_scores(job, z, job.r[t], weight)
    if changes == 0 and job.alpha == 0:
        job.tick += 1
        return False
    pace(job, t, 1)
    lift, mass = job.pace.lift[0], job.pace.mass[0]
    if lift == 0:
        fold(job)
        lift, mass = 1, 0
    for i in range(changes):
        k = job.which[i]
        job.a[k] *= -job.pace.step[0]
        if job.intercept:
            job.w0[k] += job.a[k]
            job.u0[k] += job.pace.count[0] * job.a[k]
    if changes:
        add_rows(job, t, x, lift, job.w)
        if job.averaged:
            add_rows(job, t, x, lift * mass, job.u)
    if job.lasso:
        job.owed += job.toll / job.scale
        pay(job, t)
    return changes > 0
