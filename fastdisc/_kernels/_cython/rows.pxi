# Rows of X without Python, and the two layouts: dense (any strides, five element types) and CSR (32- and 64-bit indices).
# A layout is `score` and `accumulate`. Mapped rows (basis.pxi) are dense once a block of them is expanded.

cdef extern from "tiles.h" namespace "tiles" nogil:
    Py_ssize_t lanes[T]()
    void convert[S, T](const S* p, Py_ssize_t row, Py_ssize_t col, Py_ssize_t m, Py_ssize_t d, T* out, Py_ssize_t ld)
    void scale_rows(const double* P, Py_ssize_t ldp, const double* c, Py_ssize_t m, Py_ssize_t D, double* Q, double* h)
    double nan_if_not_finite[T](const T* a, Py_ssize_t n)
    double sum[T](const T* a, Py_ssize_t n)
    void largest[T](const T* z, Py_ssize_t ldz, Py_ssize_t K, Py_ssize_t m, T* top, T* best)
    T dot[T](const T* x, const T* w, Py_ssize_t d)
    void axpy[T](const T* x, T a, Py_ssize_t d, T* w)
    void dot4[T](const T* x0, const T* x1, const T* x2, const T* x3, const T* w, Py_ssize_t d, T* z)
    void dot4xk[T](const T* x0, const T* x1, const T* x2, const T* x3, const T* w, Py_ssize_t ldw, Py_ssize_t K, Py_ssize_t d, T* z,
                   Py_ssize_t ldz)
    void prefetch_near[T](const T* p, Py_ssize_t n)
    void prefetch_far(const char* p, Py_ssize_t n)
    void add[T](T a, const T* x, Py_ssize_t n, T* y)
    void prefetch_two_rows[T](const T* row, Py_ssize_t ld, Py_ssize_t d)
    void axpy4[T](const T* x0, const T* x1, const T* x2, const T* x3, const T* e, Py_ssize_t d, T* g, const T* next)
    void outer[T](const T* x, Py_ssize_t ld, Py_ssize_t m, Py_ssize_t d, const T* e, Py_ssize_t lde, Py_ssize_t K, T* g, Py_ssize_t ldg)
    void gram(const double* Q, const double* P, Py_ssize_t ldp, Py_ssize_t m, Py_ssize_t D, double* H)

cdef enum:
    PANEL = 256   # columns
    PREFETCH_DISTANCE = 8      # stored values of CSR between asking for a column's weights and using them

ctypedef fused real:
    float
    double

cdef enum Kind:
    F64
    F32
    U8
    I8
    I16

# How rows are called into cache: short ones a block ahead (see prefetch_two_rows in tiles.h); middling ones are scored one at a time, because
# the memory's own read-ahead follows one stream best (1M x 100: 1.5 times the time of reading, not 1.9); of long ones it follows
# four. Where there are several weight rows, the next block is called while this one is scored (200k x 50, K = 5: 5 to 10% less).
cdef enum Reach:
    ONCE
    SHORT
    MIDDLING
    LONG
    AHEAD

cdef struct Rows:
    const char* data        # dense: element (0, 0); CSR: the stored values
    const void* indices     # CSR: column of each value
    const void* indptr      # CSR: where each row begins
    Py_ssize_t n, d
    Py_ssize_t row, col     # dense: bytes from a row, a column, to the next
    Kind kind
    bint csr, index64       # compressed rows; with 64-bit indices
    const int64_t* table    # mapped: a line for each part of the basis, else NULL; d is then that of the features
    const int64_t* ints
    const double* reals
    const int64_t* chosen   # mapped: the d features that are wanted, NULL for all
    const double* mean      # mapped: what is taken off the features, and divided by, or NULL
    const double* scale
    Py_ssize_t parts, raw, step, features   # mapped: lines; columns of X, and bytes from one to the next; all features

# How one call reads the rows: W and G are kept in the layout's own order, so that the inner loops run over memory in sequence.
cdef struct Plan:
    Rows rows
    Py_ssize_t K, block
    Py_ssize_t width        # dense: columns that the tiles read, d or d padded to whole vectors
    Py_ssize_t ldw          # dense: length of a weight row
    bint float32            # float32 products
    Reach reach
    bint direct             # rows are read where they are; else each block is first converted into a padded buffer


