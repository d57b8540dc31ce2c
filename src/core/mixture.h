// One E-step of a mixture of clusters with gaps, and the sums its M-step needs.
//
//     rho_il = s_i exp(logit_il) / sum_m exp(logit_im)                            (`densities.h`)
//     N_l = sum_i rho_il,   C_lj = sum_{i observes j} rho_il
//     U, S, Q_lj = sum_{i observes j} rho_il u_ilj (1, x - shift, (x - shift)^2)
//
// u is 1 for normal clusters. With heavy tails u = (t + 1) / (t + (x - mu)^2 / v): a value far out
// pulls less; and the tail, sum_il rho_il sum_j log(1 + (x_ij - mu_lj)^2 / (t v_lj)), says how heavy.
#pragma once
#include "densities.h"

namespace mnar { namespace LEVEL { namespace {

// --- memberships ------------------------------------------------------------------------------

// INOUT logits -> memberships; OUT totals.
INLINE void share_rows(const Soft& soft, Index count, SoftSlab& slab) {
    const Index end = whole_eights(count);  // lanes beyond the last row hold something
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
        if (!soft.heavy) continue;
        Sum8 tail;
        for (Index r = 0; r < count; r += EIGHT)
            UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i) {
                Index at = l * ROWS + r + i * HALF;
                Doubles share = load<Doubles>(slab.logits + at);
                tail.parts[i] += keep(share > 0.0, share * load<Doubles>(slab.logs + at));
            }
        slab.tail += tail.total();
    }
}

// --- sums -------------------------------------------------------------------------------------

// One feature of a tile: INOUT the four sums of cluster l.
template <bool HEAVY>
INLINE void feature_sums(const Soft& soft, Index l, Index j, double shift, Index groups,
                         const double* values, const int64_t* seen, SoftSlab& slab) {
    const double* shares = slab.logits + l * ROWS;
    const Doubles mu = splat(soft.mu[j * soft.room + l] - shift), h = splat(soft.h[j * soft.room + l]);
    Sum8 sum, square, weight, pull;
    for (Index g = 0; g < groups; ++g)
        UNROLL for (int i = 0; i < PARTS_OF_EIGHT; ++i) {
            Index at = g * EIGHT + i * HALF;
            Doubles share = keep(load<Longs>(seen + at), load<Doubles>(shares + at));
            Doubles x = load<Doubles>(values + at), own = share;
            if (HEAVY) {
                own = share * (soft.pull / heavy_term(x - mu, h));
                pull.parts[i] += own;
            }
            Doubles part = own * x;
            sum.parts[i] += part;
            square.parts[i] += part * x;
            weight.parts[i] += share;
        }
    Index to = l * soft.p + j;
    slab.sums[to] += sum.total();
    slab.squares[to] += square.total();
    slab.counts[to] += weight.total();
    if (HEAVY) slab.pulls[to] += pull.total();
}

template <class T>
void tile_sums(const Dense<T>& rows, const Soft& soft, Index begin, Index count, SoftSlab& slab) {
    const double* shift = soft.shift;
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
            for (Index l = 0; l < soft.k; ++l)
                if (soft.heavy) feature_sums<true>(soft, l, j, shift[j], groups, values, seen, slab);
                else feature_sums<false>(soft, l, j, shift[j], groups, values, seen, slab);
        }
    }
}

template <class T>
void tile_sums(const Sparse<T>& rows, const Soft& soft, Index begin, Index count, SoftSlab& slab) {
    double* own = slab.own;
    const double* shift = soft.shift;
    for (Index r = 0; r < count; ++r) {
        for (Index l = 0; l < soft.k; ++l) own[l] = slab.logits[l * ROWS + r];
        for (Index e = rows.starts[begin + r]; e < rows.starts[begin + r + 1]; ++e) {
            Index j = rows.indices[e], at = j * soft.room;
            double x = rows.values[e] - shift[j];
            for (Index l = 0; l < soft.room; l += HALF, at += HALF) {
                Doubles share = load<Doubles>(own + l), pulled = share;
                if (soft.heavy) {
                    Doubles away = rows.values[e] - load<Doubles>(soft.mu + at);
                    pulled = share * (soft.pull / heavy_term(away, load<Doubles>(soft.h + at)));
                    store(slab.pulls + at, load<Doubles>(slab.pulls + at) + pulled);
                }
                Doubles part = pulled * x;
                store(slab.counts + at, load<Doubles>(slab.counts + at) + share);
                store(slab.sums + at, load<Doubles>(slab.sums + at) + part);
                store(slab.squares + at, load<Doubles>(slab.squares + at) + part * x);
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
int32_t soften_rows(const Table& table, const Rows& rows, const Soft& soft, Index begin, Index end,
                    SoftSlab& slab, const Softened& out, Control& control) {
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
        tile_sums(rows, soft, begin, count, slab);
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
            if (soft.heavy) out.pulls[to] += slab.pulls[from];
        }
    }
    out.log_likelihood += slab.likelihood;
    out.tail += slab.tail;
}

// Sums are added to what `out` has (null sums: only what is asked of each row). Cut into slabs of
// rows, whose sums are added in their order, whatever the number of threads.
int32_t soften(const Table& table, const Mixture& it, Softened& out, Control& control) {
    const Soft soft(it, table.p);
    const Slabs slabs(table, (soft.heavy ? 4 : 3) * soft.room * table.p * Index(sizeof(double)));
    const Index size = out.sums ? table.p * (table.is_sparse ? soft.room : soft.k) : 0;
    Array<SoftSlab*> parts(slabs.count, nullptr);
    if (!all_ok(soft, parts)) return OUT_OF_MEMORY;
    int32_t status = in_parallel(slabs.count, control, [&](Index slab) -> int32_t {
        parts[slab] = make<SoftSlab>(soft, table.is_sparse, size);
        if (!parts[slab]) return OUT_OF_MEMORY;
        return with_rows(table, [&](const auto& rows) {
            return soften_rows(table, rows, soft, slabs.begin(slab), slabs.end(slab), *parts[slab], out,
                               control);
        });
    });
    for (Index slab = 0; slab < slabs.count; ++slab) {
        if (status == DONE && out.sums) add_slab(soft, table.is_sparse, *parts[slab], out);
        unmake(parts[slab]);
    }
    return status;
}

}}}  // namespace mnar::LEVEL
