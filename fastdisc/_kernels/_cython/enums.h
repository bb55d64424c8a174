// Codes with the names and values of fastdisc/_kernels/enums.py, for Cython and for C++.
#pragma once

namespace enums {

enum class RowLoss { LOGISTIC, SOFTMAX, SIGMOID_SQUARED, SQUARED };

enum class Activation { IDENTITY, SIGMOID, SOFTMAX };

enum class MomentKind { SUMS, COUNTS, SQUARES, SCATTER, QUARTIC };

enum class BasisKind {
    PRODUCTS,
    SINE,
    GAUSSIAN,
    LOG,
    THRESHOLD,
    RADIAL,
    HALFSPACE,
    SUBSPACE,
    CUSTOM
};

enum class MarginLoss {
    PERCEPTRON,
    PERCEPTRON_MULTICLASS,
    HINGE,
    SQUARED_HINGE,
    LOG,
    MODIFIED_HUBER,
    SQUARED
};

enum class LearningRate { CONSTANT, OPTIMAL, INVSCALING };

enum class PairLoss { HINGE, SQUARED_HINGE, HUBER, LOGISTIC };

enum class RankMetric {
    NDCG,
    NDCG_WORST,
    AVERAGE_PRECISION,
    RECIPROCAL_RANK,
    EXPECTED_RECIPROCAL_RANK,
    KENDALL,
    PAIRS
};

}  // namespace enums
