// One assignment pass: labels of all rows, sums of their clusters, bounds.
//
//     label:  z_i = argmin_l d_il            a block of rows at a time by the certified kernels (certified.h);
//                                            what those leave UNSURE by direct differences (rows.h)
//     add up: S_l += w (x_i - shift),   C_l += w  in the observed entries of row i,   N_l += w
//
// A pass over a large table is cut into chunks that threads take one after the other; their sums are
// added in the order of the chunks.
#pragma once
#include "certified.h"
#include "loss.h"

namespace mnar { namespace LEVEL { namespace {

// --- labels ---------------------------------------------------------------------------------

constexpr double MOSTLY = 0.75;  // when more of a block must be checked, all of it is

// What all threads of a pass share: the centres' tables.
struct Prepare {
    Prepared* tables;
    const bool wants_margins;
    const Packed* packed;
    Prepare(const Table& table, const Centers& centers, bool wants_margins = false, const Packed* packed = nullptr)
        : tables(certified.prepare(table, centers, wants_margins, packed)), wants_margins(wants_margins),
          packed(packed) {}
    Prepare(const Prepare&) = delete;
    ~Prepare() { certified.free_prepared(tables); }
    bool ok() const { return tables; }
};

// What one thread needs to label rows.
class Labeller {
  public:
    const Table& table;
    const Centers& centers;
    Array<Index> chosen;
    Array<Label> nearest;  // (groups, BLOCK_ROWS)
    Array<float> margins;
    Array<double> row;     // scratch of one row, whatever its type

    Labeller(const Table& table, const Centers& centers, const Prepare& prepared)
        : table(table), centers(centers), chosen(BLOCK_ROWS), nearest(centers.groups * BLOCK_ROWS),
          margins(BLOCK_ROWS), row(table.p), prepared(prepared),
          distances(whole_eights(centers.k)),
          direct(centers.groups, nullptr), scratch(certified.make_scratch(table, centers)) {}
    ~Labeller() {
        certified.free_scratch(scratch);
        for (Index g = 0; direct.ok() && g < centers.groups; ++g) unmake(direct[g]);
    }
    bool ok() const { return scratch && all_ok(chosen, nearest, margins, row, distances, direct); }

    // OUT chosen: rows start .. stop. Returns how many.
    Index choose_all(Index start, Index stop) const {
        for (Index i = start; i < stop; ++i) chosen[i - start] = i;
        return stop - start;
    }
    // OUT chosen: those of the rows start .. stop that may change cluster; all where most may.
    Index choose(Index start, Index stop, const Label* labels, const Bounds& bounds) const {
        if (!bounds.margins || prepared.packed) return choose_all(start, stop);
        Index count = 0;
        for (Index i = start; i < stop; ++i) {
            chosen[count] = i;
            count += !(bounds.margins[i] > bounds.drift[labels[i]]);
        }
        return count < MOSTLY * (stop - start) ? count : choose_all(start, stop);
    }
    // OUT nearest of the `count` chosen rows, margins if wanted. False: out of memory.
    template <class Rows> bool label(const Rows& rows, Index count) {
        if (count == 0) return true;
        const RowBlock block{chosen, count, nearest, BLOCK_ROWS, prepared.wants_margins ? margins.get() : nullptr};
        Index unsure = certified.label(table, *prepared.tables, prepared.packed, *scratch, block);
        for (Index g = 0; unsure > 0 && g < centers.groups; ++g)
            for (Index e = 0; e < count; ++e) {
                Label& label = nearest[g * BLOCK_ROWS + e];
                if (label != UNSURE) continue;
                if (!direct[g]) direct[g] = make<Direct>(centers, g, table.p);
                if (!direct[g]) return false;
                label = nearest_of(rows, chosen[e], *direct[g], distances);
                --unsure;
            }
        return true;
    }

