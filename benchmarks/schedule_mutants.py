"""Mutated schedules, such as a wait that is missing, or a buffer reused too early: who finds them.

    python -m benchmarks.schedule_mutants [--count 200] [--kept FILE]

Of plans, a start or an end is elsewhere, layers are swapped, or a result or weights lie elsewhere;
an independent definition says whether that is harmful, and the guard of code generation must agree
(`tests.byoc_dory.test_under_way`).  Of generated programs, a wait is left out, or one buffer is
used instead of two (`tests.byoc_dory.mutants`), on Snitch with ITA, Siracusa and DIANA.  Each is
executed natively, where work is done late; if nobody complains and the results are right, with a
DMA and then an accelerator that are so slow that everybody overtakes them; and on the simulator.
``--count`` harmful ones are made of each of both kinds.  A mutant that nobody finds
is printed.  ``--kept`` goes on from a file, and writes it after each network.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import click
import numpy as np

from byoc_dory import codegen
from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import Soc
from byoc_dory.soc.diana import borders
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.soc.siracusa.description import SIRACUSA
from byoc_dory.soc.snitch_ita.description import SNITCH_ITA
from htvm.progress_bar import shown_progress
from tests.byoc_dory import (
    test_early,
    test_input_rows,
    test_left,
    test_neureka_beside,
    test_preloads,
    test_under_way,
)
from tests.byoc_dory.mutants import Programs
from tests.byoc_dory.program import Case, make_case

FINDERS = ("results", "complaint", "hang", "slow dma", "slow neu", "slow ita", "simulated")


def ita(seed: int) -> Case:
    """Layers of the cores beside ITA."""
    region = test_under_way.attention(seed) if seed % 3 == 2 else test_under_way.stack(seed)
    return test_under_way.case_of(region, seed)


def early(seed: int) -> Case:
    """Products of N-EUREKA beside functions of rows."""
    region = test_early.siblings(seed, (1, 7, 40)[seed % 3])
    return test_early.case_of(region, test_early.code_of(region), seed)


def left(seed: int) -> Case:
    """Last tiles that the next layer completes."""
    layers = test_left.chain((3, 1, 3, 1, 3), seed)
    return test_preloads.case_of(layers, test_left.code_of(layers, f"r{seed}"), seed)


def beside(seed: int) -> Case:
    """Sums on the cores beside N-EUREKA."""
    layers = test_neureka_beside.block(seed)
    return test_preloads.case_of(layers, test_neureka_beside.code_of(layers, f"r{seed}"), seed)


def preloaded(seed: int) -> Case:
    """Constants that the layer before loads."""
    layers = test_preloads.chain(seed)
    return test_preloads.case_of(layers, test_preloads.generated(layers, seed, None), seed)


def rows(seed: int) -> Case:
    """Inputs that the host converts beside DIANA's core, for however few rows it pays."""
    cycles = borders._walk_cycles
    region = test_input_rows.region_of(f"r{seed}", test_input_rows.random_layers(seed))
    with (
        mock.patch.object(codegen, "_WORTH_PART", 0),
        mock.patch.object(borders, "_walk_cycles", lambda *given: 20 * cycles(*given)),
    ):
        return make_case(region, TilingOptions(), f"p{seed}", seed)


CASES: dict[str, tuple[Callable[[int], Case], Soc]] = {
    "cores beside ITA": (ita, SNITCH_ITA),
    "N-EUREKA beside rows": (early, SIRACUSA),
    "tiles left to the next": (left, SIRACUSA),
    "sums beside N-EUREKA": (beside, SIRACUSA),
    "constants loaded before": (preloaded, SIRACUSA),
    "inputs beside DIANA": (rows, DIANA),
}


def plans(count: int) -> Counter[str]:
    """Whether the guard agrees about so many harmful changes of plans, and others between."""
    made = (test_under_way.stack(1), test_under_way.stack(2), test_under_way.attention(1))
    codes = [test_under_way.code_of(region) for region in made]
    rng, found = np.random.default_rng(5), Counter[str]()
    while found["refused"] + found["missed"] < count:
        code = codes[found.total() % len(codes)]
        layers, starts = test_under_way.mutants(code, rng)
        harmless = test_under_way.is_harmless(layers, starts)
        rejected = test_under_way.rejected(layers, starts)
        found[_ANSWERS[harmless, rejected]] += 1
    return found


_ANSWERS = {
    (False, True): "refused",
    (False, False): "missed",
    (True, False): "harmless and taken",
    (True, True): "harmless and refused",
}


@click.command(help=__doc__)
@click.option("--count", type=click.IntRange(min=1), default=200, show_default=True)
@click.option("--kept", type=click.Path(path_type=Path, dir_okay=False))
def main(count: int, kept: Path | None) -> None:
    """Count, and fail if a mutant is not found."""
    found = {name: Counter[str]() for name in CASES}
    missed: list[str] = []
    if kept is not None and kept.exists():
        counts, missed = json.loads(kept.read_text())
        found |= {name: Counter(each) for name, each in counts.items()}
    with shown_progress() as progress:
        while (made := sum(each.total() - each["networks"] for each in found.values())) < count:
            name = min(found, key=lambda each: found[each]["networks"])
            seed = found[name]["networks"]
            drawn, soc = CASES[name]
            with (
                progress.stage(f"{made} of {count} mutants"),
                tempfile.TemporaryDirectory(prefix="htvm-mutants-") as folder,
            ):
                programs = Programs(drawn(seed), soc, Path(folder))
                finders = {what: programs.finder(n) for n, what in enumerate(programs.names, 1)}
            found[name] += Counter({"networks": 1, **Counter(finders.values())})
            missed += [f"{name} {seed}: {what}" for what, by in finders.items() if not by]
            if kept is not None:
                kept.write_text(json.dumps([found, missed]))
    columns = ("networks", *FINDERS)
    click.echo(f"{'programs':26}{'mutants':>10}" + "".join(f"{each:>11}" for each in columns))
    for name, counts in found.items():
        total = counts.total() - counts["networks"]
        cells = "".join(f"{counts[each]:>11}" for each in columns)
        click.echo(f"{name:26}{total:>10}{cells}")
    answers = plans(count)
    click.echo("plans: " + ", ".join(f"{answers[each]} {each}" for each in _ANSWERS.values()))
    click.echo(f"{made + count - len(missed) - answers['missed']} of {made + count} are found")
    if missed or answers["missed"] or answers["harmless and refused"]:
        sys.exit("\n".join(missed))


if __name__ == "__main__":
    main()
