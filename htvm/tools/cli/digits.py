"""Handwritten digits on a terminal: the image, and the network's scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHADES = " .:-=+*#%@"
_BAR = 24  # characters of the longest bar
_GAP = 6


def recognised(image: NDArray[Any], logits: NDArray[Any], label: int) -> str:
    """Return an image next to its scores, with the decision below.

    Args:
        image: floats in 0..1, ``[..., y, x]``.
        logits: ``[1, classes]`` or ``[classes]``.
        label: the correct class.
    """
    pixels, scores = image.reshape(image.shape[-2:]), logits.reshape(-1)
    best = int(scores.argmax())
    left = _drawn(pixels)
    right = _bars(scores, best)
    height, width = max(len(left), len(right)), len(left[0])
    left += [" " * width] * (height - len(left))
    right += [""] * (height - len(right))
    lines = [f"{a}{' ' * _GAP}{b}".rstrip() for a, b in zip(left, right, strict=True)]
    said = "right" if best == label else "WRONG"
    return "\n".join([*lines, "", f"decision: {best}, the label: {label}, {said}"])


def _drawn(pixels: NDArray[Any]) -> list[str]:
    """Return one line per row, with two characters per pixel, in a frame."""
    levels = np.rint(np.clip(pixels, 0, 1) * (len(_SHADES) - 1)).astype(int)
    edge = "+" + "-" * (2 * pixels.shape[1]) + "+"
    rows = ["|" + "".join(_SHADES[level] * 2 for level in row) + "|" for row in levels]
    return [edge, *rows, edge]


def _bars(scores: NDArray[Any], best: int) -> list[str]:
    """Return one line per class: its logit as a bar that starts at the smallest logit."""
    reach = float(scores.max() - scores.min()) or 1.0
    lines = []
    for index, score in enumerate(scores):
        bar = "#" * round(_BAR * float(score - scores.min()) / reach)
        mark = "  <" if index == best else ""
        lines.append(f"{index} {float(score):7.2f} {bar}{mark}")
    return lines
