# Pairs that somebody gave, which may join any two rows. Chunks of pairs have derivatives of their own, which are added in order.

cdef inline void one_pair(int loss, double a, double width, double* values) noexcept nogil:
    """values = loss, derivative by a, curvature"""
    cdef double up = a if a > 0 else 0, near, u
    values[1] = pair_slope(loss, a, width)
    if loss == PAIR_LOGISTIC:
        u = exp_nonpositive(-abs(a))
        values[0], values[2] = up + log1p_ratio(u / (2 + u)), u / ((1 + u) * (1 + u))
    elif loss == PAIR_HUBER:
        near = up if up < width else width
        values[0], values[2] = values[1] * (up - near / 2), 1 / width if a > 0 and a <= width else 0
    elif loss == PAIR_SQUARED:
        values[0], values[2] = up * up, 2 if a > 0 else 0
    else:
        values[0], values[2] = up, 0


cdef struct Given:
    const int64_t* pairs
    const double* s
    Py_ssize_t step          # of s: 0 where one weight serves all pairs
    const double* z
    const double* x          # a direction's scores, or NULL
    int loss
    double margin, width


cdef void given_chunk(const Given* job, Py_ssize_t lo, Py_ssize_t hi, double* out, double* e) noexcept nogil:
    """Pairs lo to hi: out = loss, weight of the pairs that count; e gets their derivatives, or curvatures times x"""
    cdef double[3] values
    cdef Py_ssize_t t, u, v
    cdef double a, p, value
    for t in range(lo, hi):
        u, v, p = job.pairs[2 * t], job.pairs[2 * t + 1], job.s[t * job.step]
        a = (job.z[v] - job.z[u]) + job.margin
        one_pair(job.loss, a, job.width, &values[0])
        value = p * (values[1] if job.x == NULL else values[2] * (job.x[v] - job.x[u]))
        e[v] += value
        e[u] -= value
        out[0] += p * values[0] if a == a else NAN   # a difference that is none counts as such, whatever the loss makes of it
        out[1] += p if (job.z[v] >= job.z[u] if job.loss == PAIR_LOGISTIC else a > 0) else 0


cdef void merge_rows(double[:, ::1] part, Py_ssize_t lo, Py_ssize_t hi, double* e) noexcept nogil:
    """Rows lo to hi of the chunks' derivatives, added in the order of the chunks"""
    cdef Py_ssize_t c, i
    for i in range(lo, hi):
        e[i] = part[0, i]
    for c in range(1, part.shape[0]):
        for i in range(lo, hi):
            e[i] += part[c, i]


cdef object given_pairs(z, x, pairs, s, rule, grid, int n_threads):
    """Loss, weight of the pairs that count, and what each row gets of its pairs"""
    cdef Given job
    cdef const double[::1] z_ = z, x_ = z if x is None else x, s_ = s
    cdef const int64_t[:, ::1] pairs_ = pairs
    cdef Py_ssize_t n = z_.shape[0], count = pairs_.shape[0], chunk = grid[1], chunks = (count + chunk - 1) // chunk, c, block = 4096
    cdef int threads = max(1, min(n_threads, chunks))
    job.pairs, job.s, job.step, job.z, job.x = &pairs_[0, 0], &s_[0], s_.shape[0] > 1, &z_[0], &x_[0] if x is not None else NULL
    job.loss, job.margin, job.width = rule[0], rule[1], rule[2]
    result = np.empty(n)
    cdef double[::1] e = result
    cdef double[:, ::1] sums = aligned_zeros(chunks, 2)
    cdef double[:, ::1] part = aligned_zeros(chunks, n)
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            given_chunk(&job, c * chunk, min(count, c * chunk + chunk), &sums[c, 0], &part[c, 0])
        for c in prange((n + block - 1) // block, schedule="static"):
            merge_rows(part, c * block, min(n, c * block + block), &e[0])
    total = np.asarray(sums).sum(axis=0)
    return total[0], total[1], result


def pair_loss(z, pairs, s, rule, grid, int n_threads):
    """Loss over given pairs, and its derivative by the scores: (10.46), (10.48)."""
    return given_pairs(z, None, pairs, s, rule, grid, n_threads)


def pair_curvature_product(z, u, pairs, s, rule, grid, int n_threads):
    """The second derivative of (10.46) over given pairs, times u, as used by (10.48)."""
    return given_pairs(z, u, pairs, s, rule, grid, n_threads)[2]
