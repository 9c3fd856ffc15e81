"""`Accelerator`: what the author of an accelerator writes, numbers and methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.soc.arithmetic import Arithmetic, Scheme, ShiftArithmetic
from byoc_dory.verdict import Rule, Verdict, judge

if TYPE_CHECKING:
    from byoc_dory.emit import Emitter
    from byoc_dory.layers import Layer
    from byoc_dory.options import ScheduleKind, TilingOptions
    from byoc_dory.plan import LayerPlan
    from byoc_dory.soc.base import Soc
    from byoc_dory.tiling import Objective, Tile, TilingProblem

__all__ = ["Accelerator"]


@dataclass(frozen=True)
class Accelerator(ABC):
    """One accelerator of a SoC.

    The author derives a class: fields for the accelerator's numbers, and the methods below.
    Descriptions are compared and listed without a solver: modules that need one, or numpy, are
    imported by the methods, not by the module of the class.

    Attributes:
        name: short name, unique in the SoC; composites are called "<name>.<op>".
        title: what it is called in reports.
        registers: device address of the register block.
        l1: name of the memory it works on.
        family: accelerators of one family share their L1 and the layout of activations in it, so
            that tensors pass between them as they are and one region may hold layers of both.
    """

    name: str
    title: str
    registers: int
    l1: str
    family: str

    # ------------------------------------------------------------------ what it is

    @property
    def peak_macs(self) -> float | None:
        """Multiply-accumulates per cycle at best; None where there is no such figure."""
        return None

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic it executes; retargeting writes its layers in that form."""
        return ShiftArithmetic()

    @property
    def scheme(self) -> Scheme:
        """Name of its arithmetic."""
        return self.arithmetic.name

    @property
    def keeps_rows(self) -> bool:
        """Whether matrices lie row by row in its layout.  Elsewhere a sum of matrices, which does
        not care, is offered as one of vectors."""
        return False

    def configured(self, options: TilingOptions) -> Accelerator:
        """Return the accelerator as these options want it used."""
        return self

    def noise_settings(self, deviation: float, seed: int) -> dict[int, int]:
        """Return device register -> value for a run with analog noise; empty where there is none.

        Args:
            deviation: standard deviation in steps of the converters.
            seed: 32 bits.
        """
        return {}

    # ------------------------------------------------------------------ what it takes

    @property
    @abstractmethod
    def rules(self) -> tuple[Rule, ...]:
        """The rules a layer must pass, in the order in which they are judged."""

    def judge(self, layer: Layer, soc: Soc) -> Verdict:
        """Return the first refusal of :attr:`rules`, or acceptance."""
        return judge(layer, self, soc, self.rules)

    def expand(self, layer: Layer, soc: Soc) -> Sequence[tuple[Layer, str]]:
        """Return the layers that ``layer`` is executed as, each with its accelerator's name.

        They belong to the same family, and the last one has the output of ``layer``.
        """
        return ((layer, self.name),)

    # ------------------------------------------------------------------ tiles and cycles

    @property
    @abstractmethod
    def objectives(self) -> Mapping[str, Objective]:
        """The tiling objectives by name."""

    @abstractmethod
    def tiling_problem(self, layer: Layer, soc: Soc, l1_budget: int | None = None) -> TilingProblem:
        """Return the tiling problem of ``layer``, with :meth:`budget` bytes of L1."""

    def budget(self, soc: Soc, l1_budget: int | None) -> int:
        """Return how many bytes of L1 may be used: ``l1_budget``, or all where it is None."""
        return soc.memory(self.l1).size if l1_budget is None else l1_budget

    @abstractmethod
    def plan_cost(self, layer: Layer, plan: LayerPlan, soc: Soc, options: TilingOptions) -> int:
        """Return the predicted cycles of ``layer`` under a plan; its offsets do not matter."""

    def cost(self, layer: Layer, tile: Tile, soc: Soc, schedule: ScheduleKind = "published") -> int:
        """Return the predicted cycles of ``layer`` with this tile, alone in L1 with one buffer."""
        from byoc_dory.options import TilingOptions
        from byoc_dory.plan import alone
        from byoc_dory.tiling.problem import solution_of

        problem = self.tiling_problem(layer, soc)
        plan = alone(layer, solution_of(problem, tile), self.name, problem)
        return self.plan_cost(layer, plan, soc, TilingOptions(schedule=schedule))

    # ------------------------------------------------------------------ C

    @abstractmethod
    def emitter(self, soc: Soc) -> Emitter:
        """Return what turns plans into C."""
