# Compressed sparse rows, read in place. A cell that is stored twice counts as the sum. The two
# functions for indices and values test the types each time; the compiler moves the tests out of the
# loops.

cdef extern from "layout_csr.h" namespace "tiles" nogil:
    cdef struct CSRRows:
        const void* values     # float64, or float32 if `single`
        const void* columns    # the column of each value: int32, or int64 if `wide`
        const void* starts     # (n + 1,) where each row begins, and the end; like `columns`
        Py_ssize_t n
        bint single, wide

cdef enum:
    PREFETCH_DISTANCE = 8   # stored values between the prefetch of a column's weights and their use


cdef void open_csr(object X, Rows* rows) except *:
    cdef cnp.ndarray values = X.data, columns = X.indices, starts = X.indptr
    rows.n, rows.d = starts.shape[0] - 1, X.n_columns
    rows.csr.values = cnp.PyArray_DATA(values)
    rows.csr.columns = cnp.PyArray_DATA(columns)
    rows.csr.starts = cnp.PyArray_DATA(starts)
    rows.csr.n = rows.n
    rows.csr.single = values.itemsize == 4
    rows.csr.wide = columns.itemsize == 8


cdef inline Py_ssize_t index_at(const void* p, bint wide, Py_ssize_t t) noexcept nogil:
    return (<const int64_t*>p)[t] if wide else (<const int32_t*>p)[t]


cdef inline double value_at(const void* p, bint single, Py_ssize_t t) noexcept nogil:
    return (<const float*>p)[t] if single else (<const double*>p)[t]


cdef void fetch_csr(const Rows* rows, Py_ssize_t lo, Py_ssize_t m, double* out,
                    Py_ssize_t ld) noexcept nogil:
    cdef const void* columns = rows.csr.columns
    cdef const void* values = rows.csr.values
    cdef bint wide = rows.csr.wide, single = rows.csr.single
    cdef Py_ssize_t i, t, end
    memset(out, 0, m * ld * sizeof(double))
    for i in range(m):
        end = index_at(rows.csr.starts, wide, lo + i + 1)
        for t in range(index_at(rows.csr.starts, wide, lo + i), end):
            out[i * ld + index_at(columns, wide, t)] += value_at(values, single, t)


cdef void score_csr(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, const double* W, double* Z,
                    double* z) noexcept nogil:
    """Z[k, i] += w_k' x_i. z (K,) collects a row's scores in memory order: added to Z in place, the
    loop over k would not be vectorised (K = 20: 4 times slower)."""
    cdef const CSRRows* rows = &plan.rows.csr
    cdef Py_ssize_t K = plan.K, ldz = plan.block, i, k, t, end
    cdef bint wide = rows.wide, single = rows.single
    cdef const void* columns = rows.columns
    cdef const void* values = rows.values
    cdef Py_ssize_t last = index_at(rows.starts, wide, rows.n) - 1
    cdef double v, u
    for i in range(m):
        t, end = index_at(rows.starts, wide, lo + i), index_at(rows.starts, wide, lo + i + 1)
        if K == 1:
            # two independent sums: one would be limited by the latency of additions (3,000 rows of
            # 200 values: 0.6 ms instead of 1.1)
            v, u = 0, 0
            while t + 1 < end:
                v += value_at(values, single, t) * W[index_at(columns, wide, t)]
                u += value_at(values, single, t + 1) * W[index_at(columns, wide, t + 1)]
                t += 2
            if t < end:
                v += value_at(values, single, t) * W[index_at(columns, wide, t)]
            Z[i] += v + u
            continue
        memset(z, 0, K * sizeof(double))
        for t in range(t, end):
            prefetch_near(W + index_at(columns, wide, min(t + PREFETCH_DISTANCE, last)) * K, K)
            add(value_at(values, single, t), W + index_at(columns, wide, t) * K, K, z)
        for k in range(K):
            Z[k * ldz + i] += z[k]


cdef void accumulate_csr(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, const double* E, double* G,
                         double* e) noexcept nogil:
    """G[j, k] += sum_i e_ki x_ij; e (K,) is a buffer"""
    cdef const CSRRows* rows = &plan.rows.csr
    cdef Py_ssize_t K = plan.K, lde = plan.block, i, k, t, end
    cdef bint wide = rows.wide, single = rows.single
    cdef const void* columns = rows.columns
    cdef const void* values = rows.values
    cdef Py_ssize_t last = index_at(rows.starts, wide, rows.n) - 1
    for i in range(m):
        t, end = index_at(rows.starts, wide, lo + i), index_at(rows.starts, wide, lo + i + 1)
        if K == 1:
            for t in range(t, end):
                G[index_at(columns, wide, t)] += E[i] * value_at(values, single, t)
            continue
        for k in range(K):
            e[k] = E[k * lde + i]
        for t in range(t, end):
            prefetch_near(G + index_at(columns, wide, min(t + PREFETCH_DISTANCE, last)) * K, K)
            add(value_at(values, single, t), <const double*>e, K,
                G + index_at(columns, wide, t) * K)


