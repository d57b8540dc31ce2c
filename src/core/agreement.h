// How far two partitions agree: pairs of rows, from contingency tables (``_selection/agreement.py``).
#pragma once
#include "vectors.h"

namespace mnar { namespace LEVEL { namespace {

INLINE double pairs_of(double x) { return x * (x - 1.0) / 2.0; }

// From the contingency table T of each candidate, r and c its margins: sums of pairs in T, r and c.
int32_t count_pairs(const Label* a, const Label* b, const uint8_t* kept, Index n, Index candidates,
                    Index k, double* pairs) {
    Array<int64_t> tables(candidates * k * k, 0);
    if (!tables.ok()) return OUT_OF_MEMORY;
    for (Index i = 0; i < n; ++i) {
        if (!kept[i]) continue;
        for (Index g = 0; g < candidates; ++g)
            ++tables[(g * k + a[i * candidates + g]) * k + b[i * candidates + g]];
    }
    for (Index g = 0; g < candidates; ++g) {
        const int64_t* table = tables + g * k * k;
        double *both = pairs + 3 * g, *in_a = both + 1, *in_b = both + 2;
        *both = *in_a = *in_b = 0;
        for (Index x = 0; x < k; ++x) {
            int64_t row = 0, column = 0;
            for (Index y = 0; y < k; ++y) {
                *both += pairs_of(double(table[x * k + y]));
                row += table[x * k + y];
                column += table[y * k + x];
            }
            *in_a += pairs_of(double(row));
            *in_b += pairs_of(double(column));
        }
    }
    return DONE;
}

}}}  // namespace mnar::LEVEL
