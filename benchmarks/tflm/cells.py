"""The matrix of measurements: networks, cores, compilers; each is made once and kept."""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.boards import FILES
from benchmarks.tflm.compilers import Kit, kit_of
from benchmarks.tflm.firmware import Sources
from benchmarks.tflm.run import Counted, Layer, Network, compiled_of, ours, theirs
from byoc_dory.soc.registry import resolve
from htvm.tools.facts.report import recipe_of

__all__ = ["FAST", "OURS", "Cell", "Store", "cells", "data_of", "network_of", "results_of"]

OURS, FAST = "this project", "CMSIS-NN"
_ASSEMBLY = "CMSIS_NN_USE_REQUANTIZE_INLINE_ASSEMBLY"
_WITHOUT_SMULL = ("cortex_m0plus",)
_ROOT = Path(__file__).parents[2]
_COUNTER = ("htvm/firmware", "htvm/sim", "runtime_c", "byoc_dory/soc/boards/cores.json")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Cell:
    """One measurement.

    Attributes:
        network: its name.
        core: name of the target.
        by: `OURS`, or `FAST`: TFLite Micro with CMSIS-NN.
        compiler, level: of `benchmarks.tflm.compilers`.
        assembly: whether CMSIS-NN requantizes by inline assembly, its recommendation.
    """

    network: str
    core: str
    by: str
    compiler: str
    level: str
    assembly: bool = False

    @property
    def place(self) -> tuple[str, str, str, str]:
        """What cells of the same compiler share."""
        return self.network, self.core, self.compiler, self.level

    @property
    def setting(self) -> str:
        """Compiler, level and CMSIS-NN's option, in few words."""
        return f"{self.compiler} {self.level}{', assembly' if self.assembly else ''}"


def cells(
    networks: Sequence[str], cores: Sequence[str], settings: Sequence[tuple[str, str]]
) -> Iterator[Cell]:
    """Yield the cells of networks, cores, and compilers with levels."""
    for core in cores:
        for compiler, level in settings:
            for network in networks:
                yield Cell(network, core, OURS, compiler, level)
                yield Cell(network, core, FAST, compiler, level)
                if core not in _WITHOUT_SMULL:
                    yield Cell(network, core, FAST, compiler, level, assembly=True)


def network_of(name: str, models: Path) -> Network:
    """Return one of MLPerf Tiny's networks with its golden."""
    path = models / FILES[name] / "model.tflite"
    with np.load(path.with_name("golden.npz")) as arrays:
        return Network(name, path, arrays["inputs"][0], arrays["out_tflm"][0])


def _measured(cell: Cell, sources: Sources, network: Network, objects: Path) -> Counted:
    """Build and run a cell."""
    kit = _kit(cell.compiler, cell.level, cell.core)
    if cell.by == OURS:
        return ours(network, cell.core, kit)
    with tempfile.TemporaryDirectory(prefix="htvm-tflm-") as folder:
        return theirs(
            sources,
            network,
            cell.core,
            kit,
            Path(folder),
            defined=(_ASSEMBLY,) if cell.assembly else (),
            objects=objects,
        )


class Store:
    """Results that are kept in a folder.

    Args:
        folder: for results and object files.
        sources: TFLite Micro's.
        network: returns a network by its name.

    Attributes:
        results: of the cells that were asked for.
        versions: of the sources.
    """

    def __init__(self, folder: Path, sources: Sources, network: Callable[[str], Network]) -> None:
        self._folder, self._sources, self._network = folder, sources, network
        self._file = folder / "cells.jsonl"
        self.results: dict[Cell, Counted] = {}
        self._known: dict[tuple[Cell, str], Counted] = {}
        self.versions = sources.versions
        lines = self._file.read_text("utf-8").splitlines() if self._file.exists() else []
        for line in lines:
            entry = json.loads(line)
            self._known[Cell(**entry["cell"]), entry["of"]] = _counted(entry["counted"])

    def is_known(self, cell: Cell) -> bool:
        """Return whether a cell's result is kept."""
        return (cell, self._digest(cell)) in self._known

    def measure(self, cell: Cell) -> Counted:
        """Return a cell's result; measure it unless it is known."""
        key = cell, self._digest(cell)
        if key not in self._known:
            start = time.monotonic()
            found = _measured(cell, self._sources, self._network(cell.network), self._objects)
            self._known[key] = found
            self._folder.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                entry = {"cell": asdict(cell), "of": key[1], "counted": asdict(found)}
                file.write(json.dumps(entry) + "\n")
            _log.info("%s: %.0f s", cell, time.monotonic() - start)
        self.results[cell] = self._known[key]
        return self._known[key]

    @property
    def _objects(self) -> Path:
        return self._folder / "objects"

    def _program(self, cell: Cell) -> str:
        """Return what our figures are made of: the C of a network, and what counts it."""
        compiled = compiled_of(self._network(cell.network).path, cell.core)
        return recipe_of(compiled, "host").program_sha256 + _counter()

    def _digest(self, cell: Cell) -> str:
        """Return a digest of what a cell is made of."""
        compiler = _kit(cell.compiler, cell.level, cell.core).compiler
        parts = self._program(cell) if cell.by == OURS else repr(self.versions)
        return hashlib.sha256(f"{compiler.name} {parts}".encode()).hexdigest()[:20]


@lru_cache(maxsize=64)
def _kit(compiler: str, level: str, core: str) -> Kit:
    return kit_of(compiler, level, resolve(core).soc)


@lru_cache(maxsize=1)
def _counter() -> str:
    """Return a digest of what builds, runs and counts a program of ours."""
    found = hashlib.sha256(Path(__file__).with_name("run.py").read_bytes())
    for folder in _COUNTER:
        for path in sorted([_ROOT / folder, *(_ROOT / folder).rglob("*")]):
            if path.is_file() and "__pycache__" not in path.parts:
                found.update(path.relative_to(_ROOT).as_posix().encode() + path.read_bytes())
    return found.hexdigest()


def data_of(results: Mapping[Cell, Counted], versions: Sequence[str]) -> str:
    """Return results as JSON, a line for each cell."""
    lines = [
        json.dumps({"cell": asdict(cell), "counted": asdict(one)}) for cell, one in results.items()
    ]
    rows = ",\n".join(lines)
    return f'{{"versions": {json.dumps(versions)},\n"rows": [\n{rows}\n]}}\n'


def results_of(text: str) -> tuple[dict[Cell, Counted], list[str]]:
    """Return the results and versions that `data_of` made a text of."""
    data = json.loads(text)
    rows = {Cell(**row["cell"]): _counted(row["counted"]) for row in data["rows"]}
    return rows, data["versions"]


def _counted(data: dict[str, Any]) -> Counted:
    layers = tuple(Layer(**{**one, "estimate": _span(one["estimate"])}) for one in data["layers"])
    return Counted(**{**data, "layers": layers, "estimate": _span(data["estimate"])})


def _span(value: Sequence[int] | None) -> tuple[int, int] | None:
    return None if value is None else (value[0], value[1])
