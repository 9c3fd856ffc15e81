"""Rewritten layers in builds: where they run, the same results, the words, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import relax

import htvm
from byoc_dory.cost import Cost
from byoc_dory.layers import TfliteRequant
from byoc_dory.options import TilingOptions
from byoc_dory.soc.registry import resolve
from byoc_dory.verdict import CPU
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.errors import TargetError
from htvm.model import Model, TensorInfo
from htvm.pipeline import compile_model
from htvm.placement.plan import Placement, place
from htvm.quantization import retarget
from htvm.tools.explain.explanation import explanation_of
from htvm.tools.report.explain import explain_screen, explain_text
from patterns.ops.convolution import Window, conv2d_of
from patterns.reading.read import graph_of
from tests.models import golden
from tests.reference.interpreter import interpret

# A layer that DIANA's digital core refuses, and what it computes instead.
LAYERS: dict[str, tuple[dict[str, Any], str]] = {
    "strided": (
        {"map": (24, 12, 1), "k": 16, "f": (10, 4), "s": (2, 2), "p": (4, 1, 4, 1)},
        "10x4 at stride 2 computed as 5x2 over 4 channels",
    ),
    "dilated": (
        {"map": (10, 10, 16), "k": 16, "f": (3, 3), "d": (2, 2), "p": (2, 2, 2, 2)},
        "3x3 with dilation 2 computed as 5x5 with zero taps",
    ),
    "padded": (
        {"map": (10, 10, 16), "k": 16, "f": (3, 3), "p": (3, 3, 3, 3)},
        "padding 3, 3, 3, 3 (top, left, bottom, right) split off",
    ),
    "one row": (
        {"map": (1, 40, 16), "k": 16, "f": (1, 5), "s": (1, 2), "p": (0, 2, 0, 2)},
        "stride 1x2 computed as 2x2, as the result has one row",
    ),
    "groups": (
        {"map": (10, 10, 16), "k": 32, "f": (3, 3), "p": (1, 1, 1, 1), "g": 4},
        "4 groups of 4 channels computed over all 16",
    ),
}


def network(geometry: dict[str, Any], layout: str = "NHWC") -> Model:
    """A convolution in TFLite's numbers, without zero points."""
    rng = np.random.default_rng(7)
    (y, x, c), k, g = geometry["map"], geometry["k"], geometry.get("g", 1)
    shape = (1, y, x, c) if layout == "NHWC" else (1, c, y, x)
    weight = rng.integers(-127, 128, (k, c // g, *geometry["f"])).astype("int8")
    window = Window(geometry.get("s", (1, 1)), geometry["p"], geometry.get("d", (1, 1)), g, layout)
    requant = TfliteRequant((1 << 30,), (-8,), 0)
    conv = conv2d_of(weight, rng.integers(-999, 999, k).astype("int32"), window, requant)
    bb = relax.BlockBuilder()
    given = relax.Var("x", relax.TensorType(shape, "int8"))
    with bb.function("main", [given]):
        with bb.dataflow():
            out = bb.emit_output(conv.write(bb, [given], "conv2d_0"))
        bb.emit_func_output(out)
    module = bb.get()
    result = tuple(int(size) for size in module["main"].body.ty.shape)
    infos = (TensorInfo("x", shape, "int8", 0.1, 0),), (TensorInfo("y", result, "int8", 0.1, 0),)
    return Model("net", graph_of(module), *infos)


def planned(model: Model, target: str = "diana.digital", **options: Any) -> Placement:
    place_ = resolve(target)
    return place(model.graph, place_, Cost(place_.soc, TilingOptions()), **options)


def compiled(model: Model, **options: Any) -> Compiled:
    return compile_model(model, "diana.digital", BuildOptions(**options))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("name", LAYERS)
def test_a_refused_layer_is_taken_rewritten(name: str, layout: str) -> None:
    geometry, words = LAYERS[name]
    model = network(geometry, layout)
    plan = planned(model)
    digital, cpu = plan.candidates["conv2d_0"]
    assert plan.places == {"conv2d_0": "digital"} and digital.rewrite == words
    assert digital.accepted and not digital.reason and not cpu.rewrite
    without = planned(model, rewrites=False)
    assert without.places == {"conv2d_0": CPU} and not without.rewrites
    refused = without.candidates["conv2d_0"][0]
    assert not refused.accepted and refused.reason and not refused.rewrite


@pytest.mark.rotating(2)
@pytest.mark.parametrize("name", LAYERS)
def test_rewritten_layers_compute_the_same(name: str) -> None:
    """The results are those of the retargeted network without rewrites, byte for byte.

    Except of groups, which retargeting keeps in the source's numbers: those are nearly equal.
    """
    geometry, _ = LAYERS[name]
    model = network(geometry)
    found = compiled(model)
    assert found.dispatch.placement["conv2d_0"] == "digital"
    data = np.random.default_rng(1).integers(-128, 128, model.inputs[0].shape).astype("int8")
    (result,) = interpret(found.retargeted.model.module, [data]).outputs
    accelerators = resolve("diana.digital").accelerators
    alone = retarget(model, accelerators, places={"conv2d_0": "digital"}).model
    (expected,) = interpret(alone.module, [data]).outputs
    if name == "groups":
        noise = result.astype(float) - expected
        assert 10 * np.log10((expected.astype(float) ** 2).sum() / (noise**2).sum()) > 25
    else:
        np.testing.assert_array_equal(result, expected)


def test_the_program_computes_the_same() -> None:
    module = htvm.build(network(LAYERS["strided"][0]), "diana.digital", "host")
    data = np.random.default_rng(1).integers(-128, 128, (1, 24, 12, 1)).astype("int8")
    expected = interpret(module.compiled.retargeted.model.module, [data]).outputs[0]
    np.testing.assert_array_equal(module.run([data]).outputs[0], expected)


def test_a_table_decides_whether_a_layer_is_rewritten() -> None:
    model = network(LAYERS["strided"][0])
    assert not planned(model, policy={"conv2d_0": CPU}).rewrites
    assert set(planned(model, policy={"conv2d_0": "digital"}).rewrites) == {"conv2d_0"}


def test_a_slower_rewrite_is_not_offered() -> None:
    """A filter of few products is quicker on the CPU than the core with its conversions."""
    tiny = {"map": (48, 48, 1), "k": 1, "f": (1, 1), "s": (1, 2), "p": (0, 0, 0, 0)}
    plan = planned(network(tiny))
    assert plan.places["conv2d_0"] == CPU
    assert plan.candidates["conv2d_0"][0].reason == "the stride is 1x2"


def test_ternary_cores_are_offered_the_layer_alone() -> None:
    plan = planned(network(LAYERS["strided"][0]), "diana.analog")
    assert plan.places == {"conv2d_0": CPU} and not plan.rewrites


def test_n_eureka_takes_small_depthwise_filters_as_3x3() -> None:
    geometry = {"map": (16, 16, 32), "k": 32, "f": (1, 3), "p": (0, 1, 0, 1), "g": 32}
    plan = planned(network(geometry), "siracusa")
    offers = {offer.name: offer for offer in plan.candidates["conv2d_0"]}
    assert offers["neureka"].rewrite == "1x3 computed as 3x3 with zero taps"


def test_a_network_that_cannot_be_retargeted_is_not_rewritten() -> None:
    """Its layers stay on the host, where computing groups over all channels would only cost."""
    rng = np.random.default_rng(0)
    requant = TfliteRequant((1 << 30,), (-8,), 0)
    shapes = {"NHWC": (1, 10, 10, 16), "NCHW": (1, 16, 10, 10)}
    params = [relax.Var(name, relax.TensorType(shape, "int8")) for name, shape in shapes.items()]
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            outputs = []
            for number, (layout, param) in enumerate(zip(shapes, params, strict=True)):
                weight = rng.integers(-127, 128, (32, 4, 3, 3)).astype("int8")
                window = Window((1, 1), (1, 1, 1, 1), (1, 1), 4, layout)
                conv = conv2d_of(weight, rng.integers(-99, 99, 32).astype("int32"), window, requant)
                outputs.append(bb.emit_output(conv.write(bb, [param], f"conv2d_{number}")))
        bb.emit_func_output(relax.Tuple(outputs))
    inputs = tuple(TensorInfo(name, shape, "int8", 0.1, 0) for name, shape in shapes.items())
    results = (
        TensorInfo("a", (1, 10, 10, 32), "int8", 0.1, 0),
        TensorInfo("b", (1, 32, 10, 10), "int8", 0.1, 0),
    )
    found = compiled(Model("net", graph_of(bb.get()), inputs, results))
    assert "layouts NCHW, NHWC in one network" in found.retargeted.report.impossible
    assert set(found.planned.places.values()) == {"digital"} and found.planned.rewrites
    assert not found.rewritten and set(found.dispatch.placement.values()) == {CPU}
    assert found.retargeted.model is found.source


def test_targets_without_accelerators_rewrite_nothing() -> None:
    assert not planned(network(LAYERS["strided"][0]), "diana.cpu").rewrites


def test_explanations_say_what_is_computed_instead() -> None:
    geometry, words = LAYERS["strided"]
    found = explanation_of(compiled(network(geometry)))
    row = next(row for row in found.rows if row.layer == "conv2d_0")
    assert row.placed == "digital" and row.rewritten == words
    line = f"  conv2d_0: {words}"
    assert line in explain_text(found).splitlines()
    assert line in explain_screen(found).splitlines()
    without = explanation_of(compiled(network(geometry), rewrites="off"))
    assert words not in explain_text(without)


def test_no_such_choice() -> None:
    with pytest.raises(TargetError, match="'perhaps' is not a choice of rewrites") as error:
        compiled(network(LAYERS["strided"][0]), rewrites="perhaps")
    assert error.value.where == "option 'rewrites'" and error.value.hint == "on or off"


@pytest.mark.slow
def test_the_keyword_spotter_computes_the_same_and_is_quicker() -> None:
    known = golden("kws_ref_model")
    on, off = (htvm.build(known.path, "diana.digital", rewrites=choice) for choice in ("on", "off"))
    for sample in known.inputs[:2]:
        fast, slow = on.run([sample]), off.run([sample])
        np.testing.assert_array_equal(fast.outputs[0], slow.outputs[0])
        assert fast.cycles and slow.cycles and 3 * fast.cycles < slow.cycles
