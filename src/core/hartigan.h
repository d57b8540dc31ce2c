// Hartigan's moves: one row at a time changes cluster whenever the loss falls.
//
// Seen by a cluster, feature j of row i is a point y of weight w: the observed value with the row's
// weight, or the reference with lam_j times it. If the cluster has weight D and centre m there,
//
//     joining costs   sum_j  w D / (D + w) (y - m)^2
//     leaving gains   sum_j  w D / (D - w) (y - m)^2
//
// The factors and all that a gap costs are the same for every row of one weight: they are kept per
// cluster (``Prices``) and made anew when a row has joined or left, so that looking at a row takes no
// division. (Next to a row that is all but the whole cluster, y - m has no digits left. Such a cluster
// is added up without the row, and leaving gains what joining it again would cost.)
//
// A partition that no such move improves is also a fixed point of Lloyd's loop, but not the other way
// round: these optima are never worse.
#pragma once
#include "predict.h"

namespace mnar { namespace LEVEL { namespace {

constexpr Index FEATURES_AT_ONCE = 256;  // after so many features a hopeless candidate is given up
constexpr double LEAST_SHARE = 1e-10;    // of the row's cost: a smaller gain may be rounding, and cycle
constexpr double NOTHING_LEFT = 1e-9;    // of a row's weight: what remains without it is rounding
constexpr double DIGITS_LOST = 1e-5;     // of a row's weight: what remains is added up again

// --- clusters that rows join and leave --------------------------------------------------------

enum Way { JOINING, LEAVING };
constexpr Label UNASSIGNED = -1;

// Features come in whole eights. Those beyond the last are gaps that cost nothing.
struct Prices {  // what rows of one weight pay per feature: a factor of (x - m)^2, or a sum for a gap
    Array<double> factor, gap;  // (k, room)
    Array<double> weight;       // (k,) for which they hold; -1 before they are made
    Array<bool> heavy;          // (k,) a row of that weight is all but the whole cluster in some feature
    Prices(Index k, Index room) : factor(k * room), gap(k * room), weight(k, -1.0), heavy(k, false) {}
    bool ok() const { return all_ok(factor, gap, weight, heavy); }
};

struct Clusters {
    Index k, p, room;
    Array<double> lam, c;             // (room,)
    Array<double> m;                  // (k, room) the centres
    Array<double> counts, observers;  // (k, room) weight and number of the rows that observe a feature
    Array<double> sizes, members;     // (k,) weight and number of all rows
    bool unit_weights = true;         // sums then lose nothing when a row leaves
    Prices joining, leaving;

    Clusters(const Centers& centers, Index p)
        : k(centers.k), p(p), room(whole_eights(p)), lam(room, 0.0), c(room, 0.0), m(k * room, 0.0),
          counts(k * room, 0.0), observers(k * room, 0.0), sizes(k, 0.0), members(k, 0.0),
          joining(k, room), leaving(k, room) {
        if (!ok()) return;
        memcpy(lam, centers.lam, sizeof(double) * p);
        memcpy(c, centers.reference, sizeof(double) * p);
    }
    bool ok() const { return all_ok(lam, c, m, counts, observers, sizes, members, joining, leaving); }

    // From a partition, its stats and its centres mu (k, p). False: out of memory.
    template <class Rows>
    bool begin(const Rows& rows, const double* weights, const Label* labels, const Stats& stats, const double* mu) {
        memcpy(sizes, stats.sizes, sizeof(double) * k);
        for (Index l = 0; l < k; ++l) {
            memcpy(counts + l * room, stats.counts + l * p, sizeof(double) * p);
            memcpy(m + l * room, mu + l * p, sizeof(double) * p);
            members[l] = 0, joining.weight[l] = leaving.weight[l] = -1;
        }
        for (Index i = 0; i < rows.n; ++i) {
            if (weights[i] > 0) members[labels[i]] += 1;
            unit_weights = unit_weights && (weights[i] == 0 || weights[i] == 1);
        }
        if (unit_weights) {
            memcpy(observers, counts, sizeof(double) * k * room);
            return true;
        }
        Array<double> row(p), zero(p, 0.0), sums(p, 0.0);
        if (!all_ok(row, zero, sums)) return false;
        memset(observers, 0, sizeof(double) * k * room);
        for (Index i = 0; i < rows.n; ++i)
            if (weights[i] > 0)
                add_row(rows, i, 1.0, zero, sums, observers + labels[i] * room, rows.scratch(row));
        return true;
    }

