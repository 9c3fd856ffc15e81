"""The simulated SoC under observation: memory contents at the end of every step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import SimulationError
from byoc_dory.layers import MapRows, TensorPart
from byoc_dory.memory.arena import written_over
from htvm.firmware.build import RUN_MARK, build_rv32
from htvm.firmware.lines import Lines
from htvm.firmware.sizes import arena_symbol, tensor_bytes
from htvm.sim.look import Call, Look, Range, Seen
from htvm.sim.runner import failure
from htvm.sim.rv32 import run_rv32

if TYPE_CHECKING:
    from byoc_dory.layers import Array, Tensor
    from byoc_dory.region import Kernel, RegionCode
    from byoc_dory.soc.base import Soc
    from byoc_dory.tileloop.program import TileProgram
    from htvm.aot.program import Program, Step, StepOperand
    from htvm.compiled import Compiled
    from htvm.firmware.build import Built
    from htvm.firmware.rv32 import Firmware
    from htvm.sim.iss import IssResult


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
        symbols = self.firmware.symbols
        if operand.kind == "buffer":
            start = symbols[arena_symbol(self.program)].address
            return start + dict(self.program.plan.offsets)[operand.name]
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
        result = run_rv32(
            self.firmware,
            self._inputs,
            {**sizes, "htvm_run_code": 4},
            compiler=self._built.compiler,
            settings=self._settings,
            look=look,
            placed=self._placed,
        )
        code = int.from_bytes(result.outputs["htvm_run_code"], "little", signed=True)
        if code != 0:
            raise failure(self._built, code, result.marks)
        return result

    def observe(
        self,
        results: Sequence[Result],
        more_ranges: Sequence[Range] = (),
        dirtied: Sequence[Range] = (),
        calls: Sequence[Call] = (),
    ) -> Observed:
        """Run once, and record what is needed to compare ``results``, and ``more_ranges``.

        The ranges ``dirtied`` are filled before (`Look.dirtied`); what ``calls`` leave is recorded,
        too (`Look.calls`).
        """
        spans = [*self._spans(results), *((area.address, area.size) for area in more_ranges)]
        ranges = [Range(start, size) for start, size in _joined_spans(spans)]
        look = Look(snapshots=tuple(ranges), dirtied=tuple(dirtied), calls=tuple(calls))
        done = self.run(look)
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


def _joined_spans(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
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

    def end_of(self, step: int) -> int:
        """Return the cycle at which a step ends."""
        return self.marks[2 * step + 1]

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


_AXES = {
    ("NHWC", 4): ("n", "oy", "ox", "K"),
    ("NCHW", 4): ("n", "K", "oy", "ox"),
    ("CHW", 3): ("K", "oy", "ox"),
    ("CHW", 1): ("K",),
}


def axes_of(layout: str, count: int) -> tuple[str, ...]:
    """Return the names of a tensor's axes, given its layout and how many there are."""
    return _AXES.get((layout, count)) or tuple(f"d{i}" for i in range(count))


@dataclass(frozen=True, eq=False)
class Result:
    """A tensor that a step writes.

    Attributes:
        step: index of the step.
        last: index of the last step that needs it; nobody may change it until then.
        tensor: name of the tensor.
        expected: the reference's values, with the axes that elements are named by.
        axes: names of these axes.
        operand: its place, if in L2; None if it stays in L1.
        address: its device address, if it stays in L1.
        memory: name of the memory.
        offsets: offset of each element from the first byte, in bytes.
        program: the tile program that wrote it; None off accelerators.
    """

    step: int
    last: int
    tensor: str
    expected: Array
    axes: tuple[str, ...]
    operand: StepOperand | None
    address: int
    memory: str
    offsets: Array
    program: TileProgram | None = None

    @property
    def extent(self) -> int:
        """Bytes from its first byte to the end of its last element."""
        return int(self.offsets.max()) + int(self.expected.dtype.itemsize)


def step_results(compiled: Compiled, reference: Mapping[str, Array]) -> tuple[Result, ...]:
    """Return the tensors that can be compared, in the order of steps.

    Args:
        compiled: the built model.
        reference: results of all operators by name, in the integer form's layout.

    A step is left out if it writes an intermediate tensor of an operator (a padded input, a sum),
    for which there is no reference; its errors show in the operator's result.
    """
    return tuple(_Finder(compiled, reference).results())


def _rows(values: Array, tensor: MapRows) -> Array:
    """Return the rows of a whole map, (C, y, x), that a tensor is."""
    return values[:, tensor.first : tensor.first + tensor.shape[1]]


