# Mapped rows: the features of a block are computed when it is fetched.

from libc.stdlib cimport free, malloc

cdef enum:
    STACK_CELLS = 1024    # of a buffer that needs no malloc

# The inputs, and the program of the basis.
cdef struct MappedRows:
    DenseArray inputs
    Py_ssize_t d              # columns of the inputs
    const int64_t* table      # (parts, TABLE_COLUMNS)
    const int64_t* ints
    const double* reals
    Py_ssize_t parts, width   # of the program: parts, and features
    const int64_t* chosen     # the features that are used, or NULL for all
    const double* mean        # what is subtracted from the features, and divided by, or NULL
    const double* scale


cdef void open_mapped(object X, Rows* rows) except *:
    cdef MappedRows* mapped = &rows.mapped
    cdef Rows inputs = open_rows(X.inputs)
    cdef cnp.ndarray array
    cdef Py_ssize_t i
    if inputs.array.data == NULL:
        raise ValueError(f"a basis takes dense rows, got layout {X.inputs.layout!r}")
    mapped.inputs, mapped.d = inputs.array, inputs.d
    array = X.program.table
    mapped.table, mapped.parts = <const int64_t*>cnp.PyArray_DATA(array), array.shape[0]
    for i in range(mapped.parts):
        checked("basis kind", mapped.table[i * TABLE_COLUMNS + PART_KIND], "BasisKind")
    array = X.program.ints
    mapped.ints = <const int64_t*>cnp.PyArray_DATA(array)
    array = X.program.reals
    mapped.reals = <const double*>cnp.PyArray_DATA(array)
    if X.chosen is not None:
        array = X.chosen
        mapped.chosen = <const int64_t*>cnp.PyArray_DATA(array)
    if X.mean is not None:
        array = X.mean
        mapped.mean = <const double*>cnp.PyArray_DATA(array)
        array = X.scale
        mapped.scale = <const double*>cnp.PyArray_DATA(array)
    rows.n, rows.d, mapped.width = inputs.n, X.shape[1], X.program.width


cdef void finish_features(const Rows* rows, Py_ssize_t m, const double* y, Py_ssize_t ldy,
                          double* out, Py_ssize_t ld) noexcept nogil:
    """Features y to the chosen ones, standardized, in rows padded with zeros to ld numbers."""
    cdef const MappedRows* mapped = &rows.mapped
    cdef Py_ssize_t i, j
    for i in range(m):
        if mapped.chosen != NULL:
            for j in range(rows.d):
                out[i * ld + j] = y[i * ldy + mapped.chosen[j]]
        if mapped.mean != NULL:
            for j in range(rows.d):
                out[i * ld + j] = (out[i * ld + j] - mapped.mean[j]) / mapped.scale[j]
        for j in range(rows.d, ld):
            out[i * ld + j] = 0


cdef void fetch_mapped(const Rows* rows, Py_ssize_t lo, Py_ssize_t m, double* out,
                       Py_ssize_t ld) noexcept nogil:
    """The features of rows lo to lo + m; NaN if a cell of the row is not finite."""
    cdef const MappedRows* mapped = &rows.mapped
    cdef Py_ssize_t d = mapped.d, width = mapped.width, i, j
    cdef bint all_features = mapped.chosen == NULL
    cdef Py_ssize_t size = m * d + d + (0 if all_features else m * width)
    cdef double[STACK_CELLS] stack
    cdef double* heap = <double*>malloc(size * sizeof(double)) if size > STACK_CELLS else NULL
    cdef double* x = heap if size > STACK_CELLS else &stack[0]
    cdef double* y = out if all_features else x + m * d + d
    cdef Py_ssize_t ldy = ld if all_features else width
    cdef BasisBlock block
    if x == NULL:   # no memory
        for i in range(m * ld):
            out[i] = NAN
        return
    load_dense(&mapped.inputs, d, lo, m, x, d)
    block.x, block.m, block.d, block.ld, block.z = x, m, d, ldy, x + m * d
    for i in range(mapped.parts):
        block.out = y + mapped.table[i * TABLE_COLUMNS + PART_FIRST]
        expand_part(mapped.table + i * TABLE_COLUMNS, mapped.ints, mapped.reals, &block)
    for i in range(m):
        if nan_if_not_finite(x + i * d, d) != 0:
            for j in range(width):
                y[i * ldy + j] = NAN
    finish_features(rows, m, y, ldy, out, ld)
    free(heap)
