"""Chains of rows on a Cortex-M4: bytes of arenas, instructions and build times.

    python -m benchmarks.rows [FILE ...] [--mlperf FOLDER] [--write docs/guides/memory.md]

The first table: networks (those of the zoo, and files that are named) layer after layer, within
limits below that, and with the least memory.  The second one, made with ``--mlperf``: what that
does to networks that others publish figures of, also with inputs that are overwritten or come row
by row.  ``FOLDER`` has MLPerf Tiny's files, each as ``NAME/model.tflite``; layers of MobileNetV2
are drawn, with random weights.

Outputs must be equal to those of layer after layer.  *At least* is what no placement of these
chains takes less than; with the least memory, no cuts of the network's order into chains do.  Build
times are CPU time of the process and of the compilers it starts, without caches: medians of pairs
of builds, one after the other.  The planner's is without the kernels that it asks for.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np

import htvm
from htvm.aot import chains
from htvm.build_options import Input, Memory
from htvm.inputs import seeded_inputs
from htvm.tools.cli.arguments import open_model
from htvm.tools.memory_curve import memory_curve
from tests.aot.chains.networks import mobilenet_v2

NETWORKS = ("zoo:resnet8", "zoo:mobilenet_v1", "zoo:ds_cnn")
TARGET = "cortex_m4"


@dataclass(frozen=True)
class Case:
    """A network of the second table.

    Attributes:
        name: in words.
        network: a file of MLPerf Tiny, or how to draw it.
        input: where the input is.
        goals: bytes; a build within each, and one with the least memory.
    """

    name: str
    network: str | Callable[[], htvm.Model]
    input: Input
    goals: tuple[int, ...] = ()


CASES = (
    Case("ResNet-8", "pretrainedResnet_quant", "streamed", (17_600,)),
    Case("visual wake words, 96 px", "vww_96_int8", "streamed", (15_600,)),
    Case("", "vww_96_int8", "overwritten", (29_500,)),
    Case("keyword spotting", "kws_ref_model", "streamed", (10_000,)),
    Case("MobileNetV2-0.35, 96 px", lambda: mobilenet_v2(96, 0.35), "streamed"),
    Case("MobileNetV2-0.35, 144 px", lambda: mobilenet_v2(144, 0.35), "streamed"),
    Case("MobileNetV2-1.0, 224 px", lambda: mobilenet_v2(224, 1.0), "streamed"),
)


def curves(networks: Sequence[str]) -> str:
    """Return the first table as Markdown."""
    lines = [
        "| network | limit | arena, B | stack used, B | instructions | chains of operators |",
        "|---|---|--:|--:|--:|---|",
    ]
    for network in networks:
        points = memory_curve(open_model(network), TARGET).points
        for point in points:
            limit = f"{int(point.limit):,} B" if point.limit.isdigit() else point.limit
            more = "" if point is points[0] else f" ({point.more:+.2%})"
            name = network.removeprefix("zoo:") if point is points[0] else ""
            lines.append(
                f"| {name} | {limit} | {point.arena:,} | {point.stack or 0:,} "
                f"| {point.cost:,}{more} | {point.chains or 'none'} |"
            )
    return "\n".join(lines) + "\n"


def published(folder: Path, rounds: int) -> str:
    """Return the second table as Markdown; of build times, medians of so many pairs.

    Raises:
        AssertionError: the outputs of two builds differ.
    """
    lines = [
        "| network | input | layer after layer, B | limit | arena, B | at least, B | instructions "
        "| build time | planner, s |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for case in CASES:
        model = (
            htvm.load(folder / case.network / "model.tflite")
            if isinstance(case.network, str)
            else case.network()
        )
        whole = htvm.build(model, TARGET)
        inputs = seeded_inputs(whole.compiled.source.inputs)
        first = whole.run(inputs)
        size = sum(values.nbytes for values in inputs) if case.input == "overwritten" else 0
        limits: tuple[Memory, ...] = (*case.goals, "least")
        for limit in limits:
            module = htvm.build(model, TARGET, memory=limit, input=case.input)
            result = module.run(inputs)
            for made, right in zip(result.outputs, first.outputs, strict=True):
                assert np.array_equal(made, right), f"{case.name}, {limit}"
            assert first.instructions and result.instructions
            top = limit is limits[0]
            times, planner = _times(model, limit, case, rounds)
            lines.append(
                f"| {case.name if top else ''} | {case.input if top else ''} "
                f"| {f'{whole.l2_peak + size:,}' if top else ''} "
                f"| {limit if limit == 'least' else f'{limit:,} B'} | {module.l2_peak:,} "
                f"| {module.compiled.program.plan.bound:,} "
                f"| {result.instructions / first.instructions - 1:+.2%} "
                f"| {times:.2f} times | {planner:.2f} |"
            )
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines) + "\n"


def _times(model: htvm.Model, limit: Memory, case: Case, rounds: int) -> tuple[float, float]:
    """Return how many times as long a build with chains takes, and the planner's seconds in it.

    Both are medians of pairs of builds.
    """
    planning: list[float] = []

    def whole() -> None:
        htvm.build(model, TARGET)

    def chained() -> None:
        with _planner(planning):
            htvm.build(model, TARGET, memory=limit, input=case.input)

    found = []
    for number in range(rounds):
        # Whoever is second finds the machine as the first left it: they swap.
        pair = {build: _seconds(build) for build in (whole, chained)[:: -1 if number % 2 else 1]}
        found.append(pair[chained] / pair[whole])
    return statistics.median(found), statistics.median(planning)


@contextmanager
def _planner(seconds: list[float]) -> Iterator[None]:
    """Append what the planner of chains takes of a build, without the kernels that it asks for."""
    spent: Counter[str] = Counter()

    def timed(owner: object, name: str) -> AbstractContextManager[object]:
        function = getattr(owner, name)

        def measured(*args: object, **options: object) -> object:
            begin = time.process_time()
            try:
                return function(*args, **options)
            finally:
                spent[name] += time.process_time() - begin

        return mock.patch.object(owner, name, measured)

    with timed(chains, "by_rows"), timed(chains.RowCompiler, "rows"), timed(chains.Whole, "made"):
        yield
    seconds.append(spent["by_rows"] - spent["rows"] - spent["made"])


def _seconds(build: Callable[[], object]) -> float:
    """Return the CPU time of a build with an empty cache."""
    with (
        tempfile.TemporaryDirectory() as cache,
        mock.patch.dict(os.environ, {"XDG_CACHE_HOME": cache}),
    ):
        before = time.process_time() + _of_children()
        build()
        return time.process_time() + _of_children() - before


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments: Sequence[str]) -> None:
    """Print the tables, or write them into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--mlperf", type=Path)
    parser.add_argument("--rounds", type=int, default=3, help="pairs of builds (3)")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args(arguments)
    tables = {"rows": curves([*NETWORKS, *given.files])}
    if given.mlperf is not None:
        tables["published"] = published(given.mlperf, given.rounds)
    if given.write is None:
        print("\n".join(tables.values()), end="")
        return
    page = given.write.read_text(encoding="utf-8")
    for mark, text in tables.items():
        before, rest = page.split(f"<!-- {mark} -->\n")
        end = f"<!-- end of {mark} -->\n"
        page = f"{before}<!-- {mark} -->\n{text}{end}{rest.partition(end)[2]}"
    given.write.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
