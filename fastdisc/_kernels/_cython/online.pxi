# The online kernel. The ways to visit the rows are in online_rows.pxi and online_speculation.pxi.

cdef bint only_mistakes_update(const Epoch* epoch) noexcept nogil:
    """Whether rows other than mistakes leave the weights as they are."""
    return epoch.alpha == 0 and (
        epoch.loss == MarginLoss.PERCEPTRON or epoch.loss == MarginLoss.PERCEPTRON_MULTICLASS)


cdef int useful_threads(const Epoch* epoch, int threads) noexcept nogil:
    cdef Py_ssize_t max_rows = min(MAX_SPECULATED_ROWS, epoch.plan.rows.n // 4)
    if only_mistakes_update(epoch) and min_speculated_rows(epoch) <= max_rows:
        return threads
    return 1


cdef void learn_all(
    Epoch* epoch, Speculation* spec, int threads, const OnlineWorkspace* works
) noexcept nogil:
    """Learn all rows, in the way that suits the rule and the layout."""
    cdef Cursor c
    open_run(epoch, &c, 0)
    if threads > 1:
        learn_with_speculation(epoch, &c, spec, threads, works)
    elif only_mistakes_update(epoch):
        learn_from_mistakes(epoch, &c, epoch.runs, works)
    elif single_dense(&epoch.plan) and not epoch.has_l1:
        learn_in_blocks(epoch, &c, epoch.runs, True, works)
    else:
        learn_one_by_one(epoch, &c, works)
    account(epoch, epoch.clock)
    epoch.total += epoch.s[0] * log_of_1_or_more(1 / epoch.product)
    if epoch.has_l1:
        apply_l1(epoch, 0, weight_size(&epoch.plan))


# The buffers of an epoch.
cdef struct EpochWorkspace:
    double* a                    # (K,)
    Py_ssize_t* changed          # (K + 1,)
    Speculation speculation
    OnlineWorkspace* of_thread   # (threads,)


cdef EpochWorkspace make_epoch_workspace(
    Arena* arena, const Epoch* epoch, int threads
) noexcept nogil:
    cdef EpochWorkspace work
    cdef OnlineWorkspace own
    cdef int p
    work.a = take_doubles(arena, epoch.plan.K)
    work.changed = <Py_ssize_t*>take(arena, epoch.plan.K + 1, sizeof(Py_ssize_t))
    work.speculation = make_speculation(arena, epoch, threads)
    work.of_thread = <OnlineWorkspace*>take(arena, threads, sizeof(OnlineWorkspace))
    for p in range(threads):
        own = make_online_workspace(arena, &epoch.plan)
        if work.of_thread != NULL:
            work.of_thread[p] = own
    return work


cdef int run_epoch(Epoch* epoch, int threads) except -1:
    """Learn all rows, with buffers that are made for it."""
    cdef Arena arena = open_arena(NULL)
    make_epoch_workspace(&arena, epoch, threads)
    buffers = aligned_zeros(1, arena.used // 8)
    arena = open_arena(<char*>cnp.PyArray_DATA(buffers))
    cdef EpochWorkspace work = make_epoch_workspace(&arena, epoch, threads)
    epoch.a, epoch.changed = work.a, work.changed
    with nogil:
        learn_all(epoch, &work.speculation, threads, work.of_thread)
    return 0


cdef Epoch make_epoch(object batch, object rule, object order, Py_ssize_t K) except *:
    """The rows and the rule of an epoch, without its state."""
    cdef Epoch epoch
    cdef const int32_t[::1] r = batch[1]
    cdef const double[::1] s = batch[2]
    cdef const int64_t[::1] runs = order[0]
    memset(&epoch, 0, sizeof(Epoch))
    epoch.loss = <MarginLoss>checked("margin loss", rule[0], "MarginLoss")
    epoch.rate = <LearningRate>checked("learning rate", rule[1], "LearningRate")
    if K == 1 and epoch.loss == MarginLoss.PERCEPTRON_MULTICLASS:
        raise ValueError("PERCEPTRON_MULTICLASS has a score for each class, got K = 1")
    epoch.eta, epoch.power, epoch.alpha, epoch.l1, epoch.intercept, epoch.begin = rule[2:]
    epoch.plan = make_plan(batch[0], K, GROUP_ROWS, False)
    epoch.r, epoch.s, epoch.step = &r[0], &s[0], s.shape[0] > 1
    epoch.order, epoch.runs, epoch.run = &runs[0], runs.shape[0], order[1]
    return epoch


def online_epoch(batch, state, rule, order, int n_threads):
    """One epoch of an online rule, as (4.55), with an update for each row."""
    W, U, Q, clock = state
    cdef Epoch epoch = make_epoch(batch, rule, order, W.shape[0])
    epoch.has_average, epoch.has_l1 = len(U) > 0, len(Q) > 0
    packed_w = pack_weights(&epoch.plan, W)
    packed_u = pack_weights(&epoch.plan, -U) if epoch.has_average else None
    packed_q = pack_weights(&epoch.plan, Q) if epoch.has_l1 else None
    cdef double[::1] w = packed_w, u = packed_u, q = packed_q
    cdef double[::1] w0 = W[:, 0].copy()
    cdef double[::1] u0 = -U[:, 0] if epoch.has_average else np.zeros(len(W))
    epoch.w, epoch.w0, epoch.u0 = &w[0], &w0[0], &u0[0]
    epoch.u, epoch.q = &u[0] if epoch.has_average else NULL, &q[0] if epoch.has_l1 else NULL
    epoch.scale, epoch.product, epoch.l1_sum = 1, 1, clock[1]
    epoch.clock = epoch.accounted = clock[0]
    cdef int threads = useful_threads(&epoch, max(1, n_threads))
    run_epoch(&epoch, threads)
    clock[0], clock[1] = epoch.clock, epoch.scale * epoch.l1_sum
    w_sum = unpack_weights(&epoch.plan, packed_w)
    W[:, 0], W[:, 1:] = w0, epoch.scale * w_sum
    if epoch.has_average:
        U[:, 0] = epoch.averaged * np.asarray(w0) - u0
        U[:, 1:] = epoch.scale_sum * w_sum - unpack_weights(&epoch.plan, packed_u)
    if epoch.has_l1:
        Q[:, 1:] = epoch.scale * unpack_weights(&epoch.plan, packed_q)
    return epoch.total, epoch.updates
