"""Vectors for compiled kernels: a small numba type and the few operations the kernels need.

Numba vectorises simple loops by itself but does not find the form that is fastest for the
assignment step, where every lane of a vector holds one *row* of the data. A :class:`Vector` is a
value of a fixed number of lanes that lives in registers; the functions below are written in
LLVM's own vector instructions, which every processor LLVM knows can run (wider ones in fewer
steps), so no compiler is needed at installation and no instruction set is assumed.

    v = load(array, i, LANES)          lanes v[t] = array[i + t]
    acc = accumulate(acc, x, m, ...)   acc[c] += x * A[c] + m * B[c], for the centres c of a tile

Vectors exist only inside compiled functions; they cannot be passed to or from Python.
"""

import llvmlite.binding as llvm
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

# Another processor than this one can be asked for with NUMBA_CPU_NAME; common ones have 256 bits.
_FOR_THIS_PROCESSOR = config.CPU_NAME in (None, "", "host")
_HAS_512_BITS = _FOR_THIS_PROCESSOR and bool(llvm.get_host_cpu_features().get("avx512f"))

#: Rows of a panel, float32. Two registers per centre keep enough independent sums in flight to
#: hide the latency of a multiply-add, and five centres of them fill 16 registers.
LANES = 32 if _HAS_512_BITS else 16


class Vector(types.Type):
    """`lanes` numbers of type `dtype`, held in registers."""

    def __init__(self, dtype, lanes):
        self.dtype = dtype
        self.lanes = lanes
        super().__init__(name=f"Vector({dtype}, {lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        scalar = dmm.lookup(fe_type.dtype).get_value_type()
        super().__init__(dmm, fe_type, ir.VectorType(scalar, fe_type.lanes))


# ------------------------------------------------------------------------------- building blocks


def _constant(vector_type, number):
    """A vector with the same literal number in every lane."""
    return ir.Constant(vector_type, [number] * vector_type.count)


def _splat(builder, scalar, vector_type):
    """A vector with the same run-time number in every lane."""
    lane0 = builder.insert_element(
        ir.Constant(vector_type, ir.Undefined), scalar, ir.IntType(32)(0)
    )
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), vector_type.count), [0] * vector_type.count)
    return builder.shuffle_vector(lane0, lane0, zeros)


def _mangled(vector_type):
    return f"v{vector_type.count}f{32 if vector_type.element == ir.FloatType() else 64}"


def _muladd(builder, a, b, c):
    """a * b + c, fused where the processor can."""
    name = f"llvm.fmuladd.{_mangled(a.type)}"
    signature = ir.FunctionType(a.type, [a.type] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), (a, b, c))


def _convert(builder, a, scalar_type):
    """Change float width lane by lane; a no-op when the width is already right."""
    target = ir.VectorType(scalar_type, a.type.count)
    if a.type == target:
        return a
    widen = scalar_type == ir.DoubleType()
    return builder.fpext(a, target) if widen else builder.fptrunc(a, target)


def _address(context, builder, array_type, array, index):
    """Pointer to the element of flat index `index` of a contiguous array, or of a pointer."""
    if isinstance(array_type, types.CPointer):
        return builder.gep(array, [index])
    data = cgutils.create_struct_proxy(array_type)(context, builder, array).data
    return builder.gep(data, [index])


def _load(builder, pointer, vector_type):
    pointer = builder.bitcast(pointer, vector_type.as_pointer())
    return builder.load(pointer, align=_bytes(vector_type.element), typ=vector_type)


def _store(builder, value, pointer):
    pointer = builder.bitcast(pointer, value.type.as_pointer())
    builder.store(value, pointer, align=_bytes(value.type.element))


def _bytes(scalar_type):
    return 8 if scalar_type == ir.DoubleType() else 4


def _unpack(builder, packed, count):
    return [builder.extract_value(packed, i) for i in range(count)]


# --------------------------------------------------------------------------- whole-vector access