cdef Rows open_rows(object X):
    cdef Rows rows
    cdef cnp.ndarray values, indices, indptr
    memset(&rows, 0, sizeof(Rows))
    if X.layout == "mapped":
        return open_mapped(X)
    if X.layout not in ("dense", "csr"):
        raise ValueError(f"the cython backend has no layout {X.layout!r}")
    rows.csr = X.layout == "csr"
    if rows.csr:
        values, indices, indptr, d = X.data, X.indices, X.indptr, X.n_columns
        rows.n = indptr.shape[0] - 1
        rows.d = d
        rows.indices = cnp.PyArray_DATA(indices)
        rows.indptr = cnp.PyArray_DATA(indptr)
        rows.index64 = indices.itemsize == 8
    else:
        values = X.values
        rows.n = values.shape[0]
        rows.d = values.shape[1]
        rows.row = values.strides[0]
        rows.col = values.strides[1]
    rows.data = <const char*>cnp.PyArray_DATA(values)
    rows.kind = {"d": F64, "f": F32, "B": U8, "?": U8, "b": I8, "h": I16}[values.dtype.char]
    return rows


cdef Rows open_mapped(object X):
    cdef Rows rows = open_rows(X.inputs)
    cdef cnp.ndarray table = X.program.table, ints = X.program.ints, reals = X.program.reals, chosen, mean, scale
    rows.table, rows.ints = <const int64_t*>cnp.PyArray_DATA(table), <const int64_t*>cnp.PyArray_DATA(ints)
    rows.reals = <const double*>cnp.PyArray_DATA(reals)
    if X.chosen is not None:
        chosen = X.chosen
        rows.chosen = <const int64_t*>cnp.PyArray_DATA(chosen)
    if X.mean is not None:
        mean, scale = X.mean, X.scale
        rows.mean, rows.scale = <const double*>cnp.PyArray_DATA(mean), <const double*>cnp.PyArray_DATA(scale)
    rows.parts, rows.raw, rows.step, rows.features = len(table), rows.d, rows.col, X.program.width
    rows.d, rows.col = X.shape[1], 0   # no column of the features is in memory
    return rows


cdef Plan make_plan(object X, Py_ssize_t K, Py_ssize_t block, bint single) except *:
    cdef Plan plan
    cdef Py_ssize_t L
    memset(&plan, 0, sizeof(Plan))
    plan.rows = open_rows(X)
    if plan.rows.d == 0:
        raise ValueError("X has no columns")
    plan.K = K
    plan.block = block
    plan.float32 = single and not plan.rows.csr and plan.rows.kind != F64 and plan.rows.table == NULL
    L = lanes[float]() if plan.float32 else lanes[double]()
    cdef Py_ssize_t item = 4 if plan.float32 else 8
    plan.direct = (not plan.rows.csr and plan.rows.kind == (F32 if plan.float32 else F64) and plan.rows.col == item
                   and plan.rows.row % item == 0 and plan.rows.d >= L)
    if K > 3 and (<Py_ssize_t>plan.rows.data | plan.rows.row) % (L * item):
        plan.direct = False   # read often enough to pay for a copy on vector boundaries (K = 10, d = 784: 1.2 times faster)
    plan.ldw = (plan.rows.d + L - 1) // L * L
    plan.width = plan.rows.d if plan.direct else plan.ldw
    if plan.direct and K == 1 and plan.rows.d * item >= 512:
        plan.reach = MIDDLING if plan.rows.d * item < 2048 else LONG
    if K > 1 and not plan.rows.csr and plan.rows.table == NULL and packed(&plan.rows):
        plan.reach = AHEAD
    return plan


cdef inline bint packed(const Rows* rows) noexcept nogil:
    """Whether dense rows lie in memory one after the other, without wide gaps, so that they can be called into cache."""
    return 1 <= rows.row // max(1, rows.d * rows.col) <= 2


