# Pairs of rows and coordinates one after the other, each seeing the weights that the last one left; for rows see walk.pxi.

cdef inline double dot_row(const Plan* plan, Py_ssize_t t, const double* x, Py_ssize_t k, const double* W) noexcept nogil:
    """w_k' x_t"""
    cdef Py_ssize_t u, end
    cdef double z = 0
    if not plan.rows.csr:
        return dot(x, W + k * plan.ldw, plan.width)
    u, end = at(plan.rows.indptr, plan.rows.wide, t), at(plan.rows.indptr, plan.rows.wide, t + 1)
    for u in range(u, end):
        z += value(plan.rows.data, plan.rows.kind == F32, u) * W[at(plan.rows.indices, plan.rows.wide, u) * plan.K + k]
    return z


cdef inline void add_row(const Plan* plan, Py_ssize_t t, const double* x, Py_ssize_t k, double a, double* W) noexcept nogil:
    """w_k += a x_t"""
    cdef Py_ssize_t u, end
    if not plan.rows.csr:
        axpy(x, a, plan.width, W + k * plan.ldw)
        return
    u, end = at(plan.rows.indptr, plan.rows.wide, t), at(plan.rows.indptr, plan.rows.wide, t + 1)
    for u in range(u, end):
        W[at(plan.rows.indices, plan.rows.wide, u) * plan.K + k] += a * value(plan.rows.data, plan.rows.kind == F32, u)


cdef inline void ask_row(const Plan* plan, Py_ssize_t t) noexcept nogil:
    """Call a dense row into cache: pairs jump about in X, and are known ahead."""
    ask(<const double*>(plan.rows.data + t * plan.rows.row), plan.rows.d)


cdef inline double dot_gap(const double* xu, const double* xv, const double* w, Py_ssize_t d) noexcept nogil:
    """w'(x_v - x_u), both rows in one pass"""
    cdef double[8] z
    cdef double rest = 0
    cdef Py_ssize_t j, i
    for i in range(8):
        z[i] = 0
    for j in range(0, d - 7, 8):
        for i in range(8):
            z[i] += w[j + i] * (xv[j + i] - xu[j + i])
    j = d - d % 8
    if d - j >= 4:
        for i in range(4):
            z[i] += w[j + i] * (xv[j + i] - xu[j + i])
        j += 4
    for i in range(j, d):
        rest += w[i] * (xv[i] - xu[i])
    return (((z[0] + z[4]) + (z[2] + z[6])) + ((z[1] + z[5]) + (z[3] + z[7]))) + rest


cdef inline void add_gap(const double* xu, const double* xv, double a, Py_ssize_t d, double* w) noexcept nogil:
    """w += a (x_u - x_v); sums go through registers, because the compiler cannot know that w is no part of X"""
    cdef double[8] r
    cdef Py_ssize_t j, i
    for j in range(0, d - 7, 8):
        for i in range(8):
            r[i] = w[j + i] + a * (xu[j + i] - xv[j + i])
        for i in range(8):
            w[j + i] = r[i]
    j = d - d % 8
    if d - j >= 4:
        for i in range(4):
            r[i] = w[j + i] + a * (xu[j + i] - xv[j + i])
        for i in range(4):
            w[j + i] = r[i]
        j += 4
    for i in range(j, d):
        w[i] += a * (xu[i] - xv[i])


cdef Py_ssize_t rank_rows(const Plan* plan, const int64_t* pairs, Py_ssize_t count, const double* s, Py_ssize_t step, double eta, int loss,
                          double margin, double width, double* w) noexcept nogil:
    """`rank_pairs` on rows that are read where they are"""
    cdef double[3] values
    cdef double a
    cdef Py_ssize_t t, ahead, updates = 0
    cdef const double* xu
    cdef const double* xv
    for t in range(count):
        xu = <const double*>(plan.rows.data + pairs[2 * t] * plan.rows.row)
        xv = <const double*>(plan.rows.data + pairs[2 * t + 1] * plan.rows.row)
        ahead = min(t + 8, count - 1)
        ask_row(plan, pairs[2 * ahead])
        ask_row(plan, pairs[2 * ahead + 1])
        a = dot_gap(xu, xv, w, plan.rows.d) + margin
        if loss == PAIR_HINGE:
            values[1] = 1 if a > 0 else 0
        else:
            one_pair(loss, a, width, &values[0])
        a = eta * s[t * step] * values[1]
        if a != 0:
            updates += 1
            add_gap(xu, xv, a, plan.rows.d, w)
    return updates


def rank_pairs(X, pairs, s, w, double eta, rule):
    """One pass of the ranking rule (10.49) over (preferred, other) pairs; w is changed; the number of updates."""
    if len(w) != X.shape[1]:
        raise ValueError(f"w has {len(w)} weights, X has {X.shape[1]} columns")
    cdef Plan plan = make_plan(X, 1, 1, False)
    cdef const int64_t[:, ::1] pairs_ = pairs
    cdef const double[::1] s_ = s
    cdef Py_ssize_t step = s_.shape[0] > 1, t, ld = 0, updates = 0, count = pairs_.shape[0]
    cdef int loss = rule[0]
    cdef double margin = rule[1], width = rule[2], a
    cdef double[3] values
    cdef double[::1] w_ = w
    if plan.direct:
        with nogil:
            updates = rank_rows(&plan, &pairs_[0, 0], count, &s_[0], step, eta, loss, margin, width, &w_[0])
        return updates
    laid = lay_out(&plan, np.concatenate([[0.0], w])[None, :])
    buffers = aligned(2, plan.ldw)
    cdef double[::1] weights = laid, row_u = buffers[0], row_v = buffers[1]
    cdef const double* xu
    cdef const double* xv
    cdef Py_ssize_t u, v
    with nogil:
        for t in range(count):
            u, v = pairs_[t, 0], pairs_[t, 1]
            xu, xv = fetch(&plan, u, 1, &row_u[0], &ld), fetch(&plan, v, 1, &row_v[0], &ld)
            a = (dot_row(&plan, v, xv, 0, &weights[0]) - dot_row(&plan, u, xu, 0, &weights[0])) + margin
            if loss != PAIR_LOGISTIC and a <= 0:
                continue
            one_pair(loss, a, width, &values[0])
            a = eta * s_[t * step] * values[1]
            if a != 0:
                updates += 1
                add_row(&plan, u, xu, 0, a, &weights[0])
                add_row(&plan, v, xv, 0, -a, &weights[0])
    w[:] = pick_up(&plan, laid)[0]
    return updates


def coordinate_descent(H, q, l1, w, double tol, int max_iter):
    """Minimise a quadratic model of (10.23) or (10.31) plus an L1 penalty, weight by weight; w is changed; the passes."""
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
