"""The constants of layers on N-EUREKA: registers as the driver computes them, and the grid."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byoc_dory.layers import Layer, Weighted
from byoc_dory.options import TilingOptions
from byoc_dory.plan import plan_alone
from byoc_dory.soc.header import render
from byoc_dory.soc.siracusa.description import SIRACUSA
from byoc_dory.soc.siracusa.neureka import NEUREKA
from byoc_dory.soc.siracusa.neureka_emit import constants_of
from byoc_dory.soc.siracusa.neureka_jobs import grid
from byoc_dory.soc.siracusa.neureka_program import (
    JobKind,
    job_axis,
    job_kinds,
    neureka_program,
)
from byoc_dory.soc.siracusa.neureka_tiles import block_of
from byoc_dory.tileloop.axes import Span
from byoc_dory.tiling.problem import Tile, solution_of
from htvm.firmware.host import include_folders
from htvm.firmware.paths import soc_folder
from htvm.firmware.toolchain import Compiler
from tests.byoc_dory.neureka_cases import random_layer

BLOCK = NEUREKA.block
SCALED, MEMORY, PREFETCH, SCALE_32 = 1 << 4, 1 << 9, 1 << 10, 2 << 12
SIGNED_OUTPUT, CHANNEL_SHIFT, BIAS, SIGNED_INPUT = 1 << 23, 1 << 24, 1 << 25, 1 << 26
FLAGS = SCALED | PREFETCH | SCALE_32 | SIGNED_OUTPUT | CHANNEL_SHIFT | BIAS | SIGNED_INPUT
BASE, MRAM, SRAM = 0x10000000, 0x10400000, 0x10800000
NO_DEVICES = """
#include "htvm_host.h"
uint32_t htvm_host_register_read(uint32_t addr) { return addr; }
void htvm_host_register_write(uint32_t addr, uint32_t value) { (void)addr, (void)value; }
"""


class Job(ctypes.Structure):
    """siracusa_neureka_job_t."""

    _fields_ = [
        *((name, ctypes.c_uint32) for name in (
            "flags", "weights", "input", "output", "scales", "shifts", "biases", "input_row",
            "input_pixel", "output_row", "output_pixel",
        )),
        ("offset", ctypes.c_int32),
        *((name, ctypes.c_uint16) for name in ("rows", "columns", "inputs", "outputs", "mask")),
        *((name, ctypes.c_uint8) for name in (
            "mode", "weight_bits", "shift", "padding_top", "padding_right", "padding_bottom",
            "padding_left", "padding_value",
        )),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The driver's siracusa_neureka_fill; its other functions find no devices."""
    nothing = tmp_path_factory.mktemp("hal") / "nothing.c"
    nothing.write_text(NO_DEVICES)
    path = Compiler.zig().built(
        "libneureka_driver.so",
        [soc_folder(SIRACUSA) / "siracusa_neureka_driver.c", nothing],
        include_folders(SIRACUSA),
        generated=(("htvm_soc.h", render(SIRACUSA)),),
        shared=True,
    )
    return ctypes.CDLL(str(path))


def filled(lib: ctypes.CDLL, job: Job) -> list[int]:
    values = (ctypes.c_uint32 * NEUREKA.job_registers)()
    lib.siracusa_neureka_fill(values, ctypes.byref(job))
    return list(values)


def copied(layer: Weighted) -> bool:
    """Whether the cores copy windows: neither 1x1 nor 3x3, or strided and no pairs of pixels."""
    if layer.op != "conv2d" or (layer.fy, layer.fx) == (1, 1):
        return False
    if (layer.fy, layer.fx) != (3, 3):
        return True
    pairs = layer.stride == (2, 2) and layer.C <= 14 and layer.ix % 2 == 0
    return layer.stride != (1, 1) and not (pairs and layer.pad[1] <= 1 and max(layer.pad) <= 2)


