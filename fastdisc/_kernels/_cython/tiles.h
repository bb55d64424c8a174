// Register tiles: the innermost loops of the dense layout, on SIMD vectors held in registers.
//
// Plain loops were tried first. GCC vectorises them only with -fassociative-math, which also rewrites the range reduction of
// the polynomial exp, and it leaves a scalar remainder loop that costs a third of the time at d = 10. Vector types need no
// fast-math flag, and fix the order of every sum, whatever the compiler.
//
// Rows are read as d / L whole vectors; if L does not divide d, one more vector covers the last L columns, overlapping the one
// before. Its twin in a weight row has zeros in the overlapped lanes (see `tail` in rows.pxi), so nothing counts twice
// and no byte beyond a row is touched. A caller with d < L pads the rows.
#pragma once
#include <cstddef>

namespace tiles {

typedef std::ptrdiff_t isize;

#if defined(__GNUC__) && defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define FASTDISC_VECTOR 1
#endif
#endif

template <class T> struct simd;

#ifdef FASTDISC_VECTOR
#if defined(__AVX512F__)
#define FASTDISC_BYTES 64
#elif defined(__AVX__)
#define FASTDISC_BYTES 32
#else
#define FASTDISC_BYTES 16
#endif
#define FASTDISC_TYPE(T, bytes) T __attribute__((vector_size(bytes), aligned(sizeof(T)), may_alias))

template <> struct simd<double> { typedef FASTDISC_TYPE(double, FASTDISC_BYTES) vec; };
template <> struct simd<float> { typedef FASTDISC_TYPE(float, FASTDISC_BYTES) vec; };

typedef FASTDISC_TYPE(double, 16) d2;
typedef FASTDISC_TYPE(double, 32) d4;
typedef FASTDISC_TYPE(double, 64) d8;
typedef FASTDISC_TYPE(float, 16) f4;
typedef FASTDISC_TYPE(float, 32) f8;
typedef FASTDISC_TYPE(float, 64) f16;

static inline d4 half(d8 a) {
    return __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
}
static inline f8 half(f16 a) {
    return __builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7)
         + __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15);
}
static inline f4 half(f8 a) {
    return __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
}

// The lane sums of four vectors at once: two rounds of shuffle and add instead of four separate reductions.
template <class V> static inline V transpose_sum(V a, V b, V c, V d) {
    V ab = __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7);
    V cd = __builtin_shufflevector(c, d, 0, 4, 2, 6) + __builtin_shufflevector(c, d, 1, 5, 3, 7);
    return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}
static inline void sum4(d2 a, d2 b, d2 c, d2 d, double *z) {
    ((d2 *)z)[0] = __builtin_shufflevector(a, b, 0, 2) + __builtin_shufflevector(a, b, 1, 3);
    ((d2 *)z)[1] = __builtin_shufflevector(c, d, 0, 2) + __builtin_shufflevector(c, d, 1, 3);
}
static inline void sum4(d4 a, d4 b, d4 c, d4 d, double *z) { *(d4 *)z = transpose_sum(a, b, c, d); }
static inline void sum4(f4 a, f4 b, f4 c, f4 d, float *z) { *(f4 *)z = transpose_sum(a, b, c, d); }
static inline void sum4(d8 a, d8 b, d8 c, d8 d, double *z) { sum4(half(a), half(b), half(c), half(d), z); }
static inline void sum4(f8 a, f8 b, f8 c, f8 d, float *z) { sum4(half(a), half(b), half(c), half(d), z); }
static inline void sum4(f16 a, f16 b, f16 c, f16 d, float *z) { sum4(half(a), half(b), half(c), half(d), z); }

// The lane sum of one vector.
static inline double total(d2 a) { return a[0] + a[1]; }
static inline double total(d4 a) { return total(__builtin_shufflevector(a, a, 0, 1) + __builtin_shufflevector(a, a, 2, 3)); }
static inline double total(d8 a) { return total(half(a)); }
static inline float total(f4 a) { return (a[0] + a[2]) + (a[1] + a[3]); }
static inline float total(f8 a) { return total(half(a)); }
static inline float total(f16 a) { return total(half(a)); }

