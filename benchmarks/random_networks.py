"""Random networks on each SoC with accelerators, with all that may run at once: how many are equal.

    python -m benchmarks.random_networks [--networks 300] [--soc siracusa] [--kept FILE]

The networks of the seeds 0, 1, ... are drawn and built as `tests.e2e.test_random_on_accelerators`
does, for one target of the SoC after another.  Each is executed on two inputs, natively and on the
simulator, and every element of its outputs is compared with the interpreter's.  Natively, started
work is done as late as it may be, so that a missing wait or a buffer reused too early shows in the
results; on the simulator, device models complain of races.  "At once" are networks in which
something is started or loaded before its turn, "in L1" those that have less of it than there is.
A network that differs, or of which a model complains, is printed with its seed.  ``--kept`` goes
on from a file, and writes it after each network.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import click

import htvm
from htvm.progress_bar import shown_progress
from tests.e2e.test_random_on_accelerators import TARGETS, Case, check, compared

COLUMNS = ("networks", "equal", "elements", "at once", "less L1", "steps")


def at_once(module: htvm.Module) -> bool:
    """Whether something is started or loaded before its turn."""
    regions = module.compiled.regions.values()
    plans = [code.plan for code in regions if code.plan is not None]
    return any(kernel.kind == "start" for code in regions for kernel in code.kernels) or any(
        layer.started or layer.follower or layer.preload or layer.left
        for plan in plans
        for layer in plan.layers
    )


def draw(soc: str, seed: int) -> tuple[Counter[str], str]:
    """Return what is counted of the network of a seed, and what is wrong with it, if anything."""
    found = Counter({"networks": 1})
    try:
        module = check(soc, seed)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is one network's
        return found, f"{soc} {seed}: {type(error).__name__}: {' '.join(str(error).split())[:600]}"
    found["equal"] = 1
    found["elements"] = compared(module)
    found["at once"] = at_once(module)
    found["less L1"] = Case(soc, seed).tiling.l1_budget is not None
    found["steps"] = sum(step.kind == "layer" for step in module.compiled.program.steps)
    return found, ""


@click.command(help=__doc__)
@click.option("--networks", type=click.IntRange(min=1), default=300, show_default=True)
@click.option("--soc", "socs", type=click.Choice([*TARGETS]), multiple=True, help="These alone.")
@click.option("--kept", type=click.Path(path_type=Path, dir_okay=False))
def main(networks: int, socs: tuple[str, ...], kept: Path | None) -> None:
    """Count, and fail if a network differs."""
    before: dict[str, dict[str, int]] = {}
    wrong: list[str] = []
    if kept is not None and kept.exists():
        before, wrong = json.loads(kept.read_text())
    found = {soc: Counter(before.get(soc, {})) for soc in socs or TARGETS}
    with shown_progress() as progress:
        while (soc := min(found, key=lambda each: found[each]["networks"])) and (
            seed := found[soc]["networks"]
        ) < networks:
            with progress.stage(f"network {seed:,} of {networks:,} on {soc}"):
                counts, what = draw(soc, seed)
            found[soc] += counts
            wrong += [what] if what else []
            if kept is not None:
                kept.write_text(json.dumps([{**before, **found}, wrong]))
    click.echo(f"{'SoC':20}" + "".join(f"{name:>12}" for name in COLUMNS))
    for soc, counts in found.items():
        click.echo(f"{soc:20}" + "".join(f"{counts[name]:>12,}" for name in COLUMNS))
    total = sum(each["elements"] for each in found.values())
    click.echo(f"{total:,} elements are equal, {len(wrong)} networks are not")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
