// Passes over the rows of a table: labels, sums of clusters, bounds, losses.
//
// Rows are labelled a stretch at a time by the certified kernels (certified.h); what those leave
// UNSURE is decided by direct differences (rows.h). A pass over a large table is cut into slabs that
// threads take one after the other; their sums are added in the order of the slabs.
//
// Bounds. The loss of row i at a centre mu is a squared distance in a norm of the row's own, so when
// centre l moves by D_l, it changes by no more than s D_l with s = sqrt(max(1, lam)). A row whose
// second centre is further than its own by `margin` keeps its cluster l for certain until
//
//     drop_l = sum over the passes since of  s (D_l + largest D of the other centres)
//
// has used the margin up. With drop_l summed up from the beginning, a row need not be checked while
//
//     expiry_i = margin_i + drop_l (when measured)  >  drop_l (now),
//
// one number per row that changes only when the row is looked at. Labels are the same as without.
#pragma once
#include "certified.h"
#include "loss.h"

namespace mnar { namespace LEVEL {

extern const Certified certified;  // certified.cpp

namespace {

constexpr double MOSTLY = 0.75;         // when more of a stretch must be checked, all of it is
constexpr double CAUTIOUS = 1 - 1e-6;   // covers the rounding of a margin
constexpr Index ROWS_AHEAD = 16;        // rows asked for before they are needed

// What all threads of a pass share: the centres' tables.
struct Prepare {
    Prepared* tables;
    Prepare(const Table& table, const Centers& centers) : tables(certified.prepare(table, centers)) {}
    Prepare(const Prepare&) = delete;
    ~Prepare() { certified.forget(tables); }
    bool ok() const { return tables; }
};

// What one thread needs to label rows.
class Labeller {
  public:
    const Table& table;
    const Centers& centers;
    Array<Index> chosen;
    Array<Label> nearest;  // (groups, STRETCH)
    Array<float> margins;
    Array<double> row;     // scratch of one row, whatever its type

