# Codes that Python and the kernels share: those of enums.h, and the table by which a test compares
# them with fastdisc/_kernels/enums.py.

cdef extern from "enums.h" namespace "enums" nogil:
    cpdef enum class RowLoss(int):
        LOGISTIC
        SOFTMAX
        SIGMOID_SQUARED
        SQUARED

    cpdef enum class Activation(int):
        IDENTITY
        SIGMOID
        SOFTMAX

    cpdef enum class MomentKind(int):
        SUMS
        COUNTS
        SQUARES
        SCATTER
        QUARTIC

    cpdef enum class BasisKind(int):
        PRODUCTS
        SINE
        GAUSSIAN
        LOG
        THRESHOLD
        RADIAL
        HALFSPACE
        SUBSPACE
        CUSTOM

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


CODES = (
    RowLoss, Activation, MomentKind, BasisKind, MarginLoss, LearningRate, PairLoss, RankMetric)
ENUMS = {
    kind.__name__: {name: int(member) for name, member in kind.__members__.items()}
    for kind in CODES
}


cdef int checked(str name, object code, str kind) except -1:
    """The code as an int; ValueError if it is unknown. Checked on entry to a kernel, so that the
    code without Python never sees an unknown one."""
    if code not in ENUMS[kind].values():
        raise ValueError(f"the cython backend has no {name} {int(code)}")
    return code
