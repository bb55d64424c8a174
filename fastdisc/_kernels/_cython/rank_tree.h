// Sums over the pairs of a large query, without visiting each pair: the inner loops of
// rank_tree.pxi.
//
// A list of rows in the order of their scores is divided into ranges of grades. The sum of a row
// over its active pairs with other ranges is a prefix sum over the rows that are active with it,
// one per range. How many rows these are is computed first, by a merge of the scores with
// themselves. So prefix sums are taken of PREFIXES rows at a time, and then those rows are served
// whose prefix is among them: neither loop has a branch that is often mispredicted, and sums stay
// in registers. (One loop that adds and serves rows as they come, with 16-byte sort keys: 220 ms
// for 1M rows on two threads, not 90.)
#pragma once
#include <limits>
#include "rank_sort.h"

namespace rank_tree {

using tiles::fill;
using tiles::load;
using tiles::store;
using tiles::total;
typedef tiles::simd<double>::vec vec;
#ifdef FASTDISC_VECTOR
typedef FASTDISC_TYPE(std::int32_t, FASTDISC_BYTES) ivec;
#else
typedef std::int32_t ivec;
#endif

enum : isize {
    RANGES = 16,         // 1M rows, two threads, one run each, +-5 ms: 32 is no better, 8 is slower
                         // (94 ms, not 81)
    MAX_LEAF_ROWS = 32,  // of a list whose pairs are visited one by one
    PREFIXES = 128,      // 32 and 64 are within that noise, 16 is slower (98 ms)
    L = sizeof(vec) / sizeof(double),
    LI = sizeof(ivec) / sizeof(std::int32_t),
    NV = RANGES / L,
    NI = RANGES / LI > 0 ? RANGES / LI : 1
};

// A row of a list.
struct Item {
    double x;
    double out;              // the sums so far
    std::int32_t place;      // in the query
    std::int32_t active[2];  // rows of the list, from its start, that are active with this one if
                             // preferred to it; and from its end, if this one is preferred to them
    std::int32_t range;
};

// Sums over the rows of each range; or, as prefix sums, over the rows of the ranges before each.
static_assert(RANGES == 16, "RangeSums of rank_tree.pxi");
struct RangeSums {
    double sx[RANGES], s[RANGES];
    std::int32_t n[RANGES];
};

// 1 if the column's range comes after the row's. In `count`, column 0, which comes after no range,
// has 1 for all rows.
struct Masks {
    double after[RANGES][RANGES];
    std::int32_t count[RANGES][RANGES];
    constexpr Masks() : after(), count() {
        for (int k = 0; k < RANGES; k++)
            for (int j = 0; j < RANGES; j++) {
                after[k][j] = j > k;
                count[k][j] = j > k || j == 0;
            }
    }
};
alignas(64) static constexpr Masks MASKS;

// What is summed over active pairs: scale p (x_v - x_u + shift). A pair is active if
// z_v - z_u + margin > 0.
struct Term {
    const double *x;  // by place, or NULL: the scores themselves, or 0
    bool zero_x;
    double shift, margin, scale;
};

struct Tree {
    const std::int64_t *above, *below;  // of the query's rows, numbered in all rows
    isize lo;                           // the first of these
    const double *s;                    // weights of the query's rows
    isize step;                         // 0 if all rows have the same weight, else 1
    double origin;      // scores count from here: their median, so that outliers cost no digits
    Ranks ranks;
    Item *items, *other;
    std::uint8_t *range;  // of each place
    Term term;
    double *out;  // the sums, by place: those of pairs in which a row is the other, less those in
                  // which it is preferred
};

static inline double weight(const Tree &tree, isize place) { return tree.s[place * tree.step]; }

// The same for prefix sums: equal weights are multiplied in at the end.
static inline double own_weight(const Tree &tree, isize place) {
    return tree.step ? tree.s[place] : 1;
}

// A merge of the scores with themselves: for ranks t to end, how many rows from the first are
// active with each, start[t]; and for the ranks p to last, with how many from the end they are,
// stop[p].
struct Merge {
    isize t, end, p, last;
};

static inline isize count_before(const Tree &tree, isize t) {
    const double *z = tree.ranks.sorted;
    isize lo = 0, hi = tree.ranks.n;
    if (t >= tree.ranks.n) return tree.ranks.n;
    while (lo < hi) {
        isize mid = (lo + hi) / 2;
        if ((z[t] - z[mid]) + tree.term.margin > 0) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

static inline void count_active(const Tree &tree, isize a, isize b, std::int32_t *start,
                                std::int32_t *stop) {
    const double *z = tree.ranks.sorted, margin = tree.term.margin;
    const isize n = tree.ranks.n;
    enum { MERGES = 4 };  // at a time: the steps of one depend on each other
    Merge merges[MERGES];
    for (int i = 0; i < MERGES; i++) {
        isize t = a + (b - a) * i / MERGES, end = a + (b - a) * (i + 1) / MERGES;
        isize p = t ? count_before(tree, t) : 0, last = end == n ? n : count_before(tree, end);
        merges[i] = {t, end, p, last};
    }
    auto unfinished = [](const Merge &m) { return (m.t < m.end) & (m.p < m.last); };
    auto advance = [&](Merge &m) {
        bool active = (z[m.t] - z[m.p]) + margin > 0;
        start[m.t] = (std::int32_t)m.p;
        stop[m.p] = (std::int32_t)(n - m.t);
        m.p += active;
        m.t += !active;
    };
    while (unfinished(merges[0]) & unfinished(merges[1]) & unfinished(merges[2])
           & unfinished(merges[3])) {
        advance(merges[0]);
        advance(merges[1]);
        advance(merges[2]);
        advance(merges[3]);
    }
    for (Merge &m : merges) {
        while (unfinished(m)) advance(m);
        for (; m.t < m.end; m.t++) start[m.t] = (std::int32_t)m.p;
        for (; m.p < m.last; m.p++) stop[m.p] = (std::int32_t)(n - m.t);
    }
}

// The list of ranks a to b, and its sums by range.
static inline void make_items(const Tree &tree, isize a, isize b, const std::int32_t *start,
                              const std::int32_t *stop, RangeSums &sums) {
    const Term &term = tree.term;
    std::memset(&sums, 0, sizeof sums);
    for (isize t = a; t < b; t++) {
        const std::int32_t place = (std::int32_t)tree.ranks.order[t], k = tree.range[place];
        const double z = tree.ranks.sorted[t] - tree.origin, s = own_weight(tree, place);
        const double x = term.x ? term.x[place] : term.zero_x ? 0 : z;
        tree.items[t] = {x, 0, place, {start[t], stop[t]}, k};
        sums.n[k]++;
        sums.s[k] += s;
        sums.sx[k] += s * x;
    }
}

static inline void add(RangeSums &sums, const RangeSums &more) {
    for (int k = 0; k < RANGES; k++) {
        sums.n[k] += more.n[k];
        sums.s[k] += more.s[k];
        sums.sx[k] += more.sx[k];
    }
}

// The order in which a pass visits a list and ranks the ranges: from the start, for the sums over
// preferred rows (UP), or from the end, for those over other rows.
template <bool UP> struct Direction {
    static inline isize at(isize i, isize m) { return UP ? i : m - 1 - i; }
    static inline int rank(std::int32_t range) { return UP ? range : RANGES - 1 - range; }
};

// Sums by range -> prefix sums, in the order of the direction.
template <bool UP> static inline void accumulate(const RangeSums &sums, RangeSums &before) {
    double sx = 0, s = 0;
    std::int32_t n = 0;
    for (int j = 0; j < RANGES; j++) {
        int k = Direction<UP>::rank(j);
        before.sx[j] = sx;
        before.s[j] = s;
        before.n[j] = n;
        sx += sums.sx[k];
        s += sums.s[k];
        n += sums.n[k];
    }
    before.n[0] = n;  // of all
}

struct Totals { double weight, sum; };

// Prefix sums after each of PREFIXES rows; row 0 has those before.
struct Prefixes {
    alignas(64) double sx[PREFIXES + 1][RANGES];
    alignas(64) double s[PREFIXES + 1][RANGES];
    alignas(64) std::int32_t n[PREFIXES + 1][RANGES];
};

// Continue with the prefix sums that are in row `from`.
template <bool EQUAL> static inline void restart(Prefixes &prefixes, isize from) {
    std::memcpy(prefixes.sx[0], prefixes.sx[from], sizeof prefixes.sx[0]);
    if (!EQUAL) std::memcpy(prefixes.s[0], prefixes.s[from], sizeof prefixes.s[0]);
    std::memcpy(prefixes.n[0], prefixes.n[from], sizeof prefixes.n[0]);
}

// Add the rows first to first + count of a list of m rows.
template <bool UP, bool EQUAL>
static inline void add_prefixes(const Tree &tree, const Item *items, isize m, isize first,
                                isize count, Prefixes &prefixes) {
    vec sx[NV], s[NV];
    ivec n[NI];
    for (isize j = 0; j < NV; j++) sx[j] = load(prefixes.sx[0] + j * L);
    for (isize j = 0; j < NV; j++) s[j] = load(prefixes.s[0] + j * L);
    for (isize j = 0; j < NI; j++) n[j] = *(ivec *)(prefixes.n[0] + j * LI);
    for (isize i = 0; i < count; i++) {
        const Item &item = items[Direction<UP>::at(first + i, m)];
        const int k = Direction<UP>::rank(item.range);
        const double w = EQUAL ? 1 : weight(tree, item.place);
        const vec wx = fill(w * item.x);
        for (isize j = 0; j < NV; j++)
            store(prefixes.sx[i + 1] + j * L, sx[j] += wx * load(MASKS.after[k] + j * L));
        if (!EQUAL)
            for (isize j = 0; j < NV; j++)
                store(prefixes.s[i + 1] + j * L, s[j] += w * load(MASKS.after[k] + j * L));
        for (isize j = 0; j < NI; j++)
            *(ivec *)(prefixes.n[i + 1] + j * LI) = n[j] +=
                *(const ivec *)(MASKS.count[k] + j * LI);
    }
}

// The sums of rows a to b of a list of m; `before` has the prefix sums over the rows that are
// active with the first of them. `active` becomes what it is in the list of the row's own range.
template <bool UP, bool EQUAL>
static Totals sum_direction(const Tree &tree, Item *items, isize m, isize a, isize b,
                            const RangeSums &before) {
    Prefixes prefixes;
    std::memcpy(prefixes.sx[0], before.sx, sizeof before.sx);
    std::memcpy(prefixes.s[0], before.s, sizeof before.s);
    std::memcpy(prefixes.n[0], before.n, sizeof before.n);
    isize added = before.n[0], t = UP ? a : m - b;
    const isize end = UP ? b : m - a;
    const double shift = tree.term.shift, scale = tree.term.scale;
    const double own = EQUAL ? tree.s[0] * tree.s[0] * scale : scale;
    const double unit = EQUAL ? tree.s[0] * tree.s[0] : 1;
    double active = 0, sum = 0;
    while (true) {
        const isize count = std::min<isize>(PREFIXES, m - added);
        add_prefixes<UP, EQUAL>(tree, items, m, added, count, prefixes);
        const isize last = added + count;
        for (; t < end; t++) {
            Item &item = items[Direction<UP>::at(t, m)];
            const isize row = item.active[!UP] - added;
            if (item.active[!UP] > last) break;
            const int k = Direction<UP>::rank(item.range);
            const std::int32_t n = k ? prefixes.n[row][k] : 0;
            const double s = EQUAL ? n : prefixes.s[row][k], sx = prefixes.sx[row][k];
            const double w = EQUAL ? 1 : weight(tree, item.place);
            const double found = own * w * (UP ? (item.x + shift) * s - sx
                                               : sx + (shift - item.x) * s);
            item.out += UP ? found : -found;
            sum += found;
            active += unit * w * s;
            item.active[!UP] = prefixes.n[row][(k + 1) % RANGES] - n;
        }
        if (t == end) return {active, sum};
        added = last;
        restart<EQUAL>(prefixes, count);
    }
}

template <bool UP>
static Totals sum_weighted(const Tree &tree, Item *items, isize m, isize a, isize b,
                           const RangeSums &before) {
    return tree.step ? sum_direction<UP, false>(tree, items, m, a, b, before)
                     : sum_direction<UP, true>(tree, items, m, a, b, before);
}

// A list of m rows, and the sums by range of each of `count` parts of equal length (or none).
struct List {
    Item *items;
    isize m;
    const RangeSums *parts;
    isize count;
};

// The pairs between ranges of rows a to b of a list, in both directions.
static inline void sum_between(const Tree &tree, const List &list, isize a, isize b,
                               Totals &totals) {
    Item *items = list.items;
    const isize m = list.m, count = list.count;
    RangeSums sums, before;
    isize i = 0, active = a < b && count ? items[a].active[0] : 0;
    std::memset(&sums, 0, sizeof sums);
    auto add_item = [&](isize t) {
        const Item &item = items[t];
        sums.n[item.range]++;
        sums.s[item.range] += own_weight(tree, item.place);
        sums.sx[item.range] += own_weight(tree, item.place) * item.x;
    };
    for (isize c = 0; c < count && m * (c + 1) / count <= active; c++)
        add(sums, list.parts[c]), i = m * (c + 1) / count;
    for (; i < active; i++) add_item(i);
    accumulate<true>(sums, before);
    const Totals up = sum_weighted<true>(tree, items, m, a, b, before);
    std::memset(&sums, 0, sizeof sums);
    active = a < b && count ? items[b - 1].active[1] : 0;
    i = m;
    for (isize c = count; c > 0 && m - m * (c - 1) / count <= active; c--)
        add(sums, list.parts[c - 1]), i = m * (c - 1) / count;
    for (; i > m - active; i--) add_item(i - 1);
    accumulate<false>(sums, before);
    sum_weighted<false>(tree, items, m, a, b, before);
    totals.weight += up.weight;
    totals.sum += up.sum;
}

// Divide places a to b into ranges of whole grades and about equal length: their number; the range
// of each place and the end of each range are written.
static inline isize divide(const Tree &tree, isize a, isize b, isize *ends) {
    isize last = a, count = 0;
    for (isize k = 1; k <= RANGES; k++) {
        isize cut = b;
        if (k < RANGES) {
            isize j = a + k * (b - a) / RANGES;
            cut = tree.above[j] - tree.lo;
            if (cut <= last) cut = tree.below[j] - tree.lo;
        }
        if (cut > last) {
            std::memset(tree.range + last, (int)count, cut - last);
            ends[count++] = last = cut;
        }
    }
    return count;
}

// Rows a to b of a list are moved to the lists of their ranges.
static inline void move_by_range(const Item *items, isize a, isize b, isize *places, Item *to) {
    for (isize t = a; t < b; t++) to[places[items[t].range]++] = items[t];
}

static inline void write_sums(const Tree &tree, const Item *items, isize a, isize b) {
    for (isize t = a; t < b; t++) tree.out[items[t].place] += items[t].out;
}

// The pairs of places a to b, one by one: V vectors hold them. All pairs of places are evaluated,
// without a branch.
template <isize V> static void sum_leaf(const Tree &tree, isize a, isize b, Totals &totals) {
    alignas(64) double z[V * L], x[V * L], s[V * L], place[V * L], sums[V * L];
    const isize m = b - a;
    const Term &term = tree.term;
    for (isize i = 0; i < V * L; i++) {
        z[i] = i < m ? tree.ranks.z[a + i] : -std::numeric_limits<double>::infinity();
        x[i] = i < m ? (term.x ? term.x[a + i] : term.zero_x ? 0 : tree.ranks.z[a + i]) : 0;
        s[i] = i < m ? weight(tree, a + i) : 0;
        place[i] = (double)i;
    }
    const vec none = fill(0.0), margin = fill(term.margin), shift = fill(term.shift);
    vec out[V], weights = none, values = none;
    for (isize v = 0; v < V; v++) out[v] = none;
    for (isize u = 0; u < m; u++) {
        const vec zu = fill(z[u]), xu = fill(x[u]), su = fill(s[u]);
        const vec begin = fill((double)(tree.below[a + u] - tree.lo - a));
        vec own = none;
        for (isize v = 0; v < V; v++) {
            const auto active = ((load(z + v * L) - zu) + margin > none)
                              & (load(place + v * L) >= begin);
            const vec p = (active ? load(s + v * L) : none) * su;
            const vec value = p * ((load(x + v * L) - xu) + shift);
            out[v] += value;
            own += value;
            weights += p;
        }
        values += own;
        sums[u] = total(own);
    }
    for (isize v = 0; v < V; v++) store(z + v * L, out[v]);
    for (isize i = 0; i < m; i++) tree.out[a + i] += term.scale * (z[i] - sums[i]);
    totals.weight += total(weights);
    totals.sum += term.scale * total(values);
}

// All pairs of places a to b, whose rows, sorted by score, are the list a to b of `items`.
static void sum_list(const Tree &tree, Item *items, Item *other, isize a, isize b, Totals &totals) {
    isize ends[RANGES], places[RANGES];
    const bool one_grade = tree.below[a] - tree.lo >= b;
    if (one_grade || b - a <= MAX_LEAF_ROWS) {
        write_sums(tree, items, a, b);
        if (one_grade) return;
        if (b - a <= MAX_LEAF_ROWS / 2) sum_leaf<MAX_LEAF_ROWS / 2 / L>(tree, a, b, totals);
        else sum_leaf<MAX_LEAF_ROWS / L>(tree, a, b, totals);
        return;
    }
    const isize count = divide(tree, a, b, ends);
    for (isize t = a; t < b; t++) items[t].range = tree.range[items[t].place];
    const List list = {items + a, b - a, nullptr, 0};
    sum_between(tree, list, 0, b - a, totals);
    for (isize k = 0; k < count; k++) places[k] = k ? ends[k - 1] : a;
    move_by_range(items, a, b, places, other);
    for (isize k = 0; k < count; k++)
        sum_list(tree, other, items, k ? ends[k - 1] : a, ends[k], totals);
}

}  // namespace rank_tree
