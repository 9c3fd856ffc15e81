"""Damaged command streams on the Ethos-U's model, sanitized: no crash, no hang, no memory left."""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from htvm.firmware.host import sanitizing
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler
from tests.frontend import single, wide
from tests.frontend.single import inputs_of
from tests.runtime_c.ethos_u import INCLUDES, library, sources
from tests.runtime_c.ethos_u_stream import Map, Stream, kernel
from tests.runtime_c.vela import Program, compiled
from tests.tools import tool

PROGRAM = runtime_c() / "tests" / "soc" / "ethos_u" / "mutations.c"
# _POSIX_C_SOURCE: aligned memory of exactly so many bytes.
STRICT = (
    "-D_POSIX_C_SOURCE=200112L", "-g", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wshadow",
    "-Wconversion",
)  # fmt: skip


def built(tmp_path: Path, name: str) -> Path:
    if name != "zig":
        tool(name)
    compiler = sanitizing(Compiler.zig(host=None if name == "zig" else name))
    return compiler.compile_host([PROGRAM, *sources()], tmp_path / "mutations", INCLUDES, STRICT)


def write(path: Path, payload: bytes, regions: list[bytes]) -> str:
    head = struct.pack(f"<{2 + len(regions)}I", len(payload), len(regions), *map(len, regions))
    path.write_bytes(head + payload + b"".join(regions))
    return str(path)


def own_stream() -> Stream:
    """A table, a sum of two maps in tiles, a maximum; no weights."""
    first = Map((4, 6, 20), 0, tiles=(4, 3, 2), bases=(0x400, 0x800, 0xC00))
    second, third = Map((4, 6, 20), 0x1000, bricks=True), Map((2, 3, 20), 0x2000)
    add = kernel(first, second, scale=(1 << 30, 40), limits=(-128, 127), activation=16)
    add |= first.registers("IFM2") | {"IFM2_BROADCAST": 0, "OPA_SCALE": (3, 0), "OPB_SCALE": 5}
    pool = kernel(second, third, limits=(-128, 127)) | {
        "KERNEL_HEIGHT_M1": 1, "KERNEL_WIDTH_M1": 1, "KERNEL_STRIDE": 3,
    }  # fmt: skip
    stream = Stream().set(
        DMA0_SRC_REGION=0, DMA0_SRC=0, DMA0_DST_REGION=0x103, DMA0_DST=0x5800, DMA0_LEN=256
    )
    stream.op("DMA_START").op("DMA_WAIT").set(**add).op("ELEMENTWISE", 1)
    return stream.set(**pool).op("POOL", 0)


def own_case(folder: Path) -> str:
    data = np.random.default_rng(1).integers(0, 256, 0x3000).astype(np.uint8).tobytes()
    return write(folder / "own", own_stream().payload(), [bytes(range(256)), data])


def layer_cases(folder: Path, lib: ctypes.CDLL) -> list[str]:
    """Layers that Vela's compiler made streams of, with tables, weights and many operations."""
    files = []
    layers = [
        (cases[name], seed)
        for cases, name, seed in (
            (single.CASES, "conv", 0), (single.CASES, "depthwise", 1), (single.CASES, "softmax", 2),
            (single.CASES, "mean", 3), (single.CASES, "average_pool", 4), (wide.CASES, "conv", 5),
            (wide.CASES, "softmax", 6), (single.CASES, "logistic", 7),
        )
    ]  # fmt: skip
    for number, (case, seed) in enumerate(layers):
        rng = np.random.default_rng(seed)
        graph = case(rng)
        program = Program(lib, compiled(graph.file(), "ethos-u55-128"))
        program.run(inputs_of(graph, rng))
        regions = [program.npu.regions[i].tobytes() for i in range(len(program.npu.regions))]
        files.append(write(folder / f"layer{number}", program.payload, regions))
    return files


def run(program: Path, count: int, files: list[str]) -> list[int]:
    """Damage each file's stream so many times: complaints, equal and different results."""
    done = subprocess.run(
        [str(program), str(count), "7", *files],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = [int(number) for number in re.findall(r"[0-9]+", done.stdout)]
    assert sum(found) == count * len(files)
    return found


def test_damaged_streams(tmp_path: Path) -> None:
    found = run(built(tmp_path, "zig"), 2000, [own_case(tmp_path)])
    assert min(found) > 50, found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gcc", "clang"])
def test_damaged_streams_at_length(tmp_path: Path, name: str) -> None:
    """Ten thousand of layers, with all weights of them, and as many of the tests' own."""
    program = built(tmp_path, name)
    found = run(program, 1250, layer_cases(tmp_path, library()))
    assert min(found) > 100, found
    assert min(run(program, 10_000, [own_case(tmp_path)])) > 100
