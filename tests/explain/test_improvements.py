"""Changes that would gain most: each gain is that of a model that was really changed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tvm import relax

import htvm
from byoc_dory.layers import Shift, Tensor, conv2d_layer, depthwise_layer
from byoc_dory.options import ScheduleKind, TilingOptions
from htvm import zoo
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.model import Model, TensorInfo
from htvm.pipeline import compile_model
from htvm.tools.cli.app import main
from htvm.tools.explain.explanation import explanation_of
from htvm.tools.explain.improvements import improvements, variants_of
from htvm.tools.explain.variants import resized
from htvm.tools.report.verdicts import Improvement
from htvm.tools.zoo.drawing import Sketch
from htvm.tools.zoo.networks import model as drawn_model
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense
from patterns.ops.float32.quantize import Dequantize, Quantize
from patterns.ops.moves.reshape import Transpose
from patterns.ops.tflite.softmax import TfliteSoftmax
from patterns.reading.read import graph_of

CLIP = (-128, 127)


def convolution(k: int, c: int, kernel: int | tuple[int, int], groups: int = 1) -> Model:
    """One convolution of a map of 16x16, as a model."""
    fy, fx = (kernel, kernel) if isinstance(kernel, int) else kernel
    bb = relax.BlockBuilder()
    shape = (1, c, 16, 16)
    x = relax.Var("x", relax.TensorType(shape, "int8"))
    pad = ((fy - 1) // 2, (fx - 1) // 2, fy // 2, fx // 2)
    with bb.function("main", [x]):
        with bb.dataflow():
            weight, bias = np.ones((k, c // groups, fy, fx), np.int8), np.zeros(k, np.int32)
            window = Window(padding=pad, groups=groups, layout="NCHW")
            y = conv2d_of(weight, bias, window, Shift(6), CLIP).write(bb, [x], "layer")
            out = bb.emit_output(y)
        bb.emit_func_output(out)
    info = TensorInfo("x", shape, "int8", 1.0, 0)
    outputs = (TensorInfo("y", (1, k, 16, 16), "int8", 1.0, 0),)
    return Model("one", graph_of(bb.finalize()), (info,), outputs, "a test", "shift")


def compiled(model: Model, schedule: ScheduleKind = "overlapped") -> Compiled:
    options = BuildOptions(tiling=TilingOptions(schedule=schedule))
    return compile_model(model, "diana.digital", options)


def predicted(model: Model, schedule: ScheduleKind = "overlapped") -> int:
    (code,) = compiled(model, schedule).regions.values()
    return sum(kernel.predicted_cycles for kernel in code.kernels if kernel.layer is not None)


def best(model: Model) -> Improvement:
    return improvements(compiled(model))[0]


def test_a_full_convolution_instead_of_a_depthwise_one() -> None:
    """In the published schedule, which computes depthwise layers channel by channel."""
    before, after = convolution(32, 32, 3, groups=32), convolution(32, 32, 3)
    found = improvements(compiled(before, "published"))[0]
    assert found.change == "make the depthwise convolution a full one"
    gain = predicted(before, "published") - predicted(after, "published")
    assert found.gain == gain == found.before - found.after > 0
    assert found.note == f"{32 * 31 * 9:,} weights more in each"


def test_channels_that_fill_the_array() -> None:
    before, after = convolution(20, 16, 3), convolution(16, 16, 3)
    found = best(before)
    assert found.change.startswith("make K a multiple of") and "16 instead of 20" in found.change
    assert found.gain == predicted(before) - predicted(after) > 0
    assert "change their shapes" in found.note


def test_a_kernel_that_an_accelerator_takes() -> None:
    found = best(convolution(16, 16, (10, 4)))
    assert (found.runs_on, found.would_run_on) == ("cpu", "digital")
    fy, fx = map(int, found.change.split(" by ")[1].split("x"))
    assert max(fy, fx) <= 7 and found.gain > 0.9 * found.before
    # On an accelerator the layer costs what it costs there in a model of its own; its input's
    # layout, which it now needs, is charged as well.
    layer = compiled(convolution(16, 16, (fy, fx)))
    (code,) = layer.regions.values()
    own = next(kernel.predicted_cycles for kernel in code.kernels if kernel.layer is not None)
    assert own < found.after < own + 16 * 16 * 16 * 5


def test_an_operator_between_two_regions() -> None:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 64), "int8"))
    square, bias = np.ones((64, 64, 1, 1), np.int8), np.zeros(64, np.int32)
    with bb.function("main", [x]):
        with bb.dataflow():
            y = Dense(square, bias, Shift(6), CLIP).write(bb, [x], "first")
            y = TfliteSoftmax.of_scale(1.0 / 32).write(bb, [y], "between")
            y = Dense(square, bias, Shift(6), CLIP).write(bb, [y], "second")
            out = bb.emit_output(y)
        bb.emit_func_output(out)
    info = TensorInfo("x", (1, 64), "int8", 1.0, 0)
    model = Model("two", graph_of(bb.finalize()), (info,), (info,), "a test", "shift")
    made = compiled(model)
    (found,) = [entry for entry in improvements(made) if entry.layers == ("between",)]
    steps = {(step.kind, *step.layers): step.cycles or 0 for step in explanation_of(made).steps}
    borders = steps["epilogue", "first"] + steps["prologue", "between"]
    own = next(row.cycles for row in explanation_of(made).rows if row.layer == "between")
    assert own is not None and found.gain == borders + own > own > 0
    assert "remove the softmax" in found.change


def test_an_operator_that_changes_the_shape_is_not_left_out() -> None:
    bb = relax.BlockBuilder()
    shape = (1, 16, 8, 16)
    x = relax.Var("x", relax.TensorType(shape, "int8"))
    square, bias = np.ones((16, 16, 1, 1), np.int8), np.zeros(16, np.int32)
    with bb.function("main", [x]):
        with bb.dataflow():
            y = conv2d_of(square, bias, Window(), Shift(6), CLIP).write(bb, [x], "first")
            y = Transpose((0, 2, 1, 3)).write(bb, [y], "between")
            y = conv2d_of(square, bias, Window(), Shift(6), CLIP).write(bb, [y], "second")
            out = bb.emit_output(y)
        bb.emit_func_output(out)
    info, made = TensorInfo("x", shape, "int8", 1.0, 0), TensorInfo("y", (1, 8, 16, 16), "int8")
    model = compiled(Model("two", graph_of(bb.finalize()), (info,), (made,), "a test", "shift"))
    kinds = [(step.kind, step.layer) for step in model.program.steps]
    assert ("prologue", "between") in kinds and ("epilogue", "first") in kinds
    assert all(entry.layers != ("between",) for entry in improvements(model))


def dense_between(real: bool) -> Model:
    """One dense layer, its input and output in integers or in reals."""
    bb = relax.BlockBuilder()
    kind = "float32" if real else "int8"
    x = relax.Var("x", relax.TensorType((1, 64), kind))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = Quantize(0.5, 3).write(bb, [x], "in") if real else x
            square, bias = np.ones((64, 64, 1, 1), np.int8), np.zeros(64, np.int32)
            y = Dense(square, bias, Shift(6), CLIP).write(bb, [y], "layer")
            y = Dequantize(0.5, 3).write(bb, [y], "out") if real else y
            out = bb.emit_output(y)
        bb.emit_func_output(out)
    info = TensorInfo("x", (1, 64), kind, *((None, None) if real else (1.0, 0)))
    return Model("one", graph_of(bb.finalize()), (info,), (info,), "a test", "shift")


def test_integers_at_the_borders() -> None:
    made, plain = compiled(dense_between(real=True)), compiled(dense_between(real=False))
    found = {entry.layers: entry for entry in improvements(made)}
    gains = [found["in",].gain, found["out",].gain]
    whole, rest = explanation_of(made).total_cycles, explanation_of(plain).total_cycles
    assert whole is not None and rest is not None
    # Branches of the conversions between them depend on the bytes in the arena.
    assert sum(gains) == pytest.approx(whole - rest, abs=10) and min(gains) > 0
    assert "feed int8" in found["in",].change and "hand out int8" in found["out",].change
    assert all("int8" not in entry.change for entry in improvements(plain))


def test_nothing_is_said_where_nothing_is_asked_or_gains() -> None:
    assert improvements(compiled(zoo.build("toyadmos")), 0) == ()
    # Less work is a gain everywhere, and named where there is no other.
    found = improvements(compile_model(zoo.build("toyadmos"), "generic.cpu", BuildOptions()))
    assert found and all(entry.would_run_on == "cpu" for entry in found)
    assert improvements(compiled(convolution(16, 16, 1))) == ()


def test_changes_come_in_order_and_each_layer_once() -> None:
    made = compile_model(zoo.build("ds_cnn"), "diana.digital", BuildOptions(rewrites="off"))
    found = improvements(made, 5)
    gains = [entry.gain for entry in found]
    assert gains == sorted(gains, reverse=True) and len(found) == 5
    names = [name for entry in found for name in entry.layers]
    assert len(set(names)) == len(names)
    assert found[:3] == improvements(made, 3)


def test_a_smaller_network_comes_after_what_fits_the_core_better() -> None:
    """17 channels waste most of an array; taking 16 of 64 away gains more, by computing less."""
    sketch = Sketch("net", (16, 32, 32))
    maps = sketch.conv2d(sketch.conv2d(sketch.input, 64, (3, 3)), 64, (3, 3))
    sketch.dense(sketch.average_pool(sketch.conv2d(maps, 17, (3, 3))), 10)
    first, second, *_ = improvements(compiled(drawn_model(sketch)), 3)
    assert (first.layers, first.change[:22]) == (("conv2d_2",), "make K a multiple of 4")
    assert (second.layers, second.change) == (("conv2d_1",), "make K 48 instead of 64")
    assert second.gain > first.gain


def test_a_rewritten_layer_is_not_changed() -> None:
    """Its sizes are those of what is computed instead, which nobody can train."""
    made = compiled(zoo.build("ds_cnn"))
    assert set(made.rewritten) == {"conv2d_0"}
    names = [name for entry in improvements(made, 5) for name in entry.layers]
    assert names and "conv2d_0" not in names


def test_a_change_is_only_made_where_l2_has_room() -> None:
    made = compiled(zoo.build("mobilenet_v1"))
    layers, program = made.dispatch.layers, made.program
    for entry in improvements(made):
        if entry.change == "make the depthwise convolution a full one":
            sizes = [layers[name].weight for name in entry.layers]
            more = sum(w.size * (len(w) - 1) for w in sizes if w is not None)
            assert program.constant_bytes + program.plan.peak + more < 512_000


def test_variants_are_layers_near_by() -> None:
    source = Tensor("x", (16, 12, 9))
    weight = np.ones((20, 16, 5, 3), np.int8)
    layer = conv2d_layer("l", source, "y", weight, None, pad=(2, 1, 2, 1), requant=Shift(3))
    variants = list(variants_of(layer))
    assert len(variants) > 5 and len({variant.change for variant in variants}) == len(variants)
    for variant in variants:
        assert abs(variant.layer.macs - layer.macs) <= 0.5 * layer.macs
        assert variant.reshapes == (
            variant.layer.output.shape != layer.output.shape
            or variant.layer.inputs[0].shape != layer.inputs[0].shape
        )


def test_groups_are_joined_where_nothing_is_dilated() -> None:
    weight = np.ones((8, 2, 3, 3), np.int8)
    layer = conv2d_layer("l", Tensor("x", (4, 9, 9)), "y", weight, None, requant=Shift(3), groups=2)
    (joined,) = variants_of(layer)
    assert joined.change == "make the convolution of 2 groups one of a single group"
    assert joined.layer.groups == 1 and joined.layer.macs == 2 * layer.macs
    assert list(variants_of(replace(layer, dilation=(2, 2), pad=(1, 1, 1, 1)))) == []


def test_resized_keeps_what_it_is_not_told() -> None:
    weight = np.ones((8, 1, 3, 3), np.int8)
    layer = depthwise_layer(
        "l", Tensor("x", (8, 6, 6)), "y", weight, None, stride=(2, 2), pad=(0, 0, 1, 1),
        requant=Shift(3), clip=(0, 127),
    )  # fmt: skip
    assert resized(layer).geometry == layer.geometry and resized(layer).relu
    wider = resized(layer, K=12)
    assert (wider.K, wider.C, wider.groups, wider.output.shape) == (12, 12, 12, (12, 3, 3))
    assert resized(layer, kernel=(5, 5)).output.shape == layer.output.shape


def test_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "zoo:ds_cnn", "--rewrites", "off", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["kind"]) == (1, "explain")
    first = data["improvements"][0]
    assert first["layers"] == ["conv2d_0"] and first["gain"] < data["total_cycles"]
    # Every operator has an estimate on the CPU: pooling, softmax and reshape, too.
    assert all(row["cpu_cycles"] is not None for row in data["operators"])
    assert main(["explain", "zoo:ds_cnn", "--changes", "0"]) == 0
    assert "would gain" not in capsys.readouterr().out


def test_a_built_module_explains_itself() -> None:
    module = htvm.build(zoo.build("toyadmos"), platform="host")
    assert module.explain().total_cycles is not None
    assert len(module.explain(changes=1).improvements) <= 1
