// Dense rows on panels: many rows at once, each in its own lane of a vector.
//
//     d_il - |x'_i|^2 = |m_l|^2 + sum_{j observed} -2 m_lj x'_ij + sum_{j missing} G_lj
//     x' = x - shift,   m = mu - shift,   G = lam (mu - c)^2 - m^2
//
// A *panel* (panels.h) holds LANES rows transposed, in float32: values[j] (0 in gaps) and gaps[j] (1 in
// gaps). A *tile* of up to WIDEST centres then costs two multiply-adds per centre and feature for all rows
// of the panel together, and the two smallest scores are found lane by lane. Rows without gaps need
// only the first product; so do all where lam is 1: there a gap counts as the reference observed,
// and is filled with it. A feature of which no row has a gap has G = 0: what gaps would cost there
// is not added to be taken away again.
//
// Rounding to float32 moves a score by no more than a bound computed along with it. A row whose two
// smallest scores lie closer is UNSURE.
#pragma once
#include "panels.h"
#include "rounding.h"

namespace mnar { namespace LEVEL { namespace {

constexpr int WIDEST = 6;         // centres of a tile: two sums each, which 16 registers just hold

// --- centres into tiles -----------------------------------------------------------------------

constexpr double LARGEST_SQUARE = 1e37;  // of a centre: products with float32 rows stay finite

struct Tiles {
    Index groups, k, p, count;     // tiles per start
    Index width, wider;            // centres of a tile; so many tiles have one more
    Origin origin;
    bool fills;                    // every lam is 1
    Array<float> table;            // per tile and feature: -2 m of the tile's centres, then their G
    Array<float> first;            // (G k,) |m|^2
    Rounding complete, with_gaps;  // bounds for panels without and with gaps

    Index begin(Index tile) const { return tile * width + least(tile, wider); }
    bool ok() const { return all_ok(origin, table, first); }

    Tiles(const Table& of, const Centers& centers)
        : groups(centers.groups), k(centers.k), p(of.p), count((k + WIDEST - 1) / WIDEST),
          width(k / count), wider(k % count), origin(of, centers), fills(true), table(2 * groups * k * p), first(groups * k) {
        if (!ok()) return;
        for (Index j = 0; j < groups * p; ++j) fills = fills && centers.lam[j] == 1.0;
        double longest = 0, heaviest = 0, heaviest_gaps = 0;
        float* to = table;
        for (Index g = 0; g < groups; ++g)
            for (Index tile = 0; tile < count; ++tile) {
                Index from = begin(tile), width = begin(tile + 1) - from;
                for (Index l = 0; l < width; ++l) {
                    Index t = g * k + from + l;
                    const double *mu = centers.mu + t * p, *lam = centers.lam + g * p;
                    double square = 0, gaps = 0;
                    for (Index j = 0; j < p; ++j) {
                        double m = mu[j] - origin.shift[j], pull = mu[j] - centers.reference[j];
                        bool may_miss = !of.has_gaps || of.has_gaps[j];
                        double G = may_miss ? lam[j] * pull * pull - m * m : 0.0;
                        to[2 * width * j + l] = float(-2 * m);
                        to[2 * width * j + width + l] = float(G);
                        square += m * m;
                        // What either term may have been rounded by, not what is left of them.
                        gaps += may_miss ? lam[j] * pull * pull + m * m : 0.0;
                    }
                    first[t] = float(square);
                    longest = larger(longest, square);
                    heaviest = larger(heaviest, square);
                    heaviest_gaps = larger(heaviest_gaps, square + gaps);
                }
                to += 2 * width * p;
            }
        complete = Rounding(p, 2 * __builtin_sqrt(longest), heaviest);
        with_gaps = Rounding(2 * p, 2 * __builtin_sqrt(longest), heaviest_gaps);
        // A score that overflows may become NaN, which never wins: then nothing is certain.
        if (!(larger(longest, heaviest_gaps) < LARGEST_SQUARE))
            complete.fixed = with_gaps.fixed = __builtin_inff();
    }
};

// --- comparing --------------------------------------------------------------------------------

INLINE Floats smaller(Floats a, Floats b) { return a < b ? a : b; }
INLINE Floats root(Floats v) {
    for (int i = 0; i < WIDTH; ++i) v[i] = __builtin_sqrtf(v[i]);
    return v;
}

struct TwoNearest {  // of each lane of one register
    Floats best, second;
    Ints label;

