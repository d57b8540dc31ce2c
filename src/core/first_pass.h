// The first pass over a table: what is observed, how large it is, whether it is finite. And rows with
// their gaps filled.
//
// Sums run over the rows in their order, chunk by chunk, with the chunks cut by the shape of the table
// alone: dense and CSR tables with the same entries give the same bits.
#pragma once
#include "rows.h"

namespace mnar { namespace LEVEL { namespace {

INLINE Chunks chunks_by_shape(Table table, Index bytes_of_sums = 0) {
    table.is_sparse = 0;
    return Chunks(table, bytes_of_sums);
}

struct Summary {  // of one chunk; room for whole octets of features
    Array<double> numbers;
    Array<Index> observed;
    double *counts, *sums, *lowest, *highest;
    Index infinite, malformed;

    explicit Summary(Index p, Index room = 0)
        : numbers(4 * (room = whole_eights(p))), observed(room), counts(numbers),
          sums(counts + room), lowest(sums + room), highest(lowest + room), infinite(-1), malformed(-1) {
        if (!ok()) return;
        for (Index j = 0; j < room; ++j) {
            counts[j] = sums[j] = 0;
            lowest[j] = __builtin_inf(), highest[j] = -__builtin_inf();
            observed[j] = 0;
        }
    }
    bool ok() const { return all_ok(numbers, observed); }
};

// --- dense ------------------------------------------------------------------------------------

constexpr Index ROWS_AT_ONCE = 32;  // the sums of an octet of features over them stay in registers

// The entries of some rows in EIGHT features from j on, and whether to ask for those of the next rows.
template <class T> struct Octet {
    const T* at;
    Index stride, rows, j;
    bool asks;
};

// INOUT what is known of the features; n_observed: (ROWS_AT_ONCE, HALF) entries observed, lane by lane.
// PLAIN: every row has weight 1, and every gap is NaN, with which no comparison is true.
template <bool PLAIN, class T>
INLINE void summarise(const Octet<T>& octet, double missing, const double* weights, Summary& known,
                    Longs* n_observed) {
    constexpr int PARTS = EIGHT / HALF;
    Doubles sums[PARTS], counts[PARTS], lowest[PARTS], highest[PARTS];
    Longs observed[PARTS];
    UNROLL for (int i = 0; i < PARTS; ++i) {
        Index j = octet.j + i * HALF;
        sums[i] = load<Doubles>(known.sums + j);
        counts[i] = load<Doubles>(known.counts + j);
        lowest[i] = load<Doubles>(known.lowest + j);
        highest[i] = load<Doubles>(known.highest + j);
        observed[i] = load<Longs>(known.observed + j);
    }
    for (Index r = 0; r < octet.rows; ++r) {
        const T* row = octet.at + r * octet.stride;
        if (octet.asks) __builtin_prefetch(row + ROWS_AT_ONCE * octet.stride, 0, 2);
        const Doubles weight = splat(PLAIN ? 1.0 : weights[r]);
        UNROLL for (int i = 0; i < PARTS; ++i) {
            Doubles x = load_doubles(row + i * HALF);
            Longs is = x == x, lower = x < lowest[i], higher = x > highest[i];
            if (!PLAIN) {
                is &= x != missing;
                counts[i] += keep(is, weight);
                lower &= is & (weight > 0.0), higher &= is & (weight > 0.0);
            }
            sums[i] += PLAIN ? keep(is, x) : weight * keep(is, x);
            lowest[i] = lower ? x : lowest[i];
            highest[i] = higher ? x : highest[i];
            observed[i] -= is;
            n_observed[r] -= is;
        }
    }
    UNROLL for (int i = 0; i < PARTS; ++i) {
        Index j = octet.j + i * HALF;
        if (PLAIN) counts[i] += __builtin_convertvector(observed[i] - load<Longs>(known.observed + j), Doubles);
        store(known.sums + j, sums[i]);
        store(known.counts + j, counts[i]);
        store(known.lowest + j, lowest[i]);
        store(known.highest + j, highest[i]);
        store(known.observed + j, observed[i]);
    }
}

// OUT row_counts (n,): observed entries of the rows begin .. end. INOUT known.
template <class T>
void summarise_rows(const Dense<T>& rows, Index begin, Index end, const double* weights, Summary& known,
                    int32_t* row_counts) {
    const T gap = T(__builtin_nan(""));
    T copy[ROWS_AT_ONCE * EIGHT];  // of an octet that does not lie in one piece, or is not a whole one
    for (Index start = begin; start < end; start += ROWS_AT_ONCE) {
        Index count = min_of(ROWS_AT_ONCE, end - start);
        const T* at = rows.values + start * rows.row_stride;
        Longs lanes[ROWS_AT_ONCE] = {};
        bool plain = rows.missing != rows.missing;
        for (Index r = 0; r < count; ++r) plain = plain && weights[start + r] == 1.0;
        for (Index j = 0; j < rows.p; j += EIGHT) {
            bool asks = rows.is_contiguous() && start + 2 * ROWS_AT_ONCE <= end;
            Octet<T> octet{at + j, rows.row_stride, count, j, asks};
            Index width = min_of(EIGHT, rows.p - j);
            if (!rows.is_contiguous() || width < EIGHT) {
                for (Index r = 0; octet.asks && r < count; ++r)
                    __builtin_prefetch(octet.at + (r + ROWS_AT_ONCE) * rows.row_stride, 0, 2);
                for (Index e = 0; e < count * EIGHT; ++e) copy[e] = gap;
                for (Index c = 0; c < width; ++c)
                    for (Index r = 0; r < count; ++r)
                        copy[r * EIGHT + c] = at[r * rows.row_stride + (j + c) * rows.column_stride];
                octet.at = copy, octet.stride = EIGHT, octet.asks = false;
            }
            if (plain) summarise<true>(octet, rows.missing, weights + start, known, lanes);
            else summarise<false>(octet, rows.missing, weights + start, known, lanes);
        }
        for (Index r = 0; r < count; ++r) {
            int64_t total = 0;
            for (int i = 0; i < HALF; ++i) total += lanes[r][i];
            row_counts[start + r] = int32_t(total);
        }
    }
}

INLINE bool is_infinite(double x) { return __builtin_fabs(x) == __builtin_inf(); }

template <class T> bool has_infinite(const Dense<T>& rows, Index i) {
    const T* at = rows.values + i * rows.row_stride;
    for (Index j = 0; j < rows.p; ++j) {
        double x = at[j * rows.column_stride];
        if (is_infinite(x) && !rows.is_gap(x)) return true;
    }
    return false;
}

// --- CSR --------------------------------------------------------------------------------------

// Nothing else looks where a CSR matrix points before it goes there.
template <class T> bool is_sound(const Sparse<T>& rows, Index i) {
    const Index begin = rows.starts[i], end = rows.starts[i + 1];
    if (begin < rows.starts[0] || begin > end || end > rows.starts[rows.n]) return false;
    bool rises = begin == end || (rows.indices[begin] >= 0 && rows.indices[end - 1] < rows.p);
    for (Index e = begin + 1; e < end; ++e) rises &= rows.indices[e - 1] < rows.indices[e];
    return rises;
}

template <class T>
void summarise_rows(const Sparse<T>& rows, Index begin, Index end, const double* weights, Summary& known,
                    int32_t* row_counts) {
    for (Index i = begin; i < end; ++i) {
        if (!is_sound(rows, i)) {
            known.malformed = i;
            return;
        }
        double w = weights[i];
        row_counts[i] = int32_t(rows.stored(i));
        for (Index e = rows.starts[i]; e < rows.starts[i + 1]; ++e) {
            const Index j = rows.indices[e];
            const double x = rows.values[e];
            known.sums[j] += w * x;
            known.counts[j] += w;
            known.observed[j] += 1;
            if (w > 0 && x < known.lowest[j]) known.lowest[j] = x;
            if (w > 0 && x > known.highest[j]) known.highest[j] = x;
        }
    }
}

template <class T> bool has_infinite(const Sparse<T>& rows, Index i) {
    for (Index e = rows.starts[i]; e < rows.starts[i + 1]; ++e)
        if (is_infinite(rows.values[e])) return true;
    return false;
}

// --- both -------------------------------------------------------------------------------------

// An infinite value has left its trace in a sum; so have finite ones whose sum overflows.
template <class Rows>
Index first_infinite(const Rows& rows, Index begin, Index end, const Summary& known) {
    bool finite = true;
    for (Index j = 0; j < rows.p; ++j) finite = finite && known.sums[j] - known.sums[j] == 0;
    if (finite || known.malformed >= 0) return -1;
    for (Index i = begin; i < end; ++i)
        if (has_infinite(rows, i)) return i;
    return -1;
}

// INOUT out: what was found in a later chunk.
INLINE void merge_summary(const Summary& part, Index p, FirstPass& out) {
    for (Index j = 0; j < p; ++j) {
        out.counts[j] += part.counts[j];
        out.sums[j] += part.sums[j];
        out.lowest[j] = part.lowest[j] < out.lowest[j] ? part.lowest[j] : out.lowest[j];
        out.highest[j] = part.highest[j] > out.highest[j] ? part.highest[j] : out.highest[j];
        out.observed[j] += part.observed[j];
    }
    if (out.infinite < 0) out.infinite = part.infinite;
    if (out.malformed < 0) out.malformed = part.malformed;
}

int32_t first_pass(const Table& table, FirstPass& out, Control& control) {
    Chunks chunks = chunks_by_shape(table, 5 * sizeof(double) * (table.p + EIGHT));
    Array<Summary*> parts(chunks.count, nullptr);
    if (!parts.ok()) return OUT_OF_MEMORY;
    int32_t status = in_parallel(chunks.count, control, [&](Index s) -> int32_t {
        parts[s] = make<Summary>(table.p);
        if (!parts[s]) return OUT_OF_MEMORY;
        return with_rows(table, [&](const auto& rows) -> int32_t {
            Index begin = chunks.begin(s), end = chunks.end(s);
            summarise_rows(rows, begin, end, table.weights, *parts[s], out.row_counts);
            parts[s]->infinite = first_infinite(rows, begin, end, *parts[s]);
            return DONE;
        });
    });
    out.infinite = out.malformed = -1;
    for (Index j = 0; j < table.p; ++j) {
        out.counts[j] = out.sums[j] = 0;
        out.lowest[j] = __builtin_inf(), out.highest[j] = -__builtin_inf();
        out.observed[j] = 0;
    }
    for (Index s = 0; s < chunks.count; ++s) {
        if (status == DONE) merge_summary(*parts[s], table.p, out);
        unmake(parts[s]);
    }
    return status;
}

// --- filled rows ------------------------------------------------------------------------------

// OUT out: a register of entries, gaps filled.
INLINE void fill_register(const float* at, double missing, const float* fill, float* out) {
    Floats x = load<Floats>(at);
    store(out, (x == x) & (x != float(missing)) ? x : load<Floats>(fill));
}
template <class T> INLINE void fill_register(const T* at, double missing, const double* fill, double* out) {
    Doubles x = load_doubles(at);
    store(out, (x == x) & (x != missing) ? x : load<Doubles>(fill));
}

// OUT out (p,): row i, its gaps filled from fill (p,).
template <class T, class To>
INLINE void fill_row(const Dense<T>& rows, Index i, const To* fill, To* out) {
    const T* at = rows.values + i * rows.row_stride;
    Index j = 0;
    constexpr Index entries = sizeof(Doubles) / sizeof(To);  // of a register
    for (; rows.is_contiguous() && j + entries <= rows.p; j += entries)
        fill_register(at + j, rows.missing, fill + j, out + j);
    for (; j < rows.p; ++j) {
        T x = at[j * rows.column_stride];
        out[j] = rows.is_gap(x) ? fill[j] : To(x);
    }
}

template <class T, class To>
INLINE void fill_row(const Sparse<T>& rows, Index i, const To* fill, To* out) {
    memcpy(out, fill, sizeof(To) * rows.p);
    for (Index e = rows.starts[i]; e < rows.starts[i + 1]; ++e) out[rows.indices[e]] = rows.values[e];
}

int32_t fill_rows(const Table& table, const Index* rows, Index m, const double* fill, double* out) {
    return with_rows(table, [&](const auto& all) -> int32_t {
        for (Index e = 0; e < m; ++e) fill_row(all, rows[e], fill, out + e * table.p);
        return DONE;
    });
}

// OUT out (n, p) of the table's type: gaps filled from the centres mu (k, p) by label.
template <class Rows>
int32_t impute_rows(const Rows& rows, const Table& table, const double* mu, Index k, const Label* labels,
                    void* out, Control& control) {
    using T = typename Rows::Value;
    const Index p = table.p;
    Array<T> centers(k * p);
    if (!centers.ok()) return OUT_OF_MEMORY;
    for (Index e = 0; e < k * p; ++e) centers[e] = T(mu[e]);
    const Chunks chunks = chunks_by_shape(table);
    return in_parallel(chunks.count, control, [&](Index s) -> int32_t {
        for (Index i = chunks.begin(s); i < chunks.end(s); ++i)
            fill_row(rows, i, centers + labels[i] * p, static_cast<T*>(out) + i * p);
        return DONE;
    });
}

int32_t impute(const Table& table, const double* mu, Index k, const Label* labels, void* out, Control& control) {
    return with_rows(table, [&](const auto& rows) {
        return impute_rows(rows, table, mu, k, labels, out, control);
    });
}

}}}  // namespace mnar::LEVEL
