# Step sizes, the scale factor and its sums: all that does not depend on scores.

cdef double MIN_SCALE = 1e-4   # as in contract.py


cdef inline double step_size(const Epoch* epoch, double t) noexcept nogil:
    """The step size at the t-th row."""
    if epoch.rate == LearningRate.OPTIMAL:
        return epoch.eta / (epoch.power + t - 1)
    elif epoch.rate == LearningRate.INVSCALING:
        return epoch.eta / t ** epoch.power
    elif epoch.rate == LearningRate.CONSTANT:
        return epoch.eta
    return NAN


cdef inline void account(Epoch* epoch, double clock) noexcept nogil:
    """The weights have been as they are up to row number `clock`."""
    cdef double rows = clock - max(epoch.accounted, epoch.begin - 1)
    if epoch.has_average and rows > 0:
        epoch.scale_sum += rows * epoch.scale
        epoch.averaged += rows
    epoch.accounted = clock


cdef void apply_scale(Epoch* epoch) noexcept nogil:
    """Multiply the scale factor into the weights; u is then minus the sum of the weights so far."""
    cdef Py_ssize_t i
    for i in range(weight_size(&epoch.plan)):
        if epoch.has_average:
            epoch.u[i] -= epoch.scale_sum * epoch.w[i]
        if epoch.has_l1:
            epoch.q[i] *= epoch.scale
        epoch.w[i] *= epoch.scale
    epoch.l1_sum *= epoch.scale
    epoch.scale_sum, epoch.scale = 0, 1


cdef Py_ssize_t make_schedule(Epoch* epoch, Py_ssize_t t, Py_ssize_t m) noexcept nogil:
    """The schedule of rows t to t + m, BLOCK_ROWS at most; the number of rows, fewer if the scale
    factor is to be applied after them.

    What changes from row to row is in local variables: in the struct, each row would depend on the
    stores of the row before.
    """
    cdef Schedule* to = &epoch.schedule
    cdef Py_ssize_t i
    cdef double weight, eta = 0, first = epoch.clock, clock = first
    cdef double scale = epoch.scale, inverse_scale = 1 / scale, scale_sum, averaged
    account(epoch, clock)
    scale_sum, averaged = epoch.scale_sum, epoch.averaged
    for i in range(m):
        weight = epoch.s[(t + i) * epoch.step]
        to.step[i], to.scale[i], to.inverse_scale[i] = 0, scale, inverse_scale
        if weight == 0:
            continue
        # The row before, which `account` did not see.
        if epoch.has_average and clock > first and clock >= epoch.begin:
            scale_sum += scale
            averaged += 1
        clock += 1
        eta = step_size(epoch, clock)
        to.step[i], to.scale_sum[i], to.averaged[i] = eta * weight, scale_sum, averaged
        if epoch.alpha != 0:
            scale *= max(0.0, 1 - eta * epoch.alpha * (1 - epoch.l1))
            if scale < MIN_SCALE:
                to.inverse_scale[i], m = 0, i + 1
                break
            to.inverse_scale[i] = inverse_scale = 1 / scale
    epoch.clock, epoch.accounted, epoch.scale = clock, max(first, clock - 1), scale
    epoch.scale_sum, epoch.averaged = scale_sum, averaged
    epoch.l1_step = eta * epoch.alpha * epoch.l1
    return m
