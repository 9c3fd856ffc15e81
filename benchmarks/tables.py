"""The committed tables and printed pages: what makes each, how long it takes, which are stale.

    python -m benchmarks.tables             every table, its command and its minutes
    python -m benchmarks.tables --check     names those that are stale, with what shows it
    python -m benchmarks.tables --stale     the same, then makes them anew

Names restrict all three.  Two processes check a row of every table early and quick tables first;
a table is done with its first stale row.  What was found is kept: a check that was interrupted goes
on where it stopped, as long as the code stays.  A table that was made is written with its digests
at once.  In the end, pages that quote tables are written.
"""

from __future__ import annotations

import hashlib
import importlib
import multiprocessing
import shlex
import signal
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click

from benchmarks.made_of import RowSource, recorded
from benchmarks.results import BENCHMARKS
from htvm.errors import DependencyError, ToolchainError
from htvm.progress import Progress
from htvm.progress_bar import shown_progress
from htvm.stage_cache import StageCache
from htvm.tools.cli.app import exit_code
from tests.docs.outputs import PAGES, QUOTING

__all__ = ["TABLES", "Part", "Table", "Verdict", "checked", "parts_of", "verdict"]

_ROOT = Path(__file__).parents[1]
_PROCESSES = 2
_CODE = ("benchmarks", "byoc_dory", "htvm", "patterns", "runtime_c")


@dataclass(frozen=True)
class Table:
    """A committed table, or a page with printed outputs.

    Attributes:
        name: of the table, or of the page's file.
        minutes: of processor time that its command takes, with empty caches.
        command: what ``python -m`` makes it with; words in capitals have to be given.
        module: says what it is made of, row by row; empty if nothing does.
        check: what ``python -m`` compares the whole with, and fails if it is stale.
    """

    name: str
    minutes: float
    command: str
    module: str = ""
    check: str = ""

    def rows(self) -> Iterator[RowSource]:
        """What it is made of."""
        if self.module:
            yield from importlib.import_module(self.module).made_of()

    @property
    def remedy(self) -> str:
        """The command that makes it anew."""
        return f"python -m {self.command}"


