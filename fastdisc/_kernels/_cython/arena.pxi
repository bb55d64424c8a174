# A workspace is laid out by the function that also measures it: with base NULL, an arena only
# counts.

cdef struct Arena:
    double* base        # on a 64-byte boundary, or NULL
    Py_ssize_t used     # doubles


cdef inline Arena make_arena(double* base) noexcept nogil:
    cdef Arena arena
    arena.base, arena.used = base, 0
    return arena


cdef inline double* arena_doubles(Arena* arena, Py_ssize_t n) noexcept nogil:
    """The next n doubles, from a 64-byte boundary on; NULL if the arena only counts."""
    cdef Py_ssize_t first = arena.used
    arena.used += (n + 7) // 8 * 8
    return arena.base + first if arena.base != NULL else NULL


cdef inline void* arena_bytes(Arena* arena, Py_ssize_t n) noexcept nogil:
    """The same for n bytes of another type."""
    return arena_doubles(arena, (n + 7) // 8)
