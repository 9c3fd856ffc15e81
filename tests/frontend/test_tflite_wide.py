"""TFLite operators with int16 activations ("int16x8") against TFLite Micro's reference kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import htvm
from byoc_dory.errors import ModelError, UnsupportedError
from patterns.ops.tflite.wide import WideConv2d
from tests.frontend import single, wide
from tests.frontend.flatfile import FLOAT32, INT16, INT32, INT64, Graph
from tests.frontend.single import Loader, inputs_of
from tests.frontend.sketch import Sketch
from tests.frontend.tflm import reference
from tests.reference.interpreter import Array, interpret

WITHOUT_MICRO = ("gather", "depth_to_space")
"""Moves that TFLite Micro has for int8 alone; the same handlers read them."""


def drawn(kind: str, seed: int) -> tuple[Graph, list[Array]]:
    rng = np.random.default_rng(seed)
    graph = wide.CASES[kind](rng)
    return graph, inputs_of(graph, rng)


def same(made: list[Array], wanted: list[Array]) -> None:
    for array, expected in zip(made, wanted, strict=True):
        assert array.dtype == expected.dtype
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("kind", [kind for kind in wide.CASES if kind not in WITHOUT_MICRO])
def test_the_integer_form_equals_tflite_micro(load: Loader, kind: str) -> None:
    for seed in range(5):
        graph, inputs = drawn(kind, seed)
        same(interpret(load(graph).module, inputs).outputs, reference(graph, inputs))


def test_factors_of_a_leaky_relu_are_not_rounded_to_float32(load: Loader) -> None:
    """Halves that only the last bits of the factors decide, as TFLite Micro computes them."""
    sketch = Sketch(np.random.default_rng(0))
    source = sketch.input((1, 4), 0.0010244421428069472, 0, code=INT16)
    out = sketch.tensor((1, 4), 0.0009051731321960688, 0, code=INT16)
    sketch.op("LEAKY_RELU", [source], [out], (75, {0: ("f", 0.3)}))
    data = np.asarray([[-32643, -31836, 27204, 28054]], np.int16)
    (found,) = interpret(load(sketch.graph(out)).module, [data]).outputs
    np.testing.assert_array_equal(found, [[-11083, -10809, 30789, 31751]])


@pytest.mark.parametrize("kind", WITHOUT_MICRO)
def test_moves_are_those_of_int8(load: Loader, kind: str) -> None:
    rng = np.random.default_rng(3)
    graph = single.CASES[kind](rng)
    inputs = inputs_of(graph, rng)
    (found,) = interpret(load(wide.as_int16(graph)).module, [inputs[0].astype(np.int16)]).outputs
    np.testing.assert_array_equal(found, reference(graph, inputs)[0])


def function(kind: str, shape: tuple[int, ...], scale: float, made: float, options: Any) -> Graph:
    sketch = Sketch(np.random.default_rng(0))
    source = sketch.input(shape, float(np.float32(scale)), 0, code=INT16)
    out = sketch.tensor(shape, float(np.float32(made)), 0, code=INT16)
    sketch.op(kind, [source], [out], options)
    return sketch.graph(out)


@pytest.mark.parametrize(
    ("kind", "scale", "made"),
    [
        ("LOGISTIC", 2.0**-12, 1 / 32768),
        ("LOGISTIC", 2.4e-4, 1 / 32768),
        ("LOGISTIC", 2.6, 1 / 32768),
        ("LOGISTIC", 1e-9, 1 / 32768),
        ("TANH", 2.0**-12, 1 / 32768),
        ("TANH", 2.0**-11, 1 / 32768),
        ("TANH", 3.1e-5, 1 / 32768),
        ("ABS", 0.11, 0.1),
        ("ABS", 0.05, 0.1),
        ("RELU", 0.03, 0.02),
    ],
)
def test_generated_functions_of_every_number(
    load: Loader, kind: str, scale: float, made: float
) -> None:
    graph = function(kind, (1, 65536), scale, made, None)
    data = np.arange(-32768, 32768).astype(np.int16).reshape(1, -1)
    built = htvm.build(load(graph), "generic.cpu", "host")
    same(built.run([data]).outputs, reference(graph, [data]))


@pytest.mark.parametrize(("scale", "length"), [(1e-4, 2), (3e-4, 700), (1e-9, 9), (4.9, 7)])
def test_generated_softmax_of_extremes(load: Loader, scale: float, length: int) -> None:
    graph = function("SOFTMAX", (9, length), scale, 1 / 32768, (9, {0: ("f", 1.0)}))
    rng = np.random.default_rng(0)
    data = rng.integers(-32768, 32768, (9, length)).astype(np.int16)
    data[0], data[1], data[2], data[3] = -32768, 32767, 0, -32768
    data[3, -1] = 32767
    data[4:6] = rng.integers(32000, 32768, (2, length))
    built = htvm.build(load(graph), "generic.cpu", "host")
    same(built.run([data]).outputs, reference(graph, [data]))


def network() -> Graph:
    """Layers one after another, with sums of more than 32 bits."""
    sketch = Sketch(np.random.default_rng(0))
    source = sketch.input((1, 6, 6, 64), 1e-4, 0, code=INT16)
    filters = sketch.constant(sketch.bytes(8, 3, 3, 64), 0.01)
    data = sketch.rng.integers(-(2**34), 2**34, 8)
    bias = sketch.constant(data.astype(np.int64), 1e-6, code=INT64)
    conv = sketch.tensor((1, 6, 6, 8), 1.0, 0, code=INT16)
    one = ("i", 1)
    sketch.op("CONV_2D", [source, filters, bias], [conv], (1, {1: one, 2: one, 3: ("b", 1)}))
    pooled = sketch.tensor((1, 3, 3, 8), 1.0, 0, code=INT16)
    two = ("i", 2)
    window = {0: ("b", 1), 1: two, 2: two, 3: two, 4: two}
    sketch.op("AVERAGE_POOL_2D", [conv], [pooled], (5, window))
    logits = sketch.tensor((1, 5), 8.0, 0, code=INT16)
    weights = sketch.constant(sketch.bytes(5, 72), 0.01)
    flat = sketch.tensor((1, 72), 1.0, 0, code=INT16)
    sketch.op("RESHAPE", [pooled, sketch.integers([1, 72])], [flat], None)
    sketch.op("FULLY_CONNECTED", [flat, weights], [logits], (8, {}))
    return sketch.graph(logits)


def test_a_network_runs_on_the_simulator(load: Loader) -> None:
    graph = network()
    model = load(graph)
    inputs = inputs_of(graph, np.random.default_rng(1))
    wanted = reference(graph, inputs)
    assert len(np.unique(wanted[0])) > 2, "the test data say nothing"
    for platform in ("host", "rv32"):
        built = htvm.build(model, "generic.cpu", platform)  # type: ignore[arg-type]
        same(built.run(inputs).outputs, wanted)


def test_accelerators_leave_it_to_their_host(load: Loader) -> None:
    graph = network()
    inputs = inputs_of(graph, np.random.default_rng(1))
    built = htvm.build(load(graph), "diana", "host")
    same(built.run(inputs).outputs, reference(graph, inputs))


def test_channels_whose_scales_are_far_apart_have_shifts_of_their_own(load: Loader) -> None:
    sketch = Sketch(np.random.default_rng(0))
    source = sketch.input((1, 4, 4, 32), 0.01, 0, code=INT16)
    filters = sketch.constant(sketch.bytes(3, 1, 1, 32), 1, scales=[0.02, 3e-9, 1e-5],
                              zero_points=[0] * 3)  # fmt: skip
    out = sketch.tensor((1, 4, 4, 3), 0.03, 0, code=INT16)
    one = ("i", 1)
    sketch.op("CONV_2D", [source, filters], [out], (1, {1: one, 2: one}))
    graph = sketch.graph(out)
    inputs = inputs_of(graph, np.random.default_rng(1))
    model = load(graph)
    (node,) = model.graph.nodes.values()
    assert isinstance(node.op, WideConv2d) and len(set(node.op.shifts)) > 1
    wanted = reference(graph, inputs)
    same(interpret(model.module, inputs).outputs, wanted)
    same(htvm.build(model, "generic.cpu", "host").run(inputs).outputs, wanted)


def as_wide(kind: str) -> Graph:
    return wide.as_int16(single.CASES[kind](np.random.default_rng(0)))


def narrow_bias(kind: str, seed: int = 0) -> Graph:
    """With an int32 bias, of which kernels make something else."""
    graph = wide.as_int16(single.CASES[kind](np.random.default_rng(seed)))
    (at,) = (at for at, tensor in enumerate(graph.tensors) if tensor.code == INT64)
    data = graph.tensors[at].data
    assert data is not None
    return graph.with_tensor(at, code=INT32, data=np.clip(data, -(2**31), 2**31 - 1).astype("i4"))


@pytest.mark.parametrize(
    ("graph", "error", "text"),
    [
        (as_wide("hard_swish"), UnsupportedError, "int16 activations of operator HARD_SWISH"),
        (as_wide("add").with_tensor(0, zero_points=[3]), UnsupportedError, "zero point 3"),
        (as_wide("conv").with_tensor(2, code=FLOAT32, data=None), ModelError, "read before"),
        (as_wide("logistic"), UnsupportedError, "a logistic with output scale 1.52588e-05"),
        (drawn("tanh", 0)[0].with_tensor(0, scales=[2.7]), UnsupportedError, "use below 2.6"),
        (drawn("softmax", 0)[0].with_tensor(0, scales=[50.0]), UnsupportedError, "use below 5"),
        (as_wide("multiply").with_tensor(2, scales=[1e-12]), UnsupportedError, "finer"),
        (narrow_bias("conv"), UnsupportedError, "an int32 bias beside int16 activations"),
        (narrow_bias("depthwise"), UnsupportedError, "an int32 bias beside int16 activations"),
    ],
    ids=["operator", "zero point", "bias", "logistic", "tanh", "softmax", "product",
         "narrow bias", "narrow depthwise bias"],
)  # fmt: skip
def test_refusals(load: Loader, graph: Graph, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        load(graph)
