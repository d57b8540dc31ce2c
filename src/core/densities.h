// Log-densities of rows with gaps in every cluster, the features of a row independent.
//
//     logit_il = log pi_l + sum_{j observed} [ o_lj + log f_lj(x_ij) ] + sum_{j missing} log P_lj
//
//     normal   log f = -log(2 pi v_lj) / 2 - (x - mu_lj)^2 / (2 v_lj)
//     heavy    log f = peak - log(v_lj) / 2 - (t + 1) / 2 log(1 + (x - mu_lj)^2 / (t v_lj))
//
// Heavy: Student's t with t degrees of freedom, peak = log Gamma((t + 1) / 2) - log Gamma(t / 2) -
// log(t pi) / 2. o_lj is what the mechanism says of an observed entry beside its density; P_lj is the
// probability of a gap. In dense tables ROWS rows at once stand side by side, eight to a group, each
// in a lane of its own: every sum over features runs in their order, sums over rows have eight parts,
// so that results are the same for every instruction set. In CSR tables the clusters of a row stand
// side by side, and only stored entries are looked at: log P is summed over all features beforehand.
#pragma once
#include "functions.h"
#include "rows.h"

namespace mnar { namespace LEVEL { namespace {

constexpr Index ROWS = 128;                // of a tile
constexpr Index FEATURES = 64;             // of a tile
constexpr Index GROUP = FEATURES * EIGHT;  // entries of eight rows of a tile
constexpr Index GROUP_STEP = GROUP + EIGHT;  // not a power of 2: they would share lines of the cache
constexpr double LOG_2PI = 0x1.d67f1c864beb5p0;

// The parameters as the loops want them, k clusters side by side for each feature.
struct Soft {
    Index k, p, room;
    bool heavy;
    double power;             // (t + 1) / 2
    double pull;              // (t + 1) / t
    Array<double> mu, h, b;   // (p, room): centre, -1 / 2v or 1 / tv, and what being observed adds
    Array<double> base;       // (room,): log pi_l + sum_j log P_lj
    const double* shift;      // (p,) what sums subtract

    Soft(const Mixture& it, Index p)
        : k(it.k), p(p), room(whole_eights(k)), heavy(it.freedom > 0),
          power(0.5 * (it.freedom + 1)), pull(heavy ? 1 + 1 / it.freedom : 1), mu(p * room),
          h(p * room), b(p * room), base(room), shift(it.shift) {
        if (!ok()) return;
        const double peak = heavy ? it.log_peak : -0.5 * LOG_2PI;
        for (Index l = 0; l < room; ++l) {
            Index from = least(l, k - 1);
            double all = 0;
            for (Index j = 0; j < p; ++j) {
                Index at = from * p + j;
                double v = it.variance[at], o = it.log_observed ? it.log_observed[at] : 0.0;
                mu[j * room + l] = it.mean[at];
                h[j * room + l] = heavy ? 1 / (it.freedom * v) : -0.5 / v;
                b[j * room + l] = (o + (peak - 0.5 * log_of(v))) - it.log_missing[at];
                all += it.log_missing[at];
            }
            base[l] = it.log_weight[from] + all;
        }
    }
    bool ok() const { return all_ok(mu, h, b, base); }
};

// The sums of one slab, and the room to work in.
struct SoftSlab {
    Array<double> sizes, sums, counts, squares;  // (k,), then (k, p), in CSR tables (p, room)
    Array<double> pulls;   // the same, heavy tails only
    Array<double> logs;    // (room, ROWS): sum of log(1 + (x - mu)^2 / tv), heavy tails only
    Array<double> x;       // (ROWS / 8, FEATURES, 8): values, NaN in gaps
    Array<double> logits;  // (room, ROWS), then memberships
    Array<double> totals;  // (ROWS,) log-likelihood of each row
    Array<double> own;     // (room,) memberships of one row
    double likelihood = 0, tail = 0;

