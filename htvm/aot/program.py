"""`Program`: a model as a straight line of C calls over one planned L2 arena.

:func:`assemble` takes what the earlier stages made (CPU kernels, region code, constants) and the
order in which the model calls them, inlines every region as its kernels, gives every tensor its
place (a pointer of the caller, a constant, or bytes of the arena) and plans the arena.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import ModelError
from byoc_dory.region import Constant
from htvm.aot.memory import ALIGNMENT, BufferUse, MemoryPlan, plan_memory
from htvm.aot.steps import (
    Alias,
    Call,
    CpuCode,
    Operand,
    Step,
    TensorLike,
    Value,
    c_identifier,
    parameter_types,
)

if TYPE_CHECKING:
    from byoc_dory.region import Kernel, RegionCode

__all__ = ["Alias", "BufferUse", "Call", "Operand", "Program", "Step", "Value", "assemble"]


@dataclass(frozen=True, eq=False)
class Program:
    """Everything of a built model that becomes C.

    Attributes:
        name: C identifier; every external symbol of the model starts with it.
        inputs, outputs: of the model, in the order of the entry function's parameters.
        steps: in execution order; the index is the trace mark's index.
        buffers: what the arena holds.
        constants: C arrays, sorted by name.
        plan: where each buffer lies in the arena.
        cpu_source, layers_source: the kernels' C definitions.
        prototypes: one declaration per kernel, in order of first use.
        headers: C headers ``layers_source`` needs.
        aliases: (name, name of the tensor whose bytes it shares).
    """

    name: str
    inputs: tuple[TensorLike, ...]
    outputs: tuple[TensorLike, ...]
    steps: tuple[Step, ...]
    buffers: tuple[BufferUse, ...]
    constants: tuple[Constant, ...]
    plan: MemoryPlan
    cpu_source: str
    layers_source: str
    prototypes: tuple[str, ...]
    headers: tuple[str, ...]
    aliases: tuple[tuple[str, str], ...]

    @property
    def constant_bytes(self) -> int:
        """Bytes of all constants, without alignment gaps."""
        return sum(int(constant.data.nbytes) for constant in self.constants)


class _Names:
    """Hands out distinct C identifiers."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def fresh(self, wish: str) -> str:
        base = c_identifier(wish)
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name


@dataclass
class _Storage:
    """Where a tensor lives: fixed (caller's or constant), or bytes in the arena."""

    operand: Operand | None
    bytes: int
    label: str
    first: int = -1
    last: int = -1


