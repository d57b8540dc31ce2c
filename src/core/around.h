// What gets lost around the reference, of normal clusters N(mu, v) measured from it:
// P(missing), E[x | missing] and Var[x | missing] (`_penalty/mechanisms` tells the models).
//
//     decay       P(missing | x) = c (r + (1 - r) exp(-t x^2)),    D = 2 v t + 1
//                 P = c (r + (1 - r) q),    q = D^(-1/2) exp(-t mu^2 / D)
//                 the share (1 - r) q / P of what is lost is N(mu / D, v / D), the rest N(mu, v)
//
//     threshold   |x| < tau,    a, b = (-/+ tau - |mu|) / sqrt(v)
//                 P = Phi(b) - Phi(a)
//                 E = mu - sign(mu) sqrt(v) (phi(b) - phi(a)) / P
//                 Var = v (1 + (a phi(a) - b phi(b)) / P - ((phi(b) - phi(a)) / P)^2)
//
// A feature that never lost anything has P = 1 there, and what it lacks is like the rest.
#pragma once
#include "functions.h"

namespace mnar { namespace LEVEL { namespace {

constexpr double HALF_LOG_2PI = 0.9189385332046727, HALF_ROOT_2PI = 1.2533141373155003;
constexpr double LEAST_CENTER = 1e-4;  // in standard deviations: both sides are the same to all digits
constexpr double LEAST_LOG_LOST = -600.0;

INLINE Doubles smaller(Doubles a, Doubles b) { return a < b ? a : b; }
INLINE Doubles larger(Doubles a, Doubles b) { return a > b ? a : b; }
INLINE Doubles size_of(Doubles x) { return x < 0.0 ? -x : x; }
INLINE Doubles root_of(Doubles x) {
    UNROLL for (int i = 0; i < HALF; ++i) x[i] = __builtin_sqrt(x[i]);
    return x;
}

// log Phi(x). The ratio (1 - Phi(z)) / phi(z) of z = |x| is
//     sqrt(pi / 2) exp(z^2 / 2) - (z + z^3 / 3 + z^5 / (3 5) + ...)    close to 0,
//     1 / (z + 1 / (z + 2 / (z + 3 / ...)))                            further out.
constexpr double FURTHER_OUT = 3.0;
constexpr int SERIES = 32, FRACTIONS = 40;  // for 13 digits

INLINE Doubles log_normal_below(Doubles x) {
    const Doubles z = size_of(x), near = smaller(z, splat(FURTHER_OUT)), far = larger(z, splat(FURTHER_OUT));
    const Doubles square = near * near;
    Doubles series = splat(1.0), fraction = far;
    for (int n = SERIES; n > 0; --n) series = 1.0 + series * square / (2.0 * n + 1.0);
    for (int n = FRACTIONS; n > 0; --n) fraction = far + double(n) / fraction;
    const Doubles close = HALF_ROOT_2PI * exp_of(0.5 * square) - near * series;
    const Doubles log_beyond = (z < FURTHER_OUT ? log_of(close) : -log_of(fraction)) - 0.5 * z * z - HALF_LOG_2PI;
    const Doubles within = 1.0 - exp_of(log_beyond);
    return x < 0.0 ? log_beyond : log_of(within);
}

struct LostEight {  // of eight cells, or as many as a register holds
    Doubles log_missing, mean, variance;
};

INLINE LostEight lost_by_decay(double t, double c, double r, Doubles mu, Doubles v) {
    const Doubles d = 2.0 * v * t + 1.0, drawn = 1.0 - 1.0 / d;
    const Doubles q = (1.0 - r) * exp_of(-0.5 * log_of(d) - (t / d) * mu * mu);
    const Doubles p = q + r, share = q / p, apart = mu * drawn, away = apart * share;
    return {log_of(c * p), mu - away, v - v * drawn * share + away * (apart - away)};
}

INLINE LostEight lost_within(Doubles tau, Doubles mean, Doubles v) {
    const Doubles sd = root_of(v), reach = tau / sd, mu = larger(size_of(mean) / sd, splat(LEAST_CENTER));
    const Doubles a = -reach - mu, b = reach - mu, below_b = log_normal_below(b);
    const Doubles apart = smaller(log_normal_below(a) - below_b, splat(-1e-15));
    const Doubles log_p = below_b + log_of(-expm1_of(apart));
    const Doubles at_a = exp_of(-0.5 * a * a - HALF_LOG_2PI - log_p);
    const Doubles at_b = exp_of(-0.5 * b * b - HALF_LOG_2PI - log_p), below = at_b - at_a;
    const Doubles away = sd * larger(smaller(mu - below, reach), Doubles{});
    const Doubles spread = 1.0 + a * at_a - b * at_b - below * below;
    return {larger(log_p, splat(LEAST_LOG_LOST)), mean < 0.0 ? -away : away,
            v * larger(smaller(spread, splat(1.0)), splat(1e-12))};
}

// OUT the three arrays (k, p) of `it`.
void lost_around(const Lost& it) {
    alignas(64) double mean[EIGHT], variance[EIGHT], tau[EIGHT], out[3][EIGHT];
    const Index cells = it.k * it.p;
    for (Index at = 0; at < cells; at += EIGHT) {
        const Index count = least(EIGHT, cells - at);
        for (Index i = 0; i < EIGHT; ++i) {
            const Index cell = at + least(i, count - 1);
            mean[i] = it.mean[cell];
            variance[i] = it.variance[it.common ? 0 : cell];
            tau[i] = it.tau ? it.tau[cell % it.p] : 0.0;
        }
        UNROLL for (int i = 0; i < EIGHT; i += HALF) {
            const Doubles mu = load<Doubles>(mean + i), v = load<Doubles>(variance + i);
            const LostEight found = it.tau ? lost_within(load<Doubles>(tau + i), mu, v)
                                           : lost_by_decay(it.t, it.c, it.r, mu, v);
            store(out[0] + i, found.log_missing);
            store(out[1] + i, found.mean);
            store(out[2] + i, found.variance);
        }
        for (Index i = 0; i < count; ++i) {
            const bool can_be = it.has_gaps[(at + i) % it.p];
            it.log_missing[at + i] = can_be ? out[0][i] : 0.0;
            it.lost_mean[at + i] = can_be ? out[1][i] : mean[i];
            it.lost_variance[at + i] = can_be ? out[2][i] : variance[i];
        }
    }
}

}}}  // namespace mnar::LEVEL
