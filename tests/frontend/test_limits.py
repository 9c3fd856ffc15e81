"""What a file takes while it is read is bounded by its size, or by `htvm.Limits`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import htvm
from htvm.errors import HtvmError, InputError, UnsupportedError
from htvm.frontend.limits import Limits
from htvm.tools.cli.app import main
from tests.frontend.flatfile import FLOAT32, INT32, Graph, Op, Tensor, small_network
from tests.frontend.onnxfile import Array, model_of, node, saved

HOSTILE = Path(__file__).resolve().parents[3] / "shared" / "models" / "hostile"
N = 16_000


def ints(*values: int) -> Array:
    return np.asarray(values, np.int64)


def reals(*shape: int) -> Array:
    return np.ones(shape, np.float32)


MANY: dict[str, Array] = {"n": ints(1 << 22)}
# Operator, constants: each asks for more than a gigabyte.
GROWING: dict[str, tuple[str, Mapping[str, Array], Mapping[str, Any]]] = {
    "range": ("Range", {"a": np.float32(0), "b": np.float32(1), "c": np.float32(2e-9)}, {}),
    "range of 32 bits": ("Range", {"a": np.int32(-(2**31)), "b": np.int32(2**31 - 1),
                                   "c": np.int32(16)}, {}),
    "expand": ("Expand", {"a": reals(1, 1), "n": ints(N, 4 * N)}, {}),
    "tile": ("Tile", {"a": reals(1, 1), "n": ints(N, 4 * N)}, {}),
    "one_hot": ("OneHot", {"i": ints(*range(64)), "d": ints(1 << 28), "v": ints(0, 1)}, {}),
    "constant": ("ConstantOfShape", {"n": ints(N, 4 * N)}, {}),
    "pad": ("Pad", {"a": reals(1, 1), "n": ints(0, 0, N, 4 * N)}, {}),
    "broadcast": ("Mul", {"a": reals(N, 1), "b": reals(1, 4 * N)}, {}),
    "where": ("Where", {"c": np.ones((N, 1), bool), "a": reals(1, 4 * N), "b": reals(1)}, {}),
    "gather": ("Gather", {"a": reals(1, 4096), "i": np.zeros(1 << 15, np.int64)}, {"axis": 0}),
    "concat": ("Concat", {"a": reals(1 << 22)}, {"axis": 0}),
}  # fmt: skip


def refused(path: Path, limit: str) -> None:
    start = time.process_time()
    with pytest.raises(UnsupportedError, match=rf"for a limit of [0-9,]+;.*Limits\({limit}=") as it:
        htvm.load(path)
    assert it.value.where and time.process_time() - start < 10


@pytest.mark.parametrize("name", GROWING)
def test_constants_that_grow(name: str, tmp_path: Path) -> None:
    op, constants, attributes = GROWING[name]
    inputs = list(constants)
    if op == "Concat":
        inputs = ["a"] * 20
    nodes = [node(op, inputs, "big", **attributes), node("ReduceMax", ["big"], "top", keepdims=0)]
    nodes += [node("Cast", ["top"], "real", to=TensorProto.FLOAT), node("Add", ["x", "real"], "y")]
    refused(saved(model_of(nodes, {"x": (1, 4)}, constants=constants), tmp_path), "folded_elements")


def test_many_constants_that_are_small_each(tmp_path: Path) -> None:
    nodes = [node("ConstantOfShape", ["n"], f"c{at}") for at in range(64)]
    nodes.append(node("Sum", ["x", *(f"c{at}" for at in range(64))], "y"))
    refused(saved(model_of(nodes, {"x": (1, 4)}, constants=MANY), tmp_path), "folded_elements")


def test_long_lists_beside_a_shape(tmp_path: Path) -> None:
    """Inference of shapes follows values, element by element."""
    nodes = [
        node("Concat", ["x"] * 16, "long", axis=0),
        node("Size", ["long"], "size"),
        node("Cast", ["size"], "real", to=TensorProto.FLOAT),
        node("Add", ["x", "real"], "y"),
    ]
    start = time.process_time()
    with pytest.raises(UnsupportedError, match="elements"):
        htvm.load(saved(model_of(nodes, {"x": (1 << 31,)}), tmp_path))
    assert time.process_time() - start < 10


@pytest.mark.parametrize("op", ["MatMul", "Gemm"])
def test_products_that_take_long(op: str, tmp_path: Path) -> None:
    nodes = [
        node("ConstantOfShape", ["n"], "zeros"),
        node("Cast", ["zeros"], "a", to=TensorProto.INT64),
        node(op, ["a", "a"], "b"),
        node("ReduceMax", ["b"], "top", keepdims=0),
        node("Cast", ["top"], "real", to=TensorProto.FLOAT),
        node("Add", ["x", "real"], "y"),
    ]
    made = model_of(nodes, {"x": (1, 4)}, constants={"n": ints(2000, 2000)})
    refused(saved(made, tmp_path), "folded_operations")


READ: dict[str, list[onnx.NodeProto]] = {
    "many times": [node("ReduceMin", ["big"], f"m{at}", keepdims=0) for at in range(300)],
    "by one": [node("Sum", ["big"] * 300, "m0")],
    "one by one": [node("Erf", ["big"], "m0")],
}


@pytest.mark.parametrize("name", READ)
def test_constants_that_are_read(name: str, tmp_path: Path) -> None:
    made = [each.output[0] for each in READ[name]]
    nodes = [node("ConstantOfShape", ["n"], "big"), *READ[name], node("Sum", ["x", *made], "y")]
    path = saved(model_of(nodes, {"x": (1, 1)}, constants={"n": ints(1 << 23)}), tmp_path)
    refused(path, "folded_operations")


def test_sizes_that_overflow_are_no_credit(tmp_path: Path) -> None:
    """A padding by less than nothing, of which the package infers negative sizes."""
    numbers = {"a": np.float32(0), "b": np.float32(2e8), "c": np.float32(1)}
    nodes = [
        node("Pad", ["z", "p"], "t"),
        node("Range", ["a", "b", "c"], "r"),
        node("ReduceMax", ["r"], "m", keepdims=0),
        node("Sum", ["x", "m", "t"], "y"),
    ]
    constants = {**numbers, "z": reals(16), "p": ints(-(2**40), 0)}
    refused(saved(model_of(nodes, {"x": (1, 4)}, constants=constants), tmp_path), "folded_elements")


def test_parts_that_no_output_has(tmp_path: Path) -> None:
    split = helper.make_node("Split", ["x"], ["a", "b"], axis=1, num_outputs=10**9)
    nodes = [split, node("Shape", ["x"], "s"), node("Add", ["a", "b"], "y")]
    made = model_of(nodes, {"x": (1, 4)})
    made.opset_import[0].version = 18
    with pytest.raises(HtvmError):
        htvm.load(saved(made, tmp_path))


def test_functions_whose_constants_multiply(tmp_path: Path) -> None:
    big = helper.make_node("Constant", [], ["k"], value=onnx.numpy_helper.from_array(reals(9000)))
    imports = [helper.make_opsetid("", 13), helper.make_opsetid("own", 1)]
    functions = [helper.make_function("own", "f0", ["x"], ["y"],
                                      [big, node("Relu", ["x"], "y")], imports)]  # fmt: skip
    for at in range(1, 11):
        twice = [helper.make_node(f"f{at - 1}", [a], [b], domain="own") for a, b in ("xm", "my")]
        functions.append(helper.make_function("own", f"f{at}", ["x"], ["y"], twice, imports))
    made = model_of([helper.make_node("f10", ["x"], ["y"], domain="own")], {"x": (1, 4)})
    made.opset_import.append(imports[1])
    made.functions.extend(functions)
    with pytest.raises(UnsupportedError, match=r"expand to 3\d,\d+,\d+ bytes"):
        htvm.load(saved(made, tmp_path))


def test_functions_that_call_each_other_too_deep(tmp_path: Path) -> None:
    imports = [helper.make_opsetid("", 13), helper.make_opsetid("own", 1)]
    functions = [helper.make_function("own", "f0", ["x"], ["y"], [node("Relu", ["x"], "y")],
                                      imports)]  # fmt: skip
    for at in range(1, 300):
        call = helper.make_node(f"f{at - 1}", ["x"], ["y"], domain="own")
        functions.append(helper.make_function("own", f"f{at}", ["x"], ["y"], [call], imports))
    made = model_of([helper.make_node("f299", ["x"], ["y"], domain="own")], {"x": (1, 4)})
    made.opset_import.append(imports[1])
    made.functions.extend(functions)
    with pytest.raises(UnsupportedError, match="cannot be written in place"):
        htvm.load(saved(made, tmp_path))


def test_other_limits_let_a_file_pass_or_not(tmp_path: Path) -> None:
    nodes = [node("Expand", ["a", "n"], "b"), node("Add", ["x", "b"], "y")]
    constants = {"a": reals(1, 1), "n": ints(1, 64)}
    path = saved(model_of(nodes, {"x": (1, 64)}, constants=constants), tmp_path)
    htvm.load(path)
    htvm.load(path, limits=Limits(folded_elements=128))
    with pytest.raises(UnsupportedError, match=r"64 elements or more, for a limit of 63; node 'b'"):
        htvm.load(path, limits=Limits(folded_elements=63))
    with pytest.raises(UnsupportedError, match=r"128 elements or more, for a limit of 64; node"):
        htvm.load(path, limits=Limits(folded_elements=64))


def test_limits_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every verb that reads a file takes them, and they reach its reader."""
    nodes = [node("Expand", ["a", "n"], "b"), node("Add", ["x", "b"], "y")]
    constants = {"a": reals(1, 1), "n": ints(1, 64)}
    path = str(saved(model_of(nodes, {"x": (1, 64)}, constants=constants), tmp_path))
    np.save(tmp_path / "data.npy", np.zeros((2, 1, 64), np.float32))
    quantize = ["quantize", path, "--data", str(tmp_path / "data.npy")]
    quantize += ["--out", str(tmp_path / "q.onnx")]
    target = ["-t", "generic.cpu"]
    for verb in (["explain", path, *target], quantize, ["sweep", path, *target, "--l2", "1MiB"]):
        assert main([*verb, "--limit", "folded_elements=63"]) == 2
        said = capsys.readouterr().err
        assert "for a limit of 63;" in said and "or --limit folded_elements=..." in said, verb
        assert main([*verb, "--limit", "folded_elements=128"]) == 0, capsys.readouterr().err


