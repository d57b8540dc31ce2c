// Labels of chosen rows: a block at a time by the certified kernels (certified.h); what those leave
// UNSURE is decided by direct differences (rows.h).
#pragma once
#include "certified.h"
#include "loss.h"

namespace mnar { namespace LEVEL { namespace {

constexpr double MOSTLY = 0.75;  // when more of a block must be checked, all of it is

// What all threads of a pass share: the centres' tables.
struct Prepare {
    Prepared* tables;
    const bool wants_margins;
    const Packed* packed;
    Prepare(const Table& table, const Centers& centers, bool wants_margins = false, const Packed* packed = nullptr)
        : tables(certified.prepare(table, centers, wants_margins, packed)), wants_margins(wants_margins),
          packed(packed) {}
    Prepare(const Prepare&) = delete;
    ~Prepare() { certified.forget(tables); }
    bool ok() const { return tables; }
};

// What one thread needs to label rows.
class Labeller {
  public:
    const Table& table;
    const Centers& centers;
    Array<Index> chosen;
    Array<Label> nearest;  // (groups, BLOCK_ROWS)
    Array<float> margins;
    Array<double> row;     // scratch of one row, whatever its type

    Labeller(const Table& table, const Centers& centers, const Prepare& prepared)
        : table(table), centers(centers), chosen(BLOCK_ROWS), nearest(centers.groups * BLOCK_ROWS),
          margins(BLOCK_ROWS), row(table.p), prepared(prepared),
          distances(whole_eights(centers.k)),
          direct(centers.groups, nullptr), scratch(certified.make_scratch(table, centers)) {}
    ~Labeller() {
        certified.drop(scratch);
        for (Index g = 0; direct.ok() && g < centers.groups; ++g) unmake(direct[g]);
    }
    bool ok() const { return scratch && all_ok(chosen, nearest, margins, row, distances, direct); }

    // OUT chosen: rows start .. stop. Returns how many.
    Index choose_all(Index start, Index stop) const {
        for (Index i = start; i < stop; ++i) chosen[i - start] = i;
        return stop - start;
    }
    // OUT chosen: those of the rows start .. stop that may change cluster; all where most may.
    Index choose(Index start, Index stop, const Label* labels, const Bounds& bounds) const {
        if (!bounds.certain_until || prepared.packed) return choose_all(start, stop);
        Index count = 0;
        for (Index i = start; i < stop; ++i) {
            chosen[count] = i;
            count += !(bounds.certain_until[i] > bounds.drop[labels[i]]);
        }
        return count < MOSTLY * (stop - start) ? count : choose_all(start, stop);
    }
    // OUT nearest of the `count` chosen rows, margins if wanted. False: out of memory.
    template <class Rows> bool label(const Rows& rows, Index count) {
        if (count == 0) return true;
        const RowBlock block{chosen, count, nearest, BLOCK_ROWS, prepared.wants_margins ? margins.get() : nullptr};
        Index unsure = certified.label(table, *prepared.tables, prepared.packed, *scratch, block);
        for (Index g = 0; unsure > 0 && g < centers.groups; ++g)
            for (Index e = 0; e < count; ++e) {
                Label& label = nearest[g * BLOCK_ROWS + e];
                if (label != UNSURE) continue;
                if (!direct[g]) direct[g] = make<Direct>(centers, g, table.p);
                if (!direct[g]) return false;
                label = nearest_of(rows, chosen[e], *direct[g], distances);
                --unsure;
            }
        return true;
    }

  private:
    const Prepare& prepared;
    Array<double> distances;
    Array<Direct*> direct;  // of each start, once one of its labels is unsure
    Scratch* scratch;
};

}}}  // namespace mnar::LEVEL
