"""Sizes of six networks by all who state them: fit, run, compile, and the compiler's own tool.

    python -m benchmarks.sizes [--cc arm-none-eabi-gcc] [--write docs/guides/fit.md]

RAM must be equal to the byte, with any compiler; flash must be equal wherever it is measured with
the same one.  ``run`` and ``compile`` are the command line's, ``size`` adds up the sections of the
firmware that was run.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import htvm
from htvm.errors import ToolchainError
from htvm.inputs import seeded_inputs
from htvm.tools.cli.arguments import open_model

__all__ = ["CC", "NETWORKS", "TARGET", "Stated", "disagreements", "stated", "table"]

NETWORKS = (
    "zoo:resnet8", "zoo:ds_cnn", "zoo:mobilenet_v1", "zoo:toyadmos", "zoo:digits",
    "zoo:ds_cnn_7x5",
)  # fmt: skip
TARGET = "cortex_m4"
CC = "arm-none-eabi-gcc"
_SIZE = "arm-none-eabi-size"
_MARKS = ("<!-- sizes -->\n", "<!-- end of sizes -->\n")


@dataclass(frozen=True)
class Stated:
    """What is said about a network (bytes).

    Attributes:
        network: of the zoo.
        compiler: whose code it is.
        ram: by fit, run, compile and the compiler's tool.
        flash: likewise.
    """

    network: str
    compiler: str
    ram: tuple[int, int, int, int]
    flash: tuple[int, int, int, int]


def stated(network: str, cc: str | None) -> Stated:
    """Return what everybody says about a network, made by ziglang's clang or by ``cc``.

    Raises:
        ToolchainError: a compiler is missing or fails.
    """
    options = ["-t", TARGET, *(() if cc is None else ("--cc", cc)), "--json"]
    levels = {level["memory"]: level for level in _said("fit", network, *options)["levels"]}
    with tempfile.TemporaryDirectory(prefix="htvm-sizes-") as folder:
        compiled = _said("compile", network, *options, "--out", f"{folder}/out")
    written = compiled["report"]["summary"]["memory"]
    module = htvm.build(open_model(network), TARGET, cc=cc)
    module.run(seeded_inputs(module.compiled.source.inputs))
    ran = module.report().summary.memory
    text, data, bss = _sections(module.built.path)
    return Stated(
        network.removeprefix("zoo:"),
        ran.compiler,
        (levels["RAM"]["demand"], ran.total, written["total"], data + bss),
        (
            levels["flash"]["demand"],
            ran.flash,
            written["code"] + written["constants"],
            text + data,
        ),
    )


def _said(verb: str, network: str, *options: str) -> dict[str, Any]:
    line = [sys.executable, "-m", "htvm", verb, network, *options]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolchainError(f"htvm {verb} failed: {done.stderr.strip()}", where=network)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _sections(path: Path) -> tuple[int, int, int]:
    """Return the bytes of code with constants, of initialised and of other variables."""
    program = shutil.which(_SIZE)
    if program is None:
        raise ToolchainError(f"{_SIZE} is not installed")
    done = subprocess.run([program, str(path)], capture_output=True, text=True, check=True)
    text, data, bss = (int(number) for number in re.findall(r"\d+", done.stdout)[:3])
    return text, data, bss


def disagreements(rows: Sequence[Stated]) -> list[str]:
    """Return what is not equal, in words."""
    found = []
    for row in rows:
        for what, numbers in (("RAM", set(row.ram)), ("flash", set(row.flash))):
            if len(numbers) > 1:
                found.append(f"{what} of {row.network} by {row.compiler}: {sorted(numbers)}")
    return found


def table(rows: Sequence[Stated]) -> str:
    """Return the table in Markdown."""
    who = ("fit", "run", "compile", f"`{_SIZE}`")
    head = [
        "network",
        "compiler",
        *(f"{what}, {name}" for what in ("RAM", "flash") for name in who),
    ]
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "--:|" * 8]
    for row in rows:
        cells = [f"{number:,}" for number in (*row.ram, *row.flash)]
        lines.append("| " + " | ".join([row.network, row.compiler, *cells]) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the table; the result is 1 if something is not equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cc", default=CC, help="the second compiler")
    parser.add_argument("--write", type=Path, help="page that has the table between two marks")
    arguments = parser.parse_args()
    rows = [stated(network, cc) for network in NETWORKS for cc in (None, arguments.cc)]
    text = table(rows)
    if arguments.write is not None:
        page = arguments.write.read_text(encoding="utf-8")
        before, _, after = page.partition(_MARKS[0])
        rest = after.partition(_MARKS[1])[2]
        arguments.write.write_text(
            f"{before}{_MARKS[0]}\n{text}\n{_MARKS[1]}{rest}", encoding="utf-8"
        )
    print(text, *disagreements(rows), sep="\n")
    return int(bool(disagreements(rows)))


if __name__ == "__main__":
    sys.exit(main())
