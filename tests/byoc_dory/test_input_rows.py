"""Inputs that the host converts row by row beside the first layers: results, guards, cycles."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byoc_dory import codegen
from byoc_dory.cost import Cost
from byoc_dory.errors import SimulationError, TileProgramError
from byoc_dory.input_rows import check_input_rows, first_layers_by_rows
from byoc_dory.layers import Layer, Shift, Tensor, conv2d_layer, depthwise_layer
from byoc_dory.options import TilingOptions
from byoc_dory.region import Region
from byoc_dory.soc.diana import borders
from byoc_dory.soc.diana.description import DIANA
from htvm.firmware import host
from htvm.firmware.toolchain import Compiler
from htvm.sim.host import run_host
from tests.byoc_dory.layers import int8, int32, mobilenet
from tests.byoc_dory.program import Case, main_program, make_case, packed
from tests.byoc_dory.test_emit_rv32 import measure

CORE = DIANA.accelerator("digital")


@pytest.fixture
def slow_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Conversions are taken for so long that rows beside the cores pay for small maps, too."""
    monkeypatch.setattr(codegen, "_WORTH_PART", 0)
    cycles = borders._walk_cycles
    monkeypatch.setattr(borders, "_walk_cycles", lambda *given: 20 * cycles(*given))


def region_of(name: str, layers: list[Layer]) -> Region:
    source, result = layers[0].inputs[0], layers[-1].output
    border = Tensor(source.name, source.shape, layout="NHWC")
    return Region(name, tuple(layers), (border,), (replace(result, layout="NHWC"),))


def random_layers(seed: int) -> list[Layer]:
    """Two to four convolutions with kernels, strides and paddings of all kinds."""
    rng = np.random.default_rng([seed, 7])
    columns = int(rng.choice([9, 16, 31, 33, 48]))
    source = Tensor("x", (int(rng.integers(1, 5)), int(rng.integers(20, 44)), columns))
    layers: list[Layer] = []
    for number in range(int(rng.integers(2, 5))):
        size, stride = int(rng.choice([1, 2, 3, 5])), int(rng.integers(1, 3))
        top, left, bottom, right = (int(pad) for pad in rng.integers(0, size, 4))
        common: dict[str, Any] = {
            "stride": (stride, stride),
            "pad": (top, left, bottom, right),
            "requant": Shift(int(rng.integers(5, 9))),
            "clip": (0, 127) if rng.random() < 0.5 else (-128, 127),
        }
        if min(source.shape[1:]) < size:
            break
        name, result = f"layer{number}", f"t{number}"
        if number and rng.random() < 0.4:
            weight = int8(rng, source.shape[0], 1, size, size)
            layer = depthwise_layer(name, source, result, weight, None, **common)
        else:
            k = int(rng.integers(1, 20))
            weight = int8(rng, k, source.shape[0], size, size)
            layer = conv2d_layer(name, source, result, weight, int32(rng, k), **common)
        layers.append(layer)
        source = layer.output
    return layers


def by_rows(case: Case) -> bool:
    return any(kernel.kind == "start" for kernel in case.code.kernels)


def run(cases: list[Case], folder: Path, text: str = "") -> bytes:
    """Execute cases as one program, or another text of it."""
    folder.mkdir(exist_ok=True)
    source = folder / "main.c"
    source.write_text(text or main_program(cases))
    program = host.build([source], [], DIANA, folder / "out", Compiler.zig(), True)
    expected = packed(cases, outputs=True)
    (got,) = run_host(program, [packed(cases, outputs=False)], [len(expected)])
    return got


def check_random(seeds: range, folder: Path, least: int) -> None:
    cases = [
        make_case(region_of(f"r{seed}", random_layers(seed)), TilingOptions(), f"p{seed}", seed)
        for seed in seeds
    ]
    assert sum(map(by_rows, cases)) >= least
    assert run(cases, folder) == packed(cases, outputs=True)


