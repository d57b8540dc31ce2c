// Many rows into the sums of their clusters, cluster by cluster.
//
//     S_l += w (x_i - shift),   C_l += w   in the observed entries of row i;      N_l += w
//
// While the rows of one cluster are added, its sums stay in registers. A cluster meets its rows in their
// order: the sums are the bits that ``transfer`` (loss.h) gives row by row, the plain way.
#pragma once
#include "certified.h"
#include "loss.h"
#include "rows.h"

namespace mnar { namespace LEVEL { namespace {

// --- the rows of a small table, shifted once ------------------------------------------------
//
// The rows of a small dense table, kept as its many passes add them up: read once, for all starts.
//
//     shifted_ij = x_ij - shift_j,  NaN in gaps and beyond the last feature;   |x_i - shift|^2;   the key of i
//
// Rows are padded to whole strips of eight features, so that nothing has to be asked while they are added.

struct Shifted {
    Index stride;           // entries between two rows
    Array<double> values;   // (n, stride)
    Array<double> squares;  // (n,) as ``add_row`` gives them
    Array<uint64_t> keys;   // (n,)

    Shifted(Index n, Index p)
        : stride(whole_eights(p)), values(n * stride), squares(n), keys(n) {}
    bool ok() const { return all_ok(values, squares, keys); }

    // `first`: the number of the first row in the whole table. scratch: of one row.
    template <class T> void fill(const Dense<T>& rows, Index first, const double* shift, T* scratch) {
        for (Index i = 0; i < rows.n; ++i) {
            const T* row = rows.row(i, scratch);
            double* to = values + i * stride;
            for (Index j = 0; j < rows.p; ++j) {
                double x = row[j];
                to[j] = rows.is_gap(x) ? __builtin_nan("") : x - shift[j];
            }
            for (Index j = rows.p; j < stride; ++j) to[j] = __builtin_nan("");
            keys[i] = mixed(first + i);
            Sum8 square;
            for (Index j = 0; j < stride; j += EIGHT)
                UNROLL for (int part = 0; part < EIGHT / HALF; ++part) {
                    Doubles x = load<Doubles>(to + j + part * HALF), value = keep(x == x, x);
                    square.parts[part] += value * value;
                }
            squares[i] = square.total();
        }
    }
};

// Read like any dense rows, added up from what is kept.
template <class T> struct ShiftedRows : Dense<T> {
    const Shifted& shifted;
    ShiftedRows(const Dense<T>& rows, const Shifted& shifted) : Dense<T>(rows), shifted(shifted) {}
};

// Of eight features, that are added up side by side: S and C of them in registers.
constexpr int STRIPS = WIDTH == 16 ? 8 : WIDTH == 8 ? 2 : 1;

// The sums of one cluster, a vector of features at a time; beyond the last feature there is nothing.
struct Stripes {
    Index p;
    double *sums, *counts;

    INLINE void get(Index j, Doubles& S, Doubles& C) const {
        S = C = Doubles{};
        Index live = min_of(HALF, p - j);
        if (live == HALF)
            S = load<Doubles>(sums + j), C = load<Doubles>(counts + j);
        else
            for (Index c = 0; c < live; ++c) S[c] = sums[j + c], C[c] = counts[j + c];
    }
    INLINE void put(Index j, Doubles S, Doubles C) const {
        Index live = min_of(HALF, p - j);
        if (live == HALF)
            store(sums + j, S), store(counts + j, C);
        else
            for (Index c = 0; c < live; ++c) sums[j + c] = S[c], counts[j + c] = C[c];
    }
};

// Rows that join or leave clusters of one start, in their order; from one block of rows.
class Changes {
  public:
    Index count;
    Array<double> weights, squares;  // of each: negative if it leaves; OUT |x - shift|^2

