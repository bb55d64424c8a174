# Single rows.

cdef inline double dot_row(
    const Plan* plan, Py_ssize_t t, const double* x, Py_ssize_t k, const double* W
) noexcept nogil:
    """w_k' x_t   (10.6)"""
    cdef Py_ssize_t u, end, j
    cdef double z = 0
    if not plan.rows.csr:
        return dot(x, W + k * plan.ldw, plan.width)
    u = index_at(plan.rows.indptr, plan.rows.index64, t)
    end = index_at(plan.rows.indptr, plan.rows.index64, t + 1)
    for u in range(u, end):
        j = index_at(plan.rows.indices, plan.rows.index64, u)
        z += value_at(plan.rows.data, plan.rows.kind == F32, u) * W[j * plan.K + k]
    return z


cdef inline void add_row(
    const Plan* plan, Py_ssize_t t, const double* x, Py_ssize_t k, double a, double* W
) noexcept nogil:
    """w_k += a x_t   (10.24)"""
    cdef Py_ssize_t u, end, j
    if not plan.rows.csr:
        axpy(x, a, plan.width, W + k * plan.ldw)
        return
    u = index_at(plan.rows.indptr, plan.rows.index64, t)
    end = index_at(plan.rows.indptr, plan.rows.index64, t + 1)
    for u in range(u, end):
        j = index_at(plan.rows.indices, plan.rows.index64, u)
        W[j * plan.K + k] += a * value_at(plan.rows.data, plan.rows.kind == F32, u)


cdef inline void prefetch_row(const Plan* plan, Py_ssize_t t) noexcept nogil:
    """Prefetch a dense row: the rows of pairs are not in sequence, but known in advance."""
    prefetch_near(<const double*>(plan.rows.data + t * plan.rows.row), plan.rows.d)
