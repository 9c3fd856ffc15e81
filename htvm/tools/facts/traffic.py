"""Bytes that each step moves to and from L2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from byoc_dory.tileloop.cycles import Traffic
from byoc_dory.tileloop.cycles import traffic_of as traffic_of_tiles
from htvm.firmware.sizes import tensor_bytes

if TYPE_CHECKING:
    from byoc_dory.region import Kernel
    from htvm.aot.program import Program, Step


def traffic_of(program: Program, kernels: Mapping[str, Kernel]) -> list[Traffic]:
    """Return the bytes that each step of a program moves.

    A layer on an accelerator moves its tiles, including halos; any other step is charged the sizes
    of its operands in L2.

    Args:
        program: the program.
        kernels: the kernels of the steps in regions, by symbol.
    """
    sizes = {("buffer", buffer.name): buffer.bytes for buffer in program.buffers}
    sizes |= {("constant", entry.name): int(entry.data.nbytes) for entry in program.constants}
    for kind, tensors in (("input", program.inputs), ("output", program.outputs)):
        sizes |= {(kind, f"{kind}_{i}"): tensor_bytes((t,)) for i, t in enumerate(tensors)}
    lives = {buffer.name: (buffer.first, buffer.last) for buffer in program.buffers}
    found = []
    for index, step in enumerate(program.steps):
        kernel = kernels.get(step.symbol)
        if kernel is not None and kernel.program is not None:
            found.append(traffic_of_tiles(kernel.program))
        else:
            found.append(_of_operands(step, index, kernel, sizes, lives))
    return found


def _constant_bytes(kernel: Kernel) -> int:
    return sum(int(constant.data.nbytes) for constant in kernel.constants)


def _of_operands(
    step: Step,
    index: int,
    kernel: Kernel | None,
    sizes: Mapping[tuple[str, str], int],
    lives: Mapping[str, tuple[int, int]],
) -> Traffic:
    """Return the operands' sizes; the first step that touches a buffer of the arena writes it."""
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
