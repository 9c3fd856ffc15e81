"""Partitioning a module into regions, given where each operator runs.

:func:`partition` lets TVM's pattern matcher group the operators placed by
`patterns.dispatch.dispatching` into composites, and merges neighbouring composites of one family of
accelerators into regions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Layer
from byoc_dory.region import BorderMap, Region
from byoc_dory.verdict import CPU
from patterns.byoc.contract import (
    LAYER_ATTRIBUTE,
    Alias,
    composite_attributes,
    region_of,
    returned_by,
    with_region_attributes,
)
from patterns.byoc.table import LayerForm, pattern_table, shapes_of
from patterns.dispatch.dispatching import Dispatch
from patterns.names import name_of
from patterns.reading.walk import bindings_of, main_of
from patterns.relax_op import ComposedOp, compositions

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Var

    from byoc_dory.options import TilingOptions
    from byoc_dory.soc.base import Accelerator, Soc, Target
    from patterns.reading.graph import Graph


@dataclass(frozen=True, eq=False)
class Partition:
    """A module cut into regions.

    Attributes:
        module: "main" calls one function per region, which has the attributes of
            `patterns.byoc.contract`; everything else is unchanged.
        regions: regions by the name of their function, in execution order.
    """

    module: IRModule
    regions: Mapping[str, Region]


def codegen_name(soc: Soc, accelerator: Accelerator) -> str:
    """Return the codegen of the accelerator's family in TVM (``relax.ext.<this>``).

    Accelerators of one family share a codegen, so that their layers can share a region.
    """
    return f"htvm_{soc.name}_{accelerator.family}"


def partition(graph: Graph, placed: Dispatch, target: Target, options: TilingOptions) -> Partition:
    """Group the placed operators into regions.

    Args:
        graph: the operators.
        placed: result of `patterns.dispatch.dispatching.dispatch` for them.
        target: the target, with the accelerators of ``placed``; its SoC names the codegens.
        options: options of the tiler, which regions carry (`patterns.byoc.contract`).

    Raises:
        IntegerFormError: an operator was placed on an accelerator, but its pattern does not match
            (it has a form that no builder writes).
    """
    renamed = dict(placed.renamed)
    while True:
        parts, leaving = _partition(graph, placed, renamed, target, options)
        if parts is not None:
            return parts
        # These results leave a region, so they need tensors of their own.
        renamed = {name: home for name, home in renamed.items() if name not in leaving}


def _partition(
    graph: Graph,
    placed: Dispatch,
    renamed: Mapping[str, str],
    target: Target,
    options: TilingOptions,
) -> tuple[Partition | None, Collection[str]]:
    """Return the partition, or the names in ``renamed`` of tensors that would leave a region."""
    from tvm import relax

    families = {entry.name: entry.family for entry in target.accelerators}
    codegens = {codegen_name(target.soc, entry): entry.family for entry in target.accelerators}
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
        taken = _taken_by(family, homes)
        table = pattern_table(codegen, taken, patterns, _attributes(placed, renamed), shapes)
        module = relax.transform.FuseOpsByPattern(table, bind_constants=True)(module)
    if any("Composite" in function.attrs for function in module.functions.values()):
        # Its memory grows with the square of the operators, whether or not they are composites.
        module = relax.transform.MergeCompositeFunctions()(module)
    leaving = _leaving(module, codegens, renamed)
    if leaving:
        return None, leaving
    parts = _described(module, codegens, target.name, options)
    _check_all_grouped(parts.regions, placed)
    return parts, ()


def _attributes(placed: Dispatch, renamed: Collection[str]) -> Callable[[str], dict[str, Any]]:
    """Return the attributes of the composite of an operator, given its name."""

    def attributes(name: str) -> dict[str, Any]:
        content: Layer | BorderMap | Alias
        if name in renamed:
            content = Alias(name, "")
        elif name in placed.tables:
            content = BorderMap(name, "", placed.tables[name])
        else:
            content = placed.layers[name]
        return composite_attributes(name, content, placed.placement.get(name, ""))

    return attributes


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
        and (name in placed.groups or not isinstance(graph.nodes[name].op, ComposedOp))
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


def _leaving(module: IRModule, codegens: Container[str], renamed: Collection[str]) -> set[str]:
    """Return the names of reshapes whose results leave a region."""
    from tvm import relax

    found: set[str] = set()
    for function in module.functions.values():
        if not _has_codegen(function, codegens):
            continue
        composites: dict[Var, str] = {}
        results: dict[Var, str] = {}
        for var, value in bindings_of(function):
            if isinstance(value, relax.Function):
                composites[var] = str(value.attrs[LAYER_ATTRIBUTE])
            elif isinstance(value, relax.Var):
                results[var] = results.get(value, "")
            elif isinstance(value, relax.Call):
                results[var] = composites[value.op]
        found |= {results.get(var, "") for var in returned_by(function)} & set(renamed)
    return found


def _has_codegen(function: Any, codegens: Container[str]) -> bool:
    attrs = getattr(function, "attrs", None)
    return attrs is not None and "Codegen" in attrs and str(attrs["Codegen"]) in codegens


def _described(
    module: IRModule, codegens: Container[str], target: str, options: TilingOptions
) -> Partition:
    """Return the module with the attributes of its regions, and these in calling order."""
    from tvm import ir, relax

    main = module["main"]
    names: dict[Var, str] = {param: str(param.name) for param in main.params}
    tuples: dict[Var, tuple[str, ...]] = {}
    regions: dict[str, Region] = {}
    for var, value in bindings_of(main):
        if isinstance(value, relax.TupleGetItem):
            names[var] = tuples[value.tuple_value][value.index]
        elif isinstance(value, relax.Var):
            names[var] = names[value]
        elif (
            isinstance(value, relax.Call)
            and isinstance(value.op, ir.GlobalVar)
            and _has_codegen(module[value.op], codegens)
        ):
            symbol = str(value.op.name_hint)
            inputs = [names[argument] for argument in value.args]
            function = with_region_attributes(
                module[value.op], f"region_{len(regions)}", inputs, target, options
            )
            module.update_func(value.op, function)
            regions[symbol] = region_of(symbol, function)
            tuples[var] = tuple(tensor.name for tensor in regions[symbol].outputs)
            names[var] = tuples[var][0]
        else:
            names[var] = name_of(value) or str(var.name)
    return Partition(module, regions)
