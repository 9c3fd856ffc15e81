"""Vela, which compiles networks for the accelerator, in this process.

Its core, ``ethosu.regor``, takes a network as bytes, and returns the payload that the driver is
given, the weights, and the places of everything in the memory between them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from byoc_dory.errors import TargetError
from byoc_dory.soc.ethos_u.lower import Network

_log = logging.getLogger(__name__)

VERSION = "5.2.0"
"""The version whose results were executed and compared."""

EXTRA = "ethos-u"
_DISTRIBUTION = "ethos-u-vela"


@dataclass(frozen=True)
class Memories:
    """The memories that Vela's estimates are for, as its own configurations describe them.

    Attributes:
        core_clock: clock of the accelerator in Hz.
        sram, flash: of each, clock as a part of the accelerator's, bytes of a burst, cycles of
            latency of reads and writes, and the most reads and writes that are under way.
    """

    core_clock: int
    sram: tuple[float, int, int, int, int, int]
    flash: tuple[float, int, int, int, int, int]


@dataclass(frozen=True)
class Place:
    """Where a tensor is in the memory between layers: offset of its first byte, and its bytes."""

    offset: int
    size: int


@dataclass(frozen=True)
class Compiled:
    """What Vela made of a network.

    Attributes:
        payload: the driver's actions and the command stream.
        weights: weights, scales and tables, region 0.
        scratch: bytes of the memory between layers, region 1.
        inputs, outputs: where the network's tensors are in it, in its order.
        cycles: estimated cycles of the accelerator, memories included.
        memory_cycles: estimated cycles of accesses, by Vela's name of the memory.
        operators: number of operators that the accelerator executes.
        layer_cycles: estimated cycles of each layer, by number, where tensors are named after them.
    """

    payload: bytes
    weights: bytes
    scratch: int
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]
    cycles: int
    memory_cycles: tuple[tuple[str, int], ...]
    operators: int
    layer_cycles: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Settings:
    """What Vela compiles for.

    Attributes:
        architecture: ``EthosU55`` or ``EthosU65``.
        macs: multiply-accumulates per cycle.
        memories: the memories that cycles are estimated for.
        scratch_limit: bytes that the memory between layers should stay within; 0: as few as
            possible.
    """

    architecture: str
    macs: int
    memories: Memories
    scratch_limit: int


def installed_core() -> Any:
    """Return Vela's core.

    Raises:
        TargetError: it is not installed, or another version is.
    """
    try:
        found = version(_DISTRIBUTION)
    except PackageNotFoundError:
        raise TargetError(
            "Vela, which compiles for Ethos-U, is not installed",
            where="target ethos_u",
            hint=f"python -m pip install 'htvm[{EXTRA}]'",
        ) from None
    if found != VERSION:
        raise TargetError(
            f"Vela {found} is installed, whose results nobody has compared",
            where="target ethos_u",
            hint=f"python -m pip install {_DISTRIBUTION}=={VERSION}",
        )
    try:
        from ethosu import regor
    except ImportError as error:
        raise TargetError(
            f"Vela's core cannot be loaded: {error}",
            where="target ethos_u",
            hint=f"install {_DISTRIBUTION}=={VERSION} for this Python",
        ) from error
    return regor


def compiled(network: Network, settings: Settings) -> Compiled:
    """Compile a network, once in a process.

    Raises:
        TargetError: Vela is not installed, or refuses the network.
    """
    return _compiled(network.format, network.content, settings, network.layers[-1].name)


@lru_cache(maxsize=256)
def _compiled(format_: str, content: bytes, settings: Settings, last: str) -> Compiled:
    core = installed_core()
    try:
        made = core.compile(
            settings.architecture,
            content,
            format_,
            _system(settings),
            options=_options(settings),
        )
    except RuntimeError as error:
        raise TargetError(
            f"Vela refuses the network: {' '.join(str(error).split())[:300]}",
            where=f"layer '{last}'",
            hint="leave the layer to the CPU: give a policy that places it there",
        ) from error
    if not isinstance(made, core.CompiledRawModel):
        raise TargetError(
            "Vela leaves an operator to the CPU",
            where=f"layer '{last}'",
            hint="leave the layer to the CPU: give a policy that places it there",
        )
    report = made.perf_report
    _log.debug("Vela: %d operators, %d cycles", report.npuOps, report.totalCycles)
    return Compiled(
        payload=bytes(made.command_stream),
        weights=bytes(made.read_only.data),
        scratch=int(made.scratch.size),
        inputs=_places(made.inputs),
        outputs=_places(made.outputs),
        cycles=int(report.totalCycles),
        memory_cycles=tuple(
            (name, int(memory.totalAccessCycles))
            for name, memory in sorted(report.memories.items())
        ),
        operators=int(report.npuOps),
        layer_cycles=_layer_cycles(made.opt_database),
    )


def _layer_cycles(database: Any) -> tuple[tuple[int, int], ...]:
    """Return Vela's estimates of its operators, added up by the layer that their tensor names."""
    performance = database.tables["perf"]
    name, cycles = (performance.header.index(column) for column in ("name", "op_cycles"))
    found: dict[int, int] = {}
    for row in performance.data:
        number, colon, _ = row[name].partition(":")
        if colon and number.isdigit():
            found[int(number)] = found.get(int(number), 0) + int(row[cycles])
    return tuple(sorted(found.items()))


def clear() -> None:
    """Forget what was compiled in this process."""
    _compiled.cache_clear()


def _places(tensors: Sequence[Any]) -> tuple[Place, ...]:
    return tuple(Place(int(tensor.address), int(tensor.size)) for tensor in tensors)


def _options(settings: Settings) -> str:
    limit = f"arena_size_limit={settings.scratch_limit}\n" if settings.scratch_limit else ""
    goal = "Performance" if settings.scratch_limit else "Size"
    return (
        "[compiler]\nenable_db=true\noutput_format=Raw\ncop_format=COP1\n"
        f"[scheduler]\noptimize={goal}\n{limit}cpu_tensor_alignment=16\n"
    )


_MEMORY_FIELDS = (
    "clock_scale",
    "burst_length",
    "read_latency",
    "write_latency",
    "max_reads",
    "max_writes",
)


def _system(settings: Settings) -> str:
    """Return the text that describes the system to Vela."""
    memories = settings.memories
    lines = [
        "[architecture]",
        f"macs={settings.macs}",
        "cores=1",
        "[vela]",
        "system_config_name=htvm",
        "memory_mode_name=htvm",
        "[System_Config.htvm]",
        f"core_clock={memories.core_clock}",
        "axi0_port=Sram",
        "axi1_port=OffChipFlash",
    ]
    for name, numbers in (("Sram", memories.sram), ("OffChipFlash", memories.flash)):
        lines += [f"{name}_{f}={n}" for f, n in zip(_MEMORY_FIELDS, numbers, strict=True)]
    lines += [
        "[Memory_Mode.htvm]",
        "const_mem_area=Axi1",
        "arena_mem_area=Axi0",
        "cache_mem_area=Axi0",
    ]
    return "\n".join(lines) + "\n"
