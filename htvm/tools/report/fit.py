"""Whether a model fits: one line per memory, what dominates, and what would help.

All sizes are in bytes.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from htvm.shown import Shown
from htvm.tools.plots.bars import Bar, bar_figure
from htvm.tools.plots.colours import LIGHT
from htvm.tools.report.table import Column, Table, count, percent, table_of, text, wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Answer: TypeAlias = Literal["yes", "no", "close"]
"""The answer; ``close`` means that the uncertainty of an estimate decides."""


@dataclass(frozen=True)
class MemoryItem:
    """One item in a memory.

    Attributes:
        name: what it is, e.g. "constants of conv2d_3".
        bytes: its size in bytes.
        note: where the number comes from if it is not exact, or what it consists of.
    """

    name: str
    bytes: int
    note: str = ""


@dataclass(frozen=True)
class Level:
    """The demand on one memory.

    Attributes:
        memory: name of the memory, e.g. "L2", or "digital: weights".
        limit: bytes available, or allowed by the options.
        demand: smallest number of bytes with which this program could run, using the smallest
            tiles.
        planned: bytes that the plan uses; None without a plan because it does not fit.
        slack: largest error of the demand in bytes, from parts that are estimates.
        parts: the largest items first.  For L2, all parts, which add up to the demand; for memories
            that layers use one after another, the layers that need most.
        note: other remarks, in a few words.
    """

    memory: str
    limit: int
    demand: int
    planned: int | None
    slack: int = 0
    parts: tuple[MemoryItem, ...] = ()
    note: str = ""

    @property
    def used(self) -> int:
        """Bytes that the plan uses, or without one those that are needed."""
        return self.demand if self.planned is None else self.planned

    @property
    def fits(self) -> Answer:
        """Whether the demand is within the limit."""
        if self.demand + self.slack <= self.limit:
            return "yes"
        return "no" if self.demand - self.slack > self.limit else "close"


@dataclass(frozen=True)
class LayerDemand:
    """The demands of one layer on an accelerator on the memories it uses.

    Attributes:
        layer: name of the layer.
        accelerator: the accelerator that runs it.
        l1_planned: bytes of L1 in use while it runs, including resident tensors of other layers;
            None without a plan.
        l1_least: bytes of L1 that its smallest tile needs, single-buffered.
        l1_whole: bytes of L1 that it would need untiled, single-buffered.
        l1_limit: bytes of L1 that it may use.
        tile: the planned tile; empty without a plan.
        weights_planned: bytes in use at a time in the weight memory; None without a plan.
        weights_least: bytes of weights of its smallest tile.
        weights_whole: bytes of all its weights.
        weights_limit: size of the weight memory in bytes.
    """

    layer: str
    accelerator: str
    l1_planned: int | None
    l1_least: int
    l1_whole: int
    l1_limit: int
    tile: str
    weights_planned: int | None
    weights_least: int
    weights_whole: int
    weights_limit: int


@dataclass(frozen=True)
class WeightRow:
    """Where the weights of one layer are, in a network whose weights are not all kept.

    Attributes:
        layer, accelerator: names.
        bytes: size of the weights.
        memory: name of the memory that keeps them; "" if they are loaded into L1 with each tile.
        saved_cycles: predicted cycles that keeping them saves; None if they must be kept, because
            no tile fits L1 with them.
    """

    layer: str
    accelerator: str
    bytes: int
    memory: str
    saved_cycles: int | None


@dataclass(frozen=True)
class Change:
    """A change that was tried because the program does not fit.

    Attributes:
        what: the change, as an imperative phrase.
        memory: the memory that it is meant for.
        demand: bytes of that memory needed after the change; None if it cannot be built at all.
        limit: bytes available after the change.
        fits: whether the whole program fits after the change.
        how: ``"planned"``: the whole model was compiled again up to C with the change;
            ``"computed"``: from the sizes of the parts, for this memory alone.
        note: side effects, or why it cannot be built.
    """

    what: str
    memory: str
    demand: int | None
    limit: int
    fits: Answer
    how: Literal["planned", "computed"]
    note: str = ""


@dataclass(frozen=True, repr=False)
class Fit(Shown):
    """Whether a model fits a target, memory by memory.

    Attributes:
        network: name of the model.
        target: name of the target.
        schedule: as in `byoc_dory.options.ScheduleKind`, or empty without accelerators.
        levels: one per memory.
        layers: one per layer on an accelerator, in execution order.
        refused: layers that an accelerator would take if it had more memory, and which run
            elsewhere: (layer, accelerator, reason).
        changes: the changes tried, those that work and are smallest first; empty if the model fits.
        weights: where the weights of layers are whose accelerator can have them kept in a memory
            of their own; empty if all of them are.
    """

    network: str
    target: str
    schedule: str
    levels: tuple[Level, ...]
    layers: tuple[LayerDemand, ...]
    refused: tuple[tuple[str, str, str], ...] = ()
    changes: tuple[Change, ...] = ()
    weights: tuple[WeightRow, ...] = ()

    def _rows(self) -> tuple[object, ...]:
        return self.levels

    @property
    def fits(self) -> Answer:
        """The answer for all memories together."""
        answers = {level.fits for level in self.levels}
        return "no" if "no" in answers else "close" if "close" in answers else "yes"

    def level(self, memory: str) -> Level:
        """Return the level of a memory (``KeyError`` if there is no such memory)."""
        return {level.memory: level for level in self.levels}[memory]

    def __str__(self) -> str:
        """Return the answer as text."""
        return fit_text(self)

    def __repr__(self) -> str:
        """Return the answer, the memories and the changes, in lines of 80 characters."""
        return fit_screen(self, 80)

    def plot_memory(self) -> Figure:
        """Plot how much of each memory is needed and planned, in percent of its limit.

        Raises:
            DependencyError: matplotlib is not installed.
        """
        bars = []
        for each in self.levels:
            share = 100 / each.limit if each.limit else 0.0
            room = f"of {count(each.limit)} B"
            words = f"{count(each.demand)} {room}: {_FITS[each.fits]}"
            bars.append(Bar(f"{each.memory}, needed", share * each.demand, words, "arena", True))
            if each.planned is not None:
                words = f"{count(each.planned)} {room}"
                bars.append(Bar(f"{each.memory}, planned", share * each.planned, words, "arena"))
        figure = bar_figure(f"{self.network} on {self.target}", bars, "% of the memory")
        (axes,) = figure.axes
        axes.axvline(100, color=LIGHT["ink"], linestyle="--", linewidth=1)  # the limit
        axes.set_xlim(0, max(_LEAST, axes.get_xlim()[1]))
        return figure


_LEAST = 150.0  # percent that the axis shows at least: room for words beside full bars
_SHOWN = 5

_FITS: dict[Answer, str] = {"yes": "fits", "no": "does not fit", "close": "close"}
_WORDS: dict[Answer, str] = {"yes": "yes", "no": "NO", "close": "close"}


def fit_text(fit: Fit, width: int | None = None) -> str:
    """Return the whole answer as text.

    Args:
        fit: the answer.
        width: characters per line; by default as long as they need.
    """
    parts = [
        _answer(fit),
        text(_level_table(fit.levels), width),
        *(_lines(_dominates(level), width) for level in fit.levels),
        text(_layer_table(fit.layers), width) if fit.layers else "",
        _weights(fit.weights, width),
        _lines(_refused(fit), width),
        _lines(_changes(fit.changes), width),
    ]
    return "\n\n".join(part for part in parts if part)


def fit_screen(fit: Fit, width: int) -> str:
    """Return the answer, the memories and the changes, without what takes most, and layers."""
    parts = [
        _lines(_answer(fit), width),
        text(_level_table(fit.levels), width),
        _lines(_changes(fit.changes), width),
    ]
    return "\n\n".join(part for part in parts if part)


def _answer(fit: Fit) -> str:
    schedule = f", schedule {fit.schedule}" if fit.schedule else ""
    answers = {
        "yes": "it fits",
        "no": "it does NOT fit",
        "close": "it is too close to say: the size of the code, which is estimated, decides",
    }
    return f"{fit.network} on {fit.target}{schedule}: {answers[fit.fits]}"


def _lines(part: str, width: int | None) -> str:
    return part if width is None else "\n".join(wrapped(part.split("\n"), width))


def _level_table(levels: tuple[Level, ...]) -> Table:
    return table_of(
        levels,
        (Column("memory"), lambda level: level.memory),
        (Column("needs B", number=True), _needs_text),
        (Column("planned B", number=True), lambda level: level.planned),
        (Column("limit B", number=True), lambda level: level.limit),
        (Column("used %", number=True), lambda level: percent(level.used, level.limit)),
        (Column("fits"), lambda level: _WORDS[level.fits]),
    )


def _needs_text(level: Level) -> str:
    return count(level.demand) + (f" +-{count(level.slack)}" if level.slack else "")


def _dominates(level: Level) -> str:
    """Return the largest parts of a level as text."""
    shown, rest = level.parts[:_SHOWN], level.parts[_SHOWN:]
    lines = [f"  {_part(part)}" for part in shown]
    if rest and sum(part.bytes for part in level.parts) == level.demand:
        size = sum(part.bytes for part in rest)
        lines.append(f"  {count(size):>9}  {len(rest)} more")
    head = f"{level.memory}: what takes most"
    return "\n".join([f"{head} ({level.note})" if level.note else head, *lines])


def _part(part: MemoryItem) -> str:
    note = f" ({part.note})" if part.note else ""
    return f"{count(part.bytes):>9}  {part.name}{note}"


def _layer_table(layers: tuple[LayerDemand, ...]) -> Table:
    def weights(layer: LayerDemand, size: int | None) -> int | None:
        return size if layer.weights_whole else None  # they take no room of their own

    return table_of(
        layers,
        (Column("layer", wraps=True), _marked),
        (Column("on"), lambda layer: layer.accelerator),
        (Column("tile k,c,y,x"), lambda layer: layer.tile),
        (Column("L1 B", number=True), lambda layer: layer.l1_planned),
        (Column("least", number=True), lambda layer: layer.l1_least),
        (Column("untiled", number=True, spare=True), lambda layer: layer.l1_whole),
        (Column("weights B", number=True), lambda layer: weights(layer, layer.weights_planned)),
        (
            Column("least", number=True, spare=True),
            lambda layer: weights(layer, layer.weights_least),
        ),
        (
            Column("whole", number=True, spare=True),
            lambda layer: weights(layer, layer.weights_whole),
        ),
    )


def _marked(layer: LayerDemand) -> str:
    return layer.layer + (" (!)" if layer.l1_least > layer.l1_limit else "")


def _weights(rows: tuple[WeightRow, ...], width: int | None) -> str:
    """Return which weights are kept and which are loaded, the most valuable bytes first."""
    if not rows:
        return ""

    def value(row: WeightRow) -> float:
        return float("inf") if row.saved_cycles is None else row.saved_cycles / row.bytes

    def per_kib(row: WeightRow) -> str:
        return "" if row.saved_cycles is None else f"{1024 * value(row):,.0f}"

    table = table_of(
        sorted(rows, key=lambda row: -value(row)),
        (Column("weights of", wraps=True), lambda row: row.layer),
        (Column("on"), lambda row: row.accelerator),
        (Column("B", number=True), lambda row: row.bytes),
        (Column("kept in", wraps=True), lambda row: row.memory or "no: loaded with each tile"),
        (
            Column("cycles saved", number=True, wraps=True),
            lambda row: count(row.saved_cycles) or "no tile fits otherwise",
        ),
        (Column("per KiB", number=True), per_kib),
        title="weights: not all fit the memory that keeps them; chosen to save most cycles",
    )
    return text(table, width)


def _refused(fit: Fit) -> str:
    if not fit.refused:
        return ""
    lines = [f"  {layer}: not on {name}: {reason}" for layer, name, reason in fit.refused]
    return "\n".join(["left to the CPU for want of memory:", *lines])


def _changes(changes: tuple[Change, ...]) -> str:
    if not changes:
        return ""
    lines = []
    for change in changes:
        need = "cannot be built" if change.demand is None else f"{count(change.demand)} B"
        note = f"; {change.note}" if change.note else ""
        answer = _FITS[change.fits]
        lines.append(
            f"  {answer}: {change.what}: {change.memory} {need} of {count(change.limit)} B, "
            f"{change.how}{note}"
        )
    return "\n".join(["changes, the nearest that fits first:", *lines])


def fit_data(fit: Fit) -> dict[str, Any]:
    """Return the fields of `Fit` and values derived from them, for JSON."""
    data = dataclasses.asdict(fit)
    data["fits"] = fit.fits
    for level, entry in zip(fit.levels, data["levels"], strict=True):
        entry["fits"] = level.fits
    return data
