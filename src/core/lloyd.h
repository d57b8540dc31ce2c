// Lloyd's loop on small tables: many starts side by side, from the first pass to the last.
//
//     assign:  z_i = argmin_l of the row's loss     (pass.h)
//     centre:  from the three sums of each cluster  (loss.h)
//
// Both steps are exact minimisations, so the loss never rises. (Large tables, and rows that are
// elsewhere, run the same steps a pass at a time: ``_solver.py``.)
#pragma once
#include "predict.h"

namespace mnar { namespace LEVEL { namespace {

// --- empty clusters take the rows that cost most ---------------------------------------------

// The row that costs most among clusters that can spare one, the first of equals; -1 if none costs
// anything.
INLINE Index costliest(const double* costs, const double* weights, const Label* labels,
                       const Index* members, Index n) {
    Index best = -1;
    for (Index i = 0; i < n; ++i)
        if (weights[i] > 0 && costs[i] > 0 && members[labels[i]] > 1 && (best < 0 || costs[i] > costs[best]))
            best = i;
    return best;
}

// Which rows fill the empty clusters, one after the other: OUT taken (k,): the row that cluster l takes,
// or -1. INOUT costs (n,): 0 for rows that are taken; members (k,): rows of each cluster that count.
void choose_rescued(double* costs, const double* weights, const Label* labels, Index n, Index k,
                    Index* members, Index* taken) {
    for (Index l = 0; l < k; ++l) {
        taken[l] = members[l] > 0 ? -1 : costliest(costs, weights, labels, members, n);
        if (taken[l] < 0) continue;
        --members[labels[taken[l]]];
        ++members[l];
        costs[taken[l]] = 0;
    }
}

// Moves the costliest rows into the empty clusters of one start. INOUT labels (n,), stats, bounds.
int32_t rescue(const Table& table, const Centers& centers, Label* labels, const Stats& stats,
               const Bounds& bounds, Control& control) {
    Index k = centers.k, n = table.n;
    Array<Index> members(k, 0), taken(k);
    if (!all_ok(members, taken)) return OUT_OF_MEMORY;
    for (Index i = 0; i < n; ++i)
        if (table.weights[i] > 0) ++members[labels[i]];
    Index empty = 0;
    for (Index l = 0; l < k; ++l) empty += members[l] == 0;
    if (empty == 0) return DONE;
    Array<double> own(n);
    if (!own.ok()) return OUT_OF_MEMORY;
    double loss;
    int32_t status = loss_of(table, centers, labels, own, &loss, control);
    if (status != DONE) return status;
    choose_rescued(own, table.weights, labels, n, k, members, taken);
    for (Index l = 0; l < k; ++l) {
        Index i = taken[l];
        if (i < 0) continue;
        labels[i] = Label(l);
        if (bounds.certain_until) bounds.certain_until[i] = -__builtin_inff();
    }
    // The costliest rows are far out: taken away from a sum, they would leave their rounding behind.
    return add_rows(table, centers, labels, stats, control);
}

// --- the loop -------------------------------------------------------------------------------

// The starts first .. first + count of `starts`.
INLINE Starts some_of(Starts starts, Index first, Index count, Index n, Index p) {
    Index k = starts.k;
    starts.count = count;
    starts.mu += first * k * p;
    starts.lam += first * p;
    starts.stats = stats_of(starts.stats, first, k, p);
    starts.labels += first * n;
    starts.paths += first * starts.max_iter;
    starts.n_iter += first;
    starts.merged_into += first;
    starts.seen += first;
    return starts;
}

template <class Rows>
int32_t run_starts(const Rows& rows, const Table& table, const Packed* packed, const Starts& starts,
                   Control& control) {
    Index count = starts.count, k = starts.k, n = table.n, p = table.p;
    Array<Index> numbers(2 * count);
    Array<double> losses(count), mu(count * k * p), lam(count * p);
    Array<uint8_t> inexact(count);
    if (!all_ok(numbers, losses, mu, lam, inexact)) return OUT_OF_MEMORY;
    for (Index r = 0; r < count; ++r) {
        numbers[r] = r;
        starts.merged_into[r] = -1;
    }
    Changes changes(k);
    if (!changes.ok()) return OUT_OF_MEMORY;
    Control alone{0, 1, 0};
    Active active{count, numbers, losses, inexact, 1};
    for (Index it = 0; it < starts.max_iter && active.count > 0; ++it) {
        for (Index a = 0; a < active.count; ++a) {
            memcpy(mu + a * k * p, starts.mu + numbers[a] * k * p, sizeof(double) * k * p);
            memcpy(lam + a * p, starts.lam + numbers[a] * p, sizeof(double) * p);
            if (active.fresh) clear_stats(stats_of(starts.stats, numbers[a], k, p), k, p);
        }
        Centers centers{active.count, k, mu, lam, starts.reference, starts.shift};
        Prepare prepared(table, centers, false, packed);
        if (!prepared.ok()) return OUT_OF_MEMORY;
        Labeller by(table, centers, prepared);
        if (!by.ok()) return OUT_OF_MEMORY;
        Pass pass{numbers, active.fresh, starts.labels, {nullptr, nullptr}, 0, 0};
        Moved moved{0, 0};
        int32_t status = pass_rows(rows, by, 0, n, pass, {starts.stats, false, changes, moved}, control);
        for (Index a = 0; a < active.count && status == DONE; ++a) {
            Index r = numbers[a];
            Stats stats = stats_of(starts.stats, r, k, p);
            bool empty = false;
            for (Index l = 0; l < k; ++l) empty = empty || !(stats.sizes[l] > 0);
            Centers own{1, k, mu + a * k * p, lam + a * p, starts.reference, starts.shift};
            if (empty)
                status = rescue(table, own, starts.labels + r * n, stats, {nullptr, nullptr}, alone);
        }
        if (status != DONE) return status;
        update(starts, p, active);
        for (Index a = 0; a < active.count && status == DONE; ++a) {
            Index r = numbers[a];
            Centers own{1, k, starts.mu + r * k * p, starts.lam + r * p, starts.reference, starts.shift};
            if (inexact[a]) status = loss_of(table, own, starts.labels + r * n, nullptr, losses + a, alone);
        }
        if (status != DONE) return status;
        decide(starts, p, it, moved.largest, active);
    }
    count_done(control, count);
    return DONE;
}

// A small table with its starts, and what is kept of its rows for all their passes.
struct Problem {
    const Table& table;
    const Starts& starts;
    Packed* packed;  // of a dense table, as it is compared
    Index size;      // starts of a slice: it does not depend on the number of threads

