"""Whether networks are read and built here as another checkout reads and builds them.

    python -m benchmarks.identical CHECKOUT [FILE...] [--target NAME]...

compares each network's digest as it is read, and all generated files of its build for each target,
with the predicted cycles of its steps.  Networks are those of the zoo, or
FILEs.  What is refused must be refused with the same words.  Exit code 1 if anything differs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from htvm import zoo

__all__ = ["NETWORKS", "TARGETS", "digests"]

HERE = Path(__file__).resolve().parents[1]
NETWORKS = (*(f"zoo:{name}" for name in zoo.names()), "zoo:microllama", "zoo:encoder:1")
TARGETS = ("diana.mixed", "siracusa", "snitch_ita", "cortex_m4")
"""Where ternary, 8-bit and multiply-and-shift accelerators, clusters and a core alone are."""

_DIGESTS = """
import hashlib, json, logging, sys
import htvm
from htvm.aot.entry import model_sources
from htvm.build_options import BuildOptions
from htvm.pipeline import compile_model

logging.disable(logging.CRITICAL)
networks, targets = json.loads(sys.argv[1])

def attempt(make):
    try:
        return make()
    except htvm.HtvmError as error:
        return f"{type(error).__name__}: {error}"

def built(model, target):
    program = compile_model(model, target, BuildOptions()).program
    found = hashlib.sha256()
    for name, text in sorted(model_sources(program).items()):
        found.update(f"{name}\\0{text}\\0".encode())
    for step in program.steps:
        found.update(f"{step.predicted_cycles}\\0".encode())
    return found.hexdigest()

for network in networks:
    model = attempt(lambda: htvm.load(network))
    if isinstance(model, str):
        print(json.dumps([network, "", model]), flush=True)
        continue
    print(json.dumps([network, "", model.sha256]), flush=True)
    for target in targets:
        print(json.dumps([network, target, attempt(lambda: built(model, target))]), flush=True)
"""


def digests(
    checkout: Path, networks: Sequence[str], targets: Sequence[str]
) -> dict[tuple[str, str], str]:
    """Return what a checkout makes of networks.

    Args:
        checkout: folder with the project.
        networks: files, or names of the zoo.
        targets: what each is built for.

    Returns:
        ``(network, target)``, and ``(network, "")`` for what is read -> digest, or the error.

    Raises:
        subprocess.CalledProcessError: it ends with an error that is not the project's own.
    """
    done = subprocess.run(
        [sys.executable, "-c", _DIGESTS, json.dumps([list(networks), list(targets)])],
        cwd=checkout,
        # Sets are iterated in an order that this seed decides.
        env={**os.environ, "PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0"},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    rows = (json.loads(line) for line in done.stdout.splitlines())
    return {(network, target): digest for network, target, digest in rows}


@click.command(help=__doc__)
@click.argument("checkout", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("files", nargs=-1, type=click.Path(exists=True, resolve_path=True))
@click.option("--target", "targets", multiple=True, help=f"By default {', '.join(TARGETS)}.")
def main(checkout: Path, files: tuple[str, ...], targets: tuple[str, ...]) -> None:
    """Compare what is read and built here with what CHECKOUT reads and builds."""
    networks = files or NETWORKS
    with ThreadPoolExecutor() as pool:  # of processes, one for each checkout
        before, now = pool.map(
            lambda folder: digests(folder, networks, targets or TARGETS),
            (checkout.resolve(), HERE),
        )
    different = [key for key in now if now[key] != before.get(key)]
    for network, target in different:
        click.echo(f"{network} {target or 'as it is read'}:")
        for digest in (before.get((network, target), "not reached"), now[network, target]):
            click.echo(f"  {digest}")
    refused = sum(": " in digest for digest in now.values())
    click.echo(
        f"{len(now) - len(different)} of {len(now)} the same: {len(networks)} networks, "
        f"{refused} times refused"
    )
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
