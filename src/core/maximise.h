// The M-step of a mixture with gaps: clusters from the soft sums of an E-step (`mixture.h`).
//
// With N, C, U, S, Q those sums (U = C for normal clusters), h the rows that lost everything, and e, w, a
// mean, variance and pull of what is missing (a = 1 for normal clusters),
//
//     pi_l = (N_l + h_l) / sum_m (N_m + h_m)
//     G = N - C + h,    g = a G                                the gaps, and how they pull
//     mu = (S + g (e - m mu)) / (U + g (1 - m))                m = 0: a step of EM
//     R = Q - 2 S mu + U mu^2 + g (w + (e - mu)^2)             squared residuals of C + G entries
//
// of normal clusters e moves with mu by w / v, so that with m = w / v the step goes as far as if it had
// been repeated. Where what is missing is like the rest, g = 0, and R is that of C entries. All is measured
// from the shift of the sums.
#pragma once
#include "vectors.h"

namespace mnar { namespace LEVEL { namespace {

constexpr double LEAST_SIZE = 0x1.4p-49;  // of a cluster, in rows
constexpr double LEAST_PULL = 1e-9;       // of a row: below it nothing says where a centre is

// OUT weights (k,).
INLINE void share_sizes(Index k, const double* sizes, const double* hidden, double* weights) {
    double all = 0;
    for (Index l = 0; l < k; ++l) all += weights[l] = sizes[l] + hidden[l] + LEAST_SIZE;
    for (Index l = 0; l < k; ++l) weights[l] /= all;
}

// OUT gaps (k, p).
INLINE void count_gaps(Index k, Index p, const Softened& sums, const double* hidden, double* gaps) {
    for (Index l = 0; l < k; ++l)
        for (Index j = 0; j < p; ++j)
            gaps[l * p + j] = larger(sums.sizes[l] - sums.counts[l * p + j], 0.0) + hidden[l];
}

struct Missing {  // what is missing of one cluster in one feature
    double pull, mean, variance;
};

// Where nothing says where a centre is, it stays.
INLINE double center_of(double sum, double pull, const Missing& gone, double moving, double now) {
    const double total = pull + gone.pull * (1.0 - moving);
    return total > LEAST_PULL ? (sum + gone.pull * (gone.mean - moving * now)) / total : now;
}

// Squared residuals of what is observed, less its squares.
INLINE double observed_residual(double sum, double pull, double center) {
    return center * (pull * center - 2.0 * sum);
}

INLINE double missing_residual(const Missing& gone, double center) {
    const double off = gone.mean - center;
    return gone.pull * (gone.variance + off * off);
}

void maximise(const Maximised& it) {
    const Softened& sums = it.sums;
    const double* pulls = sums.pulls ? sums.pulls : sums.counts;
    share_sizes(it.k, sums.sizes, it.hidden, it.weights);
    count_gaps(it.k, it.p, sums, it.hidden, it.gaps);
    for (Index at = 0; at < it.k * it.p; ++at) {
        Missing gone = {};
        it.entries[at] = sums.counts[at];
        if (it.lost_mean) {
            const double pull = it.lost_pull ? it.lost_pull[at] : 1.0;
            gone = {pull * it.gaps[at], it.lost_mean[at], it.lost_variance[at]};
            it.entries[at] += it.gaps[at];
        }
        const double center = center_of(sums.sums[at], pulls[at], gone, 0.0, it.mean[at]);
        const double seen = sums.squares[at] + observed_residual(sums.sums[at], pulls[at], center);
        it.residuals[at] = larger(seen + missing_residual(gone, center), 0.0);
        it.mean[at] = center;
    }
}

}}}  // namespace mnar::LEVEL
