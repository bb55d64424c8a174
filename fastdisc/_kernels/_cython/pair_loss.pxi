# Given pairs, which may join any two rows. Chunks of pairs have derivatives of their own, which are
# added in the order of the chunks.

cdef struct GivenPairs:
    const int64_t* pairs
    const double* s
    Py_ssize_t step          # of s: 0 if all pairs have the same weight
    const double* z
    const double* x          # a direction's scores, or NULL
    PairRule rule


# A thread's buffers.
cdef struct GivenWorkspace:
    Strip* strip
    double* difference       # (STRIP,) z_v - z_u


cdef GivenWorkspace make_given_workspace(Arena* arena) noexcept nogil:
    cdef GivenWorkspace work
    work.strip = <Strip*>arena_bytes(arena, sizeof(Strip))
    work.difference = arena_doubles(arena, STRIP)
    return work


cdef Py_ssize_t given_workspace_size() noexcept nogil:
    cdef Arena arena = make_arena(NULL)
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


cdef void add_given(
    const GivenPairs* given, Py_ssize_t lo, Py_ssize_t hi, double* e, double* out, double* buffers
) noexcept nogil:
    """Pairs lo to hi: out += loss, active weight; e += derivatives, or curvatures times x"""
    cdef Arena arena = make_arena(buffers)
    cdef GivenWorkspace work = make_given_workspace(&arena)
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


cdef void merge_derivatives(
    double[:, ::1] part, Py_ssize_t lo, Py_ssize_t hi, double* e
) noexcept nogil:
    """Rows lo to hi of the chunks' derivatives, added in the order of the chunks"""
    cdef Py_ssize_t c, i
    for i in range(lo, hi):
        e[i] = part[0, i]
    for c in range(1, part.shape[0]):
        for i in range(lo, hi):
            e[i] += part[c, i]


cdef object sum_given(z, x, pairs, s, rule, grid, int n_threads):
    """Loss, active weight, and the derivative by the scores, or the curvatures times x"""
    cdef GivenPairs given
    cdef const double[::1] z_ = z, x_ = z if x is None else x, s_ = s
    cdef const int64_t[:, ::1] pairs_ = pairs
    cdef Py_ssize_t n = z_.shape[0], count = pairs_.shape[0], chunk = grid[1]
    cdef Py_ssize_t chunks = (count + chunk - 1) // chunk, c, block = 4096
    cdef int threads = max(1, min(n_threads, chunks))
    given.pairs, given.s, given.step = &pairs_[0, 0], &s_[0], s_.shape[0] > 1
    given.z, given.x, given.rule = &z_[0], &x_[0] if x is not None else NULL, pair_rule(rule)
    result = np.empty(n)
    cdef double[::1] e = result
    cdef double[:, ::1] sums = aligned_zeros(chunks, 2)
    cdef double[:, ::1] part = aligned_zeros(chunks, n)
    cdef double[:, ::1] work = aligned_zeros(threads, given_workspace_size())
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            add_given(&given, c * chunk, min(count, c * chunk + chunk), &part[c, 0], &sums[c, 0],
                      &work[threadid(), 0])
        for c in prange((n + block - 1) // block, schedule="static"):
            merge_derivatives(part, c * block, min(n, c * block + block), &e[0])
    total = np.asarray(sums).sum(axis=0)
    return total[0], total[1], result


def pair_loss(z, pairs, s, rule, grid, int n_threads):
    """Loss over given pairs, and its derivative by the scores: (10.46), (10.48)."""
    return sum_given(z, None, pairs, s, rule, grid, n_threads)


def pair_curvature_product(z, u, pairs, s, rule, grid, int n_threads):
    """The second derivative of (10.46) over given pairs, times u, as used by (10.48)."""
    return sum_given(z, u, pairs, s, rule, grid, n_threads)[2]
