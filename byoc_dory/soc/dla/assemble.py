"""The command stream of a region: loads, computations and stores of each tile, in order.

Integers only, like `memory`; the late assembler writes the same words on a device.  A register is
written only when its value changes; before the first layer of a region all values are unknown.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from byoc_dory.soc.dla.design import Design
from byoc_dory.soc.dla.isa import BIAS, BY_NAME, NUMBER, REQUANT, SET, pair
from byoc_dory.soc.dla.memory import LayerMemory, MemoryPlan
from byoc_dory.soc.dla.region_file import LayerEntry, RegionFile
from byoc_dory.soc.dla.tiles import input_rows
from byoc_dory.soc.parts import round_up

SLOT_WEIGHTS = 0
SLOT_RESULT = 3


def slot_of(operand: int) -> int:
    """Return the slot of a layer's operand."""
    return 1 + operand


@dataclass(frozen=True)
class Stream:
    """A command stream.

    Attributes:
        words: 32-bit words.
        starts: index of the first word of each layer, and the number of words at the end.
        written: number of register writes in it.
        unchanged: number of register writes left out because the value was there already.
    """

    words: array[int]
    starts: tuple[int, ...]
    written: int
    unchanged: int

    def layer(self, number: int) -> array[int]:
        """Return the words of a layer, which need the registers that the layers before it wrote."""
        return self.words[self.starts[number] : self.starts[number + 1]]


@dataclass
class _Writer:
    words: array[int] = field(default_factory=lambda: array("I"))
    held: dict[str, int] = field(default_factory=dict[str, int])
    written: int = 0
    unchanged: int = 0

    def put(self, name: str, flags: int, values: dict[str, int]) -> None:
        """Write the registers that differ, in the table's order, then the instruction.

        A register that the instruction reads, but for which there is no value, does not matter.
        """
        instruction = BY_NAME[name]
        for register in instruction.registers(flags):
            value = values.get(register)
            if value is None:
                continue
            if self.held.get(register) == value:
                self.unchanged += 1
                continue
            self.held[register] = value
            self.written += 1
            self.words.append(SET << 24 | NUMBER[register])
            self.words.append(value & 0xFFFFFFFF)
        self.words.append(instruction.opcode << 24 | flags)


def assemble(region: RegionFile, design: Design, plan: MemoryPlan) -> Stream:
    """Return the command stream of a region under a memory plan."""
    writer = _Writer()
    starts = []
    for layer, memory in zip(region.layers, plan.layers, strict=True):
        starts.append(len(writer.words))
        _Layer(region, design, layer, memory, writer).write()
    starts.append(len(writer.words))
    return Stream(writer.words, tuple(starts), writer.written, writer.unchanged)


