// Register tiles: the innermost loops of dense blocks, with their sums in SIMD registers.
//
// Plain loops were tried first. GCC vectorises them only with -fassociative-math, which also
// rewrites the range reduction of the polynomial exp, and it leaves a scalar remainder loop that
// takes a third of the time at d = 10. Vector types need no fast-math flag, and fix the order of
// every sum for all compilers.
//
// Rows are read as d / L whole vectors; if L does not divide d, one more vector covers the last L
// columns and overlaps the one before. The last vector of a weight row has zeros in the overlapped
// lanes (see `tail_columns` in layouts.pxi), so that nothing counts twice and no byte beyond a row
// is read. A caller with d < L pads the rows.
#pragma once
#include "blocks.h"

namespace tiles {

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

// w += a x, and then w'to: in one pass, so that no sum waits for a store of weights to be loaded
// again. With BY also *product = by'to. Sums are taken in the order of `dot`; the lanes that the
// last vector shares with the one before are not counted twice.
template <bool BY>
static inline double axpy_dot(const double *x, double a, isize d, double *w, const double *to,
                              const double *by, double *product) {
    typedef simd<double>::vec vec;
    static const double MASK[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    const isize L = lanes<double>(), body = d - d % L, last = d - L;
    const vec b = fill(a);
    vec s0 = vec(), s1 = vec(), s2 = vec(), s3 = vec();
    vec t0 = vec(), t1 = vec(), t2 = vec(), t3 = vec();
    auto step = [&](isize j, vec &s, vec &t) {
        const vec u = load(w + j) + b * load(x + j), v = load(to + j);
        store(w + j, u);
        s += v * u;
        if (BY) t += v * load(by + j);
    };
    isize j = 0;
    for (; j + 4 * L <= body; j += 4 * L) {
        step(j, s0, t0); step(j + L, s1, t1); step(j + 2 * L, s2, t2); step(j + 3 * L, s3, t3);
    }
    if (j < body) { step(j, s0, t0); j += L; }
    if (j < body) { step(j, s1, t1); j += L; }
    if (j < body) { step(j, s2, t2); j += L; }
    if (body < d) {
        const vec mask = load(MASK + 8 - L + d % L), v = load(to + last);
        const vec u = load(w + body) + (b * mask) * load(x + last);
        store(w + body, u);
        s3 += v * u;
        if (BY) t3 += (v * mask) * load(by + last);
    }
    if (BY) *product = total((t0 + t1) + (t2 + t3));
    return total((s0 + s1) + (s2 + s3));
}

// z = x - y, d numbers.
static inline void difference(const double *__restrict x, const double *__restrict y, isize d,
                              double *__restrict z) {
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
static inline void dot4(const T *x0, const T *x1, const T *x2, const T *x3, const T *w, isize d,
                        T *z) {
    typedef typename simd<T>::vec vec;
    const isize L = lanes<T>(), body = d - d % L, last = d - L;
    vec s0 = vec(), s1 = vec(), s2 = vec(), s3 = vec();
    for (isize j = 0; j < body; j += L) {
        vec a = load(w + j);
        s0 += load(x0 + j) * a; s1 += load(x1 + j) * a;
        s2 += load(x2 + j) * a; s3 += load(x3 + j) * a;
    }
    if (body < d) {
        vec a = load(w + body);
        s0 += load(x0 + last) * a; s1 += load(x1 + last) * a;
        s2 += load(x2 + last) * a; s3 += load(x3 + last) * a;
    }
    add4(s0, s1, s2, s3, z);
}

// `dot4`, and q = the squared norms of the rows.
static inline void dot4_square(const double *x0, const double *x1, const double *x2,
                               const double *x3, const double *w, isize d, double *z, double *q) {
    typedef simd<double>::vec vec;
    const isize L = lanes<double>(), body = d - d % L, last = d - L;
    vec s0 = vec(), s1 = vec(), s2 = vec(), s3 = vec();
    vec t0 = vec(), t1 = vec(), t2 = vec(), t3 = vec();
    for (isize j = 0; j < body; j += L) {
        vec a = load(w + j), x;
        x = load(x0 + j); s0 += x * a; t0 += x * x;
        x = load(x1 + j); s1 += x * a; t1 += x * x;
        x = load(x2 + j); s2 += x * a; t2 += x * x;
        x = load(x3 + j); s3 += x * a; t3 += x * x;
    }
    if (body < d) {
        vec a = load(w + body);
        s0 += load(x0 + last) * a; s1 += load(x1 + last) * a;
        s2 += load(x2 + last) * a; s3 += load(x3 + last) * a;
    }
    add4(s0, s1, s2, s3, z);
    sum4(t0, t1, t2, t3, q);
    for (isize j = body; j < d; j++) {
        q[0] += x0[j] * x0[j]; q[1] += x1[j] * x1[j];
        q[2] += x2[j] * x2[j]; q[3] += x3[j] * x3[j];
    }
}

// z[k ldz] += one row times each of K weight rows: the operations of `dot4`, with four classes in
// place of its four rows.
static inline void dot_classes(const double *x, const double *w, isize ldw, isize K, isize d,
                               double *z, isize ldz) {
    typedef simd<double>::vec vec;
    const isize L = lanes<double>(), body = d - d % L, last = d - L;
    for (isize k = 0; k < K; k += 4) {
        const double *w0 = w + k * ldw, *w1 = k + 1 < K ? w0 + ldw : w0;
        const double *w2 = k + 2 < K ? w1 + ldw : w0, *w3 = k + 3 < K ? w2 + ldw : w0;
        vec s0 = vec(), s1 = vec(), s2 = vec(), s3 = vec();
        for (isize j = 0; j < body; j += L) {
            vec a = load(x + j);
            s0 += a * load(w0 + j); s1 += a * load(w1 + j);
            s2 += a * load(w2 + j); s3 += a * load(w3 + j);
        }
        if (body < d) {
            vec a = load(x + last);
            s0 += a * load(w0 + body); s1 += a * load(w1 + body);
            s2 += a * load(w2 + body); s3 += a * load(w3 + body);
        }
        double part[4];
        sum4(s0, s1, s2, s3, part);
        for (isize i = 0; i < 4 && k + i < K; i++) z[(k + i) * ldz] += part[i];
    }
}

// z[r ldz] += four rows times each of R weight rows, ldw numbers apart: eight or twelve independent
// sums keep both multiply-add units busy.
template <class T, int R>
static inline void dot4xr(const T *x0, const T *x1, const T *x2, const T *x3, const T *w, isize ldw,
                          isize d, T *z, isize ldz) {
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
static inline void dot4xk(const T *x0, const T *x1, const T *x2, const T *x3, const T *w, isize ldw,
                          isize K, isize d, T *z, isize ldz) {
    isize k = 0;
    for (; K - k == 3 || K - k > 4; k += 3)
        dot4xr<T, 3>(x0, x1, x2, x3, w + k * ldw, ldw, d, z + k * ldz, ldz);
    for (; K - k > 1; k += 2)
        dot4xr<T, 2>(x0, x1, x2, x3, w + k * ldw, ldw, d, z + k * ldz, ldz);
    if (k < K) dot4(x0, x1, x2, x3, w + k * ldw, d, z + k * ldz);
}

// g += e0 x0 + e1 x1 + e2 x2 + e3 x3: each load and store of g serves four rows. Prefetches the row
// at `next` into L2.
template <class T>
static inline void axpy4(const T *x0, const T *x1, const T *x2, const T *x3, const T *e, isize d,
                         T *g, const T *next) {
    typedef typename simd<T>::vec vec;
    const isize L = lanes<T>(), body = d - d % L, last = d - L, line = 64 / sizeof(T);
    const vec a = fill(e[0]), b = fill(e[1]), c = fill(e[2]), f = fill(e[3]);
    isize j = 0;
    for (; j + line <= body; j += line) {
        prefetch_line<1>(next + j);
        for (isize i = j; i < j + line; i += L)
            store(g + i, load(g + i) + (load(x0 + i) * a + load(x1 + i) * b)
                                     + (load(x2 + i) * c + load(x3 + i) * f));
    }
    for (; j < body; j += L)
        store(g + j, load(g + j) + (load(x0 + j) * a + load(x1 + j) * b)
                                 + (load(x2 + j) * c + load(x3 + j) * f));
    if (body < d)
        store(g + body, load(g + body) + (load(x0 + last) * a + load(x1 + last) * b)
                                       + (load(x2 + last) * c + load(x3 + last) * f));
}

// R weight rows by V vectors of columns, summed over m rows in registers:
// g[r, j] += sum_i e[r * er + i * ei] x[i, j].
template <class T, int R, int V>
static inline void outer_tile(const T *x, isize ld, isize m, const T *e, isize er, isize ei, T *g,
                              isize ldg) {
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
        for (int v = 0; v < V; v++)
            store(g + r * ldg + v * L, load(g + r * ldg + v * L) + s[r][v]);
}

// R weight rows over all columns, V vectors at a time.
template <class T, int R, int V>
static inline void outer_rows(const T *x, isize ld, isize m, isize d, const T *e, isize lde, T *g,
                              isize ldg) {
    const isize L = lanes<T>(), body = d - d % L;
    isize j = 0;
    for (; j + V * L <= body; j += V * L)
        outer_tile<T, R, V>(x + j, ld, m, e, lde, 1, g + j, ldg);
    for (; j + 2 * L <= body; j += 2 * L)
        outer_tile<T, R, 2>(x + j, ld, m, e, lde, 1, g + j, ldg);
    for (; j < body; j += L) outer_tile<T, R, 1>(x + j, ld, m, e, lde, 1, g + j, ldg);
    if (body < d) outer_tile<T, R, 1>(x + d - L, ld, m, e, lde, 1, g + body, ldg);
}

// G += E X for a block: E (K, lde) errors, X (m, ld) rows, G (K, ldg). Weight rows are taken in
// groups of up to five, of about equal size, which keeps at least eight sums in registers.
template <class T>
static inline void outer(const T *x, isize ld, isize m, isize d, const T *e, isize lde, isize K,
                         T *g, isize ldg) {
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

// Upper triangle of H += Q' P for D columns, a multiple of 4 and of the lanes: Q and H have rows of
// D numbers, P of ldp. Twelve sums are in registers at a time, or eight if four vectors are left:
// four sums alone would wait for each other. The block behind P is prefetched into L2, a part of it
// with each strip of H.
static inline void gram_strips(const double *Q, const double *P, isize ldp, isize m, isize D,
                               double *H) {
    const isize L = lanes<double>(), share = m * ldp / D * 4;
    for (isize a = 0; a < D; a += 4) {
        const double *next = P + m * ldp + a / 4 * share;
        for (isize j = 0; j < share; j += 8) prefetch_line<1>(next + j);
        isize b = a - a % L, left = (D - b) / L;
        for (; left > 4 || left == 3; left -= 3, b += 3 * L)
            outer_tile<double, 4, 3>(P + b, ldp, m, Q + a, 1, D, H + a * D + b, D);
        for (; left > 1; left -= 2, b += 2 * L)
            outer_tile<double, 4, 2>(P + b, ldp, m, Q + a, 1, D, H + a * D + b, D);
        if (left) outer_tile<double, 4, 1>(P + b, ldp, m, Q + a, 1, D, H + a * D + b, D);
    }
}

}  // namespace tiles
