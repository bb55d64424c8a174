// Sums over the pairs of a large query, without the pairs: the inner loops of rank_tree.pxi.
//
// A walk meets rows in the order of their scores. Row i of a list enters as soon as it counts, and a row asks for the sums over
// those that have entered and are of better grades. How many have entered when a row asks, `met`, is known beforehand: so rows
// enter EARLIER at a time, each leaving a copy of the sums behind, and then those ask that look at one of these copies. Neither
// loop has a branch that the processor could guess wrong, and sums stay in registers. (One loop in which rows enter and ask as
// they come, with 16-byte keys to sort: 220 ms for 1M rows on two threads, not 90.)
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include "tiles.h"

namespace rank_tree {

using tiles::isize;
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
    WAYS = 16,       // 1M rows, two threads, one run each, +-5 ms: 32 is no better, 8 is slower (94 ms, not 81)
    LEAF = 32,       // rows of a list up to which pairs are looked at one by one
    EARLIER = 128,   // 32 and 64 are within that noise, 16 is slower (98 ms)
    DIGIT = 11,      // bits that the sort takes at a time
    L = sizeof(vec) / sizeof(double),
    LI = sizeof(ivec) / sizeof(std::int32_t),
    NV = WAYS / L,
    NI = WAYS / LI > 0 ? WAYS / LI : 1
};

struct Key { std::uint32_t bits, place; };

struct Item {
    double x;
    double out;             // what it has been told so far
    std::int32_t place;     // in the query
    std::int32_t met[2];    // how many rows of the list have entered when it asks, going up, and going down
    std::int32_t range;
};

// Sums over the rows of each range, or, in walks, over the ranges before each.
static_assert(WAYS == 16, "Table of rank_tree.pxi");
struct Table {
    double sx[WAYS], s[WAYS];
    std::int32_t n[WAYS];
};

// 1 where the column's range comes after the row's; `whole` has in column 0, before which there is no range, 1 for all rows
struct Masks {
    double after[WAYS][WAYS];
    std::int32_t whole[WAYS][WAYS];
    constexpr Masks() : after(), whole() {
        for (int k = 0; k < WAYS; k++)
            for (int j = 0; j < WAYS; j++) {
                after[k][j] = j > k;
                whole[k][j] = j > k || j == 0;
            }
    }
};
alignas(64) static constexpr Masks MASKS;

struct Tree {
    const std::int64_t *above, *below;   // of the query's rows, numbered in all rows
    isize lo, n;
    const double *s;                     // weights of the query's rows
    isize step;
    const double *z, *x;                 // scores, and what is summed over pairs, p (x_v - x_u + shift), by place
    bool plain;                          // nothing is: p alone
    double shift, margin, scale;
    double origin;                       // scores count from here: their median, so that none that is far out drowns the others
    double *out;                         // scale times the sums by v less those by u, by place
    std::uint32_t *order;                // places, by score
    Item *items, *other;
    double *sorted;                      // scores in order
    std::uint8_t *range;
};

static inline double weight(const Tree &tree, isize place) { return tree.s[place * tree.step]; }

// The same in walks, where equal weights come in at the end.
static inline double share(const Tree &tree, isize place) { return tree.step ? tree.s[place] : 1; }

// Bits that compare as the numbers do, the first 32 of them.
static inline std::uint32_t ordered(double a) {
    std::uint64_t bits;
    a += 0.0;
    std::memcpy(&bits, &a, sizeof bits);
    return (std::uint32_t)((bits >> 63 ? ~bits : bits | (std::uint64_t)1 << 63) >> 32);
}

// Keys of places a to b. Bits of the distance from a score amid the others, because an offset would leave few that differ.
static inline void make_keys(const double *z, double origin, isize a, isize b, Key *keys) {
    for (isize i = a; i < b; i++) keys[i] = {ordered(z[i] - origin), (std::uint32_t)i};
}

