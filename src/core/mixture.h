// One E-step of a mixture of clusters with gaps, and the sums its M-step needs.
//
//     rho_il = s_i exp(logit_il) / sum_m exp(logit_im)
//     N_l = sum_i rho_il,   C_lj = sum_{i observes j} rho_il
//     U, S, Q_lj = sum_{i observes j} rho_il u_ilj (1, x - shift, (x - shift)^2)
//
// u is 1 for normal clusters. With heavy tails u = (t + 1) / (t + (x - mu)^2 / v): a value far out
// pulls less.
#pragma once
#include "rows.h"
#include "vectors.h"

namespace mnar { namespace LEVEL { namespace {

// --- densities ------------------------------------------------------------------------------
//
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

// --- exp and log ----------------------------------------------------------------------------
//
// exp and log of vectors, the same bits on every machine: libm's differ from one to the next.
// tests/core/test_e_step.py compares the likelihoods made of them with NumPy's.
//
//     e^x = 2^n (1 + f(r)),   x = n log 2 + r,  |r| <= log(2) / 2,   f = e^r - 1 by its series
//     log x = n log 2 + 2 artanh(s),   x = 2^n m,  m in [sqrt(1/2), sqrt(2)),   s = (m - 1) / (m + 1)

constexpr double LOG2_HIGH = 0x1.62e42fee00000p-1;  // n times this is exact for |n| < 2^21
constexpr double LOG2_LOW = 0x1.a39ef35793c76p-33;
constexpr double ROUND = 0x1.8p52;  // added and taken away, it rounds to a whole number
constexpr double LEAST_EXPONENT = -708.0;  // below, e^x is taken as 0

struct Exponential {
    Doubles scale, rest;  // e^x = scale (1 + rest)
};

INLINE Exponential exponential(Doubles x) {
    Doubles shifted = x * 0x1.71547652b82fep0 + ROUND;
    Doubles n = shifted - ROUND;
    Doubles r = (x - n * LOG2_HIGH) - n * LOG2_LOW;
    Doubles f = splat(1.0 / 6227020800.0);
    const double factorials[] = {479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0,
                                 720.0,       120.0,      24.0,      6.0,      2.0};
    UNROLL for (double factorial : factorials) f = f * r + 1.0 / factorial;
    f = r + r * r * f;
    Longs exponent = ((Longs)shifted << 52) + (Longs{} + (int64_t(1023) << 52));
    return {(Doubles)exponent, f};
}

// x <= 709: beyond, e^x is no number.
INLINE Doubles exp_of(Doubles x) {
    Longs is = x >= LEAST_EXPONENT;
    Exponential e = exponential(keep(is, x));
    return keep(is, e.scale + e.scale * e.rest);
}

// x > 0 and not subnormal.
INLINE Doubles log_of(Doubles x) {
    const int64_t root = 0x3fe6a09e667f3bcd;  // sqrt(1/2)
    Longs n = ((Longs)x - root) >> 52;
    Doubles m = (Doubles)((Longs)x - (n << 52)), f = m - 1.0, s = f / (m + 1.0), z = s * s;
    Doubles series = splat(1.0 / 25.0);
    const double odds[] = {23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3};
    UNROLL for (double odd : odds) series = series * z + 1.0 / odd;
    // 2 artanh(s) = f - s (f - 2 z series): what is added to f is small.
    Doubles whole = (Doubles)(n + (Longs)splat(ROUND)) - ROUND;
    Doubles small = s * (f - 2.0 * z * series) - whole * LOG2_LOW;
    return whole * LOG2_HIGH + (f - small);
}

INLINE double log_of(double x) { return log_of(splat(x))[0]; }

// --- log-densities --------------------------------------------------------------------------

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
            Index from = min_of(l, k - 1);
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

// The sums of one chunk, and the room to work in.
struct SoftChunk {
    Array<double> sizes, sums, counts, squares;  // (k,), then (k, p), in CSR tables (p, room)
    Array<double> pulls;   // the same, heavy tails only
    Array<double> logs;    // (room, ROWS): sum of log(1 + (x - mu)^2 / tv), heavy tails only
    Array<double> x;       // (ROWS / 8, FEATURES, 8): values, NaN in gaps
    Array<double> logits;  // (room, ROWS), then memberships
    Array<double> totals;  // (ROWS,) log-likelihood of each row
    Array<double> shares;  // (room,) memberships of one row
    double likelihood = 0;

