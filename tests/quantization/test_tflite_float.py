"""Float TFLite files: translated to ONNX and compared with TFLite Micro, quantized, refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import htvm
from htvm.errors import ModelError, UnsupportedError
from htvm.quantization.tflite_float import HANDLERS, float_onnx
from tests.frontend.flatfile import FLOAT32, Graph, Op, Tensor, small_network
from tests.frontend.single import CASES
from tests.frontend.sketch import Sketch
from tests.frontend.tflm import reference
from tests.reference.interpreter import Array

# RESHAPE and MEAN are in the networks below.
KINDS = ("add", "average_pool", "concat", "conv", "depthwise", "elu", "fully_connected",
         "hard_swish", "leaky_relu", "logistic", "max_pool", "multiply", "pad", "relu", "relu_6",
         "resize", "resize_bilinear", "softmax", "squared_difference", "subtract", "tanh",
         "transpose", "transpose_conv")  # fmt: skip


def in_reals(graph: Graph) -> Graph:
    """The network before it was quantized: every quantized tensor as the reals it stands for."""
    return replace(graph, tensors=[_real(tensor) for tensor in graph.tensors])


def _real(tensor: Tensor) -> Tensor:
    if not tensor.scales:
        return tensor
    data = tensor.data
    if data is not None:
        shape = [1] * data.ndim
        if len(tensor.scales) > 1:
            shape[tensor.axis] = -1
        scales, zeros = (np.reshape(v, shape) for v in (tensor.scales, tensor.zero_points))
        data = ((data.astype(np.float64) - zeros) * scales).astype(np.float32)
    return replace(tensor, code=FLOAT32, data=data, scales=(), zero_points=())


def values(graph: Graph, rng: np.random.Generator) -> list[Array]:
    """An input of the network."""
    return [rng.normal(0, 3, graph.tensors[at].shape).astype(np.float32) for at in graph.inputs]


def translated(graph: Graph, folder: Path) -> onnx.ModelProto:
    """The file as ONNX."""
    path = folder / "network.tflite"
    path.write_bytes(graph.file())
    return float_onnx(path)


def assert_same(graph: Graph, inputs: list[Array], folder: Path) -> None:
    """onnxruntime computes of the translation what TFLite Micro does of the file."""
    model = translated(graph, folder)
    onnx.checker.check_model(model, full_check=True)
    names = [graph.tensors[at].name for at in graph.inputs]
    assert [item.name for item in model.graph.input] == names
    session = onnxruntime.InferenceSession(model.SerializeToString())
    outputs = [graph.tensors[at].name for at in graph.outputs]
    found = session.run(outputs, dict(zip(names, inputs, strict=True)))
    for array, expected in zip(found, reference(graph, inputs), strict=True):
        assert array.shape == expected.shape
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(array / scale, expected / scale, rtol=0, atol=1e-5)


@pytest.mark.rotating(8)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1))
def test_an_operator_is_tflites(kind: str, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    graph = in_reals(CASES[kind](rng))
    assume(graph.operators[0].kind in HANDLERS)  # not PADV2, which is drawn as well
    assert_same(graph, values(graph, rng), tmp_path)


def test_a_network_is_tflites(tmp_path: Path) -> None:
    graph = in_reals(small_network())
    assert_same(graph, values(graph, np.random.default_rng(1)), tmp_path)


@pytest.mark.parametrize("shape", [(1, 24), (1, 4, 2, 3), (1, 6, 4), (1, 1, 1, 24)])
def test_the_order_of_elements(shape: tuple[int, ...], tmp_path: Path) -> None:
    """Whatever depends on it, between maps that are computed, and at the borders."""
    sketch = Sketch(np.random.default_rng(2))
    source = sketch.input((1, 2, 3, 4))
    flat, last = sketch.tensor(shape, 1, 0), sketch.tensor((1, 2, 4, 3), 1, 0)
    dense, mean = sketch.tensor((1, 5), 1, 0), sketch.tensor((1, 3), 1, 0)
    kept = sketch.tensor((1, 1, 1, 3), 1, 0)
    weights = sketch.constant(sketch.bytes(5, 24), 0.01)
    sketch.op("RESHAPE", [source, sketch.integers(shape)], [flat], None)
    sketch.op("RESHAPE", [flat, sketch.integers([1, 2, -1, 3])], [last], None)
    sketch.op("FULLY_CONNECTED", [last, weights], [dense], (8, {0: ("b", 0)}))
    sketch.op("MEAN", [last, sketch.integers([1, 2])], [mean], (27, {0: ("B", 0)}))
    sketch.op("MEAN", [last, sketch.integers([-2, 1])], [kept], (27, {0: ("B", 1)}))
    graph = in_reals(sketch.graph(flat, last, dense, mean, kept))
    assert_same(graph, values(graph, sketch.rng), tmp_path)


def test_quantized_and_built_for_the_accelerator(tmp_path: Path) -> None:
    graph = in_reals(small_network())
    path = tmp_path / "small.tflite"
    path.write_bytes(graph.file())
    rng = np.random.default_rng(4)
    samples = rng.normal(0, 3, (48, 8, 6, 3)).astype(np.float32)
    model = htvm.quantize(path, "diana.digital", samples)
    assert [(item.name, item.shape) for item in model.inputs] == [("input", (1, 8, 6, 3))]
    assert [(item.name, item.shape) for item in model.outputs] == [("probabilities", (1, 5))]
    assert (model.name, model.source) == ("small", "small.tflite")
    module = htvm.build(model, "diana.digital", "host")
    placed = [row.placed for row in module.explain().rows]
    assert placed.count("digital") >= 3
    session = onnxruntime.InferenceSession(float_onnx(path).SerializeToString())
    fresh = rng.normal(0, 3, (8, 1, 8, 6, 3)).astype(np.float32)
    wanted = np.stack([session.run(None, {"input": x})[0] for x in fresh])
    found = np.stack([module.run(x).outputs[0] for x in fresh])
    assert np.square(wanted - found).sum() / np.square(wanted).sum() < 10**-2


def one(kind: str, code: int = FLOAT32) -> Graph:
    """A network of one function of one tensor."""
    tensors = [Tensor("x", (1, 4), code, scales=()), Tensor("y", (1, 4), FLOAT32, scales=())]
    return Graph(tensors, [Op(kind, [0], [1])])


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="operator LOG_SOFTMAX") as error:
        translated(one("LOG_SOFTMAX"), tmp_path)
    assert "operator 0 (LOG_SOFTMAX), computing tensor 1 'y'" in str(error.value)
    assert all(kind in (error.value.hint or "") for kind in HANDLERS)
    with pytest.raises(ModelError, match="quantized already"):
        translated(small_network(), tmp_path)
    dynamic = in_reals(small_network()).with_tensor(1, code=9, data=small_network().tensors[1].data)
    with pytest.raises(UnsupportedError, match="int8 constants"):
        translated(dynamic, tmp_path)
    with pytest.raises(UnsupportedError, match="not float32"):
        translated(one("RELU", code=2), tmp_path)
    with pytest.raises(UnsupportedError, match="a softmax with beta 2"):
        wide = one("SOFTMAX").with_operator(0, options=(9, {0: ("f", 2.0)}))
        translated(wide, tmp_path)
    with pytest.raises(ModelError, match="an output of shape"):
        translated(one("RELU").with_tensor(1, shape=(1, 5)), tmp_path)
