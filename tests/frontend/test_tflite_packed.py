"""TFLite files with packed weights of 4 bits, against TFLite Micro's reference kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import htvm
from byoc_dory.errors import ModelError, UnsupportedError
from tests.frontend.flatfile import INT2, INT4, INT8, UINT4, Graph, Tensor
from tests.frontend.single import CASES, Loader, inputs_of
from tests.frontend.sketch import Sketch
from tests.frontend.tflm import reference
from tests.frontend.wide import as_int16
from tests.reference.interpreter import interpret

KINDS = ("conv", "depthwise", "fully_connected")


def with_int4(graph: Graph) -> Graph:
    """The same with weights from -8 to 7."""
    at = graph.operators[0].inputs[1]
    data = graph.tensors[at].data
    assert data is not None
    return graph.with_tensor(at, code=INT4, data=(data & 15).astype(np.int8) - np.int8(8))


def layer(channels: int = 3, taps: int = 5, *, code: int = INT4) -> Graph:
    """A FULLY_CONNECTED with every number of 4 bits among its weights, if they are enough."""
    sketch = Sketch(np.random.default_rng(0))
    source = sketch.input((1, taps), 0.05, 3)
    numbers = np.resize(np.arange(7, -9, -1), channels * taps).astype(np.int8)
    weights = sketch.constant(numbers.reshape(channels, taps), 0.1, code=code)
    out = sketch.tensor((1, channels), 0.1, -5)
    sketch.op("FULLY_CONNECTED", [source, weights], [out], (8, {0: ("b", 0)}))
    return sketch.graph(out)


def drawn(kind: str, seed: int) -> Graph:
    return with_int4(CASES[kind](np.random.default_rng(seed)))


def weights_of(graph: Graph) -> Tensor:
    return graph.tensors[graph.operators[0].inputs[1]]


@pytest.mark.parametrize("kind", KINDS)
def test_layers_equal_tflite_micro(load: Loader, kind: str) -> None:
    """TFLite Micro's FULLY_CONNECTED lacks scales per channel: there, int8 of the same values."""
    odd = [seed for seed in range(8, 200) if math.prod(weights_of(drawn(kind, seed)).shape) % 2]
    counts = set()
    for seed in (*range(8), *odd[:4]):
        graph = drawn(kind, seed)
        inputs = inputs_of(graph, np.random.default_rng(seed))
        (made,) = interpret(load(graph).module, inputs).outputs
        counts.add(len(weights_of(graph).scales) > 1)
        if kind == "fully_connected" and len(weights_of(graph).scales) > 1:
            graph = graph.with_tensor(graph.operators[0].inputs[1], code=INT8)
        np.testing.assert_array_equal(made, reference(graph, inputs)[0])
    assert odd and counts == {False, True}


@pytest.mark.parametrize("shape", [(3, 5), (4, 8), (1, 1)])
def test_halves_of_bytes_are_in_order(load: Loader, shape: tuple[int, int]) -> None:
    graph = layer(*shape)
    data = np.arange(-2, shape[1] - 2, dtype=np.int8).reshape(1, -1)
    (made,) = interpret(load(graph).module, [data]).outputs
    np.testing.assert_array_equal(made, reference(graph, [data])[0])
    (twin,) = interpret(load(layer(*shape, code=INT8)).module, [data]).outputs
    np.testing.assert_array_equal(made, twin)


def convolution(low: int, high: int) -> Graph:
    sketch = Sketch(np.random.default_rng(0))
    source = sketch.input((1, 8, 8, 28), 0.05, 0)
    data = sketch.rng.integers(low, high + 1, (16, 3, 3, 28)).astype(np.int8)
    code = INT4 if high < 8 else INT8
    out = sketch.tensor((1, 8, 8, 16), 40 / 128 * (high + 8) / 15, 0)
    inputs = [source, sketch.constant(data, 0.1, code=code)]
    sketch.op("CONV_2D", inputs, [out], (1, {0: ("b", 0), 1: ("i", 1), 2: ("i", 1)}))
    return sketch.graph(out)


def test_n_eureka_reads_as_many_bits_as_the_file_has(load: Loader) -> None:
    kept = {}
    for bits in (4, 8):
        model = load(convolution(-(1 << bits - 1), (1 << bits - 1) - 1))
        built = htvm.build(model, "siracusa")
        assert set(built.placement.values()) == {"neureka"}
        kept[bits] = sum(
            item.data.nbytes for item in built.compiled.program.constants if item.memory
        )
    # The words of one bit of all filters: up to 28 channels each.
    assert kept == {bits: 16 * 32 * bits for bits in (4, 8)}


def changed(**changes: Any) -> Callable[[], Graph]:
    return lambda: layer().with_tensor(1, **changes)


def raw(count: int) -> np.ndarray:
    return np.zeros(count, np.uint8)


REFUSED: dict[str, tuple[Callable[[], Graph], type[Exception], str]] = {
    "too long": (changed(shape=(3, 3)), ModelError,
                 "8 bytes of packed int4 instead of 5 for shape (3, 3)"),
    "too short": (changed(shape=(5, 5)), ModelError,
                  "8 bytes of packed int4 instead of 13 for shape (5, 5)"),
    "int2": (changed(code=INT2, data=raw(4)), UnsupportedError, "int2 weights (tensor 1"),
    "uint4": (changed(code=UINT4, data=raw(8)), UnsupportedError, "uint4 weights (tensor 1"),
    "bfloat16": (changed(code=18, data=raw(30)), UnsupportedError, "bfloat16 weights (tensor 1"),
    "blocks": (changed(block=32), UnsupportedError, "blockwise quantization; tensor 1"),
    "input": (lambda: layer().with_tensor(0, code=INT4), UnsupportedError,
              "int4 activations (tensor 0"),
    "output": (lambda: layer().with_tensor(2, code=INT4), UnsupportedError,
               "int4 activations (tensor 2"),
    "beside int16": (lambda: as_int16(with_int4(CASES["conv"](np.random.default_rng(0)))),
                     UnsupportedError, "int4 weights beside int16 activations (tensor 1"),
}  # fmt: skip


@pytest.mark.parametrize(("graph", "kind", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_is_named(
    load: Loader, graph: Callable[[], Graph], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind) as caught:
        load(graph())
    assert words in str(caught.value)
