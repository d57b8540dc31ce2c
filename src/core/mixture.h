// One E-step of a mixture of normal clusters with gaps, and the sums its M-step needs.
//
//     logit_il = log pi_l + sum_{j observed} [ b_lj - (x_ij - mu_lj)^2 / (2 v_lj) ]
//                         + sum_{j missing} log P_lj,          b = o_lj - log(2 pi v_lj) / 2
//     rho_il   = s_i exp(logit_il) / sum_m exp(logit_im)
//     N_l = sum_i rho_il,   C, S, Q_lj = sum_{i observes j} rho_il (1, x - shift, (x - shift)^2)
//
// o_lj is what the mechanism says of an observed entry beside its density; P_lj is the probability
// of a gap. In dense tables ROWS rows at once stand side by side, eight to a group, each in a lane of
// its own: every sum over features runs in their order, sums over rows have eight parts, so that
// results are the same for every instruction set. In CSR tables the clusters of a row stand side by
// side, and only stored entries are looked at: log P is summed over all features beforehand.
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
    Array<double> mu, h, b;   // (p, room): centre, -1 / 2v, and what being observed adds
    Array<double> base;       // (room,): log pi_l + sum_j log P_lj

    Soft(const Mixture& it, Index p)
        : k(it.k), p(p), room((k + EIGHT - 1) / EIGHT * EIGHT), mu(p * room), h(p * room),
          b(p * room), base(room) {
        if (!ok()) return;
        for (Index l = 0; l < room; ++l) {
            Index from = least(l, k - 1);
            double all = 0;
            for (Index j = 0; j < p; ++j) {
                Index at = from * p + j;
                double v = it.variance[at], o = it.log_observed ? it.log_observed[at] : 0.0;
                mu[j * room + l] = it.mean[at];
                h[j * room + l] = -0.5 / v;
                b[j * room + l] = (o - 0.5 * (LOG_2PI + log_of(v))) - it.log_missing[at];
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
    Array<double> x;       // (ROWS / 8, FEATURES, 8): values, NaN in gaps
    Array<double> logits;  // (room, ROWS), then memberships
    Array<double> totals;  // (ROWS,) log-likelihood of each row
    Array<double> own;     // (room,) memberships of one row
    double likelihood = 0;

    SoftSlab(const Soft& soft, bool is_sparse, Index size)
        : sizes(soft.room, 0.0), sums(size, 0.0), counts(size, 0.0), squares(size, 0.0),
          x(is_sparse ? 0 : ROWS / EIGHT * GROUP_STEP), logits(soft.room * ROWS, 0.0), totals(ROWS),
          own(soft.room, 0.0) {}
    bool ok() const { return all_ok(sizes, sums, counts, squares, x, logits, totals, own); }
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

constexpr int GROUPS_AT_ONCE = WIDTH >= 16 ? 4 : 2;

template <class T>
void tile_logits(const Dense<T>& rows, const Soft& soft, Index begin, Index count, SoftSlab& slab) {
    Index groups = (count + EIGHT - 1) / EIGHT;
    for (Index l = 0; l < soft.k; ++l)
        for (Index r = 0; r < groups * EIGHT; ++r) slab.logits[l * ROWS + r] = soft.base[l];
    for (Index from = 0; from < soft.p; from += FEATURES) {
        Index to = least(from + FEATURES, soft.p);
        read_tile(rows, begin, count, from, to, slab.x);
        for (Index g = 0; g < groups;) {
            bool several = g + GROUPS_AT_ONCE <= groups;
            for (Index l = 0; l < soft.k; ++l) {
                double *x = slab.x + g * GROUP_STEP, *logits = slab.logits + l * ROWS + g * EIGHT;
                if (several) add_logits<GROUPS_AT_ONCE>(soft, l, from, to, x, logits);
                else add_logits<1>(soft, l, from, to, x, logits);
            }
            g += several ? GROUPS_AT_ONCE : 1;
        }
    }
}

template <class T>
void tile_logits(const Sparse<T>& rows, const Soft& soft, Index begin, Index count, SoftSlab& slab) {
    for (Index r = 0; r < count; ++r)
        for (Index strip = 0; strip < soft.room; strip += EIGHT) {
            Doubles sums[PARTS_OF_EIGHT];
            UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i)
                sums[i] = load<Doubles>(soft.base + strip + i * HALF);
            for (Index e = rows.starts[begin + r]; e < rows.starts[begin + r + 1]; ++e) {
                Index at = rows.indices[e] * soft.room + strip;
                double x = rows.values[e];
                UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i) {
                    Doubles away = x - load<Doubles>(soft.mu + at + i * HALF);
                    sums[i] += away * away * load<Doubles>(soft.h + at + i * HALF) +
                               load<Doubles>(soft.b + at + i * HALF);
                }
            }
            double all[EIGHT];
            memcpy(all, sums, sizeof all);
            for (Index l = strip; l < least(soft.k, strip + EIGHT); ++l)
                slab.logits[l * ROWS + r] = all[l - strip];
        }
}

// --- memberships ------------------------------------------------------------------------------

// INOUT logits -> memberships; OUT totals.
INLINE void share_rows(const Soft& soft, Index count, SoftSlab& slab) {
    const Index end = (count + EIGHT - 1) / EIGHT * EIGHT;  // lanes beyond the last row hold something
    for (Index r = 0; r < end; r += HALF) {
        double* at = slab.logits + r;
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
        store(slab.totals + r, top + log_of(total));
    }
}

// INOUT memberships, times the weights of the rows (0 beyond the last one); and what they add up to.
INLINE void weigh_rows(const Soft& soft, const double* weights, Index count, SoftSlab& slab) {
    alignas(64) double all[ROWS] = {};
    memcpy(all, weights, sizeof(double) * count);
    Sum8 likelihood;
    for (Index r = 0; r < count; r += EIGHT)
        UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i) {
            Index at = r + i * HALF;
            likelihood.parts[i] += load<Doubles>(all + at) * load<Doubles>(slab.totals + at);
        }
    slab.likelihood += likelihood.total();
    for (Index l = 0; l < soft.k; ++l) {
        Sum8 size;
        for (Index r = 0; r < count; r += EIGHT)
            UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i) {
                double* at = slab.logits + l * ROWS + r + i * HALF;
                Doubles share = load<Doubles>(at) * load<Doubles>(all + r + i * HALF);
                store(at, share);
                size.parts[i] += share;
            }
        slab.sizes[l] += size.total();
    }
}

