// Centres into tiles: the tables that panels of rows are compared with (dense.h), in float32.
//
//     A = -2 (m_l - m_0)     G = G_l - G_0     |m_l|^2 - |m_0|^2     G_l = lam (mu_l - c)^2 - m_l^2
//
// Where only the nearest centre is asked for, scores are those of the first centre less: one centre fewer
// is to be compared, and centres that lie close together have small tables. Otherwise m_0 and G_0 are 0.
// Starts with few centres share a tile, so that enough sums run side by side.
#pragma once
#include "panels.h"
#include "rounding.h"

namespace mnar { namespace LEVEL { namespace {

constexpr int WIDEST = 6;         // centres of a tile: two sums each, which 16 registers just hold

constexpr double LARGEST_SQUARE = 1e37;  // of a centre: products with float32 rows stay finite

struct Tiles {
    Index groups, k, p, whole;     // whole: p in whole runs
    bool relative;                 // scores are those of the first centre less: one centre fewer to compare
    Index shown, together;         // centres of a start with a score; starts that share a tile
    Index count;                   // tiles of a start that has its own
    Index width, wider;            // centres of a tile; so many tiles have one more
    Origin origin;
    bool fills, has_gaps;          // every lam is 1; panels show gaps: G is needed
    Array<float> table;            // per tile and run of features: A of each of its centres, then G of each
    Array<float> first;            // (G shown,) |m|^2
    Rounding complete, with_gaps;  // bounds for panels without and with gaps

    Index begin(Index tile) const { return tile * width + least(tile, wider); }
    Index starts_at(Index g) const { return g + together <= groups ? together : 1; }
    Index first_start(Index g) const {  // of those that share a tile with start g
        Index begin = g / together * together;
        return starts_at(begin) > 1 ? begin : g;
    }
    bool ok() const { return all_ok(origin, table, first); }

    // wants_margins: the distance of the nearest centre itself is asked for. kept: panels made before,
    // for these centres and for others.
    Tiles(const Table& of, const Centers& centers, bool wants_margins, const Panels* kept)
        : groups(centers.groups), k(centers.k), p(of.p), whole((p + RUN - 1) / RUN * RUN),
          relative(k > 1 && !wants_margins),
          shown(k - relative), together(relative && shown <= WIDEST / 2 ? WIDEST / shown : 1),
          count((shown + WIDEST - 1) / WIDEST), width(shown / count), wider(shown % count), origin(of, centers),
          fills(true), has_gaps(true), table(2 * groups * shown * whole), first(groups * shown) {
        if (!ok()) return;
        for (Index j = 0; j < groups * p; ++j) fills = fills && centers.lam[j] == 1.0;
        has_gaps = kept ? !kept->fills : !fills;
        Array<double> scratch(3 * p);
        if (!scratch.ok()) {
            complete.fixed = with_gaps.fixed = __builtin_inff();  // nothing is certain
            return;
        }
        const Column column{of, centers, origin.shift, scratch, scratch + p, scratch + 2 * p};
        for (Index j = 0; j < p; ++j) column.may_miss[j] = !of.has_gaps || of.has_gaps[j] ? 1.0 : 0.0;
        Sizes sizes, sizes_of_gaps;
        for (Index g = 0; g < groups; ++g) {
            const Weight base = column.set_base(g, relative);
            for (Index l = 0; l < shown; ++l) {
                const Place to = place(g, l);
                first[g * shown + l] =
                    float(has_gaps ? column.fill<true>(g, l + relative, base, to, sizes, sizes_of_gaps)
                                   : column.fill<false>(g, l + relative, base, to, sizes, sizes_of_gaps));
            }
        }
        complete = Rounding(p, sizes);
        with_gaps = Rounding(2 * p, sizes_of_gaps);
        // A score that overflows may become NaN, which never wins: then nothing is certain.
        if (!(sizes_of_gaps.heaviest < LARGEST_SQUARE)) complete.fixed = with_gaps.fixed = __builtin_inff();
    }

  private:
    struct Weight {  // of a centre: |m|^2, and what gaps would cost and take away
        double square, gaps;
    };

    struct Place {  // of a centre in the table: where its A begin, and how many share the tile
        float* A;
        Index columns;
    };

    // A and G of one centre less those of the centre it is compared with.
    struct Column {
        const Table& of;
        const Centers& centers;
        const double* shift;
        double *base_m, *base_G, *may_miss;

        // OUT base_m, base_G: of the first centre of start g, or 0.
        Weight set_base(Index g, bool relative) const {
            const Index p = of.p;
            const double *mu = centers.mu + g * centers.k * p, *lam = centers.lam + g * p, *c = centers.reference;
            double square = 0, gaps = 0;
            _Pragma("omp simd reduction(+:square, gaps)")
            for (Index j = 0; j < p; ++j) {
                double m = relative ? mu[j] - shift[j] : 0.0, pull = relative ? mu[j] - c[j] : 0.0;
                double cost = lam[j] * pull * pull;
                base_m[j] = m;
                base_G[j] = may_miss[j] != 0 ? cost - m * m : 0.0;
                square += m * m;
                gaps += may_miss[j] != 0 ? cost + m * m : 0.0;
            }
            return {square, gaps};
        }
        // OUT A and, if there are gaps, G; INOUT sizes without and with gaps. Returns what the score
        // begins with.
        template <bool GAPS>
        double fill(Index g, Index l, const Weight& base, const Place& to, Sizes& sizes, Sizes& of_gaps) const {
            const double *mu = centers.mu + (g * centers.k + l) * of.p, *lam = centers.lam + g * of.p;
            double square = 0, gaps = 0, left = 0, apart = 0;
            for (Index start = 0; start < of.p; start += RUN) {
                float *A = to.A + 2 * to.columns * start - start, *G = A + to.columns * RUN;
                const Index stop = least(start + RUN, of.p);
                _Pragma("omp simd reduction(+:square, gaps, left, apart)")
                for (Index j = start; j < stop; ++j) {
                    double m = mu[j] - shift[j], D = m - base_m[j];
                    A[j] = float(-2 * D);
                    square += m * m;
                    apart += D * D;
                    if (!GAPS) continue;
                    double pull = mu[j] - centers.reference[j], cost = lam[j] * pull * pull;
                    double own = may_miss[j] != 0 ? cost - m * m - base_G[j] : 0.0;
                    G[j] = float(own);
                    gaps += may_miss[j] != 0 ? cost + m * m : 0.0;
                    left += own < 0 ? -own : own;
                }
            }
            const double begins = square - base.square, size = begins < 0 ? -begins : begins;
            const double reach = 2 * __builtin_sqrt(apart), longest = 2 * __builtin_sqrt(larger(square, base.square));
            const double heaviest = square + base.square;
            sizes.include(reach, size, longest, heaviest);
            of_gaps.include(reach, size + left, longest, heaviest + gaps + base.gaps);
            return begins;
        }
    };

    Place place(Index g, Index l) const {
        Index begins = first_start(g), tile = 0;
        if (starts_at(begins) > 1)
            return {table + 2 * whole * begins * shown + RUN * ((g - begins) * shown + l), WIDEST};
        while (begin(tile + 1) <= l) ++tile;
        Index from = begin(tile);
        return {table + 2 * whole * (g * shown + from) + RUN * (l - from), begin(tile + 1) - from};
    }
};

}}}  // namespace mnar::LEVEL
