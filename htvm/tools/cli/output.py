"""Output of verbs: reports on the terminal, JSON on stdout for programs, arrays in files."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from htvm.files import write_whole
from htvm.tools.cli.terminal import echo, terminal_width

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from htvm.tools.report.difference import Condition
    from htvm.tools.report.types import Report

SCHEMA = 1
"""Version of the ``--json`` output: raised when a field is removed or changes its meaning."""


_LONG = 32  # longer names of models are not repeated in the next command


def model_word(model: str) -> str:
    """Return the model as it is typed in the next command; ``MODEL`` for a long or strange path."""
    word = shlex.quote(model)
    return word if len(word) <= _LONG and word.isprintable() else "MODEL"


def print_json(kind: str, data: Mapping[str, Any]) -> None:
    """Print an object with ``schema`` (`SCHEMA`), ``kind`` and the fields of ``data``.

    Args:
        kind: what is described: the verb's name.
        data: values that JSON can hold.
    """
    echo(json.dumps({"schema": SCHEMA, "kind": kind, **data}, indent=2))


def print_report(report: Report, everything: bool, wide: bool, hint: str) -> None:
    """Print the first screen of a report, as wide as the terminal, or all of its tables.

    Args:
        report: what to print.
        everything: print all tables, as wide as the terminal.
        wide: print all tables with all columns, in lines as long as they need.
        hint: the last line of the first screen: what to type for more.
    """
    from htvm.tools.report.layers import report_text
    from htvm.tools.report.screen import screen_text

    if everything or wide:
        echo(report_text(report, None if wide else terminal_width()))
        if not wide:
            echo("\nall columns: --wide")
    else:
        echo(screen_text(report, terminal_width(), hint))


def fail_if_any(
    conditions: Sequence[Condition],
    figures: Mapping[str, float | None],
    before: Mapping[str, float | None] | None = None,
) -> None:
    """End with exit code 1, after saying which of the conditions are met, if any is.

    Args:
        conditions: those of ``--fail-if``.
        figures: of the report.
        before: of the earlier report, for conditions in percent.

    Raises:
        InputError: a report lacks a figure.
    """
    met = [each for each in conditions if each.holds(figures, before)]
    for each in met:
        echo(f"htvm: {each.text}: {each.figure} is {figures[each.figure]:,}", err=True)
    if met:
        raise click.exceptions.Exit(1)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the file's suffix, or nothing at all.

    Raises:
        ExportError: the file cannot be written.
    """
    from htvm.tools.plots.bars import picture

    data = picture(figure, path.suffix[1:].lower(), dpi=150)
    write_whole(path, data, "the figure", f"--out {path}")


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays to an .npz file of exactly this name, or nothing at all.

    Raises:
        ExportError: the file cannot be written.
    """
    stream = io.BytesIO()
    np.savez(stream, **dict(arrays))
    write_whole(path, stream.getvalue(), "the outputs", f"--out {path}")
