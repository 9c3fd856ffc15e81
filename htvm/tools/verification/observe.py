"""The simulated SoC under observation: memory contents at the end of every step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from byoc_dory.errors import SimulationError
from htvm.firmware.build import RUN_MARK, build_rv32
from htvm.firmware.lines import Lines
from htvm.firmware.sizes import tensor_bytes
from htvm.sim.look import Look, Range, Seen
from htvm.sim.runner import failure
from htvm.sim.rv32 import run_rv32

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from htvm.aot.program import Program, StepOperand
    from htvm.firmware.build import Built
    from htvm.firmware.rv32 import Firmware
    from htvm.sim.iss import IssResult
    from htvm.tools.verification.results import Result

Array: TypeAlias = npt.NDArray[Any]


class ObservableMachine:
    """A program on the simulated SoC that can be run repeatedly with different observations.

    Args:
        program: the program to run.
        soc: the SoC to run it on.
        inputs: inputs of the inference, in the model's order.
        settings: settings of the device models.
        built: the program as it was built; by default it is built with debug information, which
            `lines` needs.

    Raises:
        L2OverflowError: the program does not fit.
        ToolchainError: there is no C compiler, or it failed.
    """

    def __init__(
        self,
        program: Program,
        soc: Soc,
        inputs: Sequence[Array],
        settings: Mapping[int, int],
        built: Built | None = None,
    ) -> None:
        self.program = program
        self.soc = soc
        self._built: Built = built or build_rv32(program, soc, debug=True)
        self._inputs = {
            f"htvm_run_input_{i}": array.tobytes()
            for i, array in enumerate(inputs)
            if i not in dict(program.places)
        }
        self._placed = {address: inputs[i].tobytes() for i, address in program.places}
        self._settings = settings

    @property
    def firmware(self) -> Firmware:
        """The linked program."""
        assert self._built.firmware is not None
        return self._built.firmware

    @cached_property
    def lines(self) -> Lines:
        """Debug information that maps the program's instructions to lines."""
        return Lines(self.firmware.elf)

    def address(self, result: Result) -> int:
        """Return the device address of a tensor's first byte."""
        return result.address if result.operand is None else self.place(result.operand)

    def place(self, operand: StepOperand) -> int:
        """Return the device address of an operand's first byte."""
        symbols, name = self.firmware.symbols, self.program.name
        if operand.kind == "buffer":
            return symbols[f"{name}_arena"].address + dict(self.program.plan.offsets)[operand.name]
        if operand.kind == "constant":
            return symbols[operand.name].address
        return symbols[f"htvm_run_{operand.name}"].address

    def run(self, look: Look) -> IssResult:
        """Run the inference.

        Raises:
            SimulationError: the core trapped, a device complained, or the program returned an
                error.
        """
        sizes = {
            f"htvm_run_output_{i}": tensor_bytes((info,))
            for i, info in enumerate(self.program.outputs)
        }
        done = run_rv32(
            self.firmware,
            self._inputs,
            {**sizes, "htvm_run_code": 4},
            compiler=self._built.compiler,
            settings=self._settings,
            look=look,
            placed=self._placed,
        )
        code = int.from_bytes(done.outputs["htvm_run_code"], "little", signed=True)
        if code != 0:
            raise failure(self._built, code, done.marks)
        return done

    def observe(
        self,
        results: Sequence[Result],
        more: Sequence[Range] = (),
        dirtied: Sequence[Range] = (),
    ) -> Observed:
        """Run once, and record what is needed to compare ``results``, and the ranges ``more``.

        The ranges ``dirtied`` are filled before (`Look.dirtied`).
        """
        spans = [*self._spans(results), *((area.address, area.size) for area in more)]
        ranges = [Range(start, size) for start, size in _joined(spans)]
        done = self.run(Look(snapshots=tuple(ranges), dirtied=tuple(dirtied)))
        assert done.seen is not None
        outputs = [
            np.frombuffer(done.outputs[f"htvm_run_output_{i}"], np.dtype(info.dtype))
            .reshape(tuple(info.shape))
            .copy()
            for i, info in enumerate(self.program.outputs)
        ]
        return Observed(done, done.seen, tuple(ranges), outputs)

    def _spans(self, results: Sequence[Result]) -> list[tuple[int, int]]:
        return [(self.address(result), result.extent) for result in results]


def _joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return disjoint ranges that cover the spans: (first address, bytes)."""
    joined: list[tuple[int, int]] = []
    for start, size in sorted(spans):
        if joined and start <= sum(joined[-1]):
            first = joined[-1][0]
            joined[-1] = (first, max(sum(joined[-1]), start + size) - first)
        else:
            joined.append((start, size))
    return joined


@dataclass(frozen=True, eq=False)
class Observed:
    """An observed run.

    Attributes:
        done: the results of the run.
        seen: the snapshots.
        ranges: the ranges that the snapshots contain.
        outputs: the model's outputs.
    """

    done: IssResult
    seen: Seen
    ranges: tuple[Range, ...]
    outputs: list[Array]

    @cached_property
    def marks(self) -> dict[int, int]:
        """Event -> cycle."""
        return {event: cycle for cycle, event in self.done.marks}

    @property
    def begin(self) -> int:
        """Cycle of the entry function's call."""
        return self.marks[RUN_MARK]

    def between(self, step: int) -> Iterator[tuple[Range, bytes, bytes]]:
        """The ranges with their contents before and after a step.

        Raises:
            SimulationError: the firmware never made the mark of the step's end.
        """
        before = self._contents(2 * step - 1 if step else RUN_MARK, step)
        yield from zip(self.ranges, before, self._contents(2 * step + 1, step), strict=True)

    def _contents(self, event: int, step: int) -> tuple[bytes, ...]:
        if event not in self.seen.snapshots:
            raise SimulationError(f"the firmware never made the mark of step {step}'s end")
        return self.seen.snapshots[event]

    def values(self, result: Result, address: int, step: int) -> Array:
        """The values of a tensor at ``address`` at the end of a step, in its reference's shape."""
        for area, data in zip(self.ranges, self._contents(2 * step + 1, step), strict=True):
            start = address - area.address
            if 0 <= start and start + result.extent <= area.size:
                item = result.expected.dtype.itemsize
                memory = np.frombuffer(data, np.uint8)
                places = result.offsets.reshape(-1, 1) + start + np.arange(item)
                found = memory[places].reshape(-1).view(result.expected.dtype)
                return found.reshape(result.expected.shape)
        raise AssertionError("a tensor outside of what is looked at")
