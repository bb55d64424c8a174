// Sparse rows times a matrix: the sums of a row stay in registers while its stored values call rows of B.
#pragma once
#include <cstdint>

#include "tiles.h"

namespace tiles {

// Stored values between asking for a row of B and using it, for float64. In float32 a row of B is so short that the core looks far
// enough ahead by itself. (1.5M values, K = 20, B of 3 to 7 MB, two threads: float64 4.5 ms, and 8.3 without asking; float32 3.0,
// and 1.4 without.)
const isize AHEAD = 8;

// N vectors of a row's sums, from `first` columns on; the last vector ends with the matrix and may overlap the one before it,
// whose sums are then had twice, to the same bits.
template <int N, class T, class S, class I>
static inline void row_times(const S *x, const I *columns, isize n, isize more, const T *B, isize K, isize first, T *z) {
    typedef typename simd<T>::vec vec;
    const isize L = lanes<T>(), width = N * L < K - first ? N * L : K - first;
    isize at[N];
    vec s[N];
    for (int v = 0; v < N; v++) {
        at[v] = first + (v * L < width - L ? v * L : width - L);
        s[v] = vec();
    }
    for (isize t = 0; t < n; t++) {
        if (sizeof(T) == 8) prefetch_near(B + columns[t + AHEAD < more ? t + AHEAD : more - 1] * K + first, width);
        const T *b = B + columns[t] * K;
        const vec a = fill((T)x[t]);
        for (int v = 0; v < N; v++) s[v] += a * load(b + at[v]);
    }
    for (int v = 0; v < N; v++) store(z + at[v], s[v]);
}

// Rows lo to hi of sparse X times B (d, K), into Z (N, K).
template <class T, class S, class I>
static inline void rows_times(const S *x, const I *columns, const I *starts, isize n, isize lo, isize hi, const T *B, isize K, T *Z) {
    const isize L = lanes<T>();
    for (isize i = lo; i < hi; i++) {
        const isize t = starts[i], length = starts[i + 1] - t, more = starts[n] - t;
        T *z = Z + i * K;
        if (K == 1) {
            T a = 0, b = 0;  // two chains of sums, each of which waits for itself
            isize u = t;
            for (; u + 2 <= t + length; u += 2) a += (T)x[u] * B[columns[u]], b += (T)x[u + 1] * B[columns[u + 1]];
            if (u < t + length) a += (T)x[u] * B[columns[u]];
            z[0] = a + b;
            continue;
        }
        if (K < L) {
            for (isize k = 0; k < K; k++) z[k] = 0;
            for (isize u = t; u < t + length; u++)
                for (isize k = 0; k < K; k++) z[k] += (T)x[u] * B[columns[u] * K + k];
            continue;
        }
        for (isize first = 0; first < K;) {
            const isize left = K - first;
            if (left < L) first = K - L;  // what is left of less than a vector: the last vector once more
            if (left > 3 * L) row_times<4>(x + t, columns + t, length, more, B, K, first, z), first += 4 * L;
            else if (left > 2 * L) row_times<3>(x + t, columns + t, length, more, B, K, first, z), first = K;
            else if (left > L) row_times<2>(x + t, columns + t, length, more, B, K, first, z), first = K;
            else row_times<1>(x + t, columns + t, length, more, B, K, first, z), first = K;
        }
    }
}

template <class T, class S>
static inline void rows_times(const S *x, const void *columns, const void *starts, bool wide, isize n, isize lo, isize hi, const T *B,
                              isize K, T *Z) {
    if (wide) rows_times(x, (const int64_t *)columns, (const int64_t *)starts, n, lo, hi, B, K, Z);
    else rows_times(x, (const int32_t *)columns, (const int32_t *)starts, n, lo, hi, B, K, Z);
}

}  // namespace tiles
