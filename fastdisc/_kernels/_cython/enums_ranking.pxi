# Codes: those of enums_ranking.h, and the table by which a test compares them with enums.py.

cdef extern from "enums_ranking.h" namespace "enums" nogil:
    cpdef enum class MarginLoss(int):
        PERCEPTRON
        PERCEPTRON_MULTICLASS
        HINGE
        SQUARED_HINGE
        LOG
        MODIFIED_HUBER
        SQUARED

    cpdef enum class LearningRate(int):
        CONSTANT
        OPTIMAL
        INVSCALING

    cpdef enum class PairLoss(int):
        HINGE
        SQUARED_HINGE
        HUBER
        LOGISTIC

    cpdef enum class RankMetric(int):
        NDCG
        NDCG_WORST
        AVERAGE_PRECISION
        RECIPROCAL_RANK
        EXPECTED_RECIPROCAL_RANK
        KENDALL
        PAIRS


ENUMS = {
    kind.__name__: {name: int(member) for name, member in kind.__members__.items()}
    for kind in (MarginLoss, LearningRate, PairLoss, RankMetric)
}
