"""Building a program for both platforms.

A build is cached under the hash of all its inputs, so the same program is compiled only once; any
number of samples then run on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from byoc_dory.errors import L2OverflowError
from byoc_dory.soc.base import Soc
from htvm.aot.entry import model_sources, render, template_fields
from htvm.aot.program import Program
from htvm.firmware import arm, host, rv32, user_mode
from htvm.firmware.builds import kept_build
from htvm.firmware.isa import kernel_flags, rv32_flags, user_mode_flags
from htvm.firmware.linked import Firmware
from htvm.firmware.paths import NO_DEVICES, driver_folders, runtime_c, simd_folders
from htvm.firmware.sizes import (
    Sizes,
    check_l2,
    dominant,
    linked_sizes,
    native_code_bytes,
    tensor_bytes,
)
from htvm.firmware.socs import machine_of
from htvm.firmware.toolchain import HOST_FLAGS, Compiler, instructions
from htvm.firmware.user_compiler import compiler_for

RUN_MARK = 2 * 0x7FFFFFFE
"""Event of the mark at the beginning of the run; its end has the next number."""

# The debug sections, which are not part of the program.
_DEBUG = ("-gdwarf-4",)


@dataclass(frozen=True, eq=False)
class Built:
    """A program built for a platform.

    Attributes:
        platform: ``"rv32"``, ``"arm"``, ``"qemu"`` or ``"host"``.
        program: the program it was built from.
        soc: the SoC it was built for.
        path: the firmware (ELF) or the native executable.
        sizes: sizes of its parts.
        firmware, native, arm: the platform-specific result; the others are None.  A core with code
            in flash has ``arm``, one in QEMU's user mode, too.
        compiler: the compiler, which also builds the simulator.
    """

    platform: Literal["rv32", "arm", "qemu", "host"]
    program: Program
    soc: Soc
    path: Path
    sizes: Sizes
    compiler: Compiler = field(repr=False)
    firmware: rv32.Firmware | None = field(default=None, repr=False)
    native: host.HostProgram | None = field(default=None, repr=False)
    arm: arm.ArmFirmware | None = field(default=None, repr=False)


def build_rv32(
    program: Program,
    soc: Soc,
    compiler: Compiler | None = None,
    cache_dir: Path | None = None,
    *,
    debug: bool = False,
    extra_sources: Mapping[str, str] | None = None,
) -> Built:
    """Build the firmware of a program for the simulated SoC.

    Args:
        program: the program to build.
        soc: the SoC, whose L2 holds code, constants, arena, stack, inputs and outputs.
        compiler: ziglang if not given.
        cache_dir: folder of the cache; the compiler's own if not given.
        debug: whether to add debug sections, which map instructions to lines; the code is the same.
        extra_sources: further C files, name to text; ``main.c`` replaces the one that runs an
            inference.

    Raises:
        L2OverflowError: the sum of these exceeds L2; the message lists the sizes.
        ToolchainError: there is no compiler, or it fails.
    """
    compiler = compiler or Compiler.zig()
    check_l2(program, soc)
    machine = machine_of(soc)
    kernel_flags = _kernel_flags(program, soc, compiler)
    core = rv32_flags(machine.isa, gcc=compiler.is_gcc)
    tail = _DEBUG if debug else ()

    def make(folder: Path, sources: list[Path]) -> None:
        # Kernels of any core: those with instructions of others are plain C here.
        folders = (*rv32.include_folders(), runtime_c() / "simd")
        objects = _objects(sources, kernel_flags, compiler, folders, core, tail)
        rv32.build_firmware(
            [*objects, *host.driver_sources(soc)],
            [*driver_folders(soc), *simd_folders(soc)],
            machine,
            folder,
            compiler,
            soc.host.stack,
            tail,
        )

    files = {**_firmware_files(program), **(extra_sources or {})}
    variant = ("rv32", compiler.name, *core, str(kernel_flags), *tail)
    try:
        path = kept_build("firmware.elf", files, soc, variant, compiler, cache_dir, make)
    except L2OverflowError as error:
        raise L2OverflowError(error.what, where=error.where, hint=dominant(program, soc)) from error
    firmware = rv32.open_firmware(path, machine, soc.host.stack)
    sizes = linked_sizes(firmware, program, compiler.name)
    return Built("rv32", program, soc, path, sizes, compiler, firmware=firmware)


def _firmware_files(program: Program, *, in_flash: bool = False) -> dict[str, str]:
    """Return the C of a firmware that runs an inference: file name to text.

    With ``in_flash``, an input that comes row by row is in flash, as nobody needs RAM for it.
    """
    fields = template_fields(program)
    if in_flash and program.streamed is not None:
        fields["in_flash"] = True
    main = render("run_rv32.c.jinja", **fields, run_mark=RUN_MARK)
    return {**model_sources(program, strings=True), "main.c": main}


def _kernel_flags(program: Program, soc: Soc, compiler: Compiler) -> dict[str, tuple[str, ...]]:
    """Return the files that are compiled with flags of their own for this core."""
    if not program.cpu_source:
        return {}
    flags = kernel_flags(soc.host, gcc=compiler.is_gcc)
    return {f"{program.name}_cpu.c": (*flags, *compiler.kernel_flags)}


def _objects(
    sources: Sequence[Path],
    kernel_flags: Mapping[str, Sequence[str]],
    compiler: Compiler,
    folders: Sequence[Path],
    core: Sequence[str],
    tail: Sequence[str] = (),
) -> list[Path]:
    """Return the sources, in place of those with flags of their own (by name) object files."""
    # Applied to an object file, zig would also drop everything that nobody calls.
    once = (*tail, "-c", "-Wl,--no-gc-sections")
    return [
        compiler.compile_cross(
            [path], path.with_suffix(".o"), folders, core, None, (*kernel_flags[path.name], *once)
        )
        if path.name in kernel_flags
        else path
        for path in sources
    ]


def build_arm(
    program: Program,
    soc: Soc,
    compiler: Compiler | None = None,
    cache_dir: Path | None = None,
) -> Built:
    """Build the firmware of a program for a Cortex-M core.

    Args:
        program, compiler, cache_dir: as for :func:`build_rv32`.
        soc: a SoC whose host is such a core.

    Raises:
        TargetError: its host is another core.
        L2OverflowError: the program exceeds flash or RAM; the message lists the sizes.
        ToolchainError: there is no compiler, or it fails.
    """
    return _build_arm(program, soc, compiler, cache_dir, emulated=False)


def _build_arm(
    program: Program,
    soc: Soc,
    compiler: Compiler | None,
    cache_dir: Path | None,
    *,
    emulated: bool,
) -> Built:
    core = arm.core_of(soc)
    compiler = compiler or Compiler.zig()
    check_l2(program, soc)
    flags = arm.arm_flags(core, gcc=compiler.is_gcc, cpu=compiler.cpu)
    kernel_flags = _kernel_flags(program, soc, compiler)

    def make(folder: Path, sources: list[Path]) -> None:
        objects = _objects(sources, kernel_flags, compiler, arm.include_folders(soc), flags)
        arm.build_firmware(objects, soc, folder, compiler, emulated=emulated)

    models = ("models",) if emulated and soc.driver != NO_DEVICES else ()
    variant = ("arm", compiler.name, *flags, str(kernel_flags), *models)
    files = _firmware_files(program, in_flash=not emulated)
    path = kept_build("firmware.elf", files, soc, variant, compiler, cache_dir, make)
    firmware = Firmware.open(path, soc, soc.stacks)
    sizes = linked_sizes(firmware, program, compiler.name)
    return Built("arm", program, soc, path, sizes, compiler, arm=firmware)


def build_qemu(
    program: Program,
    soc: Soc,
    compiler: Compiler | None = None,
    cache_dir: Path | None = None,
) -> Built:
    """Build the firmware of a program for QEMU.

    Args:
        program, soc, compiler, cache_dir: as for :func:`build_arm`; for a Cortex-M core, the
            memories are those of QEMU's machine, for others the SoC's own; for an Xtensa core, the
            compiler is its GCC if not given.

    Raises:
        DependencyError: there is no GCC for an Xtensa core.
        TargetError: QEMU has no machine with its core.
        L2OverflowError, ToolchainError: as for :func:`build_arm`.
    """
    if soc.host.is_in_user_mode:
        return _build_user_mode(program, soc, compiler or compiler_for(soc), cache_dir)
    built = _build_arm(program, arm.on_qemu(soc), compiler, cache_dir, emulated=True)
    return replace(built, platform="qemu")


def sizes_on_chip(built: Built) -> Sizes:
    """Return the sizes of a build's parts on the chip, in bytes.

    They are the build's own, but where its firmware has models of devices for an emulator: then
    they are those of the program linked with what answers that there is no device.

    Raises:
        L2OverflowError, ToolchainError: as for :func:`build_arm`.
    """
    if built.platform != "qemu" or built.soc.driver == NO_DEVICES:
        return built.sizes
    return build_arm(built.program, built.soc, built.compiler).sizes


def _build_user_mode(
    program: Program, soc: Soc, compiler: Compiler, cache_dir: Path | None
) -> Built:
    """Build the firmware of a program as a process of QEMU's user mode."""
    soc = user_mode.in_user_mode(soc)
    check_l2(program, soc)
    flags = user_mode_flags(soc.host, gcc=compiler.is_gcc)
    kernel_flags = _kernel_flags(program, soc, compiler)

    def make(folder: Path, sources: list[Path]) -> None:
        objects = _objects(sources, kernel_flags, compiler, user_mode.include_folders(soc), flags)
        user_mode.build_firmware(objects, soc, folder, compiler)

    variant = ("qemu", compiler.name, *flags, str(kernel_flags))
    files = _firmware_files(program)
    path = kept_build("firmware.elf", files, soc, variant, compiler, cache_dir, make)
    firmware = Firmware.open(path, soc, soc.stacks)
    sizes = linked_sizes(firmware, program, compiler.name)
    return Built("qemu", program, soc, path, sizes, compiler, arm=firmware)


