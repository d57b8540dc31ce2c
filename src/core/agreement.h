// How far two partitions agree: pairs of rows, from contingency tables (``_selection/agreement.py``).
#pragma once
#include "vectors.h"

namespace mnar { namespace LEVEL { namespace {

INLINE double pairs_of(double x) { return x * (x - 1.0) / 2.0; }

// Contingency tables of two fits that many rows go into one after the other: by turns into one of four, so
// that a row need not wait for the one before.
constexpr Index TURNS = 4;
constexpr Index LABELS_OF_JOB = 1 << 18;  // fewer take less time than a thread does to begin

// INOUT tables (G, TURNS, k, k): rows that both have kept.
INLINE void count_rows(const Label* a, const Label* b, const uint8_t* kept_a, const uint8_t* kept_b, Index n,
                       Index candidates, Index k, int64_t* tables) {
    for (Index g = 0; g < candidates; ++g, tables += TURNS * k * k)
        for (Index i = 0; i < n; ++i) {  // no branches: which rows are kept is not to be foreseen
            const Index x = a[i * candidates + g], y = b[i * candidates + g];
            tables[(i % TURNS * k + x) * k + y] += kept_a[i] & kept_b[i];
        }
}

// OUT pairs (3,) from the contingency table T, r and c its margins: sums of pairs in T, r and c.
INLINE void pairs_in(const int64_t* tables, Index k, double* pairs) {
    auto at = [&](Index x, Index y) {
        int64_t sum = 0;
        for (Index turn = 0; turn < TURNS; ++turn) sum += tables[(turn * k + x) * k + y];
        return sum;
    };
    double both = 0, in_a = 0, in_b = 0;
    for (Index x = 0; x < k; ++x) {
        int64_t row = 0, column = 0;
        for (Index y = 0; y < k; ++y) {
            both += pairs_of(double(at(x, y)));
            row += at(x, y);
            column += at(y, x);
        }
        in_a += pairs_of(double(row));
        in_b += pairs_of(double(column));
    }
    pairs[0] = both, pairs[1] = in_a, pairs[2] = in_b;
}

// See ``core.h``. Threads share the couples.
int32_t count_pairs(const Partitions& of, const Index* couples, Index count, double* pairs, Control& control) {
    const Index n = of.n, candidates = of.candidates, k = of.k, size = n * candidates;
    const Index of_job = 1 + LABELS_OF_JOB / (size + 1);  // couples
    return in_parallel((count + of_job - 1) / of_job, control, [&](Index job) -> int32_t {
        Array<int64_t> tables(candidates * TURNS * k * k);
        if (!tables.ok()) return OUT_OF_MEMORY;
        for (Index c = job * of_job; c < least((job + 1) * of_job, count); ++c) {
            const Index a = couples[2 * c], b = couples[2 * c + 1];
            memset(tables, 0, sizeof(int64_t) * candidates * TURNS * k * k);
            count_rows(of.labels + a * size, of.labels + b * size, of.kept + a * n, of.kept + b * n, n, candidates, k,
                       tables);
            for (Index g = 0; g < candidates; ++g)
                pairs_in(tables + g * TURNS * k * k, k, pairs + 3 * (c * candidates + g));
        }
        return DONE;
    });
}

}}}  // namespace mnar::LEVEL
