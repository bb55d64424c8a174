"""Types, layouts and backends that tests run over."""

FAST_BACKENDS = ("cython", "numba")
DTYPES = ("float64", "float32", "uint8", "int8", "int16", "bool")
FLOATS = ("float64", "float32")
LAYOUTS = ("C", "F", "strided", "reversed", "csr32", "csr64")

# Not each type with each layout: CSR stores floats, and all types are converted from unusual
# strides by the same code.
CASES = [
    (dtype, layout)
    for dtype in DTYPES
    for layout in LAYOUTS
    if layout in ("C", "F") or dtype in FLOATS
]
# What Numba compiles, for tens of seconds per type: each memory order, item size and index type
# once. Tests of kernels take their types from these, so that they share what is compiled.
NUMBA_CASES = [
    ("float64", "C"),
    ("float64", "strided"),
    ("float64", "csr32"),
    ("float32", "C"),
    ("float32", "csr64"),
    ("uint8", "F"),
]
KERNEL_CASES = [
    *(("cython", *case) for case in CASES),
    *(("numba", *case) for case in NUMBA_CASES),
]
THREADS = (1, 2, 3, 8)
