# The layout of mapped rows: a block of rows of X, and what a basis makes of it, in cache. What the numbers of a table mean stands
# in _kernels/maps.py.

from libc.math cimport log, sin
from libc.stdlib cimport free, malloc

cdef extern from "basis.h" namespace "tiles" nogil:
    void scaled(double a, const double* src, Py_ssize_t n, Py_ssize_t room, double* out)
    void distances(const double* x, Py_ssize_t ldx, Py_ssize_t m, Py_ssize_t d, const double* C, Py_ssize_t ldc, Py_ssize_t n, double* out, Py_ssize_t ld)
    void projections(const double* x, Py_ssize_t ldx, Py_ssize_t m, Py_ssize_t d, const double* C, Py_ssize_t ldc, Py_ssize_t n, double* out, Py_ssize_t ld)

cdef enum Map:
    PRODUCTS
    SINE
    GAUSSIAN
    LOGARITHM
    THRESHOLD
    RADIAL
    HALFSPACE
    SUBSPACE
    CUSTOM

cdef enum:
    LINE = 7       # numbers of a line of the table
    NEAR = 1024    # numbers of workspace up to which it needs no malloc

# A user's function: m rows of d numbers to m rows of features, ld apart; 0 if it failed.
ctypedef int64_t (*Block)(const double* x, Py_ssize_t m, Py_ssize_t d, double* out, Py_ssize_t ld) noexcept nogil


cdef void products(const int64_t* ints, Py_ssize_t count, Py_ssize_t width, const double* x, double* out) noexcept nogil:
    """x_j, and higher-order terms   (10.2), (10.3)"""
    cdef Py_ssize_t done = ints[0], j
    cdef const int64_t* step = ints + 1 + done
    for j in range(done):
        out[j] = x[ints[1 + j]]
    for j in range(count):
        scaled(out[step[0]], out + step[1], step[2], width - done, out + done)
        done, step = done + step[2], step + 3


cdef void of_one_column(int kind, const int64_t* ints, const double* p, Py_ssize_t count, const double* x, double* out) noexcept nogil:
    """Each pair of parameters to each column   (10.3)"""
    cdef Py_ssize_t i, j, k = 0
    cdef const double* q = p + count
    cdef double v
    for i in range(ints[0]):
        v = x[ints[1 + i]]
        if kind == SINE:
            for j in range(count):
                out[k + j] = sin(p[j] * v + q[j])
        elif kind == GAUSSIAN:
            for j in range(count):
                out[k + j] = -q[j] * ((v - p[j]) * (v - p[j]))
        elif kind == LOGARITHM:
            for j in range(count):
                out[k + j] = log(v + p[j])
        else:
            for j in range(count):
                out[k + j] = 1 if v > p[j] else 0
        k += count
    if kind == GAUSSIAN:
        for j in range(k):
            out[j] = exp_nonpositive(out[j])


