"""Random layers through Vela and the Ethos-U's model, beside TFLite Micro: how many are equal.

    python -m benchmarks.ethos_u_layers [--layers 10000]

Layers of each operator that Vela maps, of 8 and 16 bits, are drawn as the tests draw them: shapes,
strides, paddings, dilations, scales, zero points, weights, inputs.  The five configurations take
turns.  A layer that Vela leaves to the CPU is drawn, but not counted.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter

import click

from htvm.progress_bar import shown_progress
from tests.runtime_c.ethos_u import ACCELERATORS, library
from tests.runtime_c.test_ethos_u_layers import CASES, outcomes

_AT_ONCE = 10


def count(layers: int) -> dict[tuple[str, str], Counter[str]]:
    """Draw layers until so many were executed; return outcomes by type and operator."""
    lib, found = library(), {case: Counter[str]() for case in CASES}
    accelerators = itertools.cycle(ACCELERATORS)
    with shown_progress() as progress:
        for first in itertools.count(0, _AT_ONCE):
            executed = sum(each.total() - each["unmapped"] for each in found.values())
            if executed >= layers:
                return found
            with progress.stage(f"{executed:,} of {layers:,} layers"):
                for kind, name in CASES:
                    seeds = range(first, first + _AT_ONCE)
                    found[kind, name] += outcomes(lib, kind, name, seeds, next(accelerators))
    raise AssertionError("unreachable")


@click.command(help=__doc__)
@click.option("--layers", type=click.IntRange(min=1), default=10_000, show_default=True)
def main(layers: int) -> None:
    """Count, and fail if a layer differs."""
    found = count(layers)
    click.echo(f"{'type':8}{'operator':24}{'equal':>8}{'unmapped':>10}{'other':>8}")
    wrong = []
    for (kind, name), outcome in found.items():
        others = [said for said in outcome if said not in ("equal", "unmapped")]
        wrong += [f"{kind} {said}" for said in others]
        equal, unmapped = outcome["equal"], outcome["unmapped"]
        rest = sum(outcome[said] for said in others)
        click.echo(f"{kind:8}{name:24}{equal:>8}{unmapped:>10}{rest:>8}")
    equal = sum(each["equal"] for each in found.values())
    click.echo(f"{equal:,} layers of {len(found)} operators are equal, {len(wrong)} differ")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
