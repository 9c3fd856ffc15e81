"""Results at home in notebooks: rows as a table, plain values, and a data frame."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from byoc_dory.errors import DependencyError
from byoc_dory.plain import plain
from htvm.public import boundary

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_ROWS = 60
_STYLE = "border-collapse: collapse; font-size: 12px"
_CELL = "padding: 2px 8px; border-bottom: 1px solid #8884"


def optional(module: str, purpose: str, extra: str = "explore") -> Any:
    """Import a module of an extra.

    Raises:
        DependencyError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise DependencyError(
            f"{purpose} need the package '{module.split('.')[0]}', which is not installed",
            where=f"results of htvm.{extra}",
            hint=f"pip install 'htvm[{extra}]'",
        ) from error


@boundary
class Shown:
    """A result that has rows; subclasses say which (`_rows`)."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        boundary(cls)

    def _rows(self) -> tuple[object, ...]:
        """Return the rows, each a dataclass."""
        raise NotImplementedError

    @property
    def records(self) -> list[dict[str, Any]]:
        """The rows as plain values by name; parts of a field have names like ``causes.array``."""
        return [dict(_plain(row, "")) for row in self._rows()]

    @property
    def frame(self) -> DataFrame:
        """The rows as a pandas data frame, one column per value.

        Raises:
            DependencyError: pandas is not installed.
        """
        return optional("pandas", "data frames").DataFrame(self.records)

    def _repr_html_(self) -> str:
        """The first line of the text, and the rows as a table, for notebooks."""
        head = str(self).split("\n", 1)[0]
        return f"<b>{escape(head)}</b>{self._table_html()}"

    def _table_html(self) -> str:
        """Return the rows as a table without empty columns; long ones are cut, which is said."""
        records = self.records
        names = [
            name
            for name in dict.fromkeys(name for record in records for name in record)
            if any(record.get(name) not in (None, "") for record in records)
        ]
        head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in names)
        body = "".join(
            f"<tr>{''.join(_cell(record.get(name)) for name in names)}</tr>"
            for record in records[:_MOST_ROWS]
        )
        left = len(records) - _MOST_ROWS
        more = f"<p>{left} more rows: <code>.frame</code> has all</p>" if left > 0 else ""
        return (
            f'<div style="overflow-x: auto"><table style="{_STYLE}"><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>{more}"
        )


def _plain(row: Any, before: str) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of a dataclass that are numbers, words or nothing."""
    for field in fields(row):
        value, name = getattr(row, field.name), f"{before}{field.name}"
        if value is None or isinstance(value, bool | int | float | str):
            yield name, value
        elif is_dataclass(value):
            yield from _plain(value, f"{name}.")
        elif isinstance(value, Iterable) and all(isinstance(part, str) for part in value):
            yield name, ", ".join(value)


def _cell(value: Any) -> str:
    if value is None:
        return f'<td style="{_CELL}"></td>'
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f'<td style="{_CELL}; text-align: left">{escape(plain(str(value)))}</td>'
    words = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    return f'<td style="{_CELL}; text-align: right">{words}</td>'
