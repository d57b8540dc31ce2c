// Where starts come from: greedy k-means++ on mean-filled rows, for many starts together.
//
// Filled with the means and taken relative to them, a gap is 0, so that only observed entries count:
//
//     x' = x - mean where observed, 0 in gaps        |x'_i - x'_c|^2 = |x'_i|^2 + |x'_c|^2 - 2 x'_i . x'_c
//
// Every lane of a vector is a candidate centre, and every sum runs in the order of the features or of
// the rows: dense and CSR tables, float32 and float64 with the same values, all instruction sets and any
// number of threads draw the same starts. A row and its equals are 0 apart, since |x'|^2 and x' . x' are
// then the same bits; where rows are so close that the difference has lost its digits it is taken
// directly.
#pragma once
#include "first_pass.h"

namespace mnar { namespace LEVEL { namespace {

constexpr int ROWS_OF_TILE = 8;
constexpr int WIDEST_TILE = 3;  // registers of candidates: with four rows, all sums stay in registers

// --- rows relative to the means ---------------------------------------------------------------

INLINE double keep(bool is, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= -uint64_t(is);
    memcpy(&x, &bits, sizeof bits);
    return x;
}

// OUT out (p,): x' of row i.
template <class T> INLINE void center_row(const Dense<T>& rows, Index i, const double* means, double* out) {
    const T* at = rows.values + i * rows.row_stride;
    Index j = 0;
    for (; rows.is_contiguous() && j + HALF <= rows.p; j += HALF) {
        Doubles x = load_doubles(at + j);
        Longs is = (x == x) & (x != rows.missing);
        store(out + j, keep(is, x - load<Doubles>(means + j)));
    }
    for (; j < rows.p; ++j) {  // without branches: where gaps are is not to be foreseen
        double x = at[j * rows.column_stride];
        out[j] = keep((x == x) & (x != rows.missing), x - means[j]);
    }
}

template <class T> INLINE void center_row(const Sparse<T>& rows, Index i, const double* means, double* out) {
    memset(out, 0, sizeof(double) * rows.p);
    for (Index e = rows.starts[i]; e < rows.starts[i + 1]; ++e)
        out[rows.indices[e]] = rows.values[e] - means[rows.indices[e]];
}

INLINE double distance_between(const double* x, const double* y, Index p) {
    double sum = 0;
    for (Index j = 0; j < p; ++j) sum += (x[j] - y[j]) * (x[j] - y[j]);
    return sum;
}

// --- candidates -------------------------------------------------------------------------------

// Candidate centres of G starts, each in its own lane: the first of every start, the second, ...
struct Candidates {
    Index groups, tried, p, lanes, room;  // tried per start; room: whole registers
    Array<double> rows, table, squares;   // x' (lanes, p) and (p, room); |x'|^2 (room,)
    Array<Index> chosen;                  // (room,) which row of the table it is

    Candidates(Index groups, Index most_tried, Index p)
        : groups(groups), tried(most_tried), p(p), lanes(groups * tried), room(whole(lanes)),
          rows(lanes * p), table(p * room), squares(room), chosen(room) {
        if (ok()) resize(tried);
    }
    bool ok() const { return all_ok(rows, table, squares, chosen); }
    static Index whole(Index lanes) { return (lanes + HALF - 1) / HALF * HALF; }

