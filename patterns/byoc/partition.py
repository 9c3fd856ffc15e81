"""Partitioning a module into regions, given where each operator runs.

:func:`partition` lets TVM's pattern matcher group the operators placed by
`patterns.dispatch.dispatching` into composites, and merges neighbouring composites of one family of
accelerators into regions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Layer, Tensor
from byoc_dory.region import BorderMap, Region
from byoc_dory.verdict import CPU
from patterns.byoc.table import LAYER_ATTRIBUTE, LayerForm, pattern_table, shapes_of
from patterns.dispatch.dispatching import Dispatch
from patterns.names import name_of
from patterns.primitive import PrimitiveOp
from patterns.reading.walk import bindings_of, main_of
from patterns.relax_op import compositions

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Function, Var

    from byoc_dory.soc.base import Accelerator, Soc
    from patterns.reading.graph import Graph


@dataclass(frozen=True, eq=False)
class Partition:
    """A module cut into regions.

    Attributes:
        module: "main" calls one function per region (attribute "Codegen"); everything else is
            unchanged.
        regions: regions by the name of their function, in execution order.
    """

    module: IRModule
    regions: Mapping[str, Region]


def codegen_name(soc: Soc, accelerator: Accelerator) -> str:
    """Return the codegen of the accelerator's family in TVM (``relax.ext.<this>``).

    Accelerators of one family share a codegen, so that their layers can share a region.
    """
    return f"htvm_{soc.name}_{accelerator.family}"


def partition(
    graph: Graph, placed: Dispatch, soc: Soc, accelerators: Sequence[Accelerator]
) -> Partition:
    """Group the placed operators into regions.

    Args:
        graph: the operators.
        placed: result of `patterns.dispatch.dispatching.dispatch` for them.
        soc: SoC that gives the codegens their names.
        accelerators: the accelerators of ``placed``.

    Raises:
        IntegerFormError: an operator was placed on an accelerator, but its pattern does not match
            (it has a form that no builder writes).
    """
    renamed = dict(placed.renamed)
    while True:
        parts, leaving = _partition(graph, placed, renamed, soc, accelerators)
        if parts is not None:
            return parts
        # These results leave a region, so they need tensors of their own.
        renamed = {name: home for name, home in renamed.items() if name not in leaving}


def _partition(
    graph: Graph,
    placed: Dispatch,
    renamed: Mapping[str, str],
    soc: Soc,
    accelerators: Sequence[Accelerator],
) -> tuple[Partition | None, Collection[str]]:
    """Return the partition, or the names in ``renamed`` of tensors that would leave a region."""
    from tvm import relax

    families = {entry.name: entry.family for entry in accelerators}
    codegens = {codegen_name(soc, entry): entry.family for entry in accelerators}
    homes = {
        name: families[place]
        for name, place in placed.placement.items()
        if place in families
        if name not in placed.inner
    } | {**placed.absorbed, **renamed}
    # Otherwise a result that is also read would leave its region twice, under two names.
    module = relax.transform.CanonicalizeBindings()(graph.module)
    shapes = _shapes(graph, module, placed, renamed)
    patterns = compositions({type(node.op) for node in graph.in_order})
    for codegen, family in codegens.items():
        table = pattern_table(codegen, _taken_by(family, homes), patterns, shapes)
        module = relax.transform.FuseOpsByPattern(table, bind_constants=True)(module)
    if any("Composite" in function.attrs for function in module.functions.values()):
        # Its memory grows with the square of the operators, whether or not they are composites.
        module = relax.transform.MergeCompositeFunctions()(module)
    reader = _RegionReader(module, placed, renamed)
    leaving = reader.leaving(codegens)
    if leaving:
        return None, leaving
    regions = reader.read(codegens)
    _check_all_grouped(regions, placed)
    return Partition(module, regions), ()


def _shapes(
    graph: Graph, module: IRModule, placed: Dispatch, renamed: Collection[str]
) -> tuple[LayerForm, ...]:
    """Return the forms of the layers that no builder's pattern describes."""
    found: dict[str, tuple[str, ...]] = {name: (name,) for name in renamed}
    found |= {
        name: placed.groups.get(name, (name,))
        for name, place in placed.placement.items()
        if place != CPU
        and name not in placed.inner
        and (name in placed.groups or isinstance(graph.nodes[name].op, PrimitiveOp))
    }
    return shapes_of(found, dict(bindings_of(main_of(module)))) if found else ()


