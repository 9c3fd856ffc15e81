"""A deliberate error in what the cores of a cluster compute is found with hart and line of C."""

from __future__ import annotations

import functools
import random
import re
from typing import Any

import numpy as np
import pytest

from byoc_dory.options import TilingOptions
from htvm import zoo
from htvm.aot.entry import model_sources
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.inputs import seeded_inputs
from htvm.pipeline import compile_model
from htvm.tools.verification.compare import _address, _index
from htvm.tools.verification.observe import ObservableMachine
from htvm.tools.verification.types import Difference, Origin
from tests.verification.probe import broken, compiled, probe, verified

TARGETS = pytest.mark.parametrize("target", ["snitch_ita.cluster", "siracusa.cluster"])

SPOIL = """static void spoil(const void *args, uint32_t core, uint32_t cores)
{
    int8_t *const out = ((const cluster_conv_t *)args)->out;
    (void)cores;
    if (core == CORE) {
        out[77] ^= 1;
    }
}

"""


@functools.cache
def probed(target: str, **tiling: Any) -> Compiled:
    """The probe with its average on the CPU, so that the layer before leaves its result in L2."""
    policy = {"average_pool_0": "cpu"} if target.startswith("siracusa") else None
    options = BuildOptions(tiling=TilingOptions(**tiling), policy=policy)
    return compile_model(probe(), target, options)


def hart_of(work: Compiled, core: int) -> int:
    cluster = work.target.soc.cluster
    assert cluster is not None
    return cluster.first + core


def found(work: Compiled) -> Difference:
    difference = verified(work).difference
    assert difference is not None
    return difference


def line_of(work: Compiled, origin: Origin, file: str) -> str:
    """The line of generated C that an origin names."""
    assert origin.place is not None and origin.place.file == file
    line = model_sources(work.program)[file].splitlines()[origin.place.line - 1].strip()
    assert origin.place.text == line
    return line


def in_conv2d_1(text: str, change: tuple[str, str]) -> str:
    """Replace something in this layer, which comes after others of its kind."""
    at = text.index("/* conv2d_1: ")
    return text[:at] + text[at:].replace(*change, 1)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("target", ["siracusa", "siracusa.cluster"])
def test_a_core_that_spoils_attention_over_a_cache(target: str) -> None:
    run = "cluster_run(cluster_attention, &args);\n"
    spoil = SPOIL.replace("CORE", "5").replace("conv_t", "attention_t").replace("77", "22")
    work = broken(
        compiled(zoo.microllama(2, layers=1), target),
        "layers_source",
        lambda text: text.replace(run, run + " cluster_run(spoil, &args);\n").replace(
            "/* layer_0_context: ", spoil + "/* layer_0_context: "
        ),
    )
    difference = found(work)
    assert (difference.layer, difference.place) == ("layer_0_context", "cluster")
    assert difference.element == (2, 5, 0) and difference.different == 1
    stored = difference.origins[-1]
    assert stored.hart == hart_of(work, 5)
    assert line_of(work, stored, "microllama_2_layers.c") == "out[22] ^= 1;"


