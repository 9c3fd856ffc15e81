"""The changes to a model that would gain most, each tried on the layer that it changes.

Each layer is varied slightly: other kernels, strides and channels, or a full instead of a depthwise
convolution.  The rules check each variant, and the cost model estimates it with its own best tile
on the core that the layer runs on; the difference is the gain.  Only evaluated changes are listed;
whether the changed network keeps its accuracy, only training can show.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import ModelError, TilingError
from byoc_dory.layers import Convolution, Layer, Weighted, conv2d_layer
from byoc_dory.verdict import CPU
from htvm.firmware.sizes import tensor_bytes
from htvm.tools.explain.step_costs import build_costs
from htvm.tools.explain.variants import is_resizable, resized
from htvm.tools.report.verdicts import Improvement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from byoc_dory.plan import LayerPlan
    from htvm.compiled import Compiled
    from htvm.tools.explain.step_costs import BuildCosts


# A larger relative change of channels or of a kernel's area would be a different network, and so
# would a kernel of other proportions.
_LARGEST_CHANGE = 0.3
_SIDES = (0.6, 1.5)
_BLOCK = 16
# Of the variants that gain about as much as the best one, the one with the smallest change is
# listed.
_ABOUT = 0.95
# A change whose cycles fall no faster than its products, by this factor, fits the core no better.
_SLACK = 1.05


@dataclass(frozen=True, eq=False)
class Variant:
    """A layer with other sizes.

    Attributes:
        change: the change, as an imperative phrase, e.g. "replace the 10x4 kernel by 7x5".
        layer: the changed layer.
        reshapes: whether the shape of its input or output changes.
        is_plain: whether it gains only because less is computed; listed only if nothing else gains.
    """

    change: str
    layer: Layer
    reshapes: bool
    is_plain: bool = False

    def distance(self, layer: Layer) -> int:
        """Return the distance from the original layer, as a difference in multiply-accumulates."""
        return abs(self.layer.macs - layer.macs)


def improvements(
    compiled: Compiled, count: int = 3, costs: BuildCosts | None = None
) -> tuple[Improvement, ...]:
    """Return the changes that save most cycles, the best first; one per layer.

    Those that only compute less come after the others: they make the network smaller.

    Layers of the same geometry that take as long on the same core are changed together.

    Args:
        compiled: the compiled model.
        count: largest number of changes.
        costs: of the build's steps, if known.
    """
    if count < 1:
        return ()
    costs = build_costs(compiled) if costs is None else costs
    judge = _Judge(compiled, costs)
    groups = sorted(_groups(compiled, judge), key=lambda group: -judge.most_gain(group))
    fitting: list[Improvement] = list(removals(compiled, costs))
    smaller: list[Improvement] = []
    for names in groups:
        fitting.sort(key=lambda entry: -entry.gain)
        # No change can save more than all cycles of its layers, so the remaining ones cannot be
        # among the best.
        if len(fitting) >= count and fitting[count - 1].gain >= judge.most_gain(names):
            break
        best = judge.best_improvement(names)
        if best is not None:
            (smaller if best[0] else fitting).append(best[1])
    for entries in (fitting, smaller):
        entries.sort(key=lambda entry: -entry.gain)
    return tuple([*fitting, *smaller][:count])


# ------------------------------------------------------------------------------ variants


def variants_of(layer: Layer) -> Iterator[Variant]:
    """Yield layers similar to this one, the smaller changes first."""
    if not is_resizable(layer):
        if isinstance(layer, Convolution):
            yield from _ungrouped(layer)
        return
    yield from _other_channels(layer)
    if isinstance(layer, Convolution):
        yield from _other_kernels(layer)
        yield from _other_strides(layer)
        if layer.depthwise:
            yield from _full_variants(layer)


def _other_channels(layer: Layer) -> Iterator[Variant]:
    """Yield variants with the nearest numbers of channels that are multiples of powers of two."""
    for name, size in (("K", layer.K), ("C", layer.C)):
        if name == "C" and layer.groups > 1:
            continue
        for step in (4, 8, 16, 32, 64):
            for other in (size // step * step, -(-size // step) * step):
                if other and other != size and abs(other - size) <= _LARGEST_CHANGE * size:
                    words = f"make {name} a multiple of {step}: {other} instead of {size}"
                    yield Variant(words, _with_channels(layer, name, other), True)
        fewer = size - _BLOCK
        if size % _BLOCK == 0 and 0 < fewer and _BLOCK <= _LARGEST_CHANGE * size:
            words = f"make {name} {fewer} instead of {size}"
            yield Variant(words, _with_channels(layer, name, fewer), True, is_plain=True)


def _with_channels(layer: Layer, name: str, channels: int) -> Layer:
    return resized(layer, K=channels) if name == "K" else resized(layer, C=channels)


def _other_kernels(layer: Layer) -> Iterator[Variant]:
    """Yield variants with kernels of about the same area, not larger than the map."""
    area = layer.fy * layer.fx
    for fy, fx in product(_nearby_sizes(layer.fy), _nearby_sizes(layer.fx)):
        if (fy, fx) == (layer.fy, layer.fx) or abs(fy * fx - area) > _LARGEST_CHANGE * area:
            continue
        try:
            changed = resized(layer, kernel=(fy, fx))
        except ModelError:
            continue
        words = f"replace the {layer.fy}x{layer.fx} kernel by {fy}x{fx}"
        yield Variant(words, changed, changed.output.shape != layer.output.shape)


def _nearby_sizes(side: int) -> range:
    return range(max(1, math.ceil(_SIDES[0] * side)), int(_SIDES[1] * side) + 1)


def _other_strides(layer: Layer) -> Iterator[Variant]:
    y, x = layer.stride
    for stride in sorted({min(y, x), max(y, x), 2}):
        if (stride, stride) == (y, x) or stride < min(y, x):
            continue
        if (y, x) == (1, 1):
            # Computing fewer outputs would compute a different function.
            continue
        try:
            changed = resized(layer, stride=(stride, stride))
        except ModelError:
            continue
        words = f"replace the stride {y}x{x} by {stride}x{stride}"
        yield Variant(words, changed, changed.output.shape != layer.output.shape)


def _full_variants(layer: Convolution) -> Iterator[Variant]:
    """Yield a convolution over all channels, which can compute everything a depthwise one can."""
    words = "make the depthwise convolution a full one"
    yield Variant(words, _over_all_channels(layer, layer.K), False)


def _ungrouped(layer: Convolution) -> Iterator[Variant]:
    if layer.dilation == (1, 1):
        words = f"make the convolution of {layer.groups} groups one of a single group"
        yield Variant(words, _over_all_channels(layer, layer.C), False)


def _over_all_channels(layer: Convolution, channels: int) -> Layer:
    return conv2d_layer(
        layer.name, layer.inputs[0], layer.output.name,
        np.zeros((layer.K, channels, layer.fy, layer.fx), np.int8), layer.bias,
        stride=layer.stride, pad=layer.pad, requant=layer.requant, clip=layer.clip,
    )  # fmt: skip


# ------------------------------------------------------------------------------ gains


def _groups(compiled: Compiled, judge: _Judge) -> list[tuple[str, ...]]:
    """Group layers of the same geometry and kind of numbers, on the same core, that take as long.

    They have the same resident tensors.
    """
    plans = _plans(compiled)
    groups: dict[tuple[object, ...], list[str]] = {}
    for name, layer in compiled.dispatch.layers.items():
        if name in compiled.rewritten or name in judge.together:
            # Its sizes are not those of a layer of the network, or what it takes alone is unknown.
            continue
        plan = plans.get(name)
        stays = None if plan is None else (plan.resident_inputs, plan.resident_output)
        # On the host, the neighbours of a layer determine its gain elsewhere.
        types = tuple(tensor.dtype for tensor in (*layer.inputs, layer.output))
        numbers = (types, layer.clip, type(layer.requant), judge.now(name))
        key = (compiled.dispatch.placement[name], layer.geometry, stays, numbers)
        groups.setdefault(key, []).append(name)
    return [tuple(names) for names in groups.values()]


def _plans(compiled: Compiled) -> dict[str, LayerPlan]:
    return {
        kernel.layer_name: kernel.plan
        for _, kernel in compiled.kernels.values()
        if kernel.plan is not None
    }


class _Judge:
    """Estimates of layers and of their variants."""

    def __init__(self, compiled: Compiled, costs: BuildCosts) -> None:
        self._compiled = compiled
        self._costs = costs
        self.together = costs.shares.keys()
        self._soc = compiled.target.soc
        self._host = compiled.cost.host
        self._plans = _plans(compiled)
        self._predicted: Counter[str] = Counter()
        for _, kernel in compiled.kernels.values():
            if kernel.layer is not None:
                self._predicted[kernel.layer_name] += kernel.predicted_cycles
        program = compiled.program
        taken = program.constant_bytes + program.plan.peak + self._soc.host.stack
        taken += tensor_bytes((*program.l2_inputs, *program.outputs))
        self._room = self._soc.memory("L2").size - taken
        self._converted: dict[str, int] = {}
        for step in costs.steps:
            if step.kind in ("prologue", "epilogue"):
                name = "+".join(step.layers)
                self._converted[name] = self._converted.get(name, 0) + (step.cycles or 0)

    def most_gain(self, names: tuple[str, ...]) -> int:
        """An upper bound of any change's gain: all cycles of the layers, layouts included."""
        return len(names) * (self.now(names[0]) + self._converted.get(names[0], 0))

    def now(self, name: str) -> int:
        """Return the cycles of a layer without changes, on its current core."""
        if name in self._predicted:
            return self._predicted[name]
        if name in self._costs.layers:
            return self._costs.layers[name]
        return self._host.layer(self._compiled.dispatch.layers[name])

    def best_improvement(self, names: tuple[str, ...]) -> tuple[bool, Improvement] | None:
        """Return the variant of these layers that gains most, if any gains.

        It is preceded by whether it only computes less.
        """
        name = names[0]
        layer = self._compiled.dispatch.layers[name]
        candidates: list[tuple[int, Variant, Improvement]] = []
        for variant in variants_of(layer):
            answer = self._answer(name, variant.layer)
            if answer is None or answer[0] <= answer[1]:
                continue
            before, after, where = answer
            number = self._room_for(variant.layer, layer, len(names))
            if number == 0:
                continue
            entry = Improvement(
                names[:number], variant.change, number * (before - after), number * before,
                number * after, self._compiled.dispatch.placement[name], where,
                _effects(layer, variant),
            )  # fmt: skip
            candidates.append((variant.distance(layer), variant, entry))
        candidates = [item for item in candidates if not item[1].is_plain] or candidates
        if not candidates:
            return None
        most = max(entry.gain for _, _, entry in candidates)
        about = [item for item in candidates if item[2].gain >= _ABOUT * most]
        _, variant, entry = min(about, key=lambda item: (item[0], -item[2].gain))
        less = entry.before * variant.layer.macs <= _SLACK * entry.after * layer.macs
        return variant.is_plain or less, entry

    def _room_for(self, changed: Layer, layer: Layer, needed: int) -> int:
        """Return how many of the changed layers fit L2, not counting code."""
        assert isinstance(changed, Weighted) and isinstance(layer, Weighted)
        more = changed.weight.size - layer.weight.size
        return needed if more <= 0 else max(0, min(needed, self._room // more))

    def _answer(self, name: str, changed: Layer) -> tuple[int, int, str] | None:
        """Return the cycles before and after the change, and where the changed layer runs.

        If it moves from the host to an accelerator, its input must be converted to the
        accelerator's layout, and its result no longer needs to be.
        """
        place, before = self._compiled.dispatch.placement[name], self.now(name)
        offers = self._compiled.target.accelerators
        if place != CPU:
            offers = tuple(entry for entry in offers if entry.name == place)
        for entry in offers:
            accelerator = self._compiled.home(name, entry.name)
            form = accelerator.scheme.form_of(changed)
            if not accelerator.judge(self._soc, form):
                continue
            try:
                after = self._compiled.cost.best_cycles(accelerator, form, self._plans.get(name))
            except TilingError:
                continue
            if place == CPU:
                before += self._converted.get(name, 0)
                after += self._host.conversion(changed.inputs[0].elements)
            return before, after, accelerator.name
        if place != CPU:
            return None
        layer = self._compiled.dispatch.layers[name]
        estimates = [self._host.layer(each) for each in (layer, changed)]
        return (*self._costs.changed(name, *estimates), CPU)


def _effects(layer: Layer, variant: Variant) -> str:
    """Describe what else changes: weights, and the shapes around the layer."""
    changed = variant.layer
    assert isinstance(changed, Weighted) and isinstance(layer, Weighted)
    more = changed.weight.size - layer.weight.size
    words = [f"{abs(more):,} weights {'more' if more > 0 else 'fewer'} in each"] if more else []
    if variant.reshapes:
        words.append("layers beside it change their shapes with it")
    return "; ".join(words)


_SAME = "the network computes the same; --io int8 does it"


def removals(compiled: Compiled, costs: BuildCosts) -> Iterator[Improvement]:
    """Yield operators whose removal would make a model faster, with the gain.

    These are conversions from and to reals at its inputs and outputs, and operators between two
    regions.
    """
    yield from _conversions(compiled, costs)
    yield from _between_regions(compiled, costs)


def _conversions(compiled: Compiled, costs: BuildCosts) -> Iterator[Improvement]:
    """Yield conversions from and to reals at inputs and outputs, which the host does in software.

    They can be removed if a sensor or a caller provides integers anyway.
    """
    from patterns.ops.float32.quantize import Dequantize, Quantize

    graph = compiled.retargeted.model.graph
    for step in compiled.program.steps:
        if step.kind != "cpu" or not step.layers:
            continue
        ends = {operand.kind for operand in step.args}
        first, last = step.layers[0], step.layers[-1]
        if "input" in ends and graph.made_by(first, Quantize):
            yield _conversion(costs, first, "feed int8, quantized where the data are made")
        if "output" in ends and graph.made_by(last, Dequantize):
            yield _conversion(costs, last, "hand out int8, and scale it where it is read")


def _conversion(costs: BuildCosts, name: str, change: str) -> Improvement:
    own = costs.layers.get(name, 0)
    return Improvement((name,), change, own, own, 0, CPU, CPU, _SAME)


def _between_regions(compiled: Compiled, costs: BuildCosts) -> Iterator[Improvement]:
    """Yield one-input, shape-preserving operators on the host between layers on accelerators.

    Removing one saves its cycles and the conversions of layout on both sides.
    """
    dispatch = compiled.dispatch
    nodes = compiled.retargeted.model.graph.nodes
    steps = [step for step in costs.steps if step.kind != "copy"]
    for before, step, after in zip(steps, steps[1:], steps[2:], strict=False):
        if (before.kind, step.kind, after.kind) != ("epilogue", "cpu", "prologue"):
            continue
        if len(step.layers) != 1 or step.layers[0] not in nodes:
            continue
        (name,) = step.layers
        # What changes the shape, such as a transposition, cannot be left out by itself.
        kept = nodes[name].input_shapes == (nodes[name].output_shape,)
        if not kept or name in dispatch.layers:
            continue
        gain = sum(part.cycles or 0 for part in (before, step, after))
        change = f"remove the {dispatch.kinds[name]} between two regions"
        yield Improvement((name,), change, gain, gain, 0, CPU, CPU)
