"""cppcheck's MISRA C:2012 rules over every golden C file: what is violated, and why.

    python -m benchmarks.misra [--write]

The deviations are in misra.toml, each with its reason.  The table of docs/reference/misra.md counts
them.  cppcheck brings the rules' numbers, not their texts, which are not free.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import tomllib

from byoc_dory.errors import ToolchainError

__all__ = ["GOLDEN", "PAGE", "deviations", "page", "table", "unlisted", "violations"]

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"
PAGE = ROOT / "docs" / "reference" / "misra.md"

_LIST = Path(__file__).with_name("misra.toml")
_RULE = re.compile(r"^misra-c2012-(\d+\.\d+)", re.M)
_UNREAD = re.compile(r"^(?:syntaxError|internalError|preprocessorErrorDirective)\b", re.M)
_FLAGS = (
    "--addon=misra", "--std=c11", "--quiet", "--max-configs=1", "--template={id} {line}",
    "--suppress=missingInclude", "--suppress=missingIncludeSystem",
)  # fmt: skip


def deviations() -> dict[str, str]:
    """Return the reason of each rule that generated C may violate."""
    return tomllib.loads(_LIST.read_text(encoding="utf-8"))


def violations(path: Path) -> Counter[str]:
    """Return how often a C file, with the headers beside it, violates each rule.

    Raises:
        ToolchainError: cppcheck is not installed, or cannot read the file.
    """
    program = shutil.which("cppcheck")
    if program is None:
        raise ToolchainError(
            "cppcheck is not installed", where=path.name, hint="apt-get install cppcheck"
        )
    # cppcheck writes files beside those that it reads.
    with tempfile.TemporaryDirectory() as folder:
        for other in (path, *path.parent.glob("*.h")):
            shutil.copy(other, folder)
        done = subprocess.run(
            [program, *_FLAGS, path.name],
            cwd=folder, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
    if done.returncode != 0 or _UNREAD.search(done.stderr):
        raise ToolchainError(f"cppcheck failed: {done.stderr.strip()}", where=str(path))
    # What else cppcheck says of a file is checked by other tools, which know its headers.
    return Counter(_RULE.findall(done.stderr))


def unlisted(found: Iterable[str]) -> list[str]:
    """Return the rules among those violated that are no deviations, in the standard's order."""
    known = deviations()
    return sorted({rule for rule in found if rule not in known}, key=_order)


def _order(rule: str) -> tuple[int, ...]:
    return tuple(int(part) for part in rule.split("."))


def table(found: Mapping[str, int]) -> str:
    """Return the rows of the page: each deviation with its count."""
    rows = ["| rule | violations | why |", "|---|--:|---|"]
    known = deviations()
    rules = sorted(known, key=_order)
    rows += [f"| {rule} | {found.get(rule, 0):,} | {known[rule]} |" for rule in rules]
    return "\n".join(rows) + "\n"


def page(text: str, rows: str) -> str:
    """Return a page with these rows in place of its table."""
    head, tail = text.split("| rule |", 1)
    rest = tail.split("\n\n", 1)
    return head + rows + ("\n" + rest[1] if len(rest) > 1 else "")


def main() -> None:
    """Print the table, or write it into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    arguments = parser.parse_args()
    total = Counter[str]()
    for path in sorted(GOLDEN.rglob("*.c")):
        found = violations(path)
        for rule in unlisted(found):
            sys.stderr.write(f"{path.relative_to(ROOT)}: {found[rule]} of rule {rule}\n")
        total += found
    if arguments.write:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(page(text, table(total)), encoding="utf-8")
    else:
        sys.stdout.write(table(total))
    sys.exit(bool(unlisted(total)))


if __name__ == "__main__":
    main()