@TARGETS
@pytest.mark.parametrize("core", [1, 6])
def test_a_core_that_spoils_a_layer(target: str, core: int) -> None:
    run = "    cluster_run(cluster_conv2d, &args);\n"
    work = broken(
        probed(target),
        "layers_source",
        lambda text: in_conv2d_1(text, (run, run + "    cluster_run(spoil, &args);\n")).replace(
            "/* conv2d_1: ", SPOIL.replace("CORE", str(core)) + "/* conv2d_1: "
        ),
    )
    difference = found(work)
    assert (difference.layer, difference.place) == ("conv2d_1", "cluster")
    assert difference.element == (77 % 24, 0, 77 // 24) and difference.different == 1
    moved, stored = difference.origins
    assert moved.what.startswith("stored by the DMA (transfer ") and moved.hart is None
    assert "cluster_dma_start" in line_of(work, moved, "probe_layers.c")
    assert moved.place is not None and moved.place.function == "probe_conv2d_1"
    assert stored.hart == hart_of(work, core) and stored.what == f"stored by hart {stored.hart}"
    assert line_of(work, stored, "probe_layers.c") == "out[77] ^= 1;"
    assert stored.place is not None and stored.place.function == "spoil" and stored.inner is None
    assert stored.cycle < moved.cycle


@pytest.mark.rotating(1)
@TARGETS
@pytest.mark.parametrize("core", [0, 3])
def test_a_broken_kernel_of_the_cpu(target: str, core: int) -> None:
    stores = re.compile(r"(out\[i3\] = [^;]*);")
    work = broken(
        probed(target),
        "cpu_source",
        lambda text: stores.sub(rf"\1 ^ (core == {core});", text),
    )
    difference = found(work)
    assert (difference.layer, difference.place) == ("average_pool_0", "cpu")
    assert difference.different == 24 // 8
    moved, stored = difference.origins
    assert "htvm_parallel_copy(out" in line_of(work, moved, "probe_cpu.c")
    assert stored.hart == hart_of(work, core)
    assert stored.what == (
        "stored by the host" if stored.hart == 0 else f"stored by hart {stored.hart}"
    )
    assert line_of(work, stored, "probe_cpu.c").endswith(f"^ (core == {core});")


@pytest.mark.rotating(1)
@TARGETS
def test_a_wrong_argument_of_a_tiled_layer(target: str) -> None:
    """The store is in a kernel of the runtime: the line is that which ran the kernel."""
    work = broken(
        probed(target, l1_budget=10_000),
        "layers_source",
        lambda text: in_conv2d_1(text, (".requant.high = 127", ".requant.high = 20")),
    )
    difference = found(work)
    assert difference.layer == "conv2d_1" and difference.tiles_different > 1
    moved, stored = difference.origins
    assert "/* result */" in line_of(work, moved, "probe_layers.c")
    assert line_of(work, stored, "probe_layers.c") == "cluster_run(cluster_conv2d, &args);"
    assert stored.place is not None and stored.place.function == "probe_conv2d_1"
    assert stored.hart in range(hart_of(work, 0), hart_of(work, 8))
    assert stored.inner is not None and stored.inner.file.endswith(".c")
    assert stored.cycle < moved.cycle


@pytest.mark.rotating(1)
@TARGETS
def test_which_of_many_transfers(target: str) -> None:
    """The result leaves again and again, ordered faster than it moves."""
    result = """    cluster_dma_start(&(cluster_dma_t){ /* result */
        .to = out,
        .from = cluster_l1(L1_OUT),
        .bytes = 7680,
        .rows = 1,
    });
"""
    order = "    cluster_dma_start(&(cluster_dma_t){{ out, cluster_l1(L1_OUT), 7680, 1, 0, 0 }});"
    order += " /* {} */\n"
    spoilt = "    ((int8_t *)cluster_l1(L1_OUT))[99] ^= 1;\n"
    work = broken(
        probed(target),
        "layers_source",
        lambda text: in_conv2d_1(text, (result, spoilt + "".join(map(order.format, range(8))))),
    )
    moved, stored = found(work).origins
    assert line_of(work, moved, "probe_layers.c").endswith("/* 7 */")
    assert stored.hart == 0 and "[99] ^= 1" in line_of(work, stored, "probe_layers.c")


@pytest.mark.rotating(1)
@TARGETS
def test_a_watched_run_counts_the_same(target: str) -> None:
    from htvm.sim.look import Look, Range, Watch

    work = probed(target)
    machine = ObservableMachine(
        work.program, work.target.soc, seeded_inputs(work.source.inputs), {}
    )
    l1 = work.target.soc.memory("L1")
    look = Look(
        watches=(Watch(Range(l1.base, l1.size), 1 << 62),),
        stack_at=(1000,),
        wakes=(1,),
        functions=machine.lines.functions,
    )
    plain, watched = machine.run(Look()), machine.run(look)
    assert watched.seen is not None and watched.seen.last[0] is not None
    for name in ("cycles", "instructions", "marks", "events", "outputs", "stack_used"):
        assert getattr(plain, name) == getattr(watched, name), name


@pytest.mark.parametrize("seed", range(20))
def test_bytes_of_rows_of_pixels(seed: int) -> None:
    """Against an array of all addresses in the order of the bytes."""
    rng = random.Random(seed)
    rows, pixels, size = rng.randint(1, 4), rng.randint(1, 4), rng.randint(1, 5)
    pixel_stride = size + rng.choice([0, 3])
    row_stride = pixels * pixel_stride + rng.choice([0, 7])
    first = 0x1000
    places = (
        first
        + row_stride * np.arange(rows)[:, None, None]
        + pixel_stride * np.arange(pixels)[None, :, None]
        + np.arange(size)
    ).reshape(-1)
    event = {
        "to": first,
        "written": int(places[-1]) + 1 - first,
        "to_rows": [rows, row_stride, pixels, pixel_stride, size],
    }
    known = {int(place): number for number, place in enumerate(places)}
    for address in range(first - 2, int(places[-1]) + 3):
        assert _index(event, "to", address) == known.get(address)
    assert [_address(event, "to", number) for number in range(len(places))] == list(places)