    // Weight of the gaps of a feature. Rounding must not leave a trace of rows that are not there.
    INLINE Doubles gaps(Index l, Doubles count, Doubles observing) const {
        Doubles rest = sizes[l] - count;
        return keep((members[l] > observing) & (rest > 0.0), rest);
    }

    template <Way WAY> void set_prices(Index l, double w) const {
        const Prices& to = WAY == JOINING ? joining : leaving;
        Longs heavy{};
        for (Index j = 0; j < room; j += HALF) {
            const Index at = l * room + j;
            const Doubles count = load<Doubles>(counts + at), observing = load<Doubles>(observers + at);
            const Doubles pull = load<Doubles>(lam + j), gap_weight = pull * w;
            const Doubles unseen = gaps(l, count, observing);
            const Doubles away = load<Doubles>(c + j) - load<Doubles>(m + at), D = count + pull * unseen;
            Doubles with, with_gap;  // the cluster's weight after a row that observes the feature, or not
            if (WAY == JOINING) {
                with = D + w;
                with_gap = D + gap_weight;
            } else {  // where nobody else knows the feature the centre is the value itself: no gain
                with = keep(observing > 1.0, count - w) + pull * unseen;
                with_gap = count + pull * keep(members[l] - observing > 1.0, unseen - w);
                heavy |= (observing > 1.0) & (with < DIGITS_LOST * w);
                heavy |= (members[l] - observing > 1.0) & (with_gap < DIGITS_LOST * gap_weight);
            }
            store(to.factor + at, keep(with > NOTHING_LEFT * w, w * D / with));
            const Doubles gap_price = gap_weight * D / with_gap * (away * away);
            store(to.gap + at, keep(with_gap > NOTHING_LEFT * gap_weight, gap_price));
        }
        to.weight[l] = w;
        to.heavy[l] = !unit_weights && any(heavy);
    }

