"""What all probes share; it runs in the peers' environments and needs numpy only.

A probe is a program: ``probe.py CASE.json``, a file with the fields of `Case`.  It prints the
fields of `Answer` as the last line, in JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

RUNS = 7
"""Inferences that are timed; the first is left out."""


def main(probe: Callable[[dict[str, str]], dict[str, Any]]) -> None:
    """Run ``probe`` on the case given on the command line, and print its answer."""
    case = json.loads(Path(sys.argv[1]).read_text())
    try:
        answer = probe(case)
    except Exception as error:  # noqa: BLE001 - whatever a peer raises is its answer
        traceback.print_exc()
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{type(error).__name__} in {Path(last.filename).name}, {last.name}"
        text = str(error).strip() or place
        answer = {"reads": False, "reason": text.splitlines()[0][:160]}
    print("\n" + json.dumps(answer))


def golden(case: dict[str, str]) -> tuple[Any, Any]:
    """Return the inputs and the oracle's outputs, one row per inference."""
    import numpy as np

    with np.load(case["golden"]) as file:
        return file["inputs"], file["outputs"]


def compared(case: dict[str, str], run: Callable[[Any], Any]) -> dict[str, Any]:
    """Run all inferences; return how the outputs compare, and the time of one.

    Args:
        case: the case.
        run: takes one input, returns the output.
    """
    import numpy as np

    inputs, outputs = golden(case)
    equal, largest, seconds = 0, 0.0, []
    for x, expected in zip(inputs, outputs, strict=True):
        found = np.asarray(run(x)).reshape(expected.shape)
        equal += int((found == expected).sum())
        difference = found.astype(np.float64) - expected.astype(np.float64)
        largest = max(largest, float(np.abs(difference).max()))
    for _ in range(RUNS):
        begin = time.perf_counter()
        run(inputs[0])
        seconds.append(time.perf_counter() - begin)
    return {
        "reads": True,
        "equal": equal,
        "elements": int(outputs.size),
        "largest": largest,
        "host_seconds": statistics.median(seconds[1:]),
    }


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return what ``work`` returns, and its seconds."""
    begin = time.perf_counter()
    result = work()
    return result, time.perf_counter() - begin
