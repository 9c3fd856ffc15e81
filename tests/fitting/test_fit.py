"""Whether a model fits: demands against real builds, and changes against what they promise."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tvm import relax

import htvm
from byoc_dory.layers import Shift
from byoc_dory.options import TilingOptions
from byoc_dory.soc.registry import board_target, resolve
from htvm.build_options import BuildOptions
from htvm.firmware.sizes import Sizes
from htvm.model import Model, TensorInfo
from htvm.pipeline import compile_model
from htvm.tools import fitting, zoo
from htvm.tools.cli.app import main
from htvm.tools.cli.arguments import open_model
from htvm.tools.fitting import changes
from htvm.tools.fitting.levels import TOLERANCE, WORD_BYTES, code_size, constants_by_layer
from htvm.tools.report.fit import Fit, Level
from patterns.ops.dense import Dense
from patterns.reading.read import graph_of
from tests.models import MODELS, model_path

MLPERF = ("resnet8", "ds_cnn", "mobilenet_v1", "toyadmos")
ZOO = (*zoo.names(), *zoo.TRAINED)
TARGETS = (
    "diana", "diana.digital", "diana.analog", "diana.mixed", "diana.cpu", "generic.cpu",
)  # fmt: skip


def part(level: Level, name: str) -> int:
    return sum(entry.bytes for entry in level.parts if entry.name == name)


def hold(found: Fit, real: Sizes) -> None:
    """What was said of L2 against the linked firmware."""
    level = found.level("L2")
    assert level.demand == sum(entry.bytes for entry in level.parts) == real.total
    assert part(level, "arena") == real.arena
    assert part(level, "stack") == real.stack
    # The records that layers pass to drivers are constants of the code.
    assert level.slack == 0 and part(level, "code") >= real.code


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("network", "target"), [("toyadmos", "diana"), ("resnet8", "diana.cpu"), ("ds_cnn", "diana")]
)
def test_demands_of_l2_are_those_of_the_firmware(network: str, target: str) -> None:
    model = zoo.build(network)
    hold(htvm.fit(model, target), htvm.build(model, target).sizes)


@pytest.mark.slow
@pytest.mark.parametrize("network", ZOO)
def test_demands_of_l2_on_every_target(network: str) -> None:
    model = open_model(f"zoo:{network}")
    for target in TARGETS:
        for schedule in ("overlapped", "published"):
            found = htvm.fit(model, target, schedule=schedule)
            hold(found, htvm.build(model, target, schedule=schedule).sizes)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["diana", "diana.cpu"])
@pytest.mark.parametrize("name", MODELS)
def test_demands_of_l2_of_imported_networks(name: str, target: str) -> None:
    model = htvm.load(model_path(name))
    hold(htvm.fit(model, target), htvm.build(model, target).sizes)


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("network", "target"), [("resnet8", "diana.cpu"), ("ds_cnn", "diana"), ("ds_cnn", "cortex_m4")]
)
def test_without_a_compiler_the_code_is_estimated(
    network: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = zoo.build(network)
    real = htvm.fit(model, target)
    monkeypatch.setattr("htvm.firmware.toolchain._zig", lambda: None)
    found = htvm.fit(model, target)
    for level, measured in zip(found.levels, real.levels, strict=True):
        code = part(level, "code")
        assert level.slack == math.ceil(TOLERANCE * code)
        assert abs(level.demand - measured.demand) <= level.slack
        assert part(level, "inputs and outputs") >= part(measured, "inputs and outputs") - 16
    assert "estimated from the words of its C, +-75%: no C compiler" in " ".join(str(found).split())


@pytest.mark.slow
@pytest.mark.parametrize("network", ZOO)
def test_the_estimate_is_as_close_as_it_says(network: str) -> None:
    """Of targets without libraries of kernels, and networks without reals on the CPU."""
    for target in ("diana", "diana.analog", "diana.cpu", "cortex_m4"):
        compiled = compile_model(open_model(f"zoo:{network}"), target, BuildOptions())
        program = compiled.program
        words = len(f"{program.layers_source} {program.cpu_source}".split())
        real = code_size(compiled, None, sum(constants_by_layer(compiled).values())).code
        assert abs(WORD_BYTES * words - real) <= TOLERANCE * WORD_BYTES * words


def test_a_program_that_overflows_is_measured_all_the_same() -> None:
    model = zoo.build("toyadmos")
    small = htvm.fit(model, "generic.cpu", l2_bytes=262_144).level("L2")
    hold(htvm.fit(model, "generic.cpu"), htvm.build(model, "generic.cpu").sizes)
    assert small.demand == htvm.fit(model, "generic.cpu").level("L2").demand > small.limit


def test_accelerators_memories_are_those_of_the_plan() -> None:
    model = zoo.build("resnet8")
    found, module = htvm.fit(model), htvm.build(model, platform="host")
    regions = list(module.compiled.regions.values())
    assert found.fits == "yes" and not found.changes
    assert found.level("L1").planned == max(max(code.l1_used.values()) for code in regions)
    kernels = {
        kernel.layer_name: kernel
        for code in regions
        for kernel in code.kernels
        if kernel.plan is not None
    }
    for layer in found.layers:
        solution = kernels[layer.layer].solution
        assert solution is not None and layer.weights_planned == solution.l1_weights
        assert layer.l1_least <= layer.l1_whole <= found.level("L1").limit
    weights = found.level("digital: weights")
    assert weights.planned == max(k.solution.l1_weights for k in kernels.values() if k.solution)


def test_a_layer_in_parts_is_one_demand() -> None:
    found = fitting.fit("zoo:mobilenet_v1", "diana")
    names = [demand.layer for demand in found.layers]
    assert len(names) == len(set(names)) == 28
    assert all(demand.l1_planned for demand in found.layers)


def test_a_budget_that_is_too_small_names_the_layers_and_what_helps() -> None:
    model = zoo.build("toyadmos")
    found = htvm.fit(model, "diana.digital", tiling=TilingOptions(l1_budget=300))
    level = found.level("L1")
    assert (found.fits, level.fits, level.demand, level.planned) == ("no", "no", 656, None)
    assert {d.layer for d in found.layers if d.l1_least > 300} == {"dense_0"}
    raised, left, narrower = found.changes
    assert all(change.fits == "yes" for change in found.changes)
    assert "656" in raised.what and raised.how == "planned"
    assert "dense_0" in left.what and narrower.how == "computed"
    # What is promised holds: that budget, that placement, that many channels and no more.
    assert htvm.fit(model, "diana.digital", tiling=TilingOptions(l1_budget=656)).fits == "yes"
    assert htvm.fit(model, "diana.digital", tiling=TilingOptions(l1_budget=655)).fits == "no"
    assert "give dense_0 272 instead of 640 input channels" in narrower.what
    assert narrower.demand is not None and narrower.demand <= 300


def test_a_small_l2_names_what_dominates_and_the_nearest_change() -> None:
    model = zoo.build("toyadmos")
    found = htvm.fit(model, "generic.cpu", l2_bytes=262_144)
    level = found.level("L2")
    assert (found.fits, level.fits, level.limit) == ("no", "no", 262_144)
    assert level.parts[0].name == "constants of dense_9"
    smaller = next(change for change in found.changes if "give dense_9" in change.what)
    assert smaller.fits == "yes" and smaller.how == "computed"
    # Another network must be trained: it is named after what the same one could do.
    same = [change for change in found.changes if change.how == "planned" and change.fits == "yes"]
    assert same and all(found.changes.index(each) < found.changes.index(smaller) for each in same)
    elsewhere = next(change for change in found.changes if "--target diana)" in change.what)
    assert elsewhere.demand == htvm.fit(model, "diana").level("L2").demand


def test_a_full_arena_names_the_tensor() -> None:
    model = zoo.build("ds_cnn")
    found = htvm.fit(model, "generic.cpu", l2_bytes=65_536)
    assert found.fits == "no"
    tensor = next(change for change in found.changes if "in the arena" in change.what)
    assert tensor.fits == "yes" and "depthwise_0_padded" in tensor.what
    # Where the whole arena would not be enough, nothing is said of its tensors.
    smaller = htvm.fit(model, "generic.cpu", l2_bytes=40_960)
    assert not any("in the arena" in change.what for change in smaller.changes)


def test_close_is_neither_yes_nor_no() -> None:
    level = Level("L2", 1000, 990, 990, slack=20)
    assert level.fits == "close"
    assert replace(level, demand=1010).fits == "close"
    assert (replace(level, demand=980).fits, replace(level, demand=1021).fits) == ("yes", "no")
    fit = Fit("n", "t", "", (level, replace(level, slack=0)), ())
    assert fit.fits == "close" and "too close" in str(fit)


def product(weight: np.ndarray) -> Model:
    """A network of one product with these weights, ``[K, C]``."""
    (k, c), bb = weight.shape, relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, c), "int8"))
    dense = Dense(weight[:, :, None, None], np.zeros(k, np.int32), Shift(9), (-128, 127))
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(dense.write(bb, [x], "wide"))
        bb.emit_func_output(out)
    info = (TensorInfo("x", (1, c), "int8", 1.0, 0),)
    outputs = (TensorInfo("y", (1, k), "int8", 1.0, 0),)
    return Model("wide", graph_of(bb.finalize()), info, outputs, "a test", "shift")


def test_targets_without_room_for_the_weights_are_not_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = product(np.random.default_rng(0).integers(-128, 128, (300, 2000), np.int8))
    planned: list[str] = []
    compile_model = fitting.compile_model

    def noted(model: Model, target: str, *args: Any, **kwargs: Any) -> Any:
        planned.append(target)
        return compile_model(model, target, *args, **kwargs)

    monkeypatch.setattr(fitting, "compile_model", noted)
    found = htvm.fit(model, "diana.cpu")
    said = {change.what: change for change in found.changes}
    digital = said["build for diana.digital (--target diana.digital)"]
    assert (digital.fits, digital.how, digital.demand, digital.limit) == (
        "no", "computed", 600_000, 512_000,
    )  # fmt: skip
    assert "diana.digital" not in planned
    # Two bits a weight may fit, so this is tried.
    assert "diana" in planned and "diana.analog" in planned
    # Of the larger SoCs only as many as are needed, from the smallest on.
    elsewhere = [target for target in planned if not target.startswith("diana")]
    assert (
        elsewhere == ["siracusa"] and said["build for siracusa (--target siracusa)"].fits == "yes"
    )
    # And what was not planned would not have fitted.
    assert htvm.fit(model, "diana.digital").level("L2").demand > 600_000


def test_a_layer_that_memory_keeps_from_the_accelerator_is_named() -> None:
    found = htvm.fit(product(np.ones((8, 5000), np.int8)), "diana.digital")
    assert [(layer, name) for layer, name, _ in found.refused] == [("wide", "digital")]
    assert "weight memory" in found.refused[0][2] and "want of memory" in str(found)


def test_a_board_with_exactly_as_much_memory_is_enough() -> None:
    program = SimpleNamespace(constant_bytes=0, plan=SimpleNamespace(peak=0))
    compiled: Any = SimpleNamespace(target=resolve("cortex_m4"), program=program)
    smallest = changes._larger_board(compiled, Level("L2", 0, 1, None))
    assert smallest is not None
    size = resolve(board_target(smallest)).soc.memory("L2").size
    assert changes._larger_board(compiled, Level("L2", 0, size, None)) == smallest
    assert changes._larger_board(compiled, Level("L2", 0, size + 1, None)) != smallest


def test_channels_that_save_exactly_what_is_missing_are_enough() -> None:
    compiled = compile_model(product(np.ones((64, 100), np.int8)), "diana.cpu", BuildOptions())
    (first,) = changes._fewer_channels(compiled, Level("L2", 9_999, 10_000, None))
    assert first.demand is not None
    saved = 10_000 - first.demand
    for excess in (saved, saved + 1):
        level = Level("L2", 10_000 - excess, 10_000, None)
        (change,) = changes._fewer_channels(compiled, level)
        assert change.fits == "yes" and (change.what == first.what) == (excess == saved)


def test_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "zoo:toyadmos"]) == 0
    shown = capsys.readouterr().out
    assert "it fits" in shown and "arena" not in shown.split("\n")[0]
    assert main(["fit", "zoo:toyadmos", "-t", "generic.cpu", "--l2", "262144", "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["kind"], data["fits"]) == (1, "fit", "no")
    assert [level["fits"] for level in data["levels"]] == ["no"]
    assert data["changes"][0]["fits"] == "yes"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--l2", "262144"], "fixed at 512000"),
        (["--l1", "999999"], "256000"),
        (["--l1", "0"], "--l1"),
        (["--target", "mars"], "diana.digital"),
    ],
)
def test_contradictory_options(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "zoo:toyadmos", *arguments]) == 2
    shown = capsys.readouterr()
    assert words in shown.err and "Traceback" not in shown.err and shown.out == ""


@pytest.mark.slow
@pytest.mark.parametrize("network", ZOO)
def test_an_answer_takes_seconds(network: str) -> None:
    """Less than eight times what importing TVM takes, which is more than half of small answers."""
    imported = min(_cpu_seconds([sys.executable, "-c", "import tvm"]) for _ in range(3))
    command = [sys.executable, "-m", "htvm", "fit", f"zoo:{network}"]
    assert min(_cpu_seconds(command) for _ in range(3)) < 8 * imported


def _cpu_seconds(command: list[str]) -> float:
    """CPU time of a command: the machine may be busy with something else."""
    before = os.times()
    subprocess.run(command, check=True, capture_output=True)
    after = os.times()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system
