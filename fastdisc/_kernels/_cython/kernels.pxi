"""The kernels, compiled ahead of time: this source is built once for each SIMD level (baseline.pyx, v3.pyx, v4.pyx).

A sweep cuts the rows into chunks, and a chunk into blocks that stay in cache. Chunks are dealt to threads as they come, each
writes its own partial sums, and those are added in the order of the chunks: the same bits on any number of threads.
The contract of the functions is in fastdisc/_kernels/__init__.py.
"""
cimport numpy as cnp
from cython.parallel cimport parallel, prange, threadid
from libc.math cimport INFINITY, NAN, isfinite, sqrt
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from libcpp.algorithm cimport nth_element, partial_sort, sort
from libcpp.pair cimport pair

import numpy as np

cnp.import_array()

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

cdef enum RowLoss:
    LOGISTIC
    SOFTMAX
    SIGMOID_SQUARED
    SQUARED_ERROR

cdef enum Activation:
    IDENTITY
    SIGMOID
    SOFTMAX_OUTPUTS

include "enums_ranking.pxi"
include "codes.pxi"
include "arena.pxi"
include "rows.pxi"
include "links.pxi"
include "squares.pxi"
include "basis.pxi"
include "row_verbs.pxi"
include "coordinate_descent.pxi"
include "weighted_row_sum.pxi"
include "online_rules.pxi"
include "online_schedule.pxi"
include "online_rows.pxi"
include "online_speculation.pxi"
include "online.pxi"
include "pair_losses.pxi"
include "online_pairs.pxi"
include "rank_tree.pxi"
include "ranking.pxi"
include "query_sweep.pxi"
include "query_hessian.pxi"
include "pair_loss.pxi"
include "metrics.pxi"
include "moments.pxi"
include "times.pxi"


def openmp_threads():
    """Threads that OpenMP would use now; 0 without OpenMP."""
    return FASTDISC_THREADS


cdef object aligned_zeros(Py_ssize_t rows, Py_ssize_t columns, object buffer=None):
    """Zeros, (rows, columns) float64, each row on a cache line of its own. In a buffer that is given there are no zeros."""
    cdef Py_ssize_t padded = (columns + 7) // 8 * 8, size = rows * padded + 8, start
    if buffer is None:
        buffer = np.zeros(size)
    start = (64 - <Py_ssize_t>cnp.PyArray_DATA(buffer) % 64) % 64 // 8
    return buffer[start:start + rows * padded].reshape(rows, padded)


# Room that the last sweep had for its sums, for the next one: memory that is new to a process comes a page at a time, each set to zero
# first (samples of 200k x 50 in 5 folds: 13 ms for Hessians, 4 without new pages). A call takes it away while it runs, and up to 16 MB
# stay with the process.
cdef list spare = []