def test_random_layers_in_bands_equal_the_reference(slow_host: None, tmp_path: Path) -> None:
    check_random(range(2), tmp_path, 2)


@pytest.mark.slow
def test_many_random_layers_in_bands_equal_the_reference(slow_host: None, tmp_path: Path) -> None:
    check_random(range(2, 40), tmp_path, 33)


def small(seed: int) -> Case:
    case = make_case(region_of("small", random_layers(seed)), TilingOptions(), "p", 0)
    assert by_rows(case)
    return case


def is_found(case: Case, text: str, folder: Path) -> bool:
    """Whether the device models complain of a changed program, or its results are wrong."""
    try:
        return run([case], folder, text) != packed([case], outputs=True)
    except SimulationError:
        return True


WAIT = re.compile(
    r"code = diana_(?:digital_conv2d_finish|digital_depthwise_blocks_finish|dma_wait)"
)


def mutants(text: str) -> list[str]:
    """The program without each wait, and with each conversion after the layer that reads its rows.

    The wait for a result's transfer to L2 matters for the last one only: the others are over when
    the next band's first operand has arrived, as the DMA takes one after another.
    """
    found = []
    for at in WAIT.finditer(text):
        before, end = text[: at.start()], text.index(";", at.start())
        stored = before.rfind("diana_dma_out_start(") > before.rfind("diana_dma_in_start(")
        if "dma_wait" not in at[0] or not stored or "dma_wait" not in text[end:]:
            found.append(f"{before}code = 0{text[end:]}")
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if "code != 0" in line and "_start(b" in line:  # reads the input
            rows = max(each for each in range(number) if "_to_core(" in lines[each])
            order = [*range(rows), *range(rows + 1, number + 1), rows]
            found.append("\n".join([*(lines[each] for each in order), *lines[number + 1 :]]))
    return found


def test_a_missing_wait_is_found(slow_host: None, tmp_path: Path) -> None:
    case = small(6)
    first, *_ = mutants(main_program([case]))
    assert is_found(case, first, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "least"), [(6, 13), (3, 20)])
def test_all_missing_waits_are_found(
    slow_host: None, tmp_path: Path, seed: int, least: int
) -> None:
    case = small(seed)
    found = mutants(main_program([case]))
    assert len(found) >= least
    for number, text in enumerate(found):
        assert is_found(case, text, tmp_path / str(number)), number


def test_rows_that_are_converted_too_late_are_refused(slow_host: None) -> None:
    region = region_of("small", random_layers(6))
    homes = dict.fromkeys([layer.name for layer in region.layers], CORE)
    rows = first_layers_by_rows(region, homes, CORE.layout(DIANA), Cost(DIANA, TilingOptions()))
    assert rows is not None
    check_input_rows(rows.layers, rows.conversions, "small")
    late = {number + 2: each for number, each in rows.conversions.items()}
    with pytest.raises(TileProgramError, match="row 0 of 'x' is read before it is converted"):
        check_input_rows(rows.layers, late, "small")


def test_other_schedules_convert_the_whole_input_first(slow_host: None) -> None:
    for schedule in ("published", "decoupled"):
        options = TilingOptions(schedule=schedule)
        assert not by_rows(make_case(region_of("s", random_layers(6)), options, "p", 0))


def test_the_first_layers_of_mobilenet_run_beside_the_conversion(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    region = region_of("mobilenet", mobilenet()[:4])
    case = make_case(region, TilingOptions(), "p", 0)
    assert by_rows(case)
    taken = measure(case, tmp_path / "rows")
    predicted = sum(kernel.predicted_cycles for kernel, _ in taken)
    cycles = sum(cycles for _, cycles in taken)
    assert predicted == pytest.approx(cycles, rel=0.05)
    monkeypatch.setattr(codegen, "first_layers_by_rows", lambda *_: None)
    whole = measure(make_case(region, TilingOptions(), "p", 0), tmp_path / "whole")
    assert cycles < 0.8 * sum(cycles for _, cycles in whole)
