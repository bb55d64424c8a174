# What kernels do with rows, whatever their layout: the verbs, and the table of layouts.
#
# A layout is a file of its own, with a member of Rows and an entry in the table below. `open` fills
# in the rows, and `fetch` converts a block of them into dense float64 rows, for which the verbs of
# dense blocks serve: the two are enough. A layout that is read in place (as CSR) gives all
# entries, and `open` fills in rows.csr, through which single rows are read. Its weights are stored
# by column, (d, K), so that a stored value reads contiguous memory.

cdef struct Rows
cdef struct Plan

include "layout_dense.pxi"
include "layout_csr.pxi"
include "basis.pxi"
include "layout_mapped.pxi"

ctypedef void (*OpenRows)(object X, Rows* rows) except *
ctypedef void (*FetchRows)(const Rows* rows, Py_ssize_t lo, Py_ssize_t m, double* out,
                           Py_ssize_t ld) noexcept nogil

# The functions of a layout. Those of layouts that are not read in place are NULL from `score` on.
# Z, E, W and G are as in the verbs, but W and G are (d, K); `buffer` is (K,).
cdef struct Layout:
    const char* name
    OpenRows open
    FetchRows fetch
    void (*score)(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, const double* W, double* Z,
                  double* buffer) noexcept nogil
    void (*accumulate)(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, const double* E, double* G,
                       double* buffer) noexcept nogil
    void (*gram)(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, const double* c,
                 double* H) noexcept nogil
    void (*add_moments)(const Rows* rows, Py_ssize_t t, double s, MomentKind kind,
                        const double* shift, double* M, double* S) noexcept nogil

cdef struct Rows:
    const Layout* layout
    Py_ssize_t n, d
    DenseArray array     # data is NULL unless cells are read from an array
    CSRRows csr
    MappedRows mapped

# How a pass reads the rows. W and G are packed, so that the inner loops read contiguous memory.
cdef struct Plan:
    Rows rows
    Py_ssize_t K, block
    bint in_place           # by the layout's own functions
    Py_ssize_t D            # columns of a Hessian without the constant, for dense blocks padded
    # Of dense blocks:
    bint float32            # products in float32
    bint direct             # rows are read where they are; else each block is copied, padded
    Py_ssize_t width        # columns that the tiles read: d, or d padded to whole vectors
    Py_ssize_t ldw          # length of a weight row
    Prefetch prefetch

cdef enum:
    DENSE_LAYOUT
    CSR_LAYOUT
    MAPPED_LAYOUT
    LAYOUTS
    MAX_SHORT_BLOCK_BYTES = 6144


cdef Layout block_layout(const char* name, OpenRows open, FetchRows fetch) noexcept:
    """A layout whose rows are fetched in blocks."""
    cdef Layout layout
    memset(&layout, 0, sizeof(Layout))
    layout.name, layout.open, layout.fetch = name, open, fetch
    return layout


cdef Layout[LAYOUTS] LAYOUT_TABLE

LAYOUT_TABLE[DENSE_LAYOUT] = block_layout(b"dense", open_dense, fetch_dense)
LAYOUT_TABLE[CSR_LAYOUT] = Layout(
    b"csr", open_csr, fetch_csr, score_csr, accumulate_csr, gram_csr, add_moments_csr)
LAYOUT_TABLE[MAPPED_LAYOUT] = block_layout(b"mapped", open_mapped, fetch_mapped)


cdef Rows open_rows(object X) except *:
    """Rows without Python; ValueError if the layout is unknown."""
    cdef Rows rows
    cdef bytes name = X.layout.encode()
    cdef Py_ssize_t i
    memset(&rows, 0, sizeof(Rows))
    for i in range(LAYOUTS):
        if name == LAYOUT_TABLE[i].name:
            rows.layout = &LAYOUT_TABLE[i]
            rows.layout.open(X, &rows)
            return rows
    raise ValueError(f"the cython backend has no layout {X.layout!r}")


cdef Plan make_plan(object X, Py_ssize_t K, Py_ssize_t block, bint float32) except *:
    cdef Plan plan
    cdef Py_ssize_t lane = max(4, lanes[double]())
    memset(&plan, 0, sizeof(Plan))
    plan.rows = open_rows(X)
    if plan.rows.d == 0:
        raise ValueError("X has no columns")
    plan.K, plan.block = K, block
    plan.in_place = plan.rows.layout.score != NULL
    plan.D = plan.rows.d if plan.in_place else (plan.rows.d + lane - 1) // lane * lane
    plan_dense(&plan, float32)
    return plan


