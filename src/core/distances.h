// The losses of many dense rows at every centre: each row in a lane of a vector, float64.
//
//     d_il = sum_j  (x_ij - mu_lj)^2 where observed,  lam_j (mu_lj - c_j)^2 in gaps,   in the order of j
//
// The bits are those of ``distances_of`` (rows.h), which takes a row at a time with its centres in the
// lanes: there ten centres cost as much as sixteen, here as much as ten.
#pragma once
#include "rows.h"

namespace mnar { namespace LEVEL { namespace {

constexpr Index ROWS_IN_LANES = 2 * HALF;
constexpr int MOST_CENTERS = 6;  // whose sums stay in registers

INLINE Doubles root(Doubles v) {
    for (int i = 0; i < HALF; ++i) v[i] = __builtin_sqrt(v[i]);
    return v;
}

// ROWS_IN_LANES dense rows transposed, NaN in gaps, and their losses.
struct InLanes {
    Array<double> x, losses;  // (p, ROWS_IN_LANES); (k, ROWS_IN_LANES)
    InLanes(Index p, Index k) : x(p * ROWS_IN_LANES), losses(k * ROWS_IN_LANES) {}
    bool ok() const { return all_ok(x, losses); }

    // The rows i .. i + count; the last one again where there are fewer.
    template <class T> void read(const Dense<T>& rows, Index i, Index count) {
        for (Index r = 0; r < ROWS_IN_LANES; ++r) {
            const T* at = rows.values + (i + least(r, count - 1)) * rows.row_stride;
            for (Index j = 0; j < rows.p; ++j) {
                double value = at[j * rows.column_stride];
                x[j * ROWS_IN_LANES + r] = value == rows.missing ? __builtin_nan("") : value;
            }
        }
    }
    // OUT losses at all centres, or their square roots.
    void meet(const Direct& direct, bool roots) {
        for (Index l = 0; l < direct.k; l += MOST_CENTERS) meet_some<MOST_CENTERS>(direct, l, roots);
    }

  private:
    template <int C> void meet_some(const Direct& direct, Index l, bool roots) {
        if constexpr (C > 1)
            if (direct.k - l < C) return meet_some<C - 1>(direct, l, roots);
        const double *mu = direct.mu + l, *gap = direct.gap + l, *at = x;
        Doubles sums[C][2] = {};
        for (Index j = 0; j < direct.p; ++j, mu += direct.room, gap += direct.room, at += ROWS_IN_LANES) {
            const Doubles both[2] = {load<Doubles>(at), load<Doubles>(at + HALF)};
            UNROLL for (int c = 0; c < C; ++c)
                UNROLL for (int half = 0; half < 2; ++half) {
                    Doubles away = both[half] - splat(mu[c]), near = away * away;
                    sums[c][half] += near == near ? near : splat(gap[c]);
                }
        }
        for (int c = 0; c < C; ++c)
            for (int half = 0; half < 2; ++half)
                store(losses + (l + c) * ROWS_IN_LANES + half * HALF, roots ? root(sums[c][half]) : sums[c][half]);
    }
};

}}}  // namespace mnar::LEVEL
