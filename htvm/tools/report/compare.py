"""A comparison of several builds of one network, next to published figures.

Units: sizes in bytes, times in cycles of the SoC's clock or in ms, SQNR in dB.  On a core that is
emulated, instructions are counted in place of cycles.  Anything not measured is ``None``, never
zero.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from htvm.errors import InputError
from htvm.shown import Shown
from htvm.tools.plots.bars import Bar, bar_figure
from htvm.tools.report.data import L2Use
from htvm.tools.report.table import Column, Table, count, milliseconds, ratio, text, wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from htvm.tools.report.parts import Decisions


_LINE = 80  # characters per line of a comparison as text, outside of a terminal


@dataclass(frozen=True)
class Agreement:
    """How far a configuration's outputs agree with the source model's, over all inputs tried.

    Attributes:
        inputs: number of inputs tried.
        equal: number of inputs for which all output elements are the same.
        max_difference: largest absolute difference of any output element: an int in quantized
            steps, or a float where outputs are reals.
        top1: number of inputs with the same largest element; None if that is meaningless.
        sqnr_db: over all outputs together, in dB; None if they are equal or it was not computed.
    """

    inputs: int
    equal: int
    max_difference: int | float
    top1: int | None = None
    sqnr_db: float | None = None


@dataclass(frozen=True)
class ComparisonRow:
    """One configuration of a comparison.

    Attributes:
        configuration: a description, e.g. "plain TVM on the CPU" or "diana.digital".
        target: target name.
        cycles: simulated cycles; None if it does not run (``failure`` says why), or on a core whose
            instructions are counted.
        memory: use of L2, without models of devices; None if it was not built.
        agreement: agreement with the source model; None if it was not compared.
        failure: why there are no numbers, in a few words; empty if there are numbers.
        exact: whether the outputs equal `Module.reference`; None if it was not checked.
        scores_sqnr_db: SQNR in dB before the last softmax, on the inputs that retargeting was
            fitted to; None without a softmax at the end, or if the numbers are the source's.
        decisions: how often it decides as labels say; None without labels.
        policy, schedule: how layers were dispatched and executed; empty without accelerators.
        instructions: instructions of the core, counted by an emulator, without those of
            accelerators' steps; None where cycles are.
        accelerator_cycles: predicted cycles of the accelerators beside such a core, which are no
            sum with its instructions; None without accelerators, or where cycles are simulated.
    """

    configuration: str
    target: str
    cycles: int | None = None
    memory: L2Use | None = None
    agreement: Agreement | None = None
    failure: str = ""
    exact: bool | None = None
    scores_sqnr_db: float | None = None
    policy: str = ""
    schedule: str = ""
    decisions: Decisions | None = None
    instructions: int | None = None
    accelerator_cycles: int | None = None


@dataclass(frozen=True)
class Published:
    """A published figure, to be shown next to ours.

    Attributes:
        configuration: a description.
        latency_ms: latency at the published clock; None if it did not run.
        size_kb: published size of the binary in kB; None if not given.
        source: where it was published.
        remark: what to know when comparing it with ours.
    """

    configuration: str
    latency_ms: float | None
    size_kb: int | None
    source: str
    remark: str = ""


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Everything that `htvm.compare` shows.

    Attributes:
        network: name of the model.
        macs: multiply-accumulates per inference.
        clock_hz: clock for converting cycles to milliseconds.
        rows: the configurations.
        baseline: ``configuration`` of the row that speed-ups refer to.
        published: published figures of the same network; the first is the published baseline.
        notes: sentences to print below the table.
    """

    network: str
    macs: int
    clock_hz: int
    rows: tuple[ComparisonRow, ...]
    baseline: str
    published: tuple[Published, ...] = ()
    notes: tuple[str, ...] = ()

    def _rows(self) -> tuple[object, ...]:
        return self.rows

    def row(self, configuration: str) -> ComparisonRow:
        """Return the row of a configuration.

        Raises:
            InputError: no row has this configuration.
        """
        for row in self.rows:
            if row.configuration == configuration:
                return row
        raise InputError(
            f"there is no configuration {configuration!r}",
            where="comparison",
            hint=f"there are {', '.join(row.configuration for row in self.rows)}",
        )

    def latency_ms(self, row: ComparisonRow) -> float | None:
        """Return the time of one inference in ms; None if the configuration did not run."""
        return None if row.cycles is None else row.cycles * 1000.0 / self.clock_hz

    def speed_up(self, row: ComparisonRow) -> float | None:
        """Return the baseline's cycles divided by those of ``row``; None if either did not run."""
        base = self.row(self.baseline).cycles
        return None if base is None or not row.cycles else base / row.cycles

    def plot_latency(self) -> Figure:
        """Draw the time of one inference in each configuration, on a logarithmic scale.

        On a core that is emulated, its instructions are drawn.

        Raises:
            DependencyError: matplotlib is not installed.
        """
        counted = self.row(self.baseline).instructions is not None
        bars = [
            Bar(row.configuration, value, self._words(row), "array" if row.schedule else "host")
            for row in self.rows
            if (value := row.instructions if counted else self.latency_ms(row)) is not None
        ]
        bars += [
            Bar(f"published: {row.configuration}", row.latency_ms,
                f"{milliseconds(row.latency_ms)} ms", "dim", hollow=True)
            for row in self.published
            if row.latency_ms is not None
        ]  # fmt: skip
        axis = f"{'instructions' if counted else 'ms'} of one inference, logarithmic"
        keys = {"array": "with accelerators", "host": "cores alone", "dim": "published"}
        used = {name: said for name, said in keys.items() if name in {bar.colour for bar in bars}}
        return bar_figure(self.network, bars, axis, logarithmic=True, keys=used)

    def _words(self, row: ComparisonRow) -> str:
        parts = [count(row.instructions) or f"{milliseconds(self.latency_ms(row))} ms"]
        if row.accelerator_cycles is not None:
            parts.append(f"and {count(row.accelerator_cycles)} cycles of accelerators")
        if (times := self.speed_up(row)) is not None:
            parts.append(f"{times:.1f}x")
        return ", ".join(parts)

    def __str__(self) -> str:
        """Return the comparison as text."""
        return comparison_text(self)

    __repr__ = __str__


