"""Output of verbs for other programs: JSON on stdout, arrays in files."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from htvm.files import write_whole

__all__ = ["SCHEMA", "print_json", "save_arrays"]

SCHEMA = 1
"""Version of the ``--json`` output: raised when a field is removed or changes its meaning."""


def print_json(kind: str, data: Mapping[str, Any]) -> None:
    """Print an object with ``schema`` (`SCHEMA`), ``kind`` and the fields of ``data``.

    Args:
        kind: what is described: the verb's name.
        data: values that JSON can hold.
    """
    click.echo(json.dumps({"schema": SCHEMA, "kind": kind, **data}, indent=2))


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays to an .npz file of exactly this name, or nothing at all.

    Raises:
        ExportError: the file cannot be written.
    """
    stream = io.BytesIO()
    np.savez(stream, **dict(arrays))
    write_whole(path, stream.getvalue(), "the outputs", f"--out {path}")