    explicit Changes(Index k)
        : count(0), weights(ROOM), squares(ROOM), rows(ROOM), partial(ROOM * EIGHT), next(ROOM), first(k, NONE),
          last(k), touched(min_of(k, ROOM)), n_touched(0) {}
    bool ok() const { return all_ok(weights, squares, rows, partial, next, first, last, touched); }

    void put(Index row, double weight, Label l) {
        int32_t id = int32_t(count++);
        rows[id] = row;
        weights[id] = weight;
        next[id] = NONE;
        if (first[l] == NONE)
            touched[n_touched++] = l, first[l] = id;
        else
            next[last[l]] = id;
        last[l] = id;
    }
    // INOUT stats of the start; OUT squares. `from`: the number of the first row of the table.
    template <class Rows>
    void add_to(const Stats& stats, const Rows& table, Index from, const double* shift,
                typename Rows::Value* scratch) {
        for (Index t = 0; t < n_touched; ++t) {
            Label l = touched[t];
            add_cluster(table, l, from, shift, stats, scratch);
            first[l] = NONE;
        }
        n_touched = 0;
    }
    void clear() { count = 0; }

  private:
    static constexpr Index ROOM = 2 * BLOCK_ROWS;
    static constexpr int32_t NONE = -1;
    Array<Index> rows;
    Array<double> partial;              // eight sums of squares of each, as in Sum8
    Array<int32_t> next, first, last;  // of the same cluster
    Array<Label> touched;
    Index n_touched;

    template <class T>
    void add_cluster(const Sparse<T>& table, Label l, Index from, const double* shift, const Stats& stats, T*) {
        for (int32_t id = first[l]; id != NONE; id = next[id])
            squares[id] = transfer(table, rows[id], from, weights[id], shift, l, stats, static_cast<T*>(nullptr));
    }
    template <class T>
    void add_cluster(const Dense<T>& table, Label l, Index from, const double* shift, const Stats& stats, T*) {
        for (int32_t id = first[l]; id != NONE; id = next[id]) {
            double w = weights[id];
            stats.sizes[l] += w;
            stats.keys[l] += w > 0 ? mixed(from + rows[id]) : -mixed(from + rows[id]);
        }
        double *sums = stats.sums + l * table.p, *counts = stats.counts + l * table.p;
        for (Index j = 0; j < table.p; j += STRIPS * EIGHT)
            add_block<STRIPS>(table, first[l], j, shift, sums, counts);
        for (int32_t id = first[l]; id != NONE; id = next[id]) squares[id] = total_of(partial + id * EIGHT);
    }
    template <class T>
    void add_cluster(const ShiftedRows<T>& table, Label l, Index, const double*, const Stats& stats, T*) {
        const Shifted& kept = table.shifted;
        double size = stats.sizes[l];
        uint64_t key = stats.keys[l];
        for (int32_t id = first[l]; id != NONE; id = next[id]) {
            Index i = rows[id];
            size += weights[id];
            key += weights[id] > 0 ? kept.keys[i] : -kept.keys[i];
            squares[id] = kept.squares[i];
        }
        stats.sizes[l] = size;
        stats.keys[l] = key;
        Stripes to{table.p, stats.sums + l * table.p, stats.counts + l * table.p};
        for (Index j = 0; j < table.p; j += STRIPS * EIGHT) add_kept<STRIPS>(kept, first[l], j, to);
    }
    template <int S> void add_kept(const Shifted& kept, int32_t id, Index j, const Stripes& to) {
        constexpr int N = S * EIGHT / HALF;
        if constexpr (S > 1)
            if (kept.stride - j <= (S - 1) * EIGHT) return add_kept<S - 1>(kept, id, j, to);
        Doubles S_l[N], C_l[N];
        UNROLL for (int i = 0; i < N; ++i) to.get(j + i * HALF, S_l[i], C_l[i]);
        for (; id != NONE; id = next[id]) {
            const double* at = kept.values + rows[id] * kept.stride + j;
            const Doubles weight = splat(weights[id]);
            UNROLL for (int i = 0; i < N; ++i) {
                Doubles x = load<Doubles>(at + i * HALF);
                Longs is = x == x;
                S_l[i] += weight * keep(is, x);
                C_l[i] += keep(is, weight);
            }
        }
        UNROLL for (int i = 0; i < N; ++i) to.put(j + i * HALF, S_l[i], C_l[i]);
    }

