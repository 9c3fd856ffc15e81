"""Damaged files: some bytes changed, or an end cut off; each is still read, or refused.

    python -m benchmarks.mutations --of bytes [--count 5000] [--seed 1]

The files are those that `benchmarks.mutations` and `benchmarks.tflite_mutations` change by their
meaning.  There is no oracle: what a changed byte means may be another network.  Whatever is read
must be in the integer form, and whatever is not must be refused with a typed error.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import htvm
from benchmarks import onnx_cases
from benchmarks.mutant import Mutant, failure
from tests.frontend.single import CASES

__all__ = ["campaign"]


def campaign(count: int, seed: int, first: int = 0) -> Iterator[Mutant]:
    """Yield the outcome of each damaged file from a number on; the same ones for the same seed."""
    kinds = _bases(seed)
    for number in range(first, first + count):
        rng = np.random.default_rng([seed, number])
        bases = kinds[int(rng.integers(len(kinds)))]
        name, data = bases[int(rng.integers(len(bases)))]
        damaged, change = _damaged(data, rng)
        result, reason = _outcome(damaged, name)
        yield Mutant(number, name, (change,), result, reason)


def _bases(seed: int) -> tuple[Sequence[tuple[str, bytes]], ...]:
    """Return names, with the suffix of the format, and contents of sound files of both kinds."""
    rng = np.random.default_rng(seed)
    return (
        [(f"{name}.tflite", CASES[name](rng).file()) for name in sorted(CASES)],
        [(f"{case.name}.onnx", case.model.SerializeToString()) for case in onnx_cases.cases()],
    )


def _damaged(data: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    if rng.integers(5) == 0:
        length = int(rng.integers(len(data)))
        return data[:length], f"cut after {length} of {len(data)} bytes"
    changed = bytearray(data)
    places = [int(place) for place in rng.integers(0, len(data), int(rng.integers(1, 3)))]
    for place in places:
        changed[place] ^= int(rng.integers(1, 256)) if rng.integers(2) else 1 << rng.integers(8)
    return bytes(changed), f"bytes {', '.join(map(str, sorted(places)))} changed"


def _outcome(data: bytes, name: str) -> tuple[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"damaged{Path(name).suffix}"
        path.write_bytes(data)
        try:
            htvm.load(path)
        except Exception as error:  # noqa: BLE001
            return failure(error)
    return "without oracle", "it is read"
