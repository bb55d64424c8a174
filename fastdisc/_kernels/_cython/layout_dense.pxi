# Dense rows: an array of any strides and five types of cells. Its verbs serve the blocks of all
# layouts that are not read in place.

cdef extern from "tiles.h" namespace "tiles" nogil:
    Py_ssize_t lanes[T]()
    void convert[S, T](const S* p, Py_ssize_t row, Py_ssize_t col, Py_ssize_t m, Py_ssize_t d,
                       T* out, Py_ssize_t ld)
    void scale_rows(const double* P, Py_ssize_t ldp, const double* c, Py_ssize_t m, Py_ssize_t D,
                    double* Q, double* h)
    double nan_if_not_finite[T](const T* a, Py_ssize_t n)
    double sum[T](const T* a, Py_ssize_t n)
    void largest[T](const T* z, Py_ssize_t ldz, Py_ssize_t K, Py_ssize_t m, T* top, T* best)
    T dot[T](const T* x, const T* w, Py_ssize_t d)
    void axpy[T](const T* x, T a, Py_ssize_t d, T* w)
    void dot4xk[T](const T* x0, const T* x1, const T* x2, const T* x3, const T* w, Py_ssize_t ldw,
                   Py_ssize_t K, Py_ssize_t d, T* z, Py_ssize_t ldz)
    void prefetch_near[T](const T* p, Py_ssize_t n)
    void prefetch_far(const char* p, Py_ssize_t n)
    void prefetch_two_rows[T](const T* row, Py_ssize_t ld, Py_ssize_t d)
    void add[T](T a, const T* x, Py_ssize_t n, T* y)
    void axpy4[T](const T* x0, const T* x1, const T* x2, const T* x3, const T* e, Py_ssize_t d,
                  T* g, const T* next)
    void outer[T](const T* x, Py_ssize_t ld, Py_ssize_t m, Py_ssize_t d, const T* e, Py_ssize_t lde,
                  Py_ssize_t K, T* g, Py_ssize_t ldg)
    void gram_strips(const double* Q, const double* P, Py_ssize_t ldp, Py_ssize_t m, Py_ssize_t D,
                     double* H)

cdef enum:
    PANEL = 256   # columns of which all weight rows stay in L1

cdef enum class CellType(int):
    FLOAT64
    FLOAT32
    UINT8
    INT8
    INT16

cdef dict CELL_TYPES = {
    "d": <int>CellType.FLOAT64,
    "f": <int>CellType.FLOAT32,
    "B": <int>CellType.UINT8,
    "?": <int>CellType.UINT8,
    "b": <int>CellType.INT8,
    "h": <int>CellType.INT16,
}

# How rows are prefetched. Medium rows are scored one at a time, because the hardware prefetcher
# follows one stream best (1M x 100: 1.5 times the time of reading instead of 1.9); of long ones it
# follows four.
cdef enum class Prefetch(int):
    NONE
    SHORT_ROWS     # a block ahead: see `prefetch_two_rows` in blocks.h
    MEDIUM_ROWS
    LONG_ROWS
    NEXT_BLOCK     # while a block is scored, with K > 1 (200k x 50, K = 5: 5 to 10% less time)

cdef enum:
    MIN_MEDIUM_BYTES = 512   # of a row
    MIN_LONG_BYTES = 2048

# An array of rows.
cdef struct DenseArray:
    const char* data        # cell (0, 0)
    Py_ssize_t row, col     # bytes from a row, a column, to the next
    CellType cell


cdef void open_dense(object X, Rows* rows) except *:
    cdef cnp.ndarray values = X.values
    rows.n, rows.d = values.shape[0], values.shape[1]
    rows.array.row, rows.array.col = values.strides[0], values.strides[1]
    rows.array.data = <const char*>cnp.PyArray_DATA(values)
    rows.array.cell = <CellType><int>CELL_TYPES[values.dtype.char]


cdef inline Py_ssize_t cell_size(CellType cell) noexcept nogil:
    """Bytes of a cell."""
    if cell == CellType.FLOAT64:
        return 8
    if cell == CellType.FLOAT32:
        return 4
    return 2 if cell == CellType.INT16 else 1


cdef inline bint packed(const DenseArray* array, Py_ssize_t d) noexcept nogil:
    """Whether rows are contiguous in memory, without wide gaps, so that prefetching pays."""
    return 1 <= array.row // max(1, d * array.col) <= 2


cdef void load_dense(const DenseArray* array, Py_ssize_t d, Py_ssize_t lo, Py_ssize_t m, real* out,
                     Py_ssize_t ld) noexcept nogil:
    """Rows lo to lo + m as `real`, each padded with zeros to ld columns."""
    cdef const char* p = array.data + lo * array.row
    if array.cell == CellType.FLOAT64:
        convert(<const double*>p, array.row, array.col, m, d, out, ld)
    elif array.cell == CellType.FLOAT32:
        convert(<const float*>p, array.row, array.col, m, d, out, ld)
    elif array.cell == CellType.UINT8:
        convert(<const uint8_t*>p, array.row, array.col, m, d, out, ld)
    elif array.cell == CellType.INT8:
        convert(<const int8_t*>p, array.row, array.col, m, d, out, ld)
    elif array.cell == CellType.INT16:
        convert(<const int16_t*>p, array.row, array.col, m, d, out, ld)


