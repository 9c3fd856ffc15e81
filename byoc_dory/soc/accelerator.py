"""What an accelerator is: a place in a SoC, numbers, and the toolkit its author writes."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast

from byoc_dory.verdict import Rule, Verdict, judge

if TYPE_CHECKING:
    from byoc_dory.emit import Emitter
    from byoc_dory.layers.layer import Layer
    from byoc_dory.options import ScheduleKind, TilingOptions
    from byoc_dory.plan import LayerPlan
    from byoc_dory.soc.base import Soc
    from byoc_dory.tiling import Objective, Tile, TilingProblem

__all__ = ["Accelerator", "Expander", "Scheme", "Toolkit"]

Scheme: TypeAlias = Literal["shift", "ternary", "mul_shift"]
"""The arithmetic of an accelerator.  ``shift``: int8 weights, one right shift (`Shift`);
``ternary``: weights -1, 0, 1 and converters behind the columns (`AnalogRequant`); ``mul_shift``:
int8 weights, a multiplier of 8 bits before the right shift (`MulShift`, and so `Shift`)."""


class Toolkit(Protocol):
    """What the author of an accelerator writes besides numbers: a module with these names.

    Attributes:
        RULES: judged in order; the first refusal is the verdict.
        OBJECTIVES: tiling objectives by name, each of named and weighted heuristics.

    The functions get the accelerator they work for (``core``), so that a SoC may have several of
    one kind.
    """

    RULES: tuple[Rule, ...]
    OBJECTIVES: Mapping[str, Objective]

    def tiling_problem(self, layer: Layer, core: Any, soc: Soc, l1_budget: int) -> TilingProblem:
        """Return the tiling problem of ``layer`` with ``l1_budget`` bytes of L1."""

    def cost(self, layer: Layer, tile: Tile, core: Any, soc: Soc, schedule: ScheduleKind) -> int:
        """Return the predicted cycles of ``layer`` alone, with this tile and kind of schedule."""

    def plan_cost(
        self, layer: Layer, plan: LayerPlan, core: Any, soc: Soc, options: TilingOptions
    ) -> int:
        """Return the predicted cycles of ``layer`` under a plan; its offsets do not matter."""

    def emitter(self, core: Any, soc: Soc) -> Emitter:
        """Return what turns plans into C for ``core``."""


class Expander(Protocol):
    """What a toolkit may have besides: layers that are executed as several."""

    def expand(self, layer: Layer, core: Any, soc: Soc) -> Sequence[tuple[Layer, str]]:
        """Return the layers that ``layer`` is executed as, each with its accelerator's name.

        They belong to the same family, and the last one has the output of ``layer``.
        """


@dataclass(frozen=True)
class Accelerator:
    """One accelerator: its place in the SoC and where its toolkit is found.

    Attributes:
        name: short name, unique in the SoC; composites are called "<name>.<op>".
        title: what it is called in reports.
        registers: device address of the register block.
        l1: name of the memory it works on.
        family: accelerators of one family share their L1 and the layout of activations in it, so
            that tensors pass between them as they are and one region may hold layers of both.
        toolkit_module: importable module that satisfies :class:`Toolkit`.  Named, not held, so
            that a description stays plain data that loads without a solver.
    """

    name: str
    title: str
    registers: int
    l1: str
    family: str
    toolkit_module: str

    @property
    def peak_macs(self) -> float | None:
        """Multiply-accumulates per cycle at best; None where there is no such figure."""
        return None

    @property
    def scheme(self) -> Scheme:
        """The arithmetic it executes; retargeting writes its layers in that form."""
        return "shift"

    @property
    def keeps_rows(self) -> bool:
        """Whether matrices lie row by row in its layout.  Elsewhere a sum of matrices, which does
        not care, is offered as one of vectors."""
        return False

    @property
    def multiplies_per_channel(self) -> bool:
        """Whether its multipliers, if it has any, may differ from output channel to channel."""
        return False

    @property
    def toolkit(self) -> Toolkit:
        """The toolkit, imported on first use."""
        return cast(Toolkit, importlib.import_module(self.toolkit_module))

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules a layer must pass, in the order in which they are judged."""
        return self.toolkit.RULES

    @property
    def objectives(self) -> Mapping[str, Objective]:
        """The tiling objectives by name."""
        return self.toolkit.OBJECTIVES

    def emitter(self, soc: Soc) -> Emitter:
        """Return what turns plans into C."""
        return self.toolkit.emitter(self, soc)

    def configured(self, options: TilingOptions) -> Accelerator:
        """Return the accelerator as these options want it used."""
        return self

    def expand(self, layer: Layer, soc: Soc) -> Sequence[tuple[Layer, str]]:
        """Return the layers that ``layer`` is executed as: itself, unless the toolkit expands it
        (see `Expander`)."""
        expander = getattr(self.toolkit, "expand", None)
        if expander is None:
            return ((layer, self.name),)
        return cast(Expander, self.toolkit).expand(layer, self, soc)

    def judge(self, layer: Layer, soc: Soc) -> Verdict:
        """Return the first refusal of :attr:`rules`, or acceptance."""
        return judge(layer, self, soc, self.rules)

    def tiling_problem(self, layer: Layer, soc: Soc, l1_budget: int | None = None) -> TilingProblem:
        """Return the tiling problem of ``layer``; the budget defaults to the whole L1."""
        budget = soc.memory(self.l1).size if l1_budget is None else l1_budget
        return self.toolkit.tiling_problem(layer, self, soc, budget)

    def cost(self, layer: Layer, tile: Tile, soc: Soc, schedule: ScheduleKind = "published") -> int:
        """Return the predicted cycles of ``layer`` alone, with this tile and kind of schedule."""
        return self.toolkit.cost(layer, tile, self, soc, schedule)

    def plan_cost(self, layer: Layer, plan: LayerPlan, soc: Soc, options: TilingOptions) -> int:
        """Return the predicted cycles of ``layer`` under a plan; its offsets do not matter."""
        return self.toolkit.plan_cost(layer, plan, self, soc, options)