    template <int S, class T>
    void add_block(const Dense<T>& table, int32_t id, Index j, const double* shift, double* sums, double* counts) {
        if constexpr (S > 1)
            if (table.p - j <= (S - 1) * EIGHT) return add_block<S - 1>(table, id, j, shift, sums, counts);
        add_strips<S>(table, id, j, shift + j, sums + j, counts + j);
    }

    struct Last {  // the last strip of a block, which may be less than a whole one
        double shift[EIGHT], sums[EIGHT], counts[EIGHT];
        int64_t live[EIGHT];
    };

    // S strips of features from j on.
    template <int S, class T>
    void add_strips(const Dense<T>& table, int32_t id, Index j, const double* shift, double* sums, double* counts) {
        constexpr int PARTS = EIGHT / HALF, N = S * PARTS, WHOLE = N - PARTS;
        const Index width = min_of(S * EIGHT, table.p - j), last = (S - 1) * EIGHT;
        const T* end = table.end();
        Last rest;
        for (Index c = 0; c < EIGHT; ++c) {
            bool is = last + c < width;
            rest.live[c] = -int64_t(is);
            rest.shift[c] = is ? shift[last + c] : 0.0;
            rest.sums[c] = is ? sums[last + c] : 0.0;
            rest.counts[c] = is ? counts[last + c] : 0.0;
        }
        Doubles S_l[N], C_l[N];
        UNROLL for (int i = 0; i < N; ++i) {
            S_l[i] = load<Doubles>(i < WHOLE ? sums + i * HALF : rest.sums + (i - WHOLE) * HALF);
            C_l[i] = load<Doubles>(i < WHOLE ? counts + i * HALF : rest.counts + (i - WHOLE) * HALF);
        }
        for (; id != NONE; id = next[id]) {
            const T* at = table.values + rows[id] * table.row_stride + j * table.column_stride;
            T copy[S * EIGHT];
            if (!table.is_contiguous() || end - at < S * EIGHT) {
                for (Index c = 0; c < S * EIGHT; ++c) copy[c] = c < width ? at[c * table.column_stride] : T(0);
                at = copy;
            }
            const Doubles weight = splat(weights[id]);
            Sum8 square;
            if (j > 0) memcpy(square.parts, partial + id * EIGHT, sizeof square.parts);
            UNROLL for (int i = 0; i < N; ++i) {
                Doubles x = load_doubles(at + i * HALF);
                Longs is = (x == x) & (x != table.missing);
                if (i >= WHOLE) is &= load<Longs>(rest.live + (i - WHOLE) * HALF);
                const double* from = i < WHOLE ? shift + i * HALF : rest.shift + (i - WHOLE) * HALF;
                Doubles value = keep(is, x - load<Doubles>(from));
                S_l[i] += weight * value;
                C_l[i] += keep(is, weight);
                square.parts[i % PARTS] += value * value;
            }
            memcpy(partial + id * EIGHT, square.parts, sizeof square.parts);
        }
        UNROLL for (int i = 0; i < N; ++i) {
            store(i < WHOLE ? sums + i * HALF : rest.sums + (i - WHOLE) * HALF, S_l[i]);
            store(i < WHOLE ? counts + i * HALF : rest.counts + (i - WHOLE) * HALF, C_l[i]);
        }
        for (Index c = last; c < width; ++c) {
            sums[c] = rest.sums[c - last];
            counts[c] = rest.counts[c - last];
        }
    }
};

}}}  // namespace mnar::LEVEL
