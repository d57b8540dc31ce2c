// Rows relative to the means, and their products with candidate centres, many at once.
//
//     x' = x - mean where observed, 0 in gaps        x'_i . x'_c  of rows i and candidates c
//
// Every lane of a vector is a candidate, and every sum runs in the order of the features: dense and CSR
// tables, float32 and float64 with the same values, and all instruction sets give the same bits.
#pragma once
#include "first_look.h"

namespace mnar { namespace LEVEL { namespace {

constexpr int ROWS_OF_TILE = 8;
constexpr int WIDEST_TILE = 3;  // registers of candidates: with four rows, all sums stay in registers

// --- rows relative to the means ---------------------------------------------------------------

INLINE double keep(bool is, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= -uint64_t(is);
    memcpy(&x, &bits, sizeof bits);
    return x;
}

// OUT out (p,): x' of row i.
template <class T> INLINE void center_row(const Dense<T>& rows, Index i, const double* means, double* out) {
    const T* at = rows.values + i * rows.row_stride;
    Index j = 0;
    for (; rows.is_contiguous() && j + HALF <= rows.p; j += HALF) {
        Doubles x = load_doubles(at + j);
        Longs is = (x == x) & (x != rows.missing);
        store(out + j, keep(is, x - load<Doubles>(means + j)));
    }
    for (; j < rows.p; ++j) {  // without branches: where gaps are is not to be foreseen
        double x = at[j * rows.column_stride];
        out[j] = keep((x == x) & (x != rows.missing), x - means[j]);
    }
}

template <class T> INLINE void center_row(const Sparse<T>& rows, Index i, const double* means, double* out) {
    memset(out, 0, sizeof(double) * rows.p);
    for (Index e = rows.starts[i]; e < rows.starts[i + 1]; ++e)
        out[rows.indices[e]] = rows.values[e] - means[rows.indices[e]];
}

// The rows of a small table, x' of all of them.
struct Centered {
    Index n, p;
    const double* values;
};

// The same rows with all their products: of few rows many are tried more than once.
struct Paired : Centered {
    const double* products;  // (n, n) x'_i . x'_c
};

INLINE const double* centered(const Centered& rows, Index i, const double*, double*) {
    return rows.values + i * rows.p;
}
INLINE const double* centered(const Paired& rows, Index i, const double*, double*) {
    return rows.values + i * rows.p;
}
template <class Rows>
INLINE const double* centered(const Rows& rows, Index i, const double* means, double* scratch) {
    center_row(rows, i, means, scratch);
    return scratch;
}

INLINE double distance_between(const double* x, const double* y, Index p) {
    double sum = 0;
    for (Index j = 0; j < p; ++j) sum += (x[j] - y[j]) * (x[j] - y[j]);
    return sum;
}

// --- candidates -------------------------------------------------------------------------------

// Candidate centres of G starts, each in its own lane: the first of every start, the second, ...
struct Candidates {
    Index groups, tried, p, lanes, room;  // tried per start; room: whole registers
    Index tiles, width, wider;            // registers of a tile; so many tiles have one more
    Array<double> rows, table, squares;   // x' (lanes, p) and (p, room); |x'|^2 (room,)
    Array<Index> chosen;                  // (room,) which row of the table it is

    Candidates(Index groups, Index most_tried, Index p)
        : groups(groups), tried(most_tried), p(p), lanes(groups * tried), room(whole(lanes)),
          rows(lanes * p), table(p * room), squares(room), chosen(room) {
        if (ok()) resize(tried);
    }
    bool ok() const { return all_ok(rows, table, squares, chosen); }
    static Index whole(Index lanes) { return (lanes + HALF - 1) / HALF * HALF; }

