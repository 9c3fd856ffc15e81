"""Exact rewrites: each computes what the layer computes, by definitions that share no code.

Networks of one convolution are rewritten, interpreted by `tests.reference.interpreter`, and
compared with a direct definition of the original one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import relax

from byoc_dory.layers import MulShift
from htvm.model import Model, TensorInfo
from htvm.rewriting.apply import Applied, apply
from htvm.rewriting.rewrites import (
    REWRITES,
    AllChannels,
    ByGroup,
    Dilation,
    LargerKernel,
    Rewrite,
    SingleRow,
    SpaceToDepth,
    SplitPadding,
)
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.moves.pad import Pad
from patterns.reading.read import graph_of
from tests.reference.cpu_kernels import conv2d, requantize_mul_shift
from tests.reference.interpreter import interpret

Geometry = dict[str, Any]

# Layers that each rewrite applies to.
CASES: list[tuple[Rewrite, Geometry]] = [
    (SpaceToDepth(), {"map": (49, 10, 1), "k": 5, "f": (10, 4), "s": (2, 2), "p": (4, 1, 5, 1)}),
    (SpaceToDepth(), {"map": (15, 17, 3), "k": 4, "f": (7, 7), "s": (2, 2), "p": (2, 3, 3, 2)}),
    (SpaceToDepth(), {"map": (23, 19, 2), "k": 3, "f": (11, 5), "s": (4, 3), "p": (2, 0, 1, 0)}),
    # Rows and columns that no window reads are cropped.
    (SpaceToDepth(), {"map": (9, 10, 2), "k": 3, "f": (2, 2), "s": (2, 2), "p": (0, 0, 0, 0)}),
    (SpaceToDepth(), {"map": (11, 9, 2), "k": 3, "f": (2, 4), "s": (3, 2), "p": (0, 0, 0, 1)}),
    (SpaceToDepth(), {"map": (8, 8, 2), "k": 3, "f": (1, 1), "s": (2, 2), "p": (0, 0, 0, 0)}),
    (Dilation(), {"map": (12, 11, 3), "k": 4, "f": (3, 3), "d": (2, 2), "p": (2, 2, 2, 2)}),
    (Dilation(), {"map": (14, 13, 4), "k": 4, "f": (3, 2), "d": (3, 2), "p": (1, 0, 2, 1), "g": 4}),
    (LargerKernel(), {"map": (7, 8, 3), "k": 3, "f": (2, 2), "p": (0, 0, 1, 1), "g": 3}),
    (LargerKernel(), {"map": (7, 8, 3), "k": 4, "f": (1, 3), "p": (0, 1, 0, 1)}),
    (LargerKernel(), {"map": (9, 8, 2), "k": 4, "f": (3, 1), "s": (2, 2), "p": (1, 0, 1, 0)}),
    (LargerKernel(5), {"map": (9, 8, 2), "k": 4, "f": (2, 4), "s": (2, 2), "p": (1, 1, 0, 2)}),
    (SplitPadding(), {"map": (6, 7, 3), "k": 4, "f": (2, 3), "p": (3, 0, 2, 4)}),
    (SingleRow(), {"map": (1, 31, 3), "k": 4, "f": (1, 5), "s": (1, 2), "p": (0, 2, 0, 2)}),
    (SingleRow(), {"map": (30, 1, 3), "k": 4, "f": (4, 1), "s": (3, 1), "p": (1, 0, 0, 0)}),
    (AllChannels(), {"map": (6, 7, 8), "k": 12, "f": (3, 3), "p": (1, 1, 1, 1), "g": 4}),
    (AllChannels(), {"map": (6, 7, 4), "k": 8, "f": (3, 2), "p": (0, 1, 0, 0), "g": 4}),
    (ByGroup(), {"map": (6, 7, 8), "k": 12, "f": (3, 3), "s": (2, 1), "p": (1, 1, 1, 1), "g": 2}),
    (ByGroup(), {"map": (5, 5, 6), "k": 3, "f": (1, 1), "p": (0, 0, 0, 0), "g": 3}),
]


def case_id(case: tuple[Rewrite, Geometry]) -> str:
    rewrite, geometry = case
    return f"{rewrite.name}-{'x'.join(map(str, geometry['f']))}-{geometry['k']}"


def network(geometry: Geometry, layout: str, value: int, seed: int) -> tuple[Model, np.ndarray]:
    """One convolution, after an explicit padding if that is not with zeros; and its result.

    Returns:
        The model with a random input as its calibration, and the result for it by a direct
        definition, (y, x, K).
    """
    rng = np.random.default_rng(seed)
    (y, x, c), k, g = geometry["map"], geometry["k"], geometry.get("g", 1)
    weight = rng.integers(-128, 128, (k, c // g, *geometry["f"])).astype("int8")
    bias = rng.integers(-5000, 5000, k).astype("int32")
    mul, add = rng.integers(1, 200, k), rng.integers(-9999, 9999, k)
    stride, dilation = geometry.get("s", (1, 1)), geometry.get("d", (1, 1))
    data = rng.integers(-128, 128, (y, x, c)).astype("int8")
    shape = (1, y, x, c) if layout == "NHWC" else (1, c, y, x)
    bb = relax.BlockBuilder()
    given = relax.Var("x", relax.TensorType(shape, "int8"))
    pads = geometry["p"]
    with bb.function("main", [given]):
        with bb.dataflow():
            read = given
            if value:
                read = Pad(value=value, padding=pads, layout=layout).write(bb, [given], "pad_0")
            window = Window(stride, (0, 0, 0, 0) if value else pads, dilation, g, layout)
            requant = MulShift(tuple(mul.tolist()), (15,), tuple(add.tolist()))
            conv = conv2d_of(weight, bias, window, requant)
            out = bb.emit_output(conv.write(bb, [read], "conv2d_0"))
        bb.emit_func_output(out)
    model = Model(
        "net",
        graph_of(bb.get()),
        (TensorInfo("x", shape, "int8"),),
        (),
        calibration={"x": data[None] if layout == "NHWC" else data.transpose(2, 0, 1)[None]},
    )
    if dilation[0] != dilation[1]:  # the definition has one: spread the taps instead
        weight, dilation = spread(weight, dilation), (1, 1)
    sums = conv2d(data, weight, bias, stride, pads, value, g, dilation[0])
    return model, requantize_mul_shift(sums, mul, add, 15)


def spread(weight: np.ndarray, dilation: tuple[int, int]) -> np.ndarray:
    k, c, fy, fx = weight.shape
    wide = np.zeros((k, c, (fy - 1) * dilation[0] + 1, (fx - 1) * dilation[1] + 1), "int8")
    for i in range(fy):
        for j in range(fx):
            wide[:, :, i * dilation[0], j * dilation[1]] = weight[:, :, i, j]
    return wide


def computed(model: Model, layout: str) -> np.ndarray:
    assert model.calibration is not None
    (result,) = interpret(model.module, [np.asarray(model.calibration["x"], order="C")]).outputs
    return result[0] if layout == "NHWC" else result[0].transpose(1, 2, 0)


def rewritten(model: Model, rewrite: Rewrite) -> Applied:
    done = apply(model, {"conv2d_0": rewrite})
    assert set(done.says) == {"conv2d_0"}
    return done


@pytest.mark.rotating(17)
@pytest.mark.parametrize("value", [0, -7])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_the_result_is_the_same_for_random_numbers(
    case: tuple[Rewrite, Geometry], layout: str, value: int
) -> None:
    rewrite, geometry = case
    for seed in range(3):
        model, expected = network(geometry, layout, value, seed)
        np.testing.assert_array_equal(computed(model, layout), expected)
        done = rewritten(model, rewrite)
        np.testing.assert_array_equal(computed(done.model, layout), expected)


def test_every_rewrite_is_tested() -> None:
    assert {type(rewrite) for rewrite, _ in CASES} == {type(rewrite) for rewrite in REWRITES}


def test_space_to_depth_for_every_small_window() -> None:
    """Kernels, strides and sizes of one axis, all combinations; the other axis is fixed."""
    count = 0
    for size in (5, 6, 7, 8):
        for fy in range(1, 6):
            for stride in (2, 3):
                for top, bottom in ((0, 0), (1, 0), (0, 2)):
                    geometry = {
                        "map": (size, 4, 2),
                        "k": 2,
                        "f": (fy, 3),
                        "s": (stride, 2),
                        "p": (top, 1, bottom, 0),
                    }
                    if size + top + bottom < fy:
                        continue
                    model, expected = network(geometry, "NHWC", 0, count)
                    done = rewritten(model, SpaceToDepth())
                    np.testing.assert_array_equal(computed(done.model, "NHWC"), expected)
                    count += 1
    assert count == 120


def test_what_is_computed_instead_has_a_stride_of_one_and_the_layers_name() -> None:
    model, _ = network(CASES[0][1], "NHWC", 3, 0)
    done = rewritten(model, SpaceToDepth())
    nodes = done.model.graph.nodes
    conv = nodes["conv2d_0"].layer
    assert conv is not None
    assert (conv.fy, conv.fx, conv.C, conv.stride) == (5, 2, 4, (1, 1))
    assert done.says["conv2d_0"] == "10x4 at stride 2 computed as 5x2 over 4 channels"
    assert set(done.origins.values()) == {"conv2d_0"}
    # The padding that only the layer read is gone; its own is larger.
    assert "pad_0" not in nodes


def test_layers_that_a_rewrite_is_not_for() -> None:
    model, _ = network({"map": (6, 6, 4), "k": 4, "f": (3, 3), "p": (0, 0, 0, 0)}, "NHWC", 0, 0)
    for rewrite in REWRITES:
        assert apply(model, {"conv2d_0": rewrite}).model is model, rewrite.name
    depthwise = {"map": (9, 9, 4), "k": 4, "f": (3, 3), "s": (2, 2), "p": (0, 0, 0, 0), "g": 4}
    model, _ = network(depthwise, "NHWC", 0, 0)
    for rewrite in (SpaceToDepth(), AllChannels(), ByGroup()):
        assert apply(model, {"conv2d_0": rewrite}).model is model, rewrite.name


def test_a_layer_of_no_such_name_is_left_out() -> None:
    model, _ = network(CASES[0][1], "NHWC", 0, 0)
    assert apply(model, {"conv2d_9": SpaceToDepth()}).model is model
