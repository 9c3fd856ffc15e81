"""Each operator of TFLite on each kind of target: a line in a table of cases has it tested on all.

The tables are ``CASES`` of `tests.frontend.single` and, with int16 activations, of
`tests.frontend.wide`.
"""

from __future__ import annotations

import zlib

import numpy as np
import pytest

import htvm
from tests.frontend import single, wide
from tests.frontend.single import Loader, inputs_of
from tests.reference.interpreter import interpret

TARGETS = (
    "generic.cpu", "cortex_m4", "rv32imc", "diana", "dla", "siracusa", "snitch_ita",
    "generic.cpu on this machine",
)  # fmt: skip
CASES = {**single.CASES, **{f"{kind}, int16": case for kind, case in wide.CASES.items()}}


@pytest.mark.rotating(8)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", CASES)
def test_the_generated_code_equals_the_interpreter(load: Loader, kind: str, target: str) -> None:
    name, _, here = target.partition(" ")
    rng = np.random.default_rng(zlib.crc32(f"{kind} {target}".encode()))
    graph = CASES[kind](rng)
    model, inputs = load(graph), inputs_of(graph, rng)
    built = htvm.build(model, name, "host" if here else None)
    wanted = interpret(built.model.module, inputs).outputs
    for array, expected in zip(built.run(inputs).outputs, wanted, strict=True):
        assert array.dtype == expected.dtype
        np.testing.assert_array_equal(array, expected)