static inline std::uint32_t digit(std::uint32_t bits, int pass) {
    return bits >> (DIGIT * pass) & ((1u << DIGIT) - 1);
}

static inline void count_digits(const Key *keys, isize a, isize b, int pass, std::int64_t *counts) {
    std::memset(counts, 0, sizeof(std::int64_t) << DIGIT);
    for (isize i = a; i < b; i++) counts[digit(keys[i].bits, pass)]++;
}

// Counts of the parts of a list, one after the other, become the places where each part's keys of each digit go.
static inline void start_digits(std::int64_t *counts, isize parts) {
    std::int64_t sum = 0;
    for (isize k = 0; k < (isize)1 << DIGIT; k++)
        for (isize part = 0; part < parts; part++) {
            std::int64_t &entry = counts[(part << DIGIT) + k], count = entry;
            entry = sum;
            sum += count;
        }
}

static inline void deal_digits(const Key *keys, isize a, isize b, int pass, std::int64_t *starts, Key *to) {
    for (isize i = a; i < b; i++) to[starts[digit(keys[i].bits, pass)]++] = keys[i];
}

// The order of the keys' places and their scores; of equal keys, of which runs begin in a to b, by the scores themselves. Most are
// in order already, or one step away from it: where one is not, and its run is long, the run is sorted.
static inline void settle_runs(const Tree &tree, const Key *keys, isize a, isize b) {
    enum { NEAR = 16 };
    const double *z = tree.z;
    double *sorted = tree.sorted;
    std::uint32_t *order = tree.order;
    while (a > 0 && a < b && keys[a].bits == keys[a - 1].bits) a++;
    while (a < b && b < tree.n && keys[b].bits == keys[b - 1].bits) b++;
    for (isize i = a; i < b; i++) {
        order[i] = keys[i].place;
        sorted[i] = z[keys[i].place];
    }
    for (isize i = a + 1; i < b; i++) {
        if (!(sorted[i] < sorted[i - 1])) continue;
        isize j = i, end = i + 1;
        while (j > a && i - j < NEAR && sorted[i] < sorted[j - 1]) j--;
        if (i - j < NEAR) {
            std::rotate(sorted + j, sorted + i, sorted + i + 1);
            std::rotate(order + j, order + i, order + i + 1);
            continue;
        }
        while (j > a && keys[j - 1].bits == keys[i].bits) j--;
        while (end < b && keys[end].bits == keys[i].bits) end++;
        std::sort(order + j, order + end, [z](std::uint32_t u, std::uint32_t v) { return z[u] < z[v] || (z[u] == z[v] && u < v); });
        for (isize t = j; t < end; t++) sorted[t] = z[order[t]];
        i = end - 1;
    }
}

// Of the places a to b of the order: how many of the first n rows count with each, up[t]; and for the rows that begin to count
// between a and b, with how many from the end they do, down[p]. Both at once, in a merge of the scores with themselves.
struct Merge {
    isize t, end, p, last;
};

