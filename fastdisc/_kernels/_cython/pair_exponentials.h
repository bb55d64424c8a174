// The pairs of one row with rows that are stored next to each other, LOGISTIC with margin 0: the
// inner loops of ranking.pxi, on SIMD vectors.
//
// With E = exp(z - c) and F = exp(c - z), exp(-|z_v - z_u|) is the lesser of E_v F_u and F_v E_u:
// one division per pair, no exp. Arrays are padded with rows that contribute 0, so that no loop
// has a remainder. (Plain loops with remainders, which summed arrays that they had written, on one
// thread: 225 us, not 136, for the 46,552 pairs of 9,000 rows in 470 queries; 2.7 ms, not 1.6, for
// 1,224,226 pairs of longer queries.)
#pragma once
#include "tiles.h"

namespace pair_exponentials {

using tiles::fill;
using tiles::isize;
using tiles::load;
using tiles::store;
typedef tiles::simd<double>::vec vec;
enum : isize { L = sizeof(vec) / sizeof(double) };

// Of a query's rows: scores, their exponentials, and derivatives.
struct QueryRows {
    double *z, *E, *F, *e;
};

// Sums over pairs, a lane each. Of pairs of weight 1 the loss is the sum of `loss` and of
// log(1 + product), where 1 + product is that of many 1 + u: so small u keep their digits.
struct Lanes {
    alignas(64) double product[8], loss[8], active[8];
};

static inline vec lesser(vec a, vec b) { return a < b ? a : b; }
static inline vec positive(vec a) { return a > vec() ? a : vec(); }

// Row u with the rows from v to end: the sum of its slopes, which are added to e. All pairs weigh
// 1.
static inline double equal_pairs(const QueryRows &q, isize u, isize v, isize end, Lanes &lanes) {
    const vec z = fill(q.z[u]), E = fill(q.E[u]), F = fill(q.F[u]), one = fill(1.0), none = vec();
    vec own = none, product = load(lanes.product), loss = load(lanes.loss);
    vec active = load(lanes.active);
    for (; v < end; v += L) {
        const vec a = load(q.z + v) - z, low = lesser(load(q.E + v) * F, load(q.F + v) * E);
        const vec r = one / (one + low), slope = a > none ? r : low * r;
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

// The same with weights p, the first of which is that of row v. The loss lacks p log(1 + u):
// u / (2 + u) is written to `ratio`.
static inline double weighted_pairs(const QueryRows &q, isize u, isize v, isize end,
                                    const double *p, double *ratio, Lanes &lanes) {
    const vec z = fill(q.z[u]), E = fill(q.E[u]), F = fill(q.F[u]);
    const vec one = fill(1.0), two = fill(2.0), none = vec();
    vec own = none, loss = load(lanes.loss), active = load(lanes.active);
    for (; v < end; v += L, p += L, ratio += L) {
        const vec a = load(q.z + v) - z, low = lesser(load(q.E + v) * F, load(q.F + v) * E);
        const vec w = load(p), r = one / ((one + low) * (two + low)), near = r * (two + low);
        const vec slope = w * (a > none ? near : low * near);
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

}  // namespace pair_exponentials
