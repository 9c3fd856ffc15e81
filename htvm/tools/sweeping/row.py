"""`Row`: what is known of one network on one design."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from byoc_dory.soc.parameters import Value
    from htvm.tools.sweeping.costs import Costs

Status: TypeAlias = Literal["ok", "infeasible", "failed"]


@dataclass(frozen=True)
class Row:
    """One network on one design.  Nothing in it depends on the machine or the time of the sweep.

    Attributes:
        design: number of the design, from 0.
        model: name of the network.
        target: name of the target with the design's parameters.
        values: the swept parameters by name.
        status: ``"ok"``; ``"infeasible"`` if a memory is too small or parameters contradict each
            other; ``"failed"`` for anything else.
        exact: whether every output element equals the reference.
        cycles: simulated cycles of one inference.
        ms: the same in milliseconds at the SoC's clock.
        macs: multiply-accumulates of one inference.
        moved_bytes: bytes that layers and kernels read from L2 and wrote to it.
        reason, where, levers: of an error: what is wrong, where, and what would help.
        limit, demand, smallest: of a memory that is too small: its size, the bytes that the whole
            would need, and those that the smallest tile needs.
        energy_uj: energy in microjoules by the user's coefficients.
        area: area in the unit of the user's coefficients.
    """

    design: int
    model: str
    target: str
    values: tuple[tuple[str, Value], ...]
    status: Status = "ok"
    exact: bool | None = None
    cycles: int | None = None
    ms: float | None = None
    macs: int | None = None
    moved_bytes: int | None = None
    reason: str = ""
    where: str = ""
    levers: str = ""
    limit: int | None = None
    demand: int | None = None
    smallest: int | None = None
    energy_uj: float | None = None
    area: float | None = None

    @property
    def record(self) -> dict[str, Any]:
        """The row as plain values, with one column per parameter."""
        found: dict[str, Any] = {}
        for field in fields(self):
            if field.name == "values":
                found.update(self.values)
            else:
                found[field.name] = getattr(self, field.name)
        return found

    @classmethod
    def of(cls, record: dict[str, Any], names: tuple[str, ...]) -> Row:
        """Return the row of a record.

        Raises:
            KeyError, TypeError: it is not one of a row with these parameters.
        """
        values = tuple((name, record[name]) for name in names)
        rest = {key: value for key, value in record.items() if key not in names}
        return cls(values=values, **rest)

    def priced(self, costs: Costs, settings: dict[str, Value]) -> Row:
        """Return the row with energy and area by the user's coefficients."""
        energy = None
        if self.cycles is not None and self.macs is not None and self.moved_bytes is not None:
            energy = costs.energy_uj(self.macs, self.moved_bytes, self.cycles)
        return replace(self, energy_uj=energy, area=costs.area_of(settings))


COLUMNS = {
    "design": "int64", "model": "string", "target": "string", "status": "string",
    "exact": "boolean", "cycles": "Int64", "ms": "Float64", "macs": "Int64",
    "moved_bytes": "Int64", "reason": "string", "where": "string", "levers": "string",
    "limit": "Int64", "demand": "Int64", "smallest": "Int64", "energy_uj": "Float64",
    "area": "Float64",
}  # fmt: skip
"""Types of the data frame's columns; parameters have the type of their values."""
