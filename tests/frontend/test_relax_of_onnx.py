"""Relax modules that TVM's importers of ONNX and torch write are read as their sources are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tvm_ffi
from onnx import TensorProto, helper, numpy_helper
from tvm import relax
from tvm.error import OpNotImplemented
from tvm.relax import op as R
from tvm.relax.frontend.onnx import from_onnx

import htvm
from htvm.errors import HtvmError, ModelError, UnsupportedError
from tests.frontend.onnx.affine_files import File
from tests.reference.interpreter import interpret

_MODELS = Path(__file__).resolve().parents[2].parent / "shared" / "models"
_SHARED = (
    "qdq_onnx/tinycnn_qdq_perchannel.onnx",
    "qdq_onnx/tinycnn_qdq_pertensor.onnx",
    "qdq_onnx/tinycnn_fp32.onnx",
    "match_models/drone_regressor/model.onnx",
    "exporters/torch_Dense_qdq_s8pc/model.onnx",
    "exporters/torch_Multi_qdq_u8s8/model.onnx",
    "field/squeeze_excite_three_channels/model.onnx",
)
# Those of integer flows declare reals, and have their types beside them or nowhere.
_ALL = [
    name
    for path in sorted(_MODELS.rglob("*.onnx"))
    if not (name := path.relative_to(_MODELS).as_posix()).startswith(("deeploy", "hostile"))
]
RNG = np.random.default_rng(3)


def same(path: Path) -> None:
    """The file and TVM's import of it are one network."""
    of_file = htvm.load(path)
    of_module = htvm.load(from_onnx(onnx.load(path)))
    assert [item.shape for item in of_module.inputs] == [item.shape for item in of_file.inputs]
    assert tvm_ffi.structural_equal(of_module.module, of_file.module)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("name", _SHARED)
def test_files_of_exporters_give_the_same_network(name: str) -> None:
    if not (_MODELS / name).exists():
        pytest.skip(f"needs the development model {name}")
    same(_MODELS / name)


@pytest.mark.slow
@pytest.mark.parametrize("name", _ALL)
def test_all_files_give_the_same_network(name: str) -> None:
    try:
        from_onnx(onnx.load(_MODELS / name))
    except (AttributeError, OpNotImplemented, TypeError, ValueError) as error:
        pytest.skip(f"TVM does not read it: {type(error).__name__}")
    same(_MODELS / name)


def weights(file: File, *shape: int, axis: int) -> str:
    data = RNG.integers(-127, 128, shape)
    scales = RNG.uniform(0.001, 0.02, shape[axis])
    return file.dequantize(file.constant(data, "int8"), scales, np.zeros(shape[axis]), axis=axis)


def bias(file: File, size: int) -> str:
    return file.dequantize(file.constant(RNG.integers(-99, 99, size), "int32"), 0.001, 0, "int32")


def table(op: str, **attributes: Any) -> Callable[[File, str], str]:
    return lambda f, x: f.node(op, [x], **attributes)


OPERATORS: dict[str, Callable[[File, str], str]] = {
    "conv": lambda f, x: f.node("Conv", [x, weights(f, 5, 4, 3, 3, axis=0), bias(f, 5)]),
    "conv_without_bias": lambda f, x: f.node(
        "Conv", [x, weights(f, 4, 1, 3, 3, axis=0)], group=4, pads=[1, 0, 2, 1], strides=[2, 1]
    ),
    "conv_transpose": lambda f, x: f.node(
        "ConvTranspose", [x, weights(f, 4, 3, 2, 2, axis=1), bias(f, 3)], strides=[2, 2]
    ),
    "gemm": lambda f, x: f.node(
        "Gemm", [flat(f, x), weights(f, 5, 96, axis=0), bias(f, 5)], transB=1
    ),
    "gemm_alpha": lambda f, x: f.node(
        "Gemm", [flat(f, x), weights(f, 96, 5, axis=1)], alpha=0.5
    ),
    "matmul": lambda f, x: f.node("MatMul", [x, weights(f, 6, 3, axis=1)]),
    "clip": lambda f, x: f.node(
        "Clip", [x, f.constant(-0.5, "float32"), f.constant(1.5, "float32")]
    ),
    "clip_below": lambda f, x: f.node("Clip", [x, f.constant(-0.5, "float32")]),
    "pad": lambda f, x: f.node("Pad", [x, f.constant([0, 0, 1, 0, 0, 0, 2, 1], "int64")]),
    "pad_edge": lambda f, x: f.node(
        "Pad", [x, f.constant([0, 0, 1, 1, 0, 0, 1, 1], "int64")], mode="edge"
    ),
    "tile": lambda f, x: f.node("Tile", [x, f.constant([1, 2, 1, 3], "int64")]),
    "hard_swish": table("HardSwish"),
    "hard_sigmoid": table("HardSigmoid", alpha=0.25, beta=0.4),
    "elu": table("Elu", alpha=0.75),
    "gelu": table("Gelu", approximate="tanh"),
    "leaky": table("LeakyRelu", alpha=0.2),
    "softplus": table("Softplus"),
    "sigmoid": table("Sigmoid"),
    "max_pool": table("MaxPool", kernel_shape=[2, 2], strides=[2, 2]),
    "average_pool": table("AveragePool", kernel_shape=[2, 3], pads=[0, 1, 0, 1]),
    "global_average": table("GlobalAveragePool"),
    "mean": lambda f, x: f.node("ReduceMean", [x, f.constant([1], "int64")], keepdims=0),
    "softmax": table("Softmax", axis=-1),
    "transpose": table("Transpose", perm=[0, 2, 3, 1]),
    "slice": lambda f, x: f.node(
        "Slice", [x, *(f.constant(v, "int64") for v in ([3, -1], [0, -9], [2, 3], [-1, -2]))]
    ),
    "resize": lambda f, x: f.node(
        "Resize", [x, "", f.constant([1, 1, 2, 2], "float32")], mode="nearest"
    ),
    "maximum_of_three": lambda f, x: f.node(
        "Max", [x, f.constant(np.full((1, 4, 4, 6), 0.25), "float32"), f.through(x, 0.02, 1)]
    ),
    "layer_norm": lambda f, x: f.node(
        "LayerNormalization", [x, *(f.constant(np.full(6, v), "float32") for v in (1.5, 0.25))]
    ),
    "prelu": lambda f, x: f.node("PRelu", [x, f.constant(np.full((4, 1, 1), 0.3), "float32")]),
}  # fmt: skip