    // From now on each start has so many of them.
    void resize(Index count) {
        tried = count;
        lanes = groups * tried;
        room = whole(lanes);
        for (Index lane = lanes; lane < room; ++lane) {
            squares[lane] = 0;
            chosen[lane] = 0;
            for (Index j = 0; j < p; ++j) table[j * room + lane] = 0;
        }
    }
    void set(Index lane, const double* x, double square, Index row) {
        memcpy(rows + lane * p, x, sizeof(double) * p);
        for (Index j = 0; j < p; ++j) table[j * room + lane] = x[j];
        squares[lane] = square;
        chosen[lane] = row;
    }
    Index lane(Index start, Index attempt) const { return attempt * groups + start; }
};

// OUT dots (ROWS_OF_TILE, room): x' of some rows times a tile of C registers of candidates, R rows at
// a time: enough sums to hide the time an addition takes, and no more than there are registers.
template <int C, int R = C == 1 ? 8 : 4>
INLINE void multiply(const double* const* x, const Candidates& with, Index lane, double* dots) {
    for (int first = 0; first < ROWS_OF_TILE; first += R, x += R, dots += R * with.room) {
        Doubles sums[R][C] = {};
        const double* table = with.table + lane;
        for (Index j = 0; j < with.p; ++j, table += with.room)
            UNROLL for (int c = 0; c < C; ++c) {
                Doubles y = load<Doubles>(table + c * HALF);
                UNROLL for (int r = 0; r < R; ++r) sums[r][c] += x[r][j] * y;
            }
        UNROLL for (int r = 0; r < R; ++r)
            UNROLL for (int c = 0; c < C; ++c) store(dots + r * with.room + lane + c * HALF, sums[r][c]);
    }
}

// Calls one(width, lane) for tiles of up to WIDEST_TILE registers.
template <class One> INLINE void in_tiles(const Candidates& with, const One& one) {
    for (Index lane = 0; lane < with.room; lane += WIDEST_TILE * HALF)
        one(min_of(WIDEST_TILE, (with.room - lane) / HALF), lane);
}

struct SeedScratch {
    Array<double> rows, dots, known;  // (ROWS_OF_TILE, p), (ROWS_OF_TILE, room), (room,)
    explicit SeedScratch(const Candidates& with)
        : rows(ROWS_OF_TILE * with.p), dots(ROWS_OF_TILE * with.room), known(with.room, 0.0) {}
    bool ok() const { return all_ok(rows, dots, known); }
};

// OUT scratch.dots of the rows i .. i + count.
template <class T>
INLINE void multiply_rows(const Dense<T>& rows, Index i, Index count, const double* means,
                          const Candidates& with, SeedScratch& scratch) {
    const double* x[ROWS_OF_TILE];
    for (Index r = 0; r < ROWS_OF_TILE; ++r) {
        x[r] = scratch.rows + (r < count ? r : 0) * rows.p;
        if (r < count) center_row(rows, i + r, means, scratch.rows + r * rows.p);
    }
    in_tiles(with, [&](Index width, Index lane) INLINE_LAMBDA {
        if (width == 1) multiply<1>(x, with, lane, scratch.dots);
        else if (width == 2) multiply<2>(x, with, lane, scratch.dots);
        else multiply<3>(x, with, lane, scratch.dots);
    });
}

template <int C, class T>
INLINE void multiply(const Sparse<T>& rows, Index i, const double* x, const Candidates& with, Index lane,
                     double* dots) {
    Doubles sums[C] = {};
    const int32_t* features = rows.indices + rows.starts[i];
    for (Index e = 0; e < rows.stored(i); ++e) {
        const double* table = with.table + features[e] * with.room + lane;
        UNROLL for (int c = 0; c < C; ++c) sums[c] += x[e] * load<Doubles>(table + c * HALF);
    }
    UNROLL for (int c = 0; c < C; ++c) store(dots + lane + c * HALF, sums[c]);
}

// The same over what is stored: gaps are 0 and add nothing.
template <class T>
INLINE void multiply_rows(const Sparse<T>& rows, Index i, Index count, const double* means,
                          const Candidates& with, SeedScratch& scratch) {
    for (Index r = 0; r < count; ++r) {
        double *x = scratch.rows + r * rows.p, *dots = scratch.dots + r * with.room;
        const Index begin = rows.starts[i + r];
        for (Index e = 0; e < rows.stored(i + r); ++e)
            x[e] = rows.values[begin + e] - means[rows.indices[begin + e]];
        in_tiles(with, [&](Index width, Index lane) INLINE_LAMBDA {
            if (width == 1) multiply<1>(rows, i + r, x, with, lane, dots);
            else if (width == 2) multiply<2>(rows, i + r, x, with, lane, dots);
            else multiply<3>(rows, i + r, x, with, lane, dots);
        });
    }
}

constexpr double CLOSE = 1e-6;                   // of |x'_i|^2 + |x'_c|^2: closer, six digits are left
constexpr Index BYTES_OF_DISTANCES = 1 << 25;    // of the starts that are seeded side by side
constexpr Index BYTES_OF_CANDIDATES = 1 << 20;   // so that they stay in the cache
constexpr Index MOST_STARTS = 8;                 // that a thread seeds side by side on a small table

// --- how much a candidate would gain ----------------------------------------------------------

struct Seeding {  // what all threads share
    const Table& table;
    const double* means;
    Chunks chunks;
    Array<double> squares;  // (n,) |x'|^2

