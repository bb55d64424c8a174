# Pairs are never formed: rows sorted by score meet in one walk, in which row u enters as soon as z_u < z_v + margin, and the
# weight that stands on the wrong side of each is read off prefix sums over WAYS ranges of grades. Pairs within a range are left
# to the next level, where the rows of each range, still sorted by score, are a list of their own: n log n / log WAYS in all, with
# every list read front to back. Up to WAYS grades need one level.
# A Fenwick tree over the grades, with its jumps through memory, took 3.5 times as long (1M rows, real utilities).

cdef enum:
    WAYS = 16
    LEAF = 48        # rows of a list up to which pairs are looked at one by one

ctypedef pair[double, int64_t] Item


cdef Py_ssize_t tree_room(Py_ssize_t n) noexcept nogil:
    """Numbers of the buffers of a query of n rows: `slopes` and its exp, three lists, ranges, tables, prefix sums, a stack."""
    return 4 * STRIP + n + 6 * n + n + 2 * WAYS * WAYS + 4 * WAYS + 64 * WAYS + 64


cdef struct Tree:
    const Orders* q
    Py_ssize_t lo, n         # the query's rows
    const double* z
    const double* x          # what is summed over pairs: p (x_v - x_u + shift)
    Py_ssize_t step          # of x: 0 where it is one number
    double shift, margin, scale
    double* out              # scale times the sums by v less those by u
    Item* items              # sorted by score; the second is the place in the query
    Item* other
    int64_t* range
    double* later            # (WAYS, WAYS): 1 where the second range is later than the first
    double* sooner
    double* prefix           # four times WAYS
    double count, upward     # the pairs' weight; the sum of p (x_v - x_u + shift), times scale


cdef Tree plant(const Orders* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, double* out, double* work) noexcept nogil:
    cdef Tree tree
    cdef Py_ssize_t c, j, n = hi - lo
    memset(&tree, 0, sizeof(Tree))
    tree.q, tree.lo, tree.n, tree.z, tree.out = q, lo, n, z + lo, out + lo
    tree.items = <Item*>(work + 4 * STRIP + n)
    tree.other = tree.items + n
    tree.range = <int64_t*>(tree.other + 2 * n)
    tree.later = <double*>(tree.range + n)
    tree.sooner = tree.later + WAYS * WAYS
    tree.prefix = tree.sooner + WAYS * WAYS
    for c in range(WAYS):
        for j in range(WAYS):
            tree.later[c * WAYS + j] = 1 if j > c else 0
            tree.sooner[c * WAYS + j] = 1 if j < c else 0
    for j in range(n):
        tree.items[j].first, tree.items[j].second = tree.z[j], j
        tree.out[j] = 0
    sort(tree.items, tree.items + n)
    return tree


cdef inline double own(const Tree* tree, Py_ssize_t i) noexcept nogil:
    return tree.q.s[(tree.lo + i) * tree.q.step]


