# What an online rule does with one row: loss, penalties, average, update.
#
# The weights are w times a scale factor, so that an L2 penalty costs one multiplication per row.
# The sum of the weights after each row is scale_sum w - u: averaging costs no more than the
# update. The L1 penalty is applied to a weight when a row next reads it (Tsuruoka's cumulative
# penalty): l1_sum is the penalty so far, and q what has been applied of it, both relative to the
# scale.

cdef extern from "online.h" namespace "online" nogil:
    enum:
        BLOCK_ROWS
    double MAX_SLOPE
    cdef struct MarginValues "online::MarginValues":
        double value, sigmoid
    cdef struct Schedule "online::Schedule":   # arrays there, which can be used like pointers
        double* step
        double* scale
        double* inverse_scale
        double* scale_sum
        double* averaged
        MarginValues* loss
        double* a
    double margin_slope(MarginLoss loss, double m, MarginValues* result)

cdef enum:
    GROUP_ROWS = 4   # rows that are scored at a time

cdef double MIN_PRODUCT = 1e-150   # of sigmoids, none of which is below 1e-152

cdef struct Epoch:
    Plan plan
    Schedule schedule
    MarginLoss loss
    LearningRate rate
    double eta, power, alpha, l1, begin
    bint intercept, has_average, has_l1
    const int32_t* r
    const double* s
    Py_ssize_t step          # of s: 0 if all rows have the same weight
    const int64_t* order     # of the runs
    Py_ssize_t run, runs
    double* w                # packed
    double* w0               # (K,) intercepts, which are not scaled
    double* u                # like w
    double* u0
    double* q                # like w
    double* a                # (K,) the last row's derivative, then its step, for each class
    Py_ssize_t* changed      # the classes for which this is not 0
    Py_ssize_t changes       # their number
    double scale, scale_sum  # the scale factor, and its sum over the rows that are averaged
    double averaged          # the number of these
    double clock             # rows so far, without those of weight 0
    double accounted         # rows that scale_sum and averaged account for
    double l1_sum            # L1 penalty so far
    double l1_step           # what the last row of the schedule adds to it
    double total             # loss
    double product           # of sigmoids, whose logarithm is still to be subtracted from the loss
    Py_ssize_t updates
    bint frequent_updates    # in the last CHECKED_ROWS rows


cdef inline bint single_dense(const Plan* plan) noexcept nogil:
    """Whether rows are fetched as dense rows, with a single score."""
    return plan.K == 1 and not plan.in_place


cdef void add_rows(
    const Epoch* epoch, Py_ssize_t t, const double* x, double factor, double* W
) noexcept nogil:
    """w_k += factor a_k x_t for each class k with a step"""
    cdef Py_ssize_t i, k
    if epoch.changes == epoch.plan.K:
        add_row_to_all(&epoch.plan, t, x, factor, epoch.a, W)
        return
    for i in range(epoch.changes):
        k = epoch.changed[i]
        add_row(&epoch.plan, t, x, k, factor * epoch.a[k], W)


cdef void apply_l1_to_row(Epoch* epoch, Py_ssize_t t) noexcept nogil:
    """Apply the L1 penalty to the weights that row t reads."""
    cdef const CSRRows* rows = &epoch.plan.rows.csr
    cdef Py_ssize_t K = epoch.plan.K, u, j
    if not epoch.plan.in_place:
        apply_l1(epoch, 0, weight_size(&epoch.plan))
        return
    for u in range(row_start(rows, t), row_start(rows, t + 1)):
        j = stored_column(rows, u) * K
        apply_l1(epoch, j, j + K)


cdef double squared_distance(
    const Plan* plan, Py_ssize_t k, const double* v, const double* w
) noexcept nogil:
    """||v_k - w_k||^2 of two packed weight matrices; ||v_k||^2 if w is NULL"""
    cdef Py_ssize_t i, size = packed_length(plan), stride = packed_stride(plan)
    cdef Py_ssize_t first = packed_start(plan, k)
    cdef double gap, total = 0
    for i in range(size):
        gap = v[first + i * stride] - (w[first + i * stride] if w != NULL else 0)
        total += gap * gap
    return total


cdef inline double take_log(Epoch* epoch, double sigmoid) noexcept nogil:
    """-log(sigmoid); or 0 and the sigmoid in the product, for one logarithm of many rows, if all
    have the same weight"""
    cdef double product = epoch.product * sigmoid
    if epoch.step or product < MIN_PRODUCT:
        epoch.product = 1
        return log_of_1_or_more(1 / product)
    epoch.product = product
    return 0


