"""Predicted cycles of DIANA's transfers and triggers.

The model of a trigger is that of `DigitalCore`: a constant, the weights at the width of their port,
and per block of maps, block of columns and output row ``C*fx*fy' + alpha*C*fy' + beta`` cycles,
where fy' counts the filter rows inside the tile.  The model of a pass over an in-memory array is
that of `AnalogCore`.

Under the published schedule, a layer costs the sum of its transfers and triggers.  If the DMA works
in parallel with the core, a tile costs ``max(core, load of the next + store of the previous)``, and
only the first load and the last store are exposed.  While the host fills the DMA's queue with many
commands, it cannot start the second trigger of a tile (depthwise: its second channel); see
`ComputeCost.first`.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from byoc_dory.soc.base import Dma, Soc
from byoc_dory.soc.diana.cores import AnalogCore, DigitalCore
from byoc_dory.soc.diana.program import AddTrigger, AnalogTrigger, ConvTrigger, DenseTrigger
from byoc_dory.tileloop.cycles import ComputeCost, Costs, Moved, predicted_cycles
from byoc_dory.tileloop.pipeline import Block, Trigger
from byoc_dory.tileloop.program import TileProgram

Core: TypeAlias = DigitalCore | AnalogCore


def _blocks(value: int, step: int) -> int:
    return -(-value // step)


def dma_cycles(block: Block[int], dma: Dma) -> int:
    """Return the cycles of a DMA call for ``block``."""
    commands, size = block.commands()
    if block.by_rows:
        rows = block.channels * block.rows
        # A call with one row is not collapsed either: it pays for its command.
        return dma.cycles(block.bytes, rows) + (dma.command_cycles if rows == 1 else 0)
    return dma.cycles(size, commands)


def queued(block: Block[int], dma: Dma) -> Moved:
    """Return the cost of moving ``block`` by commands queued without waiting for each.

    The host's work for a further command is done while the previous one runs.
    """
    commands, size = block.commands()
    cycles = dma.cycles(size, commands) - (commands - 1) * dma.driver_next_cycles
    return Moved(cycles, commands)


def array_cycles(trigger: ConvTrigger, core: DigitalCore) -> int:
    """How long a convolution (of one channel if depthwise) keeps the array busy, in cycles."""
    return _array(trigger, *((1, 1) if trigger.depthwise else (trigger.k, trigger.c)), core)


def _array(trigger: ConvTrigger, k: int, channels: int, core: DigitalCore) -> int:
    """Return the same for ``k`` sums over this many channels."""
    each = channels * (trigger.fx + core.row_cycles)
    total = each * _filter_rows(trigger) + core.output_cycles * trigger.oy
    return _blocks(k, core.lanes) * _blocks(trigger.ox, core.columns) * total


def _filter_rows(trigger: ConvTrigger) -> int:
    """Return the number of filter rows inside the tile, summed over the output rows."""
    total = 0
    for tap in range(trigger.fy):
        # Output row r reads input row r * stride + tap - pad_top.
        before = trigger.pad_top - tap
        first = max(0, _blocks(before, trigger.stride))
        last = min(trigger.oy - 1, (trigger.iy - 1 + before) // trigger.stride)
        total += max(0, last - first + 1)
    return total


def analog_cycles(trigger: AnalogTrigger, core: AnalogCore) -> int:
    """Return the cycles of all passes of a tile over the array, including host code.

    Each slice of a vector takes all passes.  The registers of each trigger except the first are
    written while the previous one runs.
    """
    window = trigger.fy * (trigger.fx + trigger.unroll - 1)
    slices = _blocks(trigger.k, trigger.slice) if trigger.vector else 1
    total = 0
    for first in range(0, trigger.c, trigger.c_pass):
        rows = min(trigger.c_pass, trigger.c - first) * window
        each = core.pass_cycles(rows, trigger.oy, trigger.ox, trigger.unroll)
        total += slices * (each - core.ahead_cycles)
    return total + core.ahead_cycles


def _full_cycles(trigger: ConvTrigger, k: int, channels: int, core: DigitalCore) -> int:
    """Return the cycles of one trigger that computes ``k`` sums over this many channels."""
    weights = core.conv_weight_bytes(k, channels, trigger.fy, trigger.fx)
    fetching = _blocks(weights, core.weight_bytes_per_cycle)
    return core.conv_trigger_cycles + fetching + _array(trigger, k, channels, core)


def trigger_cycles(core: Core, step: Trigger, *, ahead: bool = False) -> int:
    """Return the cycles of one driver call of the core, including host code.

    ``ahead``: whether the registers of each trigger except the first are written while the previous
    one runs.
    """
    if isinstance(step, AnalogTrigger):
        assert isinstance(core, AnalogCore)
        return analog_cycles(step, core)
    assert isinstance(core, DigitalCore)
    width = core.weight_bytes_per_cycle
    if isinstance(step, ConvTrigger):
        if step.channels > 1:
            hidden = (_triggers(step, core) - 1) * core.dense_ahead_cycles if ahead else 0
            total = -hidden
            for channels, count in Counter(step.blocks()).items():
                total += count * _full_cycles(step, channels, channels, core)
            return total
        if step.depthwise:
            weights = core.conv_weight_bytes(1, 1, step.fy, step.fx)
            each = core.depthwise_trigger_cycles - (core.depthwise_ahead_cycles if ahead else 0)
            return step.k * (each + _blocks(weights, width) + array_cycles(step, core))
        return _full_cycles(step, step.k, step.c, core)
    if isinstance(step, DenseTrigger):
        weights = core.dense_weight_bytes(step.c)
        triggers = _blocks(step.k, core.lanes)
        array = _blocks(step.c, core.columns)
        hidden = (triggers - 1) * core.dense_ahead_cycles if ahead else 0
        each = core.dense_trigger_cycles + _blocks(weights, width) + array
        return triggers * each - hidden
    assert isinstance(step, AddTrigger)
    return core.add_trigger_cycles + _blocks(step.elements, core.columns)


def costs_of(soc: Soc, core: Core, published: bool) -> Costs:
    """Return the costs of transfers and triggers, including driver code.

    Host code around the calls is not counted: the generated code needs only a few tens of cycles.

    Args:
        soc: the core's SoC.
        core: the core.
        published: whether the driver waits for each command and each trigger; otherwise commands
            are queued, and registers are written in advance.

    Raises:
        ValueError: the SoC has no DMA.
    """
    dma = soc.dma
    if dma is None:
        raise ValueError(f"SoC '{soc.name}' has no DMA to feed '{core.name}'")

    def compute(trigger: Trigger) -> ComputeCost:
        cycles = trigger_cycles(core, trigger, ahead=not published)
        return ComputeCost(cycles, first=cycles // _triggers(trigger, core))

    def move(block: Block[int]) -> Moved:
        if published:
            return Moved(dma_cycles(block, dma))
        return queued(block, dma)

    return Costs(compute, move, queue=dma.queue_depth)


def split_cycles(
    core: DigitalCore, program: TileProgram, costs: Costs, hidden: int
) -> tuple[int, int]:
    """Return the cycles of starting a convolution in one tile, and of completing it.

    Args:
        core: the core.
        program: its tile program.
        costs: of its transfers and triggers.
        hidden: cycles of the host's other work beside the core.
    """
    (tile,) = program.order()
    moved = sum(costs.move(program.block(each, tile)).cycles for each in program.loaded)
    start = moved + core.conv_driver_cycles
    return start, predicted_cycles(program, costs) - start - hidden


def _triggers(trigger: Trigger, core: Core) -> int:
    """Return how often the core is started for a tile."""
    if isinstance(trigger, AnalogTrigger):
        return _blocks(trigger.c, trigger.c_pass)
    if isinstance(trigger, DenseTrigger) and isinstance(core, DigitalCore):
        return _blocks(trigger.k, core.lanes)
    if isinstance(trigger, ConvTrigger) and trigger.depthwise:
        return len(trigger.blocks())
    return 1
