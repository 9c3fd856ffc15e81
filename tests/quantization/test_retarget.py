"""Retargeting from end to end: form, interface, exactness, quality, determinism, bad input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from byoc_dory.layers import MulShift, Shift, Weighted
from htvm import zoo
from htvm.errors import InputError, UnsupportedError
from htvm.frontend.check import check
from htvm.model import Model, TensorInfo
from htvm.opening import load
from htvm.quantization import RetargetOptions, retarget
from htvm.quantization.annotated import is_end
from htvm.quantization.forward import forward
from htvm.quantization.report import EXACT_DB, sqnr_db
from htvm.quantization.units import annotated
from patterns.reading.node import Node
from patterns.reading.read import graph_of
from tests.models import golden
from tests.quantization.sources import FAMILIES, Source, encoder, mobile, residual
from tests.reference.interpreter import interpret

FEW = RetargetOptions(samples=48)


def nodes_of(model: Model) -> dict[str, Node]:
    return {node.name: node for node in graph_of(model.module).in_order}


@pytest.mark.parametrize("family", FAMILIES)
def test_only_shifts_remain_and_the_checker_accepts(family: str) -> None:
    result = retarget(FAMILIES[family](1).model(), options=FEW).model
    for node in check(result.module).in_order:
        if node.scaled is not None:
            assert isinstance(node.scaled.requant, Shift), node.name
            assert node.scaled.clip in ((-128, 127), (0, 127)), node.name
        if node.kind == "convert":
            assert isinstance(vars(node.op)["requant"], Shift | MulShift)
        assert node.kind != "pad", "the core pads by itself"
    assert result.scheme == "shift"


@pytest.mark.parametrize("family", FAMILIES)
def test_interface_and_names_stay(family: str) -> None:
    source = FAMILIES[family](2).model()
    result = retarget(source, options=FEW).model
    assert (result.name, result.inputs, result.outputs) == (
        source.name, source.inputs, source.outputs,
    )  # fmt: skip
    kept = {name for name, node in nodes_of(source).items() if node.kind != "pad"}
    new = set(nodes_of(result)) - kept
    assert kept <= set(nodes_of(result))
    assert all(name.startswith("convert_") for name in new)
    assert result.sources == {k: v for k, v in source.sources.items() if k in nodes_of(result)}


@pytest.mark.rotating(2)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("family", ["mobile", "residual"])
def test_emitted_module_is_the_network_that_was_measured(family: str, layout: str) -> None:
    # The interpreter also asserts that no int32 overflows.
    drawn = FAMILIES[family](3, layout)  # type: ignore[operator]
    result = retarget(drawn.model(), options=FEW).model
    net = annotated(result)
    x = drawn.inputs(4, 7)
    last = x[:, 0] if layout == "NHWC" else np.moveaxis(x[:, 0], 1, -1)
    ours = forward(net, {"input": last})
    for index in range(len(x)):
        found = interpret(result.module, [x[index]]).tensors
        for node in net.nodes:
            if is_end(node):
                continue
            theirs = found[node.name][0]
            if layout == "NCHW" and theirs.ndim == 3:
                theirs = np.moveaxis(theirs, 0, -1)
            assert np.array_equal(ours[node.name][index], theirs), node.name


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_source_forward_equals_the_interpreter(layout: str) -> None:
    for drawn in (mobile(4, layout), residual(4, layout)):
        model = drawn.model()
        net = annotated(model)
        x = drawn.inputs(3, 8)
        last = x[:, 0] if layout == "NHWC" else np.moveaxis(x[:, 0], 1, -1)
        ours = forward(net, {"input": last})
        for index in range(len(x)):
            found = interpret(model.module, [x[index]]).tensors
            assert np.array_equal(ours["dense_0"][index], found["dense_0"][0])
            add = found.get("add_1")
            if add is not None:
                add = add[0] if layout == "NHWC" else np.moveaxis(add[0], 0, -1)
                assert np.array_equal(ours["add_1"][index], add)


def output_sqnr(drawn: Source, options: RetargetOptions) -> float:
    """Of the last layer with weights, on inputs of its own."""
    source = drawn.model()
    result = retarget(source, options=options).model
    last = [name for name in nodes_of(source) if name.startswith("dense")][-1]
    nets = [annotated(model) for model in (source, result)]
    x = drawn.inputs(64, 99)
    before, after = (forward(net, {"input": x[:, 0]})[last].astype(float) for net in nets)
    zero = nets[0].zeros[last]
    return sqnr_db(before - zero, after - zero)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", [10, 11])
def test_random_networks_keep_their_signal(family: str, seed: int) -> None:
    assert output_sqnr(FAMILIES[family](seed), FEW) > 18.0


def test_each_refinement_helps() -> None:
    """On average over networks; each alone may be unlucky on one of them."""
    plain = RetargetOptions(False, False, False, samples=48)
    steps = [
        plain,
        replace(plain, per_channel=True),
        replace(plain, per_channel=True, bias_correction=True),
        FEW,
    ]
    drawn = [mobile(20), mobile(21), encoder(22), residual(23)]
    means = [np.mean([output_sqnr(item, options) for item in drawn]) for options in steps]
    assert means == sorted(means), means
    assert means[-1] > means[0] + 3.0, means


def fingerprint(model: Model) -> list[object]:
    """All that a module consists of."""
    result: list[object] = [model.module.script(show_meta=False)]
    for node in graph_of(model.module).in_order:
        if isinstance(node.scaled, Weighted):
            assert node.scaled.bias is not None
            result += [node.scaled.weight.tobytes(), node.scaled.bias.tobytes()]
    return result


def test_same_module_every_time() -> None:
    first, second = (retarget(residual(5).model(), options=FEW).model for _ in range(2))
    assert fingerprint(first) == fingerprint(second)
    other = retarget(residual(5).model(), options=replace(FEW, seed=1)).model
    assert fingerprint(first) != fingerprint(other)


def test_zero_points_use_all_values_where_nobody_pads() -> None:
    result = nodes_of(retarget(mobile(6).model(), options=FEW).model)
    clips = {name: node.scaled.clip for name, node in result.items() if node.scaled is not None}
    # Read by padded convolutions: zero point 0.  Read by a pointwise one: saturation at -128.
    assert clips["conv2d_0"] == clips["conv2d_1"] == (0, 127)
    assert clips["depthwise_0"] == clips["depthwise_1"] == (-128, 127)


def test_input_needs_no_conversion_where_nobody_pads() -> None:
    assert not [n for n in nodes_of(retarget(encoder(7).model(), options=FEW).model) if "conv" in n]


def test_input_conversion_is_one_shift() -> None:
    node = nodes_of(retarget(mobile(8, zero=-128).model(), options=FEW).model)["convert_0"]
    assert vars(node.op)["requant"] == Shift(1)


# ------------------------------------------------------------------------------ outputs


def test_output_that_is_also_padded_gets_a_conversion() -> None:
    drawn = Source(30)
    middle = drawn.linear("conv2d", 8, 3, pad=(1, 1, 1, 1))
    drawn.linear("conv2d", 4, 3, pad=(1, 1, 1, 1), relu=False)
    drawn.last = middle  # returned, with zero point -128, but padded by the next layer
    model = drawn.model()
    result = retarget(model, options=FEW)
    output = interpret(result.model.module, [drawn.inputs(1, 1)[0]]).outputs[0]
    wanted = interpret(model.module, [drawn.inputs(1, 1)[0]]).outputs[0]
    assert sqnr_db(wanted.astype(float) + 128, output.astype(float) + 128) > 28.0


def test_add_of_the_input_itself() -> None:
    drawn = Source(31, input_zero=3)
    drawn.linear("conv2d", 3, 3, pad=(1, 1, 1, 1), relu=False)
    drawn.add("input", drawn.last, relu=False)
    result = retarget(drawn.model(), options=FEW)
    check(result.model.module)
    assert result.report.output_sqnr_db is not None and result.report.output_sqnr_db > 28.0


# ------------------------------------------------------------------------------ left alone


def test_shift_scheme_passes_unchanged() -> None:
    model = zoo.build("toyadmos")
    result = retarget(model)
    assert result.model is model
    assert not result.report.changed and result.report.output_sqnr_db is None
    assert "already" in str(result.report)


def test_no_accelerator_no_retargeting() -> None:
    model = encoder(9).model()
    result = retarget(model, ())
    assert result.model is model and not result.report.changed


# ------------------------------------------------------------------------------ report


def test_report_names_the_worst_layers() -> None:
    report = retarget(mobile(10).model(), options=FEW).report
    names = [cost.name for cost in report.layers]
    assert names[0] == "conv2d_0" and "average_pool_0" in names and "reshape_0" not in names
    worst = min(report.layers, key=lambda cost: cost.sqnr_db)
    assert report.worst[0] == worst
    text = str(report)
    assert f"worst: {worst.name}" in text and "output" in text
    assert report.agreement is not None and 0.8 <= report.agreement <= 1.0


def test_sqnr() -> None:
    signal = np.array([3.0, 4.0])
    assert sqnr_db(signal, signal + np.array([0.5, 0.0])) == pytest.approx(20.0)
    assert sqnr_db(signal, signal) == EXACT_DB
    assert sqnr_db(np.zeros(2), signal) == -EXACT_DB


# ------------------------------------------------------------------------------ data


def test_real_data_are_used_and_held_out() -> None:
    drawn = mobile(11)
    model, x = drawn.model(), drawn.inputs(16, 3)
    by_array = retarget(model, data=x[:, 0])
    assert "4 of the given inputs" in by_array.report.reason
    for data in (x, list(x), {"image": x}):
        assert fingerprint(retarget(model, data=data).model) == fingerprint(by_array.model)


def test_wrong_data_are_refused() -> None:
    model = mobile(12).model()
    with pytest.raises(InputError, match=r"shape \[4, 8, 8, 4\].*\[N, 1, 8, 8, 3\]"):
        retarget(model, data=np.zeros((4, 8, 8, 4), np.int8))
    with pytest.raises(InputError, match="float32"):
        retarget(model, data=np.zeros((4, 8, 8, 3), np.float32))
    with pytest.raises(InputError, match="image"):
        retarget(model, data={"picture": np.zeros((4, 8, 8, 3), np.int8)})
    with pytest.raises(InputError, match="no calibration data"):
        retarget(model, data=np.zeros((0, 8, 8, 3), np.int8))


def test_unsupported_input_type() -> None:
    model = encoder(13).model()
    inputs = (TensorInfo("image", (1, 40), "uint8", 1.0, 0),)
    with pytest.raises(UnsupportedError, match="uint8"):
        retarget(replace(model, inputs=inputs))


# ------------------------------------------------------------------------------ real models

TARGETS = {"kws_ref_model": 7, "pretrainedResnet_quant": 6, "vww_96_int8": 8}


@pytest.fixture(scope="module")
def agreements() -> dict[str, int]:
    return {}


@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", TARGETS)
def test_classifiers_decide_as_before(name: str, agreements: dict[str, int]) -> None:
    """22 of the 24 golden decisions, in no network fewer than its share."""
    wanted = golden(name)
    result = retarget(load(wanted.path))
    check(result.model.module)
    decisions = [interpret(result.model.module, [x]).outputs[0].argmax() for x in wanted.inputs]
    agreements[name] = int((np.array(decisions) == wanted.outputs[:, 0].argmax(axis=1)).sum())
    assert agreements[name] >= TARGETS[name]
    assert result.report.agreement is not None and result.report.agreement >= 0.9
    if len(agreements) == len(TARGETS):
        assert sum(agreements.values()) >= 22


def test_autoencoder_keeps_its_output() -> None:
    wanted = golden("ad01_int8")
    result = retarget(load(wanted.path))
    found = np.stack([interpret(result.model.module, [x]).outputs[0] for x in wanted.inputs])
    zero = result.model.outputs[0].zero_point
    assert sqnr_db(wanted.outputs.astype(float) - zero, found.astype(float) - zero) >= 28.0
