"""Predicted against simulated cycles, layer by layer, on every target of DIANA and of the Snitch
cluster with ITA.

Included: every layer on an accelerator as it was planned, with its transfers and its driver code,
and every conversion of layouts at a region's border, under both schedules, one input each: on DIANA
the MLPerf Tiny networks and the digits, on the cluster a layer of the encoder, a product, a head of
attention, the digits and ResNet-8. The CPU's kernels count separately, by the estimate for one
core: figures per element and per multiply-accumulate, for decisions before there is code. On the
cluster all cores share most of these kernels, which then take far less. `htvm explain` does not use
these estimates but simulates the code itself: the next table. A kernel may hold several layers, and
kernels that share a layer, such as a padding and its convolution, or the parts of a layer in blocks
of rows, count as one.

The error of a layer is predicted over simulated cycles, less one.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import htvm
from benchmarks.artefact import Artefact, main, write
from benchmarks.made_of import RowSource, program
from byoc_dory.options import ScheduleKind
from htvm import zoo
from htvm.compiled import Compiled
from htvm.inputs import seeded_inputs
from htvm.model import Model
from htvm.module import Module
from htvm.progress import Progress
from htvm.result import RunResult
from htvm.tools.cli.arguments import open_model
from htvm.tools.explain.step_costs import one_core_cycles
from htvm.tools.report.table import Column, Table, count, text

__all__ = [
    "NETWORKS",
    "SNITCH_NETWORKS",
    "SNITCH_TARGETS",
    "TARGETS",
    "Row",
    "errors_of",
    "made_of",
    "model_of",
    "run",
]

NETWORKS = ("resnet8", "ds_cnn", "mobilenet_v1", "toyadmos", "digits")
TARGETS = ("diana", "diana.digital", "diana.analog", "diana.mixed", "diana.cpu")
SNITCH_NETWORKS = ("encoder:1", "gemm:256:256:256", "attention", "digits", "resnet8")
SNITCH_TARGETS = ("snitch_ita", "snitch_ita.cluster")
BOTH_SOCS: tuple[tuple[str, tuple[str, ...]], ...] = (
    *((network, TARGETS) for network in NETWORKS),
    *((network, SNITCH_TARGETS) for network in SNITCH_NETWORKS),
)
_KINDS = {"layer": "layer", "prologue": "layout", "epilogue": "layout", "cpu": "cpu"}


@dataclass(frozen=True)
class Row:
    """One layer: predicted and simulated.

    Attributes:
        network, target, schedule: of the build.
        layer: its name, or the names of those that CPU kernels share.
        kind: ``"layer"`` on an accelerator, ``"layout"`` or ``"cpu"``.
        predicted, simulated: cycles.
    """

    network: str
    target: str
    schedule: str
    layer: str
    kind: str
    predicted: int
    simulated: int

    @property
    def error(self) -> float:
        """Predicted over simulated, less one."""
        return self.predicted / self.simulated - 1

    @property
    def where(self) -> str:
        """Where it is, in words."""
        schedule = f", {self.schedule}" if self.target != "diana.cpu" else ""
        return f"{self.layer} of {self.network} on {self.target}{schedule}"


def errors_of(compiled: Compiled, result: RunResult, target: str) -> Iterator[Row]:
    """Every layer of a run that has a prediction."""
    network, schedule = compiled.source.name, compiled.options.tiling.schedule
    groups: list[tuple[set[str], int]] = []
    in_parts: dict[tuple[str, ...], tuple[int, int]] = {}
    for step, ran in zip(compiled.program.steps, result.layers, strict=True):
        if ran.cycles is None or step.kind not in _KINDS:
            continue
        if step.part:
            predicted, taken = in_parts.get(step.layers, (0, 0))
            in_parts[step.layers] = predicted + step.predicted_cycles, taken + ran.cycles
            continue
        if step.kind != "cpu":
            yield Row(
                network, target, schedule, step.layer, _KINDS[step.kind], step.predicted_cycles,
                ran.cycles,
            )  # fmt: skip
            continue
        names, cycles = set(step.layers), ran.cycles
        for other in [entry for entry in groups if entry[0] & names]:
            groups.remove(other)
            names, cycles = names | other[0], cycles + other[1]
        groups.append((names, cycles))
    for layers, (predicted, taken) in in_parts.items():
        yield Row(network, target, schedule, " + ".join(layers), "layer", predicted, taken)
    for names, cycles in groups:
        known = [name for name in compiled.dispatch.kinds if name in names]
        estimates = [one_core_cycles(compiled, name) for name in known]
        total = sum(estimate or 0 for estimate in estimates)
        if None not in estimates and total:
            yield Row(network, target, schedule, " + ".join(known), "cpu", total, cycles)


def model_of(network: str) -> Model:
    """A network of the zoo; ``gemm:M:C:K`` and ``attention`` are the microbenchmarks."""
    name, *sizes = network.split(":")
    if name == "gemm":
        rows, inner, columns = map(int, sizes)
        return zoo.gemm(rows, inner, columns)
    if name == "attention":
        return zoo.single_head_attention()
    return open_model(f"zoo:{network}")


def schedules(target: str) -> tuple[ScheduleKind, ...]:
    """The schedules that there are for a target."""
    return ("overlapped",) if target == "diana.cpu" else ("overlapped", "published")


def made_of() -> Iterator[RowSource]:
    """Every program that the table is made of."""
    for network, targets in BOTH_SOCS:
        for target in targets:
            for schedule in schedules(target):
                model = partial(model_of, network)
                yield program(network, model, target, schedule=schedule, also=_errors)


def _errors(module: Module, result: RunResult) -> list[Row]:
    return list(errors_of(module.compiled, result, module.target))


def _rows(progress: Progress) -> list[Row]:
    rows: list[Row] = []
    for number, (network, targets) in enumerate(BOTH_SOCS, 1):
        with progress.stage(network, (number, len(BOTH_SOCS))):
            model = model_of(network)
            inputs = seeded_inputs(model.inputs)
            for target in targets:
                for schedule in schedules(target):
                    module = htvm.build(model, target, schedule=schedule)
                    rows += errors_of(module.compiled, module.run(inputs), target)
    return rows


def _summary(name: str, rows: Sequence[Row]) -> tuple[str, ...]:
    worst = max(rows, key=lambda row: abs(row.error))
    median = statistics.median(abs(row.error) for row in rows)
    return (
        name,
        count(len(rows)),
        f"{100 * median:.2f}",
        f"{100 * worst.error:+.1f}",
        worst.where,
        f"{count(worst.predicted)} for {count(worst.simulated)}",
    )


def _table(title: str, groups: dict[str, list[Row]]) -> str:
    columns = (
        Column(title),
        Column("number", True),
        Column("median error %", True),
        Column("worst %", True),
        Column("which"),
        Column("cycles"),
    )
    return text(Table(columns, tuple(_summary(name, rows) for name, rows in groups.items())))


def _by_network(rows: Sequence[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(f"{row.network} on {row.target.split('.')[0]}", []).append(row)
    return groups


def _by_soc(rows: Sequence[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.target.split(".")[0], []).append(row)
    return groups


def _by(rows: Sequence[Row], attribute: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(getattr(row, attribute), []).append(row)
    return groups


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Put predicted beside simulated cycles."""
    rows = _rows(progress or Progress())
    names = {"layer": "layers on accelerators", "layout": "conversions of layouts"}
    planned = [row for row in rows if row.kind != "cpu"]
    kinds = {names.get(kind, kind): found for kind, found in _by(planned, "kind").items()}
    host = [row for row in rows if row.kind == "cpu"]
    artefact = Artefact(
        "predicted",
        "Predicted against simulated cycles of each layer",
        "\n\n".join(
            [
                str(__doc__).strip(),
                _table("all planned", {"together": planned, **_by_soc(planned), **kinds}),
                _table("by network", _by_network(planned)),
                _table("by target", _by(planned, "target")),
                _table("by schedule", _by(planned, "schedule")),
                _table("CPU kernels, estimated", {"together": host, **_by_network(host)}),
            ]
        ),
        [asdict(row) for row in rows],
    )
    write(artefact, folder)
    return artefact


if __name__ == "__main__":
    sys.exit(main(run))
