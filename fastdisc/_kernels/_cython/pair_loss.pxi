# Given pairs, which may join any two rows. Chunks of pairs have derivatives of their own, which are
# added in the order of the chunks.

cdef struct GivenPairs:
    const int64_t* pairs
    const double* s
    Py_ssize_t step          # of s: 0 if all pairs have the same weight
    const double* z
    const double* x          # a direction's scores, or NULL
    PairRule rule
    Py_ssize_t n, count, chunk
    double* sums             # (chunks, 8): loss, active weight, 6 padding doubles
    double* part             # (chunks, part_size): derivatives, or curvatures times x
    Py_ssize_t part_size, chunks
    double* e                # (n,) their sums


# A thread's buffers.
cdef struct GivenWorkspace:
    Strip* strip
    double* difference       # (STRIP,) z_v - z_u


cdef GivenWorkspace make_given_workspace(Arena* arena) noexcept nogil:
    cdef GivenWorkspace work
    work.strip = <Strip*>take(arena, 1, sizeof(Strip))
    work.difference = take_doubles(arena, STRIP)
    return work


cdef Py_ssize_t given_workspace_size() noexcept nogil:
    cdef Arena arena = open_arena(NULL)
    make_given_workspace(&arena)
    return arena.used


cdef void evaluate_given(
    const GivenPairs* given, Py_ssize_t first, Py_ssize_t m, double* out,
    const GivenWorkspace* work
) noexcept nogil:
    """work.strip.p = the derivatives of pairs first to first + m by a, or curvatures times x,
    without weights; out += loss, active weight"""
    cdef const int64_t* pairs = given.pairs + 2 * first
    cdef double* p = work.strip.p
    cdef double margin = given.rule.margin, weight, a
    cdef Py_ssize_t i
    for i in range(m):
        work.difference[i] = given.z[pairs[2 * i + 1]] - given.z[pairs[2 * i]]
        p[i] = 1
    evaluate_pairs(&given.rule, 0, work.difference, m, work.strip,
                   LOSSES if given.x == NULL else CURVATURES)
    for i in range(m):
        if given.x != NULL:
            p[i] *= given.x[pairs[2 * i + 1]] - given.x[pairs[2 * i]]
            continue
        weight, a = given.s[(first + i) * given.step], work.difference[i] + margin
        p[i] = pair_slope(given.rule.loss, a, given.rule.width)
        out[0] += weight * work.strip.loss[i] if a == a else NAN   # losses of NaN may be numbers
        out[1] += weight * work.strip.active[i]


cdef void given_chunk(const void* task, Py_ssize_t c, char* workspace) noexcept nogil:
    """The pairs of a chunk"""
    cdef const GivenPairs* given = <const GivenPairs*>task
    cdef Arena arena = open_arena(workspace)
    cdef GivenWorkspace work = make_given_workspace(&arena)
    cdef double* out = given.sums + 8 * c
    cdef double* e = given.part + c * given.part_size
    cdef Py_ssize_t lo = c * given.chunk, hi = min(given.count, lo + given.chunk)
    cdef Py_ssize_t i, m
    cdef double change
    while lo < hi:
        m = min(STRIP, hi - lo)
        evaluate_given(given, lo, m, out, &work)
        for i in range(m):
            change = given.s[(lo + i) * given.step] * work.strip.p[i]
            e[given.pairs[2 * (lo + i) + 1]] += change
            e[given.pairs[2 * (lo + i)]] -= change
        lo += m


cdef enum:
    MERGED_ROWS = 4096   # at a time


cdef void merge_derivatives(const void* task, Py_ssize_t b, char* workspace) noexcept nogil:
    """Block b of rows of the chunks' derivatives, added in the order of the chunks"""
    cdef const GivenPairs* given = <const GivenPairs*>task
    cdef Py_ssize_t lo = b * MERGED_ROWS, hi = min(given.n, lo + MERGED_ROWS), c, i
    for i in range(lo, hi):
        given.e[i] = given.part[i]
    for c in range(1, given.chunks):
        for i in range(lo, hi):
            given.e[i] += given.part[c * given.part_size + i]


cdef object sum_given(z, x, pairs, s, rule, grid, int n_threads):
    """Loss, active weight, and the derivative by the scores, or the curvatures times x"""
    cdef GivenPairs given
    cdef const double[::1] z_ = z, x_ = z if x is None else x, s_ = s
    cdef const int64_t[:, ::1] pairs_ = pairs
    given.pairs, given.s, given.step = &pairs_[0, 0], &s_[0], s_.shape[0] > 1
    given.z, given.x, given.rule = &z_[0], &x_[0] if x is not None else NULL, pair_rule(rule)
    given.n, given.count, given.chunk = z_.shape[0], pairs_.shape[0], grid[1]
    given.chunks = chunk_count(given.count, given.chunk)
    result, sums = np.empty(given.n), aligned_zeros(given.chunks, 8)
    part = aligned_zeros(given.chunks, given.n)
    given.e, given.sums = <double*>cnp.PyArray_DATA(result), <double*>cnp.PyArray_DATA(sums)
    given.part, given.part_size = <double*>cnp.PyArray_DATA(part), part.shape[1]
    run_chunks(given_chunk, &given, given.chunks, n_threads, given_workspace_size())
    run_chunks(merge_derivatives, &given, chunk_count(given.n, MERGED_ROWS), n_threads, 0)
    total = sums.sum(axis=0)
    return total[0], total[1], result


def pair_loss(z, pairs, s, rule, grid, int n_threads):
    """Loss over given pairs, and its derivative by the scores: (10.46), (10.48)."""
    return sum_given(z, None, pairs, s, rule, grid, n_threads)


def pair_curvature_product(z, u, pairs, s, rule, grid, int n_threads):
    """The second derivative of (10.46) over given pairs, times u, as used by (10.48)."""
    return sum_given(z, u, pairs, s, rule, grid, n_threads)[2]
