"""`Store`: the results of a sweep on the disk, appended as they come.

While a sweep runs, ``NAME.part`` beside the results file has one JSON object per line: first what
the sweep is, then one line for each row.  A line that a crash cut off is dropped when the sweep
goes on.  At the end the rows are written in order to the results file, whole or not at all, and the
other one is removed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byoc_dory.errors import ExportError
from htvm.files import write_whole
from htvm.shown import optional
from htvm.tools.report.table import frame_csv
from htvm.tools.sweeping.row import Row

if TYPE_CHECKING:
    from pandas import DataFrame

SCHEMA = 1
SUFFIXES = (".parquet", ".csv")
_KEY = b"htvm.sweep"
_FREE = "make room or permit writing, and start the same sweep again: it goes on from there"


def fingerprint(what: Mapping[str, Any]) -> str:
    """Return a digest of everything that the results of a sweep depend on."""
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def check_results(path: str | Path | None) -> None:
    """Refuse a results file of a format that there is not.

    Raises:
        DependencyError: the format needs pyarrow.
        ExportError: the file has another suffix.
    """
    if path is None:
        return
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        raise ExportError(
            f"results cannot be written as {suffix or 'a file without suffix'}",
            where=str(path),
            hint=f"name a file that ends in {' or '.join(SUFFIXES)}",
        )
    if suffix == ".parquet":
        optional("pyarrow", "results in Parquet", "sweep")


class Store:
    """The results file of one sweep.

    Args:
        path: the results file, ``.parquet`` or ``.csv``; None to keep rows in memory only.
        digest: from `fingerprint`.
        names: the swept parameters.

    Raises:
        DependencyError: the format needs pyarrow.
        ExportError: the file has another suffix, cannot be read or written, or holds the results of
            another sweep.
    """

    def __init__(self, path: str | Path | None, digest: str, names: tuple[str, ...]) -> None:
        self.path = None if path is None else Path(path)
        self.rows: dict[tuple[int, str], Row] = {}
        self._digest = digest
        self._names = names
        self._part: Any = None
        if self.path is None:
            return
        check_results(self.path)
        self._refuse_others()
        self._open()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        if self._part is not None:
            self._part.close()
            self._part = None

    @property
    def _partial(self) -> Path:
        assert self.path is not None
        return self.path.with_name(self.path.name + ".part")

    # ------------------------------------------------------------------ before the sweep

    def _refuse_others(self) -> None:
        """Refuse a results file of another sweep; one of this sweep is replaced at the end."""
        assert self.path is not None
        if not self.path.exists():
            return
        if self.path.suffix == ".csv":
            digest = self._csv_digest()
        else:
            parquet = optional("pyarrow.parquet", "results in Parquet", "sweep")
            try:
                digest = (parquet.read_schema(self.path).metadata or {}).get(_KEY, b"").decode()
            except (OSError, ValueError) as error:
                raise self._unreadable(error) from error
        if digest != self._digest:
            raise ExportError(
                "the file has the results of another sweep" if digest else "the file is no sweep's",
                where=str(self.path),
                hint="name another file, or move this one away; nothing was changed",
            )

    def _csv_digest(self) -> str:
        assert self.path is not None
        try:
            with self.path.open(encoding="utf-8") as file:
                head = file.readline().split()
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error
        return head[2] if len(head) == 3 and head[:2] == ["#", _KEY.decode()] else ""

    def _unreadable(self, error: Exception) -> ExportError:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0][:100]
        return ExportError(
            f"the results file cannot be read: {reason}",
            where=str(self.path),
            hint="name another file, or move this one away; nothing was changed",
        )

    def _open(self) -> None:
        """Read the rows of an earlier run of this sweep, and open their file for more."""
        head = {"htvm_sweep": SCHEMA, "digest": self._digest}
        try:
            data = self._partial.read_bytes() if self._partial.exists() else b""
        except OSError as error:
            raise self._unreadable(error) from error
        complete_lines = data[: data.rfind(b"\n") + 1]
        lines = complete_lines.splitlines()
        if lines:
            self._read(lines, head)
        elif data and not json.dumps(head).encode().startswith(data):
            raise self._not_ours()
        try:
            self._partial.parent.mkdir(parents=True, exist_ok=True)
            self._part = self._partial.open("ab")
            self._part.truncate(len(complete_lines))
            if not complete_lines:
                self._append(head)
        except OSError as error:
            raise self._unwritable(error) from error

    def _read(self, lines: list[bytes], head: dict[str, Any]) -> None:
        try:
            found = json.loads(lines[0])
            if found != head:
                raise self._not_ours()
            for line in lines[1:]:
                row = Row.of(json.loads(line), self._names)
                self.rows[row.design, row.model] = row
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise self._not_ours() from error

    def _not_ours(self) -> ExportError:
        return ExportError(
            "the file has the results of another sweep, which was not finished",
            where=str(self._partial),
            hint="finish that one, name another file, or move this one away; nothing was changed",
        )

    def _unwritable(self, error: OSError) -> ExportError:
        return ExportError(
            f"cannot write the results: {error.strerror or error}; what was written stays",
            where=str(self._partial),
            hint=_FREE,
        )

    # ------------------------------------------------------------------ during the sweep

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows; they are on the disk when this returns.

        Raises:
            ExportError: the file cannot be written; rows written before are kept.
        """
        for row in rows:
            self.rows[row.design, row.model] = row
            if self._part is not None:
                try:
                    self._append(row.record)
                except OSError as error:
                    raise self._unwritable(error) from error

    def _append(self, record: Mapping[str, Any]) -> None:
        self._part.write(json.dumps(record).encode() + b"\n")
        self._part.flush()
        os.fsync(self._part.fileno())

    # ------------------------------------------------------------------ after the sweep

    def finish(self, frame: DataFrame) -> None:
        """Write the results file, the same bytes for the same frame, and remove the other one.

        Raises:
            ExportError: it cannot be written; the rows stay where they are.
        """
        if self.path is None:
            return
        stream = io.BytesIO()
        if self.path.suffix == ".csv":
            stream.write(f"# {_KEY.decode()} {self._digest}\n".encode())
            stream.write(frame_csv(frame).encode())
        else:
            arrow = optional("pyarrow", "results in Parquet", "sweep")
            parquet = optional("pyarrow.parquet", "results in Parquet", "sweep")
            table = arrow.Table.from_pandas(frame, preserve_index=False)
            metadata = {**(table.schema.metadata or {}), _KEY: self._digest.encode()}
            parquet.write_table(table.replace_schema_metadata(metadata), stream)
        write_whole(self.path, stream.getvalue(), "the results", str(self.path))
        self.__exit__()
        self._partial.unlink(missing_ok=True)
