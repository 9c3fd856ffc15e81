"""What `htvm explain` says a network costs, against what a run takes, on every target.

    python -m benchmarks.step_costs [--target NAME]... [MODEL]...

For each network and target: the sum over all steps, and the worst of the steps that take at least
1 % of the time.  The contract is 10 % in the sum and 25 % in each of these steps; exit code 1 if a
line breaks it.  On Cortex-M cores, instructions are counted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import htvm
from htvm.cli.arguments import open_model
from htvm.errors import HtvmError
from htvm.explain.step_costs import build_costs
from htvm.inputs import seeded_inputs
from htvm.model import Model
from htvm.report.table import Column, Table, count, text

__all__ = ["Line", "line_of"]

NETWORKS = ("resnet8", "ds_cnn", "mobilenet_v1", "toyadmos", "digits", "encoder:1")
SUM, STEP, SHARE = 0.10, 0.25, 0.01


@dataclass(frozen=True)
class Line:
    """One network on one target.

    Attributes:
        said, taken: cycles that `explain` says, and those of a run.
        worst: error of the worst step of at least 1 %, as a fraction; 0 without any.
        step: name of that step.
    """

    said: int
    taken: int
    worst: float
    step: str

    @property
    def error(self) -> float:
        """Error of the sum, as a fraction."""
        return self.said / self.taken - 1

    @property
    def holds(self) -> bool:
        """Whether it is within the contract."""
        return abs(self.error) <= SUM and abs(self.worst) <= STEP


def line_of(model: Model, target: str) -> Line:
    """Build and run a network, and compare every step with its cost."""
    module = htvm.build(model, target)
    costs = build_costs(module.compiled)
    # Other inputs than those that costs are measured with.
    ran = module.run(seeded_inputs(model.inputs, 7))
    taken = ran.cycles or ran.instructions or 0
    worst, name = 0.0, ""
    for cost, layer in zip(costs.steps, ran.layers, strict=True):
        own = layer.instructions or layer.cycles or 0
        if own >= SHARE * taken and cost.cycles is not None:
            error = cost.cycles / own - 1
            if abs(error) > abs(worst):
                worst, name = error, f"{layer.name} ({cost.basis})"
    return Line(costs.total or 0, taken, worst, name)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a line is not within the contract."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="*", default=[f"zoo:{name}" for name in NETWORKS])
    parser.add_argument("--target", action="append", help="by default all")
    given = parser.parse_args(argv)
    rows, broken = [], 0
    for name in given.model:
        model = open_model(name)
        for target in given.target or list(htvm.targets()):
            try:
                line = line_of(model, target)
            except HtvmError as error:
                rows.append((model.name, target, "", "", "", "", f"not built: {error.what[:60]}"))
                continue
            broken += not line.holds
            rows.append(
                (
                    model.name,
                    target,
                    count(line.said),
                    count(line.taken),
                    f"{100 * line.error:+.1f}",
                    f"{100 * line.worst:+.1f}",
                    line.step if line.holds else f"{line.step}: TOO FAR",
                )
            )
    columns = (
        Column("network"),
        Column("target"),
        Column("said", True),
        Column("simulated", True),
        Column("sum %", True),
        Column("worst %", True),
        Column("step"),
    )
    print(text(Table(columns, tuple(rows))))
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
