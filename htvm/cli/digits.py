"""Handwritten digits on a terminal: the image, and what the network makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["recognised"]

_SHADES = " .:-=+*#%@"
_BAR = 24  # characters of the longest bar
_GAP = 6


def recognised(image: NDArray[Any], logits: NDArray[Any], label: int) -> str:
    """An image beside its scores, and the decision below.

    Args:
        image: reals in 0..1, ``[..., y, x]``.
        logits: ``[1, classes]`` or ``[classes]``.
        label: what it is.
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
    """One line for each row, two characters for each pixel, in a frame."""
    levels = np.rint(np.clip(pixels, 0, 1) * (len(_SHADES) - 1)).astype(int)
    edge = "+" + "-" * (2 * pixels.shape[1]) + "+"
    rows = ["|" + "".join(_SHADES[level] * 2 for level in row) + "|" for row in levels]
    return [edge, *rows, edge]


def _bars(scores: NDArray[Any], best: int) -> list[str]:
    """One line for each class: its logit as a bar from the least one on."""
    reach = float(scores.max() - scores.min()) or 1.0
    lines = []
    for index, score in enumerate(scores):
        bar = "#" * round(_BAR * float(score - scores.min()) / reach)
        mark = "  <" if index == best else ""
        lines.append(f"{index} {float(score):7.2f} {bar}{mark}")
    return lines
