"""The causes of cycles that add up to all of them, and bars of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from htvm.tools.plots.bars import SMALL, counted
from htvm.tools.plots.colours import painted

CAUSES: Mapping[str, tuple[str, str]] = {
    "array": ("compute", "an accelerator's array computes"),
    "weights": ("weights", "an accelerator loads weights"),
    "trigger": ("trigger", "an accelerator is busy with anything else"),
    "dma_alone": ("DMA alone", "transfers that no accelerator hides"),
    "host_alone": ("host alone", "neither an accelerator nor the DMA is busy"),
}
"""Field of `htvm.result.Causes` -> its name and its meaning."""


def draw_causes(axes: Any, names: Sequence[str], causes: Sequence[Any]) -> None:
    """Draw bars of cycles, each of its causes, the first on top.

    Args:
        axes: matplotlib's axes.
        names: of the bars.
        causes: `htvm.result.Causes` of each.
    """
    left = [0] * len(names)
    for field, (title, _) in CAUSES.items():
        values = [getattr(each, field) for each in causes]
        colour = painted(f"c-{field}")
        axes.barh(range(len(names)), values, left=left, color=colour, label=title)
        left = [start + value for start, value in zip(left, values, strict=True)]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("cycles", fontsize=SMALL)
    axes.tick_params(labelsize=SMALL)
    axes.xaxis.set_major_formatter(counted)
    axes.legend(fontsize=SMALL, loc="lower right", frameon=False)
