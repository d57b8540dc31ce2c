// The likelihood of gaps that get rarer with the distance from the reference, clusters given, and
// its maximum (`_penalty/mechanisms/decaying.py` tells the model). With theta = (log t, log s, logit c,
// logit r) and v = s times the spread of a gap's cluster,
//
//     P(missing | x) = c (r + (1 - r) exp(-t x^2)),       D = 2 v t + 1
//     P(missing | mu) = c (r + (1 - r) q),                q = D^(-1/2) exp(-t mu^2 / D)
//
// the value is  sum_gaps log P(missing | mu) + sum_observed [ log(1 - P(missing | x)) + log N(x) ],
// where the last term is that of one variance s for all.
#pragma once
#include "functions.h"

namespace mnar { namespace LEVEL { namespace {

constexpr int THETA = 4;
constexpr double LOG_1E6 = 13.815510557964274, LOG_1E12 = 27.631021115928547;
constexpr double BOUNDS[THETA] = {LOG_1E6, LOG_1E12, 14.0, 14.0};  // no logarithm of 0 can arise
constexpr double TWO_PI = 6.283185307179586;
constexpr double STEP = 1e-5;  // of the differences of gradients

INLINE double magnitude(double x) { return x < 0 ? -x : x; }

// Eight values from `at` on, those beyond n as `otherwise`: in place, or in room.
INLINE const double* take_eight(const double* values, Index at, Index n, double otherwise, double* room) {
    if (at + EIGHT <= n) return values + at;
    for (Index i = 0; i < EIGHT; ++i) room[i] = at + i < n ? values[at + i] : otherwise;
    return room;
}

struct Gradient {
    Sum8 value, t, s, c, r;
};

// Observed: 1 - P = (1 - c) + c (1 - r) (1 - exp(-u)), u = t x^2.
INLINE void add_observed(const Decay& data, double t, double c, double not_c, double r, double not_r,
                         Gradient& g) {
    alignas(64) double room[2][EIGHT];
    for (Index at = 0; at < data.n_squares; at += EIGHT) {
        const double* squares = take_eight(data.squares, at, data.n_squares, 1.0, room[0]);
        const double* weights = take_eight(data.weights, at, data.n_squares, 0.0, room[1]);
        UNROLL for (int i = 0; i < EIGHT / HALF; ++i) {
            Doubles u = t * load<Doubles>(squares + i * HALF), w = load<Doubles>(weights + i * HALF);
            Doubles far = -expm1_of(-u), near = 1.0 - far, seen = not_c + c * not_r * far;
            Doubles share = w / seen;
            g.value.parts[i] += w * log_of(seen);
            g.t.parts[i] += share * (c * not_r) * u * near;
            g.c.parts[i] -= share * (c * not_c) * (r + not_r * near);
            g.r.parts[i] -= share * (c * r * not_r) * far;
        }
    }
}

// Missing: d log q / d log t and d log q / d log s follow from the formula of q.
INLINE void add_missing(const Decay& data, double t, double s, double c, double not_c, double r,
                        double not_r, Gradient& g) {
    alignas(64) double room[3][EIGHT];
    Doubles vt = splat(s * t), per_d = 1.0 / (2.0 * vt + 1.0), log_root = 0.5 * log_of(2.0 * vt + 1.0);
    for (Index at = 0; at < data.n_gaps; at += EIGHT) {
        const double* squares = take_eight(data.gap_squares, at, data.n_gaps, 1.0, room[0]);
        const double* weights = take_eight(data.gap_weights, at, data.n_gaps, 0.0, room[1]);
        const double* spreads =
            data.gap_spreads ? take_eight(data.gap_spreads, at, data.n_gaps, 1.0, room[2]) : nullptr;
        UNROLL for (int i = 0; i < EIGHT / HALF; ++i) {
            if (spreads) {
                vt = (s * t) * load<Doubles>(spreads + i * HALF);
                per_d = 1.0 / (2.0 * vt + 1.0);
                log_root = 0.5 * log_of(2.0 * vt + 1.0);
            }
            Doubles pull = t * load<Doubles>(squares + i * HALF) * per_d;
            Doubles w = load<Doubles>(weights + i * HALF);
            Doubles q = exp_of(-log_root - pull), p = r + not_r * q, share = w / p;
            Doubles part = share * not_r * q * per_d;
            g.value.parts[i] += w * log_of(c * p);
            g.t.parts[i] -= part * (vt + pull);
            g.s.parts[i] -= part * vt * (1.0 - 2.0 * pull);
            g.c.parts[i] += w * not_c;
            g.r.parts[i] += share * (r * not_r) * (1.0 - q);
        }
    }
}

INLINE double share_of(double logit) { return 1.0 / (1.0 + exp_of(-logit)); }

double decay_value(const Decay& data, const double* theta, double* gradient) {
    const double t = exp_of(theta[0]), s = exp_of(theta[1]);
    const double c = share_of(theta[2]), not_c = share_of(-theta[2]);
    const double r = share_of(theta[3]), not_r = share_of(-theta[3]);
    Gradient g;
    add_observed(data, t, c, not_c, r, not_r, g);
    add_missing(data, t, s, c, not_c, r, not_r, g);
    const double residual = data.residual / s;
    gradient[0] = g.t.total();
    gradient[1] = g.s.total() + 0.5 * (residual - data.observed);
    gradient[2] = g.c.total();
    gradient[3] = g.r.total();
    return g.value.total() - 0.5 * (data.observed * log_of(TWO_PI * s) + residual);
}

// What the observed values alone say of the gaps: the sum of log(1 - P(missing | x)).
INLINE double log_observed(const Decay& data, const double* theta) {
    Gradient g;
    add_observed(data, exp_of(theta[0]), share_of(theta[2]), share_of(-theta[2]), share_of(theta[3]),
                 share_of(-theta[3]), g);
    return g.value.total();
}

// The terms are nearly linear in mu^2, so that where one variance is common to all, groups of similar
// |mu|, each at its mean, stand for any number of gaps; a few are quicker one by one.
constexpr Index GROUPS = 128, FEW_GAPS = 2 * GROUPS;

struct Grouped {
    double squares[GROUPS], weights[GROUPS];
};

INLINE Decay group_gaps(const Decay& data, Grouped& to) {
    if (data.gap_spreads || data.n_gaps <= FEW_GAPS) return data;
    double most = 1e-300;
    for (Index i = 0; i < data.n_gaps; ++i) most = larger(most, __builtin_sqrt(data.gap_squares[i]));
    memset(&to, 0, sizeof to);
    for (Index i = 0; i < data.n_gaps; ++i) {
        const Index group = Index(__builtin_sqrt(data.gap_squares[i]) * ((GROUPS - 1e-6) / most));
        to.weights[group] += data.gap_weights[i];
        to.squares[group] += data.gap_weights[i] * data.gap_squares[i];
    }
    for (Index g = 0; g < GROUPS; ++g) to.squares[g] /= larger(to.weights[g], 1e-300);
    Decay grouped = data;
    grouped.n_gaps = GROUPS;
    grouped.gap_squares = to.squares;
    grouped.gap_weights = to.weights;
    return grouped;
}

// --- the climb --------------------------------------------------------------------------------

struct Newton {  // in the m coordinates that may move
    int m;
    double hessian[THETA][THETA], gradient[THETA];
};

// Eigenvalues (m,) and vectors (columns) of the symmetric matrix a (m, m), by Jacobi's rotations.
INLINE void eigen(int m, double (&a)[THETA][THETA], double (&vectors)[THETA][THETA]) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < m; ++j) vectors[i][j] = i == j;
    for (int sweep = 0; sweep < 30; ++sweep) {
        double off = 0, on = 0;
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < m; ++j) (i == j ? on : off) += a[i][j] * a[i][j];
        if (off <= 1e-32 * on) break;
        for (int x = 0; x < m; ++x)
            for (int y = x + 1; y < m; ++y) {
                if (a[x][y] == 0) continue;
                double ratio = (a[y][y] - a[x][x]) / (2.0 * a[x][y]);
                double root = __builtin_sqrt(ratio * ratio + 1.0);
                double tangent = (ratio < 0 ? -1.0 : 1.0) / (magnitude(ratio) + root);
                double cosine = 1.0 / __builtin_sqrt(tangent * tangent + 1.0), sine = tangent * cosine;
                for (int i = 0; i < m; ++i) {
                    double left = a[i][x], right = a[i][y];
                    a[i][x] = cosine * left - sine * right;
                    a[i][y] = sine * left + cosine * right;
                }
                for (int i = 0; i < m; ++i) {
                    double left = a[x][i], right = a[y][i];
                    a[x][i] = cosine * left - sine * right;
                    a[y][i] = sine * left + cosine * right;
                    left = vectors[i][x], right = vectors[i][y];
                    vectors[i][x] = cosine * left - sine * right;
                    vectors[i][y] = sine * left + cosine * right;
                }
            }
    }
}

