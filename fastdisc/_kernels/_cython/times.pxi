# Sparse rows times a matrix. Each row has its own place in the result: nothing is added up, and any cut into chunks will do.

cdef extern from "times.h" namespace "tiles" nogil:
    void rows_times[T, S](const S* x, const void* columns, const void* starts, bint wide, Py_ssize_t n, Py_ssize_t lo, Py_ssize_t hi,
                          const T* B, Py_ssize_t K, T* Z)


cdef void times_chunk(const Rows* rows, Py_ssize_t lo, Py_ssize_t hi, const real* B, Py_ssize_t K, real* Z) noexcept nogil:
    if rows.kind == F32:
        rows_times(<const float*>rows.data, rows.indices, rows.indptr, rows.index64, rows.n, lo, hi, B, K, Z)
    else:
        rows_times(<const double*>rows.data, rows.indices, rows.indptr, rows.index64, rows.n, lo, hi, B, K, Z)


def matmul(X, B, out, grid, int n_threads):
    """Sparse rows times a matrix: (10.6); for transposed rows, (10.33)."""
    cdef Rows rows = open_rows(X)
    cdef cnp.ndarray from_ = B, to = out
    cdef Py_ssize_t chunk = grid[1], K = from_.shape[1], chunks = (rows.n + chunk - 1) // chunk, c
    cdef const void* b = cnp.PyArray_DATA(from_)
    cdef void* z = cnp.PyArray_DATA(to)
    cdef bint single = from_.itemsize == 4
    for c in prange(chunks, nogil=True, schedule="dynamic", chunksize=1, num_threads=max(1, min(n_threads, chunks))):
        if single:
            times_chunk(&rows, c * chunk, min(rows.n, c * chunk + chunk), <const float*>b, K, <float*>z)
        else:
            times_chunk(&rows, c * chunk, min(rows.n, c * chunk + chunk), <const double*>b, K, <double*>z)
