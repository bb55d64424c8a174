# Pairs are never formed: rows sorted by score meet in a walk, in which row u enters as soon as z_u < z_v + margin, and the weight
# that stands on the wrong side of each is read off prefix sums over WAYS ranges of grades. Pairs within a range are left to the
# next level, where the rows of each range, still sorted by score, are a list of their own: n log n / log WAYS in all, with every
# list read front to back. Up to WAYS grades need one level.
# The sort and the first walk are cut into parts for the threads; then each range of the first level is a task of its own.

cdef extern from "rank_tree.h" namespace "rank_tree" nogil:
    enum:
        WAYS
        DIGIT
    cdef struct Key:
        pass
    cdef struct Item:
        int32_t range
    cdef struct Table:
        int32_t[16] n
    cdef struct Totals:
        double weight, sum
    cdef struct Tree:
        const int64_t* above
        const int64_t* below
        Py_ssize_t lo, n
        const double* s
        Py_ssize_t step
        const double* z
        const double* x
        bint plain
        double shift, margin, scale, origin
        double* out
        uint32_t* order
        Item* items
        Item* other
        double* sorted
        uint8_t* range
    void make_keys(const double* z, double origin, Py_ssize_t a, Py_ssize_t b, Key* keys)
    void count_digits(const Key* keys, Py_ssize_t a, Py_ssize_t b, int turn, int64_t* counts)
    void start_digits(int64_t* counts, Py_ssize_t parts)
    void deal_digits(const Key* keys, Py_ssize_t a, Py_ssize_t b, int turn, int64_t* starts, Key* to)
    void settle_runs(const Tree& tree, const Key* keys, Py_ssize_t a, Py_ssize_t b)
    void meet(const Tree& tree, Py_ssize_t a, Py_ssize_t b, int32_t* up, int32_t* down)
    void make_items(const Tree& tree, Py_ssize_t a, Py_ssize_t b, const int32_t* up, const int32_t* down, Table& sums)
    void walk_both(const Tree& tree, Item* items, Py_ssize_t m, Py_ssize_t a, Py_ssize_t b, const Table* parts, Py_ssize_t count,
                   Totals& totals)
    Py_ssize_t part_list(const Tree& tree, Py_ssize_t a, Py_ssize_t b, Py_ssize_t* ends)
    void deal(const Item* items, Py_ssize_t a, Py_ssize_t b, Py_ssize_t* places, Item* to)
    void grow(const Tree& tree, Item* items, Item* other, Py_ssize_t a, Py_ssize_t b, Totals& totals)

cdef enum:
    LARGE = 20000    # rows of a query from which all threads work on it
    PARTS = 16       # of its first list


cdef Py_ssize_t tree_room(Py_ssize_t n) noexcept nogil:
    """Numbers of a tree's buffers, for queries of up to n rows."""
    return 10 * n + ((PARTS if n > LARGE else 1) << DIGIT) + 64


cdef inline Py_ssize_t parts_of(const Tree* tree) noexcept nogil:
    return PARTS if tree.n > LARGE else 1