    Problem(const Table& table, const Starts& starts)
        : table(table), starts(starts), packed(nullptr), size((starts.count + 3) / 4) {
        if (size < 4) size = 4;
        if (table.is_sparse) return;
        const Centers all{starts.count, starts.k, starts.mu, starts.lam, starts.reference, starts.shift};
        packed = certified.pack(table, all);
    }
    ~Problem() { certified.unpack(packed); }
    bool ok() const { return table.is_sparse || packed; }
    Index slices() const { return (starts.count + size - 1) / size; }

    int32_t run_slice(Index s, Control& control) const {
        const Index first = s * size, count = min_of(size, starts.count - first);
        const Starts own = some_of(starts, first, count, table.n, table.p);
        const int32_t status = with_rows(table, [&](const auto& rows) {
            return run_starts(rows, table, packed, own, control);
        });
        for (Index r = 0; r < count; ++r)
            if (own.merged_into[r] >= 0) own.merged_into[r] += first;
        return status;
    }
};

// The starts of a small table; threads share the slices of them.
int32_t lloyd(const Table& table, const Starts& starts, Control& control) {
    const Problem problem(table, starts);
    if (!problem.ok()) return OUT_OF_MEMORY;
    return in_parallel(problem.slices(), control, [&](Index s) { return problem.run_slice(s, control); });
}

}}}  // namespace mnar::LEVEL
