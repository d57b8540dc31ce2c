// How far observed values lie from the reference: a histogram of their squares u, in units of the mean
// square, with bins equal in log u, and what else is to be known of them.
//
//     bin of x = floor((log u - low) / width),      u = max((x - c_j)^2 / mean square, least)
//
// Only features that can lose a value enter the histogram. Two looks at the rows: the first finds the
// mean square and the extremes.
#pragma once
#include "functions.h"
#include "rows.h"

namespace mnar { namespace LEVEL { namespace {

// OUT away, features: the observed values of a row less the reference; returns how many.
template <class T>
INLINE Index away_in_row(const Dense<T>& rows, Index i, const double* reference, double* away, Index* features) {
    const T* at = rows.values + i * rows.row_stride;
    Index count = 0;
    for (Index j = 0; j < rows.p; ++j) {
        const double x = at[j * rows.column_stride];
        away[count] = x - reference[j];
        features[count] = j;
        count += !rows.is_gap(x);  // a branch would be taken at random
    }
    return count;
}

template <class T>
INLINE Index away_in_row(const Sparse<T>& rows, Index i, const double* reference, double* away, Index* features) {
    for (Index e = 0; e < rows.stored(i); ++e) {
        const Index j = features[e] = rows.indices[rows.starts[i] + e];
        away[e] = rows.values[rows.starts[i] + e] - reference[j];
    }
    return rows.stored(i);
}

class MagnitudeLooks {
  public:
    MagnitudeLooks(const Table& table, Magnitudes& it, Control& control, Index longest)
        : table(table), it(it), control(control), away(longest + EIGHT), features(longest),
          most(table.p, -1.0) {}
    bool ok() const { return all_ok(away, features, most); }

    template <class Rows> int32_t look(const Rows& rows) {
        for (Index i = 0; i < table.n; ++i) {
            if (cancelled(control)) return CANCELLED;
            first_look(i, away_in_row(rows, i, it.reference, away, features));
        }
        const double mean = it.total > 0 ? it.square / it.total : 0.0;
        if (!begin_histogram(mean)) return DONE;
        for (Index i = 0; i < table.n; ++i) {
            if (cancelled(control)) return CANCELLED;
            add_row(i, away_in_row(rows, i, it.reference, away, features), mean);
        }
        return DONE;
    }

  private:
    const Table& table;
    Magnitudes& it;
    Control& control;
    Array<double> away;
    Array<Index> features;
    Array<double> most;  // (p,) largest magnitude; -1 of a feature without values
    double low = 0, per_width = 0;
    bool all_enter = true;

    void first_look(Index i, Index count) {
        double* const nearest = it.least;
        double* const furthest = most;
        for (Index e = 0; e < count; ++e) {
            const Index j = features[e];
            const double size = away[e] < 0 ? -away[e] : away[e];
            nearest[j] = size < nearest[j] ? size : nearest[j];
            furthest[j] = size > furthest[j] ? size : furthest[j];
        }
        for (Index e = count; e < count + EIGHT; ++e) away[e] = 0.0;
        Sum8 squares, below;
        for (Index e = 0; e < count; e += EIGHT)
            UNROLL for (int part = 0; part < EIGHT / HALF; ++part) {
                const Doubles x = load<Doubles>(away + e + part * HALF);
                squares.parts[part] += x * x;
                below.parts[part] += keep(x < 0.0, splat(1.0));
            }
        it.per_row[i] = count;
        it.total += table.weights[i] * count;
        it.below += table.weights[i] * below.total();
        it.square += table.weights[i] * squares.total();
    }

    // Whether anything enters the histogram; then where it begins, and its width.
    bool begin_histogram(double mean) {
        double near = __builtin_inf(), far = -1.0;
        for (Index j = 0; j < table.p; ++j) {
            if (!it.has_gaps[j]) all_enter = false;
            else if (most[j] >= 0) near = it.least[j] < near ? it.least[j] : near, far = larger(far, most[j]);
        }
        if (!(mean > 0) || far < 0) return false;
        low = log_of(larger(near * near / mean, it.least_share));
        const double high = log_of(larger(far * far / mean, it.least_share));
        per_width = it.bins / (larger(high - low, 1e-12) * (1.0 + 1e-12));
        return true;
    }

    void add_row(Index i, Index count, double mean) {
        Index kept = all_enter ? count : 0;
        for (Index e = 0; !all_enter && e < count; ++e) {
            away[kept] = away[e];
            kept += it.has_gaps[features[e]];
        }
        for (Index e = kept; e < kept + EIGHT; ++e) away[e] = 1.0;
        const double weight = table.weights[i];
        double logs[HALF];
        int64_t bins[HALF];
        for (Index e = 0; e < kept; e += HALF) {
            const Doubles x = load<Doubles>(away + e), u = x * x / mean;
            const Doubles log = log_of(u > it.least_share ? u : splat(it.least_share));
            store(logs, log);
            store(bins, __builtin_convertvector((log - low) * per_width, Longs));
            for (Index lane = 0; lane < least(HALF, kept - e); ++lane) {
                const Index bin = least(bins[lane], it.bins - 1);
                it.weights[bin] += weight;
                it.logs[bin] += weight * logs[lane];
            }
        }
    }
};

int32_t magnitudes(const Table& table, Magnitudes& it, Control& control) {
    Index longest = table.p;  // a row of a CSR matrix may name a feature twice
    for (Index i = 0; table.is_sparse && i < table.n; ++i) {
        const Index stored = table.starts[i + 1] - table.starts[i];
        longest = stored > longest ? stored : longest;
    }
    MagnitudeLooks looks(table, it, control, longest + EIGHT);
    if (!looks.ok()) return OUT_OF_MEMORY;
    return with_rows(table, [&](const auto& rows) { return looks.look(rows); });
}

}}}  // namespace mnar::LEVEL
