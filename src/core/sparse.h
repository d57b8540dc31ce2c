// CSR rows, one at a time: its centres side by side in the lanes of a vector.
//
//     d_il - |x'_i|^2 = const_l + sum_{j stored} [ A_lj x'_ij + B_lj ]
//     x' = x - c,  m = mu - c,   A = -2 m,  B = (1 - lam_j) m^2,  const = sum_j lam_j m_lj^2
//
// Of every feature as many centres lie together as a cache line holds (16 in float32, 8 in float64). A
// feature without gaps counts with lam = 0, so that what gaps would cost is not added to be taken away.
//
// Labels come from float32; where too many of those are unsure, from float64, by the same code.
#pragma once
#include "certified.h"
#include "rounding.h"
#include "rows.h"

namespace mnar { namespace LEVEL { namespace {

template <class R> struct Units;
template <> struct Units<float> {
    using Vector = Floats;
    static constexpr double unit = UNIT, tiny = TINY, largest = 1e37;
};
template <> struct Units<double> {
    using Vector = Doubles;
    static constexpr double unit = UNIT64, tiny = 0x1p-1022, largest = 1e300;
};

template <class R> struct Line {  // a cache line of numbers
    using V = typename Units<R>::Vector;
    static constexpr Index SIZE = CACHE_LINE / sizeof(R);
    static constexpr int PARTS = CACHE_LINE / sizeof(V);
    V parts[PARTS];

    // Part by part: a whole line copied at once goes through memory where registers are shorter.
    INLINE Line() {
        UNROLL for (int i = 0; i < PARTS; ++i) parts[i] = V{};
    }
    INLINE explicit Line(const R* from) {
        UNROLL for (int i = 0; i < PARTS; ++i) parts[i] = load<V>(from + i * (SIZE / PARTS));
    }
    INLINE void put(R* to) const {
        UNROLL for (int i = 0; i < PARTS; ++i) store(to + i * (SIZE / PARTS), parts[i]);
    }
    INLINE void add(const Line& more) {
        UNROLL for (int i = 0; i < PARTS; ++i) parts[i] += more.parts[i];
    }
    INLINE void add_affine(const Line& a, R x, const Line& b) {  // a x + b
        UNROLL for (int i = 0; i < PARTS; ++i) parts[i] += a.parts[i] * x + b.parts[i];
    }
};

template <class R> struct CenterLines {
    static constexpr Index SIZE = Line<R>::SIZE;
    Index groups, k, p, count;
    const double* reference;
    Array<R> A, B;       // (count, p, SIZE) each
    Array<R> constant;   // (count, SIZE)
    double heaviest, longest;

    bool ok() const { return all_ok(A, B, constant); }

    CenterLines(const Table& of, const Centers& centers)
        : groups(centers.groups), k(centers.k), p(of.p), count((groups * k + SIZE - 1) / SIZE),
          reference(centers.reference), A(count * p * SIZE, R(0)), B(count * p * SIZE, R(0)),
          constant(count * SIZE, R(0)), heaviest(0), longest(0) {
        if (!ok()) return;
        for (Index t = 0; t < groups * k; ++t) {
            const double *mu = centers.mu + t * p, *lam = centers.lam + t / k * p;
            Index at = t / SIZE * p * SIZE + t % SIZE;
            double total = 0, size = 0, square = 0;
            for (Index j = 0; j < p; ++j) {
                double m = mu[j] - reference[j], penalty = of.has_gaps && !of.has_gaps[j] ? 0.0 : lam[j];
                A[at + j * SIZE] = R(-2 * m);
                B[at + j * SIZE] = R((1 - penalty) * m * m);
                total += penalty * m * m;
                size += (penalty + (penalty > 1 ? penalty - 1 : 1 - penalty)) * m * m;
                square += 4 * m * m;
            }
            constant[t] = R(total);
            heaviest = max_of(heaviest, size);
            longest = max_of(longest, __builtin_sqrt(square));
        }
    }
};

// OUT scores (count, SIZE) of row i. Returns |x'|^2.
template <class R, class T>
INLINE double score_row(const Sparse<T>& rows, Index i, const CenterLines<R>& lines, R* scores) {
    constexpr Index SIZE = CenterLines<R>::SIZE;
    const Index begin = rows.starts[i], end = rows.starts[i + 1], p = rows.p;
    double squares[2] = {0, 0};
    for (Index s = 0; s < lines.count; ++s) {
        const R *A = lines.A + s * p * SIZE, *B = lines.B + s * p * SIZE;
        Line<R> total(lines.constant + s * SIZE);
        squares[0] = squares[1] = 0;
        for (Index start = begin; start < end; start += RUN) {
            Line<R> sums[2];  // two, so that one multiply-add need not wait for the other
            Index stop = min_of(start + RUN, end), e = start;
            auto meet = [&](Index e, Line<R>& sum, double& square) INLINE_LAMBDA {
                Index j = rows.indices[e];
                double x = rows.values[e] - lines.reference[j];
                square += x * x;
                sum.add_affine(Line<R>(A + j * SIZE), R(x), Line<R>(B + j * SIZE));
            };
            for (; e + 1 < stop; e += 2) meet(e, sums[0], squares[0]), meet(e + 1, sums[1], squares[1]);
            if (e < stop) meet(e, sums[0], squares[0]);
            sums[0].add(sums[1]);
            total.add(sums[0]);
        }
        total.put(scores + s * SIZE);
    }
    return squares[0] + squares[1];
}

// How far apart two scores of a row must be to be apart for certain; infinite: nothing is.
template <class R> INLINE double bound_of(const CenterLines<R>& lines, Index stored, double square) {
    using U = Units<R>;
    double length = __builtin_sqrt(square), size = lines.heaviest + lines.longest * length;
    if (!(max_of(size, max_of(lines.longest, length)) < U::largest)) return __builtin_inf();
    double gamma = 2.02 * U::unit * (min_of(stored, RUN) + stored / RUN + 8);
    double delta = 8.08 * UNIT64 * (lines.p + 8);  // of the sums that decide
    return gamma * size + delta * (square + size)
           + 2 * U::tiny * (stored + 1) * (1 + lines.longest + length);
}

// See ``Certified::label``; scores (count, SIZE) is scratch.
template <class R, class T>
Index label_sparse(const Sparse<T>& rows, const CenterLines<R>& lines, R* scores, const RowBlock& block) {
    Index unsure = 0, k = lines.k;
    for (Index e = 0; e < block.count; ++e) {
        Index i = block.rows[e];
        double square = score_row(rows, i, lines, scores);
        double bound = bound_of(lines, rows.stored(i), square);
        for (Index g = 0; g < lines.groups; ++g) {
            const R* of_start = scores + g * k;
            double best = of_start[0], second = __builtin_inf();
            Label label = 0;
            for (Label l = 1; l < k; ++l) {
                double score = of_start[l];
                if (score < best)
                    second = best, best = score, label = l;
                else if (score < second)
                    second = score;
            }
            if (block.margins) {
                double far = square + bound, a = best + far, b = second + far;
                double apart = __builtin_sqrt(max_of(a, 0)) + __builtin_sqrt(max_of(b, 0));
                block.margins[e] = apart > 0 ? float((second - best - bound) / apart) : 0.0f;
            }
            bool sure = k == 1 || second - best > bound;
            block.nearest[g * block.stride + e] = sure ? label : UNSURE;
            unsure += !sure;
        }
    }
    return unsure;
}

}}}  // namespace mnar::LEVEL
