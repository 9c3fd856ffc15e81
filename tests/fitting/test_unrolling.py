"""Sizes of kernels whose loops the compiler unrolls, against what it makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from htvm.aot.flags import RV32_CFLAGS
from htvm.firmware.elf import read_elf
from htvm.firmware.isa import rv32_flags
from htvm.firmware.toolchain import Compiler
from htvm.fitting.code_size import TOLERANCE
from htvm.fitting.unrolling import unrolled_bytes


def padding(channels: int, rows: int, columns: int) -> str:
    """A border of 1 around each channel."""
    h, w = rows + 2, columns + 2
    return f"""void f(const int8_t *restrict in0, int8_t *restrict out) {{
  for (int32_t y = 0; y < {channels}; ++y) {{
    for (int32_t i = 0; i < {w}; ++i) {{ out[y * {h * w} + i] = (int8_t)0; }}
    for (int32_t x = 0; x < {rows}; ++x) {{
      out[(y * {h * w}) + (x * {w}) + {w}] = (int8_t)0;
      for (int32_t j = 0; j < {columns}; ++j) {{
        out[(y * {h * w}) + (x * {w}) + j + {w + 1}] = in0[(y * {rows * columns}) + (x * {columns})
          + j];
      }}
      out[(y * {h * w}) + (x * {w}) + {2 * w - 1}] = (int8_t)0;
    }}
    for (int32_t i_1 = 0; i_1 < {w}; ++i_1) {{ out[y * {h * w} + i_1 + {h * w - w}] = (int8_t)0; }}
  }}
}}"""


def product(rows: int, columns: int, summed: int) -> str:
    """A product of matrices of reals."""
    return f"""void f(const float *restrict in0, const float *restrict b, float *restrict out) {{
  for (int32_t i1 = 0; i1 < {rows}; ++i1) {{
    for (int32_t i2 = 0; i2 < {columns}; ++i2) {{
      int32_t t1 = ((i1 * {columns}) + i2);
      out[t1] = 0.000000e+00f;
      for (int32_t k = 0; k < {summed}; ++k) {{
        out[t1] = (out[t1] + (in0[((i1 * {summed}) + k)] * b[((k * {columns}) + i2)]));
      }}
    }}
  }}
}}"""


def compiled_bytes(source: str, folder: Path) -> int:
    file, made = folder / "f.c", folder / "f.o"
    file.write_text(f"#include <stdint.h>\n{source}\n", encoding="utf-8")
    flags = (*RV32_CFLAGS, "-c", "-Wl,--no-gc-sections")
    Compiler.zig().compile_cross([file], made, [], rv32_flags(), None, flags)
    return read_elf(made).symbol("f").size


@pytest.mark.parametrize(
    "source",
    [padding(3, 8, 8), padding(4, 8, 8), padding(8, 8, 8), padding(32, 4, 4), padding(3, 6, 6),
     product(2, 32, 16), product(4, 32, 16), product(4, 32, 8), product(4, 32, 5)],
)  # fmt: skip
def test_unrolled_kernels_are_estimated(source: str, tmp_path: Path) -> None:
    real = compiled_bytes(source, tmp_path)
    assert abs(unrolled_bytes(source) / real - 1) <= TOLERANCE


def test_loops_of_many_turns_are_not_unrolled() -> None:
    assert unrolled_bytes(product(16, 32, 64)) == 0
    once = unrolled_bytes(padding(32, 4, 4))
    # A few channels are written out one by one, many are a loop.
    assert unrolled_bytes(padding(64, 4, 4)) == once
    assert unrolled_bytes(padding(2, 4, 4)) == 2 * once