  private:
    const Prepare& prepared;
    Array<double> distances;
    Array<Direct*> direct;  // of each start, once one of its labels is unsure
    Scratch* scratch;
};

// --- sums -----------------------------------------------------------------------------------

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

// --- bounds ---------------------------------------------------------------------------------
//
// As Hamerly's (2010), with one number per row. The loss of row i at a centre mu is a squared distance in
// a norm that belongs to the row, so when centre l moves by D_l, the distance changes by no more than s D_l
// with s = sqrt(max(1, lam)). A row whose second centre is further by `margin` keeps its cluster l until
//
//     drift_l = sum over the passes since of  s (D_l + largest D of the other centres)
//
// has used the margin up. With drift_l summed up from the beginning, a row need not be compared while
//
//     margins_i = margin_i + drift_l (when measured)  >  drift_l (now),
//
// a number that changes only when the row is compared. Labels are the same as without bounds.

constexpr double CAUTIOUS = 1 - 1e-6;  // covers the rounding of a margin

// As float32, rounded down; at once where float32 has too few digits for it, or no such number.
INLINE float rounded_down(double until) {
    return until > 0x1p-120 && until < 0x1p126 ? float(CAUTIOUS * until) : -__builtin_inff();
}

// --- the pass -------------------------------------------------------------------------------

struct Moved {  // what became of a chunk
    Index changed;
    double largest;
};

struct Gathering {  // where the rows of a chunk are added up
    Stats stats;
    bool of_chunk;     // of this chunk alone, one for each active start; otherwise those of all starts
    Changes& changes;  // room for a block
    Moved& moved;
};

constexpr Index LABELS_AT_ONCE = 16;

// OUT changed (count,): the e < count where nearest[e] is not labels[chosen[e]]. Returns how many.
INLINE Index find_changes(const Label* nearest, const Label* labels, const Index* chosen, Index count,
                          int32_t* changed) {
    const bool consecutive = count > 0 && chosen[count - 1] - chosen[0] == count - 1;
    Index found = 0;
    for (Index start = 0; start < count; start += LABELS_AT_ONCE) {
        const Index stop = min_of(start + LABELS_AT_ONCE, count);
        Label apart = !consecutive;
        for (Index e = start; consecutive && e < stop; ++e) apart |= nearest[e] ^ labels[chosen[0] + e];
        for (Index e = start; apart && e < stop; ++e) {  // no branches: changes are not to be foreseen
            changed[found] = int32_t(e);
            found += nearest[e] != labels[chosen[e]];
        }
    }
    return found;
}

// Rows begin .. end get their best centres. INOUT pass.labels, to: all rows if fresh, otherwise what
// changed.
template <class Rows>
int32_t pass_rows(const Rows& rows, Labeller& labeller, Index begin, Index end, const Pass& pass,
                  const Gathering& to, const Control& control) {
    const Table& table = labeller.table;
    Index k = labeller.centers.k, p = table.p, groups = labeller.centers.groups;
    const double *weights = table.weights, *shift = labeller.centers.shift;
    Changes& changes = to.changes;
    Bounds bounds = pass.fresh ? Bounds{nullptr, nullptr} : pass.bounds;
    for (Index start = begin; start < end; start += BLOCK_ROWS) {
        if (cancelled(control)) return CANCELLED;
        Index stop = min_of(start + BLOCK_ROWS, end);
        Index count = labeller.choose(start, stop, pass.labels + pass.active[0] * table.n, bounds);
        if (!labeller.label(rows, count)) return OUT_OF_MEMORY;
        if (count == 0) continue;
        for (Index g = 0; g < groups; ++g) {
            Label* labels = pass.labels + pass.active[g] * table.n;
            const Label* nearest = labeller.nearest + g * BLOCK_ROWS;
            Stats stats = stats_of(to.stats, to.of_chunk ? g : pass.active[g], k, p);
            int32_t changed[BLOCK_ROWS];
            Index found = pass.fresh ? count : find_changes(nearest, labels, labeller.chosen, count, changed);
            for (Index c = 0; c < found; ++c) {
                Index e = pass.fresh ? c : changed[c], i = labeller.chosen[e];
                Label old = labels[i], now = nearest[e];
                labels[i] = now;
                to.moved.changed += now != old;
                double w = weights[i];
                if (w == 0) continue;
                changes.put(i, w, now);
                if (!pass.fresh) changes.put(i, -w, old);
            }
            changes.add_to(stats, k, rows, table.first, shift);
            for (Index c = 0; c < changes.count; ++c)
                if (pass.fresh)
                    *stats.squares += changes.weights[c] * changes.squares[c];
                else
                    to.moved.largest = max_of(to.moved.largest, changes.squares[c]);
            changes.count = 0;
        }
        if (pass.bounds.margins)
            for (Index e = 0; e < count; ++e)
                pass.bounds.margins[labeller.chosen[e]] =
                    rounded_down(labeller.margins[e] + pass.bounds.drift[labeller.nearest[e]]);
    }
    return DONE;
}

// One pass over a whole table: INOUT pass, stats [active[g]].
int32_t run_pass(const Table& table, const Centers& centers, Pass& pass, const Stats& stats,
                 Control& control) {
    Index k = centers.k, p = table.p, groups = centers.groups;
    Chunks chunks(table, ChunkStats::bytes(groups, k, p));
    Prepare prepared(table, centers, pass.bounds.margins != nullptr);
    Array<ChunkStats*> parts(chunks.count, nullptr);
    Array<Moved> moved(chunks.count, Moved{0, 0});
    if (!all_ok(prepared, parts, moved)) return OUT_OF_MEMORY;
    int32_t status = in_parallel(chunks.count, control, [&](Index s) -> int32_t {
        Labeller labeller(table, centers, prepared);
        Changes changes(k);
        parts[s] = make<ChunkStats>(groups, k, p);
        if (!all_ok(labeller, changes) || !parts[s]) return OUT_OF_MEMORY;
        parts[s]->clear();
        const Gathering to{parts[s]->all(), true, changes, moved[s]};
        return with_rows(table, [&](const auto& rows) {
            return pass_rows(rows, labeller, chunks.begin(s), chunks.end(s), pass, to, control);
        });
    });
    pass.changed = 0;
    pass.largest_move = 0;
    for (Index s = 0; s < chunks.count; ++s) {
        for (Index g = 0; status == DONE && g < groups; ++g)
            merge_stats(stats_of(parts[s]->all(), g, k, p), k, p, stats_of(stats, pass.active[g], k, p));
        unmake(parts[s]);
        pass.changed += moved[s].changed;
        pass.largest_move = max_of(pass.largest_move, moved[s].largest);
    }
    return status;
}

// OUT stats of one start, from its labels.
int32_t add_rows(const Table& table, const Centers& centers, const Label* labels, const Stats& stats,
                 Control& control) {
    Index k = centers.k, p = table.p;
    Chunks chunks(table, ChunkStats::bytes(1, k, p));
    Array<ChunkStats*> parts(chunks.count, nullptr);
    if (!parts.ok()) return OUT_OF_MEMORY;
    int32_t status = in_parallel(chunks.count, control, [&](Index s) -> int32_t {
        parts[s] = make<ChunkStats>(1, k, p);
        Array<double> row(p);
        if (!parts[s] || !row.ok()) return OUT_OF_MEMORY;
        parts[s]->clear();
        Stats to = parts[s]->all();
        with_rows(table, [&](const auto& rows) {
            for (Index i = chunks.begin(s); i < chunks.end(s); ++i) {
                double w = table.weights[i];
                if (w != 0)
                    *to.squares += w * transfer(rows, i, table.first, w, centers.shift, labels[i], to,
                                                rows.scratch(row));
            }
            return 0;
        });
        return DONE;
    });
    clear_stats(stats, k, p);
    for (Index s = 0; s < chunks.count; ++s) {
        if (status == DONE) merge_stats(parts[s]->all(), k, p, stats);
        unmake(parts[s]);
    }
    return status;
}

}}}  // namespace mnar::LEVEL
