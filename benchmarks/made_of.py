"""What a table is made of: for each row, a digest of the program that was run and of its cycles.

`docs/results/digests.json` has the digests of the committed tables, table -> row -> digest, written
by whoever writes the table.  A row is stale if it gets another digest today: a changed cost, plan,
kernel or simulator changes the program, its cycles or their prediction.  What stands beside ours,
such as other compilers, takes no part, so that no row needs their installation.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import htvm
from htvm.errors import DefectError, DependencyError, HtvmError, ToolchainError
from htvm.firmware.elf import read_segments
from htvm.inputs import seeded_inputs
from htvm.tools.facts.report import recipe_of

if TYPE_CHECKING:
    from htvm.model import Model
    from htvm.module import Module
    from htvm.result import RunResult

__all__ = ["DIGESTS", "RowSource", "computed", "program", "record", "recorded"]

DIGESTS = Path(__file__).parents[1] / "docs" / "results" / "digests.json"
_ELF = b"\x7fELF"
_LENGTH = 12  # hexadecimal digits that are kept


@dataclass(frozen=True)
class RowSource:
    """A row of a table, or several that are made together.

    Attributes:
        name: the same for equal rows of several tables.
        digest: makes what the row is made of anew, and returns its digest.
        needs: a file, or a package by its name, without which it cannot be made; or ``None``.
    """

    name: str
    digest: Callable[[], str]
    needs: Path | str | None = None

    @property
    def is_makeable(self) -> bool:
        """Whether what it needs is there."""
        if isinstance(self.needs, str):
            return find_spec(self.needs) is not None
        return self.needs is None or self.needs.exists()


def computed(name: str, make: Callable[[], object], needs: str | None = None) -> RowSource:
    """Return a row whose figures come from a function; its result's text is digested."""
    return RowSource(name, lambda: _digest(repr(make())), needs)


def program(
    name: str,
    model: Callable[[], Model],
    target: str,
    *,
    needs: Path | None = None,
    also: Callable[[Module, RunResult], object] | None = None,
    **options: Any,
) -> RowSource:
    """Return a row of a program: its machine code, and predicted and simulated cycles by step.

    Args:
        name: of the network.
        model: returns it.
        target: what it is built for.  Firmware for QEMU is not run; of programs for this machine,
            the C is what counts.
        needs: the network's file, if it may be absent.
        also: returns other figures of the row, whose text is digested, too.
        options: of `htvm.build`.

    Making it raises DependencyError or ToolchainError where something is not installed.
    """

    def digest() -> str:
        try:
            module = htvm.build(model(), target, **options)
        except (DefectError, DependencyError, ToolchainError):
            raise
        except HtvmError as error:  # what a table says of it, too
            return f"{type(error).__name__}, {_digest(error.what)}"
        if module.platform == "host":  # another machine has other machine code
            return recipe_of(module.compiled, "host").program_sha256[:_LENGTH]
        # What is loaded, as the rest of the file names folders of this machine; a linker may load
        # the file's own header, too, which says how long that rest is.
        loaded = read_segments(module.built.path)
        parts: list[object] = [part for part in loaded if not part.data.startswith(_ELF)]
        parts += [step.predicted_cycles for step in module.compiled.program.steps]
        if module.platform == "qemu":
            return _digest(*parts)
        result = module.run(seeded_inputs(module.compiled.source.inputs))
        parts += [(step.name, step.cycles, step.instructions) for step in result.layers]
        parts += [result.causes, also and also(module, result)]
        unit = "instructions" if result.cycles is None else "cycles"
        return f"{result.cycles or result.instructions:,} {unit}, {_digest(*parts)}"

    given = "".join(f", {key}={value}" for key, value in options.items() if isinstance(value, str))
    return RowSource(f"{name} on {target}{given}", digest, needs)


def _digest(*parts: object) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update((part if isinstance(part, bytes) else repr(part).encode()) + b"\0")
    return found.hexdigest()[:_LENGTH]


def recorded(path: Path | None = None) -> dict[str, dict[str, str]]:
    """Return the digests of the committed tables: table -> row -> digest."""
    found: dict[str, dict[str, str]] = json.loads((path or DIGESTS).read_text(encoding="utf-8"))
    return found


def record(table: str, rows: Iterable[RowSource], path: Path | None = None) -> None:
    """Write down what a table is made of, now that it was made.

    Rows that cannot be made here keep their digests, as those of their tables keep their figures.
    """
    path = path or DIGESTS
    made = {row.name: row.digest() if row.is_makeable else None for row in rows}
    # Read afterwards, as another table may have been made meanwhile.
    tables = recorded(path) if path.exists() else {}
    before = tables.get(table, {})
    tables[table] = {name: digest or before.get(name, "") for name, digest in made.items()}
    path.write_text(json.dumps(tables, indent=1, sort_keys=True) + "\n", encoding="utf-8")
