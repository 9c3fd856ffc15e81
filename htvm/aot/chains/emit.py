"""A chain as C: a function for each tensor, which makes a row of it, and one that calls them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory.emit.text import c_identifier
from byoc_dory.sharing import Sharing, share_functions
from htvm.aot.chains.estimate import rounded
from htvm.aot.chains.places import places_of
from htvm.aot.constants import FreshNames
from htvm.aot.entry import render
from htvm.aot.literals import c_array
from htvm.aot.overlay import Overlay
from htvm.aot.row_calls import RowCalls, RowMaker
from htvm.aot.steps import CpuKernel, Step, parameter_types

if TYPE_CHECKING:
    from byoc_dory.region import Constant
    from htvm.aot.chains.chain import Chain, Source, Stage, Strip
    from htvm.aot.chains.kernels import RowKernels
    from htvm.aot.chains.network import Network
    from htvm.aot.program import Program

HEADER = "htvm_chain.h"
"""Header of what generated chains call."""


def chain_kernel(
    network: Network, chain: Chain, rows: Sequence[RowKernels], symbol: str
) -> CpuKernel:
    """Return a chain as a CPU kernel, whose workspaces are its strips.

    Args:
        network: the units.
        chain: the chain.
        rows: the kernels of each of its units, for the rows that it makes at once.
        symbol: name of its function.
    """
    return _Writer(network, chain, rows, symbol).kernel()


@dataclass(frozen=True)
class _Member:
    """A strip or a whole map in the chain's structure.

    Attributes:
        name: of the member.
        parameter: of the function, or the place in one.
        comment: what it is.
        first: number of its first row.
        next: number of the row that comes next at the beginning.
    """

    name: str
    parameter: str
    comment: str
    first: int | str
    next: int | str

    @property
    def start(self) -> str:
        """The initializer."""
        return f"{{{self.parameter}, {self.first}, {self.next}}}"


def state_bytes(chain: Chain) -> int:
    """Return the bytes that a chain keeps from row to row of an input that comes row by row.

    They are the number of the next row, the place in the chain's order, and the rows of each map.
    """
    return 4 * (2 + 2 * (len(chain.inputs) - 1 + len(chain.outputs) + len(chain.strips)))


def staged_bytes(chain: Chain, number: int) -> int:
    """Return the bytes of the rows that a unit's kernels make at once, if these are no rows of a
    strip yet: between those lies padding."""
    stage = stage_of(chain, number)
    strip = chain.strips[stage.name] if stage.strip else None
    if stage.band == 1 or strip is None or strip.row == strip.tensor.row:
        return 0
    return rounded(stage.band * strip.tensor.row)


def stage_of(chain: Chain, number: int) -> Stage:
    """Return what makes the rows of a unit."""
    (stage,) = (each for each in chain.stages if each.unit == number)
    return stage


def program_of(chain: Chain, number: int, rows: RowKernels) -> Program:
    """Return what computes rows of a unit in a chain, whose strips may have wide pixels.

    Args:
        chain: the chain.
        number: of the unit.
        rows: its kernels.
    """
    sources = stage_of(chain, number).sources
    strips = [chain.strips[source.tensor] for source in sources if source.strip]
    if rows.of_wide is not None and any(strip.pixel == rows.wide for strip in strips):
        return rows.of_wide
    return rows.program


class _Writer:
    def __init__(
        self, network: Network, chain: Chain, rows: Sequence[RowKernels], symbol: str
    ) -> None:
        self.network = network
        self.chain = chain
        self.symbol = symbol
        self.tensors = {strip.tensor.name: strip.tensor for strip in chain.strips.values()}
        self.tensors |= network.tensors
        self.programs = {
            number: program_of(chain, number, each)
            for number, each in zip(range(*chain.units), rows, strict=True)
        }
        called = {step.symbol for program in self.programs.values() for step in program.steps}
        self.row_kernels = [
            kernel for each in rows for kernel in each.kernels if kernel.symbol in called
        ]
        self.sharing = share_functions(self.row_kernels, symbol)
        self.streamed = network.streamed if network.streamed in chain.inputs else ""
        peaks = {
            number: staged_bytes(chain, number) + program.plan.peak
            for number, program in self.programs.items()
        }
        self.places = places_of(chain, peaks)
        self.members = self._members()
        names = FreshNames()
        self.functions = [
            names.fresh(f"{symbol}_{'' if stage.unit is not None else 'copy_'}"
                        f"{c_identifier(stage.name)}")
            for stage in chain.stages
        ]  # fmt: skip

    def kernel(self) -> CpuKernel:
        chain, members = self.chain, self.members
        inputs = [(members[name, False].parameter, self.tensors[name]) for name in chain.inputs]
        outputs = [(members[name, False].parameter, self.tensors[name]) for name in chain.outputs]
        strips = [
            (members[name, True].parameter, "int8", (strip.bytes,), strip.bytes)
            for name, strip in chain.strips.items()
            if name not in chain.passing
        ]
        work = self.places.bytes
        if work:
            strips.append(("work", "int8", (work,), work))
        if self.streamed:
            size = state_bytes(chain)
            strips.append(("state", "int32", (size // 4,), size))
        params = [(name, tensor.dtype, tensor.shape) for name, tensor in (*inputs, *outputs)]
        params += [(name, dtype, shape) for name, dtype, shape, _ in strips]
        overlays = tuple(
            Overlay(number, chain.below[name], self.tensors[name].bytes)
            for number, name in enumerate(chain.inputs)
            if name in chain.below and self.network.in_arena(name)
            and chain.below[name] < self.tensors[chain.outputs[0]].bytes
        )  # fmt: skip
        units = [self.network.units[number] for number in range(*chain.units)]
        nodes = [node for unit in units for node in unit.nodes]
        types = {name: "int32_t" if name == "state" else "int8_t" for name, *_ in params}
        listed = ", ".join(f"{kind} *{name}" for name, kind in types.items())
        prototype = f"int32_t {self.symbol}({listed})"
        note = f"{len(units)} kernels advance together, row by row"
        output = params[len(inputs)][0]
        headers = [header for program in self.programs.values() for header in program.cpu_headers]
        return CpuKernel(
            symbol=self.symbol,
            source=render(
                "chain.c.jinja",
                functions=self._functions(),
                symbol=self.symbol,
                members=list(members.values()),
                streamed=self._streamed(),
                work=work,
                stages=[self._stage(at, stage) for at, stage in enumerate(chain.stages)],
                layers=", ".join(node.name for node in nodes),
                note=note,
                said=[each.said(params[each.parameter][0], output) for each in overlays],
                prototype=prototype,
                order=c_array(np.asarray(chain.order, "uint8")),
            ),
            prototype=prototype,
            params=tuple(params),
            n_outputs=len(outputs),
            workspaces=tuple(size for *_, size in strips),
            layers=tuple(node.name for node in nodes),
            operators=tuple(node.kind for node in nodes),
            schedule=note,
            headers=tuple(dict.fromkeys([HEADER, *headers])),
            overlays=overlays,
            constants=self._constants(),
            rows=self._row_calls([name for name, *_ in params]),
        )

    def _row_calls(self, params: list[str]) -> RowCalls:
        """Return the calls of the stages in their order, given the names of all parameters."""
        chain = self.chain
        makers = []
        for stage, function in zip(chain.stages, self.functions, strict=True):
            name, tensor = stage.name, self.tensors[stage.name]
            parameter, start = self.members[name, stage.strip].parameter, 0
            pitch, pixel = tensor.row, tensor.pixel
            if stage.strip:
                strip = chain.strips[name]
                pitch, pixel = strip.pitch, strip.pixel
                start = strip.left * pixel
                if name in self.places.rows:
                    parameter, start = "work", start + self.places.rows[name].start
            layer = f"copy_{name}" if stage.unit is None else name
            number = params.index(parameter)
            makers.append(RowMaker(layer, function, name, number, start, pitch, pixel))
        coming = [self._arrivals(stage) for stage in chain.stages]
        return RowCalls(tuple(makers), tuple((at, *next(coming[at])) for at in chain.order))

    def _arrivals(self, stage: Stage) -> Iterator[tuple[int, int, int]]:
        """Yield whenever a stage makes rows: the first, its place, and how many."""
        rows = self.tensors[stage.name].rows
        if stage.strip:
            strip = self.chain.strips[stage.name]
            for y, place, _ in self.chain.arrivals(strip):
                yield y, place, strip.band if 0 <= y < rows else 1
        for y in range(0, 0 if stage.strip else rows, stage.band):
            yield y, y, stage.band

    def _constants(self) -> tuple[Constant, ...]:
        found = {
            constant.name: constant
            for program in self.programs.values()
            for constant in program.constants
        }
        return tuple(found.values())

    def _functions(self) -> str:
        """Return the kernels, which nobody else calls."""
        text, declared = self.sharing.source, list[str]()
        for function in self.sharing.functions:
            if function.symbol in self._outer:
                prototype = function.prototype.strip().rstrip("; \n")
                declared.append(f"__attribute__((noinline)) {prototype};\n")
                continue
            name = re.escape(function.symbol)
            text = re.sub(rf"^(\w+ {name}\()", r"static \1", text, flags=re.MULTILINE)
        return "".join(declared) + text

    @property
    def _outer(self) -> set[str]:
        """The functions that are neither static nor inlined, because they are quicker.

        Compilers put the addresses of constants into static functions, which leaves too few
        registers for the sums of a depthwise convolution; inlined, they would exist twice.
        """
        return {
            self.sharing.function_of[kernel.symbol].symbol
            for kernel in self.row_kernels
            if "depthwise" in kernel.operators
        }

    def _streamed(self) -> dict[str, Any] | None:
        """Return what the template says of rows that come one by one."""
        if not self.streamed:
            return None
        number = next(
            at for at, stage in enumerate(self.chain.stages) if stage.name == self.streamed
        )
        return {
            "stage": number,
            "given": self.members[self.streamed, False].name,
            "strip": self.members[self.streamed, True].name,
            "rows": self.tensors[self.streamed].rows,
            "kept": [member.name for (name, strip), member in self.members.items()
                     if strip or name != self.streamed],
        }  # fmt: skip

    # --- members -----------------------------------------------------------------------------

    def _members(self) -> dict[tuple[str, bool], _Member]:
        """Return the members by tensor and whether they are its strip."""
        fresh = FreshNames(["work", "state", "y", "to", "c"]).fresh
        found = {}
        for name in (*self.chain.inputs, *self.chain.outputs):
            tensor = self.tensors[name]
            given = name in self.chain.inputs
            label = fresh(f"{'in' if given else 'out'}_{c_identifier(name)}")
            comment = f"{name}, {tensor.rows} rows of {tensor.row} B, whole"
            rows = tensor.rows if given else 0
            found[name, False] = _Member(label, label, comment, 0, rows)
            if name == self.streamed:
                comment = f"{name}, {tensor.rows} rows of {tensor.row} B, the one that has come"
                found[name, False] = _Member(label, label, comment, "state[0]", "state[0] + 1")
        for name, strip in self.chain.strips.items():
            label = fresh(f"strip_{c_identifier(name)}")
            comment = (
                f"{name}, {strip.tensor.rows} rows of {strip.tensor.row} B, "
                f"{strip.rows} of {strip.pitch} B at a time"
            )
            place = label
            if strip.summed:
                comment = f"{name}, {strip.bytes} B"
            if name in self.places.rows:
                place = _behind("work", self.places.rows[name].start)
            found[name, True] = _Member(label, place, comment, -strip.top, -strip.top)
        return found

    # --- stages ------------------------------------------------------------------------------

    def _stage(self, at: int, stage: Stage) -> dict[str, Any]:
        tensor = self.tensors[stage.name]
        strip = self.chain.strips[stage.name] if stage.strip else None
        target = self.members[stage.name, stage.strip].name
        left = 0 if strip is None else strip.left * strip.pixel
        reads = ", ".join(self._said(source) for source in stage.sources)
        if stage.unit is not None:
            made = f"{stage.band} rows" if stage.band > 1 else "A row"
            verb, calls = f"{made} of {stage.name} from", self._calls(at, stage, left)
        elif strip is not None and strip.summed:
            verb, calls = f"{stage.name}: adds", self._add(stage)
        else:
            verb, calls = "Copies", self._copy(stage, left)
        return {
            "comment": f"{verb} {reads}.",
            "function": self.functions[at],
            "target": target,
            "rows": tensor.rows,
            "room": 0 if strip is None else strip.rows,
            "pitch": tensor.row if strip is None else strip.pitch,
            "keep": self._keep(stage.name, strip=True) if strip is not None else "",
            "outside": strip is not None and self._outside(strip),
            "band": stage.band,
            "count": self._count(stage, strip),
            "fill": 0 if strip is None else strip.fill,
            "summed": 0 if strip is None or not strip.summed else strip.bytes,
            "borders": [] if strip is None else _borders(strip, stage.band),
            "filled": 0 if strip is None else self._filled(strip),
            "ended": [
                self.members[name, True].name for name in self.places.ended_by(self.chain, at)
            ],
            "checks": [*self._checks(stage), *self._spares(stage)],
            "calls": calls,
        }

    def _count(self, stage: Stage, strip: Strip | None) -> str:
        """Return how many rows come into a strip, as C."""
        if stage.band == 1 or strip is None or not self._outside(strip):
            return str(stage.band)
        return f"(y < 0 || y >= {strip.tensor.rows}) ? 1 : {stage.band}"

    def _outside(self, strip: Strip) -> bool:
        """Whether rows of padding are made."""
        return any(not 0 <= y < strip.tensor.rows for y, *_ in self.chain.arrivals(strip))

    def _filled(self, strip: Strip) -> int:
        """Return the number of the first row whose place, like all later ones, has borders."""
        used, filled = 0, 0
        for y, place, _ in self.chain.arrivals(strip):
            behind = place + (strip.band if 0 <= y < strip.tensor.rows else 1)
            if behind > used:
                used, filled = behind, y + 1
        return filled

    def _said(self, source: Source) -> str:
        size = source.window.size
        return f"{f'{size} rows' if size > 1 else 'a row'} of {source.tensor}"

    def _keep(self, tensor: str, *, strip: bool) -> str:
        """Return the first row of a tensor that is still read, as C."""
        found = []
        for stage in self.chain.stages:
            following = self.members[stage.name, stage.strip].name
            for source in stage.sources:
                if (source.tensor, source.strip) != (tensor, strip):
                    continue
                window = source.window
                row = f"htvm_strip_from(c->{following}.next, {window.stride}, {window.top})"
                found.append(row if window.stride else str(-window.top))
        text = found[0]
        for other in found[1:]:
            text = f"htvm_strip_least({text}, {other})"
        return text

    def _row(self, source: Source) -> str:
        """Return the number of the first row that is read, as C."""
        window = source.window
        number = {0: "0", 1: "y"}.get(window.stride, f"y * {window.stride}")
        return f"{number} - {window.top}" if window.top else number

    def _checks(self, stage: Stage) -> list[dict[str, str]]:
        return [
            {
                "call": f"htvm_strip_holds(&c->{self.members[source.tensor, source.strip].name}, "
                f"{self._row(source)}, {source.window.size})",
                "code": "HTVM_CHAIN_NO_ROW",
            }
            for source in stage.sources
        ]

    def _spares(self, stage: Stage) -> list[dict[str, str]]:
        """Return what makes sure that an output does not overwrite rows that are still read."""
        if stage.strip:
            return []
        found = []
        for name in self.chain.below:
            if not self.network.in_arena(name):
                continue
            tensor, member = self.tensors[name], self.members[name, False].name
            keep = self._keep(name, strip=False)
            row = stage.band * self.tensors[stage.name].row
            found.append({
                "call": f"htvm_strip_spares(&c->{member}, {tensor.row}, {keep}, to, {row})",
                "code": "HTVM_CHAIN_OVERWRITES",
            })  # fmt: skip
        return found

    def _place(self, source: Source) -> str:
        """Return the address of the first pixel that is read, as C."""
        tensor = self.tensors[source.tensor]
        strip = self.chain.strips[source.tensor] if source.strip else None
        pitch = tensor.row if strip is None else strip.pitch
        member = self.members[source.tensor, source.strip].name
        aside = 0 if strip is None else (strip.left - source.window.left) * strip.pixel
        text = f"htvm_strip_row(&c->{member}, {pitch}, {self._row(source)})"
        return f"{text} + {aside}" if aside else text

    def _copy(self, stage: Stage, left: int) -> list[str]:
        (source,) = stage.sources
        to = f"to + {left}" if left else "to"
        tensor, wide = self.tensors[stage.name], self.chain.strips[stage.name].pixel
        if wide != tensor.pixel:
            sizes = f"{tensor.width}, {tensor.pixel}, {wide}"
            return [f"htvm_strip_widen({to}, {self._place(source)}, {sizes})"]
        return [f"htvm_strip_copy({to}, {self._place(source)}, {tensor.row})"]

    def _add(self, stage: Stage) -> list[str]:
        (source,) = stage.sources
        tensor = self.tensors[source.tensor]
        sums = "(int32_t *)(void *)to"
        return [f"htvm_strip_add({sums}, {self._place(source)}, {tensor.width}, {tensor.pixel})"]

    def _calls(self, at: int, stage: Stage, left: int) -> list[str]:
        assert stage.unit is not None
        program = self.programs[stage.unit]
        places = {f"input_{n}": self._place(source) for n, source in enumerate(stage.sources)}
        first = self.places.work.get(at, range(0)).start
        staged = staged_bytes(self.chain, stage.unit)
        to = f"to + {left}" if left else "to"
        places["output_0"] = _behind("c->work", first) if staged else to
        first += staged
        places |= {
            name: _behind("c->work", first + offset) for name, offset in program.plan.offsets
        }
        calls = [_call(step, places, self.sharing) for step in program.steps]
        if staged:
            row, pitch = self.tensors[stage.name].row, self.chain.strips[stage.name].pitch
            calls += [
                f"htvm_strip_copy({_behind(to, at * pitch)}, "
                f"{_behind(places['output_0'], at * row)}, {row})"
                for at in range(stage.band)
            ]
        return calls


def _behind(pointer: str, offset: int) -> str:
    return f"{pointer} + {offset}" if offset else pointer


def _call(step: Step, places: dict[str, str], sharing: Sharing) -> str:
    function = sharing.function_of[step.symbol]
    values = [slot.value for slot in sharing.values[step.symbol]]
    types = parameter_types(function.prototype, values=len(values))
    arguments = []
    for operand, kind in zip(step.args, types, strict=True):
        if operand.kind == "constant":
            plain = kind.removeprefix("const ")
            cast = "" if kind.startswith("const ") else f"({plain})"
            arguments.append(f"{cast}{operand.name}")
            continue
        text = places[operand.name]
        if kind.removeprefix("const ") != "int8_t *":
            text = f"({kind})(void *)({text})"
        arguments.append(text)
    return f"{function.symbol}({', '.join([*arguments, *values])})"


def _borders(strip: Strip, rows: int) -> list[dict[str, int]]:
    """Return the padding beside rows: first byte and number of bytes."""
    pixel = strip.pixel
    sides = [(0, strip.left), (strip.left + strip.tensor.width, strip.right)]
    return [
        {"at": row * strip.pitch + at * pixel, "bytes": size * pixel}
        for row in range(rows)
        for at, size in sides
        if size
    ]
