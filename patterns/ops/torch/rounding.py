"""The requantization of quantized programs of torch, in integers.

torch computes a layer in float32: dequantized inputs and weights, products and sums in an order
that its kernels choose, a bias of reals, and a multiplication by the reciprocal of the output's
scale, which is rounded to the nearest integer, halves to the even one.  The definition here is the
same without float32: a product with a multiplier of 31 bits, to which the part of the bias that is
no whole step of the sum is added unrounded, rounded once.  It equals torch wherever torch is exact,
which it is if all scales are powers of two and the bias has few fraction bits; elsewhere both
differ by one step in a few of a million elements, as torch's own kernels do among themselves.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax, te, tirx

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import TorchRequant
from patterns.primitive import call_primitive, extents, primitive, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from byoc_dory.layers import Array

BITS = 31
"""Bits of a multiplier."""

_LARGEST_SHIFT = 61
_WORD = 32
_FURTHEST = 3  # bits by which multipliers of channels may be shorter to have one shift
HALF_WORD = 16
"""Bits of the lower part of a sum whose product with a multiplier may leave 64 bits."""

REACH = 1 << 30
"""Results before the zero point is added are kept within this magnitude, far beyond any clip."""


def requantization(ratios: Array, fractions: Array, zero_point: int) -> TorchRequant:
    """Return the requantization of sums.

    Args:
        ratios: s_in * s_w / s_out, float64, one or one per output channel.
        fractions: what is added to each channel's sums behind the point, in their own steps,
            float64, one or one per channel; at most 1/2 in magnitude.
        zero_point: of the output.

    Raises:
        UnsupportedError: a ratio is not positive and finite, or is 2**30 or more.
    """
    if not np.isfinite(ratios).all() or (ratios <= 0).any():
        raise UnsupportedError(f"a scale ratio of {ratios.min()}", hint="scales must be positive")
    if ratios.max() >= 2.0**30:
        raise UnsupportedError(f"a scale ratio of {ratios.max():g}", hint="it must be below 2**30")
    shifts = [_shift_of(float(ratio)) for ratio in ratios]
    if max(shifts) - min(shifts) <= _FURTHEST:
        shifts = [min(shifts)] * len(shifts)
    pairs = zip(ratios, shifts, strict=True)
    multipliers = [round(math.ldexp(float(ratio), shift)) for ratio, shift in pairs]
    size = max(len(multipliers), len(fractions))
    factors = np.broadcast_to(np.asarray(multipliers, "int64"), (size,))
    addends = [round(m * float(part)) for m, part in zip(factors.tolist(), fractions, strict=False)]
    if any(addends) and len(addends) < size:
        addends = addends * size
    if any(addends):
        multipliers, shifts = factors.tolist(), np.broadcast_to(shifts, (size,)).tolist()
    return TorchRequant(
        tuple(multipliers), tuple(shifts), tuple(addends) if any(addends) else (0,), zero_point
    )


def _shift_of(ratio: float) -> int:
    """Return the shift with which a ratio's multiplier has `BITS` bits, or the largest one."""
    _, exponent = math.frexp(ratio)
    shift = BITS - exponent
    if round(math.ldexp(ratio, shift)) >> BITS:
        shift -= 1
    return min(shift, _LARGEST_SHIFT)


def has_ties(requant: TorchRequant, bound: int) -> bool:
    """Whether a sum of at most this magnitude is half a step from two integers.

    Only then does it matter whether halves are rounded up or to the even integer.
    """
    size = max(len(requant.multiplier), len(requant.addend))
    rows = (requant.multiplier, requant.shift, requant.addend)
    columns = zip(*(row * (size if len(row) == 1 else 1) for row in rows), strict=True)
    return any(_has_tie(m, shift, addend, bound) for m, shift, addend in set(columns))


def _has_tie(multiplier: int, shift: int, addend: int, bound: int) -> bool:
    # multiplier * sum = 2**(shift - 1) - addend, modulo 2**shift
    rest, modulus = ((1 << (shift - 1)) - addend) % (1 << shift), 1 << shift
    if multiplier == 0:
        return rest == 0
    common = math.gcd(multiplier, modulus)
    if rest % common:
        return False
    modulus //= common
    first = rest // common * pow(multiplier // common, -1, modulus) % modulus
    return min(first, modulus - first) <= bound


