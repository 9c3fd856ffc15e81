"""The host platform's own convolutions equal numpy, with each kind of products of bytes."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htvm.firmware.host import native_folder, native_sources, sanitizing
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler, instructions
from tests.tools import tool

Array = npt.NDArray[Any]

WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wshadow")
KINDS = {
    "AVX-512 VNNI": ("avx512_vnni", ("-mavx512f", "-mavx512vnni")),
    "AVX-VNNI": ("avx_vnni", ("-mavx2", "-mavxvnni")),
    "AVX2": ("avx2", ("-mavx2",)),
    "SSE2": ("sse2", ("-msse2",)),
}
"""Kind -> name of what the processor must have, and the flags that select it on x86-64."""

SOURCES = [runtime_c() / "tests" / "native" / "native_server.c", *native_sources()]
INCLUDES = [native_folder()]


@dataclass(frozen=True)
class Geometry:
    """htvm_native_conv_t."""

    channels: int
    height: int
    width: int
    filters: int
    rows: int
    columns: int
    fy: int
    fx: int
    stride_y: int
    stride_x: int
    dilation_y: int
    dilation_x: int


class Server:
    """A process that computes convolutions."""

    def __init__(self, *line: Path | str) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self._process = subprocess.Popen([*map(str, line)], **pipes)  # type: ignore[call-overload]
        self.kind = self._read(32).rstrip(b"\0").decode()

    def _read(self, count: int) -> bytes:
        data = self._process.stdout.read(count)
        assert len(data) == count, self._process.stderr.read().decode()
        return bytes(data)

    def conv(self, geometry: Geometry, x: Array, w: Array, bias: Array | None) -> Array:
        """Return the result, (K, oy, ox); the weights of a depthwise one are (K, fy, fx)."""
        head = np.array([w.ndim == 3, bias is not None, *astuple(geometry)], "int32")
        parts = [head, x, w, *([] if bias is None else [bias])]
        self._process.stdin.write(b"".join(part.tobytes() for part in parts))
        self._process.stdin.flush()
        shape = (geometry.filters, geometry.rows, geometry.columns)
        data = self._read(4 * geometry.filters * geometry.rows * geometry.columns)
        return np.frombuffer(data, "int32").reshape(shape)

    def close(self) -> None:
        self._process.stdin.close()
        assert self._process.wait(60) == 0, self._process.stderr.read().decode()


@contextlib.contextmanager
def served(*line: Path | str) -> Iterator[Server]:
    server = Server(*line)
    yield server
    server.close()


@st.composite
def cases(draw: st.DrawFn) -> tuple[Geometry, Array, Array, Array | None]:
    """Convolutions and depthwise ones, of sizes around those of vectors and words."""
    number = {name: draw(st.integers(1, most)) for name, most in SIZES.items()}
    depthwise, spare = draw(st.booleans()), draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    if depthwise:
        number["channels"] = number["filters"]
    height, width = (
        (number[size] - 1) * number[f"stride_{axis}"]
        + (number[f"f{axis}"] - 1) * number[f"dilation_{axis}"]
        + 1
        + spare[at]
        for at, (axis, size) in enumerate((("y", "rows"), ("x", "columns")))
    )
    geometry = Geometry(height=height, width=width, **number)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def drawn(*shape: int) -> Array:
        # Extreme values, too: an instruction that saturates is wrong there.
        values = rng.integers(-128, 128, shape, "int8")
        return np.where(rng.random(shape) < 0.3, rng.choice(np.int8([-128, 127]), shape), values)

    x = drawn(geometry.channels, height, width)
    inner = () if depthwise else (geometry.channels,)
    w = drawn(geometry.filters, *inner, geometry.fy, geometry.fx)
    bias = rng.integers(-(2**31), 2**31, geometry.filters, "int32")
    return geometry, x, w, bias if draw(st.booleans()) else None


SIZES = {
    "channels": 13, "filters": 13, "rows": 6, "columns": 40, "fy": 4, "fx": 8,
    "stride_y": 3, "stride_x": 3, "dilation_y": 2, "dilation_x": 2,
}  # fmt: skip


def expected(geometry: Geometry, x: Array, w: Array, bias: Array | None) -> Array:
    """By sums of shifted maps, which wrap around."""
    g, total = geometry, np.zeros((geometry.filters, geometry.rows, geometry.columns), "int64")
    for fy in range(g.fy):
        for fx in range(g.fx):
            y, left = fy * g.dilation_y, fx * g.dilation_x
            down, right = (g.rows - 1) * g.stride_y + 1, (g.columns - 1) * g.stride_x + 1
            part = x[:, y : y + down : g.stride_y, left : left + right : g.stride_x].astype("int64")
            if w.ndim == 3:
                total += part * w[:, fy, fx, None, None]
            else:
                total += np.einsum("kc,cyx->kyx", w[:, :, fy, fx].astype("int64"), part)
    if bias is not None:
        total += bias[:, None, None]
    return total.astype("int32")


def check(server: Server, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @given(cases())
    def equal(case: tuple[Geometry, Array, Array, Array | None]) -> None:
        assert np.array_equal(server.conv(*case), expected(*case)), case[0]

    equal()


def test_this_machine() -> None:
    path = Compiler.zig().built("native_server", SOURCES, INCLUDES, WARNINGS)
    with served(path) as server:
        check(server, 60)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind(kind: str) -> None:
    needed, flags = KINDS[kind]
    if not instructions().startswith("x86_64"):
        pytest.skip("not an x86-64 machine")
    path = Compiler.zig().built("native_server", SOURCES, INCLUDES, (*WARNINGS, *flags))
    if f"'{needed}'" not in instructions():
        pytest.skip(f"compiled, but this processor has no {needed}")
    with served(path) as server:
        assert server.kind == kind
        check(server, 400)


@pytest.mark.slow
def test_plain_c() -> None:
    flags = (*WARNINGS, "-DHTVM_NATIVE_PLAIN")
    with served(Compiler.zig().built("native_server", SOURCES, INCLUDES, flags)) as server:
        assert server.kind == "plain C"
        check(server, 400)


@pytest.mark.slow
@pytest.mark.parametrize("host", [None, *(c for c in ("gcc", "clang") if shutil.which(c))])
@pytest.mark.parametrize("plain", [False, True])
def test_under_sanitizers(host: str | None, plain: bool, tmp_path: Path) -> None:
    compiler = sanitizing(Compiler.zig(host=host))
    flags = (*WARNINGS, *(("-DHTVM_NATIVE_PLAIN",) if plain else ("-march=native",)))
    with served(compiler.compile_host(SOURCES, tmp_path / "server", INCLUDES, flags)) as server:
        check(server, 150)


@pytest.mark.slow
@pytest.mark.parametrize("plain", [False, True])
def test_arm(plain: bool, tmp_path: Path) -> None:
    emulator = tool("qemu-aarch64")
    core = ("-target", "aarch64-linux-musl", "-mcpu=cortex_a76", "-std=c11", "-O2", "-static")
    flags = (*WARNINGS, "-fno-sanitize=all", *(("-DHTVM_NATIVE_PLAIN",) if plain else ()))
    # The compiler may first have to build a C library for that machine.
    compiler = replace(Compiler.zig(), timeout_s=1200.0)
    path = compiler.compile_cross(SOURCES, tmp_path / "server", INCLUDES, core, flags=flags)
    with served(emulator, path) as server:
        assert server.kind == ("plain C" if plain else "Arm dot products")
        check(server, 100)
