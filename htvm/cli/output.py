"""What verbs hand over to programs: JSON on stdout, arrays in files."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from htvm.errors import ExportError

__all__ = ["SCHEMA", "print_json", "save_arrays"]

SCHEMA = 1
"""Version of what ``--json`` prints: raised when a field goes or changes its meaning."""


def print_json(kind: str, data: Mapping[str, Any]) -> None:
    """Print an object with ``schema`` (`SCHEMA`), ``kind`` and the fields of ``data``.

    Args:
        kind: what is described; the verb's name.
        data: what JSON can hold.
    """
    click.echo(json.dumps({"schema": SCHEMA, "kind": kind, **data}, indent=2))


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays to an .npz file of exactly this name, or nothing at all.

    Raises:
        ExportError: it cannot be written.
    """
    hint = "name a file in a folder that exists and is writable"
    try:
        # The file a link points to, not the link.
        place = path.resolve()
        if place.exists() and not place.is_file():
            # A folder, or a device, which the move below would replace.
            raise ExportError(
                "cannot write the outputs: this is no file", where=f"--out {path}", hint=hint
            )
        with tempfile.TemporaryDirectory(prefix=".htvm-", dir=place.parent) as folder:
            partial = Path(folder) / "outputs.npz"
            with partial.open("wb") as stream:
                np.savez(stream, **dict(arrays))  # type: ignore[arg-type]
            partial.replace(place)
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, an impossible name
        reason = getattr(error, "strerror", None) or str(error)
        raise ExportError(
            f"cannot write the outputs: {reason}", where=f"--out {path}", hint=hint
        ) from error