static inline isize first_met(const Tree &tree, isize t) {
    isize lo = 0, hi = tree.n;
    if (t >= tree.n) return tree.n;
    while (lo < hi) {
        isize mid = (lo + hi) / 2;
        if ((tree.sorted[t] - tree.sorted[mid]) + tree.margin > 0) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

static inline void meet(const Tree &tree, isize a, isize b, std::int32_t *up, std::int32_t *down) {
    const double *z = tree.sorted, margin = tree.margin;
    const isize n = tree.n;
    enum { LANES = 4 };   // merges at a time: the next step of each waits for the last
    Merge lane[LANES];
    for (int i = 0; i < LANES; i++) {
        isize t = a + (b - a) * i / LANES, end = a + (b - a) * (i + 1) / LANES;
        lane[i] = {t, end, t ? first_met(tree, t) : 0, end == n ? n : first_met(tree, end)};
    }
    auto going = [](const Merge &m) { return (m.t < m.end) & (m.p < m.last); };
    auto one = [&](Merge &m) {
        bool enters = (z[m.t] - z[m.p]) + margin > 0;
        up[m.t] = (std::int32_t)m.p;
        down[m.p] = (std::int32_t)(n - m.t);
        m.p += enters;
        m.t += !enters;
    };
    while (going(lane[0]) & going(lane[1]) & going(lane[2]) & going(lane[3])) {
        one(lane[0]);
        one(lane[1]);
        one(lane[2]);
        one(lane[3]);
    }
    for (Merge &m : lane) {
        while (going(m)) one(m);
        for (; m.t < m.end; m.t++) up[m.t] = (std::int32_t)m.p;
        for (; m.p < m.last; m.p++) down[m.p] = (std::int32_t)(n - m.t);
    }
}

// The list of places a to b of the order, and its sums by range.
static inline void make_items(const Tree &tree, isize a, isize b, const std::int32_t *up, const std::int32_t *down, Table &sums) {
    std::memset(&sums, 0, sizeof sums);
    for (isize t = a; t < b; t++) {
        const std::int32_t place = (std::int32_t)tree.order[t], k = tree.range[place];
        const double x = tree.x ? tree.x[place] : tree.plain ? 0 : tree.sorted[t] - tree.origin, s = share(tree, place);
        tree.items[t] = {x, 0, place, {up[t], down[t]}, k};
        sums.n[k]++;
        sums.s[k] += s;
        sums.sx[k] += s * x;
    }
}

static inline void add(Table &sums, const Table &more) {
    for (int k = 0; k < WAYS; k++) {
        sums.n[k] += more.n[k];
        sums.s[k] += more.s[k];
        sums.sx[k] += more.sx[k];
    }
}

// What the rows of a list walk through: from below for the sums over better rows, or from above for those over worse ones.
template <bool UP> struct Way {
    static inline isize at(isize i, isize m) { return UP ? i : m - 1 - i; }
    static inline int rank(std::int32_t range) { return UP ? range : WAYS - 1 - range; }
};

// Sums by range as sums over the ranges before each, in the order of the way.
template <bool UP> static inline void accumulate(const Table &sums, Table &before) {
    double sx = 0, s = 0;
    std::int32_t n = 0;
    for (int j = 0; j < WAYS; j++) {
        int k = Way<UP>::rank(j);
        before.sx[j] = sx;
        before.s[j] = s;
        before.n[j] = n;
        sx += sums.sx[k];
        s += sums.s[k];
        n += sums.n[k];
    }
    before.n[0] = n;   // of all
}

struct Totals { double weight, sum; };

struct Copies {
    alignas(64) double sx[EARLIER + 1][WAYS];
    alignas(64) double s[EARLIER + 1][WAYS];
    alignas(64) std::int32_t n[EARLIER + 1][WAYS];
};

// Rows from to from + count enter, on top of copy 0.
template <bool UP, bool EQUAL>
static inline void enter(const Tree &tree, const Item *items, isize m, isize from, isize count, Copies &copies) {
    vec sx[NV], s[NV];
    ivec n[NI];
    for (isize j = 0; j < NV; j++) sx[j] = load(copies.sx[0] + j * L), s[j] = load(copies.s[0] + j * L);
    for (isize j = 0; j < NI; j++) n[j] = *(ivec *)(copies.n[0] + j * LI);
    for (isize i = 0; i < count; i++) {
        const Item &item = items[Way<UP>::at(from + i, m)];
        const int k = Way<UP>::rank(item.range);
        const double w = EQUAL ? 1 : weight(tree, item.place);
        const vec wx = fill(w * item.x);
        for (isize j = 0; j < NV; j++) store(copies.sx[i + 1] + j * L, sx[j] += wx * load(MASKS.after[k] + j * L));
        if (!EQUAL)
            for (isize j = 0; j < NV; j++) store(copies.s[i + 1] + j * L, s[j] += w * load(MASKS.after[k] + j * L));
        for (isize j = 0; j < NI; j++) *(ivec *)(copies.n[i + 1] + j * LI) = n[j] += *(const ivec *)(MASKS.whole[k] + j * LI);
    }
}

// Rows a to b of a list of m ask, `before` having the sums over the rows that entered before any that the first of them meets:
// the row's sum is added to what it has been told, or taken off. `met` becomes what it is in the list of the row's own range.
template <bool UP, bool EQUAL>
static Totals walk(const Tree &tree, Item *items, isize m, isize a, isize b, const Table &before) {
    Copies copies;
    std::memcpy(copies.sx[0], before.sx, sizeof before.sx);
    std::memcpy(copies.s[0], before.s, sizeof before.s);
    std::memcpy(copies.n[0], before.n, sizeof before.n);
    isize entered = before.n[0], t = UP ? a : m - b;
    const isize end = UP ? b : m - a;
    const double own = EQUAL ? tree.s[0] * tree.s[0] * tree.scale : tree.scale, unit = EQUAL ? tree.s[0] * tree.s[0] : 1;
    double counted = 0, sum = 0;
    while (true) {
        const isize count = std::min<isize>(EARLIER, m - entered);
        enter<UP, EQUAL>(tree, items, m, entered, count, copies);
        const isize last = entered + count;
        for (; t < end; t++) {
            Item &item = items[Way<UP>::at(t, m)];
            const isize copy = item.met[!UP] - entered;
            if (item.met[!UP] > last) break;
            const int k = Way<UP>::rank(item.range);
            const std::int32_t n = k ? copies.n[copy][k] : 0;
            const double s = EQUAL ? n : copies.s[copy][k], w = EQUAL ? 1 : weight(tree, item.place);
            const double found = own * w * (UP ? (item.x + tree.shift) * s - copies.sx[copy][k]
                                               : copies.sx[copy][k] + (tree.shift - item.x) * s);
            item.out += UP ? found : -found;
            sum += found;
            counted += unit * w * s;
            item.met[!UP] = copies.n[copy][(k + 1) % WAYS] - n;
        }
        if (t == end) return {counted, sum};
        entered = last;
        std::memcpy(copies.sx[0], copies.sx[count], sizeof copies.sx[0]);
        if (!EQUAL) std::memcpy(copies.s[0], copies.s[count], sizeof copies.s[0]);
        std::memcpy(copies.n[0], copies.n[count], sizeof copies.n[0]);
    }
}

template <bool UP>
static Totals walk_way(const Tree &tree, Item *items, isize m, isize a, isize b, const Table &before) {
    return tree.step ? walk<UP, false>(tree, items, m, a, b, before) : walk<UP, true>(tree, items, m, a, b, before);
}

// Rows a to b of a list of m, of which `parts` are the sums of each of some parts of equal length, (or none: a whole list), both
// ways.
static inline void walk_both(const Tree &tree, Item *items, isize m, isize a, isize b, const Table *parts, isize count,
                             Totals &totals) {
    Table sums, before;
    isize i = 0, met = a < b && count ? items[a].met[0] : 0;
    std::memset(&sums, 0, sizeof sums);
    auto one = [&](isize t) {
        const Item &item = items[t];
        sums.n[item.range]++;
        sums.s[item.range] += share(tree, item.place);
        sums.sx[item.range] += share(tree, item.place) * item.x;
    };
    for (isize c = 0; c < count && m * (c + 1) / count <= met; c++) add(sums, parts[c]), i = m * (c + 1) / count;
    for (; i < met; i++) one(i);
    accumulate<true>(sums, before);
    const Totals up = walk_way<true>(tree, items, m, a, b, before);
    std::memset(&sums, 0, sizeof sums);
    met = a < b && count ? items[b - 1].met[1] : 0;
    i = m;
    for (isize c = count; c > 0 && m - m * (c - 1) / count <= met; c--) add(sums, parts[c - 1]), i = m * (c - 1) / count;
    for (; i > m - met; i--) one(i - 1);
    accumulate<false>(sums, before);
    walk_way<false>(tree, items, m, a, b, before);
    totals.weight += up.weight;
    totals.sum += up.sum;
}

// Cut places a to b into ranges of whole grades, about equally long: their number, and where each ends.
static inline isize part_list(const Tree &tree, isize a, isize b, isize *ends) {
    isize last = a, count = 0;
    for (isize k = 1; k <= WAYS; k++) {
        isize cut = b;
        if (k < WAYS) {
            isize j = a + k * (b - a) / WAYS;
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

// Rows a to b of a list go to the lists of their ranges.
static inline void deal(const Item *items, isize a, isize b, isize *places, Item *to) {
    for (isize t = a; t < b; t++) to[places[items[t].range]++] = items[t];
}

static inline void tell(const Tree &tree, const Item *items, isize a, isize b) {
    for (isize t = a; t < b; t++) tree.out[items[t].place] += items[t].out;
}

// The pairs of places a to b, one by one: V vectors hold them. All pairs of places are looked at, without a branch.
template <isize V> static void leaf(const Tree &tree, isize a, isize b, Totals &totals) {
    alignas(64) double z[V * L], x[V * L], s[V * L], place[V * L], sums[V * L];
    const isize m = b - a;
    for (isize i = 0; i < V * L; i++) {
        z[i] = i < m ? tree.z[a + i] : -std::numeric_limits<double>::infinity();
        x[i] = i < m ? (tree.x ? tree.x[a + i] : tree.plain ? 0 : tree.z[a + i]) : 0;
        s[i] = i < m ? weight(tree, a + i) : 0;
        place[i] = (double)i;
    }
    const vec none = fill(0.0), margin = fill(tree.margin), shift = fill(tree.shift);
    vec out[V], weights = none, values = none;
    for (isize v = 0; v < V; v++) out[v] = none;
    for (isize u = 0; u < m; u++) {
        const vec zu = fill(z[u]), xu = fill(x[u]), su = fill(s[u]), begin = fill((double)(tree.below[a + u] - tree.lo - a));
        vec own = none;
        for (isize v = 0; v < V; v++) {
            const vec counts = ((load(z + v * L) - zu) + margin > none) & (load(place + v * L) >= begin) ? load(s + v * L) : none;
            const vec p = counts * su, value = p * ((load(x + v * L) - xu) + shift);
            out[v] += value;
            own += value;
            weights += p;
        }
        values += own;
        sums[u] = total(own);
    }
    for (isize v = 0; v < V; v++) store(z + v * L, out[v]);
    for (isize i = 0; i < m; i++) tree.out[a + i] += tree.scale * (z[i] - sums[i]);
    totals.weight += total(weights);
    totals.sum += tree.scale * total(values);
}

// All pairs of places a to b, whose rows, sorted by score, are the list a to b of `items`.
static void grow(const Tree &tree, Item *items, Item *other, isize a, isize b, Totals &totals) {
    isize ends[WAYS], places[WAYS];
    const bool alike = tree.below[a] - tree.lo >= b;
    if (alike || b - a <= LEAF) {
        tell(tree, items, a, b);
        if (alike) return;
        if (b - a <= LEAF / 2) leaf<LEAF / 2 / L>(tree, a, b, totals);
        else leaf<LEAF / L>(tree, a, b, totals);
        return;
    }
    const isize count = part_list(tree, a, b, ends);
    for (isize t = a; t < b; t++) items[t].range = tree.range[items[t].place];
    walk_both(tree, items + a, b - a, 0, b - a, nullptr, 0, totals);
    for (isize k = 0; k < count; k++) places[k] = k ? ends[k - 1] : a;
    deal(items, a, b, places, other);
    for (isize k = 0; k < count; k++) grow(tree, other, items, k ? ends[k - 1] : a, ends[k], totals);
}

}  // namespace rank_tree
