"""Reshapes that change no byte end no region, unless their result is a tensor of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

import htvm
from byoc_dory.layers.layer import MulShift, Shift
from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import Target
from patterns.byoc.partition import Partition
from patterns.dispatch.dispatching import dispatch
from patterns.ops.add import Add
from patterns.ops.convert import Convert
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense
from patterns.ops.moves.reshape import Reshape, Transpose
from patterns.ops.pulp.norm import PulpLayerNorm
from tests.models_onnx import golden, onnx_path
from tests.patterns.fake import cut, fake, layers_of, soc_of
from tests.patterns.test_types import drawn, module_of
from tests.reference.interpreter import interpret
from tests.reference.matrix_layers import evaluate

RNG = np.random.default_rng(8)


def product(bb: Any, x: Any, k: int, name: str) -> Any:
    weight = RNG.integers(-60, 60, (k, int(x.ty.shape[-1]))).astype(np.int8)
    bias = RNG.integers(-3000, 3000, k).astype(np.int32)
    return Dense(weight, bias, MulShift((150,), (14,), (8192,))).write(bb, [x], name)


def norm(bb: Any, x: Any, name: str) -> Any:
    weight, bias = RNG.integers(-500, 500, (2, int(x.ty.shape[-1])))
    return PulpLayerNorm.of(weight, bias, 16).write(bb, [x], name)


def _block(bb: Any, x: Any) -> Any:
    """x (1, 6, 8), matrices (6, ...) between, as importers write them."""
    flat = Reshape((6, 8)).write(bb, [x], "reshape_0")
    y = product(bb, flat, 5, "linear_0")
    y = Reshape((1, 6, 5)).write(bb, [y], "reshape_1")
    y = Reshape((1, 1, 6, 5)).write(bb, [y], "reshape_2")
    y = norm(bb, y, "layer_norm_0")
    y = product(bb, Reshape((6, 5)).write(bb, [y], "reshape_3"), 8, "linear_1")
    y = Reshape((1, 6, 8)).write(bb, [y], "reshape_4")
    return Add(MulShift((5,), (3,))).write(bb, [x, y], "add_0")


def results_of(parts: Partition, known: dict[str, Any]) -> dict[str, Any]:
    """All tensors of regions that depend on nothing between them, by name; matrices as rows."""
    for region in parts.regions.values():
        for layer in region.layers:
            operands = [
                known[tensor.name].reshape(-1, tensor.shape[0]).T[:, :, None]
                for tensor in layer.inputs
            ]
            known[layer.name] = evaluate(layer, operands)[:, :, 0].T
    return known


def test_a_block_is_one_region() -> None:
    types = [((1, 6, 8), "int8")]
    module = module_of(types, _block)
    placed, parts = cut(module, fake())
    assert layers_of(parts) == [["linear_0", "layer_norm_0", "linear_1", "add_0"]]
    assert set(placed.renamed) == {f"reshape_{at}" for at in range(5)}
    (region,) = parts.regions.values()
    assert [tensor.name for tensor in region.inputs] == ["input_0"]
    assert [t.name for t in region.layers[1].inputs] == ["linear_0"]
    inputs = drawn(types)
    known = results_of(parts, {"input_0": inputs[0]})
    (expected,) = interpret(module, inputs).outputs
    np.testing.assert_array_equal(known["add_0"].reshape(expected.shape), expected)


def test_others_read_the_result() -> None:
    def write(bb: Any, x: Any) -> Any:
        y = Reshape((1, 6, 5)).write(bb, [product(bb, x, 5, "linear_0")], "reshape_0")
        return [norm(bb, y, "layer_norm_0"), Transpose((0, 2, 1)).write(bb, [y], "turned")]

    placed, parts = cut(module_of([((6, 8), "int8")], write), fake())
    assert placed.renamed == {}
    assert layers_of(parts) == [["linear_0"], ["layer_norm_0"]]


def test_a_result_is_a_tensor_of_its_own() -> None:
    def write(bb: Any, x: Any) -> Any:
        return Reshape((1, 6, 5)).write(bb, [product(bb, x, 5, "linear_0")], "reshape_0")

    placed, parts = cut(module_of([((6, 8), "int8")], write), fake())
    assert placed.renamed == {} and layers_of(parts) == [["linear_0"]]


def test_what_would_leave_a_region_ends_it() -> None:
    """The second reader waits for an operator of the host, so that it is in another region."""

    def write(bb: Any, x: Any) -> Any:
        y = norm(bb, product(bb, x, 6, "linear_0"), "layer_norm_0")
        z = Reshape((1, 6, 6)).write(bb, [y], "reshape_0")
        first = norm(bb, z, "layer_norm_1")
        turned = Transpose((0, 2, 1)).write(bb, [first], "turned")
        return Add(Shift(1)).write(bb, [z, turned], "add_0")

    placed, parts = cut(module_of([((6, 8), "int8")], write), fake())
    assert set(placed.renamed) == {"reshape_0"}
    assert layers_of(parts) == [["linear_0", "layer_norm_0"], ["layer_norm_1"], ["add_0"]]
    names = [[t.name for t in region.inputs] for region in parts.regions.values()]
    assert names[1:] == [["reshape_0"], ["reshape_0", "turned"]]


def test_maps_are_reshaped_by_the_host() -> None:
    weight = RNG.integers(-8, 8, (3, 4, 1, 1)).astype(np.int8)
    bias = np.zeros(3, np.int32)

    def write(bb: Any, x: Any) -> Any:
        y = conv2d_of(weight, bias, Window(layout="NCHW"), Shift(4)).write(bb, [x], "conv2d_0")
        y = Reshape((3, 5, 6)).write(bb, [y], "reshape_0")
        return norm(bb, y, "layer_norm_0")

    placed, parts = cut(module_of([((1, 4, 5, 6), "int8")], write), fake())
    assert placed.renamed == {} and len(parts.regions) == 2


def test_maps_with_channels_first_are_no_matrices() -> None:
    """A conversion of them is no function of rows, although its shape would allow it."""
    weight = RNG.integers(-8, 8, (6, 6, 1, 1)).astype(np.int8)

    def write(bb: Any, x: Any, layout: str) -> Any:
        y = conv2d_of(weight, np.zeros(6, np.int32), Window(layout=layout), Shift(4)).write(
            bb, [x], "conv_0"
        )
        y = Convert(MulShift((3,), (2,))).write(bb, [y], "convert_0")
        return conv2d_of(weight, np.zeros(6, np.int32), Window(layout=layout), Shift(4)).write(
            bb, [y], "conv_1"
        )

    sizes = {"NCHW": (1, 6, 5, 6), "NHWC": (1, 5, 6, 6)}
    for layout, regions in (("NCHW", 2), ("NHWC", 1)):
        module = module_of(
            [(sizes[layout], "int8")], lambda bb, x, layout=layout: write(bb, x, layout)
        )
        placed, parts = cut(module, fake())
        assert len(parts.regions) == regions
        (said,) = [verdict for verdict in placed.verdicts if verdict.layer == "convert_0"]
        assert said.accepted == (layout == "NHWC")
        assert said.accepted or said.reason == "tensor 'conv_0' has its channels first"


def test_without_layers_of_matrices_nothing_changes() -> None:
    def write(bb: Any, x: Any) -> Any:
        y = Add(Shift(1)).write(bb, [x, x], "add_0")
        y = Reshape((1, 1, 40)).write(bb, [y], "reshape_0")
        return Add(Shift(1)).write(bb, [y, y], "add_1")

    module = module_of([((1, 40), "int8")], write)
    placed, parts = cut(module, fake())
    assert placed.renamed == {} and len(parts.regions) == 2


def test_a_network_from_a_file() -> None:
    """All layers of matrices of the network, from the file's own values around them."""
    name = "deeploy_networks/CCT/Int/ICCT_ITA"
    model = htvm.load(onnx_path(name))
    inputs, _ = golden(name, model)
    soc, cores = soc_of(fake()), (fake(takes=("gemm", "rows", "mha", "add", "matmul")),)
    placed = dispatch(model.graph, soc, cores)
    from patterns.byoc.partition import partition

    parts = partition(model.graph, placed, Target(soc.name, soc, tuple(cores)), TilingOptions())
    (region,) = parts.regions.values()
    assert len(region.layers) == 12
    known = dict(interpret(model.module, inputs).tensors)
    wanted = {layer.name: known[layer.name] for layer in region.layers}
    found = results_of(parts, {tensor.name: known[tensor.name] for tensor in region.inputs})
    for layer, expected in wanted.items():
        np.testing.assert_array_equal(found[layer].reshape(expected.shape), expected, layer)
