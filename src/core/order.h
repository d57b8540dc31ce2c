// Rows ordered by what is in them, not by where they stand: shuffled rows, other columns first, dense
// or CSR, float32 or float64 all lead to the same order.
//
//     key_i = sum over observed entries of mixed(bits of the float64 value)
#pragma once
#include "rows.h"

namespace mnar { namespace LEVEL { namespace {

typedef uint64_t Words __attribute__((vector_size(4 * WIDTH)));

INLINE Words mixed(Words i) {
    Words z = (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

INLINE uint64_t key_of(double x) {
    x += 0.0;  // the two zeros are one value
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return mixed(bits);
}

template <class T> uint64_t content_key(const Dense<T>& rows, Index i, T* scratch) {
    const T* row = rows.row(i, scratch);
    Words lanes{};
    Index j = 0;
    for (; j + HALF <= rows.p; j += HALF) {
        Doubles x = load_doubles(row + j) + 0.0;
        Longs is = (x == x) & (x != rows.missing);
        lanes += mixed((Words)x) & (Words)is;
    }
    uint64_t key = 0;
    for (int lane = 0; lane < HALF; ++lane) key += lanes[lane];
    for (; j < rows.p; ++j)
        if (!rows.is_gap(row[j])) key += key_of(row[j]);
    return key;
}

template <class T> uint64_t content_key(const Sparse<T>& rows, Index i, T*) {
    uint64_t key = 0;
    for (Index e = rows.starts[i]; e < rows.starts[i + 1]; ++e) key += key_of(rows.values[e]);
    return key;
}

// OUT keys (n,): a number of the observed values of each row, whatever the order of the columns.
int32_t content_keys(const Table& table, uint64_t* keys, Control& control) {
    Slabs slabs(table);
    return in_parallel(slabs.count, control, [&](Index s) -> int32_t {
        Array<double> row(table.p);
        if (!row.ok()) return OUT_OF_MEMORY;
        with_rows(table, [&](const auto& rows) {
            for (Index i = slabs.begin(s); i < slabs.end(s); ++i)
                keys[i] = content_key(rows, i, rows.scratch(row));
            return 0;
        });
        count_done(control, 1);
        return DONE;
    });
}

// --- sorting ----------------------------------------------------------------------------------

struct Keyed {
    uint64_t key;
    Index row;
    bool operator<(const Keyed& other) const {
        return key < other.key || (key == other.key && row < other.row);
    }
};

INLINE void sift_down(Keyed* heap, Index at, Index count) {
    const Keyed it = heap[at];
    for (Index child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child] < heap[child + 1]) ++child;
        if (!(it < heap[child])) break;
        heap[at] = heap[child];
    }
    heap[at] = it;
}

// INOUT some (count,): a few by insertion; many, as of rows that are equal, are mostly in order.
inline void sort_few(Keyed* some, Index count) {
    constexpr Index FEW = 48;
    bool sorted = true;
    for (Index e = 1; e < count; ++e) sorted = sorted && some[e - 1] < some[e];
    if (sorted) return;
    if (count <= FEW) {
        for (Index e = 1; e < count; ++e) {
            const Keyed it = some[e];
            Index to = e;
            for (; to > 0 && it < some[to - 1]; --to) some[to] = some[to - 1];
            some[to] = it;
        }
        return;
    }
    for (Index at = count / 2; at-- > 0;) sift_down(some, at, count);
    for (Index end = count - 1; end > 0; --end) {
        const Keyed last = some[end];
        some[end] = some[0];
        some[0] = last;
        sift_down(some, 0, end);
    }
}

// OUT order (n,): the rows by their keys, equal ones as they stand. Keys are well mixed, so their first
// bits sort them into buckets of a few.
int32_t content_order(const Table& table, Index* order, Control& control) {
    constexpr int MOST_BITS = 20;
    constexpr Index IN_BUCKET = 16, BUCKETS_OF_JOB = 1 << 10;
    const Index n = table.n;
    int bits = 0;
    while (bits < MOST_BITS && (IN_BUCKET << bits) < n) ++bits;
    const Index buckets = Index(1) << bits;
    Array<uint64_t> keys(n);
    Array<Keyed> sorted(n);
    Array<Index> ends(buckets + 1, Index(0));
    if (!all_ok(keys, sorted, ends)) return OUT_OF_MEMORY;
    int32_t status = content_keys(table, keys, control);
    if (status != DONE) return status;
    auto bucket_of = [&](uint64_t key) { return bits == 0 ? Index(0) : Index(key >> (64 - bits)); };
    for (Index i = 0; i < n; ++i) ++ends[bucket_of(keys[i]) + 1];
    for (Index b = 0; b < buckets; ++b) ends[b + 1] += ends[b];
    for (Index i = 0; i < n; ++i) sorted[ends[bucket_of(keys[i])]++] = {keys[i], i};
    // Each bucket now ends where the next one began.
    return in_parallel((buckets + BUCKETS_OF_JOB - 1) / BUCKETS_OF_JOB, control, [&](Index job) -> int32_t {
        Index first = job * BUCKETS_OF_JOB, last = least(first + BUCKETS_OF_JOB, buckets);
        Index begin = first > 0 ? ends[first - 1] : 0;
        for (Index b = first; b < last; begin = ends[b++]) sort_few(sorted + begin, ends[b] - begin);
        for (Index e = first > 0 ? ends[first - 1] : 0; e < ends[last - 1]; ++e) order[e] = sorted[e].row;
        return DONE;
    });
}

}}}  // namespace mnar::LEVEL