def flat(file: File, x: str) -> str:
    return file.node("Flatten", [x])


@pytest.mark.rotating(8)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_read_as_from_the_file(name: str, tmp_path: Path) -> None:
    since = {"gelu": 20, "hard_swish": 14, "layer_norm": 17, "mean": 18}
    file = File(opset=since.get(name, 13))
    x = file.dequantize(file.input("x", (1, 4, 4, 6), "int8"), 0.03, -4)
    y = file.quantize(OPERATORS[name](file, x), 0.05, 7)
    file.output(y, "int8")
    same(file.save(tmp_path))


def test_indices_count_from_the_end_as_in_the_file(tmp_path: Path) -> None:
    """TVM's importer adds to negative indices what ONNX's Gather adds itself."""
    file = File()
    table_of = file.constant(RNG.integers(-128, 128, (9, 3)), "int8")
    rows = file.node("Gather", [table_of, file.input("ids", (2,), "int64")])
    file.output(file.dequantize(rows, 0.1, 0))
    same(file.save(tmp_path))


def float_model() -> onnx.ModelProto:
    constants = {
        "w": RNG.normal(0, 0.3, (4, 2, 3, 3)).astype(np.float32),
        "b": RNG.normal(0, 0.1, 4).astype(np.float32),
        "m": RNG.normal(0, 0.3, (3, 4)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "m"], ["y"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 6, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("keep", [False, True])
def test_a_float_module_is_quantized_as_its_file(keep: bool) -> None:
    """Also with the weights as parameters, which TVM keeps beside the module."""
    data = RNG.normal(0, 1, (16, 2, 6, 6)).astype(np.float32)
    model = float_model()
    module = from_onnx(model, keep_params_in_input=keep)
    of_file = htvm.quantize(model, "generic.cpu", data)
    of_module = htvm.quantize(module, "generic.cpu", data)
    assert tvm_ffi.structural_equal(of_module.module, of_file.module)


def test_a_float_module_of_torch_computes_what_it_says() -> None:
    """As TVM's importer of torch writes it: constants in main, a tuple as its result."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 4, 6), "float32"))
    weight, offset = RNG.normal(0, 1, (5, 6)).astype(np.float32), np.ones(5, np.float32)
    with bb.function("main", [x]):
        with bb.dataflow():
            turned = bb.emit(R.permute_dims(relax.const(weight), [1, 0]))
            product = bb.emit(R.add(bb.emit(R.matmul(x, turned)), relax.const(offset)))
            result = bb.emit_output(relax.Tuple([bb.emit(R.nn.relu(product))]))
        bb.emit_func_output(result)
    model = htvm.load(bb.finalize())
    sample = RNG.normal(0, 1, (1, 4, 6)).astype(np.float32)
    (found,) = interpret(model.module, [sample]).outputs
    np.testing.assert_allclose(found, np.maximum(sample @ weight.T + 1, 0), rtol=1e-5, atol=1e-5)


def test_a_program_of_torch_is_read() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from tvm.relax.frontend.torch import from_exported_program

    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Hardswish(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(4, 5),
    ).eval()  # fmt: skip
    sample = torch.randn(1, 3, 8, 8)
    module = from_exported_program(torch.export.export(net, (sample,)))
    (found,) = interpret(htvm.load(module).module, [sample.numpy()]).outputs
    np.testing.assert_allclose(found, net(sample).detach().numpy(), rtol=1e-4, atol=1e-5)


def attention(bb: Any, x: Any, mask: Any = None) -> Any:
    """As torch decomposes it: rows without a score that is finite become zeros."""
    scores = bb.emit(R.matmul(x, bb.emit(R.permute_dims(x, [0, 1, 3, 2]))))
    scores = scores if mask is None else bb.emit(R.add(scores, relax.const(mask)))
    weights = bb.emit(R.nn.softmax(scores, axis=-1))
    some = bb.emit(R.logical_not(bb.emit(R.equal(scores, relax.const(-np.inf, "float32")))))
    some = bb.emit(R.max(bb.emit(R.astype(some, "int8")), axis=[-1], keepdims=True))
    none = bb.emit(R.logical_not(bb.emit(R.astype(some, "bool"))))
    zeros = bb.emit(R.full_like(weights, relax.const(0.0, "float32")))
    return R.matmul(bb.emit(R.where(none, zeros, weights)), x)


def test_attention_of_torch_is_read() -> None:
    model = htvm.load(module_of(attention))
    x = RNG.normal(0, 1, (1, 4, 4, 6)).astype(np.float32)
    (found,) = interpret(model.module, [x]).outputs
    scores = np.exp(x @ x.swapaxes(2, 3))
    wanted = scores / scores.sum(-1, keepdims=True) @ x
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_a_row_that_a_mask_leaves_nothing_of_stays_zero() -> None:
    """The guard is not dropped where it may decide: it has no counterpart yet."""
    mask = np.full((1, 1, 4, 4), -np.inf, np.float32)
    with pytest.raises(UnsupportedError, match="Equal"):
        htvm.load(module_of(lambda bb, x: attention(bb, x, mask)))


def module_of(emit: Callable[[Any, Any], Any], dtype: str = "float32") -> Any:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 4, 4, 6), dtype))
    with bb.function("main", [x]):
        with bb.dataflow():
            result = bb.emit_output(bb.emit(emit(bb, x), name_hint="made"))
        bb.emit_func_output(result)
    return bb.finalize()


@pytest.mark.parametrize(
    ("emit", "said"),
    [
        (lambda bb, x: R.sort(x), ("'relax.sort' is not supported", "'made'", "htvm.quantize(")),
        (
            lambda bb, x: R.nn.avg_pool2d(x, (2, 2), layout="NHCW"),
            ("layout NHCW", "'relax.nn.avg_pool2d' bound to variable 'made'", "NCHW"),
        ),
        (
            lambda bb, x: bb.call_te(lambda t: __import__("tvm").topi.sin(t), x),
            ("is no known operator", "'relax.call_tir' bound to variable 'made'"),
        ),
        (
            lambda bb, x: R.nn.adaptive_avg_pool2d(x, (3, 3)),
            ("an average of (4, 6) to (3, 3)", "windows of different sizes"),
        ),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_named(emit: Any, said: tuple[str, ...]) -> None:
    module = module_of(emit)
    with pytest.raises(UnsupportedError) as caught:
        htvm.load(module)
    for part in said:
        assert part in str(caught.value)


def test_a_padding_of_reals_keeps_its_fraction() -> None:
    """Integers alone have one that is an operator of the integer form."""
    model = htvm.load(
        module_of(lambda bb, x: R.nn.pad(x, [0, 0, 0, 0, 1, 2, 0, 1], "constant", -0.5))
    )
    x = RNG.normal(0, 1, (1, 4, 4, 6)).astype(np.float32)
    (found,) = interpret(model.module, [x]).outputs
    widths = [(0, 0), (0, 0), (1, 2), (0, 1)]
    np.testing.assert_array_equal(found, np.pad(x, widths, constant_values=-0.5))


def test_a_resize_rounds_as_tvm_does() -> None:
    """Which is downward if nothing else is said."""
    model = htvm.load(
        module_of(
            lambda bb, x: R.image.resize2d(
                x, (6, 6), layout="NCHW", method="nearest_neighbor", rounding_method="",
                coordinate_transformation_mode="asymmetric",
            )
        )
    )  # fmt: skip
    x = RNG.normal(0, 1, (1, 4, 4, 6)).astype(np.float32)
    (found,) = interpret(model.module, [x]).outputs
    np.testing.assert_array_equal(found, x[:, :, [0, 0, 1, 2, 2, 3]])


def test_a_quantized_module_is_not_quantized_again() -> None:
    scale, zero = relax.const(0.1, "float32"), relax.const(1, "int8")
    module = module_of(
        lambda bb, x: R.dequantize(
            bb.emit(R.quantize(x, scale, zero, axis=0, out_dtype="int8")), scale, zero, axis=0
        )
    )
    with pytest.raises(ModelError, match="quantized already"):
        htvm.quantize(module, "generic.cpu", np.zeros((2, 4, 4, 6), np.float32))


def test_a_dynamic_batch_is_named() -> None:
    model = float_model()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    with pytest.raises(HtvmError, match="'batch', and must be a number"):
        htvm.load(from_onnx(model))
