# The losses of rows, three functions each, and the table that kernels dispatch by.
#
# `loss_NAME` turns the scores Z of a block into e = dE/dz, times the row weights s, and adds the
# losses and the weight of misclassified rows to the tally. If a Hessian is asked for it writes to Y
# what the curvature needs. `curvature_NAME` writes the second derivatives by z_j and z_k, times s,
# to c; Z then has the errors. `product_NAME` turns the scores U of a direction into the second
# derivative times U; Z is overwritten. All are plain loops over a block, which the compiler
# vectorises.

cdef extern from *:
    """
    template <class T> struct LossBlock {
        Py_ssize_t m, K, ld;
        T *Z, *work, *tally;
        const T *s;
        const int32_t *r;
        double *Y;
        int weight_mode;
    };
    """
    # The scores of a block, and what a loss reads and writes beside them.
    cdef cppclass LossBlock[T]:
        Py_ssize_t m         # rows
        Py_ssize_t K, ld     # scores per row; numbers from one row of Z to the next
        T* Z                 # (K, ld) scores, then errors
        T* work              # (4, ld)
        T* tally             # see `flush_tally`
        const T* s           # (m,) row weights
        const int32_t* r     # (m,) targets
        double* Y            # (K, ld), or NULL if no Hessian is asked for
        int weight_mode      # a WeightMode

cdef enum:
    LANES = 16       # parallel sums of a tally; rows i, i + LANES, ... of a block share one
    TALLY = 3 * LANES
    # Rows of a lane after which a tally is flushed: the product is then below 2^80, which fits in
    # float32.
    FLUSH_PERIOD = 64
    MAX_ROW_LOSSES = 16

# How rows are weighted. Losses with `equal_weights` leave an equal weight out of the tally.
cdef enum WeightMode:
    PER_ROW
    EQUAL
    EQUAL_OR_ZERO   # equal, except for rows that a problem excludes

ctypedef void (*FloatLoss)(LossBlock[float]* b) noexcept nogil
ctypedef void (*DoubleLoss)(LossBlock[double]* b) noexcept nogil
ctypedef void (*Curvature)(Py_ssize_t j, Py_ssize_t k, const LossBlock[double]* b,
                           double* c) noexcept nogil
ctypedef void (*FloatProduct)(LossBlock[float]* b, float* U) noexcept nogil
ctypedef void (*DoubleProduct)(LossBlock[double]* b, double* U) noexcept nogil

# The functions of a loss; those for blocks of either type of products.
cdef struct LossFunctions:
    FloatLoss loss_float
    DoubleLoss loss_double
    Curvature curvature
    FloatProduct product_float
    DoubleProduct product_double
    bint multiple_outputs    # one score per class
    bint equal_weights       # its tally may leave out a weight that is equal for all rows


# --- logistic -------------------------------------------------------------------------------------

cdef inline void logistic_row(real* Z, int32_t r, real s, real* tally,
                              WeightMode mode) noexcept nogil:
    cdef real target = r, chosen = 1 if Z[0] > 0 else 0, sign = 1 - 2 * target, z, u, v
    cdef real present = s if mode == PER_ROW else 1 if mode == EQUAL or s > 0 else 0
    z = sign * Z[0]                     # the score of the other class; e = s sign sigmoid(z)
    u = exp_nonpositive(-abs(z))
    if mode != PER_ROW:
        # log(1 + u) is taken of a product of many 1 + u, stored minus 1 so that small u keep their
        # digits: it saves a third of the loss's time
        v = 1 / (1 + u)
        tally[0] = (tally[0] + present * u) + tally[0] * (present * u)
        tally[LANES] += present * (z if z > 0 else 0)
    else:
        v = 1 / ((1 + u) * (2 + u))     # one division for both quotients
        tally[LANES] += s * (log1p_ratio(u * (1 + u) * v) + (z if z > 0 else 0))
        v *= 2 + u
    tally[2 * LANES] += present * (chosen - target) * (chosen - target)
    Z[0] = s * sign * v * (1 if z > 0 else u)


