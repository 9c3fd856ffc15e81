"""Files and folders to write, checked before anything is opened or built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from htvm.errors import ExportError
from htvm.files import check_file, check_folder
from htvm.shown import optional

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
        for path in _each(given):
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
    for path in _each(given):
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


def _each(given: Any) -> tuple[Path, ...]:
    return () if given is None else (given,) if isinstance(given, Path) else tuple(given)


def _name(option: click.Parameter) -> str:
    """Return the long name of an option."""
    return max(option.opts, key=len)
