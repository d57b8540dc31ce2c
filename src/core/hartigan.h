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
// division.
//
// A partition that no such move improves is also a fixed point of Lloyd's loop, but not the other way
// round: these optima are never worse.
#pragma once
#include "looks.h"
#include "pass.h"

namespace mnar { namespace LEVEL { namespace {

constexpr Index FEATURES_AT_ONCE = 256;  // after so many features a hopeless candidate is given up
constexpr double LEAST_SHARE = 1e-10;    // of the row's cost: a smaller gain may be rounding, and cycle
constexpr double NOTHING_LEFT = 1e-9;    // of a row's weight: what remains without it is rounding

// --- clusters that rows join and leave --------------------------------------------------------

enum Way { JOINING, LEAVING };

struct Prices {  // what rows of one weight pay per feature: a factor of (x - m)^2, or a sum for a gap
    Array<double> factor, gap;  // (k, p)
    Array<double> weight;       // (k,) for which they hold; -1 before they are made
    Prices(Index k, Index p) : factor(k * p), gap(k * p), weight(k, -1.0) {}
    bool ok() const { return all_ok(factor, gap, weight); }
};

struct Clusters {
    Index k, p;
    const double *lam, *c;
    double* mu;                        // (k, p) INOUT
    Array<double> counts, observers;   // (k, p) weight and number of the rows that observe a feature
    Array<double> sizes, members;      // (k,) weight and number of all rows
    Prices joining, leaving;

    Clusters(Index k, Index p, const double* lam, const double* c, double* mu)
        : k(k), p(p), lam(lam), c(c), mu(mu), counts(k * p, 0.0), observers(k * p, 0.0), sizes(k, 0.0),
          members(k, 0.0), joining(k, p), leaving(k, p) {}
    bool ok() const { return all_ok(counts, observers, sizes, members, joining, leaving); }

    // From the partition and its stats. False: out of memory.
    template <class Rows>
    bool begin(const Rows& rows, const double* weights, const Label* labels, const Stats& stats) {
        memcpy(counts, stats.counts, sizeof(double) * k * p);
        memcpy(sizes, stats.sizes, sizeof(double) * k);
        bool all_one = true;
        for (Index i = 0; i < rows.n; ++i) {
            if (weights[i] > 0) members[labels[i]] += 1;
            all_one = all_one && (weights[i] == 0 || weights[i] == 1);
        }
        if (all_one) {
            memcpy(observers, counts, sizeof(double) * k * p);
            return true;
        }
        Array<double> row(p), zero(p, 0.0), sums(p, 0.0);
        if (!all_ok(row, zero, sums)) return false;
        for (Index i = 0; i < rows.n; ++i)
            if (weights[i] > 0)
                add_row(rows, i, 1.0, zero, sums, observers + labels[i] * p, rows.scratch(row));
        return true;
    }

    // Weight of the gaps of a feature. Rounding must not leave a trace of rows that are not there.
    INLINE double gaps(Index l, Index at) const {
        double rest = sizes[l] - counts[at];
        return members[l] > observers[at] && rest > 0 ? rest : 0.0;
    }

    void set_prices(Way way, Index l, double w) const {
        const Prices& to = way == JOINING ? joining : leaving;
        for (Index j = 0; j < p; ++j) {
            const Index at = l * p + j;
            const double count = counts[at], unseen = gaps(l, at), pull = lam[j], own = pull * w;
            const double D = count + pull * unseen, away = c[j] - mu[at], square = away * away;
            double with, with_gap;  // the weight of the cluster after a row that observes the feature, or not
            if (way == JOINING) {
                with = D + w;
                with_gap = D + own;
            } else {  // nobody else knows this feature: the centre is the value itself, nothing to gain
                double others = observers[at] > 1 ? count - w : 0.0;
                double other_gaps = members[l] - observers[at] > 1 ? unseen - w : 0.0;
                with = others + pull * unseen;
                with_gap = count + pull * other_gaps;
            }
            double factor = w * D / with, price = own * D / with_gap * square;
            to.factor[at] = with > NOTHING_LEFT * w ? factor : 0.0;
            to.gap[at] = with_gap > NOTHING_LEFT * own ? price : 0.0;
        }
        to.weight[l] = w;
    }

