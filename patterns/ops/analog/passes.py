"""Passes over an in-memory array, which sums a limited number of rows.

A layer runs in *passes* over slices of its input channels.  Each pass is a product, shifted right
(the gain) and clipped to the range of the converter; the passes are added, followed by a
multiplication, addition, shift and clip::

    v = sum over passes of clip(product(x[channels]) >> gain, -32, 31)
    y = int8(clip((v * mul + add) >> shift))

With one pass there is no slice.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from tvm.relax import op as R
from tvm.relax.dpl import is_const, is_op, wildcard

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import AnalogRequant, Array, MulShift
from patterns.names import emit
from patterns.op import Range, Scale, TensorType
from patterns.ops.requantize import check_int32, int_constant, multiply_shift
from patterns.ops.scaling import converted, requantized
from patterns.ops.weighted import WeightedOp
from patterns.primitive import shape_of
from patterns.relax_op import Match

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var
    from tvm.relax.dpl import DFPattern

MAX_PASSES = 8
"""Largest number of passes of a layer: a pattern has a fixed number of parts."""


@dataclass(frozen=True, eq=False)
class InPasses(WeightedOp):
    """Base of products of int8 with constant weights on an in-memory array.

    The core's rules decide which weights and inputs are allowed.

    Attributes:
        weight: int8 ``[K, C, fy, fx]``, or ``[K, C]``.
        requant: gain, converter and factors; its rows tell how many channels a pass takes.
        clip: inclusive range of the output.
    """

    scale = Scale.FREE

    requant: AnalogRequant
    clip: Range = (-64, 63)

    @property
    def filters(self) -> Array:
        """The weight as ``[K, C, fy, fx]``."""
        k, channels, *window = self.weight.shape
        return self.weight.reshape(k, channels, *(window or (1, 1)))

    @abstractmethod
    def product(self, part: Expr, weight: Array) -> Expr:
        """Return one pass: the int32 product of some channels with their weights."""

    @property
    @abstractmethod
    def channel_axis(self) -> int:
        """The axis of the input's channels."""

    @abstractmethod
    def result_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the result for an input of this shape."""

    def result_of(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `Op.result_of`.

        Raises:
            UnsupportedError: too many passes, a channel with more rows than the array has, or a
                gain that is not a power of two.
        """
        self._channels_of_a_pass()
        _shift(self.requant.gain)
        for numbers in (self.requant.mul, self.requant.shift, self.requant.add):
            check_int32(numbers)
        return TensorType(self.result_shape(inputs[0].shape))

    def write(self, bb: BlockBuilder, inputs: Sequence[Expr], name: str) -> Var:
        """See `Op.write`; errors as for `result_of`."""
        axis, requant, channels = self.channel_axis, self.requant, self.weight.shape[1]
        each = self._channels_of_a_pass()
        total: Expr | None = None
        for first in range(0, channels, each):
            end = min(first + each, channels)
            part = inputs[0]
            if each < channels:
                piece = R.strided_slice(inputs[0], axes=[axis], begin=[first], end=[end])
                part = emit(bb, piece, name)
            sums = emit(bb, self.product(part, self.filters[:, first:end]), name)
            shifted = emit(bb, R.right_shift(sums, int_constant(_shift(requant.gain))), name)
            converted = emit(bb, R.clip(shifted, *requant.adc), name)
            total = converted if total is None else emit(bb, R.add(total, converted), name)
        assert total is not None
        factors = MulShift(requant.mul, (requant.shift,), requant.add)
        scaled = multiply_shift(bb, total, factors, name, axis)
        clipped = emit(bb, R.clip(scaled, *self.clip), name)
        return emit(bb, R.astype(clipped, "int8"), name, last=True)

    def pass_sums(self, x: Array, pad: int = 0) -> list[Array]:
        """Return the int64 sums ``[N, ..., K]`` of each pass; see `WeightedOp.accumulate`.

        A pass takes as many whole input channels as the rows hold.
        """
        channels = self.requant.rows // int(np.prod(self.weight.shape[2:]))
        return [
            replace(self, weight=self.weight[:, first : first + channels])
            .accumulate(x[..., first : first + channels], pad)
            .astype(np.int64)
            for first in range(0, self.weight.shape[1], channels)
        ]

    def compute(self, inputs: Sequence[Array], pad: int = 0) -> Array:
        """See `WeightedOp.compute`."""
        sums = converted(self.pass_sums(inputs[0], pad), self.requant.gain, self.requant.adc)
        return requantized(sums, self.requant, self.clip)

    def _channels_of_a_pass(self) -> int:
        _, channels, fy, fx = self.filters.shape
        rows = self.requant.rows
        each = int(rows // (fy * fx))
        passes = -(-channels // each) if each else 0
        if not 0 < passes <= MAX_PASSES:
            raise UnsupportedError(
                f"{channels} channels of a {fy}x{fx} kernel need {passes} passes over {rows} rows"
                if each else f"one channel of a {fy}x{fx} kernel exceeds {rows} rows",
                hint=f"at most {MAX_PASSES} passes are supported; use another scheme for this "
                "layer",
            )  # fmt: skip
        return each

    @classmethod
    def matches_of(cls, call: str) -> tuple[Match, ...]:
        """Return the patterns of layers with one pass, two passes, and so on.

        Slots ``x``, ``mul``, ``mul_add``, ``mul_shift``, ``clip``, ``cast``, and for every pass,
        with its number appended: ``slice`` (if there are several passes), ``weight``, ``product``,
        ``gain``, ``adc``.

        Args:
            call: name of the operation that a pass calls, such as ``relax.matmul``.
        """
        return tuple(_match(cls.kind, call, passes) for passes in range(1, MAX_PASSES + 1))


def _shift(gain: int) -> int:
    if gain < 1 or gain & (gain - 1):
        raise UnsupportedError(f"a gain of {gain}", hint="use a power of two")
    return gain.bit_length() - 1


# ------------------------------------------------------------------------------ pattern


def _match(kind: str, call: str, passes: int) -> Match:
    x = wildcard()
    slots: dict[str, DFPattern] = {"x": x}
    total: DFPattern | None = None
    for number in range(passes):
        converted, parts = _parts(call, x, passes > 1)
        slots |= {f"{role}{number}": part for role, part in parts.items()}
        total = converted if total is None else is_op("relax.add")(total, converted)
    mul, add, shift = is_const(), is_const(), is_const()
    product = is_op("relax.add")(is_op("relax.multiply")(total, mul), add)
    clip = is_op("relax.clip")(is_op("relax.right_shift")(product, shift), wildcard(), wildcard())
    cast = is_op("relax.astype")(clip)
    slots |= {"mul": mul, "mul_add": add, "mul_shift": shift, "clip": clip, "cast": cast}
    return Match(kind, cast, slots)


def _parts(call: str, x: DFPattern, sliced: bool) -> tuple[DFPattern, dict[str, DFPattern]]:
    """Return the pattern of one pass, and its slots."""
    part = x
    slots: dict[str, DFPattern] = {}
    if sliced:
        part = is_op("relax.strided_slice")(x, wildcard(), wildcard(), wildcard())
        slots["slice"] = part
    weight, gain = is_const(), is_const()
    product = is_op(call)(part, weight)
    shifted = is_op("relax.right_shift")(product, gain)
    converted = is_op("relax.clip")(shifted, wildcard(), wildcard())
    slots |= {"weight": weight, "product": product, "gain": gain, "adc": converted}
    return converted, slots


# ------------------------------------------------------------------------------ reader


def passes_of(slots: Mapping[str, Expr], role: str) -> list[Expr]:
    """Return the parts of all passes with one role, in order."""
    numbers = range(sum(key.startswith("product") for key in slots))
    return [slots[f"{role}{number}"] for number in numbers]


def read_passes(
    slots: Mapping[str, Expr], weights: Sequence[Array], axis: int
) -> tuple[Array, AnalogRequant]:
    """Return the weight ``[K, C, fy, fx]`` and the requantization of all passes.

    Args:
        slots: slots of a match of `InPasses.matches_of`.
        weights: weights of each pass, ``[K, C, fy, fx]``.
        axis: axis of the input's channels.

    Raises:
        IntegerFormError: the passes differ in more than their channels, or leave some out.
    """
    sizes = [weight.shape[1] for weight in weights]
    source = slots["slice0"].args[0] if "slice0" in slots else slots["product0"].args[0]
    _check_slices(slots, axis, sizes, shape_of(source)[axis])
    requant = _read_requant(slots, int(weights[0][0].size))
    return np.asarray(np.concatenate(weights, axis=1), order="C"), requant


def _read_requant(slots: Mapping[str, Expr], rows: int) -> AnalogRequant:
    """Return gain, converter and factors; ``rows`` are those of the first, largest pass."""
    gains = [_integers(part) for part in passes_of(slots, "gain")]
    ranges = [
        (int(part.args[1].value), int(part.args[2].value)) for part in passes_of(slots, "adc")
    ]
    check_alike(gains, "gains")
    check_alike(ranges, "converters")
    shifts = _integers(slots["mul_shift"])
    if len(gains[0]) != 1 or len(shifts) != 1 or not 0 <= gains[0][0] <= 31:
        raise IntegerFormError(
            f"gains 2**{list(gains[0])} and shifts {list(shifts)}",
            hint="give one of each for the whole layer, 0 to 31",
        )
    return AnalogRequant(
        gain=1 << gains[0][0],
        mul=_integers(slots["mul"]),
        add=_integers(slots["mul_add"]),
        shift=shifts[0],
        rows=rows,
        adc=ranges[0],
    )


def _integers(expr: Expr) -> tuple[int, ...]:
    return tuple(int(value) for value in expr.value.numpy().reshape(-1))


def check_alike(values: Sequence[object], what: str) -> None:
    """Refuse passes that differ in ``what``.

    Raises:
        IntegerFormError: the values differ.
    """
    if any(value != values[0] for value in values):
        raise IntegerFormError(
            f"passes of different {what}: {list(values)}",
            hint="write the layer with the classes of the package 'patterns'",
        )


def _check_slices(
    slots: Mapping[str, Expr], axis: int, sizes: Sequence[int], channels: int
) -> None:
    """Passes must take the channels one after another, all but the last equally many."""
    if len(sizes) == 1:
        return
    found = [
        tuple(int(part.args[index].fields[0].value) for index in (1, 2, 3))
        for part in passes_of(slots, "slice")
        if all(len(part.args[index].fields) == 1 for index in (1, 2, 3))
    ]
    ends = [min(sizes[0] * (number + 1), channels) for number in range(len(sizes))]
    wanted = [(axis, sizes[0] * number, end) for number, end in enumerate(ends)]
    if found != wanted or ends[-1] != channels:
        raise IntegerFormError(
            f"passes over (axis, first, end) {found} of {channels} channels",
            hint="slice the channels one after another, all but the last pass equally many",
        )
