"""ExecuTorch with its operators for Cortex-M beside ours: instructions, flash, RAM.

    python -m benchmarks.executorch SOURCES PYTHON

SOURCES has a folder each of ``executorch@VERSION``, ``cmsis_nn@VERSION`` (of the version that
ExecuTorch names), ``cmsis@VERSION`` and ``flatbuffers@VERSION``, as their projects publish them.
PYTHON is that of an environment with torch, torchao and ExecuTorch's package, which exports MLPerf
Tiny's networks (`benchmarks.executorch.export`) and has the ``flatc`` of its runtime.  Both sides
read what that writes, are compiled by the same GCC with ``-O2`` for a Cortex-M4, and run once in
the emulator; ours computes in the same arithmetic (``semantics="tflite"``).  The table goes to
``docs/results/executorch.json``, and into ``docs/executorch.md``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

import htvm
from benchmarks.executorch.firmware import Exported, Sources, build, headers
from benchmarks.tflm.compilers import Kit, kit_of
from byoc_dory.soc.base import Soc
from byoc_dory.soc.registry import resolve
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.firmware.build import build_arm
from htvm.firmware.linked import Firmware
from htvm.sim.arm import run_arm
from htvm.sim.runner import run
from htvm.tools.cli.app import exit_code

CORE = "cortex_m4"
NETWORKS = ("resnet8", "ds_cnn", "mobilenet_v1", "autoencoder")
_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "docs" / "executorch.md"
_BLOCK = re.compile(r"(<!-- python -m benchmarks.executorch -->\n).*?(\n<!-- end -->)", re.S)
_EXECUTE = "_ZN10executorch7runtime6Method7executeEv"
_APART = ("planned", "loaded", "temporary", "input", "output", "loaded_used", "temporary_used",
          "failed")  # fmt: skip
_STACK = 16_384
_WHERE = (
    "import pathlib, executorch.data.bin as b; print(pathlib.Path(list(b.__path__)[0]) / 'flatc')"
)


@dataclass(frozen=True)
class Row:
    """A network on one side.

    Attributes:
        network: its name.
        by: the side.
        different: elements of the output that are not those of torch's quantized module.
        elements: of the output.
        instructions: of one inference, from real numbers to real numbers.
        flash: bytes of code and constants, on ExecuTorch's side with the program file.
        constants: of it bytes of weights and factors, on ExecuTorch's side the file.
        ram: bytes of intermediate tensors, what the runtime keeps, variables, stack, input, output.
    """

    network: str
    by: str
    different: int
    elements: int
    instructions: int
    flash: int
    constants: int
    ram: int


def ours(exports: Path, name: str, kit: Kit) -> Row:
    """Measure this project's firmware of an export.

    Args:
        exports: folder of what `benchmarks.executorch.export` wrote.
        name: the network's.
        kit: compiler and level of optimization.
    """
    given, wanted = _arrays(exports, name)
    model = htvm.load(exports / f"{name}.pt2", semantics="tflite")
    compiled = Compiled(model, CORE, BuildOptions()).finish()
    built = build_arm(compiled.program, compiled.target.soc, kit.compiler)
    raw = run(built, [given])
    sizes = built.sizes
    assert raw.instructions is not None and raw.stack_used is not None
    return Row(
        network=name,
        by="this project",
        different=_different(raw.outputs[0], wanted),
        elements=wanted.size,
        instructions=raw.instructions,
        flash=sizes.code + sizes.constants,
        constants=sizes.constants,
        ram=sizes.arena + sizes.io + sizes.other + raw.stack_used,
    )


def theirs(
    sources: Sources, root: Path, exports: Path, name: str, soc: Soc, kit: Kit, folder: Path
) -> Row:
    """Measure ExecuTorch's firmware of an export; see `ours`.

    Args:
        sources, root, soc, folder: as for `benchmarks.executorch.firmware.build`.
        exports, name, kit: as for `ours`.

    Raises:
        RuntimeError: the runtime refused the program.
    """
    given, wanted = _arrays(exports, name)
    exported = Exported.read(exports, name, given.nbytes, wanted.nbytes)
    elf = build(sources, root, exported, soc, folder, kit)
    firmware = Firmware.open(elf, soc, soc.host.stack)
    read = {"output": wanted.nbytes, "loaded_used": 4, "temporary_used": 4, "failed": 4}
    # Its tensors of four dimensions are channels last.
    ordered = np.moveaxis(given, 1, -1) if given.ndim == 4 else given
    ran = run_arm(
        firmware,
        {"input": ordered.tobytes()},
        read,
        entry=_EXECUTE,
        kernels=[],
        compiler=kit.compiler,
    )
    kept = {each: int.from_bytes(ran.outputs[each], "little") for each in read if each != "output"}
    if kept["failed"]:
        raise RuntimeError(f"ExecuTorch failed on {name}: step {kept['failed']} of main.cc")
    apart = sum(-(-firmware.symbols[each].size // 16) * 16 for each in _APART)
    used = exported.planned + kept["loaded_used"] + kept["temporary_used"] + ran.stack_used
    memory = firmware.memory
    return Row(
        network=name,
        by="ExecuTorch",
        different=_different(np.frombuffer(ran.outputs["output"], np.float32), wanted),
        elements=wanted.size,
        instructions=ran.instructions,
        flash=memory.flash,
        constants=exported.path.stat().st_size,
        ram=memory.ram - memory.stack - apart + used,
    )


def _arrays(exports: Path, name: str) -> tuple[Any, Any]:
    with np.load(exports / f"{name}.npz") as arrays:
        return arrays["given"], arrays["wanted"]


def _different(found: Any, wanted: Any) -> int:
    return int(np.count_nonzero(np.ravel(found) != np.ravel(wanted)))


def table(rows: Sequence[Row]) -> str:
    """Return rows, ours beside theirs, as a table in Markdown."""
    lines = [
        "| network | outputs other than torch's, ours | ExecuTorch "
        "| instructions, ours | ExecuTorch | of it | code B, ours | ExecuTorch | of it "
        "| constants B, ours | its file "
        "| RAM B, ours | ExecuTorch | of it |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for one, other in zip(rows[::2], rows[1::2], strict=True):
        code = one.flash - one.constants, other.flash - other.constants
        lines.append(
            f"| {one.network} | {one.different} of {one.elements} "
            f"| {other.different} of {other.elements} "
            f"| {_beside(one.instructions, other.instructions)} | {_beside(*code)} "
            f"| {one.constants:,} | {other.constants:,} | {_beside(one.ram, other.ram)} |"
        )
    return "\n".join(lines)


def _beside(one: int, other: int) -> str:
    """Return three cells: ours, marked where it is more than theirs, theirs, and the share."""
    return f"{one:,}{' *' if one > other else ''} | {other:,} | {one / other:.0%}"


@click.command(help=__doc__)
@click.argument("sources", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("python", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--network", "-n", multiple=True, type=click.Choice(NETWORKS))
def main(sources: Path, python: Path, network: tuple[str, ...]) -> None:
    """Export, measure, print the table, and without ``--network`` keep it."""
    found = Sources.below(sources)
    soc = resolve(CORE).soc
    soc = replace(soc, host=replace(soc.host, stack=_STACK))
    kit = kit_of("gcc", "-O2", soc)
    rows = []
    with tempfile.TemporaryDirectory(prefix="htvm-executorch-") as place:
        exports = Path(place) / "exports"
        line = [python, "-m", "benchmarks.executorch.export", exports, CORE.replace("_", "-")]
        subprocess.run(line, check=True, cwd=_ROOT, stderr=subprocess.DEVNULL)
        flatc = subprocess.run([python, "-c", _WHERE], check=True, capture_output=True, text=True)
        root = Path(place) / "include"
        headers(found, flatc.stdout.strip(), root)
        for name in network or NETWORKS:
            rows.append(ours(exports, name, kit))
            rows.append(theirs(found, root, exports, name, soc, kit, Path(place) / name))
    click.echo(table(rows))
    if not network:
        kept = {"versions": [*found.versions, kit.compiler.name], "rows": list(map(asdict, rows))}
        results = _ROOT / "docs" / "results" / "executorch.json"
        results.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
        text = _PAGE.read_text("utf-8")
        _PAGE.write_text(_BLOCK.sub(lambda m: f"{m[1]}{table(rows)}{m[2]}", text), "utf-8")


if __name__ == "__main__":
    sys.exit(exit_code(main, None))