    TwoNearest() : best(splat(__builtin_inff())), second(best), label(Ints{}) {}
    INLINE void compare(Floats score, int32_t l) {
        Ints wins = score < best;
        second = smaller(wins ? best : score, second);
        best = wins ? score : best;
        label = wins ? splat_int(l) : label;
    }
};

template <int C, bool COMPLETE>
INLINE void compare_tile(const Panel& panel, Index p, const float* table, const float* first,
                         Index label, Ahead& ahead, TwoNearest (&nearest)[2]) {
    constexpr bool APART = C <= 3;  // too few sums to hide the latency: the gaps get their own
    Floats scores[C][2];
    UNROLL for (int c = 0; c < C; ++c) scores[c][0] = scores[c][1] = splat(first[c]);
    for (Index start = 0; start < p; start += RUN) {
        Floats sums[C][2] = {}, gaps[C][2] = {};
        for (Index j = start; j < least(start + RUN, p); ++j, table += 2 * C) {
            ahead.ask();
            const float *x = panel.values + j * LANES, *is = panel.gaps + j * LANES;
            Floats x0 = load<Floats>(x), x1 = load<Floats>(x + WIDTH);
            UNROLL for (int c = 0; c < C; ++c) {
                Floats a = splat(table[c]);
                sums[c][0] += a * x0;
                sums[c][1] += a * x1;
            }
            if (COMPLETE) continue;
            Floats is0 = load<Floats>(is), is1 = load<Floats>(is + WIDTH);
            UNROLL for (int c = 0; c < C; ++c) {
                Floats b = splat(table[C + c]);
                (APART ? gaps : sums)[c][0] += b * is0;
                (APART ? gaps : sums)[c][1] += b * is1;
            }
        }
        UNROLL for (int c = 0; c < C; ++c)
            for (int half = 0; half < 2; ++half)
                scores[c][half] += APART ? sums[c][half] + gaps[c][half] : sums[c][half];
    }
    UNROLL for (int c = 0; c < C; ++c)
        for (int half = 0; half < 2; ++half) nearest[half].compare(scores[c][half], label + c);
}

template <bool COMPLETE>
INLINE void compare_all(const Panel& panel, const Tiles& tiles, const float* table,
                        const float* first, Ahead& ahead, TwoNearest (&nearest)[2]) {
    Index p = tiles.p;
    for (Index tile = 0; tile < tiles.count; ++tile) {
        Index label = tiles.begin(tile), width = tiles.begin(tile + 1) - label;
        switch (width) {
            case 1: compare_tile<1, COMPLETE>(panel, p, table, first, label, ahead, nearest); break;
            case 2: compare_tile<2, COMPLETE>(panel, p, table, first, label, ahead, nearest); break;
            case 3: compare_tile<3, COMPLETE>(panel, p, table, first, label, ahead, nearest); break;
            case 4: compare_tile<4, COMPLETE>(panel, p, table, first, label, ahead, nearest); break;
            case 5: compare_tile<5, COMPLETE>(panel, p, table, first, label, ahead, nearest); break;
            case 6: compare_tile<6, COMPLETE>(panel, p, table, first, label, ahead, nearest); break;
        }
        table += 2 * width * p;
        first += width;
    }
}

// How much further the second centre is than the best one, at least: from a difference of squares.
INLINE Floats margin_between(const TwoNearest& it, Floats square, Floats bound, float slack) {
    Floats most = square + square * slack + bound, a = it.best + most, b = it.second + most;
    a = a > 0.0f ? a : Floats{};
    b = b > 0.0f ? b : Floats{};
    return (it.second - it.best - bound) / (root(a) + root(b));
}

// OUT labels (LANES,): the best centre of start g, or UNSURE; margins (LANES,), unless null.
inline void label_panel(const Panel& panel, const Tiles& tiles, Index g, Ahead& requests, Label* labels,
                        float* margins) {
    Ahead ahead = requests;  // a copy of its own can stay in registers
    const float largest = 0x1p126f;
    TwoNearest nearest[2];
    const float* table = tiles.table + g * 2 * tiles.k * tiles.p;
    const float* first = tiles.first + g * tiles.k;
    const Rounding& rounding = panel.complete ? tiles.complete : tiles.with_gaps;
    if (panel.complete)
        compare_all<true>(panel, tiles, table, first, ahead, nearest);
    else
        compare_all<false>(panel, tiles, table, first, ahead, nearest);
    requests = ahead;
    for (int half = 0; half < 2; ++half) {
        TwoNearest& it = nearest[half];
        Floats square = load<Floats>(panel.squares + half * WIDTH);
        Floats bound = root(square) * rounding.norm + square * rounding.exact + rounding.fixed;
        // False where there is a NaN; a score that overflowed may have been any.
        Ints sure = (it.second - it.best > bound) & (it.second < largest) & (it.best > -largest);
        store(labels + half * WIDTH, tiles.k > 1 ? it.label | ~sure : it.label & 0);
        if (margins)
            store(margins + half * WIDTH,
                  keep(sure, margin_between(it, square, bound, 4 * UNIT * (tiles.p + 8))));
    }
}

struct DenseScratch {
    Array<float> panel, margins;
    Array<double> copies;  // of rows that do not lie in one piece
    Array<Label> labels;
    explicit DenseScratch(const Table& of)
        : panel(panel_size(of.p)), margins(LANES),
          copies(of.column_stride == 1 ? 0 : (STRETCH + 2 * LANES) * of.p), labels(LANES) {}
    bool ok() const { return all_ok(panel, margins, copies, labels); }
};

// See ``Certified::label``.
template <class T>
Index label_dense(const Dense<T>& rows, const Tiles& tiles, const Panels* kept, DenseScratch& scratch,
                  const Index* chosen, Index count, Label* nearest, Index room, float* margins) {
    Index p = rows.p, unsure = 0;
    Reading<T> how;
    tiles.origin.reading(tiles.fills, rows.missing, how);
    const T* at[STRETCH + 2 * LANES];  // the rows that follow fill the last panel, and are next
    T* copies = reinterpret_cast<T*>(scratch.copies.get());
    for (Index e = 0; !kept && e < count; ++e) at[e] = rows.row(chosen[e], copies + e * p);
    for (Index e = count; !kept && e < count + 2 * LANES; ++e)
        at[e] = rows.row(least(chosen[count - 1] + 1 + e - count, rows.n - 1), copies + e * p);
    for (Index e = 0; e < count; e += LANES) {
        Panel panel = kept ? kept->panel(chosen[0] + e) : Panel(scratch.panel, p);
        Ahead ahead = kept || !rows.is_contiguous()
                          ? Ahead::nothing()
                          : Ahead::over(reinterpret_cast<const char* const*>(at) + e + LANES,
                                        p * Index(sizeof(T)), p * (2 + tiles.count * tiles.groups));
        if (!kept) fill_panel(at + e, p, how, ahead, panel);
        Index used = least(LANES, count - e);
        for (Index g = 0; g < tiles.groups; ++g) {
            bool wanted = margins && g == tiles.groups - 1;
            Label *to = nearest + g * room + e, *labels = used == LANES ? to : scratch.labels.get();
            float* apart = wanted && used == LANES ? margins + e : scratch.margins.get();
            label_panel(panel, tiles, g, ahead, labels, wanted ? apart : nullptr);
            if (used < LANES) {
                memcpy(to, labels, sizeof(Label) * used);
                if (wanted) memcpy(margins + e, apart, sizeof(float) * used);
            }
            for (Index r = 0; r < used; ++r) unsure += to[r] == UNSURE;
        }
    }
    return unsure;
}

}}}  // namespace mnar::LEVEL