// --- sums -------------------------------------------------------------------------------------

template <class T>
void tile_sums(const Dense<T>& rows, const Soft& soft, const double* shift, Index begin, Index count,
               SoftSlab& slab) {
    Index groups = (count + EIGHT - 1) / EIGHT, p = soft.p;
    alignas(64) double values[ROWS];
    alignas(64) int64_t seen[ROWS];
    for (Index from = 0; from < p; from += FEATURES) {
        Index to = least(from + FEATURES, p);
        if (p > FEATURES) read_tile(rows, begin, count, from, to, slab.x);
        for (Index j = from; j < to; ++j) {
            for (Index g = 0; g < groups; ++g)
                UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i) {
                    const double* at = slab.x + g * GROUP_STEP + (j - from) * EIGHT + i * HALF;
                    Doubles x = load<Doubles>(at);
                    Longs is = x == x;
                    store(values + g * EIGHT + i * HALF, keep(is, x - shift[j]));
                    store(seen + g * EIGHT + i * HALF, is);
                }
            for (Index l = 0; l < soft.k; ++l) {
                const double* shares = slab.logits + l * ROWS;
                Sum8 sum, square, weight;
                for (Index g = 0; g < groups; ++g)
                    UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i) {
                        Index at = g * EIGHT + i * HALF;
                        Doubles share = load<Doubles>(shares + at), x = load<Doubles>(values + at);
                        Doubles part = share * x;
                        sum.parts[i] += part;
                        square.parts[i] += part * x;
                        weight.parts[i] += keep(load<Longs>(seen + at), share);
                    }
                slab.sums[l * p + j] += sum.total();
                slab.squares[l * p + j] += square.total();
                slab.counts[l * p + j] += weight.total();
            }
        }
    }
}

