"""Output of verbs: reports on the terminal, JSON on stdout for programs, arrays in files.

Files and folders to write are checked before anything is opened or built.
"""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from htvm.errors import ExportError
from htvm.files import check_file, check_folder, write_whole
from htvm.shown import optional
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


def answer(
    as_json: bool, kind: str, data: Callable[[], Mapping[str, Any]], text: Callable[[], str]
) -> None:
    """Print a verb's answer: ``data`` as `print_json` does, or ``text``."""
    if as_json:
        print_json(kind, data())
    else:
        echo(text())


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


_KINDS = {".npz": "an .npz file", ".onnx": "an ONNX file"}
_FILES = frozenset(
    ".c .csv .h .html .json .npy .npz .onnx .parquet .pdf .png .svg .tar .tflite .txt .zip".split()
)
_PICTURES = (".png", ".svg", ".pdf")


class _Named(click.Path):
    """A path that is not empty: that would be the current folder, as of a variable not set."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            self.fail("the name is empty", param, ctx)
        return super().convert(value, param, ctx)


PATH = _Named(path_type=Path)
"""The type of an option or argument that names a file or folder."""

_Callback = Callable[[click.Context, click.Parameter, Any], Any]


def file_to_write(what: str, suffix: str = "") -> _Callback:
    """Return a callback for an option that names one or several files to write.

    Args:
        what: a description for messages, e.g. "the report".
        suffix: how the name must end, if the verb writes one format; the callback refuses others
            with an `ExportError`.
    """

    def check(_context: click.Context, option: click.Parameter, given: Any) -> Any:
        for path in _each_path(given):
            check_file(path, what, f"{_name(option)} {path}")
            if suffix and path.suffix.lower() != suffix:
                raise ExportError(
                    f"'{path.name}' is not the name of {_KINDS[suffix]}, which is what is written",
                    where=_name(option),
                    hint=f"end it with {suffix}",
                )
        return given

    return check


def folder_to_write(_context: click.Context, option: click.Parameter, given: Any) -> Any:
    """Check an option that names a folder, which is made if it does not exist.

    Raises:
        ExportError: it cannot be written, or its name is that of a file.
    """
    for path in _each_path(given):
        refuse_file_name(path, _name(option))
        check_folder(path, f"{_name(option)} {path}")
    return given


def refuse_file_name(path: Path, where: str) -> None:
    """Refuse a new folder that would be called like a file.

    Raises:
        ExportError: its suffix is that of a kind of file that this program reads or writes.
    """
    if path.suffix.lower() in _FILES and not path.exists():
        raise ExportError(
            f"'{path.name}' is the name of a file, and a folder is written",
            where=where,
            hint="name a folder, without the suffix",
        )


def picture_to_write(context: click.Context, option: click.Parameter, given: Path | None) -> Any:
    """Check an option that names a picture to draw, and that it can be drawn.

    Raises:
        ExportError: its suffix is not one of a picture, or it cannot be written.
        DependencyError: matplotlib is not installed.
    """
    if given is None:
        return None
    if given.suffix.lower() not in _PICTURES:
        raise ExportError(
            f"'{given}' does not say which kind of picture to draw",
            where=_name(option),
            hint=f"end the name with {', '.join(_PICTURES)}",
        )
    optional("matplotlib.figure", "figures")
    return file_to_write("the figure")(context, option, given)


def _each_path(given: Any) -> tuple[Path, ...]:
    return () if given is None else (given,) if isinstance(given, Path) else tuple(given)


def _name(option: click.Parameter) -> str:
    """Return the long name of an option."""
    return max(option.opts, key=len)
