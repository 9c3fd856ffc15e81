"""The drawn networks: sizes as published, and activations that neither saturate nor die."""

from __future__ import annotations

import numpy as np
import pytest

from byoc_dory.errors import ModelError
from byoc_dory.layers import Shift
from htvm import zoo
from htvm.tools.zoo import arithmetic
from htvm.tools.zoo.drawing import SketchStep
from htvm.tools.zoo.schemes import Scheme
from patterns.ops.analog.products import AnalogConv2d, AnalogDense
from patterns.ops.dense import Dense
from patterns.ops.moves.reshape import Reshape
from patterns.ops.tflite.averages import AveragePool
from patterns.ops.tflite.softmax import TfliteSoftmax

ANALOG = (AnalogConv2d, AnalogDense)
# What computes no numbers of its own.
PASSING = (AveragePool, Reshape, TfliteSoftmax)

# MACs in millions, as derived from HTVM's scripts; MLPerf Tiny's own first DS-CNN filter is 10x4.
PUBLISHED = {
    "ds_cnn": 2.657,
    "ds_cnn_7x5": 2.617,
    "mobilenet_v1": 7.490,
    "resnet8": 12.502,
    "toyadmos": 0.264,
}


def clip_of(step: SketchStep) -> tuple[int, int]:
    return getattr(step.op, "clip", (-128, 127))


def test_every_network_is_expected_here() -> None:
    assert set(zoo.names()) == set(PUBLISHED)


@pytest.mark.parametrize("name", zoo.names())
def test_macs_are_the_published_ones(name: str) -> None:
    assert round(zoo.sketch(name).macs / 1e6, 3) == PUBLISHED[name]


@pytest.mark.rotating(4)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", zoo.names())
def test_activations_use_the_range(name: str, seed: int) -> None:
    drawn = zoo.sketch(name, seed)
    for i, step in enumerate(drawn.steps):
        values = drawn.calibration(i)
        where = f"{name} step {i} ({step.op.kind})"
        low, high = clip_of(step)
        assert values.min() >= low and values.max() <= high, where
        if not isinstance(step.op, PASSING):
            assert np.abs(values).max() >= 60, f"{where} uses only part of the range"
        assert (np.abs(values) >= 127).mean() < 0.005, f"{where} saturates"
        assert (values == 0).mean() < 0.6, f"{where} dies"
        assert values.std(axis=0).mean() >= 0.5, f"{where} answers every input alike"


@pytest.mark.rotating(4)
@pytest.mark.parametrize("scheme", ["ternary", "mixed"])
@pytest.mark.parametrize("name", zoo.names())
def test_activations_of_seven_bits_use_the_range(name: str, scheme: Scheme) -> None:
    drawn = zoo.sketch(name, 0, scheme)
    for i, step in enumerate(drawn.steps):
        values = drawn.calibration(i)
        where = f"{drawn.name} step {i} ({step.op.kind})"
        low, high = clip_of(step)
        analog = isinstance(step.op, ANALOG)
        assert values.min() >= low and values.max() <= high, where
        if not isinstance(step.op, PASSING):
            # What is proved for any input leaves room that usual inputs do not use.
            least = 30 if analog else 9
            assert np.abs(values).max() >= least, f"{where} uses only part of the range"
        assert (np.abs(values) >= 127).mean() < 0.005, f"{where} saturates"
        if analog:
            assert (values == high).mean() < 0.005, f"{where} saturates"
        assert (values == 0).mean() < (0.6 if analog else 0.72), f"{where} dies"
        assert values.std(axis=0).mean() >= 0.25, f"{where} answers every input alike"


