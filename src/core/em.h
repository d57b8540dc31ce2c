// EM of a mixture with one variance for all entries, where values get lost around the reference.
//
// A round is an M-step (`maximise.h`, whose symbols these are; e, w as in `around.h`) with m = w / v, then
// v together with the mechanism (`decay.h`), or where that is known
//
//     v = sum R / sum (C + G)
//
// and an E-step. Around the reference, where e = mu / D, the centre is S / (C + lam G) with
// lam = 1 - 1/D: the penalised centre of k-means. Values are measured from the reference.
//
// Rows that lost everything are not in the table, and with few features they are many. They are hidden
// data as well (unless some feature has no gaps): with Q_l = prod_j P_lj and B = sum_l pi_l Q_l the
// likelihood of the others is divided by 1 - B for each, and every round adds pi_l Q_l / (1 - B) such
// rows, all gaps, for each row seen.
#pragma once
#include "around.h"
#include "decay.h"
#include "maximise.h"
#include "mixture.h"

namespace mnar { namespace LEVEL { namespace {

constexpr Index FIRST_STEPS = 5;      // of a mechanism that begins; later one in each round
constexpr double MOST_HIDDEN = 0.95;  // share of the rows that may have lost everything
constexpr double LEAST_SPREAD = 1e-9; // of the mean square

// OUT hidden (k,): pi_l Q_l; returns B.
double hidden_rows(Index k, Index p, const double* weights, const double* log_missing, double* hidden) {
    double share = 0, scaled = 0;
    for (Index l = 0; l < k; ++l) {
        double all = 0;
        for (Index j = 0; j < p; ++j) all += log_missing[l * p + j];
        hidden[l] = weights[l] * exp_of(all);
        share += hidden[l];
    }
    for (Index l = 0; l < k; ++l) {
        hidden[l] *= MOST_HIDDEN / larger(share, MOST_HIDDEN);
        scaled += hidden[l];
    }
    return scaled;
}

class Em {
  public:
    Em(const Table& table, Rounds& it, Control& control)
        : table(table), it(it), control(control), k(it.k), p(table.p), cells(k * p), away(cells),
          squares(cells), variance(cells), log_weight(k) {}
    bool ok() const { return all_ok(away, squares, variance, log_weight); }

    int32_t run() {
        it.converged = 0;
        count_gaps(k, p, it.sums, it.hidden, it.gaps);
        for (it.count = 0; it.count < it.max_rounds;) {
            maximise();
            const double before = it.bound;
            const int32_t status = look();
            if (status != DONE) return status;
            ++it.count;
            it.converged = magnitude(it.bound - before) < it.tol;
            if (it.converged || it.bound * it.n_rows < it.at_least) break;
            it.n_starts = it.placed = 0;  // only the first round begins anything
        }
        return DONE;
    }

  private:
    const Table& table;
    Rounds& it;
    Control& control;
    const Index k, p, cells;
    Array<double> away, squares, variance;  // (k, p): centres from the reference, their squares; v
    Array<double> log_weight;               // (k,)

    double spread() const { return it.scale * exp_of(it.theta[1]); }

    void maximise() {
        if (!it.equal_sizes) share_sizes(k, it.sums.sizes, it.hidden, it.weights);
        for (Index l = 0; l < k; ++l)
            for (Index j = 0; j < p; ++j) away[l * p + j] = it.mean[l * p + j] - it.reference[j];
        if (!it.placed) move_centers();
        const double residual = residual_of();
        if (it.placed) it.theta[1] = log_of(residual / (it.decay.observed * it.scale));
        if (it.lost.tau) widen(residual);
        else climb_together(residual);
    }

    Missing missing(Index at) const {
        return {it.gaps[at], it.lost.lost_mean[at], it.lost.lost_variance[at]};
    }