    // A row (room,) of weight w joins (sign 1) or leaves (-1) cluster l.
    void move(const double* row, double w, double sign, Index l) {
        sizes[l] += sign * w;
        members[l] += sign;
        for (Index j = 0; j < room; j += HALF) {
            const Index at = l * room + j;
            const Doubles x = load<Doubles>(row + j), pull = load<Doubles>(lam + j);
            const Longs is = x == x;
            Doubles count = load<Doubles>(counts + at), observing = load<Doubles>(observers + at);
            observing += keep(is, splat(sign));
            count = keep(observing > 0.0, count + keep(is, splat(sign * w)));
            const Doubles weight = is ? splat(w) : pull * w, y = is ? x : load<Doubles>(c + j);
            const Doubles D = count + pull * gaps(l, count, observing), before = load<Doubles>(m + at);
            const Longs counts_here = (weight > 0.0) & (D > NOTHING_LEFT * weight);
            const Doubles by = keep(counts_here, sign * weight * (y - before) / D);
            store(counts + at, count);
            store(observers + at, observing);
            store(m + at, before + by);
        }
        joining.weight[l] = leaving.weight[l] = -1;
    }
};

// What a row pays in the features start .. stop of a cluster, of which m, factor and gap are.
INLINE double price_of(const double* row, const double* m, const double* factor, const double* gap,
                       Index start, Index stop) {
    Sum8 sum;
    for (Index j = start; j < stop; j += EIGHT)
        UNROLL for (int part = 0; part < EIGHT / HALF; ++part) {
            const Index at = j + part * HALF;
            const Doubles x = load<Doubles>(row + at), away = x - load<Doubles>(m + at);
            const Longs is = x == x;
            const Longs price = (Longs)(load<Doubles>(factor + at) * (away * away)) & is;
            sum.parts[part] += (Doubles)(price | ((Longs)load<Doubles>(gap + at) & ~is));
        }
    return sum.total();
}

// --- rows -------------------------------------------------------------------------------------

// OUT out (room,), NaN before: row i, NaN in its gaps.
template <class T> INLINE void spread_row(const Dense<T>& rows, Index i, double* out) {
    const double gap = __builtin_nan("");
    const T* at = rows.values + i * rows.row_stride;
    Index j = 0;
    for (; rows.is_contiguous() && j + HALF <= rows.p; j += HALF) {
        Doubles x = load_doubles(at + j);
        store(out + j, x == rows.missing ? splat(gap) : x);
    }
    for (; j < rows.p; ++j) {
        double x = at[j * rows.column_stride];
        out[j] = x == rows.missing ? gap : x;
    }
}
template <class T> INLINE void spread_row(const Sparse<T>& rows, Index i, double* out) {
    for (Index e = rows.starts[i]; e < rows.starts[i + 1]; ++e) out[rows.indices[e]] = rows.values[e];
}

// INOUT out: what row i left is taken away, where the next one would not overwrite it.
template <class T> INLINE void forget_row(const Dense<T>&, Index, double*) {}
template <class T> INLINE void forget_row(const Sparse<T>& rows, Index i, double* out) {
    for (Index e = rows.starts[i]; e < rows.starts[i + 1]; ++e) out[rows.indices[e]] = __builtin_nan("");
}

// --- passes -----------------------------------------------------------------------------------

struct Moves {
    Index count;
    double fall;  // of the loss
};

template <class Rows> class Mover {
  public:
    Mover(const Rows& rows, const double* weights, Clusters& clusters)
        : rows(rows), weights(weights), clusters(clusters), row(clusters.room, __builtin_nan("")),
          member(clusters.room, __builtin_nan("")), changed(clusters.k, Index(0)), clock(0) {}
    bool ok() const { return all_ok(row, member, changed); }

    // INOUT labels (n,), clusters. One pass over all rows, in their order.
    int32_t pass(Label* labels, Moves& moves, const Control& control) {
        moves = {0, 0};
        for (Index i = 0; i < rows.n; ++i, ++clock) {
            if (i % BLOCK_ROWS == 0 && cancelled(control)) return CANCELLED;
            if (weights[i] == 0 || clusters.members[labels[i]] <= 1 || !any_changed()) continue;
            spread_row(rows, i, row);
            Index current = labels[i], best = current;
            double gain = price<LEAVING>(weights[i], current, __builtin_inf());
            const bool is_out = clusters.leaving.heavy[current];
            if (is_out) {
                labels[i] = UNASSIGNED;
                add_up(labels, current);
                gain = price<JOINING>(weights[i], current, __builtin_inf());
            }
            double least = gain * (1 - LEAST_SHARE);
            for (Index l = 0; l < clusters.k; ++l) {
                if (l == current || !(has_changed(current) || has_changed(l))) continue;
                double cost = price<JOINING>(weights[i], l, least);
                if (cost < least) best = l, least = cost;
            }
            if (best != current && !is_out) clusters.move(row, weights[i], -1, current);
            if (best != current || is_out) clusters.move(row, weights[i], 1, best);
            labels[i] = Label(best);
            if (best != current) {
                changed[current] = changed[best] = last_change = clock;
                ++moves.count;
                moves.fall += gain - least;
            }
            forget_row(rows, i, row);
        }
        return DONE;
    }

  private:
    const Rows& rows;
    const double* weights;
    Clusters& clusters;
    Array<double> row;     // (room,) the one looked at
    Array<double> member;  // (room,) one of a cluster that is added up
    Array<Index> changed;  // (k,) when a row joined or left
    Index clock, last_change = 0;

    // Since a row was looked at last. If neither of two clusters is news, moving from one to the
    // other is still not worth it.
    bool has_changed(Index l) const { return changed[l] >= clock - rows.n; }
    bool any_changed() const { return last_change >= clock - rows.n; }

    // Cluster l from its rows: nothing is ever taken away, so no digit is lost.
    void add_up(const Label* labels, Index l) {
        clusters.sizes[l] = clusters.members[l] = 0;
        memset(clusters.counts + l * clusters.room, 0, sizeof(double) * clusters.room);
        memset(clusters.observers + l * clusters.room, 0, sizeof(double) * clusters.room);
        for (Index i = 0; i < rows.n; ++i) {
            if (labels[i] != l || weights[i] == 0) continue;
            spread_row(rows, i, member);
            clusters.move(member, weights[i], 1, l);
            forget_row(rows, i, member);
        }
    }

    // What the row pays for one way; something above `limit` if it is more than that.
    template <Way WAY> double price(double w, Index l, double limit) {
        const Prices& prices = WAY == JOINING ? clusters.joining : clusters.leaving;
        if (prices.weight[l] != w) clusters.set_prices<WAY>(l, w);
        const Index at = l * clusters.room;
        double total = 0;
        for (Index start = 0; start < clusters.room && total < limit; start += FEATURES_AT_ONCE)
            total += price_of(row, clusters.m + at, prices.factor + at, prices.gap + at, start,
                              min_of(start + FEATURES_AT_ONCE, clusters.room));
        return total;
    }
};

// Moves rows of start r until no move helps, or a pass gains less than the share tol.
template <class Rows>
int32_t move_rows(const Rows& rows, const Table& table, const Starts& starts, Index r, Control& control) {
    const Index k = starts.k, p = table.p;
    Label* labels = starts.labels + r * table.n;
    double *mu = starts.mu + r * k * p, *path = starts.paths + r * starts.max_iter;
    const Centers centers{1, k, mu, starts.lam + r * p, starts.reference, starts.shift};
    const Stats stats = stats_of(starts.stats, r, k, p);
    Clusters clusters(centers, p);
    Mover<Rows> mover(rows, table.weights, clusters);
    if (!all_ok(clusters, mover)) return OUT_OF_MEMORY;
    if (!clusters.begin(rows, table.weights, labels, stats, mu)) return OUT_OF_MEMORY;
    Control single_thread{0, 1, 0};
    // Stats, centres and OUT loss from the labels alone: what rounding the moves have left does not stay.
    auto settle = [&](double& loss) -> int32_t {
        int32_t status = add_rows(table, centers, labels, stats, single_thread);
        if (status != DONE) return status;
        update_centers(stats, k, p, centers.lam, centers.reference, centers.shift, mu);
        return loss_of(table, centers, labels, nullptr, &loss, single_thread);
    };
    Index& done = starts.n_iter[r];
    const Index begun = done;
    double known = path[done - 1];  // the last loss that was summed up, not taken from another one
    while (done < starts.max_iter) {
        Moves moves;
        int32_t status = mover.pass(labels, moves, control);
        if (status != DONE) return status;
        if (moves.count == 0) break;
        double before = path[done - 1], loss = before - moves.fall;
        if (!(loss > DIGITS_LEFT * known)) {  // rows that left have taken nearly all of the loss, not their rounding
            status = settle(loss);
            if (status != DONE) return status;
            if (!clusters.begin(rows, table.weights, labels, stats, mu)) return OUT_OF_MEMORY;
            known = loss;
        }
        path[done++] = loss < before ? loss : before;
        if (moves.fall <= starts.tol * loss) break;
    }
    if (done == begun) return DONE;
    double last;
    int32_t status = settle(last);
    if (status != DONE) return status;
    path[done - 1] = last;  // and no loss on the way was below it, whatever the falls added up to
    for (Index t = done - 1; t > 0 && path[t - 1] < last; --t) path[t - 1] = last;
    return DONE;
}

// Hartigan's moves from where Lloyd's loop ended, for the starts in chosen (C,); counts those finished.
// INOUT labels, mu, paths, n_iter; stats, if rows moved.
int32_t hartigan(const Table& table, const Starts& starts, const Index* chosen, Index count,
                 Control& control) {
    return in_parallel(count, control, [&](Index which) -> int32_t {
        int32_t status = with_rows(table, [&](const auto& rows) {
            return move_rows(rows, table, starts, chosen[which], control);
        });
        count_done(control, 1);
        return status;
    });
}

}}}  // namespace mnar::LEVEL