@dataclass(frozen=True)
class Part:
    """What is checked at once: a row of a table, or if it has no name, the whole of it."""

    table: str
    row: str = ""


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    Attributes:
        stale: whether the table has to be made anew.
        said: why, or why it cannot be told here; empty if it is fresh.
    """

    stale: bool = False
    said: str = ""


_MINUTES = {
    "table_i": 4, "table_ii": 0.5, "fig2": 0.5, "fig4": 0.5, "fig5": 0.5, "tiling": 3, "digits": 3,
    "predicted": 4, "step_costs": 8, "snitch_table_i": 4, "siracusa": 1, "siracusa_units": 0.5,
    "siracusa_l1": 10, "llama": 10, "dla": 1, "dla_balance": 3, "boards": 4,
}  # fmt: skip
TABLES = (
    *(
        Table(name, _MINUTES[name], f"benchmarks.results --only {name}", f"benchmarks.{name}")
        for name in BENCHMARKS
    ),
    Table(
        "tflm", 12, "benchmarks.tflm SOURCES", "benchmarks.tflm.__main__"
    ),
    Table("peers", 5, "benchmarks.peers", "benchmarks.peers.__main__"),
    Table("estimators", 6, "benchmarks.estimators", "benchmarks.estimators.__main__"),
    Table(
        "exporter-cases", 2, "benchmarks.exporters.cases --write docs/exporter-cases.md",
        "benchmarks.exporters.cases",
    ),
    Table(
        "exporter-cores", 3, "benchmarks.exporters.cores --write docs/exporter-cores.md",
        "benchmarks.exporters.cores",
    ),
    Table(
        "mutations", 10, "benchmarks.mutations --seed 17 --write docs/mutations.md",
        "benchmarks.mutations",
    ),
    Table(
        "onnx-cases", 3, "benchmarks.onnx_cases --write docs/onnx-cases.md",
        check="pytest -qq -rfs -m '' tests/benchmarks/test_onnx_cases.py",
    ),
    Table(
        "operators", 1, "benchmarks.operators_page --write",
        check="pytest -qq -rfs -m '' tests/docs/test_operators_page.py",
    ),
    Table(
        "exporters", 8, "benchmarks.exporters --write docs/exporters.md",
        check="pytest -qq -rfs -m '' tests/benchmarks/test_exporters.py",
    ),
    *(
        Table(page, 1, f"tests.docs.outputs {page}", check=f"tests.docs.outputs --check {page}")
        for page in (*QUOTING, *PAGES)
    ),
    Table("large", 10, "benchmarks.large --out docs/results"),
    Table("retarget_time", 7, "benchmarks.retarget_time --out docs/results"),
    Table("load_time", 5, "benchmarks.load_time --out docs/results"),
    Table("passes", 1, "benchmarks.passes --out docs/results"),
    Table("house", 2, "benchmarks.house --out docs/results"),
)  # fmt: skip
"""Seconds of `large` and what follows are those of a machine, `house` counts one commit, and the
files of `large` come from onnxruntime's quantizer, which rounds otherwise on other machines:
nothing tells when they are stale."""


def parts_of(tables: Sequence[Table]) -> list[Part]:
    """Return what there is to check, by the minutes that have gone into its table by then."""
    found: list[tuple[float, Part]] = []
    for table in tables:
        names = [row.name for row in table.rows()] or ([""] if table.check else [])
        names.sort(key=lambda name: zlib.crc32(name.encode()))  # neighbours are alike
        for number, name in enumerate(names, 1):
            found.append((table.minutes * number / len(names), Part(table.name, name)))
    return [part for _, part in sorted(found, key=lambda each: each[0])]


def checked(
    tables: Sequence[Table], check: Callable[[Part], Verdict], pool: Executor, progress: Progress
) -> Iterator[tuple[Table, list[Verdict]]]:
    """Check tables, two parts at a time.

    Args:
        tables: what to check.
        check: of a part.
        pool: executes it.
        progress: told of parts.

    Yields:
        Each table as soon as a part is stale or all were checked, with verdicts that say something.
    """
    todo = parts_of(tables)
    total, begun = len(todo), 0
    undecided = {table.name: table for table in tables}
    left = Counter(part.table for part in todo)
    found: dict[str, list[Verdict]] = {table.name: [] for table in tables}
    under_way: dict[Future[Verdict], Part] = {}
    while todo or under_way:
        while todo and len(under_way) < _PROCESSES:
            part, begun = todo.pop(0), begun + 1
            if part.table in undecided:
                under_way[pool.submit(check, part)] = part
        names = ", ".join(f"{part.table} {part.row}".rstrip() for part in under_way.values())
        with progress.stage(names, (begun, total)):
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
        for future in [each for each in under_way if each in done]:
            part, verdict = under_way.pop(future), future.result()
            left[part.table] -= 1
            found[part.table] += [verdict] if verdict.said else []
            if part.table in undecided and (verdict.stale or not left[part.table]):
                yield undecided.pop(part.table), found[part.table]


@contextmanager
def _processes() -> Iterator[Executor]:
    """Yield processes that an interrupt ends without a word; TVM's threads survive no fork."""
    context = multiprocessing.get_context("spawn")
    quietly = (signal.SIGINT, signal.SIG_DFL)
    with ProcessPoolExecutor(_PROCESSES, context, signal.signal, quietly) as pool:
        try:
            yield pool
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def verdict(part: Part) -> Verdict:
    """Compare a row with the digest that was recorded, or a whole table with what it says today."""
    table = next(table for table in TABLES if table.name == part.table)
    kept = StageCache.of_user()
    if not part.row:
        key = kept.key(part.table, _digest_of_files((*_CODE, "docs", "tests")))
        return Verdict(*kept.get("table", key, lambda: _outcome(table.check)))
    row = _rows(table)[part.row]
    if not row.is_makeable:
        return Verdict(said=f"{row.name}: {row.needs} is not there")
    known = recorded().get(table.name, {}).get(row.name)
    if known is None:
        return Verdict(True, f"{row.name}: was never made")
    key = kept.key(part.table, part.row, _digest_of_files(_CODE), _state(row.needs))
    try:
        today = kept.get("table", key, row.digest)
    except (DependencyError, ImportError, ToolchainError) as error:
        return Verdict(said=f"{row.name}: {error}")
    if known == today:
        return Verdict()
    return Verdict(True, f"{row.name}: made of {known}, today {today}")


