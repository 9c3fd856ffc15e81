"""Bad input: one typed error that says what, where, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import htvm
from byoc_dory.errors import ModelError, UnsupportedError
from htvm.frontend.tflite.schema import OPERATOR_NAMES
from patterns.reading.read import graph_of
from tests.frontend import flatfile
from tests.frontend.flatfile import FLOAT32, INT16, UINT8, Graph, small_network
from tests.models import model_path
from tests.patterns.build import run_tvm
from tests.reference.interpreter import interpret


def load(tmp_path: Path, data: bytes) -> htvm.Model:
    path = tmp_path / "network.tflite"
    path.write_bytes(data)
    return htvm.load(path)


def test_the_sound_network_loads(tmp_path: Path) -> None:
    """What the bad ones below are derived from is good."""
    model = load(tmp_path, small_network().file())
    kinds = [node.kind for node in graph_of(model.module).in_order]
    assert kinds == [
        "pad", "conv2d", "pad", "depthwise", "add", "max_pool", "average_pool", "reshape", "dense",
        "softmax",
    ]  # fmt: skip
    sample = np.random.default_rng(0).integers(-128, 128, (1, 8, 6, 3)).astype(np.int8)
    made = interpret(model.module, [sample]).outputs[0]
    np.testing.assert_array_equal(run_tvm(model.module, sample), made)
    assert model.name == "network"
    assert model.sources["softmax_0"] == "probabilities"


def test_names_of_operators_are_those_of_the_schema() -> None:
    from tflite import BuiltinOperator

    codes = {name: code for name, code in vars(BuiltinOperator).items() if name.isupper()}
    assert {name: code for code, name in enumerate(OPERATOR_NAMES)} == codes


def test_an_operator_that_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(flatfile.CODES, "SOFTMAX", len(OPERATOR_NAMES))
    with pytest.raises(ModelError, match=f"operator code {len(OPERATOR_NAMES)} does not exist"):
        load(tmp_path, small_network().file())


@pytest.mark.parametrize(
    "data",
    [b"", b"TFL3", b"not a model at all", b"\0" * 64, b"PK\x03\x04" * 30],
    ids=["empty", "short", "text", "zeros", "zip"],
)
def test_not_a_model(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ModelError, match="not a TFLite model") as caught:
        load(tmp_path, data)
    assert "network.tflite" in str(caught.value)
    assert "give a .tflite or .onnx file" in str(caught.value)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot be read.*missing\.tflite.*check the path"):
        htvm.load(tmp_path / "missing.tflite")
    with pytest.raises(ModelError, match="a folder is not a model"):
        htvm.load(tmp_path)


@pytest.mark.parametrize("thing", [None, 3, b"TFL3"])
def test_no_model_object(thing: object) -> None:
    with pytest.raises(ModelError, match="is not a model"):
        htvm.load(thing)  # type: ignore[arg-type]


FLOAT = {"code": FLOAT32, "scales": (), "zero_points": ()}


def all_float(graph: Graph) -> Graph:
    tensors = [
        replace(item, code=FLOAT32, scales=(), zero_points=(),
                data=None if item.data is None else item.data.astype(np.float32))
        if item.name != "shape" else item
        for item in graph.tensors
    ]  # fmt: skip
    return replace(graph, tensors=tensors)


def dynamic_range(graph: Graph) -> Graph:
    return (
        graph.with_tensor(0, **FLOAT)
        .with_tensor(3, **FLOAT)
        .with_tensor(2, code=FLOAT32, data=np.zeros(4, np.float32), scales=(), zero_points=())
    )


def recurrent(graph: Graph) -> Graph:
    return graph.with_operator(7, kind="LSTM", options=None)


def options(graph: Graph, index: int, **fields: tuple[str, float]) -> Graph:
    """One operator with changed options, given as f<number>."""
    found = graph.operators[index].options
    assert found is not None
    changed = {**found[1], **{int(key[1:]): value for key, value in fields.items()}}
    return graph.with_operator(index, options=(found[0], changed))


UNSUPPORTED: dict[str, tuple[Callable[[Graph], Graph], list[str]]] = {
    "float model": (all_float, ["float32 activations", "operator 0 (CONV_2D)", "tensor 0 'input'",
                                "quantize the model fully to int8"]),
    "dynamic range": (dynamic_range, ["dynamic-range quantization", "operator 0 (CONV_2D)",
                                      "'conv/weights'", "representative dataset"]),
    "int16": (lambda g: g.with_tensor(0, code=INT16, zero_points=[0]),
              ["int8 beside int16 activations", "tensor 3 'conv'", "operator 0 (CONV_2D)"]),
    "int16 zero point": (lambda g: g.with_tensor(0, code=INT16, zero_points=[3]),
                         ["zero point 3", "'input'", "symmetrically"]),
    "uint8": (lambda g: g.with_tensor(0, code=UINT8), ["uint8 activations", "'input'"]),
    "operator": (recurrent, ["LSTM is not supported", "operator 7", "tensor 15 'probabilities'",
                            "supported are ABS, ADD"]),
    "channels elsewhere": (lambda g: g.with_tensor(14, shape=(1, 5, 1)),
                           ["shape (1, 5, 1) for 5 channels", "(FULLY_CONNECTED)"]),
    "weight zero point": (lambda g: g.with_tensor(12, zero_points=[4]), ["zero point",
                                                                        "operator 6"]),
    "scales along inputs": (lambda g: g.with_tensor(12, scales=[0.1] * 4, zero_points=[0] * 4,
                                                    axis=1), ["axis 1", "per output channel"]),
    "activation per channel": (lambda g: g.with_tensor(3, scales=[0.1] * 4, zero_points=[0] * 4,
                                                       axis=3), ["4 scales", "per tensor"]),
    "no scale": (lambda g: g.with_tensor(3, scales=()), ["0 scales", "'conv'"]),
    "two graphs": (lambda g: replace(g, copies=2), ["2 graphs", "network.tflite"]),
    "softmax scale": (lambda g: g.with_tensor(15, scales=[0.01]), ["1/256", "operator 7"]),
    "beta": (lambda g: options(g, 7, f0=("f", 2.0)), ["beta 2.0", "operator 7"]),
    "tanh": (lambda g: options(g, 0, f3=("b", 4)), ["fused activation function 4"]),
    "pool with two scales": (lambda g: g.with_tensor(9, scales=[0.5]), ["differ in scale",
                                                                       "operator 4"]),
    "run-time weights": (lambda g: g.with_operator(6, inputs=[11, 14, 13]),
                         ["read before it is written"]),
    "bias scale": (lambda g: g.with_tensor(13, scales=[0.01]), ["steps of 0.01", "operator 6"]),
    "huge accumulator": (lambda g: g.with_tensor(13, data=np.full(5, 2**31 - 9, np.int32)),
                         ["do not fit 32 bits"]),
}  # fmt: skip


@pytest.mark.parametrize(("change", "parts"), UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
def test_unsupported_is_named_with_its_place(
    tmp_path: Path, change: Callable[[Graph], Graph], parts: list[str]
) -> None:
    data = change(small_network()).file()
    kind = ModelError if parts == ["read before it is written"] else UnsupportedError
    with pytest.raises(kind) as caught:
        load(tmp_path, data)
    for part in parts:
        assert part in str(caught.value)
    assert caught.value.where


CORRUPT: dict[str, tuple[Callable[[Graph], Graph], str]] = {
    "version": (lambda g: replace(g, version=4), "schema version 4"),
    "tensor index": (lambda g: g.with_operator(2, inputs=[3, 77]), "tensor 77 of 16"),
    "output index": (lambda g: g.with_operator(2, outputs=[]), "no output"),
    "missing input": (lambda g: g.with_operator(2, inputs=[3]), "1 inputs"),
    "data size": (lambda g: g.with_tensor(12, data=np.zeros(19, np.int8)), "19 bytes"),
    "shape": (lambda g: g.with_tensor(3, shape=(1, 8, 6, 5)), "an output of shape (1, 8, 6, 5)"),
    "negative shape": (lambda g: g.with_tensor(0, shape=(1, -8, 6, 3)), "shape (1, -8, 6, 3)"),
    "huge shape": (lambda g: g.with_tensor(0, shape=(1, 2**30, 2**20, 3)), "shape"),
    "element type": (lambda g: g.with_tensor(0, code=99), "element type 99"),
    "scale": (lambda g: g.with_tensor(3, scales=[-1.0]), "not positive and finite"),
    "not a number": (lambda g: g.with_tensor(3, scales=[float("nan")]), "not positive and finite"),
    "zero points": (lambda g: g.with_tensor(1, zero_points=[0, 0]), "2 zero points for 4 scales"),
    "zero point": (lambda g: g.with_tensor(3, zero_points=[300]), "zero point 300"),
    "stride": (lambda g: options(g, 0, f1=("i", 0)), "stride 0"),
    "padding": (lambda g: options(g, 0, f0=("b", 9)), "padding 9"),
    "kernel": (lambda g: options(g, 3, f3=("i", -5)), "kernel -5"),
    "depth multiplier": (lambda g: options(g, 1, f3=("i", 7)), "4 channels times 7"),
    "options": (lambda g: g.with_operator(0, options=None), "options of type 0"),
    "written twice": (lambda g: g.with_operator(1, outputs=[3]), "written twice"),
    "reshape": (lambda g: g.with_tensor(10, data=np.asarray([3, 4], np.int32)), "reshape"),
}


@pytest.mark.parametrize(("change", "message"), CORRUPT.values(), ids=CORRUPT.keys())
def test_corrupt_is_named_with_its_place(
    tmp_path: Path, change: Callable[[Graph], Graph], message: str
) -> None:
    data = change(small_network()).file()
    with pytest.raises(ModelError) as caught:
        load(tmp_path, data)
    assert message in str(caught.value)
    assert caught.value.where
    assert caught.value.hint


def outcome(tmp_path: Path, data: bytes) -> str:
    """Loads, or raises one of the two errors of a bad file: nothing else."""
    try:
        load(tmp_path, data)
    except (ModelError, UnsupportedError) as error:
        assert error.what and error.where
        return type(error).__name__
    return "loaded"


def test_truncated_at_every_place(tmp_path: Path) -> None:
    data = small_network().file()
    for length in range(0, len(data) - 1, 5):
        assert outcome(tmp_path, data[:length]) == "ModelError", length


@pytest.mark.rotating(1)
@pytest.mark.parametrize("seed", range(4))
def test_flipped_bytes(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = small_network().file()
    seen = set()
    for _ in range(150):
        changed = bytearray(data)
        for at in rng.integers(0, len(data), int(rng.integers(1, 4))):
            changed[at] = int(rng.integers(0, 256))
        seen.add(outcome(tmp_path, bytes(changed)))
    assert {"loaded", "ModelError"} <= seen


def test_real_model_damaged(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    data = model_path("kws_ref_model").read_bytes()
    for length in rng.integers(0, len(data), 40):
        assert outcome(tmp_path, data[:length]) == "ModelError", length
    # Most bytes are weights; the structure is at both ends.
    for _ in range(60):
        changed = bytearray(data)
        at = int(rng.integers(0, 6000))
        changed[at if rng.integers(2) else -1 - at] ^= int(rng.integers(1, 256))
        outcome(tmp_path, bytes(changed))
