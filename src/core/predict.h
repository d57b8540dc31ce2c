// What centres say of rows that are not to be moved: labels, losses, distances.
#pragma once
#include "pass.h"

namespace mnar { namespace LEVEL { namespace {

// --- distances of many rows -----------------------------------------------------------------
//
// The losses of many dense rows at every centre: each row in a lane of a vector, float64.
//
//     d_il = sum_j  (x_ij - mu_lj)^2 where observed,  lam_j (mu_lj - c_j)^2 in gaps,   in the order of j
//
// The bits are those of ``distances_of`` (rows.h), which takes a row at a time with its centres in the
// lanes: there ten centres cost as much as sixteen, here as much as ten.

constexpr Index ROWS_IN_LANES = 2 * HALF;
constexpr int MOST_CENTERS = 6;  // whose sums stay in registers

INLINE Doubles root(Doubles v) {
    for (int i = 0; i < HALF; ++i) v[i] = __builtin_sqrt(v[i]);
    return v;
}

// ROWS_IN_LANES dense rows transposed, NaN in gaps, and their losses.
struct InLanes {
    Array<double> x, losses;  // (p, ROWS_IN_LANES); (k, ROWS_IN_LANES)
    InLanes(Index p, Index k) : x(p * ROWS_IN_LANES), losses(k * ROWS_IN_LANES) {}
    bool ok() const { return all_ok(x, losses); }

    // The rows i .. i + count; the last one again where there are fewer.
    template <class T> void read(const Dense<T>& rows, Index i, Index count) {
        for (Index r = 0; r < ROWS_IN_LANES; ++r) {
            const T* at = rows.values + (i + min_of(r, count - 1)) * rows.row_stride;
            for (Index j = 0; j < rows.p; ++j) {
                double value = at[j * rows.column_stride];
                x[j * ROWS_IN_LANES + r] = value == rows.missing ? __builtin_nan("") : value;
            }
        }
    }
    // OUT losses at all centres, or their square roots.
    void meet(const Direct& direct, bool roots) {
        for (Index l = 0; l < direct.k; l += MOST_CENTERS) meet_some<MOST_CENTERS>(direct, l, roots);
    }

