"""Checks of a region in which layers are under way while others run.

Generation calls `check_under_way` with the tile programs that become C, whatever made the schedule:
what would read a result before it is there, or overwrite bytes that somebody still reads, is
refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from byoc_dory.errors import TileProgramError
from byoc_dory.layers import Layer, Tensor
from byoc_dory.residency.preloads import layer_before
from byoc_dory.tileloop.program import TileProgram


@dataclass(frozen=True)
class Running:
    """A layer with what executes it: name of its accelerator, and tile program."""

    layer: Layer
    accelerator: str
    program: TileProgram


@dataclass(frozen=True)
class _Use:
    """Bytes of L1, and the first and the last layer beside which they must not be touched."""

    name: str
    begin: int
    end: int
    first: int
    last: int


def crowded(homes: Mapping[str, str], starts: Mapping[int, int]) -> str:
    """Return who would have more layers under way at a time than its driver holds; else empty.

    A driver keeps the arguments of one layer, until that is waited for.

    Args:
        homes: the accelerator of each layer by the layer's name, in the order in which they are
            done.
        starts: layers that are started before their turn, each with the layer before which it is.
    """
    names = list(homes)
    for number, first in starts.items():
        own = homes[names[number]]
        beside = [name for name in names[max(first, 0) : number] if homes[name] == own]
        if beside:
            said = ", ".join(f"'{name}'" for name in (*beside, names[number]))
            return f"'{own}' holds 1 layer at a time, {len(beside) + 1} are under way: {said}"
    return ""


def check_under_way(running: Sequence[Running], starts: Mapping[int, int], region: str) -> None:
    """Check that layers may run as a schedule says.

    Args:
        running: the layers, in the order in which they are done.
        starts: layers that are started before their turn, each with the layer before which it is;
            numbers of layers.
        region: name of the region, for messages.

    Raises:
        TileProgramError: a layer begins before an operand is there, its result is read before it is
            waited for, its accelerator has another layer meanwhile, or bytes of L1 are taken twice.
    """
    missing = Counter(name for each in running for name in _names(each.layer.output))
    produced = frozenset(missing)
    crowd = crowded({each.layer.name: each.accelerator for each in running}, starts)
    if crowd:
        raise _error(crowd, region)
    for number, first in starts.items():
        for what in _conflicts(running, number, first, produced):
            raise _error(what, region, running[number].layer)
    for number in range(len(running)):
        for what in _spoiled(running, number, starts.get(number, number)):
            raise _error(what, region, running[number].layer)
    for each in running:
        for tensor in each.layer.inputs:
            if missing[_read(tensor, produced)]:
                raise _error(f"'{tensor.name}' is read before it is written", region, each.layer)
        missing.subtract(_names(each.layer.output))
    uses = sorted(_uses(running, starts), key=lambda use: use.first)
    active: list[_Use] = []
    for use in uses:
        active = [other for other in active if other.last >= use.first]
        for other in active:
            if use.begin < other.end and other.begin < use.end:
                what = f"'{other.name}' and '{use.name}' take the same bytes of L1"
                raise _error(what, region, running[use.first].layer)
        active.append(use)


def _error(what: str, region: str, layer: Layer | None = None) -> TileProgramError:
    return TileProgramError(
        what,
        where=f"region '{region}'" + (f", layer '{layer.name}'" if layer is not None else ""),
        hint="start it later, or execute the layers one after another",
    )


def _names(tensor: Tensor) -> tuple[str, ...]:
    """Return the names under which others may read a result."""
    return tuple(dict.fromkeys((tensor.name, tensor.stored.name)))


def _read(tensor: Tensor, produced: frozenset[str]) -> str:
    """Return the name under which an operand is written: a part's own, or that of the whole."""
    return tensor.name if tensor.name in produced else tensor.stored.name


def _conflicts(
    running: Sequence[Running], number: int, first: int, produced: frozenset[str]
) -> Iterator[str]:
    """Yield why a layer cannot be under way from before layer ``first`` until its turn."""
    own = running[number]
    if not 0 <= first < number:
        yield f"layer {number} is started before layer {first}, so not before its turn"
    read = {_read(tensor, produced) for tensor in own.layer.inputs}
    written = set(_names(own.layer.output))
    for other in running[max(first, 0) : number]:
        if read.intersection(_names(other.layer.output)):
            yield f"'{other.layer.name}' writes its operand meanwhile"
        if any(_read(tensor, produced) in written for tensor in other.layer.inputs):
            yield f"'{other.layer.name}' reads its result meanwhile"


def _spoiled(running: Sequence[Running], number: int, first: int) -> Iterator[str]:
    """Yield who reads an operand in L1 that a layer overwrites from layer ``first`` on."""
    own = running[number]
    operands = zip(own.program.operands, own.layer.inputs, strict=False)
    over = own.program.result.over
    spoiled = {tensor.name for each, tensor in operands if each.resident and each.name == over}
    for other in (*running[first:number], *running[number + 1 :]):
        if any(tensor.name in spoiled for tensor in other.layer.inputs):
            yield f"'{other.layer.name}' reads its operand, which it overwrites"


def _uses(running: Sequence[Running], starts: Mapping[int, int]) -> Iterator[_Use]:
    """Yield the bytes of L1 that layers take for themselves, and those of tensors that stay."""
    last: dict[str, int] = {}
    for number, each in enumerate(running):
        for tensor in each.layer.inputs:
            last[tensor.name] = number
    for number, each in enumerate(running):
        first, program = starts.get(number, number), each.program
        for operand in program.operands:
            if not operand.resident and not operand.beside:
                name = f"{operand.name} of {each.layer.name}"
                begin = layer_before(number, starts) if operand.preloaded else first
                yield _Use(name, operand.l1, program.end(operand), begin, number)
        out = program.result
        if out.resident:
            until = max(number, last.get(each.layer.output.name, number))
            yield _Use(each.layer.output.name, out.l1, program.end(out), first, until)
        elif not out.over:
            yield _Use(f"result of {each.layer.name}", out.l1, program.end(out), first, number)
