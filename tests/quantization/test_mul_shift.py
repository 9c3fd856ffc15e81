"""Retargeting to multiply-and-shift: form, exactness, and quality beside the shift scheme."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byoc_dory.layers import Layer, MulShift, Weighted
from byoc_dory.soc.diana.description import ANALOG, DIGITAL
from htvm.errors import InputError
from htvm.frontend.check import check
from htvm.model import Model
from htvm.opening import load
from htvm.quantization import MulShiftScheme, RetargetOptions, RetargetReport, retarget
from htvm.quantization.annotated import is_end
from htvm.quantization.forward import forward
from htvm.quantization.rounding import multiplier_and_shift
from htvm.quantization.units import annotated
from tests.models import golden
from tests.quantization.sources import FAMILIES, Source, encoder, mobile, residual
from tests.reference.interpreter import interpret

TENSOR, CHANNEL = MulShiftScheme(), MulShiftScheme(per_channel=True)
SCHEMES = {
    "tensor 8": TENSOR,
    "channel 8": CHANNEL,
    "tensor 3": MulShiftScheme(multiplier_bits=3),
    "channel 31": MulShiftScheme(per_channel=True, multiplier_bits=31),
}


def with_scheme(scheme: MulShiftScheme | None) -> RetargetOptions:
    return RetargetOptions(samples=48, scheme=scheme)


def layers_of(model: Model) -> list[Layer]:
    return [node.scaled for node in check(model.module).in_order if node.scaled is not None]


def assert_form(model: Model, scheme: MulShiftScheme) -> None:
    assert model.scheme == "mul_shift"
    for layer in layers_of(model):
        requant = layer.requant
        assert isinstance(requant, MulShift), layer.name
        several = scheme.per_channel and isinstance(layer, Weighted)
        assert len(requant.mul) == (len(layer.weight) if several else 1), layer.name
        assert len(requant.shift) == 1 and 0 <= requant.shift[0] <= 31
        assert 1 <= min(requant.mul) and max(requant.mul) < 2**scheme.multiplier_bits
        assert layer.clip in ((-128, 127), (0, 127))


@pytest.mark.rotating(1)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_layer_multiplies_in_range(family: str) -> None:
    result = retarget(FAMILIES[family](1).model(), options=with_scheme(TENSOR))
    assert_form(result.model, TENSOR)
    assert "multiplication" in str(result.report)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("scheme", list(SCHEMES)[1:])
def test_emitted_module_is_the_network_that_was_measured(scheme: str) -> None:
    # The interpreter also asserts that no int32 overflows.
    drawn = residual(3)
    result = retarget(drawn.model(), options=with_scheme(SCHEMES[scheme])).model
    assert_form(result, SCHEMES[scheme])
    net = annotated(result)
    x = drawn.inputs(2, 7)
    ours = forward(net, {"input": x[:, 0]})
    for index in range(len(x)):
        found = interpret(result.module, [x[index]]).tensors
        for node in net.nodes:
            if not is_end(node):
                assert np.array_equal(ours[node.name][index], found[node.name][0]), node.name


def sqnr(report: RetargetReport) -> float:
    assert report.output_sqnr_db is not None
    return report.output_sqnr_db


def assert_no_worse(shift: float, tensor: float, channel: float) -> None:
    # Scales chosen for shifts make the weights fit already: what one multiplier per tensor gains
    # or loses is the chance of calibration (under half a dB); what one per channel gains is not.
    assert tensor >= shift - 1.0, (shift, tensor, channel)
    assert channel >= max(shift, tensor - 1.0), (shift, tensor, channel)


def test_no_worse_than_one_shift() -> None:
    """On average over networks; each scheme may be unlucky on one of them."""
    drawn: list[Source] = [mobile(20), encoder(20), residual(20)]
    means = [
        float(
            np.mean([sqnr(retarget(one.model(), options=with_scheme(s)).report) for one in drawn])
        )
        for s in (None, TENSOR, CHANNEL)
    ]
    assert_no_worse(*means)


@pytest.mark.slow
def test_trained_resnet_keeps_its_output() -> None:
    wanted = golden("pretrainedResnet_quant")
    source = load(wanted.path)
    shift, tensor, channel = (
        retarget(source, options=RetargetOptions(scheme=s)) for s in (None, TENSOR, CHANNEL)
    )
    assert_no_worse(sqnr(shift.report), sqnr(tensor.report), sqnr(channel.report))
    for result, scheme in ((tensor, TENSOR), (channel, CHANNEL)):
        assert_form(result.model, scheme)
        output = interpret(result.model.module, [wanted.inputs[0]]).outputs[0]
        assert output.size == wanted.outputs[0].size


# ------------------------------------------------------------------------------ parts


@given(
    st.lists(st.floats(2.0**-24, 1.0), min_size=1, max_size=5),
    st.integers(1, 31),
)
def test_factors_are_the_finest_that_suffice(units: list[float], bits: int) -> None:
    requant = multiplier_and_shift(np.array(units), bits)
    (shift,), most = requant.shift, 2**bits - 1
    assert 0 <= shift <= 31
    for unit, mul in zip(units, requant.mul, strict=True):
        assert 1 <= mul <= most
        assert Fraction(mul - 1, 2**shift) < Fraction(unit) <= Fraction(mul, 2**shift)
    # A shift more would need a multiplier more than there is.
    assert shift == 31 or Fraction(max(units)) * 2 ** (shift + 1) > most


@pytest.mark.parametrize("bits", [0, -1, 32])
def test_bits_that_no_multiplier_has(bits: int) -> None:
    with pytest.raises(InputError, match=f"{bits} bits"):
        MulShiftScheme(multiplier_bits=bits)


def test_no_ternary_layers_beside() -> None:
    source = mobile(1).model()
    places = {"conv2d_0": ANALOG.name}
    with pytest.raises(InputError, match="ternary"):
        retarget(source, (DIGITAL, ANALOG), places=places, options=with_scheme(TENSOR))
