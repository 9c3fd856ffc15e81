"""Averages of maps in DIANA's layout: generated C, compiled natively, equals the definition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from byoc_dory.emit.layout import Average
from byoc_dory.layers import Tensor
from byoc_dory.region import Kernel, RegionCode
from byoc_dory.soc.diana.description import DIANA
from htvm.firmware import host
from htvm.firmware.toolchain import Compiler
from htvm.sim.host import run_host
from tests.byoc_dory.program import HEADERS, Case, main_program, packed

LAYOUT = DIANA.accelerator("digital").layout(DIANA)

# Rows of whole and of parts of words, without padding, more rows than an iteration takes, the
# largest maps that words of signed and of unsigned elements can sum.
SHAPES = [
    (3, 25, 5),
    (4, 8, 8),
    (5, 3, 3),
    (2, 1, 1),
    (3, 4, 16),
    (2, 32, 32),
    (2, 64, 32),
    (3, 7, 18),
    (1, 9, 31),
    (2, 6, 13),
]


def kernel_of(shape: tuple[int, int, int], least: int, name: str) -> Kernel | None:
    clip = (-128, 127) if shape[0] != 3 else (-20, 40)
    average = Average(name, Tensor(f"{name}_x", shape, layout="NHWC"), name, "stored", clip, least)
    return LAYOUT.average(average)


def case_of(shape: tuple[int, int, int], least: int, name: str, rng: np.random.Generator) -> Case:
    kernel = kernel_of(shape, least, name)
    assert kernel is not None
    lows = rng.integers(least, 127, shape[0])  # maps whose averages differ
    highs = rng.integers(lows, 128)
    values = rng.integers(lows, highs + 1, shape[::-1]).T.astype(np.int8)
    # Padding holds anything.
    size = LAYOUT.stored_bytes(Tensor("x", shape))
    stored = rng.integers(-128, 128, size).astype(np.int8)
    stored[LAYOUT.offsets(Tensor("x", shape))] = values
    count = values[0].size
    total = values.astype(np.int64).sum((1, 2))
    away = np.sign(total) * ((np.abs(total) + count // 2) // count)
    clip = (-128, 127) if shape[0] != 3 else (-20, 40)
    given, result = Tensor("stored", (size,)), Tensor(name, (shape[0], 1, 1))
    code = RegionCode(name, (kernel,), (), (given,), (result,), HEADERS)
    return Case(code, (stored,), (np.clip(away, *clip).astype(np.int8),))


@pytest.mark.parametrize("sanitize", [False, True])
def test_averages_are_those_of_the_definition(tmp_path: Path, sanitize: bool) -> None:
    rng = np.random.default_rng(11 + sanitize)
    cases = [
        case_of(shape, least, f"a{number}_{least + 128}", rng)
        for number, shape in enumerate(SHAPES)
        for least in (-128, 0)
        if shape != (2, 64, 32) or least == 0
    ]
    source = tmp_path / "main.c"
    source.write_text(main_program(cases))
    program = host.build([source], [], DIANA, tmp_path / "out", Compiler.zig(), sanitize)
    expected = packed(cases, outputs=True)
    (got,) = run_host(program, [packed(cases, outputs=False)], [len(expected)])
    assert got == expected


def test_maps_whose_sums_would_overflow_words_are_converted() -> None:
    assert kernel_of((2, 33, 32), -128, "x") is None
    assert kernel_of((2, 65, 32), 0, "x") is None
    assert kernel_of((2, 2, 38), 0, "x") is None