cdef inline void logistic_rows(real* Z, const int32_t* r, const real* s, Py_ssize_t m, real* tally,
                               WeightMode mode) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(0, m - 15, 16):   # LANES; Cython needs a literal step
        for j in range(LANES):
            logistic_row(Z + i + j, r[i + j], s[i + j], tally + j, mode)
    for i in range(m - m % LANES, m):
        logistic_row(Z + i, r[i], s[i], tally + i % LANES, mode)


cdef void loss_logistic(LossBlock[real]* b) noexcept nogil:
    """z -> e = s (y - r), with s times the cross-entropy   (10.23), (10.24)"""
    if b.weight_mode == EQUAL:
        logistic_rows(b.Z, b.r, b.s, b.m, b.tally, EQUAL)
    elif b.weight_mode == EQUAL_OR_ZERO:
        logistic_rows(b.Z, b.r, b.s, b.m, b.tally, EQUAL_OR_ZERO)
    else:
        logistic_rows(b.Z, b.r, b.s, b.m, b.tally, PER_ROW)


cdef void curvature_logistic(Py_ssize_t j, Py_ssize_t k, const LossBlock[double]* b,
                             double* c) noexcept nogil:
    """c = |e| (1 - |e| / s), which is s y (1 - y)   (10.32)

    It is 0 for rows so far on the wrong side that y (1 - y) is below the precision of 1.
    """
    cdef const double* E = b.Z
    cdef const double* s = b.s
    cdef Py_ssize_t i
    for i in range(b.m):
        c[i] = abs(E[i]) * (1 - abs(E[i]) / s[i]) if s[i] > 0 else 0


cdef void product_logistic(LossBlock[real]* b, real* U) noexcept nogil:
    """u -> s y (1 - y) u   (10.32)"""
    cdef const real* Z = b.Z
    cdef const real* s = b.s
    cdef real* top = b.work
    cdef Py_ssize_t i
    for i in range(b.m):
        top[i] = exp_nonpositive(-Z[i] if Z[i] > 0 else Z[i])
        U[i] *= s[i] * top[i] / ((1 + top[i]) * (1 + top[i]))


# --- softmax --------------------------------------------------------------------------------------

cdef void softmax_rows(real* Z, Py_ssize_t ldz, Py_ssize_t K, Py_ssize_t m, real* top, real* total,
                       real* best) noexcept nogil:
    """z_k -> exp(z_k - max), its sum over k, and the first k of the maximum   (10.29)"""
    cdef Py_ssize_t i, k
    cdef real z
    largest(Z, ldz, K, m, top, best)
    for i in range(m):
        total[i] = 0
    for k in range(K):
        for i in range(m):
            z = exp_nonpositive(Z[k * ldz + i] - top[i])
            Z[k * ldz + i] = z
            total[i] += z


cdef void loss_softmax(LossBlock[real]* b) noexcept nogil:
    """z_k -> e_k = s (y_k - r_k), with s times the cross-entropy   (10.31), (10.33)"""
    cdef Py_ssize_t ld = b.ld, K = b.K, m = b.m, i, k
    cdef real* Z = b.Z
    cdef real* top = b.work
    cdef real* total = b.work + ld
    cdef real* best = b.work + 2 * ld
    cdef real* own = b.work + 3 * ld
    cdef const real* s = b.s
    cdef const int32_t* r = b.r
    cdef double* Y = b.Y
    for i in range(m):
        own[i] = Z[r[i] * ld + i]
    softmax_rows(Z, ld, K, m, top, total, best)
    for i in range(m):
        own[i] = s[i] * (log_of_1_or_more(total[i]) + (top[i] - own[i]))
        best[i] = s[i] * (best[i] != r[i])
        total[i] = 1 / total[i]
    b.tally[LANES] += sum(own, m)
    b.tally[2 * LANES] += sum(best, m)
    if Y != NULL:
        for k in range(K):
            for i in range(m):
                Y[k * ld + i] = Z[k * ld + i] * total[i]
    for k in range(K):
        for i in range(m):
            Z[k * ld + i] *= s[i] * total[i]
    for i in range(m):
        Z[r[i] * ld + i] -= s[i]