    // INOUT centres.
    void move_centers() {
        const double v = spread();
        for (Index l = 0; l < k; ++l)
            for (Index j = 0; j < p; ++j) {
                const Index at = l * p + j;
                double moving = it.lost.lost_variance[at] / v;
                if (!(moving <= 1.0)) moving = 0;  // of two kinds, far apart: plain EM
                away[at] = center_of(it.sums.sums[at], it.sums.counts[at], missing(at), moving, away[at]);
                it.mean[at] = it.reference[j] + away[at];
            }
    }

    // Squared distances of all observed values to their centres.
    double residual_of() const {
        const double whole = it.decay.observed * it.scale;
        double sum = 0;
        for (Index at = 0; at < cells; ++at)
            sum += observed_residual(it.sums.sums[at], it.sums.counts[at], away[at]);
        return larger(whole + sum, LEAST_SPREAD * whole);
    }

    // The mechanism together with the variance, from the best of its starts or from where it is.
    void climb_together(double residual) {
        Decay data = it.decay;
        for (Index at = 0; at < cells; ++at) squares[at] = away[at] * away[at] / it.scale;
        data.n_gaps = cells;
        data.gap_squares = squares;
        data.gap_weights = it.gaps;
        data.gap_spreads = nullptr;
        data.residual = residual / it.scale;
        for (Index i = 0; i < it.n_starts; ++i) it.starts[i * THETA + 1] = it.theta[1];
        double now[THETA];
        memcpy(now, it.theta, sizeof now);
        if (it.n_starts > 0) decay_fit(data, it.starts, it.n_starts, it.free, FIRST_STEPS, it.theta);
        else decay_fit(data, now, 1, it.free, 1, it.theta);
    }

    // The variance where the mechanism is known.
    void widen(double residual) {
        double weight = it.decay.observed;
        say_lost();
        for (Index at = 0; at < cells; ++at) {
            residual += missing_residual(missing(at), away[at]);
            weight += it.gaps[at];
        }
        it.theta[1] = log_of(residual / weight / it.scale);
    }

    void say_lost() {
        const double v = spread();
        it.lost.mean = away;
        it.lost.variance = &v;
        it.lost.common = 1;
        it.lost.t = exp_of(it.theta[0]) / it.scale;
        it.lost.c = share_of(it.theta[2]);
        it.lost.r = share_of(it.theta[3]);
        lost_around(it.lost);
    }

    // The memberships of these clusters, and the mean log-likelihood of a row.
    int32_t look() {
        say_lost();
        const double v = spread(), n = it.n_rows;
        for (Index at = 0; at < cells; ++at) {
            variance[at] = v;
            it.sums.sums[at] = it.sums.counts[at] = it.sums.squares[at] = 0;
        }
        for (Index l = 0; l < k; ++l) {
            log_weight[l] = log_of(larger(it.weights[l], 1e-300));
            it.sums.sizes[l] = 0;
        }
        it.sums.log_likelihood = it.lost.tau ? 0.0 : log_observed(it.decay, it.theta);
        const Mixture mixture = {k,       log_weight,   it.mean, variance, it.lost.log_missing,
                                 nullptr, it.reference, 0.0,     0.0};
        const int32_t status = soften(table, mixture, it.sums, control);
        if (status != DONE) return status;
        double share = 0;
        for (Index l = 0; l < k; ++l) it.hidden[l] = 0;
        if (all_can_be_lost()) share = hidden_rows(k, p, it.weights, it.lost.log_missing, it.hidden);
        it.bound = it.sums.log_likelihood / n - log_of(1.0 - share);
        for (Index l = 0; l < k; ++l) it.hidden[l] *= n / (1.0 - share);
        count_gaps(k, p, it.sums, it.hidden, it.gaps);
        return DONE;
    }

    bool all_can_be_lost() const {
        for (Index j = 0; j < p; ++j)
            if (!it.lost.has_gaps[j]) return false;
        return true;
    }
};

int32_t em_rounds(const Table& table, Rounds& it, Control& control) {
    Em em(table, it, control);
    return em.ok() ? em.run() : int32_t(OUT_OF_MEMORY);
}

}}}  // namespace mnar::LEVEL
