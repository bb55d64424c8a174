# The pairs of large queries, without visiting them one by one.
#
# The rows of a query are divided into ranges of whole grades, recursively. Pairs between ranges
# are summed in one pass over the rows in the order of their scores, by prefix sums; pairs within a
# range by the next level, whose lists are still sorted by score, or one by one if the range is
# short: n log n / log RANGES steps, each list read from front to back. Up to RANGES grades need
# one level. The sort and the first level are divided into parts for the threads; then each range
# is a task.

cdef extern from "rank_tree.h" namespace "rank_tree" nogil:
    enum:
        RANGES
        DIGIT_BITS
    cdef struct Key:
        pass
    cdef struct Item:
        int32_t range
    cdef struct RangeSums:
        int32_t[16] n
    cdef struct Totals:
        double weight, sum
    cdef struct Term:
        const double* x
        bint zero_x
        double shift, margin, scale
    cdef struct Ranks:
        const double* z
        Py_ssize_t n
        double* sorted
        uint32_t* order
    cdef struct Tree:
        const int64_t* above
        const int64_t* below
        Py_ssize_t lo
        const double* s
        Py_ssize_t step
        double origin
        Ranks ranks
        Item* items
        Item* other
        uint8_t* range
        Term term
        double* out
    cdef struct List:
        Item* items
        Py_ssize_t m
        const RangeSums* parts
        Py_ssize_t count
    void make_keys(const double* z, double origin, Py_ssize_t a, Py_ssize_t b, Key* keys)
    void count_digits(const Key* keys, Py_ssize_t a, Py_ssize_t b, int turn, int64_t* counts)
    void start_digits(int64_t* counts, Py_ssize_t parts)
    void move_by_digit(
        const Key* keys, Py_ssize_t a, Py_ssize_t b, int turn, int64_t* starts, Key* to)
    void finish_sort(const Ranks& ranks, const Key* keys, Py_ssize_t a, Py_ssize_t b)
    void count_active(
        const Tree& tree, Py_ssize_t a, Py_ssize_t b, int32_t* start, int32_t* stop)
    void make_items(
        const Tree& tree, Py_ssize_t a, Py_ssize_t b, const int32_t* start, const int32_t* stop,
        RangeSums& sums)
    void sum_between(
        const Tree& tree, const List& items, Py_ssize_t a, Py_ssize_t b, Totals& totals)
    Py_ssize_t divide(const Tree& tree, Py_ssize_t a, Py_ssize_t b, Py_ssize_t* ends)
    void move_by_range(
        const Item* items, Py_ssize_t a, Py_ssize_t b, Py_ssize_t* places, Item* to)
    void sum_list(
        const Tree& tree, Item* items, Item* other, Py_ssize_t a, Py_ssize_t b, Totals& totals)

cdef enum:
    MIN_SHARED_ROWS = 20000   # of a query that all threads work on
    PARTS = 16                # of its first list

# Buffers for a tree of up to n rows.
cdef struct TreeWorkspace:
    int64_t* counts   # (parts, 2^DIGIT_BITS)
    Item* items       # (n,); during the sort, keys
    Item* other       # (n,); during the sort, keys; for `count_active`, its results
    double* sorted    # (n,)
    uint32_t* order   # (n,)
    uint8_t* range    # (n,)


cdef inline Py_ssize_t parts_of(Py_ssize_t n) noexcept nogil:
    return PARTS if n > MIN_SHARED_ROWS else 1


cdef TreeWorkspace make_tree_workspace(Arena* arena, Py_ssize_t n) noexcept nogil:
    cdef TreeWorkspace work
    work.counts = <int64_t*>take(arena, parts_of(n) << DIGIT_BITS, sizeof(int64_t))
    work.items = <Item*>take(arena, n, sizeof(Item))
    work.other = <Item*>take(arena, n, sizeof(Item))
    work.sorted = take_doubles(arena, n)
    work.order = <uint32_t*>take(arena, n, sizeof(uint32_t))
    work.range = <uint8_t*>take(arena, n, 1)
    return work


