"""Partitioning: the regions that follow from where each operator runs.

:func:`partition` lets TVM's pattern matcher group the operators that `patterns.dispatching` placed
into composites, and merges neighbouring composites of one family of accelerators into regions.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from byoc_dory.errors import IntegerFormError
from byoc_dory.layer import Layer, Tensor
from byoc_dory.region import BorderMap, Region
from patterns.composite import Shape, shapes_of
from patterns.dispatching import CPU, Dispatch
from patterns.kinds import PRIMITIVES
from patterns.names import name_of
from patterns.table import LAYER_ATTRIBUTE, pattern_table
from patterns.walk import bindings_of, main_of

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Function, Var

    from byoc_dory.soc.accelerator import Accelerator
    from byoc_dory.soc.base import Soc

__all__ = ["Partition", "codegen_name", "partition"]


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


def partition(
    module: IRModule, placed: Dispatch, soc: Soc, accelerators: Sequence[Accelerator]
) -> Partition:
    """Group the placed operators into regions.

    Args:
        module: integer form; function "main".
        placed: result of `patterns.dispatching.dispatch` for this module.
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
        name: families[place]
        for name, place in placed.placement.items()
        if place in families
        if name not in placed.inner
    } | dict(placed.absorbed)
    # A result that is also read would otherwise leave its region twice, under two names.
    module = relax.transform.CanonicalizeBindings()(module)
    shapes = _shapes(module, placed)
    for codegen, family in codegens.items():
        table = pattern_table(codegen, _taken_by(family, homes), shapes)
        module = relax.transform.FuseOpsByPattern(table, bind_constants=True)(module)
    module = relax.transform.MergeCompositeFunctions()(module)
    reader = _RegionReader(module, placed)
    regions = reader.read(codegens)
    _check_all_grouped(regions, placed)
    return Partition(module, regions)


def _shapes(module: IRModule, placed: Dispatch) -> tuple[Shape, ...]:
    """What the layers look like that no pattern beside a builder describes."""
    found = {
        name: placed.groups.get(name, (name,))
        for name, place in placed.placement.items()
        if place != CPU
        and name not in placed.inner
        and (name in placed.groups or placed.kinds[name] in PRIMITIVES.values())
        and placed.kinds[name] != "add"
    }
    return shapes_of(found, dict(bindings_of(main_of(module)))) if found else ()


def _taken_by(family: str, homes: Mapping[str, str]) -> Callable[[str], bool]:
    """Whether the operator of a name belongs to a region of the family."""
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
