"""Coverage-guided fuzzing of the readers: whatever the bytes, a network is read or refused.

    python -m benchmarks.fuzzing [--of tflite | onnx] [--runs 200000 | --seconds 60] [--keep]

libFuzzer, by the package atheris, changes bytes of files and keeps what reaches code that nothing
reached before.  It begins with ``tests/corpus``, which are files of earlier campaigns, and with
files of each operator, as the tests write them.  Any exception but an error of `htvm.errors` that
blames the file ends it, and so does a file that takes 10 s or 1 GB; the file is kept beside the
message.  ``--keep`` replaces the corpus by the files that reached something new.
"""

from __future__ import annotations

import argparse
import logging
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np

__all__ = ["CORPUS", "READERS", "campaign"]

CORPUS = Path(__file__).parents[1] / "tests" / "corpus"
READERS = ("tflite", "onnx")

_INSTRUMENTED = ("htvm", "htvm.frontend", "patterns")

_SEED = 1
_LONGEST = 4096  # bytes of a file
_LIMITS = (f"-max_len={_LONGEST}", "-timeout=10", "-rss_limit_mb=1024", f"-seed={_SEED}")


def seeds(reader: str, folder: Path) -> None:
    """Write files for each operator into a folder."""
    files = _tflite_seeds() if reader == "tflite" else _onnx_seeds()
    for number, content in enumerate(files):
        if len(content) <= _LONGEST:
            (folder / f"seed_{number}").write_bytes(content)


def _tflite_seeds() -> Iterator[bytes]:
    from tests.frontend.single import CASES

    for case in CASES.values():
        yield case(np.random.default_rng(_SEED)).file()


def _onnx_seeds() -> Iterator[bytes]:
    """A node of each operator beside reals, integers, or a scale and a zero point."""
    from htvm.frontend.onnx.dialect import READERS as DIALECTS
    from tests.frontend.onnxfile import model_of, node

    constants = {
        "k": np.ones((2, 2, 1, 1), np.float32),
        "n": np.ones(4, np.int64),
        "s": np.float32(0.5),
        "z": np.int8(3),
    }
    for op in sorted({op for entry in DIALECTS.values() for op in entry.load().handlers}):
        for operands in ("x", "xk", "xn", "xx", "xsz", "xszksz"):
            used = {name: constants[name] for name in operands if name != "x"}
            made = model_of([node(op, list(operands), "y")], {"x": (1, 2, 4, 4)}, constants=used)
            yield made.SerializeToString()


def read(reader: str, arguments: list[str]) -> None:
    """Fuzz in this process, which libFuzzer ends."""
    import atheris

    logging.disable()
    with atheris.instrument_imports(include=[*_INSTRUMENTED]):
        import htvm
        from htvm.errors import DefectError, HtvmError

        # Many are imported only when they are needed, which would be outside of this block.
        for name in _INSTRUMENTED[1:]:
            for found in pkgutil.walk_packages(import_module(name).__path__, f"{name}."):
                import_module(found.name)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"fuzzed.{reader}"

        def once(content: bytes) -> None:
            path.write_bytes(content)
            try:
                htvm.load(path)
            except DefectError:
                raise
            except HtvmError:
                return

        atheris.Setup(["fuzzing", *arguments], once)
        atheris.Fuzz()


def campaign(reader: str, limit: str, *, keep: bool = False) -> str:
    """Fuzz in a process of its own; return libFuzzer's last words.

    On Linux a process begins with the peak memory of the one that it was forked from, so the caller
    must stay below the limit too.

    Args:
        reader: one of `READERS`.
        limit: flag of libFuzzer that ends the campaign.
        keep: whether to update the corpus.

    Raises:
        subprocess.CalledProcessError: a file made the reader fail.
    """
    command = [sys.executable, "-m", "benchmarks.fuzzing", "--inside", reader, *_LIMITS]
    corpus = CORPUS / reader
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as found:
        seeds(reader, Path(made))
        done = _called([*command, limit, found, str(corpus), made])
        if keep:
            shutil.rmtree(corpus)
            shutil.copytree(found, corpus)
    return done


def _called(command: list[str]) -> str:
    done = subprocess.run(
        command,
        cwd=CORPUS.parents[1],
        env={**os.environ, "PYTHONHASHSEED": "0"},  # the same runs each time
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.stderr.write(done.stderr)
        done.check_returncode()
    (words,) = re.findall(r"Done .*", done.stderr) or [""]
    return words


def main() -> None:
    """Run what the command line says."""
    if sys.argv[1:2] == ["--inside"]:
        read(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of", choices=READERS, action="append")
    parser.add_argument("--runs", type=int, default=200_000, help="of each reader")
    parser.add_argument("--seconds", type=int, help="for each reader, instead of runs")
    parser.add_argument("--keep", action="store_true", help="update tests/corpus")
    options = parser.parse_args()
    limit = f"-max_total_time={options.seconds}" if options.seconds else f"-runs={options.runs}"
    for reader in options.of or READERS:
        sys.stdout.write(f"{reader}: {campaign(reader, limit, keep=options.keep)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
