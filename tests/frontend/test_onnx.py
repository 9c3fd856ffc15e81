"""ONNX files: what is wrong with them is named, and what they say about integers is understood."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import htvm
from byoc_dory.layers import MulShift, Shift
from htvm.errors import HtvmError, ModelError, UnsupportedError
from patterns.reading.read import graph_of
from tests.frontend.onnxfile import Array, model_of, node, requant, saved
from tests.reference.interpreter import interpret

RNG = np.random.default_rng(11)
WEIGHT = RNG.integers(-128, 128, (4, 3, 3, 3)).astype(np.float32)
SHAPE = (1, 3, 6, 6)


def simple(**changes: Any) -> onnx.ModelProto:
    """A convolution and its requantization."""
    constants: dict[str, Array] = {"w": WEIGHT}
    nodes = [
        node("Conv", ["x", "w"], "sums", kernel_shape=[3, 3]),
        requant("sums", "y", constants, **changes),
    ]
    return model_of(nodes, {"x": SHAPE}, constants=constants)


def loaded(model: onnx.ModelProto, folder: Path, **options: Any) -> htvm.Model:
    return htvm.load(saved(model, folder), **options)


# ------------------------------------------------------------------------------ bad files


def lying(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].dims[0] = 400


def negative(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].dims[0] = -4


def beyond_its_type(model: onnx.ModelProto) -> None:
    tensor = model.graph.initializer[0]
    tensor.CopyFrom(helper.make_tensor("w", TensorProto.INT32, [1], [300]))
    tensor.data_type = TensorProto.INT8


def external(model: onnx.ModelProto) -> None:
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "weights.bin"


def outside(model: onnx.ModelProto) -> None:
    external(model)
    model.graph.initializer[0].external_data[0].value = "../weights.bin"


def half_precision(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].data_type = TensorProto.BFLOAT16


def dynamic(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"


def cycle(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[0] = "y"


def dangling(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[0] = "nobody"


def twice(model: onnx.ModelProto) -> None:
    model.graph.node[1].output[0] = "sums"


def other_output(model: onnx.ModelProto) -> None:
    model.graph.output[0].name = "z"


def other_shape(model: onnx.ModelProto) -> None:
    shape = [1, 4, 4, 5]
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, shape))


def old(model: onnx.ModelProto) -> None:
    model.opset_import[0].version = 5


def unknown(model: onnx.ModelProto) -> None:
    model.graph.node[0].op_type = "HardSwish"


def foreign(model: onnx.ModelProto) -> None:
    model.graph.node[0].domain = "com.example"


def large_weights(model: onnx.ModelProto) -> None:
    array = WEIGHT.copy()
    array[0, 0, 0, 0] = 300
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(array, "w"))


def broken_weights(model: onnx.ModelProto) -> None:
    array = WEIGHT + np.float32(0.5)
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(array, "w"))


def odd_divisor(model: onnx.ModelProto) -> None:
    model.graph.node[1].attribute[0].i = 7


def control_flow(model: onnx.ModelProto) -> None:
    attribute = model.graph.node[0].attribute.add()
    attribute.name, attribute.type = "body", onnx.AttributeProto.GRAPH


@pytest.mark.parametrize(
    ("damage", "kind", "words"),
    [
        (lying, ModelError, ["initialiser 'w'", "432 bytes", "43200"]),
        (negative, ModelError, ["initialiser 'w'", "[-4, 3, 3, 3]"]),
        (beyond_its_type, ModelError, ["initialiser 'w'", "300", "int8"]),
        (external, ModelError, ["weights.bin", "initialiser 'w'", "beside the model"]),
        (outside, ModelError, ["outside the model's folder"]),
        (half_precision, UnsupportedError, ["BFLOAT16", "initialiser 'w'"]),
        (dynamic, UnsupportedError, ["dimension 0", "'batch'", "dimensions="]),
        (cycle, ModelError, ["cycle", "node"]),
        (dangling, ModelError, ["'nobody'", "node 'sums' (Conv), 1 of 2"]),
        (twice, ModelError, ["'sums' is computed twice"]),
        (other_output, ModelError, ["output 'z'"]),
        (other_shape, ModelError, ["[1, 4, 4, 4]", "[1, 4, 4, 5]"]),
        (old, UnsupportedError, ["opset 5"]),
        (unknown, UnsupportedError, ["HardSwish", "node 'sums'", "1 of 2", "iHardswish"]),
        (foreign, UnsupportedError, ["com.example"]),
        (large_weights, UnsupportedError, ["'w'", "300", "int8"]),
        (broken_weights, UnsupportedError, ["no integers", "dialect="]),
        (odd_divisor, UnsupportedError, ["division by 7", "node 'y'"]),
        (control_flow, UnsupportedError, ["'body'", "control flow"]),
    ],
)
def test_damage_is_named(
    damage: Callable[[onnx.ModelProto], None],
    kind: type[HtvmError],
    words: list[str],
    tmp_path: Path,
) -> None:
    model = simple()
    damage(model)
    with pytest.raises(kind) as caught:
        loaded(model, tmp_path)
    for word in words:
        assert word in str(caught.value)
    assert caught.value.where


def test_what_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    for data in (b"", b"\xff\xff\xff", saved(simple(), tmp_path, "m.onnx").read_bytes()[:300]):
        path.write_bytes(data)
        with pytest.raises(ModelError, match="ONNX|damaged"):
            htvm.load(path)
    with pytest.raises(ModelError, match="cannot be read"):
        htvm.load(tmp_path / "nothing.onnx")
    with pytest.raises(ModelError, match="ONNX files alone"):
        htvm.load(tmp_path / "nothing.tflite", dialect="pulp")


def test_options_are_checked(tmp_path: Path) -> None:
    for options, words in (
        ({"dialect": "latin"}, "unknown dialect 'latin'"),
        ({"input_types": {"z": "int8"}}, "no input is called 'z'"),
        ({"input_types": {"x": "int64"}}, "'int64'"),
        ({"dimensions": {"batch": 1}}, "'batch'"),
    ):
        with pytest.raises(HtvmError, match=words):
            loaded(simple(), tmp_path, **options)


def test_mixed_and_unknown_dialects(tmp_path: Path) -> None:
    constants: dict[str, Array] = {"eight": np.asarray([8.0], np.float32)}
    nodes = [
        requant("x", "a", constants),
        node("Div", ["a", "eight"], "b"),
        node("Floor", ["b"], "c"),
        node("RequantShift", ["c", "mul", "add"], "y", div=8, n_levels=256, signed=1),
    ]
    with pytest.raises(UnsupportedError, match="several dialects.*RequantShift.*pulp"):
        loaded(model_of(nodes, {"x": SHAPE}, constants=constants), tmp_path)
    with pytest.raises(
        UnsupportedError, match="operator Sin is not supported; node .y. .Sin., 1 of 1"
    ):
        loaded(model_of([node("Sin", ["x"], "y")], {"x": SHAPE}), tmp_path)


@pytest.mark.parametrize("domain", ["", "PACTOps", "my.own"])
def test_operators_that_the_standard_lacks_are_read_of_any_domain(
    domain: str, tmp_path: Path
) -> None:
    constants: dict[str, Array] = {}
    shift = requant("x", "y", constants, domain=domain)
    model = loaded(model_of([shift], {"x": SHAPE}, constants=constants), tmp_path)
    x = np.arange(-128, 128, dtype=np.int8)[: np.prod(SHAPE)].reshape(SHAPE)
    expected = np.clip((x.astype(np.int64) * 3 + 5 + 4) // 8, -128, 127)
    np.testing.assert_array_equal(interpret(model.module, [x]).outputs[0], expected)


# ------------------------------------------------------------------------------ what is understood


def run(model: htvm.Model, data: Array) -> Array:
    return interpret(model.module, [data]).outputs[0]


def test_sizes_of_named_dimensions_can_be_given(tmp_path: Path) -> None:
    model = simple()
    dynamic(model)
    assert loaded(model, tmp_path, dimensions={"batch": 1}).inputs[0].shape == SHAPE


def test_nodes_need_no_order(tmp_path: Path) -> None:
    model = simple()
    nodes = list(reversed(model.graph.node))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    assert [n.kind for n in graph_of(loaded(model, tmp_path).module).in_order] == ["conv2d"]
    assert loaded(model, tmp_path).sources == {"conv2d_0": "y"}


def test_external_data_beside_the_model_are_read(tmp_path: Path) -> None:
    model = simple()
    external(model)
    (tmp_path / "weights.bin").write_bytes(WEIGHT.tobytes())
    data = RNG.integers(-128, 128, SHAPE).astype(np.int8)
    (tmp_path / "plain").mkdir()
    plain = run(loaded(simple(), tmp_path / "plain"), data)
    np.testing.assert_array_equal(run(loaded(model, tmp_path), data), plain)


def test_inputs_hold_what_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "htvm"):
        assert loaded(simple(), tmp_path).inputs[0].dtype == "int8"
    assert "is taken to hold int8" in caplog.text and "PULP" in caplog.text
    assert loaded(simple(), tmp_path, input_types={"x": "uint8"}).inputs[0].dtype == "uint8"
    np.savez(tmp_path / "inputs.npz", x=np.full(SHAPE, 200.0))
    assert loaded(simple(), tmp_path).inputs[0].dtype == "uint8"
    np.savez(tmp_path / "inputs.npz", x=np.full(SHAPE, 0.5))
    assert loaded(simple(), tmp_path).inputs[0].dtype == "int8"


def chain(source: str, output: str, shift: str, low: str, high: str) -> list[Any]:
    """Divide, floor, clip."""
    return [
        node("Div", [source, shift], f"{output}_div"),
        node("Floor", [f"{output}_div"], f"{output}_floor"),
        node("Clip", [f"{output}_floor", low, high], output),
    ]


def scalars(**values: float) -> dict[str, Array]:
    return {name: np.asarray(value, np.float32) for name, value in values.items()}


def test_dianas_chains_become_shifts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bias = RNG.integers(-3000, 3000, 4).astype(np.float32)
    constants = {"w": WEIGHT, "b": bias, **scalars(d=512, low=-128, high=127)}
    nodes = [node("Conv", ["x", "w", "b"], "s"), *chain("s", "y", "d", "low", "high")]
    with caplog.at_level(logging.INFO, "htvm"):
        model = loaded(model_of(nodes, {"x": SHAPE}, constants=constants), tmp_path)
    assert "DIANA" in caplog.text
    (operator,) = graph_of(model.module).in_order
    assert operator.layer is not None
    assert (operator.kind, operator.layer.requant) == ("conv2d", Shift(9))
    assert htvm.build(model, target="diana.digital", platform="host").placement == {
        "conv2d_0": "digital"
    }


@pytest.mark.parametrize("largest", [1, 2])
def test_the_analog_chain_is_one_operator_if_weights_are_ternary(
    largest: int, tmp_path: Path
) -> None:
    ternary = RNG.integers(-largest, largest + 1, (4, 3, 3, 3)).astype(np.float32)
    factors = RNG.integers(1, 60, (4, 1, 1)).astype(np.float32)
    summands = RNG.integers(-900, 900, (4, 1, 1)).astype(np.float32)
    limits = scalars(gain=8, c=16, low=-32, high=31, least=-128, most=127)
    constants = {"w": ternary, "m": factors, "a": summands, **limits}
    nodes = [
        node("Conv", ["x", "w"], "s"),
        *chain("s", "adc", "gain", "low", "high"),
        node("Mul", ["adc", "m"], "scaled"),
        node("Add", ["scaled", "a"], "moved"),
        *chain("moved", "y", "c", "least", "most"),
    ]
    model = loaded(model_of(nodes, {"x": SHAPE}, constants=constants), tmp_path)
    kinds = [operator.kind for operator in graph_of(model.module).in_order]
    assert kinds == (["conv2d"] if largest == 1 else ["conv2d", "rescale"])
    data = RNG.integers(-64, 64, SHAPE).astype(np.int8)
    sums = np.zeros((1, 4, 4, 4), np.int64)
    for fy in range(3):
        for fx in range(3):
            part = data[:, :, fy : fy + 4, fx : fx + 4].astype(np.int64)
            sums += np.einsum("ncyx,kc->nkyx", part, ternary[:, :, fy, fx].astype(np.int64))
    converted = np.clip(sums // 8, -32, 31)
    scaled = converted * factors.astype(np.int64) + summands.astype(np.int64)
    wanted = np.clip(scaled // 16, -128, 127)
    np.testing.assert_array_equal(run(model, data), wanted)
    built = htvm.build(model, target="generic.cpu", platform="host")
    np.testing.assert_array_equal(built.run(data).outputs[0], wanted)


def test_eight_bit_initialisers_are_twos_complement(tmp_path: Path) -> None:
    matrix = RNG.integers(-128, 128, (6, 5)).astype(np.int8)
    constants: dict[str, Array] = {
        "w": matrix.view(np.uint8),
        "m": np.asarray([3, 70, 9, 11, 2], np.int32),
        "a": np.asarray([100], np.int32),
        "d": np.asarray([64], np.int32),
        **scalars(low=0, high=255),
    }
    nodes = [
        node("MatMul", ["x", "w"], "s"),
        node("Mul", ["s", "m"], "p"),
        node("Add", ["p", "a"], "t"),
        *chain("t", "y", "d", "low", "high"),
    ]
    source = model_of(nodes, {"x": (1, 6)}, constants=constants, dtype=TensorProto.UINT8)
    model = loaded(source, tmp_path)
    (operator,) = graph_of(model.module).in_order
    assert operator.kind == "dense" and operator.layer is not None
    assert isinstance(operator.layer.requant, MulShift)
    data = RNG.integers(0, 256, (1, 6)).astype(np.uint8)
    sums = data.astype(np.int64) @ matrix.astype(np.int64)
    wanted = np.clip((sums * [3, 70, 9, 11, 2] + 100) // 64, 0, 255)
    np.testing.assert_array_equal(run(model, data), wanted)
    assert [info.dtype for info in model.outputs] == ["uint8"]


@pytest.mark.parametrize("signed", [0, 1])
@pytest.mark.parametrize("shift", [3, 8])
def test_factors_of_two_become_shifts_that_round_alike(
    signed: int, shift: int, tmp_path: Path
) -> None:
    constants: dict[str, Array] = {
        "w": WEIGHT,
        "mul": np.asarray(4.0, np.float32),
        "add": RNG.integers(-99, 99, (4, 1, 1)).astype(np.float32),
    }
    attributes = {"div": float(2**shift * 64), "n_levels_out": 256, "signed": signed}
    nodes = [
        node("Conv", ["x", "w"], "s"),
        node("RequantShift", ["s", "mul", "add"], "y", **attributes),
    ]
    model = loaded(model_of(nodes, {"x": SHAPE}, constants=constants), tmp_path)
    (operator,) = graph_of(model.module).in_order
    assert operator.layer is not None and operator.layer.requant == Shift(shift + 4)
    data = RNG.integers(-128, 128, SHAPE).astype(np.int8)
    sums = np.zeros((1, 4, 4, 4), np.int64)
    for fy in range(3):
        for fx in range(3):
            part = data[:, :, fy : fy + 4, fx : fx + 4].astype(np.int64)
            sums += np.einsum("ncyx,kc->nkyx", part, WEIGHT[:, :, fy, fx].astype(np.int64))
    divisor = 2**shift * 64
    scaled = (sums * 4 + constants["add"].astype(np.int64) + divisor // 2) // divisor
    low, high = (-128, 127) if signed else (0, 255)
    np.testing.assert_array_equal(run(model, data), np.clip(scaled, low, high))


def test_a_float_network_is_said_to_run_on_the_host(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = model_of([node("Conv", ["x", "w"], "y")], {"x": SHAPE}, constants={"w": WEIGHT * 0.3})
    with caplog.at_level(logging.WARNING):
        loaded(file, tmp_path)
    assert "htvm.quantize makes int8 models" in caplog.text


def test_rows_are_divided_by_their_sums(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    constants: dict[str, Array] = {}
    nodes = [
        node("ReduceSum", ["x"], "sums", axes=[-1], keepdims=1),
        node("IntegerDiv", ["x", "sums"], "quotients", Delta=200, eta=3, eps=7),
        requant("quotients", "y", constants, div=2, signed=0),
    ]
    file = model_of(nodes, {"x": (1, 9, 20)}, constants=constants)
    with caplog.at_level(logging.INFO, "htvm.frontend.onnx"):
        model = loaded(file, tmp_path, input_types={"x": "uint8"})
    assert "PULP" in caplog.text
    data = RNG.integers(0, 256, (1, 9, 20)).astype(np.uint8)
    divisors = 3 * data.astype(np.int64).sum(axis=-1, keepdims=True) + 7
    quotients = (200 * 3 * data.astype(np.int64) + divisors // 2) // divisors
    wanted = np.clip((quotients * 3 + 5 + 1) // 2, 0, 255)
    assert len(np.unique(wanted)) > 8
    np.testing.assert_array_equal(run(model, data), wanted)
    np.testing.assert_array_equal(htvm.build(model, "generic.cpu").run([data]).outputs[0], wanted)


def test_a_norm_without_statistics_may_have_a_weight_for_each_element(tmp_path: Path) -> None:
    weight, bias = RNG.integers(-900, 900, (6, 8)), RNG.integers(-9000, 9000, (6, 1))
    constants = {"w": weight.astype(np.float32), "b": bias.astype(np.float32)}
    norm = node("iNoNorm", ["x", "w", "b"], "y", D=2048, mul=5, n_levels=256)
    file = model_of([norm], {"x": (1, 6, 8)}, constants=constants)
    model = loaded(file, tmp_path, input_types={"x": "int8"})
    data = RNG.integers(-128, 128, (1, 6, 8)).astype(np.int8)
    wanted = np.clip(((data.astype(np.int64) * weight + bias) * 5) // 2048, -128, 127)
    assert len(np.unique(wanted)) > 20
    np.testing.assert_array_equal(run(model, data), wanted)
    np.testing.assert_array_equal(
        htvm.build(model, "generic.cpu", "host").run([data]).outputs[0], wanted
    )
    odd = model_of([norm], {"x": (1, 5, 8)}, constants=constants)
    with pytest.raises(ModelError, match="weights of shape"):
        loaded(odd, tmp_path, input_types={"x": "int8"})


@pytest.mark.parametrize(
    ("operator", "attributes", "what"),
    [
        ("iLayerNorm", {"D": 3}, "a division by 3"),
        ("iNoNorm", {"D": 64, "mul": 5}, "3 values of the weight"),
        ("iSoftmax", {"coeffA": 1, "coeffB": 0, "coeffC": -1, "log2": 9, "n_levels": 256}, "expon"),
        ("iGELU", {"b": 1, "one": 100}, "b = 1"),
    ],
)
def test_an_operator_that_cannot_be_is_refused_at_its_node(
    operator: str, attributes: dict[str, int], what: str, tmp_path: Path
) -> None:
    constants = {"w": np.ones(3, np.float32)}
    weights = ["w", "w"] if "Norm" in operator else []
    odd = node(operator, ["x", *weights], "y", **attributes)
    model = model_of([odd], {"x": (1, 6, 8)}, constants=constants)
    with pytest.raises(UnsupportedError, match=what) as caught:
        loaded(model, tmp_path)
    assert "'y'" in caught.value.where
