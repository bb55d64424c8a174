// Online rules: losses of margins, and rows of a single score one after the other. Each row depends
// on the one before, so the chain of dependent operations is short, and no branch depends on a
// row's score: it could not be predicted.
#pragma once
#include <cstdint>
#include <cstring>
#include <limits>
#include "enums.h"
#include "tiles.h"

namespace online {

using enums::MarginLoss;
using tiles::isize;

static const double MAX_SLOPE = 1e12;  // as in contract.py
enum { BLOCK_ROWS = 64 };              // whose schedule is made at a time

// Ask for n bytes. GCC takes a function that only prefetches for one without effects, and removes
// calls of it, unless there is an assembler statement.
static inline void prefetch_bytes(const char *p, isize n) {
    for (isize j = 0; j < n; j += 64) tiles::prefetch_line<3>(p + j);
#ifdef __GNUC__
    __asm__ volatile("");
#endif
}

// yes if a > b, else no. Of a plain choice the compiler may make a branch; of one between vectors
// it does not.
static inline double if_above(double a, double b, double yes, double no) {
#ifdef FASTDISC_VECTOR
    const tiles::d2 left = {a, a}, right = {b, b}, first = {yes, yes}, second = {no, no};
    return (left > right ? first : second)[0];
#else
    return a > b ? yes : no;
#endif
}
static inline double greater_of(double a, double b) { return if_above(a, b, a, b); }
static inline double lesser_of(double a, double b) { return if_above(b, a, a, b); }

// sigmoid(-m), and sigmoid(m) in *other, for m limited to +-350. With m = n log 2 + r, exp(r) = (A
// + B) / (A - B), so that the only quotient is that of the sigmoid itself: a shorter chain than by
// exp_nonpositive.
static inline double sigmoids(double m, double *other) {
    const double big = 6755399441055744.0, x = lesser_of(greater_of(m, -350.0), 350.0);
    const double t = x * 1.4426950408889634 + big, n = t - big;
    const double r = x - n * 0.69314718055994531, q = r * r;
    const double A = 1 + 0.11110810041408209 * q + 0.0009917624601629806 * (q * q);
    const double B =
        r * (0.5 + 0.013887383540375385 * q + 3.3043712760705595e-05 * (q * q));
    std::uint64_t bits;
    double power;
    std::memcpy(&bits, &t, 8);
    bits = (bits << 52) + 0x3FF0000000000000u;
    std::memcpy(&power, &bits, 8);
    const double up = power * (A + B), rest = 1 / ((A - B) + up);
    *other = up * rest;
    return (A - B) * rest;
}

// A loss of the margin m = r' z, and the part of it of which a logarithm is still to be taken: the
// loss is value - log(sigmoid).
struct MarginValues {
    double value, sigmoid;
};

// The derivative of each loss by the margin; the loss is written. If m is NaN, the caller makes the
// loss NaN.
static inline double perceptron(double m, MarginValues *loss) {
    loss->value = greater_of(0.0 - m, 0.0);
    return if_above(m, 0, 0, -1);
}

static inline double hinge(double m, MarginValues *loss) {
    loss->value = greater_of(1 - m, 0.0);
    return if_above(m, 1, 0, -1);
}

static inline double squared_hinge(double m, MarginValues *loss) {
    const double gap = greater_of(1 - m, 0.0);
    loss->value = gap * gap;
    return -2 * lesser_of(gap, MAX_SLOPE / 2);
}

static inline double log_loss(double m, MarginValues *loss) {
    loss->value = greater_of(-350 - m, 0.0);
    return -sigmoids(m, &loss->sigmoid);
}

static inline double modified_huber(double m, MarginValues *loss) {
    const double gap = greater_of(1 - m, 0.0), near = lesser_of(gap, 2);
    loss->value = near * (2 * gap - near);
    return -2 * near;
}

static inline double squared(double m, MarginValues *loss) {
    const double h = 1 - m;
    loss->value = h * h / 2;
    return -greater_of(-MAX_SLOPE, lesser_of(h, MAX_SLOPE));
}

static inline double margin_slope(MarginLoss code, double m, MarginValues *loss) {
    switch (code) {
        case MarginLoss::PERCEPTRON: return perceptron(m, loss);
        case MarginLoss::HINGE: return hinge(m, loss);
        case MarginLoss::SQUARED_HINGE: return squared_hinge(m, loss);
        case MarginLoss::LOG: return log_loss(m, loss);
        case MarginLoss::MODIFIED_HUBER: return modified_huber(m, loss);
        case MarginLoss::SQUARED: return squared(m, loss);
        case MarginLoss::PERCEPTRON_MULTICLASS: break;  // not a loss of one margin
    }
    return std::numeric_limits<double>::quiet_NaN();
}

// Of a block of rows: what does not depend on their scores, and what was computed of them.
struct Schedule {
    double step[BLOCK_ROWS];           // eta_t s_t
    double scale[BLOCK_ROWS];          // of the weights before the row
    double inverse_scale[BLOCK_ROWS];  // of those after it; 0 if it must not change them
    double scale_sum[BLOCK_ROWS];      // for averages: see online_rules.pxi
    double averaged[BLOCK_ROWS];
    MarginValues loss[BLOCK_ROWS];
    double a[BLOCK_ROWS];              // the step times the derivative
};

// Dense rows, ld numbers apart, and their classes. `prefetch` bytes per row are prefetched from
// `next` on.
struct RowBlock {
    const double *x;
    isize ld;
    const std::int32_t *r;
    isize m;
    const char *next;
    isize prefetch;
};

// The updates of m rows of a single score; w changes, and the new intercept is returned. `one` is
// 1 if the intercept is learned, else 0.
//
// EARLY computes the score of row i + 1 before the step b of row i is known, as w'x_{i+1} + b [1
// x_i]'[1 x_{i+1}] with the weights w before row i: only the derivative of the loss and one
// multiply-add depend on the row before. (Log loss, d = 28, rows in cache: 25 ns a row, not 36.)
template <bool EARLY>
static double learn(MarginLoss code, double one, isize d, const RowBlock &block, Schedule *schedule,
                    double *w, double w0) {
    const double *x = block.x;
    const std::int32_t *r = block.r;
    const char *next = block.next;
    const isize m = block.m, ld = block.ld, prefetch = block.prefetch;
    double z = tiles::dot(x, (const double *)w, d), h = 0, z1 = 0, h1 = 0, a = 0, b = 0;
    if (EARLY) {
        const double *x1 = x + (m > 1 ? ld : 0);
        z1 = tiles::axpy_dot<true>(x, 0, d, w, x1, x, &h1);
        h1 += one;
    }
    for (isize i = 0; i < m; i++) {
        const double *x1 = i + 1 < m ? x + ld : x, *x2 = i + 2 < m ? x1 + ld : x;
        const double y = 2 * r[i] - 1;
        const double sign = y * schedule->scale[i], step = y * schedule->step[i];
        for (isize j = 0; j < prefetch; j += 64) tiles::prefetch_line<3>(next + j);
        next += prefetch;
        const double margin = (sign * z + y * w0) + b * (sign * h);
        w0 += a;
        const double slope = margin_slope(code, margin, schedule->loss + i);
        schedule->loss[i].value += margin - margin;  // NaN if it is not finite
        schedule->a[i] = -step * slope;
        a = -(one * step) * slope;
        b = -(schedule->inverse_scale[i] * step) * slope;
        if (EARLY) {
            z = z1; h = h1;
            z1 = tiles::axpy_dot<true>(x, b, d, w, x2, x1, &h1);
            h1 += one;
        } else {
            w0 += a;
            z = tiles::axpy_dot<false>(x, b, d, w, x1, x1, &h1);
            a = b = 0;
        }
        x = x1;
    }
    return w0 + a;
}

}  // namespace online
