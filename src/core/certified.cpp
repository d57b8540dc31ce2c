// The kernels of ``certified.h`` for one instruction set (LEVEL). Fused multiply-adds are welcome
// here, since where the bound on their rounding cannot tell, exact.cpp decides.
#include "certified.h"

#include "dense.h"
#include "sparse.h"

namespace mnar { namespace LEVEL { namespace {

constexpr Index MOST_FEATURES = 1 << 17;  // beyond, the rounding of a bound would have to be bounded
constexpr double MOST_UNSURE = 0.1;  // above this share the next better arithmetic is the faster one

// ``certified.h`` knows these by names that are the same at every level, and has no code for them.
struct Tables {
    Table table;
    Centers centers;
    Tiles* tiles;           // of a dense table
    CenterLines<float>* lines;  // of a CSR table

    Tables(const Table& table, const Centers& centers, bool wants_margins, const Panels* kept)
        : table(table), centers(centers),
          tiles(table.is_sparse ? nullptr : make<Tiles>(table, centers, wants_margins, kept)),
          lines(table.is_sparse ? make<CenterLines<float>>(table, centers) : nullptr) {}
    ~Tables() { unmake(tiles), unmake(lines); }
    bool ok() const { return tiles || lines; }
};

enum Trust { SINGLE, DOUBLE, NOTHING };

struct Room {
    Trust trust;
    DenseScratch* dense;
    Array<double> scores;
    CenterLines<double>* fine;  // made when float32 proves too coarse

    Room(const Table& table, const Centers& centers)
        : trust(table.p > MOST_FEATURES ? NOTHING : SINGLE),
          dense(table.is_sparse ? nullptr : make<DenseScratch>(table)),
          scores(table.is_sparse ? centers.groups * centers.k + CACHE_LINE : 0), fine(nullptr) {}
    ~Room() { unmake(dense), unmake(fine); }
    bool ok() const { return scores.ok(); }
};

Prepared* prepare(const Table& table, const Centers& centers, bool wants_margins, const Packed* packed) {
    return reinterpret_cast<Prepared*>(
        make<Tables>(table, centers, wants_margins, reinterpret_cast<const Panels*>(packed)));
}
void forget(Prepared* it) { unmake(reinterpret_cast<Tables*>(it)); }

Scratch* make_scratch(const Table& table, const Centers& centers) {
    Room* room = make<Room>(table, centers);
    if (room && !table.is_sparse && !room->dense) unmake(room), room = nullptr;
    return reinterpret_cast<Scratch*>(room);
}
void drop(Scratch* it) { unmake(reinterpret_cast<Room*>(it)); }

Packed* pack(const Table& table, const Centers& centers) {
    bool fills = true;
    for (Index j = 0; j < centers.groups * table.p; ++j) fills = fills && centers.lam[j] == 1.0;
    Panels* panels = make<Panels>(table, centers, fills);
    Array<double> copies(LANES * table.p);
    if (!panels || !copies.ok()) {
        unmake(panels);
        return nullptr;
    }
    if (table.is_double)
        panels->fill(Dense<double>(table), copies.get());
    else
        panels->fill(Dense<float>(table), reinterpret_cast<float*>(copies.get()));
    return reinterpret_cast<Packed*>(panels);
}
void unpack(Packed* it) { unmake(reinterpret_cast<Panels*>(it)); }

template <class T>
Index label_rows(const Sparse<T>& rows, const Tables& tables, Room& room, const RowBlock& block) {
    if (room.trust == SINGLE)
        return label_sparse(rows, *tables.lines, reinterpret_cast<float*>(room.scores.get()), block);
    return label_sparse(rows, *room.fine, room.scores.get(), block);
}

Index label(const Table& table, const Prepared& prepared, const Packed* packed, Scratch& scratch,
            const RowBlock& block) {
    const Tables& tables = reinterpret_cast<const Tables&>(prepared);
    const Panels* panels = reinterpret_cast<const Panels*>(packed);
    Room& room = reinterpret_cast<Room&>(scratch);
    const Index groups = tables.centers.groups, count = block.count;
    Index unsure = groups * count;
    if (room.trust == NOTHING) {
        for (Index g = 0; g < groups; ++g)
            for (Index e = 0; e < count; ++e) block.nearest[g * block.stride + e] = UNSURE;
        for (Index e = 0; block.margins && e < count; ++e) block.margins[e] = 0;
        return unsure;
    }
    if (table.is_sparse && table.is_double)
        unsure = label_rows(Sparse<double>(table), tables, room, block);
    else if (table.is_sparse)
        unsure = label_rows(Sparse<float>(table), tables, room, block);
    else if (table.is_double)
        unsure = label_dense(Dense<double>(table), *tables.tiles, panels, *room.dense, block);
    else
        unsure = label_dense(Dense<float>(table), *tables.tiles, panels, *room.dense, block);
    if (unsure > MOST_UNSURE * groups * count) {
        if (room.trust == SINGLE && table.is_sparse)
            room.fine = make<CenterLines<double>>(table, tables.centers);
        room.trust = room.trust == SINGLE && room.fine ? DOUBLE : NOTHING;
    }
    return unsure;
}

}  // namespace

extern const Certified certified = {prepare, pack, make_scratch, forget, unpack, drop, label};

}}  // namespace mnar::LEVEL
