"""Figures made of elements that are styled by classes; the page prints them as SVG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape


def number(value: float) -> str:
    """Format a coordinate with at most two decimals."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


@dataclass(frozen=True)
class Mark:
    """An element of a figure.

    Attributes:
        tag: SVG tag: ``line``, ``circle``, ``rect``, ``path`` or ``text``.
        classes: classes that style it.
        tip: text shown when the pointer rests on it.
        words: content of a ``text``.
        attributes: attributes of the element, with ``_`` in names standing for ``-``.
    """

    tag: str
    classes: str
    tip: str
    words: str
    attributes: Mapping[str, float | str]

    def markup(self) -> str:
        """Return the element as SVG, with all values escaped."""
        named = f' class="{escape(self.classes)}"' if self.classes else ""
        given = "".join(
            f' {name.replace("_", "-")}="{_attribute(value)}"'
            for name, value in self.attributes.items()
        )
        inner = f"<title>{escape(self.tip)}</title>" if self.tip else ""
        inner += escape(self.words)
        return f"<{self.tag}{named}{given}" + (f">{inner}</{self.tag}>" if inner else "/>")


class Drawing:
    """An SVG figure.

    Args:
        width, height: size of the drawing area, in its own units.
        title: a description of the figure, for those who cannot see it.
        classes: classes of the element.
        stretch: whether it fills its place without keeping its proportions.
    """

    def __init__(
        self, width: float, height: float, title: str, classes: str = "", stretch: bool = False
    ) -> None:
        self.width, self.height = width, height
        self.marks: list[Mark] = []
        self._title, self._classes, self._stretch = title, classes, stretch

    def add(self, tag: str, classes: str = "", tip: str = "", **attributes: float | str) -> None:
        """Add an element; ``tip`` shows on hovering; ``_`` in attribute names stands for ``-``."""
        self.marks.append(Mark(tag, classes, tip, "", attributes))

    def text(self, x: float, y: float, words: str, classes: str = "", tip: str = "") -> None:
        """Add words whose baseline begins (or, by class, ends or is centred) at a point."""
        self.marks.append(Mark("text", classes, tip, words, {"x": x, "y": y}))

    def __html__(self) -> str:
        """Return the element, safe to put into a page."""
        ratio = ' preserveAspectRatio="none"' if self._stretch else ""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(self.width)} '
            f'{number(self.height)}" class="{escape(self._classes)}" role="img"{ratio}>'
            f"<title>{escape(self._title)}</title>"
        )
        return head + "".join(mark.markup() for mark in self.marks) + "</svg>"


def _attribute(value: float | str) -> str:
    return escape(value) if isinstance(value, str) else number(value)
