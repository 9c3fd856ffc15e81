"""Checks of tile programs."""

from __future__ import annotations

from byoc_dory.errors import TargetError
from byoc_dory.tileloop.order import check_order
from byoc_dory.tileloop.pipeline import Block
from byoc_dory.tileloop.program import Operand, TileProgram
from byoc_dory.tileloop.values import Value, axes_of, evaluate, values_of


def check(program: TileProgram) -> None:
    """Check that a tile program is consistent.

    Raises:
        TileProgramError: the program contradicts itself: an operand is never loaded, or nothing
            reads it; tiles overwrite each other; a buffer is stored while it is written; a value
            depends on an axis that does not exist; an action of the pipeline comes too early or too
            late.  The message says what to change.
    """
    _check_axes(program)
    _check_values(program)
    _check_operands(program)
    _check_result(program)
    check_order(program)


def _check_axes(program: TileProgram) -> None:
    if len(program.position) != len(program.axes):
        raise program.error("two axes have one name", "name each axis once")
    for axis in program.axes:
        ends = [0, *(span.out_start + span.out_size for span in axis.spans)]
        starts = [span.out_start for span in axis.spans]
        if not starts or starts != ends[:-1] or any(span.out_size < 1 for span in axis.spans):
            raise program.error(
                f"the tiles along '{axis.name}' do not follow each other",
                "let each begin where the one before ends, the first at 0",
            )


def _check_values(program: TileProgram) -> None:
    fields = values_of(*program.compute.fields.values())
    labelled: dict[str, tuple[Value, ...]] = {"the compute step": fields}
    for operand in (*program.operands, program.result):
        values = (operand.offset, operand.inside, *operand.block.values)
        labelled[f"'{operand.name}'"] = values
    for what, values in labelled.items():
        unknown = axes_of(*values) - set(program.position)
        if unknown:
            raise program.error(
                f"{what} depends on '{min(unknown)}', which is not an axis",
                f"its axes are {', '.join(program.position) or 'none'}",
            )


def _check_operands(program: TileProgram) -> None:
    names = [operand.name for operand in (*program.operands, program.result)]
    if len(set(names)) != len(names):
        raise program.error("two tensors have one name", "name each operand once")
    read = program.reads()
    for name in read - set(names):
        raise program.error(
            f"the compute step reads '{name}', which is never loaded",
            "make it an operand, with the block that brings it into L1, or say it is resident",
        )
    for operand in program.operands:
        if operand.name not in read:
            raise program.error(
                f"nothing reads '{operand.name}'",
                "give its Place to a field of the compute step, or leave the operand out",
            )
        if not operand.resident and _moves_nothing(operand):
            raise program.error(
                f"'{operand.name}' is never loaded: its block has no bytes",
                "give the block that brings a tile into L1, or say it is resident",
            )
        if operand.buffers < 1 or operand.l1_bytes < 1:
            raise program.error(
                f"'{operand.name}' has {operand.buffers} buffers of {operand.l1_bytes} B in L1",
                "give it at least one buffer",
            )


def _moves_nothing(operand: Operand) -> bool:
    block = operand.block
    return any(value == 0 for value in (block.channels, block.rows, block.bytes))


def _check_result(program: TileProgram) -> None:
    result = program.result
    if result.name not in program.reads():
        raise program.error(
            f"nothing writes '{result.name}'", "give its Place to a field of the compute step"
        )
    if _moves_nothing(result) and not result.resident:
        raise program.error(
            f"'{result.name}' is never stored: its block has no bytes",
            "give the block that takes a tile to L2, or say it is resident",
        )
    where = result.axes
    for axis in program.axes:
        if axis.count > 1 and axis.name not in where:
            raise program.error(
                f"tiles along '{axis.name}' overwrite each other in '{result.name}'",
                "let its offset depend on the axis",
            )
    if program.pipelined and not result.resident and result.buffers < 2:
        raise program.error(
            f"'{result.name}' has one buffer, which is stored while the next tile is computed",
            "give it two, or let tiles be executed in turn",
        )


def check_places(program: TileProgram) -> None:
    """Check that no two tensors share bytes of L1; a resident tensor may be several operands.

    The result may lie over an operand of one tile and of its size (`Operand.over`).  Rows of
    operands that lie beside each other may alternate.

    Only for a program from which C is generated: places are unknown during a search for tiles.

    Raises:
        TileProgramError: the message names both tensors.
    """
    for operand in program.operands:
        if operand.beside:
            _check_beside(program, operand)
    apart = [each for each in (*program.operands, program.result) if not each.beside]
    result, over = program.result, program.tensor.get(program.result.over)
    if over is not None and (result.l1, program.end(result)) == (over.l1, program.end(over)):
        apart.remove(result)
    if program.preload is not None:
        size = program.preload.bytes
        block = Block[Value](1, 1, size, size, size, size, size)
        title = "constants of the next layer"
        apart.append(Operand(title, 0, block, program.preload.l1, size, reloaded=True))
    tensors = sorted(apart, key=lambda operand: operand.l1)
    for first, second in zip(tensors, tensors[1:], strict=False):
        same = first.resident and second.resident and first.l1 == second.l1
        if program.end(first) > second.l1 and not same:
            raise program.error(
                f"'{first.name}' ends at byte {program.end(first)} of L1, "
                f"'{second.name}' begins at {second.l1}",
                "take the places from the layer's plan",
            )


def _check_beside(program: TileProgram, operand: Operand) -> None:
    """Check that an operand's rows lie in another's buffers, between that one's rows."""
    others = [each for each in program.operands if operand.beside in (each.name, each.beside)]
    host = program.tensor[operand.beside]
    same = (host.l1_bytes, program.buffers(host)) == (operand.l1_bytes, program.buffers(operand))
    first = program.at((0,) * len(program.axes))
    runs = sorted((each.l1 - host.l1, program.block(each, first).bytes) for each in others)
    pitches = {program.block(each, first).l1_row_stride for each in others}
    starts = [*(place for place, _ in runs[1:]), min(pitches)]
    meet = any(place + size > start for (place, size), start in zip(runs, starts, strict=True))
    if not same or len(pitches) > 1 or meet:
        raise program.error(
            f"the rows of '{operand.name}' do not lie between those of '{operand.beside}'",
            "give both one pitch and buffers of one size, and places within a row",
        )


def check_alignment(program: TileProgram, l1_align: int, l2_align: int) -> None:
    """Check that every transfer begins where the DMA can.

    Args:
        program: a program from which C is generated.
        l1_align, l2_align: alignment of a transfer's addresses in bytes.

    Raises:
        TargetError: the DMA's description asks for an alignment that the accelerator's tiles do not
            have; the message names the layer and the tensor.
    """
    for operand in program.tensor.values():
        if operand.resident:
            continue
        places = [operand.l1 + n * operand.l1_bytes for n in range(program.buffers(operand))]
        offsets = [evaluate(operand.offset, tile) for tile in program.order() if l2_align > 1]
        for name, align, found in (("l1", l1_align, places), ("l2", l2_align, offsets)):
            wrong = [place for place in found if place % align]
            if wrong:
                raise TargetError(
                    f"a tile of '{operand.name}' begins at byte {wrong[0]}, and the DMA's "
                    f"{name}_align is {align}",
                    where=f"tile program of layer '{program.layer}'",
                    hint=f"lower {name}_align, or let the tiling problem round tiles up",
                )
