// The maths of the loss: sums of clusters, centres from them, the loss of a partition, and which
// starts go on.
//
//     L = sum_i s_i min_l [ sum_{j observed} (x_ij - mu_lj)^2 + sum_{j missing} lam_j (mu_lj - c_j)^2 ]
//
// Three sums per cluster hold all that the centres and the loss need, and they add up over any split
// of the rows: S of the observed values, C the weight of the observing rows, N the weight of all rows.
// With x, mu and c all taken relative to a shift,
//
//     centre  mu = (S + lam (N - C) c) / (C + lam (N - C))
//     loss    sum x^2 + sum_lj [ C mu^2 - 2 mu S + lam (N - C) (mu - c)^2 ]
#pragma once
#include "rows.h"

namespace mnar { namespace LEVEL { namespace {

// The stats of start r.
INLINE Stats stats_of(const Stats& all, Index r, Index k, Index p) {
    return {all.sums + r * k * p, all.counts + r * k * p, all.sizes + r * k, all.keys + r * k,
            all.squares + r};
}

INLINE void clear_stats(const Stats& of, Index k, Index p) {
    memset(of.sums, 0, sizeof(double) * k * p);
    memset(of.counts, 0, sizeof(double) * k * p);
    memset(of.sizes, 0, sizeof(double) * k);
    memset(of.keys, 0, sizeof(uint64_t) * k);
    *of.squares = 0;
}

// Stats of one start after the other in one piece of memory, for the sums of a chunk.
struct ChunkStats {
    Index groups, k, p;
    Array<double> numbers;
    Array<uint64_t> keys;

    ChunkStats(Index groups, Index k, Index p)
        : groups(groups), k(k), p(p), numbers(groups * (k * (2 * p + 1) + 1)), keys(groups * k) {}
    bool ok() const { return all_ok(numbers, keys); }
    static Index bytes(Index groups, Index k, Index p) { return 8 * groups * (k * (2 * p + 2) + 1); }

