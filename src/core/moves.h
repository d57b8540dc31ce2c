// A whole k-means on complete rows by single moves, which only the authors' initialisation needs
// (``paper/_kmeans.py``). Row x leaves a cluster of n_a rows for one of n_b when
//
//     n_b / (n_b + 1) |x - m_b|^2  <  n_a / (n_a - 1) |x - m_a|^2
//
// which is the exact fall of the within-cluster sum of squares.
#pragma once
#include "vectors.h"

namespace mnar { namespace LEVEL { namespace {

constexpr double SURELY_LESS = 1 - 1e-10;  // rounding must not move a row back and forth

INLINE double square_distance(const double* x, const double* m, Index p) {
    Sum8 sum;
    Index j = 0;
    for (; j + EIGHT <= p; j += EIGHT)
        UNROLL for (int i = 0; i < EIGHT / HALF; ++i) {
            Doubles away = load<Doubles>(x + j + i * HALF) - load<Doubles>(m + j + i * HALF);
            sum.parts[i] += away * away;
        }
    double total = sum.total();
    for (; j < p; ++j) total += (x[j] - m[j]) * (x[j] - m[j]);
    return total;
}

struct CompleteMoves {  // one start
    const double* X;
    Index n, p, k;
    double* centers;  // (k, p)
    Label* own;       // (n,)
    double* sizes;    // (k,)

    void label() const {
        for (Index i = 0; i < n; ++i) {
            double best = 0;
            for (Index l = 0; l < k; ++l) {
                double cost = square_distance(X + i * p, centers + l * p, p);
                if (l == 0 || cost < best) best = cost, own[i] = Label(l);
            }
        }
    }

    // Means of the clusters, kept where one is empty.
    void average(double* sums) const {
        memset(sums, 0, sizeof(double) * k * p);
        memset(sizes, 0, sizeof(double) * k);
        for (Index i = 0; i < n; ++i) {
            sizes[own[i]] += 1;
            for (Index j = 0; j < p; ++j) sums[own[i] * p + j] += X[i * p + j];
        }
        for (Index l = 0; l < k; ++l)
            for (Index j = 0; sizes[l] > 0 && j < p; ++j) centers[l * p + j] = sums[l * p + j] / sizes[l];
    }

    bool move(Index i) const {
        const double* x = X + i * p;
        Label a = own[i], b = a;
        if (sizes[a] <= 1) return false;
        double least = square_distance(x, centers + a * p, p) * sizes[a] / (sizes[a] - 1) * SURELY_LESS;
        for (Label l = 0; l < k; ++l) {
            if (l == a) continue;
            double cost = square_distance(x, centers + l * p, p) * sizes[l] / (sizes[l] + 1);
            if (cost < least) b = l, least = cost;
        }
        if (b == a) return false;
        sizes[a] -= 1, sizes[b] += 1;
        double *from = centers + a * p, *to = centers + b * p;
        for (Index j = 0; j < p; ++j) {
            from[j] -= (x[j] - from[j]) / sizes[a];
            to[j] += (x[j] - to[j]) / sizes[b];
        }
        own[i] = b;
        return true;
    }
};

int32_t move_rows(const Moving& it, Control& control) {
    const Index n = it.n, p = it.p, k = it.k;
    return in_parallel(it.count, control, [&](Index start) -> int32_t {
        Array<double> sums(k * p), sizes(k);
        if (!all_ok(sums, sizes)) return OUT_OF_MEMORY;
        CompleteMoves moves{it.X, n, p, k, it.centers + start * k * p, it.labels + start * n, sizes};
        moves.label();
        moves.average(sums);
        for (Index round = 0; round < it.max_iter; ++round) {
            if (cancelled(control)) return CANCELLED;
            bool moved = false;
            for (Index i = 0; i < n; ++i) moved = moves.move(i) || moved;
            if (!moved) break;
        }
        moves.average(sums);  // afresh: the running ones carry rounding
        return DONE;
    });
}

}}}  // namespace mnar::LEVEL
