"""A few lines of SVG: elements with escaped text, to be styled by the page's classes."""

from __future__ import annotations

from html import escape

from markupsafe import Markup

__all__ = ["Drawing", "number"]


def number(value: float) -> str:
    """A coordinate with at most two decimals."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


class Drawing:
    """An SVG figure.

    Args:
        width, height: of the drawing area, in its own units.
        title: what it shows, for those who cannot see it.
        classes: of the element.
        stretch: whether it fills its place without keeping its proportions.
    """

    def __init__(
        self, width: float, height: float, title: str, classes: str = "", stretch: bool = False
    ) -> None:
        ratio = ' preserveAspectRatio="none"' if stretch else ""
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(width)} '
            f'{number(height)}" class="{escape(classes)}" role="img"{ratio}>',
            f"<title>{escape(title)}</title>",
        ]

    def add(self, tag: str, classes: str = "", tip: str = "", **attributes: float | str) -> None:
        """Add an element; ``tip`` shows when the pointer rests on it, ``_`` in names is ``-``."""
        given = "".join(
            f' {name.replace("_", "-")}="{_attribute(value)}"' for name, value in attributes.items()
        )
        named = f' class="{escape(classes)}"' if classes else ""
        inner = f"><title>{escape(tip)}</title></{tag}>" if tip else "/>"
        self._parts.append(f"<{tag}{named}{given}{inner}")

    def text(self, x: float, y: float, words: str, classes: str = "", tip: str = "") -> None:
        """Add words whose baseline begins (or, by class, ends or is centred) at a point."""
        title = f"<title>{escape(tip)}</title>" if tip else ""
        self._parts.append(
            f'<text x="{number(x)}" y="{number(y)}" class="{escape(classes)}">'
            f"{title}{escape(words)}</text>"
        )

    def markup(self) -> Markup:
        """The element, safe to put into a page."""
        return Markup("".join([*self._parts, "</svg>"]))  # all that varies was escaped


def _attribute(value: float | str) -> str:
    return escape(value) if isinstance(value, str) else number(value)
