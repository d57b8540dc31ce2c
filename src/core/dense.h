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

// --- tiles of centres -----------------------------------------------------------------------
//
// Centres into tiles: the tables that panels of rows are compared with (dense.h), in float32.
//
//     A = -2 (m_l - m_0)     G = G_l - G_0     |m_l|^2 - |m_0|^2     G_l = lam (mu_l - c)^2 - m_l^2
//
// Where only the nearest centre is asked for, scores are those of the first centre less: one centre fewer
// is to be compared, and centres that lie close together have small tables. Otherwise m_0 and G_0 are 0.
// Starts with few centres share a tile, so that enough sums run side by side.

constexpr int WIDEST = 6;         // centres of a tile: two sums each, which 16 registers just hold

constexpr double LARGEST_SQUARE = 1e37;  // of a centre: products with float32 rows stay finite

struct Tiles {
    Index groups, k, p, whole;     // whole: p in whole runs
    bool relative;                 // scores are those of the first centre less: one centre fewer to compare
    Index scored, together;        // centres of a start with a score; starts that share a tile
    Index count;                   // tiles of a start that has its own
    Index width, wider;            // centres of a tile; so many tiles have one more
    Origin origin;
    bool fills, has_gaps;          // every lam is 1; panels have gaps: G is needed
    Array<float> table;            // per tile and run of features: A of each of its centres, then G of each
    Array<float> first;            // (G scored,) |m|^2
    Rounding complete, with_gaps;  // bounds for panels without and with gaps

    Index begin(Index tile) const { return tile * width + min_of(tile, wider); }
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
          scored(k - relative), together(relative && scored <= WIDEST / 2 ? WIDEST / scored : 1),
          count((scored + WIDEST - 1) / WIDEST), width(scored / count), wider(scored % count), origin(of, centers),
          fills(true), has_gaps(true), table(2 * groups * scored * whole), first(groups * scored) {
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
            for (Index l = 0; l < scored; ++l) {
                const Place to = place(g, l);
                first[g * scored + l] =
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
                const Index stop = min_of(start + RUN, of.p);
                _Pragma("omp simd reduction(+:square, gaps, left, apart)")
                for (Index j = start; j < stop; ++j) {
                    double m = mu[j] - shift[j], D = m - base_m[j];
                    A[j] = float(-2 * D);
                    square += m * m;
                    apart += D * D;
                    if (!GAPS) continue;
                    double pull = mu[j] - centers.reference[j], cost = lam[j] * pull * pull;
                    double gap_term = may_miss[j] != 0 ? cost - m * m - base_G[j] : 0.0;
                    G[j] = float(gap_term);
                    gaps += may_miss[j] != 0 ? cost + m * m : 0.0;
                    left += gap_term < 0 ? -gap_term : gap_term;
                }
            }
            const double begins = square - base.square, size = begins < 0 ? -begins : begins;
            const double reach = 2 * __builtin_sqrt(apart), longest = 2 * __builtin_sqrt(max_of(square, base.square));
            const double heaviest = square + base.square;
            sizes.include({reach, size, longest, heaviest});
            of_gaps.include({reach, size + left, longest, heaviest + gaps + base.gaps});
            return begins;
        }
    };

    Place place(Index g, Index l) const {
        Index begins = first_start(g), tile = 0;
        if (starts_at(begins) > 1)
            return {table + 2 * whole * begins * scored + RUN * ((g - begins) * scored + l), WIDEST};
        while (begin(tile + 1) <= l) ++tile;
        Index from = begin(tile);
        return {table + 2 * whole * (g * scored + from) + RUN * (l - from), begin(tile + 1) - from};
    }
};

// --- panels against tiles -------------------------------------------------------------------

INLINE Floats smaller(Floats a, Floats b) { return a < b ? a : b; }
INLINE Floats root(Floats v) {
    for (int i = 0; i < WIDTH; ++i) v[i] = __builtin_sqrtf(v[i]);
    return v;
}

struct TwoNearest {  // of each lane of one register
    Floats best, second;
    Ints label;

    TwoNearest() : best(splat(__builtin_inff())), second(best), label(Ints{}) {}
    INLINE void begin(bool relative) {  // the first centre is 0 from itself
        if (relative) best = Floats{};
    }
    INLINE void compare(Floats score, int32_t l) {
        Ints wins = score < best;
        second = smaller(wins ? best : score, second);
        best = wins ? score : best;
        label = wins ? splat_int(l) : label;
    }
};

