// The pairs of one row with rows that stand side by side, logistic loss: the inner loop of rank.pxi, on SIMD vectors.
//
// With E = exp(z - c) and F = exp(c - z), exp(-|z_v - z_u|) is the lesser of E_v F_u and F_v E_u: one division a pair, no exp.
// Arrays are padded with rows that count nothing, so that no loop has a remainder. (Plain loops with remainders, which summed up
// arrays that they had written, on one thread: 225 us, not 136, for the 46,552 pairs of 9,000 rows in 470 queries; 2.7 ms, not
// 1.6, for 1,224,226 pairs of longer queries.)
#pragma once
#include "tiles.h"

namespace rank_pairs {

using tiles::fill;
using tiles::isize;
using tiles::load;
using tiles::store;
typedef tiles::simd<double>::vec vec;
enum : isize { L = sizeof(vec) / sizeof(double) };

// Of a query's rows: scores, their exponentials, and derivatives.
struct Side {
    const double *z, *E, *F;
    double *e;
};

// Sums over pairs of weight 1: the loss is the sum of `loss` and of log(1 + product) over the lanes. The product is that of many
// 1 + u, kept less 1 so that small u do not drown.
struct Lanes {
    alignas(64) double product[8], loss[8], active[8];
};

static inline vec least(vec a, vec b) { return a < b ? a : b; }
static inline vec positive(vec a) { return a > vec() ? a : vec(); }

// Row u with the rows from v to end: the sum of its slopes, which are added to e. All pairs weigh 1.
static inline double equal_pairs(const Side &q, isize u, isize v, isize end, Lanes &lanes) {
    const vec z = fill(q.z[u]), E = fill(q.E[u]), F = fill(q.F[u]), one = fill(1.0), none = vec();
    vec own = none, product = load(lanes.product), loss = load(lanes.loss), active = load(lanes.active);
    for (; v < end; v += L) {
        const vec a = load(q.z + v) - z, low = least(load(q.E + v) * F, load(q.F + v) * E), r = one / (one + low);
        const vec slope = a > none ? r : low * r;
        product += low + low * product;
        loss += positive(a);
        active += a >= none ? one : none;
        own += slope;
        store(q.e + v, load(q.e + v) + slope);
    }
    store(lanes.product, product);
    store(lanes.loss, loss);
    store(lanes.active, active);
    return tiles::total(own);
}

// The same with weights p, which are of the rows from v on. The loss lacks p log(1 + u): u / (2 + u) is left in `ratio`.
static inline double weighted_pairs(const Side &q, isize u, isize v, isize end, const double *p, double *ratio, Lanes &lanes) {
    const vec z = fill(q.z[u]), E = fill(q.E[u]), F = fill(q.F[u]), one = fill(1.0), two = fill(2.0), none = vec();
    vec own = none, loss = load(lanes.loss), active = load(lanes.active);
    for (; v < end; v += L, p += L, ratio += L) {
        const vec a = load(q.z + v) - z, low = least(load(q.E + v) * F, load(q.F + v) * E), w = load(p);
        const vec r = one / ((one + low) * (two + low)), near = r * (two + low), slope = w * (a > none ? near : low * near);
        store(ratio, low * (one + low) * r);
        loss += w * positive(a);
        active += a >= none ? w : none;
        own += slope;
        store(q.e + v, load(q.e + v) + slope);
    }
    store(lanes.loss, loss);
    store(lanes.active, active);
    return tiles::total(own);
}

}  // namespace rank_pairs
