"""What `htvm explain` says a network costs, against what a run takes, on every target.

    python -m benchmarks.step_costs [--target NAME]... [MODEL]...

For each network and target: the sum over all steps, and the worst of the steps that take at least
1 % of the time.  The contract is 10 % in the sum and 25 % in each of these steps; exit code 1 if a
line breaks it.  On Cortex-M cores, instructions are counted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import htvm
from benchmarks.artefact import Artefact, write
from benchmarks.made_of import RowSource, program
from htvm.errors import HtvmError
from htvm.inputs import seeded_inputs
from htvm.model import Model
from htvm.module import Module
from htvm.progress import Progress
from htvm.result import RunResult
from htvm.tools.cli.arguments import open_model
from htvm.tools.explain.step_costs import BuildCosts, build_costs
from htvm.tools.report.table import Column, Table, count, text

__all__ = ["Line", "line_of", "made_of", "run"]

NETWORKS = ("resnet8", "ds_cnn", "toyadmos", "digits")
TARGETS = (
    "diana", "diana.digital", "diana.analog", "diana.mixed", "diana.cpu", "diana.simd",
    "diana.simd.digital", "diana.simd.analog", "diana.simd.mixed", "diana.simd.cpu",
    "dla", "generic.cpu", "snitch_ita", "snitch_ita.cluster", "snitch_ita.cpu",
    "siracusa", "siracusa.cluster", "siracusa.cpu",
    "cortex_m0plus", "cortex_m3", "cortex_m4", "cortex_m7", "cortex_m33", "cortex_m55",
)  # fmt: skip
TRANSFORMERS = ("encoder:1",)
CLUSTERS = ("snitch_ita", "snitch_ita.cluster", "siracusa", "siracusa.cluster")
_SAID = """
What `htvm explain` says that a network takes, against a run of its C, with other inputs than those
that the CPU's steps are measured with.  Of each line: the sum over all steps, the CPU's included,
and the step with the largest error of those that take at least 1 % of the time.  Wanted are 10 %
in the sum, and 25 % in each such step.  A layer whose last tile the next one completes counts with
that, and the parts of a layer in blocks of rows, with their starts, count as one.

