"""The page: what is worse than TFLite Micro first, then one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["FAST", "GOALS", "OURS", "Row", "page"]

OURS, FAST = "this project", "TFLite Micro, CMSIS-NN"

GOALS: Mapping[str, float] = {"instructions": 1.0, "flash": 0.6, "ram": 0.8}
"""The largest share of the figures of TFLite Micro with CMSIS-NN that we aim at."""

PUBLISHED: Mapping[str, float] = {
    "ResNet-8": 389.6, "DS-CNN": 99.8, "MobileNet": 300.8, "autoencoder": 8.6,
}  # fmt: skip
"""Milliseconds of microTVM with CMSIS-NN on the STM32L4R5 at 120 MHz (MLPerf Tiny v1.1)."""

_CYCLES_PER_MS = 120_000

_ESTIMATES = """
## Estimates of cycles, and how far off they may be

Estimates, not measured: the cycles that the Cortex-M4's manual gives for the executed instructions,
from memory without wait states. We know of no published run of exactly one of these programs on a
chip. The nearest is microTVM with CMSIS-NN, another version and another compiler, on the STM32L4R5
at 120 MHz, where flash has wait states: what was measured there, relative to the estimate of TFLite
Micro with CMSIS-NN, is in the last column.
"""
_HEADS = (
    "network", OURS, FAST, "microTVM, CMSIS-NN, published", "published / estimate of TFLite Micro",
)  # fmt: skip

_UNITS = {"instructions": "instructions", "flash": "B of flash", "ram": "B of RAM"}

_HEAD = """# Beside TFLite Micro on a Cortex-M4

The same four files, the same compiler (clang of the package ziglang), the same emulator: TFLite
Micro with CMSIS-NN's kernels, with its reference kernels, and this project. Counts are
**instructions of one inference, not cycles**. `python -m benchmarks.tflm` measures them; it takes
the folders of TFLite Micro's sources and of what these need, which this repository does not have,
and writes this page.

- Kernels are compiled with `-O2`, the interpreter with `-Os` as in TFLite Micro's own build,
  without error texts, with only the operators that a network has, in their int8 variants.
- Floating point is in software everywhere; TFLite Micro needs it to prepare, not in an inference.
- Flash: the linked firmware, with the network. RAM: the arena as used (inputs and outputs are in
  it; ours are apart and counted), all other variables, and the stack as measured by painting it.
- Another compiler would give other counts: this one keeps some of the sums of CMSIS-NN's inner
  loops on the stack.
"""


@dataclass(frozen=True)
class Row:
    """One network by one of the three.

    Attributes:
        network, by: names.
        equal: whether every element of the output was equal to the golden.
        instructions: of one inference.
        macs: of one inference.
        flash, ram: bytes.
        arena, stack: bytes of the RAM that these are.
        estimate: the fewest and the most cycles that the core's manual gives for the instructions.
        layers: (name, instructions) of each layer.
        constants: bytes of the flash that are weights, biases and factors; 0 if unknown.
    """

    network: str
    by: str
    equal: bool
    instructions: int
    macs: int
    flash: int
    ram: int
    arena: int
    stack: int
    estimate: tuple[int, int]
    layers: tuple[tuple[str, int], ...]
    constants: int = 0

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Row:
        """Return the row that `dataclasses.asdict` made this of."""
        layers = tuple((name, count) for name, count in data["layers"])
        return cls(**{**data, "layers": layers, "estimate": tuple(data["estimate"])})


def page(rows: Sequence[Row], versions: Sequence[str]) -> str:
    """Return the page as Markdown.

    Args:
        rows: for each network ours and the two others.
        versions: of what was compiled and what compiled it.
    """
    beside = {row.network: row for row in rows if row.by == FAST}
    ours = [row for row in rows if row.by == OURS]
    parts = [_HEAD, "## Where ours is worse, or misses its goal\n"]
    parts += list(_short(ours, beside)) or ["Nowhere."]
    parts.append(
        "\nThe goals are fewer instructions than with CMSIS-NN, at most "
        f"{GOALS['flash']:.0%} of its flash and {GOALS['ram']:.0%} of its RAM.\n"
    )
    parts.append("## All figures\n")
    parts += _table(rows, beside)
    parts.append(_ESTIMATES)
    parts.append(f"| {' | '.join(_HEADS)} |\n|---|--:|--:|--:|--:|")
    parts += [_estimates(row, beside[row.network]) for row in ours]
    parts.append(f"\nVersions: {', '.join(versions)}.\n")
    return "\n".join(parts)


def _short(ours: Sequence[Row], beside: Mapping[str, Row]) -> Iterator[str]:
    for row in ours:
        other = beside[row.network]
        for name, goal in GOALS.items():
            mine, theirs = getattr(row, name), getattr(other, name)
            if mine > goal * theirs:
                word = "**worse**" if mine > theirs else "misses the goal"
                yield (
                    f"- {row.network}: {mine:,} {_UNITS[name]}, with CMSIS-NN {theirs:,}: "
                    f"{mine / theirs:.0%}, {word}{_reason(name, row, other)}"
                )


def _reason(name: str, row: Row, other: Row) -> str:
    """Say how much of the flash no code can save: TFLite Micro has the same weights."""
    if name != "flash" or not row.constants:
        return ""
    room = int(GOALS["flash"] * other.flash) - row.constants
    left = f"leave {room:,} B for code" if room > 0 else "exceed the goal without any code"
    return (
        f"; its constants (weights, biases, factors), {row.constants:,} B or "
        f"{row.constants / other.flash:.1%}, {left}, which takes {row.flash - row.constants:,} B"
    )


def _table(rows: Sequence[Row], beside: Mapping[str, Row]) -> Iterator[str]:
    yield (
        "| network | by | equal | instructions | per MAC | flash B | RAM B | of it arena B | "
        "stack B | instructions, flash, RAM of those with CMSIS-NN |"
    )
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|--:|"
    for row in rows:
        other = beside[row.network]
        shares = (f"{getattr(row, name) / getattr(other, name):.0%}" for name in GOALS)
        cells = [
            row.network, row.by, "yes" if row.equal else "NO",
            f"{row.instructions:,}", f"{row.instructions / row.macs:.2f}",
            f"{row.flash:,}", f"{row.ram:,}", f"{row.arena:,}", f"{row.stack:,}",
            ", ".join(shares),
        ]  # fmt: skip
        yield "| " + " | ".join(cells) + " |"


def _estimates(row: Row, other: Row) -> str:
    published = PUBLISHED.get(row.network)
    shown = share = "-"
    if published is not None:
        cycles = published * _CYCLES_PER_MS
        low, high = (cycles / number for number in reversed(other.estimate))
        shown, share = f"{cycles:,.0f}", f"{low:.2f} to {high:.2f}"
    spans = ("{:,} to {:,}".format(*each.estimate) for each in (row, other))
    return f"| {row.network} | {' | '.join(spans)} | {shown} | {share} |"
