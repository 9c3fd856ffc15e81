"""Vela, which compiles networks for the accelerator, in a process of its own for each.

Its core, ``ethosu.regor``, takes a network as bytes, and returns the payload that the driver is
given, the weights, and the places of everything in the memory between them.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from math import inf
from typing import Any

from byoc_dory.errors import LimitError, TargetError
from byoc_dory.region import Access, Share
from byoc_dory.soc.ethos_u import regor
from byoc_dory.soc.ethos_u.lower import Network

_log = logging.getLogger(__name__)

VERSION = "5.2.0"
"""The version whose results were executed and compared."""

EXTRA = "ethos-u"
_DISTRIBUTION = "ethos-u-vela"

TIME_LIMIT_S = 600
"""Seconds after which a process of Vela is ended; the largest networks tried took less than one."""

_WORTH_IT = 4096
"""Bytes between layers from which on it is worth it to look for fewer."""
_STEPS = 20
_SHARE = 0.01
"""The share of cycles that fewer bytes may cost."""
_ALIGNMENT = 16

_NO_MEMORY = ("std::bad_alloc", "MemoryError", "Cannot allocate memory", "failed to map segment")


@dataclass(frozen=True)
class Memories:
    """The memories that Vela's estimates are for, as its own configurations describe them.

    Attributes:
        core_clock: clock of the accelerator in Hz.
        sram, other: of SRAM, and of the memory with the weights: clock as a part of the
            accelerator's, bytes of a burst, cycles of latency of reads and writes, and the most
            reads and writes that are under way.
        fast: bytes of SRAM that only the accelerator uses; what is between layers is then in the
            other memory, DRAM.  0: SRAM has all of that, and the other memory is flash.
    """

    core_clock: int
    sram: tuple[float, int, int, int, int, int]
    other: tuple[float, int, int, int, int, int]
    fast: int = 0


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
        fast: bytes of SRAM that only the accelerator uses, region 2.
        inputs, outputs: where the network's tensors are in it, in its order.
        cycles: estimated cycles of the accelerator, memories included.
        computing: those that it would take with memories that are quick enough.
        traffic: estimated accesses of each memory.
        operators: number of operators that the accelerator executes.
        shares: what each layer takes of the cycles, by an estimate.
    """

    payload: bytes
    weights: bytes
    scratch: int
    fast: int
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]
    cycles: int
    computing: int
    traffic: tuple[Access, ...]
    operators: int
    shares: tuple[Share, ...] = ()


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


class VelaError(TargetError):
    """Vela makes no program of a network: it refuses it, or ends itself."""


