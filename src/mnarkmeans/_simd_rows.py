"""Rows of a table as vectors: many rows side by side (one per lane), or one row added to sums.

    values[j, t] = x'_tj   (0 in gaps),   masks[j, t] = 1 observed, 0 gap,   t = a row's lane

Rows are named by their memory addresses, so consecutive rows and rows picked here and there are
read by the same code. Sixteen rows are read together, eight or four columns at a time, and
transposed in registers. See ``_simd`` for the vectors.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ._simd import (
    LANES,
    Vector,
    _address,
    _constant,
    _convert,
    _load,
    _load_first,
    _muladd,
    _splat,
    _store,
    _unpack,
)

# ------------------------------------------------------------- reading rows as lanes (transposing)


def _shuffle(builder, a, b, lanes):
    order = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), list(lanes))
    return builder.shuffle_vector(a, b, order)


def _join(builder, vectors):
    """The lanes of several vectors (a power of two) in one."""
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [_shuffle(builder, a, b, range(2 * a.type.count)) for a, b in pairs]
    return vectors[0]


def _transpose(builder, rows):
    """The columns (eight or four), as vectors of as many lanes as there are rows (8 or 16).

    Everything happens in *quads* of four lanes, which is what processors shuffle fastest: rows
    four apart are joined, 4 x 4 numbers transposed within the quads, and for eight columns the
    quads of the first half of the rows and of the second brought together.
    """
    n_rows, columns = len(rows), rows[0].type.count
    half = n_rows * 4 // columns  # rows that go into one set of four vectors
    sets = [
        [_join(builder, rows[first + t : first + half : 4]) for t in range(4)]
        for first in range(0, n_rows, half)
    ]
    size = sets[0][0].type.count
    quads = range(0, size, 4)
    low = [lane for q in quads for lane in (q, size + q, q + 1, size + q + 1)]
    high = [lane + 2 for lane in low]
    low2 = [lane for q in quads for lane in (q, q + 1, size + q, size + q + 1)]
    high2 = [lane + 2 for lane in low2]
    for four in sets:
        a, b, c, d = four
        ab, ab2 = _shuffle(builder, a, b, low), _shuffle(builder, a, b, high)
        cd, cd2 = _shuffle(builder, c, d, low), _shuffle(builder, c, d, high)
        four[0], four[1] = _shuffle(builder, ab, cd, low2), _shuffle(builder, ab, cd, high2)
        four[2], four[3] = _shuffle(builder, ab2, cd2, low2), _shuffle(builder, ab2, cd2, high2)
    if columns == 4:
        return sets[0]
    even = [q + t for q in range(0, 2 * size, 8) for t in range(4)]
    odd = [lane + 4 for lane in even]
    first, second = sets
    return [
        _shuffle(builder, first[c], second[c], quads) for quads in (even, odd) for c in range(4)
    ]


def _mark(builder, values, code, shift, scalar_type):
    """values - shift in float64, NaN where missing, rounded to the scalar type."""
    values = _convert(builder, values, ir.DoubleType())
    marked = builder.fsub(values, shift)
    if code is not None:
        is_code = builder.fcmp_ordered("==", values, _splat(builder, code, values.type))
        marked = builder.select(is_code, _constant(values.type, float("nan")), marked)
    return _convert(builder, marked, scalar_type)


@intrinsic(prefer_literal=True)
def read_columns(
    typingctx, X, rows, first, column, width, count, part, shift, missing, coded, lanes, like
):
    """`width` columns (8 or 4) of `lanes` rows, from `column` on, one vector per column.

    X only tells the number type; `rows[first + t]` is the memory address of the row of lane t.
    Values are shifted, rounded to the number type of the array `like`, and NaN where missing.
    `coded`: whether values equal to `missing` are gaps, beside NaN. If `part`, only `count`
    columns are read, and the others are 0.
    """
    if shift.dtype != types.float64:
        return None
    n_columns, n_lanes = width.literal_value, lanes.literal_value
    result = types.UniTuple(Vector(like.dtype, n_lanes), n_columns)

    def codegen(context, builder, signature, args):
        _, rows, first, column, _, count, _, shift, missing, _, _, _ = args
        scalar = context.get_value_type(signature.args[0].dtype)
        out_scalar = context.get_value_type(like.dtype)
        code = missing if coded.literal_value else None
        offset = builder.mul(column, column.type(4 if scalar == ir.FloatType() else 8))

        def read(place, number_type):
            vector = ir.VectorType(number_type, n_columns)
            if part.literal_value:
                return _load_first(builder, place, count, _constant(vector, 0.0))
            return _load(builder, place, vector)

        def address(t):
            place = _address(
                context, builder, signature.args[1], rows, builder.add(first, first.type(t))
            )
            number = builder.add(builder.load(place, typ=ir.IntType(64)), offset)
            return builder.inttoptr(number, scalar.as_pointer())

        place = _address(context, builder, signature.args[7], shift, column)
        shifts = read(place, ir.DoubleType())
        marked = [
            _mark(builder, read(address(t), scalar), code, shifts, out_scalar)
            for t in range(n_lanes)
        ]
        return context.make_tuple(builder, result, _transpose(builder, marked))

    numbers = (types.intp, types.intp)
    args = (
        X, rows, *numbers, width, types.intp, part, shift, types.float64, coded, lanes, like,
    )  # fmt: skip
    return result(*args), codegen


@intrinsic
def write_columns(typingctx, columns, values, masks, index, square, seen):
    """Store NaN-marked columns as values (0 in gaps) and masks (1 observed, 0 gap).

    Column c goes to `index + c * LANES`. Returns, lane by lane, `square + sum_c value^2` and
    `seen * prod_c mask`.
    """
    result = types.UniTuple(square, 2)

    def codegen(context, builder, signature, args):
        columns, values, masks, index, square, seen = args
        zero, one = _constant(square.type, 0.0), _constant(square.type, 1.0)
        for c, marked in enumerate(_unpack(builder, columns, len(signature.args[0]))):
            observed = builder.fcmp_ordered("ord", marked, marked)
            value = builder.select(observed, marked, zero)
            mask = builder.select(observed, one, zero)
            target = builder.add(index, index.type(c * LANES))
            _store(builder, value, _address(context, builder, signature.args[1], values, target))
            _store(builder, mask, _address(context, builder, signature.args[2], masks, target))
            seen = builder.fmul(seen, mask)
            square = _muladd(builder, value, value, square)
        return context.make_tuple(builder, result, [square, seen])

    return result(columns, values, masks, types.intp, square, seen), codegen


@intrinsic
def write_filled(typingctx, columns, values, index, square, filling, column):
    """As ``write_columns``, with `filling[column + c]` in the gaps instead of masks.

    Returns only the squares.
    """

    def codegen(context, builder, signature, args):
        columns, values, index, square, filling, column = args
        for c, marked in enumerate(_unpack(builder, columns, len(signature.args[0]))):
            place = builder.add(column, column.type(c))
            place = _address(context, builder, signature.args[4], filling, place)
            number = builder.load(place, typ=square.type.element)
            observed = builder.fcmp_ordered("ord", marked, marked)
            value = builder.select(observed, marked, _splat(builder, number, square.type))
            target = builder.add(index, index.type(c * LANES))
            _store(builder, value, _address(context, builder, signature.args[1], values, target))
            square = _muladd(builder, value, value, square)
        return square

    return square(columns, values, types.intp, square, filling, types.intp), codegen


@intrinsic(prefer_literal=True)
def write_values(typingctx, columns, values, index, lanes):
    """Store NaN-marked columns with 0 in the gaps; column c goes to `index + c * lanes`."""

    def codegen(context, builder, signature, args):
        columns, values, index, _ = args
        for c, marked in enumerate(_unpack(builder, columns, len(signature.args[0]))):
            observed = builder.fcmp_ordered("ord", marked, marked)
            value = builder.select(observed, marked, _constant(marked.type, 0.0))
            target = builder.add(index, index.type(c * lanes.literal_value))
            _store(builder, value, _address(context, builder, signature.args[1], values, target))
        return context.get_dummy_value()

    return types.void(columns, values, types.intp, lanes), codegen


# ----------------------------------------------------------------------------- entries of one row


@intrinsic
def pointers(typingctx, block):
    """Plain pointers to the arrays of a block (a named tuple of C-contiguous arrays and numbers).

    To name an array of a tuple counts a reference, which costs as much as a short row does.
    """
    arrays = [(i, t) for i, t in enumerate(block.types) if isinstance(t, types.Array)]
    result = types.Tuple([types.CPointer(t.dtype) for _, t in arrays])

    def codegen(context, builder, signature, args):
        parts = []
        for i, array_type in arrays:
            array = builder.extract_value(args[0], i)
            parts.append(cgutils.create_struct_proxy(array_type)(context, builder, array).data)
        return context.make_tuple(builder, result, parts)

    return result(block), codegen


@intrinsic
def pointer(typingctx, array, index):
    """A plain pointer to the element of flat index `index` of a contiguous array."""

    def codegen(context, builder, signature, args):
        return _address(context, builder, signature.args[0], *args)

    return types.CPointer(array.dtype)(array, types.intp), codegen


@intrinsic
def address(typingctx, pointer):
    """The memory address of a plain pointer."""

    def codegen(context, builder, signature, args):
        return builder.ptrtoint(args[0], ir.IntType(64))

    return types.intp(pointer), codegen


@intrinsic(prefer_literal=True)
def read_entries(typingctx, values, index, count, part, missing, lanes):
    """(values, seen) of the entries values[index], values[index + 1], ... in float64.

    Values are anything where not seen. If `part`, only `count` entries are read and the others are
    gaps.
    """
    vector = Vector(types.float64, lanes.literal_value)
    result = types.Tuple((vector, Vector(types.boolean, lanes.literal_value)))

    def codegen(context, builder, signature, args):
        values, index, count, _, missing, _ = args
        doubles = context.get_value_type(vector)
        read = ir.VectorType(context.get_value_type(signature.args[0].dtype), doubles.count)
        place = builder.gep(values, [index])
        if part.literal_value:
            numbers = _load_first(builder, place, count, _constant(read, float("nan")))
        else:
            numbers = _load(builder, place, read)
        numbers = _convert(builder, numbers, ir.DoubleType())
        is_number = builder.fcmp_ordered("ord", numbers, numbers)
        no_code = builder.fcmp_unordered("!=", numbers, _splat(builder, missing, doubles))
        return context.make_tuple(builder, result, [numbers, builder.and_(is_number, no_code)])

    args = (values, types.intp, types.intp, part, types.float64, lanes)
    return result(*args), codegen
