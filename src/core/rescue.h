// Empty clusters take the rows that cost most.
#pragma once
#include "looks.h"
#include "pass.h"

namespace mnar { namespace LEVEL { namespace {

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
        if (bounds.expiry) bounds.expiry[i] = -__builtin_inff();
    }
    // The costliest rows are far out: taken away from a sum, they would leave their rounding behind.
    return add_rows(table, centers, labels, stats, control);
}

}}}  // namespace mnar::LEVEL
