"""Constants that operators have are counted as often as they have them, before they are made."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import htvm
from htvm.errors import HtvmError, UnsupportedError
from tests.frontend.flatfile import INT32, Graph, Op, Tensor
from tests.frontend.onnxfile import Array, model_of, node, saved
from tests.frontend.test_limits import ints, reals, refused

STEP: dict[str, Array] = {"s": np.float32(0.5), "z": np.int8(0)}
FOLDED = [node("ConstantOfShape", ["n"], "real"), node("Cast", ["real"], "i", to=TensorProto.INT64)]
LONG: dict[str, Array] = {"n": ints(1 << 24)}

# Nodes of an input of shape (1, 4), and constants.
LISTS: dict[str, onnx.NodeProto] = {
    "gather": node("Gather", ["x", "i"], "y", axis=1),
    "reshape": node("Reshape", ["x", "i"], "y"),
    "slice": node("Slice", ["x", "i", "i"], "y"),
    "pad": node("Pad", ["x", "i"], "y"),
    "unsqueeze": node("Unsqueeze", ["x", "i"], "y"),
}


@pytest.mark.rotating(2)
@pytest.mark.parametrize("name", LISTS)
def test_lists_of_millions_of_integers(name: str, tmp_path: Path) -> None:
    made = model_of([*FOLDED, LISTS[name]], {"x": (1, 4)}, constants=LONG)
    refused(saved(made, tmp_path), "folded_elements")


def test_lists_that_many_nodes_name(tmp_path: Path) -> None:
    nodes = [*FOLDED, *(node("Gather", ["x", "i"], f"g{at}", axis=1) for at in range(50))]
    nodes.append(node("Sum", [f"g{at}" for at in range(50)], "y"))
    made = model_of(nodes, {"x": (1, 4)}, constants={"n": ints(1 << 20)})
    refused(saved(made, tmp_path), "folded_elements")


def test_lists_in_a_dialect_of_integers(tmp_path: Path) -> None:
    factors = {"m": np.ones(1, np.float32)}
    last = node("RequantShift", ["g", "m", "m"], "y", div=8, n_levels=256, signed=1)
    nodes = [*FOLDED, node("Gather", ["x", "i"], "g", axis=1), last]
    made = model_of(nodes, {"x": (1, 4)}, constants={"n": ints(1 << 23), **factors})
    refused(saved(made, tmp_path), "folded_elements")


def test_as_many_repeats_as_the_limit_allows_are_read_soon(tmp_path: Path) -> None:
    made = model_of(
        [node("Tile", ["x", "n"], "y")], {"x": (1, 4)}, constants={"n": ints(1, 1 << 19)}
    )
    start = time.process_time()
    htvm.load(saved(made, tmp_path))
    assert time.process_time() - start < 10


def weights(count: int, step: str) -> list[onnx.NodeProto]:
    """Products with the same large matrix, one after the other."""
    tensor, nodes = "x", []
    for at in range(count):
        nodes += [node("QuantizeLinear", [tensor, "s", "z"], f"q{at}"),
                  node("DequantizeLinear", [f"q{at}", "s", "z"], f"r{at}"),
                  node("MatMul", [f"r{at}", step], f"m{at}")]  # fmt: skip
        tensor = f"m{at}"
    return [*nodes, node("Relu", [tensor], "y")]


ONES = node(
    "ConstantOfShape", ["n"], "w", value=helper.make_tensor("v", TensorProto.INT8, [1], [1])
)
BROAD = {"w": np.ones((16_000, 1), np.int8), "v": np.ones((1, 16_000), np.int8)}
# Nodes, the input's shape and constants.
MADE: dict[str, tuple[list[onnx.NodeProto], tuple[int, ...], Mapping[str, Array]]] = {
    "named by many": (
        [ONES, node("DequantizeLinear", ["w", "s", "z"], "d"), *weights(50, "d")],
        (1, 2048), {"n": ints(2048, 2048)},
    ),
    "repeated": (
        [node("DequantizeLinear", ["w", "s", "z"], "d"), node("Tile", ["d", "n"], "t"),
         *weights(1, "t")],
        (1, 8192), {"w": np.ones((1, 1), np.int8), "n": ints(8192, 8192)},
    ),
    "broadcast": (
        [node("DequantizeLinear", ["w", "s", "z"], "a"),
         node("DequantizeLinear", ["v", "s", "z"], "b"), node("Add", ["a", "b"], "t"),
         *weights(1, "t")],
        (1, 16_000), BROAD,
    ),
    "summands": (
        [node("ConstantOfShape", ["n"], "c"), node("Add", ["x", "c"], "a0"),
         *(node("Add", [f"a{at}", "c"], f"a{at + 1}") for at in range(60)),
         node("Relu", ["a60"], "y")],
        (1, 1), {"n": ints(2048, 2048)},
    ),
    "interpolation": (
        [node("Resize", ["x", "", "", "n"], "r0", mode="cubic"),
         *(node("Resize", [f"r{at}", "", "", "nm"[at % 2 ^ 1]], f"r{at + 1}", mode="cubic")
           for at in range(20)),
         node("Relu", ["r20"], "y")],
        (1, 1, 2, 2), {"n": ints(1, 1, 4096, 4096), "m": ints(1, 1, 4095, 4095)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_constants_that_operators_have(name: str, tmp_path: Path) -> None:
    nodes, shape, constants = MADE[name]
    made = model_of(nodes, {"x": shape}, constants={**STEP, **constants})
    refused(saved(made, tmp_path), "folded_elements")


def test_blocks_that_are_larger_than_their_axis(tmp_path: Path) -> None:
    """Their scale is that of all elements, however large they say that they are."""
    block = helper.make_node("DequantizeLinear", ["w", "t", "u"], ["d"], axis=0, block_size=2**30)
    constants = {**STEP, "t": np.full((1, 4), 0.5, np.float32), "u": np.zeros((1, 4), np.int8)}
    nodes = [block, *weights(1, "d")]
    made = model_of(nodes, {"x": (1, 4)}, constants={**constants, "w": np.ones((4, 4), np.int8)})
    made.opset_import[0].version = 21
    htvm.load(saved(made, tmp_path))


AXES: dict[str, onnx.NodeProto] = {
    "constant": node("ConstantOfShape", ["n"], "w"),
    "expand": node("Expand", ["k", "n"], "w"),
    "reshape": node("Reshape", ["k", "n"], "w"),
}


@pytest.mark.parametrize("count", [33, 64, 200])
@pytest.mark.parametrize("dequantized", [False, True])
@pytest.mark.parametrize("name", AXES)
def test_constants_of_more_axes_than_arrays_have(
    name: str, dequantized: bool, count: int, tmp_path: Path
) -> None:
    nodes = [AXES[name], node("Add", ["x", "w"], "y")]
    constants = {"n": np.ones(count, np.int64), "k": reals(1)}
    if dequantized and name != "constant":
        nodes[:0] = [node("DequantizeLinear", ["i", "s", "z"], "k")]
        del constants["k"]
        constants |= {**STEP, "i": np.ones(1, np.int8)}
    made = model_of(nodes, {"x": (1, 4)}, constants=constants)
    with pytest.raises(UnsupportedError, match=rf"a constant of {count} axes; node 'w'"):
        htvm.load(saved(made, tmp_path))


def test_operators_that_read_too_many_tensors(tmp_path: Path) -> None:
    made = model_of([node("Concat", ["x"] * 50_000, "y", axis=1)], {"x": (1, 4)})
    with pytest.raises(UnsupportedError, match=r"read more than 20,000 tensors; node 'y'"):
        htvm.load(saved(made, tmp_path))


def test_one_constant_of_many_nodes_is_looked_at_once(tmp_path: Path) -> None:
    """When the kind of the file is recognised, which comes before it is read."""
    nodes = [node("ConstantOfShape", ["n"], "w"), node("MatMul", ["x", "w"], "m0")]
    nodes += [node("MatMul", [f"m{at}", "w"], f"m{at + 1}") for at in range(2000)]
    nodes.append(node("Relu", ["m2000"], "y"))
    path = saved(model_of(nodes, {"x": (1, 2048)}, constants={"n": ints(2048, 2048)}), tmp_path)
    start = time.process_time()
    with pytest.raises(HtvmError):
        htvm.load(path)
    assert time.process_time() - start < 10


def test_branches_within_branches_share_the_limits(tmp_path: Path) -> None:
    """The constants are computed again each time that branches are taken."""
    out = [helper.make_tensor_value_info("o", TensorProto.FLOAT, None)]
    inner = helper.make_graph([node("Relu", ["x"], "o")], "b", [], out)
    for _ in range(25):
        other = helper.make_graph([node("Relu", ["x"], "o")], "b", [], out)
        choice = helper.make_node("If", ["t"], ["o"], then_branch=inner, else_branch=other)
        inner = helper.make_graph([choice], "b", [], out)
    nodes = [node("ConstantOfShape", ["n"], "c"), node("Erf", ["c"], "e"),
             node("ReduceMax", ["e"], "m", keepdims=0), *inner.node,
             node("Add", ["o", "m"], "y")]  # fmt: skip
    constants: dict[str, Array] = {"n": ints(1 << 19), "t": np.bool_(True)}  # type: ignore[dict-item]
    refused(
        saved(model_of(nodes, {"x": (1, 4)}, constants=constants), tmp_path), "folded_operations"
    )


CONTROL: dict[str, tuple[str, list[str]]] = {
    "loop": ("Loop", ["k", "t", "x"]),
    "scan": ("Scan", ["x"]),
    "map": ("SequenceMap", ["x"]),
}


@pytest.mark.parametrize("name", CONTROL)
def test_loops(name: str, tmp_path: Path) -> None:
    op, inputs = CONTROL[name]
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [node("Identity", ["c"], "d")], "b",
        [info("c", TensorProto.BOOL, ())], [info("d", TensorProto.BOOL, ())],
    )  # fmt: skip
    constants: dict[str, Array] = {"k": ints(2**60), "t": np.ones((), bool)}
    made = model_of([node(op, inputs, "y", body=body)], {"x": (1, 4)}, constants=constants)
    with pytest.raises(UnsupportedError, match="control flow is not supported"):
        htvm.load(saved(made, tmp_path))


@pytest.mark.parametrize("op", ["SplitToSequence", "SequenceConstruct", "Optional"])
def test_sequences(op: str, tmp_path: Path) -> None:
    nodes = [node(op, ["x"], "s"), node("ConcatFromSequence", ["s"], "y", axis=0)]
    with pytest.raises(UnsupportedError, match=f"operator {op} is not supported"):
        htvm.load(saved(model_of(nodes, {"x": (1, 4)}), tmp_path))


def test_texts(tmp_path: Path) -> None:
    made = model_of([node("Equal", ["x", "k"], "y")], {"x": (1, 4)})
    made.graph.initializer.append(helper.make_tensor("k", TensorProto.STRING, [4], [b"a" * 99] * 4))
    with pytest.raises(UnsupportedError, match="a tensor of type STRING; initialiser 'k'"):
        htvm.load(saved(made, tmp_path))


def test_external_data_outside_are_no_credit(tmp_path: Path) -> None:
    """A large file elsewhere does not make the limit of a small one's data larger."""
    folder = tmp_path / "net"
    folder.mkdir()
    (tmp_path / "large").touch()
    with (tmp_path / "large").open("r+b") as file:
        file.truncate(1 << 32)
    (folder / "data").write_bytes(bytes(1 << 22))
    made = model_of([node("Sum", ["x", *(f"w{at}" for at in range(20))], "y")], {"x": (1, 4)})
    for at in range(20):
        tensor = TensorProto(name=f"w{at}", data_type=TensorProto.FLOAT, dims=[1 << 20])
        tensor.data_location = TensorProto.EXTERNAL
        place = "data" if at < 19 else "../large"
        tensor.external_data.append(onnx.StringStringEntryProto(key="location", value=place))
        made.graph.initializer.append(tensor)
    refused(saved(made, folder), "decoded_bytes")


