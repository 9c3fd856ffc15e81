"""Random layers through Vela and the Ethos-U's model, beside TFLite Micro: how many are equal.

    python -m benchmarks.ethos_u_layers [--layers 10000] [--lowering vela|ours] [--type int16]
                                        [--kept FILE]

Layers of 8 and 16 bits are drawn as the tests draw them: shapes, strides, paddings, dilations,
scales, zero points, weights, inputs.  They reach Vela as files in TFLite's format, of each operator
that it maps, or through this project's lowering, of each operator that rules take.  The five
configurations take turns.  A layer that Vela or a rule leaves to the CPU is drawn, but not counted;
the reasons are printed.  ``--kept`` goes on from a file, and writes it after each operator.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TypeAlias
from unittest import mock

import click

from byoc_dory.soc.ethos_u import vela
from htvm.progress_bar import shown_progress
from tests.e2e.ethos_u_regions import ON_CPU, ask_here
from tests.e2e.test_ethos_u import CONFIGURATIONS
from tests.e2e.test_ethos_u_layers import LOWERED, lowered
from tests.runtime_c.ethos_u import ACCELERATORS, library
from tests.runtime_c.test_ethos_u_layers import CASES, in_a_fork, outcomes

Found: TypeAlias = dict[tuple[str, str, str], Counter[str]]
"""Outcomes of layers by lowering, type and operator."""

_AT_ONCE = 50
_CASES = {"vela": CASES, "ours": [*LOWERED]}


def draw(case: tuple[str, str, str], first: int, turn: int) -> Counter[str]:
    """Return the outcomes of the next layers of a lowering, type and operator.

    Args:
        case: lowering, type and operator.
        first: number of the first layer, its seed.
        turn: chooses the configuration.
    """
    lowering, kind, name = case
    seeds = range(first, first + _AT_ONCE)
    if lowering == "vela":
        return outcomes(library(), kind, name, seeds, [*ACCELERATORS][turn % len(ACCELERATORS)])
    target = CONFIGURATIONS[turn % len(CONFIGURATIONS)]
    with tempfile.TemporaryDirectory(prefix="htvm-ethos-u-") as folder:

        def lowered_here(seed: int) -> str:
            return lowered(kind, name, seed, target, Path(folder))

        # A process of Vela's own takes twice the time of all the rest.
        with mock.patch.object(vela, "ask", ask_here):
            found = in_a_fork(lowered_here, seeds)
        if len(found) < len(seeds):
            found.append(lowered_here(seeds[len(found)]))
    alike = Counter(said for said in found if said == "equal" or _left(said))
    others = [(seed, said) for seed, said in zip(seeds, found, strict=False) if said not in alike]
    return alike + Counter(f"{name} {seed}: {said}" for seed, said in others)


def count(layers: int, found: Found, kept: Path | None) -> None:
    """Draw layers of operators in turn until so many were executed, with those found before."""
    cases = [*found]
    with tempfile.TemporaryDirectory() as folder:  # imports and caches, for all forks
        lowered(*next(iter(LOWERED)), 0, CONFIGURATIONS[0], Path(folder))
    with shown_progress() as progress:
        while (executed := sum(map(_executed, found.values()))) < layers:
            case = min(cases, key=lambda each: found[each].total())
            first = found[case].total()
            with progress.stage(f"{executed:,} of {layers:,} layers"):
                found[case] += draw(case, first, first // _AT_ONCE + cases.index(case))
            if kept is not None:
                kept.write_text(json.dumps([[*case, each] for case, each in found.items()]))


def _left(said: str) -> bool:
    """Whether a layer is on the CPU, by its outcome."""
    return said == "unmapped" or said.startswith(ON_CPU)


def _executed(outcome: Counter[str]) -> int:
    return sum(count for said, count in outcome.items() if not _left(said))


@click.command(help=__doc__)
@click.option("--layers", type=click.IntRange(min=1), default=10_000, show_default=True)
@click.option("--lowering", type=click.Choice([*_CASES]), help="One of both alone.")
@click.option("--type", "kind", type=click.Choice(["int8", "int16"]), help="One of both alone.")
@click.option("--kept", type=click.Path(path_type=Path, dir_okay=False))
def main(layers: int, lowering: str | None, kind: str | None, kept: Path | None) -> None:
    """Count, and fail if a layer differs."""
    found: Found = {
        (by, type_, name): Counter()
        for by, cases in _CASES.items()
        for type_, name in cases
        if lowering in (None, by) and kind in (None, type_)
    }
    if kept is not None and kept.exists():
        for by, type_, name, outcome in json.loads(kept.read_text()):
            found[by, type_, name] = Counter(outcome)
    count(layers, found, kept)
    click.echo(f"{'by':6}{'type':8}{'operator':24}{'equal':>8}{'on the CPU':>12}{'other':>8}")
    wrong, reasons = [], Counter[str]()
    for (by, kind, name), outcome in found.items():
        others = [said for said in outcome if said != "equal" and not _left(said)]
        wrong += [f"{by} {kind} {said}" for said in others]
        reasons += Counter({said: n for said, n in outcome.items() if said.startswith(ON_CPU)})
        equal, executed = outcome["equal"], _executed(outcome)
        left = outcome.total() - executed
        click.echo(f"{by:6}{kind:8}{name:24}{equal:>8}{left:>12}{executed - equal:>8}")
    for said, layers_left in reasons.most_common():
        click.echo(f"{layers_left:>8} {said}")
    equal = sum(each["equal"] for each in found.values())
    click.echo(f"{equal:,} layers of {len(found)} operators are equal, {len(wrong)} differ")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