template <class T>
void tile_sums(const Sparse<T>& rows, const Soft& soft, const double* shift, Index begin, Index count,
               SoftSlab& slab) {
    double* own = slab.own;
    for (Index r = 0; r < count; ++r) {
        for (Index l = 0; l < soft.k; ++l) own[l] = slab.logits[l * ROWS + r];
        for (Index e = rows.starts[begin + r]; e < rows.starts[begin + r + 1]; ++e) {
            Index j = rows.indices[e], at = j * soft.room;
            double x = rows.values[e] - shift[j];
            for (Index l = 0; l < soft.room; l += HALF) {
                Doubles share = load<Doubles>(own + l), part = share * x;
                store(slab.counts + at + l, load<Doubles>(slab.counts + at + l) + share);
                store(slab.sums + at + l, load<Doubles>(slab.sums + at + l) + part);
                store(slab.squares + at + l, load<Doubles>(slab.squares + at + l) + part * x);
            }
        }
    }
}

// --- all of it --------------------------------------------------------------------------------

// What is wanted of each row: labels from the logits, the rest after share_rows.
INLINE void keep_labels(const Soft& soft, Index count, const SoftSlab& slab, Label* labels) {
    for (Index r = 0; r < count; ++r) {
        Label best = 0;
        for (Label l = 1; l < soft.k; ++l)
            if (slab.logits[l * ROWS + r] > slab.logits[best * ROWS + r]) best = l;
        labels[r] = best;
    }
}

INLINE void keep_memberships(const Soft& soft, Index count, const SoftSlab& slab, double* out) {
    for (Index r = 0; r < count; ++r)
        for (Index l = 0; l < soft.k; ++l) out[r * soft.k + l] = slab.logits[l * ROWS + r];
}

template <class Rows>
int32_t soften_rows(const Table& table, const Rows& rows, const Mixture& it, const Soft& soft,
                    Index begin, Index end, SoftSlab& slab, const Softened& out, Control& control) {
    for (; begin < end; begin += ROWS) {
        if (cancelled(control)) return CANCELLED;
        Index count = least(ROWS, end - begin);
        tile_logits(rows, soft, begin, count, slab);
        if (out.labels) keep_labels(soft, count, slab, out.labels + begin);
        share_rows(soft, count, slab);
        if (out.row_likelihoods)
            memcpy(out.row_likelihoods + begin, slab.totals, sizeof(double) * count);
        if (out.memberships) keep_memberships(soft, count, slab, out.memberships + begin * soft.k);
        if (!out.sums) continue;
        weigh_rows(soft, table.weights + begin, count, slab);
        tile_sums(rows, soft, it.shift, begin, count, slab);
    }
    return DONE;
}

// INOUT out: the sums of one slab more.
INLINE void add_slab(const Soft& soft, bool is_sparse, const SoftSlab& slab, Softened& out) {
    Index k = soft.k, p = soft.p;
    for (Index l = 0; l < k; ++l) {
        out.sizes[l] += slab.sizes[l];
        for (Index j = 0; j < p; ++j) {
            Index from = is_sparse ? j * soft.room + l : l * p + j, to = l * p + j;
            out.sums[to] += slab.sums[from];
            out.counts[to] += slab.counts[from];
            out.squares[to] += slab.squares[from];
        }
    }
    out.log_likelihood += slab.likelihood;
}

// Sums are added to what `out` has (null sums: only what is asked of each row). Cut into slabs of
// rows, whose sums are added in their order, whatever the number of threads.
int32_t soften(const Table& table, const Mixture& it, Softened& out, Control& control) {
    const Soft soft(it, table.p);
    const Slabs slabs(table, 3 * soft.room * table.p * Index(sizeof(double)));
    const Index size = out.sums ? table.p * (table.is_sparse ? soft.room : soft.k) : 0;
    Array<SoftSlab*> parts(slabs.count, nullptr);
    if (!all_ok(soft, parts)) return OUT_OF_MEMORY;
    int32_t status = in_parallel(slabs.count, control, [&](Index slab) -> int32_t {
        parts[slab] = make<SoftSlab>(soft, table.is_sparse, size);
        if (!parts[slab]) return OUT_OF_MEMORY;
        return with_rows(table, [&](const auto& rows) {
            return soften_rows(table, rows, it, soft, slabs.begin(slab), slabs.end(slab),
                               *parts[slab], out, control);
        });
    });
    for (Index slab = 0; slab < slabs.count; ++slab) {
        if (status == DONE && out.sums) add_slab(soft, table.is_sparse, *parts[slab], out);
        unmake(parts[slab]);
    }
    return status;
}

}}}  // namespace mnar::LEVEL
