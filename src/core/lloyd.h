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

// --- empty clusters are relocated to the rows that cost most ----------------------------------

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

// The rows to which empty clusters are relocated, one after the other: OUT moved_rows (k,), or -1.
// INOUT costs (n,): 0 for rows that move; members (k,): rows with a weight in each cluster.
void choose_relocated(double* costs, const double* weights, const Label* labels, Index n, Index k,
                    Index* members, Index* moved_rows) {
    for (Index l = 0; l < k; ++l) {
        const Index i = members[l] > 0 ? -1 : costliest(costs, weights, labels, members, n);
        moved_rows[l] = i;
        if (i < 0) continue;
        --members[labels[i]];
        ++members[l];
        costs[i] = 0;
    }
}

// Relocates the empty clusters of one start. INOUT labels (n,), stats, bounds.
int32_t relocate_empty(const Table& table, const Centers& centers, Label* labels, const Stats& stats,
               const Bounds& bounds, Control& control) {
    Index k = centers.k, n = table.n;
    Array<Index> members(k, 0), moved_rows(k);
    if (!all_ok(members, moved_rows)) return OUT_OF_MEMORY;
    for (Index i = 0; i < n; ++i)
        if (table.weights[i] > 0) ++members[labels[i]];
    Index empty = 0;
    for (Index l = 0; l < k; ++l) empty += members[l] == 0;
    if (empty == 0) return DONE;
    Array<double> costs(n);
    if (!costs.ok()) return OUT_OF_MEMORY;
    double loss;
    int32_t status = loss_of(table, centers, labels, costs, &loss, control);
    if (status != DONE) return status;
    choose_relocated(costs, table.weights, labels, n, k, members, moved_rows);
    for (Index l = 0; l < k; ++l) {
        Index i = moved_rows[l];
        if (i < 0) continue;
        labels[i] = Label(l);
        if (bounds.margins) bounds.margins[i] = -__builtin_inff();  // look at it again
    }
    // Recompute the sums: subtracting rows that far out would leave rounding errors.
    return add_rows(table, centers, labels, stats, control);
}

// --- the loop -------------------------------------------------------------------------------

// The starts first .. first + count - 1.
INLINE Starts slice_of(Starts starts, Index first, Index count, Index n, Index p) {
    Index k = starts.k;
    starts.count = count;
    starts.mu += first * k * p;
    starts.lam += first * p;
    starts.stats = stats_of(starts.stats, first, k, p);
    starts.labels += first * n;
    starts.paths += first * starts.max_iter;
    starts.n_iter += first;
    starts.merged_into += first;
    starts.partitions += first;
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
    Control single_thread{0, 1, 0};
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
        Labeller labeller(table, centers, prepared);
        if (!labeller.ok()) return OUT_OF_MEMORY;
        const Bounds no_bounds{nullptr, nullptr};
        Pass pass{numbers, active.fresh, starts.labels, no_bounds, 0, 0};
        Moved moved{0, 0};
        int32_t status = pass_rows(rows, labeller, 0, n, pass, {starts.stats, false, changes, moved}, control);
        for (Index a = 0; a < active.count && status == DONE; ++a) {
            Index r = numbers[a];
            Stats stats = stats_of(starts.stats, r, k, p);
            bool empty = false;
            for (Index l = 0; l < k; ++l) empty = empty || !(stats.sizes[l] > 0);
            Centers current{1, k, mu + a * k * p, lam + a * p, starts.reference, starts.shift};
            if (empty)
                status = relocate_empty(table, current, starts.labels + r * n, stats, no_bounds, single_thread);
        }
        if (status != DONE) return status;
        update(starts, p, active);
        for (Index a = 0; a < active.count && status == DONE; ++a) {
            Index r = numbers[a];
            Centers updated{1, k, starts.mu + r * k * p, starts.lam + r * p, starts.reference, starts.shift};
            if (inexact[a])
                status = loss_of(table, updated, starts.labels + r * n, nullptr, losses + a, single_thread);
        }
        if (status != DONE) return status;
        decide(starts, p, it, moved.largest, active);
    }
    count_done(control, count);
    return DONE;
}

// The starts of a small table, in at most four slices of four or more whatever the number of threads,
// which share the slices. Row data are cached across passes.
int32_t lloyd(const Table& table, const Starts& starts, Control& control) {
    const Index size = starts.count > 16 ? (starts.count + 3) / 4 : 4, slices = (starts.count + size - 1) / size;
    Packed* packed = nullptr;  // a dense table, as the kernels read it
    if (!table.is_sparse) {
        const Centers all{starts.count, starts.k, starts.mu, starts.lam, starts.reference, starts.shift};
        packed = certified.pack(table, all);
        if (!packed) return OUT_OF_MEMORY;
    }
    const int32_t status = in_parallel(slices, control, [&](Index s) -> int32_t {
        const Index first = s * size, count = min_of(size, starts.count - first);
        const Starts slice = slice_of(starts, first, count, table.n, table.p);
        const int32_t status = with_rows(table, [&](const auto& rows) {
            return run_starts(rows, table, packed, slice, control);
        });
        for (Index r = 0; r < count; ++r)
            if (slice.merged_into[r] >= 0) slice.merged_into[r] += first;
        return status;
    });
    certified.free_packed(packed);
    return status;
}

}}}  // namespace mnar::LEVEL
