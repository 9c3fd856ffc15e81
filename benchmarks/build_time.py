"""How long builds take, stage by stage, alone or beside those of another checkout.

``python -m benchmarks.build_time --against ../other`` alternates the two checkouts, so that what
else the machine does meets both alike, and gives medians and their ratio.  Each build is made in a
process of its own:

- *cold*: with an empty cache, and one inference behind it: compiler, runtime and simulator are
  made ready;
- *new*: a model that was never built before, with all that is kept of other builds;
- *again*: that model once more, whose C is compiled already.

"Wall" is what passes, "CPU" adds up the process and the compilers it starts, and is what compares
best on a machine that is not idle.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

__all__ = ["KINDS", "Build", "Measured", "main", "measure", "report"]

KINDS = ("cold", "new", "again")
"""Of caches; see above."""

MODELS = ("resnet8", "mobilenet_v1")
TARGET = "diana"
HERE = Path(__file__).resolve().parents[1]


Seconds: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Build:
    """What to build.

    Attributes:
        model: name of a network of the zoo.
        target: what for.
        seed: of the weights; another one is another model to every cache.
        run: whether to run one inference, too.
    """

    model: str
    target: str
    seed: int
    run: bool = False


@dataclass(frozen=True)
class Measured:
    """Seconds of one build: (wall, CPU of the process and all it started).

    Attributes:
        whole: of the process.
        stages: of its parts, in order: "import tvm", "drawing the model", the stages of the build,
            and "first run" where there is one.
    """

    whole: Seconds
    stages: dict[str, Seconds] = field(default_factory=dict)


def measure(build: Build, checkout: Path, cache: Path) -> Measured:
    """Build once, in a process that imports ``checkout`` and keeps what it keeps in ``cache``.

    Raises:
        subprocess.CalledProcessError: the build failed.
    """
    environment = {**os.environ, "PYTHONPATH": str(checkout), "XDG_CACHE_HOME": str(cache)}
    # By its path: the other checkout may not have this module, or another version.
    line = [sys.executable, __file__, "--once", build.model, build.target, str(build.seed)]
    begin = _now()
    done = subprocess.run(
        [*line, *(["--run"] if build.run else [])],
        env=environment,
        cwd=checkout,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    whole = _since(begin)
    stages = {name: (wall, cpu) for name, (wall, cpu) in json.loads(done.stdout).items()}
    return Measured(whole, stages)


def _now() -> Seconds:
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    return time.perf_counter(), cpu


def _since(begin: Seconds) -> Seconds:
    now = _now()
    return now[0] - begin[0], now[1] - begin[1]


def _once(build: Build) -> dict[str, Seconds]:
    """Build in this process: seconds by part."""
    spans: dict[str, Seconds] = {}
    begin = _now()
    # Most of what a build imports, and nothing of it ours.
    import tvm.relax  # noqa: F401

    spans["import tvm"] = _since(begin)
    begin = _now()
    import htvm
    from htvm import zoo
    from htvm.inputs import seeded_inputs
    from htvm.progress import CallbackProgress, StageEvent

    model = zoo.build(build.model, seed=build.seed)
    spans["drawing the model"] = _since(begin)
    begun: dict[str, Seconds] = {}

    def note(event: StageEvent) -> None:
        if event.kind == "begin":
            begun[event.name] = _now()
        elif event.depth == 0:
            spans[event.name] = _since(begun[event.name])

    module = htvm.build(model, build.target, progress=CallbackProgress(note))
    if build.run:
        begin = _now()
        module.run(seeded_inputs(model.inputs))
        spans["first run"] = _since(begin)
    return spans


def _rounds(
    model: str, target: str, checkouts: Sequence[Path], rounds: int, cold: int
) -> Iterator[tuple[str, Path, Measured]]:
    """Every build of one model: (kind, checkout, what it took), the checkouts taking turns."""
    with tempfile.TemporaryDirectory(prefix="build-time-") as name:
        caches = {checkout: Path(name) / str(i) for i, checkout in enumerate(checkouts)}
        for number in range(max(1, cold)):
            for checkout in checkouts:
                if number:
                    caches[checkout] = caches[checkout].with_name(f"{number}-cold-{checkout.name}")
                caches[checkout].mkdir()
                taken = measure(Build(model, target, 0, run=True), checkout, caches[checkout])
                yield "cold", checkout, taken
        for number in range(1, rounds + 1):
            for kind in ("new", "again"):
                # Whoever is second finds the machine as the first left it: they swap.
                for checkout in checkouts[:: 1 if number % 2 else -1]:
                    taken = measure(Build(model, target, number), checkout, caches[checkout])
                    yield kind, checkout, taken


def report(model: str, taken: dict[tuple[str, Path], list[Measured]], ours: Path) -> str:
    """Medians of every kind of build, ours and, where there is one, the other checkout's."""
    others = [checkout for kind, checkout in taken if kind == "cold" and checkout != ours]
    columns = ["wall", "CPU"] if not others else ["wall", "other", "ratio", "CPU", "other", "ratio"]
    lines = [f"{model}, seconds" + (f" (other: {others[0]})" if others else "")]
    lines.append(f"  {'':34}" + "".join(f"{column:>8}" for column in columns))
    for kind in KINDS:
        sides = [taken[kind, checkout] for checkout in (ours, *others) if (kind, checkout) in taken]
        if not sides:
            continue
        lines.append(_row(kind, [[m.whole for m in side] for side in sides]))
        for name in dict.fromkeys(name for side in sides for m in side for name in m.stages):
            parts = [[m.stages.get(name, (0.0, 0.0)) for m in side] for side in sides]
            lines.append(_row(f"  {name}", parts))
    return "\n".join(lines)


def _row(label: str, sides: Sequence[Sequence[Seconds]]) -> str:
    cells = ""
    for number in range(2):
        medians = [statistics.median(seconds[number] for seconds in side) for side in sides]
        cells += "".join(f"{value:8.2f}" for value in medians)
        if len(medians) == 2:
            cells += f"{medians[0] / medians[1]:8.2f}" if medians[1] >= 0.02 else " " * 8
    return f"  {label:34}{cells}".rstrip()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print, as the options say."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.build_time", description=__doc__)
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="another checkout")
    parser.add_argument("--rounds", type=int, default=5, help="builds of each kind (5)")
    parser.add_argument("--cold", type=int, default=1, help="builds with an empty cache (1)")
    parser.add_argument(
        "--model", action="append", help=f"of the zoo; may be repeated ({', '.join(MODELS)})"
    )
    parser.add_argument("--target", default=TARGET, help=f"what to build for ({TARGET})")
    parser.add_argument("--once", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.once is not None:
        model, target, seed = options.once
        print(json.dumps(_once(Build(model, target, int(seed), options.run))))
        return
    checkouts = [HERE, *([options.against.resolve()] if options.against is not None else [])]
    for model in options.model or MODELS:
        taken: dict[tuple[str, Path], list[Measured]] = {}
        for kind, checkout, measured in _rounds(
            model, options.target, checkouts, options.rounds, options.cold
        ):
            taken.setdefault((kind, checkout), []).append(measured)
        print(report(model, taken, HERE), flush=True)


if __name__ == "__main__":
    main()