@dataclass(frozen=True)
class _Layer:
    region: RegionFile
    design: Design
    layer: LayerEntry
    memory: LayerMemory
    writer: _Writer

    def write(self) -> None:
        """Write all tiles: bands of rows outside, output channels inside."""
        result, tile = self.region.result(self.layer), self.memory.tile
        for start in range(0, result.rows, tile.y):
            rows = min(tile.y, result.rows - start)
            if self.layer.op in ("conv", "dense"):
                self._load_band(start, rows, 0, self.region.source(self.layer).channels)
            for first in range(0, result.channels, tile.k):
                channels = min(tile.k, result.channels - first)
                if self.layer.op == "add":
                    self._add(start, rows, first, channels)
                else:
                    if self.layer.op == "depthwise":
                        self._load_band(start, rows, first, channels)
                    if start == 0 or tile.k < result.channels:
                        self._load_weights(first, channels)
                    self._compute(start, rows, first, channels)
                if not self.memory.stays:
                    self._move("OP_DMA_WRITE", SLOT_RESULT, start, rows, first, channels)

    # ------------------------------------------------------------------ transfers

    def _run(self, slot: int, offset: int, local: int, size: int) -> None:
        """Load ``size`` bytes in a row."""
        values = {"SLOT": slot, "OFFSET": offset, "LOCAL": local, "ROWS": 1, "BYTES": size}
        self.writer.put("OP_DMA_READ", 0, values)

    def _load_band(self, start: int, rows: int, first: int, channels: int) -> None:
        """Load some channels of the input rows that output rows from ``start`` on read."""
        source = self.region.source(self.layer)
        top, last = input_rows(self.region, self.layer, start, rows)
        if self.memory.resident[0] or last <= top:
            return
        offset, pixels = top * source.columns * source.channels, (last - top) * source.columns
        if channels == source.channels:
            self._run(slot_of(0), offset, self.memory.operands[0], pixels * channels)
            return
        values = {"SLOT": slot_of(0), "OFFSET": offset + first, "LOCAL": self.memory.operands[0]}
        values |= {"ROWS": pixels, "BYTES": channels}
        values |= {"FAR_PITCH": source.channels, "LOCAL_PITCH": channels}
        self.writer.put("OP_DMA_READ", 0, values)

    def _load_weights(self, first: int, channels: int) -> None:
        region, layer = self.region, self.layer
        each = region.channel_bytes(layer)
        if channels == region.result(layer).channels:
            self._run(SLOT_WEIGHTS, 0, self.memory.weights, region.block_bytes(layer))
            return
        self._run(SLOT_WEIGHTS, first * each, self.memory.weights, channels * each)
        biases = region.bias_offset(layer) + 4 * first
        self._run(SLOT_WEIGHTS, biases, self._biases(channels), 4 * channels)

    def _biases(self, channels: int) -> int:
        return self.memory.weights + round_up(channels * self.region.channel_bytes(self.layer), 4)

    def _move(self, name: str, slot: int, start: int, rows: int, first: int, channels: int) -> None:
        """Move a tile of a tensor with the result's sizes."""
        result = self.region.result(self.layer)
        local = self.memory.result if slot == SLOT_RESULT else self.memory.operands[slot - 1]
        pixels = rows * result.columns
        values = {
            "SLOT": slot,
            "OFFSET": start * result.columns * result.channels + first,
            "LOCAL": local,
        }
        if channels == result.channels:
            values |= {"ROWS": 1, "BYTES": pixels * channels}
        else:
            values |= {"ROWS": pixels, "BYTES": channels}
            values |= {"FAR_PITCH": result.channels, "LOCAL_PITCH": channels}
        self.writer.put(name, 0, values)

    # ------------------------------------------------------------------ computations

    def _clip(self) -> int:
        return pair(self.layer.clip[0], self.layer.clip[1])

    def _result(self, start: int, first: int, channels: int) -> dict[str, int]:
        """Return the registers of a tile of int8 results."""
        result = self.region.result(self.layer)
        if not self.memory.stays:
            pixel = channels
            place = self.memory.result
        else:
            pixel = result.channels
            place = self.memory.result + start * result.columns * pixel + first
        return {"OUT": place, "OUT_PIXEL": pixel, "OUT_ROW": result.columns * pixel}

    def _add(self, start: int, rows: int, first: int, channels: int) -> None:
        result = self.region.result(self.layer)
        values = {"OUT_CHANNELS": channels, "OUT_HEIGHT": rows, "OUT_WIDTH": result.columns}
        values |= {"SHIFT": self.layer.shift, "CLIP": self._clip()}
        for number, name in enumerate(("IN0", "IN1")):
            place, pixel = self.memory.operands[number], channels
            if self.memory.resident[number]:
                pixel = result.channels
                place += start * result.columns * pixel + first
            else:
                self._move("OP_DMA_READ", slot_of(number), start, rows, first, channels)
            prefix = "IN" if number == 0 else "IN1"
            values[name] = place
            values[f"{prefix}_PIXEL"] = pixel
            values[f"{prefix}_ROW"] = result.columns * pixel
        self.writer.put("OP_E_ADD", 0, values | self._result(start, first, channels))

    def _compute(self, start: int, rows: int, first: int, channels: int) -> None:
        """Write the convolution of a tile and, unless it is fused, its requantization."""
        region, layer, memory = self.region, self.layer, self.memory
        source, result = region.source(layer), region.result(layer)
        top, last = input_rows(region, layer, start, rows)
        depthwise = layer.op == "depthwise"
        pixel = channels if depthwise and not memory.resident[0] else source.channels
        row = source.columns * pixel
        place = memory.operands[0]
        if memory.resident[0]:
            place += top * row + (first if depthwise else 0)
        values = {
            "IN0": place,
            "WEIGHTS": memory.weights,
            "BIAS": self._biases(channels),
            "CHANNELS": source.channels,
            "IN_HEIGHT": max(0, last - top),
            "IN_WIDTH": source.columns,
            "IN_PIXEL": pixel,
            "IN_ROW": row,
            "OUT_CHANNELS": channels,
            "OUT_HEIGHT": rows,
            "OUT_WIDTH": result.columns,
            "KERNEL": pair(*layer.kernel),
            "STRIDE": pair(*layer.stride),
            "PAD": pair(max(0, layer.pad[0] - start * layer.stride[0]), layer.pad[1]),
            "SHIFT": layer.shift,
            "CLIP": self._clip(),
        }
        out = self._result(start, first, channels)
        if self.design.fused:
            self._convolve(values | out, channels, 1)
            return
        sums = {"OUT": memory.sums, "OUT_PIXEL": 4 * channels}
        sums["OUT_ROW"] = result.columns * sums["OUT_PIXEL"]
        self._convolve(values | sums, channels, 4)
        values |= {"IN0": memory.sums, "IN_PIXEL": sums["OUT_PIXEL"], "IN_ROW": sums["OUT_ROW"]}
        self.writer.put("OP_E32_SHR", REQUANT.mask, values | out)

    def _convolve(self, values: dict[str, int], channels: int, size: int) -> None:
        """Write what sums a tile, whose results take ``size`` bytes."""
        name, flags = self._instruction()
        if self.layer.op != "depthwise" or not self.design.emulated:
            self.writer.put(name, flags, values)
            return
        for channel in range(channels):
            one = {
                "IN0": values["IN0"] + channel,
                "WEIGHTS": values["WEIGHTS"] + channel * self.region.channel_bytes(self.layer),
                "BIAS": values["BIAS"] + 4 * channel,
                "OUT": values["OUT"] + size * channel,
            }
            self.writer.put(name, flags, values | one | {"CHANNELS": 1, "OUT_CHANNELS": 1})

    def _instruction(self) -> tuple[str, int]:
        fused, op = self.design.fused, self.layer.op
        if op == "depthwise" and not self.design.emulated:
            return "OP_DEPTH_CONV", BIAS.mask | (REQUANT.mask if fused else 0)
        if not fused:
            return "OP_MAT_MUL" if op == "dense" else "OP_CONV", BIAS.mask
        if self.layer.clip[0] == 0:
            return "OP_CONV_RELU", BIAS.mask
        return "OP_CONV", BIAS.mask | REQUANT.mask
