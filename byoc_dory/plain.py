"""Text from files and users, in a form that is harmless to whatever shows or contains it.

Each kind of output has one writer, which uses one of these: errors, logs, lines and cells of tables
`plain`, CSV `csv_cell`, Markdown `markdown`.  C has comments of its own, and HTML is escaped by its
templates.
"""

from __future__ import annotations

import re

_FORMULA = "=+-@"
# What makes code, links, tables, HTML or emphasis; brackets and underscores only where they do.
_MARKUP = re.compile(r"[\\`*<|&~]|\](?=[(\[])|\b_|_\b|^(?=[#>+-])")


def plain(text: str) -> str:
    r"""Return text as one line of printable characters, the others as in Python, such as ``\x1b``.

    Line ends, control sequences, characters that change the direction of writing and halves of
    surrogate pairs are among these.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def csv_cell(value: object) -> object:
    """Return the value of a cell; a text that a spreadsheet takes for a formula gets a quote."""
    if not isinstance(value, str):
        return value
    text = plain(value)
    return f"'{text}" if text.startswith(tuple(_FORMULA)) and not _is_number(text) else text


def markdown(text: str) -> str:
    """Return text that a page of Markdown shows as it is, within a line."""
    return _MARKUP.sub(r"\\\g<0>", plain(text))


def code_span(text: str) -> str:
    """Return text as code in a table of Markdown; as text if it has a backtick itself."""
    shown = plain(text).replace("|", "\\|")
    return markdown(text) if "`" in shown else f"`{shown}`"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