    Stats all() const {
        double *counts = numbers + groups * k * p, *sizes = counts + groups * k * p;
        return {numbers, counts, sizes, keys, sizes + groups * k};
    }
    void clear() const {
        for (Index g = 0; g < groups; ++g) clear_stats(stats_of(all(), g, k, p), k, p);
    }
};

INLINE void add_numbers(const double* part, Index size, double* total) {
    for (Index i = 0; i < size; ++i) total[i] += part[i];
}

// INOUT into += part, both of one start.
INLINE void merge_stats(const Stats& part, Index k, Index p, const Stats& into) {
    add_numbers(part.sums, k * p, into.sums);
    add_numbers(part.counts, k * p, into.counts);
    add_numbers(part.sizes, k, into.sizes);
    for (Index l = 0; l < k; ++l) into.keys[l] += part.keys[l];
    *into.squares += *part.squares;
}

// INOUT stats of one start: row i joins cluster l with weight w, or leaves it if w is negative. Returns
// |x - shift|^2. `first`: the number of the first row in the whole table.
template <class Rows>
INLINE double transfer(const Rows& rows, Index i, Index first, double w, const double* shift, Index l,
                       const Stats& stats, typename Rows::Value* scratch) {
    stats.sizes[l] += w;
    stats.keys[l] += w < 0 ? -mixed(first + i) : mixed(first + i);
    return add_row(rows, i, w, shift, stats.sums + l * rows.p, stats.counts + l * rows.p, scratch);
}

// One entry, or a vector of them, of a cluster of weight `size`.
template <class V> struct Entry {
    V sum, count, lam, c, shift, mu;

    static INLINE Entry at(const Stats& stats, Index l, Index p, Index j, const double* lam, const double* c,
                           const double* shift, const double* mu) {
        auto from = [](const double* numbers) { return load<V>(numbers); };
        return {from(stats.sums + l * p + j), from(stats.counts + l * p + j), from(lam + j), from(c + j),
                from(shift + j), from(mu + l * p + j)};
    }
    INLINE V pull(double size) const {  // weight of the gaps, times lam
        V gaps = size - count;
        return lam * (gaps > 0.0 ? gaps : V{});
    }
    // Where lam = 0 and nobody in the cluster observes the feature the loss is flat: mu stays. A sum
    // over nobody is 0, whatever adding and taking away rows has left of it. Measured from the
    // reference or from the shift, whichever is nearer: a large lam tells the centre's distance to the
    // reference to its last digit.
    INLINE V center(double size) const {
        V pull = this->pull(size), apart = c - shift, unseen = pull > 0.0 ? c : mu;
        V from = pull > count ? c : shift, sum_from = pull > count ? sum - count * apart : sum + pull * apart;
        return count > 0.0 ? from + sum_from / (count + pull) : unseen;
    }
    INLINE V loss(double size) const {
        V value = mu - shift, away = mu - c;
        return value * (count * value - 2 * sum) + pull(size) * away * away;
    }
    // What the gaps would cost if all rows had one: by this the weight of the gaps, a difference of
    // sums of weights, is rounded.
    INLINE V most(double size) const {
        V away = mu - c;
        return pull(size) > 0.0 ? lam * size * away * away : V{};
    }
};

struct LossOfSums {
    double loss;
    double terms;  // the numbers it is a difference of: its rounding is a share of them
};

// INOUT mu (k, p): the centres that minimise the loss of the partition; those of empty clusters stay.
INLINE LossOfSums update_centers(const Stats& stats, Index k, Index p, const double* lam, const double* c,
                                 const double* shift, double* mu) {
    Sum8 sum, most;
    for (Index l = 0; l < k; ++l) {
        const double size = stats.sizes[l];
        Index j = 0;
        for (; j + EIGHT <= p; j += EIGHT)
            UNROLL for (int part = 0; part < EIGHT / HALF; ++part) {
                auto entry = Entry<Doubles>::at(stats, l, p, j + part * HALF, lam, c, shift, mu);
                entry.mu = entry.center(size);
                store(mu + l * p + j + part * HALF, entry.mu);
                sum.parts[part] += entry.loss(size);
                most.parts[part] += entry.most(size);
            }
        double rest[EIGHT] = {}, rest_most[EIGHT] = {};
        for (Index r = 0; j < p; ++j, ++r) {
            auto entry = Entry<double>::at(stats, l, p, j, lam, c, shift, mu);
            mu[l * p + j] = entry.mu = entry.center(size);
            rest[r] = entry.loss(size);
            rest_most[r] = entry.most(size);
        }
        for (int part = 0; part < EIGHT / HALF; ++part) {
            sum.parts[part] += load<Doubles>(rest + part * HALF);
            most.parts[part] += load<Doubles>(rest_most + part * HALF);
        }
    }
    return {max_of(*stats.squares + sum.total(), 0), *stats.squares + most.total()};
}

// Below this share of its terms, the loss from sums is taken by direct differences instead.
constexpr double LOSES_DIGITS = 1e-3;

// After a pass: new centres and losses of the active starts.
void update(const Starts& starts, Index p, const Active& active) {
    Index k = starts.k;
    for (Index a = 0; a < active.count; ++a) {
        Index r = active.numbers[a];
        Stats stats = stats_of(starts.stats, r, k, p);
        const double* lam = starts.lam + r * p;
        double* mu = starts.mu + r * k * p;
        const LossOfSums found = update_centers(stats, k, p, lam, starts.reference, starts.shift, mu);
        active.losses[a] = found.loss;
        const double terms = starts.whole_weights ? *stats.squares : found.terms;  // whole numbers are not rounded
        active.inexact[a] = !(found.loss > LOSES_DIGITS * terms);
    }
}

// A number that two partitions share when they are the same up to the names of the clusters.
INLINE uint64_t signature(const Stats& stats, Index k) {
    uint64_t total = 0;
    for (Index l = 0; l < k; ++l) total += mixed(stats.keys[l]);
    return total;
}

// Whether the partition alone fixes the centres (not so where the loss is flat).
INLINE bool is_determined(const Stats& stats, Index k, Index p, const double* lam) {
    for (Index l = 0; l < k; ++l)
        for (Index j = 0; j < p; ++j)
            if (lam[j] <= 0 && stats.counts[l * p + j] <= 0) return false;
    return true;
}

// A row that left a cluster leaves the rounding of its size in the sums. Beyond this multiple of the
// mean loss of a row (in squares) that may matter, and the next pass sums up all rows.
constexpr double HUGE_ROW = 1e10;

// Records the losses of iteration `it` and says who goes on: INOUT active. A start ends when its
// partition is the one before, or the loss fell by no more than the share tol (where rounding outweighs
// tol, only the partition counts); or when an earlier start has its partition. The next pass must not
// build on the sums of this one (OUT fresh) where rows as large as largest_move (squared) changed
// cluster.
void decide(const Starts& starts, Index p, Index it, double largest_move, Active& active) {
    Index k = starts.k, left = 0, *const everyone = active.numbers + active.count;
    active.fresh = !starts.whole_weights;
    for (Index a = 0; a < active.count; ++a) {
        Index r = active.numbers[a];
        const double loss = active.losses[a];
        double* path = starts.paths + r * starts.max_iter;
        Stats stats = stats_of(starts.stats, r, k, p);
        uint64_t mark = signature(stats, k);
        starts.n_iter[r] = it + 1;
        path[it] = loss;
        bool ends = false;
        if (it > 0) {
            double last = path[it - 1], rounding = active.inexact[a] ? 1e-13 * last : 1e-14 * *stats.squares;
            if (loss > last) path[it] = last;
            bool trusted = starts.tol * last > rounding;
            ends = mark == starts.partitions[r] || (trusted && last - loss <= starts.tol * last);
            ends = ends || (last == 0 && path[it] == 0);
        }
        starts.partitions[r] = mark;
        const double* lam = starts.lam + r * p;
        for (Index b = 0; b < a && !ends; ++b) {
            Index s = everyone[b];
            bool same = starts.partitions[r] == starts.partitions[s] && starts.merged_into[s] < 0
                        && memcmp(lam, starts.lam + s * p, sizeof(double) * p) == 0;
            if (!same || !is_determined(stats, k, p, lam)) continue;
            starts.merged_into[r] = s;
            ends = true;
        }
        if (largest_move * starts.total_weight > HUGE_ROW * loss) active.fresh = 1;
        everyone[a] = r;
        if (!ends) active.numbers[left++] = r;
    }
    active.count = left;
}

}}}  // namespace mnar::LEVEL
