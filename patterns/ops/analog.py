"""Convolutions and fully connected layers on an in-memory array: ternary weights, converters.

The array sums a limited number of rows, so a layer runs in *passes* over slices of its input
channels.  Each pass is a product of its own, shifted right (the gain) and clipped to the range of
the converter; the passes are added, and a multiplication, addition, shift and clip follow::

    v = sum over passes of clip(product(x[channels]) >> gain, -32, 31)
    y = int8(clip((v * mul + add) >> shift))

With one pass nothing is sliced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from tvm import relax
from tvm.relax import op as R
from tvm.relax.dpl import is_const, is_op, wildcard

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import (
    AnalogRequant,
    Convolution,
    Dense,
    MulShift,
    Tensor,
    dense_layer,
)
from patterns.match import Match
from patterns.names import emit, tensor_name
from patterns.ops.conv import KERNEL_AXES, image_layer, image_tensor
from patterns.ops.gemm import vector_shape
from patterns.ops.requantize import int_constant, multiply_shift, read_clip
from patterns.primitive import dtype_of, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var
    from tvm.relax.dpl import DFPattern

    from byoc_dory.layers import Array

__all__ = [
    "MAX_PASSES",
    "analog_conv2d",
    "analog_dense",
    "analog_patterns",
    "read_analog_conv2d",
    "read_analog_dense",
]

MAX_PASSES = 8
"""Passes a layer may have: a pattern has a fixed number of parts."""


# ------------------------------------------------------------------------------ builder


def analog_conv2d(
    bb: BlockBuilder,
    x: Expr,
    weight: Array,
    requant: AnalogRequant,
    clip: tuple[int, int] = (-64, 63),
    *,
    name: str,
    strides: tuple[int, int] = (1, 1),
    padding: tuple[int, int, int, int] = (0, 0, 0, 0),
    layout: str = "NHWC",
) -> Var:
    """Write a convolution of int8 ``x`` on an in-memory array in the integer form.

    Args:
        bb: where to write, inside a dataflow block.
        x: int8, ``layout``; what its values may be is for the core's rules to judge.
        weight: int8 ``[K, C, fy, fx]``, likewise.
        requant: gain, converter, factors; its rows say how many channels a pass takes.
        clip: inclusive range of the output.
        name: of the operator.
        strides: (y, x).
        padding: zeros (top, left, bottom, right).
        layout: ``"NHWC"`` or ``"NCHW"``.

    Raises:
        UnsupportedError: too many passes, a channel that has more rows than the array, or a gain
            that is no power of two.
    """
    kernel_layout = "HWIO" if layout == "NHWC" else "OIHW"

    def product(part: Expr, kernel: Array) -> Expr:
        constant = np.ascontiguousarray(kernel.transpose(KERNEL_AXES[kernel_layout]))
        return R.nn.conv2d(
            part,
            relax.const(constant, "int8"),
            strides=strides,
            padding=padding,
            data_layout=layout,
            kernel_layout=kernel_layout,
            out_dtype="int32",
        )

    axis = 3 if layout == "NHWC" else 1
    return _write(bb, x, weight, requant, clip, name, axis, product)


def analog_dense(
    bb: BlockBuilder,
    x: Expr,
    weight: Array,
    requant: AnalogRequant,
    clip: tuple[int, int] = (-64, 63),
    *,
    name: str,
) -> Var:
    """Write a fully connected layer of int8 ``x`` (1, C) on an in-memory array.

    Args:
        bb: where to write, inside a dataflow block.
        x: int8 (1, C).
        weight: int8 ``[K, C]`` or ``[K, C, 1, 1]``.
        requant, clip, name: as of `analog_conv2d`, with its errors.
    """

    def product(part: Expr, kernel: Array) -> Expr:
        constant = np.ascontiguousarray(kernel[:, :, 0, 0].T)
        return R.matmul(part, relax.const(constant, "int8"), out_dtype="int32")

    return _write(bb, x, weight.reshape(*weight.shape[:2], 1, 1), requant, clip, name, 1, product)


def _write(
    bb: BlockBuilder,
    x: Expr,
    weight: Array,
    requant: AnalogRequant,
    clip: tuple[int, int],
    name: str,
    axis: int,
    product: Callable[[Expr, Array], Expr],
) -> Var:
    channels = weight.shape[1]
    each = _channels_of_a_pass(weight, requant, name)
    total: Expr | None = None
    for first in range(0, channels, each):
        end = min(first + each, channels)
        part = x
        if each < channels:
            part = emit(bb, R.strided_slice(x, axes=[axis], begin=[first], end=[end]), name)
        sums = emit(bb, product(part, weight[:, first:end]), name)
        shifted = emit(bb, R.right_shift(sums, int_constant(_shift(requant.gain, name))), name)
        converted = emit(bb, R.clip(shifted, *requant.adc), name)
        total = converted if total is None else emit(bb, R.add(total, converted), name)
    assert total is not None
    factors = MulShift(requant.mul, (requant.shift,), requant.add)
    scaled = multiply_shift(bb, total, factors, name, axis)
    clipped = emit(bb, R.clip(scaled, *clip), name)
    return emit(bb, R.astype(clipped, "int8"), name, last=True)


def _channels_of_a_pass(weight: Array, requant: AnalogRequant, name: str) -> int:
    _, channels, fy, fx = weight.shape
    each = int(requant.rows // (fy * fx))
    passes = -(-channels // each) if each else 0
    if not 0 < passes <= MAX_PASSES:
        raise UnsupportedError(
            f"{channels} channels of a {fy}x{fx} kernel need {passes} passes over {requant.rows} "
            "rows" if each else f"one channel of a {fy}x{fx} kernel exceeds {requant.rows} rows",
            where=f"operator '{name}'",
            hint=f"at most {MAX_PASSES} passes are supported; use another scheme for this layer",
        )  # fmt: skip
    return each


def _shift(gain: int, name: str) -> int:
    if gain < 1 or gain & (gain - 1):
        raise UnsupportedError(
            f"a gain of {gain}", where=f"operator '{name}'", hint="use a power of two"
        )
    return gain.bit_length() - 1


# ------------------------------------------------------------------------------ pattern


def analog_patterns(kind: Literal["conv2d", "dense"]) -> tuple[Match, ...]:
    """Layers of one pass, of two, and so on.

    Slots ``x``, ``mul``, ``mul_add``, ``mul_shift``, ``clip``, ``cast``, and of every pass, with
    its number behind: ``slice`` (of several passes), ``weight``, ``product``, ``gain``, ``adc``.
    """
    return tuple(_match(kind, passes) for passes in range(1, MAX_PASSES + 1))


def _match(kind: Literal["conv2d", "dense"], passes: int) -> Match:
    operator = "relax.matmul" if kind == "dense" else "relax.nn.conv2d"
    x = wildcard()
    slots: dict[str, DFPattern] = {"x": x}
    total: DFPattern | None = None
    for number in range(passes):
        converted, parts = _parts(operator, x, passes > 1)
        slots |= {f"{role}{number}": part for role, part in parts.items()}
        total = converted if total is None else is_op("relax.add")(total, converted)
    mul, add, shift = is_const(), is_const(), is_const()
    product = is_op("relax.add")(is_op("relax.multiply")(total, mul), add)
    clip = is_op("relax.clip")(is_op("relax.right_shift")(product, shift), wildcard(), wildcard())
    cast = is_op("relax.astype")(clip)
    slots |= {"mul": mul, "mul_add": add, "mul_shift": shift, "clip": clip, "cast": cast}
    return Match(kind, cast, slots)


def _parts(operator: str, x: DFPattern, sliced: bool) -> tuple[DFPattern, dict[str, DFPattern]]:
    """One pass, and its slots."""
    part = x
    slots: dict[str, DFPattern] = {}
    if sliced:
        part = is_op("relax.strided_slice")(x, wildcard(), wildcard(), wildcard())
        slots["slice"] = part
    weight, gain = is_const(), is_const()
    product = is_op(operator)(part, weight)
    shifted = is_op("relax.right_shift")(product, gain)
    converted = is_op("relax.clip")(shifted, wildcard(), wildcard())
    slots |= {"weight": weight, "product": product, "gain": gain, "adc": converted}
    return converted, slots


# ------------------------------------------------------------------------------ reader


def read_analog_conv2d(slots: Mapping[str, Expr]) -> Convolution:
    """The layer of a match of ``analog_patterns("conv2d")``, axes normalised.

    Raises:
        IntegerFormError: if its passes differ in more than their channels, or leave some out.
    """
    products = _products(slots)
    name = tensor_name(products[0])
    attrs = products[0].attrs
    layout, kernel_layout = str(attrs.data_layout), str(attrs.kernel_layout)
    axis = {"NHWC": 3, "NCHW": 1}.get(layout)
    if axis is None or kernel_layout not in KERNEL_AXES or int(attrs.groups) != 1:
        raise IntegerFormError(
            f"layouts {layout} and {kernel_layout} with {attrs.groups} groups",
            where=f"operator '{name}'",
            hint=f"NHWC or NCHW with one of {', '.join(KERNEL_AXES)}, one group",
        )
    _check_alike(name, [(str(call.attrs), shape_of(call)) for call in products], "sizes")
    inverse = np.argsort(KERNEL_AXES[kernel_layout])
    weights = [slot.value.numpy().transpose(inverse) for slot in _slots(slots, "weight")]
    weight = np.ascontiguousarray(np.concatenate(weights, axis=1))
    x = slots["slice0"].args[0] if "slice0" in slots else products[0].args[0]
    source = image_tensor(tensor_name(slots["x"]), x, layout, name, dtype_of(x))
    output = image_tensor(name, products[0], layout, name, dtype_of(slots["cast"]))
    _check_slices(slots, name, axis, [part.shape[1] for part in weights], source.shape[0])
    requant = _read_requant(slots, name, int(weights[0][0].size))
    return image_layer(products[0], source, output, weight, None, requant, read_clip(slots))


def read_analog_dense(slots: Mapping[str, Expr]) -> Dense:
    """The layer of a match of ``analog_patterns("dense")``, weight as ``[K, C, 1, 1]``.

    Raises:
        IntegerFormError: as `read_analog_conv2d`, or if the input is not (1, C).
    """
    products = _products(slots)
    name = tensor_name(products[0])
    x = slots["slice0"].args[0] if "slice0" in slots else products[0].args[0]
    shape = vector_shape(x, name)
    matrices = [slot.value.numpy().T for slot in _slots(slots, "weight")]
    _check_slices(slots, name, 1, [part.shape[1] for part in matrices], shape[1])
    matrix = np.ascontiguousarray(np.concatenate(matrices, axis=1))
    source = Tensor(tensor_name(slots["x"]), shape[1:], dtype_of(x), "C")
    requant = _read_requant(slots, name, matrices[0].shape[1])
    layer = dense_layer(name, source, name, matrix, None, requant=requant, clip=read_clip(slots))
    return replace(layer, output=Tensor(name, (layer.K,), dtype_of(slots["cast"]), "C"))


def _slots(slots: Mapping[str, Expr], role: str) -> list[Expr]:
    """One role of all passes, in order."""
    numbers = range(sum(key.startswith("product") for key in slots))
    return [slots[f"{role}{number}"] for number in numbers]


def _products(slots: Mapping[str, Expr]) -> list[Expr]:
    return _slots(slots, "product")


def _read_requant(slots: Mapping[str, Expr], name: str, rows: int) -> AnalogRequant:
    """Gain, converter and factors; ``rows`` are those of the first pass, which is the largest."""
    gains = [_integers(part) for part in _slots(slots, "gain")]
    ranges = [(int(part.args[1].value), int(part.args[2].value)) for part in _slots(slots, "adc")]
    _check_alike(name, gains, "gains")
    _check_alike(name, ranges, "converters")
    shifts = _integers(slots["mul_shift"])
    if len(gains[0]) != 1 or len(shifts) != 1 or not 0 <= gains[0][0] <= 31:
        raise IntegerFormError(
            f"gains 2**{list(gains[0])} and shifts {list(shifts)}",
            where=f"operator '{name}'",
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


def _check_alike(name: str, values: Sequence[object], what: str) -> None:
    if any(value != values[0] for value in values):
        raise IntegerFormError(
            f"passes of different {what}: {list(values)}",
            where=f"operator '{name}'",
            hint="write the layer with the builders of the package 'patterns'",
        )


def _check_slices(
    slots: Mapping[str, Expr], name: str, axis: int, sizes: Sequence[int], channels: int
) -> None:
    """Passes must take the channels one after another, all but the last equally many."""
    if len(sizes) == 1:
        return
    found = [
        tuple(int(part.args[index].fields[0].value) for index in (1, 2, 3))
        for part in _slots(slots, "slice")
        if all(len(part.args[index].fields) == 1 for index in (1, 2, 3))
    ]
    ends = [min(sizes[0] * (number + 1), channels) for number in range(len(sizes))]
    wanted = [(axis, sizes[0] * number, end) for number, end in enumerate(ends)]
    if found != wanted or ends[-1] != channels:
        raise IntegerFormError(
            f"passes over (axis, first, end) {found} of {channels} channels",
            where=f"operator '{name}'",
            hint="slice the channels one after another, all but the last pass equally many",
        )
