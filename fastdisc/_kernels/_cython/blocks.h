// Blocks of rows: prefetch, conversion, scaling, and sums over vectors.
#pragma once
#include "simd.h"

namespace tiles {

// Prefetch the cache line at p: with 3 into L1, with 1 into L2.
template <int HINT> static inline void prefetch_line(const void *p) {
#ifdef __GNUC__
    __builtin_prefetch(p, 0, HINT);
#endif
}

// Prefetch n numbers into L1. (CSR, 42,000 columns, 20 classes: the weights of a word are in L3.)
template <class T> static inline void prefetch_near(const T *p, isize n) {
    for (isize j = 0; j < n; j += 64 / (isize)sizeof(T)) prefetch_line<3>(p + j);
}

// Prefetch n bytes into L2.
static inline void prefetch_far(const char *p, isize n) {
    for (isize j = 0; j < n; j += 64) prefetch_line<1>(p + j);
}

// Prefetch two rows into L1. Memory is idle while a core works on a block in cache: short rows are
// prefetched a block ahead, half of them while a block is scored and half while it is accumulated.
// They go to L1, where loads need no free miss buffer; blocks are so small that two of them fit.
// (1M x 28: 1.4 times the time of reading instead of 1.7; blocks of 32 KB prefetched in the same
// way are slower than without prefetch.)
template <class T> static inline void prefetch_two_rows(const T *row, isize ld, isize d) {
    prefetch_near(row, d);
    prefetch_near(row + ld, d);
}

// Rows of elements S, `row` bytes apart with `col` bytes from column to column, as rows of T, ld
// numbers apart, padded with zeros.
template <class S, class T>
static inline void convert(const S *__restrict first, isize row, isize col, isize m, isize d,
                           T *__restrict out, isize ld) {
    const char *p = (const char *)first;
    if (col == (isize)sizeof(S)) {
        for (isize i = 0; i < m; i++)
            for (isize j = 0; j < d; j++) out[i * ld + j] = (T)((const S *)(p + i * row))[j];
    } else if (row == (isize)sizeof(S)) {
        for (isize j = 0; j < d; j++)
            for (isize i = 0; i < m; i++) out[i * ld + j] = (T)((const S *)(p + j * col))[i];
    } else {
        for (isize i = 0; i < m; i++)
            for (isize j = 0; j < d; j++)
                out[i * ld + j] = (T)*(const S *)(p + i * row + j * col);
    }
    for (isize i = 0; i < m; i++)
        for (isize j = d; j < ld; j++) out[i * ld + j] = 0;
}

// Q = diag(c) P and h += the sum of Q's rows, for rows of D numbers, a multiple of the lanes; four
// rows for each store of h.
static inline void scale_rows(const double *P, isize ldp, const double *c, isize m, isize D,
                              double *Q, double *h) {
    typedef simd<double>::vec vec;
    const isize L = lanes<double>();
    isize i = 0;
    for (; i + 4 <= m; i += 4, P += 4 * ldp, Q += 4 * D) {
        const vec c0 = fill(c[i]), c1 = fill(c[i + 1]);
        const vec c2 = fill(c[i + 2]), c3 = fill(c[i + 3]);
        for (isize j = 0; j < D; j += L) {
            const vec q0 = load(P + j) * c0, q1 = load(P + ldp + j) * c1;
            const vec q2 = load(P + 2 * ldp + j) * c2, q3 = load(P + 3 * ldp + j) * c3;
            store(Q + j, q0);
            store(Q + D + j, q1);
            store(Q + 2 * D + j, q2);
            store(Q + 3 * D + j, q3);
            store(h + j, load(h + j) + ((q0 + q1) + (q2 + q3)));
        }
    }
    for (; i < m; i++, P += ldp, Q += D)
        for (isize j = 0; j < D; j += L) {
            const vec q = load(P + j) * fill(c[i]);
            store(Q + j, q);
            store(h + j, load(h + j) + q);
        }
}

// 0, or NaN if one of n numbers is not finite.
template <class T> static inline double nan_if_not_finite(const T *a, isize n) {
    double result = 0;
    for (isize i = 0; i < n; i++) result += a[i] - a[i];
    return result;
}

// The sum of n numbers, in a fixed order of lanes.
template <class T> static inline double sum(const T *a, isize n) {
    typedef typename simd<T>::vec vec;
    const isize L = lanes<T>();
    vec s0 = vec(), s1 = vec(), s2 = vec(), s3 = vec();
    isize i = 0;
    for (; i + 4 * L <= n; i += 4 * L) {
        s0 += load(a + i);
        s1 += load(a + i + L);
        s2 += load(a + i + 2 * L);
        s3 += load(a + i + 3 * L);
    }
    for (; i + L <= n; i += L) s0 += load(a + i);
    double result = total((s0 + s1) + (s2 + s3));
    for (; i < n; i++) result += a[i];
    return result;
}

// The largest of the K scores of each of m rows, z[k ldz + i], and the first k that has it. Reads
// and writes whole vectors. (As a plain loop GCC stores the new k behind a branch, which is
// mispredicted half of the time: half the time of a softmax.)
template <class T>
static inline void largest(const T *z, isize ldz, isize K, isize m, T *top, T *best) {
    typedef typename simd<T>::vec vec;
    for (isize i = 0; i < m; i += lanes<T>()) {
        vec t = load(z + i), b = vec();
        for (isize k = 1; k < K; k++) {
            const vec a = load(z + k * ldz + i), number = fill((T)k);
            const auto more = a > t;
            b = more ? number : b;
            t = more ? a : t;
        }
        store(top + i, t);
        store(best + i, b);
    }
}

}  // namespace tiles
