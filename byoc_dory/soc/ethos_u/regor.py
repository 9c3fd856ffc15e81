"""Vela's core, run once: a network on standard input, what it made of it on standard output.

`byoc_dory.soc.ethos_u.vela` runs this file as a program, because there are networks on which
Vela ends its process by a signal.  A process takes about 30 ms more than a call, so none is kept.

Both sides send a line of JSON and bytes behind it.  The request has ``path`` (to import from),
``architecture``, ``format``, ``system`` and ``options``, then the network.  The answer has
``refused`` (why there is no program), or the fields that `answer` writes, then the payload and the
weights.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any


def answer(made: Any) -> tuple[dict[str, Any], bytes]:
    """Return the fields of the answer for ``regor.CompiledRawModel``, and the bytes behind them."""
    report = made.perf_report
    payload, weights = bytes(made.command_stream), bytes(made.read_only.data)
    fields = {
        "payload": len(payload),
        "scratch": int(made.scratch.size),
        "fast": int(made.scratch_fast.size),
        "inputs": [[int(each.address), int(each.size)] for each in made.inputs],
        "outputs": [[int(each.address), int(each.size)] for each in made.outputs],
        "cycles": int(report.totalCycles),
        "computing": int(report.npuCycles),
        "memories": [_traffic(key, each) for key, each in report.memories.items()],
        "operators": int(report.npuOps),
        "rows": _operators(made.opt_database.tables),
    }
    return fields, payload + weights


def _operators(tables: Any) -> list[list[Any]]:
    """Return name and cycles of each operator, its units' cycles, and those of its accesses."""
    known: dict[str, dict[str, int]] = {}
    for table in ("perf_debug_main", "perf_debug_wd"):
        for row in _records(tables[table]):
            units = known.setdefault(row["id"], {})
            units |= {unit: int(row[unit]) for unit in _UNITS if row.get(unit)}
    found: list[list[Any]] = []
    for row in _records(tables["perf"]):
        accesses = {key[:-3]: int(row[key]) for key in row if key.endswith("_ac")}
        cycles = [int(row[key]) for key in ("op_cycles", "npu_cycles")]
        found.append([row["name"], *cycles, known.get(row["id"], {}), accesses])
    return found


_UNITS = ("mac_cycles", "ao_cycles", "wd_cycles")


def _records(table: Any) -> list[dict[str, str]]:
    return [dict(zip(table.header, map(str, row), strict=True)) for row in table.data]


def _traffic(name: str, memory: Any) -> list[Any]:
    kinds = memory.accesses.values()
    read, written = (sum(int(getattr(each, way)) for each in kinds) for way in _WAYS)
    return [name, int(memory.totalAccessCycles), read, written]


_WAYS = ("bytesRead", "bytesWritten")


def compiled(request: Mapping[str, Any], network: bytes) -> tuple[dict[str, Any], bytes]:
    """Compile a network in this process; return the fields of the answer, and the bytes behind."""
    from ethosu import regor

    wanted = (request["architecture"], network, request["format"], request["system"])
    try:
        made = regor.compile(*wanted, options=request["options"])
    except RuntimeError as error:
        return {"refused": " ".join(str(error).split())[:300]}, b""
    if not isinstance(made, regor.CompiledRawModel):
        return {"refused": "an operator is left to the CPU"}, b""
    return answer(made)


def main() -> None:
    """Compile the network that standard input has."""
    # What Vela prints must not get between the bytes of the answer.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    request = json.loads(sys.stdin.buffer.readline())
    sys.path[:] = request["path"]
    fields, content = compiled(request, sys.stdin.buffer.read())
    out.write(json.dumps(fields).encode() + b"\n" + content)
    out.flush()


if __name__ == "__main__":
    main()