def job_of(
    layer: Weighted, kind: JobKind, own: np.ndarray, weights: int, outputs: Span, pitch: int
) -> Job:
    """The job as the driver takes it, with what only planning knows taken from the registers."""
    grid, shape, side = kind.job, kind.shape, 1 if copied(layer) else layer.fy
    halved = side == 3 and layer.stride == (2, 2)
    # Depthwise computes all pixels, the others pairs of them; both, all rows.
    pairs, whole = halved and layer.op != "depthwise", halved and layer.op == "depthwise"
    conf0 = int(own[23])
    pixel = layer.C * (1 if whole else layer.stride[1])
    row = layer.C * layer.ix * (1 if halved else layer.stride[0])
    inputs = 2 * layer.C if pairs else layer.C
    if copied(layer):
        # Whole words for the last row of a window, and an odd number of words.
        line, inputs = layer.fx * layer.C, layer.fy * layer.fx * layer.C
        words = -(-((layer.fy - 1) * line + -(-line // 4) * 4) // 4)
        pixel = 4 * (words if words % 2 else words + 1)
        row = pixel * layer.ox
    columns = 2 * layer.ox - 1 if whole else layer.ox
    out_row = columns * pitch
    right = layer.ox + 1 - layer.ix // 2 if pairs else columns + 2 - layer.pad[1] - layer.ix
    assert not grid.own_rows or grid.columns == columns
    if not grid.own_rows:
        row, out_row = grid.columns * pixel, grid.columns * pitch
    rows = 2 * shape.rows - 1 if halved else shape.rows
    assert grid.rows == rows or not grid.own_rows
    lowest = int(layer.weight.min())
    return Job(
        flags=conf0 & FLAGS,
        weights=weights,
        input=BASE + 0x1000 + grid.first * pixel,
        output=BASE + 0x4000 + grid.first * pitch,
        scales=own[3],
        shifts=own[4],
        biases=own[5],
        input_row=row,
        input_pixel=pixel,
        output_row=out_row,
        output_pixel=pitch,
        offset=min(lowest, 0) if pairs else lowest,
        rows=grid.rows,
        columns=grid.columns,
        inputs=inputs,
        outputs=outputs.out_size,
        mode={"conv2d": 0, "depthwise": 1}.get(layer.op, 2) if side == 3 else 2,
        weight_bits=(conf0 & 7) + 1,
        shift=conf0 >> 16 & 31,
        padding_top=shape.top,
        padding_right=max(0, right) if side == 3 else 0,
        padding_bottom=max(0, rows + 2 - shape.top - shape.inputs) if side == 3 else 0,
        padding_left=1 if pairs else layer.pad[1] if side == 3 else 0,
    )


def tile_of(rng: np.random.Generator, layer: Layer) -> Tile:
    k = layer.K
    whole = layer.op == "conv2d" and layer.stride != (1, 1) and layer.fy == layer.fx == 3
    if layer.op != "depthwise" and not whole and not copied(layer) and layer.K > 8:
        k = min(layer.K, 8 * int(rng.integers(1, 5)))
    return Tile(k, layer.C, int(rng.integers(1, layer.oy + 1)), layer.ox)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("memory", ["", "SRAM"])
def test_registers_are_those_of_the_driver(driver: ctypes.CDLL, memory: str, seed: int) -> None:
    """Of each kind of tile and range of channels, once the addresses are added."""
    rng = np.random.default_rng(seed)
    layer = random_layer(rng, "layer")
    assert isinstance(layer, Weighted)
    core = replace(NEUREKA, weight_memory=memory)
    problem = core.tiling_problem(SIRACUSA, layer, TilingOptions())
    plan = plan_alone(layer, solution_of(problem, tile_of(rng, layer)), core.name, problem)
    program = neureka_program(core, layer, plan)
    k = program.axes[1]
    y = job_axis(layer, program.axes[0])
    image = constants_of(core, layer, program)
    at = 0
    for span in k.spans:
        kinds = job_kinds(core, layer, program.axes[0], span.out_size)
        block = block_of(core, layer, k.step, len(kinds))
        registers = image[at : at + 96 * len(kinds)].view("<u4").reshape(-1, 24).astype(np.int64)
        for number, kind in enumerate(kinds):
            assert y.spans[y.kinds[0][kind.kind]].out_size == kind.shape.rows
            own = registers[number].copy()
            weights = SRAM if memory else BASE + 0x8000 + block.weights
            own[0] += weights
            own[1:3] += BASE + 0x1000, BASE + 0x4000
            own[3:6] += BASE + 0x8000
            own %= 2**32
            conf0 = int(own[23])
            assert own.tolist() == filled(driver, job_of(layer, kind, own, weights, span, k.step))
            # Weights of pairs of pixels have zeros among them.
            pairs = layer.op == "conv2d" and layer.stride == (2, 2) and not copied(layer)
            zero = [0] if pairs and layer.fy == 3 else []
            values = [int(layer.weight.min()), int(layer.weight.max()), *zero]
            assert (conf0 & 7) + 1 == max(2, (max(values) - min(values)).bit_length())
        at += block.bytes
    assert at == image.size


@given(pixels=st.integers(1, 3000))
def test_a_grid_has_every_pixel_once_and_few_blocks(pixels: int) -> None:
    jobs = grid(pixels, BLOCK)
    starts = [job.first for job in jobs]
    ends = [job.first + job.rows * job.columns for job in jobs]
    assert starts == [0, *ends[:-1]] and ends[-1] == pixels and len(jobs) <= 2
    blocks = sum(prod(-(-size // BLOCK) for size in (job.rows, job.columns)) for job in jobs)
    assert blocks <= -(-pixels // BLOCK**2) + 1


def test_grids() -> None:
    """One job where as few blocks do, as for 8x8 pixels in 3; else the rest is a second."""
    assert [(job.rows, job.columns) for job in grid(36, BLOCK)] == [(6, 6)]
    assert [job.rows * job.columns for job in grid(8 * 8, BLOCK)] == [64]
    assert [(job.rows * job.columns, job.first) for job in grid(37, BLOCK)] == [(36, 0), (1, 36)]
