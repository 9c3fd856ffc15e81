"""The ``relax.ext.*`` functions, through which TVM's `RunCodegen` gets the code of regions.

TVM calls one function per codegen with the regions' functions.  In a build, their code is made
before (:func:`run_codegen`), and TVM's options carry it in.  In a pipeline of somebody else's,
nothing is known but the functions: then `LIBRARY` makes a library of them.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory import generate
from byoc_dory.emit.text import Symbols
from byoc_dory.errors import TargetError
from byoc_dory.pinning import WeightPlan, plan_weights
from byoc_dory.planning import expand
from byoc_dory.state import StatePlan, generate_with_state
from patterns.byoc import LIBRARY
from patterns.byoc.partition import Partition, codegen_name
from patterns.primitive import dtype_of, shape_of
from patterns.reading.walk import bindings_of

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Function, Var
    from tvm.runtime import Module

    from byoc_dory.cost import Cost
    from byoc_dory.region import Region, RegionCode
    from byoc_dory.soc.base import Accelerator

_log = logging.getLogger(__name__)

SOURCES = "sources"
"""Option of RunCodegen: C of each region, by the name of its function."""


@dataclass(frozen=True, eq=False)
class Generated:
    """Result of code generation.

    Attributes:
        module: "main" calls each region with ``call_dps_packed``.
        code: code of each region, by the name it is called with, in execution order.
        weights: where the weights of layers are whose accelerator can have them kept.
        state: where the inputs are that the caller keeps between runs.
    """

    module: IRModule
    code: Mapping[str, RegionCode]
    weights: WeightPlan
    state: StatePlan = StatePlan()


def run_codegen(
    parts: Partition,
    cost: Cost,
    accelerators: Sequence[Accelerator],
    prefix: str,
    state: Sequence[int] = (),
    symbols: Symbols | None = None,
) -> Generated:
    """Generate the code of every region.

    Args:
        parts: the partitioned module.
        cost: cycles on the SoC that the code is for, with the options of the tiler.
        accelerators: the accelerators that ``parts`` was made with.
        prefix: C prefix of all symbols (the model's name).
        state: numbers of the inputs that the caller keeps between runs.
        symbols: names that are in use in the program; new ones are added.

    Raises:
        TargetError: the accelerator has no tiling objective with the name in ``options``.
        TilingError: the smallest tile of a layer exceeds L1, or so do weights and the memories that
            could keep them.
    """
    from tvm import relax

    weights = weights_of(parts.regions.values(), cost)
    symbols = Symbols(prefix) if symbols is None else symbols
    plan, with_state = _with_state(parts, state, cost, weights, symbols)
    code: dict[str, RegionCode] = {}
    for symbol, region in parts.regions.items():
        _log.info("generating %s: %d layers", region.name, len(region.layers))
        code[symbol] = with_state.get(symbol) or generate(
            region, cost, prefix, weights=weights.homes, symbols=symbols
        )
    module = parts.module
    if code:
        sources = {
            symbol: "\n".join(kernel.source for kernel in found.kernels)
            for symbol, found in code.items()
        }
        codegens = {codegen_name(cost.soc, accelerator) for accelerator in accelerators}
        for codegen in codegens:
            register_codegen(codegen)
        options = dict.fromkeys(sorted(codegens), {SOURCES: sources})
        module = relax.transform.RunCodegen(options)(module)
    return Generated(module, code, weights, plan)


def _with_state(
    parts: Partition,
    state: Sequence[int],
    cost: Cost,
    weights: WeightPlan,
    symbols: Symbols,
) -> tuple[StatePlan, Mapping[str, RegionCode]]:
    """Decide for all regions together which inputs stay in L1, if the caller keeps any."""
    if not state or not parts.regions:
        return StatePlan(), {}
    main = parts.module["main"]
    sizes = {str(main.params[number].name): _bytes(main.params[number]) for number in state}
    outside = _read_outside(main, parts.regions)
    return generate_with_state(parts.regions, sizes, outside, cost, weights.homes, symbols)


def _bytes(variable: Var) -> int:
    """Return the size of a tensor."""
    return prod(shape_of(variable)) * int(np.dtype(dtype_of(variable)).itemsize)


def _read_outside(main: Function, regions: Collection[str]) -> set[str]:
    """Return the names of the variables that anything but a region reads."""
    from tvm import relax

    found: set[str] = set()
    for _, value in bindings_of(main):
        called = getattr(value.op, "name_hint", "") if isinstance(value, relax.Call) else ""
        if called not in regions:
            found |= {str(var.name) for var in relax.analysis.free_vars(value)}
    returned = relax.analysis.free_vars(main.body.body)
    return found | {str(var.name) for var in returned}


def weights_of(regions: Iterable[Region], cost: Cost) -> WeightPlan:
    """Decide for all regions together where weights are."""
    expanded = [expand(cost, region) for region in regions]
    layers = [
        (layer, found.homes[layer.name]) for found in expanded for layer in found.region.layers
    ]
    return plan_weights(layers, cost)


def register_codegen(codegen: str) -> None:
    """Register ``relax.ext.<codegen>`` in TVM; registering again does nothing."""
    import tvm_ffi

    name = f"relax.ext.{codegen}"
    if tvm_ffi.get_global_func(name, allow_missing=True) is None:
        tvm_ffi.register_global_func(name, _generate)


def _generate(
    functions: Sequence[Function], options: Mapping[str, Any], _constants: Any
) -> list[Module]:
    """Return the code of the regions that TVM passes, as modules of TVM."""
    import tvm_ffi

    unknown = sorted(set(map(str, options)) - {SOURCES})
    if unknown:
        raise TargetError(
            f"there is no option {unknown[0]!r} of code generation for regions",
            where="options of RunCodegen",
            hint="leave it out: targets and options are those given to htvm.relax.Partition",
        )
    if SOURCES not in options:
        return [tvm_ffi.get_global_func(LIBRARY)(list(functions))]
    source_module = tvm_ffi.get_global_func("runtime.CSourceModuleCreate")
    symbols = [str(function.attrs["global_symbol"]) for function in functions]
    return [source_module(options[SOURCES][symbol], "c", [symbol], []) for symbol in symbols]
