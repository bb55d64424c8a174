# Ranking updates over given pairs, one after the other.

cdef extern from "tiles.h" namespace "tiles" nogil:
    void difference(const double* x, const double* y, Py_ssize_t d, double* z)

cdef extern from "online_pairs.h" namespace "online_pairs" nogil:
    Py_ssize_t learn_differences(
        PairRule rule, Py_ssize_t d, const double* g, Py_ssize_t m, const double* step,
        double* w)

cdef enum:
    BLOCK_PAIRS = 32   # whose differences are computed at a time: they stay in cache

cdef struct OnlinePairs:
    Plan plan
    const int64_t* pairs
    Py_ssize_t count
    const double* s
    Py_ssize_t step          # of s: 0 if all pairs have the same weight
    double eta
    PairRule rule

cdef struct OnlinePairsWorkspace:
    double* w                # (ldw,), padded with zeros
    double* rows             # (2, ldw), for dense rows
    double* differences      # (BLOCK_PAIRS, ldw), for dense rows, padded with zeros


cdef OnlinePairsWorkspace make_online_pairs_workspace(
    Arena* arena, const Plan* plan
) noexcept nogil:
    cdef OnlinePairsWorkspace work
    cdef Py_ssize_t ldw = 0 if plan.in_place else plan.ldw
    work.w = take_doubles(arena, plan.ldw)
    work.rows = take_doubles(arena, 2 * ldw)
    work.differences = take_doubles(arena, BLOCK_PAIRS * ldw)
    return work


cdef Py_ssize_t online_pairs_workspace_size(const Plan* plan) noexcept nogil:
    cdef Arena arena = open_arena(NULL)
    make_online_pairs_workspace(&arena, plan)
    return arena.used


cdef Py_ssize_t learn_dense_pairs(
    const OnlinePairs* job, const OnlinePairsWorkspace* work
) noexcept nogil:
    """The update (10.49) of each pair of dense rows: the number of updates"""
    cdef const Plan* plan = &job.plan
    cdef const int64_t* pairs = job.pairs
    cdef double[BLOCK_PAIRS] steps
    cdef const double* xu
    cdef const double* xv
    cdef Py_ssize_t t, i, m, later, ld = 0, ldw = plan.ldw, updates = 0
    for t in range(0, job.count, 32):   # BLOCK_PAIRS: Cython needs a literal step
        m = min(BLOCK_PAIRS, job.count - t)
        for i in range(t, t + m):
            if plan.direct:
                later = min(i + PREFETCH_DISTANCE, job.count - 1)
                prefetch_row(plan, pairs[2 * later])
                prefetch_row(plan, pairs[2 * later + 1])
            xu = fetch(plan, pairs[2 * i], 1, work.rows, &ld)
            xv = fetch(plan, pairs[2 * i + 1], 1, work.rows + ldw, &ld)
            difference(xu, xv, plan.rows.d, work.differences + (i - t) * ldw)
            steps[i - t] = job.eta * job.s[i * job.step]
        updates += learn_differences(job.rule, ldw, work.differences, m, steps, work.w)
    return updates


cdef Py_ssize_t learn_sparse_pairs(const OnlinePairs* job, double* w) noexcept nogil:
    """The same for sparse rows"""
    cdef Py_ssize_t t, u, v, updates = 0
    cdef double a
    for t in range(job.count):
        u, v = job.pairs[2 * t], job.pairs[2 * t + 1]
        a = job.rule.margin - (
            dot_row(&job.plan, u, NULL, 0, w) - dot_row(&job.plan, v, NULL, 0, w))
        a = job.eta * job.s[t * job.step] * pair_slope(job.rule.loss, a, job.rule.width)
        if a != 0:
            updates += 1
            add_row(&job.plan, u, NULL, 0, a, w)
            add_row(&job.plan, v, NULL, 0, -a, w)
    return updates


def online_pairs(X, pairs, s, w, double eta, rule):
    """One epoch of the ranking update (10.49) over given (preferred, other) pairs."""
    if len(w) != X.shape[1]:
        raise ValueError(f"w has {len(w)} weights, X has {X.shape[1]} columns")
    cdef OnlinePairs job
    job.rule = pair_rule(rule)
    job.plan = make_plan(X, 1, 1, False)
    cdef const int64_t[:, ::1] pairs_ = pairs
    cdef const double[::1] s_ = s
    job.pairs, job.count, job.eta = &pairs_[0, 0], pairs_.shape[0], eta
    job.s, job.step = &s_[0], s_.shape[0] > 1
    buffers = aligned_zeros(1, online_pairs_workspace_size(&job.plan) // 8)[0]
    cdef Arena arena = open_arena(<char*>cnp.PyArray_DATA(buffers))
    cdef OnlinePairsWorkspace work = make_online_pairs_workspace(&arena, &job.plan)
    cdef double[::1] w_ = w
    cdef Py_ssize_t weight_bytes = len(w) * sizeof(double), updates
    memcpy(work.w, &w_[0], weight_bytes)
    with nogil:
        if job.plan.in_place:
            updates = learn_sparse_pairs(&job, work.w)
        else:
            updates = learn_dense_pairs(&job, &work)
    memcpy(&w_[0], work.w, weight_bytes)
    return updates