// OUT scores of the C centres of a tile.
template <int C, bool COMPLETE>
INLINE void score_tile(const Panel& panel, Index p, const float* table, const float* first, Ahead& ahead,
                       Floats (&scores)[C][2]) {
    constexpr bool APART = C <= 3;  // too few sums to hide the latency: the gaps get their own
    UNROLL for (int c = 0; c < C; ++c) scores[c][0] = scores[c][1] = splat(first[c]);
    for (Index start = 0; start < p; start += RUN) {
        Floats sums[C][2] = {}, gaps[C][2] = {};
        const Index stop = min_of(RUN, p - start);
        for (Index e = 0; e < stop; ++e) {
            ahead.ask();
            const Index j = start + e;
            const float *x = panel.values + j * LANES, *is = panel.gaps + j * LANES;
            Floats x0 = load<Floats>(x), x1 = load<Floats>(x + WIDTH);
            UNROLL for (int c = 0; c < C; ++c) {
                Floats a = splat(table[c * RUN + e]);
                sums[c][0] += a * x0;
                sums[c][1] += a * x1;
            }
            if (COMPLETE) continue;
            Floats is0 = load<Floats>(is), is1 = load<Floats>(is + WIDTH);
            UNROLL for (int c = 0; c < C; ++c) {
                Floats b = splat(table[(C + c) * RUN + e]);
                (APART ? gaps : sums)[c][0] += b * is0;
                (APART ? gaps : sums)[c][1] += b * is1;
            }
        }
        UNROLL for (int c = 0; c < C; ++c)
            for (int half = 0; half < 2; ++half)
                scores[c][half] += APART ? sums[c][half] + gaps[c][half] : sums[c][half];
        table += 2 * C * RUN;
    }
}

template <int C, bool COMPLETE>
INLINE void compare_tile(const Panel& panel, Index p, const float* table, const float* first,
                         Index label, Ahead& ahead, TwoNearest (&nearest)[2]) {
    Floats scores[C][2];
    score_tile<C, COMPLETE>(panel, p, table, first, ahead, scores);
    UNROLL for (int c = 0; c < C; ++c)
        for (int half = 0; half < 2; ++half) nearest[half].compare(scores[c][half], label + c);
}

template <bool COMPLETE>
INLINE void compare_all(const Panel& panel, const Tiles& tiles, const float* table,
                        const float* first, Ahead& ahead, TwoNearest (&nearest)[2]) {
    Index p = tiles.p;
    for (Index tile = 0; tile < tiles.count; ++tile) {
        Index width = tiles.begin(tile + 1) - tiles.begin(tile), label = tiles.begin(tile) + tiles.relative;
        switch (width) {
            case 1: compare_tile<1, COMPLETE>(panel, p, table, first, label, ahead, nearest); break;
            case 2: compare_tile<2, COMPLETE>(panel, p, table, first, label, ahead, nearest); break;
            case 3: compare_tile<3, COMPLETE>(panel, p, table, first, label, ahead, nearest); break;
            case 4: compare_tile<4, COMPLETE>(panel, p, table, first, label, ahead, nearest); break;
            case 5: compare_tile<5, COMPLETE>(panel, p, table, first, label, ahead, nearest); break;
            case 6: compare_tile<6, COMPLETE>(panel, p, table, first, label, ahead, nearest); break;
        }
        table += 2 * width * tiles.whole;
        first += width;
    }
}

// The starts that share a tile.
template <bool COMPLETE>
INLINE void compare_starts(const Panel& panel, const Tiles& tiles, const float* table, const float* first,
                           Ahead& ahead, TwoNearest (*nearest)[2]) {
    Floats scores[WIDEST][2];
    score_tile<WIDEST, COMPLETE>(panel, tiles.p, table, first, ahead, scores);
    for (Index start = 0, c = 0; start < tiles.together; ++start)
        for (Index l = 0; l < tiles.scored; ++l, ++c)
            for (int half = 0; half < 2; ++half)
                nearest[start][half].compare(scores[c][half], int32_t(l + tiles.relative));
}

// How much further the second centre is than the best one, at least: from a difference of squares.
INLINE Floats margin_between(const TwoNearest& it, Floats square, Floats bound, float slack) {
    Floats most = square + square * slack + bound, a = it.best + most, b = it.second + most;
    a = a > 0.0f ? a : Floats{};
    b = b > 0.0f ? b : Floats{};
    return (it.second - it.best - bound) / (root(a) + root(b));
}

// OUT labels (LANES,): the nearest centres, or UNSURE; margins (LANES,), unless null. Returns whether all
// are sure.
INLINE bool certify(const TwoNearest (&nearest)[2], const Panel& panel, const Tiles& tiles, Label* labels,
                    float* margins) {
    const Rounding& rounding = panel.complete ? tiles.complete : tiles.with_gaps;
    const float largest = 0x1p126f;
    Ints all = splat_int(-1);
    for (int half = 0; half < 2; ++half) {
        const TwoNearest& it = nearest[half];
        Floats square = load<Floats>(panel.squares + half * WIDTH);
        Floats bound = root(square) * rounding.norm + square * rounding.exact + rounding.fixed;
        // False where there is a NaN; a score that overflowed may have been any.
        Ints sure = (it.second - it.best > bound) & (it.second < largest) & (it.best > -largest);
        if (tiles.k == 1) sure = splat_int(-1);
        all &= sure;
        store(labels + half * WIDTH, it.label | ~sure);
        if (margins)
            store(margins + half * WIDTH,
                  keep(sure, margin_between(it, square, bound, 4 * UNIT * (tiles.p + 8))));
    }
    return all_set(all);
}

