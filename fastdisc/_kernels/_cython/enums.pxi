# Codes that Python and the kernels share: the values are those of fastdisc/_kernels/enums.py, which
# a test compares with ENUMS.

cdef enum class RowLoss(int):
    LOGISTIC
    SOFTMAX
    SIGMOID_SQUARED
    SQUARED

cdef enum class Activation(int):
    IDENTITY
    SIGMOID
    SOFTMAX

cdef enum class MomentKind(int):
    SUMS
    COUNTS
    SQUARES
    SCATTER
    QUARTIC

cdef enum class BasisKind(int):
    PRODUCTS
    SINE
    GAUSSIAN
    LOG
    THRESHOLD
    RADIAL
    HALFSPACE
    SUBSPACE
    CUSTOM

ENUMS = {
    "RowLoss": {
        "LOGISTIC": <int>RowLoss.LOGISTIC,
        "SOFTMAX": <int>RowLoss.SOFTMAX,
        "SIGMOID_SQUARED": <int>RowLoss.SIGMOID_SQUARED,
        "SQUARED": <int>RowLoss.SQUARED,
    },
    "Activation": {
        "IDENTITY": <int>Activation.IDENTITY,
        "SIGMOID": <int>Activation.SIGMOID,
        "SOFTMAX": <int>Activation.SOFTMAX,
    },
    "MomentKind": {
        "SUMS": <int>MomentKind.SUMS,
        "COUNTS": <int>MomentKind.COUNTS,
        "SQUARES": <int>MomentKind.SQUARES,
        "SCATTER": <int>MomentKind.SCATTER,
        "QUARTIC": <int>MomentKind.QUARTIC,
    },
    "BasisKind": {
        "PRODUCTS": <int>BasisKind.PRODUCTS,
        "SINE": <int>BasisKind.SINE,
        "GAUSSIAN": <int>BasisKind.GAUSSIAN,
        "LOG": <int>BasisKind.LOG,
        "THRESHOLD": <int>BasisKind.THRESHOLD,
        "RADIAL": <int>BasisKind.RADIAL,
        "HALFSPACE": <int>BasisKind.HALFSPACE,
        "SUBSPACE": <int>BasisKind.SUBSPACE,
        "CUSTOM": <int>BasisKind.CUSTOM,
    },
}


cdef int checked(str name, int code, str enum) except -1:
    """The code; ValueError if the enum has no such member."""
    if code not in ENUMS[enum].values():
        raise ValueError(f"the cython backend has no {name} {code}")
    return code
