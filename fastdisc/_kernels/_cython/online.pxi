# Pairs of rows and coordinates one after the other, each seeing the weights that the last one left; for rows see walk.pxi.

cdef extern from "tiles.h" namespace "tiles" nogil:
    void difference(const double* x, const double* y, Py_ssize_t d, double* z)

cdef extern from "chain.h" namespace "chain" nogil:
    double pair_slope(int loss, double a, double width)
    Py_ssize_t learn_gaps(int loss, double margin, double width, Py_ssize_t d, const double* g, Py_ssize_t m, const double* step, double* w)


cdef inline double dot_row(const Plan* plan, Py_ssize_t t, const double* x, Py_ssize_t k, const double* W) noexcept nogil:
    """w_k' x_t"""
    cdef Py_ssize_t u, end
    cdef double z = 0
    if not plan.rows.csr:
        return dot(x, W + k * plan.ldw, plan.width)
    u, end = index_at(plan.rows.indptr, plan.rows.index64, t), index_at(plan.rows.indptr, plan.rows.index64, t + 1)
    for u in range(u, end):
        z += value_at(plan.rows.data, plan.rows.kind == F32, u) * W[index_at(plan.rows.indices, plan.rows.index64, u) * plan.K + k]
    return z


cdef inline void add_row(const Plan* plan, Py_ssize_t t, const double* x, Py_ssize_t k, double a, double* W) noexcept nogil:
    """w_k += a x_t"""
    cdef Py_ssize_t u, end
    if not plan.rows.csr:
        axpy(x, a, plan.width, W + k * plan.ldw)
        return
    u, end = index_at(plan.rows.indptr, plan.rows.index64, t), index_at(plan.rows.indptr, plan.rows.index64, t + 1)
    for u in range(u, end):
        W[index_at(plan.rows.indices, plan.rows.index64, u) * plan.K + k] += a * value_at(plan.rows.data, plan.rows.kind == F32, u)


cdef inline void prefetch_row(const Plan* plan, Py_ssize_t t) noexcept nogil:
    """Call a dense row into cache: pairs jump about in X, and are known ahead."""
    prefetch_near(<const double*>(plan.rows.data + t * plan.rows.row), plan.rows.d)


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
    room_ = aligned_zeros(1 if plan.rows.csr else GAPS + 3, plan.ldw)   # w, two rows, differences
    cdef double[:, ::1] work = room_
    room_[0, :d] = w
    with nogil:
        if plan.rows.csr:
            updates = rank_csr(&plan, &pairs_[0, 0], count, &s_[0], step, eta, loss, margin, width, &work[0, 0])
        else:
            updates = rank_dense(&plan, &pairs_[0, 0], count, &s_[0], step, eta, loss, margin, width, &work[0, 0], &work[3, 0], &work[1, 0])
    w[:] = room_[0, :d]
    return updates


def coordinate_descent(H, q, l1, w, double tol, int max_iter):
    """Coordinate descent on a quadratic model of (10.23) or (10.31) with an L1 penalty."""
    cdef const double[:, ::1] H_ = H
    cdef const double[::1] q_ = q, l1_ = l1
    cdef double[::1] w_ = w
    cdef Py_ssize_t n = w_.shape[0], i, j
    cdef int passes = 0
    cdef bint full = True
    cdef double old, z, new, largest
    cdef double[::1] slope = np.asarray(H) @ w - q   # H w - q, kept up to date
    with nogil:
        while passes < max_iter:
            passes += 1
            largest = 0
            for j in range(n):
                old = w_[j]
                if H_[j, j] <= 0 or not (full or old != 0):
                    continue
                z = H_[j, j] * old - slope[j]
                new = (z - l1_[j] if z > l1_[j] else z + l1_[j] if z < -l1_[j] else 0) / H_[j, j]
                if new != old:
                    w_[j] = new
                    largest = max(largest, H_[j, j] * (new - old) * (new - old))
                    for i in range(n):
                        slope[i] += (new - old) * H_[j, i]
            if largest <= tol:
                if full:
                    break
                full = True        # the weights that are not 0 are settled: ask all of them once more
            else:
                full = False
    return passes
