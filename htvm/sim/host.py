"""The host platform: running a native program."""

from __future__ import annotations

import json
import logging
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from byoc_dory.errors import SimulationError
from htvm.firmware.host import HostProgram
from htvm.firmware.paths import work_folder
from htvm.processes import run

_log = logging.getLogger(__name__)

# Exit codes of runtime_c/platform/host/htvm_host.h.
_COMPLAINT = 97
_USAGE = 98


def run_host(
    program: HostProgram,
    inputs: Sequence[bytes],
    output_sizes: Sequence[int],
    *,
    timeout_s: float = 600.0,
    events: list[dict[str, Any]] | None = None,
    settings: Mapping[int, int] | None = None,
) -> list[bytes]:
    """Run a program and return its outputs.

    Args:
        program: a program from `htvm.firmware.host.build`.
        inputs: the bytes of each input, in order.
        output_sizes: bytes of each output, in order.
        timeout_s: seconds after which the program is stopped.
        events: a list to which device events are appended: unit, start, end (in accesses and waited
            device cycles, not host cycles), what, bytes, macs, array, weights.
        settings: device register -> value written first; these are settings of the device models,
            which no program can change.

    Raises:
        SimulationError: a device complained (the message names device, address and size), the
            program failed or crashed, or an output has another size than expected.
    """
    with work_folder("htvm-host-") as folder:
        input_files = [folder / f"input_{i}" for i in range(len(inputs))]
        output_files = [folder / f"output_{i}" for i in range(len(output_sizes))]
        for file, data in zip(input_files, inputs, strict=True):
            file.write_bytes(data)
        line = [str(program.path)]
        for address, value in (settings or {}).items():
            line += ["--set", f"{address:#x}:{value}"]
        if events is not None:
            line += ["--events", str(folder / "events")]
        line += [*map(str, input_files), "--", *map(str, output_files)]
        _call(line, program, timeout_s)
        outputs = [
            _read(file, size, program)
            for file, size in zip(output_files, output_sizes, strict=True)
        ]
        if events is not None:
            text = (folder / "events").read_text(encoding="utf-8")
            events += [json.loads(entry) for entry in text.splitlines()]
    return outputs


def _call(line: list[str], program: HostProgram, timeout_s: float) -> None:
    where = f"program {program.path} on the host platform of {program.soc}"
    _log.debug("%s", " ".join(line))
    ended = run(
        line,
        "the program",
        SimulationError,
        where,
        hint="build it again",
        seconds=timeout_s,
        slow_hint="allow more time, or look for a device that never becomes idle",
    )
    if ended.code == 0:
        return
    said = ended.said.strip()
    if ended.code == _COMPLAINT:
        raise SimulationError(said or "a device complained", where=where)
    if ended.code == _USAGE:
        raise SimulationError(said, where=where, hint="give each input and output its exact size")
    if ended.code < 0:
        try:
            what = signal.Signals(-ended.code).name
        except ValueError:
            what = f"signal {-ended.code}"
        raise SimulationError(f"the program crashed ({what}) {said}".strip(), where=where)
    message = f"the program returned {ended.code}"
    raise SimulationError(f"{message}: {said}" if said else message, where=where)


def _read(file: Path, size: int, program: HostProgram) -> bytes:
    where = f"program {program.path}"
    try:
        data = file.read_bytes()
    except FileNotFoundError as error:
        raise SimulationError(f"the program did not write {file.name}", where=where) from error
    if len(data) != size:
        raise SimulationError(f"{file.name} has {len(data)} B, {size} B were expected", where=where)
    return data
