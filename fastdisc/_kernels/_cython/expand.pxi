# The features of mapped rows, as an array.

cdef struct ExpandJob:
    Rows rows
    Py_ssize_t block, chunk
    double* out   # (n, d)


cdef void expand_chunk(const void* task, Py_ssize_t c, char* workspace) noexcept nogil:
    cdef const ExpandJob* job = <const ExpandJob*>task
    cdef Py_ssize_t lo = c * job.chunk, hi = min(job.rows.n, lo + job.chunk), m
    while lo < hi:
        m = min(job.block, hi - lo)
        fetch_mapped(&job.rows, lo, m, job.out + lo * job.rows.d, job.rows.d)
        lo += m


def expand(X, grid, int n_threads):
    """The features of mapped rows: (10.3), (10.35)."""
    cdef ExpandJob job
    cdef cnp.ndarray out
    if X.layout != "mapped":
        raise ValueError(f"expand takes mapped rows, got layout {X.layout!r}")
    job.rows, job.block, job.chunk = open_rows(X), grid[0], grid[1]
    out = np.empty((job.rows.n, job.rows.d))
    job.out = <double*>cnp.PyArray_DATA(out)
    run_chunks(expand_chunk, &job, chunk_count(job.rows.n, job.chunk), n_threads, 0)
    return out
