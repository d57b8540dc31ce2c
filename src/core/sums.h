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
          last(k) {}
    bool ok() const { return all_ok(weights, squares, rows, partial, next, first, last); }

    void put(Index row, double weight, Label l) {
        const int32_t id = int32_t(count++);
        rows[id] = row;
        weights[id] = weight;
        next[id] = NONE;
        (first[l] == NONE ? first[l] : next[last[l]]) = id;
        last[l] = id;
    }
    // INOUT stats of the start; OUT squares. `from`: the number of the first row of the table.
    template <class Rows>
    void add_to(const Stats& stats, Index k, const Rows& table, Index from, const double* shift) {
        for (Label l = 0; count > 0 && l < k; ++l)
            if (first[l] != NONE) {
                add_cluster(table, l, from, shift, stats);
                first[l] = NONE;
            }
    }

  private:
    static constexpr Index ROOM = 2 * BLOCK_ROWS;
    static constexpr int32_t NONE = -1;
    Array<Index> rows;
    Array<double> partial;             // eight sums of squares of each, as in Sum8
    Array<int32_t> next, first, last;  // of the same cluster

    template <class T>
    void add_cluster(const Sparse<T>& table, Label l, Index from, const double* shift, const Stats& stats) {
        for (int32_t id = first[l]; id != NONE; id = next[id])
            squares[id] = transfer(table, rows[id], from, weights[id], shift, l, stats, static_cast<T*>(nullptr));
    }
    template <class T>
    void add_cluster(const Dense<T>& table, Label l, Index from, const double* shift, const Stats& stats) {
        const Index p = table.p, whole = p / EIGHT * EIGHT, rest = p - whole;
        double *sums = stats.sums + l * p, *counts = stats.counts + l * p;
        for (int32_t id = first[l]; id != NONE; id = next[id]) {
            stats.sizes[l] += weights[id];
            stats.keys[l] += weights[id] > 0 ? mixed(from + rows[id]) : -mixed(from + rows[id]);
            memset(partial + id * EIGHT, 0, sizeof(double) * EIGHT);
        }
        for (Index j = 0; j < whole; j += OCTETS * EIGHT)
            add_some<OCTETS>(table, first[l], j, whole, shift, sums, counts);
        if (rest > 0) {  // less than an octet
            double padded[3][EIGHT] = {};
            memcpy(padded[0], shift + whole, sizeof(double) * rest);
            memcpy(padded[1], sums + whole, sizeof(double) * rest);
            memcpy(padded[2], counts + whole, sizeof(double) * rest);
            add_octets<1>(table, first[l], whole, padded[0], padded[1], padded[2]);
            memcpy(sums + whole, padded[1], sizeof(double) * rest);
            memcpy(counts + whole, padded[2], sizeof(double) * rest);
        }
        for (int32_t id = first[l]; id != NONE; id = next[id]) squares[id] = total_of(partial + id * EIGHT);
    }
    // As many octets from j on as there are before `whole`, S at most.
    template <int S, class T>
    void add_some(const Dense<T>& table, int32_t id, Index j, Index whole, const double* shift, double* sums,
                  double* counts) {
        if constexpr (S > 1)
            if (whole - j < S * EIGHT) return add_some<S - 1>(table, id, j, whole, shift, sums, counts);
        add_octets<S>(table, id, j, shift + j, sums + j, counts + j);
    }

    // S octets of features from j on: INOUT sums, counts (8 S,).
    template <int S, class T>
    void add_octets(const Dense<T>& table, int32_t id, Index j, const double* shift, double* sums, double* counts) {
        constexpr int PARTS = EIGHT / HALF, N = S * PARTS;
        const Index width = min_of(S * EIGHT, table.p - j);
        const bool copies = !table.is_contiguous() || width < S * EIGHT;
        Doubles S_l[N], C_l[N];
        UNROLL for (int i = 0; i < N; ++i) {
            S_l[i] = load<Doubles>(sums + i * HALF);
            C_l[i] = load<Doubles>(counts + i * HALF);
        }
        for (; id != NONE; id = next[id]) {
            const T* at = table.values + rows[id] * table.row_stride + j * table.column_stride;
            T copy[S * EIGHT];
            if (copies) {  // beyond the last feature: gaps
                for (Index c = 0; c < S * EIGHT; ++c)
                    copy[c] = c < width ? at[c * table.column_stride] : T(__builtin_nan(""));
                at = copy;
            }
            const Doubles weight = splat(weights[id]);
            Sum8 square;
            memcpy(square.parts, partial + id * EIGHT, sizeof square.parts);
            UNROLL for (int i = 0; i < N; ++i) {
                Doubles x = load_doubles(at + i * HALF);
                Longs is = (x == x) & (x != table.missing);
                Doubles value = keep(is, x - load<Doubles>(shift + i * HALF));
                S_l[i] += weight * value;
                C_l[i] += keep(is, weight);
                square.parts[i % PARTS] += value * value;
            }
            memcpy(partial + id * EIGHT, square.parts, sizeof square.parts);
        }
        UNROLL for (int i = 0; i < N; ++i) {
            store(sums + i * HALF, S_l[i]);
            store(counts + i * HALF, C_l[i]);
        }
    }
};

}}}  // namespace mnar::LEVEL