# ------------------------------------------------------------------------------ TFLite


def test_tflite_constants_that_are_read_many_times(tmp_path: Path) -> None:
    size = 1 << 22
    tensors = [
        Tensor("x", (1, 4)),
        Tensor("n", (1,), INT32, np.asarray([size], np.int32), (), ()),
        Tensor("v", (), INT32, np.int32(1), (), ()),
        Tensor("big", (size,), INT32, None, (), ()),
        Tensor("axes", (1,), INT32, np.asarray([0], np.int32), (), ()),
    ]
    operators = [Op("FILL", [1, 2], [3])]
    for _ in range(300):
        operators.append(Op("SUM", [3, 4], [len(tensors)], (27, {})))
        tensors.append(Tensor(f"p{len(tensors)}", (), INT32, None, (), ()))
    tensors.append(Tensor("y", (1, 4)))
    operators.append(Op("RELU", [0], [len(tensors) - 1]))
    path = tmp_path / "net.tflite"
    path.write_bytes(Graph(tensors, operators).file())
    refused(path, "folded_operations")


def test_tflite_weights_that_many_operators_name(tmp_path: Path) -> None:
    size = 1 << 10
    weights = Tensor("w", (size, size), data=np.ones((size, size), np.int8), scales=(0.5,),
                     zero_points=(0,))  # fmt: skip
    tensors = [Tensor("x", (1, size)), weights]
    operators = []
    for at in range(200):
        operators.append(
            Op("FULLY_CONNECTED", [len(tensors) - 1 if at else 0, 1, -1], [len(tensors)], (8, {}))
        )
        tensors.append(Tensor(f"t{at}", (1, size)))
    path = tmp_path / "net.tflite"
    path.write_bytes(Graph(tensors, operators).file())
    refused(path, "folded_elements")
