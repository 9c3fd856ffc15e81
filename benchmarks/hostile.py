"""Files that ask for gigabytes or minutes, or end readers: what confined verbs answer.

    python -m benchmarks.hostile [FOLDER] [--write docs/guides/strangers-files.md]

Each file is given to ``htvm --confined run``, and once more with budgets that no file exceeds, so
that the kernel's limits have to do.  Seconds are processor time, and MB the largest peak, of all
processes.  The files are no part of this project.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from htvm.frontend.limits import Limits

__all__ = ["FOLDER", "Answer", "answers"]

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "models" / "hostile"
ALLOWED = ("memory_bytes=1G", "cpu_seconds=4")
MOST_SECONDS, MOST_BYTES = 10, 10**9

_MARKS = ("<!-- hostile -->", "<!-- /hostile -->")
_PREFIX = "htvm: error: "
_REFUSED = (2, 3, 124, 152)  # exit codes of errors that have a type
_LONGEST = 110


@dataclass(frozen=True)
class Answer:
    """What became of a file.

    Attributes:
        file: its name.
        file_bytes: its size.
        raised: whether the budgets of reading were raised.
        code: the exit code.
        said: the last error message, without where and hint.
        seconds: of processor time.
        peak_bytes: of the largest process.
    """

    file: str
    file_bytes: int
    raised: bool
    code: int
    said: str
    seconds: float
    peak_bytes: int

    @property
    def is_fine(self) -> bool:
        """Whether it is an error with a type, soon, and with little memory."""
        soon = self.seconds <= MOST_SECONDS and self.peak_bytes <= MOST_BYTES
        return self.code in _REFUSED and soon


def answers(folder: Path) -> Iterator[Answer]:
    """Yield the answers for each file of a folder, without and with raised budgets."""
    files = [path for path in folder.iterdir() if path.suffix in (".onnx", ".tflite")]
    for path in sorted(files):
        for raised in (False, True):
            yield _answer(path, raised)


def _answer(path: Path, raised: bool) -> Answer:
    allowed = [word for each in ALLOWED for word in ("--allow", each)]
    limits = [w for each in fields(Limits) for w in ("--limit", f"{each.name}=1000000G")]
    line = [sys.executable, "-m", "htvm", "--confined", *allowed, "run", str(path)]
    process = subprocess.Popen(
        [*line, *limits] if raised else line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    lines = process.stderr.read().decode("utf-8", "replace").splitlines()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    said = [line.removeprefix(_PREFIX) for line in lines if line.startswith(_PREFIX)]
    return Answer(
        path.name, path.stat().st_size, raised, process.returncode,
        said[-1].partition(";")[0] if said else "",
        used.ru_utime + used.ru_stime, used.ru_maxrss * 1024,
    )  # fmt: skip


def table(found: list[Answer]) -> str:
    """Return the answers as a table in Markdown."""
    lines = ["| file | B | budgets | seconds | MB | answer |", "|---|--:|---|--:|--:|---|"]
    for each in found:
        said = each.said if len(each.said) <= _LONGEST else f"{each.said[:_LONGEST]}..."
        size = f"{each.file_bytes:,}"
        budgets = "raised" if each.raised else "default"
        seconds, peak = f"{each.seconds:.1f}", f"{each.peak_bytes / 1e6:,.0f}"
        lines.append(f"| {each.file} | {size} | {budgets} | {seconds} | {peak} | {said} |")
    return "\n".join(lines)


def main() -> int:
    """Print the table, and write it if asked; the result is 1 if an answer is not fine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--write", type=Path, help="page that has the table between two marks")
    arguments = parser.parse_args()
    if not arguments.folder.is_dir():
        print(f"there is no folder {arguments.folder}: nothing is measured", file=sys.stderr)
        return 0
    found = list(answers(arguments.folder))
    text = table(found)
    if arguments.write is not None:
        page = arguments.write.read_text(encoding="utf-8")
        before, _, after = page.partition(_MARKS[0])
        rest = after.partition(_MARKS[1])[2]
        arguments.write.write_text(
            f"{before}{_MARKS[0]}\n{text}\n{_MARKS[1]}{rest}", encoding="utf-8"
        )
    print(text, *(f"not fine: {each}" for each in found if not each.is_fine), sep="\n")
    return int(not all(each.is_fine for each in found))


if __name__ == "__main__":
    sys.exit(main())
