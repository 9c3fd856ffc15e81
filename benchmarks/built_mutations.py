"""Drawn and mutated TFLite layers, built for accelerators: no result leaves the source's bounds.

    python -m benchmarks.mutations --of built [--count 5000] [--seed 1]

Each is a layer that `tests.frontend.single` draws, with an activation, a zero point and a scale of
any kind, at the output, behind it a maximum pool in every third case, and a conversion to reals in
every third; every other one has a change as those of `benchmarks.tflite_mutations`.  It is built
for a target with accelerators, and run on this machine.  Results must equal the integer form that
was built, computed by the tests' interpreter, and lie within the bounds of the activation, which
follow from the file alone.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import htvm
from benchmarks.mutant import Mutant, failure
from benchmarks.tflite_mutations import drawn, mutated
from tests.frontend.flatfile import FLOAT32, Graph, Op, Tensor
from tests.frontend.single import CASES

__all__ = ["campaign"]

_LAYERS = {
    "add": 0, "average_pool": 5, "conv": 3, "depthwise": 4, "fully_connected": 0, "max_pool": 5,
    "transpose_conv": 3,
}  # fmt: skip
"""Layer -> the field of its options that has the fused activation."""
_ACTIVATIONS = {1: (0.0, math.inf), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
_TARGETS = ("diana", "diana.digital", "dla", "siracusa", "siracusa.cluster", "snitch_ita")
_SAMPLES = 3


def campaign(
    count: int, seed: int, interpret: Callable[..., Any], first: int = 0
) -> Iterator[Mutant]:
    """Yield the outcome of each mutant, from a number on; the same ones for the same seed."""
    for number in range(first, first + count):
        rng = np.random.default_rng([seed, number])
        name = sorted(_LAYERS)[int(rng.integers(len(_LAYERS)))]
        graph, changes = _activated(CASES[name](rng), _LAYERS[name], rng), []
        if rng.integers(2):
            graph, change = mutated(graph, rng)
            changes.append(change)
        bounds = _bounds(graph, _LAYERS[name])
        graph, behind = _followed(graph, rng)
        target = _TARGETS[int(rng.integers(len(_TARGETS)))]
        result, reason = _outcome(graph, target, bounds, rng, interpret)
        yield Mutant(number, f"{name} on {target}", (*changes, *behind), result, reason)


def _activated(graph: Graph, field: int, rng: np.random.Generator) -> Graph:
    options = graph.operators[-1].options
    assert options is not None
    fields = {**options[1], field: ("b", int(rng.integers(4)))}
    return graph.with_operator(len(graph.operators) - 1, options=(options[0], fields))


def _bounds(graph: Graph, field: int) -> tuple[float, float]:
    """Return the bounds of the last operator's activation, in steps of its output."""
    options, output = graph.operators[-1].options, graph.tensors[graph.outputs[0]]
    fused = options[1].get(field, ("b", 0)) if options is not None else ("b", 0)
    low, high = _ACTIVATIONS.get(fused[1], (-math.inf, math.inf))
    if not output.scales or not output.zero_points or not output.scales[0] > 0:
        return -math.inf, math.inf
    scale, zero = np.float32(output.scales[0]), output.zero_points[0]
    steps = [round(end / scale) + zero if math.isfinite(end) else end for end in (low, high)]
    return max(steps[0], -128), min(steps[1], 127)


def _followed(graph: Graph, rng: np.random.Generator) -> tuple[Graph, list[str]]:
    """Return the layer with what is behind it, and what that is."""
    behind, last = [], graph.tensors[graph.outputs[0]]
    if len(last.shape) == 4 and rng.integers(3) == 0:
        one = ("i", 1)
        options = (5, {0: ("b", 1), 1: one, 2: one, 3: one, 4: one, 5: ("b", 0)})
        graph = _with(graph, replace(last, name="pooled"), "MAX_POOL_2D", options)
        behind.append("behind it a maximum pool")
    if rng.integers(3) == 0:
        real = Tensor("real", last.shape, FLOAT32, scales=(), zero_points=())
        graph = _with(graph, real, "DEQUANTIZE", None)
        behind.append("made real")
    return graph, behind


def _with(graph: Graph, output: Tensor, kind: str, options: Any) -> Graph:
    at = len(graph.tensors)
    op = Op(kind, [graph.outputs[0] % at], [at], options)
    tensors, operators = [*graph.tensors, output], [*graph.operators, op]
    return replace(graph, tensors=tensors, operators=operators, outputs=(at,))


def _outcome(
    graph: Graph,
    target: str,
    bounds: tuple[float, float],
    rng: np.random.Generator,
    interpret: Callable[..., Any],
) -> tuple[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutant.tflite"
        path.write_bytes(graph.file())
        try:
            module = htvm.build(htvm.load(path), target, platform="host", policy="bitwidth")
        except Exception as error:  # noqa: BLE001
            return failure(error)
        for _ in range(_SAMPLES):
            inputs = [drawn(item.shape, item.dtype, rng) for item in module.model.inputs]
            (found,) = module.run(inputs).outputs
            (wanted,) = interpret(module.model.module, inputs).outputs
            if not np.array_equal(found, wanted, equal_nan=found.dtype == np.float32):
                return "wrong", f"{int((found != wanted).sum())} of {found.size} elements"
            low, high = _in_type(graph, bounds) if found.dtype == np.float32 else bounds
            if found.size and not (low <= found.min() and found.max() <= high):
                return "wrong", f"{found.min()} to {found.max()} beyond {low} to {high}"
    return "passed", ""


def _in_type(graph: Graph, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return bounds in steps as reals, as the last operator makes them."""
    step = graph.tensors[graph.operators[-1].inputs[0]]
    if not step.scales or not step.zero_points:
        return -math.inf, math.inf
    low, high = ((np.float32(end) - step.zero_points[0]) * np.float32(step.scales[0])
                 for end in bounds)  # fmt: skip
    return float(low), float(high)