class _Finder:
    def __init__(self, compiled: Compiled, reference: Mapping[str, Array]) -> None:
        self.compiled = compiled
        self.reference = reference
        self.steps = compiled.program.steps
        self.regions = compiled.kernels
        self.cpu = {kernel.symbol: kernel for kernel in compiled.cpu_kernels}
        # An operator may have several kernels; the last one writes its result.
        self.final = {step.layers[-1]: i for i, step in enumerate(self.steps) if step.kind == "cpu"}
        # The step that reads a tensor last may write its output over it.
        taken = set(written_over(compiled.program.plan, compiled.program.buffers).values())
        self.lives = {use.name: use.last - (use.name in taken) for use in compiled.program.buffers}
        self.output_names = compiled.retargeted.model.graph.results
        self.outputs = {
            arg.name: i
            for i, step in enumerate(self.steps)
            for arg in step.args
            if arg.kind == "output"
        }

    def results(self) -> list[Result]:
        found = []
        for index, step in enumerate(self.steps):
            result = self._result(index, step) or self._output(index, step)
            if result is not None:
                found.append(result)
        return found

    def _result(self, index: int, step: Step) -> Result | None:
        if step.symbol in self.regions:
            code, kernel = self.regions[step.symbol]
            if kernel.kind in ("epilogue", "cpu"):
                return self._plain(index, kernel.layer_name, step.args[-1])
            return self._stored(index, step, code, kernel)
        if step.kind == "copy":
            return self._plain(index, step.layer.removeprefix("copy_"), step.args[-1])
        cpu = self.cpu.get(step.symbol)
        if cpu is None or cpu.n_outputs != 1 or self.final[step.layers[-1]] != index:
            return None
        position = len(step.args) - len(cpu.workspaces) - 1
        operand, (_, dtype, shape) = step.args[position], cpu.params[position]
        return self._plain(index, step.layers[-1], operand, dtype, shape)

    def _output(self, index: int, step: Step) -> Result | None:
        """Return an output of the model, which always has a reference, for its last writer."""
        operand = next((arg for arg in step.args if self.outputs.get(arg.name) == index), None)
        if operand is None:
            return None
        number = int(operand.name.removeprefix("output_"))
        return self._plain(index, self.output_names[number], operand)

    def _plain(
        self,
        index: int,
        tensor: str,
        operand: StepOperand,
        dtype: str | None = None,
        shape: tuple[int, ...] = (),
    ) -> Result | None:
        """Return a tensor in the integer form's own layout."""
        expected = self.reference.get(tensor)
        if expected is None or (
            dtype is not None
            and (expected.dtype.name != dtype or expected.size != int(np.prod(shape)))
        ):
            return None
        offsets = np.arange(expected.size, dtype=np.int64) * expected.dtype.itemsize
        layout = self._layout(tensor)
        axes = axes_of(layout, expected.ndim)
        return Result(
            index, self.lives.get(operand.name, len(self.steps)), tensor, expected, axes, operand,
            0, "L2", offsets.reshape(expected.shape),
        )  # fmt: skip

    def _layout(self, tensor: str) -> str:
        layer = self.compiled.dispatch.layers.get(tensor)
        return "" if layer is None else layer.output.layout

    def _stored(self, index: int, step: Step, code: RegionCode, kernel: Kernel) -> Result | None:
        """Return a tensor in an accelerator's layout: a layer's output, or a prologue's."""
        if kernel.kind == "start":
            return None
        soc = self.compiled.target.soc
        tensor = self._border(code, kernel) if kernel.layer is None else kernel.layer.output
        name = kernel.accelerator
        if kernel.layer is None:
            name = next(other.accelerator for other in code.kernels if other.kind == "layer")
        accelerator = soc.accelerator(name)
        expected = None if tensor is None else self._normalised(tensor)
        if tensor is None or expected is None:
            return None
        plan = kernel.plan
        resident = plan is not None and plan.resident_output
        operand = None if resident else step.args[-1]
        address = 0
        if plan is not None and resident:
            address = soc.memory(accelerator.l1).base + plan.l1_output
            last = self._last_reader(code, tensor.name, index)
        else:
            last = self.lives.get(step.args[-1].name, len(self.steps))
        layout = accelerator.layout(soc)
        if isinstance(tensor, MapRows) and tensor.inside:
            offsets = _rows(layout.offsets(tensor.whole), tensor)
        else:
            inside = tensor.first if isinstance(tensor, TensorPart) and tensor.inside else 0
            offsets = inside + layout.offsets(tensor)
        if plan is not None and plan.leaves:
            index += 1  # the next step completes it
        return Result(
            index, last, tensor.name, expected, _AXES.get(("CHW", expected.ndim), ()), operand,
            address, accelerator.l1 if resident else "L2",
            offsets, kernel.program,
        )  # fmt: skip

    @staticmethod
    def _border(code: RegionCode, kernel: Kernel) -> Tensor | None:
        """The tensor that a prologue converts; a map's result has the shape of its source."""
        source = next((t for t in code.inputs if t.name == kernel.inputs[0]), None)
        return None if source is None else replace(source, name=kernel.layer_name)

    def _normalised(self, tensor: Tensor) -> Array | None:
        """Return the reference's values as (C, y, x) or (C,)."""
        if isinstance(tensor, MapRows):
            whole = self._normalised(tensor.whole)
            return None if whole is None else _rows(whole, tensor)
        name = tensor.whole.name if isinstance(tensor, TensorPart) else tensor.name
        values = self.reference.get(name)
        layout = tensor.layout if tensor.layout != "CHW" else self._layout(name)
        if values is not None and isinstance(tensor, TensorPart):
            # A block of rows: matrices are stored row by row.
            values = values.reshape(-1)[tensor.first : tensor.first + tensor.elements]
        if values is None or values.size != tensor.elements:
            return None
        if values.dtype.itemsize != np.dtype(tensor.dtype).itemsize:
            return None
        if len(tensor.shape) == 1 or layout == "NCHW":
            return values.reshape(tensor.shape)
        channels, rows, columns = tensor.shape
        return values.reshape(rows, columns, channels).transpose(2, 0, 1)

    def _last_reader(self, code: RegionCode, tensor: str, index: int) -> int:
        """Return the last step of the region that reads a tensor."""
        reading = {
            kernel.symbol
            for kernel in code.kernels
            if kernel.layer is not None
            and tensor in [t.name for t in kernel.layer.inputs]
            # What was started has read it when it is waited for, and may have overwritten it.
            and not (kernel.plan is not None and kernel.plan.started and kernel.kind == "layer")
        }
        return max(
            (i for i, step in enumerate(self.steps) if step.symbol in reading), default=index
        )