cdef Tree plant(const Orders* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, double* work, int threads) noexcept nogil:
    """The query's rows sorted by score."""
    cdef Tree tree
    cdef Py_ssize_t n = hi - lo
    memset(&tree, 0, sizeof(Tree))
    tree.lo, tree.n, tree.z = lo, n, z + lo
    tree.above, tree.below, tree.s, tree.step = q.above + lo, q.below + lo, q.s + lo * q.step, q.step
    tree.items = <Item*>(work + (parts_of(&tree) << DIGIT))
    tree.other = tree.items + n
    tree.sorted = <double*>(tree.other + n)
    tree.order = <uint32_t*>(tree.sorted + n)
    tree.range = <uint8_t*>(tree.order + n)
    tree.origin = middle(z + lo, n)
    sort_scores(&tree, <int64_t*>work, threads)
    tree.origin = tree.z[tree.order[n // 2]]
    return tree


cdef double middle(const double* z, Py_ssize_t n) noexcept nogil:
    """The median of a few scores: near most of the others, wherever some lie."""
    cdef double[9] few
    cdef Py_ssize_t i
    for i in range(9):
        few[i] = z[i * (n - 1) // 8]
    sort(&few[0], &few[0] + 9)
    return few[4]


cdef void sort_scores(Tree* tree, int64_t* counts, int threads) noexcept nogil:
    """The order of the scores: by the first 32 bits of each, DIGIT at a time, and by comparison where those are equal."""
    cdef Key* keys = <Key*>tree.items
    cdef Key* other = <Key*>tree.other
    cdef Py_ssize_t n = tree.n, parts = min(parts_of(tree), threads), i   # equal keys keep their order: in any number of parts
    cdef int turn
    for i in prange(parts, num_threads=threads, schedule="static", chunksize=1):
        make_keys(tree.z, tree.origin, n * i // parts, n * (i + 1) // parts, keys)
    for turn in range(3):
        for i in prange(parts, num_threads=threads, schedule="static", chunksize=1):
            count_digits(keys, n * i // parts, n * (i + 1) // parts, turn, counts + (i << DIGIT))
        start_digits(counts, parts)
        for i in prange(parts, num_threads=threads, schedule="static", chunksize=1):
            deal_digits(keys, n * i // parts, n * (i + 1) // parts, turn, counts + (i << DIGIT), other)
        keys, other = other, keys
    for i in prange(parts, num_threads=threads, schedule="static", chunksize=1):
        settle_runs(tree[0], keys, n * i // parts, n * (i + 1) // parts)


cdef void first_list(Tree* tree, Table* sums, int threads) noexcept nogil:
    """All rows in the order of their scores, and the sums of each part."""
    cdef Py_ssize_t n = tree.n, parts = parts_of(tree), i
    cdef int32_t* up = <int32_t*>tree.other
    cdef int32_t* down = up + n
    for i in prange(parts, num_threads=threads, schedule="static", chunksize=1):
        meet(tree[0], n * i // parts, n * (i + 1) // parts, up, down)
    for i in prange(parts, num_threads=threads, schedule="static", chunksize=1):
        make_items(tree[0], n * i // parts, n * (i + 1) // parts, up, down, sums[i])


cdef void first_walk(Tree* tree, const Table* sums, const Py_ssize_t* ends, Totals* totals, int threads) noexcept nogil:
    """The pairs between ranges of the first level; then each range has a list of its own, in `other`."""
    cdef Py_ssize_t[PARTS * WAYS] places
    cdef Py_ssize_t n = tree.n, parts = parts_of(tree), i, k
    for i in prange(parts, num_threads=threads, schedule="dynamic", chunksize=1):
        walk_both(tree[0], tree.items, n, n * i // parts, n * (i + 1) // parts, sums, parts, totals[i])
    for k in range(WAYS):
        places[k] = ends[k - 1] if k else 0
        for i in range(1, parts):
            places[i * WAYS + k] = places[(i - 1) * WAYS + k] + sums[i - 1].n[k]
    for i in prange(parts, num_threads=threads, schedule="static", chunksize=1):
        deal(tree.items, n * i // parts, n * (i + 1) // parts, &places[i * WAYS], tree.other)


cdef void sum_pairs(Tree* tree, const double* x, bint plain, double shift, double margin, double scale, int threads,
                    double* out, double* totals) noexcept nogil:
    """out += scale times the sums over active pairs of p (x_v - x_u + shift); totals: weight of the pairs, the sum itself"""
    cdef Table[PARTS] sums
    cdef Totals[PARTS + WAYS] found
    cdef Py_ssize_t[WAYS] ends
    cdef Py_ssize_t k, count, n = tree.n
    totals[0] = totals[1] = 0
    tree.x, tree.plain, tree.shift, tree.margin, tree.scale, tree.out = x, plain, shift, margin, scale, out
    if tree.below[0] - tree.lo >= n:
        return
    memset(&found[0], 0, sizeof(found))
    count = part_list(tree[0], 0, n, ends)
    first_list(tree, sums, threads)
    first_walk(tree, sums, ends, found, threads)
    for k in prange(count, num_threads=threads, schedule="dynamic", chunksize=1):
        grow(tree[0], tree.other, tree.items, ends[k - 1] if k else 0, ends[k], found[PARTS + k])
    for k in range(PARTS + WAYS):
        totals[0] += found[k].weight
        totals[1] += found[k].sum


cdef void link_tree(const Orders* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, double* e, double* out, double* work,
                    int threads) noexcept nogil:
    """As link_pairs, without the pairs: squared losses from sums of 1 and z, and HUBER's as the difference of two of them

    The loss follows from the gradient: sum p a^2 = (margin sum_v (p 2a) + sum_i e_i z_i) / 2. The sum of e is 0, so that scores
    count from any origin: an offset must not drown the loss.
    """
    cdef Tree tree = plant(q, lo, hi, z, work, threads)
    cdef double loss = 0, low = q.margin - q.width
    cdef double[2] totals
    cdef Py_ssize_t i
    memset(e + lo, 0, tree.n * sizeof(double))
    if q.loss == PAIR_HINGE:
        sum_pairs(&tree, NULL, True, 1, q.margin, 1, threads, e + lo, totals)
        loss = q.margin * totals[1]
    elif q.loss == PAIR_SQUARED:
        sum_pairs(&tree, NULL, False, q.margin, q.margin, 2, threads, e + lo, totals)
        loss = q.margin * totals[1] / 2
    else:
        sum_pairs(&tree, NULL, False, low, low, -1 / q.width, threads, e + lo, totals)
        loss = low * totals[1] / 2
        sum_pairs(&tree, NULL, False, q.margin, q.margin, 1 / q.width, threads, e + lo, totals)
        loss += q.margin * totals[1] / 2
    for i in range(tree.n):
        loss += (1 if q.loss == PAIR_HINGE else 0.5) * e[lo + i] * (tree.z[i] - tree.origin)
    out[0] += loss
    out[1] += totals[0]


cdef void bend_tree(const Orders* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, const double* x, double* out, double* work,
                    int threads) noexcept nogil:
    """As bend_pairs, without the pairs"""
    cdef Tree tree = plant(q, lo, hi, z, work, threads)
    cdef double[2] totals
    cdef bint huber = q.loss == PAIR_HUBER
    memset(out + lo, 0, tree.n * sizeof(double))
    sum_pairs(&tree, x + lo, False, 0, q.margin, 1 / q.width if huber else 2, threads, out + lo, totals)
    if huber:
        sum_pairs(&tree, x + lo, False, 0, q.margin - q.width, -1 / q.width, threads, out + lo, totals)
