# Ranking: the link works on the scores of a whole group. Pairs are never formed: rows are sorted by score, and for each row a
# tree of partial sums over the grades (Fenwick's) tells how much weight stands on the wrong side of it. O(n log n) a group.

cdef inline void tree_add(double* tree, Py_ssize_t grades, Py_ssize_t grade, double s) noexcept nogil:
    grade += 1
    while grade <= grades:
        tree[grade] += s
        grade += grade & -grade


cdef inline double tree_below(const double* tree, Py_ssize_t grade) noexcept nogil:
    """The weight of all grades below this one."""
    cdef double total = 0
    while grade > 0:
        total += tree[grade]
        grade -= grade & -grade
    return total


cdef void link_rank(const double* z, const int32_t* r, const double* s, Py_ssize_t step, Py_ssize_t n, double margin,
                    pair[double, int64_t]* order, double* tree, Py_ssize_t grades, double* e, double* loss, double* active) noexcept nogil:
    """z -> e = dE/dz of (10.46) with a margin: pairs r_u > r_v count while z_v - z_u + margin > 0"""
    cdef Py_ssize_t t, p, i
    cdef double count = 0, above
    for i in range(n):
        order[i].first, order[i].second = z[i], i
    sort(order, order + n)
    # 1. upwards: the weight of better rows u that do not clear v by the margin (grades counted from the top)
    memset(tree, 0, (grades + 1) * sizeof(double))
    p = 0
    for t in range(n):
        i = order[t].second
        while p < n and (z[i] - order[p].first) + margin > 0:
            tree_add(tree, grades, grades - 1 - r[order[p].second], s[order[p].second * step])
            p += 1
        above = s[i * step] * tree_below(tree, grades - 1 - r[i])
        e[i] = above
        count += above
    # 2. downwards: the weight of worse rows v that come too close to u
    memset(tree, 0, (grades + 1) * sizeof(double))
    p = n - 1
    for t in range(n - 1, -1, -1):
        i = order[t].second
        while p >= 0 and (order[p].first - z[i]) + margin > 0:
            tree_add(tree, grades, r[order[p].second], s[order[p].second * step])
            p -= 1
        e[i] -= s[i * step] * tree_below(tree, r[i])
    for i in range(n):
        loss[0] += e[i] * (z[i] - order[0].first)   # the sum of e is 0: an offset of the scores must not drown the loss
    loss[0] += margin * count
    active[0] += count


cdef void rank_chunk(const Plan* plan, const int32_t* r, const double* s, Py_ssize_t step, const int64_t* starts,
                     Py_ssize_t first, Py_ssize_t last, Py_ssize_t longest, Py_ssize_t grades, const double* w, double margin,
                     double* out, double* work) noexcept nogil:
    """Sums of groups first to last: out = loss, active pairs, G."""
    cdef double* z = work
    cdef double* e = z + longest + 4         # scores come four at a time
    cdef pair[double, int64_t]* order = <pair[double, int64_t]*>(e + longest)
    cdef double* tree = e + longest + 2 * longest
    cdef double* buffer = tree + grades + 1
    cdef const double* x
    cdef double nought = 0
    cdef Py_ssize_t group, lo, n, i, m, ld = 0
    for group in range(first, last):
        lo, n = starts[group], starts[group + 1] - starts[group]
        i = 0
        while i < n:
            m = min(plan.block, n - i)
            x = fetch(plan, lo + i, m, buffer, &ld)
            score(plan, lo + i, m, x, ld, w, &nought, z + i)
            i += m
        if isfinite(spoiled(z, n)):
            link_rank(z, r + lo, s + lo * step, step, n, margin, order, tree, grades, e, out, out + 1)
        else:   # NaN has no place in an order: nothing is sorted, and the sums show it
            out[0] = NAN
            for i in range(n):
                e[i] = NAN
        i = 0
        while i < n:
            m = min(plan.block, n - i)
            x = fetch(plan, lo + i, m, buffer, &ld)
            accumulate(plan, lo + i, m, x, ld, e + i, out + 2)
            i += m