#else  // a compiler without vector types: vectors of one lane, the same code
template <> struct simd<double> { typedef double vec; };
template <> struct simd<float> { typedef float vec; };
template <class T> static inline T total(T a) { return a; }
template <class T> static inline void sum4(T a, T b, T c, T d, T *z) { z[0] = a; z[1] = b; z[2] = c; z[3] = d; }
#endif

template <class T> static inline isize lanes() { return sizeof(typename simd<T>::vec) / sizeof(T); }
template <class T> static inline typename simd<T>::vec fill(T a) { return a - typename simd<T>::vec(); }
template <class T> static inline typename simd<T>::vec load(const T *p) { return *(const typename simd<T>::vec *)p; }
template <class T> static inline void store(T *p, typename simd<T>::vec a) { *(typename simd<T>::vec *)p = a; }

// z += the lane sums of four vectors.
template <class T, class V> static inline void add4(V a, V b, V c, V d, T *z) {
    T part[4];
    sum4(a, b, c, d, part);
    z[0] += part[0]; z[1] += part[1]; z[2] += part[2]; z[3] += part[3];
}

// Ask for the cache line at p: 3 for the first cache, 1 for the second.
template <int HINT> static inline void prefetch_line(const void *p) {
#ifdef __GNUC__
    __builtin_prefetch(p, 0, HINT);
#endif
}

// Ask for n numbers that will be wanted soon. (CSR, 42,000 columns, 20 classes: weights of words come from the third cache.)
template <class T> static inline void prefetch_near(const T *p, isize n) {
    for (isize j = 0; j < n; j += 64 / (isize)sizeof(T)) prefetch_line<3>(p + j);
}

// Ask for n bytes that will be wanted after some work: into the second cache.
static inline void prefetch_far(const char *p, isize n) {
    for (isize j = 0; j < n; j += 64) prefetch_line<1>(p + j);
}

// Ask for two rows' cache lines. A core that stops asking while it works on a block in cache loses that time: short rows are
// asked for a block ahead, half of them while a block is scored and half while it is accumulated, straight into the first cache,
// where loads need no free miss buffer. Blocks are so small that two of them leave room there. (1M x 28: 1.4 times the time of
// reading, not 1.7; blocks of 32 KB asked for alike are slower than not asking.)
template <class T> static inline void prefetch_two_rows(const T *row, isize ld, isize d) {
    prefetch_near(row, d);
    prefetch_near(row + ld, d);
}

// Rows of elements S, `row` bytes apart with `col` bytes from column to column, as rows of T, ld numbers apart, padded with zeros.
template <class S, class T>
static inline void convert(const S *__restrict first, isize row, isize col, isize m, isize d, T *__restrict out, isize ld) {
    const char *p = (const char *)first;
    if (col == (isize)sizeof(S)) {
        for (isize i = 0; i < m; i++)
            for (isize j = 0; j < d; j++) out[i * ld + j] = (T)((const S *)(p + i * row))[j];
    } else if (row == (isize)sizeof(S)) {
        for (isize j = 0; j < d; j++)
            for (isize i = 0; i < m; i++) out[i * ld + j] = (T)((const S *)(p + j * col))[i];
    } else {
        for (isize i = 0; i < m; i++)
            for (isize j = 0; j < d; j++) out[i * ld + j] = (T)*(const S *)(p + i * row + j * col);
    }
    for (isize i = 0; i < m; i++)
        for (isize j = d; j < ld; j++) out[i * ld + j] = 0;
}

