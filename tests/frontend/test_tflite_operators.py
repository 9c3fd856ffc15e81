"""TFLite operators, one by one and in one network, against TFLite Micro's reference kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import htvm
from byoc_dory.errors import ModelError, UnsupportedError
from patterns.ops.moves.reshape import SpaceToDepth
from tests.frontend.flatfile import FLOAT32, INT16, INT32, UINT8, Graph
from tests.frontend.single import CASES, Loader, inputs_of
from tests.frontend.sketch import Sketch
from tests.frontend.tflm import reference
from tests.reference.interpreter import Array, interpret


def assert_equal(made: list[Array], wanted: list[Array]) -> None:
    for array, expected in zip(made, wanted, strict=True):
        assert array.dtype == expected.dtype
        np.testing.assert_array_equal(array, expected)


def drawn(kind: str, seed: int) -> tuple[Graph, list[Array]]:
    rng = np.random.default_rng(seed)
    graph = CASES[kind](rng)
    return graph, inputs_of(graph, rng)


@pytest.mark.rotating(20)
@pytest.mark.parametrize("kind", CASES)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1))
def test_the_integer_form_equals_tflite_micro(load: Loader, kind: str, seed: int) -> None:
    graph, inputs = drawn(kind, seed)
    assert_equal(interpret(load(graph).module, inputs).outputs, reference(graph, inputs))


@pytest.mark.slow
@pytest.mark.parametrize("kind", CASES)
@settings(max_examples=200)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_integer_form_equals_tflite_micro_at_length(load: Loader, kind: str, seed: int) -> None:
    graph, inputs = drawn(kind, seed)
    assert_equal(interpret(load(graph).module, inputs).outputs, reference(graph, inputs))


@pytest.mark.parametrize("target", ["generic.cpu", "diana.digital"])
def test_space_to_depth_between_layers(load: Loader, target: str) -> None:
    """Behind it stands an identity, which retargeting may round to the next integer."""
    sketch = Sketch(np.random.default_rng(4))
    image = sketch.input((1, 8, 6, 4), 0.02, 5)
    blocks = sketch.like(image, (1, 4, 3, 16))
    sketch.op("SPACE_TO_DEPTH", [image], [blocks], (19, {0: ("i", 2)}))
    filters = sketch.constant(np.eye(16, dtype=np.int8).reshape(16, 1, 1, 16) * 64, 1 / 64)
    bias = sketch.constant(np.zeros(16, np.int32), 0.02 / 64, code=INT32)
    out = sketch.like(image, (1, 4, 3, 16))
    sketch.op("CONV_2D", [blocks, filters, bias], [out],
              (1, {0: ("b", 1), 1: ("i", 1), 2: ("i", 1)}))  # fmt: skip
    built = htvm.build(load(sketch.graph(out)), target, "host")
    data = np.arange(-96, 96, dtype=np.int8).reshape(1, 8, 6, 4)
    wanted = np.concatenate([data[:, y::2, x::2] for y in (0, 1) for x in (0, 1)], axis=3)
    np.testing.assert_array_equal(SpaceToDepth(2).moved([data], 0), wanted)
    found = built.run([data]).outputs[0]
    limit = 0 if target == "generic.cpu" else 1
    np.testing.assert_allclose(found.astype(int), wanted, rtol=0, atol=limit)
    rows = {row.layer: row for row in built.explain().rows}
    assert set(rows) - {"convert_0"} == {"space_to_depth_0", "conv2d_0"}
    assert rows["space_to_depth_0"].cpu_cycles


# ------------------------------------------------------------------------------ all in one


def everything(seed: int = 0, *, borders: bool = True) -> Graph:
    """A network with most operators in it, from uint8 to float32 or int8 from end to end."""
    sketch = Sketch(np.random.default_rng(seed))

    def unary(kind: str, source: int, scale: float, zero: int, options: object = None) -> int:
        out = sketch.tensor(sketch.tensors[source].shape, scale, zero)
        sketch.op(kind, [source], [out], options)  # type: ignore[arg-type]
        return out

    def weights(*shape: int, axis: int = 0, step: float) -> list[int]:
        data = sketch.constant(sketch.bytes(*shape), 0.01)
        bias = sketch.rng.integers(-900, 900, shape[axis]).astype(np.int32)
        scale = sketch.constant(bias, step * 0.01, code=INT32)
        return [data, scale]

    one, two = ("i", 1), ("i", 2)
    if borders:
        image = sketch.input((1, 12, 10, 3), 0.02, 128, code=UINT8)
        source = unary("QUANTIZE", image, 0.02, 0)
    else:
        source = sketch.input((1, 12, 10, 3), 0.02, 0)
    conv = sketch.tensor((1, 6, 5, 4), 0.05, -3)
    sketch.op("CONV_2D", [source, *weights(4, 3, 3, 3, step=0.02)], [conv],
              (1, {0: ("b", 0), 1: two, 2: two}))  # fmt: skip
    swished = unary("HARD_SWISH", conv, 0.04, -100)
    wide = sketch.tensor((1, 6, 5, 8), 0.1, 4)
    sketch.op("DEPTHWISE_CONV_2D", [swished, *weights(1, 3, 3, 8, axis=3, step=0.04)], [wide],
              (2, {0: ("b", 0), 1: one, 2: one, 3: two, 4: ("b", 1)}))  # fmt: skip
    halves = [sketch.like(wide, (1, 6, 5, 4)) for _ in range(2)]
    sketch.op("SPLIT", [sketch.integers(3), wide], halves, (35, {0: two}))
    gate = unary("LOGISTIC", halves[0], 1 / 256, -128)
    curve = unary("TANH", halves[1], 1 / 128, 0)
    product = sketch.tensor((1, 6, 5, 4), 1 / 150, 0)
    sketch.op("MUL", [gate, curve], [product], (21, {0: ("b", 0)}))
    rescaled = unary("QUANTIZE", product, 0.1, 4)
    joined = sketch.like(wide, (1, 6, 5, 8))
    sketch.op("CONCATENATION", [rescaled, halves[1]], [joined], (10, {0: ("i", -1)}))
    pooled = sketch.like(joined, (1, 3, 3, 8))
    sketch.op("MAX_POOL_2D", [joined], [pooled],
              (5, {0: ("b", 0), 1: two, 2: two, 3: two, 4: two}))  # fmt: skip
    larger = sketch.like(pooled, (1, 5, 4, 8))
    sketch.op("RESIZE_NEAREST_NEIGHBOR", [pooled, sketch.integers([5, 4])], [larger],
              (74, {0: ("B", 0), 1: ("B", 1)}))  # fmt: skip
    grown = sketch.tensor((1, 10, 8, 5), 0.2, 9)
    filters = weights(5, 3, 3, 8, step=0.1)
    sketch.op("TRANSPOSE_CONV", [sketch.integers([1, 10, 8, 5]), filters[0], larger, filters[1]],
              [grown], (49, {0: ("b", 0), 1: two, 2: two}))  # fmt: skip
    leaky = unary("LEAKY_RELU", grown, 0.15, -60, (75, {0: ("f", 0.2)}))
    offset = sketch.constant(sketch.bytes(5), 0.05, 3)
    moved = sketch.tensor((1, 10, 8, 5), 0.2, -50)
    sketch.op("SUB", [leaky, offset], [moved], (28, {0: ("b", 0)}))
    part = sketch.like(moved, (1, 5, 8, 5))
    bounds = ([0, 9, 0, 0], [1, 0, 8, 5], [1, -2, 1, 1])
    sketch.op("STRIDED_SLICE", [moved, *(sketch.integers(item) for item in bounds)], [part],
              (32, {}))  # fmt: skip
    padded = sketch.like(part, (1, 6, 9, 5))
    sketch.op("PAD", [part, sketch.integers([[0, 0], [1, 0], [0, 1], [0, 0]])], [padded], None)
    average = sketch.tensor((1, 5), 0.1, 0)
    sketch.op("MEAN", [padded, sketch.integers([1, 2])], [average], (27, {0: ("B", 0)}))
    logits = sketch.tensor((1, 6), 0.1, 0)
    sketch.op("FULLY_CONNECTED", [average, *weights(6, 5, step=0.1)], [logits],
              (8, {0: ("b", 0)}))  # fmt: skip
    classes = unary("SOFTMAX", logits, 1 / 256, -128, (9, {0: ("f", 1.0)}))
    if not borders:
        return sketch.graph(classes, logits)
    real = sketch.tensor((1, 6), 1, 0, code=FLOAT32, scales=(), zero_points=())
    sketch.op("DEQUANTIZE", [classes], [real], None)
    return sketch.graph(real, logits)


def test_everything_on_the_simulator_equals_tflite_micro(load: Loader) -> None:
    graph = everything()
    rng = np.random.default_rng(1)
    model = load(graph)
    assert [info.dtype for info in (*model.inputs, *model.outputs)] == ["uint8", "float32", "int8"]
    built = [htvm.build(model, "generic.cpu", platform) for platform in ("host", "rv32")]  # type: ignore[arg-type]
    for _ in range(3):
        inputs = inputs_of(graph, rng)
        wanted = interpret(model.module, inputs).outputs
        assert len(np.unique(wanted[1])) > 2, "the test data say nothing"
        for module in built:
            assert_equal(module.run(inputs).outputs, wanted)
        assert_equal(wanted, reference(graph, inputs))


def test_every_operator_is_known_by_its_tensor_in_the_file(load: Loader) -> None:
    graph = everything()
    model = load(graph)
    made = {graph.tensors[at].name for op in graph.operators for at in op.outputs}
    assert set(model.sources.values()) == made


@pytest.mark.parametrize(
    ("kind", "scales", "zeros", "number", "wanted"),
    [
        ("ABS", (0.11, 0.1), (0, 0), 5, 5),
        ("ABS", (0.11, 0.1), (0, 0), 15, 16),
        ("RSQRT", (0.442, 0.012), (-128, -128), -114, -94),
        ("HARD_SWISH", (0.254, 0.255), (0, 0), 127, 126),
    ],
)
def test_factors_are_not_rounded_to_float32(
    load: Loader, kind: str, scales: tuple[float, float], zeros: tuple[int, int], number: int,
    wanted: int,
) -> None:  # fmt: skip
    """Halves that only the last bits of a factor decide, as TFLite Micro computes them."""
    sketch = Sketch(np.random.default_rng(0))
    first, last = (float(np.float32(scale)) for scale in scales)
    source = sketch.input((1, 256), first, zeros[0])
    out = sketch.tensor((1, 256), last, zeros[1])
    sketch.op(kind, [source], [out], None)
    graph = sketch.graph(out)
    every = np.arange(-128, 128).astype(np.int8).reshape(1, 256)
    (found,) = interpret(load(graph).module, [every]).outputs
    assert found[0, number + 128] == wanted
    assert_equal([found], reference(graph, [every]))


# ------------------------------------------------------------------------------ what is meant


def test_parts_of_another_scale_are_rescaled_before_they_are_joined(load: Loader) -> None:
    """TFLite refuses them, TFLite Micro would copy the integers."""
    sketch = Sketch(np.random.default_rng(0))
    parts = [sketch.input((1, 256), 0.1, 0), sketch.input((1, 256), 0.05, 20)]
    out = sketch.tensor((1, 512), 0.1, 0)
    sketch.op("CONCATENATION", parts, [out], (10, {0: ("i", 1)}))
    every = np.arange(-128, 128).astype(np.int8).reshape(1, 256)
    (made,) = interpret(load(sketch.graph(out)).module, [every, every]).outputs
    np.testing.assert_array_equal(made[:, :256], every)
    real = (every.astype(np.float64) - 20) * 0.05
    assert np.abs(made[:, 256:] * 0.1 - real).max() <= 0.05 + 1e-9


def single(kind: str, seed: int = 0) -> Graph:
    return CASES[kind](np.random.default_rng(seed))


def int16(graph: Graph) -> Graph:
    return graph.with_tensor(graph.inputs[0], code=INT16, zero_points=[0])


def with_option(graph: Graph, field: int, value: tuple[str, float]) -> Graph:
    found = graph.operators[0].options
    assert found is not None
    return graph.with_operator(0, options=(found[0], {**found[1], field: value}))


def batch_of_two() -> Graph:
    sketch = Sketch(np.random.default_rng(0))
    source, out = sketch.input((2, 4, 4, 3)), sketch.tensor((2, 2, 2, 3), 0.05, 3)
    window = {0: ("b", 0), **dict.fromkeys((1, 2, 3, 4), ("i", 2))}
    sketch.op("MAX_POOL_2D", [source], [out], (5, window))
    return sketch.graph(out)


def run_time_slopes() -> Graph:
    graph = single("prelu")
    return replace(graph.with_tensor(1, data=None), inputs=(0, 1))


def broken_join() -> Graph:
    graph = single("concat")
    return graph.with_tensor(graph.inputs[0], shape=(7, 7, 7))


def scalar(kind: str) -> Graph:
    return single(kind).with_tensor(0, shape=()).with_tensor(-1, shape=())


def scalar_row() -> Graph:
    """A FULLY_CONNECTED that keeps the axes of a tensor without any."""
    sketch = Sketch(np.random.default_rng(0))
    source, weights = sketch.input(()), sketch.constant(sketch.bytes(3, 1), 0.1)
    out = sketch.tensor((3,), 0.1, -5)
    sketch.op("FULLY_CONNECTED", [source, weights], [out], (8, {2: ("B", 1)}))
    return sketch.graph(out)


REFUSED: dict[str, tuple[Callable[[], Graph], type[Exception], list[str]]] = {
    "int16 table": (lambda: int16(single("hard_swish")), UnsupportedError,
                    ["int16 activations of operator HARD_SWISH", "operator 0 (HARD_SWISH)"]),
    "int16 concatenation": (lambda: int16(single("concat")), UnsupportedError,
                            ["beside int16 activations", "tensor_", "CONCATENATION"]),
    "int16 border": (lambda: single("unsigned").with_tensor(1, code=INT16), UnsupportedError,
                     ["zero point", "tensor_1", "operator 0 (QUANTIZE)"]),
    "scalar softmax": (lambda: scalar("softmax"), UnsupportedError, ["tensor_0", "has no axes"]),
    "scalar prelu": (lambda: scalar("prelu"), UnsupportedError, ["tensor_0", "has no axes"]),
    "scalar length": (lambda: scalar("l2_normalization"), UnsupportedError,
                      ["tensor_0", "has no axes", "L2_NORMALIZATION"]),
    "scalar row": (scalar_row, UnsupportedError, ["tensor_0", "has no axes", "FULLY_CONNECTED"]),
    "length scale": (lambda: single("l2_normalization").with_tensor(1, scales=[0.1]),
                     UnsupportedError, ["scale 1/128", "L2_NORMALIZATION"]),
    "logarithm scale": (lambda: single("log_softmax").with_tensor(1, zero_points=[0]),
                        UnsupportedError, ["scale 1/16", "LOG_SOFTMAX"]),
    "batch": (batch_of_two, UnsupportedError, ["a batch of 2", "operator 0 (MAX_POOL_2D)"]),
    "logistic scale": (lambda: single("logistic").with_tensor(1, scales=[0.1]), UnsupportedError,
                       ["scale 1/256", "LOGISTIC"]),
    "tanh zero point": (lambda: single("tanh").with_tensor(1, zero_points=[1]), UnsupportedError,
                        ["1/128", "TANH"]),
    "run-time slopes": (run_time_slopes, UnsupportedError, ["slopes", "make them constant"]),
    "ellipsis": (lambda: with_option(single("strided_slice"), 2, ("i", 1)), UnsupportedError,
                 ["an ellipsis", "STRIDED_SLICE"]),
    "join axis": (lambda: with_option(single("concat"), 0, ("i", 9)), ModelError, ["axis 9"]),
    "broken join": (broken_join, ModelError,
                    ["CONCATENATION"]),
    "fused": (lambda: with_option(single("multiply"), 0, ("b", 4)), UnsupportedError,
              ["fused activation function 4", "MUL"]),
    "broadcast": (lambda: single("add", 3).with_tensor(0, shape=(1, 1, 77)), ModelError, ["ADD"]),
    "coarse step": (lambda: single("hard_swish").with_tensor(1, scales=[1e4]), UnsupportedError,
                    ["HARD_SWISH", "shifts of 16 bits"]),
    "fine step": (lambda: single("hard_swish").with_tensor(1, scales=[1e-7]), UnsupportedError,
                  ["HARD_SWISH", "128 times finer"]),
    "sizes": (lambda: single("resize").with_tensor(2, data=None), ModelError,
              ["read before it is written"]),
}  # fmt: skip


@pytest.mark.parametrize(("graph", "kind", "parts"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_is_named_with_its_place(
    load: Loader, graph: Callable[[], Graph], kind: type[Exception], parts: list[str]
) -> None:
    with pytest.raises(kind) as caught:
        load(graph())
    for part in parts:
        assert part in str(caught.value)


def test_damaged_files_raise_one_of_two_errors(load: Loader) -> None:
    rng = np.random.default_rng(5)
    data = everything().file()

    class Damaged(Graph):
        def file(self) -> bytes:
            changed = bytearray(data)
            for at in rng.integers(0, len(data), int(rng.integers(1, 4))):
                changed[at] = int(rng.integers(0, 256))
            return bytes(changed)

    outcomes = set()
    for _ in range(120):
        try:
            load(Damaged((), ()))
            outcomes.add("loaded")
        except (ModelError, UnsupportedError) as error:
            assert error.what and error.where
            outcomes.add(type(error).__name__)
    assert {"loaded", "ModelError"} <= outcomes
