# Perceptrons on several threads: one takes the rows in front, while the others score the rows behind those, each its part, with
# weights that are soon out of date. By Cauchy and Schwarz a weight vector that has since moved by D changes the score of a row by
# at most D ||[1 x]||: when the first thread gets there, the rows whose margin is larger are right without another look, and only
# the others are visited, in their order, and scored exactly. D is measured once, and then costs no pass over the weights: when
# a x is added, D^2 grows by 2 a (z - z_then) + a^2 ||x||^2. A bound on all rounding is added. Where mistakes are so frequent that
# many rows need that second look, it is the plain loop for a while.

from libc.math cimport sqrt

cdef extern from "tiles.h" namespace "tiles" nogil:
    void dot4_square(const double* x0, const double* x1, const double* x2, const double* x3, const double* w, Py_ssize_t d, double* z, double* q)

cdef enum:
    LEAST = 1024           # rows that a thread scores ahead, at least and at most
    MOST = 4096
    REST = 32768           # rows of the plain loop before it is tried again whether to score ahead pays, at most

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


cdef double square(const Plan* plan, Py_ssize_t t, const double* x) noexcept nogil:
    """||x_t||^2"""
    return square_row(plan, t, x)


cdef void look_ahead(const Learner* then, const Ahead* ahead, Py_ssize_t i, Py_ssize_t last, double* work) noexcept nogil:
    """How far the weights may move before a row of runs i to last can be a mistake: its margin over ||[1 x]||, squared.

    `then` has the weights of then: the others change meanwhile.
    """
    cdef Py_ssize_t m, j, ld = 0
    cdef Cursor c
    cdef Shelf own = shelves(&then.plan, work)
    cdef double* Z = own.Z
    cdef double* out
    cdef const double* x
    cdef double q[GROUP]
    cdef double a, share = 0.25 if then.loss == WINNER else 1   # two vectors may move
    c.t = c.end = 0
    for i in range(i, last):
        open_run(then, &c, i)
        out = ahead.safe + (i - ahead.first) * then.run
        while c.t < c.end:
            m = min(GROUP, c.end - c.t)
            call(then, c.t, NEXT, m)
            x = fetch(&then.plan, c.t, m, own.x, &ld)
            if one_output(&then.plan):
                Z[0] = Z[1] = Z[2] = Z[3] = then.w0[0]
                dot4_square(x, x + min(1, m - 1) * ld, x + min(2, m - 1) * ld, x + min(3, m - 1) * ld, then.w, then.plan.width, Z, q)
            else:
                score_group(then, c.t, m, x, ld, Z, own.z)
                for j in range(m):
                    q[j] = square(&then.plan, c.t + j, x + j * ld)
            for j in range(m):
                a = margin(then, Z + j, then.r[c.t + j])
                out[j] = share * (a / (1 + q[j])) * a if a > 0 else 0   # in this order: a^2 may overflow
            c.t, out = c.t + m, out + m


cdef double square_gap(const Learner* job, Py_ssize_t k, const double* w, double w0) noexcept nogil:
    """The square of how far the weights of class k are from w, or from 0 where that is NULL"""
    cdef Py_ssize_t i, step = job.plan.K if job.plan.in_place else 1, size = job.plan.rows.d if job.plan.in_place else job.plan.ldw
    cdef Py_ssize_t begin = k if job.plan.in_place else k * job.plan.ldw
    cdef double gap = job.w0[k] - w0, total = gap * gap
    for i in range(size):
        gap = job.w[begin + i * step] - (w[begin + i * step] if w != NULL else 0)
        total += gap * gap
    return total


cdef Learner begin_ahead(const Learner* job, Ahead* ahead, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Remember the weights with which runs first to last are scored ahead: a learner that has those."""
    cdef Learner then = job[0]
    cdef Py_ssize_t k
    ahead.first, ahead.last, ahead.looks = first, last, 0
    memcpy(ahead.w, job.w, weight_size(&job.plan) * sizeof(double))
    for k in range(job.plan.K):
        ahead.w0[k] = job.w0[k]
        ahead.norm[k] = sqrt(square_gap(job, k, NULL, 0))
    then.w, then.w0 = ahead.w, ahead.w0
    return then


cdef void measure(const Learner* job, Ahead* ahead) noexcept nogil:
    """How far the weights have moved since."""
    cdef Py_ssize_t k
    for k in range(job.plan.K):
        ahead.moved[k] = ahead.terms[k] = square_gap(job, k, ahead.w, ahead.w0[k])
    set_limit(job, ahead)


cdef void set_limit(const Learner* job, Ahead* ahead) noexcept nogil:
    cdef Py_ssize_t k
    cdef double far = 0, moved
    for k in range(job.plan.K):
        moved = sqrt(max(ahead.moved[k], 0) + ahead.rounding * ahead.terms[k])
        moved += ahead.rounding * (2 * ahead.norm[k] + moved)
        far = max(far, moved if moved == moved else INFINITY)
    ahead.limit = far * far * (1 + 1e-9)


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


cdef Py_ssize_t least_ahead(const Learner* job) noexcept nogil:
    """Rows that must be scored ahead at a time to be worth a copy of the weights."""
    cdef Py_ssize_t width = mean_row_size(&job.plan)
    return max(LEAST, 32 * weight_size(&job.plan) // (job.plan.K * max(1, width)))


cdef object make_ahead(const Learner* job, Ahead* ahead, int threads):
    """Room for what several threads score ahead; the arrays that hold it."""
    cdef Py_ssize_t K = job.plan.K
    if threads == 1:
        return None
    cdef double[::1] safe = np.empty((threads - 1) * (MOST + job.run)), then = aligned_zeros(1, weight_size(&job.plan))[0]
    cdef double[:, ::1] small = np.zeros((4, K))
    ahead.safe, ahead.w, ahead.w0, ahead.norm = &safe[0], &then[0], &small[0, 0], &small[1, 0]
    ahead.moved, ahead.terms, ahead.rounding = &small[2, 0], &small[3, 0], 4 * (job.plan.rows.d + 32) * 2.3e-16
    return safe, then, small