// OUT labels (LANES,) of start g and, if STARTS is more than 1, of those that share its tile, `stride` apart;
// margins. Returns whether all are sure.
template <Index STARTS>
inline bool label_starts(const Panel& panel, const Tiles& tiles, Index g, Ahead& requests, Label* labels,
                         Index stride, float* margins) {
    Ahead ahead = requests;  // a copy of its own can stay in registers
    TwoNearest nearest[STARTS][2];
    const float* table = tiles.table + g * 2 * tiles.scored * tiles.whole;
    const float* first = tiles.first + g * tiles.scored;
    const Index starts = STARTS > 1 ? tiles.together : 1;
    for (Index start = 0; start < starts; ++start)
        for (int half = 0; half < 2; ++half) nearest[start][half].begin(tiles.relative);
    if constexpr (STARTS > 1)
        panel.complete ? compare_starts<true>(panel, tiles, table, first, ahead, nearest)
                       : compare_starts<false>(panel, tiles, table, first, ahead, nearest);
    else
        panel.complete ? compare_all<true>(panel, tiles, table, first, ahead, nearest[0])
                       : compare_all<false>(panel, tiles, table, first, ahead, nearest[0]);
    requests = ahead;
    bool sure = true;
    for (Index start = 0; start < starts; ++start)
        sure &= certify(nearest[start], panel, tiles, labels + start * stride, margins);
    return sure;
}

struct DenseScratch {
    Array<float> panel, margins;
    Array<double> copies;  // of rows that do not lie in one piece
    Array<Label> labels;
    explicit DenseScratch(const Table& of)
        : panel(panel_size(of.p)), margins(LANES),
          copies(of.column_stride == 1 ? 0 : (BLOCK_ROWS + 2 * LANES) * of.p), labels(WIDEST * LANES) {}
    bool ok() const { return all_ok(panel, margins, copies, labels); }
};

// See ``Certified::label``.
template <class T>
Index label_dense(const Dense<T>& rows, const Tiles& tiles, const Panels* kept, DenseScratch& scratch,
                  const RowBlock& block) {
    const Index *chosen = block.rows, count = block.count, room = block.stride;
    float* margins = block.margins;
    Index p = rows.p, unsure = 0;
    Reading<T> how;
    tiles.origin.reading(tiles.fills, rows.missing, how);
    const T* at[BLOCK_ROWS + 2 * LANES];  // the rows that follow fill the last panel, and are next
    T* copies = reinterpret_cast<T*>(scratch.copies.get());
    for (Index e = 0; !kept && e < count; ++e) at[e] = rows.row(chosen[e], copies + e * p);
    for (Index e = count; !kept && e < count + 2 * LANES; ++e)
        at[e] = rows.row(min_of(chosen[count - 1] + 1 + e - count, rows.n - 1), copies + e * p);
    for (Index e = 0; e < count; e += LANES) {
        Panel panel = kept ? kept->panel(chosen[0] + e) : Panel(scratch.panel, p);
        Ahead ahead = kept || !rows.is_contiguous()
                          ? Ahead::nothing()
                          : Ahead::over(reinterpret_cast<const char* const*>(at) + e + LANES,
                                        p * Index(sizeof(T)), p * (2 + tiles.count * tiles.groups));
        if (!kept) fill_panel(at + e, p, how, ahead, panel);
        Index used = min_of(LANES, count - e);
        for (Index g = 0; g < tiles.groups; g += tiles.starts_at(g)) {
            bool wanted = margins && g == tiles.groups - 1, whole = used == LANES;
            Label* to = block.nearest + g * room + e;
            float* apart = wanted ? whole ? margins + e : scratch.margins.get() : nullptr;
            Label* labels = whole ? to : scratch.labels.get();
            Index stride = whole ? room : LANES;
            bool sure = tiles.starts_at(g) > 1 ? label_starts<WIDEST>(panel, tiles, g, ahead, labels, stride, apart)
                                               : label_starts<1>(panel, tiles, g, ahead, labels, stride, apart);
            if (wanted && !whole) memcpy(margins + e, apart, sizeof(float) * used);
            for (Index start = 0; start < tiles.starts_at(g); ++start, to += room) {
                if (!whole) memcpy(to, scratch.labels + start * LANES, sizeof(Label) * used);
                for (Index r = 0; !sure && r < used; ++r) unsure += to[r] == UNSURE;
            }
        }
    }
    return unsure;
}

}}}  // namespace mnar::LEVEL
