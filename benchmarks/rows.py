"""Chains of rows: bytes of the arena against instructions, of networks on a Cortex-M4.

    python -m benchmarks.rows [FILE ...] [--write docs/guides/memory.md]

Each network (those of the zoo, and files that are named) is built layer after layer, within limits
between that and the least that chains reach, and with the least; all builds are run in the
emulator, and their outputs must be equal.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import htvm
from htvm.inputs import seeded_inputs
from htvm.tools.cli.arguments import open_model

NETWORKS = ("zoo:resnet8", "zoo:mobilenet_v1", "zoo:ds_cnn")
TARGET = "cortex_m4"
LIMITS = (0.75, 0.5)
"""Limits between the least arena (0) and that of layer after layer (1)."""

_MARKS = ("<!-- rows -->\n", "<!-- end of rows -->\n")


@dataclass(frozen=True)
class Point:
    """A build of a network.

    Attributes:
        memory: the limit, in words.
        arena: bytes.
        stack: bytes used.
        instructions: of one inference.
        chains: number of operators in each chain.
    """

    memory: str
    arena: int
    stack: int
    instructions: int
    chains: tuple[int, ...]


def points(network: str) -> list[Point]:
    """Return the builds of a network, from most to least memory.

    Raises:
        AssertionError: the outputs of two differ.
    """
    model = open_model(network)
    whole = htvm.build(model, TARGET)
    inputs = seeded_inputs(whole.compiled.source.inputs)
    wanted = whole.run(inputs).outputs
    least = htvm.build(model, TARGET, memory="least")
    room = whole.l2_peak - least.l2_peak
    limits = [least.l2_peak + int(room * share) for share in LIMITS]
    between = [htvm.build(model, TARGET, memory=limit) for limit in limits]
    found = []
    for memory, module in zip(
        ("none", *(f"{limit:,} B" for limit in limits), "least"),
        (whole, *between, least),
        strict=True,
    ):
        result = module.run(inputs)
        for made, right in zip(result.outputs, wanted, strict=True):
            assert np.array_equal(made, right), f"{network}, {memory}"
        chains = tuple(
            len(kernel.layers)
            for kernel in module.compiled.cpu_kernels
            if "htvm_chain.h" in kernel.headers
        )
        assert result.instructions is not None
        found.append(
            Point(memory, module.l2_peak, result.stack_bytes or 0, result.instructions, chains)
        )
    return found


def table(networks: Sequence[str]) -> str:
    """Return the table of networks as Markdown."""
    lines = [
        "| network | limit | arena, B | stack used, B | instructions | chains of operators |",
        "|---|---|--:|--:|--:|---|",
    ]
    for network in networks:
        found = points(network)
        for point in found:
            more = point.instructions / found[0].instructions - 1
            cost = "" if point is found[0] else f" ({more:+.2%})"
            chains = ", ".join(map(str, point.chains)) or "none"
            name = network.removeprefix("zoo:") if point is found[0] else ""
            lines.append(
                f"| {name} | {point.memory} | {point.arena:,} | {point.stack:,} "
                f"| {point.instructions:,}{cost} | {chains} |"
            )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> None:
    """Print the table, or write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args(arguments)
    text = table([*NETWORKS, *given.files])
    if given.write is None:
        print(text, end="")
        return
    page = given.write.read_text(encoding="utf-8")
    before, rest = page.split(_MARKS[0])
    _, after = rest.split(_MARKS[1])
    given.write.write_text(f"{before}{_MARKS[0]}{text}{_MARKS[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
