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
#include "tiles.h"

namespace mnar { namespace LEVEL { namespace {

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
        const Index stop = least(RUN, p - start);
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
        for (Index l = 0; l < tiles.shown; ++l, ++c)
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
    const float* table = tiles.table + g * 2 * tiles.shown * tiles.whole;
    const float* first = tiles.first + g * tiles.shown;
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
          copies(of.column_stride == 1 ? 0 : (STRETCH + 2 * LANES) * of.p), labels(WIDEST * LANES) {}
    bool ok() const { return all_ok(panel, margins, copies, labels); }
};

// See ``Certified::label``.
template <class T>
Index label_dense(const Dense<T>& rows, const Tiles& tiles, const Panels* kept, DenseScratch& scratch,
                  const Stretch& stretch) {
    const Index *chosen = stretch.rows, count = stretch.count, room = stretch.stride;
    float* margins = stretch.margins;
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
        for (Index g = 0; g < tiles.groups; g += tiles.starts_at(g)) {
            bool wanted = margins && g == tiles.groups - 1, whole = used == LANES;
            Label* to = stretch.nearest + g * room + e;
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