cdef void shorten_blocks(Plan* plan) noexcept nogil:
    """For passes that score and accumulate: short rows in blocks so small that the next one can be
    prefetched."""
    cdef Py_ssize_t size = plan.rows.d * (4 if plan.float32 else 8)
    if plan.direct and plan.K == 1 and size < MIN_MEDIUM_BYTES:
        plan.prefetch = Prefetch.SHORT_ROWS
        plan.block = min(plan.block, max(16, MAX_SHORT_BLOCK_BYTES // size // 16 * 16))


# --- packed weights -------------------------------------------------------------------------------

cdef Py_ssize_t tail_columns(const Plan* plan) noexcept nogil:
    """Columns of the last vector of dense blocks, which overlaps the one before: their weights are
    stored at the end of a weight row, see tiles.h."""
    return plan.width % (lanes[float]() if plan.float32 else lanes[double]())


cdef Py_ssize_t weight_size(const Plan* plan) noexcept nogil:
    """Numbers of packed weights."""
    return plan.rows.d * plan.K if plan.in_place else plan.ldw * plan.K


cdef inline Py_ssize_t packed_start(const Plan* plan, Py_ssize_t k) noexcept nogil:
    """Where the packed weights of output k begin."""
    return k if plan.in_place else k * plan.ldw


cdef inline Py_ssize_t packed_stride(const Plan* plan) noexcept nogil:
    """From one packed weight of an output to its next."""
    return plan.K if plan.in_place else 1


cdef inline Py_ssize_t packed_length(const Plan* plan) noexcept nogil:
    """Packed weights of an output, padding included."""
    return plan.rows.d if plan.in_place else plan.ldw


cdef object pack_weights(const Plan* plan, object W):
    """W[:, 1:] packed, in the type of the products."""
    cdef Py_ssize_t j, k, d = plan.rows.d, K = plan.K
    cdef const double[:, ::1] source
    cdef double[::1] target
    packed_weights = aligned_zeros(1, weight_size(plan))[0]
    if plan.in_place:   # a loop: NumPy transposes 20 x 42,000 numbers in 10 ms, half of a sweep
        source, target = W, packed_weights
        with nogil:
            for j in range(d):
                for k in range(K):
                    target[j * K + k] = source[k, 1 + j]
        return packed_weights
    if plan.float32:
        packed_weights = packed_weights.view(np.float32)
    rows = packed_weights[:weight_size(plan)].reshape(K, plan.ldw)
    body = d - tail_columns(plan)
    rows[:, :body] = W[:, 1:1 + body]
    rows[:, plan.ldw - tail_columns(plan):] = W[:, 1 + body:]
    return packed_weights


cdef void add_columns(double[:, ::1] part, Py_ssize_t first, Py_ssize_t lo, Py_ssize_t hi,
                      double[:, ::1] G) noexcept nogil:
    """Columns lo to hi of sums that are stored by column, added in the order of the chunks."""
    cdef Py_ssize_t K = G.shape[0], j, k, c
    for j in range(lo, hi):
        for k in range(K):
            G[k, j] = part[0, first + j * K + k]
        for c in range(1, part.shape[0]):
            for k in range(K):
                G[k, j] += part[c, first + j * K + k]


cdef object merge_chunks(const Plan* plan, double[:, ::1] part, Py_ssize_t first, int threads):
    """The (K, d) sums that are packed from `first` on in each chunk's row of `part`, added in the
    order of the chunks."""
    cdef Py_ssize_t d = plan.rows.d, b
    cdef double[:, ::1] G
    if plan.in_place:
        result = np.empty((plan.K, d))
        G = result
        for b in prange((d + 511) // 512, nogil=True, num_threads=threads):
            add_columns(part, first, b * 512, min(d, b * 512 + 512), G)
        return result
    rows = np.asarray(part)[:, first:first + weight_size(plan)].sum(axis=0)
    rows = rows.reshape(plan.K, plan.ldw)
    return np.hstack([rows[:, :d - tail_columns(plan)], rows[:, plan.ldw - tail_columns(plan):]])


cdef object unpack_weights(const Plan* plan, object weights):
    """The (K, d) matrix of packed float64 weights."""
    return merge_chunks(plan, weights[None, :], 0, 1)


# --- blocks of rows -------------------------------------------------------------------------------

cdef Py_ssize_t fetch_size(const Plan* plan) noexcept nogil:
    """Numbers of the buffer of `fetch`, for blocks of the plan's size."""
    return fetch_rows_size(plan, plan.block)


cdef Py_ssize_t fetch_rows_size(const Plan* plan, Py_ssize_t m) noexcept nogil:
    """The same for m rows."""
    return plan.K if plan.in_place else m * plan.ldw


cdef inline void load_rows(const Rows* rows, Py_ssize_t lo, Py_ssize_t m, real* out,
                           Py_ssize_t ld) noexcept nogil:
    """Rows lo to lo + m as `real`, each padded with zeros to ld columns. Only cells that are read
    from an array are converted to float32."""
    if real is double:
        rows.layout.fetch(rows, lo, m, out, ld)
    else:
        load_dense(&rows.array, rows.d, lo, m, out, ld)


cdef const real* fetch(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, real* buffer,
                       Py_ssize_t* ld) noexcept nogil:
    """Rows lo to lo + m as the verbs take them, ld numbers apart: where they are, or converted into
    the buffer; for rows that are read in place, the buffer."""
    if plan.in_place:
        return buffer
    if plan.direct:
        ld[0] = plan.rows.array.row // <Py_ssize_t>sizeof(real)
        return <const real*>(plan.rows.array.data + lo * plan.rows.array.row)
    ld[0] = plan.ldw
    load_rows(&plan.rows, lo, m, buffer, plan.ldw)
    return buffer


cdef void score(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, const real* x, Py_ssize_t ld,
                const real* W, const real* w0, real* Z) noexcept nogil:
    """Z[k, i] = w_k' x_i + w_k0   (10.6)"""
    cdef Py_ssize_t i, k
    for k in range(plan.K):
        for i in range(m):
            Z[k * plan.block + i] = w0[k]
    if not plan.in_place:
        score_dense(plan, lo, m, x, ld, W, Z)
    elif real is double:
        plan.rows.layout.score(plan, lo, m, W, Z, <double*>x)


cdef void accumulate(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, const real* x, Py_ssize_t ld,
                     const real* E, real* G) noexcept nogil:
    """G[k, j] += sum_i e_ki x_ij   (10.24), (10.33)"""
    if not plan.in_place:
        accumulate_dense(plan, m, x, ld, E, G)
    elif real is double:
        plan.rows.layout.accumulate(plan, lo, m, E, G, <double*>x)


cdef Py_ssize_t hessian_size(const Plan* plan) noexcept nogil:
    """Numbers of what `gram` sums: D rows of D numbers with sum_i c_i x_i x_i', on and above the
    diagonal, then sum_i c_i x_i, then sum_i c_i and padding."""
    return plan.D * (plan.D + 2)


cdef const double* fetch_padded(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, const double* x,
                                double* P, Py_ssize_t* ld) noexcept nogil:
    """The fetched rows x with D columns, as `gram` takes them; P (block, D) is a buffer"""
    if plan.in_place or plan.D == plan.width:
        return x
    ld[0] = plan.D
    load_rows(&plan.rows, lo, m, P, plan.D)
    return P


cdef void gram(const Plan* plan, Py_ssize_t lo, Py_ssize_t m, const double* x, Py_ssize_t ld,
               const double* c, double* Q, double* H) noexcept nogil:
    """H += sum_i c_i [x_i 1][x_i 1]'   (10.33), as in `hessian_size`; Q (block, D) is a buffer"""
    if plan.in_place:
        plan.rows.layout.gram(plan, lo, m, c, H)
    else:
        gram_dense(plan, m, x, ld, c, Q, H)
    H[plan.D * (plan.D + 1)] += sum(c, m)


# --- single rows: x is the fetched row, or rows are read in place through rows.csr ----------------
#
# Rows are short: calls through the table take up to a fifth of the time of rows with 10 values.

cdef inline void add_scores(const Plan* plan, Py_ssize_t t, Py_ssize_t m, const double* W,
                            double* Z, double* buffer) noexcept nogil:
    """Z[k, i] += w_k' x_i of a few rows that are read in place; the buffer is (K,)"""
    score_csr(plan, t, m, W, Z, buffer)


cdef inline double dot_row(const Plan* plan, Py_ssize_t t, const double* x, Py_ssize_t k,
                           const double* W) noexcept nogil:
    """w_k' x_t   (10.6)"""
    if plan.in_place:
        return dot_row_csr(plan, t, k, W)
    return dot(x, W + k * plan.ldw, plan.width)


cdef inline void add_row(const Plan* plan, Py_ssize_t t, const double* x, Py_ssize_t k, double a,
                         double* W) noexcept nogil:
    """w_k += a x_t   (10.24)"""
    if plan.in_place:
        add_row_csr(plan, t, k, a, W)
    else:
        axpy(x, a, plan.width, W + k * plan.ldw)


cdef inline void add_row_to_all(const Plan* plan, Py_ssize_t t, const double* x, double factor,
                                const double* a, double* W) noexcept nogil:
    """w_k += factor a_k x_t for all k"""
    cdef Py_ssize_t k
    if plan.in_place:
        add_row_to_all_csr(plan, t, factor, a, W)
        return
    for k in range(plan.K):
        axpy(x, factor * a[k], plan.width, W + k * plan.ldw)


cdef inline double square_row(const Plan* plan, Py_ssize_t t, const double* x) noexcept nogil:
    """||x_t||^2"""
    return square_row_csr(&plan.rows.csr, t) if plan.in_place else square_dense(plan, x)


cdef inline Py_ssize_t mean_row_size(const Plan* plan) noexcept nogil:
    """Cells per row that are read, rounded down"""
    if plan.in_place:
        return row_start(&plan.rows.csr, plan.rows.n) // plan.rows.n
    return plan.rows.d


cdef inline Py_ssize_t prefetchable_bytes(const Plan* plan) noexcept nogil:
    """Of a row that is prefetched as a whole; 0 if that is of no use"""
    cdef Py_ssize_t width = plan.rows.d * plan.rows.array.col
    return 0 if plan.in_place or width > 4096 else width


cdef inline void prefetch_row(const Plan* plan, Py_ssize_t t) noexcept nogil:
    """Prefetch a row that is read directly: of rows in random order the next ones are known."""
    prefetch_near(<const double*>(plan.rows.array.data + t * plan.rows.array.row), plan.rows.d)
