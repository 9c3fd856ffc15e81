"""Programs of torch are read without torch: what they compute, their names, and damaged files."""

from __future__ import annotations

import contextlib
import json
import math
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import htvm
from htvm.errors import HtvmError, InputError, ModelError, UnsupportedError
from tests.frontend.torch_archives import Program, T, Type, archive, described, small
from tests.reference.interpreter import interpret

Array = npt.NDArray[Any]


def loaded(program: Program, tmp_path: Path, **options: Any) -> htvm.Model:
    path = tmp_path / "net.pt2"
    path.write_bytes(program.file())
    return htvm.load(path, **options)


def computed(model: htvm.Model, *inputs: Array) -> Array:
    return interpret(model.module, list(inputs)).outputs[0]


def quantize(x: Array, scale: float, zero: int) -> Array:
    """torch's definition, in float32."""
    steps = x.astype("float32") * np.float32(1.0 / scale)
    return np.clip(np.rint(steps) + zero, -128, 127).astype("int64")


def of_small(program: Program, x: Array, scale: float, zero: int) -> Array:
    """What `small` computes, in double precision between the quantizations."""
    state = {name: value.astype("float64") for name, value in program.state.items()}
    q = (quantize(x, scale, zero) - zero) * float(np.float32(scale))
    weight = state["w0"] * state["w0_scale"].reshape(-1, 1, 1, 1)
    padded = np.pad(q, ((0, 0), (0, 0), (1, 1), (1, 1)))
    views = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    y = np.einsum("ncyxij,kcij->nkyx", views, weight) + state["b0"].reshape(-1, 1, 1)
    y = (quantize(np.maximum(y, 0), 0.011, -128) + 128) * float(np.float32(0.011))
    y = (quantize(y.mean((2, 3)), 0.007, -128) + 128) * float(np.float32(0.007))
    y = y @ (state["w1"] * state["w1_scale"].reshape(-1, 1)).T
    return (quantize(y, 0.009, 1) - 1) * np.float32(0.009)


@pytest.mark.parametrize("seed", range(4))
def test_it_computes_what_torch_defines(seed: int, tmp_path: Path) -> None:
    program = small(0.0307, 3, seed=seed)
    x = np.random.default_rng(seed).normal(0, 1.5, (1, 2, 6, 6)).astype("float32")
    made = computed(loaded(program, tmp_path), x)
    assert made.dtype == np.float32
    assert np.abs(made - of_small(program, x, 0.0307, 3)).max() < 1e-6


def test_layers_have_the_names_of_modules(tmp_path: Path) -> None:
    program = small()
    model = loaded(program, tmp_path)
    names = [node.name for node in model.graph.in_order]
    assert "features.0" in names and "head" in names
    assert model.source == "net.pt2" and model.scheme in ("torch", "mixed")
    assert not any("unused" in name for name in model.sources.values())


def test_it_is_built_for_a_microcontroller(tmp_path: Path) -> None:
    program = small(0.02, 0, seed=9)
    x = np.random.default_rng(3).normal(0, 1, (1, 2, 6, 6)).astype("float32")
    model = loaded(program, tmp_path)
    (made,) = htvm.build(model, "generic.cpu", platform="host").run(x).outputs
    assert (made == computed(model, x)).all()


def test_tflites_arithmetic_is_another_one(tmp_path: Path) -> None:
    program = small(0.0307, 3)
    model = loaded(program, tmp_path, semantics="tflite")
    assert model.scheme == "tflite"
    x = np.random.default_rng(1).normal(0, 1, (1, 2, 6, 6)).astype("float32")
    assert np.abs(computed(model, x) - of_small(program, x, 0.0307, 3)).max() <= 2.01 * 0.009


# ------------------------------------------------------------------------------ exact shifts


