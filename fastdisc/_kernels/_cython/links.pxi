# Links: from scores to errors, losses and curvatures, one function a loss. Plain loops over a block that the compiler turns
# into SIMD code. exp and log are short polynomials (interpolated at Chebyshev nodes): a call of libm's exp for each row takes
# longer than all the rest of the sweep at d = 28, and these give the same bits with every compiler and on every platform.

cdef inline double as_double(int64_t a) noexcept nogil:
    cdef double x
    memcpy(&x, &a, 8)
    return x


cdef inline int64_t double_bits(double x) noexcept nogil:
    cdef int64_t a
    memcpy(&a, &x, 8)
    return a


cdef inline float as_float(int32_t a) noexcept nogil:
    cdef float x
    memcpy(&x, &a, 4)
    return x


cdef inline int32_t float_bits(float x) noexcept nogil:
    cdef int32_t a
    memcpy(&a, &x, 4)
    return a


cdef inline real exp_nonpositive(real x) noexcept nogil:
    """exp(x) for x <= 0 to 1.5 ulp; 0 below the smallest normal number; NaN stays NaN.

    x = n log 2 + r with |r| <= log(2) / 2; n is rounded, and its bits are had, by adding 1.5 * 2^(digits of the fraction).
    """
    cdef double t, n, r, q
    cdef float tf, nf, rf, qf
    if real is double:
        t = x * 1.4426950408889634 + 6755399441055744.0
        n = t - 6755399441055744.0
        r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
        # pairs of terms first: the chain of dependent operations is half as long as Horner's
        q = (((2.510038549551032e-08 * r + 2.7620088445409746e-07) * (r * r) + (2.7557268459997064e-06 * r + 2.4801521295954376e-05))
             * ((r * r) * (r * r))
             + ((1.9841269863053618e-04 * r + 1.3888888917213717e-03) * (r * r) + (8.333333333330062e-03 * r + 4.166666666662413e-02)))
        q = q * (r * r) + (0.16666666666666669 * r + 0.5)
        return as_double(<int64_t>(<uint64_t>double_bits(q * (r * r) + r + 1) + (<uint64_t>double_bits(t) << 52))) if not x < -708 else 0
    else:
        tf = x * <float>1.44269504 + <float>12582912.0
        nf = tf - <float>12582912.0
        rf = (x - nf * <float>0.693145752) - nf * <float>1.42860677e-6
        qf = ((<float>1.3926183587713494e-03 * rf + <float>8.363179052722578e-03) * (rf * rf)
              + (<float>4.1666554617204574e-02 * rf + <float>1.6666576989698775e-01)) * rf + <float>0.5
        return as_float(<int32_t>(<uint32_t>float_bits(qf * (rf * rf) + rf + 1) + (<uint32_t>float_bits(tf) << 23))) if not x < -87 else 0


cdef inline real log1p_ratio(real f) noexcept nogil:
    """log(1 + u) for 0 <= u <= 1 to 2 ulp, from f = u / (2 + u): 2 atanh(f)"""
    cdef double g, q
    cdef float gf, qf
    if real is double:
        g = f * f
        q = (((0.1687070066109721 * g + 0.10322669270499082) * (g * g) + (0.135023424717571 * g + 0.15373274876358003)) * (g * g)
             + (0.18182261108419745 * g + 0.22222212557929713)) * (g * g) + (0.2857142867666099 * g + 0.39999999999560126)
        return 2 * f + f * g * (q * g + 0.6666666666666697)
    else:
        gf = f * f
        qf = (<float>0.2685149802283715 * gf + <float>0.2823661980531048) * (gf * gf) + (<float>0.40007560644911205 * gf + <float>0.6666664033669923)
        return 2 * f + f * gf * qf