    SoftSlab(const Soft& soft, bool is_sparse, Index size)
        : sizes(soft.room, 0.0), sums(size, 0.0), counts(size, 0.0), squares(size, 0.0),
          pulls(soft.heavy ? size : 0, 0.0), logs(soft.heavy ? soft.room * ROWS : 0, 0.0), x(is_sparse ? 0 : ROWS / EIGHT * GROUP_STEP), logits(soft.room * ROWS, 0.0), totals(ROWS),
          own(soft.room, 0.0) {}
    bool ok() const {
        return all_ok(sizes, sums, counts, squares, pulls, logs, x, logits, totals, own);
    }
};

constexpr int PARTS_OF_EIGHT = EIGHT / HALF;

// --- logits -----------------------------------------------------------------------------------

// OUT x: features `from` to `to` of `count` rows from `begin` on; beyond them, gaps.
template <class T>
void read_tile(const Dense<T>& rows, Index begin, Index count, Index from, Index to, double* x) {
    const double gap = __builtin_nan("");
    for (Index g = 0; g * EIGHT < count; ++g) {
        double* out = x + g * GROUP_STEP;
        Index here = least(EIGHT, count - g * EIGHT);
        const T* at = rows.values + (begin + g * EIGHT) * rows.row_stride + from * rows.column_stride;
        for (Index j = 0; j < to - from; ++j, out += EIGHT, at += rows.column_stride) {
            if (here == EIGHT)
                UNROLL for (Index r = 0; r < EIGHT; ++r) out[r] = at[r * rows.row_stride];
            else
                for (Index r = 0; r < EIGHT; ++r) out[r] = r < here ? at[r * rows.row_stride] : gap;
            if (rows.missing == rows.missing)
                for (Index r = 0; r < EIGHT; ++r) out[r] = out[r] == rows.missing ? gap : out[r];
        }
    }
}

// INOUT logits of cluster l for G groups of eight rows.
template <int G>
INLINE void add_logits(const Soft& soft, Index l, Index from, Index to, const double* x,
                       double* logits) {
    Doubles sums[G][PARTS_OF_EIGHT];
    UNROLL for (int g = 0; g < G; ++g)
        UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i)
            sums[g][i] = load<Doubles>(logits + g * EIGHT + i * HALF);
    for (Index j = from; j < to; ++j, x += EIGHT) {
        Index at = j * soft.room + l;
        const Doubles mu = splat(soft.mu[at]), h = splat(soft.h[at]), b = splat(soft.b[at]);
        UNROLL for (int g = 0; g < G; ++g)
            UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i) {
                Doubles value = load<Doubles>(x + g * GROUP_STEP + i * HALF), away = value - mu;
                sums[g][i] += keep(value == value, away * away * h + b);
            }
    }
    UNROLL for (int g = 0; g < G; ++g)
        UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i)
            store(logits + g * EIGHT + i * HALF, sums[g][i]);
}

// The product of a few terms has one logarithm. Terms stay below the fourth root of what a double
// can hold: values so far out are equally unlikely.
constexpr Index TERMS = 4;
constexpr double LARGEST_TERM = 1e75;

INLINE Doubles heavy_term(Doubles away, Doubles h) {
    Doubles term = 1.0 + away * away * h;
    return term < LARGEST_TERM ? term : splat(LARGEST_TERM);
}

// INOUT logits without the tails, and the logs that make them, of cluster l for eight rows.
INLINE void add_heavy(const Soft& soft, Index l, Index from, Index to, const double* x,
                      double* logits, double* logs) {
    UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i) {
        Doubles sum = load<Doubles>(logits + i * HALF), log = load<Doubles>(logs + i * HALF);
        for (Index first = from; first < to; first += TERMS) {
            Doubles product = splat(1.0);
            for (Index j = first; j < least(first + TERMS, to); ++j) {
                Index at = j * soft.room + l;
                Doubles value = load<Doubles>(x + (j - from) * EIGHT + i * HALF);
                Doubles away = keep(value == value, value - splat(soft.mu[at]));
                product *= heavy_term(away, splat(soft.h[at]));
                sum += keep(value == value, splat(soft.b[at]));
            }
            log += log_of(product);
        }
        store(logits + i * HALF, sum);
        store(logs + i * HALF, log);
    }
}

