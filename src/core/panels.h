// Rows into panels: transposed and rounded to float32, one row per lane.
//
//     values[j, r] = x'_rj = x_rj - shift_j  (0 in gaps, or what they are filled with),   gaps[j, r] = 1 or 0
//
// A panel of LANES rows is made where it is needed and thrown away, while the rows of the next one are
// asked for. Tables that fit into the caches are turned into panels once and for all (``Panels``).
#pragma once
#include "certified.h"
#include "rows.h"

namespace mnar { namespace LEVEL { namespace {

constexpr int LANES = 2 * WIDTH;  // rows of a panel: two registers per centre hide the latency

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

}}}  // namespace mnar::LEVEL