def powers(fraction: float, seed: int = 0) -> tuple[Program, Array]:
    """A linear layer whose scales are powers of two; biases are ``fraction`` beside its steps."""
    rng = np.random.default_rng(seed)
    program = Program()
    x = program.quantized(program.input("x", (1, 64)), 2.0**-5, 0)
    weight = program.weights(
        "w", rng.integers(-127, 128, (16, 64)).astype("int8"), np.full(16, 2.0**-8)
    )
    steps = rng.integers(-500, 500, 16) + fraction
    bias = program.parameter("b", (steps * 2.0**-13).astype("float32"))
    y = program.call("aten.linear.default", (1, 16), module="fc", input=x, weight=weight, bias=bias)
    program.outputs.append(program.quantized(y, 2.0**-5, 0).name)
    return program, steps


def rectified(zero: int, dtype: str, end: str) -> tuple[Program, Array]:
    """Two convolutions of powers of two, between them a rectifier and a pool; and the weights.

    Args:
        zero, dtype: zero point and type of what the first one makes.
        end: what the result goes to: a ``"layer"``, or a ``"mean"``.
    """
    rng = np.random.default_rng(8)
    program = Program()
    y = program.quantized(program.input("x", (1, 2, 8, 8)), 2.0**-5, 0)
    weights = rng.integers(-127, 128, (2, 4, 4, 3, 3)).astype("int8")
    sizes = ((1, 4, 8, 8), (1, 4, 4, 4))
    for at, (weight, step) in enumerate(((weights[0, :, :2], 2.0**-8), (weights[1], 2.0**-9))):
        data = program.weights(f"w{at}", np.array(weight, order="C"), np.full(4, step))
        bias = program.parameter(f"b{at}", np.full(4, 2.0**-16, "float32"))
        y = program.call(
            "aten.conv2d.default", sizes[at], module=f"conv{at}",
            input=y, weight=data, bias=bias, stride=(1, 1), padding=(1, 1),
        )  # fmt: skip
        y = program.call("aten.relu.default", sizes[at], self_=y)
        y = program.quantized(y, 2.0**-4, zero, dtype)
        if at == 0:
            y = program.call("aten.max_pool2d.default", sizes[1], self_=y, kernel_size=(2, 2))
            y = program.quantized(y, 2.0**-4, zero, dtype)
        elif end == "mean":
            y = program.call("aten.mean.dim", (1, 4), self_=y, dim=(2, 3))
    program.outputs.append(program.quantized(y, 2.0**-3, 0).name)
    return program, weights


def of_rectified(weights: Array, x: Array, end: str) -> Array:
    """What `rectified` computes; every number of it is exact in float64."""
    y = np.clip(np.rint(x.astype("float64") * 32), -128, 127) / 32
    for at, (weight, step) in enumerate(((weights[0, :, :2], 2.0**-8), (weights[1], 2.0**-9))):
        padded = np.pad(y, ((0, 0), (0, 0), (1, 1), (1, 1)))
        views = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        y = np.einsum("ncyxij,kcij->nkyx", views, weight.astype("float64") * step) + 2.0**-16
        y = np.clip(np.rint(y * 16), 0, 255) / 16
        if at == 0:
            y = y.reshape(1, 4, 4, 2, 4, 2).max((3, 5))
    y = y.mean((2, 3)) if end == "mean" else y
    return np.asarray(np.clip(np.rint(y * 8), -128, 127) / 8)


@pytest.mark.parametrize(("zero", "dtype"), [(0, "uint8"), (-128, "int8")])
@pytest.mark.parametrize("end", ["layer", "mean"])
def test_what_is_never_negative_is_unsigned_between_layers(
    zero: int, dtype: str, end: str, tmp_path: Path
) -> None:
    program, weights = rectified(zero, dtype, end)
    model = loaded(program, tmp_path)
    nodes = model.graph.nodes
    assert nodes["conv0"].output_dtype == nodes["conv1"].output_dtype == "uint8"
    assert nodes["conv1"].input_dtypes == ("uint8",) and nodes["conv1"].layer is not None
    assert [node.op.kind for node in model.graph.in_order].count("rescale") == 1  # at the end
    x = np.random.default_rng(5).normal(0, 1, (1, 2, 8, 8)).astype("float32")
    made = computed(model, x)
    assert np.abs(made).max() > 0.5 and (made == of_rectified(weights, x, end)).all()
    (built,) = htvm.build(model, "generic.cpu", platform="host").run(x).outputs
    assert (built == made).all()


