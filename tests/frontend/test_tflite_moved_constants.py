"""Quantized constants behind operators that move them, as exporters of PyTorch leave weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from byoc_dory.errors import ModelError, UnsupportedError
from tests.frontend.flatfile import INT4, INT8, Graph, Options
from tests.frontend.single import Loader
from tests.frontend.sketch import Sketch
from tests.frontend.tflm import reference
from tests.reference.interpreter import interpret

K, C = 6, 5
SCALES = tuple(float(np.float32(scale)) for scale in np.linspace(0.01, 0.06, K))


@dataclass(frozen=True)
class Move:
    """An operator, the integers of its second input, and its result with the axis of its scales."""

    kind: str
    numbers: Any
    shape: tuple[int, ...]
    axis: int
    options: Options | None = None
    scales: tuple[float, ...] = SCALES


SQUEEZED = (30, {0: np.asarray([1], np.int32)})
CHAINS: dict[str, tuple[tuple[int, ...], int, Sequence[Move]]] = {
    "transposed": ((C, K), 1, [Move("TRANSPOSE", [1, 0], (K, C), 0)]),
    "turned twice": ((K, C), 0, [Move("TRANSPOSE", [1, 0], (C, K), 1),
                                 Move("TRANSPOSE", [1, 0], (K, C), 0)]),
    "squeezed": ((K, 1, C), 0, [Move("SQUEEZE", None, (K, C), 0, SQUEEZED)]),
    "expanded": ((K, C), 0, [Move("EXPAND_DIMS", 0, (1, K, C), 1),
                             Move("RESHAPE", [-1, C], (K, C), 0)]),
    "reversed": ((K, C), 0, [Move("REVERSE_V2", [0], (K, C), 0, None, SCALES[::-1])]),
    "chosen": ((K, C), 0, [Move("GATHER", [5, 0, 0, 2], (4, C), 0, (23, {0: ("i", 0)}),
                                (SCALES[5], SCALES[0], SCALES[0], SCALES[2]))]),
    "cut": ((K, 7), 0, [Move("STRIDED_SLICE", [[2, 0], [5, C], [1, 1]], (3, C), 0, (32, {}),
                             SCALES[2:5])]),
    "one channel": ((K, C), 0, [Move("STRIDED_SLICE", [[3, 0], [4, C], [1, 1]], (1, C), 0,
                                     (32, {}), SCALES[3:4])]),
}  # fmt: skip
"""Shape of the constant, axis of its scales, and moves that leave the weights of a layer."""


def layer(
    shape: tuple[int, ...], axis: int, moves: Sequence[Move], scales: tuple[float, ...] = SCALES
) -> Graph:
    """A FULLY_CONNECTED whose weights are what the moves leave."""
    sketch = Sketch(np.random.default_rng(0))
    source = sketch.input((1, C), 0.05, 3)

    def about(axis: int, scales: tuple[float, ...]) -> dict[str, Any]:
        return {"axis": axis, "scales": scales, "zero_points": [0] * len(scales)}

    weights = sketch.constant(sketch.bytes(*shape), 1, **about(axis, scales))
    for move in moves:
        numbers = [] if move.numbers is None else [move.numbers]
        if move.kind == "STRIDED_SLICE":
            numbers = move.numbers
        made = sketch.tensor(move.shape, 1, 0, **about(move.axis, move.scales))
        given = [sketch.integers(each) for each in numbers]
        sketch.op(move.kind, [weights, *given], [made], move.options)
        weights = made
    channels = sketch.tensors[weights].shape[0]
    out = sketch.tensor((1, channels), 0.5, -5)
    sketch.op("FULLY_CONNECTED", [source, weights], [out], (8, {0: ("b", 0)}))
    return sketch.graph(out)


DATA = np.asarray([[-100, 3, 77, 120, -5]], np.int8)


@pytest.mark.parametrize(("shape", "axis", "moves"), CHAINS.values(), ids=CHAINS.keys())
def test_weights_equal_tflite_micro(
    load: Loader, shape: tuple[int, ...], axis: int, moves: Sequence[Move]
) -> None:
    graph = layer(shape, axis, moves)
    wanted = reference(graph, [DATA])
    model = load(graph)
    assert list(model.sources.values()) == [graph.tensors[graph.outputs[0]].name]
    (made,) = interpret(model.module, [DATA]).outputs
    np.testing.assert_array_equal(made, wanted[0])
    # Tensors between the moves need not say what their scales are.
    for move in graph.operators[:-1]:
        graph = graph.with_tensor(move.outputs[0], scales=())
    (made,) = interpret(load(graph).module, [DATA]).outputs
    np.testing.assert_array_equal(made, wanted[0])


def test_one_scale_goes_along_with_every_move(load: Loader) -> None:
    """Also where scales per channel would be mixed."""
    move = Move("RESHAPE", [K, C], (K, C), 0, None, SCALES[:1])
    graph = layer((3, 2 * C), 0, [move], SCALES[:1])
    (made,) = interpret(load(graph).module, [DATA]).outputs
    np.testing.assert_array_equal(made, reference(graph, [DATA])[0])


def test_packed_weights_are_moved(load: Loader) -> None:
    graph = layer(*CHAINS["transposed"])
    data = graph.tensors[1].data
    assert data is not None
    small = graph.with_tensor(1, data=data >> 4)
    packed = small.with_tensor(1, code=INT4).with_tensor(graph.operators[0].outputs[0], code=INT4)
    wanted = reference(small, [DATA])
    np.testing.assert_array_equal(interpret(load(packed).module, [DATA]).outputs[0], wanted[0])
    unpacked = packed.with_tensor(1, code=INT8, data=data >> 4)
    with pytest.raises(UnsupportedError, match="TRANSPOSE"):
        load(unpacked)


def test_a_constant_operand_is_moved(load: Loader) -> None:
    """What is added is folded as well as weights."""
    sketch = Sketch(np.random.default_rng(0))
    source = sketch.input((1, 4, 3), 0.05, 3)
    added, moved = sketch.constant(sketch.bytes(3, 4), 0.04, 9), sketch.tensor((4, 3), 0.04, 9)
    sketch.op("TRANSPOSE", [added, sketch.integers([1, 0])], [moved], None)
    out = sketch.tensor((1, 4, 3), 0.08, -5)
    sketch.op("ADD", [source, moved], [out], (11, {0: ("b", 0)}))
    graph, data = sketch.graph(out), np.arange(-60, 60, 10, dtype=np.int8).reshape(1, 4, 3)
    (made,) = interpret(load(graph).module, [data]).outputs
    np.testing.assert_array_equal(made, reference(graph, [data])[0])


def test_scales_that_a_move_mixes_are_refused(load: Loader) -> None:
    move = Move("RESHAPE", [6, 5], (6, 5), 0, None, ())
    with pytest.raises(UnsupportedError) as caught:
        load(layer((5, 6), 1, [move]))
    assert "RESHAPE from (5, 6) to (6, 5) mixes axis 1" in str(caught.value)
    assert "6 scales" in str(caught.value) and "operator 0 (RESHAPE)" in str(caught.value)


@pytest.mark.parametrize("scales", [SCALES[::-1], SCALES[:1]], ids=["other", "one"])
def test_contradicting_scales_are_refused(load: Loader, scales: tuple[float, ...]) -> None:
    with pytest.raises(ModelError) as caught:
        load(layer((C, K), 1, [Move("TRANSPOSE", [1, 0], (K, C), 0, None, scales)]))
    assert "TRANSPOSE moves tensor 1" in str(caught.value)
    assert "changes its quantization" in str(caught.value)
