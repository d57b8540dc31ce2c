// One row of a table, dense or CSR: read it, what it costs at centres, add it to sums. The plain,
// obvious way, in float64 and by direct differences: this is what decides.
//
//     d_il = sum_j  (x_ij - mu_lj)^2 where observed,  lam_j (mu_lj - c_j)^2 in gaps
//
// To find the nearest centre the sum is taken in the order of the features (``Direct``), for every
// kind of table and on every instruction set alike: equal sums are equal bits, and go to the lowest
// label. A row's label is a function of the row and the centres alone.
#pragma once
#include "vectors.h"

namespace mnar { namespace LEVEL { namespace {

constexpr Label UNSURE = -1;

template <class T> struct Dense {
    using Value = T;
    Index n, p;
    const T* values;
    Index row_stride, column_stride;
    double missing;

    explicit Dense(const Table& table)
        : n(table.n), p(table.p), values(static_cast<const T*>(table.values)),
          row_stride(table.row_stride), column_stride(table.column_stride), missing(table.missing) {}

    // Room for a row of any type, as one of this type.
    static T* scratch(double* room) { return reinterpret_cast<T*>(room); }
    bool is_contiguous() const { return column_stride == 1; }
    // Up to here the memory of the table may be read; rows of a reversed one end where they end.
    const T* end() const { return row_stride < 0 ? values : values + (n - 1) * row_stride + p; }
    bool is_gap(double x) const { return x != x || x == missing; }

    // The entries of a row one after the other: in place, or copied into scratch (p,).
    INLINE const T* row(Index i, T* scratch) const {
        const T* at = values + i * row_stride;
        if (is_contiguous()) return at;
        for (Index j = 0; j < p; ++j) scratch[j] = at[j * column_stride];
        return scratch;
    }
};

template <class T> struct Sparse {
    using Value = T;
    Index n, p;
    const T* values;
    const int32_t* indices;
    const Index* starts;

    explicit Sparse(const Table& table)
        : n(table.n), p(table.p), values(static_cast<const T*>(table.values)),
          indices(table.indices), starts(table.starts) {}

    static T* scratch(double* room) { return reinterpret_cast<T*>(room); }
    Index stored(Index i) const { return starts[i + 1] - starts[i]; }
};

// Calls work(rows) with the rows as what they are: Dense<float>, Sparse<double>, ...
template <class Work> INLINE auto with_rows(const Table& table, const Work& work) {
    if (table.is_sparse)
        return table.is_double ? work(Sparse<double>(table)) : work(Sparse<float>(table));
    return table.is_double ? work(Dense<double>(table)) : work(Dense<float>(table));
}

// Chunks of rows: the cut depends on the shape of the problem only, and sums are added in the order
// of the chunks, so that results do not depend on the number of threads.
struct Chunks {
    static constexpr Index MOST = 64, BYTES_OF_SUMS = 1 << 27;
    Index n, count;