cdef void curvature_softmax(Py_ssize_t j, Py_ssize_t k, const LossBlock[double]* b,
                            double* c) noexcept nogil:
    """c = s y_j (delta_jk - y_k)   (10.32)"""
    cdef const double* s = b.s
    cdef const double* yj = b.Y + j * b.ld
    cdef const double* yk = b.Y + k * b.ld
    cdef Py_ssize_t i
    if j == k:
        for i in range(b.m):
            c[i] = s[i] * yj[i] * (1 - yj[i])
    else:
        for i in range(b.m):
            c[i] = -s[i] * yj[i] * yk[i]


cdef void product_softmax(LossBlock[real]* b, real* U) noexcept nogil:
    """u_k -> s y_k (u_k - sum_j y_j u_j)   (10.32)"""
    cdef Py_ssize_t ld = b.ld, K = b.K, m = b.m, i, k
    cdef real* Z = b.Z
    cdef real* top = b.work
    cdef real* total = b.work + ld
    cdef real* best = b.work + 2 * ld
    cdef real* mean = b.work + 3 * ld
    cdef const real* s = b.s
    softmax_rows(Z, ld, K, m, top, total, best)
    for i in range(m):
        mean[i], total[i] = 0, 1 / total[i]
    for k in range(K):
        for i in range(m):
            Z[k * ld + i] *= total[i]
            mean[i] += Z[k * ld + i] * U[k * ld + i]
    for k in range(K):
        for i in range(m):
            U[k * ld + i] = s[i] * Z[k * ld + i] * (U[k * ld + i] - mean[i])


# --- squared errors: Y has the squared derivative of the output by the score ----------------------

cdef void loss_sigmoid_squared(LossBlock[real]* b) noexcept nogil:
    """z -> e = s (y - r) y (1 - y), with s times half the squared error   (10.39), (10.40)"""
    cdef Py_ssize_t m = b.m, i
    cdef real* Z = b.Z
    cdef real* loss = b.work
    cdef real* wrong = b.work + b.ld
    cdef const real* s = b.s
    cdef const int32_t* r = b.r
    cdef double* Y = b.Y
    cdef real z, u, v, p, sign, miss
    for i in range(m):
        sign = 1 - 2 * r[i]
        z = sign * Z[i]
        u = exp_nonpositive(-z if z > 0 else z)
        v = 1 / (1 + u)
        p = u * v * v                               # y (1 - y)
        miss = v * (1 if z > 0 else u)              # |y - r|
        loss[i] = s[i] * (miss * miss / 2)
        wrong[i] = s[i] * ((Z[i] > 0) != (r[i] > 0))
        Z[i] = s[i] * sign * miss * p
        if Y != NULL:
            Y[i] = p * p
    b.tally[LANES] += sum(loss, m)
    b.tally[2 * LANES] += sum(wrong, m)


cdef void product_sigmoid_squared(LossBlock[real]* b, real* U) noexcept nogil:
    """u -> s (y (1 - y))^2 u   (10.40)"""
    cdef const real* Z = b.Z
    cdef const real* s = b.s
    cdef Py_ssize_t i
    cdef real u, p
    for i in range(b.m):
        u = exp_nonpositive(-Z[i] if Z[i] > 0 else Z[i])
        p = u / ((1 + u) * (1 + u))
        U[i] *= s[i] * p * p


