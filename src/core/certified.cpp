// The kernels of ``certified.h`` for one instruction set (LEVEL). Fused multiply-adds are welcome
// here, since where the bound on their rounding cannot tell, exact.cpp decides.
#include "certified.h"

#include "dense.h"
#include "sparse.h"

namespace mnar { namespace LEVEL {

namespace {

constexpr Index MOST_FEATURES = 1 << 17;  // beyond, the rounding of a bound would have to be bounded
constexpr double MOST_UNSURE = 0.1;  // above this share the next better arithmetic is the faster one

enum Trust { SINGLE, DOUBLE, NOTHING };

}  // namespace

struct Prepared {
    Centers centers;
    Tiles* tiles;               // of a dense table
    CenterLines<float>* lines;  // of a CSR table

    Prepared(const Table& table, const Centers& centers, bool wants_margins, const Panels* kept)
        : centers(centers),
          tiles(table.is_sparse ? nullptr : make<Tiles>(table, centers, wants_margins, kept)),
          lines(table.is_sparse ? make<CenterLines<float>>(table, centers) : nullptr) {}
    ~Prepared() { unmake(tiles), unmake(lines); }
    bool ok() const { return tiles || lines; }
};

struct Packed : Panels {
    using Panels::Panels;
};

struct Scratch {
    Trust trust;
    DenseScratch* dense;
    Array<double> scores;       // of a CSR table
    CenterLines<double>* fine;  // made when float32 proves too coarse

    Scratch(const Table& table, const Centers& centers)
        : trust(table.p > MOST_FEATURES ? NOTHING : SINGLE),
          dense(table.is_sparse ? nullptr : make<DenseScratch>(table)),
          scores(table.is_sparse ? centers.groups * centers.k + CACHE_LINE : -1), fine(nullptr) {}
    ~Scratch() { unmake(dense), unmake(fine); }
    bool ok() const { return dense || scores.ok(); }
};

namespace {

Prepared* prepare(const Table& table, const Centers& centers, bool wants_margins, const Packed* packed) {
    return make<Prepared>(table, centers, wants_margins, packed);
}

Scratch* make_scratch(const Table& table, const Centers& centers) { return make<Scratch>(table, centers); }

Packed* pack(const Table& table, const Centers& centers) {
    bool fills = true;
    for (Index j = 0; j < centers.groups * table.p; ++j) fills = fills && centers.lam[j] == 1.0;
    Packed* packed = make<Packed>(table, centers, fills);
    Array<double> copies(LANES * table.p);
    if (!packed || !copies.ok()) {
        unmake(packed);
        return nullptr;
    }
    if (table.is_double)
        packed->fill(Dense<double>(table), copies.get());
    else
        packed->fill(Dense<float>(table), reinterpret_cast<float*>(copies.get()));
    return packed;
}

template <class T>
Index label_rows(const Sparse<T>& rows, const Prepared& prepared, Scratch& scratch, const RowBlock& block) {
    if (scratch.trust == SINGLE)
        return label_sparse(rows, *prepared.lines, reinterpret_cast<float*>(scratch.scores.get()), block);
    return label_sparse(rows, *scratch.fine, scratch.scores.get(), block);
}

Index label(const Table& table, const Prepared& prepared, const Packed* packed, Scratch& scratch,
            const RowBlock& block) {
    const Index groups = prepared.centers.groups, count = block.count;
    Index unsure = groups * count;
    if (scratch.trust == NOTHING) {
        for (Index g = 0; g < groups; ++g)
            for (Index e = 0; e < count; ++e) block.nearest[g * block.stride + e] = UNSURE;
        for (Index e = 0; block.margins && e < count; ++e) block.margins[e] = 0;
        return unsure;
    }
    if (table.is_sparse && table.is_double)
        unsure = label_rows(Sparse<double>(table), prepared, scratch, block);
    else if (table.is_sparse)
        unsure = label_rows(Sparse<float>(table), prepared, scratch, block);
    else if (table.is_double)
        unsure = label_dense(Dense<double>(table), *prepared.tiles, packed, *scratch.dense, block);
    else
        unsure = label_dense(Dense<float>(table), *prepared.tiles, packed, *scratch.dense, block);
    if (unsure > MOST_UNSURE * groups * count) {
        if (scratch.trust == SINGLE && table.is_sparse)
            scratch.fine = make<CenterLines<double>>(table, prepared.centers);
        scratch.trust = scratch.trust == SINGLE && scratch.fine ? DOUBLE : NOTHING;
    }
    return unsure;
}

}  // namespace

const Certified certified = {
    prepare, pack, make_scratch, unmake<Prepared>, unmake<Packed>, unmake<Scratch>, label,
};

}}  // namespace mnar::LEVEL
