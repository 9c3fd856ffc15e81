"""What comparisons of builds are made of: plain frozen values, drawn by `compare`.

Units: sizes in bytes, times in cycles of the SoC's clock or in ms, SQNR in dB.  What was not
measured is ``None``, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from htvm.report.types import Memory

__all__ = [
    "Agreement",
    "Comparison",
    "ComparisonRow",
    "Published",
]


@dataclass(frozen=True)
class Agreement:
    """How a configuration's outputs compare with the source model's, over all inputs tried.

    Attributes:
        inputs: how many inputs were tried.
        equal: on how many of them every output element is the same.
        max_difference: largest absolute difference of any output element: an int in quantized
            steps, or a float where outputs are reals.
        top1: on how many the largest element is the same one; None if that means nothing.
        sqnr_db: of all outputs together; None if they are equal or it was not computed.
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
        configuration: in words, e.g. "plain TVM on the CPU" or "diana.digital".
        target: target name.
        cycles: simulated; None if it does not run (then ``failure`` says why).
        memory: use of L2; None if it was not built.
        agreement: with the source model; None if it was not compared.
        failure: why there are no numbers, in a few words; empty if there are.
        exact: whether the outputs equal `Module.reference`; None if it was not checked.
        policy, schedule: how layers were dispatched and executed; empty without accelerators.
    """

    configuration: str
    target: str
    cycles: int | None = None
    memory: Memory | None = None
    agreement: Agreement | None = None
    failure: str = ""
    exact: bool | None = None
    policy: str = ""
    schedule: str = ""


@dataclass(frozen=True)
class Published:
    """A published figure to stand beside ours.

    Attributes:
        configuration: in words.
        latency_ms: at the published clock; None if it did not run.
        size_kb: published size of the binary in kB; None if not given.
        source: where it was published.
        remark: what must be known to compare it with ours.
    """

    configuration: str
    latency_ms: float | None
    size_kb: int | None
    source: str
    remark: str = ""


@dataclass(frozen=True, repr=False)
class Comparison:
    """Everything `htvm.compare` shows.

    Attributes:
        network: name of the model.
        macs: multiply-accumulates of one inference.
        clock_hz: clock with which cycles become milliseconds.
        rows: the configurations.
        baseline: ``configuration`` of the row speed-ups refer to.
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

    def row(self, configuration: str) -> ComparisonRow:
        """The row of that configuration.

        Raises:
            KeyError: there is none.
        """
        for row in self.rows:
            if row.configuration == configuration:
                return row
        raise KeyError(configuration)

    def latency_ms(self, row: ComparisonRow) -> float | None:
        """Time of one inference in ms; None where the configuration did not run."""
        return None if row.cycles is None else row.cycles * 1000.0 / self.clock_hz

    def speed_up(self, row: ComparisonRow) -> float | None:
        """Cycles of the baseline over those of ``row``; None where either did not run."""
        base = self.row(self.baseline).cycles
        return None if base is None or not row.cycles else base / row.cycles

    def __str__(self) -> str:
        """The comparison as text."""
        from htvm.report.compare import comparison_text

        return comparison_text(self)

    __repr__ = __str__
