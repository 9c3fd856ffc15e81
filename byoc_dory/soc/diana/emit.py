"""C for layers on DIANA's cores: nested loops over tiles, around the drivers' calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from byoc_dory.definition import Definition, Slot, slot
from byoc_dory.emit.staged import Section
from byoc_dory.emit.text import Expr, add, comment, part_name, rendered
from byoc_dory.emit.tile_text import TileWriter
from byoc_dory.layers import Layer, Weighted
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.region import Constant, Kernel
from byoc_dory.soc.base import Soc
from byoc_dory.soc.diana.core_programs import (
    analog_loop,
    analog_program,
    digital_loop,
    digital_program,
    tile_weight_bytes,
    unroll_of,
)
from byoc_dory.soc.diana.cores import AnalogCore, DigitalCore
from byoc_dory.soc.diana.cost import costs_of, split_cycles
from byoc_dory.soc.diana.packing import pack_analog_weights, pack_digital_weights, tile_bytes
from byoc_dory.soc.diana.program import MapLoop
from byoc_dory.tileloop.axes import TileAxis
from byoc_dory.tileloop.checks import check, check_places
from byoc_dory.tileloop.cycles import predicted_cycles
from byoc_dory.tileloop.pipeline import Block
from byoc_dory.tileloop.program import Operand, TileProgram
from byoc_dory.tileloop.values import Own, Value

# Names of the padding before a tile's first row and column, for the comment of a table.
_BEFORE = {"y": "above", "x": "to the left"}
_PLACES = {"in": "L1_IN", "in0": "L1_A", "in1": "L1_B", "out": "L1_OUT"}


class MapWriter(TileWriter):
    """Writes values of a program as C.

    If tiles alternate between two buffers, the loop counts them (``tiles``, ``in_buffer``), because
    nested loops have no tile number.
    """

    def __init__(self, program: TileProgram) -> None:
        super().__init__(program, suffix="")

    def place(self, operand: Operand) -> Expr:
        """Return the byte offset in L1 of a tile of an operand, or of the result."""
        name = slot(_PLACES[operand.name])
        if operand.resident:
            return add(name, self.value(operand.inside))
        if operand is self.program.result:
            return f"{name} + tiles % 2 * OUT_TILE" if self.program.pipelined else name
        # An input that is loaded only once has one buffer.
        return f"{name} + in_buffer" if self.program.pipelined and self.around(operand) else name

    def around(self, operand: Operand) -> tuple[TileAxis, ...]:
        """Return the loops around the transfer of an operand."""
        axes = self.program.axes[: self.program.depth(operand)]
        return tuple(axis for axis in axes if axis.count > 1)

    def block(self, block: Block[Value]) -> dict[str, Expr]:
        """The fields of the driver's descriptor of a block; of a run, all except the strides."""
        values = {name: value for name, value in vars(block).items() if name != "by_rows"}
        fields = {name: self.value(value) for name, value in values.items()}
        if block == Block.run(block.bytes):
            return {name: fields[name] for name in ("channels", "rows", "bytes")}
        return fields


def map_kernel(
    loop: MapLoop,
    program: TileProgram,
    writer: MapWriter,
    descriptor: Mapping[str, Expr],
    weights: Constant | None,
    weight_bytes: int,
    cycles: int,
    accelerator: str,
    symbol: str,
    section: Section = "whole",
) -> Kernel:
    """Return the function that executes a layer tile by tile, or that starts or completes it.

    Its arguments are the tensors in L2; tensors that stay in L1 are not arguments.

    Args:
        loop, program: the loop and its tile program.
        writer: writer of the program's values.
        descriptor: fields of the driver's descriptor of a tile.
        weights: packed weights, or ``None``.
        weight_bytes: bytes of the weights of a full channel tile.
        cycles: predicted cycles.
        accelerator: name of the core.
        symbol: C name of the function.
        section: which part of a layer in one tile it executes.

    Raises:
        TileProgramError: the program contradicts itself, or tensors overlap in L1.
    """
    check(program)
    check_places(program)
    layer, plan, result = loop.layer, loop.plan, program.result
    loaded = program.loaded if section != "finish" else ()
    stored = not result.resident and section != "start"
    arguments = [f"const int8_t *{operand.name}" for operand in loaded]
    if stored:
        arguments.append("int8_t *out")
    if section == "finish" and not program.compute.several:
        weights = None  # only the start reads them
    tile_is_fixed = all(map(_is_constant, descriptor.values()))
    body = rendered(
        "byoc_dory.soc.diana",
        "layer.c.jinja",
        maps=loop,
        section=section,
        program=program,
        solution=plan.solution,
        weights=weights and slot("weights"),
        weight_bytes=weight_bytes,
        descriptor=descriptor,
        tile_is_fixed=tile_is_fixed,
        struct=program.compute.struct,
        driver=program.compute.function,
        **_values(program, writer),
    )
    slots = _slots(program, weights, tile_is_fixed)
    definition = Definition(
        layer.op,
        (comment(layer.name),),
        tuple(_comment_lines(loop, program, cycles)),
        "int32_t",
        tuple(arguments),
        body,
        tuple(each for each in slots if section == "whole" or slot(each.name) in body),
    )
    inputs = zip(layer.inputs, program.operands, strict=True)
    return Kernel(
        symbol=symbol,
        layer_name=layer.whole_name,
        kind="start" if section == "start" else "layer",
        source=definition.text(symbol),
        prototype=f"{definition.prototype(symbol)};",
        inputs=tuple(tensor.stored.name for tensor, operand in inputs if operand in loaded),
        outputs=(layer.output.stored.name,) if stored else (),
        constants=() if weights is None else (weights,),
        layer=layer,
        plan=plan,
        program=program,
        predicted_cycles=cycles,
        accelerator=accelerator,
        definition=definition,
    )