cdef inline real log_of_1_or_more(real x) noexcept nogil:
    """log(x) for x >= 1: the exponent's share and log1p of the fraction."""
    cdef int64_t a
    cdef int32_t b
    cdef real m
    if real is double:
        a = double_bits(x)
        m = as_double((a & <int64_t>0xFFFFFFFFFFFFF) | <int64_t>0x3FF0000000000000)
        return ((as_double((a >> 52) | <int64_t>0x4330000000000000) - 4503599627371519.0) * 0.69314718055994531
                + log1p_ratio((m - 1) / (m + 1)))
    else:
        b = float_bits(x)
        m = as_float((b & 0x7FFFFF) | 0x3F800000)
        return ((as_float((b >> 23) | 0x4B000000) - <float>8388735.0) * <float>0.693147181
                + log1p_ratio((m - 1) / (m + 1)))


cdef enum:
    LANES = 16       # sums of a tally that run side by side; rows i, i + LANES, ... of a block share one
    TALLY = 3 * LANES
    PERIOD = 64      # rows of a lane after which a tally is settled: the product is below 2^80 then, which fits in float32


# How the rows of a block weigh: each as it likes; all alike; all alike but for those that weigh nothing.
cdef enum Weights:
    OWN
    EQUAL
    EQUAL_OR_NONE


cdef inline void logistic_row(real* Z, int32_t r, real s, real* tally, Weights weights) noexcept nogil:
    cdef real target = r, chosen = 1 if Z[0] > 0 else 0, sign = 1 - 2 * target, z, u, v
    cdef real present = s if weights == OWN else 1 if weights == EQUAL or s > 0 else 0
    z = sign * Z[0]                                 # the score of the other class; e = s sign sigmoid(z)
    u = exp_nonpositive(-abs(z))
    if weights != OWN:
        # log(1 + u) is taken of a product of many 1 + u, kept less 1 so that small u do not drown: a third of the link's time
        v = 1 / (1 + u)
        tally[0] = (tally[0] + present * u) + tally[0] * (present * u)
        tally[LANES] += present * (z if z > 0 else 0)
    else:
        v = 1 / ((1 + u) * (2 + u))                 # one division for both quotients
        tally[LANES] += s * (log1p_ratio(u * (1 + u) * v) + (z if z > 0 else 0))
        v *= 2 + u
    tally[2 * LANES] += present * (chosen - target) * (chosen - target)
    Z[0] = s * sign * v * (1 if z > 0 else u)


cdef inline void logistic_rows(real* Z, const int32_t* r, const real* s, Py_ssize_t m, real* tally, Weights weights) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(0, m - 15, 16):   # Cython wants a literal step: LANES
        for j in range(LANES):
            logistic_row(Z + i + j, r[i + j], s[i + j], tally + j, weights)
    for i in range(m - m % LANES, m):
        logistic_row(Z + i, r[i], s[i], tally + i % LANES, weights)


cdef void link_logistic(real* Z, const int32_t* r, const real* s, Weights weights, Py_ssize_t m, real* tally) noexcept nogil:
    """z -> e = s (y - r), with s times the cross-entropy (10.23)"""
    if weights == EQUAL:
        logistic_rows(Z, r, s, m, tally, EQUAL)
    elif weights == EQUAL_OR_NONE:
        logistic_rows(Z, r, s, m, tally, EQUAL_OR_NONE)
    else:
        logistic_rows(Z, r, s, m, tally, OWN)


cdef void settle(real* tally, double s, double* out) noexcept nogil:
    """Add a tally to out = loss, errors, times the weight s of all its rows, and begin a new one."""
    cdef Py_ssize_t i
    for i in range(LANES):
        tally[LANES + i] += log_of_1_or_more(1 + tally[i]) if tally[i] > 1 else log1p_ratio(tally[i] / (2 + tally[i]))
    out[0] += s * sum(tally + LANES, LANES)
    out[1] += s * sum(tally + 2 * LANES, LANES)
    memset(tally, 0, TALLY * sizeof(real))


