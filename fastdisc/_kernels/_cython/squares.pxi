# Links with a squared error, one score a row. Y gets the derivative of the output by the score, squared: what the curvature is made of
# where the outputs are taken to be linear (Gauss and Newton).

cdef void link_sigmoid(real* Z, const int32_t* r, const real* s, Py_ssize_t m, real* tally, double* Y, real* work) noexcept nogil:
    """z -> e = s (y - r) y (1 - y), with s times half the squared error (10.39), (10.40)"""
    cdef real* loss = work
    cdef real* wrong = work + m
    cdef Py_ssize_t i
    cdef real z, u, v, p, sign, miss
    for i in range(m):
        sign = 1 - 2 * r[i]
        z = sign * Z[i]
        u = exp_nonpositive(-z if z > 0 else z)
        v = 1 / (1 + u)
        p = u * v * v                               # y (1 - y)
        miss = v * (1 if z > 0 else u)              # |y - r|
        loss[i] = s[i] * (miss * miss / 2)
        wrong[i] = s[i] * ((Z[i] > 0) != (r[i] > 0))
        Z[i] = s[i] * sign * miss * p
        if Y != NULL:
            Y[i] = p * p
    tally[LANES] += sum(loss, m)
    tally[2 * LANES] += sum(wrong, m)


cdef void link_linear(real* Z, const int32_t* r, const real* s, Py_ssize_t m, real* tally, double* Y, real* work) noexcept nogil:
    """z -> e = s (z - r'), with s times half the squared error; r' = +1 or -1   (4.1.7)"""
    cdef real* loss = work
    cdef real* wrong = work + m
    cdef Py_ssize_t i
    cdef real miss
    for i in range(m):
        miss = Z[i] - (2 * r[i] - 1)
        loss[i] = s[i] * (miss * miss / 2)
        wrong[i] = s[i] * ((Z[i] > 0) != (r[i] > 0))
        Z[i] = s[i] * miss
        if Y != NULL:
            Y[i] = 1
    tally[LANES] += sum(loss, m)
    tally[2 * LANES] += sum(wrong, m)


cdef void bend_square(int link, const real* Z, real* U, const real* s, Py_ssize_t m) noexcept nogil:
    """u -> c u, c as in the two links"""
    cdef Py_ssize_t i
    cdef real u, p
    for i in range(m):
        u = exp_nonpositive(-Z[i] if Z[i] > 0 else Z[i])
        p = u / ((1 + u) * (1 + u)) if link == SIGMOID_SQUARED else 1
        U[i] *= s[i] * p * p