cdef void radial(const double* reals, Py_ssize_t n, const double* x, Py_ssize_t ldx, Py_ssize_t m, Py_ssize_t d, double* out, Py_ssize_t ld) noexcept nogil:
    """exp(-q ||x - m||^2)   (10.3)"""
    cdef Py_ssize_t i, k
    distances(x, ldx, m, d, reals + n, (n + 7) // 8 * 8, n, out, ld)
    for i in range(m):
        for k in range(n):
            out[k] = exp_nonpositive(-reals[k] * out[k])
        out += ld


cdef void half_space(const double* reals, Py_ssize_t n, const double* x, Py_ssize_t ldx, Py_ssize_t m, Py_ssize_t d, double* out, Py_ssize_t ld) noexcept nogil:
    """1(a'x > c)   (10.3)"""
    cdef Py_ssize_t i, k
    projections(x, ldx, m, d, reals + n, (n + 7) // 8 * 8, n, out, ld)
    for i in range(m):
        for k in range(n):
            out[k] = 1 if out[k] > reals[k] else 0
        out += ld


cdef void subspace(const double* reals, Py_ssize_t n, const double* x, Py_ssize_t ldx, Py_ssize_t m, Py_ssize_t d, double* z, double* out,
                   Py_ssize_t ld) noexcept nogil:
    """x_j, and products of z = V x   (10.34)"""
    cdef Py_ssize_t i, j, k, done
    for i in range(m):
        memcpy(out, x, d * sizeof(double))
        projections(x, ldx, 1, d, reals, (n + 7) // 8 * 8, n, z, n)
        done = d
        for j in range(n):
            for k in range(j, n):
                out[done] = z[j] * z[k]
                done += 1
        x, out = x + ldx, out + ld


cdef void expand_part(const Rows* rows, const int64_t* line, const double* x, Py_ssize_t ldx, Py_ssize_t m, double* z, double* out,
                      Py_ssize_t ld) noexcept nogil:
    """The features of one line of the table, of m rows   (10.3)"""
    cdef Py_ssize_t width = line[2], count = line[5], d = rows.raw, i, j
    cdef const int64_t* ints = rows.ints + line[3]
    cdef const double* reals = rows.reals + line[4]
    if line[0] == RADIAL:
        radial(reals, count, x, ldx, m, d, out, ld)
    elif line[0] == HALFSPACE:
        half_space(reals, count, x, ldx, m, d, out, ld)
    elif line[0] == SUBSPACE:
        subspace(reals, count, x, ldx, m, d, z, out, ld)
    elif line[0] == CUSTOM:
        if not (<Block><Py_ssize_t>line[6])(x, m, d, out, ld):
            for i in range(m):
                for j in range(width):
                    out[i * ld + j] = NAN
    else:
        for i in range(m):
            if line[0] == PRODUCTS:
                products(ints, count, width, x + i * ldx, out + i * ld)
            else:
                of_one_column(line[0], ints, reals, count, x + i * ldx, out + i * ld)


cdef void load_mapped(const Rows* rows, Py_ssize_t lo, Py_ssize_t m, double* out, Py_ssize_t ld) noexcept nogil:
    """The features of rows lo to lo + m, each row padded with zeros to ld numbers; NaN where a cell of the row is not finite."""
    cdef Rows raw = rows[0]
    cdef Py_ssize_t d = rows.raw, width = rows.features, i, j
    cdef Py_ssize_t size = m * d + d + (m * width if rows.chosen != NULL else 0)
    cdef double near[NEAR]
    cdef double* far = <double*>malloc(size * sizeof(double)) if size > NEAR else NULL
    cdef double* x = &near[0] if far == NULL else far
    cdef double* z = x + m * d
    cdef double* y = out if rows.chosen == NULL else z + d
    cdef Py_ssize_t ldy = ld if rows.chosen == NULL else width
    raw.table = NULL
    raw.d, raw.col = d, rows.step
    load_rows(&raw, lo, m, x, d)
    for i in range(rows.parts):
        expand_part(rows, rows.table + i * LINE, x, d, m, z, y + rows.table[i * LINE + 1], ldy)
    for i in range(m):
        if nan_if_not_finite(x + i * d, d) != 0:
            for j in range(width):
                y[i * ldy + j] = NAN
        if rows.chosen != NULL:
            for j in range(rows.d):
                out[i * ld + j] = y[i * ldy + rows.chosen[j]]
        if rows.mean != NULL:
            for j in range(rows.d):
                out[i * ld + j] = (out[i * ld + j] - rows.mean[j]) / rows.scale[j]
        for j in range(rows.d, ld):
            out[i * ld + j] = 0
    free(far)


cdef void expand_chunk(const Rows* rows, Py_ssize_t lo, Py_ssize_t hi, Py_ssize_t block, double* out) noexcept nogil:
    cdef Py_ssize_t m
    while lo < hi:
        m = min(block, hi - lo)
        load_rows(rows, lo, m, out + lo * rows.d, rows.d)
        lo += m


def expand(X, grid, int n_threads):
    """The features of mapped rows: (10.3), (10.35)."""
    cdef Rows rows = open_rows(X)
    cdef Py_ssize_t block = grid[0], chunk = grid[1], chunks = (rows.n + chunk - 1) // chunk, c
    cdef int threads = max(1, min(n_threads, chunks))
    result = np.empty((rows.n, rows.d))
    cdef double[:, ::1] out = result
    for c in prange(chunks, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads):
        expand_chunk(&rows, c * chunk, min(rows.n, c * chunk + chunk), block, &out[0, 0])
    return result
