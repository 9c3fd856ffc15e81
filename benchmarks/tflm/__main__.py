"""``python -m benchmarks.tflm``: TFLite Micro's instructions, flash and RAM beside ours.

Sources are folders of the projects as they are published; ``FOLDER@VERSION`` names a version for
the page.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import htvm
from benchmarks import boards
from benchmarks.boards import FILES
from benchmarks.made_of import RowSource, record
from benchmarks.tflm.firmware import Sources
from benchmarks.tflm.page import FAST, OURS, Row, page
from benchmarks.tflm.run import inference
from byoc_dory.soc.registry import resolve
from htvm.frontend.tflite.file import read_file

__all__ = ["main", "made_of"]

ROOT = Path(__file__).parents[2]
_TARGET = "cortex_m4"
_PROJECTS = ("tflm", "cmsis_nn", "cmsis", "flatbuffers", "gemmlowp", "ruy")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the page and its data."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tflm", description=__doc__)
    for project in _PROJECTS:
        parser.add_argument(
            f"--{project.replace('_', '-')}", metavar="FOLDER[@VERSION]", required=True
        )
    parser.add_argument(
        "--models",
        type=Path,
        default=ROOT.parent / "shared" / "models" / "tflite",
        help="folder of MLPerf Tiny's files, each in a folder with its golden",
    )
    parser.add_argument("--data", type=Path, default=ROOT / "docs" / "results" / "tflm.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "tflm.md")
    options = parser.parse_args(arguments)
    given = {name: getattr(options, name).partition("@")[::2] for name in _PROJECTS}
    for name, (folder, _) in given.items():
        if not Path(folder).is_dir():
            parser.error(f"--{name.replace('_', '-')}: {folder} is not a folder")
    fast = Sources(**{name: Path(folder).resolve() for name, (folder, _) in given.items()})
    plain = replace(fast, cmsis_nn=None, cmsis=None)
    rows = []
    for name, folder in FILES.items():
        network = options.models / folder / "model.tflite"
        with np.load(network.with_name("golden.npz")) as arrays:
            case = network, arrays["inputs"][0], arrays["out_tflm"][0]
        rows.append(_ours(name, *case))
        for by, sources in ((FAST, fast), ("TFLite Micro, reference kernels", plain)):
            rows.append(_theirs(name, by, sources, *case, rows[-1].macs))
            _say(f"{name}, {by}: {rows[-1].instructions:,} instructions")
    versions = [f"{name.replace('_', '-')} {it or 'unknown'}" for name, (_, it) in given.items()]
    versions += [f"{name} {version(name)}" for name in ("ziglang", "unicorn", "htvm")]
    data = {"versions": versions, "rows": [asdict(row) for row in rows]}
    options.data.write_text(json.dumps(data, indent=1) + "\n")
    options.page.write_text(page(rows, versions))
    record("tflm", made_of())
    return 0


def made_of() -> Iterator[RowSource]:
    """Our programs."""
    return boards.made_of((_TARGET,), ())


def _ours(name: str, network: Path, given: Any, wanted: Any) -> Row:
    module = htvm.build(htvm.load(network), _TARGET)
    result, sizes = module.run(given), module.sizes
    assert result.instructions is not None and result.stack_bytes is not None
    assert result.estimated_cycles is not None
    return Row(
        network=name,
        by=OURS,
        equal=bool(np.array_equal(result.outputs[0].reshape(-1), np.asarray(wanted).reshape(-1))),
        instructions=result.instructions,
        macs=sum(step.macs for step in module.compiled.program.steps),
        flash=sizes.code + sizes.constants,
        ram=sizes.arena + sizes.io + sizes.other + result.stack_bytes,
        arena=sizes.arena,
        stack=result.stack_bytes,
        estimate=result.estimated_cycles,
        layers=tuple((layer.name, layer.instructions or 0) for layer in result.layers),
        constants=sizes.constants,
    )


def _theirs(
    name: str, by: str, sources: Sources, network: Path, given: Any, wanted: Any, macs: int
) -> Row:
    with tempfile.TemporaryDirectory(prefix="htvm-tflm-") as folder:
        counted = inference(sources, network, given, wanted, resolve(_TARGET).soc, Path(folder))
    operators = read_file(network.read_bytes(), str(network)).operators
    return Row(
        network=name,
        by=by,
        equal=counted.equal,
        instructions=counted.instructions,
        macs=macs,
        flash=counted.flash,
        ram=counted.ram,
        arena=counted.arena,
        stack=counted.stack,
        estimate=counted.estimate,
        layers=tuple(
            (operator.kind, count)
            for operator, count in zip(operators, counted.layers, strict=True)
        ),
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
