// Dense rows on panels: many rows at once, each in its own lane of a vector.
//
//     d_il - |x'_i|^2 = |m_l|^2 + sum_{j observed} -2 m_lj x'_ij + sum_{j missing} G_lj
//     x' = x - shift,   m = mu - shift,   G = lam (mu - c)^2 - m^2
//
// A *panel* holds LANES rows transposed, in float32: values[j] (0 in gaps) and gaps[j] (1 in gaps).
// A *tile* of up to WIDEST centres then costs two multiply-adds per centre and feature for all rows
// of the panel together, and the two smallest scores are found lane by lane. Rows without gaps need
// only the first product; so do all where lam is 1: there a gap counts as the reference observed,
// and is filled with it. A feature of which no row has a gap has G = 0: what gaps would cost there
// is not added to be taken away again.
//
// Rounding to float32 moves a score by no more than a bound computed along with it. A row whose two
// smallest scores lie closer is UNSURE.
#pragma once
#include "certified.h"
#include "rounding.h"
#include "rows.h"

namespace mnar { namespace LEVEL { namespace {

constexpr int LANES = 2 * WIDTH;  // rows of a panel: two registers per centre hide the latency
constexpr int WIDEST = 6;         // centres of a tile: two sums each, which 16 registers just hold

typedef float Floats4 __attribute__((vector_size(16)));
typedef float Floats8 __attribute__((vector_size(32)));
typedef double Doubles4 __attribute__((vector_size(32)));
typedef double Doubles8 __attribute__((vector_size(64)));

INLINE Index panel_size(Index p) { return (2 * p + 1) * LANES; }

struct Panel {                      // a view
    float *values, *gaps, *squares;  // (p, LANES) twice, (LANES,): |x'|^2
    bool complete;                  // nothing is missing, or what was has been filled
    Panel(float* at, Index p)
        : values(at), gaps(at + p * LANES), squares(at + 2 * p * LANES), complete(false) {}
};

// --- rows into panels -------------------------------------------------------------------------

#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Ints{__VA_ARGS__})
#endif
#if defined(__AVX512F__)
#define EACH_QUAD(w, x, y, z) w, x, y, z, w + 4, x + 4, y + 4, z + 4, w + 8, x + 8, y + 8, z + 8, \
                              w + 12, x + 12, y + 12, z + 12
#elif defined(__AVX2__)
#define EACH_QUAD(w, x, y, z) w, x, y, z, w + 4, x + 4, y + 4, z + 4
#else
#define EACH_QUAD(w, x, y, z) w, x, y, z
#endif

// How rows are brought into panels: the shift, and what gaps are filled with where lam is 1. Both have
// room for whole blocks of eight.
struct Reading {
    const double* shift;
    const float* filling;  // or null: gaps are masked
    double missing;
};

INLINE Index whole_eights(Index p) { return (p + EIGHT - 1) / EIGHT * EIGHT; }

// Eight entries of a row less their shifts, as float32; NaN in gaps.
template <bool CODED, class T>
INLINE Floats8 read_eight(const T* x, const double* shift, double missing) {
    const double gap = __builtin_nan("");
#if defined(__AVX512F__)
    typedef T Eight __attribute__((vector_size(8 * sizeof(T))));
    Doubles8 all = __builtin_convertvector(load<Eight>(x), Doubles8);
    if (CODED) all = all == missing ? Doubles8{} + gap : all;
    return __builtin_convertvector(all - load<Doubles8>(shift), Floats8);
#else
    typedef T Four __attribute__((vector_size(4 * sizeof(T))));
    Doubles4 low = __builtin_convertvector(load<Four>(x), Doubles4);
    Doubles4 high = __builtin_convertvector(load<Four>(x + 4), Doubles4);
    if (CODED) low = low == missing ? Doubles4{} + gap : low;
    if (CODED) high = high == missing ? Doubles4{} + gap : high;
    Floats4 a = __builtin_convertvector(low - load<Doubles4>(shift), Floats4);
    Floats4 b = __builtin_convertvector(high - load<Doubles4>(shift + 4), Floats4);
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
}

// The 4 x 4 matrices in the quads of four vectors, each transposed.
INLINE void transpose_quads(Floats* v) {
    constexpr int W = WIDTH;
    Floats ab = SHUFFLE(v[0], v[1], EACH_QUAD(0, W, 1, W + 1));
    Floats ab2 = SHUFFLE(v[0], v[1], EACH_QUAD(2, W + 2, 3, W + 3));
    Floats cd = SHUFFLE(v[2], v[3], EACH_QUAD(0, W, 1, W + 1));
    Floats cd2 = SHUFFLE(v[2], v[3], EACH_QUAD(2, W + 2, 3, W + 3));
    v[0] = SHUFFLE(ab, cd, EACH_QUAD(0, 1, W, W + 1));
    v[1] = SHUFFLE(ab, cd, EACH_QUAD(2, 3, W + 2, W + 3));
    v[2] = SHUFFLE(ab2, cd2, EACH_QUAD(0, 1, W, W + 1));
    v[3] = SHUFFLE(ab2, cd2, EACH_QUAD(2, 3, W + 2, W + 3));
}

// OUT columns (8,) of one register of rows: quads of four rows next to each other, then transposed.
INLINE void transpose_rows(const Floats8 (&rows)[WIDTH], Floats (&columns)[EIGHT]) {
    UNROLL for (int i = 0; i < 4; ++i) {
#if defined(__AVX512F__)
        Floats low = SHUFFLE(rows[i], rows[i + 4], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        Floats high = SHUFFLE(rows[i + 8], rows[i + 12], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        columns[i] = SHUFFLE(low, high, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
        columns[i + 4] = SHUFFLE(low, high, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
#elif defined(__AVX2__)
        columns[i] = SHUFFLE(rows[i], rows[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        columns[i + 4] = SHUFFLE(rows[i], rows[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
#else
        columns[i] = __builtin_shufflevector(rows[i], rows[i], 0, 1, 2, 3);
        columns[i + 4] = __builtin_shufflevector(rows[i], rows[i], 4, 5, 6, 7);
#endif
    }
    transpose_quads(columns);
    transpose_quads(columns + 4);
}

INLINE bool all_set(Ints v) {
    int32_t every = -1;
    for (int i = 0; i < WIDTH; ++i) every &= v[i];
    return every != 0;
}

// The rows of the next panel are asked for bit by bit, while this one is filled and compared: evenly,
// since memory takes only so many requests at a time.
struct Ahead {
    const char *next, *stop;  // what is left of this row, or of all where one follows the other
    const char* const* rows;  // the rows still to come
    Index left, bytes, burst;

    // Requests for the LANES rows at `at`, of so many bytes each, spread over so many steps.
    static Ahead over(const char* const* at, Index bytes, Index steps) {
        Index lines = LANES * ((bytes + CACHE_LINE - 1) / CACHE_LINE);
        bool together = at[LANES - 1] - at[0] == (LANES - 1) * bytes;
        return {at[0], at[0] + (together ? LANES * bytes : bytes), at + 1, together ? 0 : LANES - 1, bytes,
                (lines + steps - 1) / steps};
    }
    static Ahead nothing() { return {nullptr, nullptr, nullptr, 0, 0, 1}; }

    INLINE void ask() {
        for (Index request = 0; request < burst; ++request) {
            if (next >= stop) {
                if (left == 0) return;
                --left;
                next = *rows++;
                stop = next + bytes;
            }
            __builtin_prefetch(next, 0, 2);  // into the second cache: the panel needs the first
            next += CACHE_LINE;
        }
    }
};

// OUT the panel of the rows at `at`. A row may be read up to `end`, beyond its own.
template <bool CODED, bool FILLS, class T>
inline void fill_as(const T* const* at, const T* end, Index p, const Reading& how, Ahead& requests,
                    Panel& panel) {
    Ahead ahead = requests;  // a copy of its own can stay in registers
    Ints seen = splat_int(-1);
    for (int half = 0; half < LANES; half += WIDTH) {
        Floats squares = {};
        for (Index j = 0; j < p; j += EIGHT) {
            const Index count = least(EIGHT, p - j);
            Floats8 rows[WIDTH];
            for (Index c = 0; c < count; ++c) ahead.ask();
            if (count == EIGHT) {
                UNROLL for (int r = 0; r < WIDTH; ++r)
                    rows[r] = read_eight<CODED>(at[half + r] + j, how.shift + j, how.missing);
            } else {
                for (int r = 0; r < WIDTH; ++r) {
                    const T* from = at[half + r] + j;
                    T copy[EIGHT] = {};
                    if (end - from < EIGHT) {
                        for (Index c = 0; c < count; ++c) copy[c] = from[c];
                        from = copy;
                    }
                    rows[r] = read_eight<CODED>(from, how.shift + j, how.missing);
                }
            }
            Floats columns[EIGHT];
            transpose_rows(rows, columns);
            auto put = [&](Index c) INLINE_LAMBDA {
                Ints is = columns[c] == columns[c];
                Floats value = keep(is, columns[c]);
                if (FILLS) value = is ? columns[c] : splat(how.filling[j + c]);
                store(panel.values + (j + c) * LANES + half, value);
                if (!FILLS) store(panel.gaps + (j + c) * LANES + half, keep(~is, splat(1.0f)));
                if (!FILLS) seen &= is;
                squares += value * value;
            };
            if (count == EIGHT) {
                UNROLL for (Index c = 0; c < EIGHT; ++c) put(c);
            } else {
                for (Index c = 0; c < count; ++c) put(c);
            }
        }
        store(panel.squares + half, squares);
    }
    panel.complete = all_set(seen);
    requests = ahead;
}

template <class T>
INLINE void fill_panel(const T* const* at, const T* end, Index p, const Reading& how, Ahead& ahead,
                       Panel& panel) {
    bool coded = how.missing == how.missing;
    if (how.filling)
        coded ? fill_as<true, true>(at, end, p, how, ahead, panel)
              : fill_as<false, true>(at, end, p, how, ahead, panel);
    else
        coded ? fill_as<true, false>(at, end, p, how, ahead, panel)
              : fill_as<false, false>(at, end, p, how, ahead, panel);
}

// --- centres into tiles -----------------------------------------------------------------------

// What rows are measured from, and the reference measured from there, in whole blocks of eight.
struct Origin {
    Array<double> shift;
    Array<float> reference;
    Origin(const Centers& centers, Index p) : shift(whole_eights(p), 0.0), reference(whole_eights(p), 0.0f) {
        for (Index j = 0; ok() && j < p; ++j) {
            shift[j] = centers.shift[j];
            reference[j] = float(centers.reference[j] - centers.shift[j]);
        }
    }
    bool ok() const { return all_ok(shift, reference); }
    Reading reading(bool fills, double missing) const {
        return {shift, fills ? reference.get() : nullptr, missing};
    }
};

struct Tiles {
    Index groups, k, p, count;     // tiles per start
    Origin origin;
    bool fills;                    // every lam is 1
    Array<float> table;            // per tile and feature: -2 m of the tile's centres, then their G
    Array<float> first;            // (G k,) |m|^2
    Rounding complete, with_gaps;  // bounds for panels without and with gaps

    Index begin(Index tile) const { return tile * k / count; }
    bool ok() const { return all_ok(origin, table, first); }

    Tiles(const Table& of, const Centers& centers)
        : groups(centers.groups), k(centers.k), p(of.p), count((k + WIDEST - 1) / WIDEST),
          origin(centers, p), fills(true), table(2 * groups * k * p), first(groups * k) {
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
                        double m = mu[j] - centers.shift[j], pull = mu[j] - centers.reference[j];
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
    }
};

// The panels of a whole small table.
struct Panels {
    Index p, size;
    Origin origin;
    bool fills;
    Array<float> panels;
    Array<bool> complete;

    Panels(const Table& of, const Centers& centers, bool fills)
        : p(of.p), size(panel_size(p)), origin(centers, p), fills(fills),
          panels((of.n + LANES - 1) / LANES * size), complete((of.n + LANES - 1) / LANES) {}
    bool ok() const { return all_ok(origin, panels, complete); }

    // copies (LANES, p): scratch.
    template <class T> void fill(const Dense<T>& rows, T* copies) {
        Ahead ahead = Ahead::nothing();
        for (Index e = 0; e < rows.n; e += LANES) {
            const T* at[LANES];
            for (Index r = 0; r < LANES; ++r) at[r] = rows.row(least(e + r, rows.n - 1), copies + r * p);
            Panel panel(panels + e / LANES * size, p);
            const T* end = rows.is_contiguous() ? rows.end() : copies + LANES * p;
            fill_panel(at, end, p, origin.reading(fills, rows.missing), ahead, panel);
            complete[e / LANES] = panel.complete;
        }
    }
    Panel panel(Index row) const {
        Panel panel(panels + row / LANES * size, p);
        panel.complete = complete[row / LANES];
        return panel;
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
    const float inf = __builtin_inff(), largest = 0x1p126f;
    TwoNearest nearest[2] = {{splat(inf), splat(inf), Ints{}}, {splat(inf), splat(inf), Ints{}}};
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
            store(margins + half * WIDTH, margin_between(it, square, bound, 4 * UNIT * (tiles.p + 8)));
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
    const Reading how = tiles.origin.reading(tiles.fills, rows.missing);
    const T* at[STRETCH + 2 * LANES];  // the rows that follow fill the last panel, and are next
    T* copies = reinterpret_cast<T*>(scratch.copies.get());
    const T* end = rows.is_contiguous() ? rows.end() : copies + (STRETCH + 2 * LANES) * p;
    for (Index e = 0; !kept && e < count + 2 * LANES; ++e) {
        Index i = e < count ? chosen[e] : least(chosen[count - 1] + 1 + e - count, rows.n - 1);
        at[e] = rows.row(i, copies + e * p);
    }
    for (Index e = 0; e < count; e += LANES) {
        Panel panel = kept ? kept->panel(chosen[0] + e) : Panel(scratch.panel, p);
        Ahead ahead = kept || !rows.is_contiguous()
                          ? Ahead::nothing()
                          : Ahead::over(reinterpret_cast<const char* const*>(at) + e + LANES,
                                        p * Index(sizeof(T)), p * (2 + tiles.count * tiles.groups));
        if (!kept) fill_panel(at + e, end, p, how, ahead, panel);
        Index used = least(LANES, count - e);
        for (Index g = 0; g < tiles.groups; ++g) {
            bool wanted = margins && g == tiles.groups - 1;
            label_panel(panel, tiles, g, ahead, scratch.labels, wanted ? scratch.margins.get() : nullptr);
            Label* to = nearest + g * room + e;
            for (Index r = 0; r < used; ++r) {
                to[r] = scratch.labels[r];
                unsure += to[r] == UNSURE;
            }
            if (wanted) memcpy(margins + e, scratch.margins, sizeof(float) * used);
        }
    }
    return unsure;
}

}}}  // namespace mnar::LEVEL