def _comment_lines(loop: MapLoop, program: TileProgram, cycles: int) -> Iterator[str]:
    """Yield the lines of the comment before the function."""
    layer, solution = loop.layer, loop.plan.solution
    yield f"{layer.op} {comment(layer.shape_text)}"
    two = "2 x " if program.pipelined else ""
    yield (
        f"tile {loop.tile} ({program.tiles} in all); "
        f"L1: {two}input {solution.l1_in} B, output {solution.l1_out} B"
    )
    resident = [operand.resident for operand in program.operands]
    if any(resident):
        which = "first" if resident[0] else "second"
        operands = f"the {which} operand" if len(resident) > 1 else "the input"
        both = len(resident) > 1 and all(resident)
        yield f"already in L1: {'both operands' if both else operands}"
    if program.result.resident:
        yield "stays in L1: the output"
    if solution.l1_weights:
        yield f"weight memory: {solution.l1_weights} B"
    yield f"predicted: {cycles} cycles"


def _slots(program: TileProgram, weights: Constant | None, fixed: bool) -> Iterator[Slot]:
    """Yield the values of the function that belong to its layer.

    ``fixed``: the driver's descriptor is static, so that places and numbers must be constants.
    """
    if weights is not None:
        yield Slot("weights", f"const {weights.data.dtype.name}_t *", weights.name)
    for operand in (*program.operands, program.result):
        yield Slot(_PLACES[operand.name], "uint32_t", str(operand.l1), fixed)
    own = [value for value in program.compute.fields.values() if isinstance(value, Own)]
    for value in own:
        yield Slot(value.name, "int32_t", str(value.value), fixed)


def _values(program: TileProgram, writer: MapWriter) -> dict[str, Any]:
    """Return the program's values for the template: loops, places, transfers, tables."""
    first = program.operands[0]
    outer = writer.around(first)
    inner = tuple(axis for axis in program.axes if axis.count > 1 and axis not in outer)
    load, store = writer.block(first.block), writer.block(program.result.block)
    weight_offset = program.compute.fields.get("weight_offset", 0)
    return {
        "outer": outer,
        "inner": inner,
        "loaded": [(operand.name, writer.place(operand)) for operand in program.loaded],
        "load": load,
        "store": store,
        "load_is_fixed": all(map(_is_constant, load.values())),
        "store_is_fixed": all(map(_is_constant, store.values())),
        "load_offset": writer.value(first.offset),
        "store_offset": writer.value(program.result.offset),
        "weight_offset": writer.entry(weight_offset),
        "tables": [(axis, _BEFORE[axis.name]) for axis in writer.tables],
    }


def _is_constant(value: Expr) -> bool:
    """Whether an expression consists of numbers, names of constants and slots."""
    name = r"([A-Z0-9_]+|\$\{\w+\})"
    return re.fullmatch(rf"-?{name}( [|+] {name})*", str(value)) is not None


