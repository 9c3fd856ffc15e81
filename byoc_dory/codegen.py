"""Generating C for a region: plan every layer, pack its weights, emit its function."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from byoc_dory.blocks import Schedule, schedule_blocks
from byoc_dory.cost import Cost
from byoc_dory.early import schedule_early
from byoc_dory.emit import Emitter, RegionEmitter, StartingEmitter
from byoc_dory.emit.text import Symbols
from byoc_dory.errors import TilingError, UnsupportedError, named
from byoc_dory.input_rows import (
    InputRows,
    check_input_rows,
    first_input,
    first_layers_by_rows,
)
from byoc_dory.layers import Layer, Tensor
from byoc_dory.left import check_left
from byoc_dory.plan import LayerPlan, RegionPlan
from byoc_dory.planning import expand, plan_region, with_long_before_sums
from byoc_dory.region import BorderMap, Buffer, Kernel, Region, RegionCode, RegionKernels
from byoc_dory.soc.base import Accelerator
from byoc_dory.tileloop.checks import check_alignment
from byoc_dory.under_way import Running, check_under_way, crowded
from byoc_dory.verdict import Refused

_LOG = logging.getLogger(__name__)

# Cycles that each part of a layer in bands of rows has to save, as each takes code of its own.
_WORTH_PART = 1_500

# Name of the copy of a border tensor in the accelerator's layout.
_COPY = ".core"
# Layers started early are not compared with others in turn if this part of the cycles is saved.
_CLEARLY = 0.04


def generate(
    region: Region,
    cost: Cost,
    prefix: str,
    accelerator: str | None = None,
    weights: Mapping[str, str] | None = None,
    state_offsets: Mapping[str, int] | None = None,
    symbols: Symbols | None = None,
) -> RegionCode:
    """Generate the code of a region.

    Args:
        region: layers, and border tensors in their layouts outside of the region.
        cost: cycles on the SoC, with the options of the tiler.
        prefix: prefix of all C names, usually the model's name.
        accelerator: name of the accelerator for layers without a home in the region; the SoC's
            first one by default.
        weights, state_offsets: as for `RegionGenerator`.
        symbols: names that are in use in the program; new ones are added.

    Raises:
        TargetError: the SoC has no such accelerator, the objective is unknown, or the DMA cannot
            begin where tiles do.
        UnsupportedError: the accelerator's rules refuse a layer, or a border layout is unknown.
        TilingError: no tile of a layer fits.
    """
    symbols = Symbols(prefix) if symbols is None else symbols
    return RegionGenerator(region, cost, symbols, accelerator, weights, state_offsets).code()


@dataclass(frozen=True)
class _Planned:
    """Layers in the order of their execution, the accelerator of each by name, and their plan.

    ``rows``: the rows of an input that the host converts beside them, if it is not converted before
    all layers.
    """

    layers: tuple[Layer, ...]
    homes: Mapping[str, Accelerator]
    plan: RegionPlan
    rows: InputRows | None = None


class RegionGenerator:
    """Plans a region, and generates its code.

    Args:
        region, cost, accelerator: as for `generate`.
        symbols: names that are in use in the program; those of the code are added with it.
        weights: name of the memory that keeps a layer's weights, "" if they are loaded with its
            tiles (`byoc_dory.pinning`); layers that are not in it do as their accelerator is
            described.
        state_offsets: byte offset in L1 of each input that stays there between runs
            (`byoc_dory.state`).
    """

    def __init__(
        self,
        region: Region,
        cost: Cost,
        symbols: Symbols,
        accelerator: str | None = None,
        weights: Mapping[str, str] | None = None,
        state_offsets: Mapping[str, int] | None = None,
    ) -> None:
        expanded = expand(cost, region, accelerator)
        weight_memories = {} if weights is None else weights
        self.region = expanded.region
        self.cost = cost
        self.symbols = symbols
        self.homes = {
            name: home.keeping(weight_memories[name]) if name in weight_memories else home
            for name, home in expanded.homes.items()
        }
        self.state_offsets = state_offsets or {}
        # All emitters belong to one family, so they share one layout.
        self.layout = self.homes[self.region.layers[0].name].layout(cost.soc)

    @property
    def cycles(self) -> int:
        """Predicted cycles of all layers.

        Raises:
            The errors of `generate`.
        """
        return _cycles(self._planned.plan)

    @cached_property
    def _planned(self) -> _Planned:
        """The layers in the order that takes fewest predicted cycles, and their plan."""
        planned = self._whole_input()
        return self._by_rows(planned.plan) or planned

    def _by_rows(self, plan: RegionPlan) -> _Planned | None:
        """Return the layers while an input is converted row by row, if that beats a plan."""
        region, options = self.region, self.cost.options
        plain = not (options.objective or options.layers)
        if not (options.schedule == "overlapped" and plain) or plan.starts:
            return None
        rows = first_layers_by_rows(region, self.homes, self.layout, self.cost)
        if rows is None:
            return None
        source = first_input(region)
        assert source is not None  # its rows are converted
        whole = self.layout.prologue(source, source.name, "_").predicted_cycles
        try:
            split = replace(region, layers=rows.layers, homes=())
            own = plan_region(
                split, rows.homes, self.cost, self.state_offsets, rows.starts, rows.beside
            )
        except TilingError as error:
            _LOG.info("region '%s': '%s' is converted first: %s", region.name, source.name, error)
            return None
        saved = _cycles(plan) + whole - _cycles(own) - rows.cycles
        if saved < _WORTH_PART * len(rows.starts):
            return None
        return _Planned(rows.layers, rows.homes, own, rows)

    def _whole_input(self) -> _Planned:
        """Return the layers in the order that takes fewest cycles after the inputs' conversion."""
        self._check_accepted()
        region = self.region
        early, is_clear = self._early()
        if early is not None and is_clear:
            return early
        plan = plan_region(region, self.homes, self.cost, self.state_offsets)
        blocks, in_turn = self._in_blocks()
        if blocks is not None and _cycles(blocks.plan) < _cycles(plan):
            return blocks
        if blocks is not None:
            in_turn = f"in blocks of rows they take {_cycles(blocks.plan) - _cycles(plan):,} more"
        if in_turn:
            _LOG.info("region '%s' is executed layer by layer: %s", region.name, in_turn)
        layers = region.layers
        reordered = with_long_before_sums(region, self.homes)
        if reordered is not region:
            reordered_plan = plan_region(reordered, self.homes, self.cost, self.state_offsets)
            if _cycles(reordered_plan) < _cycles(plan):
                layers, plan = reordered.layers, reordered_plan
        if any(layer.follower for layer in plan.layers):
            in_turn = ""  # some compute their tiles beside the layer before
        planned = _Planned(layers, self.homes, replace(plan, in_turn=in_turn))
        return planned if early is None else min(planned, early, key=_cycles_of)

    def _in_blocks(self) -> tuple[_Planned | None, str]:
        """Return the layers in blocks of rows, of which some are computed at once, or why not."""
        cost, options = self.cost, self.cost.options
        if options.schedule != "overlapped":
            return None, ""
        if options.objective or options.layers:
            return None, "their tiles have another objective than cycles"
        outputs = [tensor.name for tensor in self.region.outputs]
        try:
            schedule, homes = schedule_blocks(
                self.region.layers, self.homes, outputs, cost.soc, cost.best_cycles
            )
        except TilingError as error:
            return None, str(error)
        if not schedule.starts:
            return None, schedule.reason
        return self._at_once(schedule, homes)

    def _early(self) -> tuple[_Planned | None, bool]:
        """Return the layers with some that are started as soon as their operands are there.

        And whether that saves so much that other plans need not be made.
        """
        cost, options = self.cost, self.cost.options
        if options.schedule != "overlapped" or options.objective or options.layers:
            return None, False
        try:
            schedule, saved = schedule_early(
                self.region.layers, self.homes, cost.soc, options, cost.best_cycles
            )
        except TilingError as error:
            _LOG.info("%s: no layer is started early: %s", self.region.name, error)
            return None, False
        if saved <= 0:
            return None, False
        planned, reason = self._at_once(schedule, self.homes)
        if reason:
            _LOG.info("%s: no layer is started early: %s", self.region.name, reason)
        return planned, saved > _CLEARLY * schedule.cycles

    def _at_once(
        self, schedule: Schedule, homes: Mapping[str, Accelerator]
    ) -> tuple[_Planned | None, str]:
        """Return layers of which some are started before their turn, or why that cannot be."""
        numbers = {layer.name: number for number, layer in enumerate(schedule.layers)}
        starts = {numbers[name]: first for name, first in schedule.starts.items()}
        crowd = crowded({name: homes[name].name for name in numbers}, starts)
        if crowd:
            return None, crowd
        region = replace(self.region, layers=schedule.layers, homes=())
        try:
            plan = plan_region(region, homes, self.cost, self.state_offsets, schedule.starts)
        except TilingError as error:
            return None, str(error)
        return _Planned(schedule.layers, homes, plan), ""

    def _check_accepted(self) -> None:
        """Check that the rules of each layer's accelerator accept it.

        Raises:
            UnsupportedError: they refuse a layer; the message has the reason and the rule.
        """
        for layer in self.region.layers:
            accelerator = self.homes[layer.name]
            verdict = accelerator.judge(self.cost.soc, layer)
            if isinstance(verdict, Refused):
                raise UnsupportedError(
                    verdict.reason,
                    where=f"layer '{layer.name}' on '{accelerator.name}'",
                    hint=f"rule: {verdict.rule}",
                )

    def code(self) -> RegionCode:
        """Return the code of the region.

        Kernels are in execution order (conversions of inputs, layers, conversions of outputs), with
        the buffers to be planned.  A border tensor that already has the accelerator's layout is
        used in place.  A layer that its accelerator expands becomes several.

        Raises:
            The errors of `generate`.
        """
        region = self.region
        read = {tensor.name for layer in region.layers for tensor in layer.inputs}
        entering = [tensor for tensor in region.inputs if tensor.name in read]
        copy_names = {
            tensor.name: tensor.name + _COPY
            for tensor in (*entering, *region.outputs)
            if not self.layout.native(tensor)
        }
        copy_names |= {tensor.name: tensor.name + _COPY for tensor in region.mapped}
        layers = self._layers()
        plan = layers.plan
        by_rows = {kernel.inputs for kernel in layers.kernels if kernel.kind == "prologue"}
        kernels = [
            self._prologue(tensor, copy_names)
            for tensor in entering
            if tensor.name in copy_names and (tensor.name,) not in by_rows
        ]
        kernels += [self._prologue(mapped, copy_names, entry) for mapped, entry in self._maps()]
        kernels += [_rename(kernel, copy_names) for kernel in layers.kernels]
        kernels += [
            self.layout.epilogue(
                tensor, copy_names[tensor.name], self._conversion(tensor, "from_core")
            )
            for tensor in region.outputs
            if tensor.name in copy_names
        ]
        self.symbols.enter(entry.name for kernel in kernels for entry in kernel.constants)
        return RegionCode(
            name=region.name,
            kernels=tuple(kernels),
            buffers=(
                *self._buffers(entering, copy_names, set(plan.resident)),
                *layers.buffers,
            ),
            inputs=region.inputs,
            outputs=region.outputs,
            headers=tuple(
                dict.fromkeys(header for emitter in self._emitters() for header in emitter.headers)
            ),
            plan=plan,
        )

    def _maps(self) -> Iterator[tuple[Tensor, BorderMap]]:
        for tensor, border_map in zip(self.region.mapped, self.region.maps, strict=True):
            if tensor.layout == "CHW":
                raise UnsupportedError(
                    f"the map of '{border_map.tensor}' has no layout to convert",
                    where=f"region '{self.region.name}'",
                    hint="give its source in the outside's layout",
                )
            yield tensor, border_map

    def _prologue(
        self, tensor: Tensor, copy_names: dict[str, str], border_map: BorderMap | None = None
    ) -> Kernel:
        # Another region may convert the map's result itself, so the two functions' names differ.
        suffix = "to_core" if border_map is None else "mapped_to_core"
        symbol = self._conversion(tensor, suffix)
        return self.layout.prologue(tensor, copy_names[tensor.name], symbol, border_map)

    def _conversion(self, tensor: Tensor, suffix: str) -> str:
        """Return a conversion's C name: regions that convert the same tensor share the function."""
        return self.symbols.function_of((tensor.name, suffix), f"{tensor.name}_{suffix}")

    @property
    def _region_emitter(self) -> RegionEmitter | None:
        """The accelerator's emitter if it assembles whole regions, which it plans itself."""
        emitter = next(iter(self.homes.values())).emitter(self.cost.soc)
        return emitter if isinstance(emitter, RegionEmitter) else None

    def _emitters(self) -> Iterator[Emitter | RegionEmitter]:
        """Yield what emits the layers."""
        homes = self.homes if self._region_emitter else self._planned.homes
        yield from (home.emitter(self.cost.soc) for home in homes.values())

    def _layers(self) -> RegionKernels:
        """Return the kernels of the layers, from the accelerator if it assembles whole regions."""
        emitter = self._region_emitter
        if emitter is not None:
            self._check_accepted()
            return emitter.region(self.region, self.cost.options, self._symbol)
        layers, planned = self._planned.layers, self._planned.plan
        kernels: list[Kernel] = []
        symbols = [self._symbol(layer.name) for layer in layers]
        # Backwards: a layer that loads the next one's constants has to know what they are called.
        for number in reversed(range(len(layers))):
            layer, plan, symbol = layers[number], planned.layers[number], symbols[number]
            if plan.preload is not None:
                later = next(
                    each
                    for each in kernels
                    if each.plan
                    and each.plan.preloaded
                    and not (each.plan.started and each.kind == "layer")  # it waits for itself
                )
                array = next(entry.name for entry in later.constants if not entry.memory)
                plan = replace(plan, preload=replace(plan.preload, array=array))
            started = [
                self._start(layers[turn], planned.layers[turn], symbols[turn])
                for turn, first in planned.starts.items()
                if first == number
            ]
            kernels = [*started, *self._rows(number), self._layer(layer, plan, symbol), *kernels]
        kernels = [*self._rows(-1), *kernels]
        if planned.starts:
            running = [
                Running(kernel.layer, kernel.accelerator, kernel.program)
                for kernel in kernels
                if kernel.kind == "layer" and kernel.layer and kernel.program
            ]
            # Beside a layer that is started in its turn, only the host works.
            early = {turn: first for turn, first in planned.starts.items() if first < turn}
            check_under_way(running, early, self.region.name)
        rows = self._planned.rows
        if rows is not None:
            check_input_rows(layers, rows.conversions, self.region.name)
        check_left(
            [
                (kernel.accelerator, kernel.program)
                for kernel in kernels
                if kernel.kind == "layer" and kernel.program
            ]
        )
        return RegionKernels(tuple(kernels), planned)

    def _rows(self, number: int) -> list[Kernel]:
        """Return the conversion of rows after the start of a layer; -1: before all layers."""
        planned = self._planned.rows
        rows = None if planned is None else planned.conversions.get(number)
        if rows is None:
            return []
        symbol = self._symbol(f"{rows.name}_to_core")
        tensor = rows.whole
        return [self.layout.prologue(tensor, tensor.name + _COPY, symbol, rows=rows)]

    def _start(self, layer: Layer, plan: LayerPlan, symbol: str) -> Kernel:
        emitter = self._planned.homes[layer.name].emitter(self.cost.soc)
        assert isinstance(emitter, StartingEmitter)
        return emitter.start(layer, plan, self.cost.options, symbol)

    def _layer(self, layer: Layer, plan: LayerPlan, symbol: str) -> Kernel:
        emitter = self._planned.homes[layer.name].emitter(self.cost.soc)
        assert not isinstance(emitter, RegionEmitter)  # its regions have one accelerator
        kernel = emitter.layer(layer, plan, self.cost.options, symbol)
        dma = self.cost.soc.dma
        if kernel.program is not None and dma is not None:
            with named(kernel.accelerator, self.cost.soc.name):
                check_alignment(kernel.program, dma.l1_align, dma.l2_align)
        return kernel

    def _symbol(self, name: str) -> str:
        """Return the C name of a layer."""
        return self.symbols.function_of((self.region.name, name), name)

    def _buffers(
        self, entering: list[Tensor], copy_names: dict[str, str], resident: set[str]
    ) -> tuple[Buffer, ...]:
        """Buffers for tensors in the accelerator's layout that are internal and not resident."""
        border_names = {tensor.name for tensor in (*self.region.inputs, *self.region.outputs)}
        layers = self.region.layers if self._region_emitter else self._planned.layers
        written = {layer.output.stored.name: layer.output.stored for layer in layers}
        tensors: list[Tensor] = [*entering, *self.region.mapped, *written.values()]
        return tuple(
            Buffer(copy_names.get(tensor.name, tensor.name), self.layout.stored_bytes(tensor))
            for tensor in tensors
            if tensor.name in copy_names or tensor.name not in border_names | resident
        )


def _cycles_of(planned: _Planned) -> int:
    return _cycles(planned.plan)


def _cycles(plan: RegionPlan) -> int:
    """Return the predicted cycles of a plan with what it computes, or loads, at once."""
    return plan.cycles - plan.saved_cycles


def _rename(kernel: Kernel, copy_names: dict[str, str]) -> Kernel:
    """Return the kernel with border tensors replaced by their accelerator-layout copies."""
    if kernel.kind == "prologue":
        return kernel
    return replace(
        kernel,
        inputs=tuple(copy_names.get(name, name) for name in kernel.inputs),
        outputs=tuple(copy_names.get(name, name) for name in kernel.outputs),
    )
