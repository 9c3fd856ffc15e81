"""How long files take to load here and in another checkout, in turn.

    python -m benchmarks.load_pairs CHECKOUT FILE... [--rounds 3]

Each round loads every file eight times in a process of each checkout, whose paths come first; the
least processor time of all rounds counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click

__all__ = ["least"]

HERE = Path(__file__).resolve().parents[1]

_LOAD = """
import json, logging, sys, time
import htvm, tvm.relax
logging.disable(logging.CRITICAL)
found = {}
for path in sys.argv[1:]:
    htvm.load(path)
    times = []
    for _ in range(8):
        start = time.process_time()
        htvm.load(path)
        times.append(time.process_time() - start)
    found[path] = min(times)
print(json.dumps(found))
"""


def least(checkout: Path, files: list[str]) -> dict[str, float]:
    """Return the least processor time in seconds of loading each file with a checkout's code.

    Raises:
        subprocess.CalledProcessError: a file cannot be loaded.
    """
    done = subprocess.run(
        [sys.executable, "-c", _LOAD, *files],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return dict(json.loads(done.stdout))


@click.command()
@click.argument("checkout", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, resolve_path=True))
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
def main(checkout: Path, files: tuple[str, ...], rounds: int) -> None:
    """Compare loading FILES here with loading them in CHECKOUT."""
    before, now = dict[str, float](), dict[str, float]()
    for _ in range(rounds):
        for folder, found in ((checkout.resolve(), before), (HERE, now)):
            for path, seconds in least(folder, list(files)).items():
                found[path] = min(seconds, found.get(path, seconds))
    for path in files:
        change = 100 * (now[path] / before[path] - 1)
        click.echo(f"{before[path] * 1e3:8.1f} {now[path] * 1e3:8.1f} ms {change:+6.1f} %  {path}")


if __name__ == "__main__":
    main()