def test_what_a_file_holds_may_be_folded(tmp_path: Path) -> None:
    """A limit does not stop networks of many weights."""
    nodes = [node("Transpose", ["w"], "t"), node("MatMul", ["x", "t"], "y")]
    made = model_of(nodes, {"x": (1, 64)}, constants={"w": reals(32, 64)})
    htvm.load(saved(made, tmp_path), limits=Limits(folded_elements=1))


def test_one_file_of_data_that_all_weights_name(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(1 << 22))
    nodes = [node("Sum", ["x", *(f"w{at}" for at in range(2000))], "y")]
    made = model_of(nodes, {"x": (1, 4)})
    for at in range(2000):
        tensor = TensorProto(name=f"w{at}", data_type=TensorProto.FLOAT, dims=[1 << 20])
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.append(onnx.StringStringEntryProto(key="location", value="data"))
        made.graph.initializer.append(tensor)
    refused(saved(made, tmp_path), "decoded_bytes")


def test_names_of_data_that_are_no_text(tmp_path: Path) -> None:
    made = model_of([node("Add", ["x", "w"], "y")], {"x": (1, 4)})
    tensor = helper.make_tensor("w", TensorProto.FLOAT, [4], bytes(16), raw=True)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.append(onnx.StringStringEntryProto(key="location", value="QQQQQQ"))
    made.graph.initializer.append(tensor)
    path = tmp_path / "net.onnx"
    path.write_bytes(made.SerializeToString().replace(b"QQQQQQ", b"\xff\xfe\xfd\xfc\xfb\xfa"))
    with pytest.raises(htvm.ModelError, match="a name that is no text"):
        htvm.load(path)


