"""The rv32 platform: running a firmware on the instruction-set simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from htvm.firmware.rv32 import Firmware
from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import IssResult, run_elf
from htvm.sim.look import Look


def run_rv32(
    firmware: Firmware,
    inputs: Mapping[str, bytes],
    outputs: Mapping[str, int],
    *,
    compiler: Compiler | None = None,
    step_polls: bool = False,
    settings: Mapping[int, int] | None = None,
    look: Look | None = None,
    placed: Mapping[int, bytes] | None = None,
) -> IssResult:
    """Run a firmware on its machine.

    Args:
        firmware: a firmware from :func:`build_firmware`.
        inputs: symbol -> bytes written to it after loading; not more than its size, and not in
            ``.bss``, which the start-up code clears: inputs belong in ``.noinit``.
        outputs: symbol -> number of its bytes to read after the run.
        compiler: builds the simulator; ziglang if not given.
        step_polls: execute every poll of a device register.
        settings: settings of the device models, as in `htvm.sim.iss.run_elf`.
        look: memory and stores to observe during the run.
        placed: address -> bytes written there after loading.

    Raises:
        SimulationError: the firmware lacks a symbol, a symbol is too small, the core trapped, a
            device complained, or ``main`` returned a nonzero value.
        ToolchainError: the simulator cannot be built.
    """
    for name in inputs:
        _refuse_cleared(firmware, name)
    pokes = {firmware.symbol(name, len(data)).address: data for name, data in inputs.items()}
    pokes |= placed or {}
    places = {name: firmware.symbol(name, size).address for name, size in outputs.items()}
    low, top = (firmware.symbols[edge].address for edge in ("__stack_low", "__stack_top"))
    result = run_elf(
        firmware.elf,
        firmware.machine,
        pokes=pokes,
        peeks={places[name]: size for name, size in outputs.items()},
        stack=(low, top),
        step_polls=step_polls,
        settings=settings,
        look=look,
        compiler=compiler,
    )
    if result.exit_code != 0:
        printed = result.output.decode("utf-8", "replace").strip()
        raise firmware.error(
            f"the firmware ended with code {result.exit_code}" + (f": {printed}" if printed else "")
        )
    return replace(result, outputs={name: result.memory[place] for name, place in places.items()})


def _refuse_cleared(firmware: Firmware, name: str) -> None:
    """Refuse symbols in zero-initialised data, which the start-up code would clear."""
    start, end = (firmware.symbols[edge].address for edge in ("__bss_start", "__bss_end"))
    if name in firmware.symbols and start <= firmware.symbols[name].address < end:
        raise firmware.error(
            f"the input {name!r} is in .bss, which the firmware clears when it starts",
            'declare it __attribute__((section(".noinit")))',
        )