    Seeding(const Table& table, const Seeds& seeds)
        : table(table), means(seeds.means), chunks(chunks_by_shape(table)), squares(table.n) {}
};

// The starts first .. first + count of `seeds`.
INLINE Seeds slice_of(Seeds seeds, Index first, Index count, Index p) {
    seeds.count = count;
    seeds.draws += first * seeds.k * seeds.trials;
    seeds.centers += first * seeds.k * p;
    return seeds;
}

// INOUT dots (room,): the products of row i with the candidates, then its squared distances to them.
template <class Rows>
INLINE void to_distances(const Rows& rows, Index i, const Seeding& of, const Candidates& with, double* dots,
                         double* scratch) {
    const Doubles square = splat(of.squares[i]);
    Longs close{};
    for (Index lane = 0; lane < with.room; lane += HALF) {
        Doubles both = square + load<Doubles>(with.squares + lane), dot = load<Doubles>(dots + lane);
        Doubles distance = both - (dot + dot);
        close |= distance < CLOSE * both;
        store(dots + lane, distance);
    }
    if (!any(close)) return;
    center_row(rows, i, of.means, scratch);
    for (Index lane = 0; lane < with.lanes; ++lane)
        if (dots[lane] < CLOSE * (of.squares[i] + with.squares[lane]))
            dots[lane] = distance_between(scratch, with.rows + lane * with.p, with.p);
}

// The rows begin .. end meet the candidates. IN nearest (n, G): distances to the nearest centres; OUT
// lowered (n, lanes): what they would be, were the candidate one too; potentials (room,): these times the
// weights, summed over the rows.
template <class Rows>
int32_t meet_candidates(const Rows& rows, Index begin, Index end, const Seeding& of, const Candidates& with,
                        const double* nearest, double* lowered, double* potentials) {
    SeedScratch scratch(with);
    Array<double> row(with.p);
    if (!all_ok(scratch, row)) return OUT_OF_MEMORY;
    for (Index lane = 0; lane < with.room; ++lane) potentials[lane] = 0;
    for (Index i = begin; i < end; i += ROWS_OF_TILE) {
        Index count = min_of(ROWS_OF_TILE, end - i);
        multiply_rows(rows, i, count, of.means, with, scratch);
        for (Index r = 0; r < count; ++r) {
            const double* before = nearest + (i + r) * with.groups;
            double* near = scratch.dots + r * with.room;
            to_distances(rows, i + r, of, with, near, row);
            for (Index lane = 0; lane < with.lanes; lane += with.groups)
                if (with.groups == 1) scratch.known[lane] = *before;  // most often, and no call
                else memcpy(scratch.known + lane, before, sizeof(double) * with.groups);
            const Doubles weight = splat(of.table.weights[i + r]);
            for (Index lane = 0; lane < with.room; lane += HALF) {
                Doubles known = load<Doubles>(scratch.known + lane), distance = load<Doubles>(near + lane);
                Doubles least = distance < known ? distance : known;
                store(near + lane, least);
                store(potentials + lane, load<Doubles>(potentials + lane) + weight * least);
            }
            memcpy(lowered + (i + r) * with.lanes, near, sizeof(double) * with.lanes);
        }
    }
    return DONE;
}

// --- drawing ----------------------------------------------------------------------------------

constexpr Index BLOCK = 64;  // rows of which only the sum is kept

// A row drawn by share u in [0, 1) of the mass of all rows: the first beyond the share, or that completes
// the total. ends: what is reached at the end of each block, `stride` apart.
template <class Mass>
Index draw(Index n, const double* ends, Index stride, double u, const Mass& mass) {
    Index low = 0, high = (n + BLOCK - 1) / BLOCK - 1;
    const double total = ends[high * stride], share = u * total;
    auto is_beyond = [&](double reached) { return reached > share || reached == total; };
    while (low < high) {
        Index middle = (low + high) / 2;
        if (is_beyond(ends[middle * stride])) high = middle;
        else low = middle + 1;
    }
    double before = low > 0 ? ends[(low - 1) * stride] : 0, within = 0;
    Index e = low * BLOCK, last = min_of(e + BLOCK, n) - 1;
    for (; e < last; ++e) {
        within += mass(e);
        if (is_beyond(before + within)) break;
    }
    return e;
}

// OUT ends (blocks, G): weights * mass (n, G) summed up; mass null: the weights alone.
int32_t cumulate(const Seeding& of, const double* mass, Index groups, double* ends, Control& control) {
    const Index n = of.table.n, blocks = (n + BLOCK - 1) / BLOCK, jobs = min_of(of.chunks.count, blocks);
    int32_t status = in_parallel(jobs, control, [&](Index job) -> int32_t {
        for (Index b = blocks * job / jobs; b < blocks * (job + 1) / jobs; ++b) {
            double* sums = ends + b * groups;
            for (Index g = 0; g < groups; ++g) sums[g] = 0;
            for (Index e = b * BLOCK; e < min_of((b + 1) * BLOCK, n); ++e) {
                const double w = of.table.weights[e];
                const double* row_mass = mass ? mass + e * groups : nullptr;
                for (Index g = 0; g < groups; ++g) sums[g] += row_mass ? w * row_mass[g] : w;
            }
        }
        return DONE;
    });
    for (Index e = groups; e < blocks * groups; ++e) ends[e] += ends[e - groups];
    return status;
}

// --- the starts -------------------------------------------------------------------------------

// The starts of `seeds` side by side. IN weights: those of the rows summed up.
template <class Rows>
int32_t seed_some(const Rows& rows, const Seeding& of, const double* weights, const Seeds& seeds,
                  Control& control) {
    const Table& table = of.table;
    const Index groups = seeds.count, k = seeds.k, trials = seeds.trials;
    const Index n = table.n, p = table.p, blocks = (n + BLOCK - 1) / BLOCK, n_chunks = of.chunks.count;
    Candidates tried(groups, trials, p);
    Array<double> nearest(n * groups, __builtin_inf()), lowered(n * tried.lanes);
    Array<double> ends(blocks * groups), row(p), parts(n_chunks * tried.room);
    Array<Index> winners(groups);
    if (!all_ok(tried, nearest, lowered, ends, row, parts, winners)) return OUT_OF_MEMORY;
    for (Index l = 0; l < k; ++l) {
        int32_t status = l > 0 ? cumulate(of, nearest, groups, ends, control) : int32_t(DONE);
        tried.resize(l == 0 ? 1 : trials);
        for (Index lane = 0; lane < tried.lanes; ++lane) {
            Index g = lane % groups;
            double u = seeds.draws[(g * k + l) * trials + lane / groups];
            bool flat = l == 0 || !(ends[(blocks - 1) * groups + g] > 0);
            Index i = flat ? draw(n, weights, 1, u, [&](Index i) { return table.weights[i]; })
                           : draw(n, ends + g, groups, u, [&](Index i) {
                                 return table.weights[i] * nearest[i * groups + g];
                             });
            center_row(rows, i, of.means, row);
            tried.set(lane, row, of.squares[i], i);
        }
        if (status == DONE)
            status = in_parallel(n_chunks, control, [&](Index s) -> int32_t {
                return meet_candidates(rows, of.chunks.begin(s), of.chunks.end(s), of, tried, nearest, lowered,
                                       parts + s * tried.room);
            });
        if (status != DONE) return status;
        for (Index g = 0; g < groups; ++g) {
            Index best = 0;
            double least_potential = 0;
            for (Index t = 0; t < tried.tried; ++t) {
                double potential = 0;
                for (Index s = 0; s < n_chunks; ++s) potential += parts[s * tried.room + tried.lane(g, t)];
                if (t == 0 || potential < least_potential) best = t, least_potential = potential;
            }
            winners[g] = tried.lane(g, best);
            fill_rows(table, tried.chosen + winners[g], 1, of.means, seeds.centers + (g * k + l) * p);
        }
        for (Index i = 0; l < k - 1 && i < n; ++i)
            for (Index g = 0; g < groups; ++g)
                nearest[i * groups + g] = lowered[i * tried.lanes + winners[g]];
    }
    return DONE;
}

// OUT squares of all rows.
template <class Rows> int32_t square_rows(const Rows& rows, const Seeding& of, Control& control) {
    return in_parallel(of.chunks.count, control, [&](Index s) -> int32_t {
        Array<double> row(rows.p);
        if (!row.ok()) return OUT_OF_MEMORY;
        for (Index i = of.chunks.begin(s); i < of.chunks.end(s); ++i) {
            center_row(rows, i, of.means, row);
            double sum = 0;
            for (Index j = 0; j < rows.p; ++j) sum += row[j] * row[j];
            of.squares[i] = sum;
        }
        return DONE;
    });
}

template <class Rows>
int32_t seed_rows(const Rows& rows, const Seeding& of, const Seeds& seeds, Control& control) {
    const Index n = rows.n, p = rows.p, count = seeds.count;
    Array<double> weights((n + BLOCK - 1) / BLOCK);
    if (!weights.ok()) return OUT_OF_MEMORY;
    int32_t status = square_rows(rows, of, control);
    if (status == DONE) status = cumulate(of, nullptr, 1, weights, control);
    if (status != DONE) return status;
    auto some = [&](Index first, Index groups) {
        return seed_some(rows, of, weights, slice_of(seeds, first, groups, p), control);
    };
    if (of.chunks.count == 1) {  // small: the threads share the starts
        Index threads = control.threads > 1 ? control.threads : 1;
        Index size = min_of((count + threads - 1) / threads, MOST_STARTS);
        return in_parallel((count + size - 1) / size, control, [&](Index piece) -> int32_t {
            return some(piece * size, min_of(size, count - piece * size));
        });
    }
    Index size = min_of(BYTES_OF_DISTANCES / (8 * n * seeds.trials), BYTES_OF_CANDIDATES / (8 * p * seeds.trials));
    if (size < 1) size = 1;
    for (Index first = 0; first < count && status == DONE; first += size)
        status = some(first, min_of(size, count - first));
    return status;
}

// Greedy k-means++ on a table.
int32_t seed(const Table& table, const Seeds& seeds, Control& control) {
    if (seeds.count < 1) return DONE;
    Seeding of(table, seeds);
    if (!of.squares.ok()) return OUT_OF_MEMORY;
    return with_rows(table, [&](const auto& rows) { return seed_rows(rows, of, seeds, control); });
}

}}}  // namespace mnar::LEVEL
