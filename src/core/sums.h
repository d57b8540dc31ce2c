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

// Octets (of eight features) that are added up side by side: S and C of them stay in registers.
constexpr int OCTETS = WIDTH == 16 ? 8 : WIDTH == 8 ? 2 : 1;

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
        for (Index j = 0; j < table.p; j += OCTETS * EIGHT)
            add_block<OCTETS>(table, first[l], j, shift, sums, counts);
        for (int32_t id = first[l]; id != NONE; id = next[id]) squares[id] = total_of(partial + id * EIGHT);
    }
    template <int S, class T>
    void add_block(const Dense<T>& table, int32_t id, Index j, const double* shift, double* sums, double* counts) {
        if constexpr (S > 1)
            if (table.p - j <= (S - 1) * EIGHT) return add_block<S - 1>(table, id, j, shift, sums, counts);
        add_octets<S>(table, id, j, shift + j, sums + j, counts + j);
    }

    struct Last {  // the last octet of a block, which may be less than a whole one
        double shift[EIGHT], sums[EIGHT], counts[EIGHT];
        int64_t live[EIGHT];
    };

    // S octets of features from j on.
    template <int S, class T>
    void add_octets(const Dense<T>& table, int32_t id, Index j, const double* shift, double* sums, double* counts) {
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
