"""The file that `htvm explore` writes and ``--tiling`` reads: how a network is to be tiled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec

from byoc_dory.errors import InputError, TargetError
from byoc_dory.options import ScheduleKind, TilingOptions
from htvm.files import write_whole

_KIND = "htvm tiling 1"


class _File(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The contents: objective and schedule as in `TilingOptions`, ``l1`` in bytes."""

    kind: str = msgspec.field(name="format")
    objective: str | None = None
    l1: int | None = None
    schedule: ScheduleKind = "overlapped"
    layers: dict[str, str] = {}


def write_tiling(options: TilingOptions, path: str | Path) -> Path:
    """Write the objective, L1 budget, schedule and the layers' objectives as JSON.

    Raises:
        ExportError: the file cannot be written.
    """
    content = _File(
        kind=_KIND,
        objective=options.objective,
        l1=options.l1_budget,
        schedule=options.schedule,
        layers=dict(options.layers),
    )
    data = msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"
    return write_whole(Path(path), data, "the tiling", str(path))


def read_tiling(path: str | Path) -> TilingOptions:
    """Read what `write_tiling` wrote, or somebody wrote by hand.

    Raises:
        InputError: the file cannot be read, or is no such file.
    """
    where = str(path)
    try:
        found = msgspec.json.decode(Path(path).read_bytes(), type=_File)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"the tiling cannot be read: {said}", where=where, hint="htvm explore --out writes one"
        ) from error
    if found.kind != _KIND:
        raise InputError(f"its format is {found.kind!r}", where=where, hint=f"known is {_KIND!r}")
    try:
        return replace(
            TilingOptions(),
            objective=found.objective,
            l1_budget=found.l1,
            schedule=found.schedule,
            layers=tuple(found.layers.items()),
        )
    except TargetError as error:
        raise InputError(error.what, where=where, hint=error.hint) from error