cdef Py_ssize_t best_competitor(
    const double* z, Py_ssize_t ldz, Py_ssize_t K, Py_ssize_t own
) noexcept nogil:
    """The first of the highest scores besides a row's own class."""
    cdef Py_ssize_t k, best = 1 if own == 0 else 0
    cdef double top = z[best * ldz]
    cdef bint more
    for k in range(K):
        more = (z[k * ldz] > top) & (k != own)
        best = k if more else best
        top = z[k * ldz] if more else top
    return best


cdef inline Py_ssize_t derivative(
    Epoch* epoch, const double* z, Py_ssize_t own, double weight
) noexcept nogil:
    """z -> loss, and its derivative by z in epoch.a; the number of classes that change"""
    cdef Py_ssize_t K = epoch.plan.K, k, count = 0
    cdef double y, value = 0
    cdef MarginValues loss
    loss.sigmoid = 1
    if epoch.loss == MarginLoss.PERCEPTRON_MULTICLASS:
        k = best_competitor(z, GROUP_ROWS, K, own)
        if not z[own * GROUP_ROWS] > z[k * GROUP_ROWS]:
            epoch.a[own], epoch.a[k], epoch.changed[0], epoch.changed[1] = -1, 1, own, k
            value, count = z[k * GROUP_ROWS] - z[own * GROUP_ROWS], 2
        epoch.updates += count // 2
    else:
        for k in range(K):
            y = 2.0 * (own == (k if K > 1 else 1)) - 1
            epoch.a[k] = y * margin_slope(epoch.loss, y * z[k * GROUP_ROWS], &loss)
            epoch.changed[count] = k
            count += epoch.a[k] != 0
            value += loss.value + take_log(epoch, loss.sigmoid)
        epoch.updates += count
    epoch.total += weight * value
    epoch.changes = count
    return count


cdef inline void apply_l1(Epoch* epoch, Py_ssize_t lo, Py_ssize_t hi) noexcept nogil:
    """Move weights lo to hi towards 0, not beyond, by the L1 penalty not yet applied."""
    cdef Py_ssize_t i
    cdef double old, new
    for i in range(lo, hi):
        old = epoch.w[i]
        if old > 0:
            new = max(0, old - (epoch.l1_sum + epoch.q[i]))
        else:
            new = min(0, old + (epoch.l1_sum - epoch.q[i]))
        epoch.q[i] += new - old
        epoch.w[i] = new
        if epoch.has_average:
            epoch.u[i] += epoch.scale_sum * (new - old)


cdef bint learn_row(Epoch* epoch, Py_ssize_t t, const double* x, const double* z) noexcept nogil:
    """The update of row t, whose scores are z (K, GROUP_ROWS); whether a weight has changed by more
    than a penalty   (4.55)"""
    cdef Py_ssize_t K = epoch.plan.K, k, i, changes
    cdef double weight = epoch.s[t * epoch.step], inverse_scale, scale_sum
    for k in range(K):
        epoch.total += z[k * GROUP_ROWS] - z[k * GROUP_ROWS]   # NaN if one is not finite
    if weight == 0:
        return False
    changes = derivative(epoch, z, epoch.r[t], weight)
    if changes == 0 and epoch.alpha == 0:
        epoch.clock += 1
        return False
    make_schedule(epoch, t, 1)
    inverse_scale, scale_sum = epoch.schedule.inverse_scale[0], epoch.schedule.scale_sum[0]
    if inverse_scale == 0:
        apply_scale(epoch)
        inverse_scale, scale_sum = 1, 0
    for i in range(changes):
        k = epoch.changed[i]
        epoch.a[k] *= -epoch.schedule.step[0]
        if epoch.intercept:
            epoch.w0[k] += epoch.a[k]
            epoch.u0[k] += epoch.schedule.averaged[0] * epoch.a[k]
    if changes:
        add_rows(epoch, t, x, inverse_scale, epoch.w)
        if epoch.has_average:
            add_rows(epoch, t, x, inverse_scale * scale_sum, epoch.u)
    if epoch.has_l1:
        epoch.l1_sum += epoch.l1_step / epoch.scale
        apply_l1_to_row(epoch, t)
    return changes > 0