// Q = diag(c) P and h += the sum of Q's rows, for rows of D numbers, a multiple of the lanes; four rows to each store of h.
static inline void scale_rows(const double *P, isize ldp, const double *c, isize m, isize D, double *Q, double *h) {
    typedef simd<double>::vec vec;
    const isize L = lanes<double>();
    isize i = 0;
    for (; i + 4 <= m; i += 4, P += 4 * ldp, Q += 4 * D) {
        const vec c0 = fill(c[i]), c1 = fill(c[i + 1]), c2 = fill(c[i + 2]), c3 = fill(c[i + 3]);
        for (isize j = 0; j < D; j += L) {
            const vec q0 = load(P + j) * c0, q1 = load(P + ldp + j) * c1;
            const vec q2 = load(P + 2 * ldp + j) * c2, q3 = load(P + 3 * ldp + j) * c3;
            store(Q + j, q0); store(Q + D + j, q1); store(Q + 2 * D + j, q2); store(Q + 3 * D + j, q3);
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
        s0 += load(a + i); s1 += load(a + i + L); s2 += load(a + i + 2 * L); s3 += load(a + i + 3 * L);
    }
    for (; i + L <= n; i += L) s0 += load(a + i);
    double result = total((s0 + s1) + (s2 + s3));
    for (; i < n; i++) result += a[i];
    return result;
}

// The largest of the K scores of each of m rows, z[k ldz + i], and the first k that has it. Reads and writes whole vectors. (As a
// plain loop GCC stores the new k behind a branch that nobody can foretell: half the time of a softmax.)
template <class T> static inline void largest(const T *z, isize ldz, isize K, isize m, T *top, T *best) {
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

// One row times one weight row.
template <class T> static inline T dot(const T *x, const T *w, isize d) {
    typedef typename simd<T>::vec vec;
    const isize L = lanes<T>(), body = d - d % L;
    vec s0 = vec(), s1 = vec(), s2 = vec(), s3 = vec();
    isize j = 0;
    for (; j + 4 * L <= body; j += 4 * L) {
        s0 += load(x + j) * load(w + j);
        s1 += load(x + j + L) * load(w + j + L);
        s2 += load(x + j + 2 * L) * load(w + j + 2 * L);
        s3 += load(x + j + 3 * L) * load(w + j + 3 * L);
    }
    if (j < body) { s0 += load(x + j) * load(w + j); j += L; }
    if (j < body) { s1 += load(x + j) * load(w + j); j += L; }
    if (j < body) { s2 += load(x + j) * load(w + j); j += L; }
    if (body < d) s3 += load(x + d - L) * load(w + body);
    return total((s0 + s1) + (s2 + s3));
}

// w += a x, one row.
template <class T> static inline void axpy(const T *x, T a, isize d, T *w) {
    const isize L = lanes<T>(), body = d - d % L;
    for (isize j = 0; j < body; j += L) store(w + j, load(w + j) + fill(a) * load(x + j));
    for (isize t = d % L; t > 0; t--) w[body + L - t] += a * x[d - t];
}

// w += a x, and then w'to: in one pass, so that no sum waits for weights on their way through memory. With BY also by'to. What is
// summed is summed in the order of dot; lanes that the last vector shares with the one before count nothing.
template <bool BY>
static inline double axpy_dot(const double *x, double a, isize d, double *w, const double *to, const double *by, double *product) {
    typedef simd<double>::vec vec;
    static const double OWN[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    const isize L = lanes<double>(), body = d - d % L, last = d - L;
    const vec b = fill(a);
    vec s0 = vec(), s1 = vec(), s2 = vec(), s3 = vec(), t0 = vec(), t1 = vec(), t2 = vec(), t3 = vec();
    auto visit = [&](isize j, vec &s, vec &t) {
        const vec u = load(w + j) + b * load(x + j), v = load(to + j);
        store(w + j, u);
        s += v * u;
        if (BY) t += v * load(by + j);
    };
    isize j = 0;
    for (; j + 4 * L <= body; j += 4 * L) {
        visit(j, s0, t0); visit(j + L, s1, t1); visit(j + 2 * L, s2, t2); visit(j + 3 * L, s3, t3);
    }
    if (j < body) { visit(j, s0, t0); j += L; }
    if (j < body) { visit(j, s1, t1); j += L; }
    if (j < body) { visit(j, s2, t2); j += L; }
    if (body < d) {
        const vec own = load(OWN + 8 - L + d % L), u = load(w + body) + (b * own) * load(x + last), v = load(to + last);
        store(w + body, u);
        s3 += v * u;
        if (BY) t3 += (v * own) * load(by + last);
    }
    if (BY) *product = total((t0 + t1) + (t2 + t3));
    return total((s0 + s1) + (s2 + s3));
}

// z = x - y, d numbers.
static inline void difference(const double *__restrict x, const double *__restrict y, isize d, double *__restrict z) {
    for (isize j = 0; j < d; j++) z[j] = x[j] - y[j];
}

// y += a x, n numbers.
template <class T> static inline void add(T a, const T *__restrict x, isize n, T *__restrict y) {
    typedef typename simd<T>::vec vec;
    const isize L = lanes<T>();
    const vec b = fill(a);
    isize j = 0;
    for (; j + L <= n; j += L) store(y + j, load(y + j) + b * load(x + j));
    for (; j < n; j++) y[j] += a * x[j];
}

// z += four rows times one weight row.
template <class T>
static inline void dot4(const T *x0, const T *x1, const T *x2, const T *x3, const T *w, isize d, T *z) {
    typedef typename simd<T>::vec vec;
    const isize L = lanes<T>(), body = d - d % L, last = d - L;
    vec s0 = vec(), s1 = vec(), s2 = vec(), s3 = vec();
    for (isize j = 0; j < body; j += L) {
        vec a = load(w + j);
        s0 += load(x0 + j) * a; s1 += load(x1 + j) * a; s2 += load(x2 + j) * a; s3 += load(x3 + j) * a;
    }
    if (body < d) {
        vec a = load(w + body);
        s0 += load(x0 + last) * a; s1 += load(x1 + last) * a; s2 += load(x2 + last) * a; s3 += load(x3 + last) * a;
    }
    add4(s0, s1, s2, s3, z);
}

// z += four rows times one weight row, as dot4 has it, and q = the squares of the rows.
static inline void dot4_square(const double *x0, const double *x1, const double *x2, const double *x3, const double *w, isize d,
                               double *z, double *q) {
    typedef simd<double>::vec vec;
    const isize L = lanes<double>(), body = d - d % L, last = d - L;
    vec s0 = vec(), s1 = vec(), s2 = vec(), s3 = vec(), t0 = vec(), t1 = vec(), t2 = vec(), t3 = vec();
    for (isize j = 0; j < body; j += L) {
        vec a = load(w + j), x;
        x = load(x0 + j); s0 += x * a; t0 += x * x;
        x = load(x1 + j); s1 += x * a; t1 += x * x;
        x = load(x2 + j); s2 += x * a; t2 += x * x;
        x = load(x3 + j); s3 += x * a; t3 += x * x;
    }
    if (body < d) {
        vec a = load(w + body);
        s0 += load(x0 + last) * a; s1 += load(x1 + last) * a; s2 += load(x2 + last) * a; s3 += load(x3 + last) * a;
    }
    add4(s0, s1, s2, s3, z);
    sum4(t0, t1, t2, t3, q);
    for (isize j = body; j < d; j++) {
        q[0] += x0[j] * x0[j]; q[1] += x1[j] * x1[j]; q[2] += x2[j] * x2[j]; q[3] += x3[j] * x3[j];
    }
}

// z[k ldz] += one row times each of K weight rows: the operations of dot4, four classes in the place of its four rows.
static inline void dot_classes(const double *x, const double *w, isize ldw, isize K, isize d, double *z, isize ldz) {
    typedef simd<double>::vec vec;
    const isize L = lanes<double>(), body = d - d % L, last = d - L;
    for (isize k = 0; k < K; k += 4) {
        const double *w0 = w + k * ldw, *w1 = k + 1 < K ? w0 + ldw : w0, *w2 = k + 2 < K ? w1 + ldw : w0, *w3 = k + 3 < K ? w2 + ldw : w0;
        vec s0 = vec(), s1 = vec(), s2 = vec(), s3 = vec();
        for (isize j = 0; j < body; j += L) {
            vec a = load(x + j);
            s0 += a * load(w0 + j); s1 += a * load(w1 + j); s2 += a * load(w2 + j); s3 += a * load(w3 + j);
        }
        if (body < d) {
            vec a = load(x + last);
            s0 += a * load(w0 + body); s1 += a * load(w1 + body); s2 += a * load(w2 + body); s3 += a * load(w3 + body);
        }
        double part[4];
        sum4(s0, s1, s2, s3, part);
        for (isize i = 0; i < 4 && k + i < K; i++) z[(k + i) * ldz] += part[i];
    }
}

// z[r ldz] += four rows times each of R weight rows, ldw numbers apart: eight or twelve sums in flight keep both multiply-add units
// busy.
template <class T, int R>
static inline void dot4xr(const T *x0, const T *x1, const T *x2, const T *x3, const T *w, isize ldw, isize d, T *z, isize ldz) {
    typedef typename simd<T>::vec vec;
    const isize L = lanes<T>(), body = d - d % L;
    vec s[R][4];
    for (int r = 0; r < R; r++) s[r][0] = s[r][1] = s[r][2] = s[r][3] = vec();
    for (isize j = 0; j < d; j += L) {
        const isize o = j < body ? j : d - L;
        vec a[R], x;
        for (int r = 0; r < R; r++) a[r] = load(w + r * ldw + j);
        x = load(x0 + o); for (int r = 0; r < R; r++) s[r][0] += x * a[r];
        x = load(x1 + o); for (int r = 0; r < R; r++) s[r][1] += x * a[r];
        x = load(x2 + o); for (int r = 0; r < R; r++) s[r][2] += x * a[r];
        x = load(x3 + o); for (int r = 0; r < R; r++) s[r][3] += x * a[r];
    }
    for (int r = 0; r < R; r++) add4(s[r][0], s[r][1], s[r][2], s[r][3], z + r * ldz);
}

// z[k ldz] += four rows times each of K weight rows.
template <class T>
static inline void dot4xk(const T *x0, const T *x1, const T *x2, const T *x3, const T *w, isize ldw, isize K, isize d, T *z, isize ldz) {
    isize k = 0;
    for (; K - k == 3 || K - k > 4; k += 3) dot4xr<T, 3>(x0, x1, x2, x3, w + k * ldw, ldw, d, z + k * ldz, ldz);
    for (; K - k > 1; k += 2) dot4xr<T, 2>(x0, x1, x2, x3, w + k * ldw, ldw, d, z + k * ldz, ldz);
    if (k < K) dot4(x0, x1, x2, x3, w + k * ldw, d, z + k * ldz);
}

// g += e0 x0 + e1 x1 + e2 x2 + e3 x3: each load and store of g serves four rows. Calls the row at `next` into the second cache.
template <class T>
static inline void axpy4(const T *x0, const T *x1, const T *x2, const T *x3, const T *e, isize d, T *g, const T *next) {
    typedef typename simd<T>::vec vec;
    const isize L = lanes<T>(), body = d - d % L, last = d - L, line = 64 / sizeof(T);
    const vec a = fill(e[0]), b = fill(e[1]), c = fill(e[2]), f = fill(e[3]);
    isize j = 0;
    for (; j + line <= body; j += line) {
        prefetch_line<1>(next + j);
        for (isize i = j; i < j + line; i += L)
            store(g + i, load(g + i) + (load(x0 + i) * a + load(x1 + i) * b) + (load(x2 + i) * c + load(x3 + i) * f));
    }
    for (; j < body; j += L)
        store(g + j, load(g + j) + (load(x0 + j) * a + load(x1 + j) * b) + (load(x2 + j) * c + load(x3 + j) * f));
    if (body < d)
        store(g + body, load(g + body) + (load(x0 + last) * a + load(x1 + last) * b)
                                       + (load(x2 + last) * c + load(x3 + last) * f));
}

// R weight rows by V vectors of columns, summed over m rows in registers: g[r, j] += sum_i e[r, i] x[i, j], where e[r, i]
// stands at e[r * er + i * ei].
template <class T, int R, int V>
static inline void outer_tile(const T *x, isize ld, isize m, const T *e, isize er, isize ei, T *g, isize ldg) {
    typedef typename simd<T>::vec vec;
    const isize L = lanes<T>();
    vec s[R][V];
    for (int r = 0; r < R; r++) for (int v = 0; v < V; v++) s[r][v] = vec();
    for (isize i = 0; i < m; i++, x += ld) {
        vec b[V];
        for (int v = 0; v < V; v++) b[v] = load(x + v * L);
        for (int r = 0; r < R; r++) {
            const vec a = fill(e[r * er + i * ei]);
            for (int v = 0; v < V; v++) s[r][v] += b[v] * a;
        }
    }
    for (int r = 0; r < R; r++)
        for (int v = 0; v < V; v++) store(g + r * ldg + v * L, load(g + r * ldg + v * L) + s[r][v]);
}

// R weight rows over all columns, V vectors at a time.
template <class T, int R, int V>
static inline void outer_rows(const T *x, isize ld, isize m, isize d, const T *e, isize lde, T *g, isize ldg) {
    const isize L = lanes<T>(), body = d - d % L;
    isize j = 0;
    for (; j + V * L <= body; j += V * L) outer_tile<T, R, V>(x + j, ld, m, e, lde, 1, g + j, ldg);
    for (; j + 2 * L <= body; j += 2 * L) outer_tile<T, R, 2>(x + j, ld, m, e, lde, 1, g + j, ldg);
    for (; j < body; j += L) outer_tile<T, R, 1>(x + j, ld, m, e, lde, 1, g + j, ldg);
    if (body < d) outer_tile<T, R, 1>(x + d - L, ld, m, e, lde, 1, g + body, ldg);
}

// G += E X for a block: E (K, lde) errors, X (m, ld) rows, G (K, ldg). Weight rows come in groups of up to five, all about as large:
// eight sums or more are then in registers, and a column left over has a sum for each of the group.
template <class T>
static inline void outer(const T *x, isize ld, isize m, isize d, const T *e, isize lde, isize K, T *g, isize ldg) {
    for (isize groups = (K + 4) / 5; groups > 0; groups--) {
        const isize R = (K + groups - 1) / groups;
        if (R == 5) outer_rows<T, 5, 2>(x, ld, m, d, e, lde, g, ldg);
        else if (R == 4) outer_rows<T, 4, 3>(x, ld, m, d, e, lde, g, ldg);
        else if (R == 3) outer_rows<T, 3, 3>(x, ld, m, d, e, lde, g, ldg);
        else if (R == 2) outer_rows<T, 2, 4>(x, ld, m, d, e, lde, g, ldg);
        else outer_rows<T, 1, 4>(x, ld, m, d, e, lde, g, ldg);
        K -= R, e += R * lde, g += R * ldg;
    }
}

// Upper triangle of H += Q' P for D columns, a multiple of 4 and of the lanes: Q and H have rows of D numbers, P of ldp. Twelve
// sums in registers at a time, eight where four vectors are left: four sums alone would wait for each other. The block behind P
// is called into the second cache meanwhile, a share with each strip of H.
static inline void gram(const double *Q, const double *P, isize ldp, isize m, isize D, double *H) {
    const isize L = lanes<double>(), share = m * ldp / D * 4;
    for (isize a = 0; a < D; a += 4) {
        const double *next = P + m * ldp + a / 4 * share;
        for (isize j = 0; j < share; j += 8) prefetch_line<1>(next + j);
        isize b = a - a % L, left = (D - b) / L;
        for (; left > 4 || left == 3; left -= 3, b += 3 * L)
            outer_tile<double, 4, 3>(P + b, ldp, m, Q + a, 1, D, H + a * D + b, D);
        for (; left > 1; left -= 2, b += 2 * L) outer_tile<double, 4, 2>(P + b, ldp, m, Q + a, 1, D, H + a * D + b, D);
        if (left) outer_tile<double, 4, 1>(P + b, ldp, m, Q + a, 1, D, H + a * D + b, D);
    }
}

}  // namespace tiles