def agreement_words(agreement: Agreement | None, scores_sqnr_db: float | None = None) -> str:
    """Describe the agreement with the source model in a few words.

    Args:
        agreement: of the outputs.
        scores_sqnr_db: SQNR of what a last softmax reads; it says more than that of its output.
    """
    if agreement is None:
        return ""
    if agreement.equal == agreement.inputs:
        return f"equal on {agreement.inputs} of {agreement.inputs}"
    largest = agreement.max_difference
    steps = f"{count(largest)} quantized steps" if isinstance(largest, int) else f"{largest:.2g}"
    parts = [f"differs by up to {steps}"]
    if agreement.top1 is not None:
        parts.insert(0, f"top-1 {agreement.top1} of {agreement.inputs}")
    if scores_sqnr_db is not None:
        parts.append(f"SQNR {scores_sqnr_db:.1f} dB before the softmax")
    elif agreement.sqnr_db is not None:
        parts.append(f"SQNR {agreement.sqnr_db:.1f} dB")
    return ", ".join(parts)


def _cells(comparison: Comparison, row: ComparisonRow) -> tuple[str, ...]:
    ms = comparison.latency_ms(row)
    memory = row.memory
    speed_up = comparison.speed_up(row)
    exact = {None: "", True: "yes", False: "NO"}[row.exact]
    return (
        row.configuration,
        count(row.cycles) if not row.failure else row.failure,
        count(row.instructions),
        count(row.accelerator_cycles),
        milliseconds(ms),
        ratio(comparison.macs, row.cycles),
        "" if speed_up is None else f"{speed_up:.1f}x",
        "" if memory is None else count(memory.code + memory.constants),
        "" if memory is None else count(memory.total),
        exact,
    )


def _published_cells(comparison: Comparison, row: Published) -> tuple[str, ...]:
    ms = milliseconds(row.latency_ms) or "out of memory"
    size = "" if row.size_kb is None else f"{row.size_kb} kB"
    base = comparison.published[0].latency_ms
    speed_up = "" if base is None or not row.latency_ms else f"{base / row.latency_ms:.1f}x"
    return (f"published: {row.configuration}", "", "", "", ms, "", speed_up, size, "", "")


def comparison_table(comparison: Comparison) -> Table:
    """Return one row per configuration, followed by the published ones, marked as such."""
    columns = (
        Column("configuration", wraps=True),
        Column("cycles", number=True),
        Column("instructions", number=True),
        Column("accelerator cycles", number=True),
        Column("ms", number=True),
        Column("MAC/cycle", number=True, spare=True),
        Column("speed-up", number=True),
        Column("code+data B", number=True, spare=True),
        Column("all L2 B", number=True),
        Column("exact"),
    )
    rows = [_cells(comparison, row) for row in comparison.rows]
    rows += [_published_cells(comparison, row) for row in comparison.published]
    return Table(columns, tuple(rows))


def _agreement_lines(comparison: Comparison) -> list[str]:
    """Return one line per configuration on how its outputs compare with the source model's."""
    texts = {
        row.configuration: "; ".join(
            filter(None, [agreement_words(row.agreement, row.scores_sqnr_db), _labelled(row)])
        )
        for row in comparison.rows
    }
    texts = {name: words for name, words in texts.items() if words}
    width = max(map(len, texts), default=0)
    lines = [f"  {name:<{width}}  {words}" for name, words in texts.items()]
    return ["outputs against the source model's:", *lines] if lines else []


def _labelled(row: ComparisonRow) -> str:
    return "" if row.decisions is None else str(row.decisions)


def _published_lines(comparison: Comparison) -> list[str]:
    """Return the sources of published figures, and what to know when comparing them with ours."""
    rows = comparison.published
    remarked = {row.source + (f"; {row.remark}" if row.remark else ""): None for row in rows}
    return [f"published figures: {line}" for line in remarked]


_COUNTED = "instructions: of the core, counted by an emulator"
_BESIDE = ", without those of accelerators' steps, whose cycles are predicted: the two are no sum"


