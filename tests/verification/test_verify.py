"""A deliberate error is found at the right layer, tile, element and line of C."""

from __future__ import annotations

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from byoc_dory.region import Kernel
from byoc_dory.tileloop.program import TileProgram
from htvm.aot.entry import model_sources
from htvm.compiled import Compiled
from htvm.firmware.build import build_rv32
from htvm.inputs import seeded_inputs
from htvm.tools.verification.types import Difference, SourceLine
from tests.verification.probe import broken, compiled, fault, probe, verified

TILED = {"l1_budget": 6000}


@pytest.fixture(scope="module")
def tiled() -> Compiled:
    return compiled(probe(), **TILED)


@pytest.fixture(scope="module")
def averaged() -> Compiled:
    """As published, where the average is a kernel of the CPU's own."""
    return compiled(probe(), schedule="published", **TILED)


def layer(work: Compiled, name: str) -> tuple[Kernel, TileProgram]:
    kernels = [kernel for code in work.regions.values() for kernel in code.kernels]
    kernel = next(k for k in kernels if k.layer is not None and k.layer.name == name)
    assert kernel.program is not None
    return kernel, kernel.program


def line_with(work: Compiled, file: str, text: str) -> int:
    """The number of the only line that holds a text."""
    lines = model_sources(work.program)[file].splitlines()
    numbers = [number for number, line in enumerate(lines, 1) if text in line]
    assert len(numbers) == 1, numbers
    return numbers[0]


def found(work: Compiled, *arguments: object) -> Difference:
    difference = verified(work, *arguments).difference  # type: ignore[arg-type]
    assert difference is not None
    return difference


def where(difference: Difference) -> SourceLine:
    assert difference.where is not None
    return difference.where


# --- what is right ----------------------------------------------------------------------------


def test_nothing_differs_and_every_step_is_compared(tiled: Compiled) -> None:
    result = verified(tiled)
    assert result.equal and result.agrees and not result.golden
    assert [step.layer for step in result.steps] == [step.layer for step in tiled.program.steps]
    assert all(step.compared for step in result.steps)
    assert str(result).splitlines()[0] == "probe on diana: equal to the reference"


def test_the_maps_of_onnx_are_compared_too() -> None:
    result = verified(compiled(probe(layout="NCHW"), **TILED))
    assert result.equal and all(step.compared for step in result.steps)


def test_debug_sections_do_not_change_the_code(tiled: Compiled) -> None:
    def code(debug: bool) -> dict[str, bytes]:
        path = build_rv32(tiled.program, tiled.target.soc, debug=debug).path
        with path.open("rb") as stream:
            elf = ELFFile(stream)
            sections = [s for s in elf.iter_sections() if s["sh_flags"] & 2]
            return {section.name: section.data() for section in sections}

    assert ".text" in code(True)
    assert code(True) == code(False)


# --- a wrong byte out of a core ---------------------------------------------------------------


