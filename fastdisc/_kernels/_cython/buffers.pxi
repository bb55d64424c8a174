# Memory of kernels: workspaces that are measured and laid out by the same code, aligned arrays, and
# a pool of buffers for partial sums.

cdef enum:
    CACHE_LINE = 64             # bytes
    MAX_POOLED_CELLS = 2000000  # 16 MB


# A workspace that is handed out from its start. Without memory, base NULL, it only measures: the
# size and the layout of a workspace come from the same calls of `take`.
cdef struct Arena:
    char* base
    Py_ssize_t used   # bytes


cdef inline Arena open_arena(char* base) noexcept nogil:
    cdef Arena arena
    arena.base = base
    arena.used = 0
    return arena


cdef inline void* take(Arena* arena, Py_ssize_t count, size_t itemsize) noexcept nogil:
    """`count` items on cache lines of their own."""
    cdef char* start = NULL
    if arena.base != NULL:
        start = arena.base + arena.used
    arena.used += (count * <Py_ssize_t>itemsize + CACHE_LINE - 1) // CACHE_LINE * CACHE_LINE
    return start


cdef inline double* take_doubles(Arena* arena, Py_ssize_t count) noexcept nogil:
    return <double*>take(arena, count, sizeof(double))


cdef object aligned_zeros(Py_ssize_t rows, Py_ssize_t columns):
    """Zeros (rows, columns padded to whole cache lines), each row on cache lines of its own."""
    return aligned(rows, columns, np.zeros(aligned_size(rows, columns)))


cdef Py_ssize_t aligned_size(Py_ssize_t rows, Py_ssize_t columns) noexcept:
    """Cells of a buffer that `aligned` needs."""
    return rows * ((columns + 7) // 8 * 8) + 8


cdef object aligned(Py_ssize_t rows, Py_ssize_t columns, object buffer):
    """The part of a buffer that begins with a cache line, as rows of whole cache lines."""
    cdef Py_ssize_t padded = (columns + 7) // 8 * 8, start
    start = (CACHE_LINE - <Py_ssize_t>cnp.PyArray_DATA(buffer) % CACHE_LINE) % CACHE_LINE // 8
    return buffer[start:start + rows * padded].reshape(rows, padded)


# The buffer of the last sums, for the next ones: memory that is new to a process is mapped page by
# page, each cleared first (samples of 200k x 50 in 5 folds: 13 ms for Hessians, 4 with pages that
# are mapped). A call removes it from the pool while it uses it.
cdef list buffer_pool = []


cdef object take_buffer(Py_ssize_t rows, Py_ssize_t columns):
    """An array as `aligned_zeros`, but not cleared."""
    cdef Py_ssize_t size = aligned_size(rows, columns)
    try:
        buffer = buffer_pool.pop()
    except IndexError:
        buffer = np.empty(size)
    return aligned(rows, columns, buffer if len(buffer) >= size else np.empty(size))


cdef void return_buffer(object array):
    """Keep the buffer of an array from `take_buffer`, unless it is large."""
    if len(array.base) <= MAX_POOLED_CELLS:
        buffer_pool[:] = [array.base]
