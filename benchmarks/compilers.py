"""Users' compilers: exported C compiled and linked with every setting that boards are built with.

    python -m benchmarks.compilers             compiles what has not been compiled yet
    python -m benchmarks.compilers --pairwise  only as many cells as cover all pairs of settings

A cell is a network, a core with a float ABI, a compiler, a level of optimization, link-time
optimization or not; the kind of export takes turns, so that each meets every other setting.  Each
is compiled with ``-Wall -Wextra -Werror`` and linked with a C library.  A network's C is made once
for each core.  Results are kept in ``build/compilers``: what is interrupted goes on where it
stopped, and what changes anything in the exports starts anew.  Networks whose files are not at hand
are left out.  The tables are written into ``docs/results`` and ``docs/guides/boards.md``.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import combinations
from pathlib import Path

import click

import htvm
from benchmarks.artefact import Artefact, write
from benchmarks.boards import file_of
from benchmarks.compilers_cell import (
    COMPILERS,
    LEVELS,
    PLACES,
    PROJECT,
    Cell,
    compiled,
    kinds_of,
    missing,
    place_of,
)
from htvm.progress_bar import shown_progress
from htvm.tools.cli.app import exit_code
from htvm.tools.cli.arguments import open_model

__all__ = ["NETWORKS", "cells", "exported", "pairwise", "table"]

_ROOT = Path(__file__).resolve().parents[1]
_SHARED = _ROOT.parent / "shared" / "models"
NETWORKS = {
    "resnet8": "zoo:resnet8",
    "ds_cnn": "zoo:ds_cnn",
    "keyword spotter": str(file_of("DS-CNN")),
    "torch export": str(_SHARED / "exporters" / "torch_Multi_qdq_u8s8" / "model.onnx"),
}
"""Networks by their names in the table: the zoo's, one for TFLite Micro, and one from torch."""

_PAGE = _ROOT / "docs" / "guides" / "boards.md"
_BLOCK = re.compile(r"(<!-- python -m benchmarks.compilers -->\n).*?(<!-- end -->)", re.S)


def cells(networks: Sequence[str]) -> list[Cell]:
    """Return all cells of some networks."""
    found = []
    for number, network in enumerate(networks):
        for place, (core, abi) in enumerate(PLACES):
            kinds = kinds_of(core)
            for c, compiler in enumerate(COMPILERS):
                for o, level in enumerate(LEVELS):
                    for lto in (False, True):
                        turn = number + 3 * place + c + o + 4 * lto
                        kind = kinds[turn % len(kinds)]
                        found.append(Cell(network, core, abi, compiler, level, lto, kind))
    return found


def pairwise(of: Sequence[Cell]) -> list[Cell]:
    """Return few of these cells in which all pairs of settings occur that occur in all of them."""
    pairs = {cell: {*combinations(enumerate(asdict(cell).values()), 2)} for cell in of}
    left = set().union(*pairs.values())
    chosen = []
    while left:
        best = max(of, key=lambda cell: len(pairs[cell] & left))
        chosen.append(best)
        left -= pairs[best]
    return chosen


def exported(network: str, core: str, folder: Path, kinds: Iterable[str]) -> None:
    """Write a network's exports for a core into a folder, unless they are there."""
    left = [kind for kind in kinds if not place_of(kind, folder).exists()]
    if left:
        module = htvm.build(open_model(network), core)
        for kind in left:
            module.export(place_of(kind, folder), kind=None if kind == PROJECT else kind)


def table(results: dict[Cell, str]) -> str:
    """Return how many cells were compiled without a word, of how many, as Markdown."""
    head = ["core", "float ABI", *(f"{c} {level}" for c in COMPILERS for level in LEVELS)]
    lines = [head, ["---", "---", *("--:" for _ in head[2:])]]
    counts = {tuple(key): f"{good} of {total}" for *key, good, total in _counts(results)}
    for core, abi in PLACES:
        keys = [(core, abi, compiler, level) for compiler in COMPILERS for level in LEVELS]
        lines.append([core, abi or "none", *(counts.get(key, "-") for key in keys)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _counts(results: dict[Cell, str]) -> list[tuple[str, str, str, str, int, int]]:
    """Return core, float ABI, compiler, level, how many were compiled, and of how many."""
    good, total = Counter[tuple[str, str, str, str]](), Counter[tuple[str, str, str, str]]()
    for cell, error in results.items():
        key = (cell.core, cell.abi, cell.compiler, cell.level)
        total[key] += 1
        good[key] += not error
    return [(*key, good[key], total[key]) for key in total]


def _digest() -> str:
    """Return a digest of everything that exports are made of."""
    found = hashlib.sha256()
    for package in ("htvm", "byoc_dory", "patterns", "runtime_c"):
        for path in sorted((_ROOT / package).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                found.update(path.relative_to(_ROOT).as_posix().encode() + path.read_bytes())
    return found.hexdigest()[:12]


@click.command(help=__doc__)
@click.option("--pairwise", "few", is_flag=True, help="Only cells that cover all pairs.")
@click.option("--network", "-n", multiple=True, type=click.Choice([*NETWORKS]))
def main(few: bool, network: tuple[str, ...]) -> None:
    """Compile the cells that are left, and write the tables."""
    for program in missing():
        raise click.ClickException(f"{program} is not installed")
    at_hand = [
        name
        for name in network or NETWORKS
        if NETWORKS[name].startswith("zoo:") or Path(NETWORKS[name]).is_file()
    ]
    wanted = cells(at_hand)
    wanted = pairwise(wanted) if few else wanted
    folder = _ROOT / "build" / "compilers" / _digest()
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "cells.jsonl"
    lines = kept.read_text("utf-8").splitlines() if kept.exists() else []
    entries = [json.loads(line) for line in lines]
    known = {Cell(**one["cell"]): "" for one in entries if not one["error"]}  # others: once more

    def one(cell: Cell) -> tuple[Cell, str]:
        return cell, compiled(cell, folder / cell.network / cell.core)

    with shown_progress() as progress, kept.open("a", encoding="utf-8") as file:
        for name, core in dict.fromkeys((cell.network, cell.core) for cell in wanted):
            left = [c for c in wanted if (c.network, c.core) == (name, core) and c not in known]
            with (
                progress.stage(f"{name}, {core}: {len(left)} cells"),
                ThreadPoolExecutor(2) as pool,
            ):
                if left:
                    exported(
                        NETWORKS[name], core, folder / name / core, {cell.kind for cell in left}
                    )
                for cell, error in pool.map(one, left):
                    known[cell] = error
                    file.write(json.dumps({"cell": asdict(cell), "error": error}) + "\n")
                    file.flush()
    results = {cell: known[cell] for cell in wanted}
    text = table(results)
    failed = [f"{cell}: {error}" for cell, error in results.items() if error]
    click.echo("\n".join([text, "", *failed]))
    if not few and at_hand == [*NETWORKS]:
        title = f"{len(results)} builds with users' compilers: those without an error or warning"
        write(Artefact("compilers", title, text, _counts(results)), _ROOT / "docs" / "results")
        page = _PAGE.read_text("utf-8")
        _PAGE.write_text(_BLOCK.sub(lambda m: f"{m[1]}\n{text}\n\n{m[2]}", page), "utf-8")
    if failed:
        raise click.ClickException(f"{len(failed)} of {len(results)} cells failed")


if __name__ == "__main__":
    sys.exit(exit_code(main, None))
