"""A sum of matrices is offered to each accelerator as its layout wants it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from byoc_dory.layers import Shift, add_layer, matrix
from byoc_dory.soc.registry import resolve
from patterns.dispatch.dispatching import dispatch
from patterns.ops.add import Add
from patterns.reading.graph import Graph
from patterns.reading.node import Node


@pytest.mark.parametrize(
    ("target", "shape"), [("diana.digital", (128,)), ("snitch_ita.cluster", (16, 8, 1))]
)
def test_a_sum_of_matrices(target: str, shape: tuple[int, ...]) -> None:
    layer = add_layer("s", matrix("a", 8, 16), matrix("b", 8, 16), "s", requant=Shift(1))
    layer = replace(layer, output=matrix("s", 8, 16))
    node = Node(
        "s",
        Add(Shift(1)),
        ("a", "b"),
        "s",
        ((8, 16), (8, 16)),
        (8, 16),
        layer,
        ("int8", "int8"),
    )
    found = resolve(target)
    placed = dispatch(Graph((node,), ("s",)), found.soc, found.accelerators)
    assert placed.placement["s"] == found.accelerators[0].name
    tensors = (*placed.layers["s"].inputs, placed.layers["s"].output)
    assert {tensor.shape for tensor in tensors} == {shape}
