// Sparse rows times a matrix: the sums of a row stay in registers while its stored values select
// rows of B.
#pragma once
#include <cstdint>

#include "layout_csr.h"
#include "tiles.h"

namespace tiles {

// Stored values between the prefetch of a row of B and its use, in float64. In float32 a row of B
// is so short that out-of-order execution looks far enough ahead. (1.5M values, K = 20, B of 3 to 7
// MB, two threads: float64 4.5 ms, and 8.3 without prefetch; float32 3.0, and 1.4 without.)
const isize MATMUL_PREFETCH_DISTANCE = 8;

// N vectors of a row's sums, from column `first` on; the last vector ends with the matrix and may
// overlap the one before it, whose sums are then computed twice, to the same bits. x are the n
// stored values of the row, of `left` to the end of all rows. (A struct of these four costs
// registers: 18% slower with K = 20.)
template <int N, class T, class S, class I>
static inline void multiply_vectors(const S *x, const I *columns, isize n, isize left, const T *B,
                                    isize K, isize first, T *z) {
    typedef typename simd<T>::vec vec;
    const isize L = lanes<T>(), width = N * L < K - first ? N * L : K - first;
    const isize ahead = MATMUL_PREFETCH_DISTANCE;
    isize at[N];
    vec s[N];
    for (int v = 0; v < N; v++) {
        at[v] = first + (v * L < width - L ? v * L : width - L);
        s[v] = vec();
    }
    for (isize t = 0; t < n; t++) {
        if (sizeof(T) == 8)
            prefetch_near(B + columns[t + ahead < left ? t + ahead : left - 1] * K + first, width);
        const T *b = B + columns[t] * K;
        const vec a = fill((T)x[t]);
        for (int v = 0; v < N; v++) s[v] += a * load(b + at[v]);
    }
    for (int v = 0; v < N; v++) store(z + at[v], s[v]);
}

template <class T, class S, class I>
static inline void multiply_rows(const CSRRows &X, isize lo, isize hi, const T *B, isize K, T *Z) {
    const S *values = (const S *)X.values;
    const I *columns = (const I *)X.columns, *starts = (const I *)X.starts;
    const isize L = lanes<T>(), end = starts[X.n];
    for (isize i = lo; i < hi; i++) {
        const isize t = starts[i], n = starts[i + 1] - t, left = end - t;
        T *z = Z + i * K;
        if (K == 1) {
            T a = 0, b = 0;  // two sums: one would be limited by the latency of additions
            isize u = t;
            for (; u + 2 <= t + n; u += 2) {
                a += (T)values[u] * B[columns[u]];
                b += (T)values[u + 1] * B[columns[u + 1]];
            }
            if (u < t + n) a += (T)values[u] * B[columns[u]];
            z[0] = a + b;
            continue;
        }
        if (K < L) {
            for (isize k = 0; k < K; k++) z[k] = 0;
            for (isize u = t; u < t + n; u++)
                for (isize k = 0; k < K; k++) z[k] += (T)values[u] * B[columns[u] * K + k];
            continue;
        }
        const S *x = values + t;
        const I *c = columns + t;
        for (isize first = 0; first < K;) {
            const isize width = K - first;
            if (width < L) first = K - L;  // less than a vector is left: the last one, overlapping
            if (width > 3 * L) multiply_vectors<4>(x, c, n, left, B, K, first, z), first += 4 * L;
            else if (width > 2 * L) multiply_vectors<3>(x, c, n, left, B, K, first, z), first = K;
            else if (width > L) multiply_vectors<2>(x, c, n, left, B, K, first, z), first = K;
            else multiply_vectors<1>(x, c, n, left, B, K, first, z), first = K;
        }
    }
}

// Rows lo to hi of X times B (d, K), into Z (N, K).
template <class T>
static inline void multiply_rows(const CSRRows &X, isize lo, isize hi, const T *B, isize K, T *Z) {
    if (X.single && X.wide) multiply_rows<T, float, std::int64_t>(X, lo, hi, B, K, Z);
    else if (X.single) multiply_rows<T, float, std::int32_t>(X, lo, hi, B, K, Z);
    else if (X.wide) multiply_rows<T, double, std::int64_t>(X, lo, hi, B, K, Z);
    else multiply_rows<T, double, std::int32_t>(X, lo, hi, B, K, Z);
}

}  // namespace tiles
