"""How many bytes each step moves out of L2 and into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.soc.diana.digital_core import DigitalCore
from byoc_dory.soc.diana.schedule import Schedule
from byoc_dory.soc.diana.triggers import AnalogTrigger, ConvTrigger
from byoc_dory.steps import Load, Store
from htvm.firmware.sizes import tensor_bytes

if TYPE_CHECKING:
    from byoc_dory.region import Kernel
    from byoc_dory.soc.base import Soc
    from htvm.aot.program import Program, Step

__all__ = ["Traffic", "traffic_of"]


@dataclass(frozen=True)
class Traffic:
    """Bytes that a step moves between L2 and the rest.

    Attributes:
        read, written: activations; None where that is not known.
        weights: weights, biases and tables, as often as they are read.
    """

    read: int | None = None
    written: int | None = None
    weights: int | None = None


def traffic_of(program: Program, kernels: Mapping[str, Kernel], soc: Soc) -> list[Traffic]:
    """Return what each step of a program moves.

    A layer whose schedule is known moves its tiles, halos included; any other step is charged
    with the sizes of the tensors in L2 that it is given.

    Args:
        program: the steps.
        kernels: what the steps of regions were made from, by symbol.
        soc: what the program is for.
    """
    sizes = {("buffer", buffer.name): buffer.bytes for buffer in program.buffers}
    sizes |= {("constant", entry.name): int(entry.data.nbytes) for entry in program.constants}
    for kind, tensors in (("input", program.inputs), ("output", program.outputs)):
        sizes |= {(kind, f"{kind}_{i}"): tensor_bytes((t,)) for i, t in enumerate(tensors)}
    lives = {buffer.name: (buffer.first, buffer.last) for buffer in program.buffers}
    return [
        _of_layer(kernel, schedule, soc)
        if (kernel := kernels.get(step.symbol)) is not None
        and isinstance(schedule := kernel.schedule, Schedule)
        else _of_operands(step, index, kernel, sizes, lives)
        for index, step in enumerate(program.steps)
    ]


def _of_layer(kernel: Kernel, schedule: Schedule, soc: Soc) -> Traffic:
    """Bytes of the DMA's transfers, and of the weights that come with every trigger."""
    core = soc.accelerator(kernel.accelerator)
    places = len(schedule.y_tiles) * len(schedule.x_tiles)
    read = written = channels = 0
    slices = 1
    for loads, trigger, store in schedule.work():
        read += sum(_moved(load) for load in loads)
        written += 0 if store is None else _moved(store)
        if isinstance(trigger, ConvTrigger) and trigger.depthwise:
            channels += trigger.k
        elif isinstance(trigger, AnalogTrigger) and trigger.vector:
            slices = max(slices, -(-trigger.k // trigger.slice))
    if channels and isinstance(core, DigitalCore):
        # A trigger for each channel, with a block of weights that channels share.
        weights = channels * core.conv_weight_bytes(1, 1, schedule.fy, schedule.fx)
    else:
        weights = places * slices * _constant_bytes(kernel)
    return Traffic(read, written, weights)


def _moved(transfer: Load | Store) -> int:
    commands, size = transfer.block.commands()
    return commands * size


def _constant_bytes(kernel: Kernel) -> int:
    return sum(int(constant.data.nbytes) for constant in kernel.constants)


def _of_operands(
    step: Step,
    index: int,
    kernel: Kernel | None,
    sizes: Mapping[tuple[str, str], int],
    lives: Mapping[str, tuple[int, int]],
) -> Traffic:
    """Sizes of the operands; the step that touches a buffer of the arena first writes it."""
    read = written = 0
    weights = 0 if kernel is None else _constant_bytes(kernel)
    for operand in step.args:
        size = sizes[operand.kind, operand.name]
        first, last = lives.get(operand.name, (index, index + 1))
        if operand.kind == "constant":
            weights += size
        elif operand.kind == "input" or (operand.kind == "buffer" and first < index):
            read += size
        elif operand.kind == "output" or first < last:  # else it is a workspace
            written += size
    return Traffic(read, written, weights)
