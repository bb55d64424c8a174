# Pairs that somebody gave, which may join any two rows.

cdef inline void one_pair(int loss, double a, double width, double* values) noexcept nogil:
    """values = loss, derivative by a, curvature"""
    cdef double up = a if a > 0 else 0, near, u
    if loss == PAIR_LOGISTIC:
        u = exp_(-abs(a))
        values[0], values[1], values[2] = up + log1p_ratio(u / (2 + u)), (1 if a > 0 else u) / (1 + u), u / ((1 + u) * (1 + u))
    elif loss == PAIR_HUBER:
        near = up if up < width else width
        values[0], values[1], values[2] = near / width * (up - near / 2), near / width, 1 / width if a > 0 and a <= width else 0
    elif loss == PAIR_SQUARED:
        values[0], values[1], values[2] = up * up, 2 * up, 2 if a > 0 else 0
    else:
        values[0], values[1], values[2] = up, 1 if a > 0 else 0, 0


def pair_link(z, pairs, s, rule):
    """Loss over given pairs, and its derivative by the scores: (10.46), (10.48)."""
    cdef const double[::1] z_ = z, s_ = s
    cdef const int64_t[:, ::1] pairs_ = pairs
    cdef int kind = rule[0]
    cdef double margin = rule[1], width = rule[2], loss = 0, active = 0, a
    cdef Py_ssize_t step = s_.shape[0] > 1, t, u, v
    cdef double[3] values
    result = np.zeros(z.shape[0])
    cdef double[::1] e = result
    with nogil:
        for t in range(pairs_.shape[0]):
            u, v = pairs_[t, 0], pairs_[t, 1]
            a = z_[v] - z_[u] + margin
            one_pair(kind, a, width, &values[0])
            loss += s_[t * step] * values[0]
            e[v] += s_[t * step] * values[1]
            e[u] -= s_[t * step] * values[1]
            active += s_[t * step] if (z_[v] >= z_[u] if kind == PAIR_LOGISTIC else a > 0) else 0
    return loss, active, result


def pair_bend(z, u, pairs, s, rule):
    """The second derivative by the scores times a direction's scores u, over given pairs: of (10.46), as used by (10.48)."""
    cdef const double[::1] z_ = z, u_ = u, s_ = s
    cdef const int64_t[:, ::1] pairs_ = pairs
    cdef int kind = rule[0]
    cdef double margin = rule[1], width = rule[2], bend
    cdef Py_ssize_t step = s_.shape[0] > 1, t, i, j
    cdef double[3] values
    result = np.zeros(z.shape[0])
    cdef double[::1] out = result
    with nogil:
        for t in range(pairs_.shape[0]):
            i, j = pairs_[t, 0], pairs_[t, 1]
            one_pair(kind, z_[j] - z_[i] + margin, width, &values[0])
            bend = s_[t * step] * values[2] * (u_[j] - u_[i])
            out[j] += bend
            out[i] -= bend
    return result