cdef void walk_leaf(Tree* tree, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """The pairs of places a to b, one by one."""
    cdef Py_ssize_t u, v
    cdef double p, value, total, size
    for u in range(a, b):
        total, size = 0, 0
        for v in range(tree.q.below[tree.lo + u] - tree.lo, b):
            p = own(tree, v) if (tree.z[v] - tree.z[u]) + tree.margin > 0 else 0
            value = p * ((tree.x[v * tree.step] - tree.x[u * tree.step]) + tree.shift)
            tree.out[v] += tree.scale * own(tree, u) * value
            total += value
            size += p
        tree.out[u] -= tree.scale * own(tree, u) * total
        tree.upward += tree.scale * own(tree, u) * total
        tree.count += own(tree, u) * size


cdef void walk_list(Tree* tree, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """The pairs between ranges of the list a to b, in one walk along it."""
    cdef double* A0 = tree.prefix        # of rows u that have entered, by ranges sooner than each
    cdef double* A1 = A0 + WAYS
    cdef double* B0 = A1 + WAYS          # of rows v that are still to come, by ranges later than each
    cdef double* B1 = B0 + WAYS
    cdef Item* items = tree.items
    cdef const double* mask
    cdef Py_ssize_t t, p = a, i, j
    cdef double s, x, value
    memset(A0, 0, 4 * WAYS * sizeof(double))
    for t in range(a, b):
        i = items[t].second
        s, x, mask = own(tree, i), tree.x[i * tree.step], tree.sooner + tree.range[i] * WAYS
        for j in range(WAYS):
            B0[j] += s * mask[j]
            B1[j] += s * x * mask[j]
    for t in range(a, b):
        while p < b and (items[t].first - items[p].first) + tree.margin > 0:
            i = items[p].second
            s, x, mask = own(tree, i), tree.x[i * tree.step], tree.later + tree.range[i] * WAYS
            tree.out[i] -= tree.scale * s * (B1[tree.range[i]] + (tree.shift - x) * B0[tree.range[i]])
            for j in range(WAYS):
                A0[j] += s * mask[j]
                A1[j] += s * x * mask[j]
            p += 1
        i = items[t].second
        s, x, mask = own(tree, i), tree.x[i * tree.step], tree.sooner + tree.range[i] * WAYS
        value = tree.scale * s * ((x + tree.shift) * A0[tree.range[i]] - A1[tree.range[i]])
        tree.out[i] += value
        tree.upward += value
        tree.count += s * A0[tree.range[i]]
        for j in range(WAYS):
            B0[j] -= s * mask[j]
            B1[j] -= s * x * mask[j]


cdef Py_ssize_t part_list(Tree* tree, Py_ssize_t a, Py_ssize_t b, int64_t* ends) noexcept nogil:
    """Cut places a to b into ranges of whole grades, about equally long: their number, and where each ends."""
    cdef Py_ssize_t k, j, cut, last = a, count = 0
    for k in range(1, WAYS + 1):
        cut = b
        if k < WAYS:
            j = tree.lo + a + k * (b - a) // WAYS
            cut = tree.q.above[j] - tree.lo
            if cut <= last:
                cut = tree.q.below[j] - tree.lo
        if cut > last and (cut == b or k < WAYS):
            for j in range(last, cut):
                tree.range[j] = count
            ends[count] = cut
            count += 1
            last = cut
    return count


cdef void grow(Tree* tree, int64_t* stack) noexcept nogil:
    """Walk all lists, the whole query's first."""
    cdef Py_ssize_t top = 1, a, b, t, i, k, count
    cdef int64_t[WAYS] ends
    cdef int64_t[WAYS] places
    stack[0], stack[1] = 0, tree.n
    while top:
        top -= 1
        a, b = stack[2 * top], stack[2 * top + 1]
        if tree.q.below[tree.lo + a] - tree.lo >= b:
            continue
        if b - a <= LEAF:
            walk_leaf(tree, a, b)
            continue
        count = part_list(tree, a, b, ends)
        walk_list(tree, a, b)
        for k in range(count):
            places[k] = ends[k - 1] if k else a
        for t in range(a, b):
            i = tree.items[t].second
            k = tree.range[i]
            tree.other[places[k]] = tree.items[t]
            places[k] += 1
        memcpy(tree.items + a, tree.other + a, (b - a) * sizeof(Item))
        for k in range(count):
            stack[2 * top], stack[2 * top + 1] = ends[k - 1] if k else a, ends[k]
            top += 1


cdef void sum_pairs(Tree* tree, const double* x, Py_ssize_t step, double shift, double margin, double scale, bint last) noexcept nogil:
    """out += scale times the sums over active pairs of p (x_v - x_u + shift)"""
    cdef int64_t* stack = <int64_t*>(tree.prefix + 4 * WAYS)
    cdef Item* keep = tree.other + tree.n
    tree.x, tree.step, tree.shift, tree.margin, tree.scale = x, step, shift, margin, scale
    tree.count = tree.upward = 0
    if not last:
        memcpy(keep, tree.items, tree.n * sizeof(Item))
    grow(tree, stack)
    if not last:
        memcpy(tree.items, keep, tree.n * sizeof(Item))


cdef void link_tree(const Orders* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, double* e, double* out, double* work) noexcept nogil:
    """As link_pairs, without the pairs: squared losses from sums of 1 and z, and HUBER's as the difference of two of them

    The loss follows from the gradient: sum p a^2 = (margin sum_v (p 2a) + sum_i e_i z_i) / 2. The sum of e is 0, so that scores
    count from any origin: an offset must not drown the loss.
    """
    cdef Tree tree = plant(q, lo, hi, z, e, work)
    cdef double origin = tree.items[tree.n // 2].first, nought = 0, loss = 0
    cdef Py_ssize_t i
    cdef double half = 1 if q.loss == PAIR_HINGE else 0.5
    cdef double* centred = work + 4 * STRIP
    for i in range(tree.n):
        centred[i] = tree.z[i] - origin
    if q.loss == PAIR_HINGE:
        sum_pairs(&tree, &nought, 0, 1, q.margin, 1, True)
        loss = q.margin * tree.upward
    elif q.loss == PAIR_SQUARED:
        sum_pairs(&tree, centred, 1, q.margin, q.margin, 2, True)
        loss = half * q.margin * tree.upward
    else:
        sum_pairs(&tree, centred, 1, q.margin - q.width, q.margin - q.width, -1 / q.width, False)
        loss = half * (q.margin - q.width) * tree.upward
        sum_pairs(&tree, centred, 1, q.margin, q.margin, 1 / q.width, True)
        loss += half * q.margin * tree.upward
    for i in range(tree.n):
        loss += half * tree.out[i] * centred[i]
    out[0] += loss
    out[1] += tree.count


cdef void bend_tree(const Orders* q, Py_ssize_t lo, Py_ssize_t hi, const double* z, const double* x, double* out, double* work) noexcept nogil:
    """As bend_pairs, without the pairs"""
    cdef Tree tree = plant(q, lo, hi, z, out, work)
    if q.loss == PAIR_HUBER:
        sum_pairs(&tree, x + lo, 1, 0, q.margin - q.width, -1 / q.width, False)
    sum_pairs(&tree, x + lo, 1, 0, q.margin, 1 / q.width if q.loss == PAIR_HUBER else 2, True)
