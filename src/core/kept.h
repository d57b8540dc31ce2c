// The rows of a small dense table, kept as its many passes add them up: read once, for all starts.
//
//     shifted_ij = x_ij - shift_j,  NaN in gaps and beyond the last feature;   |x_i - shift|^2;   the key of i
//
// Rows are padded to whole strips of eight features, so that nothing has to be asked while they are added.
#pragma once
#include "rows.h"

namespace mnar { namespace LEVEL { namespace {

struct Shifted {
    Index stride;           // entries between two rows
    Array<double> values;   // (n, stride)
    Array<double> squares;  // (n,) as ``add_row`` gives them
    Array<uint64_t> keys;   // (n,)

    Shifted(Index n, Index p)
        : stride(whole_eights(p)), values(n * stride), squares(n), keys(n) {}
    bool ok() const { return all_ok(values, squares, keys); }

    // `first`: the number of the first row in the whole table. scratch: of one row.
    template <class T> void fill(const Dense<T>& rows, Index first, const double* shift, T* scratch) {
        for (Index i = 0; i < rows.n; ++i) {
            const T* row = rows.row(i, scratch);
            double* to = values + i * stride;
            for (Index j = 0; j < rows.p; ++j) {
                double x = row[j];
                to[j] = rows.is_gap(x) ? __builtin_nan("") : x - shift[j];
            }
            for (Index j = rows.p; j < stride; ++j) to[j] = __builtin_nan("");
            keys[i] = mixed(first + i);
            Sum8 square;
            for (Index j = 0; j < stride; j += EIGHT)
                UNROLL for (int part = 0; part < EIGHT / HALF; ++part) {
                    Doubles x = load<Doubles>(to + j + part * HALF), value = keep(x == x, x);
                    square.parts[part] += value * value;
                }
            squares[i] = square.total();
        }
    }
};

// Read like any dense rows, added up from what is kept.
template <class T> struct Kept : Dense<T> {
    const Shifted& shifted;
    Kept(const Dense<T>& rows, const Shifted& shifted) : Dense<T>(rows), shifted(shifted) {}
};

}}}  // namespace mnar::LEVEL
