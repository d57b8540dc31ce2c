// Labels of many rows at once in float32, with a bound on what its rounding may cost: the interface
// between the files that decide (``exact.cpp``, no fused products) and those that only sort out the
// clear cases (``certified.cpp``, products fused wherever the machine can).
//
// A label is given only where the nearest centre is nearest by the sums of direct differences too
// (rows.h); everything else is UNSURE, and the caller decides.
#pragma once
#include "core.h"

namespace mnar { namespace LEVEL {

struct Prepared;  // the tables of the centres as the kernels read them; shared by threads
struct Packed;    // the rows of a whole small table as the kernels read them, kept for all passes
struct Scratch;   // what one thread needs

constexpr Index BLOCK_ROWS = 256;  // rows labelled before they are summed up: they stay in cache

struct RowBlock {           // rows that are labelled together, and where to
    const Index* rows;     // (count,)
    Index count;           // at most BLOCK_ROWS
    Label* nearest;        // OUT nearest[g * stride + e]: the best centre of start g for rows[e], or UNSURE
    Index stride;
    float* margins;        // OUT (count,) how much further away the second one is, at least (the last
                           // start's), unless null; only if prepared for
};

struct Certified {
    // Any of these may be null: out of memory.
    Prepared* (*prepare)(const Table&, const Centers&, bool wants_margins, const Packed*);
    Packed* (*pack)(const Table&, const Centers&);  // centres: for lam, reference and shift only
    Scratch* (*make_scratch)(const Table&, const Centers&);
    void (*free_prepared)(Prepared*);
    void (*free_packed)(Packed*);
    void (*free_scratch)(Scratch*);
    // Returns how many labels are UNSURE. With `packed` the rows are consecutive and the first is a
    // multiple of BLOCK_ROWS.
    Index (*label)(const Table&, const Prepared&, const Packed*, Scratch&, const RowBlock&);
};

extern const Certified certified;  // certified.cpp

}}  // namespace mnar::LEVEL
