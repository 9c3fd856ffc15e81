"""Arithmetic for the LX106 equals that of Python and numpy."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler
from tests.aot.cpu.native import STRICT, trapping

_BORDERS = [0, 1, 2, 0xFFFF, 0x1_0000, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, 0xFFFF_FFFF]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = runtime_c() / "platform" / "user"
    out = tmp_path_factory.mktemp("lx106") / "lx106.so"
    compiler = trapping(Compiler.zig())
    made = compiler.compile_host([folder / "lx106.c"], Path(out), (folder,), STRICT, shared=True)
    return ctypes.CDLL(str(made))


def bits(count: int = 4000) -> np.ndarray:
    """Bits of pairs of floats: any, near each other, small, and those at borders."""
    random = np.random.default_rng(7)
    pairs = random.integers(0, 2**32, (count, 2), np.uint32)
    near = random.integers(0x3F00_0000, 0x4080_0000, (count, 2), np.uint32)
    near[:, 1] ^= np.uint32(1 << 31)
    small = random.integers(0, 0x0180_0000, (count, 2), np.uint32)
    borders = [0, 1, 0x007F_FFFF, 0x0080_0000, 0x3F80_0000, 0x7F7F_FFFF, 0x7F80_0000, 0x7FC0_0000]
    signed = np.array([*borders, *(each | 1 << 31 for each in borders)], np.uint32)
    both = np.stack(np.meshgrid(signed, signed), -1).reshape(-1, 2)
    return np.concatenate([pairs, near, small, both])


@pytest.mark.parametrize("name", ["sum", "product"])
def test_floats_are_rounded_as_numpy_does(library: ctypes.CDLL, name: str) -> None:
    function = getattr(library, f"htvm_lx106_float_{name}")
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float] * 2
    left, right = bits().view(np.float32).T
    with np.errstate(all="ignore"):
        expected = left + right if name == "sum" else left * right
    found = np.array([function(a, b) for a, b in zip(left, right, strict=True)], np.float32)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), ~numbers)
    same = found.view(np.uint32)[numbers] == expected.view(np.uint32)[numbers]
    assert same.all(), [(left[numbers][~same][0], right[numbers][~same][0])]


def test_integers_equal_those_of_python(library: ctypes.CDLL) -> None:
    product, quotient = library.htvm_lx106_long_product, library.htvm_lx106_quotient
    product.restype, product.argtypes = ctypes.c_uint64, [ctypes.c_uint64] * 2
    quotient.restype, quotient.argtypes = ctypes.c_uint32, [ctypes.c_uint32] * 2
    drawn = np.random.default_rng(8).integers(0, 2**32, 200).tolist()
    numbers = [*_BORDERS, *drawn]
    for a in numbers:
        for b in numbers:
            wide = a << 32 | b, b << 32 | a
            assert product(*wide) == wide[0] * wide[1] % 2**64
            assert product(a, b) == a * b
            assert b == 0 or quotient(a, b) == a // b
