# exp and log by short polynomials (interpolated at Chebyshev nodes), in functions that the compiler
# vectorises in the loops of the losses: a call of libm's exp for each row takes longer than all the
# rest of the sweep at d = 28. They give the same bits with all compilers and on all platforms.

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

    x = n log 2 + r with |r| <= log(2) / 2; adding 1.5 * 2^(digits of the fraction) rounds n, and
    puts it into the low bits.
    """
    cdef double t, n, r, q
    cdef float tf, nf, rf, qf
    if real is double:
        t = x * 1.4426950408889634 + 6755399441055744.0
        n = t - 6755399441055744.0
        r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
        # pairs of terms: the chain of dependent operations is half as long as Horner's
        q = (((2.510038549551032e-08 * r + 2.7620088445409746e-07) * (r * r)
              + (2.7557268459997064e-06 * r + 2.4801521295954376e-05))
             * ((r * r) * (r * r))
             + ((1.9841269863053618e-04 * r + 1.3888888917213717e-03) * (r * r)
                + (8.333333333330062e-03 * r + 4.166666666662413e-02)))
        q = q * (r * r) + (0.16666666666666669 * r + 0.5)
        return as_double(<int64_t>(<uint64_t>double_bits(q * (r * r) + r + 1)
                                   + (<uint64_t>double_bits(t) << 52))) if not x < -708 else 0
    else:
        tf = x * <float>1.44269504 + <float>12582912.0
        nf = tf - <float>12582912.0
        rf = (x - nf * <float>0.693145752) - nf * <float>1.42860677e-6
        qf = ((<float>1.3926183587713494e-03 * rf + <float>8.363179052722578e-03) * (rf * rf)
              + (<float>4.1666554617204574e-02 * rf + <float>1.6666576989698775e-01)) * rf + (
                  <float>0.5)
        return as_float(<int32_t>(<uint32_t>float_bits(qf * (rf * rf) + rf + 1)
                                  + (<uint32_t>float_bits(tf) << 23))) if not x < -87 else 0


cdef inline real log1p_ratio(real f) noexcept nogil:
    """log(1 + u) for 0 <= u <= 1 to 2 ulp, from f = u / (2 + u): 2 atanh(f)"""
    cdef double g, q
    cdef float gf, qf
    if real is double:
        g = f * f
        q = (((0.1687070066109721 * g + 0.10322669270499082) * (g * g)
              + (0.135023424717571 * g + 0.15373274876358003)) * (g * g)
             + (0.18182261108419745 * g + 0.22222212557929713)) * (g * g) + (
                 0.2857142867666099 * g + 0.39999999999560126)
        return 2 * f + f * g * (q * g + 0.6666666666666697)
    else:
        gf = f * f
        qf = (<float>0.2685149802283715 * gf + <float>0.2823661980531048) * (gf * gf) + (
            <float>0.40007560644911205 * gf + <float>0.6666664033669923)
        return 2 * f + f * gf * qf


cdef inline real log_of_1_or_more(real x) noexcept nogil:
    """log(x) for x >= 1: that of the exponent, and log1p of the fraction."""
    cdef int64_t a
    cdef int32_t b
    cdef real m
    if real is double:
        a = double_bits(x)
        m = as_double((a & <int64_t>0xFFFFFFFFFFFFF) | <int64_t>0x3FF0000000000000)
        return ((as_double((a >> 52) | <int64_t>0x4330000000000000) - 4503599627371519.0)
                * 0.69314718055994531 + log1p_ratio((m - 1) / (m + 1)))
    else:
        b = float_bits(x)
        m = as_float((b & 0x7FFFFF) | 0x3F800000)
        return ((as_float((b >> 23) | 0x4B000000) - <float>8388735.0) * <float>0.693147181
                + log1p_ratio((m - 1) / (m + 1)))
