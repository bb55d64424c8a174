// Online rules: losses of margins, and rows of one output one after the other, where each waits for the one before. What they
// wait for is kept short, and nothing branches on what a row turns out to be, which nobody could predict.
#pragma once
#include "tiles.h"
#include <cstdint>
#include <cstring>

namespace chain {

using tiles::isize;

enum Loss { PERCEPTRON, WINNER, HINGE, SQUARED_HINGE, LOG, MODIFIED_HUBER, SQUARED };

static const double STEEPEST = 1e12;  // as in fastdisc/_kernels/__init__.py
enum { BLOCK = 64 };                  // rows that are paced, and learned from, at a time

// yes where a > b, else no. Of a plain choice the compiler may make a branch; of one between vectors it does not.
static inline double above(double a, double b, double yes, double no) {
#ifdef FASTDISC_VECTOR
    const tiles::d2 left = {a, a}, right = {b, b}, first = {yes, yes}, second = {no, no};
    return (left > right ? first : second)[0];
#else
    return a > b ? yes : no;
#endif
}
static inline double most(double a, double b) { return above(a, b, a, b); }
static inline double least(double a, double b) { return above(b, a, a, b); }

// sigmoid(-m), and sigmoid(m) in *other, for m kept to +-350. With m = n log 2 + r, exp(r) = (A + B) / (A - B), so that the only
// quotient is that of the sigmoid itself: a shorter way than through exp_nonpositive, where the next row waits for the end of it.
static inline double falling(double m, double *other) {
    const double big = 6755399441055744.0, x = least(most(m, -350.0), 350.0), t = x * 1.4426950408889634 + big, n = t - big;
    const double r = x - n * 0.69314718055994531, q = r * r;
    const double A = 1 + 0.11110810041408209 * q + 0.0009917624601629806 * (q * q);
    const double B = r * (0.5 + 0.013887383540375385 * q + 3.3043712760705595e-05 * (q * q));
    std::uint64_t bits;
    double power;
    std::memcpy(&bits, &t, 8);
    bits = (bits << 52) + 0x3FF0000000000000u;
    std::memcpy(&power, &bits, 8);
    const double up = power * (A + B), rest = 1 / ((A - B) + up);
    *other = up * rest;
    return (A - B) * rest;
}

// The derivative of a loss by the margin m = y z, and the loss. Where m is not a number, so is the loss that is
// noted in the end. The log loss is -log(sigmoid(m)): the sigmoid is left in *other, for a logarithm of many at once.
static inline double slope(int loss, double m, double *value, double *other) {
    const double edge = loss == HINGE ? 1 : 0, h = 1 - m;
    if (loss <= HINGE) {
        *value = most(edge - m, 0.0);
        return above(m, edge, 0, -1);
    }
    if (loss == LOG) {
        *value = most(-350 - m, 0.0);
        return -falling(m, other);
    }
    if (loss == SQUARED) {
        *value = h * h / 2;
        return -most(-STEEPEST, least(h, STEEPEST));
    }
    const double gap = most(h, 0.0), steep = least(gap, loss == MODIFIED_HUBER ? 2 : STEEPEST / 2);
    *value = loss == MODIFIED_HUBER ? steep * (2 * gap - steep) : gap * gap;
    return -2 * steep;
}

// What rows do whatever their scores are, and what came of them.
struct Pace {
    double step[BLOCK];   // eta_t s_t
    double scale[BLOCK];  // of the weights that the row meets
    double lift[BLOCK];   // 1 / scale of those it leaves; 0 if it is to leave them as they are
    double mass[BLOCK];   // for averages: see rules.pxi
    double count[BLOCK];
    double value[BLOCK];  // the loss, less the logarithm of
    double other[BLOCK];
    double a[BLOCK];      // the step, in units of the weights
};

// Learn from m rows of one output, ld numbers apart, whose classes are r; w0 and w change.
//
// EARLY has the score of row i + 1 before the step b of row i is known, as w'x_{i+1} + b [1 x_i]'[1 x_{i+1}] with the weights w
// that row i met: only the slope of the loss and one multiply-add wait for the row before. (Log loss, d = 28, rows in cache:
// 25 ns a row, not 36.)
template <bool EARLY>
static double learn(int loss, double one, isize d, const double *x, isize ld, const char *next, isize stride, const std::int32_t *r,
                    isize m, Pace *pace, double *w, double w0) {
    double z = tiles::dot(x, (const double *)w, d), h = 0, z1 = 0, h1 = 0, a = 0, b = 0;
    if (EARLY) {
        const double *x1 = x + (m > 1 ? ld : 0);
        z1 = tiles::axpy_dot<true>(x, 0, d, w, x1, x, &h1);
        h1 += one;
    }
    for (isize i = 0; i < m; i++) {
        const double *x1 = i + 1 < m ? x + ld : x, *x2 = i + 2 < m ? x1 + ld : x;
        const double y = 2 * r[i] - 1, sign = y * pace->scale[i], step = y * pace->step[i];
        for (isize j = 0; j < stride; j += 64) tiles::prefetch_line<3>(next + j);
        next += stride;
        const double margin = (sign * z + y * w0) + b * (sign * h);
        w0 += a;
        const double s = slope(loss, margin, pace->value + i, pace->other + i);
        pace->value[i] += margin - margin;  // NaN if it is not finite
        pace->a[i] = -step * s;
        a = -(one * step) * s;
        b = -(pace->lift[i] * step) * s;
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

enum PairLoss { PAIR_HINGE, PAIR_SQUARED, PAIR_HUBER, PAIR_LOGISTIC };

// The derivative of a pair's loss by a, the margin less the difference of its scores.
static inline double pair_slope(int loss, double a, double width) {
    double other;
    if (loss == PAIR_LOGISTIC) return falling(-a, &other);
    if (loss == PAIR_HINGE) return above(a, 0, 1, 0);
    return loss == PAIR_SQUARED ? 2 * most(a, 0.0) : least(most(a, 0.0), width) / width;
}

// Learn from m pairs, whose differences g are d numbers each, a multiple of the lanes: the number of steps. As `learn` with EARLY.
static isize learn_gaps(int loss, double margin, double width, isize d, const double *g, isize m, const double *step, double *w) {
    double z = tiles::dot(g, (const double *)w, d), h = 0, b = 0, h1;
    double z1 = tiles::axpy_dot<true>(g, 0, d, w, g + (m > 1 ? d : 0), g, &h1);
    isize steps = 0;
    for (isize i = 0; i < m; i++) {
        const double *g1 = i + 1 < m ? g + d : g, *g2 = i + 2 < m ? g1 + d : g;
        b = step[i] * pair_slope(loss, margin - (z + b * h), width);
        steps += b != 0;
        z = z1; h = h1;
        z1 = tiles::axpy_dot<true>(g, b, d, w, g2, g1, &h1);
        g = g1;
    }
    return steps;
}

}  // namespace chain