def _taken_by(family: str, homes: Mapping[str, str]) -> Callable[[str], bool]:
    """Return whether an operator, given by name, belongs to a region of the family."""
    return lambda name: homes.get(name) == family


def _check_all_grouped(regions: Mapping[str, Region], placed: Dispatch) -> None:
    grouped = {layer.name for region in regions.values() for layer in region.layers}
    for name, place in placed.placement.items():
        if place != CPU and name not in grouped and name not in placed.inner:
            raise IntegerFormError(
                f"operator '{name}' was placed on {place}, but no pattern matched it",
                where=f"operator '{name}'",
                hint="one of its inner values is used elsewhere; write it with the builders of "
                "`patterns`",
            )


class _RegionReader:
    """Follows tensor names through "main" and the regions' functions."""

    def __init__(self, module: IRModule, placed: Dispatch, renamed: Collection[str]) -> None:
        self._module = module
        self._renamed = renamed
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
        for var, value in bindings_of(main):
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

    def leaving(self, codegens: Container[str]) -> set[str]:
        """The names of reshapes whose results leave a region."""
        from tvm import relax

        found: set[str] = set()
        for function in self._module.functions.values():
            attrs = function.attrs
            if attrs is None or "Codegen" not in attrs or str(attrs["Codegen"]) not in codegens:
                continue
            composites: dict[Var, str] = {}
            made: dict[Var, str] = {}
            for var, value in bindings_of(function):
                if isinstance(value, relax.Function):
                    composites[var] = str(value.attrs[LAYER_ATTRIBUTE])
                elif isinstance(value, relax.Var):
                    made[var] = made.get(value, "")
                elif isinstance(value, relax.Call):
                    made[var] = composites[value.op]
            found |= {made.get(var, "") for var in _results(function)} & set(self._renamed)
        return found

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
        aliases: dict[str, str] = {}
        for var, value in bindings_of(function):
            if isinstance(value, relax.Function):
                composites[var] = value
            elif isinstance(value, relax.Var):
                names[var] = names[value]
            elif isinstance(value, relax.Call):
                name = self._name(composites[value.op])
                if name in self._renamed:
                    names[var] = aliases[name] = names[value.args[0]]
                    continue
                names[var] = name
                if name in self._tables:
                    maps.append(BorderMap(name, names[value.args[0]], self._tables[name]))
                else:
                    layers.append(_reading(self._layers[name], aliases))
        border = _border_tensors(layers)
        for entry in maps:
            # A map keeps shape and layout; only layers determine them.
            border.setdefault(entry.source, replace(border[entry.tensor], name=entry.source))
        return Region(
            name=f"region_{index}",
            layers=tuple(_inner(layer) for layer in layers),
            inputs=tuple(border[name] for name in arguments),
            outputs=tuple(border[names[var]] for var in _results(function)),
            maps=tuple(maps),
            homes=tuple(self._placement[layer.name] for layer in layers),
        )

    def _name(self, composite: Function) -> str:
        name = str(composite.attrs[LAYER_ATTRIBUTE])
        if not any(name in known for known in (self._layers, self._tables, self._renamed)):
            raise IntegerFormError(
                f"a composite carries the name '{name}', which no operator has",
                where=f"operator '{name}'",
            )
        return name


def _results(function: Function) -> list[Var]:
    """Return the variables that a region's function returns."""
    from tvm import relax

    body = function.body.body
    return list(body.fields) if isinstance(body, relax.Tuple) else [body]


def _reading(layer: Layer, aliases: Mapping[str, str]) -> Layer:
    """Return the layer, with the original names of inputs that are read under another name."""
    if not any(tensor.name in aliases for tensor in layer.inputs):
        return layer
    inputs = (replace(t, name=aliases.get(t.name, t.name)) for t in layer.inputs)
    return replace(layer, inputs=tuple(inputs))


def _border_tensors(layers: Sequence[Layer]) -> dict[str, Tensor]:
    """Return every tensor that the layers touch, in its layout outside of the region."""
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