@pytest.mark.rotating(4)
@pytest.mark.parametrize("scheme", ["ternary", "mixed"])
@pytest.mark.parametrize("name", zoo.names())
def test_the_converters_are_used(name: str, scheme: Scheme) -> None:
    """Few of their results are clipped, and most of their steps occur."""
    drawn = zoo.sketch(name, 0, scheme)
    tensors = [drawn.calibration(i) for i in range(-1, len(drawn.steps))]
    found = 0
    for step in drawn.steps:
        if not isinstance(step.op, ANALOG):
            continue
        x = tensors[step.inputs[0]]
        if isinstance(step.op, AnalogDense):
            sums = arithmetic.dense(x, step.op.weight)
        else:
            window = step.op.window
            sums = arithmetic.conv2d(x, step.op.weight, window.strides[0], window.padding, False)
        steps = sums // step.op.requant.gain
        assert ((steps < -32) | (steps > 31)).mean() < 0.002
        assert np.abs(steps).max() >= 15
        found += 1
    assert (
        found
        == {
            "ds_cnn": {"ternary": 6, "mixed": 3},
            "ds_cnn_7x5": {"ternary": 6, "mixed": 3},
            "mobilenet_v1": {"ternary": 15, "mixed": 12},
            "resnet8": {"ternary": 10, "mixed": 7},
            "toyadmos": {"ternary": 10, "mixed": 8},
        }[name][scheme]
    )


@pytest.mark.rotating(5)
@pytest.mark.parametrize("scheme", zoo.SCHEMES)
@pytest.mark.parametrize("name", zoo.names())
def test_answers_depend_on_the_input(name: str, scheme: Scheme) -> None:
    drawn = zoo.sketch(name, 0, scheme)
    answers = drawn.calibration(len(drawn.steps) - 1).argmax(axis=1)
    assert len(set(answers.tolist())) > 1


def test_a_seed_is_one_network() -> None:
    first, again, other = (zoo.sketch("ds_cnn", seed) for seed in (3, 3, 4))
    for a, b, c in zip(first.steps, again.steps, other.steps, strict=True):
        assert a.op == b.op
        if a.weight is not None:
            assert (a.weight != c.weight).any()


def test_biases_round() -> None:
    drawn = zoo.sketch("toyadmos")
    op = drawn.steps[0].op
    assert isinstance(op, Dense) and isinstance(op.requant, Shift) and op.requant.shift > 0
    acc, shift = (
        arithmetic.dense(np.zeros((1, 640), "int64"), op.weight) + op.bias,
        op.requant.shift,
    )
    # Half a step is in every bias: taking it out shifts the floor by half a step.
    exact = (acc - (1 << (shift - 1))) / 2**shift
    np.testing.assert_array_equal(acc >> shift, np.floor(exact + 0.5))


def test_convolution_against_the_definition() -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(-128, 128, (2, 3, 7, 6))
    weight = rng.integers(-127, 128, (4, 3, 3, 2)).astype("int8")
    found = arithmetic.conv2d(x, weight, 2, (1, 0, 0, 1), depthwise=False)
    assert found.shape == (2, 4, 3, 3)
    for n, k, oy, ox in np.ndindex(found.shape):
        total = 0
        for c, i, j in np.ndindex(3, 3, 2):
            y, column = oy * 2 - 1 + i, ox * 2 + j
            if 0 <= y < 7 and 0 <= column < 6:
                total += int(x[n, c, y, column]) * int(weight[k, c, i, j])
        assert found[n, k, oy, ox] == total


def test_pool_rounds_half_away_from_zero() -> None:
    x = np.array([[[[1, 2]], [[-1, -2]], [[1, 1]]]])
    np.testing.assert_array_equal(arithmetic.average_pool(x).reshape(-1), [2, -2, 1])


def test_unknown_network_lists_the_known() -> None:
    with pytest.raises(ModelError, match="resnet8"):
        zoo.build("alexnet")
    with pytest.raises(ModelError, match="8-bit, ternary, mixed"):
        zoo.build("resnet8", scheme="binary")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="filter"):
        zoo.ds_cnn((3, 3))


@pytest.mark.slow
def test_mobilenet_for_imagenet_has_its_published_size() -> None:
    """568.7 million multiply-accumulates and 4.2 million weights (MobileNets, Table 4)."""
    drawn = zoo.build("mobilenet_v1_224")
    layers = [node.layer for node in drawn.graph.in_order if node.layer is not None]
    assert sum(layer.macs for layer in layers) == 568_740_352
    assert drawn.outputs[0].shape == (1, 1000)
