// One assignment pass: labels of all rows, sums of their clusters, bounds.
//
// A pass over a large table is cut into chunks that threads take one after the other; their sums are
// added in the order of the chunks.
//
// Bounds. The loss of row i at a centre mu is a squared distance in a norm of the row's own, so when
// centre l moves by D_l, it changes by no more than s D_l with s = sqrt(max(1, lam)). A row whose
// second centre is further than its own by `margin` keeps its cluster l for certain until
//
//     drop_l = sum over the passes since of  s (D_l + largest D of the other centres)
//
// has used the margin up. With drop_l summed up from the beginning, a row need not be checked while
//
//     certain_until_i = margin_i + drop_l (when measured)  >  drop_l (now),
//
// one number per row that changes only when the row is looked at. Labels are the same as without.
#pragma once
#include "labels.h"
#include "sums.h"

namespace mnar { namespace LEVEL { namespace {

constexpr double CAUTIOUS = 1 - 1e-6;  // covers the rounding of a margin

struct Moved {  // what became of a chunk
    Index changed;
    double largest;
};

struct Gathering {  // where the rows of a chunk are added up
    Stats stats;
    bool own_stats;    // of this chunk alone, one for each active start; otherwise those of all starts
    Changes& changes;  // room for a block
    Moved& moved;
};

constexpr Index SOME = 16;  // labels that are looked at together

// OUT changed (count,): the e < count where nearest[e] is not own[chosen[e]]. Returns how many.
INLINE Index find_changes(const Label* nearest, const Label* own, const Index* chosen, Index count,
                          int32_t* changed) {
    const bool consecutive = count > 0 && chosen[count - 1] - chosen[0] == count - 1;
    Index found = 0;
    for (Index start = 0; start < count; start += SOME) {
        const Index stop = min_of(start + SOME, count);
        Label apart = !consecutive;
        for (Index e = start; consecutive && e < stop; ++e) apart |= nearest[e] ^ own[chosen[0] + e];
        for (Index e = start; apart && e < stop; ++e) {  // no branches: changes are not to be foreseen
            changed[found] = int32_t(e);
            found += nearest[e] != own[chosen[e]];
        }
    }
    return found;
}

// As float32, rounded down; at once where float32 has too few digits for it, or no such number.
INLINE float rounded_down(double until) {
    return until > 0x1p-120 && until < 0x1p126 ? float(CAUTIOUS * until) : -__builtin_inff();
}

// Rows begin .. end get their best centres. INOUT pass.labels, to: all rows if fresh, otherwise what
// changed.
template <class Rows>
int32_t pass_rows(const Rows& rows, Labeller& by, Index begin, Index end, const Pass& pass,
                  const Gathering& to, const Control& control) {
    const Table& table = by.table;
    Index k = by.centers.k, p = table.p, groups = by.centers.groups;
    const double *weights = table.weights, *shift = by.centers.shift;
    Changes& changes = to.changes;
    Bounds bounds = pass.fresh ? Bounds{nullptr, nullptr} : pass.bounds;
    for (Index start = begin; start < end; start += BLOCK_ROWS) {
        if (cancelled(control)) return CANCELLED;
        Index stop = min_of(start + BLOCK_ROWS, end);
        Index count = by.choose(start, stop, pass.labels + pass.active[0] * table.n, bounds);
        if (!by.label(rows, count)) return OUT_OF_MEMORY;
        if (count == 0) continue;
        for (Index g = 0; g < groups; ++g) {
            Label* own = pass.labels + pass.active[g] * table.n;
            const Label* nearest = by.nearest + g * BLOCK_ROWS;
            Stats stats = stats_of(to.stats, to.own_stats ? g : pass.active[g], k, p);
            int32_t changed[BLOCK_ROWS];
            Index found = pass.fresh ? count : find_changes(nearest, own, by.chosen, count, changed);
            for (Index c = 0; c < found; ++c) {
                Index e = pass.fresh ? c : changed[c], i = by.chosen[e];
                Label old = own[i], now = nearest[e];
                own[i] = now;
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
        if (pass.bounds.certain_until)
            for (Index e = 0; e < count; ++e)
                pass.bounds.certain_until[by.chosen[e]] = rounded_down(by.margins[e] + pass.bounds.drop[by.nearest[e]]);
    }
    return DONE;
}

// One pass over a whole table: INOUT pass, stats [active[g]].
int32_t run_pass(const Table& table, const Centers& centers, Pass& pass, const Stats& stats,
                 Control& control) {
    Index k = centers.k, p = table.p, groups = centers.groups;
    Chunks chunks(table, OwnStats::bytes(groups, k, p));
    Prepare prepared(table, centers, pass.bounds.certain_until != nullptr);
    Array<OwnStats*> parts(chunks.count, nullptr);
    Array<Moved> moved(chunks.count, Moved{0, 0});
    if (!all_ok(prepared, parts, moved)) return OUT_OF_MEMORY;
    int32_t status = in_parallel(chunks.count, control, [&](Index s) -> int32_t {
        Labeller by(table, centers, prepared);
        Changes changes(k);
        parts[s] = make<OwnStats>(groups, k, p);
        if (!all_ok(by, changes) || !parts[s]) return OUT_OF_MEMORY;
        parts[s]->clear();
        const Gathering to{parts[s]->all(), true, changes, moved[s]};
        return with_rows(table, [&](const auto& rows) {
            return pass_rows(rows, by, chunks.begin(s), chunks.end(s), pass, to, control);
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
    count_done(control, 1);
    return status;
}

// OUT stats of one start, from its labels.
int32_t add_rows(const Table& table, const Centers& centers, const Label* labels, const Stats& stats,
                 Control& control) {
    Index k = centers.k, p = table.p;
    Chunks chunks(table, OwnStats::bytes(1, k, p));
    Array<OwnStats*> parts(chunks.count, nullptr);
    if (!parts.ok()) return OUT_OF_MEMORY;
    int32_t status = in_parallel(chunks.count, control, [&](Index s) -> int32_t {
        parts[s] = make<OwnStats>(1, k, p);
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
