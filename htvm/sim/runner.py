"""Building and running a program on both platforms.

A build is kept in the cache under the hash of everything it is made of, so the same program is
compiled once; any number of samples then run on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from byoc_dory.errors import L2OverflowError, SimulationError
from htvm.aot.entry import model_sources, render, template_fields
from htvm.firmware.builds import kept_build
from htvm.firmware.paths import soc_folder
from htvm.firmware.project import check_arrays
from htvm.firmware.sizes import (
    Sizes,
    check_l2,
    dominant,
    firmware_sizes,
    native_code_bytes,
    tensor_bytes,
)
from htvm.firmware.socs import machine_of
from htvm.firmware.toolchain import HOST_FLAGS, Compiler, rv32_flags
from htvm.sim import host, rv32

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from htvm.aot.program import Program

__all__ = ["RUN_MARK", "Built", "RawResult", "Sizes", "build_host", "build_rv32", "failure", "run"]

Array: TypeAlias = npt.NDArray[np.generic]

RUN_MARK = 2 * 0x7FFFFFFE
"""Event of the mark at the begin of the whole run, by one more at its end; no program has so many
steps."""

# Lines of instructions, in sections that are no part of the program.
_DEBUG = ("-gdwarf-4",)


@dataclass(frozen=True, eq=False)
class Built:
    """A program built for a platform.

    Attributes:
        platform: ``"rv32"`` or ``"host"``.
        program: what it was built from.
        soc: what it was built for.
        path: the firmware (ELF) or the native executable.
        sizes: what it occupies.
        firmware, native: the platform's own view; one of them is None.
        compiler: what built it, and builds the simulator.
    """

    platform: Literal["rv32", "host"]
    program: Program
    soc: Soc
    path: Path
    sizes: Sizes
    compiler: Compiler = field(repr=False)
    firmware: rv32.Firmware | None = field(default=None, repr=False)
    native: host.HostProgram | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class RawResult:
    """What one inference left behind.

    Attributes:
        outputs: in the model's order, shapes and dtypes.
        cycles: from the call of the entry function to its return; None on the host platform.
        spans: (begin, end) cycle of every step, counted from the call; empty on the host platform.
        events: what the devices did and when the host waited for them (unit "host"), times counted
            from the call (on the host platform: in accesses and waited device cycles since the
            start).
        stack_used: bytes of the stack's high-water mark; None on the host platform.
    """

    outputs: tuple[Array, ...]
    cycles: int | None
    spans: tuple[tuple[int, int], ...]
    events: tuple[Mapping[str, Any], ...] = field(repr=False)
    stack_used: int | None

    @property
    def step_cycles(self) -> list[int]:
        """Cycles of every step, waiting for devices included; empty on the host platform."""
        return [end - begin for begin, end in self.spans]


# --- building ---------------------------------------------------------------------------------


def build_rv32(
    program: Program,
    soc: Soc,
    compiler: Compiler | None = None,
    cache_dir: Path | None = None,
    *,
    debug: bool = False,
) -> Built:
    """Build the firmware of a program for the simulated SoC.

    Args:
        program: what to build.
        soc: what for; its L2 takes code, constants, arena, stack, inputs and outputs.
        compiler: ziglang if not given.
        cache_dir: where builds are kept; the compiler's cache if not given.
        debug: with what says which line an instruction comes from; the code is the same.

    Raises:
        L2OverflowError: all of that together exceeds L2; says what needs how much.
        ToolchainError: there is no compiler, or it fails.
    """
    compiler = compiler or Compiler.zig()
    check_l2(program, soc)
    machine = machine_of(soc)
    main = render("run_rv32.c.jinja", **template_fields(program), run_mark=RUN_MARK)
    files = {**model_sources(program), "main.c": main}

    flags = _kernel_flags(program)
    extra = _DEBUG if debug else ()

    def make(folder: Path, sources: list[Path]) -> None:
        own = {
            path: _object(path, compiler, (*flags[path.name], *extra), soc.host.isa)
            for path in sources
            if path.name in flags
        }
        rv32.build_firmware(
            [*(own.get(path, path) for path in sources), *host.driver_sources(soc)],
            [folder, soc_folder(soc)],
            machine,
            folder,
            compiler,
            soc.host.stack,
            extra,
        )

    try:
        path = kept_build(
            "firmware.elf",
            files,
            soc,
            ("rv32", *rv32_flags(soc.host.isa), str(flags), *extra),
            compiler,
            cache_dir,
            make,
        )
    except L2OverflowError as error:
        raise L2OverflowError(error.what, where=error.where, hint=dominant(program)) from error
    firmware = rv32.open_firmware(path, machine, soc.host.stack)
    return Built(
        platform="rv32",
        program=program,
        soc=soc,
        path=path,
        sizes=firmware_sizes(firmware, program),
        compiler=compiler,
        firmware=firmware,
    )


def _kernel_flags(program: Program) -> dict[str, tuple[str, ...]]:
    """Return the files that are compiled for the core with flags of their own."""
    if not program.cpu_source:
        return {}
    from htvm.aot.flags import RV32_CFLAGS

    return {f"{program.name}_cpu.c": RV32_CFLAGS}


def _object(path: Path, compiler: Compiler, flags: Sequence[str], isa: str) -> Path:
    # zig would drop everything nobody calls from an object file, too.
    flags = [*flags, "-c", "-Wl,--no-gc-sections"]
    return compiler.compile_rv32(
        [path], path.with_suffix(".o"), rv32.include_folders(), None, flags, isa
    )


def build_host(
    program: Program,
    soc: Soc,
    compiler: Compiler | None = None,
    cache_dir: Path | None = None,
    *,
    sanitize: bool = False,
) -> Built:
    """Build a program natively, linked with the SoC's device models.

    Args:
        program, soc, compiler, cache_dir: as for :func:`build_rv32`.
        sanitize: stop at undefined behaviour (and, with gcc or clang, at wrong accesses).

    Raises:
        L2OverflowError: what is known without machine code exceeds L2 already.
        ToolchainError: there is no compiler, or it fails.
    """
    compiler = compiler or Compiler.zig()
    check_l2(program, soc)
    main = render("run_host.c.jinja", **template_fields(program))
    files = {**model_sources(program), "main.c": main}

    def make(folder: Path, sources: list[Path]) -> None:
        host.build(sources, [folder], soc, folder, compiler, sanitize)

    variant = ("host", *HOST_FLAGS, *compiler.host, str(sanitize))
    path = kept_build("model", files, soc, variant, compiler, cache_dir, make)
    sizes = Sizes(
        code=native_code_bytes(path),
        constants=program.constant_bytes,
        arena=program.plan.peak,
        stack=soc.host.stack,
        io=tensor_bytes((*program.inputs, *program.outputs)),
    )
    native = host.HostProgram(path, soc.name)
    return Built("host", program, soc, path, sizes, compiler, native=native)


# --- running ----------------------------------------------------------------------------------


def run(
    built: Built, inputs: Sequence[Array], settings: Mapping[int, int] | None = None
) -> RawResult:
    """Run one inference.

    Args:
        built: from :func:`build_rv32` or :func:`build_host`; can be run any number of times.
        inputs: one array per input, in the model's shapes and dtypes.
        settings: of the device models: register -> value written before the first cycle.

    Raises:
        InputError: number, shape or dtype of the inputs is wrong.
        SimulationError: a device complained, the core trapped, or the program returned an error.
    """
    program = built.program
    check_arrays("input", program.inputs, inputs)
    data = [np.ascontiguousarray(array).tobytes() for array in inputs]
    sizes = [tensor_bytes((info,)) for info in program.outputs]
    if built.native is not None:
        events: list[dict[str, Any]] = []
        raw = host.run(built.native, data, sizes, events=events, settings=settings)
        return RawResult(_arrays(program, raw), None, (), tuple(events), None)
    assert built.firmware is not None
    outputs = {f"htvm_run_output_{i}": size for i, size in enumerate(sizes)}
    result = rv32.run(
        built.firmware,
        {f"htvm_run_input_{i}": value for i, value in enumerate(data)},
        {**outputs, "htvm_run_code": 4},
        settings=settings,
        compiler=built.compiler,
    )
    code = int.from_bytes(result.outputs["htvm_run_code"], "little", signed=True)
    if code != 0:
        raise failure(built, code, result.marks)
    begin, end, spans = _spans(program, result.marks)
    return RawResult(
        outputs=_arrays(program, [result.outputs[name] for name in outputs]),
        cycles=end - begin,
        spans=spans,
        events=tuple(
            {**event, "start": event["start"] - begin, "end": event["end"] - begin}
            for event in result.events
        ),
        stack_used=result.stack_used,
    )


def _arrays(program: Program, raw: Sequence[bytes]) -> tuple[Array, ...]:
    # Copied: an array over bytes is read-only.
    return tuple(
        np.frombuffer(data, np.dtype(info.dtype)).reshape(tuple(info.shape)).copy()
        for info, data in zip(program.outputs, raw, strict=True)
    )


def _spans(
    program: Program, marks: Sequence[tuple[int, int]]
) -> tuple[int, int, tuple[tuple[int, int], ...]]:
    """Return begin and end of the run, and those of each step counted from its begin."""
    at = {event: cycle for cycle, event in marks}
    try:
        begin, end = at[RUN_MARK], at[RUN_MARK + 1]
        spans = tuple(
            (at[2 * index] - begin, at[2 * index + 1] - begin)
            for index in range(len(program.steps))
        )
    except KeyError as error:
        raise SimulationError(
            f"the firmware never made mark {error}", where=f"program '{program.name}'"
        ) from error
    return begin, end, spans


def failure(built: Built, code: int, marks: Sequence[tuple[int, int]]) -> SimulationError:
    """What to say of a program that returned an error code."""
    steps = [event // 2 for _, event in marks if event < RUN_MARK]
    where = f"{built.program.name} on {built.soc.name}"
    if steps:
        step = built.program.steps[steps[-1]]
        where += f", step {steps[-1]}, layer {step.layer} on {step.accelerator}"
    return SimulationError(f"{built.program.name}_run returned {code}", where=where)
