"""Networks on Siracusa with less L1: joint against decoupled planning.

*Decoupled* is what Deeploy's public tools do: each layer gets the quickest tile that L1 has room
for, with double buffers, and memory is allocated for the tiles chosen; every result goes to L2.
*Joint* chooses the tiles of all layers together with the results that stay in L1 between them, in
one integer program over their lifetimes.  Both are executed here; neither spills, because what has
no place in L1 is no choice.  The gap is the proven distance of the predicted cycles from the best
joint plan among the candidate tiles, and 0 if the plan is optimal.

Where L1 has no room for whole rows and the scratch memory of eight cores, fewer of them compute a
layer, or tiles are ranges of columns and channels.  The published tools fail on ResNet-8 with 4 kB.

The language model is a decoding step with a cache: zoo:microllama with seeded weights, and where it
is at hand, the published network's file with 64 positions.  CCT is a transformer for images, the
published file for the cluster with ITA; it is here where its file is at hand, too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np

import htvm
from benchmarks.artefact import Artefact, main, write
from benchmarks.llama import FOLDER
from benchmarks.made_of import RowSource, program
from benchmarks.siracusa import TARGETS, TITLES
from byoc_dory.errors import TilingError
from byoc_dory.options import ScheduleKind, TilingOptions
from htvm import zoo
from htvm.inputs import seeded_inputs
from htvm.progress import Progress
from htvm.tools.report.table import Column, Table, text

__all__ = ["made_of", "run"]

NETWORKS = (
    "resnet8",
    "ds_cnn",
    "mobilenet_v1",
    "toyadmos",
    "microllama",
    "microLlama64",
    "ICCT_ITA",
)
FILES = {
    "microLlama64": FOLDER / "microLlama64",
    "ICCT_ITA": FOLDER.parents[1] / "CCT/Int/ICCT_ITA",
}
"""Folders of published networks' files; they may be absent."""

BUDGETS = (None, 128, 64, 32, 16, 8, 4)
"""KiB of L1; None is all of it."""

TABLE = (
    Column("network"),
    Column("target"),
    Column("L1, KiB", number=True),
    Column("decoupled, cycles", number=True),
    Column("joint, cycles", number=True),
    Column("joint / decoupled", number=True),
    Column("gap", number=True),
    Column("decoupled, L2 B", number=True),
    Column("joint, L2 B", number=True),
    Column("decoupled, L1 B", number=True),
    Column("joint, L1 B", number=True),
)


@dataclass(frozen=True)
class Planned:
    """A network planned in one way, and executed.

    Attributes:
        cycles: of a run.
        l1: largest use of L1 in bytes.
        l2: bytes of the arena in L2.
        gap: proven distance from the optimum, as a share of the predicted cycles.
        seconds: CPU time of the build, most of which is the search for tiles; as measured.
    """

    cycles: int
    l1: int
    l2: int
    gap: float
    seconds: float


@dataclass(frozen=True)
class Point:
    """A network on a target with a budget; None where no tile of a layer fits."""

    network: str
    target: str
    kib: int | None
    decoupled: Planned | None
    joint: Planned | None
    error: str = ""


def planned(network: str, target: str, kib: int | None, schedule: ScheduleKind) -> Planned:
    """Plan, build and run a network.

    Raises:
        TilingError: no tile of a layer fits the budget.
    """
    model = _load(network)
    tiling = _tiling(kib, schedule)
    begin = time.process_time()
    module = htvm.build(model, target=target, tiling=tiling)
    seconds = time.process_time() - begin
    inputs = seeded_inputs(model.inputs)
    result = module.run(inputs)
    assert result.cycles is not None
    for found, wanted in zip(result.outputs, module.reference(inputs), strict=True):
        np.testing.assert_array_equal(found, wanted)
    plans = [code.plan for code in module.compiled.regions.values() if code.plan is not None]
    cycles = sum(plan.cycles for plan in plans)
    gap = 1 - sum(plan.bound for plan in plans) / cycles if cycles else 0.0
    return Planned(
        cycles=result.cycles,
        l1=max((plan.l1_peak for plan in plans), default=0),
        l2=module.l2_peak,
        gap=gap,
        seconds=seconds,
    )


def _load(network: str) -> htvm.Model:
    """Return a network of the zoo, or the published language model's file."""
    path = _file(network)
    return zoo.build(network) if path is None else htvm.load(path)


def _file(network: str) -> Path | None:
    return FILES[network] / "network.onnx" if network in FILES else None


def _is_there(network: str) -> bool:
    path = _file(network)
    return path is None or path.exists()


def measure(network: str, target: str, kib: int | None) -> Point:
    """Return both ways of planning, where there are any."""
    point = Point(network, target, kib, None, None)
    try:
        decoupled = planned(network, target, kib, "decoupled")
        joint = planned(network, target, kib, "overlapped")
        return replace(point, decoupled=decoupled, joint=joint)
    except TilingError as error:
        return replace(point, error=str(error))


