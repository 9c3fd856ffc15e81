"""Energy of steps, from the average powers of a SoC's description.

A power applies while a set of accelerators is working.  A step on an accelerator is charged its
power from the call to the return; a step without a power in the description has no energy.

If an accelerator of a run has no power of its own, but all accelerators of the run together have
one, that power is the average over a run in which they alternate.  Every step is charged this
power, which is right for the whole run but does not tell steps apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from htvm.tools.report.picture_types import Energy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from byoc_dory.soc.base import Power, Soc


class _Step(Protocol):
    @property
    def accelerator(self) -> str: ...
    @property
    def kind(self) -> str: ...


class _TimedStep(_Step, Protocol):
    @property
    def cycles(self) -> int | None: ...


def accelerators_of(steps: Iterable[_Step]) -> tuple[str, ...]:
    """Return the accelerators that compute layers, in the order of their first layer."""
    return tuple(dict.fromkeys(step.accelerator for step in steps if step.kind == "layer"))


def step_energy(
    soc: Soc, accelerator: str, kind: str, cycles: int | None, used: Sequence[str]
) -> tuple[Power, float] | None:
    """Return the power of a step and its energy in microjoules; None if it has no power or cycles.

    Args:
        soc: the SoC that has the powers.
        accelerator: the accelerator that the step runs on, or that a conversion is for.
        kind: kind of the step; conversions and copies are the host's work.
        cycles: cycles of the step; None if unknown.
        used: accelerators of the run.
    """
    own = "cpu" if kind in ("prologue", "epilogue", "copy") else accelerator
    alternate = len(used) > 1 and any(soc.power(name) is None for name in used)
    power = (soc.power(*used) if alternate else None) or soc.power(own)
    if power is None or cycles is None:
        return None
    return power, power.milliwatts * soc.cycles_to_ms(cycles)


def energy_of(soc: Soc, rows: Sequence[_TimedStep]) -> Energy | None:
    """Return the energy of all steps that have one; None if no step has."""
    total, covered = 0.0, 0
    used: dict[Power, None] = {}
    accelerators = accelerators_of(rows)
    for row in rows:
        found = step_energy(soc, row.accelerator, row.kind, row.cycles, accelerators)
        if found is None or row.cycles is None:
            continue
        power, energy = found
        used[power] = None
        total, covered = total + energy, covered + row.cycles
    if not used:
        return None
    words = [
        f"{' and '.join(power.units)}: {power.milliwatts:g} mW ({power.source})" for power in used
    ]
    return Energy(total, covered, tuple(words))
