"""Kernel by kernel: each operator of a file by both sides, and each side's best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.tflm.cells import FAST, OURS, Cell
from benchmarks.tflm.run import Counted, Layer, Span

__all__ = ["Pair", "best", "middle", "side_by_side"]


def middle(span: Span | None) -> int | None:
    """Return the middle of an estimate."""
    return None if span is None else round(sum(span) / 2)


def _figure(one: Counted | Layer) -> int:
    """Return what is compared: cycles if they are estimated, else instructions."""
    return middle(one.estimate) or one.instructions


@dataclass(frozen=True)
class Pair:
    """A network on a core by both sides.

    Attributes:
        ours, theirs: what was measured.
        mine, other: the results.
    """

    ours: Cell
    mine: Counted
    theirs: Cell
    other: Counted

    @property
    def network(self) -> str:
        """Its name."""
        return self.ours.network

    @property
    def core(self) -> str:
        """Name of the target."""
        return self.ours.core

    @property
    def share(self) -> float:
        """Our cycles (instructions, where no cycles are estimated) relative to theirs."""
        return _figure(self.mine) / _figure(self.other)

    def covers(self, cell: Cell) -> bool:
        """Whether a cell is of this network and core."""
        return (cell.network, cell.core) == (self.network, self.core)

    def kernels(self) -> list[tuple[Layer, Layer, float]]:
        """Return each kernel of ours, the same by the other side, and our share of that."""
        column = {part.name: part for part in self.other.layers}
        found = []
        for layer in self.mine.layers:
            beside = _sum([column[part] for part in layer.name.split("+")])
            found.append((layer, beside, _figure(layer) / _figure(beside)))
        return found


def best(
    results: Mapping[Cell, Counted],
    core: str,
    network: str,
    setting: tuple[str, str] | None = None,
) -> Pair:
    """Return each side's best of a network on a core.

    Args:
        results: what was measured.
        core, network: names.
        setting: compiler and level, the same for both sides; any of each side if not given.

    Raises:
        ValueError: a side was not measured.
    """

    def of(by: str) -> tuple[Cell, Counted]:
        found = [
            (cell, one)
            for cell, one in results.items()
            if (cell.by, cell.core, cell.network) == (by, core, network)
            and setting in (None, (cell.compiler, cell.level))
        ]
        return min(found, key=lambda each: _figure(each[1]))

    return Pair(*of(OURS), *of(FAST))


def side_by_side(ours: Cell, results: Mapping[Cell, Counted]) -> str:
    """Return the kernels of a network as text, ours beside those of the other side.

    Args:
        ours: a cell.
        results: of this cell, and of the other side's with the same compiler.
    """
    mine, others = results[ours], [it for it in results if it.by == FAST and it.place == ours.place]
    lines = [f"{ours.network}, {ours.core}, {ours.setting}: cycles (estimated), instructions"]
    head = "".join(f"  {other.by + ' ' + other.setting:>42}" for other in others)
    lines.append(f"{'':28}{'ours':>22}{head}")
    columns = [Pair(ours, mine, it, results[it]).kernels() for it in others]
    for number, layer in enumerate(mine.layers):
        lines.append(_line(layer, [column[number][1] for column in columns]))
    total = Layer("all", mine.instructions, mine.estimate)
    beside = [Layer("all", results[it].instructions, results[it].estimate) for it in others]
    lines.append(_line(total, beside))
    sizes = (f"  {results[it].flash:>20,} {results[it].ram:>10,}{'':11}" for it in others)
    lines.append(f"{'flash B, RAM B':28}{mine.flash:>11,} {mine.ram:>10,}{''.join(sizes)}".rstrip())
    unequal = [cell.setting for cell in (ours, *others) if not results[cell].equal]
    lines += [f"NOT EQUAL to the golden: {', '.join(unequal)}"] if unequal else []
    return "\n".join([*lines, ""])


def _sum(parts: Sequence[Layer]) -> Layer:
    spans = [part.estimate for part in parts if part.estimate is not None]
    total = (sum(each[0] for each in spans), sum(each[1] for each in spans))
    name = "+".join(part.name for part in parts)
    return Layer(name, sum(part.instructions for part in parts), total if spans else None)


def _line(mine: Layer, beside: Sequence[Layer]) -> str:
    own = middle(mine.estimate)
    text = f"{mine.name[:27]:28}{_number(own):>11} {mine.instructions:>10,}"
    for other in beside:
        cycles = middle(other.estimate)
        shares = f"{mine.instructions / other.instructions:.2f}"
        if own is not None and cycles:
            shares = f"{own / cycles:.2f} {shares}"
        text += f"  {_number(cycles):>20} {other.instructions:>10,} {shares:>10}"
    return text


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