@pytest.mark.parametrize(("fraction", "scheme"), [(0.5, "shift"), (0.0, "torch"), (0.25, "shift")])
def test_powers_of_two_are_exact(fraction: float, scheme: str, tmp_path: Path) -> None:
    program, steps = powers(fraction)
    model = loaded(program, tmp_path)
    assert model.scheme == scheme
    weight = program.state["w"].astype("int64")
    for seed in range(20):
        x = np.random.default_rng(seed).integers(-128, 128, (1, 64))
        exact = (x @ weight.T + steps) * 2.0**-8
        wanted = np.clip(np.rint(exact), -128, 127) * 2.0**-5
        assert (computed(model, (x * 2.0**-5).astype("float32")) == wanted).all()


# ------------------------------------------------------------------------------ damaged files


def changed(edit: Callable[[dict[str, Any]], None]) -> bytes:
    """The small program with another graph."""
    entries = small().entries()
    model = json.loads(entries["models/model.json"])
    edit(model)
    return archive({**entries, "models/model.json": json.dumps(model).encode()})


def _stored(**fields: Any) -> bytes:
    """The small program with other fields of its first weights."""
    entries = small().entries()
    name = "data/weights/model_weights_config.json"
    config = json.loads(entries[name])
    first = config["config"]["state.w0"]
    first.update({key: value for key, value in fields.items() if key in first})
    first["tensor_meta"].update({k: v for k, v in fields.items() if k in first["tensor_meta"]})
    return archive({**entries, name: json.dumps(config).encode()})


