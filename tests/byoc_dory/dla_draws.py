"""Helper: random designs of the accelerator and random regions, and how to run them natively."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from byoc_dory.layers import Add, Layer, Shift, Tensor, add_layer, conv2d_layer, dense_layer
from byoc_dory.region import Region
from byoc_dory.soc.dla.assemble import Stream, assemble
from byoc_dory.soc.dla.design import Design
from byoc_dory.soc.dla.memory import plan
from byoc_dory.soc.dla.region_file import lower
from byoc_dory.soc.dla.simulator import Executed, LayerCount, Simulator
from byoc_dory.soc.registry import resolve
from htvm.sim.native import native_library
from tests.reference.diana_layers import run_layer

Array = np.ndarray[Any, Any]


@lru_cache(maxsize=1)
def library() -> Path:
    return native_library(resolve("dla").soc)


def draw_design(rng: np.random.Generator, sram: int) -> Design:
    """1 PE, odd numbers and powers of two; every kind of depthwise support but the CPU's."""
    pes_in, pes_out = (int(rng.choice([1, 1, 2, 3, 5, 8, 16, 64])) for _ in range(2))
    return Design(
        pes_in=pes_in,
        pes_out=min(pes_out, 4096 // pes_in),
        sram=sram,
        dma_bytes=int(rng.choice([1, 3, 4, 16])),
        dma_setup=int(rng.choice([0, 7, 50])),
        depthwise=int(rng.integers(1, 3)),
        fused=bool(rng.integers(2)),
        rows=bool(rng.integers(2)),
        resident=bool(rng.integers(2)),
    )


def _requant(rng: np.random.Generator, terms: int) -> dict[str, Any]:
    low, high = [(0, 127), (-128, 127), (-128, 127), (0, 47), (-100, -3)][rng.integers(5)]
    bits = int(np.log2(max(1, terms))) + 7
    return {"requant": Shift(int(rng.integers(0, min(31, bits + 3)))), "clip": (low, high)}


def draw_layer(rng: np.random.Generator, name: str, source: Tensor, output: str) -> Layer:
    """A layer that reads ``source``: vectors and 1x1 maps, strides, one-sided padding."""
    channels, *_ = source.shape
    k = int(rng.integers(1, 14))

    def weights(*shape: int) -> Array:
        return rng.integers(-128, 128, shape).astype(np.int8)

    if len(source.shape) == 1:
        bias = rng.integers(-(1 << 14), 1 << 14, k).astype(np.int32) if rng.integers(2) else None
        return dense_layer(
            name, source, output, weights(k, channels), bias, **_requant(rng, channels)
        )
    kind = rng.choice(["conv", "conv", "depthwise", "add"])
    if kind == "add":
        return add_layer(name, source, source, output, **_requant(rng, 1))
    groups = 1
    if kind == "depthwise" and channels > 1:
        groups = k = channels
    _, iy, ix = source.shape
    top, left, bottom, right = (int(rng.choice([0, 0, 1, 2, 3])) for _ in range(4))
    fy = int(min(rng.choice([1, 1, 2, 3, 3, 5]), iy + top + bottom))
    fx = int(min(rng.choice([1, 1, 2, 3, 3, 5]), ix + left + right))
    bias = rng.integers(-(1 << 14), 1 << 14, k).astype(np.int32) if rng.integers(2) else None
    return conv2d_layer(
        name, source, output, weights(k, channels // groups, fy, fx), bias,
        stride=(int(rng.integers(1, 4)), int(rng.integers(1, 4))), pad=(top, left, bottom, right),
        groups=groups, **_requant(rng, channels // groups * fy * fx),
    )  # fmt: skip


def draw_region(rng: np.random.Generator, layers: int) -> Region:
    """A chain of layers; some sums read an earlier tensor of the same shape."""
    vector = rng.integers(4) == 0
    shape = (int(rng.integers(1, 20)),)
    if not vector:
        shape += (int(rng.integers(1, 12)), int(rng.integers(1, 12)))
    source = Tensor("in", shape)
    known, made = [source], []
    for number in range(layers):
        read = known[-1] if rng.integers(3) else known[int(rng.integers(len(known)))]
        layer = draw_layer(rng, f"layer_{number}", read, f"t{number}")
        if isinstance(layer, Add):
            same = [tensor for tensor in known if tensor.shape == read.shape]
            layer = replace(layer, inputs=(read, same[int(rng.integers(len(same)))]))
        made.append(layer)
        known.append(layer.output)
    read_names = {tensor.name for layer in made for tensor in layer.inputs}
    outputs = [layer.output for layer in made if layer.output.name not in read_names]
    return Region("drawn", tuple(made), (source,), tuple(outputs))


def expected(region: Region, x: Array) -> dict[str, Array]:
    """All tensors by the definition of layers, in the order C-y-x."""
    values = {region.inputs[0].name: x}
    for layer in region.layers:
        operands = [values[tensor.name] for tensor in layer.inputs]
        values[layer.output.name] = run_layer(layer, operands)
    return values


def run_region(
    region: Region, design: Design, x: Array, trace: list[Executed] | None = None
) -> tuple[dict[str, Array], list[LayerCount], Stream]:
    """Assemble and execute a region; outputs in the order C-y-x."""
    file, weights = lower(region)
    stream = assemble(file, design, plan(file, design))
    rows = x if x.ndim == 1 else x.transpose(1, 2, 0)
    given = {region.inputs[0].name: np.asarray(rows, order="C")}
    outputs, counts = Simulator(library(), design).run(file, weights, given, stream, trace)
    shapes = {tensor.name: tensor.shape for tensor in region.outputs}
    return (
        {n: v.transpose(2, 0, 1).reshape(shapes[n]) for n, v in outputs.items()},
        counts,
        stream,
    )


def check_region(region: Region, design: Design, rng: np.random.Generator) -> list[LayerCount]:
    """Compare a region on the accelerator with its definition."""
    x = rng.integers(-128, 128, region.inputs[0].shape).astype(np.int8)
    wanted = expected(region, x)
    found, counts, _ = run_region(region, design, x)
    for name, value in found.items():
        np.testing.assert_array_equal(value, wanted[name], err_msg=f"{name} of {design}")
    return counts
