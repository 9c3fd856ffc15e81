"""Assigning places to a model's tensors, and turning calls into steps.

Used only by :func:`htvm.aot.program.assemble`, which determines the order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory.errors import ModelError
from byoc_dory.memory.arena import ALIGNMENT, BufferUse
from byoc_dory.region import Constant
from byoc_dory.sharing import Sharing
from htvm.aot.constants import FreshNames
from htvm.aot.literals import shape_text
from htvm.aot.steps import (
    Alias,
    CpuKernel,
    ModelCall,
    Provenance,
    Step,
    StepOperand,
    Streamed,
    Value,
    local_name,
    parameter_types,
)
from patterns.rows import ROW_AXIS

if TYPE_CHECKING:
    from byoc_dory.region import Kernel, RegionCode
    from htvm.model import TensorInfo

# Longest names of locals: the name of a tensor that was fused from many must not fill the page.
_LONGEST_NAME = 48


@dataclass
class _Storage:
    """The place of a tensor: fixed (the caller's, or a constant), or bytes in the arena."""

    operand: StepOperand | None
    bytes: int
    label: str
    first: int = -1
    last: int = -1


@dataclass(frozen=True, eq=False)
class Assembly:
    """The input of assembling a program.

    Attributes:
        name: C identifier that prefixes all external symbols.
        inputs, outputs: inputs and outputs of the model.
        calls: calls in execution order.
        results: for each output, name of the tensor (or input, or constant) that is returned.
        cpu_kernels: CPU kernels by ``symbol``; each may be called any number of times.
        regions: regions by the name that calls use.
        constants: arrays that calls pass to CPU kernels, by the name that calls use; a constant's
            own name is that in C.
        parameters: names that calls use for the inputs; ``None`` if these are the inputs' own
            names.
        origin: provenance of the program, for the files' heads; ``None`` for none.
        places: address of each input that stays in a memory of its own between runs, by number.
        overwritten: numbers of the inputs that lie in the arena, where a run overwrites them.
        streamed: whether the only input comes row by row to the first call, whose last workspace is
            what that keeps from row to row.
        stack_bytes: reserved on the target for the stack.
    """

    name: str
    inputs: Sequence[TensorInfo]
    outputs: Sequence[TensorInfo]
    calls: Sequence[ModelCall | Alias]
    results: Sequence[str]
    cpu_kernels: Sequence[CpuKernel] = ()
    regions: Mapping[str, RegionCode] = field(default_factory=dict[str, "RegionCode"])
    constants: Mapping[str, Constant] = field(default_factory=dict[str, Constant])
    parameters: Sequence[str] | None = None
    origin: Provenance | None = None
    places: Mapping[int, int] = field(default_factory=dict[int, int])
    overwritten: Sequence[int] = ()
    streamed: bool = False
    stack_bytes: int = 0


class Assembler:
    """Walks the calls once; tensors are looked up through :meth:`root`, which folds aliases."""

    def __init__(self, given: Assembly) -> None:
        self.name = given.name
        self.inputs = tuple(given.inputs)
        self.outputs = tuple(given.outputs)
        self.steps: list[Step] = []
        self.storages: dict[str, _Storage] = {}
        self.shapes: dict[str, Value] = {}
        self.aliases: dict[str, str] = {}
        self.constants: dict[str, Constant] = {}
        self._pending: list[list[str | StepOperand]] = []
        self._over: dict[str, list[tuple[str, int, int]]] = {}
        self._model_constants = given.constants
        self._results = tuple(given.results)
        self._overwritten: dict[int, str] = {}
        self._streamed = given.streamed
        names = given.parameters
        parameters = [info.name for info in self.inputs] if names is None else names
        for index, (info, parameter) in enumerate(zip(self.inputs, parameters, strict=True)):
            value = Value(parameter, info.shape, info.dtype)
            if index not in given.overwritten:
                self.define(value, StepOperand("input", f"input_{index}"))
                continue
            self.define(value, label=info.name)
            self.storages[parameter].first = self.storages[parameter].last = 0
            self._overwritten[index] = parameter

    # --- tensors -------------------------------------------------------------------------

    def define(self, value: Value, operand: StepOperand | None = None, label: str = "") -> None:
        """Enter a tensor; without an operand it is in the arena (or becomes an output)."""
        if value.name in self.storages or value.name in self.aliases:
            raise ModelError(f"tensor '{value.name}' is defined twice", where=self.name)
        self.storages[value.name] = _Storage(operand, value.bytes, label or value.name)
        self.shapes[value.name] = value

    def root(self, tensor: str) -> str:
        """Return the tensor whose bytes ``tensor`` shares, entering constants on first use."""
        while tensor in self.aliases:
            tensor = self.aliases[tensor]
        if tensor not in self.storages:
            constant = self._model_constants.get(tensor)
            if constant is None:
                raise ModelError(
                    f"'{tensor}' is used, but is neither an input, a constant nor the output of "
                    "an earlier call",
                    where=f"program '{self.name}'",
                )
            self.add_constant(replace(constant, align=max(ALIGNMENT, constant.align)))
            value = Value(tensor, tuple(constant.data.shape), constant.data.dtype.name)
            self.define(value, StepOperand("constant", constant.name))
        return tensor

    def check_symbol(self, symbol: str, where: str) -> None:
        """Refuse external symbols that could clash with those of another model."""
        if not symbol.startswith(f"{self.name}_"):
            raise ModelError(f"symbol '{symbol}' does not start with '{self.name}_'", where=where)

    def add_constant(self, constant: Constant) -> None:
        """Enter a C array; a symbol must stand for a single array."""
        if not constant.elsewhere:
            self.check_symbol(constant.name, "constants")
        known = self.constants.setdefault(constant.name, constant)
        if known is not constant and not np.array_equal(known.data, constant.data):
            raise ModelError(f"two constants are called '{constant.name}'", where=self.name)

    def alias(self, alias: Alias) -> None:
        """Enter a second name for a tensor."""
        source = self.root(alias.source)
        if alias.output.name in self.storages or alias.output.name in self.aliases:
            raise ModelError(f"tensor '{alias.output.name}' is defined twice", where=self.name)
        if self.storages[source].bytes != alias.output.bytes:
            raise ModelError(
                f"'{alias.output.name}' has {alias.output.bytes} B, but '{alias.source}', whose "
                f"bytes it shares, has {self.storages[source].bytes} B",
                where=f"program '{self.name}'",
            )
        self.aliases[alias.output.name] = source
        self.shapes[alias.output.name] = alias.output

    def touch(self, tensor: str) -> str:
        """Mark a tensor as used by the step about to be appended."""
        root = self.root(tensor)
        storage = self.storages[root]
        index = len(self.steps)
        if storage.first < 0:
            storage.first = index
        storage.last = index
        return root

    # --- steps ---------------------------------------------------------------------------

    def append(self, step: Step, tensors: Sequence[str], prototype: str) -> None:
        """Append a step whose operands are ``tensors`` (resolved once all uses are known)."""
        where = f"step {len(self.steps)}, layer '{step.layer}'"
        self.check_symbol(step.symbol, where)
        wanted = len(parameter_types(prototype))
        if wanted != len(tensors):
            raise ModelError(
                f"'{step.symbol}' is passed {len(tensors)} pointers, but takes {wanted}",
                where=where,
            )
        self._pending.append([self.touch(tensor) for tensor in tensors])
        self.steps.append(step)

    def cpu(self, call: ModelCall, kernel: CpuKernel) -> None:
        """Append a CPU kernel with its workspaces, which live only for this step."""
        sources = [self.root(name) for name in call.inputs]
        for value in call.outputs:
            self.define(value)
        spaces = []
        names = [name for name, *_ in kernel.params[len(kernel.params) - len(kernel.workspaces) :]]
        for name, size in zip(names, kernel.workspaces, strict=True):
            space = f"{kernel.symbol}.{name}.{len(self.steps)}"
            self.storages[space] = _Storage(None, size, f"{kernel.symbol}_{name}")
            spaces.append(space)
        for constant in kernel.constants:
            self.add_constant(constant)
        step = Step(
            symbol=kernel.symbol,
            args=(),
            returns_code=_returns_code(kernel.prototype),
            layers=kernel.layers or (kernel.symbol,),
            accelerator="cpu",
            kind="cpu",
            predicted_cycles=0,
            macs=call.macs,
            comment=self.arrow(call),
        )
        for overlay in kernel.overlays:
            found = self._over.setdefault(call.outputs[0].name, [])
            found.append((sources[overlay.parameter], overlay.below, overlay.above))
        tensors = [*sources, *(value.name for value in call.outputs), *spaces]
        self.append(step, tensors, kernel.prototype)

    def region(self, call: ModelCall, code: RegionCode) -> None:
        """Append a region's kernels; its buffers become buffers of the arena."""
        if len(call.inputs) != len(code.inputs) or len(call.outputs) != len(code.outputs):
            raise ModelError(
                f"region '{code.name}' has {len(code.inputs)} inputs and {len(code.outputs)} "
                f"outputs, but is called with {len(call.inputs)} and {len(call.outputs)}",
                where=f"program '{self.name}'",
            )
        local = {
            tensor.name: self.root(name)
            for tensor, name in zip(code.inputs, call.inputs, strict=True)
        }
        for tensor, value in zip(code.outputs, call.outputs, strict=True):
            self.define(value, label=tensor.name)
            local[tensor.name] = value.name
        for buffer in code.buffers:
            if buffer.name in local:
                raise ModelError(
                    f"buffer '{buffer.name}' is called like an input, output or other buffer",
                    where=f"region '{code.name}'",
                )
            inner = f"{code.name}.{buffer.name}"
            self.storages[inner] = _Storage(None, buffer.bytes, buffer.name)
            local[buffer.name] = inner
        for kernel in code.kernels:
            for constant in kernel.constants:
                self.add_constant(constant)
            try:
                tensors = [local[name] for name in (*kernel.inputs, *kernel.outputs)]
            except KeyError as error:
                raise ModelError(
                    f"kernel '{kernel.symbol}' uses {error}, which is no buffer of its region",
                    where=f"region '{code.name}'",
                ) from error
            for written, source in kernel.over:
                found = self._over.setdefault(local[written], [])
                found.append((local[source], 0, 0))
            step = Step(
                symbol=kernel.symbol,
                args=(),
                returns_code=_returns_code(kernel.prototype),
                layers=tuple(layer.name for layer in kernel.together) or (kernel.layer_name,),
                accelerator=kernel.accelerator,
                kind="layer" if kernel.kind == "start" else kernel.kind,
                predicted_cycles=kernel.predicted_cycles,
                macs=sum(layer.macs for layer in kernel.layers) if kernel.kind != "start" else 0,
                comment=_sizes(kernel),
                part=_part(kernel),
                ready=kernel.ready,
            )
            self.append(step, tensors, kernel.prototype)

    def results(self) -> None:
        """Write results straight into the caller's outputs if possible; else copy them there."""
        for index, (result, info) in enumerate(zip(self._results, self.outputs, strict=True)):
            root = self.root(result)
            storage = self.storages[root]
            wanted = Value(info.name, info.shape, info.dtype).bytes
            if storage.bytes != wanted:
                raise ModelError(
                    f"output '{info.name}' has {wanted} B, but '{result}' has {storage.bytes} B",
                    where=f"program '{self.name}'",
                )
            target = StepOperand("output", f"output_{index}")
            if storage.operand is None and root not in self._overwritten.values():
                storage.operand = target
                continue
            step = Step(
                symbol="",
                args=(),
                returns_code=False,
                layers=(f"copy_{result}",),
                accelerator="cpu",
                kind="copy",
                predicted_cycles=0,
                macs=0,
                comment=_shape(self.shapes[result]),
                bytes=wanted,
            )
            self._pending.append([self.touch(result), target])
            self.steps.append(step)

    def arrow(self, call: ModelCall) -> str:
        """Return the shapes of a call: activations in, activations out."""
        sources = [
            _shape(self.shapes[name]) for name in call.inputs if name not in self._model_constants
        ]
        return " + ".join(sources) + " -> " + " + ".join(_shape(value) for value in call.outputs)

    # --- the end -------------------------------------------------------------------------

    def buffers(self) -> tuple[BufferUse, ...]:
        """Return the buffers left for the arena, in the order of first use."""
        taken = [f"input_{i}" for i in range(len(self.inputs))]
        taken += [f"output_{i}" for i in range(len(self.outputs))]
        names = FreshNames([*taken, *self.constants, *(step.symbol for step in self.steps)])
        if self._streamed:
            self.storages[str(self._pending[0][-1])].last = len(self.steps) - 1
        waiting = [
            (tensor, storage)
            for tensor, storage in self.storages.items()
            if storage.operand is None and storage.first >= 0
        ]
        waiting.sort(key=lambda entry: entry[1].first)
        for _, storage in waiting:
            name = names.fresh(local_name(storage.label)[:_LONGEST_NAME])
            storage.operand = StepOperand("buffer", name)
        return tuple(self._use(tensor) for tensor, _ in waiting)

    def overwritten(self) -> tuple[tuple[int, str], ...]:
        """Return (number, buffer) of each input that lies in the arena, once there are buffers."""
        found = []
        for number, tensor in self._overwritten.items():
            operand = self.storages[tensor].operand
            assert operand is not None
            found.append((number, operand.name))
        return tuple(found)

    def streamed(self) -> Streamed | None:
        """Return how the input comes row by row, if it does, once there are buffers."""
        if not self._streamed:
            return None
        operand = self.storages[str(self._pending[0][-1])].operand
        assert operand is not None
        return Streamed(self.inputs[0].shape[ROW_AXIS], operand.name)

    def _use(self, tensor: str) -> BufferUse:
        """Return a buffer, with the largest input over which the step that writes it may do so."""
        own = self.storages[tensor]
        assert own.operand is not None
        best, largest = BufferUse(own.operand.name, own.bytes, own.first, own.last), 0
        written = self._over.get(tensor, [])
        for source in dict.fromkeys(source for source, *_ in written):
            storage = self.storages[source]
            operand = storage.operand
            if operand is None or operand.kind != "buffer" or storage.last != own.first:
                continue
            if storage.bytes <= largest:
                continue
            largest = storage.bytes
            # An operand that is passed twice is read in both places.
            below = max(below for name, below, _ in written if name == source)
            above = max(above for name, _, above in written if name == source)
            best = replace(best, over=operand.name, below=below, above=above)
        return best

    def finished_steps(self, sharing: Sharing) -> tuple[Step, ...]:
        """Put the operands into the steps, and the functions that they call."""
        done = []
        for step, tensors in zip(self.steps, self._pending, strict=True):
            args = []
            for tensor in tensors:
                operand = (
                    tensor if isinstance(tensor, StepOperand) else self.storages[tensor].operand
                )
                assert operand is not None, tensor
                args.append(operand)
            done.append(replace(step, args=tuple(args), **_called(step, sharing)))
        return tuple(done)


def _called(step: Step, sharing: Sharing) -> dict[str, Any]:
    if step.symbol not in sharing.function_of:
        return {}
    values = tuple((value.argument, value.value) for value in sharing.values[step.symbol])
    return {"function": sharing.function_of[step.symbol].symbol, "values": values}


def _sizes(kernel: Kernel) -> str:
    """Return the sizes of a kernel's layers, from the first to the last if there are many."""
    if not kernel.layers:
        return "layout"
    first, *_, last = (*kernel.layers, kernel.layers[-1])
    return first.sizes_text if first is last else f"{len(kernel.layers)} layers"


def _part(kernel: Kernel) -> str:
    """Return which part of its layer a kernel computes, or that it only starts it."""
    block = kernel.layer.name.removeprefix(kernel.layer_name) if kernel.layer else ""
    return block + (".start" if kernel.kind == "start" else "")


def _returns_code(prototype: str) -> bool:
    return re.match(r"\s*(extern\s+)?int32_t\b", prototype) is not None


def _shape(value: Value) -> str:
    return f"{shape_text(value.shape)} {value.dtype}"
