// Features of basis functions of rows in memory order: products, squared distances, projections.
#pragma once
#include "tiles.h"

namespace tiles {

// out = a src, n numbers, in whole vectors if `capacity` numbers may be written: the surplus is
// overwritten later. Both are parts of one row, src first. (Loops of the exact length spend more
// time in their remainders: 20 columns, 230 features.)
static inline void scaled(double a, const double *src, isize n, isize capacity, double *out) {
    const isize L = lanes<double>();
    const simd<double>::vec v = fill(a);
    isize j = 0;
    for (; j < n && j + L <= capacity; j += L) store(out + j, load(src + j) * v);
    for (; j < n; j++) out[j] = a * src[j];
}

template <bool DISTANCE>
static inline simd<double>::vec term(simd<double>::vec s, double x, simd<double>::vec c) {
    if (!DISTANCE) return s + fill(x) * c;
    const simd<double>::vec u = fill(x) - c;
    return s + u * u;
}

// The first n of a vector's numbers, or all of them.
static inline void store_part(double *out, simd<double>::vec a, isize n) {
    if (n >= lanes<double>()) {
        store(out, a);
        return;
    }
    double part[16];
    store(part, a);
    for (isize i = 0; i < n; i++) out[i] = part[i];
}

// For R rows and each of n vectors c, the columns of C (d, ldc) in memory order: ||x - c||^2, or
// c'x. The sums of V vectors of columns and R rows stay in registers; C is padded to whole vectors.
template <bool DISTANCE, int R, int V>
static inline void vector_tile(const double *x, isize ldx, isize d, const double *C, isize ldc,
                               isize n, double *out, isize ld) {
    typedef simd<double>::vec vec;
    const isize L = lanes<double>();
    isize k = 0;
    for (; k + (V - 1) * L < n; k += V * L) {
        vec s[R][V];
        for (int r = 0; r < R; r++)
            for (int v = 0; v < V; v++) s[r][v] = vec();
        for (isize j = 0; j < d; j++)
            for (int v = 0; v < V; v++) {
                const vec c = load(C + j * ldc + k + v * L);
                for (int r = 0; r < R; r++) s[r][v] = term<DISTANCE>(s[r][v], x[r * ldx + j], c);
            }
        for (int r = 0; r < R; r++)
            for (int v = 0; v < V; v++)
                store_part(out + r * ld + k + v * L, s[r][v], n - k - v * L);
    }
    if (V > 1 && k < n)
        vector_tile<DISTANCE, R, 1>(x, ldx, d, C + k, ldc, n - k, out + k, ld);
}

template <bool DISTANCE>
static inline void vector_tiles(const double *x, isize ldx, isize m, isize d, const double *C,
                                isize n, double *out, isize ld) {
    const isize ldc = (n + 7) / 8 * 8;
    isize i = 0;
    for (; i + 4 <= m; i += 4)
        vector_tile<DISTANCE, 4, 2>(x + i * ldx, ldx, d, C, ldc, n, out + i * ld, ld);
    for (; i < m; i++)
        vector_tile<DISTANCE, 1, 2>(x + i * ldx, ldx, d, C, ldc, n, out + i * ld, ld);
}

// ||x - c||^2 for m rows x (m, ldx) and n vectors c, the columns of C (d, n padded to whole
// vectors).
static inline void distances(const double *x, isize ldx, isize m, isize d, const double *C, isize n,
                             double *out, isize ld) {
    vector_tiles<true>(x, ldx, m, d, C, n, out, ld);
}

// c'x, as `distances`.
static inline void projections(const double *x, isize ldx, isize m, isize d, const double *C,
                               isize n, double *out, isize ld) {
    vector_tiles<false>(x, ldx, m, d, C, n, out, ld);
}

}  // namespace tiles
