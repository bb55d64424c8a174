# Pairs are never formed: rows sorted by score meet in a walk, in which row u enters as soon as z_u < z_v + margin, and the weight
# that stands on the wrong side of each is read off prefix sums over WAYS ranges of grades. Pairs within a range are left to the
# next level, where the rows of each range, still sorted by score, are a list of their own: n log n / log WAYS in all, with every
# list read front to back. Up to WAYS grades need one level.
# The first walk goes up and down on two threads; then each range of the first level is a task of its own.

cdef enum:
    WAYS = 32
    LEAF = 48        # rows of a list up to which pairs are looked at one by one
    DIGITS = 11      # bits that the sort takes at a time
    LARGE = 20000    # rows of a query from which all threads work on it

ctypedef pair[uint64_t, int64_t] Key

cdef struct Item:
    double z
    double out
    int64_t place        # in the query

cdef struct Tree:
    const Orders* q
    Py_ssize_t lo, n         # the query's rows
    const double* x          # what is summed over pairs, p (x_v - x_u + shift); NULL for the scores themselves
    bint plain               # nothing is: p alone
    double shift, margin, scale
    double origin            # scores count from here: their median, so that none that is far out drowns the others
    const double* z          # scores, by place
    double* out              # scale times the sums by v less those by u, by place
    Item* first              # sorted by score
    Item* items              # the lists of the level at hand
    Item* other
    uint8_t* range
    double* down
    double* more             # room for sums that are added to `out`
    double* masks            # (WAYS, WAYS): 1 where the second range is later than the first; then 1 where it is sooner
    double* totals           # of each range of the first level: the pairs' weight, the sum of p (x_v - x_u + shift) times scale


cdef Py_ssize_t tree_room(Py_ssize_t n) noexcept nogil:
    """Numbers of a thread's buffers, for queries of up to n rows: those of link_pairs, or those of a tree."""
    return 4 * STRIP + 13 * n + 2 * WAYS * WAYS + 4 * WAYS + 64