    SoftChunk(const Soft& soft, bool is_sparse, Index size)
        : sizes(soft.room, 0.0), sums(size, 0.0), counts(size, 0.0), squares(size, 0.0),
          pulls(soft.heavy ? size : 0, 0.0), logs(soft.heavy ? soft.room * ROWS : 0, 0.0),
          x(is_sparse ? 0 : ROWS / EIGHT * GROUP_STEP), logits(soft.room * ROWS, 0.0), totals(ROWS),
          shares(soft.room, 0.0) {}
    bool ok() const {
        return all_ok(sizes, sums, counts, squares, pulls, logs, x, logits, totals, shares);
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
        Index here = min_of(EIGHT, count - g * EIGHT);
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
            for (Index j = first; j < min_of(first + TERMS, to); ++j) {
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
INLINE void take_tails(const Soft& soft, Index count, SoftChunk& chunk) {
    for (Index l = 0; l < soft.k; ++l)
        for (Index r = 0; r < count; r += HALF) {
            double* at = chunk.logits + l * ROWS + r;
            store(at, load<Doubles>(at) - soft.power * load<Doubles>(chunk.logs + l * ROWS + r));
        }
}

constexpr int GROUPS_AT_ONCE = WIDTH >= 16 ? 4 : 2;

template <class T>
void tile_logits(const Dense<T>& rows, const Soft& soft, Index begin, Index count, SoftChunk& chunk) {
    Index groups = (count + EIGHT - 1) / EIGHT;
    for (Index l = 0; l < soft.k; ++l)
        for (Index r = 0; r < groups * EIGHT; ++r) chunk.logits[l * ROWS + r] = soft.base[l];
    if (soft.heavy) memset(chunk.logs, 0, sizeof(double) * soft.room * ROWS);
    for (Index from = 0; from < soft.p; from += FEATURES) {
        Index to = min_of(from + FEATURES, soft.p);
        read_tile(rows, begin, count, from, to, chunk.x);
        for (Index g = 0; g < groups;) {
            bool several = !soft.heavy && g + GROUPS_AT_ONCE <= groups;
            for (Index l = 0; l < soft.k; ++l) {
                double *x = chunk.x + g * GROUP_STEP, *logits = chunk.logits + l * ROWS + g * EIGHT;
                if (soft.heavy)
                    add_heavy(soft, l, from, to, x, logits, chunk.logs + l * ROWS + g * EIGHT);
                else if (several) add_logits<GROUPS_AT_ONCE>(soft, l, from, to, x, logits);
                else add_logits<1>(soft, l, from, to, x, logits);
            }
            g += several ? GROUPS_AT_ONCE : 1;
        }
    }
    if (soft.heavy) take_tails(soft, groups * EIGHT, chunk);
}

// OUT sums, logs of one CSR row in the clusters of an octet.
template <bool HEAVY, class T>
INLINE void octet_logits(const Sparse<T>& rows, const Soft& soft, Index row, Index octet,
                         Doubles* sums, Doubles* logs) {
    Doubles products[PARTS_OF_EIGHT];
    UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i) {
        sums[i] = load<Doubles>(soft.base + octet + i * HALF);
        products[i] = splat(1.0);
        logs[i] = Doubles{};
    }
    const Index begin = rows.starts[row], end = rows.starts[row + 1];
    for (Index e = begin; e < end; ++e) {
        Index at = rows.indices[e] * soft.room + octet;
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
void tile_logits(const Sparse<T>& rows, const Soft& soft, Index begin, Index count, SoftChunk& chunk) {
    Doubles sums[PARTS_OF_EIGHT], logs[PARTS_OF_EIGHT];
    double all[EIGHT], tails[EIGHT];
    for (Index r = 0; r < count; ++r)
        for (Index octet = 0; octet < soft.room; octet += EIGHT) {
            if (soft.heavy) octet_logits<true>(rows, soft, begin + r, octet, sums, logs);
            else octet_logits<false>(rows, soft, begin + r, octet, sums, logs);
            memcpy(all, sums, sizeof all);
            memcpy(tails, logs, sizeof tails);
            for (Index l = octet; l < min_of(soft.k, octet + EIGHT); ++l) {
                chunk.logits[l * ROWS + r] = all[l - octet];
                if (soft.heavy) chunk.logs[l * ROWS + r] = tails[l - octet];
            }
        }
    if (soft.heavy) take_tails(soft, whole_eights(count), chunk);
}

// --- memberships ------------------------------------------------------------------------------

// INOUT logits -> memberships; OUT totals.
INLINE void share_rows(const Soft& soft, Index count, SoftChunk& chunk) {
    const Index end = whole_eights(count);  // lanes beyond the last row hold something
    for (Index r = 0; r < end; r += HALF) {
        double* at = chunk.logits + r;
        Doubles top = load<Doubles>(at), total{};
        for (Index l = 1; l < soft.k; ++l) {
            Doubles other = load<Doubles>(at + l * ROWS);
            top = other > top ? other : top;
        }
        for (Index l = 0; l < soft.k; ++l) {
            Doubles part = exp_of(load<Doubles>(at + l * ROWS) - top);
            store(at + l * ROWS, part);
            total += part;
        }
        Doubles scale = 1.0 / total;
        for (Index l = 0; l < soft.k; ++l)
            store(at + l * ROWS, load<Doubles>(at + l * ROWS) * scale);
        store(chunk.totals + r, top + log_of(total));
    }
}

// INOUT memberships, times the weights of the rows (0 beyond the last one); and what they add up to.
INLINE void weigh_rows(const Soft& soft, const double* weights, Index count, SoftChunk& chunk) {
    alignas(64) double all[ROWS] = {};
    memcpy(all, weights, sizeof(double) * count);
    Sum8 likelihood;
    for (Index r = 0; r < count; r += EIGHT)
        UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i) {
            Index at = r + i * HALF;
            likelihood.parts[i] += load<Doubles>(all + at) * load<Doubles>(chunk.totals + at);
        }
    chunk.likelihood += likelihood.total();
    for (Index l = 0; l < soft.k; ++l) {
        Sum8 size;
        for (Index r = 0; r < count; r += EIGHT)
            UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i) {
                double* at = chunk.logits + l * ROWS + r + i * HALF;
                Doubles share = load<Doubles>(at) * load<Doubles>(all + r + i * HALF);
                store(at, share);
                size.parts[i] += share;
            }
        chunk.sizes[l] += size.total();
    }
}

// --- sums -------------------------------------------------------------------------------------

// One feature of a tile: INOUT the four sums of cluster l.
template <bool HEAVY>
INLINE void feature_sums(const Soft& soft, Index l, Index j, double shift, Index groups,
                         const double* values, const int64_t* observed, SoftChunk& chunk) {
    const double* shares = chunk.logits + l * ROWS;
    const Doubles mu = splat(soft.mu[j * soft.room + l] - shift), h = splat(soft.h[j * soft.room + l]);
    Sum8 sum, square, weight, pull;
    for (Index g = 0; g < groups; ++g)
        UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i) {
            Index at = g * EIGHT + i * HALF;
            Doubles share = keep(load<Longs>(observed + at), load<Doubles>(shares + at));
            Doubles x = load<Doubles>(values + at), pulled = share;
            if (HEAVY) {
                pulled = share * (soft.pull / heavy_term(x - mu, h));
                pull.parts[i] += pulled;
            }
            Doubles part = pulled * x;
            sum.parts[i] += part;
            square.parts[i] += part * x;
            weight.parts[i] += share;
        }
    Index to = l * soft.p + j;
    chunk.sums[to] += sum.total();
    chunk.squares[to] += square.total();
    chunk.counts[to] += weight.total();
    if (HEAVY) chunk.pulls[to] += pull.total();
}

template <class T>
void tile_sums(const Dense<T>& rows, const Soft& soft, Index begin, Index count, SoftChunk& chunk) {
    const double* shift = soft.shift;
    Index groups = (count + EIGHT - 1) / EIGHT, p = soft.p;
    alignas(64) double values[ROWS];
    alignas(64) int64_t observed[ROWS];
    for (Index from = 0; from < p; from += FEATURES) {
        Index to = min_of(from + FEATURES, p);
        if (p > FEATURES) read_tile(rows, begin, count, from, to, chunk.x);
        for (Index j = from; j < to; ++j) {
            for (Index g = 0; g < groups; ++g)
                UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i) {
                    const double* at = chunk.x + g * GROUP_STEP + (j - from) * EIGHT + i * HALF;
                    Doubles x = load<Doubles>(at);
                    Longs is = x == x;
                    store(values + g * EIGHT + i * HALF, keep(is, x - shift[j]));
                    store(observed + g * EIGHT + i * HALF, is);
                }
            for (Index l = 0; l < soft.k; ++l)
                if (soft.heavy) feature_sums<true>(soft, l, j, shift[j], groups, values, observed, chunk);
                else feature_sums<false>(soft, l, j, shift[j], groups, values, observed, chunk);
        }
    }
}

template <class T>
void tile_sums(const Sparse<T>& rows, const Soft& soft, Index begin, Index count, SoftChunk& chunk) {
    double* shares = chunk.shares;
    const double* shift = soft.shift;
    for (Index r = 0; r < count; ++r) {
        for (Index l = 0; l < soft.k; ++l) shares[l] = chunk.logits[l * ROWS + r];
        for (Index e = rows.starts[begin + r]; e < rows.starts[begin + r + 1]; ++e) {
            Index j = rows.indices[e], at = j * soft.room;
            double x = rows.values[e] - shift[j];
            for (Index l = 0; l < soft.room; l += HALF, at += HALF) {
                Doubles share = load<Doubles>(shares + l), pulled = share;
                if (soft.heavy) {
                    Doubles away = rows.values[e] - load<Doubles>(soft.mu + at);
                    pulled = share * (soft.pull / heavy_term(away, load<Doubles>(soft.h + at)));
                    store(chunk.pulls + at, load<Doubles>(chunk.pulls + at) + pulled);
                }
                Doubles part = pulled * x;
                store(chunk.counts + at, load<Doubles>(chunk.counts + at) + share);
                store(chunk.sums + at, load<Doubles>(chunk.sums + at) + part);
                store(chunk.squares + at, load<Doubles>(chunk.squares + at) + part * x);
            }
        }
    }
}

// --- all of it --------------------------------------------------------------------------------

// What is wanted of each row: labels from the logits, the rest after share_rows.
INLINE void keep_labels(const Soft& soft, Index count, const SoftChunk& chunk, Label* labels) {
    for (Index r = 0; r < count; ++r) {
        Label best = 0;
        for (Label l = 1; l < soft.k; ++l)
            if (chunk.logits[l * ROWS + r] > chunk.logits[best * ROWS + r]) best = l;
        labels[r] = best;
    }
}

INLINE void keep_memberships(const Soft& soft, Index count, const SoftChunk& chunk, double* out) {
    for (Index r = 0; r < count; ++r)
        for (Index l = 0; l < soft.k; ++l) out[r * soft.k + l] = chunk.logits[l * ROWS + r];
}

template <class Rows>
int32_t e_step_rows(const Table& table, const Rows& rows, const Soft& soft, Index begin, Index end,
                    SoftChunk& chunk, const Expectation& out, Control& control) {
    for (; begin < end; begin += ROWS) {
        if (cancelled(control)) return CANCELLED;
        Index count = min_of(ROWS, end - begin);
        tile_logits(rows, soft, begin, count, chunk);
        if (out.labels) keep_labels(soft, count, chunk, out.labels + begin);
        share_rows(soft, count, chunk);
        if (out.row_likelihoods)
            memcpy(out.row_likelihoods + begin, chunk.totals, sizeof(double) * count);
        if (out.memberships) keep_memberships(soft, count, chunk, out.memberships + begin * soft.k);
        if (!out.sums) continue;
        weigh_rows(soft, table.weights + begin, count, chunk);
        tile_sums(rows, soft, begin, count, chunk);
    }
    return DONE;
}

// INOUT out: the sums of one chunk more.
INLINE void add_chunk(const Soft& soft, bool is_sparse, const SoftChunk& chunk, Expectation& out) {
    Index k = soft.k, p = soft.p;
    for (Index l = 0; l < k; ++l) {
        out.sizes[l] += chunk.sizes[l];
        for (Index j = 0; j < p; ++j) {
            Index from = is_sparse ? j * soft.room + l : l * p + j, to = l * p + j;
            out.sums[to] += chunk.sums[from];
            out.counts[to] += chunk.counts[from];
            out.squares[to] += chunk.squares[from];
            if (soft.heavy) out.pulls[to] += chunk.pulls[from];
        }
    }
    out.log_likelihood += chunk.likelihood;
}

// Sums are added to what `out` has (null sums: only what is asked of each row). Cut into chunks of
// rows, whose sums are added in their order, whatever the number of threads.
int32_t e_step(const Table& table, const Mixture& it, Expectation& out, Control& control) {
    const Soft soft(it, table.p);
    const Chunks chunks(table, (soft.heavy ? 4 : 3) * soft.room * table.p * Index(sizeof(double)));
    const Index size = out.sums ? table.p * (table.is_sparse ? soft.room : soft.k) : 0;
    Array<SoftChunk*> parts(chunks.count, nullptr);
    if (!all_ok(soft, parts)) return OUT_OF_MEMORY;
    int32_t status = in_parallel(chunks.count, control, [&](Index chunk) -> int32_t {
        parts[chunk] = make<SoftChunk>(soft, table.is_sparse, size);
        if (!parts[chunk]) return OUT_OF_MEMORY;
        return with_rows(table, [&](const auto& rows) {
            return e_step_rows(table, rows, soft, chunks.begin(chunk), chunks.end(chunk), *parts[chunk], out,
                               control);
        });
    });
    for (Index chunk = 0; chunk < chunks.count; ++chunk) {
        if (status == DONE && out.sums) add_chunk(soft, table.is_sparse, *parts[chunk], out);
        unmake(parts[chunk]);
    }
    return status;
}

}}}  // namespace mnar::LEVEL
