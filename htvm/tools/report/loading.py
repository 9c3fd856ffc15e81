"""Reading reports saved as JSON, and their JSON schema."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from htvm.errors import ExportError, InputError
from htvm.files import is_pipe
from htvm.public import boundary
from htvm.tools.report.save import KIND, SCHEMA
from htvm.tools.report.types import Report

if TYPE_CHECKING:
    from htvm.tools.report.sweep import Exploration

Kind = TypeVar("Kind")


@boundary
def load(path: str | Path) -> Report:
    """Read a report saved as ``.json``.

    Raises:
        InputError: the file cannot be read, is not a report, has a field of a wrong type, or has a
            newer schema than this version of the library knows.
    """
    where = f"file '{path}'"
    data = _checked(_document(Path(path), where), where)
    hint = f"the fields are those of schema {SCHEMA} (htvm.report.schema())"
    report = _converted(data, Report, "this is not a report", where, hint)
    objection = _contradiction(report)
    if objection:
        raise InputError(
            f"this report contradicts itself: {objection}",
            where=where,
            hint="give a report as it was saved",
        )
    return report


@boundary
def load_exploration(path: str | Path) -> Exploration:
    """Read what `Exploration.save` wrote.

    Raises:
        InputError: the file cannot be read, or is no exploration.
    """
    from htvm.tools.report.sweep import Exploration

    where = f"file '{path}'"
    data = _document(Path(path), where)
    hint = "give a file that `Exploration.save` or `htvm explore --out` wrote"
    return _converted(data, Exploration, "this is no exploration", where, hint)


def plain(report: Report) -> dict[str, Any]:
    """Return a report as plain values of JSON, from which `from_plain` makes an equal one."""
    # Convert values as reading will: in a float field, 256 becomes 256.0.
    same = msgspec.convert(msgspec.to_builtins(report), Report)
    return cast("dict[str, Any]", msgspec.to_builtins(same))


def from_plain(data: Mapping[str, Any], where: str) -> Report:
    """Return the report that `plain` was given.

    Raises:
        ExportError: the values are no report; ``where`` is where they come from.
    """
    try:
        return msgspec.convert(data, Report)
    except msgspec.ValidationError as error:
        raise ExportError(
            f"the export's description is damaged: {str(error)[:200]}",
            where=where,
            hint="export the model again",
        ) from error


def _converted(data: Any, kind: type[Kind], what: str, where: str, hint: str) -> Kind:
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{what}: {str(error)[:200]}", where=where, hint=hint) from error


def _contradiction(report: Report) -> str:
    """Return why figures could not be drawn from a report; empty if they can."""
    summary, steps = report.summary, len(report.layers)
    if summary.clock_hz <= 0:
        return f"a clock of {summary.clock_hz} Hz"
    if summary.cycles is not None and summary.cycles <= 0:
        return f"{summary.cycles} cycles"
    for entry in report.maps:
        for block in entry.blocks:
            if not 0 <= block.first <= block.last < steps:
                return f"'{block.name}' lives from step {block.first} to {block.last} of {steps}"
            if block.offset < 0 or block.bytes < 0 or block.offset + block.bytes > entry.peak:
                return f"'{block.name}' lies outside the {entry.peak} B of {entry.memory}"
    for interval in report.timeline:
        if not 0 <= interval.start <= interval.end:
            return f"'{interval.unit}' works from cycle {interval.start} to {interval.end}"
    return ""


def _document(path: Path, where: str) -> Any:
    hint = "give a report that was saved as .json"
    if is_pipe(path):
        raise InputError("cannot read the report: this is a pipe", where=where, hint=hint)
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:  # an impossible name
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read the report: {reason}", where=where, hint=hint) from error
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError) as error:
        raise InputError("this is not JSON", where=where, hint=hint) from error


def _checked(data: Any, where: str) -> dict[str, Any]:
    """Return the document if it is a report of a known schema."""
    hint = "give a report that was saved as .json"
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise InputError("this JSON is not a report", where=where, hint=hint)
    version = data.get("schema")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise InputError(f"the report's schema is {version!r}", where=where, hint=hint)
    if version > SCHEMA:
        raise InputError(
            f"the report has schema {version}, this version reads up to {SCHEMA}",
            where=where,
            hint="read it with the version of htvm that wrote it, or a newer one",
        )
    return data


@boundary
def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the document."""
    (found,), parts = msgspec.json.schema_components([Report], ref_template="#/$defs/{name}")
    document = parts["Report"]
    document["properties"] |= {"schema": {"const": SCHEMA}, "kind": {"const": KIND}}
    document["required"] = ["schema", "kind", *document["required"]]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found, "$defs": parts}
