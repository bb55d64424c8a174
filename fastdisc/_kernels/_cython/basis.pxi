# Basis functions: features of a block of rows. The numbers of the table are explained in
# fastdisc/_kernels/basis_program.py.

from libc.math cimport log, sin

cdef extern from "basis.h" namespace "tiles" nogil:
    void scaled(double a, const double* src, Py_ssize_t n, Py_ssize_t capacity, double* out)
    void distances(const double* x, Py_ssize_t ldx, Py_ssize_t m, Py_ssize_t d, const double* C,
                   Py_ssize_t n, double* out, Py_ssize_t ld)
    void projections(const double* x, Py_ssize_t ldx, Py_ssize_t m, Py_ssize_t d, const double* C,
                     Py_ssize_t n, double* out, Py_ssize_t ld)

# A row of the table: one part of the basis.
cdef enum:
    PART_KIND           # a BasisKind
    PART_FIRST          # its first feature
    PART_WIDTH          # its number of features
    PART_INTS           # where its integers begin
    PART_REALS          # where its reals begin
    PART_COUNT          # of parameters
    PART_ADDRESS        # of a user's function
    TABLE_COLUMNS

# Rows, and where their features go.
cdef struct BasisBlock:
    const double* x     # (m, d)
    Py_ssize_t m, d
    double* out         # (m, ld)
    Py_ssize_t ld
    double* z           # (d,) buffer

# A user's function: m rows of d numbers to m rows of features, ld apart; 0 if it failed.
ctypedef int64_t (*CustomFunction)(const double* x, Py_ssize_t m, Py_ssize_t d, double* out,
                                   Py_ssize_t ld) noexcept nogil


cdef void products(const int64_t* ints, Py_ssize_t count, Py_ssize_t width, const double* x,
                   double* out) noexcept nogil:
    """x_j, and terms of higher order   (10.2), (10.3)"""
    cdef Py_ssize_t done = ints[0], j
    cdef const int64_t* term = ints + 1 + done
    for j in range(done):
        out[j] = x[ints[1 + j]]
    for j in range(count):
        scaled(out[term[0]], out + term[1], term[2], width - done, out + done)
        done, term = done + term[2], term + 3


cdef void one_column(BasisKind kind, const int64_t* ints, const double* p, Py_ssize_t count,
                     const double* x, double* out) noexcept nogil:
    """Each pair of parameters applied to each column   (10.3)"""
    cdef Py_ssize_t i, j, k = 0
    cdef const double* q = p + count
    cdef double v
    for i in range(ints[0]):
        v = x[ints[1 + i]]
        if kind == BasisKind.SINE:
            for j in range(count):
                out[k + j] = sin(p[j] * v + q[j])
        elif kind == BasisKind.GAUSSIAN:
            for j in range(count):
                out[k + j] = -q[j] * ((v - p[j]) * (v - p[j]))
        elif kind == BasisKind.LOG:
            for j in range(count):
                out[k + j] = log(v + p[j])
        elif kind == BasisKind.THRESHOLD:
            for j in range(count):
                out[k + j] = 1 if v > p[j] else 0
        k += count
    if kind == BasisKind.GAUSSIAN:
        for j in range(k):
            out[j] = exp_nonpositive(out[j])


cdef void radial(const double* reals, Py_ssize_t n, const BasisBlock* b) noexcept nogil:
    """exp(-q ||x - m||^2)   (10.3)"""
    cdef Py_ssize_t i, k
    cdef double* out = b.out
    distances(b.x, b.d, b.m, b.d, reals + n, n, out, b.ld)
    for i in range(b.m):
        for k in range(n):
            out[k] = exp_nonpositive(-reals[k] * out[k])
        out += b.ld


cdef void half_space(const double* reals, Py_ssize_t n, const BasisBlock* b) noexcept nogil:
    """1(a'x > c)   (10.3)"""
    cdef Py_ssize_t i, k
    cdef double* out = b.out
    projections(b.x, b.d, b.m, b.d, reals + n, n, out, b.ld)
    for i in range(b.m):
        for k in range(n):
            out[k] = 1 if out[k] > reals[k] else 0
        out += b.ld


cdef void subspace(const double* reals, Py_ssize_t n, const BasisBlock* b) noexcept nogil:
    """x_j, and products of z = V x   (10.34)"""
    cdef Py_ssize_t i, j, k, done
    cdef const double* x = b.x
    cdef double* out = b.out
    cdef double* z = b.z
    for i in range(b.m):
        memcpy(out, x, b.d * sizeof(double))
        projections(x, b.d, 1, b.d, reals, n, z, n)
        done = b.d
        for j in range(n):
            for k in range(j, n):
                out[done] = z[j] * z[k]
                done += 1
        x, out = x + b.d, out + b.ld


cdef void custom(int64_t address, Py_ssize_t width, const BasisBlock* b) noexcept nogil:
    """The features of a user's function; NaN if it failed."""
    cdef Py_ssize_t i, j
    if not (<CustomFunction><Py_ssize_t>address)(b.x, b.m, b.d, b.out, b.ld):
        for i in range(b.m):
            for j in range(width):
                b.out[i * b.ld + j] = NAN


cdef void expand_part(const int64_t* part, const int64_t* ints, const double* reals,
                      const BasisBlock* b) noexcept nogil:
    """The features of one part of the basis   (10.3)"""
    cdef BasisKind kind = <BasisKind><int>part[PART_KIND]
    cdef Py_ssize_t width = part[PART_WIDTH], count = part[PART_COUNT], i
    ints, reals = ints + part[PART_INTS], reals + part[PART_REALS]
    if kind == BasisKind.RADIAL:
        radial(reals, count, b)
    elif kind == BasisKind.HALFSPACE:
        half_space(reals, count, b)
    elif kind == BasisKind.SUBSPACE:
        subspace(reals, count, b)
    elif kind == BasisKind.CUSTOM:
        custom(part[PART_ADDRESS], width, b)
    elif kind == BasisKind.PRODUCTS:
        for i in range(b.m):
            products(ints, count, width, b.x + i * b.d, b.out + i * b.ld)
    else:
        for i in range(b.m):
            one_column(kind, ints, reals, count, b.x + i * b.d, b.out + i * b.ld)
