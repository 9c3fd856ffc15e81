"""Every bound that a source clips to survives retargeting: in any scheme, inside and at the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from byoc_dory.errors import DefectError, UnsupportedError
from byoc_dory.soc import registry
from htvm.quantization import Retargeted, RetargetOptions, retarget
from htvm.quantization.forward import forward
from htvm.quantization.noise import NoiseModel, noise_inputs, observe
from htvm.quantization.report import sqnr_db
from htvm.quantization.retarget import _check_ranges
from htvm.quantization.rewrite import rewrite
from htvm.quantization.search import choose_scales
from htvm.quantization.units import annotated
from patterns.ops.convert import Convert
from patterns.reading.read import graph_of
from tests.quantization.sources import LINEAR, RELU, SAME, Activation, Source
from tests.reference.interpreter import interpret

FEW = RetargetOptions(samples=24)
ACTIVATIONS = {
    "none": LINEAR,
    "none, wide scale": Activation(room=2.2),
    "relu": RELU,
    "relu, wide scale": Activation(low=0.0, room=1.7),
    "relu6": Activation(low=0.0, high=0.4),
    "relu6, wide scale": Activation(low=0.0, high=0.4, room=2.2),
    "relu_n1_to_1, wide scale": Activation(low=-0.3, high=0.3, room=1.6),
    "not above zero": Activation(high=0.0, room=1.3),
}
ENDS = ("conv2d", "depthwise", "dense", "add", "max_pool", "average_pool", "reshape")
CORES = {
    f"{target}: {core.name}": (resolved.accelerators, core.name)
    for target in ("diana", "dla", "siracusa", "snitch_ita")
    for resolved in (registry.resolve(target),)
    for core in resolved.accelerators
}


@st.composite
def sources(draw: st.DrawFn) -> Source:
    """A few layers of every kind, with activations and zero points of every kind."""
    zeros = st.one_of(st.sampled_from((None, -128, 0, 127)), st.integers(-128, 127))

    def style() -> dict[str, object]:
        return {"relu": draw(st.sampled_from(list(ACTIVATIONS.values()))), "zero": draw(zeros)}

    drawn = Source(
        draw(st.integers(0, 10_000)), (4, 4, 3), draw(st.sampled_from((-128, -9, 0, 50)))
    )
    for kind in draw(st.lists(st.sampled_from(("conv2d", "depthwise", "block")), max_size=2)):
        if kind == "block":
            first = drawn.linear("conv2d", 4, **style())
            second = drawn.linear("conv2d", 4, source=first, **style())
            drawn.add(first, second, **style())
        else:
            drawn.linear(kind, 4, 3, pad=SAME, **style())
    end = draw(st.sampled_from(ENDS))
    if end in ("conv2d", "depthwise"):
        drawn.linear(end, 4, **style())
    elif end == "add":
        drawn.add(drawn.last, drawn.linear("conv2d", drawn.real[drawn.last].shape[-1], **style()),
                  **style())  # fmt: skip
    else:
        drawn.linear("conv2d", 4, **style())
        if end == "dense":
            drawn.flatten()
            drawn.linear("dense", 5, **style())
        else:
            {
                "max_pool": drawn.max_pool,
                "average_pool": drawn.average_pool,
                "reshape": drawn.flatten,
            }[end]()
    return drawn


def places_of(drawn: Source, core: str) -> dict[str, str]:
    """All layers that a core's arithmetic has on it, but every fifth of them on the CPU."""
    kinds = ("conv2d", "dense") if core == "analog" else ("conv2d", "dense", "depthwise", "add")
    names = [step[1] for step in drawn.steps if step[0] in kinds]
    return {name: "cpu" if index % 5 == 4 else core for index, name in enumerate(names)}


def retargeted(core: str, drawn: Source) -> Retargeted:
    """The network for a core; a draw whose biases no shift holds, which the CPU keeps, is none."""
    accelerators, name = CORES[core]
    try:
        return retarget(drawn.model(), accelerators, places=places_of(drawn, name), options=FEW)
    except UnsupportedError as error:
        assert "a bias so large" in str(error)
        reject()


def clip_of(drawn: Source) -> tuple[int, int]:
    """The bounds of the last operator that has any."""
    return drawn.clip[[step[1] for step in drawn.steps if step[1] in drawn.clip][-1]]


@pytest.mark.rotating(3)
@pytest.mark.parametrize("core", CORES)
@settings(max_examples=4, deadline=None)
@given(drawn=sources())
def test_outputs_stay_within_the_clips_of_the_source(core: str, drawn: Source) -> None:
    check_outputs(core, drawn)


@pytest.mark.slow
@pytest.mark.parametrize("core", CORES)
@settings(max_examples=100, deadline=None)
@given(drawn=sources())
def test_outputs_of_many_stay_within_the_clips_of_the_source(core: str, drawn: Source) -> None:
    check_outputs(core, drawn)