# ------------------------------------------------------------------------------ TFLite


def operands(kind: str) -> tuple[list[Tensor], tuple[int, ...]]:
    """Constants whose result takes gigabytes, and the shape that the file declares for it."""

    def real(*shape: int) -> Tensor:
        return Tensor("a", shape, FLOAT32, reals(*shape), (), ())

    def sizes(*values: int) -> Tensor:
        return Tensor("n", (len(values),), INT32, np.asarray(values, np.int32), (), ())

    return {
        "TILE": ([real(1, 1), sizes(N, N)], (N, N)),
        "FILL": ([sizes(N, N), Tensor("v", (), FLOAT32, np.float32(1), (), ())], (N, N)),
        "BROADCAST_TO": ([real(1, 1), sizes(N, N)], (N, N)),
        "MUL": ([real(N, 1), real(1, N)], (N, N)),
        "GATHER": ([real(1, N), Tensor("i", (N,), INT32, np.zeros(N, np.int32), (), ())], (N, N)),
    }[kind]


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("kind", ["TILE", "FILL", "BROADCAST_TO", "MUL", "GATHER"])
def test_tflite_constants_that_grow(kind: str, declared: bool, tmp_path: Path) -> None:
    """Whether the file says how large they get, or something else."""
    constants, shape = operands(kind)
    shape = shape if declared else (1, 4)
    tensors = [
        Tensor("x", (1, 4), FLOAT32, scales=(), zero_points=()),
        *constants,
        Tensor("big", shape, FLOAT32, scales=(), zero_points=()),
        Tensor("y", (1, 4), FLOAT32, scales=(), zero_points=()),
    ]
    graph = Graph(tensors, [Op(kind, [1, 2], [3]), Op("ADD", [0, 3], [4])])
    path = tmp_path / "net.tflite"
    path.write_bytes(graph.file())
    start = time.process_time()
    with pytest.raises(htvm.HtvmError):
        htvm.load(path)
    assert time.process_time() - start < 10


