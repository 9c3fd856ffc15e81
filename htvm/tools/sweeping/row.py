"""What a sweep is made of: its costs, tasks and rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from byoc_dory.errors import TargetError
from htvm.public import public

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from byoc_dory.soc.parameters import Parameter, Value
    from htvm.build_options import BuildOptions
    from htvm.frontend.limits import Limits
    from htvm.model import Model


@public
@dataclass(frozen=True)
class Costs:
    """Coefficients of energy and area, which are the user's: this library has none of its own.

    Attributes:
        mac_pj: energy of one multiply-accumulate, in picojoules.
        byte_pj: energy of one byte moved to or from L2.
        cycle_pj: energy of one cycle of the whole SoC, such as leakage and clock.
        area: area per unit of a parameter's value, by its name (``{"pes": 310.0, "sram": 0.45}``),
            in any unit.
        base_area: area of everything else.

    Raises:
        TargetError: a coefficient is negative or not a finite number.
    """

    mac_pj: float | None = None
    byte_pj: float | None = None
    cycle_pj: float | None = None
    area: Mapping[str, float] = field(default_factory=dict[str, float])
    base_area: float = 0.0

    def __post_init__(self) -> None:
        named = {"mac_pj": self.mac_pj, "byte_pj": self.byte_pj, "cycle_pj": self.cycle_pj}
        named |= {"base_area": self.base_area, **{f"area[{k!r}]": v for k, v in self.area.items()}}
        for name, value in named.items():
            if value is None:
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or value < 0:
                raise TargetError(
                    f"the coefficient {name} cannot be {value!r}",
                    where="option 'costs'",
                    hint="give a number of at least 0",
                )

    def check(self, parameters: tuple[Parameter, ...]) -> None:
        """Refuse an area of a parameter that the SoC does not have, or that is not a number.

        Raises:
            TargetError: the message lists those that can be given.
        """
        known = [entry.name for entry in parameters if entry.kind in ("integer", "bytes", "number")]
        for name in self.area:
            if name not in known:
                raise TargetError(
                    f"there is no parameter {name!r} with a number to take an area of",
                    where="option 'costs'",
                    hint=f"one of {', '.join(known) or 'none'}",
                )

    def energy_uj(self, macs: int, moved_bytes: int, cycles: int) -> float | None:
        """Return the energy in microjoules; None without coefficients."""
        parts = ((self.mac_pj, macs), (self.byte_pj, moved_bytes), (self.cycle_pj, cycles))
        if all(each is None for each, _ in parts):
            return None
        return sum((each or 0.0) * number for each, number in parts) / 1e6

    def area_of(self, settings: Mapping[str, Value]) -> float | None:
        """Return the area of a design; None without coefficients."""
        if not self.area and not self.base_area:
            return None
        return self.base_area + sum(
            each * float(settings[name]) for name, each in self.area.items()
        )


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
        cycles: simulated cycles of one inference; beside a core whose cycles are not simulated,
            those that accelerators are predicted to take, without the core's work.
        ms: the same in milliseconds at the SoC's clock.
        instructions: of one inference on a core whose cycles are not simulated; of two cores, those
            of the longer share of each part of a kernel.
        network_macs: multiply-accumulates of one inference.
        moved_bytes: bytes that layers and kernels read from L2 and wrote to it; None if unknown.
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
    instructions: int | None = None
    network_macs: int | None = None
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
        record: dict[str, Any] = {}
        for each in fields(self):
            record.update(
                self.values if each.name == "values" else {each.name: getattr(self, each.name)}
            )
        return record

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
        macs, moved = self.network_macs, self.moved_bytes
        if self.cycles is not None and macs is not None and moved is not None:
            energy = costs.energy_uj(macs, moved, self.cycles)
        return replace(self, energy_uj=energy, area=costs.area_of(settings))


COLUMNS = {
    "design": "int64", "model": "string", "target": "string", "status": "string",
    "exact": "boolean", "cycles": "Int64", "ms": "Float64", "instructions": "Int64",
    "network_macs": "Int64", "moved_bytes": "Int64", "reason": "string", "where": "string",
    "levers": "string", "limit": "Int64", "demand": "Int64", "smallest": "Int64",
    "energy_uj": "Float64", "area": "Float64",
}  # fmt: skip
"""Types of the data frame's columns; parameters have the type of their values."""


@dataclass(frozen=True, eq=False)
class Case:
    """A region with its inputs and the outputs that it must give, flat."""

    region: Any
    inputs: tuple[np.ndarray, ...]
    outputs: tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class Network:
    """A network, compiled once.

    Attributes:
        cases: its regions.
        host_cycles: cycles of everything that the host computes, between regions and at their
            borders.
        host_bytes: bytes that it moves for that.
        macs: multiply-accumulates of one inference.
    """

    cases: tuple[Case, ...]
    host_cycles: int
    host_bytes: int
    macs: int


Networks: TypeAlias = "Mapping[tuple[int, tuple[Value, ...]], Network]"


@dataclass(frozen=True)
class Task:
    """One network on one design.

    Attributes:
        design: number of the design.
        model: number of the network.
        values: the swept parameters by name.
    """

    design: int
    model: int
    values: tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Job:
    """What all tasks of a sweep have in common; it is sent to other processes.

    Attributes:
        digest: identifies the sweep.
        target: name of the target whose parameters are swept.
        models: file or ``zoo:NAME`` of each network; a `Model` only within one process.
        names: the networks' names in rows.
        options: options of the builds.
        costs: coefficients of energy and area.
        seed: seed of the inputs.
        networks: of a SoC that executes regions on many designs (`Quick`), the networks,
            compiled once: by number, and the values of the parameters that matter to that; None
            for other SoCs.
        limits: what reading a file may take; the default's if None.
    """

    digest: str
    target: str
    models: tuple[str | Path | Model, ...]
    names: tuple[str, ...]
    options: BuildOptions
    costs: Costs
    seed: int
    networks: Networks | None = None
    limits: Limits | None = None
