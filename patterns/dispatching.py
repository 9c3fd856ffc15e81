"""Dispatch: which operator runs where, and why.

:func:`dispatch` judges every operator by the rules of every accelerator and places it; the regions
that follow are `patterns.partition`'s.  Nothing here knows a SoC: the rules judge a `Layer`, and
accelerators are names.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from byoc_dory.errors import PolicyError
from byoc_dory.layer import Array, Layer
from byoc_dory.verdict import Refused
from patterns.elementwise import has_table, read_table

if TYPE_CHECKING:
    from byoc_dory.soc.accelerator import Accelerator
    from byoc_dory.soc.base import Soc
    from patterns.node import Node

__all__ = ["CPU", "Dispatch", "OperatorVerdict", "dispatch"]

CPU = "cpu"
"""Placement of an operator that no accelerator takes."""


@dataclass(frozen=True)
class OperatorVerdict:
    """What one accelerator says to one operator.

    Attributes:
        layer: the operator's name.
        kind: conv2d, depthwise, dense, add, softmax, ...
        accelerator: the accelerator's name.
        accepted: whether the operator may run there.
        reason: if not, one sentence with the offending value.
        rule: public statement of the rule that objects, empty where no pattern matches.
    """

    layer: str
    kind: str
    accelerator: str
    accepted: bool
    reason: str = ""
    rule: str = ""


@dataclass(frozen=True, eq=False)
class Dispatch:
    """Where each operator runs, and why.

    Attributes:
        placement: operator name -> accelerator name or "cpu", in execution order.
        verdicts: one per operator and accelerator, in execution order.
        kinds: what each operator is: conv2d, depthwise, dense, add, softmax, ...
        layers: the operators a pattern describes, by name.
        elements: how many elements each operator reads (those of a window as often as they are
            read) and writes.
        absorbed: conversions between scales that the host does while their tensor enters a region:
            name -> family of accelerators of the region.
        tables: what each source byte becomes, for every absorbed conversion: uint8 [256].
    """

    placement: Mapping[str, str]
    verdicts: tuple[OperatorVerdict, ...]
    kinds: Mapping[str, str]
    layers: Mapping[str, Layer]
    elements: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    absorbed: Mapping[str, str] = field(default_factory=dict[str, str])
    tables: Mapping[str, Array] = field(default_factory=dict[str, Array])


def dispatch(
    nodes: Sequence[Node],
    results: Sequence[str],
    soc: Soc,
    accelerators: Sequence[Accelerator],
    wanted: Mapping[str, str] | None = None,
    binding: Container[str] = (),
) -> Dispatch:
    """Judge every operator, and place it where it is wanted or on the first that accepts it.

    Args:
        nodes: the operators of a module in integer form, as `patterns.read.read_graph` gives them.
        results: what the module returns, as `patterns.read.output_names` gives it.
        soc: passed to the rules.
        accelerators: in order of preference; none places everything on the CPU.
        wanted: operator -> accelerator or "cpu", as a plan made before retargeting has it.  Where
            that accelerator refuses what was written, the first that accepts gets the operator.
        binding: operators of ``wanted`` that must not go elsewhere.

    Raises:
        PolicyError: an operator that must run on an accelerator is refused by it.
    """
    wanted = wanted or {}
    placement: dict[str, str] = {}
    verdicts: list[OperatorVerdict] = []
    for node in nodes:
        said = [_judge(node, soc, accelerator) for accelerator in accelerators]
        verdicts += said
        placement[node.name] = _placed(said, wanted.get(node.name), node.name in binding)
    families = {entry.name: entry.family for entry in accelerators}
    kinds = {node.name: node.kind for node in nodes}
    layers = {node.name: node.layer for node in nodes if node.layer is not None}
    absorbed = {
        node.name: home
        for node in nodes
        if node.name not in results
        and (home := _home(node, nodes, placement, families)) is not None
    }
    tables = {node.name: read_table(node.attrs) for node in nodes if node.name in absorbed}
    elements = {node.name: _elements(node) for node in nodes}
    return Dispatch(placement, tuple(verdicts), kinds, layers, elements, absorbed, tables)


def _elements(node: Node) -> tuple[int, int]:
    """Elements an operator reads and writes."""
    written = prod(node.output_shape)
    if node.kind in ("average_pool", "max_pool"):
        kernel = node.attrs["kernel"]
        assert isinstance(kernel, tuple)
        return written * prod(kernel), written
    return sum(prod(shape) for shape in node.input_shapes), written


def _placed(said: Sequence[OperatorVerdict], wanted: str | None, binding: bool) -> str:
    """Where an operator of these verdicts goes."""
    if wanted == CPU:
        return CPU
    for verdict in said:
        if verdict.accelerator != wanted:
            continue
        if verdict.accepted:
            return wanted
        if binding:
            raise PolicyError(
                f"'{wanted}' cannot take the layer as it was written: {verdict.reason}",
                where=f"layer '{verdict.layer}'",
                hint=f"its rule: {verdict.rule}",
            )
    return next((verdict.accelerator for verdict in said if verdict.accepted), CPU)


def _home(
    node: Node,
    nodes: Sequence[Node],
    placement: Mapping[str, str],
    families: Mapping[str, str],
) -> str | None:
    """The family of accelerators into whose region a conversion can be absorbed.

    All who read it must be there, and what it reads must come from outside.
    """
    if node.kind != "convert" or not has_table(node.attrs):
        return None
    homes = {families.get(placement[other.name]) for other in nodes if node.name in other.inputs}
    outside = all(placement.get(name, CPU) == CPU for name in node.inputs)
    if len(homes) != 1 or not outside:
        return None
    return homes.pop()


def _judge(node: Node, soc: Soc, accelerator: Accelerator) -> OperatorVerdict:
    if node.layer is None:
        return OperatorVerdict(
            node.name, node.kind, accelerator.name, False,
            f"no pattern describes {node.kind}",
        )  # fmt: skip
    verdict = accelerator.judge(node.layer, soc)
    if isinstance(verdict, Refused):
        return OperatorVerdict(
            node.name, node.kind, accelerator.name, False, verdict.reason, verdict.rule
        )
    return OperatorVerdict(node.name, node.kind, accelerator.name, True)
