"""One inference of either side on the core's emulator, counted in the same way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import htvm
from benchmarks.tflm.compilers import Kit
from benchmarks.tflm.firmware import Sources, build
from byoc_dory.soc.base import Soc
from byoc_dory.soc.registry import resolve
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.firmware.arm import core_of, on_qemu
from htvm.firmware.build import build_arm, build_qemu
from htvm.firmware.elf import Symbol
from htvm.firmware.linked import Firmware
from htvm.frontend.tflite.file import TfliteFile, read_file
from htvm.result import LayerResult
from htvm.sim.arm import run_arm
from htvm.sim.qemu import run_qemu
from htvm.sim.runner import outcome, run
from htvm.sim.thumb import Executed, estimate

__all__ = [
    "APART", "INVOKE", "Counted", "Layer", "Network", "Span", "compiled_of", "of_operators", "ours",
    "theirs",
]  # fmt: skip

INVOKE = "_ZN6tflite21MicroInterpreterGraph14InvokeSubgraphEi"
_KERNEL = "EP13TfLiteContextP10TfLiteNode"
"""How the names of functions end that the interpreter calls for an operator."""

# Not of the interpreter's memory: what the network is given and gives, and the arena's capacity.
APART = ("arena", "input", "output", "arena_used", "failed")

_STEMS = {
    "CONV_2D": "conv2d", "DEPTHWISE_CONV_2D": "depthwise", "FULLY_CONNECTED": "dense",
    "ADD": "add", "AVERAGE_POOL_2D": "average_pool", "SOFTMAX": "softmax",
}  # fmt: skip
"""Operator of a file -> how the names of our layers begin that compute it."""

Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Network:
    """A file, an input and the output that it shall compute.

    Attributes:
        name: its name in tables.
        path: the TFLite file.
        given, wanted: arrays.
    """

    name: str
    path: Path
    given: Any
    wanted: Any

    @property
    def file(self) -> TfliteFile:
        """Its operators and tensors."""
        return read_file(self.path.read_bytes(), str(self.path))


@dataclass(frozen=True)
class Layer:
    """An operator of the file.

    Attributes:
        name: the operator's kind and its number among those of its kind; several joined by "+"
            where one kernel computes them.
        instructions: with those of the padding before it.
        estimate: the fewest and the most cycles by the core's manual; None if it gives none.
        macs: multiply-accumulates; 0 if unknown.
    """

    name: str
    instructions: int
    estimate: Span | None
    macs: int = 0


@dataclass(frozen=True)
class Counted:
    """What an inference took.

    Attributes:
        equal: whether every element of the output was equal.
        instructions: of the inference.
        estimate: the fewest and the most cycles that the core's manual gives; None if it gives
            none.
        layers: of the file's operators, in its order, without RESHAPE.
        macs: multiply-accumulates; 0 for those of the other side.
        flash: bytes of code and constants.
        constants: of it bytes that are weights, biases and factors; 0 if unknown.
        arena: bytes of intermediate tensors and workspaces.
        variables: bytes of all other variables.
        stack: bytes of stack used.
    """

    equal: bool
    instructions: int
    estimate: Span | None
    layers: tuple[Layer, ...]
    macs: int
    flash: int
    constants: int
    arena: int
    variables: int
    stack: int

    @property
    def ram(self) -> int:
        """Bytes of RAM: arena, variables, stack."""
        return self.arena + self.variables + self.stack


@lru_cache(maxsize=32)
def compiled_of(path: Path, core: str) -> Compiled:
    """Return a file compiled for a core; each once."""
    return Compiled(htvm.load(path), core, BuildOptions()).finish()


def ours(network: Network, core: str, kit: Kit) -> Counted:
    """Build this project's firmware of a network and run it once.

    Args:
        network: the network.
        core: name of the target.
        kit: compiler and level of optimization.

    Raises:
        SimulationError: the firmware failed.
        ToolchainError: it cannot be built.
    """
    compiled = compiled_of(network.path, core)
    soc = compiled.target.soc
    make = build_arm if soc.host.platform == "arm" else build_qemu
    built = make(compiled.program, soc, kit.compiler)
    [info] = compiled.program.inputs
    raw = run(built, [np.asarray(network.given).reshape(tuple(info.shape))])
    result = outcome(raw, compiled.program.steps, soc)
    assert raw.instructions is not None and raw.stack_used is not None
    sizes = built.sizes
    return Counted(
        equal=bool(np.array_equal(np.ravel(result.outputs[0]), np.ravel(network.wanted))),
        instructions=raw.instructions,
        estimate=raw.estimated_cycles,
        layers=of_operators(result.layers, network.file),
        macs=sum(step.macs for step in compiled.program.steps),
        flash=sizes.code + sizes.constants,
        constants=sizes.constants,
        arena=sizes.arena,
        variables=sizes.io + sizes.other,
        stack=raw.stack_used,
    )


def of_operators(steps: Sequence[LayerResult], file: TfliteFile) -> tuple[Layer, ...]:
    """Return our steps as operators of a file; what has another name is part of the next one.

    Args:
        steps: of a run.
        file: the network's.

    Raises:
        ValueError: an operator of the file has no step.
    """
    names = {f"{_STEMS[kind]}_{name.rpartition(' ')[2]}": name for kind, name in _operators(file)}
    found: dict[str, list[LayerResult]] = {}
    waiting: list[LayerResult] = []
    for step in steps:
        waiting.append(step)
        known = [names[part] for part in step.name.split("+") if part in names]
        if known:
            found.setdefault("+".join(known), []).extend(waiting)
            waiting = []
    missing = {*names.values()} - {part for name in found for part in name.split("+")}
    if missing:
        raise ValueError(f"no step computes {', '.join(sorted(missing))}")
    return tuple(
        Layer(
            name,
            sum(step.instructions or 0 for step in its),
            _total([step.estimated_cycles for step in its]),
            sum(step.macs for step in its),
        )
        for name, its in found.items()
    )


def _total(spans: Sequence[Span | None]) -> Span | None:
    """Return the sum of estimates; copies have none, and belong to no kernel."""
    known = [span for span in spans if span is not None]
    return (sum(low for low, _ in known), sum(high for _, high in known)) if known else None


def _operators(file: TfliteFile) -> Iterator[tuple[str, str]]:
    """Yield kind and name of each operator that computes."""
    numbers: dict[str, int] = {}
    for operator in file.operators:
        if operator.kind in _STEMS:
            number = numbers[operator.kind] = numbers.get(operator.kind, -1) + 1
            yield operator.kind, f"{operator.kind} {number}"


def theirs(
    sources: Sources,
    network: Network,
    core: str,
    kit: Kit,
    folder: Path,
    *,
    defined: Sequence[str] = (),
    objects: Path | None = None,
) -> Counted:
    """Build TFLite Micro's firmware of a network and run it once.

    Args:
        sources: TFLite Micro's, with or without CMSIS-NN.
        network, core, kit: as for `ours`; the stack is made large enough.
        folder: for the firmware.
        defined, objects: as for `benchmarks.tflm.firmware.build`.

    Raises:
        RuntimeError: the interpreter refused the network.
        SimulationError: the firmware failed.
        ToolchainError: it cannot be built.
    """
    soc = resolve(core).soc
    soc = replace(soc, host=replace(soc.host, stack=16_384))
    emulated = soc.host.platform == "arm"
    soc = soc if emulated else on_qemu(soc)
    file = network.file
    elf = build(sources, file, network.path, soc, folder, kit, defined=defined, objects=objects)
    firmware = Firmware.open(elf, soc, soc.host.stack)
    kernels = _kernels(elf)
    named = replace(firmware, symbols={**firmware.symbols, **kernels})
    given = {"input": network.given.tobytes()}
    read = {"output": firmware.symbols["output"].size, "arena_used": 4, "failed": 4}
    names = list(kernels)
    ran = (
        run_arm(named, given, read, entry=INVOKE, kernels=names, compiler=kit.compiler)
        if emulated
        else run_qemu(named, given, read, entry=INVOKE, kernels=names)
    )
    failed = int.from_bytes(ran.outputs["failed"], "little")
    if failed:
        raise RuntimeError(f"TFLite Micro failed on {network.name}: step {failed} of main.cc")
    apart = sum(-(-firmware.symbols[name].size // 16) * 16 for name in APART)
    memory = firmware.memory
    layers = []
    spans = [_estimate(each, soc) for each in ran.step_executed] or [None] * len(ran.steps)
    computing = iter(_operators(file))
    for operator, (_, begin, end), span in zip(file.operators, ran.steps, spans, strict=True):
        if operator.kind in _STEMS:
            layers.append(Layer(next(computing)[1], end - begin, span))
    return Counted(
        equal=ran.outputs["output"] == network.wanted.tobytes(),
        instructions=ran.instructions,
        estimate=_estimate(ran.executed, soc),
        layers=tuple(layers),
        macs=0,
        flash=memory.flash,
        constants=0,
        arena=int.from_bytes(ran.outputs["arena_used"], "little"),
        variables=memory.data + memory.zeroed + memory.uninitialised - apart,
        stack=ran.stack_used,
    )


def _estimate(what: Executed | None, soc: Soc) -> Span | None:
    cycles = core_of(soc).cycles
    return None if what is None or cycles is None else estimate(what, cycles)


def _kernels(elf: Path) -> dict[str, Symbol]:
    """Return what may be called for an operator; names of several sources are equal."""
    from elftools.elf.elffile import ELFFile

    with elf.open("rb") as stream:
        table = ELFFile(stream).get_section_by_name(".symtab")
        found = [each for each in table.iter_symbols() if each.name.endswith(_KERNEL)]
    symbols = {}
    for each in found:
        name = f"{each.name}@{each['st_value']:x}"
        symbols[name] = Symbol(name, each["st_value"], each["st_size"])
    return symbols
