# Pairs of rows and coordinates one after the other, each seeing the weights that the last one left; for rows see walk.pxi.

cdef extern from "tiles.h" namespace "tiles" nogil:
    void difference(const double* x, const double* y, Py_ssize_t d, double* z)

cdef extern from "chain.h" namespace "chain" nogil:
    double pair_slope(int loss, double a, double width)
    Py_ssize_t learn_gaps(int loss, double margin, double width, Py_ssize_t d, const double* g, Py_ssize_t m, const double* step, double* w)


cdef enum:
    GAPS = 32   # that are learned from at a time: their differences stay in cache


cdef Py_ssize_t rank_dense(const Plan* plan, const int64_t* pairs, Py_ssize_t count, const double* s, Py_ssize_t step, double eta, int loss,
                           double margin, double width, double* w, double* gaps, double* rows) noexcept nogil:
    """`rank_pairs` on dense rows: differences of GAPS at a time, (GAPS, ldw) padded with zeros, as w is; rows: room for two"""
    cdef double[GAPS] steps
    cdef const double* xu
    cdef const double* xv
    cdef Py_ssize_t t, i, m, later, ld = 0, updates = 0
    for t in range(0, count, 32):   # Cython wants a literal step: GAPS
        m = min(GAPS, count - t)
        for i in range(t, t + m):
            if plan.direct:
                later = min(i + PREFETCH_DISTANCE, count - 1)
                prefetch_row(plan, pairs[2 * later])
                prefetch_row(plan, pairs[2 * later + 1])
            xu, xv = fetch(plan, pairs[2 * i], 1, rows, &ld), fetch(plan, pairs[2 * i + 1], 1, rows + plan.ldw, &ld)
            difference(xu, xv, plan.rows.d, gaps + (i - t) * plan.ldw)
            steps[i - t] = eta * s[i * step]
        updates += learn_gaps(loss, margin, width, plan.ldw, gaps, m, steps, w)
    return updates


cdef Py_ssize_t rank_csr(const Plan* plan, const int64_t* pairs, Py_ssize_t count, const double* s, Py_ssize_t step, double eta, int loss,
                         double margin, double width, double* w) noexcept nogil:
    cdef double a
    cdef Py_ssize_t t, updates = 0
    for t in range(count):
        a = margin - (dot_row(plan, pairs[2 * t], NULL, 0, w) - dot_row(plan, pairs[2 * t + 1], NULL, 0, w))
        a = eta * s[t * step] * pair_slope(loss, a, width)
        if a != 0:
            updates += 1
            add_row(plan, pairs[2 * t], NULL, 0, a, w)
            add_row(plan, pairs[2 * t + 1], NULL, 0, -a, w)
    return updates


def online_pairs(X, pairs, s, w, double eta, rule):
    """One epoch of the ranking update (10.49) over given (preferred, other) pairs."""
    if len(w) != X.shape[1]:
        raise ValueError(f"w has {len(w)} weights, X has {X.shape[1]} columns")
    cdef Plan plan = make_plan(X, 1, 1, False)
    cdef const int64_t[:, ::1] pairs_ = pairs
    cdef const double[::1] s_ = s
    cdef Py_ssize_t step = s_.shape[0] > 1, updates, count = pairs_.shape[0], d = len(w)
    cdef int loss = rule[0]
    cdef double margin = rule[1], width = rule[2]
    room_ = aligned_zeros(1 if plan.in_place else GAPS + 3, plan.ldw)   # w, two rows, differences
    cdef double[:, ::1] work = room_
    room_[0, :d] = w
    with nogil:
        if plan.in_place:
            updates = rank_csr(&plan, &pairs_[0, 0], count, &s_[0], step, eta, loss, margin, width, &work[0, 0])
        else:
            updates = rank_dense(&plan, &pairs_[0, 0], count, &s_[0], step, eta, loss, margin, width, &work[0, 0], &work[3, 0], &work[1, 0])
    w[:] = room_[0, :d]
    return updates