class _Assembler:
    """Walks the calls once; tensors are looked up through :attr:`_root`, which folds aliases."""

    def __init__(
        self,
        name: str,
        inputs: Sequence[TensorLike],
        outputs: Sequence[TensorLike],
        results: Sequence[str],
        constants: Mapping[str, Constant],
        parameters: Sequence[str],
    ) -> None:
        self.name = name
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.steps: list[Step] = []
        self.storages: dict[str, _Storage] = {}
        self.shapes: dict[str, Value] = {}
        self.aliases: dict[str, str] = {}
        self.constants: dict[str, Constant] = {}
        self._pending: list[list[str | Operand]] = []
        self._model_constants = dict(constants)
        self._results = tuple(results)
        for index, (info, parameter) in enumerate(zip(self.inputs, parameters, strict=True)):
            value = Value(parameter, tuple(info.shape), info.dtype)
            self.define(value, Operand("input", f"input_{index}"))

    # --- tensors -------------------------------------------------------------------------

    def define(self, value: Value, operand: Operand | None = None, label: str = "") -> None:
        """Enter a tensor; without an operand it goes into the arena (or becomes an output)."""
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
            symbol = c_identifier(f"{self.name}_{constant.name}")
            if constant.name.startswith(f"{self.name}_"):
                symbol = constant.name
            self.add_constant(
                Constant(symbol, constant.data, constant.comment, max(ALIGNMENT, constant.align))
            )
            value = Value(tensor, tuple(constant.data.shape), constant.data.dtype.name)
            self.define(value, Operand("constant", symbol))
        return tensor

    def check_symbol(self, symbol: str, where: str) -> None:
        """Refuse external symbols that could clash with those of another model."""
        if not symbol.startswith(f"{self.name}_"):
            raise ModelError(f"symbol '{symbol}' does not start with '{self.name}_'", where=where)

    def add_constant(self, constant: Constant) -> None:
        """Enter a C array; one symbol stands for one array."""
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

    def cpu(self, call: Call, kernel: CpuCode) -> None:
        """One CPU kernel with its workspaces, which live for this step only."""
        sources = [self.root(name) for name in call.inputs]
        for value in call.outputs:
            self.define(value)
        spaces = []
        for number, size in enumerate(kernel.workspaces):
            space = f"{kernel.symbol}.workspace_{number}.{len(self.steps)}"
            self.storages[space] = _Storage(None, size, f"{kernel.symbol}_workspace_{number}")
            spaces.append(space)
        step = Step(
            symbol=kernel.symbol,
            args=(),
            returns_code=_returns_code(kernel.prototype),
            layer="+".join(kernel.layers) or kernel.symbol,
            accelerator="cpu",
            kind="cpu",
            predicted_cycles=0,
            macs=call.macs,
            comment=self.arrow(call),
        )
        tensors = [*sources, *(value.name for value in call.outputs), *spaces]
        self.append(step, tensors, kernel.prototype)

    def region(self, call: Call, code: RegionCode) -> None:
        """A region as its kernels; its buffers become buffers of the arena."""
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
            self.define(value)
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
            step = Step(
                symbol=kernel.symbol,
                args=(),
                returns_code=_returns_code(kernel.prototype),
                layer=kernel.layer_name,
                accelerator=code.accelerator,
                kind=kernel.kind,
                predicted_cycles=kernel.predicted_cycles,
                macs=kernel.layer.macs if kernel.layer is not None else 0,
                comment=_kernel_comment(kernel),
            )
            self.append(step, tensors, kernel.prototype)

    def results(self) -> None:
        """Let results be written straight into the caller's outputs, or copy them there."""
        for index, (result, info) in enumerate(zip(self._results, self.outputs, strict=True)):
            root = self.root(result)
            storage = self.storages[root]
            wanted = Value(info.name, tuple(info.shape), info.dtype).bytes
            if storage.bytes != wanted:
                raise ModelError(
                    f"output '{info.name}' has {wanted} B, but '{result}' has {storage.bytes} B",
                    where=f"program '{self.name}'",
                )
            target = Operand("output", f"output_{index}")
            if storage.operand is None:
                storage.operand = target
                continue
            step = Step(
                symbol="",
                args=(),
                returns_code=False,
                layer=f"copy_{result}",
                accelerator="cpu",
                kind="copy",
                predicted_cycles=0,
                macs=0,
                comment=_shape(self.shapes[result]),
                bytes=wanted,
            )
            self._pending.append([self.touch(result), target])
            self.steps.append(step)

    def arrow(self, call: Call) -> str:
        """Return the shapes of a call: activations in, activations out."""
        sources = [
            _shape(self.shapes[name]) for name in call.inputs if name not in self._model_constants
        ]
        return " + ".join(sources) + " -> " + " + ".join(_shape(value) for value in call.outputs)

    # --- the end -------------------------------------------------------------------------

    def buffers(self) -> tuple[BufferUse, ...]:
        """Name what remains for the arena, in the order of first use."""
        taken = [f"input_{i}" for i in range(len(self.inputs))]
        taken += [f"output_{i}" for i in range(len(self.outputs))]
        names = _Names([*taken, *self.constants, *(step.symbol for step in self.steps)])
        waiting = [
            storage
            for storage in self.storages.values()
            if storage.operand is None and storage.first >= 0
        ]
        found = []
        for storage in sorted(waiting, key=lambda storage: storage.first):
            name = names.fresh(storage.label)
            storage.operand = Operand("buffer", name)
            found.append(BufferUse(name, storage.bytes, storage.first, storage.last))
        return tuple(found)

    def finished_steps(self) -> tuple[Step, ...]:
        """Put the operands into the steps."""
        done = []
        for step, tensors in zip(self.steps, self._pending, strict=True):
            args = []
            for tensor in tensors:
                operand = tensor if isinstance(tensor, Operand) else self.storages[tensor].operand
                assert operand is not None, tensor
                args.append(operand)
            done.append(replace(step, args=tuple(args)))
        return tuple(done)