    // From now on each start has `few` of them.
    void resize(Index few) {
        tried = few;
        lanes = groups * tried;
        room = whole(lanes);
        const Index registers = room / HALF;
        tiles = (registers + WIDEST_TILE - 1) / WIDEST_TILE;
        width = registers / tiles;
        wider = registers % tiles;
        for (Index lane = lanes; lane < room; ++lane) {
            squares[lane] = 0;
            chosen[lane] = 0;
            for (Index j = 0; j < p; ++j) table[j * room + lane] = 0;
        }
    }
    void set(Index lane, const double* x, double square, Index row) {
        memcpy(rows + lane * p, x, sizeof(double) * p);
        for (Index j = 0; j < p; ++j) table[j * room + lane] = x[j];
        squares[lane] = square;
        chosen[lane] = row;
    }
    Index lane(Index start, Index attempt) const { return attempt * groups + start; }
};

// OUT dots (ROWS_OF_TILE, room): x' of some rows times a tile of C registers of candidates, R rows at
// a time: enough sums to hide the time an addition takes, and no more than there are registers.
template <int C, int R = C == 1 ? 8 : 4>
INLINE void multiply(const double* const* x, const Candidates& with, Index lane, double* dots) {
    for (int first = 0; first < ROWS_OF_TILE; first += R, x += R, dots += R * with.room) {
        Doubles sums[R][C] = {};
        const double* table = with.table + lane;
        for (Index j = 0; j < with.p; ++j, table += with.room)
            UNROLL for (int c = 0; c < C; ++c) {
                Doubles y = load<Doubles>(table + c * HALF);
                UNROLL for (int r = 0; r < R; ++r) sums[r][c] += x[r][j] * y;
            }
        UNROLL for (int r = 0; r < R; ++r)
            UNROLL for (int c = 0; c < C; ++c) store(dots + r * with.room + lane + c * HALF, sums[r][c]);
    }
}

// Calls one(width, lane) for tiles of near-equal width.
template <class One> INLINE void in_tiles(const Candidates& with, const One& one) {
    for (Index tile = 0, lane = 0; tile < with.tiles; ++tile) {
        Index width = with.width + (tile < with.wider);
        one(width, lane);
        lane += width * HALF;
    }
}

struct SeedScratch {
    Array<double> rows, dots, near;
    const double* x[ROWS_OF_TILE];

    explicit SeedScratch(const Candidates& with)
        : rows(ROWS_OF_TILE * with.p), dots(ROWS_OF_TILE * with.room), near(with.room) {}
    bool ok() const { return all_ok(rows, dots, near); }
};

// OUT scratch.dots of the rows i .. i + count, with the candidates from about `from` on.
template <class Rows>
INLINE void multiply_rows(const Rows& rows, Index i, Index count, const double* means,
                          const Candidates& with, SeedScratch& scratch, Index from = 0) {
    for (Index r = 0; r < ROWS_OF_TILE; ++r)
        scratch.x[r] = r < count ? centered(rows, i + r, means, scratch.rows + r * rows.p) : scratch.x[0];
    in_tiles(with, [&](Index width, Index lane) INLINE_LAMBDA {
        if (lane + width * HALF <= from) return;
        if (width == 1) multiply<1>(scratch.x, with, lane, scratch.dots);
        else if (width == 2) multiply<2>(scratch.x, with, lane, scratch.dots);
        else multiply<3>(scratch.x, with, lane, scratch.dots);
    });
}

INLINE void multiply_rows(const Paired& rows, Index i, Index count, const double*, const Candidates& with,
                          SeedScratch& scratch) {
    for (Index lane = 0; lane < with.room; ++lane) {
        const double* products = rows.products + with.chosen[lane] * rows.n + i;
        if (count == ROWS_OF_TILE)
            UNROLL for (Index r = 0; r < ROWS_OF_TILE; ++r) scratch.dots[r * with.room + lane] = products[r];
        else
            for (Index r = 0; r < count; ++r) scratch.dots[r * with.room + lane] = products[r];
    }
}

template <int C, class T>
INLINE void multiply(const Sparse<T>& rows, Index i, const double* x, const Candidates& with, Index lane,
                     double* dots) {
    Doubles sums[C] = {};
    const int32_t* features = rows.indices + rows.starts[i];
    for (Index e = 0; e < rows.stored(i); ++e) {
        const double* table = with.table + features[e] * with.room + lane;
        UNROLL for (int c = 0; c < C; ++c) sums[c] += x[e] * load<Doubles>(table + c * HALF);
    }
    UNROLL for (int c = 0; c < C; ++c) store(dots + lane + c * HALF, sums[c]);
}

// The same over what is stored: gaps are 0 and add nothing.
template <class T>
INLINE void multiply_rows(const Sparse<T>& rows, Index i, Index count, const double* means,
                          const Candidates& with, SeedScratch& scratch) {
    for (Index r = 0; r < count; ++r) {
        double *x = scratch.rows + r * rows.p, *dots = scratch.dots + r * with.room;
        const Index begin = rows.starts[i + r];
        for (Index e = 0; e < rows.stored(i + r); ++e)
            x[e] = rows.values[begin + e] - means[rows.indices[begin + e]];
        in_tiles(with, [&](Index width, Index lane) INLINE_LAMBDA {
            if (width == 1) multiply<1>(rows, i + r, x, with, lane, dots);
            else if (width == 2) multiply<2>(rows, i + r, x, with, lane, dots);
            else multiply<3>(rows, i + r, x, with, lane, dots);
        });
    }
}

}}}  // namespace mnar::LEVEL