    // A row of weight w joins (sign 1) or leaves (-1) cluster l.
    template <class T> void move(const T* row, double missing, double w, int sign, Index l) {
        sizes[l] += sign * w;
        members[l] += sign;
        for (Index j = 0; j < p; ++j) {
            const Index at = l * p + j;
            double x = row[j];
            bool is = x == x && x != missing;
            if (is) {
                observers[at] += sign;
                counts[at] = observers[at] > 0 ? counts[at] + sign * w : 0.0;
            }
            double own = is ? w : lam[j] * w, y = is ? x : c[j], D = counts[at] + lam[j] * gaps(l, at);
            if (own > 0 && D > NOTHING_LEFT * own) mu[at] += sign * own * (y - mu[at]) / D;
        }
        joining.weight[l] = leaving.weight[l] = -1;
    }
};

// What a row pays in the features start .. stop of a cluster, of which m, factor and gap are.
template <class T>
INLINE double price_of(const T* row, double missing, const double* m, const double* factor,
                       const double* gap, Index start, Index stop) {
    Sum8 sum;
    Index j = start;
    for (; j + EIGHT <= stop; j += EIGHT)
        UNROLL for (int part = 0; part < EIGHT / HALF; ++part) {
            Index at = j + part * HALF;
            Doubles x = load_doubles(row + at), away = x - load<Doubles>(m + at);
            Longs is = (x == x) & (x != missing);
            Longs price = (Longs)(load<Doubles>(factor + at) * (away * away)) & is;
            sum.parts[part] += (Doubles)(price | ((Longs)load<Doubles>(gap + at) & ~is));
        }
    double rest[EIGHT] = {};
    for (Index r = 0; j < stop; ++j, ++r) {
        double x = row[j], away = x - m[j];
        rest[r] = x == x && x != missing ? factor[j] * (away * away) : gap[j];
    }
    for (int part = 0; part < EIGHT / HALF; ++part)
        sum.parts[part] += load<Doubles>(rest + part * HALF);
    return sum.total();
}

// --- rows -------------------------------------------------------------------------------------

// The entries of a row one after the other, NaN or `missing` in its gaps.
template <class Rows> class RowReader {
  public:
    using T = typename Rows::Value;
    double missing;
    explicit RowReader(const Dense<T>& rows) : missing(rows.missing), room(rows.p), rows(rows) {}
    bool ok() const { return room.ok(); }
    const T* read(Index i) { return rows.row(i, room); }
    void forget(Index) {}

  private:
    Array<T> room;
    const Dense<T>& rows;
};

template <class T_> class RowReader<Sparse<T_>> {
  public:
    using T = T_;
    double missing = __builtin_nan("");
    explicit RowReader(const Sparse<T>& rows) : room(rows.p, T(__builtin_nan(""))), rows(rows) {}
    bool ok() const { return room.ok(); }
    const T* read(Index i) {
        for (Index e = rows.starts[i]; e < rows.starts[i + 1]; ++e) room[rows.indices[e]] = rows.values[e];
        return room;
    }
    void forget(Index i) {
        for (Index e = rows.starts[i]; e < rows.starts[i + 1]; ++e)
            room[rows.indices[e]] = T(__builtin_nan(""));
    }

  private:
    Array<T> room;
    const Sparse<T>& rows;
};

// --- passes -----------------------------------------------------------------------------------

struct Moves {
    Index count;
    double fall;  // of the loss
};

template <class Rows> class Mover {
  public:
    Mover(const Rows& rows, const double* weights, Clusters& clusters)
        : rows(rows), weights(weights), clusters(clusters), reader(rows),
          changed(clusters.k, Index(0)), clock(0) {}
    bool ok() const { return all_ok(reader, changed); }

    // INOUT labels (n,), clusters. One pass over all rows, in their order.
    int32_t pass(Label* labels, Moves& moves, const Control& control) {
        moves = {0, 0};
        for (Index i = 0; i < rows.n; ++i, ++clock) {
            if (i % STRETCH == 0 && cancelled(control)) return CANCELLED;
            if (weights[i] == 0 || clusters.members[labels[i]] <= 1 || !any_news()) continue;
            const T* row = reader.read(i);
            Index own = labels[i], best = own;
            double gain = price(LEAVING, row, weights[i], own, __builtin_inf());
            double least = gain * (1 - LEAST_SHARE);
            for (Index l = 0; l < clusters.k; ++l) {
                if (l == own || !(is_news(own) || is_news(l))) continue;
                double cost = price(JOINING, row, weights[i], l, least);
                if (cost < least) best = l, least = cost;
            }
            if (best != own) {
                clusters.move(row, reader.missing, weights[i], -1, own);
                clusters.move(row, reader.missing, weights[i], 1, best);
                changed[own] = changed[best] = last_change = clock;
                labels[i] = Label(best);
                ++moves.count;
                moves.fall += gain - least;
            }
            reader.forget(i);
        }
        return DONE;
    }

  private:
    using T = typename Rows::Value;
    const Rows& rows;
    const double* weights;
    Clusters& clusters;
    RowReader<Rows> reader;
    Array<Index> changed;  // (k,) when a row joined or left
    Index clock, last_change = 0;

    // Since a row was looked at last. If neither of two clusters is news, moving from one to the
    // other is still not worth it.
    bool is_news(Index l) const { return changed[l] >= clock - rows.n; }
    bool any_news() const { return last_change >= clock - rows.n; }

    // What a row pays for one way; something above `limit` if it is more than that.
    double price(Way way, const T* row, double w, Index l, double limit) {
        const Prices& prices = way == JOINING ? clusters.joining : clusters.leaving;
        if (prices.weight[l] != w) clusters.set_prices(way, l, w);
        Index at = l * clusters.p;
        double total = 0;
        for (Index start = 0; start < clusters.p && total < limit; start += FEATURES_AT_ONCE)
            total += price_of(row, reader.missing, clusters.mu + at, prices.factor + at, prices.gap + at,
                              start, least(start + FEATURES_AT_ONCE, clusters.p));
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
    Clusters clusters(k, p, centers.lam, centers.reference, mu);
    Mover<Rows> mover(rows, table.weights, clusters);
    if (!all_ok(clusters, mover)) return OUT_OF_MEMORY;
    if (!clusters.begin(rows, table.weights, labels, stats)) return OUT_OF_MEMORY;
    bool moved = false;
    Control alone{0, 1, 0};
    Index& done = starts.n_iter[r];
    while (done < starts.max_iter) {
        Moves moves;
        int32_t status = mover.pass(labels, moves, control);
        if (status != DONE) return status;
        if (moves.count == 0) break;
        moved = true;
        double before = path[done - 1], loss = before - moves.fall;
        if (!(loss > DIGITS_LEFT * before)) {
            status = loss_of(table, centers, labels, nullptr, &loss, alone);
            if (status != DONE) return status;
        }
        path[done++] = loss < before ? loss : before;
        if (moves.fall <= starts.tol * loss) break;
    }
    starts.settled[r] = done < starts.max_iter;
    if (!moved) return DONE;
    // The labels decide: what rounding the moves have left in the centres does not stay.
    int32_t status = add_rows(table, centers, labels, stats, alone);
    if (status == DONE) update_centers(stats, k, p, centers.lam, centers.reference, centers.shift, mu);
    return status;
}

// Hartigan's moves from where Lloyd's loop ended, for the starts in chosen (C,); counts those finished.
// INOUT labels, mu, paths, n_iter, settled; stats, if rows moved.
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
