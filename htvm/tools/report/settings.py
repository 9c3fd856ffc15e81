"""Settings that would make a build quicker, with what they cost in accuracy."""

from __future__ import annotations

from dataclasses import dataclass

from htvm.tools.report.table import count

_LOSS_DB = 3.0
"""A loss of SQNR that is called a warning: half the signal's share of the noise."""
_NAMED = 6  # layers whose names are said


@dataclass(frozen=True)
class Numbers:
    """How a build's numbers agree with the source's.

    Attributes:
        sqnr_db: at the output, in dB; None if the numbers are the source's.
        agreement: fraction of the inputs with the same decision, 0 to 1; None without decisions.
    """

    sqnr_db: float | None = None
    agreement: float | None = None

    def __str__(self) -> str:
        """Return them in words."""
        if self.sqnr_db is None:
            return "the source's numbers"
        same = "" if self.agreement is None else f", same decision {100 * self.agreement:.1f} %"
        return f"SQNR {self.sqnr_db:.1f} dB{same}"


@dataclass(frozen=True)
class Setting:
    """A setting that was tried, and is quicker.

    Attributes:
        option: as it is typed, e.g. ``--policy latency``.
        before, after: predicted cycles of the network without and with it.
        moved: layers that run elsewhere with it.
        numbers, changed: accuracy without and with it, on the same inputs.
    """

    option: str
    before: int
    after: int
    moved: tuple[str, ...]
    numbers: Numbers
    changed: Numbers

    @property
    def gain(self) -> int:
        """Cycles saved."""
        return self.before - self.after

    @property
    def same(self) -> bool:
        """Whether the measured accuracy is the same."""
        return self.numbers == self.changed

    @property
    def loses(self) -> bool:
        """Whether it loses so much accuracy that it needs a warning."""
        if self.changed.sqnr_db is None:
            return False
        return self.numbers.sqnr_db is None or (
            self.numbers.sqnr_db - self.changed.sqnr_db >= _LOSS_DB
        )

    @property
    def sentence(self) -> str:
        """What it gains, and what it costs."""
        share = 100 * self.gain / self.before
        gains = f"-{count(self.gain)} cycles ({share:.1f} % of all), "
        gains += f"{count(self.before)} -> {count(self.after)}"
        if self.same:
            return f"{self.option}: {gains}; {self.changed}, as now"
        warning = "LOSES ACCURACY: " if self.loses else ""
        return f"{self.option}: {gains}; {warning}{self.changed}, now {self.numbers}"

    @property
    def short(self) -> str:
        """The same on one line of a terminal."""
        gains = f"-{count(self.gain)} cycles ({100 * self.gain / self.before:.1f} %)"
        if self.same:
            return f"{self.option}: {gains}, the same accuracy"
        sqnr = "the source's numbers"
        if self.changed.sqnr_db is not None:
            sqnr = f"SQNR {self.changed.sqnr_db:.1f} dB"
        return f"{self.option}: {gains}, {'LOSES ACCURACY: ' if self.loses else ''}{sqnr}"


def settings_text(found: tuple[Setting, ...]) -> str:
    """Return the settings that are quicker, one line each with the layers it moves; "" if none."""
    if not found:
        return ""
    lines = ["settings that are quicker, each tried:"]
    for each in found:
        names = ", ".join(each.moved[:_NAMED])
        more = f" and {len(each.moved) - _NAMED} more" if len(each.moved) > _NAMED else ""
        lines.append(f"  {each.sentence}; moves {names}{more}")
    return "\n".join(lines)