// OUT step (m,): (-H + ridge) step = gradient. The ridge is `damping` times the size of the
// diagonal, so it means the same for every amount of data; an upward direction of H is lifted out
// first, and no step exceeds 2 (a factor of 7).
INLINE void damped_step(const Newton& at, double damping, double (&step)[THETA]) {
    double a[THETA][THETA], vectors[THETA][THETA], size = 1e-12, longest = 0;
    for (int i = 0; i < at.m; ++i) {
        for (int j = 0; j < at.m; ++j) a[i][j] = -0.5 * (at.hessian[i][j] + at.hessian[j][i]);
        size = larger(size, magnitude(at.hessian[i][i]));
        step[i] = 0;
    }
    eigen(at.m, a, vectors);
    for (int e = 0; e < at.m; ++e) {
        double along = 0;
        for (int i = 0; i < at.m; ++i) along += vectors[i][e] * at.gradient[i];
        along /= larger(a[e][e], 0.0) + damping * size;
        for (int i = 0; i < at.m; ++i) step[i] += vectors[i][e] * along;
    }
    for (int i = 0; i < at.m; ++i) longest = larger(longest, magnitude(step[i]));
    for (int i = 0; longest > 2.0 && i < at.m; ++i) step[i] *= 2.0 / longest;
}

