"""Relax modules that TVM's importer of TFLite writes compute what their files do, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from tvm.error import OpNotImplemented
from tvm.relax.frontend.tflite import from_tflite

import htvm
from htvm.aot.reference import build_llvm_reference
from htvm.errors import UnsupportedError
from tests.frontend.flatfile import INT8, INT16, small_network
from tests.frontend.single import CASES, Loader, inputs_of
from tests.frontend.sketch import Sketch
from tests.quantization.test_tflite_float import in_reals, values
from tests.reference.interpreter import interpret

# Those with bounds or scales of their own are written by other operators of the same meaning.
READ = (
    "abs", "add", "concat", "conv", "depthwise", "from_real", "fully_connected", "hard_swish",
    "leaky_relu", "log_softmax", "logistic", "maximum", "mean", "minimum", "multiply",
    "reduce_max", "reduce_min", "relu", "relu_6", "rescale", "softmax", "subtract", "sum", "tanh",
    "to_real", "transpose_conv", "unsigned",
)  # fmt: skip
OTHERWISE = ("concat", "fully_connected", "relu_6", "unsigned")
LOST = ("field/tconv_k2_s3_relu/model.tflite",)
MODELS = Path(__file__).resolve().parents[2].parent / "shared" / "models"


def imported(content: bytes) -> Any:
    import tflite

    return from_tflite(tflite.Model.GetRootAsModel(content, 0))


def agree(load: Loader, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = CASES[kind](rng)
    inputs, of_file = inputs_of(graph, rng), load(graph)
    of_module = htvm.load(imported(bytes(graph.file())))
    if of_module.outputs[0].shape != of_file.outputs[0].shape:
        # TVM's importer ignores the size that such an operator states.
        assert kind == "transpose_conv"
        return
    if tvm_ffi.structural_equal(of_module.module, of_file.module):
        return
    assert kind in OTHERWISE
    pairs = zip(*(interpret(x.module, inputs).outputs for x in (of_module, of_file)), strict=True)
    for found, wanted in pairs:
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", READ)
def test_an_operator_is_read_as_from_its_file(load: Loader, kind: str) -> None:
    agree(load, kind, 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", READ)
def test_operators_are_read_as_from_their_files_at_length(load: Loader, kind: str) -> None:
    for seed in range(2, 40):
        agree(load, kind, seed)


QUICK = (
    "exporters/keras_squeezenet_u8io/model.tflite",
    "exporters/tensors_without_names/mut_nonames.tflite",
)


def files_agree(name: str) -> None:
    path = MODELS / name
    if not path.exists():
        pytest.skip(f"needs the development model {name}")
    try:
        module = imported(path.read_bytes())
    except (AssertionError, NotImplementedError, OpNotImplemented) as error:
        pytest.skip(f"TVM does not read it: {type(error).__name__}")
    of_file, of_module = htvm.load(path), htvm.load(module)
    rng = np.random.default_rng(2)
    inputs = [
        rng.integers(*(-128, 128) if x.dtype == "int8" else (0, 256), x.shape).astype(x.dtype)
        for x in of_file.inputs
    ]
    pairs = zip(
        interpret(of_module.module, inputs).outputs,
        interpret(of_file.module, inputs).outputs,
        strict=True,
    )
    for found, wanted in pairs:
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", QUICK)
def test_files_of_exporters_compute_the_same(name: str) -> None:
    files_agree(name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [path.relative_to(MODELS).as_posix() for path in sorted(MODELS.rglob("*.tflite"))]
)
def test_all_files_compute_the_same(name: str) -> None:
    if name in LOST:
        pytest.skip("TVM's importer loses the rectifier of a transposed convolution")
    if name.startswith("hostile"):
        pytest.skip("no network")
    files_agree(name)


@pytest.mark.parametrize("kind", ["average_pool", "conv", "depthwise", "max_pool", "pad", "resize"])
def test_float_maps_with_channels_last_are_read(kind: str) -> None:
    """What TVM computes itself, within the rounding of sums; the file may say something else."""
    rng = np.random.default_rng(3)
    graph = in_reals(CASES[kind](rng))
    module, inputs = imported(bytes(graph.file())), values(graph, rng)
    (found,) = interpret(htvm.load(module).module, inputs).outputs
    (wanted,) = build_llvm_reference(module)(inputs)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_a_float_module_is_quantized_as_its_file(tmp_path: Path) -> None:
    graph = in_reals(small_network())
    path = tmp_path / "network.tflite"
    path.write_bytes(graph.file())
    data = np.random.default_rng(0).normal(0, 3, (16, 8, 6, 3)).astype(np.float32)
    sources = (path, imported(path.read_bytes()))
    of_file, of_module = (htvm.quantize(x, "generic.cpu", data) for x in sources)
    pairs = zip(
        *(interpret(x.module, [data[:1]]).outputs for x in (of_module, of_file)), strict=True
    )
    for found, wanted in pairs:
        np.testing.assert_array_equal(found, wanted)


def single(kind: str, code: int) -> Any:
    """A function of one tensor, as TVM imports it."""
    sketch = Sketch(np.random.default_rng(3))
    source = sketch.input((1, 8), 0.1, 0, code=code)
    out = sketch.tensor((1, 8), 0.1, 0, code=code)
    sketch.op(kind, [source], [out], None)
    return imported(bytes(sketch.graph(out).file()))


@pytest.mark.parametrize(
    ("kind", "code", "said"),
    [
        ("EXP", INT8, "operator Exp is not supported in TFLite's arithmetic"),
        ("RELU", INT16, "its type is int16; input .* of int8, uint8 or float32"),
    ],
)
def test_what_is_not_read_is_named(kind: str, code: int, said: str) -> None:
    with pytest.raises(UnsupportedError, match=said):
        htvm.load(single(kind, code))