def _cost_line(comparison: Comparison) -> str:
    """Return what speed-ups refer to, or what is counted where there are none."""
    base = comparison.row(comparison.baseline)
    if base.instructions is not None:
        beside = any(row.accelerator_cycles is not None for row in comparison.rows)
        return _COUNTED + (_BESIDE if beside else "")
    rate = ratio(base.cycles, comparison.macs)
    line = f"speed-up: over {comparison.baseline}, one core"
    if rate:
        line += f", {rate} cycles per MAC in the same simulator"
    if comparison.published:
        line += f"; published ones over {comparison.published[0].configuration}"
    return line


def comparison_text(comparison: Comparison, width: int = _LINE) -> str:
    """Return the comparison as text: speed-ups only with baseline, clock and published figures.

    Args:
        comparison: the comparison.
        width: characters per line.
    """
    notes = (
        "exact: every output equals the integer definition of the network as built",
        _cost_line(comparison),
        *_published_lines(comparison),
        *comparison.notes,
    )
    lines = [
        f"{comparison.network}: {count(comparison.macs)} MACs, "
        f"times at {comparison.clock_hz / 1e6:g} MHz, of one inference",
        "",
        text(comparison_table(comparison), width),
        "",
        *wrapped(_agreement_lines(comparison), width),
        "",
        *wrapped(notes, width),
    ]
    return "\n".join(lines)


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """Return the fields of `Comparison` for JSON, and values derived per row."""
    data = dataclasses.asdict(comparison)
    for row, entry in zip(comparison.rows, data["rows"], strict=True):
        entry["latency_ms"] = comparison.latency_ms(row)
        entry["speed_up"] = comparison.speed_up(row)
        if row.memory is not None:
            entry["memory"]["total"] = row.memory.total
    return data


_SOURCE = "HTVM (DAC 2023), Table I: DIANA at 260 MHz, CPU code with SIMD"
_CPU = "TVM on the CPU"
DIGITAL = "HTVM, CPU + digital core"
"""Name of the configuration that targets with the digital core are compared with."""
_ANALOG = "HTVM, CPU + analog core"
_BOTH = "HTVM, CPU + both cores, without transfers"

WHY_FASTER = (
    "Where ours is faster than published, the schedule is the reason: the constants of the cores "
    "and the DMA are fitted to the published figures, but tensors stay in L1 and transfers run "
    "beside the cores, which the chip is assumed to be able to queue. --schedule published leaves "
    "both out."
)
"""Notes to print next to the published figures (derived from Table I, not measured on the chip)."""

# (latency in ms or None for out of memory, size in kB), TVM on the CPU and HTVM digital.
TABLE_I: dict[str, tuple[tuple[float | None, int], tuple[float, int]]] = {
    "ds_cnn": ((48.24, 59), (1.75, 60)),
    "mobilenet_v1": ((None, 289), (5.68, 306)),
    "resnet8": ((134.11, 122), (1.19, 107)),
    "toyadmos": ((4.70, 287), (0.36, 315)),
}

ANALOG: dict[str, tuple[float, int]] = {
    "ds_cnn": (13.51, 93),
    "mobilenet_v1": (40.67, 239),
    "resnet8": (1.53, 129),
    "toyadmos": (0.80, 171),
}
"""Latency in ms and size in kB, HTVM on the CPU and the analog core."""

BOTH_PEAK: dict[str, tuple[float, int]] = {
    "ds_cnn": (1.66, 81),
    "mobilenet_v1": (5.39, 292),
    "resnet8": (0.61, 107),
    "toyadmos": (0.49, 274),
}
"""The same for the CPU and both cores, column "Peak": without the transfers between L2 and L1."""

# A network is recognised by its multiply-accumulates, which identify these networks exactly; file
# names say little.  Each has a remark on what to know when comparing it with the published one.
_KNOWN = {
    2_616_768: ("ds_cnn", ""),
    2_656_768: ("ds_cnn", "published with a first filter of 7x5"),
    7_490_176: ("mobilenet_v1", ""),
    7_489_664: ("mobilenet_v1", "published with 4 classes"),
    12_501_760: ("resnet8", ""),
    12_501_632: ("resnet8", "published with 12 classes"),
    264_192: ("toyadmos", ""),
}


def published(macs: int, target: str = "diana.digital") -> tuple[Published, ...]:
    """Return a network's published figures on a target's SoC, CPU first; empty if there are none.

    Args:
        macs: multiply-accumulates per inference, which identify the network.
        target: the target of the build; figures exist for DIANA only, as it was made: there are
            none for other values of its parameters.
    """
    if macs not in _KNOWN or target.split(".")[0] != "diana" or ":" in target:
        return ()
    row, remark = _KNOWN[macs]
    cpu, digital = TABLE_I[row]
    name, figures = {
        "diana.analog": (_ANALOG, ANALOG[row]),
        "diana.mixed": (_BOTH, BOTH_PEAK[row]),
    }.get(target.replace(".simd", ""), (DIGITAL, digital))
    return (
        Published(_CPU, *cpu, _SOURCE, remark),
        Published(name, *figures, _SOURCE, remark),
    )
