"""From a region to its C: tile every layer, schedule it, pack its weights, emit its function."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from byoc_dory.emit.text import c_identifier
from byoc_dory.errors import TargetError, UnsupportedError
from byoc_dory.layer import Layer, Tensor
from byoc_dory.options import TilingOptions
from byoc_dory.region import BorderMap, Buffer, Kernel, Region, RegionCode
from byoc_dory.soc.accelerator import Accelerator
from byoc_dory.soc.base import Soc
from byoc_dory.tiling import Objective, Solution, solve
from byoc_dory.verdict import Refused

__all__ = ["generate", "tile_layer"]

_LOG = logging.getLogger(__name__)

# What the accelerator-layout copy of a border tensor is called.
_COPY = ".chw"


def generate(
    region: Region,
    soc: Soc,
    options: TilingOptions,
    prefix: str,
    accelerator: str | None = None,
) -> RegionCode:
    """Make the code of a region.

    Args:
        region: layers, and border tensors with the layout the outside has them in.
        soc: description of the SoC.
        options: choices of the tiler.
        prefix: start of all C names, usually the model's name.
        accelerator: which of the SoC's; the first by default.

    Returns:
        Kernels in execution order (conversions of inputs, layers, conversions of outputs) and the
        buffers to be planned.  A border tensor that already has the accelerator's layout
        (``"CHW"``) is used in place.

    Raises:
        TargetError: the SoC has no such accelerator, or the objective is unknown.
        UnsupportedError: the accelerator's rules refuse a layer, or a border layout is unknown.
        TilingError: no tile of a layer fits.
    """
    chosen = _accelerator(soc, accelerator)
    return _Generator(region, soc, chosen, options, prefix).run()


def tile_layer(
    layer: Layer, soc: Soc, accelerator: Accelerator, options: TilingOptions
) -> Solution:
    """The tile the options ask for.

    Raises:
        TargetError: unknown objective.
        TilingError: no tile fits.
    """
    problem = accelerator.tiling_problem(layer, soc, options.l1_budget)
    return solve(problem, _objective(accelerator, options.objective), options)


def _accelerator(soc: Soc, name: str | None) -> Accelerator:
    if name is not None:
        return soc.accelerator(name)
    if not soc.accelerators:
        raise TargetError("there is no accelerator to generate code for", where=f"SoC {soc.name}")
    return soc.accelerators[0]


def _objective(accelerator: Accelerator, name: str) -> Objective:
    known = accelerator.objectives
    if name not in known:
        raise TargetError(
            f"there is no tiling objective '{name}'",
            where=f"accelerator '{accelerator.name}'",
            hint=f"one of {', '.join(known)}",
        )
    return known[name]


class _Generator:
    """One run of `generate`."""

    def __init__(
        self,
        region: Region,
        soc: Soc,
        accelerator: Accelerator,
        options: TilingOptions,
        prefix: str,
    ) -> None:
        self.region = region
        self.soc = soc
        self.accelerator = accelerator
        self.options = options
        self.prefix = c_identifier(prefix)
        self.emitter = accelerator.emitter
        self._symbols: set[str] = set()
        self._solutions: dict[tuple[Any, ...], Solution] = {}

    def run(self) -> RegionCode:
        """Prologues, layers, epilogues."""
        region = self.region
        read = {tensor.name for layer in region.layers for tensor in layer.inputs}
        entering = [tensor for tensor in region.inputs if tensor.name in read]
        renamed = {
            tensor.name: tensor.name + _COPY
            for tensor in (*entering, *region.mapped, *region.outputs)
            if tensor.layout != "CHW"
        }
        kernels = [self._prologue(tensor, renamed) for tensor in entering if tensor.name in renamed]
        kernels += [self._prologue(mapped, renamed, entry) for mapped, entry in self._maps()]
        kernels += [_rename(self._layer(layer), renamed) for layer in region.layers]
        kernels += [
            self.emitter.epilogue(
                tensor, renamed[tensor.name], self.soc, self._symbol(f"{tensor.name}_from_core")
            )
            for tensor in region.outputs
            if tensor.name in renamed
        ]
        return RegionCode(
            name=region.name,
            accelerator=self.accelerator.name,
            kernels=tuple(kernels),
            buffers=self._buffers(entering, renamed),
            inputs=region.inputs,
            outputs=region.outputs,
            headers=self.emitter.headers,
        )

    def _maps(self) -> Iterator[tuple[Tensor, BorderMap]]:
        for mapped, entry in zip(self.region.mapped, self.region.maps, strict=True):
            if mapped.layout == "CHW":
                raise UnsupportedError(
                    f"the map of '{entry.tensor}' has no layout to convert",
                    where=f"region '{self.region.name}'",
                    hint="give its source in the outside's layout",
                )
            yield mapped, entry

    def _prologue(
        self, tensor: Tensor, renamed: dict[str, str], mapped: BorderMap | None = None
    ) -> Kernel:
        # Another region may read the map's result as it is, and convert it with its own function.
        suffix = "to_core" if mapped is None else "mapped_to_core"
        symbol = self._symbol(f"{tensor.name}_{suffix}")
        return self.emitter.prologue(tensor, renamed[tensor.name], self.soc, symbol, mapped)

    def _layer(self, layer: Layer) -> Kernel:
        verdict = self.accelerator.judge(layer, self.soc)
        if isinstance(verdict, Refused):
            raise UnsupportedError(
                verdict.reason,
                where=f"layer '{layer.name}' on '{self.accelerator.name}'",
                hint=f"rule: {verdict.rule}",
            )
        problem = self.accelerator.tiling_problem(layer, self.soc, self.options.l1_budget)
        key = problem.key()
        if key not in self._solutions:
            objective = _objective(self.accelerator, self.options.objective)
            self._solutions[key] = solve(problem, objective, self.options)
        solution = self._solutions[key]
        _LOG.debug("%s: tile %s (%s)", layer.name, solution.tile, solution.solver)
        return self.emitter.layer(layer, solution, self.soc, self.options, self._symbol(layer.name))

    def _symbol(self, name: str) -> str:
        base = f"{self.prefix}_{c_identifier(name)}"
        symbol, number = base, 2
        while symbol in self._symbols:
            symbol, number = f"{base}_{number}", number + 1
        self._symbols.add(symbol)
        return symbol

    def _buffers(self, entering: list[Tensor], renamed: dict[str, str]) -> tuple[Buffer, ...]:
        """Everything in the accelerator's layout that is not handed in from outside."""
        outside = {tensor.name for tensor in (*self.region.inputs, *self.region.outputs)}
        tensors: list[Tensor] = [
            *entering,
            *self.region.mapped,
            *(layer.output for layer in self.region.layers),
        ]
        return tuple(
            Buffer(
                renamed.get(tensor.name, tensor.name), self.emitter.stored_bytes(tensor, self.soc)
            )
            for tensor in tensors
            if tensor.name in renamed or tensor.name not in outside
        )


def _rename(kernel: Kernel, renamed: dict[str, str]) -> Kernel:
    """The kernel with border tensors replaced by their accelerator-layout copies."""
    return replace(
        kernel,
        inputs=tuple(renamed.get(name, name) for name in kernel.inputs),
        outputs=tuple(renamed.get(name, name) for name in kernel.outputs),
    )