cdef void fetch_dense(const Rows* rows, Py_ssize_t lo, Py_ssize_t m, double* out,
                      Py_ssize_t ld) noexcept nogil:
    load_dense(&rows.array, rows.d, lo, m, out, ld)


cdef void plan_dense(Plan* plan, bint float32) noexcept:
    """How dense blocks are read."""
    cdef const DenseArray* array = &plan.rows.array
    cdef Py_ssize_t d = plan.rows.d, item, L
    cdef bint is_array = array.data != NULL
    plan.float32 = float32 and is_array and array.cell != CellType.FLOAT64
    L = lanes[float]() if plan.float32 else lanes[double]()
    item = 4 if plan.float32 else 8
    plan.direct = (is_array and array.col == item and array.row % item == 0 and d >= L
                   and array.cell == (CellType.FLOAT32 if plan.float32 else CellType.FLOAT64))
    if plan.K > 3 and (<Py_ssize_t>array.data | array.row) % (L * item):
        # read often enough to pay for a copy on vector boundaries (K = 10, d = 784: 1.2 times
        # faster)
        plan.direct = False
    plan.ldw = (d + L - 1) // L * L
    plan.width = d if plan.direct else plan.ldw
    if plan.direct and plan.K == 1 and d * item >= MIN_MEDIUM_BYTES:
        plan.prefetch = (Prefetch.MEDIUM_ROWS if d * item < MIN_LONG_BYTES else Prefetch.LONG_ROWS)
    if plan.K > 1 and packed(array, d):
        plan.prefetch = Prefetch.NEXT_BLOCK


cdef void score_dense(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, const real* x, Py_ssize_t ld,
                      const real* W, real* Z) noexcept nogil:
    """Z[k, i] += w_k' x_i"""
    cdef Py_ssize_t stride = plan.rows.array.row
    cdef const char* next = plan.rows.array.data + (lo + m) * stride
    cdef Py_ssize_t d = plan.width, ldw = plan.ldw, ldz = plan.block, K = plan.K, i, a, b, c, width
    if plan.prefetch == Prefetch.MEDIUM_ROWS:
        for i in range(m):
            Z[i] += dot(x + i * ld, W, d)
        return
    while d > 0:   # panels of columns, for cache locality (K = 10, d = 784: 1.4 times faster)
        width = d if K == 1 or d < 2 * PANEL else PANEL
        for i in range(0, m, 4):   # the last group of four repeats rows; its surplus is not read
            a, b, c = min(i + 1, m - 1) * ld, min(i + 2, m - 1) * ld, min(i + 3, m - 1) * ld
            if plan.prefetch == Prefetch.SHORT_ROWS:
                prefetch_two_rows(x + (m + i // 2) * ld, ld, d)
            elif plan.prefetch == Prefetch.NEXT_BLOCK and d == plan.width:
                prefetch_far(next + i * stride, 4 * stride)
            dot4xk(x + i * ld, x + a, x + b, x + c, W, ldw, K, width, Z + i, ldz)
        x, W, d = x + width, W + width, d - width


cdef void accumulate_dense(const Plan* plan, Py_ssize_t m, const real* x, Py_ssize_t ld,
                           const real* E, real* G) noexcept nogil:
    """G[k, j] += sum_i e_ki x_ij"""
    cdef Py_ssize_t d = plan.width, i
    cdef const real* next
    if plan.K > 1:
        outer(x, ld, m, d, E, plan.block, plan.K, G, plan.ldw)
        return
    for i in range(0, m - 3, 4):
        next = x + i * ld
        if plan.prefetch == Prefetch.SHORT_ROWS:
            prefetch_two_rows(x + (m + (m + i) // 2) * ld, ld, d)
        elif plan.prefetch == Prefetch.LONG_ROWS:
            next = x + (m + i // 4) * ld
        axpy4(x + i * ld, x + (i + 1) * ld, x + (i + 2) * ld, x + (i + 3) * ld, E + i, d, G, next)
    for i in range(m - m % 4, m):
        axpy(x + i * ld, E[i], d, G)


cdef void gram_dense(const Plan* plan, Py_ssize_t m, const double* x, Py_ssize_t ld,
                     const double* c, double* Q, double* H) noexcept nogil:
    """H += sum_i c_i x_i x_i', on and above the diagonal; row D gets sum_i c_i x_i."""
    cdef Py_ssize_t D = plan.D
    scale_rows(x, ld, c, m, D, Q, H + D * D)
    gram_strips(Q, x, ld, m, D, H)


cdef inline double square_dense(const Plan* plan, const double* x) noexcept nogil:
    """||x||^2"""
    cdef Py_ssize_t j, body = plan.width - plan.width % lanes[double]()
    cdef double total = dot(x, x, body)
    for j in range(body, plan.width):
        total += x[j] * x[j]
    return total
