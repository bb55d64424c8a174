// Ranking updates: pairs one after the other. Only the derivative of a loss is needed, and the next
// pair depends on it, so it is computed by a short chain of operations and without a branch.
#pragma once
#include <limits>
#include "enums.h"
#include "online.h"

namespace online_pairs {

using enums::PairLoss;
using online::greater_of;
using online::if_above;
using online::lesser_of;
using tiles::isize;

static inline double hinge_slope(double a) { return if_above(a, 0, 1, 0); }
static inline double squared_hinge_slope(double a) { return 2 * greater_of(a, 0.0); }
static inline double huber_slope(double a, double width) {
    return lesser_of(greater_of(a, 0.0), width) / width;
}
static inline double logistic_slope(double a) {
    double other;
    return online::sigmoids(-a, &other);
}

// The derivative of a pair's loss by a = margin + z_v - z_u.
static inline double pair_slope(PairLoss loss, double a, double width) {
    switch (loss) {
        case PairLoss::HINGE: return hinge_slope(a);
        case PairLoss::SQUARED_HINGE: return squared_hinge_slope(a);
        case PairLoss::HUBER: return huber_slope(a, width);
        case PairLoss::LOGISTIC: return logistic_slope(a);
    }
    return std::numeric_limits<double>::quiet_NaN();
}

struct PairRule {
    PairLoss loss;
    double margin, width;
};

// The updates of m pairs, whose differences x_u - x_v are d numbers each, a multiple of the lanes:
// how many change w. As `learn` of online.h with EARLY.
static isize learn_differences(const PairRule rule, isize d, const double *g, isize m,
                               const double *step, double *w) {
    double z = tiles::dot(g, (const double *)w, d), h = 0, b = 0, h1;
    double z1 = tiles::axpy_dot<true>(g, 0, d, w, g + (m > 1 ? d : 0), g, &h1);
    isize updates = 0;
    for (isize i = 0; i < m; i++) {
        const double *g1 = i + 1 < m ? g + d : g, *g2 = i + 2 < m ? g1 + d : g;
        b = step[i] * pair_slope(rule.loss, rule.margin - (z + b * h), rule.width);
        updates += b != 0;
        z = z1; h = h1;
        z1 = tiles::axpy_dot<true>(g, b, d, w, g2, g1, &h1);
        g = g1;
    }
    return updates;
}

}  // namespace online_pairs
