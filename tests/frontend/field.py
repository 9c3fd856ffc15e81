"""Helper: small networks of all kinds with the outputs of a reference, where they are at hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.reference.interpreter import Array

_ROOT = Path(__file__).resolve().parents[3] / "shared" / "models" / "field"


@dataclass(frozen=True, eq=False)
class FieldModel:
    """A network's file, and pairs of its inputs and the reference's outputs."""

    path: Path
    cases: tuple[tuple[list[Array], list[Array]], ...]


def field_model(name: str, file: str = "model.tflite") -> FieldModel:
    """The network of this name, or a skipped test."""
    path = _ROOT / name / file
    if not path.is_file():
        pytest.skip(f"the model {name} is not at hand ({path})")
    with np.load(path.with_name("golden.npz")) as arrays:
        keys = sorted(arrays)
        numbers = range(len({key.partition("_")[0] for key in keys if key.startswith("in")}))
        cases = tuple(
            (
                [arrays[key] for key in keys if key.startswith(f"in{number}_")],
                [arrays[key] for key in keys if key.startswith(f"out{number}_")],
            )
            for number in numbers
        )
    return FieldModel(path, cases)