cdef void gram_csr(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, const double* c,
                   double* H) noexcept nogil:
    """H += sum_i c_i x_i x_i', on and above the diagonal; row d gets sum_i c_i x_i."""
    cdef const CSRRows* rows = &plan.rows.csr
    cdef Py_ssize_t d = plan.rows.d, i, t, u, a, b, begin, end
    cdef bint wide = rows.wide, single = rows.single, increasing
    cdef const void* columns = rows.columns
    cdef const void* values = rows.values
    cdef double* row
    cdef double v, p
    for i in range(m):
        begin = index_at(rows.starts, wide, lo + i)
        end = index_at(rows.starts, wide, lo + i + 1)
        increasing = True
        for t in range(begin + 1, end):
            increasing = increasing and index_at(columns, wide, t - 1) < index_at(columns, wide, t)
        for t in range(begin, end):
            v = c[i] * value_at(values, single, t)
            a = index_at(columns, wide, t)
            H[d * d + a] += v
            if increasing:   # the usual case: no test for each pair
                row = H + a * d
                for u in range(t, end):
                    row[index_at(columns, wide, u)] += v * value_at(values, single, u)
                continue
            for u in range(t, end):
                b = index_at(columns, wide, u)
                p = v * value_at(values, single, u)
                # a column that is stored twice in one row
                H[min(a, b) * d + max(a, b)] += 2 * p if u > t and a == b else p


# --- single rows ----------------------------------------------------------------------------------

cdef inline double dot_row_csr(const Plan* plan, Py_ssize_t t, Py_ssize_t k,
                               const double* W) noexcept nogil:
    cdef const CSRRows* rows = &plan.rows.csr
    cdef Py_ssize_t u, K = plan.K, end = index_at(rows.starts, rows.wide, t + 1)
    cdef bint wide = rows.wide, single = rows.single
    cdef const void* columns = rows.columns
    cdef const void* values = rows.values
    cdef double z = 0
    for u in range(index_at(rows.starts, wide, t), end):
        z += value_at(values, single, u) * W[index_at(columns, wide, u) * K + k]
    return z


cdef inline void add_row_csr(const Plan* plan, Py_ssize_t t, Py_ssize_t k, double a,
                             double* W) noexcept nogil:
    cdef const CSRRows* rows = &plan.rows.csr
    cdef Py_ssize_t u, K = plan.K, end = index_at(rows.starts, rows.wide, t + 1)
    cdef bint wide = rows.wide, single = rows.single
    cdef const void* columns = rows.columns
    cdef const void* values = rows.values
    for u in range(index_at(rows.starts, wide, t), end):
        W[index_at(columns, wide, u) * K + k] += a * value_at(values, single, u)


cdef inline void add_row_to_all_csr(const Plan* plan, Py_ssize_t t, double factor, const double* a,
                                    double* W) noexcept nogil:
    cdef const CSRRows* rows = &plan.rows.csr
    cdef Py_ssize_t u, k, K = plan.K, end = index_at(rows.starts, rows.wide, t + 1)
    cdef bint wide = rows.wide, single = rows.single
    cdef const void* columns = rows.columns
    cdef const void* values = rows.values
    cdef double v
    cdef double* w
    for u in range(index_at(rows.starts, wide, t), end):
        v = factor * value_at(values, single, u)
        w = W + index_at(columns, wide, u) * K
        for k in range(K):
            w[k] += v * a[k]


cdef inline double square_row_csr(const CSRRows* rows, Py_ssize_t t) noexcept nogil:
    cdef Py_ssize_t u, end = index_at(rows.starts, rows.wide, t + 1)
    cdef double v, total = 0
    for u in range(index_at(rows.starts, rows.wide, t), end):
        v = value_at(rows.values, rows.single, u)
        total += v * v
    return total


cdef inline Py_ssize_t row_start(const CSRRows* rows, Py_ssize_t t) noexcept nogil:
    """Where the stored values of row t begin; those of row t - 1 end there"""
    return index_at(rows.starts, rows.wide, t)


cdef inline Py_ssize_t stored_column(const CSRRows* rows, Py_ssize_t u) noexcept nogil:
    """The column of stored value u"""
    return index_at(rows.columns, rows.wide, u)


cdef void add_moments_csr(const Rows* rows, Py_ssize_t t, double s, MomentKind kind,
                          const double* shift, double* M, double* S) noexcept nogil:
    """For COUNTS relative to a row of zeros, for the others without a shift."""
    cdef const CSRRows* csr = &rows.csr
    cdef Py_ssize_t u, j, end = index_at(csr.starts, csr.wide, t + 1)
    cdef bint wide = csr.wide, single = csr.single
    cdef const void* columns = csr.columns
    cdef const void* values = csr.values
    cdef double v
    for u in range(index_at(csr.starts, wide, t), end):
        j = index_at(columns, wide, u)
        v = value_at(values, single, u)
        if kind == MomentKind.COUNTS:
            M[j] += s * ((v > shift[j]) - (0 > shift[j]) + (v - v))
        else:
            M[j] += s * v
        if kind == MomentKind.SQUARES:
            S[j] += s * v * v
