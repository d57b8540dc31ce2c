// How the missing share of the cells of cluster and feature falls with z, by Newton's method:
//
//     max_{alpha, b}  sum_lj  g log P_lj + (n - g) log(1 - P_lj),     logit P_lj = alpha_j - b z_lj
//
// with g the gaps and n all entries of a cell (`_penalty/cells.py` tells what it is for).
#pragma once
#include "functions.h"

namespace mnar { namespace LEVEL { namespace {

constexpr double PSEUDO = 0.25;  // gaps and values added to each cell: its share stays away from 0 and 1
constexpr double MOST_LOGIT = 500.0;   // its exponential is still a number
constexpr double LEAST_CURVATURE = 1e-9;
constexpr double SHARE_ROUNDING = 1e-6;  // of log-likelihoods

// One partition, with the features padded to vectors by cells without entries.
class ShareClimb {
  public:
    ShareClimb(Index k, Index p)
        : k(k), p(p), room(whole_eights(p)), g(k * room, 0.0), n(k * room, 0.0),
          z(k * room, 0.0), share(k * room), alpha(room, 0.0), trial(room), steps(room), middle(room, 0.0),
          diagonal(room), arrow(room) {}
    bool ok() const { return all_ok(g, n, z, share, alpha, trial, steps, middle, diagonal, arrow); }

    // The curve that does not fall with z measured from the middle of its feature.
    void begin(const double* gaps, const double* observed, const double* at) {
        for (Index j = 0; j < p; ++j) {
            double lost = 0, all = 0, sum = 0;
            for (Index l = 0; l < k; ++l) {
                const Index from = l * p + j, to = l * room + j;
                g[to] = gaps[from] + PSEUDO;
                n[to] = g[to] + observed[from] + PSEUDO;
                lost += g[to];
                all += n[to];
                sum += at[from] * n[to];
            }
            alpha[j] = lost / (all - lost);
            middle[j] = sum / all;
            for (Index l = 0; l < k; ++l) z[l * room + j] = at[l * p + j] - middle[j];
        }
        for (Index j = p; j < room; ++j) alpha[j] = 1.0;
        for (Index j = 0; j < room; j += HALF) store(alpha + j, log_of(load<Doubles>(alpha + j)));
    }

    // INOUT slope; OUT alpha (p,), of z as it came; each (p,), unless null: the value of every feature.
    double climb(Index max_steps, bool slope_given, double& slope, double* out, double* each) {
        double value = pattern(alpha, slope);
        for (Index round = 0; round < max_steps; ++round) {
            const double step = newton(slope_given);
            double size = 1.0, found, tried;
            while (true) {
                for (Index j = 0; j < room; ++j) trial[j] = alpha[j] + size * steps[j];
                tried = slope + size * step;
                found = pattern(trial, tried);
                if (!(found < value - SHARE_ROUNDING) || size == 0.0) break;
                size = size > 1e-3 ? 0.5 * size : 0.0;
            }
            const double gain = found - value;
            memcpy(alpha, trial, sizeof(double) * room);
            slope = tried;
            value = found;
            if (gain < SHARE_ROUNDING) break;
        }
        for (Index j = 0; j < p; ++j) out[j] = alpha[j] + slope * middle[j];
        if (each) by_feature(slope, each);
        return value;
    }

  private:
    const Index k, p, room;
    Array<double> g, n, z, share;                // (k, room)
    Array<double> alpha, trial, steps, middle, diagonal, arrow;  // (room,)

    // The terms of eight features of a cluster, or as many as a register holds. OUT share.
    INLINE Doubles terms(const double* alphas, double slope, Index l, Index j) {
        const Index at = l * room + j;
        const Doubles gaps = load<Doubles>(g + at), all = load<Doubles>(n + at);
        Doubles against = slope * load<Doubles>(z + at) - load<Doubles>(alphas + j);
        against = against < MOST_LOGIT ? against : splat(MOST_LOGIT);
        const Doubles odds = exp_of(against) + 1.0;
        store(share + at, 1.0 / odds);
        return (all - gaps) * against - all * log_of(odds);
    }

    double pattern(const double* alphas, double slope) {
        Sum8 value;
        for (Index l = 0; l < k; ++l)
            for (Index j = 0; j < room; j += EIGHT)
                UNROLL for (int i = 0; i < EIGHT / HALF; ++i)
                    value.parts[i] += terms(alphas, slope, l, j + i * HALF);
        return value.total();
    }

    void by_feature(double slope, double* each) {
        for (Index j = 0; j < room; j += HALF) {
            Doubles sum{};
            for (Index l = 0; l < k; ++l) sum += terms(alpha, slope, l, j);
            for (Index i = 0; i < HALF && j + i < p; ++i) each[j + i] = sum[i];
        }
    }

    // Newton's equations are an arrow: each alpha_j meets only the slope. OUT steps; returns the slope's.
    double newton(bool slope_given) {
        Sum8 curvature, uphill;
        for (Index j = 0; j < room; j += EIGHT)
            UNROLL for (int i = 0; i < EIGHT / HALF; ++i) {
                const Index at = j + i * HALF;
                Doubles a = splat(LEAST_CURVATURE), b{}, r{}, wzz{}, rz{};
                for (Index l = 0; l < k; ++l) {
                    const Index cell = l * room + at;
                    const Doubles P = load<Doubles>(share + cell), x = load<Doubles>(z + cell);
                    const Doubles expected = load<Doubles>(n + cell) * P, w = expected * (1.0 - P);
                    const Doubles off = load<Doubles>(g + cell) - expected;
                    a += w;
                    b -= w * x;
                    r += off;
                    wzz += w * x * x;
                    rz += off * x;
                }
                curvature.parts[i] += wzz - b * b / a;
                uphill.parts[i] -= rz + b / a * r;
                store(diagonal + at, a);
                store(arrow + at, b);
                store(steps + at, r);
            }
        const double step = slope_given ? 0.0 : uphill.total() / (curvature.total() + LEAST_CURVATURE);
        for (Index j = 0; j < room; j += HALF) {
            const Doubles off = load<Doubles>(steps + j) - load<Doubles>(arrow + j) * step;
            store(steps + j, off / load<Doubles>(diagonal + j));
        }
        return step;
    }
};

int32_t fit_shares(const Shares& it) {
    ShareClimb climb(it.k, it.p);
    if (!climb.ok()) return OUT_OF_MEMORY;
    for (Index r = 0; r < it.count; ++r) {
        const Index cells = r * it.k * it.p, features = r * it.p;
        climb.begin(it.gaps + cells, it.observed + cells, it.z + cells);
        it.values[r] = climb.climb(it.max_steps, it.slope_given, it.slopes[r], it.alphas + features,
                                   it.each ? it.each + features : nullptr);
    }
    return DONE;
}

}}}  // namespace mnar::LEVEL
