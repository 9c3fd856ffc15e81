"""What an accelerator is: a place in a SoC, numbers, and the toolkit its author writes."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast

from byoc_dory.soc.base import round_up
from byoc_dory.verdict import Rule, Verdict, judge

if TYPE_CHECKING:
    from byoc_dory.emit import Emitter
    from byoc_dory.layers.layer import Layer
    from byoc_dory.options import ScheduleKind, TilingOptions
    from byoc_dory.plan import LayerPlan
    from byoc_dory.soc.base import Soc
    from byoc_dory.tiling import Objective, Tile, TilingProblem

__all__ = ["Accelerator", "DigitalCore", "Expander", "Scheme", "Toolkit"]

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


@dataclass(frozen=True)
class DigitalCore(Accelerator):
    """A 2-D array that computes ``lanes`` output maps by ``columns`` output columns at a time.

    Cycles of a trigger = constant + weight bytes / ``weight_bytes_per_cycle`` + sum over
    (block of lanes, block of columns, output row) of ``C*fy'*fx + row_cycles*C*fy' +
    output_cycles``, with fy' the filter rows inside the tile; dense ceil(C/columns) *
    ceil(K/lanes), add ceil(elements/columns) instead of the sum.  The constants include the
    host's driver code, whose measured share is ``*_driver_cycles``.

    Attributes:
        lanes, columns: output maps and output columns of the array.
        row_pitch: rows of activations are padded to this many bytes, in L1 and in L2.
        group: aligned groups of this many bytes are stored reversed.
        weight_memory: bytes of weights and bias one trigger may load.
        weight_bytes_per_cycle: how fast the trigger loads them from L2.
        bias_bytes: bytes of one block of ``lanes`` biases of a conv.
        dense_bias_bytes: the same of a dense trigger.
        row_cycles, output_cycles: alpha and beta of the cycle model.
        *_trigger_cycles: constant of one trigger, driver included (depthwise: per channel).
        *_driver_cycles: host cycles in it (depthwise: of each channel, loop included).
        *_ahead_cycles: what each further trigger of one call saves when its registers are written
            while the one before runs.
        filters: filter sizes per axis.
        strides: strides (both axes alike).
        max_shift: largest right shift of the requantization.
        dense_max_k: outputs of one dense trigger.
    """

    lanes: int
    columns: int
    row_pitch: int
    group: int
    weight_memory: int
    weight_bytes_per_cycle: int
    bias_bytes: int
    dense_bias_bytes: int
    row_cycles: int
    output_cycles: int
    conv_trigger_cycles: int
    depthwise_trigger_cycles: int
    dense_trigger_cycles: int
    add_trigger_cycles: int
    conv_driver_cycles: int
    depthwise_driver_cycles: int
    dense_driver_cycles: int
    add_driver_cycles: int
    depthwise_ahead_cycles: int
    dense_ahead_cycles: int
    filters: tuple[int, ...]
    strides: tuple[int, ...]
    max_shift: int
    dense_max_k: int

    @property
    def peak_macs(self) -> float:
        """One per cycle and cell of the array."""
        return self.lanes * self.columns

    def conv_weight_bytes(self, k: int, c: int, fy: int, fx: int) -> int:
        """Bytes of the packed weights and biases of a conv trigger."""
        blocks = -(-k // self.lanes)
        return blocks * (self.lanes * c * fy * fx + self.bias_bytes)

    @property
    def depthwise_block_channels(self) -> int:
        """Channels that share a block of depthwise weights: one per reversed group of lanes."""
        return self.lanes // self.group

    def depthwise_weight_bytes(self, k: int, fy: int, fx: int) -> int:
        """Bytes of the packed weights and biases of ``k`` depthwise channels."""
        blocks = -(-k // self.depthwise_block_channels)
        return blocks * (self.lanes * fy * fx + self.bias_bytes)

    def dense_weight_bytes(self, c: int) -> int:
        """Bytes of the packed weights and biases of one dense trigger (up to ``lanes`` outputs)."""
        return self.lanes * round_up(c, self.columns) + self.dense_bias_bytes
