"""Kernels for cores with SIMD against numpy: as portable C, and on the simulated core."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from htvm.firmware.host import sanitizing
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler
from tests.runtime_c.simd import SCALINGS, Depthwise, Product, on_the_core

STRICT = ("-g", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wshadow", "-Wconversion")
_SHELL = """#include <stdio.h>
{declarations}
int main(void)
{{
    int wrong = 0;
{calls}
    return wrong;
}}
"""


def random_products(rng: np.random.Generator, count: int) -> list[Product]:
    """Return products of all kinds and sizes."""
    found = []
    for number in range(count):
        fy, fx, stride = (int(value) for value in rng.integers(1, (4, 4, 3)))
        oy, ox, k = (int(value) for value in rng.integers(1, (5, 12, 14)))
        c, gap = 4 * int(rng.integers(1, 6)), int(rng.integers(0, 4))
        scaling = SCALINGS[number % len(SCALINGS)]
        seed = int(rng.integers(0, 1 << 30))
        found.append(Product(oy, ox, k, c, fy, fx, stride, scaling, gap, seed))
    return found


def random_depthwise(rng: np.random.Generator, count: int) -> list[Depthwise]:
    """Return depthwise convolutions of all kinds and sizes."""
    found = []
    for number in range(count):
        fy, fx = (int(value) for value in rng.integers(1, (6, 6)))
        if number % 3:
            fy = fx = 3
        pad, stride = int(rng.integers(0, 2)), int(rng.integers(1, 4))
        iy, ix = (int(value) for value in rng.integers((fy, fx), (14, 18)))
        border, seed = int(rng.integers(-128, 128)), int(rng.integers(0, 1 << 30))
        k, scaling = 4 * int(rng.integers(1, 4)), SCALINGS[number // 3 % len(SCALINGS)]
        found.append(Depthwise(iy, ix, k, fy, fx, stride, pad, scaling, border, seed))
    return found


@pytest.mark.parametrize(
    "count", [30, pytest.param(500, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_portable_kernels_equal_numpy(tmp_path: Path, count: int) -> None:
    rng = np.random.default_rng(count)
    products = [*random_products(rng, count), *random_depthwise(rng, count)]
    count = len(products)
    sources = []
    for number, product in enumerate(products):
        path = tmp_path / f"product{number}.c"
        path.write_text(
            product.source()
            .replace("int check(", f"int check{number}(")
            .replace("uint32_t spent;", "static uint32_t spent;")
        )
        sources.append(path)
    shell = tmp_path / "main.c"
    shell.write_text(
        _SHELL.format(
            declarations="\n".join(f"int check{number}(void);" for number in range(count)),
            calls="\n".join(
                f'    wrong |= printf("%d\\n", check{number}()) < 0;' for number in range(count)
            ),
        )
    )
    root = runtime_c() / "simd"
    compiler = sanitizing(Compiler.zig())
    program = compiler.compile_host(
        [shell, *sources, *sorted(root.glob("*.c"))], tmp_path / "test", [root], STRICT
    )
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    for product, line in zip(products, done.stdout.splitlines(), strict=True):
        assert line == "0", product


# The most cycles per MAC; what is measured is a little less.
LIMITS = [
    (Product(8, 32, 16, 16, 3, 3), 0.45),
    (Product(8, 16, 32, 32, 3, 3), 0.42),
    (Product(1, 64, 64, 64), 0.50),
    (Product(1, 16, 16, 256), 0.42),
    (Product(1, 1, 64, 64), 1.00),
    (Product(1, 1, 64, 256), 0.68),
    (Product(8, 32, 16, 16, 3, 3, scaling="multiply"), 0.51),
    (Product(8, 32, 16, 16, 3, 3, scaling="tflite"), 0.70),
    (Depthwise(24, 24, 32, seed=1), 1.50),
]


@pytest.mark.rotating(3)
@pytest.mark.parametrize("case", LIMITS, ids=lambda entry: str(entry[0]))
def test_cycles_on_the_core(case: tuple[Product | Depthwise, float], tmp_path: Path) -> None:
    product, limit = case
    wrong, cycles = on_the_core(product, tmp_path)
    print(f"{product}: {cycles / product.macs:.3f} cycles per MAC")
    assert wrong == 0
    assert cycles / product.macs <= limit


@pytest.mark.parametrize(
    "count", [4, pytest.param(60, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_kernels_on_the_core_equal_numpy(tmp_path: Path, count: int) -> None:
    rng = np.random.default_rng(count)
    for product in [*random_products(rng, count), *random_depthwise(rng, count)]:
        assert on_the_core(product, tmp_path)[0] == 0, product
    portable, _ = on_the_core(random_products(rng, 1)[0], tmp_path, simd=False)
    assert portable == 0


# Sizes around those that the assembly takes at once, under both kinds of limits.
CORNERS = [Depthwise(5, ix, 4, seed=seed) for ix in (1, 4, 5, 8, 9, 12) for seed in (0, 1)]
CORNERS += [Depthwise(5, ix, 4, stride=2) for ix in (1, 2, 7, 8)]
CORNERS += [Product(rows, pixels, 5, 4, seed=1) for rows in (1, 2) for pixels in (1, 3, 4, 5)]


@pytest.mark.rotating(8)
@pytest.mark.parametrize("case", CORNERS, ids=str)
def test_corners_on_the_core(case: Product | Depthwise, tmp_path: Path) -> None:
    assert on_the_core(case, tmp_path)[0] == 0
