"""The loss of accuracy from retargeting: SQNR per layer and at the output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from byoc_dory.layers import Array, Dense
from htvm.quantization.annotated import Annotated, computes, is_end
from htvm.quantization.rewrite import Rewritten
from htvm.quantization.search import Scales

EXACT_DB = 120.0
"""Reported SQNR if nothing differs, in dB."""
_WORST = 3


@dataclass(frozen=True)
class LayerCost:
    """The loss of accuracy of one operator.

    Attributes:
        name: name of the operator, the same before and after.
        sqnr_db: power of the source's output over the power of the difference, in dB, in real
            numbers; all operators before it contribute.
    """

    name: str
    sqnr_db: float


@dataclass(frozen=True)
class RetargetReport:
    """The loss of accuracy from retargeting, measured between the source and the result.

    Attributes:
        network: name of the model.
        changed: whether the model was changed.
        reason: why not, else a description of the inputs used for measuring.
        layers: costs in execution order, without operators that only move data.
        output_sqnr_db: SQNR of the worst output (before a softmax) in dB; ``None`` if nothing
            changed.
        output_largest: largest difference at an output (before a softmax), in steps of the source;
            ``None`` if nothing changed.
        ternary: names of the layers that got ternary weights.
        scheme: scheme that the model was written in, as in `Model.scheme`.
        impossible: why the model could not be retargeted; empty if it was, or need not be.
        clips: a sentence for each operator that clips a layer on the CPU, and why it has to.
        agreement: fraction of the inputs with the same largest output, 0 to 1; ``None`` if the
            network makes no decision (it has neither a softmax nor a vector of 2 to 100 scores as
            its only output) or nothing changed.
    """

    network: str
    changed: bool
    reason: str
    layers: tuple[LayerCost, ...] = ()
    output_sqnr_db: float | None = None
    output_largest: int | None = None
    agreement: float | None = None
    clips: tuple[str, ...] = ()
    ternary: tuple[str, ...] = ()
    scheme: str = "shift"
    impossible: str = ""

    @property
    def worst(self) -> tuple[LayerCost, ...]:
        """The layers with the lowest SQNR, lowest first, at most three."""
        return tuple(sorted(self.layers, key=lambda cost: cost.sqnr_db)[:_WORST])

    def __str__(self) -> str:
        if not self.changed:
            return f"{self.network}: not retargeted, {self.reason}"
        width = max([len("output"), *(len(cost.name) for cost in self.layers)])
        form = "one right shift per layer"
        if self.scheme == "mul_shift":
            form = "multiplication and right shift in every layer"
        if self.ternary:
            form = f"ternary weights in {len(self.ternary)} layers, one right shift in the others"
        lines = [
            f"{self.network}: retargeted to {form}; measured on {self.reason}",
            f"{'layer':<{width}}  SQNR dB",
        ]
        lines += [f"{cost.name:<{width}}  {cost.sqnr_db:7.1f}" for cost in self.layers]
        if self.output_sqnr_db is not None:
            lines.append(f"{'output':<{width}}  {self.output_sqnr_db:7.1f}")
        if self.output_largest is not None:
            lines.append(f"largest difference at the outputs: {self.output_largest} steps")
        if self.worst:
            names = ", ".join(f"{cost.name} ({cost.sqnr_db:.1f} dB)" for cost in self.worst)
            lines.append(f"worst: {names}")
        if self.agreement is not None:
            lines.append(f"same decision as the source: {self.agreement:.1%}")
        lines += self.clips
        if self.ternary:
            lines.append(
                "ternary weights made after training lose most of a network's accuracy: train with "
                "ternary weights, which are recognised and kept"
            )
        return "\n".join(lines)


def unchanged(network: str, reason: str) -> RetargetReport:
    """Return the report of a model that was not changed."""
    return RetargetReport(network, False, reason)


def sqnr_db(reference: Array, result: Array) -> float:
    """Return the SQNR of real numbers in dB, within +-`EXACT_DB`."""
    wanted = reference.astype(np.float64)
    signal = float(np.square(wanted).sum())
    noise = float(np.square(wanted - result).sum())
    if noise == 0.0:
        return EXACT_DB
    if signal == 0.0:
        return -EXACT_DB
    return float(np.clip(10.0 * np.log10(signal / noise), -EXACT_DB, EXACT_DB))


def measure(
    name: str,
    net: Annotated,
    scales: Scales,
    result: Rewritten,
    source_tensors: Mapping[str, Array],
    result_tensors: Mapping[str, Array],
    inputs: str,
) -> RetargetReport:
    """Compare the source and the result on the same inputs.

    Args:
        name: name of the model.
        net: the source.
        scales: scales of the result's tensors.
        result: the network in the shift scheme.
        source_tensors, result_tensors: all tensors of source and result.
        inputs: a description of the inputs, in a few words.
    """
    costs = []
    for op in (node.name for node in net.nodes if computes(node)):
        expected = source_tensors[op].astype(np.float64) - net.zeros[op]
        actual = result_tensors[result.tensors[op]].astype(np.float64) - scales.zero_point[op]
        costs.append(LayerCost(op, sqnr_db(expected, actual * scales.step[op])))
    actual, differences = [], []
    for anchor in net.ends:
        zero = net.zeros[anchor]
        expected, exported = (
            array.astype(np.int64)
            for array in (source_tensors[anchor], result_tensors[result.exported[anchor]])
        )
        actual.append(sqnr_db(expected - zero, exported - zero))
        differences.append(int(np.abs(expected - exported).max(initial=0)))
    return RetargetReport(
        network=name,
        changed=True,
        reason=inputs,
        layers=tuple(costs),
        output_sqnr_db=min(actual, default=None),
        output_largest=max(differences, default=None),
        agreement=_agreement(net, result, source_tensors, result_tensors),
        ternary=tuple(node.name for node in net.nodes if net.core(node) is not None),
        clips=result.clips,
    )


def _agreement(
    net: Annotated,
    result: Rewritten,
    source_tensors: Mapping[str, Array],
    result_tensors: Mapping[str, Array],
) -> float | None:
    decided = _decision_tensor(net)
    if decided is None:
        return None
    wanted, found = source_tensors[decided], result_tensors[result.exported[decided]]
    return float((wanted.argmax(axis=-1) == found.argmax(axis=-1)).mean())


def _decision_tensor(net: Annotated) -> str | None:
    """Return the tensor whose largest element is the decision."""
    softmaxes = [node for node in net.nodes if is_end(node)]
    if softmaxes:
        return softmaxes[-1].inputs[0]
    name, *others = net.graph.results
    node = net.producer(name)
    classes = not others and node is not None and isinstance(node.scaled, Dense)
    return name if classes and 2 <= net.channels(name) <= 100 else None