cdef void loss_squared(LossBlock[real]* b) noexcept nogil:
    """z -> e = s (z - r'), with s times half the squared error; r' = +1 or -1   (4.1.7)"""
    cdef Py_ssize_t m = b.m, i
    cdef real* Z = b.Z
    cdef real* loss = b.work
    cdef real* wrong = b.work + b.ld
    cdef const real* s = b.s
    cdef const int32_t* r = b.r
    cdef double* Y = b.Y
    cdef real miss
    for i in range(m):
        miss = Z[i] - (2 * r[i] - 1)
        loss[i] = s[i] * (miss * miss / 2)
        wrong[i] = s[i] * ((Z[i] > 0) != (r[i] > 0))
        Z[i] = s[i] * miss
        if Y != NULL:
            Y[i] = 1
    b.tally[LANES] += sum(loss, m)
    b.tally[2 * LANES] += sum(wrong, m)


cdef void product_squared(LossBlock[real]* b, real* U) noexcept nogil:
    """u -> s u   (4.1.7)"""
    cdef const real* s = b.s
    cdef Py_ssize_t i
    for i in range(b.m):
        U[i] *= s[i]


cdef void curvature_saved(Py_ssize_t j, Py_ssize_t k, const LossBlock[double]* b,
                          double* c) noexcept nogil:
    """c = s times what the loss has written to Y   (10.40), (4.1.7)"""
    cdef const double* s = b.s
    cdef const double* Y = b.Y
    cdef Py_ssize_t i
    for i in range(b.m):
        c[i] = s[i] * Y[i]


# --- the table, by RowLoss ------------------------------------------------------------------------

cdef LossFunctions[MAX_ROW_LOSSES] LOSS_TABLE

LOSS_TABLE[<int>RowLoss.LOGISTIC] = LossFunctions(
    loss_logistic[float], loss_logistic[double], curvature_logistic,
    product_logistic[float], product_logistic[double], False, True)
LOSS_TABLE[<int>RowLoss.SOFTMAX] = LossFunctions(
    loss_softmax[float], loss_softmax[double], curvature_softmax,
    product_softmax[float], product_softmax[double], True, False)
LOSS_TABLE[<int>RowLoss.SIGMOID_SQUARED] = LossFunctions(
    loss_sigmoid_squared[float], loss_sigmoid_squared[double], curvature_saved,
    product_sigmoid_squared[float], product_sigmoid_squared[double], False, False)
LOSS_TABLE[<int>RowLoss.SQUARED] = LossFunctions(
    loss_squared[float], loss_squared[double], curvature_saved,
    product_squared[float], product_squared[double], False, False)


cdef const LossFunctions* find_loss(int loss, Py_ssize_t K) except NULL:
    """The functions of a loss of K scores per row; ValueError if it is unknown, or not of K."""
    cdef const LossFunctions* functions = &LOSS_TABLE[checked("row loss", loss, "RowLoss")]
    if functions.loss_double == NULL:
        raise ValueError(f"the cython backend has no row loss {loss}")
    if functions.multiple_outputs != (K > 1):
        raise ValueError(f"row loss {loss} is not one of {K} scores per row")
    return functions


cdef inline void evaluate(const LossFunctions* functions, LossBlock[real]* b) noexcept nogil:
    """The function `loss` of a loss."""
    if real is float:
        functions.loss_float(b)
    else:
        functions.loss_double(b)


cdef inline void curvature_product(const LossFunctions* functions, LossBlock[real]* b,
                                   real* U) noexcept nogil:
    """The function `product` of a loss."""
    if real is float:
        functions.product_float(b, U)
    else:
        functions.product_double(b, U)


cdef void flush_tally(real* tally, double s, double* out) noexcept nogil:
    """Add a tally, times the weight s of all its rows, to out = loss, errors, and clear it.

    Its LANES products of 1 + u, minus 1, come first, then LANES losses and LANES weights of
    misclassified rows.
    """
    cdef Py_ssize_t i
    for i in range(LANES):
        tally[LANES + i] += (log_of_1_or_more(1 + tally[i]) if tally[i] > 1
                             else log1p_ratio(tally[i] / (2 + tally[i])))
    out[0] += s * sum(tally + LANES, LANES)
    out[1] += s * sum(tally + 2 * LANES, LANES)
    memset(tally, 0, TALLY * sizeof(real))
