"""A network on the SoC tiny, bit-exact on both platforms, and what is said about it."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_soc.description import soc

import htvm
from byoc_dory.errors import SimulationError
from byoc_dory.layers import Array, Shift
from byoc_dory.options import TilingOptions
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.firmware import host
from htvm.firmware.toolchain import Compiler
from htvm.pipeline import compile_model
from htvm.sim.host import run_host
from htvm.tools.verification.verify import verify
from htvm.tools.zoo.drawing import Sketch
from htvm.tools.zoo.networks import model
from patterns.ops.convolution import Conv2d

# (L1 budget, smallest number of tiles)
BUDGETS = ((None, 1), (1_000, 30))


def network() -> Sketch:
    """1x1 convolutions that need tiles along both axes, a 3x3 for the host, and dense layers."""
    sketch = Sketch("small", (24, 12, 10))
    x = sketch.conv2d(sketch.input, 40, (1, 1))
    x = sketch.conv2d(x, 20, (3, 3), stride=2)
    x = sketch.conv2d(x, 33, (1, 1), relu=False)
    x = sketch.average_pool(x)
    sketch.dense(sketch.dense(x, 50, relu=True), 10)
    return sketch


def pointwise() -> Sketch:
    """Layers that the accelerator takes, and nothing else."""
    sketch = Sketch("pointwise", (24, 12, 10))
    sketch.conv2d(sketch.conv2d(sketch.input, 40, (1, 1)), 33, (1, 1), relu=False)
    return sketch


def computed(sketch: Sketch, x: Array) -> Array:
    """What `pointwise` computes of ``x`` [C, y, x], by its definition and in no other way."""
    for step in sketch.steps:
        op = step.op
        assert isinstance(op, Conv2d) and isinstance(op.requant, Shift)
        weight = op.weight.reshape(op.weight.shape[:2]).astype(np.int64)
        sums = np.einsum("kc,cyx->kyx", weight, x.astype(np.int64)) + op.bias[:, None, None]
        x = np.clip(sums >> op.requant.shift, *op.clip)
    return x.astype(np.int8)


def drawn(shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(7).integers(-128, 128, shape).astype(np.int8)


@pytest.mark.parametrize("platform", ["host", "rv32"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_layers_compute_what_they_are_defined_to(platform: str, layout: str) -> None:
    sketch = pointwise()
    x = drawn((24, 12, 10))
    order = (1, 2, 0) if layout == "NHWC" else (0, 1, 2)
    for budget, least in BUDGETS:
        tiling = TilingOptions(l1_budget=budget)
        module = htvm.build(model(sketch, layout), target="tiny", platform=platform, tiling=tiling)
        (found,) = module.run(x.transpose(order)[None]).outputs
        assert np.array_equal(found[0], computed(sketch, x).transpose(order))
        tiles = [row.tiles for row in module.report().layers if row.accelerator == "mac"]
        assert len(tiles) == 2 and min(tiles) >= least


@pytest.mark.parametrize("design", ["mac.lanes=1", "dma.queue_depth=1", "dma.bytes_per_cycle=3"])
def test_other_designs_compute_the_same(design: str) -> None:
    x = drawn((1, 12, 10, 24))
    tiling = TilingOptions(l1_budget=4_000)
    for sketch in (network(), pointwise()):
        module = htvm.build(model(sketch), target=f"tiny:{design}", tiling=tiling)
        assert np.array_equal(module.run(x).outputs[0], module.reference(x)[0])


def test_a_network_computes_what_it_does_on_the_host_alone() -> None:
    source = model(network())
    x = drawn((1, 12, 10, 24))
    built = {name: htvm.build(source, target=name) for name in ("tiny", "tiny.cpu")}
    ran = {name: module.run(x) for name, module in built.items()}
    for mine, theirs in zip(ran["tiny"].outputs, ran["tiny.cpu"].outputs, strict=True):
        assert np.array_equal(mine, theirs)
    assert ran["tiny"].cycles < ran["tiny.cpu"].cycles


# Of small tiles, more cycles are the host's, whose code differs from layer to layer.
@pytest.mark.parametrize(("budget", "error"), [(None, 0.04), (1_000, 0.13)])
def test_predictions_are_near_what_runs_take(budget: int | None, error: float) -> None:
    tiling = TilingOptions(l1_budget=budget)
    module = htvm.build(model(network()), target="tiny", tiling=tiling)
    for layer in module.run(drawn((1, 12, 10, 24))).layers:
        if layer.accelerator == "mac":
            assert layer.predicted_cycles == pytest.approx(layer.cycles, rel=error)


def test_it_says_why_the_host_runs_a_layer() -> None:
    explained = str(htvm.build(model(network()), target="tiny", platform="host").explain())
    assert "the kernel is 3x3" in explained


# Starts a transfer and the product that it reads, and waits for both, the transfer first or last.
MAIN = """
#include "htvm_host.h"
#include "tiny_driver.h"

static struct {
    uint32_t load, l1, pitch, rows, bytes, wait;
    tiny_product_t product;
} given;
static int8_t data[64];

