"""C for a tile loop in rounds; in each round, every stage of the pipeline works on another tile.

The loop counts rounds (``step``); a stage at distance d works on tile ``step - d``, if there is
one.  The author of an accelerator gives the calls (`Calls`); the program determines which tile is
moved when and where.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import indent
from typing import Literal, TypeAlias

from byoc_dory.definition import Definition, Slot
from byoc_dory.emit.text import Expr, comment, rendered
from byoc_dory.emit.tile_text import (
    NEXT,
    Stage,
    TileWriter,
    Transfer,
    condition,
    phases,
    place_name,
)
from byoc_dory.layers import Layer
from byoc_dory.plan import LayerPlan
from byoc_dory.region import Constant, Kernel
from byoc_dory.tileloop.checks import check, check_places
from byoc_dory.tileloop.pipeline import Verb
from byoc_dory.tileloop.program import TileProgram
from byoc_dory.tileloop.values import Own, values_of

# What a loop does for a tile, for comments; waiting for a transfer is not mentioned.
_WORDS = {
    Verb.LOAD: "load",
    Verb.START: "start",
    Verb.COMPUTE: "compute",
    Verb.FINISH: "finish",
    Verb.STORE: "store",
}


Section: TypeAlias = Literal["whole", "start", "finish"]


@dataclass(frozen=True)
class Calls:
    """The C of an accelerator's calls.

    Attributes:
        move: returns the call that starts a transfer, without a semicolon, given the transfer and a
            comment for its first line.
        compute: the statements that compute a tile, or start computing it.
        wait: returns the statement that waits for a transfer, given the number that its start
            returned; empty if starting a transfer also completes it.
        wait_all: the statement that waits for all transfers.
        finish: the expression that waits for a computation and returns an error code, given the
            number stored in ``running`` when it was started; empty if starting it also completes
            it.
        fallible: whether ``finish`` returns an error code; if not, it is a statement.
        after: statements that complete a tile when its computation has finished.
        leave: statements that leave the last tile to the next layer (`LayerPlan.leaves`), given the
            number as for ``finish``.
        declarations: constants of the function, before its variables.
        address: format of a place in L1 as the calls take it.
        more: further places in L1, by the name of their C constant.
    """

    move: Callable[[Transfer, str], str]
    compute: str
    wait: str = ""
    wait_all: str = ""
    finish: str = ""
    fallible: bool = True
    after: str = ""
    leave: str = ""
    declarations: str = ""
    address: str = "{}"
    more: Mapping[str, int] = field(default_factory=dict[str, int])


def initialiser(fields: Mapping[str, Expr]) -> str:
    """Return the lines of a designated initialiser."""
    return "".join(f"    .{name} = {value},\n" for name, value in fields.items())


def call_text(program: TileProgram, writer: TileWriter, name: str, ticket: str = "") -> str:
    """Return the statements that pass one tile's fields to the function that computes it.

    Args:
        program: the program, whose `Compute` has the struct, the function and the fields.
        writer: writer of the program's values.
        name: name of the struct's variable.
        ticket: variable for the function's return value; empty to ignore it.
    """
    compute = program.compute
    lines = initialiser(writer.fields(compute.fields))
    begin = f"{ticket} = " if ticket else ""
    return (
        f"const {compute.struct} {name} = {{\n{lines}}};\n{begin}{compute.function.format(name)};\n"
    )


def staged_kernel(
    layer: Layer,
    plan: LayerPlan,
    program: TileProgram,
    writer: TileWriter,
    calls: Calls,
    accelerator: tuple[str, str],
    symbol: str,
    cycles: int,
    constant: Constant | None,
    far: Constant | None = None,
    section: Section = "whole",
) -> Kernel:
    """Return the function that executes a layer tile by tile.

    Args:
        layer: the layer.
        plan: plan of the layer.
        program: tile program of the layer under this plan.
        writer: writer of the program's values.
        calls: calls of the accelerator's driver.
        accelerator: name and title of the accelerator.
        symbol: C name of the function.
        cycles: predicted cycles.
        constant: the packed weights or tables, or ``None``.
        far: constants that the accelerator reads where they are, without loading them into L1; the
            program refers to them as ``packed`` (`byoc_dory.tileloop.values.Far`).
        section: of a layer of one tile, what the function does: all, what starts its computation,
            or what follows when that is done.

    Raises:
        TileProgramError: the program contradicts itself, tensors overlap in L1, or the driver has
            no call for an action of the pipeline.
    """
    check(program)
    check_places(program)
    name, title = accelerator
    loop = _Loop(program, writer, calls, section)
    moved = [operand for operand in program.loaded if not operand.constant]
    arguments = [f"const int8_t *{operand.name}" for operand in moved if loop.starts]
    stores = loop.finishes and not program.result.resident
    if stores:
        arguments.append("int8_t *out")
    body = rendered(
        "byoc_dory.emit",
        "staged.c.jinja",
        program=program,
        title=title,
        tables=writer.tables,
        tickets=bool(calls.wait) and loop.starts,
        finish=calls.finish,
        fallible=calls.fallible,
        declarations=indent(calls.declarations, "    "),
        wait_all=calls.wait_all if program.preload or stores else "",
        watched=program.buffers(program.result) if loop.watch else 0,
        running="running" in calls.finish + calls.compute,
        body=indent(loop.text(), "    "),
    )
    definition = Definition(
        layer.op,
        (comment(layer.name),),
        _comment_lines(layer, plan, program, title, cycles),
        "int32_t",
        tuple(arguments),
        body,
        tuple(_layer_slots(loop, constant, far)),
    )
    inputs = zip(layer.inputs, program.operands, strict=False) if loop.starts else ()
    return Kernel(
        symbol=symbol,
        layer_name=layer.whole_name,
        kind="layer" if loop.finishes else "start",
        source=definition.text(symbol),
        prototype=f"{definition.prototype(symbol)};",
        inputs=tuple(tensor.stored.name for tensor, operand in inputs if not operand.resident),
        outputs=(layer.output.stored.name,) if stores else (),
        constants=tuple(data for data in (constant, far) if data is not None),
        layer=layer,
        plan=plan,
        program=program,
        predicted_cycles=cycles,
        accelerator=name,
        definition=definition,
    )


def _comment_lines(
    layer: Layer, plan: LayerPlan, program: TileProgram, title: str, cycles: int
) -> tuple[str, ...]:
    """Return the lines of the comment before the function."""
    tile, two = plan.solution.tile, ", two of them in L1" if program.pipelined else ""
    narrow = any(axis.name == "x" and axis.count > 1 for axis in program.axes)
    sizes = f"k={tile.k}, y={tile.y}" + (f", x={tile.x}" if narrow else "")
    return (
        f"{layer.op} {comment(layer.shape_text)}",
        f"on the {title}; tile {sizes} ({program.tiles} in all{two})",
        f"predicted: {cycles} cycles",
    )


def _layer_slots(loop: _Loop, constant: Constant | None, far: Constant | None) -> Iterator[Slot]:
    """Yield the values of the function that belong to its layer."""
    if far is not None:
        yield Slot("packed", f"const {far.data.dtype.name}_t *", far.name)
    if constant is not None and loop.starts:
        for operand in loop.program.loaded:
            if operand.constant:
                yield Slot(operand.name, f"const {constant.data.dtype.name}_t *", constant.name)
    preload = loop.program.preload
    if preload is not None:
        yield Slot(NEXT, "const uint8_t *", preload.array)
    for name, offset in loop.places():
        yield Slot(name, "uint32_t", str(offset))
    layer_values = {
        value.name: value.value
        for value in values_of(*loop.program.compute.fields.values())
        if isinstance(value, Own)
    }
    for name, number in layer_values.items():
        yield Slot(name, "int32_t", str(number))


class _Loop:
    """The statements of a program's loop."""

    def __init__(
        self, program: TileProgram, writer: TileWriter, calls: Calls, section: Section = "whole"
    ) -> None:
        self.program, self.writer, self.calls = program, writer, calls
        self.watch = bool(calls.wait) and program.waits_for_stores
        self.starts, self.finishes = section != "finish", section != "start"

    def places(self) -> Iterator[tuple[str, int]]:
        """Yield (name, byte offset) of everything in L1."""
        operands = [operand for operand in self.program.operands if not operand.constant]
        constants = [operand for operand in self.program.operands if operand.constant]
        if not self.starts:
            operands, constants = [], []
        if not self.starts and self.program.result.resident:
            return
        for operand in (*operands, self.program.result, *constants):
            yield place_name(operand.name), operand.l1
        if self.program.preload is not None:
            yield place_name(NEXT), self.program.preload.l1
        yield from self.calls.more.items()

    # ------------------------------------------------------------------ the loop

    def text(self) -> str:
        """Return the whole text."""
        program, longest = self.program, self.program.pipeline.distance
        stages = self._stages()
        if program.tiles == 1:
            return "".join(stage.code for stage in stages)
        steps = program.tiles + longest
        body = "const uint32_t wanted = ready;\n" if self._loads_ahead else ""
        for stage in stages:
            named = self._used_names(stage) + stage.code
            if longest:
                begin = f"if ({condition(stage, program.tiles, steps)}) {{ /* {stage.title} */\n"
                named = f"{begin}{indent(named, '    ')}}}\n"
            body += named
        head = phases(stages, program.tiles) if longest else ""
        loop = f"for (uint32_t step = 0; step < {steps}u; ++step)"
        return f"{head}{loop} {{\n{indent(body, '    ')}}}\n"

    def _stages(self) -> list[Stage]:
        """Return what a step does, in order; consecutive actions for one tile are one stage."""
        actions = self.program.pipeline.actions
        if not (self.starts and self.finishes):
            at = [action.verb for action in actions].index(Verb.FINISH)
            actions = actions[:at] if self.starts else actions[at:]
        stages = []
        for distance, together in itertools.groupby(actions, lambda action: action.distance):
            done = {action.verb: self._verb_text(action.verb) for action in together}
            words = [_WORDS[verb] for verb, code in done.items() if code and verb in _WORDS]
            stage = Stage(", ".join(words), distance, "".join(done.values()))
            stages += [stage] if stage.code else []
        return stages

    @property
    def _loads_ahead(self) -> bool:
        """Whether a later tile's loads are started before waiting for this one's."""
        pipeline = self.program.pipeline
        if not (self.calls.wait and self.program.loaded and pipeline.has(Verb.ARRIVE)):
            return False
        verbs = [action.verb for action in pipeline.actions]
        first = verbs.index(Verb.LOAD) < verbs.index(Verb.ARRIVE)
        return first and pipeline.at(Verb.LOAD) < pipeline.at(Verb.ARRIVE)

    def _used_names(self, stage: Stage) -> str:
        """The names that a stage's C uses; a struct's member of that name does not count."""
        used = set(re.findall(r"(?<![.\w])[A-Za-z_]\w*", stage.code))
        axes = [axis for axis in self.program.axes if axis.name in used]
        text = ""
        if axes or "tile" in used:
            text = f"const uint32_t tile = {stage.tile}{'u' if stage.distance else ''};\n"
        for axis in axes:
            text += f"const uint32_t {axis.name} = {self.writer.index(axis)};\n"
        return text

    # ------------------------------------------------------------------ what is done for one tile

    def _verb_text(self, verb: Verb) -> str:
        if verb is Verb.LOAD:
            return self._load_text()
        if verb is Verb.STORE:
            return self._store_text()
        if verb is Verb.ARRIVE:
            return self._arrive_text()
        if verb is Verb.COMPUTE:
            return self._preload_text() + self.calls.compute
        if verb is Verb.START:
            return self.calls.compute + self._preload_text()
        if verb is Verb.FINISH and self.calls.finish:
            done = self._finish_text("tile") + self.calls.after
            return self._left_text(done) if self.program.leaves else done
        raise self.program.error(
            f"the driver has no call to {verb.value}", "give the call, or use another pipeline"
        )

    def _left_text(self, done: str) -> str:
        """Return what leaves the last tile to the next layer, and completes the others."""
        leave = self.calls.leave.format(self._running("tile"))
        if self.program.tiles == 1:
            return leave
        return (
            f"if (tile == {self.program.tiles - 1}u) {{ /* the next layer completes it */\n"
            f"{indent(leave, '    ')}}} else {{\n{indent(done, '    ')}}}\n"
        )

    def _running(self, tile: str) -> str:
        """Return the number of a tile's computation."""
        return f"running[{tile} % 2u]" if self.program.pipelined else "running"

    def _finish_text(self, tile: str) -> str:
        call = self.calls.finish.format(self._running(tile))
        if not self.calls.fallible:
            return f"{call};\n"
        return f"code = {call};\nif (code != 0) {{\n    return code;\n}}\n"

    def _load_text(self) -> str:
        program = self.program
        waiting = [operand for operand in program.loaded if program.waits_for_readers(operand)]
        text = ""
        if waiting and self.calls.finish:
            # The one that is loaded most often is loaded whenever any of them is.
            when = [self.writer.when(max(waiting, key=program.depth)), "tile != 0u"]
            condition = " && ".join(part for part in when if part)
            text = (
                f"if ({condition}) {{ /* the rows to overwrite are still being read */\n"
                f"{indent(self._finish_text('(tile - 1u)'), '    ')}}}\n"
            )
        transfers = [self.writer.transfer(operand) for operand in program.loaded]
        for number, transfer in enumerate(transfers):
            # Wait for the last transfer started: the one that no other always follows.
            last = all(self._conditional(later) for later in transfers[number + 1 :])
            text += self._order_text(transfer, "ready = " if last else "")
        return text

    def _preload_text(self) -> str:
        preload = self.program.preload
        return "" if preload is None else self._order_text(self.writer.preload(preload), "")

    def _store_text(self) -> str:
        if self.program.result.resident:
            return ""
        transfer = self.writer.transfer(self.program.result)
        return self._order_text(transfer, f"{self._last_store} = " if self.watch else "")

    @property
    def _last_store(self) -> str:
        """The number of the last transfer out of the buffer of a tile's result."""
        buffers = self.program.buffers(self.program.result)
        return f"stored[tile % {buffers}u]" if buffers > 1 else "stored"

    def _order_text(self, transfer: Transfer, ticket: str) -> str:
        ticket = ticket if self.calls.wait else ""
        comment = f"/* {transfer.what} */"
        if not self._conditional(transfer):
            return f"{ticket}{self.calls.move(transfer, comment)};\n"
        call = indent(f"{ticket}{self.calls.move(transfer, '')};\n", "    ")
        return f"if ({transfer.when}) {{ {comment}\n{call}}}\n"

    def _conditional(self, transfer: Transfer) -> bool:
        """Whether some rounds do not start this transfer."""
        return bool(transfer.when) and self.program.tiles > 1

    def _arrive_text(self) -> str:
        text = ""
        if self.calls.wait and self.program.loaded:
            wait = self.calls.wait.format("wanted" if self._loads_ahead else "ready") + ";\n"
            if all(each.preloaded for each in self.program.loaded):
                wait = f"if (tile != 0u) {{\n{indent(wait, '    ')}}}\n"
            text += wait
        if self.watch:
            text += self.calls.wait.format(self._last_store) + ";\n"
        return text