def check_installed() -> None:
    """Check that Vela is there, in the version whose results were compared.

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


def compiled(network: Network, settings: Settings) -> Compiled:
    """Compile a network, once in a process.

    Raises:
        TargetError: Vela is not installed.
        LimitError: it takes too long, or is ended for the memory that it takes.
        VelaError: it makes no program of the network.
    """
    names = tuple(layer.name for layer in network.layers)
    return _compiled(network.format, network.content, settings, names)


def compiled_thriftily(network: Network, settings: Settings) -> Compiled:
    """Compile a network for as few bytes between its layers as cost one cycle in a hundred.

    What fits the limit of `settings` alone often has room to spare: Vela uses what it is given.
    Cycles are its estimate.  If it needs more than the limit, cycles do not count.

    Raises:
        TargetError, LimitError, VelaError: as for `compiled`.
    """
    first = compiled(network, settings)
    fits = first.scratch <= settings.scratch_limit
    if settings.memories.fast or (fits and first.scratch < _WORTH_IT):
        return first
    most = first.cycles * (1 + _SHARE) if fits else inf
    best = _thriftier(network, settings, first, most)
    if network.uncropped:
        whole = replace(network, content=network.uncropped)
        try:
            best = _thriftier(whole, settings, best, most)
        except (VelaError, LimitError) as error:
            _log.info("columns that strides leave over stay cropped: %s", error)
    return best


def _thriftier(network: Network, settings: Settings, known: Compiled, most: float) -> Compiled:
    """Return a program of at most so many cycles with fewer bytes than the one that is known.

    The fewest possible are tried first, then fewer step by step.  If there is none, it is that.
    """
    best, least = known, compiled(network, replace(settings, scratch_limit=0))
    if least.cycles <= most:
        return min(best, least, key=_scratch)
    for step in range(1, _STEPS):
        limit = known.scratch * (_STEPS - step) // _STEPS & -_ALIGNMENT
        if limit < least.scratch:
            break
        if limit < best.scratch:
            made = compiled(network, replace(settings, scratch_limit=limit))
            if made.cycles <= most:
                best = min(best, made, key=_scratch)
    return best


def _scratch(made: Compiled) -> int:
    return made.scratch


@lru_cache(maxsize=256)
def _compiled(
    format_: str, content: bytes, settings: Settings, layers: tuple[str, ...]
) -> Compiled:
    check_installed()
    last = layers[-1]
    request = {
        "path": sys.path,
        "architecture": settings.architecture,
        "format": format_,
        "system": _system(settings),
        "options": _options(settings),
    }
    made, bytes_ = ask(request, content, last)
    if "refused" in made:
        raise _failure(f"Vela refuses the network: {made['refused']}", last)
    _log.debug("Vela: %d operators, %d cycles", made["operators"], made["cycles"])
    return Compiled(
        payload=bytes_[: made["payload"]],
        weights=bytes_[made["payload"] :],
        scratch=made["scratch"],
        fast=made["fast"],
        inputs=tuple(Place(*place) for place in made["inputs"]),
        outputs=tuple(Place(*place) for place in made["outputs"]),
        cycles=made["cycles"],
        computing=made["computing"],
        traffic=tuple(
            Access(_MEMORIES[name], *numbers)
            for name, *numbers in sorted(made["memories"])
            if name in _MEMORIES
        ),
        operators=made["operators"],
        shares=_shares(made["rows"], len(layers)),
    )


def ask(request: Mapping[str, Any], network: bytes, last: str) -> tuple[dict[str, Any], bytes]:
    """Return what `regor.compiled` does, executed in a process of its own.

    Args:
        request: what Vela is asked for.
        network: the file.
        last: name of the last layer, for messages.

    Raises:
        TargetError, LimitError, VelaError: as for `compiled`.
    """
    try:
        done = subprocess.run(
            [sys.executable, regor.__file__],
            input=json.dumps(request).encode() + b"\n" + network,
            capture_output=True,
            timeout=TIME_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        what = f"Vela was ended after {TIME_LIMIT_S} s"
        raise LimitError(what, where=f"layer '{last}'", hint=_HINT, limit="seconds") from None
    _refuse_exceeded(done, last)
    if done.returncode > 0:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise TargetError(
            f"Vela's core cannot be run: {said}",
            where="target ethos_u",
            hint=f"install {_DISTRIBUTION}=={VERSION} for this Python",
        )
    if done.returncode < 0:
        raise _failure(f"Vela ends itself by {_signal_name(-done.returncode)}", last)
    line, _, bytes_ = done.stdout.partition(b"\n")
    return json.loads(line), bytes_


_HINT = "leave the layer to the CPU: give a policy that places it there"


def _failure(what: str, last: str) -> VelaError:
    return VelaError(what, where=f"layer '{last}'", hint=_HINT)


def _refuse_exceeded(done: subprocess.CompletedProcess[bytes], last: str) -> None:
    """Refuse a process that ended for what it took, which says nothing of the network itself.

    Where memory runs out, the kernel kills a process, or what it asks for is not granted.
    """
    said = done.stderr.decode(errors="replace")
    ended = _signal_name(-done.returncode) if done.returncode < 0 else ""
    if ended == "SIGXCPU":
        what, limit = "Vela was ended: it came to the limit of processor time", "cpu_seconds"
    elif ended == "SIGKILL" or (done.returncode and any(text in said for text in _NO_MEMORY)):
        what, limit = "Vela was ended: it lacked memory", "memory_bytes"
    else:
        return
    raise LimitError(what, where=f"layer '{last}'", hint=_HINT, limit=limit)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_MEMORIES = {"Sram": "SRAM", "OffChipFlash": "flash", "Dram": "DRAM"}
_UNITS = {"mac_cycles": "MACs", "ao_cycles": "outputs", "wd_cycles": "weights"}
"""What Vela calls memories and units; what it calls ``shram`` is inside of the accelerator."""


def _shares(rows: Sequence[Sequence[Any]], layers: int) -> tuple[Share, ...]:
    """Return Vela's estimates of its operators, added up by layer and by what takes the cycles.

    An operator takes as long as the slowest of what works at the same time, a unit or a memory,
    which is the cause of all its cycles.  Tensors are named after their layers; what belongs to
    none is the last one's.
    """
    found: list[tuple[Counter[str], Counter[str]]]
    found = [(Counter(), Counter()) for _ in range(layers)]
    for name, cycles, computing, units, accesses in rows:
        number, colon, _ = name.partition(":")
        causes, taken = found[int(number) if colon and number.isdigit() else -1]
        if cycles > computing:
            cause = _MEMORIES[max(accesses, key=lambda each: accesses[each])]
        else:
            cause = _UNITS[max(units, key=lambda each: units[each], default="ao_cycles")]
        causes[cause] += cycles
        taken.update({_MEMORIES[key]: n for key, n in accesses.items() if key in _MEMORIES})
    return tuple(
        Share(causes.total(), tuple(causes.items()), tuple(sorted(taken.items())))
        for causes, taken in found
    )


def clear() -> None:
    """Forget what was compiled in this process."""
    _compiled.cache_clear()


def _options(settings: Settings) -> str:
    size = settings.memories.fast or settings.scratch_limit
    limit = f"arena_size_limit={size}\n" if size else ""
    goal = "Performance" if size else "Size"
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
    other, arena = ("Dram", "Axi1") if memories.fast else ("OffChipFlash", "Axi0")
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
        f"axi1_port={other}",
    ]
    for name, numbers in (("Sram", memories.sram), (other, memories.other)):
        lines += [f"{name}_{f}={n}" for f, n in zip(_MEMORY_FIELDS, numbers, strict=True)]
    lines += [
        "[Memory_Mode.htvm]",
        "const_mem_area=Axi1",
        f"arena_mem_area={arena}",
        "cache_mem_area=Axi0",
    ]
    return "\n".join(lines) + "\n"
