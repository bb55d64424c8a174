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

// The stored values of one row; `left` counts those to the end of all rows.
template <class S, class I> struct SparseRow {
    const S *values;
    const I *columns;
    isize n, left;
};

// N vectors of a row's sums, from column `first` on; the last vector ends with the matrix and may
// overlap the one before it, whose sums are then computed twice, to the same bits.
template <int N, class T, class S, class I>
static inline void multiply_vectors(const SparseRow<S, I> &x, const T *B, isize K, isize first,
                                    T *z) {
    typedef typename simd<T>::vec vec;
    const isize L = lanes<T>(), width = N * L < K - first ? N * L : K - first;
    const isize ahead = MATMUL_PREFETCH_DISTANCE;
    isize at[N];
    vec s[N];
    for (int v = 0; v < N; v++) {
        at[v] = first + (v * L < width - L ? v * L : width - L);
        s[v] = vec();
    }
    for (isize t = 0; t < x.n; t++) {
        if (sizeof(T) == 8) {
            const isize next = t + ahead < x.left ? t + ahead : x.left - 1;
            prefetch_near(B + x.columns[next] * K + first, width);
        }
        const T *b = B + x.columns[t] * K;
        const vec a = fill((T)x.values[t]);
        for (int v = 0; v < N; v++) s[v] += a * load(b + at[v]);
    }
    for (int v = 0; v < N; v++) store(z + at[v], s[v]);
}

// z = x B for one row.
template <class T, class S, class I>
static inline void multiply_row(const SparseRow<S, I> &x, const T *B, isize K, T *z) {
    const isize L = lanes<T>();
    if (K == 1) {
        T a = 0, b = 0;  // two independent sums: one would wait for itself at each step
        isize u = 0;
        for (; u + 2 <= x.n; u += 2) {
            a += (T)x.values[u] * B[x.columns[u]];
            b += (T)x.values[u + 1] * B[x.columns[u + 1]];
        }
        if (u < x.n) a += (T)x.values[u] * B[x.columns[u]];
        z[0] = a + b;
        return;
    }
    if (K < L) {
        for (isize k = 0; k < K; k++) z[k] = 0;
        for (isize u = 0; u < x.n; u++)
            for (isize k = 0; k < K; k++) z[k] += (T)x.values[u] * B[x.columns[u] * K + k];
        return;
    }
    for (isize first = 0; first < K;) {
        const isize left = K - first;
        if (left < L) first = K - L;  // less than a vector is left: the last vector, overlapping
        if (left > 3 * L) multiply_vectors<4>(x, B, K, first, z), first += 4 * L;
        else if (left > 2 * L) multiply_vectors<3>(x, B, K, first, z), first = K;
        else if (left > L) multiply_vectors<2>(x, B, K, first, z), first = K;
        else multiply_vectors<1>(x, B, K, first, z), first = K;
    }
}

template <class T, class S, class I>
static inline void multiply_rows(const CSRRows &X, isize lo, isize hi, const T *B, isize K, T *Z) {
    const S *values = (const S *)X.values;
    const I *columns = (const I *)X.columns, *starts = (const I *)X.starts;
    for (isize i = lo; i < hi; i++) {
        const isize t = starts[i];
        const SparseRow<S, I> x = {values + t, columns + t, starts[i + 1] - t, starts[X.n] - t};
        multiply_row(x, B, K, Z + i * K);
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