@dataclass(frozen=True)
class DianaEmitter:
    """The emitter of the digital core (see `byoc_dory.emit.Emitter`)."""

    core: DigitalCore
    soc: Soc
    headers: tuple[str, ...] = ("diana_driver.h",)

    def start(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """Return the function that starts ``layer``, which the one of `layer` waits for."""
        return self._kernel(layer, plan, options, part_name(symbol, "start"), "start")

    def layer(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """Return the function that runs ``layer`` tile by tile, or completes it.

        Its arguments are the tensors in L2; tensors that stay in L1 are not arguments.
        """
        return self._kernel(layer, plan, options, symbol, "finish" if plan.started else "whole")

    def _kernel(
        self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str, section: Section
    ) -> Kernel:
        core = self.core.with_options(options)
        loop = digital_loop(core, layer, plan, options)
        program = digital_program(core, loop)
        costs = costs_of(self.soc, core, loop.published)
        cycles = predicted_cycles(program, costs)
        if plan.hidden is not None:
            cycles = split_cycles(core, program, costs, plan.hidden)[section == "finish"]
        weights, weight_bytes = None, 0
        if isinstance(layer, Weighted):
            packed = pack_digital_weights(core, layer, plan.solution.tile.k)
            weight_bytes = tile_weight_bytes(core, loop, loop.tile.k)
            weights = Constant(
                part_name(symbol, "weights"), packed, f"weights and biases of {layer.name}"
            )
        writer = MapWriter(program)
        descriptor = _digital_descriptor(loop, program, writer)
        return map_kernel(
            loop, program, writer, descriptor, weights, weight_bytes, cycles, core.name, symbol,
            section,
        )  # fmt: skip


def _digital_descriptor(loop: MapLoop, program: TileProgram, writer: MapWriter) -> dict[str, Expr]:
    """Return the fields of the driver's descriptor of a tile, in order; weights are an argument."""
    fields = writer.fields(program.compute.fields)
    fields.pop("weight_offset", None)
    places = {name: fields.pop(name) for name in list(fields) if name.startswith("l1_")}
    return {
        **fields,
        "relu": int(loop.layer.relu),
        **{name.removeprefix("l1_"): place for name, place in places.items()},
    }


@dataclass(frozen=True)
class AnalogEmitter:
    """The emitter of the analog core (see `byoc_dory.emit.Emitter`)."""

    core: AnalogCore
    soc: Soc
    headers: tuple[str, ...] = ("diana_driver.h", "diana_analog_driver.h")

    def layer(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """Return the function that runs ``layer`` tile by tile.

        Its arguments are the tensors in L2; tensors that stay in L1 are not arguments.
        """
        core = self.core.with_options(options)
        loop = analog_loop(core, layer, plan, options)
        program = analog_program(core, loop)
        unroll = unroll_of(core, layer, loop.tile.k)
        packed = pack_analog_weights(core, layer, loop.tile.k, unroll)
        weights = Constant(
            part_name(symbol, "weights"), packed, f"array images and factors of {layer.name}"
        )
        cycles = predicted_cycles(program, costs_of(self.soc, core, loop.published))
        writer = MapWriter(program)
        descriptor = _analog_descriptor(core, loop, program, writer)
        weight_bytes = tile_bytes(core, layer, loop.tile.k, unroll)
        return map_kernel(
            loop, program, writer, descriptor, weights, weight_bytes, cycles, core.name, symbol
        )


def _analog_descriptor(
    core: AnalogCore, loop: MapLoop, program: TileProgram, writer: MapWriter
) -> dict[str, Expr]:
    """Return the fields of the driver's descriptor of a tile, in order; weights are an argument."""
    layer, fields = loop.layer, writer.fields(program.compute.fields)
    unroll, c_pass = fields["unroll"], fields["c_pass"]
    several = c_pass != layer.C
    values = {name: fields[name] for name in _FIELDS}
    if loop.dense:
        # A vector is a map with one position.
        values |= {"iy": 1, "ix": 1}
    values |= {
        "clip": _clip(layer.clip),
        "in": fields["l1_in"],
        "out": fields["l1_out"],
        "mode": f"{unroll} | DIANA_ANALOG_VECTOR" if loop.dense else unroll,
    }
    if program.compute.several:
        values["c_pass"] = c_pass
    if several:
        assert isinstance(unroll, int) and isinstance(c_pass, int)
        rows = c_pass * layer.fy * (layer.fx + unroll - 1)
        sizes = tuple(core.image_bytes(rows, unroll * span.out_size) for span in loop.k.spans)
        values |= {"partial": fields["l1_sums"], "pass_bytes": writer.entry(loop.k.pick(sizes))}
    return values


_FIELDS = (
    "k", "c", "iy", "ix", "oy", "ox", "fy", "fx", "stride", "pad_top", "pad_left", "gain", "shift",
)  # fmt: skip


def _clip(clip: tuple[int, int]) -> Expr:
    low, high = clip
    flags = ["DIANA_ANALOG_CLIP_RELU"] if low == 0 else []
    if high < 127:
        flags.append("DIANA_ANALOG_CLIP_SHORT")
    return " | ".join(flags) or 0
