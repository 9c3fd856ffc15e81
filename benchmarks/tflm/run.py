"""One inference of TFLite Micro on the emulated core, counted as our own firmware is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.tflm.firmware import Sources, build
from byoc_dory.soc.base import Soc
from htvm.firmware.arm import core_of
from htvm.firmware.elf import Symbol
from htvm.firmware.linked import Firmware
from htvm.firmware.toolchain import Compiler
from htvm.frontend.tflite.file import read_file
from htvm.sim.arm import run_arm
from htvm.sim.thumb import estimate

__all__ = ["Counted", "inference"]

_INVOKE = "_ZN6tflite21MicroInterpreterGraph14InvokeSubgraphEi"
_KERNEL = "EP13TfLiteContextP10TfLiteNode"
"""How the names of functions end that the interpreter calls for an operator."""

# Not of the interpreter's memory: what the network is given and gives, and the arena's capacity.
_APART = ("arena", "input", "output", "arena_used", "failed")


@dataclass(frozen=True)
class Counted:
    """What an inference took.

    Attributes:
        equal: whether every element of the output was equal.
        instructions: of the inference.
        layers: instructions of each operator of the file, in its order.
        flash: bytes of code and constants, the file included.
        arena: bytes of the interpreter's arena that it used.
        variables: bytes of all other variables.
        stack: bytes of stack used, by preparing too.
        estimate: the fewest and the most cycles that the core's manual gives.
    """

    equal: bool
    instructions: int
    layers: tuple[int, ...]
    flash: int
    arena: int
    variables: int
    stack: int
    estimate: tuple[int, int]

    @property
    def ram(self) -> int:
        """Bytes of RAM: arena, variables, stack."""
        return self.arena + self.variables + self.stack


def inference(
    sources: Sources, network: Path, given: Any, wanted: Any, soc: Soc, folder: Path
) -> Counted:
    """Build the firmware of a network and run it once.

    Args:
        sources: TFLite Micro's, with or without CMSIS-NN.
        network: the TFLite file.
        given, wanted: its input, the output that it shall compute.
        soc: a Cortex-M core whose cycles are published, with memories; its stack is made large
            enough.
        folder: for the firmware.

    Raises:
        RuntimeError: the interpreter refused the network.
        SimulationError: the firmware failed.
        ToolchainError: it cannot be built.
    """
    compiler = Compiler.zig()
    cycles = core_of(soc).cycles
    assert cycles is not None
    soc = replace(soc, host=replace(soc.host, stack=16_384))
    file = read_file(network.read_bytes(), str(network))
    elf = build(sources, file, network, soc, folder, compiler)
    firmware = Firmware.open(elf, soc, soc.host.stack)
    kernels = _kernels(elf)
    ran = run_arm(
        replace(firmware, symbols={**firmware.symbols, **kernels}),
        {"input": given.tobytes()},
        {"output": firmware.symbols["output"].size, "arena_used": 4, "failed": 4},
        entry=_INVOKE,
        kernels=list(kernels),
        compiler=compiler,
    )
    assert ran.executed is not None
    failed = int.from_bytes(ran.outputs["failed"], "little")
    if failed:
        raise RuntimeError(f"TFLite Micro failed on {network.name}: step {failed} of main.cc")
    apart = sum(-(-firmware.symbols[name].size // 16) * 16 for name in _APART)
    memory = firmware.memory
    return Counted(
        equal=ran.outputs["output"] == wanted.tobytes(),
        instructions=ran.instructions,
        layers=tuple(end - begin for _, begin, end in ran.steps),
        flash=memory.flash,
        arena=int.from_bytes(ran.outputs["arena_used"], "little"),
        variables=memory.data + memory.zeroed + memory.uninitialised - apart,
        stack=ran.stack_used,
        estimate=estimate(ran.executed, cycles),
    )


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