cdef void choose_block(Plan* plan) noexcept nogil:
    """For a sweep that scores and accumulates each block: short rows in blocks so small that the next one can be called."""
    cdef Py_ssize_t size = plan.rows.d * (4 if plan.float32 else 8)
    if plan.direct and plan.K == 1 and size < 512:
        plan.reach = SHORT
        plan.block = min(plan.block, max(16, 6144 // size // 16 * 16))


cdef Py_ssize_t tail(const Plan* plan) noexcept nogil:
    """Dense: columns of the last vector, which overlaps the one before and so stands at the end of a weight row: see tiles.h."""
    return plan.width % (lanes[float]() if plan.float32 else lanes[double]())


cdef Py_ssize_t weight_size(const Plan* plan) noexcept nogil:
    """Numbers that a weight matrix takes in the layout's own order."""
    return plan.rows.d * plan.K if plan.rows.csr else plan.ldw * plan.K


# --- dense -----------------------------------------------------------------------------------------------------------------

cdef void load_rows(const Rows* rows, Py_ssize_t lo, Py_ssize_t m, real* out, Py_ssize_t ld) noexcept nogil:
    """Rows lo to lo + m as `real`, each padded with zeros to ld columns."""
    cdef const char* p = rows.data + lo * rows.row
    if rows.table != NULL:
        if real is double:   # features are in float64, and so are products of them
            load_mapped(rows, lo, m, out, ld)
    elif rows.kind == F64:
        convert(<const double*>p, rows.row, rows.col, m, rows.d, out, ld)
    elif rows.kind == F32:
        convert(<const float*>p, rows.row, rows.col, m, rows.d, out, ld)
    elif rows.kind == U8:
        convert(<const uint8_t*>p, rows.row, rows.col, m, rows.d, out, ld)
    elif rows.kind == I8:
        convert(<const int8_t*>p, rows.row, rows.col, m, rows.d, out, ld)
    else:
        convert(<const int16_t*>p, rows.row, rows.col, m, rows.d, out, ld)


cdef const real* fetch(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, real* buffer, Py_ssize_t* ld) noexcept nogil:
    """Rows lo to lo + m in memory order, ld numbers apart: where they are, or converted into the buffer; for CSR, room for K numbers."""
    if plan.rows.csr:
        return buffer
    if plan.direct:
        ld[0] = plan.rows.row // <Py_ssize_t>sizeof(real)
        return <const real*>(plan.rows.data + lo * plan.rows.row)
    ld[0] = plan.ldw
    load_rows(&plan.rows, lo, m, buffer, plan.ldw)
    return buffer


cdef void score_dense(const Plan* plan, Py_ssize_t lo, const real* x, Py_ssize_t ld, Py_ssize_t m, const real* W, real* Z) noexcept nogil:
    cdef const char* next = plan.rows.data + (lo + m) * plan.rows.row
    cdef Py_ssize_t d = plan.width, ldw = plan.ldw, ldz = plan.block, K = plan.K, i, a, b, c, width
    if plan.reach == MIDDLING:
        for i in range(m):
            Z[i] += dot(x + i * ld, W, d)
        return
    while d > 0:   # panels of columns: all K weight rows of a panel stay in L1 (K = 10, d = 784: 1.4 times faster)
        width = d if K == 1 or d < 2 * PANEL else PANEL
        for i in range(0, m, 4):   # the last rows fill up their group of four by repetition; nobody reads the surplus
            a, b, c = min(i + 1, m - 1) * ld, min(i + 2, m - 1) * ld, min(i + 3, m - 1) * ld
            if plan.reach == SHORT:
                prefetch_two_rows(x + (m + i // 2) * ld, ld, d)
            elif plan.reach == AHEAD and d == plan.width:
                prefetch_far(next + i * plan.rows.row, 4 * plan.rows.row)
            dot4xk(x + i * ld, x + a, x + b, x + c, W, ldw, K, width, Z + i, ldz)
        x, W, d = x + width, W + width, d - width


cdef void accumulate_dense(const Plan* plan, const real* x, Py_ssize_t ld, Py_ssize_t m, const real* E, real* G) noexcept nogil:
    cdef Py_ssize_t d = plan.width, i
    cdef const real* next
    if plan.K > 1:
        outer(x, ld, m, d, E, plan.block, plan.K, G, plan.ldw)
        return
    for i in range(0, m - 3, 4):
        next = x + i * ld
        if plan.reach == SHORT:
            prefetch_two_rows(x + (m + (m + i) // 2) * ld, ld, d)
        elif plan.reach == LONG:
            next = x + (m + i // 4) * ld
        axpy4(x + i * ld, x + (i + 1) * ld, x + (i + 2) * ld, x + (i + 3) * ld, E + i, d, G, next)
    for i in range(m - m % 4, m):
        axpy(x + i * ld, E[i], d, G)


# --- CSR: the two conversions ask for the types each time; the compiler moves the question out of the loops -------------------

cdef inline Py_ssize_t index_at(const void* p, bint wide, Py_ssize_t t) noexcept nogil:
    return (<const int64_t*>p)[t] if wide else (<const int32_t*>p)[t]


cdef inline double value_at(const void* p, bint single, Py_ssize_t t) noexcept nogil:
    return (<const float*>p)[t] if single else (<const double*>p)[t]


cdef void score_csr(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, const double* W, double* Z, double* z) noexcept nogil:
    # z (K,) collects a row's scores in memory order: added to Z in place, the loop over k would not vectorise (K = 20: 4 times slower)
    cdef Py_ssize_t K = plan.K, ldz = plan.block, i, k, t, end
    cdef bint wide = plan.rows.index64, single = plan.rows.kind == F32
    cdef const void* columns = plan.rows.indices
    cdef const char* values = plan.rows.data
    cdef Py_ssize_t last = index_at(plan.rows.indptr, wide, plan.rows.n) - 1
    cdef double v, u
    for i in range(m):
        t, end = index_at(plan.rows.indptr, wide, lo + i), index_at(plan.rows.indptr, wide, lo + i + 1)
        if K == 1:
            v, u = 0, 0
            while t + 1 < end:   # two chains of sums, each of which waits for itself (3,000 rows of 200 values: 0.6 ms, not 1.1)
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


cdef void accumulate_csr(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, const double* E, double* G, double* e) noexcept nogil:
    cdef Py_ssize_t K = plan.K, lde = plan.block, i, k, t, end
    cdef bint wide = plan.rows.index64, single = plan.rows.kind == F32
    cdef const void* columns = plan.rows.indices
    cdef const char* values = plan.rows.data
    cdef Py_ssize_t last = index_at(plan.rows.indptr, wide, plan.rows.n) - 1
    for i in range(m):
        t, end = index_at(plan.rows.indptr, wide, lo + i), index_at(plan.rows.indptr, wide, lo + i + 1)
        if K == 1:
            for t in range(t, end):
                G[index_at(columns, wide, t)] += E[i] * value_at(values, single, t)
            continue
        for k in range(K):
            e[k] = E[k * lde + i]
        for t in range(t, end):
            prefetch_near(G + index_at(columns, wide, min(t + PREFETCH_DISTANCE, last)) * K, K)
            add(value_at(values, single, t), <const double*>e, K, G + index_at(columns, wide, t) * K)


cdef void gram_csr(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, const double* c, double* H) noexcept nogil:
    """H += sum_i c_i x_i x_i', on and above the diagonal; row d gets sum_i c_i x_i."""
    cdef Py_ssize_t d = plan.rows.d, i, t, u, a, b, begin, end
    cdef bint wide = plan.rows.index64, single = plan.rows.kind == F32, rising
    cdef const void* columns = plan.rows.indices
    cdef const char* values = plan.rows.data
    cdef double* row
    cdef double v, p
    for i in range(m):
        begin, end = index_at(plan.rows.indptr, wide, lo + i), index_at(plan.rows.indptr, wide, lo + i + 1)
        rising = True
        for t in range(begin + 1, end):
            rising = rising and index_at(columns, wide, t - 1) < index_at(columns, wide, t)
        for t in range(begin, end):
            v = c[i] * value_at(values, single, t)
            a = index_at(columns, wide, t)
            H[d * d + a] += v
            if rising:   # as it should be: no question for each pair
                row = H + a * d
                for u in range(t, end):
                    row[index_at(columns, wide, u)] += v * value_at(values, single, u)
                continue
            for u in range(t, end):
                b = index_at(columns, wide, u)
                p = v * value_at(values, single, u)
                H[min(a, b) * d + max(a, b)] += 2 * p if u > t and a == b else p   # a column stored twice in one row


# --- both ------------------------------------------------------------------------------------------------------------------

cdef void score(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, const real* x, Py_ssize_t ld, const real* W, const real* w0,
                real* Z) noexcept nogil:
    """Z[k, i] = w_k' x_i + w_k0   (10.6)"""
    cdef Py_ssize_t i, k
    for k in range(plan.K):
        for i in range(m):
            Z[k * plan.block + i] = w0[k]
    if not plan.rows.csr:
        score_dense(plan, lo, x, ld, m, W, Z)
    elif real is double:
        score_csr(plan, lo, m, W, Z, <double*>x)


cdef void accumulate(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, const real* x, Py_ssize_t ld, const real* E, real* G) noexcept nogil:
    """G[k, j] += sum_i e_ki x_ij   (10.24), (10.33)"""
    if not plan.rows.csr:
        accumulate_dense(plan, x, ld, m, E, G)
    elif real is double:
        accumulate_csr(plan, lo, m, E, G, <double*>x)