def build_host(
    program: Program,
    soc: Soc,
    compiler: Compiler | None = None,
    cache_dir: Path | None = None,
    *,
    native: bool = False,
    sanitize: bool = False,
    extra_sources: Mapping[str, str] | None = None,
) -> Built:
    """Build a program natively, linked with the SoC's device models.

    Args:
        program, soc, compiler, cache_dir, extra_sources: as for :func:`build_rv32`.
        native: whether kernels that have another form for this machine have that one, with the
            same results; otherwise all are those of the firmware.
        sanitize: whether to stop at undefined behaviour (and, with gcc or clang, at invalid
            accesses).

    Raises:
        L2OverflowError: the parts other than machine code already exceed L2.
        ToolchainError: there is no compiler, or it fails.
    """
    compiler = compiler or Compiler.zig()
    check_l2(program, soc)
    main = render("run_host.c.jinja", **template_fields(program))
    own = model_sources(program, strings=True, native=native)
    files = {**own, "main.c": main, **(extra_sources or {})}

    replaced = native and bool(program.native_source)
    native_sources = host.native_sources() if replaced else ()
    folders = [host.native_folder()] if replaced else []

    def make(folder: Path, sources: list[Path]) -> None:
        host.build([*sources, *native_sources], folders, soc, folder, compiler, sanitize)

    # The compiler uses all instructions of this machine, another one may lack some of them.
    variant = ("host", *HOST_FLAGS, *compiler.host, str(sanitize), instructions())
    path = kept_build("model", files, soc, variant, compiler, cache_dir, make)
    sizes = Sizes(
        code=native_code_bytes(path),
        constants=program.constant_bytes,
        arena=program.plan.peak,
        stack=soc.host.stack,
        io=tensor_bytes((*program.l2_inputs, *program.outputs)),
    )
    made = host.HostProgram(path, soc.name)
    return Built("host", program, soc, path, sizes, compiler, native=made)
