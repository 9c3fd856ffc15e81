"""Chains of rows compute what the integer form says, for any network, limit and core."""

from __future__ import annotations

import numpy as np
import pytest

import htvm
from byoc_dory.layers import TfliteRequant
from htvm.build_options import Input, Platform
from patterns.op import TensorType
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import dense_of
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.reshape import Reshape, Transpose
from patterns.ops.tflite.binary import MultiplyFactors, TfliteBinary
from patterns.reading.building import GraphBuilder
from tests.aot.chains.networks import banded_network, check, inputs_of, mobilenet_v2
from tests.reference.interpreter import interpret

EVERYDAY: tuple[tuple[str, Platform, int, Input], ...] = (
    ("generic.cpu", "host", 1, "kept"),
    ("generic.cpu", "host", 12, "kept"),
    ("cortex_m4", "arm", 103, "kept"),
    ("generic.cpu", "host", 3, "streamed"),
    ("generic.cpu", "rv32", 3, "streamed"),
    ("cortex_m4", "arm", 3, "streamed"),
    ("generic.cpu", "host", 3, "overwritten"),
    ("generic.cpu", "rv32", 3, "overwritten"),
    ("cortex_m4", "arm", 3, "overwritten"),
)
TARGETS = ("cortex_m4", "cortex_m0plus", "generic.cpu", "siracusa.cpu")
INPUTS: tuple[Input, ...] = ("kept", "streamed", "overwritten")
SEEDS = 500
"""Networks, each for one of these targets and one of these ways; some run in emulators."""


@pytest.mark.parametrize(("target", "platform", "seed", "way"), EVERYDAY)
def test_chains_equal_the_interpreter(
    target: str, platform: Platform, seed: int, way: Input
) -> None:
    assert check(target, platform, seed, way)


def _by_rows_equals_the_interpreter(graph: GraphBuilder, result: str, chains: int) -> None:
    model = htvm.load(graph.graph([result]).module, name="rows")
    module = htvm.build(model, "generic.cpu", "host", memory="least")
    kernels = module.compiled.cpu_kernels
    assert sum("htvm_chain.h" in kernel.headers for kernel in kernels) == chains
    rng = np.random.default_rng(2)
    inputs = [
        rng.integers(np.iinfo(info.dtype).min, np.iinfo(info.dtype).max, info.shape, info.dtype)
        for info in model.inputs
    ]
    (found,) = module.run(inputs).outputs
    np.testing.assert_array_equal(found, interpret(model.module, inputs).outputs[0])


@pytest.mark.parametrize(
    ("target", "platform", "width", "made"),
    [
        ("cortex_m4", "arm", 14, "2 rows of op_2 from 4 rows"),  # depthwise
        ("cortex_m4", "arm", 16, "htvm_line_1("),  # quick enough alone
        ("cortex_m0plus", "arm", 5, "2 rows of op_1 from 2 rows"),
        ("generic.cpu", "host", 5, "2 rows of op_1 from 2 rows"),  # into a strip with padding
    ],
)
def test_bands_equal_the_interpreter(
    target: str, platform: Platform, width: int, made: str
) -> None:
    model = banded_network(width)
    module = htvm.build(model, target, platform, memory=2_000, input="streamed")
    assert made in "".join(kernel.source for kernel in module.compiled.cpu_kernels)
    for number in range(2):
        inputs = inputs_of(model, number)
        wanted = interpret(model.module, inputs).outputs
        np.testing.assert_array_equal(module.run(inputs).outputs[0], wanted[0])


def test_an_operand_that_every_row_reads() -> None:
    """A gate, as in squeeze-and-excitation: nothing may lie over it before the last row."""
    rng = np.random.default_rng(1)
    graph = GraphBuilder([("x", TensorType((1, 8, 6, 4))), ("y", TensorType((1, 1, 4, 1)))])
    graph.apply(Transpose((0, 1, 3, 2)), ["y"], "gate")
    factors = MultiplyFactors.from_scales((0.02, 0.03, 0.02), (3, -5, 7))
    graph.apply(TfliteBinary("multiply", factors), ["x", "gate"], "gated")
    requant = TfliteRequant((1 << 30,) * 4, (-6,) * 4)
    weight = rng.integers(-127, 128, (4, 4, 3, 3)).astype("int8")
    window = Window((1, 1), padding=(1, 1, 1, 1))
    graph.apply(
        conv2d_of(weight, np.zeros(4, "int32"), window, requant, (-128, 127)), ["gated"], "c"
    )
    graph.apply(Reshape((1, 192)), ["c"], "flat")
    weight = rng.integers(-127, 128, (2, 192)).astype("int8")
    ending = TfliteRequant((1 << 30,) * 2, (-8,) * 2), (-128, 127)
    graph.apply(dense_of((1,), weight, np.zeros(2, "int32"), *ending), ["flat"], "dense")
    _by_rows_equals_the_interpreter(graph, "dense", 1)


def test_padding_of_halfwords_is_left_to_whole_maps() -> None:
    """Strips are filled byte by byte, and -32768 has two different ones."""
    graph = GraphBuilder([("x", TensorType((1, 9, 6, 4), "int16"))])
    graph.apply(MaxPool((3, 3), (1, 1), (1, 1, 1, 1)), ["x"], "one")
    graph.apply(MaxPool((3, 3), (2, 2), (1, 1, 1, 1)), ["one"], "two")
    _by_rows_equals_the_interpreter(graph, "two", 0)


@pytest.mark.slow
def test_mobilenet_v2_needs_less_than_a_board_with_256_kib() -> None:
    model = mobilenet_v2(224, 1.0)
    inputs = inputs_of(model, 1)
    module = htvm.build(model, "cortex_m4", "arm", memory=135_000)
    wanted = htvm.build(model, "cortex_m4", "host").run(inputs).outputs
    np.testing.assert_array_equal(module.run(inputs).outputs[0], wanted[0])
    assert module.l2_peak <= 135_000


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1000 + SEEDS, 20))
def test_many_chains_equal_the_interpreter(first: int) -> None:
    chains = []
    for seed in range(first, first + 20):
        target, way = TARGETS[seed % 4], INPUTS[seed // 4 % 3]
        emulated = target.startswith("cortex") and seed % 5 == 0
        platform: Platform = "arm" if emulated else "host"
        chains.append(check(target, platform, seed, way))
    assert sum(count > 0 for count in chains) > 10