    Chunks(const Table& table, Index bytes_of_sums = 0) : n(table.n) {
        Index entries = table.is_sparse ? table.starts[n] - table.starts[0] : n * table.p;
        count = entries <= table.one_chunk ? 1 : min_of(entries / table.per_chunk, MOST);
        count = min_of(count, n);
        if (bytes_of_sums > 0) count = min_of(count, BYTES_OF_SUMS / bytes_of_sums);
        if (count < 1) count = 1;
    }
    Index begin(Index chunk) const { return n * chunk / count; }
    Index end(Index chunk) const { return begin(chunk + 1); }
};

// A number well mixed from i (the finaliser of splitmix64).
INLINE uint64_t mixed(uint64_t i) {
    uint64_t z = (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// --- the nearest centre -----------------------------------------------------------------------

// The k centres of one start side by side, eight to an octet: one feature of a row meets all of them
// at once, and each sum still runs in the order of the features.
struct Direct {
    Index k, p, room;
    Array<double> mu, gap;  // (p, room): the centres, and what a gap costs at each
    Label of_empty;         // of a row without observed values: the centre nearest to the reference

    Direct(const Centers& centers, Index g, Index p)
        : k(centers.k), p(p), room(whole_eights(k)), mu(p * room), gap(p * room),
          of_empty(0) {
        if (!ok()) return;
        const double *lam = centers.lam + g * p, *c = centers.reference;
        bool pulls = false;
        for (Index j = 0; j < p; ++j) pulls = pulls || lam[j] > 0;
        double nearest = 0;
        for (Index l = 0; l < room; ++l) {
            const double* from = centers.mu + (g * k + min_of(l, k - 1)) * p;
            double total = 0;
            for (Index j = 0; j < p; ++j) {
                double away = from[j] - c[j], square = away * away;
                mu[j * room + l] = from[j];
                gap[j * room + l] = lam[j] * square;
                total += pulls ? lam[j] * square : square;
            }
            if (l == 0 || (l < k && total < nearest)) of_empty = Label(l), nearest = total;
        }
    }
    bool ok() const { return all_ok(mu, gap); }
};

// Losses of a row at eight centres, added up feature by feature: observed as x, or a gap.
struct Distances {
    static constexpr int PARTS = EIGHT / HALF;
    Doubles parts[PARTS];

    Distances() {
        for (Doubles& part : parts) part = Doubles{};
    }
    INLINE void observe(const double* mu, double x) {
        UNROLL for (int i = 0; i < PARTS; ++i) {
            Doubles away = x - load<Doubles>(mu + i * HALF);
            parts[i] += away * away;
        }
    }
    INLINE void miss(const double* gap) {
        UNROLL for (int i = 0; i < PARTS; ++i) parts[i] += load<Doubles>(gap + i * HALF);
    }
    INLINE void meet(const double* mu, const double* gap, double x, bool is) {
        Longs where = -int64_t(is) - Longs{};
        UNROLL for (int i = 0; i < PARTS; ++i) {
            Doubles away = x - load<Doubles>(mu + i * HALF);
            Longs near = (Longs)(away * away) & where;
            parts[i] += (Doubles)(near | ((Longs)load<Doubles>(gap + i * HALF) & ~where));
        }
    }
    INLINE void put(double* out) const { memcpy(out, parts, sizeof parts); }
};

// As ``distances_of``, for S octets of centres from `octet` on: one need not wait for the other.
template <int S, class T>
INLINE Index distances_to(const Dense<T>& rows, Index i, const Direct& direct, Index octet, double* out) {
    const T* row = rows.values + i * rows.row_stride;
    const double *mu = direct.mu + octet, *gap = direct.gap + octet;
    Index n_observed = 0, room = direct.room;
    Distances sums[S];
    for (Index j = 0; j < rows.p; ++j, mu += room, gap += room) {
        double x = row[j * rows.column_stride];
        bool is = !rows.is_gap(x);
        UNROLL for (int s = 0; s < S; ++s) sums[s].meet(mu + s * EIGHT, gap + s * EIGHT, x, is);
        n_observed += is;
    }
    for (int s = 0; s < S; ++s) sums[s].put(out + octet + s * EIGHT);
    return n_observed;
}

// OUT out (room,): the loss of row i at every centre, in the order of the features. Returns how
// many features the row observes.
template <class T>
Index distances_of(const Dense<T>& rows, Index i, const Direct& direct, double* out) {
    Index n_observed = 0, octet = 0;
    for (; octet + 2 * EIGHT <= direct.room; octet += 2 * EIGHT)
        n_observed = distances_to<2>(rows, i, direct, octet, out);
    if (octet < direct.room) n_observed = distances_to<1>(rows, i, direct, octet, out);
    return n_observed;
}

template <class T>
Index distances_of(const Sparse<T>& rows, Index i, const Direct& direct, double* out) {
    Index begin = rows.starts[i], end = rows.starts[i + 1], room = direct.room;
    for (Index octet = 0; octet < room; octet += EIGHT) {
        Distances sums;
        const double *mu = direct.mu + octet, *gap = direct.gap + octet;
        Index j = 0;
        for (Index e = begin; e < end; ++e, ++j) {
            for (Index next = rows.indices[e]; j < next; ++j) sums.miss(gap + j * room);
            sums.observe(mu + j * room, rows.values[e]);
        }
        for (; j < rows.p; ++j) sums.miss(gap + j * room);
        sums.put(out + octet);
    }
    return end - begin;
}

// The label of row i; scratch (room,).
template <class Rows>
Label nearest_of(const Rows& rows, Index i, const Direct& direct, double* scratch) {
    if (distances_of(rows, i, direct, scratch) == 0) return direct.of_empty;
    Label best = 0;
    for (Label l = 1; l < direct.k; ++l)
        if (scratch[l] < scratch[best]) best = l;
    return best;
}

// --- the loss at one centre -------------------------------------------------------------------

// The loss of row i at the centre mu (p,), by direct differences; gaps cost gap (p,) each, pull in
// all. scratch (p,) of the table's type.
template <class T>
double cost_of(const Dense<T>& rows, Index i, const double* mu, const double* gap, double,
               T* scratch) {
    const T* row = rows.row(i, scratch);
    Sum8 sum;
    Index j = 0;
    for (; j + EIGHT <= rows.p; j += EIGHT)
        UNROLL for (int part = 0; part < EIGHT / HALF; ++part) {
            Index at = j + part * HALF;
            Doubles x = load_doubles(row + at), away = x - load<Doubles>(mu + at);
            Longs is = (x == x) & (x != rows.missing);
            Longs near = (Longs)(away * away) & is;
            sum.parts[part] += (Doubles)(near | ((Longs)load<Doubles>(gap + at) & ~is));
        }
    double rest[EIGHT] = {};
    for (Index r = 0; j < rows.p; ++j, ++r) {
        double x = row[j], away = x - mu[j];
        rest[r] = rows.is_gap(x) ? gap[j] : away * away;
    }
    for (int part = 0; part < EIGHT / HALF; ++part)
        sum.parts[part] += load<Doubles>(rest + part * HALF);
    return sum.total();
}

// What the gaps of a CSR row cost is what all features would, less those stored; where that loses
// digits the gaps are summed one by one.
constexpr double DIGITS_LEFT = 1e-2;

template <class T>
double cost_of(const Sparse<T>& rows, Index i, const double* mu, const double* gap, double pull, T*) {
    Index begin = rows.starts[i], end = rows.starts[i + 1];
    double near = 0, stored = 0;
    for (Index e = begin; e < end; ++e) {
        Index j = rows.indices[e];
        double away = rows.values[e] - mu[j];
        near += away * away;
        stored += gap[j];
    }
    double gaps = pull - stored;
    if (end - begin == rows.p) return near;
    if (!(gaps > DIGITS_LEFT * pull)) {
        gaps = 0;
        Index j = 0;
        for (Index e = begin; e < end; ++e, ++j)
            for (Index next = rows.indices[e]; j < next; ++j) gaps += gap[j];
        for (; j < rows.p; ++j) gaps += gap[j];
    }
    return near + gaps;
}

// OUT gap (k, p): what a gap costs at each centre of start g; pull (k,): their sums.
INLINE void gap_costs(const Centers& centers, Index g, Index p, double* gap, double* pull) {
    const double *lam = centers.lam + g * p, *c = centers.reference;
    for (Index l = 0; l < centers.k; ++l) {
        const double* mu = centers.mu + (g * centers.k + l) * p;
        double total = 0;
        for (Index j = 0; j < p; ++j) {
            double away = mu[j] - c[j];
            total += gap[l * p + j] = lam[j] * (away * away);
        }
        pull[l] = total;
    }
}

// --- sums -------------------------------------------------------------------------------------

// INOUT sums, counts (p,): add w (x - shift) and w in the observed entries. Returns |x - shift|^2.
// In vectors by hand: left to itself, GCC reads the shift by masked loads, which take twice the time.
template <class T>
double add_row(const Dense<T>& rows, Index i, double w, const double* shift, double* sums,
               double* counts, T* scratch) {
    const T* row = rows.row(i, scratch);
    const Doubles weight = splat(w);
    Sum8 squares;
    Index j = 0;
    for (; j + EIGHT <= rows.p; j += EIGHT)
        UNROLL for (int part = 0; part < EIGHT / HALF; ++part) {
            Index at = j + part * HALF;
            Doubles x = load_doubles(row + at);
            Longs is = (x == x) & (x != rows.missing);
            Doubles value = keep(is, x - load<Doubles>(shift + at));
            store(sums + at, load<Doubles>(sums + at) + weight * value);
            store(counts + at, load<Doubles>(counts + at) + keep(is, weight));
            squares.parts[part] += value * value;
        }
    double rest[EIGHT] = {};
    for (Index r = 0; j < rows.p; ++j, ++r) {  // no branches: they would be guessed wrong as often as there are gaps
        double x = row[j];
        bool is = !rows.is_gap(x);
        double value = is ? x - shift[j] : 0.0;
        sums[j] += w * value;
        counts[j] += is ? w : 0.0;
        rest[r] = value * value;
    }
    for (int part = 0; part < EIGHT / HALF; ++part)
        squares.parts[part] += load<Doubles>(rest + part * HALF);
    return squares.total();
}

template <class T>
double add_row(const Sparse<T>& rows, Index i, double w, const double* shift, double* sums,
               double* counts, T*) {
    double square = 0;
    for (Index e = rows.starts[i]; e < rows.starts[i + 1]; ++e) {
        Index j = rows.indices[e];
        double value = rows.values[e] - shift[j];
        sums[j] += w * value;
        counts[j] += w;
        square += value * value;
    }
    return square;
}

}}}  // namespace mnar::LEVEL
