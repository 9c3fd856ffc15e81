"""The drawn networks: sizes as published, and activations that neither saturate nor die."""

from __future__ import annotations

import numpy as np
import pytest

from byoc_dory.errors import ModelError
from htvm import zoo
from htvm.zoo import forward

# MACs in millions, as derived from HTVM's scripts; MLPerf Tiny's own first DS-CNN filter is 10x4.
PUBLISHED = {
    "ds_cnn": 2.657,
    "ds_cnn_7x5": 2.617,
    "mobilenet_v1": 7.490,
    "resnet8": 12.502,
    "toyadmos": 0.264,
}


def test_every_network_is_expected_here() -> None:
    assert set(zoo.names()) == set(PUBLISHED)


@pytest.mark.parametrize("name", zoo.names())
def test_macs_are_the_published_ones(name: str) -> None:
    assert round(zoo.sketch(name).macs / 1e6, 3) == PUBLISHED[name]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", zoo.names())
def test_activations_use_the_range(name: str, seed: int) -> None:
    drawn = zoo.sketch(name, seed)
    for i, step in enumerate(drawn.steps):
        values = drawn.calibration(i)
        where = f"{name} step {i} ({step.op})"
        low, high = step.clip
        assert values.min() >= low and values.max() <= high, where
        if step.op not in ("average_pool", "softmax"):
            assert np.abs(values).max() >= 60, f"{where} uses only part of the range"
        assert (np.abs(values) >= 127).mean() < 0.005, f"{where} saturates"
        assert (values == 0).mean() < 0.6, f"{where} dies"
        assert values.std(axis=0).mean() >= 0.5, f"{where} answers every input alike"


@pytest.mark.parametrize("name", zoo.names())
def test_answers_depend_on_the_input(name: str) -> None:
    drawn = zoo.sketch(name)
    answers = drawn.calibration(len(drawn.steps) - 1).argmax(axis=1)
    assert len(set(answers.tolist())) > 1


def test_a_seed_is_one_network() -> None:
    first, again, other = (zoo.sketch("ds_cnn", seed) for seed in (3, 3, 4))
    for a, b, c in zip(first.steps, again.steps, other.steps, strict=True):
        if a.weight is not None:
            np.testing.assert_array_equal(a.weight, b.weight)
            np.testing.assert_array_equal(a.bias, b.bias)
            assert a.shift == b.shift
            assert (a.weight != c.weight).any()


def test_biases_round() -> None:
    drawn = zoo.sketch("toyadmos")
    step = drawn.steps[0]
    assert step.weight is not None and step.bias is not None and step.shift > 0
    acc = forward.dense(np.zeros((1, 640), "int64"), step.weight) + step.bias
    # Half a step is in every bias: taking it out shifts the floor by half a step.
    exact = (acc - (1 << (step.shift - 1))) / 2**step.shift
    np.testing.assert_array_equal(acc >> step.shift, np.floor(exact + 0.5))


def test_convolution_against_the_definition() -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(-128, 128, (2, 3, 7, 6))
    weight = rng.integers(-127, 128, (4, 3, 3, 2)).astype("int8")
    found = forward.conv2d(x, weight, 2, (1, 0, 0, 1), depthwise=False)
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
    np.testing.assert_array_equal(forward.average_pool(x).reshape(-1), [2, -2, 1])


def test_unknown_network_lists_the_known() -> None:
    with pytest.raises(ModelError, match="resnet8"):
        zoo.build("alexnet")
    with pytest.raises(ModelError, match="filter"):
        zoo.ds_cnn((3, 3))
