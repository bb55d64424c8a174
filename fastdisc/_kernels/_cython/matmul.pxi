# Sparse rows times a matrix. Each row writes a row of the result: nothing is summed over rows.

cdef extern from "matmul.h" namespace "tiles" nogil:
    void multiply_rows[T](const CSRRows& X, Py_ssize_t lo, Py_ssize_t hi, const T* B, Py_ssize_t K,
                          T* Z)

cdef struct MatmulJob:
    Rows rows
    Py_ssize_t K, chunk
    bint single           # B and Z are float32
    const void* B         # (d, K)
    void* Z               # (n, K)


cdef void matmul_chunk(const void* task, Py_ssize_t c, char* workspace) noexcept nogil:
    cdef const MatmulJob* job = <const MatmulJob*>task
    cdef Py_ssize_t lo = c * job.chunk, hi = min(job.rows.n, lo + job.chunk)
    if job.single:
        multiply_rows(job.rows.csr, lo, hi, <const float*>job.B, job.K, <float*>job.Z)
    else:
        multiply_rows(job.rows.csr, lo, hi, <const double*>job.B, job.K, <double*>job.Z)


def matmul(X, B, out, grid, int n_threads):
    """Sparse rows times a matrix: (10.6); for transposed rows, (10.33)."""
    cdef MatmulJob job
    cdef cnp.ndarray source = B, target = out
    if X.layout != "csr":
        raise ValueError(f"matmul takes CSR rows, got layout {X.layout!r}")
    job.rows, job.K, job.chunk = open_rows(X), source.shape[1], grid[1]
    job.single = source.itemsize == 4
    job.B, job.Z = cnp.PyArray_DATA(source), cnp.PyArray_DATA(target)
    run_chunks(matmul_chunk, &job, chunk_count(job.rows.n, job.chunk), n_threads, 0)
