"""Dispatch: deciding where each operator runs, and why.

:func:`dispatch` checks every operator with the rules of every accelerator and places it;
`patterns.byoc.partition` then builds the regions.  Nothing here depends on a SoC: rules take a
`Layer`, and accelerators are names.

Reshapes inside regions that do not move any byte only give a tensor another name.  A reshape that
only adds or drops leading axes of size 1 leaves a matrix unchanged.  Files of transformers have one
before and after most products.  If layers of matrices of one family read its result, it does not
end a region.  Any other reshape is a name, too, if the layers around it read the same rows, or a
vector: a single row is also the rows of its heads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from byoc_dory.layers import Array, Layer, Reshaping
from byoc_dory.region import are_same_rows
from byoc_dory.verdict import CPU, OperatorVerdict
from patterns.dispatch.together import Rules, Together, as_seen, settle, together_in
from patterns.ops.convert import Convert
from patterns.ops.moves.reshape import Reshape
from patterns.reading.graph import is_plain_reshape

if TYPE_CHECKING:
    from byoc_dory.soc.base import Accelerator, Soc
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node


def renames(
    graph: Graph,
    families: Mapping[str, str],
    layers: Mapping[str, Layer],
    inner: Collection[str],
) -> dict[str, str]:
    """Return the reshapes that are part of a region, with the region's family.

    Args:
        graph: the operators.
        families: family of each layer, and part of a layer, that runs on an accelerator.
        layers: layers by name.
        inner: operators that are part of another operator's layer.
    """
    of_any = _renames(graph, families, layers, inner, _is_reshape)
    plain = _renames(graph, families, layers, inner, is_plain_reshape)
    return {**plain, **of_any}


def origin_of(name: str, graph: Graph, renamed: Container[str]) -> str:
    """Return the tensor that a reshape in ``renamed`` is another name of."""
    while name in renamed:
        name = graph.nodes[name].inputs[0]
    return name


def _is_reshape(node: Node) -> bool:
    return isinstance(node.op, Reshape)


def _renames(
    graph: Graph,
    families: Mapping[str, str],
    layers: Mapping[str, Layer],
    inner: Collection[str],
    may_be: Callable[[Node], bool],
) -> dict[str, str]:
    homes = dict(families)
    taken = {name for name, layer in layers.items() if isinstance(layer, Reshaping)}
    settled = {*inner, *taken}
    found: dict[str, str] = {}
    for node in reversed(graph.nodes.values()):
        if not may_be(node) or graph.is_result(node.name) or node.name in settled:
            continue
        readers = {homes.get(reader.name) for reader in graph.read_by(node.name)}
        home = readers.pop() if len(readers) == 1 else None
        if home is not None:
            found[node.name] = homes[node.name] = home
    return {
        name: home
        for name, home in found.items()
        if _are_rows(origin_of(name, graph, found), graph, home, homes, layers, found)
    }


def _are_rows(
    origin: str,
    graph: Graph,
    home: str,
    homes: Mapping[str, str],
    layers: Mapping[str, Layer],
    found: Container[str],
) -> bool:
    """Whether the layers around store the tensor row by row, and one of them is a matrix layer."""
    names = {origin} | _behind(origin, graph, found)
    around = []
    shapes: list[tuple[int, ...]] = []
    for layer in layers.values():
        made = layer.name == origin
        tensors = [tensor for tensor in layer.inputs if tensor.name in names]
        tensors += [layer.output] if made else []
        if tensors and homes.get(layer.name) == home:
            around.append(layer)
            shapes += [tensor.shape for tensor in tensors]
            if any(tensor.layout == "NCHW" for tensor in tensors):
                return False
    if not all(is_plain_reshape(graph.nodes[name]) for name in names - {origin}) and not all(
        are_same_rows(one, other) for one in shapes for other in shapes
    ):
        return False
    return any(layer.of_matrices for layer in around)


def _behind(name: str, graph: Graph, found: Container[str]) -> set[str]:
    """Return the reshapes of a tensor that are names, and their reshapes in turn."""
    names: set[str] = set()
    for node in graph.read_by(name):
        if node.name in found:
            names |= {node.name} | _behind(node.name, graph, found)
    return names


@dataclass(frozen=True, eq=False)
class Dispatch:
    """The place of each operator, and the reasons.

    Attributes:
        placement: operator name -> accelerator name or "cpu", in execution order.
        verdicts: one per operator and accelerator, in execution order, and another one where
            operators were offered together and refused.
        kinds: kind of each operator: conv2d, depthwise, dense, add, softmax, ...
        layers: layers of the operators described by a pattern, by name, without parts of other
            layers.
        groups: layers that consist of several operators: name -> their names in execution order;
            the last one is the layer's name.
        renamed: reshapes that are only another name of a tensor inside a region, so that no code
            runs for them: name -> family of the region's accelerators.
        absorbed: conversions between scales that the host does when their tensor enters a region:
            name -> family of the region's accelerators.
        tables: for every absorbed conversion, the result for each source byte: uint8 [256].
    """

    placement: Mapping[str, str]
    verdicts: tuple[OperatorVerdict, ...]
    kinds: Mapping[str, str]
    layers: Mapping[str, Layer]
    absorbed: Mapping[str, str] = field(default_factory=dict[str, str])
    tables: Mapping[str, Array] = field(default_factory=dict[str, Array])
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def inner(self) -> frozenset[str]:
        """The operators that are part of another operator's layer."""
        return frozenset(name for parts in self.groups.values() for name in parts[:-1])