    Labeller(const Table& table, const Centers& centers, const Prepare& prepared, const Packed* packed)
        : table(table), centers(centers), chosen(STRETCH), nearest(centers.groups * STRETCH),
          margins(STRETCH), row(table.p), prepared(prepared), packed(packed),
          distances((centers.k + EIGHT) / EIGHT * EIGHT + EIGHT),
          direct(centers.groups, nullptr), scratch(certified.make_scratch(table, centers)) {}
    ~Labeller() {
        certified.drop(scratch);
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
        if (!bounds.expiry || packed) return choose_all(start, stop);
        Index count = 0;
        for (Index i = start; i < stop; ++i) {
            chosen[count] = i;
            count += !(bounds.expiry[i] > bounds.drop[labels[i]]);
        }
        return count < MOSTLY * (stop - start) ? count : choose_all(start, stop);
    }
    // OUT nearest of the `count` chosen rows, margins if wanted. False: out of memory.
    template <class Rows> bool label(const Rows& rows, Index count, bool wants_margins) {
        if (count == 0) return true;
        Index unsure = certified.label(table, *prepared.tables, packed, *scratch, chosen, count, nearest,
                                       STRETCH, wants_margins ? margins.get() : nullptr);
        for (Index g = 0; unsure > 0 && g < centers.groups; ++g)
            for (Index e = 0; e < count; ++e) {
                Label& label = nearest[g * STRETCH + e];
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
    const Packed* packed;
    Array<double> distances;
    Array<Direct*> direct;  // of each start, once one of its labels is unsure
    Scratch* scratch;
};

// --- one assignment pass ----------------------------------------------------------------------

struct Moved {  // what became of a slab
    Index changed;
    double largest;
};

// The next e >= from, e < count, where nearest[e] is not own[chosen[e]].
INLINE Index next_change(const Label* nearest, const Label* own, const Index* chosen, Index from,
                         Index count) {
    constexpr Index SOME = 16;
    if (chosen[count - 1] - chosen[0] == count - 1)  // consecutive rows: some at once
        while (from + SOME <= count
               && memcmp(nearest + from, own + chosen[0] + from, SOME * sizeof(Label)) == 0)
            from += SOME;
    while (from < count && nearest[from] == own[chosen[from]]) ++from;
    return from;
}

// Rows begin .. end get their best centres. INOUT pass.labels; stats[active[g]] or, with
// `own_stats`, stats[g]: all rows if fresh, otherwise what changed.
template <class Rows>
int32_t pass_rows(const Rows& rows, Labeller& by, Index begin, Index end, const Pass& pass,
                  bool own_stats, const Stats& stats, Moved& moved, const Control& control) {
    const Table& table = by.table;
    Index k = by.centers.k, p = table.p, groups = by.centers.groups;
    const double *weights = table.weights, *shift = by.centers.shift;
    auto* scratch = rows.scratch(by.row);
    Bounds bounds = pass.fresh ? Bounds{nullptr, nullptr} : pass.bounds;
    for (Index start = begin; start < end; start += STRETCH) {
        if (cancelled(control)) return CANCELLED;
        Index stop = least(start + STRETCH, end);
        Index count = by.choose(start, stop, pass.labels + pass.active[0] * pass.label_stride, bounds);
        if (!by.label(rows, count, pass.bounds.expiry != nullptr)) return OUT_OF_MEMORY;
        if (count == 0) continue;
        for (Index g = 0; g < groups; ++g) {
            Label* own = pass.labels + pass.active[g] * pass.label_stride;
            const Label* nearest = by.nearest + g * STRETCH;
            Stats to = stats_of(stats, own_stats ? g : pass.active[g], k, p);
            for (Index e = 0;; ++e) {
                if (!pass.fresh) e = next_change(nearest, own, by.chosen, e, count);
                if (e >= count) break;
                Index i = by.chosen[e];
                Label old = own[i], now = nearest[e];
                own[i] = now;
                moved.changed += now != old;
                double w = weights[i];
                if (w == 0) continue;
                double square = transfer(rows, i, table.first, 1, w, shift, now, to, scratch);
                if (pass.fresh) {
                    *to.squares += w * square;
                    continue;
                }
                transfer(rows, i, table.first, -1, w, shift, old, to, scratch);
                moved.largest = larger(moved.largest, square);
            }
        }
        if (pass.bounds.expiry)
            for (Index e = 0; e < count; ++e)
                pass.bounds.expiry[by.chosen[e]] =
                    float(CAUTIOUS * (by.margins[e] + pass.bounds.drop[by.nearest[e]]));
    }
    return DONE;
}

// One pass over a whole table: INOUT pass, stats [active[g]].
int32_t run_pass(const Table& table, const Centers& centers, Pass& pass, const Stats& stats,
                 Control& control) {
    Index k = centers.k, p = table.p, groups = centers.groups;
    Slabs slabs(table, OwnStats::bytes(groups, k, p));
    Prepare prepared(table, centers);
    Array<OwnStats*> parts(slabs.count, nullptr);
    Array<Moved> moved(slabs.count, Moved{0, 0});
    if (!all_ok(prepared, parts, moved)) return OUT_OF_MEMORY;
    int32_t status = in_parallel(slabs.count, control, [&](Index s) -> int32_t {
        Labeller by(table, centers, prepared, nullptr);
        parts[s] = make<OwnStats>(groups, k, p);
        if (!by.ok() || !parts[s]) return OUT_OF_MEMORY;
        parts[s]->clear();
        return with_rows(table, [&](const auto& rows) {
            return pass_rows(rows, by, slabs.begin(s), slabs.end(s), pass, true, parts[s]->all(), moved[s],
                             control);
        });
    });
    pass.changed = 0;
    pass.largest_move = 0;
    for (Index s = 0; s < slabs.count; ++s) {
        for (Index g = 0; status == DONE && g < groups; ++g)
            merge_stats(stats_of(parts[s]->all(), g, k, p), k, p, stats_of(stats, pass.active[g], k, p));
        unmake(parts[s]);
        pass.changed += moved[s].changed;
        pass.largest_move = larger(pass.largest_move, moved[s].largest);
    }
    count_done(control, 1);
    return status;
}

// --- labels, losses, distances ----------------------------------------------------------------

// work(rows, begin, end, slab) over the slabs of a table.
template <class Work> int32_t over_slabs(const Table& table, Control& control, const Work& work) {
    Slabs slabs(table);
    return in_parallel(slabs.count, control, [&](Index s) -> int32_t {
        int32_t status = with_rows(table, [&](const auto& rows) -> int32_t {
            return work(rows, slabs.begin(s), slabs.end(s), s);
        });
        count_done(control, 1);
        return status;
    });
}

// OUT labels (G, n).
int32_t assign(const Table& table, const Centers& centers, Label* labels, Control& control) {
    Prepare prepared(table, centers);
    if (!prepared.ok()) return OUT_OF_MEMORY;
    return over_slabs(table, control, [&](const auto& rows, Index begin, Index end, Index) -> int32_t {
        Labeller by(table, centers, prepared, nullptr);
        if (!by.ok()) return OUT_OF_MEMORY;
        for (Index start = begin; start < end; start += STRETCH) {
            if (cancelled(control)) return CANCELLED;
            Index count = by.choose_all(start, least(start + STRETCH, end));
            if (!by.label(rows, count, false)) return OUT_OF_MEMORY;
            for (Index g = 0; g < centers.groups; ++g)
                memcpy(labels + g * table.n + start, by.nearest + g * STRETCH, sizeof(Label) * count);
        }
        return DONE;
    });
}

// The same by the plain loop alone.
int32_t assign_plain(const Table& table, const Centers& centers, Label* labels, Control& control) {
    return over_slabs(table, control, [&](const auto& rows, Index begin, Index end, Index) -> int32_t {
        for (Index g = 0; g < centers.groups; ++g) {
            Direct direct(centers, g, table.p);
            Array<double> distances(direct.room);
            if (!all_ok(direct, distances)) return OUT_OF_MEMORY;
            for (Index i = begin; i < end; ++i) {
                if (i % STRETCH == 0 && cancelled(control)) return CANCELLED;
                labels[g * table.n + i] = nearest_of(rows, i, direct, distances);
            }
        }
        return DONE;
    });
}

struct GapCosts {  // what gaps cost at the k centres of one start
    Array<double> gap, pull;
    GapCosts(const Centers& centers, Index p) : gap(centers.k * p), pull(centers.k) {
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
double sum_costs(const Rows& rows, const Table& table, const Centers& centers, const GapCosts& gaps,
                 Index begin, Index end, const Label* labels, double* row, double* each) {
    double total = 0;
    for (Index i = begin; i < end; ++i) {
        Index l = labels[i], at = l * table.p;
        ask_ahead(rows, i + ROWS_AHEAD);
        double cost = cost_of(rows, i, centers.mu + at, gaps.gap + at, gaps.pull[l], rows.scratch(row));
        if (each) each[i] = cost;
        total += table.weights[i] * cost;
    }
    return total;
}

// OUT loss: of the partition, by direct differences; each (n,): of every row, unless null.
int32_t loss_of(const Table& table, const Centers& centers, const Label* labels, double* each,
                double* loss, Control& control) {
    Index n_slabs = Slabs(table).count;
    GapCosts gaps(centers, table.p);
    Array<double> losses(n_slabs, 0.0);
    if (!all_ok(gaps, losses)) return OUT_OF_MEMORY;
    int32_t status = over_slabs(table, control, [&](const auto& rows, Index begin, Index end, Index s) -> int32_t {
        Array<double> row(table.p);
        if (!row.ok()) return OUT_OF_MEMORY;
        losses[s] = sum_costs(rows, table, centers, gaps, begin, end, labels, row, each);
        return DONE;
    });
    *loss = 0;
    for (Index s = 0; s < n_slabs; ++s) *loss += losses[s];
    return status;
}

// INOUT labels (n,): those the centres give; what bounds know is not looked at again. OUT members
// (k,): rows of each label; loss: of them all, by direct differences.
int32_t last_look(const Table& table, const Centers& centers, const Bounds& bounds, Label* labels,
                  Index* members, double* loss, Control& control) {
    Index k = centers.k, n_slabs = Slabs(table).count;
    Prepare prepared(table, centers);
    GapCosts gaps(centers, table.p);
    Array<double> losses(n_slabs, 0.0);
    Array<Index> counts(n_slabs * k, 0);
    if (!all_ok(prepared, gaps, losses, counts)) return OUT_OF_MEMORY;
    int32_t status = over_slabs(table, control, [&](const auto& rows, Index begin, Index end, Index s) -> int32_t {
        Labeller by(table, centers, prepared, nullptr);
        if (!by.ok()) return OUT_OF_MEMORY;
        for (Index start = begin; start < end; start += STRETCH) {
            if (cancelled(control)) return CANCELLED;
            Index stop = least(start + STRETCH, end);
            Index count = by.choose(start, stop, labels, bounds);
            if (!by.label(rows, count, false)) return OUT_OF_MEMORY;
            for (Index e = 0; e < count; ++e) labels[by.chosen[e]] = by.nearest[e];
            for (Index i = start; i < stop; ++i) ++counts[s * k + labels[i]];
            losses[s] += sum_costs(rows, table, centers, gaps, start, stop, labels, by.row, nullptr);
        }
        return DONE;
    });
    *loss = 0;
    memset(members, 0, sizeof(Index) * k);
    for (Index s = 0; s < n_slabs; ++s) {
        *loss += losses[s];
        for (Index l = 0; l < k; ++l) members[l] += counts[s * k + l];
    }
    return status;
}

// OUT out (n, k), float32 or float64: the loss of each row at every centre, or its square root.
int32_t distances(const Table& table, const Centers& centers, int32_t roots, int32_t is_double,
                  void* out, Control& control) {
    Index k = centers.k;
    return over_slabs(table, control, [&](const auto& rows, Index begin, Index end, Index) -> int32_t {
        Direct direct(centers, 0, table.p);
        Array<double> one(direct.room);
        if (!all_ok(direct, one)) return OUT_OF_MEMORY;
        for (Index i = begin; i < end; ++i) {
            if (i % STRETCH == 0 && cancelled(control)) return CANCELLED;
            distances_of(rows, i, direct, one);
            for (Index l = 0; l < k; ++l) {
                double d = roots ? __builtin_sqrt(one[l]) : one[l];
                if (is_double)
                    static_cast<double*>(out)[i * k + l] = d;
                else
                    static_cast<float*>(out)[i * k + l] = float(d);
            }
        }
        return DONE;
    });
}

// OUT stats of one start, from its labels.
int32_t add_rows(const Table& table, const Centers& centers, const Label* labels, const Stats& stats,
                 Control& control) {
    Index k = centers.k, p = table.p;
    Slabs slabs(table, OwnStats::bytes(1, k, p));
    Array<OwnStats*> parts(slabs.count, nullptr);
    if (!parts.ok()) return OUT_OF_MEMORY;
    int32_t status = in_parallel(slabs.count, control, [&](Index s) -> int32_t {
        parts[s] = make<OwnStats>(1, k, p);
        Array<double> row(p);
        if (!parts[s] || !row.ok()) return OUT_OF_MEMORY;
        parts[s]->clear();
        Stats to = parts[s]->all();
        with_rows(table, [&](const auto& rows) {
            for (Index i = slabs.begin(s); i < slabs.end(s); ++i) {
                double w = table.weights[i];
                if (w != 0)
                    *to.squares += w * transfer(rows, i, table.first, 1, w, centers.shift, labels[i], to,
                                                rows.scratch(row));
            }
            return 0;
        });
        return DONE;
    });
    clear_stats(stats, k, p);
    for (Index s = 0; s < slabs.count; ++s) {
        if (status == DONE) merge_stats(parts[s]->all(), k, p, stats);
        unmake(parts[s]);
    }
    return status;
}

// --- empty clusters ---------------------------------------------------------------------------

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
int32_t rescue(const Table& table, const Centers& centers, int32_t whole_weights, Label* labels,
               const Stats& stats, Bounds bounds, Control& control) {
    Index k = centers.k, n = table.n;
    Array<Index> members(k, 0), taken(k);
    if (!all_ok(members, taken)) return OUT_OF_MEMORY;
    for (Index i = 0; i < n; ++i)
        if (table.weights[i] > 0) ++members[labels[i]];
    Index empty = 0;
    for (Index l = 0; l < k; ++l) empty += members[l] == 0;
    if (empty == 0) return DONE;
    Array<double> own(n), row(table.p);
    if (!all_ok(own, row)) return OUT_OF_MEMORY;
    double loss;
    int32_t status = loss_of(table, centers, labels, own, &loss, control);
    if (status != DONE) return status;
    choose_rescued(own, table.weights, labels, n, k, members, taken);
    for (Index l = 0; l < k; ++l) {
        Index i = taken[l];
        if (i < 0) continue;
        if (whole_weights)
            with_rows(table, [&](const auto& rows) {
                auto* scratch = rows.scratch(row);
                double w = table.weights[i];
                transfer(rows, i, table.first, -1, w, centers.shift, labels[i], stats, scratch);
                transfer(rows, i, table.first, 1, w, centers.shift, l, stats, scratch);
                return 0;
            });
        labels[i] = Label(l);
        if (bounds.expiry) bounds.expiry[i] = -__builtin_inff();
    }
    // Taking away what was added is exact for whole weights only.
    return whole_weights ? int32_t(DONE) : add_rows(table, centers, labels, stats, control);
}

}  // namespace
}}  // namespace mnar::LEVEL
