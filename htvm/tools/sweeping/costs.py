"""`Costs`: the user's coefficients of energy and area."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from byoc_dory.errors import TargetError
from htvm.public import public

if TYPE_CHECKING:
    from byoc_dory.soc.parameters import Parameter, Value


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
