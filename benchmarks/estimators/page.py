"""The page that compares our cycles with those of two estimators."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.estimators.cases import DMA_BYTES, LAYERS
from benchmarks.estimators.compare import Difference

__all__ = ["page"]

_HEAD = """# Beside two estimators

Estimators such as SCALE-Sim and ZigZag compute cycles from layer shapes. The cycles of `dla` are
those of a command stream that was executed, with exact results. This page puts both side by side on
the same layers and array sizes, and takes every difference apart. `python -m benchmarks.estimators`
installs SCALE-Sim 3.0.0 and ZigZag 3.9.1 in environments of their own and writes this page.

The layers, without padding, whose cycles are summed:

"""

_SCALESIM = """
## SCALE-Sim

A weight-stationary systolic array with as many rows as our PEs over input channels, and as many
columns as our PEs over output channels; cycles of computing only.

- *Taps in rows*: SCALE-Sim puts all fy x fx x C weights of a filter on its rows, so that a row is
  idle only in the last group of them; our PEs take input channels of one tap at a time, and PEs are
  idle whenever C is no multiple of their number.
- *Filling*: each group of weights is shifted into the array, and results are shifted through it:
  2 x rows + columns - 2 cycles. Our accelerator broadcasts, as the published one does.

"""

_ZIGZAG = f"""
## ZigZag

An array with the same unrolling (C and K), one weight and one sum per PE, an SRAM wide enough for
the array, and {DMA_BYTES} bytes per cycle from system memory; ZigZag chooses the order of loops.
Transfers are included.

- *Array*: cycles of the array alone, which are equal where both unroll the same.
- *Stalls*: of the array, because a port is too narrow for the order of loops: a PE has one weight
  and one sum, so whichever of them the order does not keep is exchanged through a port while the PE
  waits. Our accelerator's operands are read beside the products.
- *First and last*: transfers before the first and after the last product, which nothing hides.
- *Our transfers*: the published accelerator's transfers do not run beside its array, and each has
  a set-up time.

"""


def page(scalesim: Sequence[Difference], zigzag: Sequence[Difference]) -> str:
    """Return the page as Markdown."""
    layers = "".join(f"- {shape.name}: {shape.macs:,} MACs\n" for shape in LAYERS)
    parts = [_HEAD, layers, _SCALESIM, _table(scalesim), _ZIGZAG, _table(zigzag)]
    return "".join(parts)


def _table(rows: Sequence[Difference]) -> str:
    causes = list(rows[0].causes)
    heads = ["PEs in x out", "ours, executed", "estimated", "differs by", *causes, "left over"]
    lines = [
        f"| {' | '.join(heads)} |",
        "|---|--:|--:|--:|" + "--:|" * (len(causes) + 1),
    ]
    for row in rows:
        cells = [
            f"{row.pes[0]} x {row.pes[1]}",
            f"{row.ours:,}",
            f"{row.theirs:,}",
            f"{row.percent:+.1f} %",
            *(f"{row.causes[cause]:+,}" for cause in causes),
            f"{row.left_over:,}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