  private:
    template <int C> void meet_some(const Direct& direct, Index l, bool roots) {
        if constexpr (C > 1)
            if (direct.k - l < C) return meet_some<C - 1>(direct, l, roots);
        const double *mu = direct.mu + l, *gap = direct.gap + l, *at = x;
        Doubles sums[C][2] = {};
        for (Index j = 0; j < direct.p; ++j, mu += direct.room, gap += direct.room, at += ROWS_IN_LANES) {
            const Doubles both[2] = {load<Doubles>(at), load<Doubles>(at + HALF)};
            UNROLL for (int c = 0; c < C; ++c)
                UNROLL for (int half = 0; half < 2; ++half) {
                    Doubles away = both[half] - splat(mu[c]), near = away * away;
                    sums[c][half] += near == near ? near : splat(gap[c]);
                }
        }
        for (int c = 0; c < C; ++c)
            for (int half = 0; half < 2; ++half)
                store(losses + (l + c) * ROWS_IN_LANES + half * HALF, roots ? root(sums[c][half]) : sums[c][half]);
    }
};

// --- labels and losses ----------------------------------------------------------------------

constexpr Index ROWS_AHEAD = 16;  // rows asked for before they are needed

// work(rows, begin, end, chunk) over the chunks of a table.
template <class Work> int32_t over_chunks(const Table& table, Control& control, const Work& work) {
    const Chunks chunks(table);
    return in_parallel(chunks.count, control, [&](Index s) -> int32_t {
        return with_rows(table, [&](const auto& rows) -> int32_t {
            return work(rows, chunks.begin(s), chunks.end(s), s);
        });
    });
}

// OUT labels (G, n).
int32_t assign(const Table& table, const Centers& centers, Label* labels, Control& control) {
    Prepare prepared(table, centers);
    if (!prepared.ok()) return OUT_OF_MEMORY;
    return over_chunks(table, control, [&](const auto& rows, Index begin, Index end, Index) -> int32_t {
        Labeller labeller(table, centers, prepared);
        if (!labeller.ok()) return OUT_OF_MEMORY;
        for (Index start = begin; start < end; start += BLOCK_ROWS) {
            if (cancelled(control)) return CANCELLED;
            Index count = labeller.choose_all(start, min_of(start + BLOCK_ROWS, end));
            if (!labeller.label(rows, count)) return OUT_OF_MEMORY;
            for (Index g = 0; g < centers.groups; ++g)
                memcpy(labels + g * table.n + start, labeller.nearest + g * BLOCK_ROWS, sizeof(Label) * count);
        }
        return DONE;
    });
}

// The same by the plain loop alone.
int32_t assign_plain(const Table& table, const Centers& centers, Label* labels, Control& control) {
    return over_chunks(table, control, [&](const auto& rows, Index begin, Index end, Index) -> int32_t {
        for (Index g = 0; g < centers.groups; ++g) {
            Direct direct(centers, g, table.p);
            Array<double> distances(direct.room);
            if (!all_ok(direct, distances)) return OUT_OF_MEMORY;
            for (Index i = begin; i < end; ++i) {
                if (i % BLOCK_ROWS == 0 && cancelled(control)) return CANCELLED;
                labels[g * table.n + i] = nearest_of(rows, i, direct, distances);
            }
        }
        return DONE;
    });
}

struct Costs {  // what rows cost at the k centres of one start
    const double* mu;         // (k, p)
    Array<double> gap, pull;  // see ``gap_costs``
    Costs(const Centers& centers, Index p) : mu(centers.mu), gap(centers.k * p), pull(centers.k) {
        if (ok()) gap_costs(centers, 0, p, gap, pull);
    }
    bool ok() const { return all_ok(gap, pull); }
};

// Where little is done with a row, memory lags behind: asks for it ahead.
template <class T> INLINE void ask_ahead(const Dense<T>& rows, Index i) {
    Index bytes = rows.p * Index(sizeof(T));
    if (!rows.is_contiguous() || bytes < 2 * CACHE_LINE) return;
    const char* at = reinterpret_cast<const char*>(rows.values + i * rows.row_stride);
    for (Index line = 0; line < bytes; line += CACHE_LINE) __builtin_prefetch(at + line);
}
template <class T> INLINE void ask_ahead(const Sparse<T>&, Index) {}

// The weighted losses of the rows begin .. end at the centres of their labels; OUT each (n,), unless
// null: without the weights. row: scratch (p,).
template <class Rows>
double sum_costs(const Rows& rows, const double* weights, const Costs& costs, Index begin, Index end,
                 const Label* labels, double* row, double* each) {
    double total = 0;
    for (Index i = begin; i < end; ++i) {
        Index l = labels[i], at = l * rows.p;
        ask_ahead(rows, i + ROWS_AHEAD);
        double cost = cost_of(rows, i, costs.mu + at, costs.gap + at, costs.pull[l], rows.scratch(row));
        if (each) each[i] = cost;
        total += weights[i] * cost;
    }
    return total;
}

// OUT loss: of the partition, by direct differences; each (n,): of every row, unless null.
int32_t loss_of(const Table& table, const Centers& centers, const Label* labels, double* each,
                double* loss, Control& control) {
    Index n_chunks = Chunks(table).count;
    Costs costs(centers, table.p);
    Array<double> losses(n_chunks, 0.0);
    if (!all_ok(costs, losses)) return OUT_OF_MEMORY;
    int32_t status = over_chunks(table, control, [&](const auto& rows, Index begin, Index end, Index s) -> int32_t {
        Array<double> row(table.p);
        if (!row.ok()) return OUT_OF_MEMORY;
        losses[s] = sum_costs(rows, table.weights, costs, begin, end, labels, row, each);
        return DONE;
    });
    *loss = 0;
    for (Index s = 0; s < n_chunks; ++s) *loss += losses[s];
    return status;
}

// OUT labels (n,): those the centres give; members (k,): rows of each; loss: of them all, by direct
// differences.
int32_t label_and_loss(const Table& table, const Centers& centers, Label* labels, Index* members,
                       double* loss, Control& control) {
    Index k = centers.k, n_chunks = Chunks(table).count;
    Prepare prepared(table, centers);
    Costs costs(centers, table.p);
    Array<double> losses(n_chunks, 0.0);
    Array<Index> counts(n_chunks * k, 0);
    if (!all_ok(prepared, costs, losses, counts)) return OUT_OF_MEMORY;
    int32_t status = over_chunks(table, control, [&](const auto& rows, Index begin, Index end, Index s) -> int32_t {
        Labeller labeller(table, centers, prepared);
        if (!labeller.ok()) return OUT_OF_MEMORY;
        for (Index start = begin; start < end; start += BLOCK_ROWS) {
            if (cancelled(control)) return CANCELLED;
            Index stop = min_of(start + BLOCK_ROWS, end);
            if (!labeller.label(rows, labeller.choose_all(start, stop))) return OUT_OF_MEMORY;
            memcpy(labels + start, labeller.nearest, sizeof(Label) * (stop - start));
            for (Index i = start; i < stop; ++i) ++counts[s * k + labels[i]];
            losses[s] += sum_costs(rows, table.weights, costs, start, stop, labels, labeller.row, nullptr);
        }
        return DONE;
    });
    *loss = 0;
    memset(members, 0, sizeof(Index) * k);
    for (Index s = 0; s < n_chunks; ++s) {
        *loss += losses[s];
        for (Index l = 0; l < k; ++l) members[l] += counts[s * k + l];
    }
    return status;
}

// OUT out (n, k), float32 or float64: the loss of each row at every centre, or its square root.
struct Losses {
    Index k;
    bool roots, is_double;
    void* out;