cdef void softmax_rows(real* Z, Py_ssize_t ldz, Py_ssize_t K, Py_ssize_t m, real* top, real* total, real* best) noexcept nogil:
    """z_k -> exp(z_k - max), its sum over k, and the first k of the maximum   (10.29)"""
    cdef Py_ssize_t i, k
    cdef real z
    largest(Z, ldz, K, m, top, best)
    for i in range(m):
        total[i] = 0
    for k in range(K):
        for i in range(m):
            z = exp_nonpositive(Z[k * ldz + i] - top[i])
            Z[k * ldz + i] = z
            total[i] += z


cdef void link_softmax(real* Z, Py_ssize_t ldz, Py_ssize_t K, const int32_t* r, const real* s, Py_ssize_t m,
                       real* tally, double* Y, real* work) noexcept nogil:
    """z_k -> e_k = s (y_k - r_k), with s times the cross-entropy (10.31); keeps y_k for the curvature (10.32)"""
    cdef real* top = work
    cdef real* total = work + ldz
    cdef real* best = work + 2 * ldz
    cdef real* own = work + 3 * ldz
    cdef Py_ssize_t i, k
    for i in range(m):
        own[i] = Z[r[i] * ldz + i]
    softmax_rows(Z, ldz, K, m, top, total, best)
    for i in range(m):
        own[i] = s[i] * (log_of_1_or_more(total[i]) + (top[i] - own[i]))
        best[i] = s[i] * (best[i] != r[i])
        total[i] = 1 / total[i]
    tally[LANES] += sum(own, m)
    tally[2 * LANES] += sum(best, m)
    if Y != NULL:
        for k in range(K):
            for i in range(m):
                Y[k * ldz + i] = Z[k * ldz + i] * total[i]
    for k in range(K):
        for i in range(m):
            Z[k * ldz + i] *= s[i] * total[i]
    for i in range(m):
        Z[r[i] * ldz + i] -= s[i]


cdef void curvature(int link, Py_ssize_t j, Py_ssize_t k, const double* E, const double* Y, Py_ssize_t ldz, const double* s, Py_ssize_t m,
                    double* c) noexcept nogil:
    """c = s y_j (delta_jk - y_k)   (10.32); for one sigmoid |e| (1 - |e| / s), which is s y (1 - y)

    The latter is 0 where a row is so far on the wrong side that y (1 - y) is below the precision of 1.
    """
    cdef Py_ssize_t i
    if link == LOGISTIC:
        for i in range(m):
            c[i] = abs(E[i]) * (1 - abs(E[i]) / s[i]) if s[i] > 0 else 0
    elif link >= SIGMOID_SQUARED:
        for i in range(m):
            c[i] = s[i] * Y[i]
    elif j == k:
        for i in range(m):
            c[i] = s[i] * Y[j * ldz + i] * (1 - Y[j * ldz + i])
    else:
        for i in range(m):
            c[i] = -s[i] * Y[j * ldz + i] * Y[k * ldz + i]


cdef void bend(int link, real* Z, real* U, Py_ssize_t ldz, Py_ssize_t K, const real* s, Py_ssize_t m, real* work) noexcept nogil:
    """u_k -> sum_j c_kj u_j: the scores of a direction times the curvature (10.32); Z is used up"""
    cdef real* top = work
    cdef real* total = work + ldz
    cdef real* best = work + 2 * ldz
    cdef real* mean = work + 3 * ldz
    cdef Py_ssize_t i, k
    if link == LOGISTIC:
        for i in range(m):
            top[i] = exp_nonpositive(-Z[i] if Z[i] > 0 else Z[i])
            U[i] *= s[i] * top[i] / ((1 + top[i]) * (1 + top[i]))
        return
    if link >= SIGMOID_SQUARED:
        bend_square(link, Z, U, s, m)
        return
    softmax_rows(Z, ldz, K, m, top, total, best)
    for i in range(m):
        mean[i], total[i] = 0, 1 / total[i]
    for k in range(K):
        for i in range(m):
            Z[k * ldz + i] *= total[i]
            mean[i] += Z[k * ldz + i] * U[k * ldz + i]
    for k in range(K):
        for i in range(m):
            U[k * ldz + i] = s[i] * Z[k * ldz + i] * (U[k * ldz + i] - mean[i])
