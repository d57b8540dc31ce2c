"""Vectors for compiled kernels: a small numba type and the few operations the kernels need.

Numba vectorises simple loops by itself but does not find the form that is fastest for the
assignment step, where every lane of a vector holds one *row* of the data. A :class:`Vector` is a
value of a fixed number of lanes that lives in registers; the functions below are written in
LLVM's own vector instructions, which every processor LLVM knows can run (wider ones in fewer
steps), so no compiler is needed at installation and no instruction set is assumed.

    v = load(array, i, LANES)    lanes v[t] = array[i + t]
    v = muladd(v, w, u)          v[t] * w[t] + u[t]

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


CACHE_LINE = 64  # bytes


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


def _first(builder, count, lanes):
    """The mask of a vector's first `count` lanes."""
    numbers = ir.VectorType(ir.IntType(64), lanes)
    places = ir.Constant(numbers, list(range(lanes)))
    return builder.icmp_signed("<", places, _splat(builder, count, numbers))


def _load_first(builder, pointer, count, rest):
    """`count` numbers from the pointer on, then the lanes of `rest`: nothing beyond is touched."""
    vector, mask = rest.type, _first(builder, count, rest.type.count)
    pointer, align = builder.bitcast(pointer, vector.as_pointer()), ir.IntType(32)
    signature = ir.FunctionType(vector, [pointer.type, align, mask.type, vector])
    name = f"llvm.masked.load.{_mangled(vector)}.p0"
    function = cgutils.get_or_insert_function(builder.module, signature, name)
    return builder.call(function, (pointer, align(_bytes(vector.element)), mask, rest))


@intrinsic(prefer_literal=True)
def load_first(typingctx, array, index, count, part, lanes):
    """Lanes array[index : index + count], then zeros; all lanes unless `part`."""
    result = Vector(array.dtype, lanes.literal_value)

    def codegen(context, builder, signature, args):
        pointer = _address(context, builder, signature.args[0], args[0], args[1])
        vector = context.get_value_type(result)
        if not part.literal_value:
            return _load(builder, pointer, vector)
        return _load_first(builder, pointer, args[2], _constant(vector, 0.0))

    return result(array, types.intp, types.intp, part, lanes), codegen


@intrinsic(prefer_literal=True)
def store_first(typingctx, array, index, count, part, vector):
    """array[index : index + count] = the first lanes of a vector; all lanes unless `part`."""

    def codegen(context, builder, signature, args):
        array, index, count, _, vector = args
        pointer = _address(context, builder, signature.args[0], array, index)
        if not part.literal_value:
            _store(builder, vector, pointer)
            return context.get_dummy_value()
        pointer, align = builder.bitcast(pointer, vector.type.as_pointer()), ir.IntType(32)
        mask = _first(builder, count, vector.type.count)
        parts = (vector, pointer, align(_bytes(vector.type.element)), mask)
        kind = ir.FunctionType(ir.VoidType(), [value.type for value in parts])
        name = f"llvm.masked.store.{_mangled(vector.type)}.p0"
        builder.call(cgutils.get_or_insert_function(builder.module, kind, name), parts)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, part, vector), codegen


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
def differing(typingctx, a, b):
    """Bit t is set where the integers a[t] and b[t] differ."""

    def codegen(context, builder, signature, args):
        differ = builder.icmp_unsigned("!=", *args)
        bits = builder.bitcast(differ, ir.IntType(differ.type.count))
        return builder.zext(bits, ir.IntType(64))

    return types.uint64(a, b), codegen


@intrinsic
def lowest_bit(typingctx, bits):
    """The place of the lowest bit that is set; there must be one."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.int64(types.uint64), codegen


@intrinsic
def below(typingctx, a, b):
    """Whether a < b, lane by lane."""
    result = Vector(types.boolean, a.lanes)

    def codegen(context, builder, signature, args):
        return builder.fcmp_ordered("<", *args)

    return result(a, b), codegen


@intrinsic
def both(typingctx, a, b):
    """Whether a and b, lane by lane."""

    def codegen(context, builder, signature, args):
        return builder.and_(*args)

    return a(a, b), codegen


@intrinsic
def where(typingctx, condition, a, b):
    """a where the condition holds, b elsewhere."""

    def codegen(context, builder, signature, args):
        return builder.select(*args)

    return a(condition, a, b), codegen


@intrinsic
def count(typingctx, condition):
    """The number of lanes in which a condition holds."""

    def codegen(context, builder, signature, args):
        bits = builder.bitcast(args[0], ir.IntType(args[0].type.count))
        return builder.ctpop(builder.zext(bits, ir.IntType(64)))

    return types.int64(condition), codegen


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