// INOUT logits: the tails are taken off.
INLINE void take_tails(const Soft& soft, Index count, SoftSlab& slab) {
    for (Index l = 0; l < soft.k; ++l)
        for (Index r = 0; r < count; r += HALF) {
            double* at = slab.logits + l * ROWS + r;
            store(at, load<Doubles>(at) - soft.power * load<Doubles>(slab.logs + l * ROWS + r));
        }
}

constexpr int GROUPS_AT_ONCE = WIDTH >= 16 ? 4 : 2;

template <class T>
void tile_logits(const Dense<T>& rows, const Soft& soft, Index begin, Index count, SoftSlab& slab) {
    Index groups = (count + EIGHT - 1) / EIGHT;
    for (Index l = 0; l < soft.k; ++l)
        for (Index r = 0; r < groups * EIGHT; ++r) slab.logits[l * ROWS + r] = soft.base[l];
    if (soft.heavy) memset(slab.logs, 0, sizeof(double) * soft.room * ROWS);
    for (Index from = 0; from < soft.p; from += FEATURES) {
        Index to = least(from + FEATURES, soft.p);
        read_tile(rows, begin, count, from, to, slab.x);
        for (Index g = 0; g < groups;) {
            bool several = !soft.heavy && g + GROUPS_AT_ONCE <= groups;
            for (Index l = 0; l < soft.k; ++l) {
                double *x = slab.x + g * GROUP_STEP, *logits = slab.logits + l * ROWS + g * EIGHT;
                if (soft.heavy)
                    add_heavy(soft, l, from, to, x, logits, slab.logs + l * ROWS + g * EIGHT);
                else if (several) add_logits<GROUPS_AT_ONCE>(soft, l, from, to, x, logits);
                else add_logits<1>(soft, l, from, to, x, logits);
            }
            g += several ? GROUPS_AT_ONCE : 1;
        }
    }
    if (soft.heavy) take_tails(soft, groups * EIGHT, slab);
}

// OUT sums, logs of one CSR row in the clusters of a strip.
template <bool HEAVY, class T>
INLINE void strip_logits(const Sparse<T>& rows, const Soft& soft, Index row, Index strip,
                         Doubles* sums, Doubles* logs) {
    Doubles products[PARTS_OF_EIGHT];
    UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i) {
        sums[i] = load<Doubles>(soft.base + strip + i * HALF);
        products[i] = splat(1.0);
        logs[i] = Doubles{};
    }
    const Index begin = rows.starts[row], end = rows.starts[row + 1];
    for (Index e = begin; e < end; ++e) {
        Index at = rows.indices[e] * soft.room + strip;
        double x = rows.values[e];
        UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i) {
            Doubles away = x - load<Doubles>(soft.mu + at + i * HALF);
            Doubles h = load<Doubles>(soft.h + at + i * HALF);
            Doubles b = load<Doubles>(soft.b + at + i * HALF);
            if (HEAVY) products[i] *= heavy_term(away, h), sums[i] += b;
            else sums[i] += away * away * h + b;
        }
        if (HEAVY && ((e + 1 - begin) % TERMS == 0 || e + 1 == end))
            UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i) {
                logs[i] += log_of(products[i]);
                products[i] = splat(1.0);
            }
    }
}

template <class T>
void tile_logits(const Sparse<T>& rows, const Soft& soft, Index begin, Index count, SoftSlab& slab) {
    Doubles sums[PARTS_OF_EIGHT], logs[PARTS_OF_EIGHT];
    double all[EIGHT], tails[EIGHT];
    for (Index r = 0; r < count; ++r)
        for (Index strip = 0; strip < soft.room; strip += EIGHT) {
            if (soft.heavy) strip_logits<true>(rows, soft, begin + r, strip, sums, logs);
            else strip_logits<false>(rows, soft, begin + r, strip, sums, logs);
            memcpy(all, sums, sizeof all);
            memcpy(tails, logs, sizeof tails);
            for (Index l = strip; l < least(soft.k, strip + EIGHT); ++l) {
                slab.logits[l * ROWS + r] = all[l - strip];
                if (soft.heavy) slab.logs[l * ROWS + r] = tails[l - strip];
            }
        }
    if (soft.heavy) take_tails(soft, whole_eights(count), slab);
}

}}}  // namespace mnar::LEVEL