cdef Tree plant(const Orders* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, double* out, double* work, int threads) noexcept nogil:
    """The query's rows sorted by score."""
    cdef Tree tree
    cdef Py_ssize_t c, j, n = hi - lo
    memset(&tree, 0, sizeof(Tree))
    tree.q, tree.lo, tree.n, tree.out = q, lo, n, out + lo
    tree.masks = work
    tree.totals = tree.masks + 2 * WAYS * WAYS
    tree.z, tree.origin = z + lo, middle(z + lo, n)
    tree.down = tree.totals + 4 * WAYS
    tree.more = tree.down + n
    tree.first = <Item*>(tree.more + n)
    tree.other = tree.first + n
    tree.range = <uint8_t*>(tree.first + 3 * n)
    for c in range(WAYS):
        for j in range(WAYS):
            tree.masks[c * WAYS + j] = 1 if j > c else 0
            tree.masks[(WAYS + c) * WAYS + j] = 1 if j < c else 0
    sort_scores(&tree, threads)
    tree.origin = tree.first[n // 2].z
    return tree


cdef double middle(const double* z, Py_ssize_t n) noexcept nogil:
    """The median of a few scores: near most of the others, wherever some lie."""
    cdef double[9] few
    cdef Py_ssize_t i
    for i in range(9):
        few[i] = z[i * (n - 1) // 8]
    sort(&few[0], &few[0] + 9)
    return few[4]


cdef inline uint64_t ordered(double a) noexcept nogil:
    """Bits that compare as the numbers do."""
    cdef uint64_t bits = <uint64_t>double_bits(a + 0.0)
    return ~bits if bits >> 63 else bits | (<uint64_t>1 << 63)


cdef void sort_keys(Key* keys, Key* other, const double* z, double origin, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """Places a to b by score: by the first 33 bits, DIGITS at a time, and the few that are equal in those by comparison

    Bits of the distance from a score amid the others, because an offset would leave few that differ. Rounding may make distances
    equal where scores are not, but never puts them in another order: the keys end up as bits of the scores themselves.
    """
    cdef int64_t[1 << DIGITS] counts
    cdef Py_ssize_t i, j, t, digit, shift
    cdef int64_t total, count
    for i in range(a, b):
        keys[i].first = ordered(z[i] - origin)
        keys[i].second = i
    for shift in range(3):
        memset(counts, 0, sizeof(counts))
        for i in range(a, b):
            counts[(keys[i].first >> (31 + DIGITS * shift)) & ((1 << DIGITS) - 1)] += 1
        total = a
        for digit in range(1 << DIGITS):
            count = counts[digit]
            counts[digit] = total
            total += count
        for i in range(a, b):
            digit = (keys[i].first >> (31 + DIGITS * shift)) & ((1 << DIGITS) - 1)
            other[counts[digit]] = keys[i]
            counts[digit] += 1
        keys, other = other, keys
    i = a   # the result stands in what was `other`
    while i < b:
        j = i + 1
        while j < b and keys[j].first >> 31 == keys[i].first >> 31:
            j += 1
        for t in range(i, j):
            keys[t].first = ordered(z[keys[t].second])
        if j - i > 1:
            sort(keys + i, keys + j)
        i = j


cdef void merge_half(Tree* tree, const Key* keys, Py_ssize_t half) noexcept nogil:
    """Half of the sorted list, from below (0) or from above (1), out of two sorted halves."""
    cdef Py_ssize_t n = tree.n, m = tree.n // 2, i, j, t
    cdef bint left
    if half == 0:
        i, j = 0, m
        for t in range(m):
            left = j >= n or (i < m and keys[i].first <= keys[j].first)
            take_item(tree, t, keys[i if left else j].second)
            i += left
            j += not left
    else:
        i, j = m - 1, n - 1
        for t in range(n - 1, m - 1, -1):
            left = j < m or (i >= 0 and keys[i].first > keys[j].first)
            take_item(tree, t, keys[i if left else j].second)
            i -= left
            j -= not left


cdef inline void take_item(Tree* tree, Py_ssize_t t, Py_ssize_t place) noexcept nogil:
    tree.first[t].z, tree.first[t].out, tree.first[t].place = tree.z[place], 0, place


cdef void sort_scores(Tree* tree, int threads) noexcept nogil:
    cdef Key* keys = <Key*>tree.first
    cdef Key* other = <Key*>tree.other   # where they end up, out of the way of the rows
    cdef Py_ssize_t n = tree.n, h
    for h in prange(2, num_threads=threads, schedule="static", chunksize=1):
        sort_keys(keys, other, tree.z, tree.origin, h * (n // 2), n if h else n // 2)
    for h in prange(2, num_threads=threads, schedule="static", chunksize=1):
        merge_half(tree, other, h)


cdef inline double weight_of(const Tree* tree, Py_ssize_t place) noexcept nogil:
    return tree.q.s[(tree.lo + place) * tree.q.step]


cdef inline double value_of(const Tree* tree, const Item* item) noexcept nogil:
    return tree.x[item.place] if tree.x != NULL else 0 if tree.plain else item.z - tree.origin


cdef void walk_leaf(const Tree* tree, Item* items, Py_ssize_t a, Py_ssize_t b, double* totals) noexcept nogil:
    """The pairs of places a to b, one by one."""
    cdef double[LEAF] p
    cdef double[LEAF] value
    cdef const double* x = tree.x if tree.x != NULL else tree.z
    cdef Py_ssize_t u, v, m, i
    cdef double s, times = 0 if tree.plain else 1
    for i in range(a, b):
        tree.out[items[i].place] = items[i].out
    for u in range(a, b):
        v = tree.q.below[tree.lo + u] - tree.lo
        m, s = b - v, weight_of(tree, u)
        for i in range(m):
            p[i] = s * weight_of(tree, v + i) if (tree.z[v + i] - tree.z[u]) + tree.margin > 0 else 0
            value[i] = tree.scale * p[i] * (times * (x[v + i] - x[u]) + tree.shift)
            tree.out[v + i] += value[i]
        s = sum(<const double*>value, max(0, m))
        tree.out[u] -= s
        totals[0] += sum(<const double*>p, max(0, m))
        totals[1] += s


cdef void walk_up(const Tree* tree, Item* items, Py_ssize_t a, Py_ssize_t b, double* totals) noexcept nogil:
    """For each row v of the list a to b: the rows u of better ranges that it does not stay clear of."""
    cdef double[WAYS] A0
    cdef double[WAYS] A1
    cdef const double* mask
    cdef Py_ssize_t t, p = a, j, k
    cdef double s, x, z, value, weight = 0, total = 0
    for j in range(WAYS):
        A0[j], A1[j] = 0, 0
    for t in range(a, b):
        z = items[t].z
        while p < b and (z - items[p].z) + tree.margin > 0:
            s, mask = weight_of(tree, items[p].place), tree.masks + tree.range[items[p].place] * WAYS
            x = s * value_of(tree, items + p)
            for j in range(WAYS):
                A0[j] += s * mask[j]
                A1[j] += x * mask[j]
            p += 1
        k, s = tree.range[items[t].place], weight_of(tree, items[t].place)
        value = tree.scale * s * ((value_of(tree, items + t) + tree.shift) * A0[k] - A1[k])
        items[t].out += value
        total += value
        weight += s * A0[k]
    totals[0] += weight
    totals[1] += total


cdef void walk_down(const Tree* tree, Item* items, Py_ssize_t a, Py_ssize_t b, double* down) noexcept nogil:
    """For each row u: the rows v of worse ranges that come too close to it."""
    cdef double[WAYS] B0
    cdef double[WAYS] B1
    cdef const double* mask
    cdef Py_ssize_t t, p = b - 1, j, k
    cdef double s, x, z
    for j in range(WAYS):
        B0[j], B1[j] = 0, 0
    for t in range(b - 1, a - 1, -1):
        z = items[t].z
        while p >= a and (items[p].z - z) + tree.margin > 0:
            s, mask = weight_of(tree, items[p].place), tree.masks + (WAYS + tree.range[items[p].place]) * WAYS
            x = s * value_of(tree, items + p)
            for j in range(WAYS):
                B0[j] += s * mask[j]
                B1[j] += x * mask[j]
            p -= 1
        k, s = tree.range[items[t].place], weight_of(tree, items[t].place)
        down[t] = tree.scale * s * (B1[k] + (tree.shift - value_of(tree, items + t)) * B0[k])


cdef Py_ssize_t part_list(const Tree* tree, Py_ssize_t a, Py_ssize_t b, int64_t* ends) noexcept nogil:
    """Cut places a to b into ranges of whole grades, about equally long: their number, and where each ends."""
    cdef Py_ssize_t k, j, cut, last = a, count = 0
    for k in range(1, WAYS + 1):
        cut = b
        if k < WAYS:
            j = tree.lo + a + k * (b - a) // WAYS
            cut = tree.q.above[j] - tree.lo
            if cut <= last:
                cut = tree.q.below[j] - tree.lo
        if cut > last:
            memset(tree.range + last, count, cut - last)
            ends[count] = cut
            count += 1
            last = cut
    return count


cdef void deal(const Tree* tree, const Item* items, Py_ssize_t a, Py_ssize_t b, int64_t* places, Item* to) noexcept nogil:
    """The list a to b, cut into the lists of its ranges."""
    cdef Py_ssize_t t, k
    for t in range(a, b):
        k = tree.range[items[t].place]
        to[places[k]] = items[t]
        to[places[k]].out -= tree.down[t]
        places[k] += 1


cdef void grow(const Tree* tree, Item* items, Item* other, Py_ssize_t a, Py_ssize_t b, double* totals) noexcept nogil:
    """All pairs of places a to b, whose rows, sorted by score, are the list a to b of `items`."""
    cdef int64_t[WAYS] ends
    cdef int64_t[WAYS] places
    cdef Py_ssize_t t, k, count
    if tree.q.below[tree.lo + a] - tree.lo >= b:
        for t in range(a, b):
            tree.out[items[t].place] = items[t].out
        return
    if b - a <= LEAF:
        walk_leaf(tree, items, a, b, totals)
        return
    count = part_list(tree, a, b, ends)
    walk_up(tree, items, a, b, totals)
    walk_down(tree, items, a, b, tree.down)
    for k in range(count):
        places[k] = ends[k - 1] if k else a
    deal(tree, items, a, b, places, other)
    for k in range(count):
        grow(tree, other, items, ends[k - 1] if k else a, ends[k], totals)


cdef void first_walk(const Tree* tree, Py_ssize_t way) noexcept nogil:
    if way:
        walk_down(tree, tree.items, 0, tree.n, tree.down)
    else:
        walk_up(tree, tree.items, 0, tree.n, tree.totals + 2 * WAYS)


cdef void sum_pairs(Tree* tree, const double* x, bint plain, double shift, double margin, double scale, bint keep, int threads,
                    double* out, double* totals) noexcept nogil:
    """out = scale times the sums over active pairs of p (x_v - x_u + shift); totals: weight of the pairs, the sum itself

    With `keep` the rows sorted by score are there for another call.
    """
    cdef int64_t[WAYS] ends
    cdef int64_t[2 * WAYS] places   # where the two halves of the list begin in each range
    cdef Py_ssize_t k, i, way, count, n = tree.n
    tree.x, tree.plain, tree.shift, tree.margin, tree.scale, tree.out = x, plain, shift, margin, scale, out
    memset(tree.totals, 0, 4 * WAYS * sizeof(double))
    totals[0] = totals[1] = 0
    tree.items = tree.first
    if keep:
        tree.items = tree.first + 2 * n
        memcpy(tree.items, tree.first, n * sizeof(Item))
    if tree.q.below[tree.lo] - tree.lo >= n:
        memset(out, 0, n * sizeof(double))
        return
    count = part_list(tree, 0, n, ends)
    for way in prange(2, num_threads=threads, schedule="static", chunksize=1):
        first_walk(tree, way)
    for k in range(count):
        places[k] = ends[k - 1] if k else 0
        places[WAYS + k] = places[k]
    for i in range(n // 2):
        places[WAYS + tree.range[tree.items[i].place]] += 1
    for way in prange(2, num_threads=threads, schedule="static", chunksize=1):
        deal(tree, tree.items, way * (n // 2), n if way else n // 2, &places[way * WAYS], tree.other)
    for k in prange(count, num_threads=threads, schedule="dynamic", chunksize=1):
        grow(tree, tree.other, tree.items, ends[k - 1] if k else 0, ends[k], tree.totals + 2 * k)
    for k in range(count + 1):
        i = WAYS if k == count else k
        totals[0] += tree.totals[2 * i]
        totals[1] += tree.totals[2 * i + 1]


cdef void link_tree(const Orders* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, double* e, double* out, double* work,
                    int threads) noexcept nogil:
    """As link_pairs, without the pairs: squared losses from sums of 1 and z, and HUBER's as the difference of two of them

    The loss follows from the gradient: sum p a^2 = (margin sum_v (p 2a) + sum_i e_i z_i) / 2. The sum of e is 0, so that scores
    count from any origin: an offset must not drown the loss.
    """
    cdef Tree tree = plant(q, lo, hi, z, e, work, threads)
    cdef double loss = 0, low = q.margin - q.width
    cdef double[2] totals
    cdef Py_ssize_t i
    if q.loss == PAIR_HINGE:
        sum_pairs(&tree, NULL, True, 1, q.margin, 1, False, threads, e + lo, totals)
        loss = q.margin * totals[1]
    elif q.loss == PAIR_SQUARED:
        sum_pairs(&tree, NULL, False, q.margin, q.margin, 2, False, threads, e + lo, totals)
        loss = q.margin * totals[1] / 2
    else:
        sum_pairs(&tree, NULL, False, low, low, -1 / q.width, True, threads, tree.more, totals)
        loss = low * totals[1] / 2
        sum_pairs(&tree, NULL, False, q.margin, q.margin, 1 / q.width, False, threads, e + lo, totals)
        loss += q.margin * totals[1] / 2
        for i in range(tree.n):
            e[lo + i] += tree.more[i]
    for i in range(tree.n):
        loss += (1 if q.loss == PAIR_HINGE else 0.5) * e[lo + i] * (tree.z[i] - tree.origin)
    out[0] += loss
    out[1] += totals[0]


cdef void bend_tree(const Orders* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, const double* x, double* out, double* work,
                    int threads) noexcept nogil:
    """As bend_pairs, without the pairs"""
    cdef Tree tree = plant(q, lo, hi, z, out, work, threads)
    cdef double[2] totals
    cdef Py_ssize_t i
    cdef bint huber = q.loss == PAIR_HUBER
    sum_pairs(&tree, x + lo, False, 0, q.margin, 1 / q.width if huber else 2, huber, threads, out + lo, totals)
    if huber:
        sum_pairs(&tree, x + lo, False, 0, q.margin - q.width, -1 / q.width, False, threads, tree.more, totals)
        for i in range(tree.n):
            out[lo + i] += tree.more[i]