cdef Tree build(
    const Queries* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, const TreeWorkspace* work,
    int threads
) noexcept nogil:
    """A query's rows sorted by score."""
    cdef Tree tree
    cdef Py_ssize_t n = hi - lo
    memset(&tree, 0, sizeof(Tree))
    tree.lo, tree.above, tree.below = lo, q.above + lo, q.below + lo
    tree.s, tree.step = q.s + lo * q.step, q.step
    tree.items, tree.other, tree.range = work.items, work.other, work.range
    tree.ranks.z, tree.ranks.n = z + lo, n
    tree.ranks.sorted, tree.ranks.order = work.sorted, work.order
    sort_scores(&tree.ranks, work, threads)
    tree.origin = tree.ranks.z[tree.ranks.order[n // 2]]
    return tree


cdef double median_of_sample(const double* z, Py_ssize_t n) noexcept nogil:
    """The median of nine scores: near most of the others, whatever the outliers."""
    cdef double[9] sample
    cdef Py_ssize_t i
    for i in range(9):
        sample[i] = z[i * (n - 1) // 8]
    sort(&sample[0], &sample[0] + 9)
    return sample[4]


cdef void sort_scores(Ranks* ranks, const TreeWorkspace* work, int threads) noexcept nogil:
    """Ranks by the first 32 bits of each score, DIGIT_BITS at a time; by comparison where those
    are equal. Equal keys keep their order, so the number of parts does not matter."""
    cdef Key* keys = <Key*>work.items
    cdef Key* other = <Key*>work.other
    cdef int64_t* counts = work.counts
    cdef Py_ssize_t n = ranks.n, parts = min(parts_of(n), threads), i
    cdef double origin = median_of_sample(ranks.z, n)
    cdef int turn
    for i in prange(parts, num_threads=threads, schedule="static", chunksize=1):
        make_keys(ranks.z, origin, n * i // parts, n * (i + 1) // parts, keys)
    for turn in range(3):
        for i in prange(parts, num_threads=threads, schedule="static", chunksize=1):
            count_digits(
                keys, n * i // parts, n * (i + 1) // parts, turn, counts + (i << DIGIT_BITS))
        start_digits(counts, parts)
        for i in prange(parts, num_threads=threads, schedule="static", chunksize=1):
            move_by_digit(
                keys, n * i // parts, n * (i + 1) // parts, turn, counts + (i << DIGIT_BITS),
                other)
        keys, other = other, keys
    for i in prange(parts, num_threads=threads, schedule="static", chunksize=1):
        finish_sort(ranks[0], keys, n * i // parts, n * (i + 1) // parts)


cdef void make_first_list(Tree* tree, RangeSums* sums, int threads) noexcept nogil:
    """All rows in the order of their scores, and the sums of each part."""
    cdef Py_ssize_t n = tree.ranks.n, parts = parts_of(n), i
    cdef int32_t* start = <int32_t*>tree.other
    cdef int32_t* stop = start + n
    for i in prange(parts, num_threads=threads, schedule="static", chunksize=1):
        count_active(tree[0], n * i // parts, n * (i + 1) // parts, start, stop)
    for i in prange(parts, num_threads=threads, schedule="static", chunksize=1):
        make_items(tree[0], n * i // parts, n * (i + 1) // parts, start, stop, sums[i])


cdef void sum_first_list(
    Tree* tree, const RangeSums* sums, const Py_ssize_t* ends, Totals* totals, int threads
) noexcept nogil:
    """The pairs between ranges of the first level; then each range has its list, in `other`."""
    cdef Py_ssize_t[PARTS * RANGES] places
    cdef Py_ssize_t n = tree.ranks.n, parts = parts_of(n), i, k
    cdef List items
    items.items, items.m, items.parts, items.count = tree.items, n, sums, parts
    for i in prange(parts, num_threads=threads, schedule="dynamic", chunksize=1):
        sum_between(tree[0], items, n * i // parts, n * (i + 1) // parts, totals[i])
    for k in range(RANGES):
        places[k] = ends[k - 1] if k else 0
        for i in range(1, parts):
            places[i * RANGES + k] = places[(i - 1) * RANGES + k] + sums[i - 1].n[k]
    for i in prange(parts, num_threads=threads, schedule="static", chunksize=1):
        move_by_range(
            tree.items, n * i // parts, n * (i + 1) // parts, &places[i * RANGES], tree.other)


cdef Totals sum_pairs(Tree* tree, Term term, int threads, double* out) noexcept nogil:
    """The term summed over active pairs into out: the weight of the pairs, and the sum itself"""
    cdef RangeSums[PARTS] sums
    cdef Totals[PARTS + RANGES] found
    cdef Totals totals
    cdef Py_ssize_t[RANGES] ends
    cdef Py_ssize_t k, count, n = tree.ranks.n
    totals.weight = totals.sum = 0
    tree.term, tree.out = term, out
    if tree.below[0] - tree.lo >= n:
        return totals
    memset(&found[0], 0, sizeof(found))
    count = divide(tree[0], 0, n, ends)
    make_first_list(tree, sums, threads)
    sum_first_list(tree, sums, ends, found, threads)
    for k in prange(count, num_threads=threads, schedule="dynamic", chunksize=1):
        sum_list(
            tree[0], tree.other, tree.items, ends[k - 1] if k else 0, ends[k], found[PARTS + k])
    for k in range(PARTS + RANGES):
        totals.weight += found[k].weight
        totals.sum += found[k].sum
    return totals


cdef inline Term make_term(
    const double* x, double shift, double margin, double scale
) noexcept nogil:
    cdef Term term
    term.x, term.zero_x, term.shift, term.margin, term.scale = x, False, shift, margin, scale
    return term


cdef void loss_by_tree(
    const Queries* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, double* e, double* out,
    const TreeWorkspace* work, int threads
) noexcept nogil:
    """As `loss_by_pairs`: squared losses from sums of 1 and z, HUBER as the difference of two

    The loss follows from the gradient: sum p a^2 = (margin sum_v (p 2a) + sum_i e_i z_i) / 2. The
    sum of e is 0, so that scores may count from any origin: from their median, because an offset
    would cost digits of the loss.
    """
    cdef PairRule rule = q.rule
    cdef double loss = 0, far = rule.margin - rule.width, half = 0.5
    cdef Tree tree = build(q, lo, hi, z, work, threads)
    cdef Totals totals
    cdef Term term
    cdef Py_ssize_t i
    totals.weight = totals.sum = 0
    memset(e + lo, 0, (hi - lo) * sizeof(double))
    if rule.loss == PairLoss.HINGE:
        half, term = 1, make_term(NULL, 1, rule.margin, 1)
        term.zero_x = True
        totals = sum_pairs(&tree, term, threads, e + lo)
        loss = rule.margin * totals.sum
    elif rule.loss == PairLoss.SQUARED_HINGE:
        totals = sum_pairs(&tree, make_term(NULL, rule.margin, rule.margin, 2), threads, e + lo)
        loss = rule.margin * totals.sum / 2
    elif rule.loss == PairLoss.HUBER:
        totals = sum_pairs(&tree, make_term(NULL, far, far, -1 / rule.width), threads, e + lo)
        loss = far * totals.sum / 2
        term = make_term(NULL, rule.margin, rule.margin, 1 / rule.width)
        totals = sum_pairs(&tree, term, threads, e + lo)
        loss += rule.margin * totals.sum / 2
    for i in range(hi - lo):
        loss += half * e[lo + i] * (tree.ranks.z[i] - tree.origin)
    out[0] += loss
    out[1] += totals.weight


cdef void product_by_tree(
    const Queries* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, const double* x, double* out,
    const TreeWorkspace* work, int threads
) noexcept nogil:
    """As `product_by_pairs`"""
    cdef PairRule rule = q.rule
    cdef double far = rule.margin - rule.width
    cdef Tree tree = build(q, lo, hi, z, work, threads)
    memset(out + lo, 0, (hi - lo) * sizeof(double))
    if rule.loss == PairLoss.SQUARED_HINGE:
        sum_pairs(&tree, make_term(x + lo, 0, rule.margin, 2), threads, out + lo)
    elif rule.loss == PairLoss.HUBER:
        sum_pairs(&tree, make_term(x + lo, 0, rule.margin, 1 / rule.width), threads, out + lo)
        sum_pairs(&tree, make_term(x + lo, 0, far, -1 / rule.width), threads, out + lo)
