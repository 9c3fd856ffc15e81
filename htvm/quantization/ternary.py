"""Writing a layer for a ternary core: weights -1, 0, 1, a gain, and a multiplier per channel.

A column of the array sums ``x * w``; its converter gives ``v = clip(floor(sum / gain))``; a
multiplier and an addend per output channel convert v to the output
(`byoc_dory.layers.AnalogRequant`). So the scale of a channel's weights costs nothing, but their
values do: without training for it, ternary weights ruin most networks.  This module limits the
damage: it chooses the threshold and scale with the smallest error, weighted by the inputs' power
(ternary weight networks, Li et al. 2016, with weights), and the gain with the smallest error on
calibration inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import AnalogRequant, Array
from htvm.quantization.annotated import Annotated
from htvm.quantization.effects import bias_of, channel_factors, real_output, weighted
from patterns.ops.analog.products import AnalogConv2d, AnalogDense
from patterns.ops.convolution import Conv2d
from patterns.ops.scaling import converted

if TYPE_CHECKING:
    from byoc_dory.soc.schemes import TernaryScheme
    from htvm.quantization.search import Scales
    from patterns.reading.node import Node

_INT16_MAX = 2**15 - 1
_SAMPLES = 24  # number of inputs that the gain is chosen on
_FEW = 10  # number of positions below which a mean error is not trusted


def ternarize(weight: Array, power: Array) -> tuple[Array, Array]:
    """Return the ternary weights nearest to real ones.

    Minimises ``sum power * (weight - scale * ternary)**2`` for each output channel; weights that
    are already ternary are not changed.

    Args:
        weight: ``[K, C, fy, fx]``.
        power: ``[C]``, mean square of each input channel.

    Returns:
        int8 array of the same shape, and the scales ``[K]``, 0 where all weights are 0.
    """
    flat = weight.reshape(len(weight), -1).astype(np.float64)
    taps = flat.shape[1] // len(power)
    # A silent input gives no information; a small remainder breaks ties.
    cost = np.repeat(np.maximum(power, power.max() * 1e-6 + 1e-12), taps)
    order = np.argsort(-np.abs(flat), axis=1, kind="stable")
    sizes = np.take_along_axis(np.abs(flat), order, axis=1)
    costs = cost[order]
    moment, mass = np.cumsum(costs * sizes, axis=1), np.cumsum(costs, axis=1)
    # Keeping the n largest, the best scale is moment / mass, and it gains moment**2 / mass.
    kept = (moment**2 / mass * (1 + 1e-12 * np.arange(flat.shape[1], 0, -1))).argmax(axis=1)
    rows = np.arange(len(flat))
    scale = moment[rows, kept] / mass[rows, kept]
    smallest = sizes[rows, kept][:, None]
    ternary = np.where((np.abs(flat) >= smallest) & (flat != 0), np.sign(flat), 0)
    return ternary.reshape(weight.shape).astype(np.int8), scale


@dataclass(frozen=True, eq=False)
class _Goal:
    """The desired result of a layer, in steps of its new output.

    Attributes:
        expected: ``[N, ..., K]``, desired values before the clip, including the zero point.
        bias: ``[K]``, addend of its product.
        slope: ``[K]``, value of one step of a column's sum.
        clip: inclusive bounds of the output.
        weight: ``[K]``, weight of a squared error of one step.
    """

    expected: Array
    bias: Array
    slope: Array
    clip: tuple[int, int]
    weight: Array


def ternary_layer(
    net: Annotated,
    node: Node,
    clip: tuple[int, int],
    scales: Scales,
    source: Array,
    x: Array,
) -> AnalogConv2d | AnalogDense:
    """Return one layer written for its ternary core.

    Args:
        net: the source.
        node: the layer in it.
        clip: inclusive bounds of the result.
        scales: scales of all tensors.
        source: the layer's inputs in the source, int8 ``[N, y, x, C]`` or ``[N, C]``.
        x: its inputs in the result, with zero point 0.
    """
    core, layer, read = net.core(node), weighted(node), node.inputs[0]
    assert core is not None and scales.zero_point[read] == 0, node.name
    step_in, step_out = float(scales.step[read][0]), scales.step[node.name]
    few = np.linspace(0, len(x) - 1, min(len(x), _SAMPLES)).astype(np.int64)
    source, x = source[few], x[few]
    power = np.square(x.astype(np.float64)).reshape(-1, x.shape[-1]).mean(axis=0)
    ternary, scale = ternarize(layer.weight, power)
    zero = scales.zero_point[node.name]
    goal = _Goal(
        expected=real_output(node, source, net.zeros[read]) / step_out + zero,
        bias=bias_of(layer, net.zeros[read]) / step_out + zero,
        slope=scale * channel_factors(layer) * step_in / step_out,
        clip=clip,
        weight=np.square(step_out),
    )
    requant = AnalogRequant(1, (1,), (0,), 0, core.rows, core.adc_range)
    written: AnalogConv2d | AnalogDense = AnalogDense(ternary, requant, clip)
    if isinstance(node.op, Conv2d):
        written = AnalogConv2d(ternary, requant, clip, node.op.window)
    return replace(written, requant=_requantization(written.pass_sums(x), goal, core))


def _requantization(sums: list[Array], goal: _Goal, core: TernaryScheme) -> AnalogRequant:
    """Return the gain with the least error, and the multipliers for it."""
    low, high = goal.clip
    target = np.clip(goal.expected, low, high)
    best: tuple[float, AnalogRequant] | None = None
    for exponent in _exponents(sums, core):
        gain = 1 << exponent
        # A converter's step is represented by the middle of its interval.
        middle = converted(sums, gain, core.adc_range) + 0.5 * (1 - 1 / gain) * len(sums)
        slope = goal.slope * gain
        bias = _corrected_bias(goal, middle * slope)
        made = np.clip(middle * slope + bias, low, high)
        error = float((np.square(target - made) * goal.weight).sum())
        if best is None or error < best[0] * (1 - 1e-9):
            addend = bias + slope * 0.5 * (1 - 1 / gain) * len(sums) + 0.5
            best = error, _integers(slope, addend, gain, len(sums), goal.clip, core)
    assert best is not None
    return best[1]


def _exponents(sums: list[Array], core: TernaryScheme) -> range:
    """Return the gains worth trying: from most sums clipped to none."""
    most = max(float(np.abs(part).max()) for part in sums)
    usual = max(float(np.sqrt(np.square(part).mean())) for part in sums)
    high = core.adc_range[1]
    first = int(np.floor(np.log2(max(usual / high, 1.0))))
    last = int(np.ceil(np.log2(max(most / high, 1.0))))
    return range(min(first, core.max_gain), min(last, core.max_gain) + 1)


def _corrected_bias(goal: _Goal, product: Array) -> Array:
    """Return the bias ``[K]`` that makes the mean right where the clip leaves values open.

    Positions count if the value is open in the desired or in the actual result.
    """
    low, high = goal.clip
    axes = tuple(range(product.ndim - 1))
    made = product + goal.bias
    inside = ((goal.expected > low) & (goal.expected < high)) | ((made > low) & (made < high))
    count = inside.sum(axis=axes)
    error = ((goal.expected - made) * inside).sum(axis=axes) / np.maximum(count, 1)
    return np.asarray(goal.bias + np.where(count >= _FEW, error, 0.0))


def _integers(
    slope: Array,
    addend: Array,
    gain: int,
    passes: int,
    clip: tuple[int, int],
    core: TernaryScheme,
) -> AnalogRequant:
    """Return 16-bit multipliers and addends, with the largest shift that allows all of them."""
    reach = np.abs(slope) * max(map(abs, core.adc_range)) * passes + 2
    # Values further out saturate whatever the sum.
    addend = np.clip(addend, clip[0] - reach, clip[1] + reach)
    largest = max(float(np.abs(slope).max()), float(np.abs(addend).max()), 1e-9)
    shift = int(np.clip(np.floor(np.log2(_INT16_MAX / largest)), 0, core.max_shift))
    while shift > 0 and np.rint(largest * 2.0**shift) > _INT16_MAX:
        shift -= 1
    mul, add = (
        np.clip(np.rint(values * 2.0**shift), -_INT16_MAX - 1, _INT16_MAX).astype(np.int64)
        for values in (slope, addend)
    )
    return AnalogRequant(
        gain, tuple(mul.tolist()), tuple(add.tolist()), shift, core.rows, core.adc_range
    )