    INLINE void put(Index i, Index l, double d) const {
        if (is_double)
            static_cast<double*>(out)[i * k + l] = d;
        else
            static_cast<float*>(out)[i * k + l] = float(d);
    }
};

template <class T>
int32_t put_distances(const Dense<T>& rows, const Direct& direct, Index begin, Index end, const Losses& to,
                      const Control& control) {
    InLanes lanes(rows.p, to.k);
    if (!lanes.ok()) return OUT_OF_MEMORY;
    for (Index i = begin; i < end; i += ROWS_IN_LANES) {
        if (cancelled(control)) return CANCELLED;
        Index count = min_of(ROWS_IN_LANES, end - i);
        for (Index r = 0; r < count; ++r) ask_ahead(rows, i + ROWS_AHEAD + r);
        lanes.read(rows, i, count);
        lanes.meet(direct, to.roots);
        for (Index r = 0; r < count; ++r)
            for (Index l = 0; l < to.k; ++l) to.put(i + r, l, lanes.losses[l * ROWS_IN_LANES + r]);
    }
    return DONE;
}

template <class T>
int32_t put_distances(const Sparse<T>& rows, const Direct& direct, Index begin, Index end, const Losses& to,
                      const Control& control) {
    Array<double> one(direct.room);
    if (!one.ok()) return OUT_OF_MEMORY;
    for (Index i = begin; i < end; ++i) {
        if (i % BLOCK_ROWS == 0 && cancelled(control)) return CANCELLED;
        distances_of(rows, i, direct, one);
        for (Index l = 0; l < to.k; ++l) to.put(i, l, to.roots ? __builtin_sqrt(one[l]) : one[l]);
    }
    return DONE;
}

int32_t distances(const Table& table, const Centers& centers, int32_t roots, int32_t is_double,
                  void* out, Control& control) {
    const Losses to{centers.k, roots != 0, is_double != 0, out};
    return over_chunks(table, control, [&](const auto& rows, Index begin, Index end, Index) -> int32_t {
        Direct direct(centers, 0, table.p);
        if (!direct.ok()) return OUT_OF_MEMORY;
        return put_distances(rows, direct, begin, end, to, control);
    });
}

}}}  // namespace mnar::LEVEL