@cache
def _rows(table: Table) -> dict[str, RowSource]:
    return {row.name: row for row in table.rows()}


def _outcome(check: str) -> tuple[bool, str]:
    """Return whether a check fails, and the last line it prints if it does, or if it skips."""
    line = [sys.executable, "-m", *shlex.split(check)]
    done = subprocess.run(line, capture_output=True, text=True, cwd=_ROOT)
    lines = [text for text in f"{done.stderr}\n{done.stdout}".split("\n") if text.strip()]
    failed = done.returncode != 0
    return failed, lines[-1] if lines and (failed or "SKIPPED" in lines[-1]) else ""


@cache
def _digest_of_files(folders: tuple[str, ...]) -> str:
    """Return a digest of the files below folders of the checkout, by names and contents."""
    found = hashlib.sha256()
    for folder in folders:
        for path in sorted((_ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                found.update(f"{path.relative_to(_ROOT)} {content}\n".encode())
    return found.hexdigest()


def _state(needed: Path | str | None) -> str:
    """Return what tells that a file, or one below a folder, is another one today."""
    if not isinstance(needed, Path):
        return str(needed)
    paths = [needed, *sorted(needed.rglob("*"))]
    return " ".join(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in paths)


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--check", is_flag=True, help="Name what is stale.")
@click.option("--stale", "make", is_flag=True, help="Make what is stale anew.")
def main(names: tuple[str, ...], check: bool, make: bool) -> None:
    """List, check or make tables."""
    unknown = set(names) - {table.name for table in TABLES}
    if unknown:
        raise click.UsageError(f"no such table: {', '.join(sorted(unknown))}")
    tables = [table for table in TABLES if not names or table.name in names]
    if not (check or make):
        for table in tables:
            click.echo(f"{table.name:22}{table.minutes:>5g} min  {table.remedy:64}{table.check}")
        return
    stale: list[Table] = []
    code = _digest_of_files(_CODE)
    with shown_progress() as progress, _processes() as pool:
        for table, found in checked(tables, verdict, pool, progress):
            is_stale = any(each.stale for each in found)
            stale += [table] if is_stale else []
            shown = [each for each in found if each.stale] or found[:1]
            more = f" ({len(found)} parts cannot be checked)" if found and not is_stale else ""
            head = f"{table.name}: {'stale' if is_stale else 'fresh'}{more}"
            click.echo("\n  ".join([head, *(each.said for each in shown)]))
    _digest_of_files.cache_clear()
    if _digest_of_files(_CODE) != code:
        raise click.ClickException("the code changed meanwhile, so nothing of this counts: again")
    silent = [table.name for table in tables if not (table.module or table.check)]
    if silent:
        click.echo(f"nothing tells whether these are stale: {', '.join(silent)}")
    stale.sort(key=TABLES.index)
    click.echo(f"stale: {', '.join(table.name for table in stale) or 'none'}")
    if make:
        stale = [table for table in stale if not _made(table)]
        _run(f"tests.docs.outputs {' '.join(QUOTING)}")
    sys.exit(bool(stale))


def _made(table: Table) -> bool:
    """Make a table anew, unless its command needs what nobody has given."""
    if any(word.isupper() for word in table.command.split()):
        click.echo(f"{table.name}: to be made with {table.remedy}")
        return False
    click.echo(f"{table.name}: {table.remedy}, about {table.minutes:g} min")
    _run(table.command)
    return True


def _run(command: str) -> None:
    line = [sys.executable, "-m", *command.split()]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL, cwd=_ROOT)


if __name__ == "__main__":
    sys.exit(exit_code(main, None))
