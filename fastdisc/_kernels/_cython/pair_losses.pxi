# Losses of an ordered pair (u, v), u preferred to v, as functions of a = margin + z_v - z_u.
#
# Each formula is written here, once. Two kinds of loops cannot use it: where each pair depends on
# the one before, only the derivative is needed, and soon (`pair_slope` in online_pairs.h); and for
# LOGISTIC the exponentials of pairs follow from one per row (pair_exponentials.h).

cdef extern from "online_pairs.h" namespace "online_pairs" nogil:
    cdef struct PairRule:
        PairLoss loss
        double margin, width
    double pair_slope(PairLoss loss, double a, double width)

cdef enum:
    STRIP = 512     # partners of a row that are evaluated at a time: four buffers stay in L1
    MAX_LANES = 8   # of the widest vectors

# What is asked of a strip of pairs: losses and derivatives; curvatures; curvatures of the pairs in
# which the strip's rows are preferred.
cdef enum Wanted:
    LOSSES
    CURVATURES
    CURVATURES_AS_OTHER

# Of a pair, each times the pair's weight p; `active` is p or 0.
cdef struct PairValues:
    double loss, slope, curvature, active

# Buffers for the pairs of one row with up to STRIP rows; padded for loops over whole vectors.
cdef struct Strip:
    double[STRIP + MAX_LANES] p        # weights; the curvatures times weights, if these are wanted
    double[STRIP + MAX_LANES] loss
    double[STRIP] slope
    double[STRIP] active

# A loss is a type, for which loops over pairs are compiled: asked for its code in each pair, they
# would not be vectorised.
cdef struct Hinge:
    char unused

cdef struct SquaredHinge:
    char unused

cdef struct Huber:
    char unused

cdef struct Logistic:
    char unused

ctypedef fused PairFormula:
    Hinge
    SquaredHinge
    Huber
    Logistic


cdef PairRule pair_rule(rule) except *:
    """A rule whose loss is known."""
    cdef PairRule result
    result.loss = <PairLoss>checked("pair loss", rule[0], "PairLoss")
    result.margin, result.width = rule[1], rule[2]
    return result


cdef inline PairValues hinge_values(double a, double p) noexcept nogil:
    """[a]_+"""
    cdef PairValues result
    result.loss = p * (a if a > 0 else 0)
    result.slope = p if a > 0 else 0
    result.curvature = 0
    result.active = result.slope
    return result


cdef inline PairValues squared_hinge_values(double a, double p) noexcept nogil:
    """[a]_+^2"""
    cdef PairValues result
    cdef double up = a if a > 0 else 0
    result.loss = p * (up * up)
    result.slope = p * (2 * up)
    result.curvature = p * (2 if a > 0 else 0)
    result.active = p if a > 0 else 0
    return result


cdef inline PairValues huber_values(double a, double p, double width) noexcept nogil:
    """The hinge with its corner smoothed over `width`."""
    cdef PairValues result
    cdef double up = a if a > 0 else 0, near = up if up < width else width
    result.slope = p * (near / width)
    result.loss = result.slope * (up - near / 2)
    result.curvature = p * (1 / width if a > 0 and a <= width else 0)
    result.active = p if a > 0 else 0
    return result


cdef inline PairValues logistic_values(double difference, double a, double p) noexcept nogil:
    """log(1 + exp(a))"""
    cdef PairValues result
    cdef double u = exp_nonpositive(-abs(a))
    result.loss = p * (log1p_ratio(u / (2 + u)) + (a if a > 0 else 0))
    result.slope = p * ((1 if a > 0 else u) / (1 + u))
    result.curvature = p * (u / ((1 + u) * (1 + u)))
    result.active = p if difference >= 0 else 0
    return result


cdef inline PairValues pair_values(
    const PairRule* rule, double difference, double p, const PairFormula* formula
) noexcept nogil:
    """z_v - z_u -> loss, derivative by a, curvature, each times p   (10.46)"""
    if PairFormula is Hinge:
        return hinge_values(difference + rule.margin, p)
    elif PairFormula is SquaredHinge:
        return squared_hinge_values(difference + rule.margin, p)
    elif PairFormula is Huber:
        return huber_values(difference + rule.margin, p, rule.width)
    else:
        return logistic_values(difference, difference + rule.margin, p)


cdef void evaluate_strip(
    const PairRule* rule, double zu, const double* z, Py_ssize_t m, Strip* strip,
    Wanted wanted, const PairFormula* formula
) noexcept nogil:
    cdef PairRule own = rule[0]   # a copy that no store below can change
    cdef PairValues values
    cdef double sign
    cdef Py_ssize_t i
    if wanted == LOSSES:
        for i in range(m):
            values = pair_values(&own, z[i] - zu, strip.p[i], formula)
            strip.loss[i], strip.slope[i] = values.loss, values.slope
            strip.active[i] = values.active
        return
    sign = -1 if wanted == CURVATURES_AS_OTHER else 1
    for i in range(m):
        values = pair_values(&own, sign * (z[i] - zu), strip.p[i], formula)
        strip.p[i] = values.curvature


cdef void evaluate_pairs(
    const PairRule* rule, double zu, const double* z, Py_ssize_t m, Strip* strip,
    Wanted wanted
) noexcept nogil:
    """The pairs of a row of score zu with m rows of scores z: what is wanted, times strip.p"""
    if rule.loss == PairLoss.HINGE:
        evaluate_strip(rule, zu, z, m, strip, wanted, <const Hinge*>NULL)
    elif rule.loss == PairLoss.SQUARED_HINGE:
        evaluate_strip(rule, zu, z, m, strip, wanted, <const SquaredHinge*>NULL)
    elif rule.loss == PairLoss.HUBER:
        evaluate_strip(rule, zu, z, m, strip, wanted, <const Huber*>NULL)
    elif rule.loss == PairLoss.LOGISTIC:
        evaluate_strip(rule, zu, z, m, strip, wanted, <const Logistic*>NULL)