int main(void)
{
    const int code = htvm_host_read(0, &given, sizeof given);
    if (code != 0) {
        return code;
    }
    const uint32_t ticket = given.load
                                ? tiny_load(given.l1, data, given.bytes)
                                : tiny_store(data, given.pitch, given.l1, given.rows, given.bytes);
    if (given.wait) {
        tiny_wait(ticket);
    }
    tiny_start(&given.product);
    const int status = tiny_finish();
    tiny_wait_all();
    return status;
}
"""


def test_the_devices_say_what_is_wrong(tmp_path: Path) -> None:
    main = tmp_path / "main.c"
    main.write_text(MAIN)
    program = host.build([main], [], soc(), tmp_path / "out", Compiler.zig(), sanitize=True)
    end = soc().memory("L1").size
    right = {"load": 0, "l1": 512, "pitch": 8, "rows": 8, "bytes": 8, "wait": 1}
    right |= {"in": 0, "weights": 64, "out": 256, "k_rows": 2, "k": 3, "c": 4, "out_pitch": 3}
    right |= {"shift": 5, "low": 0, "high": 127}
    for wrong, message in (
        ({}, None),
        ({"load": 1}, None),
        ({"wait": 0}, None),
        ({"in": end - 7}, "input at .*8 B. leaves L1"),
        ({"weights": end - 20}, "weights at .*24 B. leaves L1"),
        ({"weights": 66}, "not aligned to 4 B"),
        ({"out": 3}, "overlaps an operand"),
        ({"k_rows": 0}, "a product of 0x4 by 3"),
        ({"shift": 32}, "shift 32"),
        ({"l1": end - 63}, "DMA: transfer at .*64 B. leaves L1"),
        ({"load": 1, "l1": end}, "DMA: transfer at .*8 B. leaves L1"),
        ({"l1": 2**32 - 1}, "DMA: transfer at .* leaves L1"),
        ({"pitch": 1 << 28}, "8 x 8 B, every 268435456 B. is not in memory outside of L1"),
        ({"pitch": 4}, "a transfer of 8 x 8 B, every 4 B"),
        ({"rows": 0}, "a transfer of 0 x 8 B"),
        ({"load": 1, "wait": 0, "l1": 60}, "started while a transfer to .*8 B., which it uses"),
        ({"wait": 0, "l1": 200}, "started while a transfer from .*64 B., which it uses"),
    ):
        words = np.array(list((right | wrong).values()), np.int64).astype(np.uint32).tobytes()
        if message is None:
            run_host(program, [words], [])
            continue
        with pytest.raises(SimulationError, match=message):
            run_host(program, [words], [])


def test_an_export_carries_its_driver(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    htvm.build(model(pointwise()), target="tiny", platform="host").export(folder)
    for name in ("runtime/soc/tiny/tiny_driver.c", "simulator/soc/tiny/model/tiny_soc_model.c"):
        assert (folder / name).is_file()


def test_tiles_overlap_stay_in_l1_and_are_counted() -> None:
    """Double buffers, a result that stays in L1, and the bytes that tiling moves."""
    both = htvm.build(model(pointwise()), target="tiny", platform="host").report().layers
    first, second = (row for row in both if row.accelerator == "mac")
    assert second.double_buffered and (first.resident, second.resident) == ("output", "input")
    assert (first.l2_read, first.l2_written, second.l2_read) == (24 * 120, 0, 0)
    tight = TilingOptions(l1_budget=4_000)
    tiled = htvm.build(model(pointwise()), target="tiny", platform="host", tiling=tight)
    rows = [row for row in tiled.report().layers if row.accelerator == "mac"]
    assert all(row.double_buffered and row.tiles > 1 for row in rows)
    assert [row.l2_weights for row in rows] == [40 * 28, 33 * 44]


def with_layers(work: Compiled, source: str) -> Compiled:
    """The same build with other C of its layers."""
    changed = copy(work)
    vars(changed)["program"] = replace(work.program, layers_source=source)
    return changed


def test_a_wrong_element_is_found_in_its_tile() -> None:
    """The driver is right and the code is not: what is stored of row 7 is one byte off."""
    source = model(pointwise())
    options = BuildOptions(tiling=TilingOptions(l1_budget=4_000))
    work = compile_model(source, "tiny", options)
    right = work.program.layers_source
    wrong = right.replace("tiny_store(out +", "tiny_store(out + (step == 4u) +", 1)
    assert wrong != right
    broken = with_layers(work, wrong)
    found = verify(broken, (drawn((1, 12, 10, 24)),)).difference
    assert found is not None and (found.layer, found.place) == ("conv2d_0", "mac")
    assert found.tile is not None and found.tile.number == 3
    assert verify(work, (drawn((1, 12, 10, 24)),)).equal


def test_a_forgotten_wait_is_found() -> None:
    work = compile_model(model(pointwise()), "tiny", BuildOptions())
    right = work.program.layers_source
    wrong = right.replace("tiny_wait(", "(void)(", 1)
    assert wrong != right
    broken = with_layers(work, wrong)
    with pytest.raises(SimulationError, match="started while a transfer to"):
        verify(broken, (drawn((1, 12, 10, 24)),))


def test_a_tile_that_stores_too_much_is_found() -> None:
    """Eight bytes more than the last layer's result: they are nobody's."""
    work = compile_model(model(network()), "tiny", BuildOptions())
    x = (drawn((1, 12, 10, 24)),)
    assert verify(work, x).contained
    right = work.program.layers_source
    at = right.rindex("tiny_store(")
    end = right.index(");", at)
    wrong = f"{right[:end]} + 8{right[end:]}"
    outside = verify(with_layers(work, wrong), x).stray
    assert outside is not None and outside.place == "mac"
