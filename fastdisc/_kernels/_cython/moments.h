// Moments: shifted rows, their sums, and Gram matrices of queues of rows, for bytes in integers.
//
// A block of rows in the order of their classes would need sorting. Instead each row, minus the
// shift of its class, is appended to the queue of its group, and a full queue goes through the
// register tiles: one matrix for each class costs no more than one for all.
#pragma once
#include <cstdint>
#if defined(__SSE2__)
#include <immintrin.h>
#endif
#include "tiles.h"

// If the integer tile is inlined into the loops around it, it gets fewer registers, and GCC 12
// spills its sums: 1.6 times slower.
#if defined(__GNUC__)
#define FASTDISC_NOINLINE __attribute__((noinline))
#else
#define FASTDISC_NOINLINE
#endif

namespace tiles {

// u = x - c, and m += s u.
template <class S>
static inline void enqueue(const S *__restrict x, const double *__restrict c, isize d, double s,
                           double *__restrict u, double *__restrict m) {
    for (isize j = 0; j < d; j++) {
        const double a = (double)x[j] - c[j];
        u[j] = a;
        m[j] += s * a;
    }
}

// The same with v = u^2.
template <class S>
static inline void enqueue_quartic(const S *__restrict x, const double *__restrict c, isize d,
                                   double s, double *__restrict u, double *__restrict v,
                                   double *__restrict m) {
    for (isize j = 0; j < d; j++) {
        const double a = (double)x[j] - c[j];
        u[j] = a;
        v[j] = a * a;
        m[j] += s * a;
    }
}

// u = x - c and m += u for bytes and integer c: u fits in 16 bits.
template <class S>
static inline void enqueue_integers(const S *__restrict x, const double *__restrict c, isize d,
                                    std::int16_t *__restrict u, double *__restrict m) {
    for (isize j = 0; j < d; j++) {
        const std::int16_t a = (std::int16_t)(x[j] - (int)c[j]);
        u[j] = a;
        m[j] += a;
    }
}

// m += s (x - c) and q += s (x - c)^2.
template <class S>
static inline void add_squares(const S *__restrict x, const double *__restrict c, isize d, double s,
                               double *__restrict m, double *__restrict q) {
    for (isize j = 0; j < d; j++) {
        const double a = (double)x[j] - c[j];
        m[j] += s * a;
        q[j] += s * a * a;
    }
}

// m += s (x - c)
template <class S>
static inline void add_sums(const S *__restrict x, const double *__restrict c, isize d, double s,
                            double *__restrict m) {
    for (isize j = 0; j < d; j++) m[j] += s * ((double)x[j] - c[j]);
}

// m += s if x > c; NaN if x is not finite.
template <class S>
static inline void add_counts(const S *__restrict x, const double *__restrict c, isize d, double s,
                              double *__restrict m) {
    for (isize j = 0; j < d; j++)
        m[j] += s * (((double)x[j] > c[j] ? 1.0 : 0.0) + (double)(x[j] - x[j]));
}

static const isize MAX_NARROW_COLUMNS = 64;

// Columns of the next panel, if `left` are left.
static inline isize panel_width(isize left, isize L) {
    return left == L ? L : left == 2 * L || left == 4 * L ? 2 * L : 3 * L;
}

// Four of Q's columns by `width` of P's.
static inline void gram_tile(const double *Q, const double *P, isize width, isize m, isize D,
                             double *H) {
    const isize L = lanes<double>();
    if (width == 3 * L) outer_tile<double, 4, 3>(P, D, m, Q, 1, D, H, D);
    else if (width == 2 * L) outer_tile<double, 4, 2>(P, D, m, Q, 1, D, H, D);
    else outer_tile<double, 4, 1>(P, D, m, Q, 1, D, H, D);
}

// Upper triangle of H += Q' P for D columns, a multiple of 4 and of the lanes; all have rows of D
// numbers. Narrow blocks fit in L1, and strips of H waste least. Of wide ones a panel of P's
// columns stays in L1 while Q's columns are streamed: with the loops exchanged P would be read from
// L2 for each four of Q's columns (784 columns: 1.2 times slower). Prefetching the next rows
// meanwhile, as `gram_strips` does, changed nothing here: 28.0 ms instead of 28.9 at 1M x 28.
static inline void gram_panels(const double *Q, const double *P, isize m, isize D, double *H) {
    const isize L = lanes<double>();
    if (D <= MAX_NARROW_COLUMNS)
        for (isize a = 0; a < D; a += 4)
            for (isize b = a - a % L, width; b < D; b += width)
                gram_tile(Q + a, P + b, width = panel_width(D - b, L), m, D, H + a * D + b);
    else
        for (isize b = 0, width; b < D; b += width) {
            width = panel_width(D - b, L);
            for (isize a = 0; a < b + width; a += 4)
                gram_tile(Q + a, P + b, width, m, D, H + a * D + b);
        }
}

// The rows of A' between which a panel of its columns is not zero: first and last row of each
// panel. A triangular A takes half the work.
static inline void nonzero_ranges(const double *At, isize d, isize P, isize *range) {
    for (isize b = 0, width; b < P; b += width, range += 2) {
        width = panel_width(P - b, lanes<double>());
        range[0] = d, range[1] = 0;
        for (isize j = 0; j < d; j++)
            for (isize v = b; v < b + width; v++)
                if (At[j * P + v] != 0) {
                    if (j < range[0]) range[0] = j;
                    range[1] = j + 1;
                }
        if (range[1] == 0) range[0] = 0;
    }
}

// z_i = |A u_i|^2 for m rows of ld numbers, m a multiple of 4; At is A' (d, P), P a multiple of the
// lanes, `ranges` those of `nonzero_ranges`; Z is a buffer (4, P).
static inline void squared_norms(const double *U, isize ld, isize m, const double *At, isize P,
                                 const isize *ranges, double *Z, double *z) {
    const isize L = lanes<double>();
    for (isize i = 0; i < m; i += 4, U += 4 * ld) {
        const isize *range = ranges;
        for (isize j = 0; j < 4 * P; j++) Z[j] = 0;
        for (isize b = 0, width; b < P; b += width, range += 2) {
            width = panel_width(P - b, L);
            const double *x = At + range[0] * P + b, *u = U + range[0];
            const isize n = range[1] - range[0];
            if (width == 3 * L) outer_tile<double, 4, 3>(x, P, n, u, ld, 1, Z + b, P);
            else if (width == 2 * L) outer_tile<double, 4, 2>(x, P, n, u, ld, 1, Z + b, P);
            else outer_tile<double, 4, 1>(x, P, n, u, ld, 1, Z + b, P);
        }
        for (int r = 0; r < 4; r++) z[i + r] = dot(Z + r * P, Z + r * P, P);
    }
}

// Pairs of 16-bit integers: one instruction multiplies both and adds the products, in 32 bits.
// Bytes minus a byte have 9 bits and a sign, so that 2^14 pairs are summed without overflow; a
// queue has far fewer rows.
#if defined(__AVX512BW__)
struct IntegerPairs {
    typedef __m512i vec;
    static vec load(const std::int32_t *p) { return _mm512_loadu_si512((const void *)p); }
    static vec fill(std::int32_t a) { return _mm512_set1_epi32(a); }
    static vec add(vec s, vec a, vec b) { return _mm512_add_epi32(s, _mm512_madd_epi16(a, b)); }
    static void flush(double *h, vec a) {
        std::int32_t part[16];  // intrinsics instead make GCC 12 warn of its own headers
        _mm512_storeu_si512((void *)part, a);
        for (int j = 0; j < 16; j++) h[j] += part[j];
    }
    static vec zero() { return _mm512_setzero_si512(); }
};
#elif defined(__AVX2__)
struct IntegerPairs {
    typedef __m256i vec;
    static vec load(const std::int32_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
    static vec fill(std::int32_t a) { return _mm256_set1_epi32(a); }
    static vec add(vec s, vec a, vec b) { return _mm256_add_epi32(s, _mm256_madd_epi16(a, b)); }
    static void flush(double *h, vec a) {
        const __m256d low = _mm256_cvtepi32_pd(_mm256_castsi256_si128(a));
        const __m256d high = _mm256_cvtepi32_pd(_mm256_extracti128_si256(a, 1));
        _mm256_storeu_pd(h, _mm256_add_pd(_mm256_loadu_pd(h), low));
        _mm256_storeu_pd(h + 4, _mm256_add_pd(_mm256_loadu_pd(h + 4), high));
    }
    static vec zero() { return _mm256_setzero_si256(); }
};
#elif defined(__SSE2__)
struct IntegerPairs {
    typedef __m128i vec;
    static vec load(const std::int32_t *p) { return _mm_loadu_si128((const __m128i *)p); }
    static vec fill(std::int32_t a) { return _mm_set1_epi32(a); }
    static vec add(vec s, vec a, vec b) { return _mm_add_epi32(s, _mm_madd_epi16(a, b)); }
    static void flush(double *h, vec a) {
        _mm_storeu_pd(h, _mm_add_pd(_mm_loadu_pd(h), _mm_cvtepi32_pd(a)));
        const __m128d high = _mm_cvtepi32_pd(_mm_unpackhi_epi64(a, a));
        _mm_storeu_pd(h + 2, _mm_add_pd(_mm_loadu_pd(h + 2), high));
    }
    static vec zero() { return _mm_setzero_si128(); }
};
#else
struct IntegerPairs {  // one lane, the same code; bytes are then summed in float64, also exactly
    typedef std::int32_t vec;
    static vec load(const std::int32_t *p) { return *p; }
    static vec fill(std::int32_t a) { return a; }
    static vec add(vec s, vec a, vec b) {
        return s + (std::int16_t)a * (std::int16_t)b
                 + (std::int16_t)(a >> 16) * (std::int16_t)(b >> 16);
    }
    static void flush(double *h, vec a) { *h += a; }
    static vec zero() { return 0; }
};
#endif

static inline isize integer_lanes() { return sizeof(IntegerPairs::vec) / 4; }

// Four columns at `a` by V vectors of columns at `b`, over n pairs of rows.
template <int V> FASTDISC_NOINLINE
static void integer_tile(const std::int32_t *a, const std::int32_t *b, isize n, isize D,
                         double *H) {
    const isize L = integer_lanes();
    IntegerPairs::vec s[4][V];
    for (int r = 0; r < 4; r++) for (int v = 0; v < V; v++) s[r][v] = IntegerPairs::zero();
    for (isize i = 0; i < n; i++, a += D, b += D) {
        IntegerPairs::vec x[V];
        for (int v = 0; v < V; v++) x[v] = IntegerPairs::load(b + v * L);
        for (int r = 0; r < 4; r++) {
            const IntegerPairs::vec y = IntegerPairs::fill(a[r]);
            for (int v = 0; v < V; v++) s[r][v] = IntegerPairs::add(s[r][v], x[v], y);
        }
    }
    for (int r = 0; r < 4; r++)
        for (int v = 0; v < V; v++) IntegerPairs::flush(H + r * D + v * L, s[r][v]);
}

// Upper triangle of H += U' U for m rows of D 16-bit integers; m is even, and D a multiple of 4 and
// of the lanes. p is a buffer (m / 2, D).
static inline void gram_integers(const std::int16_t *__restrict U, isize m, isize D,
                                 std::int32_t *__restrict p, double *H) {
    const isize L = integer_lanes();
    for (isize i = 0; i < m; i += 2)
        for (isize j = 0; j < D; j++)
            p[i / 2 * D + j] = (std::uint16_t)U[i * D + j]
                | (std::int32_t)((std::uint32_t)(std::uint16_t)U[(i + 1) * D + j] << 16);
    for (isize b = 0, width; b < D; b += width) {
        width = D - b > L ? 2 * L : L;  // three vectors and a product do not fit in 16 registers
        for (isize a = 0; a < b + width; a += 4) {
            if (width == 2 * L) integer_tile<2>(p + a, p + b, m / 2, D, H + a * D + b);
            else integer_tile<1>(p + a, p + b, m / 2, D, H + a * D + b);
        }
    }
}

}  // namespace tiles
