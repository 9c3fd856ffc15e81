"""Partitioning: which operator runs where, and the regions that follow from it.

Two steps that can be run alone.  :func:`dispatch` judges every operator by the rules of every
accelerator and places it; :func:`partition` then lets TVM's pattern matcher group the placed
operators into composites and merge neighbouring composites of one family of accelerators into
regions.  Nothing here knows a SoC: the rules judge a `Layer`, and accelerators are names.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING

from byoc_dory.errors import IntegerFormError, PolicyError
from byoc_dory.layer import Array, Layer, Tensor
from byoc_dory.region import BorderMap, Region
from byoc_dory.verdict import Refused
from patterns.elementwise import has_table, read_table
from patterns.names import name_of
from patterns.table import LAYER_ATTRIBUTE, pattern_table

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Function, Var

    from byoc_dory.soc.accelerator import Accelerator
    from byoc_dory.soc.base import Soc
    from patterns.read import Node

__all__ = [
    "CPU",
    "Dispatch",
    "OperatorVerdict",
    "Partition",
    "codegen_name",
    "dispatch",
    "partition",
]

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


@dataclass(frozen=True, eq=False)
class Partition:
    """A module cut into regions.

    Attributes:
        module: "main" calls one function per region (attribute "Codegen"); the rest is unchanged.
        regions: by the name of the region's function, in execution order.
    """

    module: IRModule
    regions: Mapping[str, Region]


def codegen_name(soc: Soc, accelerator: Accelerator) -> str:
    """Return the codegen of the accelerator's family in TVM (``relax.ext.<this>``).

    Accelerators of one family share a codegen, so that their layers can share a region.
    """
    return f"htvm_{soc.name}_{accelerator.family}"


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


def partition(
    module: IRModule, placed: Dispatch, soc: Soc, accelerators: Sequence[Accelerator]
) -> Partition:
    """Group the placed operators into regions.

    Args:
        module: integer form; function "main".
        placed: result of :func:`dispatch` for this module.
        soc: gives the codegens their names.
        accelerators: those of ``placed``.

    Raises:
        IntegerFormError: an operator was placed on an accelerator, but its pattern does not match
            (it is written in a form no builder writes).
    """
    from tvm import relax

    families = {entry.name: entry.family for entry in accelerators}
    codegens = {codegen_name(soc, entry): entry.family for entry in accelerators}
    homes = {
        name: families[place] for name, place in placed.placement.items() if place in families
    } | dict(placed.absorbed)
    # A result that is also read would otherwise leave its region twice, under two names.
    module = relax.transform.CanonicalizeBindings()(module)
    for codegen, family in codegens.items():
        table = pattern_table(codegen, _taken_by(family, homes))
        module = relax.transform.FuseOpsByPattern(table, bind_constants=True)(module)
    module = relax.transform.MergeCompositeFunctions()(module)
    reader = _RegionReader(module, placed)
    regions = reader.read(codegens)
    _check_all_grouped(regions, placed)
    return Partition(module, regions)


def _taken_by(family: str, homes: Mapping[str, str]) -> Callable[[str], bool]:
    """Whether the operator of a name belongs to a region of the family."""
    return lambda name: homes.get(name) == family


def _check_all_grouped(regions: Mapping[str, Region], placed: Dispatch) -> None:
    grouped = {layer.name for region in regions.values() for layer in region.layers}
    for name, place in placed.placement.items():
        if place != CPU and name not in grouped:
            raise IntegerFormError(
                f"operator '{name}' was placed on {place}, but no pattern matched it",
                where=f"operator '{name}'",
                hint="one of its inner values is used elsewhere; write it with the builders of "
                "`patterns`",
            )


class _RegionReader:
    """Follows tensor names through "main" and the regions' functions."""

    def __init__(self, module: IRModule, placed: Dispatch) -> None:
        self._module = module
        self._layers = placed.layers
        self._tables = placed.tables
        self._placement = placed.placement

    def read(self, codegens: Container[str]) -> dict[str, Region]:
        """Return the region of every function with one of these codegens, in calling order."""
        from tvm import relax

        main = self._module["main"]
        names: dict[Var, str] = {param: param.name for param in main.params}
        tuples: dict[Var, tuple[str, ...]] = {}
        regions: dict[str, Region] = {}
        for block in main.body.blocks:
            for binding in block.bindings:
                var, value = binding.var, binding.value
                if isinstance(value, relax.TupleGetItem):
                    names[var] = tuples[value.tuple_value][value.index]
                elif isinstance(value, relax.Var):
                    names[var] = names[value]
                elif self._is_region(value, codegens):
                    symbol = value.op.name_hint
                    arguments = [names[argument] for argument in value.args]
                    region = self._region(symbol, len(regions), arguments)
                    regions[symbol] = region
                    tuples[var] = tuple(tensor.name for tensor in region.outputs)
                    names[var] = tuples[var][0]
                else:
                    names[var] = name_of(value) or var.name
        return regions

    def _is_region(self, value: object, codegens: Container[str]) -> bool:
        from tvm import ir, relax

        if not isinstance(value, relax.Call) or not isinstance(value.op, ir.GlobalVar):
            return False
        attrs = self._module[value.op].attrs
        return attrs is not None and "Codegen" in attrs and str(attrs["Codegen"]) in codegens

    def _region(self, symbol: str, index: int, arguments: Sequence[str]) -> Region:
        """Read one region's function; its composites are local functions with a layer name."""
        from tvm import relax

        function = self._module[symbol]
        names = dict(zip(function.params, arguments, strict=True))
        composites: dict[Var, Function] = {}
        layers: list[Layer] = []
        maps: list[BorderMap] = []
        for block in function.body.blocks:
            for binding in block.bindings:
                value = binding.value
                if isinstance(value, relax.Function):
                    composites[binding.var] = value
                elif isinstance(value, relax.Var):
                    names[binding.var] = names[value]
                elif isinstance(value, relax.Call):
                    name = self._name(composites[value.op])
                    names[binding.var] = name
                    if name in self._tables:
                        maps.append(BorderMap(name, names[value.args[0]], self._tables[name]))
                    else:
                        layers.append(self._layers[name])
        body = function.body.body
        results = list(body.fields) if isinstance(body, relax.Tuple) else [body]
        border = _border_tensors(layers)
        for entry in maps:
            # A map keeps shape and layout; only layers say what they are.
            border.setdefault(entry.source, replace(border[entry.tensor], name=entry.source))
        return Region(
            name=f"region_{index}",
            layers=tuple(_inner(layer) for layer in layers),
            inputs=tuple(border[name] for name in arguments),
            outputs=tuple(border[names[var]] for var in results),
            maps=tuple(maps),
            homes=tuple(self._placement[layer.name] for layer in layers),
        )

    def _name(self, composite: Function) -> str:
        name = str(composite.attrs[LAYER_ATTRIBUTE])
        if name not in self._layers and name not in self._tables:
            raise IntegerFormError(
                f"a composite carries the name '{name}', which no operator has",
                where=f"operator '{name}'",
            )
        return name


def _border_tensors(layers: Sequence[Layer]) -> dict[str, Tensor]:
    """Return every tensor the layers touch, with the layout the outside has it in."""
    tensors: dict[str, Tensor] = {}
    for layer in layers:
        for tensor in (*layer.inputs, replace(layer.output, name=layer.name)):
            tensors.setdefault(tensor.name, tensor)
    return tensors


def _inner(layer: Layer) -> Layer:
    """Return the layer with its tensors in the accelerator's layout."""
    return replace(
        layer,
        inputs=tuple(replace(tensor, layout="CHW") for tensor in layer.inputs),
        output=replace(layer.output, name=layer.name, layout="CHW"),
    )