def check_outputs(core: str, drawn: Source) -> None:
    accelerators, name = CORES[core]
    result = retargeted(core, drawn)
    low, high = clip_of(drawn)
    for x in drawn.inputs(4, 1):
        found = interpret(result.model.module, [x]).outputs[0]
        assert low <= found.min() and found.max() <= high
    homes = {entry.name: entry for entry in accelerators}
    for node in graph_of(result.model.module).in_order:
        if node.scaled is not None and places_of(drawn, name).get(node.name) == name:
            assert homes[name].can_clip_to(node.scaled.clip), node.name


@pytest.mark.rotating(3)
@pytest.mark.parametrize("core", CORES)
@settings(max_examples=2, deadline=None)
@given(drawn=sources())
def test_the_printed_loss_is_the_difference_from_the_source(core: str, drawn: Source) -> None:
    source, result = drawn.model(), retargeted(core, drawn)
    samples = noise_inputs(annotated(source), 24, FEW.seed + 1)["input"][:, None]
    wanted, found = (
        np.stack([interpret(module, [x]).outputs[0] for x in samples]).astype(int)
        for module in (source.module, result.model.module)
    )
    zero = drawn.zero[drawn.last]
    assert result.report.output_largest == np.abs(wanted - found).max()
    assert result.report.output_sqnr_db == pytest.approx(sqnr_db(wanted - zero, found - zero))
    assert f"outputs: {result.report.output_largest} steps" in str(result.report)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("core", CORES)
@settings(max_examples=4, deadline=None)
@given(drawn=sources())
def test_bounds_inside_hold_to_half_a_step(core: str, drawn: Source) -> None:
    accelerators, name = CORES[core]
    homes = {entry.name: entry for entry in accelerators}
    places = places_of(drawn, name)
    net = annotated(drawn.model()).with_homes(
        {n: homes[p] for n, p in places.items() if p in homes}
    )
    inputs = noise_inputs(net, 24, 5)
    statistics = observe(net, inputs, 5)
    scales = choose_scales(net, NoiseModel(net, statistics))
    written = rewrite(net, scales, statistics.tensors)
    values = forward(written.net, inputs)
    for node in net.nodes:
        if node.scaled is None or not net.graph.read_by(node.name):
            continue
        zero, step, clip = scales.zero_point[node.name], scales.step[node.name], node.scaled.clip
        real = (values[written.tensors[node.name]].astype(float) - zero) * step
        low, high = (np.array(bound) - net.zeros[node.name] for bound in clip)
        if low == 0 or clip[0] > -128:
            assert (real >= low - step / 2 - 1e-9).all(), node.name
        if clip[1] < 127:
            assert (real <= high + step / 2 + 1e-9).all(), node.name


@pytest.mark.rotating(10)
@pytest.mark.parametrize("zero", [-128, -20, 0, 40])
@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_a_clip_of_its_own_is_written_only_where_the_core_has_none(kind: str, zero: int) -> None:
    """The last layer of a network, in the source's own numbers."""
    drawn = Source(3, (4, 4, 3))
    drawn.linear("conv2d", 4, relu=ACTIVATIONS[kind], zero=zero)
    core = registry.resolve("diana.digital").accelerators[0]
    result = retarget(drawn.model(), [core], places={"conv2d_0": core.name}, options=FEW)
    clip = drawn.clip["conv2d_0"]
    nodes = {node.name: node for node in graph_of(result.model.module).in_order}
    held = core.can_clip_to(clip)
    assert ("clip_0" in nodes) != held
    said = f"clips conv2d_0 to [{clip[0]}, {clip[1]}] on the CPU, as digital cannot"
    assert (said in str(result.report)) != held
    scaled = nodes["conv2d_0"].scaled
    assert scaled is not None and scaled.clip == (clip if held else (-128, 127))
    free = registry.resolve("siracusa.cluster").accelerators[0]
    result = retarget(drawn.model(), [free], places={"conv2d_0": free.name}, options=FEW)
    (conv,) = [node for node in graph_of(result.model.module).in_order if node.scaled is not None]
    assert conv.scaled is not None and conv.scaled.clip == clip


def test_a_result_that_could_leave_the_range_of_the_source_is_an_error() -> None:
    drawn = Source(3, (4, 4, 3))
    drawn.linear("conv2d", 4, relu=RELU, zero=-20)
    net = annotated(drawn.model()).with_homes(
        {"conv2d_0": registry.resolve("diana.digital").accelerators[0]}
    )
    inputs = noise_inputs(net, 24, 5)
    statistics = observe(net, inputs, 5)
    written = rewrite(net, choose_scales(net, NoiseModel(net, statistics)), statistics.tensors)
    _check_ranges(net, written)
    conv, clip = written.net.nodes[-2:]
    assert isinstance(clip.op, Convert) and clip.op.clip == (-20, 127)
    lost = replace(written, exported={"conv2d_0": conv.name})
    with pytest.raises(DefectError, match="-128 to 127 where the source clips to"):
        _check_ranges(net, lost)
