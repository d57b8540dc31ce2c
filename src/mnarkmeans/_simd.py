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
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

_HAS_512_BITS = bool(llvm.get_host_cpu_features().get("avx512f"))

#: Rows of a panel, float32. Two registers per centre keep enough independent sums in flight to
#: hide the latency of a multiply-add, and five centres of them fill 16 registers.
LANES = 32 if _HAS_512_BITS else 16

#: Rows and columns of the square blocks in which data is read and transposed.
BLOCK = 8


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


def _abs(builder, a):
    name = f"llvm.fabs.{_mangled(a.type)}"
    signature = ir.FunctionType(a.type, [a.type])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), (a,))


def _convert(builder, a, scalar_type):
    """Change float width lane by lane; a no-op when the width is already right."""
    target = ir.VectorType(scalar_type, a.type.count)
    if a.type == target:
        return a
    widen = scalar_type == ir.DoubleType()
    return builder.fpext(a, target) if widen else builder.fptrunc(a, target)


def _address(context, builder, array_type, array, index):
    """Pointer to the element of flat index `index` of a contiguous array."""
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


# ------------------------------------------------------------- reading rows as lanes (transposing)

# Three rounds of two-input shuffles transpose 8 x 8 numbers; each round's pairs and lane orders
# map to one instruction on common processors (numbers 8..15 name lanes of the second vector).
_ROUNDS = (
    (1, (0, 8, 1, 9, 4, 12, 5, 13), (2, 10, 3, 11, 6, 14, 7, 15)),
    (2, (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)),
    (4, (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)),
)


def _transpose(builder, rows):
    """Turn eight vectors (rows) into the eight vectors of their columns."""
    index = ir.VectorType(ir.IntType(32), BLOCK)
    for distance, low, high in _ROUNDS:
        mixed = list(rows)
        for i in range(BLOCK):
            if i & distance:
                continue
            a, b = rows[i], rows[i + distance]
            mixed[i] = builder.shuffle_vector(a, b, ir.Constant(index, list(low)))
            mixed[i + distance] = builder.shuffle_vector(a, b, ir.Constant(index, list(high)))
        rows = mixed
    # After the rounds, vector i holds column (bits 0 and 1 of i swapped).
    return [rows[i] for i in (0, 2, 1, 3, 4, 6, 5, 7)]


def _mark(builder, values, missing, shift, scalar_type):
    """values - shift in float64, NaN where missing, rounded to the scalar type."""
    values = _convert(builder, values, ir.DoubleType())
    is_code = builder.fcmp_ordered("==", values, _splat(builder, missing, values.type))
    shifted = builder.fsub(values, shift)
    marked = builder.select(is_code, _constant(values.type, float("nan")), shifted)
    return _convert(builder, marked, scalar_type)


def _row_pointers(context, builder, array_type, array, row, last, column):
    """Pointers to X[row + t, column]; rows past `last` repeat the last one."""
    X = cgutils.create_struct_proxy(array_type)(context, builder, array)
    stride_row, stride_column = cgutils.unpack_tuple(builder, X.strides, 2)
    base = builder.ptrtoint(X.data, row.type)
    base = builder.add(base, builder.mul(column, stride_column))
    for t in range(BLOCK):
        wanted = builder.add(row, row.type(t))
        inside = builder.icmp_signed("<", wanted, last)
        address = builder.add(base, builder.mul(builder.select(inside, wanted, last), stride_row))
        yield builder.inttoptr(address, X.data.type)


@intrinsic
def read_block(typingctx, X, row, last, column, shift, missing, like):
    """Eight columns of eight rows, from `column` on, one vector per column.

    X must hold each row contiguously. Values are shifted in float64, then rounded to the number
    type of the array `like`, and NaN where missing.
    """
    if shift.dtype != types.float64:
        return None
    result = types.UniTuple(Vector(like.dtype, BLOCK), BLOCK)

    def codegen(context, builder, signature, args):
        X, row, last, column, shift, missing, _ = args
        in_type = ir.VectorType(context.get_value_type(signature.args[0].dtype), BLOCK)
        shift_address = _address(context, builder, signature.args[4], shift, column)
        shift8 = _load(builder, shift_address, ir.VectorType(ir.DoubleType(), BLOCK))
        out_scalar = context.get_value_type(like.dtype)
        pointers = _row_pointers(context, builder, signature.args[0], X, row, last, column)
        rows = [
            _mark(builder, _load(builder, p, in_type), missing, shift8, out_scalar)
            for p in pointers
        ]
        return context.make_tuple(builder, result, _transpose(builder, rows))

    args = (X, types.intp, types.intp, types.intp, shift, types.float64, like)
    return result(*args), codegen


@intrinsic
def read_column(typingctx, X, row, last, column, shift, missing, like):
    """One column of eight rows, as `read_block` but for any memory layout of X."""
    if shift.dtype != types.float64:
        return None
    result = types.UniTuple(Vector(like.dtype, BLOCK), 1)

    def codegen(context, builder, signature, args):
        X, row, last, column, shift, missing, _ = args
        in_scalar = context.get_value_type(signature.args[0].dtype)
        values = ir.Constant(ir.VectorType(in_scalar, BLOCK), ir.Undefined)
        pointers = _row_pointers(context, builder, signature.args[0], X, row, last, column)
        for t, pointer in enumerate(pointers):
            number = builder.load(pointer, typ=in_scalar)
            values = builder.insert_element(values, number, ir.IntType(32)(t))
        shift_address = _address(context, builder, signature.args[4], shift, column)
        shift8 = _splat(
            builder,
            builder.load(shift_address, typ=ir.DoubleType()),
            ir.VectorType(ir.DoubleType(), BLOCK),
        )
        marked = _mark(builder, values, missing, shift8, context.get_value_type(like.dtype))
        return context.make_tuple(builder, result, [marked])

    args = (X, types.intp, types.intp, types.intp, shift, types.float64, like)
    return result(*args), codegen