@intrinsic(prefer_literal=True)
def load(typingctx, array, index, lanes):
    """Lanes array[index : index + lanes] of a contiguous array."""
    result = Vector(array.dtype, lanes.literal_value)

    def codegen(context, builder, signature, args):
        pointer = _address(context, builder, signature.args[0], args[0], args[1])
        return _load(builder, pointer, context.get_value_type(result))

    return result(array, types.intp, lanes), codegen


@intrinsic
def store(typingctx, array, index, vector):
    """array[index : index + lanes] = vector."""

    def codegen(context, builder, signature, args):
        _store(builder, args[2], _address(context, builder, signature.args[0], args[0], args[1]))
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), codegen


@intrinsic(prefer_literal=True)
def splat(typingctx, scalar, lanes):
    """The same number in every lane."""
    scalar = types.unliteral(scalar)
    result = Vector(scalar, lanes.literal_value)

    def codegen(context, builder, signature, args):
        return _splat(builder, args[0], context.get_value_type(result))

    return result(scalar, lanes), codegen


@intrinsic
def muladd(typingctx, a, b, c):
    """a * b + c, lane by lane, fused where the processor can."""

    def codegen(context, builder, signature, args):
        return _muladd(builder, *args)

    return a(a, b, c), codegen


@intrinsic
def add(typingctx, a, b):
    """a + b, lane by lane."""

    def codegen(context, builder, signature, args):
        return builder.fadd(*args)

    return a(a, b), codegen


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
def sub(typingctx, a, b):
    """a - b, lane by lane."""

    def codegen(context, builder, signature, args):
        return builder.fsub(*args)

    return a(a, b), codegen


@intrinsic
def mul(typingctx, a, b):
    """a * b, lane by lane."""

    def codegen(context, builder, signature, args):
        return builder.fmul(*args)

    return a(a, b), codegen


@intrinsic
def lower(typingctx, least, a, mask):
    """The smaller of least and a where the mask is not 0, least elsewhere."""

    def codegen(context, builder, signature, args):
        least, a, mask = args
        counts = builder.fcmp_ordered("!=", mask, _constant(mask.type, 0.0))
        less = builder.and_(builder.fcmp_ordered("<", a, least), counts)
        return builder.select(less, a, least)

    return least(least, a, mask), codegen


@intrinsic
def total(typingctx, vector):
    """Sum of the lanes (a power of two), halves added until one is left."""

    def codegen(context, builder, signature, args):
        (rest,) = args
        while rest.type.count > 1:
            half = rest.type.count // 2
            order = ir.VectorType(ir.IntType(32), half)
            low, high = (
                builder.shuffle_vector(rest, rest, ir.Constant(order, list(range(b, b + half))))
                for b in (0, half)
            )
            rest = builder.fadd(low, high)
        return builder.extract_element(rest, ir.IntType(32)(0))

    return vector.dtype(vector), codegen


# ----------------------------------------------------------------------------- scores of one tile


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


@intrinsic
def all_lanes_one(typingctx, vector):
    """Whether every lane equals one."""

    def codegen(context, builder, signature, args):
        (vector,) = args
        same = builder.fcmp_ordered("==", vector, _constant(vector.type, 1.0))
        bits = builder.bitcast(same, ir.IntType(same.type.count))
        return builder.icmp_unsigned("==", bits, ir.Constant(bits.type, -1))

    return types.boolean(vector), codegen


@intrinsic
def prefetch(typingctx, address):
    """Ask for the cache line at a memory address; never faults."""

    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        i32 = ir.IntType(32)
        signature_ir = ir.FunctionType(ir.VoidType(), [pointer.type, i32, i32, i32])
        function = cgutils.get_or_insert_function(builder.module, signature_ir, "llvm.prefetch.p0")
        builder.call(function, (pointer, i32(0), i32(2), i32(1)))
        return context.get_dummy_value()

    return types.void(types.intp), codegen
