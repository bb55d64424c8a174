// Features of a basis from rows in memory order: products of features, squared distances, projections.
#pragma once
#include "tiles.h"

namespace tiles {

// out = a src, n numbers, in whole vectors as long as `room` numbers may be written to: what is written too much is written over.
// Both stand in one row, src first. (Loops of the exact length spend more time in their remainders: 20 columns, 230 features.)
static inline void scaled(double a, const double *src, isize n, isize room, double *out) {
    const isize L = lanes<double>();
    const simd<double>::vec v = fill(a);
    isize j = 0;
    for (; j < n && j + L <= room; j += L) store(out + j, load(src + j) * v);
    for (; j < n; j++) out[j] = a * src[j];
}

template <bool DISTANCE> static inline simd<double>::vec term(simd<double>::vec s, double x, simd<double>::vec c) {
    if (!DISTANCE) return s + fill(x) * c;
    const simd<double>::vec u = fill(x) - c;
    return s + u * u;
}

// Of R rows and each of n vectors c, the columns of C (d, ldc) in memory order: ||x - c||^2, or c'x. The sums of V vectors of
// columns and R rows stay in registers; C is padded to whole vectors.
template <bool DISTANCE, int R, int V>
static inline void against(const double *x, isize ldx, isize d, const double *C, isize ldc, isize n, double *out, isize ld) {
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
            for (int v = 0; v < V; v++) {
                double *to = out + r * ld + k + v * L;
                if (k + (v + 1) * L <= n) {
                    store(to, s[r][v]);
                } else {
                    double last[16];
                    store(last, s[r][v]);
                    for (isize i = 0; i < n - k - v * L; i++) to[i] = last[i];
                }
            }
    }
    if (V > 1 && k < n) against<DISTANCE, R, 1>(x, ldx, d, C + k, ldc, n - k, out + k, ld);
}

template <bool DISTANCE>
static inline void all_against(const double *x, isize ldx, isize m, isize d, const double *C, isize ldc, isize n, double *out, isize ld) {
    isize i = 0;
    for (; i + 4 <= m; i += 4) against<DISTANCE, 4, 2>(x + i * ldx, ldx, d, C, ldc, n, out + i * ld, ld);
    for (; i < m; i++) against<DISTANCE, 1, 2>(x + i * ldx, ldx, d, C, ldc, n, out + i * ld, ld);
}

static inline void distances(const double *x, isize ldx, isize m, isize d, const double *C, isize ldc, isize n, double *out, isize ld) {
    all_against<true>(x, ldx, m, d, C, ldc, n, out, ld);
}
static inline void projections(const double *x, isize ldx, isize m, isize d, const double *C, isize ldc, isize n, double *out, isize ld) {
    all_against<false>(x, ldx, m, d, C, ldc, n, out, ld);
}

}  // namespace tiles