def made_of() -> Iterator[RowSource]:
    """Every program that the table is made of."""
    for network in NETWORKS:
        model, file = partial(_load, network), _file(network)
        for target in TARGETS:
            for kib in BUDGETS:
                for schedule in ("decoupled", "overlapped"):
                    name = f"{network} in {kib or 'all'} KiB, {schedule},"
                    tiling = _tiling(kib, schedule)
                    yield program(name, model, target, needs=file, tiling=tiling)


def _tiling(kib: int | None, schedule: ScheduleKind) -> TilingOptions:
    return TilingOptions(l1_budget=None if kib is None else kib * 1024, schedule=schedule)


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Draw the cycles of networks on Siracusa over the size of L1, planned in two ways."""
    assert {"decoupled", "overlapped"} <= set(get_args(ScheduleKind))
    progress = progress or Progress()
    points = []
    networks = tuple(filter(_is_there, NETWORKS))
    for network in networks:
        for target in TARGETS:
            with progress.stage(f"{network} on {target}"):
                points += [measure(network, target, kib) for kib in BUDGETS]
    failed = [point for point in points if point.joint is None]
    artefact = Artefact(
        "siracusa_l1",
        "Siracusa: less L1, and joint against decoupled planning",
        "\n\n".join(
            [
                str(__doc__).strip(),
                _summary(points, failed),
                text(Table(TABLE, tuple(_row(each) for each in points if each.joint))),
                *(f"* {each.network}, {each.kib} KiB: {each.error}" for each in failed),
            ]
        ),
        [_record(each) for each in points],
        {"siracusa_l1": _figure(points)},
    )
    write(artefact, folder)
    return artefact


def _summary(points: list[Point], failed: list[Point]) -> str:
    ratios = [_ratio(each) for each in points if each.joint is not None]
    worse = sum(ratio > 1.0 for ratio in ratios)
    spent = [
        sum(plan.seconds for plan in (getattr(each, way) for each in points) if plan is not None)
        for way in ("decoupled", "joint")
    ]
    return (
        f"{len(points) - len(failed)} of {len(points)} cases are built. Joint plans take "
        f"{min(ratios):.2f} to {max(ratios):.2f} of the cycles of decoupled ones; "
        f"{worse} of {len(ratios)} are slower when executed. All builds together took "
        f"{spent[0]:.0f} s of CPU time decoupled, {spent[1]:.0f} s joint."
    )


def _ratio(point: Point) -> float:
    assert point.joint is not None and point.decoupled is not None
    return point.joint.cycles / point.decoupled.cycles


def _row(point: Point) -> tuple[str, ...]:
    joint, decoupled = point.joint, point.decoupled
    assert joint is not None and decoupled is not None
    return (
        point.network,
        TITLES[point.target],
        "all" if point.kib is None else str(point.kib),
        f"{decoupled.cycles:,}",
        f"{joint.cycles:,}",
        f"{_ratio(point):.3f}",
        f"{100 * joint.gap:.1f} %",
        f"{decoupled.l2:,}",
        f"{joint.l2:,}",
        f"{decoupled.l1:,}",
        f"{joint.l1:,}",
    )


def _record(point: Point) -> dict[str, Any]:
    return {
        "network": point.network,
        "target": point.target,
        "kib": point.kib,
        "decoupled": None if point.decoupled is None else vars(point.decoupled),
        "joint": None if point.joint is None else vars(point.joint),
        "error": point.error,
    }


def _figure(points: list[Point]) -> Any:
    from matplotlib.figure import Figure

    networks = tuple(dict.fromkeys(point.network for point in points))
    figure = Figure(figsize=(2.5 * len(networks), 7), layout="constrained")
    axes = figure.subplots(len(TARGETS), len(networks), squeeze=False)
    for row, target in enumerate(TARGETS):
        for column, network in enumerate(networks):
            axis = axes[row][column]
            mine = [
                each
                for each in points
                if (each.network, each.target) == (network, target) and each.joint is not None
            ]
            kib = [each.kib or 244 for each in mine]
            for name, values in (
                ("decoupled", [each.decoupled.cycles for each in mine if each.decoupled]),
                ("joint", [each.joint.cycles for each in mine if each.joint]),
            ):
                axis.plot(kib, [value / 1e6 for value in values], marker="o", label=name)
            axis.set_xscale("log", base=2)
            axis.set_ylim(bottom=0)
            axis.set_title(f"{network}, {TITLES[target]}", fontsize=9)
            axis.set_xlabel("KiB of L1")
            axis.set_ylabel("million cycles")
    axes[0][0].legend()
    return figure


if __name__ == "__main__":
    sys.exit(main(run))
