"""Retargeting for a ternary core: weights, gains, seven bits, and what is kept as it is."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byoc_dory.layers import AnalogRequant
from byoc_dory.soc.diana.description import ANALOG, DIGITAL
from htvm.quantization.annotated import Annotated
from htvm.quantization.effects import channel_factors, weighted
from htvm.quantization.forward import forward
from htvm.quantization.narrow import readers_of_wide, widen
from htvm.quantization.noise import NoiseModel, noise_inputs, observe
from htvm.quantization.report import measure
from htvm.quantization.rewrite import Rewritten, rewrite
from htvm.quantization.search import Scales, choose_scales
from htvm.quantization.ternary import ternarize
from htvm.quantization.units import annotated
from patterns.ops.analog.products import AnalogConv2d
from patterns.ops.convolution import Depthwise, Window
from tests.quantization.sources import FAMILIES, Source

# ------------------------------------------------------------------------------ weights


@given(
    ternary=st.lists(st.lists(st.integers(-1, 1), min_size=6, max_size=6), min_size=1, max_size=4),
    scale=st.floats(0.01, 100),
    power=st.lists(st.floats(0, 50), min_size=3, max_size=3),
)
def test_ternary_weights_are_kept(
    ternary: list[list[int]], scale: float, power: list[float]
) -> None:
    wanted = np.array(ternary).reshape(-1, 3, 1, 2)
    found, scales = ternarize(wanted * scale, np.array(power))
    np.testing.assert_array_equal(found, wanted)
    some = np.abs(wanted).reshape(len(wanted), -1).any(axis=1)
    np.testing.assert_allclose(scales[some], scale)
    assert (scales[~some] == 0).all()


@given(
    weight=st.lists(st.integers(-20, 20), min_size=4, max_size=4),
    power=st.lists(st.integers(1, 9), min_size=4, max_size=4),
)
def test_no_other_ternary_weights_are_nearer(weight: list[int], power: list[int]) -> None:
    real, cost = np.array(weight, float), np.array(power, float)
    found, scale = ternarize(real.reshape(1, 4, 1, 1), cost)

    def error(ternary: np.ndarray) -> float:
        mass = (cost * ternary**2).sum()
        best = (cost * ternary * real).sum() / mass if mass else 0.0
        return float((cost * (real - best * ternary) ** 2).sum())

    ours = float((cost * (real - scale[0] * found.reshape(-1)) ** 2).sum())
    least = min(error(np.array(other, float)) for other in product((-1, 0, 1), repeat=4))
    assert ours <= least + 1e-9


# ------------------------------------------------------------------------------ one layer


@given(st.integers(0, 2**32 - 1), st.sampled_from([18, 40, 1152]))
def test_a_ternary_layer_computes_its_definition(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    weight = rng.integers(-1, 2, (3, 5, 3, 2)).astype(np.int8)
    gain, shift = int(2 ** rng.integers(0, 5)), int(rng.integers(0, 6))
    mul, add = rng.integers(-40, 40, 3), rng.integers(-900, 900, 3)
    requant = AnalogRequant(gain, tuple(mul.tolist()), tuple(add.tolist()), shift, rows)
    op = AnalogConv2d(weight, requant, (-64, 63), Window(padding=(1, 1, 1, 0)))
    x = rng.integers(-64, 64, (2, 4, 5, 5)).astype(np.int8)
    found = op.compute([x])
    padded = np.pad(x.astype(int), ((0, 0), (1, 1), (1, 0), (0, 0)))
    each = rows // 6
    for n, oy, ox, k in np.ndindex(*found.shape):
        total = 0
        for first in range(0, 5, each):
            acc = 0
            for c, i, j in product(range(first, min(first + each, 5)), range(3), range(2)):
                acc += int(padded[n, oy + i, ox + j, c]) * int(weight[k, c, i, j])
            total += min(max(acc // gain, -32), 31)
        value = (total * int(mul[k]) + int(add[k])) >> shift
        assert found[n, oy, ox, k] == min(max(value, -64), 63)


# ------------------------------------------------------------------------------ networks


def places(net: Annotated, scheme: str) -> Annotated:
    """All products on the analog core, or the first and the last on the digital one."""
    products = [node.name for node in net.products if not isinstance(node.op, Depthwise)]
    if scheme == "analog":
        return net.with_homes(dict.fromkeys(products, ANALOG))
    digital = {node.name: DIGITAL for node in (*net.products, *net.adds)}
    return net.with_homes({**digital, **dict.fromkeys(products[1:-1], ANALOG)})


def retargeted(drawn: Source, scheme: str) -> tuple[Annotated, Scales, Rewritten]:
    model = drawn.model()
    net = places(annotated(model), scheme)
    statistics = observe(net, noise_inputs(net, 24, 5), 5)
    scales = widen(net, choose_scales(net, NoiseModel(net, statistics)))
    return net, scales, rewrite(net, scales, statistics.tensors)


@pytest.mark.parametrize("scheme", ["analog", "mixed"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_layer_is_in_its_cores_form(family: str, scheme: str) -> None:
    net, _, result = retargeted(FAMILIES[family](1), scheme)
    held = forward(result.net, noise_inputs(net, 6, 9))
    for node in result.net.products:
        layer = weighted(node)
        if net.homes.get(node.name) is ANALOG:
            requant = layer.requant
            assert isinstance(requant, AnalogRequant)
            assert set(np.unique(layer.weight)) <= {-1, 0, 1}
            assert layer.bias is None
            assert ANALOG.can_clip_to(layer.clip)
            assert requant.gain & (requant.gain - 1) == 0
            assert max(map(abs, (*requant.mul, *requant.add))) < 1 << 15
            x = held[node.inputs[0]]
            assert x.min() >= -64 and x.max() <= 63, node.name
        elif net.homes.get(node.name) is DIGITAL:
            assert layer.clip in ((-128, 127), (0, 127))


@pytest.mark.parametrize("scheme", ["analog", "mixed"])
def test_what_it_cost_is_measured(scheme: str) -> None:
    net, scales, result = retargeted(FAMILIES["residual"](2), scheme)
    inputs = noise_inputs(net, 12, 7)
    before, after = forward(net, inputs), forward(result.net, inputs)
    report = measure("net", net, scales, result, before, after, "noise")
    assert report.ternary == tuple(
        node.name for node in net.nodes if net.homes.get(node.name) is ANALOG
    )
    assert f"ternary weights in {len(report.ternary)} layers" in str(report)
    assert "train with ternary weights" in str(report)
    assert report.output_sqnr_db is not None and report.output_sqnr_db > 0.0


def test_only_tensors_that_a_ternary_core_reads_are_narrow() -> None:
    drawn = Source(5)
    first = drawn.linear("conv2d", 8, 3, pad=(1, 1, 1, 1))
    second = drawn.linear("conv2d", 8, 3, pad=(1, 1, 1, 1), relu=False)
    drawn.add(first, second)
    last = drawn.linear("conv2d", 4, 1, relu=False)
    model = drawn.model()
    net = annotated(model).with_homes({last: ANALOG})
    assert net.limits("add_0") == (-64, 63)
    assert net.limits(first) == net.limits(second) == (-128, 127), "the CPU clips the sum"
    net = net.with_homes({last: ANALOG, "add_0": DIGITAL})
    assert net.limits(first) == net.limits(second) == (-64, 63), "the digital core cannot"
    assert net.limits(last) == (-128, 127)


def test_an_eight_bit_layer_before_a_ternary_one_is_proved_small() -> None:
    """Not by its clip: by its weights, with every input at its worst."""
    drawn = Source(6)
    first = drawn.linear("conv2d", 8, 3, pad=(1, 1, 1, 1))
    last = drawn.linear("conv2d", 4, 1, relu=False)
    model = drawn.model()
    plain = annotated(model)
    net = plain.with_homes({first: DIGITAL, last: ANALOG})
    statistics = observe(net, noise_inputs(net, 24, 5), 5)
    result = rewrite(
        net,
        widen(net, choose_scales(net, NoiseModel(net, statistics))),
        statistics.tensors,
    ).net
    layer = weighted(result.graph.nodes[first])
    assert layer.clip == (0, 127)
    weight = layer.weight.astype(int).reshape(8, -1)
    worst = layer.bias + np.where(weight > 0, weight * 127, weight * -128).sum(axis=1)
    made = worst >> layer.requant.shift  # type: ignore[union-attr]
    assert made.max() <= 63
    assert made.max() >= 48, "and no smaller than it need be"


def test_a_layer_whose_input_cannot_be_kept_small_is_written_for_eight_bits() -> None:
    """A result of the network has a step of its own, which must not be widened."""
    drawn = Source(6)
    first = drawn.linear("conv2d", 8, 3, pad=(1, 1, 1, 1), relu=False, zero=0)
    second = drawn.linear("conv2d", 4, 1, relu=False)
    model = drawn.model()
    net = annotated(model).with_homes({first: DIGITAL, second: ANALOG})
    statistics = observe(net, noise_inputs(net, 24, 5), 5)
    scales = widen(net, choose_scales(net, NoiseModel(net, statistics)))
    assert readers_of_wide(net, scales) == ()
    exposed = replace(net, graph=replace(net.graph, results=(first, second)))
    scales = widen(exposed, choose_scales(exposed, NoiseModel(exposed, statistics)))
    assert readers_of_wide(exposed, scales) == (second,)


def test_ternary_weights_come_out_of_a_network_as_they_went_in() -> None:
    drawn = Source(8)
    drawn.linear("conv2d", 6, 3, pad=(1, 1, 1, 1))
    name = drawn.linear("conv2d", 5, 3, relu=False)
    steps = [list(step) for step in drawn.steps]
    rng = np.random.default_rng(1)
    sizes = rng.integers(3, 120, (5, 1, 1, 1))
    index = next(i for i, step in enumerate(steps) if step[1] == name)
    ternary = rng.integers(-1, 2, steps[index][3].shape)
    steps[index][3] = (ternary * sizes).astype(np.int8)
    drawn.steps = [tuple(step) for step in steps]
    net, scales, result = retargeted(drawn, "analog")
    written = weighted(result.net.graph.nodes[name])
    np.testing.assert_array_equal(written.weight, ternary)
    source = net.graph.nodes[name]
    requant = written.requant
    assert isinstance(requant, AnalogRequant)
    step_in = scales.step[source.inputs[0]][0]
    exact = (
        sizes.reshape(-1)
        * channel_factors(weighted(source))
        * step_in
        / scales.step[name]
        * requant.gain
    )
    np.testing.assert_allclose(np.array(requant.mul) / 2**requant.shift, exact, rtol=0.02)


def test_networks_without_a_ternary_core_are_written_as_before() -> None:
    model = FAMILIES["mobile"](3).model()
    net = annotated(model)
    statistics = observe(net, noise_inputs(net, 24, 5), 5)
    scales = choose_scales(net, NoiseModel(net, statistics))
    plain = rewrite(net, scales, statistics.tensors).net
    placed = net.with_homes({node.name: DIGITAL for node in (*net.products, *net.adds)})
    assert widen(placed, scales) is scales
    written = rewrite(placed, scales, statistics.tensors).net
    for a, b in zip(plain.nodes, written.nodes, strict=True):
        assert (a.name, a.inputs, a.op) == (b.name, b.inputs, b.op)