def torch_requantize(
    bb: BlockBuilder, acc: Expr, requant: TorchRequant, name: str, axis: int, bound: int
) -> Var:
    """Scale an int32 tensor; zero point, clip and cast come afterwards.

    The constants are the multipliers (int32), the addends with half a step (int64), and the shifts
    (int32).

    Args:
        bb: builder to write with.
        acc: the accumulator, int32.
        requant: requantization.
        name: name of the operator that it belongs to.
        axis: channel axis of ``acc``.
        bound: largest possible magnitude of ``acc``.

    Raises:
        UnsupportedError: a product could leave 64 bits.
    """
    shape, even = shape_of(acc), has_ties(requant, bound)
    half = [1 << (shift - 1) for shift in requant.shift]
    rows = len(half) if len(requant.addend) == 1 else len(requant.addend)
    halves = np.broadcast_to(np.asarray(half, "int64"), (rows,))
    addends = np.asarray(requant.addend, "int64") + halves
    largest = bound * max(requant.multiplier) + int(np.abs(addends).max())
    if largest >= 1 << 62:
        raise UnsupportedError("a sum times its multiplier that leaves 64 bits")
    high = min(requant.shift) >= _WORD
    saturate = not high and largest >> min(requant.shift) >= REACH
    uniform = requant.shift[0] if len(set(requant.shift)) == 1 else None

    def body(
        value: te.Tensor, multipliers: te.Tensor, added: te.Tensor, shifts: te.Tensor
    ) -> te.Tensor:
        def element(*index: Any) -> Any:
            def of(values: te.Tensor) -> Any:
                return values[index[axis] if int(values.shape[0]) > 1 else 0]

            product = _wide(value(*index)) * _wide(of(multipliers)) + of(added)
            # Bounds are written out: TVM assumes that variable shift amounts may be negative.
            amount = of(shifts) if uniform is None else tirx.const(uniform, "int32")
            if uniform is None:
                amount = tirx.max(tirx.min(amount, tirx.const(62, "int32")), tirx.const(1, "int32"))
            if high:
                word = tirx.Cast("int32", product >> tirx.const(_WORD, "int64"))
                near = word >> (amount - tirx.const(_WORD, "int32"))
            else:
                whole = product >> _wide(amount)
                if saturate:
                    limit = tirx.const(REACH, "int64")
                    whole = tirx.max(tirx.min(whole, limit), -limit)
                near = tirx.Cast("int32", whole)
            if not even:
                return near
            below = product & ((tirx.const(1, "int64") << _wide(amount)) - tirx.const(1, "int64"))
            tie = tirx.Cast("int32", below == tirx.const(0, "int64"))
            return near - (near & tie)

        return te.compute(extents(shape), element, name="requantized")

    constants = [
        np.asarray(requant.multiplier, "int32"),
        addends,
        np.asarray(requant.shift, "int32"),
    ]
    inputs = [("acc", shape, "int32")]
    inputs += [
        (role, part.shape, part.dtype.name)
        for role, part in zip(("multiplier", "addend", "shift"), constants, strict=True)
    ]
    func = primitive("torch_requantize", inputs, body, {"axis": axis})
    args = [acc, *(relax.const(part, part.dtype.name) for part in constants)]
    return call_primitive(bb, func, args, shape, "int32", name)


def nearest_product(
    value: Any, factor: Any, addend: Any, amount: Any, *, halved: bool, even: bool
) -> Any:
    """Return a sum times its multiplier, plus an addend, shifted right to the nearest integer.

    Args:
        value, factor, addend, amount: int64; the addend includes half a step.
        halved: whether the product may leave 64 bits, so that the lower and the upper part of the
            sum are multiplied one by one; the amount then is above `HALF_WORD`.
        even: whether halves occur, which go to the even integer.
    """
    bits, rest = tirx.const(HALF_WORD, "int64"), tirx.const(0, "int64")
    if halved:
        mask = tirx.const((1 << HALF_WORD) - 1, "int64")
        low = (value & mask) * factor + (addend & mask)
        product = (value >> bits) * factor + (addend >> bits) + (low >> bits)
        rest, amount = low & mask, amount - bits
    else:
        product = value * factor + addend
    near = product >> amount
    if not even:
        return near
    one = tirx.const(1, "int64")
    below = (product & ((one << amount) - one)) | rest
    return near - (near & _wide(below == tirx.const(0, "int64")))


def read_torch_requantize(parts: tuple[Array, Array, Array], zero_point: int) -> TorchRequant:
    """Return the requantization that was written with constants (see `torch_requantize`)."""
    multipliers, addends, shifts = (tuple(int(n) for n in part.reshape(-1)) for part in parts)
    halves = [1 << (shift - 1) for shift in shifts]
    halves = halves * (len(addends) if len(halves) == 1 else 1)
    rest = tuple(
        a - h
        for a, h in zip(addends * (len(halves) if len(addends) == 1 else 1), halves, strict=True)
    )
    return TorchRequant(multipliers, shifts, rest if any(rest) else (0,), zero_point)


def _wide(value: Any) -> Any:
    return tirx.Cast("int64", value)
