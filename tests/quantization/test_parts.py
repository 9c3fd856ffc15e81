"""The parts of retargeting: ties, scaled parameters, rounding, sensitivities, ranges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import MulShift, Shift, Weighted
from htvm.quantization.annotated import Annotated
from htvm.quantization.effects import channel_factors, operand_factors, product_of, weighted
from htvm.quantization.forward import forward
from htvm.quantization.noise import NoiseModel, noise_inputs, observe, sample_count
from htvm.quantization.report import sqnr_db
from htvm.quantization.rewrite import rewrite, scaled_parameters
from htvm.quantization.rounding import round_nearest, round_with_feedback
from htvm.quantization.search import Scales, choose_scales
from htvm.quantization.ties import add_choices, find_ties, zero_points
from htvm.quantization.units import annotated
from patterns.op import TensorType
from patterns.ops.dense import Dense
from patterns.ops.scaling import requantized
from patterns.reading.building import GraphBuilder
from tests.quantization.sources import Source, encoder, mobile, residual


def net_of(drawn: Source) -> Annotated:
    model = drawn.model()
    return annotated(model)


def scales_of(net: Annotated, samples: int = 24) -> tuple[Scales, Any]:
    statistics = observe(net, noise_inputs(net, samples, 5), 5)
    return choose_scales(net, NoiseModel(net, statistics)), statistics


# ------------------------------------------------------------------------------ ties


def test_adds_are_tied_by_powers_of_two() -> None:
    net = net_of(residual(1))
    scales, _ = scales_of(net)
    assert net.adds
    for node in net.adds:
        choice = scales.adds[node.name]
        for operand, part in zip(node.inputs, operand_factors(node), strict=True):
            # In the output's units both operands have one step, the output 2**shift of them.
            ratio = scales.step[node.name] / (scales.step[operand] * part)
            assert ratio == pytest.approx(2.0**choice.shift)
        zeros = [scales.zero_point[name] for name in node.inputs]
        half = (1 << choice.shift) >> 1
        assert sum(zeros) - (scales.zero_point[node.name] << choice.shift) in (0, half)


def test_padded_tensors_have_zero_point_zero() -> None:
    for drawn in (mobile(2), residual(2)):
        net = net_of(drawn)
        scales, _ = scales_of(net)
        for node in net.products:
            if any(weighted(node).pad):
                assert scales.zero_point[node.inputs[0]] == 0, node.name
        assert "input" in net.symmetric
        assert any(name not in net.symmetric for name in net.tensors)


def test_pools_and_reshapes_hand_the_scale_on() -> None:
    net = net_of(residual(3))
    scales, _ = scales_of(net)
    step = scales.step
    assert np.array_equal(step["add_1"], step["max_pool_0"])
    assert scales.zero_point["add_1"] == scales.zero_point["reshape_0"]
    places = step["reshape_0"].size // step["max_pool_0"].size
    assert np.array_equal(step["reshape_0"], np.tile(step["max_pool_0"], places))
    first = net_of(residual(3, "NCHW"))
    assert first.channel_first
    step = scales_of(first)[0].step
    assert np.array_equal(step["reshape_0"], np.repeat(step["max_pool_0"], places))


def test_softmax_inputs_keep_the_quantization_of_the_source() -> None:
    net = net_of(mobile(4))
    scales, _ = scales_of(net)
    assert tuple(net.anchors) == ("dense_0",)
    assert (scales.step["dense_0"] == 1.0).all()
    assert scales.zero_point["dense_0"] == net.zeros["dense_0"]


def test_contradicting_ties_are_refused_and_avoided() -> None:
    drawn = Source(5, input_zero=0)
    first = drawn.linear("conv2d", 3, relu=False)
    total = drawn.add("input", first, relu=False)
    drawn.add(total, "input", relu=False)
    net = net_of(drawn)
    # A shift of 1 makes the sum's step twice the input's, and then both are added.
    doubled = {node.name: add_choices(net, node)[-1] for node in net.adds}
    assert doubled["add_0"].shift == 1
    with pytest.raises(UnsupportedError, match="two different ratios"):
        find_ties(net).check(doubled)
    scales, _ = scales_of(net)
    assert scales.adds["add_0"].shift == 0
    assert zero_points(net, scales.adds)["add_0"] == 0


# ------------------------------------------------------------------------------ equalization


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_any_steps_compute_the_same_real_numbers(seed: int, pad: bool) -> None:
    """Conv, depthwise, conv with ReLUs between: moving a channel's factor from the rows of one
    layer to the columns of the next changes nothing before rounding."""
    drawn = Source(seed, input_shape=(5, 5, 2), input_zero=0)
    around = (1, 1, 1, 1) if pad else (0, 0, 0, 0)
    drawn.linear("conv2d", 4)
    drawn.linear("depthwise", kernel=3, pad=around)
    drawn.linear("conv2d", 3, relu=False)
    net = net_of(drawn)
    rng = np.random.default_rng(seed)
    step = {name: 2.0 ** rng.uniform(-1, 1, net.channels(name)) for name in net.tensors}
    zeros = {name: int(rng.integers(-128, 128)) for name in net.tensors}
    scales = Scales(step, zeros, {name: int(rng.integers(0, 9)) for name in net.tensors}, {}, 0.0)
    exact = scaled = rng.integers(-128, 128, (2, 5, 5, 2)).astype(np.float64)
    scaled = scaled / step["input"]
    for node in net.products:
        layer = weighted(node)
        exact = _real(exact, layer, layer.weight * channel_factors(layer)[:, None, None, None])
        plain = layer.weight.astype(np.int64).reshape(layer.K, -1).sum(axis=1)
        exact = exact + (layer.bias + net.zeros[node.inputs[0]] * plain) * channel_factors(layer)
        weight, bias, shift = scaled_parameters(net, node, scales)
        scaled = (_real(scaled, layer, weight) + bias) / 2.0**shift - zeros[node.name] - 0.5
        if net.rectifies(node):
            exact, scaled = np.maximum(exact, 0), np.maximum(scaled, 0)
        assert np.allclose(exact, scaled * step[node.name], rtol=1e-9, atol=1e-9)


def _real(x: Any, layer: Weighted, weight: Any) -> Any:
    top, left, bottom, right = layer.pad
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    view = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], axis=(1, 2))
    equation = "nyxcij,coij->nyxc" if layer.depthwise else "nyxcij,kcij->nyxk"
    return np.einsum(equation, view, weight)


def test_channels_get_steps_of_their_own_where_layers_can_absorb_them() -> None:
    net = net_of(mobile(6))
    statistics = observe(net, noise_inputs(net, 24, 5), 5)
    noise = NoiseModel(net, statistics)
    many = choose_scales(net, noise)
    one = choose_scales(net, noise, per_channel=False)
    assert len(np.unique(many.step["conv2d_0"])) > 1
    assert all(len(np.unique(step)) == 1 for step in one.step.values())
    assert many.noise < one.noise


# ------------------------------------------------------------------------------ rounding


def dense(weight: Any) -> Dense:
    return Dense(weight, np.zeros(len(weight), np.int64), Shift(0))


def test_feedback_rounds_the_sum_better_than_each_weight() -> None:
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(6, 24))
    x = np.clip(rng.normal(size=(400, 6)) @ mixing * 20, -128, 127).astype(np.int8)
    weight = rng.normal(scale=4, size=(5, 24, 1, 1))
    exact = x.astype(float) @ weight[:, :, 0, 0].T
    errors = []
    for rounded in (round_nearest(weight), round_with_feedback(weight, dense(weight), x, 0)):
        assert rounded.dtype == np.int8
        errors.append(np.square(dense(rounded).accumulate(x) - exact).mean())
    assert errors[1] < 0.3 * errors[0]


def test_feedback_leaves_integers_alone_and_saturates() -> None:
    x = np.random.default_rng(1).integers(-128, 128, (50, 4)).astype(np.int8)
    weight = np.array([[3.0, -7.0, 0.0, 127.0], [300.0, -300.0, 1.0, 2.0]])[:, :, None, None]
    rounded = round_with_feedback(weight, dense(weight), x, 0)[:, :, 0, 0]
    assert rounded[0].tolist() == [3, -7, 0, 127]
    assert rounded[1, 0] == 127 and rounded[1, 1] == -128


# ------------------------------------------------------------------------------ error model


def test_predicted_noise_is_of_the_measured_order() -> None:
    """The model steers a search; a factor of five either way would mislead it."""
    net = net_of(encoder(8))
    scales, statistics = scales_of(net, 240)
    result = rewrite(net, scales, statistics.tensors)
    x = noise_inputs(net, 200, 77)
    before, after = forward(net, x)["dense_4"], forward(result.net, x)["dense_4"]
    measured = np.square(before.astype(float) - after).sum(axis=1).mean()
    assert measured / 5 < scales.noise < measured * 5


# ------------------------------------------------------------------------------ ranges


def test_shift_is_lowered_until_int32_holds_the_sums() -> None:
    net = net_of(encoder(9))
    scales, statistics = scales_of(net)
    node = net.products[0]
    op = product_of(node)
    large = replace(op, bias=op.bias + 2**30)
    shifts = {**scales.shift, node.name: 20}
    tight = replace(scales, shift=shifts)
    builder = GraphBuilder(net.graph.inputs)
    for each in net.nodes:
        builder.apply(large if each is node else each.op, each.inputs, each.name)
    whole = replace(net, graph=builder.graph(net.graph.results))
    _, bias, shift = scaled_parameters(whole, whole.products[0], tight)
    assert shift < 20 and np.abs(bias).max() < 2**31
    written = weighted(rewrite(whole, tight, statistics.tensors).net.products[0])
    rows = np.abs(written.weight.astype(np.int64)).reshape(len(bias), -1).sum(axis=1)
    assert (np.abs(written.bias) + 128 * rows).max() < 2**31


def test_hopeless_bias_is_refused() -> None:
    net = net_of(encoder(10))
    scales, _ = scales_of(net)
    node = net.products[0]
    layer = weighted(node)
    assert layer.bias is not None
    hopeless = replace(node, layer=replace(layer, bias=layer.bias.astype(np.int64) + 2**62))
    with pytest.raises(UnsupportedError, match="int32"):
        scaled_parameters(net, hopeless, scales)


# ------------------------------------------------------------------------------ forward


@pytest.mark.parametrize("source", [residual(3), mobile(3)])
@pytest.mark.parametrize("together", [1, 1000])
def test_a_forward_pass_does_not_depend_on_how_many_samples_it_takes_at_a_time(
    source: Source, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = net_of(source)
    x = noise_inputs(net, 7, 1)
    whole = forward(net, x)
    monkeypatch.setattr("htvm.quantization.forward._TOGETHER", together)
    parts = forward(net, x)
    assert whole.keys() == parts.keys()
    for name, values in whole.items():
        np.testing.assert_array_equal(parts[name], values, err_msg=name)


def test_requantizations() -> None:
    acc = np.array([-9, -8, -7, 7, 8, 9, 5000])
    assert requantized(acc, Shift(3), (-128, 127)).tolist() == [-2, -1, -1, 0, 1, 1, 127]
    assert requantized(acc, MulShift((3,), (4,), (8,)), (0, 127)).tolist() == [
        0,
        0,
        0,
        1,
        2,
        2,
        127,
    ]


def test_calibration_inputs_are_seeded_and_of_three_kinds() -> None:
    net = net_of(mobile(11))
    first, again, other = (noise_inputs(net, 6, seed)["input"] for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    spread = [first[index].astype(float).std() for index in range(3)]
    assert spread[0] > 60 and 20 < spread[1] < 40
    assert 24 <= sample_count(net) <= 512


def test_other_integer_schemes_are_understood() -> None:
    """Multiply-and-shift and plain shifts in one network: their floors are part of the source."""
    rng = np.random.default_rng(3)
    first = rng.integers(-127, 128, (16, 20, 1, 1)).astype(np.int8)
    second = rng.integers(-127, 128, (10, 16, 1, 1)).astype(np.int8)
    zeros = np.zeros(16, np.int64)
    builder = GraphBuilder([("x", TensorType((1, 20)))])
    requant = MulShift((3, 5) * 8, (12,), (77,))
    builder.apply(Dense(first, zeros, requant, (0, 127)), ["x"], "a")
    builder.apply(Dense(second, zeros[:10], Shift(7)), ["a"], "b")
    net = Annotated(builder.graph(["b"]), {"x": 0, "a": 0, "b": 0})
    scales, statistics = scales_of(net, 240)
    result = rewrite(net, scales, statistics.tensors, correct=False).net
    assert all(isinstance(weighted(node).requant, Shift) for node in result.products)
    x = noise_inputs(net, 100, 9)
    before, after = forward(net, x)["b"].astype(float), forward(result, x)["b"].astype(float)
    assert sqnr_db(before, after) > 26.0
    assert abs((after - before).mean()) < 0.2
