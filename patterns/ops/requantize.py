"""The requantizations of the integer form, from int32 accumulators to int8 outputs.

* `Shift`: arithmetic right shift, which floors.
* `MulShift`: ``(acc * mul + add) >> shift``, per tensor or per channel; in 64 bits unless the
  bounds of the accumulator exclude an overflow of 32 bits.
* `TfliteRequant`: multiplication by a Q31 number and a rounding right shift, each with its own
  rounding, exactly as gemmlowp and TFLite Micro's reference kernels do ("double rounding").
* `OnnxRequant`: onnxruntime's float32 computation, in integers (see
  `patterns.ops.onnxruntime.rounding`).
* `TorchRequant`: torch's, in integers, rounded once (see `patterns.ops.torch.rounding`).

All are followed by clip and cast.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from tvm import relax, te, tirx
from tvm.relax import op as R
from tvm.relax.dpl import is_const, is_gv, is_op, is_tuple, wildcard

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import (
    AnalogRequant,
    MulShift,
    OnnxRequant,
    Requant,
    Shift,
    TfliteRequant,
    TorchRequant,
)
from patterns.names import emit
from patterns.ops.onnxruntime.rounding import onnx_requantize, read_factors
from patterns.ops.torch.rounding import read_torch_requantize, torch_requantize
from patterns.primitive import call_primitive, extents, primitive, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var
    from tvm.relax.dpl import DFPattern

    from byoc_dory.layers import Array

_INT32_MAX = 2**31 - 1

Scaling: TypeAlias = Shift | MulShift | TfliteRequant | OnnxRequant | TorchRequant
"""Requantizations of one accumulator; that of an in-memory array is written after its passes."""


def fixed_point(real: float) -> tuple[int, int]:
    """Return a non-negative real as ``multiplier * 2**(shift - 31)``, like TFLite.

    ``multiplier`` is in [2**30, 2**31), rounded half away from zero, or 0 for reals below 2**-32.

    Raises:
        UnsupportedError: the real is negative, not finite, or at least 2**30.
    """
    if not math.isfinite(real) or real < 0:
        raise UnsupportedError(f"a scale ratio of {real}", hint="scales must be positive, finite")
    mantissa, shift = math.frexp(real)
    multiplier = math.floor(mantissa * 2**31 + 0.5)
    if multiplier == 2**31:
        multiplier, shift = 2**30, shift + 1
    if multiplier == 0 or shift < -31:
        return 0, 0
    if shift > 30:
        raise UnsupportedError(f"a scale ratio of {real:g}", hint="it must be below 2**30")
    return multiplier, shift


def tflite_reach(largest: Array, multiplier: Array, shift: Array) -> int:
    """Return the largest magnitude that TFLite's requantization makes of sums, before the clip.

    Args:
        largest: largest magnitudes of the sums, one or one for each channel, int64.
        multiplier, shift: of the requantization, likewise.
    """
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    # A left shift wraps: it may make anything of 32 bits of a larger sum.
    moved = np.minimum(largest << left, 1 << 31)
    high = (moved * multiplier + (1 << 30)) >> 31
    return int(((high + ((1 << right) >> 1)) >> right).max(initial=0))


# ------------------------------------------------------------------------------ tensor expressions


def rounding_high_multiply(value: Any, multiplier: Any) -> Any:
    """Return ``round(value * multiplier / 2**31)``, int32, ties upward, like gemmlowp.

    Multipliers are below 2**31, so gemmlowp's only saturating product cannot occur.
    """
    product = tirx.Cast("int64", value) * tirx.Cast("int64", multiplier)
    return tirx.Cast("int32", (product + tirx.const(1 << 30, "int64")) >> tirx.const(31, "int64"))


def rounding_right_shift(value: Any, amount: Any) -> Any:
    """``value / 2**amount`` rounded half away from zero, for any int32, 0 <= amount <= 31."""
    one = tirx.const(1, "uint32")
    mask = tirx.Cast("int32", (one << tirx.Cast("uint32", amount)) - one)
    threshold = (mask >> 1) + tirx.Cast("int32", value < 0)
    return (value >> amount) + tirx.Cast("int32", (value & mask) > threshold)


def short_rounding_right_shift(value: Any, amount: Any) -> Any:
    """Return the same for 1 <= amount, where ``abs(value) + 2**(amount - 1)`` must fit int32."""
    half = tirx.const(1, "int32") << (amount - 1)
    return (value + half + (value >> 31)) >> amount


def left_shift(value: Any, amount: Any, *, known: bool = False) -> Any:
    """``value << amount``, wrapping: in unsigned, because TFLite wraps here and C does not.

    Args:
        value: an int32.
        amount: number of bits.
        known: whether TVM can see bounds of the value, as of a byte from which a constant is
            subtracted.  It takes the negative part of these away when the value becomes unsigned,
            and would then leave out a clip of the result; a mask hides them.
    """
    if known:
        value = tirx.Cast("int64", value) & tirx.const(0xFFFFFFFF, "int64")
    shifted = tirx.Cast("uint32", value) << tirx.Cast("uint32", amount)
    return tirx.Cast("int32", shifted)


def _tflite_scale(acc: Any, multiplier: Any, shift: Any, left: bool, simple: bool) -> Any:
    if left:
        acc = left_shift(acc, tirx.max(shift, 0))
    high = rounding_high_multiply(acc, multiplier)
    if simple:
        return short_rounding_right_shift(high, -shift)
    return rounding_right_shift(high, tirx.max(-shift, 0))


# ------------------------------------------------------------------------------ builder


def check_int32(values: int | tuple[int, ...] | Array) -> Array:
    """Return numbers as int32.

    Raises:
        UnsupportedError: one does not fit.
    """
    array = np.asarray(values, dtype="int64")
    if array.size and (array.min() < -(2**31) or array.max() > _INT32_MAX):
        shown = tuple(values.tolist()) if isinstance(values, np.ndarray) else values
        raise UnsupportedError(f"the constant {shown} does not fit int32")
    return array.astype("int32")


def check_requantization(requant: Requant) -> None:
    """Check that the numbers of a requantization can be written.

    Raises:
        UnsupportedError: one does not fit int32, or it follows passes instead of one accumulator.
    """
    if isinstance(requant, AnalogRequant):
        raise UnsupportedError(
            "the analog core's requantization follows its passes, not one accumulator"
        )
    for field in fields(requant):
        check_int32(getattr(requant, field.name))


def int_constant(values: int | tuple[int, ...], shape: tuple[int, ...] | None = None) -> Expr:
    """Return an int32 constant: a scalar, or a tensor of ``shape`` (default: one axis)."""
    array = check_int32(values)
    return relax.const(array if shape is None else array.reshape(shape), "int32")


def requantize(
    bb: BlockBuilder,
    acc: Expr,
    requant: Requant,
    clip: tuple[int, int],
    name: str,
    *,
    channel_axis: int = -1,
    bound: int = _INT32_MAX,
    dtype: str = "int8",
) -> Var:
    """Scale, clip and cast an int32 tensor, to int8 by default.

    Args:
        bb: builder to write with.
        acc: the accumulator, int32.
        requant: requantization.
        clip: inclusive range of the output.
        name: name of the operator that it belongs to.
        channel_axis: axis of ``acc`` for per-channel parameters.
        bound: largest possible magnitude of ``acc``, if known; a smaller one gives shorter code.
        dtype: type of the output.
    """
    rank = len(shape_of(acc))
    axis = channel_axis % rank if rank else 0
    if isinstance(requant, Shift):
        scaled = emit(bb, R.right_shift(acc, int_constant(requant.shift)), name)
    elif isinstance(requant, MulShift) and _is_wide(requant, bound):
        scaled = _wide_mul_shift(bb, acc, requant, clip, name, axis)
    elif isinstance(requant, MulShift):
        scaled = multiply_shift(bb, acc, requant, name, axis)
    elif isinstance(requant, AnalogRequant):
        raise UnsupportedError(
            "the analog core's requantization follows its passes, not one accumulator",
            where=f"operator '{name}'",
        )
    else:
        if isinstance(requant, OnnxRequant):
            scaled = onnx_requantize(bb, acc, requant, name, axis, bound)
        elif isinstance(requant, TorchRequant):
            scaled = torch_requantize(bb, acc, requant, name, axis, bound)
        else:
            scaled = _tflite_requantize(bb, acc, requant, name, axis, bound)
        scaled = emit(bb, R.add(scaled, int_constant(requant.output_zero_point)), name)
    low, high = clip
    clipped = emit(bb, R.clip(scaled, low, high), name)
    return emit(bb, R.astype(clipped, dtype), name, last=True)


def multiply_shift(bb: BlockBuilder, acc: Expr, requant: MulShift, name: str, axis: int) -> Var:
    """Write ``(acc * mul + add) >> shift`` in 32 bits; arguments as for `requantize`."""
    rank = len(shape_of(acc))
    scaled = emit(bb, R.multiply(acc, _per_channel(requant.mul, rank, axis)), name)
    scaled = emit(bb, R.add(scaled, _per_channel(requant.add, rank, axis)), name)
    return emit(bb, R.right_shift(scaled, _per_channel(requant.shift, rank, axis)), name)


def _is_wide(requant: MulShift, bound: int) -> bool:
    """Whether product and sum may exceed 32 bits."""
    largest = bound * max(abs(mul) for mul in requant.mul)
    return largest + max(abs(add) for add in requant.add) > _INT32_MAX


def _wide_mul_shift(
    bb: BlockBuilder,
    acc: Expr,
    requant: MulShift,
    clip: tuple[int, int],
    name: str,
    axis: int,
) -> Var:
    shape = shape_of(acc)
    parts = (requant.mul, requant.add, requant.shift)
    uniform = len(set(requant.shift)) == 1

    def body(value: te.Tensor, mul: te.Tensor, add: te.Tensor, shift: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            def of(values: te.Tensor) -> Any:
                return tirx.Cast("int64", values[index[axis] if int(values.shape[0]) > 1 else 0])

            # Bounds are written out: TVM assumes that variable shift amounts may be negative.
            amount = tirx.max(tirx.min(of(shift), tirx.const(31, "int64")), tirx.const(0, "int64"))
            if uniform:
                amount = tirx.const(requant.shift[0], "int64")
            scaled = (tirx.Cast("int64", value(*index)) * of(mul) + of(add)) >> amount
            low, high = (tirx.const(bound, "int64") for bound in clip)
            return tirx.Cast("int32", tirx.max(tirx.min(scaled, high), low))

        return te.compute(extents(shape), element, name="requantized")

    inputs = [("acc", shape, "int32")]
    inputs += [
        (role, (len(part),), "int32")
        for role, part in zip(("mul", "add", "shift"), parts, strict=True)
    ]
    func = primitive("mul_shift_requantize", inputs, body, {"axis": axis, "clip": clip})
    args = [acc, *(int_constant(part) for part in parts)]
    return call_primitive(bb, func, args, shape, "int32", name)


def _per_channel(values: tuple[int, ...], rank: int, axis: int) -> Expr:
    if len(values) == 1:
        return int_constant(values[0])
    return int_constant(values, (len(values), *(1,) * (rank - 1 - axis)))


def _tflite_requantize(
    bb: BlockBuilder, acc: Expr, requant: TfliteRequant, name: str, axis: int, bound: int
) -> Var:
    shifts = requant.shift
    left = max(shifts) > 0
    simple = max(shifts) < 0 and bound + 2 ** (-min(shifts) - 1) <= _INT32_MAX
    shape, channels = shape_of(acc), len(shifts)

    def body(value: te.Tensor, multiplier: te.Tensor, shift: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            channel = index[axis] if channels > 1 else 0
            return _tflite_scale(value(*index), multiplier[channel], shift[channel], left, simple)

        return te.compute(extents(shape), element, name="requantized")

    func = primitive(
        "tflite_requantize",
        [
            ("acc", shape, "int32"),
            ("multiplier", (channels,), "int32"),
            ("shift", (channels,), "int32"),
        ],
        body,
        {"axis": axis},
    )
    args = [acc, int_constant(requant.multiplier), int_constant(shifts)]
    return call_primitive(bb, func, args, shape, "int32", name)


def shifted(least: int, most: int, requant: Shift, clip: tuple[int, int]) -> tuple[int, int]:
    """Return the output range of a right shift and a clip, for sums from ``least`` to ``most``."""
    low, high = clip
    return (
        min(max(least >> requant.shift, low), high),
        min(max(most >> requant.shift, low), high),
    )


# ------------------------------------------------------------------------------ pattern


def requantize_pattern(acc: DFPattern) -> tuple[DFPattern, dict[str, DFPattern]]:
    """Return the pattern of any requantization of ``acc``, and its slots."""
    shift = is_const()
    by_shift = is_op("relax.right_shift")(acc, shift)

    mul, add, mul_shift = is_const(), is_const(), is_const()
    product = is_op("relax.add")(is_op("relax.multiply")(acc, mul), add)
    by_product = is_op("relax.right_shift")(product, mul_shift)

    operands = is_tuple([acc, mul, add, mul_shift])
    by_wide = is_op("relax.call_tir")(is_gv(), operands)

    multiplier, exponent, zero_point = is_const(), is_const(), is_const()
    scaled = is_op("relax.call_tir")(is_gv(), is_tuple([acc, multiplier, exponent]))
    by_tflite = is_op("relax.add")(scaled, zero_point)

    factors, onnx_zero_point = is_const(), is_const()
    product = is_op("relax.call_tir")(is_gv(), is_tuple([acc, factors]))
    by_onnx = is_op("relax.add")(product, onnx_zero_point)

    torch_parts, torch_zero_point = [is_const(), is_const(), is_const()], is_const()
    product = is_op("relax.call_tir")(is_gv(), is_tuple([acc, *torch_parts]))
    by_torch = is_op("relax.add")(product, torch_zero_point)

    scaled = by_product | by_shift | by_tflite | by_wide | by_onnx | by_torch
    clip = is_op("relax.clip")(scaled, wildcard(), wildcard())
    slots = {
        "shift": shift,
        "mul": mul,
        "mul_add": add,
        "mul_shift": mul_shift,
        "multiplier": multiplier,
        "exponent": exponent,
        "zero_point": zero_point,
        "factors": factors,
        "onnx_zero_point": onnx_zero_point,
        "torch_multiplier": torch_parts[0],
        "torch_addend": torch_parts[1],
        "torch_shift": torch_parts[2],
        "torch_zero_point": torch_zero_point,
        "clip": clip,
    }
    cast = is_op("relax.astype")(clip)
    return cast, {**slots, "cast": cast}


def _integers(expr: Expr) -> tuple[int, ...]:
    values: Array = expr.value.numpy()
    return tuple(int(value) for value in values.reshape(-1))


def read_requantize(slots: Mapping[str, Expr]) -> Scaling:
    """Return the requantization of a match of `requantize_pattern`.

    Raises:
        IntegerFormError: a per-tensor shift is given per channel.
    """
    if "shift" in slots:
        shifts = _integers(slots["shift"])
        if len(shifts) != 1:
            raise IntegerFormError(
                f"a shift without multiplier has {len(shifts)} values",
                hint="give one shift, or multiply as well",
            )
        return Shift(shifts[0])
    if "mul_shift" in slots:
        return MulShift(
            mul=_integers(slots["mul"]),
            shift=_integers(slots["mul_shift"]),
            add=_integers(slots["mul_add"]),
        )
    if "torch_shift" in slots:
        first, second, third = (
            slots[f"torch_{part}"].value.numpy() for part in ("multiplier", "addend", "shift")
        )
        zero = _integers(slots["torch_zero_point"])[0]
        return read_torch_requantize((first, second, third), zero)
    if "factors" in slots:
        zero = _integers(slots["onnx_zero_point"])[0]
        return read_factors(slots["factors"].value.numpy(), zero)
    return TfliteRequant(
        multiplier=_integers(slots["multiplier"]),
        shift=_integers(slots["exponent"]),
        output_zero_point=_integers(slots["zero_point"])[0],
    )


def read_clip(slots: Mapping[str, Expr]) -> tuple[int, int]:
    """Return the inclusive range of the output."""
    _, low, high = slots["clip"].args
    return int(low.value), int(high.value)