INLINE double inside(double x, double bound) { return x > bound ? bound : x < -bound ? -bound : x; }

// INOUT theta: damped Newton ascent inside the box; the Hessian is differenced from exact gradients.
double climb(const Decay& data, const int32_t* free, Index max_steps, double* theta) {
    double gradient[THETA], other[THETA], trial[THETA], step[THETA], damping = 1e-3;
    double value = decay_value(data, theta, gradient);
    for (Index round = 0; round < max_steps; ++round) {
        Newton at{};
        int moving[THETA];
        for (int j = 0; j < THETA; ++j) {
            double outward = gradient[j] > 0 ? theta[j] : gradient[j] < 0 ? -theta[j] : 0.0;
            if (free[j] && outward < BOUNDS[j]) moving[at.m++] = j;
        }
        if (at.m == 0) break;
        for (int column = 0; column < at.m; ++column) {
            memcpy(trial, theta, sizeof trial);
            trial[moving[column]] += STEP;
            decay_value(data, trial, other);
            for (int i = 0; i < at.m; ++i)
                at.hessian[i][column] = (other[moving[i]] - gradient[moving[i]]) / STEP;
            at.gradient[column] = gradient[moving[column]];
        }
        double gain = 0;
        for (int attempt = 0; attempt < 20; ++attempt, damping *= 10.0) {
            damped_step(at, damping, step);
            double promise = 0;
            for (int i = 0; i < at.m; ++i) promise += step[i] * at.gradient[i];
            if (promise < 1e-15 * (1.0 + magnitude(value))) break;  // less than rounding
            memcpy(trial, theta, sizeof trial);
            for (int i = 0; i < at.m; ++i)
                trial[moving[i]] = inside(theta[moving[i]] + step[i], BOUNDS[moving[i]]);
            double there = decay_value(data, trial, other);
            if (!(there > value)) continue;
            gain = there - value, value = there;
            memcpy(theta, trial, sizeof trial);
            memcpy(gradient, other, sizeof other);
            damping = larger(damping * 0.1, 1e-9);
            break;
        }
        if (gain < 1e-10 * (1.0 + magnitude(value))) break;
    }
    return value;
}

// What is not free stays as its start has it.
double decay_fit(const Decay& all, const double* starts, Index m, const int32_t* free, Index max_steps,
                 double* theta) {
    Grouped groups;
    const Decay data = group_gaps(all, groups);
    double best = 0, gradient[THETA];
    for (Index i = 0; i < m; ++i) {
        const double* start = starts + i * THETA;
        double value = m > 1 ? decay_value(data, start, gradient) : 0.0;
        if (i > 0 && !(value > best)) continue;
        best = value;
        for (int j = 0; j < THETA; ++j) theta[j] = free[j] ? inside(start[j], BOUNDS[j]) : start[j];
    }
    return climb(data, free, max_steps, theta);
}

}}}  // namespace mnar::LEVEL