@intrinsic
def write_columns(typingctx, columns, values, masks, index, weights, column, size, seen):
    """Store NaN-marked columns as values (0 in gaps) and masks (1 observed, 0 gap).

    Column c goes to `index + c * LANES`. Returns `size + sum_c |value| * weights[column + c]`
    and `seen * prod_c mask`, lane by lane.
    """
    result = types.UniTuple(size, 2)

    def codegen(context, builder, signature, args):
        columns, values, masks, index, weights, column, size, seen = args
        zero, one = _constant(size.type, 0.0), _constant(size.type, 1.0)
        for c, marked in enumerate(_unpack(builder, columns, len(signature.args[0]))):
            observed = builder.fcmp_ordered("ord", marked, marked)
            value = builder.select(observed, marked, zero)
            mask = builder.select(observed, one, zero)
            target = builder.add(index, index.type(c * LANES))
            _store(builder, value, _address(context, builder, signature.args[1], values, target))
            _store(builder, mask, _address(context, builder, signature.args[2], masks, target))
            place = builder.add(column, column.type(c))
            weight = builder.load(
                _address(context, builder, signature.args[4], weights, place),
                typ=size.type.element,
            )
            weight = _splat(builder, weight, size.type)
            size = _muladd(builder, _abs(builder, value), weight, size)
            seen = builder.fmul(seen, mask)
        return context.make_tuple(builder, result, [size, seen])

    args = (columns, values, masks, types.intp, weights, types.intp, size, seen)
    return result(*args), codegen


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


# ------------------------------------------------------------------------------- sums of clusters


@intrinsic
def add_entries(typingctx, X, row, column, shift, missing, w, place, sums, counts, square):
    """As many entries of a row as `square` has lanes: sums += w x', counts += w where observed.

    shift, sums and counts are contiguous float64 arrays; the entries' sums begin at the flat index
    `place`. Returns square + x'^2.
    """

    def codegen(context, builder, signature, args):
        X, row, column, shift, missing, w, place, sums, counts, square = args
        doubles = square.type
        source = cgutils.create_struct_proxy(signature.args[0])(context, builder, X)
        stride_row, stride_column = cgutils.unpack_tuple(builder, source.strides, 2)
        address = builder.ptrtoint(source.data, row.type)
        address = builder.add(address, builder.mul(row, stride_row))
        address = builder.add(address, builder.mul(column, stride_column))
        in_scalar = context.get_value_type(signature.args[0].dtype)
        in_type = ir.VectorType(in_scalar, doubles.count)
        values = _load(builder, builder.inttoptr(address, source.data.type), in_type)
        values = _convert(builder, values, ir.DoubleType())
        shift8 = _load(
            builder, _address(context, builder, signature.args[3], shift, column), doubles
        )
        # Ordered and different: false for NaN as well as for the code of a gap.
        missing8 = _splat(builder, missing, doubles)
        is_code = builder.fcmp_ordered("==", values, missing8)
        is_number = builder.fcmp_ordered("ord", values, values)
        seen = builder.and_(is_number, builder.not_(is_code))
        zero = _constant(doubles, 0.0)
        x = builder.select(seen, builder.fsub(values, shift8), zero)
        w8 = _splat(builder, w, doubles)
        for array_type, array, change in (
            (signature.args[7], sums, builder.fmul(w8, x)),
            (signature.args[8], counts, builder.select(seen, w8, zero)),
        ):
            pointer = _address(context, builder, array_type, array, place)
            _store(builder, builder.fadd(_load(builder, pointer, doubles), change), pointer)
        return _muladd(builder, x, x, square)

    numbers = (types.float64, types.float64, types.intp)
    args = (X, types.intp, types.intp, shift, *numbers, sums, counts, square)
    return square(*args), codegen


@intrinsic
def total(typingctx, vector):
    """Sum of the lanes, in their order."""

    def codegen(context, builder, signature, args):
        (vector,) = args
        result = builder.extract_element(vector, ir.IntType(32)(0))
        for lane in range(1, vector.type.count):
            result = builder.fadd(result, builder.extract_element(vector, ir.IntType(32)(lane)))
        return result

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
    """Ask for two cache lines, from a memory address on; never faults."""

    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        i32 = ir.IntType(32)
        signature_ir = ir.FunctionType(ir.VoidType(), [pointer.type, i32, i32, i32])
        function = cgutils.get_or_insert_function(builder.module, signature_ir, "llvm.prefetch.p0")
        builder.call(function, (pointer, i32(0), i32(2), i32(1)))
        next_line = builder.gep(pointer, [ir.IntType(64)(64)])
        builder.call(function, (next_line, i32(0), i32(2), i32(1)))
        return context.get_dummy_value()

    return types.void(types.intp), codegen