def expected_element(program: TileProgram, number: int, byte: int) -> tuple[int, int, int]:
    """Channel, row and column of a byte of a tile's result, as the core lays it down."""
    tile = list(program.order())[number]
    k, y, x = (tile.span(axis) for axis in "kyx")
    pitch = -(-x.out_size // 16) * 16
    logical = byte ^ 3
    channel, rest = divmod(logical, y.out_size * pitch)
    row, column = divmod(rest, pitch)
    assert channel < k.out_size and column < x.out_size, "padding"
    return k.out_start + channel, y.out_start + row, x.out_start + column


@pytest.mark.rotating(1)
@pytest.mark.parametrize("kind", ["overlapped", "published"])
@pytest.mark.parametrize(("tile", "byte"), [(0, 0), (3, 297)])
def test_a_wrong_tile_of_a_convolution(kind: str, tile: int, byte: int) -> None:
    work = compiled(probe(), schedule=kind, **TILED)
    kernel, program = layer(work, "conv2d_0")
    assert tile < program.tiles and program.tiles >= 4
    difference = found(work, fault(tile + 1, byte, 0x10))
    assert (difference.layer, difference.place) == ("conv2d_0", "digital")
    assert difference.tile is not None and difference.tile.number == tile
    assert difference.tile.tiles == program.tiles and difference.tiles_different == 1
    assert difference.axes == ("K", "oy", "ox")
    assert difference.element == expected_element(program, tile, byte)
    assert int(difference.value) ^ int(difference.expected) in (0x10, -0x10)
    assert (difference.different, difference.elements) == (1, 32 * 16 * 20)
    stored, computed = difference.origins
    assert stored.what.startswith("stored by the DMA")
    assert computed.what == f"computed by the digital core (trigger {tile + 1}, conv2d)"
    assert computed.cycle < stored.cycle
    for origin, call in ((stored, "diana_dma_out"), (computed, "diana_digital_conv2d")):
        place = origin.place
        assert place is not None
        assert (place.file, place.function) == ("probe_layers.c", kernel.symbol)
        assert call in place.text
    if kind == "published":
        line = where(difference).line
        lines = model_sources(work.program)["probe_layers.c"].splitlines()
        head = next(
            i for i, text in enumerate(lines, 1) if text.startswith(f"int32_t {kernel.symbol}")
        )
        assert line > head and "diana_dma_out" in lines[line - 1]


@pytest.mark.parametrize(("kind", "channels"), [("overlapped", 16), ("published", 1)])
def test_a_wrong_channel_of_a_depthwise_convolution(kind: str, channels: int) -> None:
    """A tile has a trigger for each block of channels; the second one's result is wrong."""
    work = compiled(probe(), schedule=kind)
    before = layer(work, "conv2d_0")[1].tiles
    program = layer(work, "depthwise_0")[1]
    first = next(program.order())
    k, y = first.span("k"), first.span("y")
    difference = found(work, fault(before + 2, 7 ^ 3, 0x40))
    assert difference.layer == "depthwise_0" and k.out_size > channels and y.out_start == 0
    assert difference.element == (channels, 0, 7)
    assert difference.tile is not None and difference.tile.number == 0


def test_a_result_that_stays_in_l1() -> None:
    work = compiled(probe())
    kernel, program = layer(work, "conv2d_0")
    assert program.result.resident and program.tiles == 1
    difference = found(work, fault(1, 9, 1))
    assert (difference.layer, difference.memory) == ("conv2d_0", "L1")
    assert difference.element == expected_element(program, 0, 9)
    (computed,) = difference.origins
    assert computed.place is not None and computed.place.function == kernel.symbol


def test_a_wrong_byte_out_of_the_analog_core() -> None:
    work = compiled(probe("ternary"), "diana.mixed")
    _, program = layer(work, "conv2d_1")
    assert work.dispatch.placement["conv2d_1"] == "analog"
    first = [name for name, place in work.dispatch.placement.items() if place == "analog"][0]
    difference = found(work, fault(1, 9, 1, analog=True))
    assert (difference.layer, difference.place) == (first, "analog")
    assert difference.element == expected_element(layer(work, first)[1], 0, 9)
    assert difference.origins[-1].what == "computed by the analog core (trigger 1, conv2d)"


def test_no_program_reaches_the_fault(tiled: Compiled) -> None:
    # Padding of a row: nothing reads it, so nothing differs, which shows what a fault is not.
    assert verified(tiled, fault(1, 31 ^ 3, 0x7F)).equal


# --- wrong C ----------------------------------------------------------------------------------


def test_a_broken_kernel_of_the_cpu(averaged: Compiled) -> None:
    statement = "out[i3] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));"
    work = broken(
        averaged,
        "cpu_source",
        lambda text: text.replace(statement, statement[:-1] + " ^ (i3 == 5));".replace(");", ";")),
    )
    difference = found(work)
    assert (difference.layer, difference.place) == ("average_pool_0", "cpu")
    assert difference.element[-1] == 5 and difference.tile is None
    (stored,) = difference.origins
    assert stored.what == "stored by the host"
    place = where(difference)
    assert place.file == "probe_cpu.c" and place.function == "probe_average_pool_0"
    assert place.line == line_with(work, "probe_cpu.c", "i3 == 5")


def test_a_broken_prologue(tiled: Compiled) -> None:
    first = "diana_put_word(q, p[0], p[3], p[6], p[9]);"
    wrong = "diana_put_word(q, p[0], p[3] ^ (c == 1 && y == 7), p[6], p[9]);"
    work = broken(tiled, "layers_source", lambda text: text.replace(first, wrong))
    difference = found(work)
    assert (difference.step, difference.tensor) == (0, "input")
    assert difference.place == "cpu, prologue"
    assert (difference.axes, difference.element) == (("K", "oy", "ox"), (1, 7, 1))
    place = where(difference)
    assert (place.file, place.function) == ("probe_layers.c", "probe_input_to_core")
    assert place.line == line_with(work, "probe_layers.c", "c == 1 && y == 7")


def test_a_kernel_that_destroys_what_it_reads(averaged: Compiled) -> None:
    head = "  int32_t total;\n  for (int32_t i3 = 0"
    work = broken(
        averaged,
        "cpu_source",
        lambda text: text.replace(head, "  ((int8_t *)in0)[481] ^= 1;\n" + head, 1),
    )
    difference = found(work)
    assert (difference.layer, difference.tensor) == ("average_pool_0", "conv2d_1")
    assert difference.overwritten and difference.element == (0, 1, 0, 1)
    assert where(difference).line == line_with(work, "probe_cpu.c", "[481] ^= 1")
    assert "which was right before this step" in str(verified(work))


def test_a_kernel_that_writes_nothing(averaged: Compiled) -> None:
    work = broken(
        averaged,
        "cpu_source",
        lambda text: text.replace(
            "void probe_average_pool_0(", "void probe_average_pool_0(", 1
        ).replace("for (int32_t i3 = 0; i3 < 24; ++i3)", "for (int32_t i3 = 0; i3 < 3; ++i3)"),
    )
    difference = found(work)
    assert difference.layer == "average_pool_0" and difference.element[-1] >= 3
    assert difference.expected != difference.value


def test_the_first_of_two_errors_is_named(averaged: Compiled) -> None:
    statement = "out[i3] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));"
    work = broken(averaged, "cpu_source", lambda text: text.replace(statement, "out[i3] = 1;"))
    result = verified(work, fault(1, 0, 1))
    assert result.difference is not None and result.difference.layer == "conv2d_0"
    wrong = [step.layer for step in result.steps if step.different]
    assert wrong[0] == "conv2d_0" and "average_pool_0" in wrong


# --- the whole way ----------------------------------------------------------------------------


def test_values_are_those_of_the_two_programs(averaged: Compiled) -> None:
    """Against the interpreter of the tests, which shares no code with the reference."""
    from tests.reference.interpreter import interpret

    statement = "out[i3] = ((int8_t)((v1) > (-128) ? (v1) : (-128)));"
    work = broken(averaged, "cpu_source", lambda text: text.replace(statement, "out[i3] = -77;"))
    result = verified(work)
    difference = result.difference
    assert difference is not None
    inputs = seeded_inputs(averaged.source.inputs)
    values = interpret(averaged.retargeted.model.module, inputs).tensors["average_pool_0"]
    assert difference.expected == values.reshape(-1)[difference.element[-1]]
    assert difference.value == -77
    assert difference.different == np.count_nonzero(values != -77)
    apart = [step.largest for step in result.steps if step.tensor == "average_pool_0"]
    assert apart == [int(np.abs(values.astype(int) + 77).max())]


def test_rows_of_channels() -> None:
    """The cluster has another layout than DIANA's cores."""
    from htvm.tools.zoo.drawing import Sketch
    from htvm.tools.zoo.networks import model

    net = Sketch("rows", (3, 8, 8), 0, "8-bit")
    net.conv2d(net.conv2d(net.input, 8, (3, 3)), 8, (3, 3))
    result = verified(compiled(model(net, "NHWC"), "snitch_ita.cluster"))
    assert result.equal and all(step.compared for step in result.steps)
