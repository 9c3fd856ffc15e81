"""Sums and products of two tensors are layers, in single rows with functions before them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tvm import relax

import htvm
from byoc_dory.layers import Combination, MulShift
from htvm import zoo
from htvm.model import Model, TensorInfo
from patterns.dispatch.groups import combination_at
from patterns.op import Op
from patterns.ops.add import Add
from patterns.ops.convert import Convert
from patterns.ops.integer.combine import Combine
from patterns.ops.integer.rescale import Rescale
from patterns.reading.read import graph_of
from tests.reference.interpreter import interpret

HALF = MulShift((30000,), (16,), (1 << 15,))


def model(shape: tuple[int, ...], *ops: tuple[str, Op, Sequence[str]]) -> Model:
    """A model of inputs a and b, and operators with names and inputs; the last is returned."""
    infos = tuple(TensorInfo(name, shape, "int8") for name in "ab")
    params = [relax.Var(info.name, relax.TensorType(shape, "int8")) for info in infos]
    known: dict[str, Any] = dict(zip("ab", params, strict=True))
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            for name, op, inputs in ops:
                known[name] = op.write(bb, [known[each] for each in inputs], name)
            result = bb.emit_output(known[name])
        bb.emit_func_output(result)
    outputs = (TensorInfo("y", shape, "int8"),)
    return Model("combined", graph_of(bb.finalize()), infos, outputs, scheme="mul_shift")


def product(mul: int = 700) -> tuple[tuple[str, Op, Sequence[str]], ...]:
    rescale = Rescale(np.asarray(mul), np.asarray(1 << 15), 16, (-128, 127), bound=1 << 14)
    return ("p", Combine("multiply"), "ab"), ("y", rescale, "p")


def found(network: Model) -> list[Combination]:
    nodes = network.graph.in_order
    groups = [group for node in nodes if (group := combination_at(node, network.graph))]
    assert all(isinstance(group.layer, Combination) for group in groups)
    return [group.layer for group in groups if isinstance(group.layer, Combination)]


NETWORKS = {
    "sum of a row": model((1, 1, 24), ("c", Convert(HALF), "a"), ("y", Add(HALF), "cb")),
    "both converted": model(
        (1, 24), ("c", Convert(HALF), "a"), ("d", Convert(HALF), "b"), ("y", Add(HALF), "dc")
    ),
    "product": model((1, 5, 24), *product()),
    "product of a row": model(
        (1, 24), ("c", Convert(HALF), "b"), ("p", Combine("multiply"), "ac"), product()[1]
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("target", ["siracusa.cluster", "snitch_ita.cluster"])
def test_it_computes_what_its_operators_do(name: str, target: str) -> None:
    network = NETWORKS[name]
    (layer,) = found(network)
    assert sum(table is not None for table in layer.tables) == len(network.graph.in_order) - (
        2 if layer.function == "multiply" else 1
    )
    rng = np.random.default_rng(3)
    inputs = [rng.integers(-128, 128, info.shape).astype("int8") for info in network.inputs]
    module = htvm.build(network, target, "host")
    assert [row.accelerator for row in module.run(inputs).layers] == ["cluster"]
    (ours,), (wanted,) = module.run(inputs).outputs, interpret(network.module, inputs).outputs
    np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize(
    "network",
    [
        model((1, 5, 24), ("c", Convert(HALF), "a"), ("y", Add(HALF), "cb")),  # several rows
        model((1, 24), ("y", Add(HALF), "ab")),  # a sum is a layer already
        model((1, 24), ("c", Convert(HALF), "a"), ("s", Add(HALF), "cb"), ("y", Add(HALF), "sc")),
    ],
)
def test_others_stay_apart(network: Model) -> None:
    assert all(layer.name != "y" for layer in found(network))


def test_the_zoo_s_language_model_has_three_in_a_layer() -> None:
    layers = found(zoo.microllama(2, layers=1).step)
    assert [layer.function for layer in layers] == ["add", "multiply", "add"]


def test_products_that_leave_32_bits_are_refused() -> None:
    network = model((1, 24), *product(2**20))
    module = htvm.build(network, "siracusa.cluster", "host")
    said = [verdict.reason for verdict in module.verdicts if verdict.layer == "y"]
    assert any("a result times 1048576 leaves 32 bits" in reason for reason in said)
