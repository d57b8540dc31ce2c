"""The scores of one tile of centres, for all rows of a panel: one row per lane.

    sums = splat_each(first_scores, ...)   sums[c] = a number of centre c, in every lane
    sums = accumulate(sums, x, A, ...)     sums[c] += x * A[c], for the centres c of the tile
    best, second, winner = keep_two_smallest(sums, ...)

See ``_simd`` for the vectors; ``_panels`` and ``_csr_lanes`` put these together.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ._simd import Vector, _address, _constant, _mangled, _muladd, _splat, _store, _unpack


@intrinsic(prefer_literal=True)
def splat_each(typingctx, array, index, width, lanes):
    """`width` vectors, the c-th with array[index + c] in every lane."""
    vector = Vector(array.dtype, lanes.literal_value)
    result = types.UniTuple(vector, width.literal_value)

    def codegen(context, builder, signature, args):
        vector_type = context.get_value_type(vector)
        sums = [
            _splat_element(context, builder, signature.args[0], args[0], args[1], c, vector_type)
            for c in range(width.literal_value)
        ]
        return context.make_tuple(builder, result, sums)

    return result(array, types.intp, width, lanes), codegen


def _splat_element(context, builder, array_type, array, index, offset, vector_type):
    pointer = _address(context, builder, array_type, array, builder.add(index, index.type(offset)))
    return _splat(builder, builder.load(pointer, typ=vector_type.element), vector_type)


@intrinsic(prefer_literal=True)
def zeros_each(typingctx, like, width, lanes):
    """`width` vectors of zeros of the number type of the array `like`."""
    result = types.UniTuple(Vector(like.dtype, lanes.literal_value), width.literal_value)

    def codegen(context, builder, signature, args):
        zero = _constant(context.get_value_type(result.dtype), 0.0)
        return context.make_tuple(builder, result, [zero] * len(result))

    return result(like, width, lanes), codegen


@intrinsic
def add_each(typingctx, a, b):
    """a[c] + b[c] for every vector of two tuples."""

    def codegen(context, builder, signature, args):
        pairs = zip(*(_unpack(builder, packed, len(a)) for packed in args), strict=True)
        sums = [builder.fadd(x, y) for x, y in pairs]
        return context.make_tuple(builder, a, sums)

    return a(a, b), codegen


@intrinsic
def accumulate(typingctx, sums, x, table, index):
    """sums[c] + x * table[index + c] for every centre c of the tile."""

    def codegen(context, builder, signature, args):
        sums, x, table, index = args
        width = len(signature.args[0])
        updated = [
            _muladd(
                builder,
                x,
                _splat_element(context, builder, signature.args[2], table, index, c, x.type),
                total,
            )
            for c, total in enumerate(_unpack(builder, sums, width))
        ]
        return context.make_tuple(builder, signature.return_type, updated)

    return sums(sums, x, table, types.intp), codegen


@intrinsic
def store_each(typingctx, sums, array, index, stride):
    """Store the c-th vector of a tuple at array[index + c * stride]."""

    def codegen(context, builder, signature, args):
        sums, array, index, stride = args
        for c, vector in enumerate(_unpack(builder, sums, len(signature.args[0]))):
            target = builder.add(index, builder.mul(stride, stride.type(c)))
            _store(builder, vector, _address(context, builder, signature.args[1], array, target))
        return context.get_dummy_value()

    return types.void(sums, array, types.intp, types.intp), codegen


@intrinsic
def keep_two_smallest(typingctx, sums, label, best, second, winner):
    """Update (best, second, winner) lane by lane with the scores of centres label, label+1, ...

    Strict comparison, in order, so that a tie stays with the lowest label.
    """
    result = types.Tuple((best, second, winner))

    def codegen(context, builder, signature, args):
        sums, label, best, second, winner = args
        for c, score in enumerate(_unpack(builder, sums, len(signature.args[0]))):
            wins = builder.fcmp_ordered("<", score, best)
            beaten = builder.select(wins, best, score)
            second = builder.select(builder.fcmp_ordered("<", beaten, second), beaten, second)
            best = builder.select(wins, score, best)
            name = _splat(builder, builder.add(label, label.type(c)), winner.type)
            winner = builder.select(wins, name, winner)
        return context.make_tuple(builder, result, [best, second, winner])

    return result(sums, types.int32, best, second, winner), codegen


@intrinsic
def lanes_not_above(typingctx, second, best, bound):
    """Bit t is set unless second[t] - best[t] > bound[t]; a NaN anywhere sets it too."""

    def codegen(context, builder, signature, args):
        second, best, bound = args
        close = builder.fcmp_unordered("<=", builder.fsub(second, best), bound)
        bits = builder.bitcast(close, ir.IntType(close.type.count))
        return builder.zext(bits, ir.IntType(64))

    return types.uint64(second, best, bound), codegen


def _sqrt(builder, a):
    name = f"llvm.sqrt.{_mangled(a.type)}"
    signature = ir.FunctionType(a.type, [a.type])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), (a,))


@intrinsic
def rounding(typingctx, square, norm, fixed):
    """norm * sqrt(square) + fixed, lane by lane."""

    def codegen(context, builder, signature, args):
        square, norm, fixed = args
        norm, fixed = (_splat(builder, number, square.type) for number in (norm, fixed))
        return _muladd(builder, _sqrt(builder, square), norm, fixed)

    return square(square, types.float32, types.float32), codegen


@intrinsic
def gap_between(typingctx, best, second, bound, square, slack):
    """How much further the second centre is than the best one, at least, lane by lane.

    best, second: scores that together err by no more than `bound`; squared distances are score +
    `square`, which errs by no more than the share `slack`. From a difference of squares,
    (second - best - bound) / (sum of both distances, each as large as it may be).
    """

    def codegen(context, builder, signature, args):
        best, second, bound, square, slack = args
        vector = best.type
        zero = _constant(vector, 0.0)
        largest = _muladd(builder, square, _splat(builder, slack, vector), bound)
        largest = builder.fadd(largest, square)
        distances = zero
        for score in (best, second):
            squared = builder.fadd(score, largest)
            positive = builder.select(builder.fcmp_ordered(">", squared, zero), squared, zero)
            distances = builder.fadd(distances, _sqrt(builder, positive))
        gap = builder.fsub(builder.fsub(second, best), bound)
        return builder.fdiv(gap, distances)

    return best(best, second, bound, square, types.float32), codegen