def _returns_code(prototype: str) -> bool:
    return re.match(r"\s*(extern\s+)?int32_t\b", prototype) is not None


def _shape(value: Value) -> str:
    return "x".join(str(size) for size in value.shape) + f" {value.dtype}"


def _kernel_comment(kernel: Kernel) -> str:
    layer = kernel.layer
    if layer is None:
        return "layout"
    if layer.op == "add":
        return f"{layer.K}x{layer.oy}x{layer.ox}"
    if layer.op == "dense":
        return f"{layer.C} -> {layer.K}"
    shapes = f"{layer.C}x{layer.iy}x{layer.ix} -> {layer.K}x{layer.oy}x{layer.ox}"
    return f"{shapes}, {layer.fy}x{layer.fx}"


def assemble(
    name: str,
    inputs: Sequence[TensorLike],
    outputs: Sequence[TensorLike],
    calls: Sequence[Call | Alias],
    results: Sequence[str],
    cpu_kernels: Sequence[CpuCode] = (),
    regions: Mapping[str, RegionCode] | None = None,
    constants: Mapping[str, Constant] | None = None,
    parameters: Sequence[str] | None = None,
) -> Program:
    """Make the program of a model.

    Args:
        name: C identifier, prefix of all external symbols.
        inputs: of the model.
        outputs: of the model.
        calls: in execution order.
        results: for each output, the tensor (or input, or constant) that is returned.
        cpu_kernels: each called any number of times, by ``symbol``.
        regions: by the name calls use.
        constants: arrays that calls pass to CPU kernels, by the name calls use.  Their C symbol
            is the constant's own name, with the model's name put before it where missing.
        parameters: the names calls use for the inputs, if these are not the inputs' own.

    Returns:
        The program, its arena planned (16-byte aligned offsets).

    Raises:
        ModelError: the calls contradict each other or the kernels' prototypes.
    """
    if c_identifier(name) != name:
        raise ModelError(f"'{name}' is not usable as a C identifier", where="name of the program")
    regions = regions or {}
    kernels = {kernel.symbol: kernel for kernel in cpu_kernels}
    parameters = [info.name for info in inputs] if parameters is None else parameters
    work = _Assembler(name, inputs, outputs, results, constants or {}, parameters)
    used: dict[str, None] = {}
    for call in calls:
        if isinstance(call, Alias):
            work.alias(call)
        elif call.target in regions:
            if call.target in used:
                raise ModelError(f"region '{call.target}' is called twice", where=name)
            used[call.target] = None
            work.region(call, regions[call.target])
        elif call.target in kernels:
            used[call.target] = None
            work.cpu(call, kernels[call.target])
        else:
            raise ModelError(
                f"there is neither a kernel nor a region called '{call.target}'",
                where=f"program '{name}'",
            )
    work.results()
    buffers = work.buffers()
    cpu_used = [kernels[key] for key in used if key not in regions]
    regions_used = [regions[key] for key in used if key in regions]
    region_kernels = _distinct([kernel for code in regions_used for kernel in code.kernels])
    headers = [header for code in regions_used for header in code.headers]
    prototypes = [kernel.prototype for kernel in cpu_used]
    prototypes += [kernel.prototype for kernel in region_kernels]
    return Program(
        name=name,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        steps=work.finished_steps(),
        buffers=buffers,
        constants=tuple(work.constants[key] for key in sorted(work.constants)),
        plan=plan_memory(buffers),
        cpu_source="\n".join(kernel.source.strip() + "\n" for kernel in cpu_used),
        layers_source="\n".join(kernel.source.strip() + "\n" for kernel in region_kernels),
        prototypes=tuple(prototype.strip().rstrip("; \n") + ";" for prototype in prototypes),
        headers=tuple(dict.fromkeys(headers)),
        aliases=tuple(sorted(work.aliases.items())),
    )


def _distinct(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Drop repetitions: two regions that read one tensor convert it with the same function."""
    known: dict[str, Kernel] = {}
    for kernel in kernels:
        if known.setdefault(kernel.symbol, kernel).source != kernel.source:
            raise ModelError(f"two different kernels are called '{kernel.symbol}'", where="regions")
    return list(known.values())
