"""Rewriting a model from any integer scheme in the schemes of the accelerators."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import DefectError, InputError
from byoc_dory.layers import Array
from byoc_dory.soc.schemes import MulShiftScheme, TernaryScheme, all_keep, all_multiply
from htvm.quantization.annotated import Annotated, within
from htvm.quantization.borders import with_borders, without_borders
from htvm.quantization.forward import forward
from htvm.quantization.narrow import readers_of_wide, widen
from htvm.quantization.noise import NoiseModel, Statistics, noise_inputs, observe, sample_count
from htvm.quantization.report import RetargetReport, measure, unchanged
from htvm.quantization.rewrite import Rewritten, rewrite
from htvm.quantization.rounding import GRID
from htvm.quantization.samples import Data, stacked_samples
from htvm.quantization.search import Scales, choose_scales
from htvm.quantization.units import annotated, without_islands
from htvm.stage_cache import StageCache

if TYPE_CHECKING:
    from byoc_dory.soc.base import Accelerator
    from htvm.model import Model
    from patterns.reading.graph import Graph

_log = logging.getLogger(__name__)

SOURCE = "what the source computes"
"""Name of what plans of one network share (`StageCache.shared`)."""


@dataclass(frozen=True)
class RetargetOptions:
    """Options of retargeting; the defaults are the best we know.

    Attributes:
        per_channel: whether each channel gets a scale of its own if the layers around can absorb it
            (cross-layer equalization); otherwise one scale per tensor.
        error_feedback: whether to round weights such that the errors of a sum cancel; otherwise
            each weight to the nearest integer.
        bias_correction: whether to correct the mean error of each channel.
        samples: number of seeded inputs for calibration; ``None``: as many as take about a second.
        seed: seed of these inputs.
        scheme: multiply-and-shift for every layer with weights and every add, instead of the
            accelerators' schemes; accelerators with the scheme ``mul_shift`` get it anyway, with an
            8-bit multiplier per channel or, if one of them supports only one per layer, per layer.
    """

    per_channel: bool = True
    error_feedback: bool = True
    bias_correction: bool = True
    samples: int | None = None
    seed: int = 2023
    scheme: MulShiftScheme | None = None


@dataclass(frozen=True, eq=False)
class Retargeted:
    """A model in the scheme of the accelerators, and the loss of accuracy.

    Attributes:
        model: the model, with the source's interface: names, shapes, types, quantization.
        report: loss of accuracy per layer and at the output.
    """

    model: Model
    report: RetargetReport


def retarget(
    model: Model,
    accelerators: Sequence[Accelerator] | None = None,
    *,
    places: Mapping[str, str] | None = None,
    data: Data | None = None,
    options: RetargetOptions | None = None,
    cache: StageCache | None = None,
) -> Retargeted:
    """Rewrite a model so that the accelerators can execute it.

    An 8-bit core supports symmetric int8 and one arithmetic right shift per layer that floors, and
    clips to [-128, 127] or [0, 127].  Everything else (per-channel scales, zero points, rounding)
    goes into weights and biases; the scales of the activations are chosen for the least noise at
    the output.  A ternary core's layers get ternary weights, and 7-bit inputs (see
    `htvm.quantization.ternary`).  `RetargetOptions.scheme` selects multiply-and-shift instead (see
    `htvm.quantization.rounding`).  The result is deterministic.

    Args:
        model: model in the integer form.
        accelerators: accelerators that it is for; without any (an empty sequence) the model is not
            changed. ``None`` means an 8-bit core.
        places: layer -> name of the accelerator that will run it, or ``"cpu"``; by default, all
            layers are written for the first accelerator with 8 bits.
        data: real inputs for calibrating and measuring, instead of those that the model was
            quantized with, or seeded ones; in the input's own numbers and layout.
        options: see `RetargetOptions`.
        cache: where results are kept; nothing is by default.

    Raises:
        UnsupportedError: the model has an operator that retargeting does not support.
        DefectError: an output could leave the range that the source clips it to.
        InputError: ``data`` do not fit the model's inputs, or ``options.scheme`` the places.
    """

    options = options or RetargetOptions()
    if accelerators is not None and not accelerators:
        return Retargeted(model, unchanged(model.name, "the target has no accelerator"))
    if all_keep(entry.scheme for entry in accelerators or ()):
        return Retargeted(model, unchanged(model.name, "the target computes in its numbers"))
    if model.graph.has_ternary:
        return Retargeted(model, unchanged(model.name, "it has ternary layers already"))
    homes = {entry.name: entry for entry in accelerators or ()}
    accelerator_of = {
        name: homes[place] for name, place in (places or {}).items() if place in homes
    }
    ternary = any(isinstance(home.scheme, TernaryScheme) for home in accelerator_of.values())
    if ternary and options.scheme is not None:
        raise InputError(
            "a multiply-shift scheme for layers that are placed on a ternary core",
            where="option 'scheme'",
            hint="leave out 'places', or the scheme",
        )
    if model.graph.has_shifts and not ternary and options.scheme is None:
        return Retargeted(model, unchanged(model.name, "every layer has one right shift already"))
    if all_multiply(entry.scheme for entry in accelerators or ()) and options.scheme is None:
        if model.graph.has_mul_shifts:
            return Retargeted(
                model, unchanged(model.name, "every layer multiplies and shifts already")
            )
        options = replace(options, scheme=_shared_scheme(accelerators or ()))
    inner, borders = without_borders(model)
    samples = model.calibration if data is None else stacked_samples(data, model.inputs)
    if samples is not None and borders is not None:
        samples = borders.converted(samples)
    source = annotated(inner)
    if places is None:
        wide = (entry for entry in homes.values() if not isinstance(entry.scheme, TernaryScheme))
        first = next(wide, None)
        accelerator_of = dict.fromkeys(source.graph.nodes, first) if first is not None else {}
    net = source.with_homes(accelerator_of)
    calibration = None if samples is None else _samples_by_name(inner, net, samples)
    observe_source = _observer(source, calibration, options, cache)
    graph, report = (StageCache(None) if cache is None else cache).get(
        "retargeting",
        cache.key(model.name, net, calibration, options) if cache else "",
        lambda: _retarget(model.name, net, observe_source, options),
    )
    _log.info("%s", report)
    result = replace(
        inner,
        graph=graph,
        scheme=report.scheme,
        sources={name: origin for name, origin in model.sources.items() if name in graph.nodes},
    )
    return Retargeted(result if borders is None else with_borders(result, borders), report)


def _shared_scheme(accelerators: Sequence[Accelerator]) -> MulShiftScheme:
    """Return the multipliers that all of these accelerators support."""
    found = [entry.scheme for entry in accelerators]
    kinds = [entry for entry in found if isinstance(entry, MulShiftScheme)]
    return MulShiftScheme(
        per_channel=all(entry.per_channel for entry in kinds),
        multiplier_bits=min(entry.multiplier_bits for entry in kinds),
    )


@dataclass(frozen=True, eq=False)
class _Source:
    """What the source computes, whichever core its layers will run on.

    Attributes:
        statistics: on the inputs that it is calibrated with.
        held_out: inputs that the loss of accuracy is measured with.
        tensors: every tensor for these.
        description: of these, in a few words.
    """

    statistics: Statistics
    held_out: Mapping[str, Array]
    tensors: Mapping[str, Array]
    description: str


def _observer(
    net: Annotated,
    data: Mapping[str, Array] | None,
    options: RetargetOptions,
    cache: StageCache | None,
) -> Callable[[], _Source]:
    """Return a function that runs the source, or returns what the last plan of it has seen."""

    def observed() -> _Source:
        cached = {} if cache is None else cache.shared(SOURCE)
        key = "" if cache is None else cache.key(net, data, options)
        if key and key in cached:
            return cached[key]  # type: ignore[no-any-return]
        calibration, held_out, description = _calibration_inputs(net, data, options)
        statistics = observe(net, calibration, options.seed)
        source = _Source(statistics, held_out, forward(net, held_out), description)
        # Tensors of all samples are large: only those of one network are kept.
        cached.clear()
        cached[key] = source
        return source

    return observed


def _retarget(
    name: str, net: Annotated, observe_source: Callable[[], _Source], options: RetargetOptions
) -> tuple[Graph, RetargetReport]:
    """Return the network in its new numbers, and the loss of accuracy."""
    source = observe_source()
    statistics = source.statistics
    net, scales = _choose_scales(net, statistics, options)
    result = rewrite(
        net,
        scales,
        statistics.tensors,
        feedback=options.error_feedback,
        correct=options.bias_correction,
        scheme=options.scheme,
    )
    _check_ranges(net, result)
    after = forward(result.net, source.held_out)
    report = measure(name, net, scales, result, source.tensors, after, source.description)
    scheme = _scheme(net) if options.scheme is None else "mul_shift"
    return without_islands(result.net), replace(report, scheme=scheme)


def _check_ranges(net: Annotated, result: Rewritten) -> None:
    """Check that no output can leave the range that the source's own clips leave it.

    Raises:
        DefectError: one can.
    """
    for name in net.ends:
        actual, allowed = result.net.ranges[result.exported[name]], net.ranges[name]
        if not within(actual, allowed):
            raise DefectError(
                f"values from {actual[0]} to {actual[1]} where the source clips to {list(allowed)}",
                where=f"operator '{name}', retargeted",
                hint="this is a fault of htvm: please report it with the model",
            )


def _choose_scales(
    net: Annotated, statistics: Statistics, options: RetargetOptions
) -> tuple[Annotated, Scales]:
    """The scales, and the network without ternary layers whose inputs cannot be kept small."""
    while True:
        noise = NoiseModel(net, statistics)
        grid = 1.0 if options.scheme is None else GRID
        scales = choose_scales(net, noise, per_channel=options.per_channel, grid=grid)
        scales = widen(net, scales, per_channel=options.per_channel)
        wide_readers = readers_of_wide(net, scales)
        if not wide_readers:
            return net, scales
        _log.info(
            "written for 8 bits, as inputs may exceed what is read: %s", ", ".join(wide_readers)
        )
        net = net.with_homes(
            {name: home for name, home in net.homes.items() if name not in wide_readers}
        )


def _scheme(net: Annotated) -> str:
    """Return `Model.scheme` for a network written for its homes."""
    ternary = [net.core(node) is not None for node in (*net.products, *net.adds)]
    return "shift" if not any(ternary) else "ternary" if all(ternary) else "mixed"


# ------------------------------------------------------------------------------ inputs


def _calibration_inputs(
    net: Annotated, arrays: Mapping[str, Array] | None, options: RetargetOptions
) -> tuple[dict[str, Array], dict[str, Array], str]:
    """Return inputs to calibrate with, inputs to measure with, and a description of the latter."""
    if arrays is None:
        count = options.samples or sample_count(net)
        held_out_count = max(24, min(count, 96))
        return (
            noise_inputs(net, count, options.seed),
            noise_inputs(net, held_out_count, options.seed + 1),
            f"{held_out_count} seeded inputs, others than calibrated with",
        )
    count = len(next(iter(arrays.values())))
    if count < 4:
        return dict(arrays), dict(arrays), f"the {count} inputs that were calibrated with"
    measured = np.arange(count) % 4 == 3
    calibration = {name: array[~measured] for name, array in arrays.items()}
    held_out = {name: array[measured] for name, array in arrays.items()}
    return calibration, held_out, f"{int(measured.sum())} of the given inputs, held out"


def _samples_by_name(
    model: Model, net: Annotated, samples: Mapping[str, Array]
) -> dict[str, Array]:
    """Return samples by the name of the network's input, channel-last, without the batch axis."""
    result = {}
    for name, info in zip(net.inputs, model.inputs, strict=True):
        array = samples[info.name][:, 0]
        result[name] = np.moveaxis(array, 1, -1) if net.channel_first and array.ndim == 4 else array
    return result
