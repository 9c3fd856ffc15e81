"""Red zones: memory that a step must not change, compared before and after it.

A step may write its results and workspaces. The rest of the arena, the inputs and outputs, the gaps
beside them, and L1 beyond what its layer uses are red zones: a byte that changes there was written
past the end of something, whether or not anybody reads it.  They begin right behind a tensor's last
byte.  What nobody has written when the network begins is filled before, because memory is full of
zeros, and what is written past an end often is, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htvm.aot.entry import place
from htvm.aot.steps import StepOperand
from htvm.firmware.sizes import arena_symbol, tensor_bytes
from htvm.sim.look import Range
from htvm.tools.verification.compare import origins
from htvm.tools.verification.types import Stray

if TYPE_CHECKING:
    from htvm.aot.program import Step
    from htvm.compiled import Compiled
    from htvm.tools.verification.observe import ObservableMachine, Observed

Mask: TypeAlias = npt.NDArray[np.bool_]

_GUARD = 512
"""Bytes on both sides of arena, inputs and outputs, and behind what a layer uses of L1."""

_OF_RUN = "htvm_run_"
"""Variables of the firmware around the network, which no step writes."""


@dataclass(frozen=True)
class _Place:
    """An object in memory: its name for people, first address and bytes."""

    name: str
    start: int
    size: int

    @property
    def end(self) -> int:
        return self.start + self.size


class Zones:
    """The red zones of a compiled model.

    Args:
        compiled: the model.
        machine: the machine that runs it.
    """

    def __init__(self, compiled: Compiled, machine: ObservableMachine) -> None:
        self._compiled = compiled
        self._machine = machine
        self._program = compiled.program
        self._kernels = compiled.kernels
        self._cpu = {kernel.symbol: kernel for kernel in compiled.cpu_kernels}
        self._objects = tuple(self._in_l2())
        own_starts = {each.start for each in self._objects}
        constants = {constant.name for constant in self._program.constants}
        self._others = tuple(
            _Place(symbol.name, symbol.address, symbol.size)
            for symbol in machine.firmware.symbols.values()
            if symbol.size and symbol.address not in own_starts
            if symbol.name not in constants and not symbol.name.startswith(_OF_RUN)
        )

    def ranges(self) -> tuple[Range, ...]:
        """Return what to look at, in L2 and in L1; ranges may overlap."""
        low, high = self._data()
        ranges = []
        for each in self._objects:
            start, end = max(low, each.start - _GUARD), min(high, each.end + _GUARD)
            ranges.append(Range(start, end - start))
        ranges += [area for _, area in self._beyond_used()]
        return tuple(dict.fromkeys(ranges))

    def untouched(self) -> tuple[Range, ...]:
        """Return what nobody has written when the first step begins."""
        symbols = self._machine.firmware.symbols
        low, high = max(self._data()[0], symbols["__bss_start"].address), self._data()[1]
        occupied = sorted(
            (symbol.address, symbol.address + symbol.size)
            for symbol in symbols.values()
            if symbol.size and low <= symbol.address < high
        )
        untouched = [
            area
            for each in self._objects
            if not each.name.startswith("input ")
            for area in self._without_inputs(each)
        ]
        for each in self._objects:
            at, end = max(low, each.start - _GUARD), min(high, each.end + _GUARD)
            for first, last in occupied:
                if at < first < end:
                    untouched.append(Range(at, first - at))
                at = max(at, last)
            if at < end:
                untouched.append(Range(at, end - at))
        return (*dict.fromkeys(untouched), *self._untouched_l1())

    def _without_inputs(self, each: _Place) -> Iterator[Range]:
        """The bytes of an object where no input lies."""
        inputs = sorted(
            (place.start, place.end)
            for place in (
                self._place(StepOperand("buffer", name)) for _, name in self._program.overwritten
            )
            if each.start <= place.start < each.end
        )
        at = each.start
        for start, end in (*inputs, (each.end, each.end)):
            if start > at:
                yield Range(at, start - at)
            at = end

    def _untouched_l1(self) -> Iterator[Range]:
        """L1 as far as layers use it, without inputs that are there from the beginning."""
        soc, places = self._machine.soc, [at for _, at in self._program.places]
        used: dict[int, int] = {}
        for symbol, (code, kernel) in self._kernels.items():
            if code.plan is None or symbol not in code.l1_used:
                continue
            memory = soc.memory(soc.accelerator(kernel.accelerator).l1)
            end = memory.base + min(memory.size, code.plan.l1_peak + _GUARD)
            used[memory.base] = min([max(used.get(memory.base, 0), end), *places])
        yield from (Range(base, end - base) for base, end in used.items() if end > base)

    def stray(self, observed: Observed, trace: bool = True) -> Stray | None:
        """Return the first byte of a red zone that changes; None if none does.

        Args:
            observed: a run that looked at `ranges`.
            trace: whether to look for the writers, which runs again and needs debug information.
        """
        for index in range(len(self._program.steps)):
            changed = sorted(self._changed_bytes(observed, index))
            if changed:
                return self._described(observed, index, changed, trace)
        return None

    def _data(self) -> tuple[int, int]:
        """Return where data lie in L2: from the first object to the stack or the memory's end."""
        memory = self._machine.soc.memory("L2")
        stack = self._machine.firmware.symbols["__stack_low"].address
        end = memory.base + memory.size
        return memory.base, min(stack, end) if stack > self._objects[0].start else end

    def _in_l2(self) -> Iterator[_Place]:
        symbols, program = self._machine.firmware.symbols, self._program
        apart = {**dict(program.places), **dict(program.overwritten)}
        for side, tensors in (("input", program.inputs), ("output", program.outputs)):
            for number, info in enumerate(tensors):
                if side == "input" and number in apart:
                    continue
                start = symbols[f"htvm_run_{side}_{number}"].address
                yield _Place(f"{side} {info.name}", start, tensor_bytes((info,)))
        if program.plan.peak:
            start = symbols[arena_symbol(program)].address
            yield _Place("the arena", start, program.plan.peak)

    def _beyond_used(self) -> Iterator[tuple[str, Range]]:
        """The bytes of L1 behind what each layer's kernel uses, by the kernel's symbol."""
        soc = self._machine.soc
        for code, kernel in self._kernels.values():
            used = code.l1_used.get(kernel.symbol)
            if used is None or code.plan is None:
                continue
            memory = soc.memory(soc.accelerator(kernel.accelerator).l1)
            start = max(used, code.plan.l1_peak)
            size = min(_GUARD, memory.size - start)
            if size > 0:
                yield kernel.symbol, Range(memory.base + start, size)

    def _changed_bytes(self, observed: Observed, index: int) -> Iterator[int]:
        step = self._program.steps[index]
        written = tuple(self._written_places(step))
        guards = [area for symbol, area in self._beyond_used() if symbol == step.symbol]
        for area, old, new in observed.between(index):
            different = np.flatnonzero(_bytes(old) != _bytes(new)) + area.address
            if not different.size:
                continue
            mask = np.zeros(different.size, bool)
            for each in self._objects:
                mask |= _within(different, each.start - _GUARD, each.end + _GUARD)
            for guard in guards:
                mask |= _within(different, guard.address, guard.address + guard.size)
            for each in written:
                mask &= ~_within(different, each.start, each.end)
            for each in self._others if mask.any() else ():
                mask &= ~_within(different, each.start, each.end)
            yield from (int(address) for address in different[mask])

    def _written_places(self, step: Step) -> Iterator[_Place]:
        """What a step may write: its results and workspaces."""
        first = 0
        if step.symbol in self._kernels:
            first = len(self._kernels[step.symbol][1].inputs)
        elif step.symbol in self._cpu:
            kernel = self._cpu[step.symbol]
            first = len(step.args) - kernel.n_outputs - len(kernel.workspaces)
        elif step.kind == "copy":
            first = len(step.args) - 1
        for operand in step.args[first:]:
            if operand.kind != "constant":
                yield self._place(operand)

    def _place(self, operand: StepOperand) -> _Place:
        start = self._machine.place(operand)
        if operand.kind == "buffer":
            size = next(use.bytes for use in self._program.buffers if use.name == operand.name)
            return _Place(operand.name, start, size)
        side, number = operand.name.rsplit("_", 1)
        tensors = self._program.inputs if side == "input" else self._program.outputs
        info = tensors[int(number)]
        return _Place(f"{side} {info.name}", start, tensor_bytes((info,)))

    def _described(self, observed: Observed, index: int, changed: list[int], trace: bool) -> Stray:
        step, address = self._program.steps[index], changed[0]
        soc = self._machine.soc
        memory = next(m.name for m in soc.memories if m.base <= address < m.base + m.size)
        return Stray(
            step=index,
            layer=step.layer,
            place=place(step),
            memory=memory,
            address=address,
            bytes=len(changed),
            beside=self._neighbour_text(step, address),
            origins=origins(self._machine, observed, address, 1, observed.end_of(index))
            if trace
            else (),
        )

    def _neighbour_text(self, step: Step, address: int) -> str:
        """Say where an address is, by the result that ends before it and by what it belongs to."""
        written = sorted(self._written_places(step), key=lambda each: each.end)
        ended = [each for each in written if each.end <= address]
        parts = []
        if ended and address - ended[-1].end < 4096:
            parts.append(f"{address - ended[-1].end:,} B past the end of {ended[-1].name}")
        inside = [each for each in self._objects if each.start <= address < each.end]
        live = [
            each
            for each in (
                self._place(operand) for operand in step.args if operand.kind != "constant"
            )
            if each.start <= address < each.end
        ]
        parts += [f"in {each.name}" for each in (live or inside)[:1]]
        return ", ".join(parts) or "beyond what the layer uses"


def _bytes(data: bytes) -> npt.NDArray[Any]:
    return np.frombuffer(data, np.uint8)


def _within(addresses: npt.NDArray[Any], start: int, end: int) -> Mask:
    mask: Mask = (addresses >= start) & (addresses < end)
    return mask