def test_a_name_that_all_tensors_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one: dict[str, int] = {}
    create = flatbuffers.Builder.CreateString

    def shared(self: flatbuffers.Builder, text: str, *rest: Any) -> int:
        if text not in one:
            one[text] = create(self, text, *rest)
        return one[text]

    monkeypatch.setattr(flatbuffers.Builder, "CreateString", shared)
    graph = small_network()
    name = "n" * 60_000
    extra = [Tensor(name, (1,), scales=(), zero_points=()) for _ in range(2000)]
    data = Graph([*graph.tensors, *extra], graph.operators, outputs=(15,)).file()
    assert len(data) < 400_000
    path = tmp_path / "net.tflite"
    path.write_bytes(data)
    refused(path, "decoded_bytes")


def test_a_list_that_all_tensors_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one: dict[tuple[str, bytes], int] = {}
    create = flatbuffers.Builder.CreateNumpyVector

    def shared(self: flatbuffers.Builder, values: Array) -> int:
        key = (values.dtype.str, values.tobytes())
        if key not in one:
            one[key] = create(self, values)
        return one[key]

    monkeypatch.setattr(flatbuffers.Builder, "CreateNumpyVector", shared)
    graph = small_network()
    steps, zeros = (0.5,) * 30_000, (0,) * 30_000
    extra = [Tensor(f"t{at}", (30_000,), scales=steps, zero_points=zeros) for at in range(2000)]
    path = tmp_path / "net.tflite"
    path.write_bytes(Graph([*graph.tensors, *extra], graph.operators, outputs=(15,)).file())
    refused(path, "decoded_bytes")


# ------------------------------------------------------------------------------ the limits


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "many"])
def test_what_is_no_limit(limit: Any) -> None:
    with pytest.raises(InputError, match="is no limit of decoded_bytes"):
        Limits(decoded_bytes=limit)


@pytest.mark.skipif(not HOSTILE.is_dir(), reason="the hostile files are not here")
@pytest.mark.parametrize(
    "name", sorted(path.name for path in HOSTILE.glob("*.*") if path.suffix != ".md")
)
def test_hostile_files_are_refused_at_once(name: str) -> None:
    start = time.process_time()
    with pytest.raises(htvm.HtvmError):
        htvm.load(HOSTILE / name)
    assert time.process_time() - start < 10


@pytest.mark.parametrize("kind", ["TILE", "BROADCAST_TO"])
def test_elements_that_are_chosen_one_by_one(kind: str, tmp_path: Path) -> None:
    """Of a tensor that is computed: the places are what a small file makes many of."""
    count = 2**27
    tensors = [
        Tensor("x", (1, 1)),
        Tensor("n", (2,), INT32, np.asarray([1, count], np.int32), (), ()),
        Tensor("y", (1, count)),
    ]
    path = tmp_path / "net.tflite"
    path.write_bytes(Graph(tensors, [Op(kind, [0, 1], [2])]).file())
    start = time.process_time()
    refused(path, "folded_elements")
    assert time.process_time() - start < 5


def test_other_things_are_no_limits() -> None:
    with pytest.raises(InputError, match=r"a int is no limit of reading; option 'limits'"):
        htvm.load("zoo:digits", limits=5)  # type: ignore[arg-type]
