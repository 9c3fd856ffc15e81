"""Drawing tables, for all reports: as text, and the same rows as CSV."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from rich.box import Box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from byoc_dory.plain import csv_cell, plain

if TYPE_CHECKING:
    from pandas import DataFrame

Record = TypeVar("Record")

# ASCII only, so that a table survives every terminal, log file and source comment.
_RULED = Box(
    "    \n"
    "    \n"
    " -- \n"
    "    \n"
    " -- \n"
    " -- \n"
    "    \n"
    "    \n",
    ascii=True,
)  # fmt: skip

# Wide enough for every table: without a width, tables are not wrapped, so that their text is the
# same everywhere and can be searched.
_WIDTH = 400
_GAP = 2  # blanks between columns


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        title: its heading.
        number: whether its cells are numbers (right-aligned).
        wraps: whether its cells are wrapped where a table has a width.
        spare: whether it is left out, the last such column first, where a table has a width that
            it would not fit otherwise.
    """

    title: str
    number: bool = False
    wraps: bool = False
    spare: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under headings, with an optional footer row and a caption above."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    footer: tuple[str, ...] = ()


def table_of(
    records: Iterable[Record],
    *columns: tuple[Column, Callable[[Record], str | int | None]],
    title: str = "",
    footer: tuple[str, ...] = (),
) -> Table:
    """Return a table with one row per record.

    Args:
        records: what the rows show.
        columns: each with what it shows of a record: words, or a number (see `count`).
        title, footer: as of `Table`.
    """
    shown = [[cell(record) for _, cell in columns] for record in records]
    rows = (tuple(each if isinstance(each, str) else count(each) for each in row) for row in shown)
    return Table(tuple(column for column, _ in columns), tuple(rows), title, footer)


def _used_columns(table: Table) -> list[int]:
    """Return the indices of the columns that are not empty; empty ones are not drawn."""
    rows = [*table.rows, *([table.footer] if table.footer else [])]
    return [i for i in range(len(table.columns)) if not rows or any(row[i] for row in rows)]


def _fitting(table: Table, columns: list[int], width: int) -> list[int]:
    """Return the columns that are drawn in lines of a width: all, or fewer of the spare ones."""
    rows = [[column.title for column in table.columns], *table.rows]
    rows += [table.footer] if table.footer else []
    widths = {i: max(len(row[i]) for row in rows) for i in columns}
    while sum(widths.values()) + _GAP * (len(widths) - 1) > width:
        spare = [i for i in widths if table.columns[i].spare]
        if not spare:
            break
        del widths[spare[-1]]
    return list(widths)


def text(table: Table, width: int | None = None) -> str:
    """Draw a table as plain ASCII lines without trailing spaces.

    Args:
        table: the table.
        width: characters per line: spare columns are left out, columns that may wrap are wrapped,
            and the others are cut if that is not enough; no limit by default.
    """
    columns = _used_columns(table)
    if width is not None:
        columns = _fitting(table, columns, width)
    rich_table = RichTable(
        box=_RULED,
        show_edge=False,
        show_footer=bool(table.footer),
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for i in columns:
        column = table.columns[i]
        rich_table.add_column(
            Text(column.title),
            justify="right" if column.number else "left",
            footer=Text(plain(table.footer[i])) if table.footer else "",
            no_wrap=width is None or not column.wraps,
            overflow="fold" if column.wraps else "crop",
        )
    for row in table.rows:
        rich_table.add_row(*(Text(plain(row[i])) for i in columns))
    stream = io.StringIO()
    # In a notebook, rich would display the table itself and write nothing.
    console = Console(
        file=stream,
        width=width or _WIDTH,
        color_system=None,
        force_terminal=False,
        force_jupyter=False,
    )
    console.print(rich_table)
    lines = [line.rstrip() for line in stream.getvalue().rstrip("\n").split("\n")]
    return "\n".join([plain(table.title), "", *lines] if table.title else lines)


def wrapped(lines: Iterable[str], width: int, indent: str = "    ") -> list[str]:
    """Wrap lines to a width; paths and other long words are kept whole.

    Args:
        lines: the lines, whose own indentation is kept.
        width: characters per line.
        indent: what the second and later lines of each begin with.
    """
    return [
        piece
        for line in lines
        for piece in textwrap.wrap(
            plain(line.replace("\n", " ")),
            width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        or [""]
    ]


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV with a header line; None becomes an empty cell, and no text a formula."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if cell is None else csv_cell(cell) for cell in row] for row in rows)
    return stream.getvalue()


def frame_csv(frame: DataFrame) -> str:
    """Return a data frame as CSV, its texts as `csv_text` has them."""
    texts = {
        name: frame[name].map(csv_cell, na_action="ignore")
        for name in frame.select_dtypes(["object", "string"])
    }
    return str(frame.assign(**texts).to_csv(index=False, lineterminator="\n"))


def count(value: int | None) -> str:
    """Format an integer with thousands separators; empty for None."""
    return "" if value is None else f"{value:,}"


def milliseconds(value: float | None) -> str:
    """Format a time in ms with two decimals, like published ones; empty for None."""
    return "" if value is None else f"{value:.2f}"


def ratio(numerator: float | None, denominator: float | None, digits: int = 2) -> str:
    """Format a quotient; empty if either is missing or the denominator is zero."""
    if numerator is None or not denominator:
        return ""
    return f"{numerator / denominator:.{digits}f}"


def percent(part: float | None, whole: float | None) -> str:
    """Format a share in percent; empty if either is missing or the whole is zero."""
    return ratio(None if part is None else 100 * part, whole, 1)


def short_source(name: str) -> str:
    """Shorten a name from a source file for a table (JSON and CSV have the full name).

    Converters join the names of all operators they merged with ``;``; the first one is the most
    informative.
    """
    first = name.split(";")[0]
    return first if len(first) <= 32 else f"...{first[-29:]}"
