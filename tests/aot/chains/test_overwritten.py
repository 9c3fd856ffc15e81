"""Inputs that lie in the arena: same numbers, fewer bytes, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import htvm
from htvm import zoo
from htvm.aot.entry import model_sources
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.errors import SimulationError, TargetError
from htvm.inputs import seeded_inputs
from patterns.op import TensorType
from patterns.ops.max_pool import MaxPool
from patterns.reading.building import GraphBuilder
from tests.aot.chains.networks import chained_network, inputs_of
from tests.aot.chains.test_chains import Mutants, chains_of


def test_input_and_arena_take_no_more_than_apart() -> None:
    model = chained_network(3)
    own, kept = (
        Compiled(model, "generic.cpu", BuildOptions(memory="least", input=way)).program.plan.peak
        for way in ("overwritten", "kept")
    )
    assert own <= kept + -(-int(np.prod(model.inputs[0].shape)) // 16) * 16


def test_the_header_says_where_the_input_lies() -> None:
    options = BuildOptions(memory="least", input="overwritten")
    program = Compiled(chained_network(3), "generic.cpu", options).program
    ((number, buffer),) = program.overwritten
    offset = program.plan.offset(buffer)
    header = model_sources(program)["rows3.h"]
    assert number == 0 and f"input_0 lies in the arena, at byte {offset}," in header
    assert f"return &arena->i8[{offset}];" in header
    assert "int8_t *rows3_input_0(void);" in header


def test_red_zones_hold_around_an_overwritten_input() -> None:
    model = chained_network(3)
    module = htvm.build(model, "generic.cpu", "rv32", memory="least", input="overwritten")
    found = module.verify(inputs_of(model, 1))
    assert found.difference is None and found.stray is None


def test_an_export_keeps_its_input_in_the_arena(tmp_path: object) -> None:
    model = chained_network(3)
    module = htvm.build(model, "generic.cpu", "host", memory="least", input="overwritten")
    module.export(f"{tmp_path}/export")
    opened = htvm.open(f"{tmp_path}/export", trust=True)
    inputs = inputs_of(model, 1)
    np.testing.assert_array_equal(opened.run(inputs).outputs[0], module.run(inputs).outputs[0])


@pytest.mark.slow
def test_an_output_that_overwrites_the_input_too_early_is_found() -> None:
    found, seed = 0, 0
    while found < 10:
        seed += 1
        mutants = Mutants(seed, "overwritten")
        for chain in chains_of(mutants.network):
            if chain.units[0] > 0 or not chain.below:
                continue
            wrong = mutants.early(chain)
            if wrong is None:
                continue
            try:
                outputs = mutants.outputs(wrong)
            except SimulationError as error:
                assert "-18" in str(error)
                found += 1
            else:  # the input was read by then: no mutant
                right = mutants.outputs(mutants.compiled.program)
                np.testing.assert_array_equal(outputs[0], right[0])


@pytest.mark.slow
def test_a_camera_network_takes_little_more_than_its_image() -> None:
    options = BuildOptions(memory=29_500, input="overwritten")
    assert Compiled(zoo.build("mobilenet_v1"), "cortex_m4", options).program.plan.peak <= 29_500


def test_numbers_of_numpy_are_limits() -> None:
    assert BuildOptions(memory=np.int64(4096)) == BuildOptions(memory=4096)  # type: ignore[arg-type]


def test_what_is_no_way_to_hand_over_inputs_is_refused() -> None:
    with pytest.raises(TargetError, match="kept or overwritten or streamed"):
        BuildOptions(input="lost")  # type: ignore[arg-type]
    with pytest.raises(TargetError, match="option 'input'"):
        Compiled(chained_network(3), "diana", BuildOptions(input="streamed"))


def test_an_input_that_keeps_its_contents_is_refused() -> None:
    model = replace(chained_network(3), state=("x",))
    with pytest.raises(TargetError, match="keeps its contents"):
        assert Compiled(model, "generic.cpu", BuildOptions(input="overwritten")).program


def test_an_input_that_nothing_reads_is_refused() -> None:
    graph = GraphBuilder([("x", TensorType((1, 8, 8, 4))), ("z", TensorType((1, 8, 8, 16)))])
    graph.apply(MaxPool((2, 2), (2, 2)), ("x",), "pool")
    model = htvm.load(graph.graph(["pool"]).module, name="unread")
    with pytest.raises(TargetError, match=r"'z' \(1, 8, 8, 16\) is read by no .* 1,024 B larger"):
        assert Compiled(model, "generic.cpu", BuildOptions(input="overwritten")).program
    kept = Compiled(model, "generic.cpu", BuildOptions(input="kept")).program
    assert [info.name for info in kept.inputs] == ["x", "z"]


@pytest.mark.parametrize("target", ["diana", "snitch_ita", "siracusa"])
def test_inputs_of_accelerators_lie_in_the_arena_too(target: str) -> None:
    model = zoo.digits()
    module = htvm.build(model, target, "host", input="overwritten")
    (_,) = module.compiled.program.overwritten
    given = seeded_inputs(model.inputs)
    for found, wanted in zip(module.run(given).outputs, module.reference(given), strict=True):
        np.testing.assert_array_equal(found, wanted)
