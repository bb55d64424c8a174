# Chunks on threads: they are claimed dynamically, each writes partial sums of its own, and those
# are added in the order of the chunks, which gives the same bits with any number of threads.

from cython.parallel cimport parallel, prange, threadid

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    #define FASTDISC_THREADS omp_get_max_threads()
    #else
    #define FASTDISC_THREADS 0
    #endif
    """
    int FASTDISC_THREADS

# What a kernel does with chunk c. `task` is the kernel's own struct; the workspace is the thread's.
ctypedef void (*ChunkFunction)(const void* task, Py_ssize_t c, char* workspace) noexcept nogil


def openmp_threads():
    """Threads that OpenMP would use now; 0 without OpenMP."""
    return FASTDISC_THREADS


cdef inline Py_ssize_t chunk_count(Py_ssize_t n, Py_ssize_t chunk) noexcept nogil:
    """Chunks of n rows."""
    return (n + chunk - 1) // chunk


cdef inline int thread_count(int n_threads, Py_ssize_t chunks) noexcept nogil:
    """Threads that have something to do."""
    return max(1, min(n_threads, chunks))


cdef int run_chunks(ChunkFunction run, const void* task, Py_ssize_t chunks, int n_threads,
                    Py_ssize_t workspace_bytes) except -1:
    """Run a function for all chunks; each thread has a workspace, zeroed before its first chunk."""
    cdef int threads = thread_count(n_threads, chunks)
    cdef char* workspaces = NULL
    cdef Py_ssize_t c, size = 0
    cdef cnp.ndarray work
    if workspace_bytes:
        work = aligned_zeros(threads, workspace_bytes // 8)
        workspaces, size = <char*>cnp.PyArray_DATA(work), work.strides[0]
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            run(task, c, workspaces + threadid() * size)
    return 0