A step is predicted by an accelerator's cost model, or measured: the CPU's own code, simulated
apart.  On Cortex-M cores, instructions are said and counted, the M55's by QEMU.  `python -m
benchmarks.step_costs --target NAME MODEL` compares any network on any target.
""".strip()
SUM, STEP, SHARE = 0.10, 0.25, 0.01


@dataclass(frozen=True)
class Line:
    """One network on one target.

    Attributes:
        network, target: of the build.
        said, taken: cycles that `explain` says, and those of a run.
        worst: error of the worst step of at least 1 %, as a fraction; 0 without any.
        step: name of that step.
        failure: why there are no figures; empty if there are.
    """

    network: str
    target: str
    said: int = 0
    taken: int = 0
    worst: float = 0.0
    step: str = ""
    failure: str = ""

    @property
    def error(self) -> float:
        """Error of the sum, as a fraction."""
        return self.said / self.taken - 1

    @property
    def holds(self) -> bool:
        """Whether it is within the contract."""
        if self.failure:
            return True
        return abs(self.error) <= SUM and abs(self.worst) <= STEP


def _counted(module: Module, costs: BuildCosts, ran: RunResult) -> Iterator[tuple[str, int, int]]:
    """Yield what counts as one step: its name and basis, what is said, and what it took."""
    leaving = _leaving(module)
    in_parts: dict[str, tuple[int, int]] = {}
    said = own = 0
    for step, cost, layer in zip(
        module.compiled.program.steps, costs.steps, ran.layers, strict=True
    ):
        own += layer.instructions or layer.cycles or 0
        said += cost.cycles or 0
        if layer.name in leaving:
            continue
        if step.part:
            name = f"{'+'.join(step.layers)} ({cost.basis})"
            before = in_parts.get(name, (0, 0))
            in_parts[name] = before[0] + said, before[1] + own
        elif cost.cycles is not None:
            yield f"{layer.name} ({cost.basis})", said, own
        said = own = 0
    for name, (said, own) in in_parts.items():
        yield name, said, own


def _leaving(module: Module) -> set[str]:
    """Return the layers whose last tile the next one completes: they end in that one's step."""
    kernels = (kernel for code in module.compiled.regions.values() for kernel in code.kernels)
    return {each.layer.name for each in kernels if each.layer and each.plan and each.plan.leaves}


def line_of(model: Model, target: str) -> Line:
    """Build and run a network, and compare every step with its cost."""
    module = htvm.build(model, target)
    costs = build_costs(module.compiled)
    # Other inputs than those that costs are measured with.
    ran = module.run(seeded_inputs(model.inputs, 7))
    taken = ran.cycles or ran.instructions or 0
    worst, name = 0.0, ""
    for step, said, own in _counted(module, costs, ran):
        if own >= SHARE * taken:
            error = said / own - 1
            if abs(error) > abs(worst):
                worst, name = error, step
    return Line(model.name, target, costs.total or 0, taken, worst, name)


def _lines(models: Sequence[str], targets: Sequence[str], progress: Progress) -> list[Line]:
    """Compare every network on every target; those that cannot be built are lines, too."""
    found = []
    for name in models:
        model = open_model(name)
        for number, target in enumerate(targets, 1):
            with progress.stage(f"{model.name} on {target}", (number, len(targets))):
                try:
                    found.append(line_of(model, target))
                except HtvmError as error:
                    found.append(Line(model.name, target, failure=error.what))
    return found


def _table(lines: Sequence[Line]) -> str:
    columns = (
        Column("network"),
        Column("target"),
        Column("said", True),
        Column("run", True),
        Column("sum %", True),
        Column("worst %", True),
        Column("step"),
    )
    return text(Table(columns, tuple(map(_cells, lines))))


def _cells(line: Line) -> tuple[str, ...]:
    if line.failure:
        return (line.network, line.target, "", "", "", "", f"not built: {line.failure[:60]}")
    return (
        line.network,
        line.target,
        count(line.said),
        count(line.taken),
        f"{100 * line.error:+.1f}",
        f"{100 * line.worst:+.1f}",
        line.step if line.holds else f"{line.step}: TOO FAR",
    )


def made_of() -> Iterator[RowSource]:
    """Every program that the table is made of, with what `explain` says of it."""
    for networks, targets in ((NETWORKS, TARGETS), (TRANSFORMERS, CLUSTERS)):
        for network in networks:
            for target in targets:
                yield program(network, partial(open_model, f"zoo:{network}"), target, also=_costs)


def _costs(module: Module, result: RunResult) -> list[int | None]:
    return [step.cycles for step in build_costs(module.compiled).steps]


def run(folder: Path, progress: Progress | None = None) -> Artefact:
    """Compare what `htvm explain` says with runs, for the published table."""
    progress = progress or Progress()
    lines = _lines(_zoo(NETWORKS), TARGETS, progress)
    lines += _lines(_zoo(TRANSFORMERS), CLUSTERS, progress)
    artefact = Artefact(
        "step_costs",
        "What explain says against runs, network by network",
        f"{_SAID}\n\n{_table(lines)}",
        [asdict(line) for line in lines],
    )
    write(artefact, folder)
    return artefact


def _zoo(names: Sequence[str]) -> list[str]:
    return [f"zoo:{name}" for name in names]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a line is not within the contract."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="*", default=_zoo((*NETWORKS, *TRANSFORMERS)))
    parser.add_argument("--target", action="append", help="by default all")
    given = parser.parse_args(argv)
    lines = _lines(given.model, given.target or list(htvm.targets()), Progress())
    print(_table(lines))
    return int(not all(line.holds for line in lines))


if __name__ == "__main__":
    sys.exit(main())