def dispatch(
    graph: Graph,
    soc: Soc,
    accelerators: Sequence[Accelerator],
    wanted: Mapping[str, str] | None = None,
    binding: Container[str] = (),
    l1_budget: int | None = None,
    refused: Mapping[str, str] | None = None,
) -> Dispatch:
    """Check every operator; place it where it is wanted, or on the first core that accepts it.

    Args:
        graph: the operators, and the tensors that the module returns.
        soc: SoC passed to the rules.
        accelerators: accelerators in order of preference; without any, everything runs on the CPU.
        wanted: operator -> accelerator or "cpu", from a plan made before retargeting.  If that
            accelerator refuses the written layer, the first one that accepts gets the operator.
        binding: operators of ``wanted`` that must not run elsewhere.
        l1_budget: bytes of L1 that may be used, all by default.  Operators of which no tile fits
            together are dispatched one by one.
        refused: operators that no accelerator gets whatever its rules say, with the reason.

    Raises:
        PolicyError: an operator that must run on an accelerator is refused by it.
    """
    found = together_in(graph) if accelerators else Together()
    judge = Rules(
        graph, soc, accelerators, found.missed, wanted or {}, binding, l1_budget, refused or {}
    )
    placement = settle(graph, found.groups, judge)
    nodes = graph.in_order
    families = {entry.name: entry.family for entry in accelerators}
    homes = {entry.name: entry for entry in accelerators}
    groups = {group.name: group for group in judge.formed}
    inner = {name for group in groups.values() for name in group.parts[:-1]}
    seen = {node.name: as_seen(node, soc, homes.get(placement[node.name])) for node in nodes}
    layers = {name: node.layer for name, node in seen.items() if node.layer is not None}
    layers |= {name: group.layer for name, group in groups.items()}
    layers = {name: layer for name, layer in layers.items() if name not in inner}
    placed = {name: families[place] for name, place in placement.items() if place in families}
    absorbed: dict[str, str] = {}
    tables: dict[str, Array] = {}
    for node in nodes:
        home, table = _home(node, graph, placement, families), _table_of(node)
        if home is not None and table is not None:
            absorbed[node.name], tables[node.name] = home, table
    renamed = renames(graph, placed, layers, inner)
    return Dispatch(
        placement=placement,
        verdicts=tuple(
            _of_renamed(verdict, graph, renamed)
            for node in nodes
            for verdict in judge.verdicts[node.name]
        ),
        kinds={node.name: node.kind for node in nodes}
        | {name: group.kind for name, group in groups.items()},
        layers=layers,
        absorbed=absorbed,
        tables=tables,
        groups={name: group.parts for name, group in groups.items()},
        renamed=renamed,
    )


def _of_renamed(verdict: OperatorVerdict, graph: Graph, renamed: Container[str]) -> OperatorVerdict:
    if verdict.layer not in renamed:
        return verdict
    origin = origin_of(verdict.layer, graph, renamed)
    return replace(verdict, reason=f"nothing to do: it is another name of '{origin}'")


def _table_of(node: Node) -> Array | None:
    """Return a conversion of int8 as a table, uint8 [256]; ``None`` for other operators."""
    if not isinstance(node.op, Convert) or node.input_dtypes != ("int8",):
        return None
    return node.op.table()


def _home(
    node: Node, graph: Graph, placement: Mapping[str, str], families: Mapping[str, str]
) -> str | None:
    """Return the family of accelerators into whose region a conversion can be absorbed.

    All its readers must be in that region, and its input must come from outside.
    """
    if placement[node.name] != CPU or graph.is_result(node.name):
        return None
    homes = {families.get(placement[other.name]) for other in graph.read_by(node.name)}
    outside = all(placement.get(name, CPU) == CPU for name in node.inputs)
    if len(homes) != 1 or not outside:
        return None
    return homes.pop()
