"""Running programs on the instruction-set simulator.

``python -m htvm.sim.iss FILE.elf`` runs a bare-metal program on the machine
:data:`~htvm.firmware.machine.BARE` and prints its output, then its cycles and instructions.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from byoc_dory.errors import HtvmError, SimulationError
from htvm.firmware.machine import BARE, Machine, SocModel
from htvm.firmware.paths import runtime_c, work_folder
from htvm.firmware.toolchain import Compiler
from htvm.processes import run
from htvm.sim.look import Look, Seen

MAX_CYCLES = 20_000_000_000
"""Default limit of a run in cycles: about a minute."""

_TRAPPED = 1


@dataclass(frozen=True)
class IssResult:
    """The results of a run on the simulator.

    Attributes:
        exit_code: exit code of the program; 0 is success.
        cycles: cycles of the core, from its first instruction to the store that ended the run.
        instructions: instructions executed in these cycles (by the first hart, if there are
            several).
        marks: (cycle, event) of each store to the machine's trace register.
        output: bytes the program printed.
        memory: contents after the run of each address in ``peeks``.
        stack_used: bytes between the stack's top and the lowest stack pointer; None if no stack
            region was given.
        events: device events in the order in which devices were started, and the times when the
            core waited for them (unit "host"); with several harts, also when each of them except
            the first was at work (unit "core1" and so on).
        harts: instructions of each hart; empty for a core that is alone.
        seen: what ``look`` asked for; None without it.
        outputs: the same as ``memory`` by the symbols of a firmware's outputs (`run_rv32`).
    """

    exit_code: int
    cycles: int
    instructions: int
    marks: tuple[tuple[int, int], ...]
    output: bytes
    memory: dict[int, bytes] = field(repr=False)
    stack_used: int | None
    events: tuple[dict[str, Any], ...] = field(repr=False)
    harts: tuple[int, ...] = ()
    seen: Seen | None = None
    outputs: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)


class TrapError(SimulationError):
    """The simulated core stopped before the end of the program.

    Attributes:
        pc: address of the instruction.
        cycles: cycles until the trap.
        output: bytes the program had printed.
    """

    pc: int = 0
    cycles: int = 0
    output: bytes = b""


def build_iss(machine: Machine, compiler: Compiler) -> Path:
    """Return the simulator's executable for a machine's devices, building it if necessary.

    Raises:
        ToolchainError: there is no compiler, or the device models do not compile.
    """
    root = runtime_c()
    model = machine.soc_model or SocModel(sources=(root / "soc" / "none" / "none_model.c",))
    return compiler.built(
        f"iss-{machine.name}",
        [*sorted((root / "iss").glob("*.c")), *model.sources],
        [root / "include", root / "iss", *model.includes],
        generated=model.headers,
    )


def run_elf(
    elf_path: Path,
    machine: Machine = BARE,
    *,
    pokes: Mapping[int, bytes] | None = None,
    peeks: Mapping[int, int] | None = None,
    stack: tuple[int, int] | None = None,
    max_cycles: int = MAX_CYCLES,
    step_polls: bool = False,
    settings: Mapping[int, int] | None = None,
    look: Look | None = None,
    compiler: Compiler | None = None,
) -> IssResult:
    """Run a program from its entry to its exit.

    Args:
        elf_path: a statically linked RV32IMC executable.
        machine: the machine it runs on.
        pokes: address -> bytes written into RAM after loading.
        peeks: address -> number of bytes to read from RAM after the run.
        stack: (lowest address, top) of the stack, to measure its use and catch its overflow.
        max_cycles: limit of the run in cycles.
        step_polls: execute every poll of a device register instead of skipping to the device's
            next event; slower, same result.
        settings: device register -> value written before the first cycle; these are settings of the
            device models, which no program can change.
        look: memory and stores to observe during the run.
        compiler: builds the simulator; ziglang if not given.

    Raises:
        TrapError: illegal instruction, access outside of the machine, stack overflow, endless
            wait, too many cycles, or a device model's complaint.
        SimulationError: the file is not a program for this machine.
        ToolchainError: the simulator cannot be built.
    """
    peeks = peeks or {}
    executable = build_iss(machine, compiler if compiler is not None else Compiler.zig())
    with work_folder("htvm-iss-") as folder:
        line = [str(executable), str(elf_path), *_machine_options(machine)]
        line += _poke_options(pokes or {}, folder)
        peeked = {address: folder / f"peek{i}" for i, address in enumerate(peeks)}
        for address, file in peeked.items():
            line += ["--peek", f"{address:#x}:{peeks[address]}:{file}"]
        if stack is not None:
            line += ["--stack", f"{stack[0]:#x}:{stack[1]:#x}"]
        if step_polls:
            line += ["--step-polls"]
        for address, value in (settings or {}).items():
            line += ["--set", f"{address:#x}:{value}"]
        if look is not None:
            line += look.options(folder)
        report, events = folder / "report.json", folder / "events.jsonl"
        line += ["--max-cycles", str(max_cycles)]
        line += ["--report", str(report), "--events", str(events)]
        output = _run(line, elf_path, report)
        facts = json.loads(report.read_text(encoding="utf-8"))
        return IssResult(
            exit_code=facts["exit_code"],
            cycles=facts["cycles"],
            instructions=facts["instructions"],
            marks=tuple((cycle, event) for cycle, event in facts["marks"]),
            output=output,
            memory={address: file.read_bytes() for address, file in peeked.items()},
            stack_used=facts["stack_used"],
            events=tuple(
                json.loads(text) for text in events.read_text(encoding="utf-8").splitlines()
            ),
            harts=tuple(facts.get("harts", ())),
            seen=None if look is None else look.seen_in(facts, folder),
        )


def _machine_options(machine: Machine) -> list[str]:
    options = []
    for base, size in machine.ram:
        options += ["--ram", f"{base:#x}:{size}"]
    options += ["--putchar", f"{machine.putchar:#x}", "--exit", f"{machine.exit:#x}"]
    if machine.trace is not None:
        options += ["--trace", f"{machine.trace:#x}"]
    if machine.harts != 1:
        options += ["--harts", str(machine.harts)]
    return options


def _poke_options(pokes: Mapping[int, bytes], folder: Path) -> list[str]:
    options = []
    for index, (address, data) in enumerate(pokes.items()):
        file = folder / f"poke{index}"
        file.write_bytes(data)
        options += ["--poke", f"{address:#x}:{file}"]
    return options


def _run(line: Sequence[str], elf_path: Path, report: Path) -> bytes:
    """Run the simulator; return what the program printed."""
    hint = "remove that file; it will be built again"
    ended = run(line, "the simulator", SimulationError, line[0], hint=hint)
    if ended.code == 0:
        return ended.output
    if ended.code == _TRAPPED and report.is_file():
        facts = json.loads(report.read_text(encoding="utf-8"))
        trap = TrapError(
            facts["trap"],
            where=f"{elf_path} after {facts['cycles']} cycles",
        )
        trap.pc, trap.cycles, trap.output = facts["pc"], facts["cycles"], ended.output
        raise trap
    message = ended.said.strip()
    raise SimulationError(
        message.removeprefix("iss: ") or f"the simulator ended with code {ended.code}",
        where="" if str(elf_path) in message else str(elf_path),
        hint="is it a statically linked RV32IMC program for this machine?",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code (2 for an error, else the program's)."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.stderr.write("usage: python -m htvm.sim.iss FILE.elf\n")
        return 0 if list(arguments) in (["-h"], ["--help"]) else 2
    try:
        result = run_elf(Path(arguments[0]))
    except TrapError as error:
        _print_bytes(error.output)
        sys.stderr.write(f"error: {error}\n")
        return 2
    except HtvmError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    _print_bytes(result.output)
    if result.output and not result.output.endswith(b"\n"):
        sys.stdout.write("\n")
    sys.stdout.write(f"cycles {result.cycles}, instructions {result.instructions}\n")
    return min(result.exit_code, 255)


def _print_bytes(data: bytes) -> None:
    """Print the program's output, whatever its encoding."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
