"""How large the house is, and how much of it a build walks through.

    python -m benchmarks.house [--out docs/results]

Lines of the product's Python, and what `benchmarks.counting` counts in builds: all but the seconds
are the same on every machine.  Templates, data and C are not counted.
"""

from __future__ import annotations

import ast
import io
import sys
import tempfile
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.artefact import Artefact, write
from benchmarks.artefact import main as run_benchmark
from benchmarks.counting import HERE, PACKAGES, Counts, counted, seconds
from htvm.progress import Progress
from tests.frontend.flatfile import INT32, Graph, Op, Tensor

__all__ = ["CORE", "SHAPE", "Lines", "accelerators_of", "convolution", "lines_of", "run"]

SHAPE = (40, 3, 5, 24)
"""Sizes of the convolution's weights, by which it is found again: hardly anything else has them."""
CORE = "cortex_m4"
"""Of the build that needs no accelerator."""
LLAMA = ("zoo:microllama", "siracusa")
TIMED = (("zoo:mobilenet_v1", "diana"), LLAMA)
_WITHOUT_ACCELERATORS = {"boards", "generic"}
_NO_CODE = (
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER, tokenize.ENCODING,
)  # fmt: skip


@dataclass(frozen=True)
class Lines:
    """Lines of Python.

    Attributes:
        files: number of files.
        all: lines as in the files.
        code: those with code: no blank lines, comments or docstrings.
    """

    files: int = 0
    all: int = 0
    code: int = 0

    def __add__(self, other: Lines) -> Lines:
        return Lines(self.files + other.files, self.all + other.all, self.code + other.code)


def lines_of(text: str) -> Lines:
    """Count the lines of a file; strings that are statements are docstrings."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                code.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
    return Lines(1, len(text.splitlines()), len(code))


def _lines() -> dict[str, Lines]:
    """Return the lines of each package, and of each folder in it with what is below."""
    found: dict[str, Lines] = {}
    for package in PACKAGES:
        for path in sorted((HERE / package).rglob("*.py")):
            lines = lines_of(path.read_text(encoding="utf-8"))
            inner = path.relative_to(HERE / package).parts
            depth = 2 if inner[0] == "tools" else 1
            folder = "/".join((package, *inner[:-1][:depth]))
            parent = [f"{package}/tools"] if depth == 2 and len(inner) > 2 else []
            for name in (package, *parent, folder if len(inner) > 1 else f"{package}/*.py"):
                found[name] = found.get(name, Lines()) + lines
    return found


def convolution() -> bytes:
    """Return a TFLite file of one convolution, which a core of DIANA takes."""
    rng = np.random.default_rng(0)
    weights, bias = rng.integers(-127, 128, SHAPE).astype(np.int8), np.zeros(SHAPE[0], np.int32)
    tensors = [
        Tensor("x", (1, 8, 9, SHAPE[3])),
        Tensor("weights", SHAPE, data=weights, scales=(0.01,), zero_points=(0,)),
        Tensor("bias", bias.shape, INT32, data=bias, scales=(0.0005,), zero_points=(0,)),
        Tensor("y", (1, 8, 9, SHAPE[0])),
    ]
    same_padding, stride = ("b", 0), ("i", 1)
    options = {0: same_padding, 1: stride, 2: stride, 4: ("i", 1), 5: ("i", 1)}
    return Graph(tensors, [Op("CONV_2D", [0, 1, 2], [3], (1, options))]).file()


def accelerators_of(counts: Counts) -> tuple[str, ...]:
    """Return the packages with the parts of SoCs that have accelerators which a build imported."""
    rooms = {path.parent.name for path in (HERE / "byoc_dory" / "soc").glob("*/__init__.py")}
    loaded = {name.split(".")[2] for name in counts.imported if name.startswith("byoc_dory.soc.")}
    return tuple(sorted((rooms & loaded) - _WITHOUT_ACCELERATORS))


def run(folder: Path, progress: Progress) -> Artefact:
    """How large the house is, and how much of it a build walks through."""
    with tempfile.TemporaryDirectory() as files:
        path = Path(files) / "convolution.tflite"
        path.write_bytes(convolution())
        with progress.stage("a convolution on diana"):
            conv = counted(path, "diana", SHAPE)
        with progress.stage(f"a convolution on {CORE}"):
            core = counted(path, CORE)
    with progress.stage("{} on {}".format(*LLAMA)):
        llama = counted(*LLAMA)
    times = {}
    for model, target in TIMED:
        with progress.stage(f"{model} on {target}, timed"):
            times[f"{model} on {target}"] = round(seconds(model, target), 1)
    counts = {
        "convolution on diana": {
            **_walked(conv),
            "shapes": list(conv.shapes),
            "carriers": list(conv.carriers),
        },
        f"convolution on {CORE}": {**_walked(core), "accelerators": list(accelerators_of(core))},
        "{} on {}".format(*LLAMA): {
            **_walked(llama),
            "tile programs": llama.called("tile_program"),
            "predictions": llama.called("predicted_cycles"),
            "checks": llama.called("check", "byoc_dory.tileloop.checks"),
        },
    }
    lines = _lines()
    data = {
        "lines": {name: vars(found) for name, found in lines.items()},
        "counts": counts,
        "seconds": times,
    }
    artefact = Artefact("house", "Size of the house", _text(lines, counts, times), data)
    write(artefact, folder)
    return artefact


def _walked(counts: Counts) -> dict[str, Any]:
    return {
        "modules imported": len(counts.imported),
        "modules executed": len(counts.executed),
        "functions": len(counts.calls),
        "calls": sum(counts.calls.values()),
    }


def _text(
    lines: dict[str, Lines], counts: dict[str, dict[str, Any]], times: dict[str, float]
) -> str:
    total = sum((lines[package] for package in PACKAGES), Lines())
    found = [f"{'product Python':24}{'files':>7}{'lines':>9}{'code':>9}"]
    for name, row in [("all", total), *lines.items()]:
        label = name if name in (*PACKAGES, "all") else f"  {name}"
        found.append(f"{label:24}{row.files:7,}{row.all:9,}{row.code:9,}")
    for build, rows in counts.items():
        found += ["", f"{build}:"]
        for name, value in rows.items():
            if isinstance(value, list):
                found += [f"  {name:22}{len(value):9,}", *(f"    {entry}" for entry in value)]
            else:
                found.append(f"  {name:22}{value:9,}")
    found += ["", "processor seconds (of one machine; not compared by tests):"]
    found += [f"  {build:32}{value:8.1f}" for build, value in times.items()]
    return "\n".join([*found, "", _LEGEND])


_LEGEND = """\
Code is lines without blanks, comments and docstrings.  Builds end before the C compiler and take
nothing from a cache; functions are the product's that were called, lambdas and comprehensions
apart.  Shapes are the classes whose objects have all sizes of the convolution's weights among
their own fields, carriers those with such an object in a field.  Tile programs, predictions and
checks are calls of `tile_program`, `predicted_cycles` and `tileloop.checks.check`."""


if __name__ == "__main__":
    sys.exit(run_benchmark(run))
