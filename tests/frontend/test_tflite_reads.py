"""TFLite files: what is set is read or refused by name, and what is known is folded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import htvm
from htvm.errors import HtvmError, ModelError, UnsupportedError
from patterns.reading.read import graph_of
from tests.frontend import tflm
from tests.frontend.flatfile import Graph
from tests.frontend.single import CASES, inputs_of
from tests.frontend.sketch import Sketch
from tests.reference.interpreter import interpret


def loaded(graph: Graph, folder: Path) -> htvm.Model:
    path = folder / "net.tflite"
    path.write_bytes(graph.file())
    return htvm.load(path)


def sketch(seed: int = 5) -> Sketch:
    return Sketch(np.random.default_rng(seed))


def test_an_option_that_no_handler_reads_is_refused_by_name(tmp_path: Path) -> None:
    made = sketch()
    x = made.input((1, 4))
    made.op("LOGISTIC", [x], [y := made.tensor((1, 4), 1 / 256, -128)], (116, {0: ("B", 1)}))
    with pytest.raises(UnsupportedError, match="approximate"):
        loaded(made.graph(y), tmp_path)


def test_a_default_option_is_as_good_as_none(tmp_path: Path) -> None:
    made = sketch()
    x = made.input((1, 4))
    made.op("LOGISTIC", [x], [y := made.tensor((1, 4), 1 / 256, -128)], (116, {0: ("B", 0)}))
    assert loaded(made.graph(y), tmp_path).inputs[0].shape == (1, 4)


@pytest.mark.parametrize("kind", sorted(CASES))
def test_one_input_more_is_never_ignored(kind: str, tmp_path: Path) -> None:
    """An input behind those that an operator has must not change nothing."""
    graph = CASES[kind](np.random.default_rng(1))
    at = len(graph.operators) - 1
    inputs = list(graph.operators[at].inputs)
    if graph.operators[at].kind == "CONCATENATION":
        pytest.skip("it has as many as there are")
    more = graph.with_operator(at, inputs=[*inputs, inputs[0]])
    with pytest.raises(HtvmError):
        loaded(more, tmp_path)


def keras_flatten(made: Sketch) -> tuple[int, int, int]:
    """A flatten as Keras 3 converts it: the batch from SHAPE; returns input, output, its shape."""
    x = made.input((1, 2, 3, 4))
    shape = made.tensor((4,), 1, 0, code=2, scales=(), zero_points=())
    batch = made.tensor((), 1, 0, code=2, scales=(), zero_points=())
    packed = made.tensor((2,), 1, 0, code=2, scales=(), zero_points=())
    made.op("SHAPE", [x], [shape], (55, {0: ("b", 2)}))
    bounds = [made.integers(value) for value in ([0], [1], [1])]
    made.op("STRIDED_SLICE", [shape, *bounds], [batch], (32, {4: ("i", 1)}))
    made.op("PACK", [batch, made.integers(-1)], [packed], (59, {0: ("i", 2), 1: ("i", 0)}))
    y = made.like(x, (1, 24))
    made.op("RESHAPE", [x, packed], [y], (17, {}))
    return x, y, packed


def test_shapes_around_a_reshape_are_folded(tmp_path: Path) -> None:
    made = sketch()
    _, y, _ = keras_flatten(made)
    graph = made.graph(y)
    model = loaded(graph, tmp_path)
    assert [node.op.kind for node in graph_of(model.module).in_order] == ["reshape"]
    x = made.rng.integers(-128, 128, (1, 2, 3, 4)).astype(np.int8)
    np.testing.assert_array_equal(interpret(model.module, [x]).outputs[0], x.reshape(1, 24))
    np.testing.assert_array_equal(tflm.reference(graph, [x])[0], x.reshape(1, 24))


def test_tensors_need_no_names(tmp_path: Path) -> None:
    graph = CASES["subtract"](np.random.default_rng(2))
    bare = replace(graph, tensors=[replace(tensor, name="") for tensor in graph.tensors])
    model = loaded(bare, tmp_path)
    names = [item.name for item in (*model.inputs, *model.outputs)]
    assert len(set(names)) == len(names)
    assert all(names)


def test_an_unsupported_operator_is_named_even_if_it_has_state(tmp_path: Path) -> None:
    made = sketch()
    x = made.input((1, 4))
    made.op("SVDF", [x, x, x, -1, x], [y := made.like(x, (1, 4))], (6, {}))
    with pytest.raises(UnsupportedError, match="SVDF"):
        loaded(made.graph(y), tmp_path)


def test_a_code_only_in_the_longer_field(tmp_path: Path) -> None:
    graph = CASES["subtract"](np.random.default_rng(2))
    assert loaded(replace(graph, short_codes=False), tmp_path).outputs
    with pytest.raises(ModelError, match="identifier"):
        (tmp_path / "bad.tflite").write_bytes(b"no model")
        htvm.load(tmp_path / "bad.tflite")


def test_a_bias_may_name_the_axis_of_the_weights(tmp_path: Path) -> None:
    """Files of the first converters do; runtimes do not look at it."""
    draws = (CASES["depthwise"](np.random.default_rng(seed)) for seed in range(99))
    graph = next(draw for draw in draws if len(draw.tensors[2].scales) > 1)
    again = graph.with_tensor(2, axis=3)
    x = inputs_of(graph, np.random.default_rng(0))
    made = interpret(loaded(again, tmp_path).module, x).outputs[0]
    np.testing.assert_array_equal(made, tflm.reference(again, x)[0])


def test_a_fused_lstm_is_named_although_it_declares_tensors_without_elements(
    tmp_path: Path,
) -> None:
    made = sketch()
    x = made.input((1, 4))
    made.tensor((0,), 0.1, 0)
    made.op("LSTM", [x], [y := made.like(x, (1, 4))], None)
    with pytest.raises(UnsupportedError, match="operator LSTM is not supported"):
        loaded(made.graph(y), tmp_path)
    made = sketch()
    x, empty = made.input((1, 4)), made.input((1, 0))
    made.op("CONCATENATION", [x, empty], [y := made.like(x, (1, 4))], (10, {0: ("i", 1)}))
    with pytest.raises(UnsupportedError, match="has no elements"):
        loaded(made.graph(y), tmp_path)


def test_a_custom_operator_is_named(tmp_path: Path) -> None:
    """It may have memory among its inputs that nobody writes."""
    made = sketch()
    x, scratch = made.input((1, 4)), made.tensor((1, 64), 0.1, 0)
    made.op("CUSTOM", [x, scratch], [y := made.like(x, (1, 4))], None)
    graph = replace(made.graph(y), names={"CUSTOM": "ethos-u"})
    with pytest.raises(UnsupportedError, match="operator CUSTOM 'ethos-u' is not supported"):
        loaded(graph, tmp_path)