def _graph(model: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = model["graph_module"]["graph"]
    return found


def _renamed(model: dict[str, Any]) -> None:
    node = next(n for n in _graph(model)["nodes"] if "conv2d" in n["target"])
    node["target"] = "torch.ops.aten.fft_fft.default"


def _unknown_tensor(model: dict[str, Any]) -> None:
    _graph(model)["nodes"][0]["inputs"][0]["arg"] = {"as_tensor": {"name": "nothing"}}


def _version(model: dict[str, Any]) -> None:
    model["schema_version"]["major"] = 9


def _buffer_changed(model: dict[str, Any]) -> None:
    model["graph_module"]["signature"]["output_specs"][0] = {
        "buffer_mutation": {"arg": {"name": "x"}, "buffer_name": "x"}
    }


ENTRIES = small().entries()
BAD = {
    "empty": (b"", ModelError, "no archive"),
    "text": (b"weights", ModelError, "no archive"),
    "cut": (small().file()[:2000], ModelError, "ends too early"),
    "another archive": (archive({"readme.txt": b"hello"}), ModelError, "another archive"),
    "torchscript": (archive({"constants.pkl": b"", "code/a.py": b""}), ModelError, "TorchScript"),
    "old program": (
        archive({"serialized_exported_program.json": b"{}"}), ModelError, "before 2.8"
    ),
    "compressed": (archive(ENTRIES, compressed=True), UnsupportedError, "compressed entry"),
    "no JSON": (archive({**ENTRIES, "models/model.json": b"{"}), ModelError, "damaged JSON"),
    "deep JSON": (
        archive({**ENTRIES, "models/model.json": b"[" * 100_000}), ModelError, "damaged"
    ),
    "empty JSON": (archive({**ENTRIES, "models/model.json": b"{}"}), ModelError, "schema_version"),
    "weights missing": (
        archive({k: v for k, v in ENTRIES.items() if not k.endswith("weight_0")}),
        ModelError,
        "an entry is missing",
    ),
    "weights cut": (
        archive({**ENTRIES, "data/weights/weight_0": b"123"}), ModelError, "up to byte 72 of 3"
    ),
    "weights beyond": (
        _stored(storage_offset={"as_int": 10**9}), ModelError, "elements of a tensor up to byte"
    ),
    "strides back": (_stored(strides=[{"as_int": -1}] * 4), ModelError, "with strides"),
    "pickled": (_stored(use_pickle=True), UnsupportedError, "could run code"),
    "version": (changed(_version), UnsupportedError, "version 9 of the schema"),
    "operator": (changed(_renamed), UnsupportedError, r"module 'features.0', net.py:12 \(y = self"),
    "tensor": (changed(_unknown_tensor), ModelError, "which nothing before computes"),
    "state": (changed(_buffer_changed), UnsupportedError, "state that it changes itself"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_answered(name: str, tmp_path: Path) -> None:
    data, kind, said = BAD[name]
    path = tmp_path / "net.pt2"
    path.write_bytes(data)
    with pytest.raises(kind, match=said):
        htvm.load(path)


def test_open_sizes_are_named(tmp_path: Path) -> None:
    program = small(shape=("s77", 2, 6, 6))
    with pytest.raises(UnsupportedError, match=r"dimension 0 of tensor 'x' is open \(s77\)"):
        loaded(program, tmp_path)


def test_reals_are_answered_with_the_call_that_quantizes(tmp_path: Path) -> None:
    program = Program()
    x = program.input("x", (1, 4))
    program.outputs.append(program.call("aten.relu.default", (1, 4), self_=x).name)
    with pytest.raises(UnsupportedError, match=r"computes in reals.*htvm.quantize\("):
        loaded(program, tmp_path)


def test_weights_alone_are_named(tmp_path: Path) -> None:
    program = Program()
    weight = program.weights("w", np.ones((2, 4), "int8"), np.ones(2))
    x = program.input("x", (1, 4))
    program.outputs.append(program.call("aten.linear.default", (1, 2), input=x, weight=weight).name)
    with pytest.raises(UnsupportedError, match="weight-only quantization"):
        loaded(program, tmp_path)


def test_dynamic_quantization_is_named(tmp_path: Path) -> None:
    program = Program()
    x = program.input("x", (1, 4))
    scale = program.call(
        "quantized_decomposed.choose_qparams.tensor", (1,), "float64", input=x, quant_min=-128,
        quant_max=127, eps=1e-5, dtype=Type("int8"),
    )  # fmt: skip
    y = program.call(
        "quantized_decomposed.quantize_per_tensor.tensor", (1, 4), "int8", input=x, scale=scale,
        zero_point=0, quant_min=-128, quant_max=127, dtype=Type("int8"),
    )  # fmt: skip
    program.outputs.append(y.name)
    with pytest.raises(UnsupportedError, match="dynamic quantization"):
        loaded(program, tmp_path)


def test_a_type_of_activations_is_named_with_its_place(tmp_path: Path) -> None:
    program = Program()
    x = program.quantized(program.input("x", (1, 4)), 1 / 32, 0)
    y = program.call("aten.relu.default", (1, 4), module="act", line=7, self_=x)
    program.outputs.append(program.quantized(y, 2.0**-12, 0, "int32").name)
    with pytest.raises(UnsupportedError, match="activations of type int32") as caught:
        loaded(program, tmp_path)
    assert "quantize_per_tensor" in str(caught.value) and "uint8 and int16" in str(caught.value)


def test_activations_of_16_bits_have_no_arithmetic_of_tflites(tmp_path: Path) -> None:
    program = Program()
    x = program.quantized(program.input("x", (1, 4)), 1 / 32, 0, "int16")
    program.outputs.append(x.name)
    with pytest.raises(UnsupportedError, match="activations of type int16"):
        loaded(program, tmp_path, semantics="tflite")


def test_what_is_not_read_of_a_call_is_named(tmp_path: Path) -> None:
    program = Program()
    x = program.quantized(program.input("x", (1, 2, 4, 4)), 0.1, 0)
    y = program.call(
        "aten.avg_pool2d.default", (1, 2, 2, 2), self_=x, kernel_size=(2, 2), divisor_override=3
    )
    program.outputs.append(program.quantized(y, 0.1, 0).name)
    with pytest.raises(UnsupportedError, match="divisor_override"):
        loaded(program, tmp_path)


def test_options_of_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="for ONNX files alone"):
        loaded(small(), tmp_path, dialect="qdq")
    with pytest.raises(InputError, match="semantics 'other' are unknown"):
        loaded(small(), tmp_path, semantics="other")
    with pytest.raises(ModelError, match="for programs of torch alone"):
        htvm.load("zoo:resnet8", semantics="torch")


# ------------------------------------------------------------------------------ other operators


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _gru_states(x: Array, state: Mapping[str, Array]) -> Array:
    """torch's definition of a GRU of one layer, from its documentation."""
    h, rows = np.zeros(3), []
    for step in x:
        own, given = state["hh"] @ h + state["hb"], state["ih"] @ step + state["ib"]
        reset, update = _sigmoid(given[:3] + own[:3]), _sigmoid(given[3:6] + own[3:6])
        h = (1 - update) * np.tanh(given[6:] + reset * own[6:]) + update * h
        rows.append(h)
    return np.asarray(rows)


def _lstm_states(x: Array, state: Mapping[str, Array]) -> Array:
    h, c, rows = np.zeros(3), np.zeros(3), []
    for step in x:
        gates = state["ih"] @ step + state["ib"] + state["hh"] @ h + state["hb"]
        enter, forget, cell, out = np.split(gates, 4)
        c = _sigmoid(forget) * c + _sigmoid(enter) * np.tanh(cell)
        h = _sigmoid(out) * np.tanh(c)
        rows.append(h)
    return np.asarray(rows)


@pytest.mark.parametrize(
    ("kind", "gates", "states"), [("gru", 3, _gru_states), ("lstm", 4, _lstm_states)]
)
def test_recurrent_layers_are_unrolled(
    kind: str, gates: int, states: Callable[..., Array], tmp_path: Path
) -> None:
    rng, program = np.random.default_rng(gates), Program()
    shapes = {"ih": (3 * gates, 2), "hh": (3 * gates, 3), "ib": (3 * gates,), "hb": (3 * gates,)}
    state = {name: rng.normal(0, 0.5, shape).astype("float32") for name, shape in shapes.items()}
    x = program.quantized(program.input("x", (1, 5, 2)), 1 / 32, 0)
    params = [program.parameter(name, value) for name, value in state.items()]
    zeros = program.parameter("zeros", np.zeros((1, 1, 3), "float32"))
    y = program.call(
        f"aten.{kind}.input", (1, 5, 3), input=x, hx=[zeros, zeros] if gates == 4 else zeros,
        params=params, has_biases=True, num_layers=1, dropout=0.0, train=False,
        bidirectional=False, batch_first=True,
    )  # fmt: skip
    for index in range(gates - 2):
        name = f"last_{index}"
        program.tensors[name] = described((1, 1, 3), "float32")
        program.nodes[-1]["outputs"].append({"as_tensor": {"name": name}})
    program.outputs.append(y.name)
    given = rng.integers(-64, 64, (1, 5, 2)) / 32
    made = computed(loaded(program, tmp_path), given.astype("float32"))
    assert np.abs(made[0] - states(given[0], state)).max() < 1e-6


def test_layers_may_stay_in_reals(tmp_path: Path) -> None:
    rng, program = np.random.default_rng(8), Program()
    x = program.quantized(program.input("x", (1, 3, 8)), 1 / 32, 0)
    weight = program.parameter("w", rng.normal(0, 1, (4, 3, 3)).astype("float32"))
    y = program.call("aten.conv1d.padding", (1, 4, 8), input=x, weight=weight, padding="same")
    y = program.quantized(program.call("aten.silu.default", (1, 4, 8), self_=y), 1 / 16, 5)
    y = program.call("aten.mean.dim", (1, 4), self_=y, dim=(-1,))
    program.outputs.append(program.quantized(y, 1 / 20, 5).name)
    given = rng.integers(-64, 64, (1, 3, 8)) / 32
    padded = np.pad(given, ((0, 0), (0, 0), (1, 1)))
    views = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=2)
    y_real = np.einsum("ncxi,kci->nkx", views, program.state["w"])
    q = (quantize(y_real * _sigmoid(y_real), 1 / 16, 5) - 5) / 16
    wanted = (quantize(q.mean(-1), 1 / 20, 5) - 5) * np.float32(1 / 20)
    made = computed(loaded(program, tmp_path), given.astype("float32"))
    assert np.abs(made - wanted).max() < 1e-6


def _made_of_nothing(program: Program, x: T) -> tuple[T, Array]:
    """A constant ``[3, 4]`` by operators that read no elements, and its values."""
    table = program.parameter("table", np.arange(24, dtype="float32").reshape(6, 4) / 8)
    places = program.call("aten.arange.start_step", (3,), "int64", start=1, end=6, step=2)
    rows = program.call("aten.embedding.default", (3, 4), weight=table, indices=places)
    total, wanted = rows, program.state["table"][1:6:2]
    for name, more, value in (
        ("zeros_like", {"self_": x}, 0.0),
        ("ones_like", {"self_": x}, 1.0),
        ("full_like", {"self_": x, "fill_value": -0.5}, -0.5),
        ("new_ones", {"self_": x, "size": (3, 4)}, 1.0),
        ("new_full", {"self_": x, "size": (3, 4), "fill_value": 0.25}, 0.25),
        ("full", {"size": (3, 4), "fill_value": 0.125}, 0.125),
    ):
        one = program.call(f"aten.{name}.default", (3, 4), **more)
        total = program.call("aten.add.Tensor", (3, 4), self_=total, other=one)
        wanted = wanted + np.float32(value)
    root = program.call("aten.sqrt.default", (3, 4), self_=total)
    return root, np.sqrt(wanted)


@pytest.mark.parametrize("is_quantized", [False, True])
def test_what_is_made_of_constants_is_constant(is_quantized: bool, tmp_path: Path) -> None:
    program = Program()
    x = program.quantized(program.input("x", (3, 4)), 1 / 32, 0)
    made, wanted = _made_of_nothing(program, x)
    if is_quantized:
        made = program.quantized(made, 0.03, -100)
        wanted = ((quantize(wanted, 0.03, -100) + 100) * np.float32(0.03)).astype("float32")
    y = program.call("aten.add.Tensor", (3, 4), self_=x, other=made)
    program.outputs.append(program.quantized(y, 1 / 16, 0).name)
    given = (np.random.default_rng(1).integers(-64, 64, (3, 4)) / 32).astype("float32")
    model = loaded(program, tmp_path)
    assert len(model.graph.in_order) == (3 if is_quantized else 5)  # one sum, and conversions
    assert (computed(model, given) == quantize(given + wanted, 1 / 16, 0) / 16).all()


@pytest.mark.parametrize(
    ("shape", "numbers", "said"),
    [
        ((3,), {"end": 4}, "a range from 0 to 4 by 1"),
        ((3,), {"start": 0, "end": 6, "step": 0}, "by 0"),
        ((3,), {"start": 0.0, "end": float("inf"), "step": 1.0}, "to inf by"),
    ],
)
def test_a_range_that_contradicts_itself_is_answered(
    shape: tuple[int, ...], numbers: dict[str, float], said: str, tmp_path: Path
) -> None:
    program = Program()
    x = program.quantized(program.input("x", (3, 3)), 1 / 32, 0)
    places = program.call("aten.arange.start_step", shape, **numbers)
    y = program.call("aten.add.Tensor", (3, 3), self_=x, other=places)
    program.outputs.append(program.quantized(y, 1 / 16, 0).name)
    with pytest.raises(ModelError, match=said):
        loaded(program, tmp_path)


@pytest.mark.parametrize(
    ("fill", "dtype"), [(2.0**63, "int64"), (300, "int8"), (1e300, "float32"), (math.nan, "int32")]
)
def test_a_constant_that_its_type_cannot_hold_is_answered(
    fill: float, dtype: str, tmp_path: Path
) -> None:
    program = Program()
    x = program.quantized(program.input("x", (3, 3)), 1 / 32, 0)
    made = program.call("aten.full.default", (3, 3), dtype, size=(3, 3), fill_value=fill)
    y = program.call("aten.add.Tensor", (3, 3), self_=x, other=made)
    program.outputs.append(program.quantized(y, 1 / 16, 0).name)
    with pytest.raises(ModelError, match=f"of type {dtype} beyond its range"):
        loaded(program, tmp_path)


def test_torchaos_own_forms_are_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    weight, scales = rng.integers(-127, 128, (3, 4)).astype("int8"), rng.uniform(0.001, 0.02, 3)
    given = rng.normal(0, 1, (1, 4)).astype("float32")
    results = []
    for affine in (True, False):
        program = Program()
        x = program.input("x", (1, 4))
        if affine:
            parts = {
                "scale": program.parameter("s", np.asarray(0.03, "float32")),
                "zero_point": program.parameter("z", np.asarray(4, "int32")),
                "block_size": (1, 4),
            }
            x = program.call(
                "torchao.quantize_affine.default", (1, 4), "int8", input=x,
                output_dtype=Type("int8"), quant_min=-128, quant_max=127, **parts,
            )  # fmt: skip
            x = program.call(
                "torchao.dequantize_affine.default", (1, 4), input=x, input_dtype=Type("int8"),
                output_dtype=Type("float32"), **parts,
            )  # fmt: skip
            w = program.call(
                "torchao.dequantize_affine.default", (3, 4), input=program.parameter("w", weight),
                scale=program.parameter("ws", scales.astype("float32")), block_size=(1, 4),
                zero_point=None, input_dtype=Type("int8"), output_dtype=Type("float32"),
            )  # fmt: skip
        else:
            x = program.quantized(x, float(np.float32(0.03)), 4)
            w = program.weights("w", weight, scales)
        y = program.call("aten.linear.default", (1, 3), input=x, weight=w)
        program.outputs.append(program.quantized(y, 0.02, 0).name)
        results.append(computed(loaded(program, tmp_path), given))
    assert (results[0] == results[1]).all()


# ------------------------------------------------------------------------------ mutations

VALUES: list[Any] = [None, 0, -1, 2**63, 1e308, "", "x", [], {}, True, [0, 0], {"as_int": 3}, 2**31]


def _places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, item in items:
        found.append((*place, key))
        if isinstance(item, dict | list):
            found += _places(item, (*place, key))
    return found


@pytest.mark.parametrize("entry", ["models/model.json", "data/weights/model_weights_config.json"])
def test_mutations_are_read_or_answered(entry: str, tmp_path: Path) -> None:
    rng, path = random.Random(len(entry)), tmp_path / "net.pt2"
    places = _places(json.loads(ENTRIES[entry]))
    for _ in range(60):
        content = json.loads(ENTRIES[entry])
        *above, last = rng.choice(places)
        item = content
        for key in above:
            item = item[key]
        if rng.random() < 0.2:
            del item[last]
        else:
            item[last] = rng.choice(VALUES)
        path.write_bytes(archive({**ENTRIES, entry: json.dumps(content).encode()}))
        with contextlib.suppress(HtvmError):
            htvm.load(path)
