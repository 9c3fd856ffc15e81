"""Fixed-point products, written such that a 32-bit core computes them in few instructions.

A requantization multiplies two 32-bit numbers and keeps some 32 bits of the product.  TVM's
simplifier rewrites the sum before it (``int64(a + b) * c`` becomes ``(int64(a) + int64(b)) * c``),
which costs a core without 64-bit registers several instructions each.  It cannot look through
memory, so every 32-bit number that enters or leaves 64-bit arithmetic is stored in its own local
variable, which the C compiler keeps in a register.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import tvm
import tvm_ffi
from tvm import relax, te, tirx
from tvm.ir import GenericConst
from tvm.s_tir import SBlock
from tvm.tirx.stmt import BufferStore, SeqStmt

from htvm.aot.loops import changed_block
from patterns.ops.float32.quantize import Quantize
from patterns.ops.onnxruntime.rounding import OnnxQuantize
from patterns.ops.tflite.binary import ADD_LEFT_SHIFT, TfliteAdd
from patterns.ops.torch.quantize import TorchQuantize
from patterns.primitive import extents, kind_of, parameters_of, read_primitive, shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.ir import IRModule
    from tvm.relax import BlockBuilder, Call, Expr, Var
    from tvm.tirx import PrimFunc

SCALE_SUMS, SCALE_SHIFT = 2**29, 28
"""``htvm_scale`` takes sums below the one, and divides by powers of two up to the other, on every
core."""

LARGE_SUMS, LARGE_SHIFT = 3 * 2**29, 31
"""The same on cores whose products of words are long (`CoreKernels.large`)."""

NORMALIZED = 1 << 30
"""It takes Q31 multipliers from this on, which all are that TFLite makes, except 0."""


SCALE = "htvm_scale"
"""Function that kernels call: doubled multipliers, shifts to the right from 1 on."""

RESCALE = "htvm_rescale"
"""Function that kernels of cores with lanes call: Q31 multipliers, int8 left shifts, any sums."""

FLOAT_PRODUCT = "htvm_float_product"
"""Function that kernels call."""

FLOAT_HEADER = f"{FLOAT_PRODUCT}.h"
"""Header that has it (in ``runtime_c/include``)."""

QUANTIZE_HEADER = "htvm_float_quantize.h"
"""Header of what quantizations of reals call (in ``runtime_c/include``)."""

_QUANTIZED: dict[str, tuple[type[Quantize], str]] = {
    Quantize.kind: (Quantize, "htvm_over_away"),
    OnnxQuantize.tag: (OnnxQuantize, "htvm_over_even"),
    TorchQuantize.tag: (TorchQuantize, "htvm_times_even"),
}
QUANTIZED = frozenset(name for _, name in _QUANTIZED.values())
"""Functions of that header."""

# The header's `exponent` of a factor between 1 and 2.
_QUANTIZED_EXPONENT = 149

# Beyond, a float32 that is not normalized might make a step.
_LARGEST_SCALE_BITS = 100

# The mantissa's 24 bits are moved up to 31, so that results of scales below 1/2 are in the high
# word.
_RAISED = 7
_WORD = 32
_LARGEST_DROP = 30

# From this on, what a rounding changes in results below 256 is at least half a unit of the high
# word.
_WIDE_DROP = 17

# Up to this, accumulators that float32 rounds have results of at least 512, which are clipped.
_LARGE_DROP = 13


def name_wide_operands(func: PrimFunc) -> PrimFunc:
    """Store the 32-bit operands and results of 64-bit arithmetic in local variables.

    Only for scheduled functions: a block with several statements is no longer recognised as a sum.
    """

    def visit(block: Any) -> Any:
        if not isinstance(block.body, BufferStore) or _is_guarded(block.body.value):
            return block
        locals_ = _Locals()
        value = tvm_ffi.structural_map(block.body.value, (tirx.Cast, locals_.visit))
        if not locals_.stores:
            return block
        store = BufferStore(block.body.buffer, value, block.body.indices)
        return changed_block(block, SeqStmt([*locals_.stores, store]), locals_.buffers)

    return func.with_body(tvm_ffi.structural_map(func.body, (SBlock, visit)))


def _is_guarded(value: Any) -> bool:
    """Whether a part of the expression must only be evaluated under a condition."""
    found = False

    def visit(call: Any) -> None:
        nonlocal found
        found = found or getattr(call.op, "name", "") == "prim.if_then_else"

    tvm_ffi.structural_walk(value, (tvm.ir.Call, visit))
    return found


class _Locals:
    """Replaces expressions by local variables; equal expressions share one."""

    def __init__(self) -> None:
        self.buffers: list[Any] = []
        self.stores: list[Any] = []
        self._values: list[tuple[Any, Any]] = []

    def visit(self, cast: Any) -> Any:
        source, target = str(cast.value.ty.dtype), str(cast.ty.dtype)
        if (source, target) == ("int64", "int32"):
            return self._local(cast, "narrow")
        if (source, target) == ("int32", "int64") and not _is_leaf(cast.value):
            return tirx.Cast("int64", self._local(cast.value, "wide"))
        return cast

    def _local(self, value: Any, name: str) -> Any:
        for known, load in self._values:
            if tvm_ffi.structural_equal(known, value):
                return load
        buffer = tirx.decl_buffer((1,), "int32", name=f"{name}{len(self.buffers)}")
        zero = tirx.const(0, "int32")
        self.buffers.append(buffer)
        self.stores.append(BufferStore(buffer, value, [zero]))
        load = buffer[zero]
        self._values.append((value, load))
        return load


def _is_leaf(value: Any) -> bool:
    """Whether a value is readily available: loaded, constant, or widened from a load."""
    if isinstance(value, tirx.Cast):
        return _is_leaf(value.value)
    return isinstance(value, (tvm.ir.TensorLoad, tirx.IntImm, tvm.ir.Var))


# ------------------------------------------------------------------------------ short forms


def _high_product(value: Any, doubled: Any) -> Any:
    """Return ``round(value * multiplier / 2**31)``, given twice the multiplier.

    It is the high word of the doubled product and the bit below it, without a 64-bit sum.
    """
    product = tirx.Cast("int64", value) * tirx.Cast("int64", tirx.Cast("uint32", doubled))
    bit = (product >> tirx.const(31, "int64")) & tirx.const(1, "int64")
    return tirx.Cast("int32", product >> tirx.const(32, "int64")) + tirx.Cast("int32", bit)


def _rounded(value: Any, less_one: Any) -> Any:
    """Return ``value / 2**(less_one + 1)``, rounded half away from zero; never overflows."""
    return (((value + (value >> 31)) >> less_one) + 1) >> 1


def _doubled(multiplier: np.ndarray) -> relax.Expr:
    return relax.const((multiplier.astype("uint32") * 2).view("int32"), "int32")


_Short: TypeAlias = "tuple[PrimFunc, list[Expr]] | None"
"""A PrimFunc and its arguments; ``None`` if there is no shorter one."""


def _short_fixed_point(
    module: IRModule,
    call: Call,
    bounds: Mapping[Var, int],
    narrow: bool,
    lanes: bool,
    large: bool,
) -> _Short:
    """Return TFLite's requantization for factors below 1/2, in about ten instructions.

    Products are calls of `RESCALE` with ``lanes``, else of ``htvm_scale`` where ``bounds`` has the
    accumulator, unless it might overflow.  ``None`` if a shift is not negative, or if a multiplier
    is.
    """
    acc, *args = call.args[1]
    if not all(isinstance(arg, GenericConst) for arg in args):
        return None
    multiplier, shift = (arg.value.numpy() for arg in args)
    axis, magnitude = int(str(parameters_of(module, call)["axis"])), bounds.get(acc)
    if shift.size != multiplier.size or shift.max() >= 0 or multiplier.min() < 0:
        return None
    lanes = lanes and int(shift.min()) >= -LARGE_SHIFT
    sums, most = (LARGE_SUMS, LARGE_SHIFT) if large else (SCALE_SUMS, SCALE_SHIFT)
    small = magnitude is not None and magnitude < sums
    if large and small:
        # Channels that a network never uses have the factor 0.  The smallest one gives 0, too: the
        # first result is below 2**30 then, and the second is that by 2**31.
        dead = multiplier == 0
        multiplier, shift = np.where(dead, NORMALIZED, multiplier), np.where(dead, -most, shift)
    normalized = multiplier.min() >= NORMALIZED and shift.min() >= -most
    called = small and normalized

    def scaled(value: Any, factor: Any, drop: Any) -> Any:
        if lanes:
            return tirx.call_extern("int32", RESCALE, value, factor, tirx.Cast("int32", drop))
        if called:
            numbers = tirx.Cast("uint32", factor), tirx.Cast("uint32", drop)
            return tirx.call_extern("int32", SCALE, value, *numbers)
        less_one = tirx.Cast("int32", drop) if narrow else drop
        return _rounded(_high_product(value, factor), less_one)

    shape, channels = shape_of(acc), int(shift.size)

    def element(*index: Any) -> Any:
        channel = index[axis] if channels > 1 else 0
        return scaled(value(*index), factor(channel), drops(channel))

    value = te.placeholder(extents(shape), "int32", "acc")
    factor = te.placeholder(extents((channels,)), "int32", "multiplier")
    dtype = "int8" if lanes else "uint8" if narrow else "int32"
    drops = te.placeholder(extents((channels,)), dtype, "shift")
    result = te.compute(extents(shape), element, name="requantized")
    func = te.create_prim_func([value, factor, drops, result]).without_attr("global_symbol")
    if lanes:
        return func, [acc, args[0], relax.const(shift.astype(dtype), dtype)]
    drop = 1 - shift if called else -shift - 1
    return func, [acc, _doubled(multiplier), relax.const(drop.astype(dtype), dtype)]


def widening_add(shape: tuple[int, ...]) -> PrimFunc:
    """Return the int32 sum of two int8 tensors."""
    sources = [te.placeholder(extents(shape), "int8", name) for name in ("a", "b")]
    first, second = sources

    def element(*index: Any) -> Any:
        return tirx.Cast("int32", first(*index)) + tirx.Cast("int32", second(*index))

    result = te.compute(extents(shape), element, name="total")
    return te.create_prim_func([*sources, result]).without_attr("global_symbol")


def _short_sum(module: IRModule, call: Call, simd: bool, lanes: bool) -> _Short:
    """Return TFLite's sum of two int8 tensors, in half the instructions of its definition.

    The operand with the larger scale has the factor 1/2, which is a shift.  Products are calls of
    `RESCALE` with ``lanes``, else of ``htvm_scale`` with ``simd``.  ``None`` if one of the factors
    is 1 or more.
    """
    add = read_primitive(TfliteAdd, parameters_of(module, call), call)
    assert isinstance(add, TfliteAdd)
    a, b, *_ = call.args[1]
    multipliers, shifts = add.factors.multipliers, add.factors.shifts
    zero_points, (low, high) = add.factors.zero_points, add.clip
    if max(shifts) > 0 or min(multipliers) < 0:
        return None
    shape = extents(shape_of(a))
    # Exactly half of a multiple of 2**20 is a shift.
    halves = [multipliers[at] == 1 << 30 and shifts[at] == 0 and at < 2 for at in range(3)]
    lanes = lanes and all(
        half or -LARGE_SHIFT <= shift < 0 for half, shift in zip(halves, shifts, strict=True)
    )

    def scaled(value: Any, index: int) -> Any:
        if halves[index]:
            return value >> 1
        if lanes:
            return tirx.call_extern("int32", RESCALE, value, factor(index), shifts[index])
        normalized = multipliers[index] >= NORMALIZED
        if simd and normalized and -SCALE_SHIFT <= shifts[index] < 0:
            # Operands are below 2**28, and factors of both at most 1/2.
            drop = tirx.const(1 - shifts[index], "uint32")
            doubled = tirx.Cast("uint32", factor(index))
            return tirx.call_extern("int32", SCALE, value, doubled, drop)
        product = _high_product(value, factor(index))
        return _rounded(product, -shifts[index] - 1) if shifts[index] < 0 else product

    def operand(source: te.Tensor, index: int) -> te.Tensor:
        return te.compute(
            shape,
            lambda *i: (
                (tirx.Cast("int32", source(*i)) - zero_points[index]) * (1 << ADD_LEFT_SHIFT)
            ),
            name=f"operand{index}",
        )

    def element(*index: Any) -> Any:
        result = scaled(total(*index), 2) + zero_points[2]
        return tirx.Cast("int8", tirx.max(tirx.min(result, high), low))

    sources = [te.placeholder(shape, "int8", name) for name in ("a", "b")]
    factor = te.placeholder(extents((3,)), "int32", "multiplier")
    first, second = (operand(source, index) for index, source in enumerate(sources))
    total = te.compute(shape, lambda *i: scaled(first(*i), 0) + scaled(second(*i), 1), name="total")
    result = te.compute(shape, element, name="sum")
    func = te.create_prim_func([*sources, factor, result]).without_attr("global_symbol")
    factors = np.asarray(multipliers)
    return func, [a, b, relax.const(factors.astype("int32")) if lanes else _doubled(factors)]


def _short_float(module: IRModule, call: Call) -> tuple[PrimFunc, list[Expr]]:
    """Return the product of an accumulator and a float32 scale, rounded like float32 arithmetic.

    `patterns.ops.onnxruntime.rounding` defines it.  Kernels call `FLOAT_HEADER`, in which a product
    takes as many instructions as a fixed-point one, unless it is next to a tie.
    Exact for results below 256 in magnitude; larger ones are off by at most one, which a clip to 8
    bits hides.  It is the definition itself if a scale is 1/4 or more, or tiny, or so small that
    accumulators count that float32 rounds.
    """
    (acc, factors), called = call.args[1], parameters_of(module, call)
    axis, large = int(str(called["axis"])), bool(called["large"])
    mantissa, shift = factors.value.numpy().astype("int64")
    drop = np.where(mantissa > 0, shift + _RAISED - _WORD, 1)
    if drop.min() < 1 or drop.max() > (_LARGE_DROP if large else _LARGEST_DROP):
        return module[call.args[0]], [acc, factors]
    shape, channels = shape_of(acc), int(drop.size)
    margin = np.where(drop >= _WIDE_DROP, 1 << np.maximum(drop - _WIDE_DROP, 0), 0)
    nudge = (1 << (drop - 1)) + margin
    constants = np.stack([mantissa << _RAISED, drop, nudge]).astype("int32")

    def element(*index: Any) -> Any:
        channel = index[axis] if channels > 1 else 0
        rows = [parameters[row, channel] for row in range(3)]
        return tirx.call_pure_extern("int32", FLOAT_PRODUCT, value(*index), *rows)

    value = te.placeholder(extents(shape), "int32", "acc")
    parameters = te.placeholder(extents((3, channels)), "int32", "factors")
    result = te.compute(extents(shape), element, name="requantized")
    func = te.create_prim_func([value, parameters, result]).without_attr("global_symbol")
    return func, [acc, relax.const(constants, "int32")]


def _short_quantize(module: IRModule, call: Call, kind: str) -> _Short:
    """Return a conversion of reals to 8 bits that a core without floating point does in integers.

    ``None`` for more bits, and for scales beyond 2^±100.
    """
    cls, function = _QUANTIZED[kind]
    op = read_primitive(cls, parameters_of(module, call), call)
    assert isinstance(op, Quantize)
    source, scale = call.args[1]
    limits = np.iinfo(op.dtype)
    real = float(scale.value.numpy()[0])
    if limits.bits != 8 or not real > 0:
        return None
    mantissa, bits = math.frexp(real if cls is TorchQuantize else 1 / real)
    if abs(bits) > _LARGEST_SCALE_BITS:
        return None
    # 1 / real may round to a power of two.
    factor = min(round(mantissa * 2**_WORD), 2**_WORD - 1)
    numbers = np.array([factor, _QUANTIZED_EXPONENT + 1 - bits], "uint32").view("int32")

    def element(*index: Any) -> Any:
        known = tirx.Cast("uint32", figures[0]), figures[1]
        steps = tirx.call_pure_extern("int32", function, value(*index), step[0], *known)
        result = steps + op.zero_point
        return tirx.Cast(op.dtype, tirx.max(tirx.min(result, int(limits.max)), int(limits.min)))

    shape = extents(shape_of(source))
    value = te.placeholder(shape, "float32", "reals")
    step = te.placeholder(extents((1,)), "float32", "scale")
    figures = te.placeholder(extents((2,)), "int32", "factor")
    result = te.compute(shape, element, name="quantized")
    func = te.create_prim_func([value, step, figures, result]).without_attr("global_symbol")
    return func, [source, scale, relax.const(numbers, "int32")]


def short_form(
    builder: BlockBuilder,
    module: IRModule,
    call: Call,
    bounds: Mapping[Var, int],
    simd: bool,
    narrow: bool,
    lanes: bool,
    large: bool,
) -> Call:
    """Return the same call, of a PrimFunc with fewer instructions if there is one.

    Args:
        builder: receives the PrimFunc.
        module: with the PrimFuncs that are called now.
        call: of a PrimFunc, or of an operator.
        bounds: largest absolute values of variables; empty for cores without SIMD.
        simd: whether it may call intrinsics.
        narrow: whether shifts are bytes.
        lanes: whether the core computes four elements at once, and its intrinsics take any sums.
        large: as `htvm.aot.intrinsics.CoreKernels.large`.
    """
    kind, short = kind_of(module, call), None
    if kind == "tflite_requantize":
        short = _short_fixed_point(module, call, bounds, narrow, lanes, large)
    elif kind == "onnx_requantize":
        short = _short_float(module, call)
    elif kind == TfliteAdd.tag:
        short = _short_sum(module, call, simd, lanes)
    elif kind in _QUANTIZED and simd and not lanes:
        short = _short_quantize(module, call, kind)
    if short is None:
        return call
    func, args = short
    callee = builder.add_func(func.with_attr("htvm.kind", kind), kind)
    return relax.Call(call.op, [callee, relax.Tuple(args)], call.attrs, call.ty_args, call.span)
