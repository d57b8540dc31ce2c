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

// How rows of numbers T are brought into panels: the shift, and what gaps are filled with where lam is 1.
// Both have room for whole blocks of eight.
template <class T> struct Reading {
    const T* shift;
    const float* filling;  // or null: gaps are masked
    T missing;
};

// Four or eight entries of a row less their shifts, rounded to float32 once; NaN in gaps.
template <bool CODED> INLINE void read_entries(const float* x, const float* shift, float missing, Floats4& out) {
    Floats4 all = load<Floats4>(x);
    if (CODED) all = all == missing ? Floats4{} + __builtin_nanf("") : all;
    out = all - load<Floats4>(shift);
}
template <bool CODED> INLINE void read_entries(const float* x, const float* shift, float missing, Floats8& out) {
    Floats8 all = load<Floats8>(x);
    if (CODED) all = all == missing ? Floats8{} + __builtin_nanf("") : all;
    out = all - load<Floats8>(shift);
}
template <bool CODED> INLINE void read_entries(const double* x, const double* shift, double missing, Floats4& out) {
    Doubles4 all = load<Doubles4>(x);
    if (CODED) all = all == missing ? Doubles4{} + __builtin_nan("") : all;
    out = __builtin_convertvector(all - load<Doubles4>(shift), Floats4);
}
template <bool CODED> INLINE void read_entries(const double* x, const double* shift, double missing, Floats8& out) {
#if defined(__AVX512F__)
    Doubles8 all = load<Doubles8>(x);
    if (CODED) all = all == missing ? Doubles8{} + __builtin_nan("") : all;
    out = __builtin_convertvector(all - load<Doubles8>(shift), Floats8);
#else
    Floats4 low, high;
    read_entries<CODED>(x, shift, missing, low);
    read_entries<CODED>(x + 4, shift + 4, missing, high);
    out = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
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

// OUT columns (C,) of one register of rows: quads of four rows next to each other, then transposed.
INLINE void transpose_rows(const Floats4 (&rows)[WIDTH], Floats (&columns)[4]) {
    UNROLL for (int i = 0; i < 4; ++i) {
#if defined(__AVX512F__)
        Floats8 low = __builtin_shufflevector(rows[i], rows[i + 4], 0, 1, 2, 3, 4, 5, 6, 7);
        Floats8 high = __builtin_shufflevector(rows[i + 8], rows[i + 12], 0, 1, 2, 3, 4, 5, 6, 7);
        columns[i] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#elif defined(__AVX2__)
        columns[i] = __builtin_shufflevector(rows[i], rows[i + 4], 0, 1, 2, 3, 4, 5, 6, 7);
#else
        columns[i] = rows[i];
#endif
    }
    transpose_quads(columns);
}
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
        bool together = at[LANES - 1] - at[0] == (LANES - 1) * bytes;
        Index lines = together ? (LANES * bytes + CACHE_LINE - 1) / CACHE_LINE
                               : LANES * ((bytes + CACHE_LINE - 1) / CACHE_LINE);
        return {at[0], at[0] + (together ? LANES * bytes : bytes), at + 1, together ? 0 : LANES - 1, bytes,
                (lines + steps - 1) / steps};
    }
    static Ahead nothing() { return {nullptr, nullptr, nullptr, 0, 0, 1}; }

    INLINE void ask(Index steps = 1) {
        for (Index request = 0; request < steps * burst; ++request) {
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

// Fills one half of a panel, a register of rows, C features at a time.
template <bool CODED, bool FILLS, class T> struct Filling {
    const T* const* at;
    const Reading<T>& how;
    float *values, *gaps;
    Floats squares;
    Ints complete;

    // As many features from j on as there are Entries, the first `skip` of which are known.
    template <class Entries> INLINE void take(Index j, Index skip) {
        Entries rows[WIDTH];
        UNROLL for (int r = 0; r < WIDTH; ++r)
            read_entries<CODED>(at[r] + j, how.shift + j, how.missing, rows[r]);
        put(rows, j, skip, sizeof(Entries) / sizeof(float));
    }
    template <class Entries> INLINE void put(const Entries (&rows)[WIDTH], Index j, Index skip, Index stop) {
        constexpr int C = sizeof(Entries) / sizeof(float);
        Floats columns[C];
        transpose_rows(rows, columns);
        UNROLL for (int c = 0; c < C; ++c) {
            if (c < skip || c >= stop) continue;
            Ints is = columns[c] == columns[c];
            Floats value = keep(is, columns[c]);
            if (FILLS) value = is ? columns[c] : splat(how.filling[j + c]);
            store(values + (j + c) * LANES, value);
            if (!FILLS) store(gaps + (j + c) * LANES, keep(~is, splat(1.0f)));
            if (!FILLS) complete &= is;
            squares += value * value;
        }
    }
    // Rows of fewer than four features: nothing beyond them may be read.
    INLINE void take_few(Index p) {
        Floats4 rows[WIDTH];
        for (int r = 0; r < WIDTH; ++r) {
            T copy[4] = {};
            for (Index j = 0; j < p; ++j) copy[j] = at[r][j];
            read_entries<CODED>(copy, how.shift, how.missing, rows[r]);
        }
        put(rows, 0, 0, p);
    }
};

// OUT the panel of the rows at `at`. What does not fill eight features, or four, begins where it reads
// some once more: nothing beyond a row is read.
template <bool CODED, bool FILLS, class T>
inline void fill_as(const T* const* at, Index p, const Reading<T>& how, Ahead& requests, Panel& panel) {
    Ahead ahead = requests;  // a copy of its own can stay in registers
    Ints complete = splat_int(-1);
    for (int half = 0; half < LANES; half += WIDTH) {
        Filling<CODED, FILLS, T> to{at + half, how, panel.values + half, panel.gaps + half, Floats{}, complete};
        Index j = 0;
        for (; j + EIGHT <= p; j += EIGHT) {
            ahead.ask(EIGHT);
            to.template take<Floats8>(j, 0);
        }
        Index rest = p - j;
        ahead.ask(rest);
        if (rest > 4 && p > EIGHT) {
            to.template take<Floats8>(p - EIGHT, EIGHT - rest);
        } else if (rest > 4) {
            to.template take<Floats4>(0, 0);
            to.template take<Floats4>(p - 4, EIGHT - p);
        } else if (rest > 0 && p >= 4) {
            to.template take<Floats4>(p - 4, 4 - rest);
        } else if (rest > 0) {
            to.take_few(p);
        }
        store(panel.squares + half, to.squares);
        complete = to.complete;
    }
    panel.complete = all_set(complete);
    requests = ahead;
}

template <class T>
INLINE void fill_panel(const T* const* at, Index p, const Reading<T>& how, Ahead& ahead,
                       Panel& panel) {
    bool coded = how.missing == how.missing;
    if (how.filling)
        coded ? fill_as<true, true>(at, p, how, ahead, panel)
              : fill_as<false, true>(at, p, how, ahead, panel);
    else
        coded ? fill_as<true, false>(at, p, how, ahead, panel)
              : fill_as<false, false>(at, p, how, ahead, panel);
}

// What rows are measured from, and the reference measured from there, in whole blocks of eight. From
// float32 numbers a float32 is taken away, so that one rounding in float32 is all there is.
struct Origin {
    Array<double> shift;
    Array<float> rounded, reference;
    Origin(const Table& of, const Centers& centers)
        : shift(whole_eights(of.p), 0.0), rounded(whole_eights(of.p), 0.0f), reference(whole_eights(of.p), 0.0f) {
        for (Index j = 0; ok() && j < of.p; ++j) {
            rounded[j] = float(centers.shift[j]);
            shift[j] = of.is_double ? centers.shift[j] : double(rounded[j]);
            reference[j] = float(centers.reference[j] - shift[j]);
        }
    }
    bool ok() const { return all_ok(shift, rounded, reference); }
    void reading(bool fills, double missing, Reading<double>& how) const {
        how = {shift, fills ? reference.get() : nullptr, missing};
    }
    void reading(bool fills, double missing, Reading<float>& how) const {
        bool may_be = double(float(missing)) == missing;  // no float32 equals any other code
        how = {rounded, fills ? reference.get() : nullptr, may_be ? float(missing) : __builtin_nanf("")};
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
        : p(of.p), size(panel_size(p)), origin(of, centers), fills(fills),
          panels((of.n + LANES - 1) / LANES * size), complete((of.n + LANES - 1) / LANES) {}
    bool ok() const { return all_ok(origin, panels, complete); }

    // copies (LANES, p): scratch.
    template <class T> void fill(const Dense<T>& rows, T* copies) {
        Ahead ahead = Ahead::nothing();
        Reading<T> how;
        origin.reading(fills, rows.missing, how);
        for (Index e = 0; e < rows.n; e += LANES) {
            const T* at[LANES];
            for (Index r = 0; r < LANES; ++r) at[r] = rows.row(min_of(e + r, rows.n - 1), copies + r * p);
            Panel panel(panels + e / LANES * size, p);
            fill_panel(at, p, how, ahead, panel);
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