cdef object borrow(Py_ssize_t rows, Py_ssize_t columns):
    """Room for sums, as `aligned` has it, but nobody has set it to zero."""
    cdef Py_ssize_t size = rows * ((columns + 7) // 8 * 8) + 8
    try:
        buffer = spare.pop()
    except IndexError:
        buffer = np.empty(size)
    return aligned_zeros(rows, columns, buffer if len(buffer) >= size else np.empty(size))


cdef void give_back(object room):
    """Keep what was borrowed, of one call, and no more than 16 MB."""
    if len(room.base) <= 2_000_000:
        spare[:] = [room.base]


cdef object pack_weights(const Plan* plan, object W):
    """W[:, 1:] in the layout's own order, in the type of the products."""
    cdef Py_ssize_t j, k, d = plan.rows.d, K = plan.K
    cdef const double[:, ::1] from_
    cdef double[::1] to
    flat = aligned_zeros(1, weight_size(plan))[0]
    if plan.rows.csr:   # by hand: NumPy turns 20 x 42,000 numbers in 10 ms, half the time of a sweep
        from_, to = W, flat
        with nogil:
            for j in range(d):
                for k in range(K):
                    to[j * K + k] = from_[k, 1 + j]
        return flat
    if plan.float32:
        flat = flat.view(np.float32)
    rows = flat[:weight_size(plan)].reshape(K, plan.ldw)
    body = d - tail(plan)
    rows[:, :body] = W[:, 1:1 + body]
    rows[:, plan.ldw - tail(plan):] = W[:, 1 + body:]
    return flat


cdef void add_columns(double[:, ::1] part, Py_ssize_t first, Py_ssize_t lo, Py_ssize_t hi, double[:, ::1] G) noexcept nogil:
    """Columns lo to hi of CSR sums: those of the chunks in order, turned."""
    cdef Py_ssize_t K = G.shape[0], j, k, c
    for j in range(lo, hi):
        for k in range(K):
            G[k, j] = part[0, first + j * K + k]
        for c in range(1, part.shape[0]):
            for k in range(K):
                G[k, j] += part[c, first + j * K + k]


cdef object merge_chunks(const Plan* plan, double[:, ::1] part, Py_ssize_t first, int threads):
    """The (K, d) sums that stand at `first` in each chunk's, in the layout's own order, added in the order of the chunks."""
    cdef Py_ssize_t d = plan.rows.d, b
    cdef double[:, ::1] G
    if plan.rows.csr:
        result = np.empty((plan.K, d))
        G = result
        for b in prange((d + 511) // 512, nogil=True, num_threads=threads):
            add_columns(part, first, b * 512, min(d, b * 512 + 512), G)
        return result
    rows = np.asarray(part)[:, first:first + weight_size(plan)].sum(axis=0).reshape(plan.K, plan.ldw)
    return np.hstack([rows[:, :d - tail(plan)], rows[:, plan.ldw - tail(plan):]])


cdef object unpack_weights(const Plan* plan, flat):
    """The (K, d) matrix that stands in the layout's own order."""
    return merge_chunks(plan, flat[None, :], 0, 1)


# What one chunk needs beside the plan: pointers that all threads share.
cdef struct Job:
    Plan plan
    int link, order
    const int32_t* r
    const double* s
    Py_ssize_t step          # of s: 0 where one weight serves all rows
    const double* o          # (N, K) offsets of the scores, or NULL
    const void* W            # in the layout's own order, in the type of the products
    const double* w0
    Py_ssize_t D             # columns of a Hessian block: d, for dense rows padded to whole vectors


cdef Py_ssize_t workspace(const Job* job) noexcept nogil:
    """Numbers of a thread's buffers, as sweep_chunk lays them out."""
    cdef Py_ssize_t b = job.plan.block, K = job.plan.K, pairs = 2 if job.order == 2 else 0
    return b * (job.plan.ldw * (not job.plan.rows.csr) + 2 * K + 16 + pairs * job.D) + weight_size(&job.plan) + 3 * K + 64 + TALLY


cdef inline void take_rows(const Job* job, Py_ssize_t lo, Py_ssize_t m, real* s, real* Z) noexcept nogil:
    """The weights of rows lo to lo + m, where they have their own, and their offsets added to the scores."""
    cdef Py_ssize_t K = job.plan.K, B = job.plan.block, i, k
    if job.step:
        for i in range(m):
            s[i] = <real>job.s[lo + i]
    if job.o != NULL:
        for k in range(K):
            for i in range(m):
                Z[k * B + i] += <real>job.o[(lo + i) * K + k]


cdef void sweep_chunk(const Job* job, Py_ssize_t lo, Py_ssize_t hi, double* out, double* work, const real* marker) noexcept nogil:
    """Sums of rows lo to hi: out = loss, errors, intercept gradient (K), G, H."""
    cdef Py_ssize_t K = job.plan.K, B = job.plan.block, D = job.D, size = weight_size(&job.plan), m, i, k, ld = 0
    cdef double* c = work
    cdef double* Y = c + B                                        # (K, B) outputs
    cdef double* P = Y + K * B                                    # (B, D) rows, padded
    cdef double* Q = P + (B * D if job.order == 2 else 0)       # (B, D) the same times c
    cdef real* s = <real*>(Q + (B * D if job.order == 2 else 0))
    cdef real* tally = s + B                                      # of losses and mistakes
    cdef real* Z = tally + TALLY                                  # (K, B) scores, then errors
    cdef real* more = Z + K * B                                   # (4, B) of the softmax
    cdef real* w0 = more + 4 * B
    cdef real* G = w0 + (K + 7) // 8 * 8                          # sums of a block where products are float32
    cdef real* buffer = G + (0 if real is double else (size + 7) // 8 * 8)
    cdef double* g = out + 2 + K
    cdef double* H = g + size
    cdef const real* x
    cdef Weights weights = OWN if job.step or job.link != LOGISTIC else EQUAL
    cdef double unit = 1 if weights == OWN else job.s[0]          # the tally leaves equal weights out
    cdef Py_ssize_t due = lo + PERIOD * LANES
    if real is double:
        G = g
    memset(tally, 0, TALLY * sizeof(real))
    for k in range(K):
        w0[k] = <real>job.w0[k]
    for i in range(B):
        s[i] = <real>job.s[0]
    while lo < hi:
        m = min(B, hi - lo)
        x = fetch(&job.plan, lo, m, buffer, &ld)
        score(&job.plan, lo, m, x, ld, <const real*>job.W, w0, Z)
        take_rows(job, lo, m, s, Z)
        if job.link == LOGISTIC:
            link_logistic(Z, job.r + lo, s, weights, m, tally)
        elif job.link == SIGMOID_SQUARED:
            link_sigmoid(Z, job.r + lo, s, m, tally, Y if job.order == 2 else NULL, more)
        elif job.link == SQUARED_ERROR:
            link_linear(Z, job.r + lo, s, m, tally, Y if job.order == 2 else NULL, more)
        else:
            link_softmax(Z, B, K, job.r + lo, s, m, tally, Y if job.order == 2 else NULL, more)
        if lo >= due:
            settle(tally, unit, out)
            due = lo + PERIOD * LANES
        if job.order:
            for k in range(K):
                out[2 + k] += sum(Z + k * B, m)
            accumulate(&job.plan, lo, m, x, ld, Z, G)
            if real is float:
                for i in range(size):
                    g[i] += G[i]
                    G[i] = 0
        if job.order == 2:
            if real is double:
                hessian(job, lo, m, x, ld, s, Z, Y, c, P, Q, H)
        lo += m
    settle(tally, unit, out)


cdef void hessian(const Job* job, Py_ssize_t lo, Py_ssize_t m, const double* x, Py_ssize_t ld, const double* s, const double* E,
                  const double* Y, double* c, double* P, double* Q, double* H) noexcept nogil:
    """H_jk += sum_i c_jk,i [x_i 1][x_i 1]', for each pair of classes j <= k   (seed E; 10.32)

    For a pair, H has D rows of D numbers with the upper triangle, then sum_i c_i x_i, then sum_i c_i.
    """
    cdef Py_ssize_t D = job.D, K = job.plan.K, j, k
    if not job.plan.rows.csr and D != job.plan.width:
        load_rows(&job.plan.rows, lo, m, P, D)
        x, ld = P, D
    for j in range(K):
        for k in range(j, K):
            curvature(job.link, j, k, E, Y, job.plan.block, s, m, c)
            gram_block(job, lo, m, x, ld, c, Q, H)
            H += D * (D + 2)


cdef void gram_block(const Job* job, Py_ssize_t lo, Py_ssize_t m, const double* x, Py_ssize_t ld, const double* c, double* Q,
                     double* H) noexcept nogil:
    """H += sum_i c_i [x_i 1][x_i 1]', as `hessian` has it for a pair of classes; Q is room for the rows times c."""
    cdef Py_ssize_t D = job.D
    if job.plan.rows.csr:
        gram_csr(&job.plan, lo, m, c, H)
    else:
        scale_rows(x, ld, c, m, D, Q, H + D * D)
        gram(Q, x, ld, m, D, H)
    H[D * (D + 1)] += sum(c, m)


def sweep(batch, int loss, W, int order, grid, int n_threads):
    """Loss, errors, gradient and Hessian: (10.23)-(10.24), (10.31)-(10.33)."""
    cdef Job job
    cdef Py_ssize_t block = grid[0], chunk = grid[1], K = W.shape[0], n, c, size, pairs
    X, r, s, o = batch
    job.plan = make_plan(X, K, block, order < 2 and grid[2])
    if order < 2:   # for a Hessian `gram` wants long blocks, and calls the next one itself
        choose_block(&job.plan)
    job.link, job.order = loss, order
    cdef const int32_t[::1] r_ = r
    cdef const double[::1] s_ = s
    cdef const double[:, ::1] o_ = o
    n = job.plan.rows.n
    job.r, job.s, job.step, job.o = &r_[0], &s_[0], s_.shape[0] > 1, &o_[0, 0] if o_.shape[0] else NULL
    laid = pack_weights(&job.plan, W)
    w0 = np.ascontiguousarray(W[:, 0])
    job.W, job.w0 = cnp.PyArray_DATA(laid), <const double*>cnp.PyArray_DATA(w0)
    cdef Py_ssize_t d = job.plan.rows.d, wide = max(4, lanes[double]())
    job.D = d if job.plan.rows.csr else (d + wide - 1) // wide * wide
    pairs = K * (K + 1) // 2 if order == 2 else 0
    size = weight_size(&job.plan)
    cdef Py_ssize_t chunks = (n + chunk - 1) // chunk
    cdef int threads = max(1, min(n_threads, chunks))
    sums = borrow(chunks, 2 + K + size + pairs * job.D * (job.D + 2))
    cdef double[:, ::1] part = sums
    cdef double[:, ::1] work = aligned_zeros(threads, workspace(&job))
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            memset(&part[c, 0], 0, part.shape[1] * sizeof(double))
            if job.plan.float32:
                sweep_chunk(&job, c * chunk, min(n, c * chunk + chunk), &part[c, 0], &work[threadid(), 0], <const float*>NULL)
            else:
                sweep_chunk(&job, c * chunk, min(n, c * chunk + chunk), &part[c, 0], &work[threadid(), 0], <const double*>NULL)
    total = sums[:, :2 + K].sum(axis=0)
    G = np.hstack([total[2:, None], merge_chunks(&job.plan, part, 2 + K, threads)])  # (K, d+1)
    H = unfold(sums[:, 2 + K + size:].sum(axis=0), K, d, job.D) if order == 2 else None
    give_back(sums)
    return total[0], total[1], G, H


cdef void product_chunk(const Job* job, const void* V, const double* v0, Py_ssize_t lo, Py_ssize_t hi, double* out, double* work,
                        const real* marker) noexcept nogil:
    """Sums of rows lo to hi: out = the intercepts' share (K), then that of the other weights."""
    cdef Py_ssize_t K = job.plan.K, B = job.plan.block, size = weight_size(&job.plan), m, i, k, ld = 0
    cdef real* s = <real*>work
    cdef real* Z = s + B                                          # (K, B) scores
    cdef real* U = Z + K * B                                      # (K, B) scores of V, then curvature times those
    cdef real* more = U + K * B                                   # (4, B) of the softmax
    cdef real* w0 = more + 4 * B
    cdef real* u0 = w0 + (K + 7) // 8 * 8
    cdef real* G = u0 + (K + 7) // 8 * 8
    cdef real* buffer = G + (0 if real is double else (size + 7) // 8 * 8)
    cdef double* g = out + K
    cdef const real* x
    if real is double:
        G = g
    for k in range(K):
        w0[k], u0[k] = <real>job.w0[k], <real>v0[k]
    for i in range(B):
        s[i] = <real>job.s[0]
    while lo < hi:
        m = min(B, hi - lo)
        x = fetch(&job.plan, lo, m, buffer, &ld)
        score(&job.plan, lo, m, x, ld, <const real*>job.W, w0, Z)
        score(&job.plan, lo, m, x, ld, <const real*>V, u0, U)
        take_rows(job, lo, m, s, Z)
        bend(job.link, Z, U, B, K, s, m, more)
        for k in range(K):
            out[k] += sum(U + k * B, m)
        accumulate(&job.plan, lo, m, x, ld, U, G)
        if real is float:
            for i in range(size):
                g[i] += G[i]
                G[i] = 0
        lo += m


def hessian_product(batch, int loss, W, V, grid, int n_threads):
    """The Hessian at W times V, without forming the Hessian: (10.32), as used by (10.33)."""
    cdef Job job
    cdef Py_ssize_t block = grid[0], chunk = grid[1], K = W.shape[0], n, c, size
    X, _, s, o = batch
    job.plan = make_plan(X, K, block, grid[2])
    choose_block(&job.plan)
    job.link, job.order, job.D = loss, 1, 0
    cdef const double[::1] s_ = s
    cdef const double[:, ::1] o_ = o
    n = job.plan.rows.n
    job.s, job.step, job.o = &s_[0], s_.shape[0] > 1, &o_[0, 0] if o_.shape[0] else NULL
    laid_w, laid_v = pack_weights(&job.plan, W), pack_weights(&job.plan, V)
    w0, v0 = np.ascontiguousarray(W[:, 0]), np.ascontiguousarray(V[:, 0])
    job.W, job.w0 = cnp.PyArray_DATA(laid_w), <const double*>cnp.PyArray_DATA(w0)
    cdef const void* V_ = cnp.PyArray_DATA(laid_v)
    cdef const double* v0_ = <const double*>cnp.PyArray_DATA(v0)
    size = weight_size(&job.plan)
    cdef Py_ssize_t chunks = (n + chunk - 1) // chunk
    cdef int threads = max(1, min(n_threads, chunks))
    cdef double[:, ::1] part = aligned_zeros(chunks, K + size)
    cdef double[:, ::1] work = aligned_zeros(threads, workspace(&job))
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            if job.plan.float32:
                product_chunk(&job, V_, v0_, c * chunk, min(n, c * chunk + chunk), &part[c, 0], &work[threadid(), 0], <const float*>NULL)
            else:
                product_chunk(&job, V_, v0_, c * chunk, min(n, c * chunk + chunk), &part[c, 0], &work[threadid(), 0], <const double*>NULL)
    return np.hstack([np.asarray(part)[:, :K].sum(axis=0)[:, None], merge_chunks(&job.plan, part, K, threads)])


cdef object unfold_blocks(sums, Py_ssize_t d, Py_ssize_t D):
    """The (n, d+1, d+1) matrices of n blocks that `gram_block` has summed."""
    blocks = sums.reshape(-1, D + 2, D)
    triangles = blocks[:, :d, :d]
    H = np.empty((len(blocks), d + 1, d + 1))
    H[:, 0, 0] = blocks[:, D + 1, 0]
    H[:, 0, 1:] = H[:, 1:, 0] = blocks[:, D, :d]
    H[:, 1:, 1:] = np.where(np.arange(d)[:, None] <= np.arange(d), triangles, triangles.swapaxes(1, 2))
    return H


cdef object unfold(sums, Py_ssize_t K, Py_ssize_t d, Py_ssize_t D):
    """The full (K (d+1), K (d+1)) Hessian from what `hessian` sums for each pair of classes."""
    H = np.empty((K, d + 1, K, d + 1))
    pairs = [(j, k) for j in range(K) for k in range(j, K)]
    for block, (j, k) in zip(unfold_blocks(sums[:len(pairs) * D * (D + 2)], d, D), pairs):
        H[j, :, k, :] = H[k, :, j, :] = block
    return H.reshape(K * (d + 1), K * (d + 1))


cdef void outputs_chunk(const Job* job, Py_ssize_t lo, Py_ssize_t hi, double* out, double* work, double* check) noexcept nogil:
    """Scores, or outputs, of rows lo to hi into out (n, columns); check becomes NaN if one is not finite."""
    cdef Py_ssize_t K = job.plan.K, B = job.plan.block, m, i, k, ld = 0
    cdef double* Z = work
    cdef double* more = Z + K * B
    cdef double* buffer = more + 4 * B
    cdef const double* x
    cdef double u, v
    while lo < hi:
        m = min(B, hi - lo)
        x = fetch(&job.plan, lo, m, buffer, &ld)
        score(&job.plan, lo, m, x, ld, <const double*>job.W, job.w0, Z)
        for k in range(K):
            check[0] += nan_if_not_finite(Z + k * B, m)
        if job.link == SIGMOID:
            for i in range(m):
                u = exp_nonpositive(-Z[i] if Z[i] > 0 else Z[i])
                v = 1 / (1 + u)
                more[i] = u * v if Z[i] > 0 else v
                Z[i] = v if Z[i] > 0 else u * v
            for i in range(m):
                out[2 * (lo + i)], out[2 * (lo + i) + 1] = more[i], Z[i]
            lo += m
            continue
        if job.link == SOFTMAX_OUTPUTS:
            softmax_rows(Z, B, K, m, more, more + B, more + 2 * B)
            for k in range(K):
                for i in range(m):
                    Z[k * B + i] /= more[B + i]
        for k in range(K):
            for i in range(m):
                out[(lo + i) * K + k] = Z[k * B + i]
        lo += m


def outputs(X, int activation, W, grid, int n_threads):
    """Scores (10.6), or outputs (10.15), (10.29); and whether all scores are finite."""
    cdef Job job
    cdef Py_ssize_t block = grid[0], chunk = grid[1], K = W.shape[0], n, c
    job.plan = make_plan(X, K, block, False)   # a score is wanted for its own sake: float64 whatever X is
    job.link, job.order, job.D = activation, 0, 0
    n = job.plan.rows.n
    laid = pack_weights(&job.plan, W)
    w0 = np.ascontiguousarray(W[:, 0])
    job.W, job.w0 = cnp.PyArray_DATA(laid), <const double*>cnp.PyArray_DATA(w0)
    cdef Py_ssize_t chunks = (n + chunk - 1) // chunk
    cdef int threads = max(1, min(n_threads, chunks))
    result = np.empty((n, 2 if activation == SIGMOID else K))
    cdef double[:, ::1] out = result
    cdef double[:, ::1] work = aligned_zeros(threads, workspace(&job))
    cdef double[::1] check = np.zeros(chunks)
    with nogil, parallel(num_threads=threads):
        for c in prange(chunks, schedule="dynamic", chunksize=1):
            outputs_chunk(&job, c * chunk, min(n, c * chunk + chunk), &out[0, 0], &work[threadid(), 0], &check[c])
    return result, not bool(np.isnan(np.asarray(check)).any())


include "sweeps.pxi"
