// The order of a large query's scores: a radix sort of 32-bit keys, in parts for several threads,
// and comparisons where keys are equal. The inner loops of rank_tree.pxi.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include "tiles.h"

namespace rank_tree {

using tiles::isize;

enum : isize { DIGIT_BITS = 11 };  // of a key that one pass sorts by

struct Key { std::uint32_t bits, place; };

// The scores of a query and their order, both by rank: place order[t] has the score sorted[t].
struct Ranks {
    const double *z;  // by place
    isize n;
    double *sorted;
    std::uint32_t *order;
};

// The first 32 bits of a number, mapped so that they increase with it; -0 counts as 0.
static inline std::uint32_t increasing_bits(double a) {
    std::uint64_t bits;
    a += 0.0;
    std::memcpy(&bits, &a, sizeof bits);
    return (std::uint32_t)((bits >> 63 ? ~bits : bits | (std::uint64_t)1 << 63) >> 32);
}

// Keys of places a to b, by the distance from a score amid the others: with a large offset few
// bits would differ.
static inline void make_keys(const double *z, double origin, isize a, isize b, Key *keys) {
    for (isize i = a; i < b; i++) keys[i] = {increasing_bits(z[i] - origin), (std::uint32_t)i};
}

static inline std::uint32_t digit(std::uint32_t bits, int pass) {
    return bits >> (DIGIT_BITS * pass) & ((1u << DIGIT_BITS) - 1);
}

static inline void count_digits(const Key *keys, isize a, isize b, int pass,
                                std::int64_t *counts) {
    std::memset(counts, 0, sizeof(std::int64_t) << DIGIT_BITS);
    for (isize i = a; i < b; i++) counts[digit(keys[i].bits, pass)]++;
}

// Counts of the parts of a list, one after the other, become the places to which each part's keys
// of each digit are moved.
static inline void start_digits(std::int64_t *counts, isize parts) {
    const isize digits = (isize)1 << DIGIT_BITS;
    std::int64_t sum = 0;
    auto start = [&](isize place) {
        const std::int64_t count = counts[place];
        counts[place] = sum;
        sum += count;
    };
    if (parts == 1) {  // a tenth of the time of queries of 200 rows
        for (isize k = 0; k < digits; k++) start(k);
        return;
    }
    for (isize k = 0; k < digits; k++)
        for (isize part = 0; part < parts; part++) start(part * digits + k);
}

static inline void move_by_digit(const Key *keys, isize a, isize b, int pass,
                                 std::int64_t *starts, Key *to) {
    for (isize i = a; i < b; i++) to[starts[digit(keys[i].bits, pass)]++] = keys[i];
}

// The rank of one row among those before it, if it is at most MAX_SHIFT ranks away: true.
static inline bool insert(const Ranks &ranks, isize a, isize i) {
    enum { MAX_SHIFT = 16 };
    double *sorted = ranks.sorted;
    isize j = i;
    while (j > a && i - j < MAX_SHIFT && sorted[i] < sorted[j - 1]) j--;
    if (i - j >= MAX_SHIFT) return false;
    std::rotate(sorted + j, sorted + i, sorted + i + 1);
    std::rotate(ranks.order + j, ranks.order + i, ranks.order + i + 1);
    return true;
}

// Ranks of the sorted keys; of equal keys, of which runs begin in a to b, by the scores themselves.
// Most rows are in order already, or one rank away: if one is not, and its run is long, the run is
// sorted.
static inline void finish_sort(const Ranks &ranks, const Key *keys, isize a, isize b) {
    const double *z = ranks.z;
    double *sorted = ranks.sorted;
    std::uint32_t *order = ranks.order;
    while (a > 0 && a < b && keys[a].bits == keys[a - 1].bits) a++;
    while (a < b && b < ranks.n && keys[b].bits == keys[b - 1].bits) b++;
    for (isize i = a; i < b; i++) {
        order[i] = keys[i].place;
        sorted[i] = z[keys[i].place];
    }
    for (isize i = a + 1; i < b; i++) {
        if (!(sorted[i] < sorted[i - 1]) || insert(ranks, a, i)) continue;
        isize j = i, end = i + 1;
        while (j > a && keys[j - 1].bits == keys[i].bits) j--;
        while (end < b && keys[end].bits == keys[i].bits) end++;
        std::sort(order + j, order + end, [z](std::uint32_t u, std::uint32_t v) {
            return z[u] < z[v] || (z[u] == z[v] && u < v);
        });
        for (isize t = j; t < end; t++) sorted[t] = z[order[t]];
        i = end - 1;
    }
}

}  // namespace rank_tree
