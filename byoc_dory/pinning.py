"""Which layers' weights are kept in a memory of their own, where not all of them fit.

An accelerator may read a layer's weights from a memory besides L1, or have them loaded into L1 with
each tile.  Keeping them saves cycles and takes room: this is a knapsack, solved exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pulp

from byoc_dory.cost import Cost
from byoc_dory.errors import TilingError
from byoc_dory.layers import Layer
from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.soc.base import Accelerator, round_up
from byoc_dory.solver import solve_program


@dataclass(frozen=True)
class KeptWeights:
    """The weights of one layer.

    Attributes:
        layer, accelerator: names.
        bytes: size in the memory that could keep them.
        memory: name of the memory that keeps them; "" if they are loaded with each tile.
        kept_cycles, loaded_cycles: predicted cycles of the layer alone if its weights are kept, and
            if they are loaded; ``None`` if there was nothing to decide, or no tile fits.
    """

    layer: str
    accelerator: str
    bytes: int
    memory: str
    kept_cycles: int | None = None
    loaded_cycles: int | None = None

    @property
    def saved_cycles(self) -> int | None:
        """Cycles that keeping the weights saves; ``None`` if unknown."""
        if self.kept_cycles is None or self.loaded_cycles is None:
            return None
        return self.loaded_cycles - self.kept_cycles


@dataclass(frozen=True)
class WeightPlan:
    """Where the weights of a network are.

    Attributes:
        layers: the layers whose accelerator can have its weights kept, in execution order.
        capacity: bytes of each memory that may keep them.
        bound: fewest predicted cycles that any choice could cost more than keeping everything.
        method: how the plan was found.
    """

    layers: tuple[KeptWeights, ...] = ()
    capacity: Mapping[str, int] = field(default_factory=dict[str, int])
    bound: int = 0
    method: str = "everything fits"

    @property
    def homes(self) -> dict[str, str]:
        """The memory of each layer's weights, "" for L1, by the layer's name."""
        return {each.layer: each.memory for each in self.layers}

    @property
    def loaded(self) -> tuple[KeptWeights, ...]:
        """The layers whose weights are loaded with each tile."""
        return tuple(each for each in self.layers if not each.memory)

    @property
    def cost(self) -> int:
        """Predicted cycles that loading weights costs, beyond keeping all of them."""
        return sum(each.saved_cycles or 0 for each in self.loaded)


def plan_weights(layers: Iterable[tuple[Layer, Accelerator]], cost: Cost) -> WeightPlan:
    """Choose the layers whose weights are kept in the memories that their accelerators name.

    If the first memory has room for all, it keeps all.  Otherwise the predicted cycles of each
    layer alone, with its weights kept and loaded, decide: as many cycles as possible are saved.

    Args:
        layers: the layers of the network with their accelerators, in execution order.
        cost: cycles on the SoC, with the options of the tiler.

    Raises:
        TilingError: weights that must be kept, because no tile of their layers fits L1 with them,
            exceed the memories.
    """
    pinnable = [(layer, home) for layer, home in layers if home.weight_memories]
    names = list(dict.fromkeys(name for _, home in pinnable for name in home.weight_memories))
    capacity = {name: cost.soc.memory(name).size for name in names}
    sizes = [round_up(home.kept_bytes(layer), ALIGNMENT) for layer, home in pinnable]
    first = [home.weight_memories[0] for _, home in pinnable]
    all_kept = tuple(
        KeptWeights(layer.name, home.name, size, memory)
        for (layer, home), size, memory in zip(pinnable, sizes, first, strict=True)
    )
    if all(
        sum(e.bytes for e in all_kept if e.memory == name) <= size
        for name, size in capacity.items()
    ):
        return WeightPlan(all_kept, capacity)
    priced = [
        replace(
            entry,
            kept_cycles=_cycles(cost, home.keeping(home.weight_memories[0]), layer),
            loaded_cycles=_cycles(cost, home.keeping(""), layer),
        )
        for entry, (layer, home) in zip(all_kept, pinnable, strict=True)
    ]
    choices = [home.weight_memories for _, home in pinnable]
    return choose_memories(priced, choices, capacity, cost.options.node_limit)


def _cycles(cost: Cost, home: Accelerator, layer: Layer) -> int | None:
    """Return the predicted cycles of a layer alone; ``None`` if no tile fits."""
    try:
        return cost.best_cycles(home, layer)
    except TilingError:
        return None


def choose_memories(
    layers: Sequence[KeptWeights],
    choices: Sequence[tuple[str, ...]],
    capacity: Mapping[str, int],
    node_limit: int,
) -> WeightPlan:
    """Return the plan that saves most cycles; among these, one that uses the preferred memories.

    Args:
        layers: the layers with their cycles; those without ``loaded_cycles`` must be kept.
        choices: for each layer, the memories that can keep its weights, the preferred one first.
        capacity: bytes of each memory.
        node_limit: branch-and-bound nodes after which the solver stops; the plan has the bound.

    Raises:
        TilingError: weights that must be kept do not fit.
    """
    program = pulp.LpProblem("weights", pulp.LpMinimize)
    variables = [
        {name: program.add_variable(f"x{number}_{name}", cat=pulp.LpBinary) for name in names}
        for number, names in enumerate(choices)
    ]
    for entry, row in zip(layers, variables, strict=True):
        once = pulp.lpSum(row.values())
        program += once == 1 if entry.loaded_cycles is None else once <= 1
    for name, size in capacity.items():
        weights_inside = [
            (row[name], entry.bytes)
            for entry, row in zip(layers, variables, strict=True)
            if name in row
        ]
        program += pulp.LpAffineExpression(weights_inside) <= size
    # Cycles that are lost, all but a constant; layers that cannot do otherwise do not count.
    lost = pulp.LpAffineExpression(
        [
            (variable, -(entry.saved_cycles or 0))
            for entry, row in zip(layers, variables, strict=True)
            for variable in row.values()
        ]
    )
    program.setObjective(lost)
    outcome = solve_program(program, node_limit)
    if not outcome.found:
        raise _nothing_fits(layers, capacity)
    method, all_cycles = "knapsack", sum(entry.saved_cycles or 0 for entry in layers)
    plan = WeightPlan(_with_memories(layers, variables), capacity, method=method)
    if not outcome.proven:
        return replace(
            plan,
            method="knapsack, node limit",
            bound=max(0, int(plan.cost - outcome.gap * all_cycles)),
        )
    program += lost <= plan.cost - all_cycles + 0.5
    program.setObjective(
        pulp.LpAffineExpression(
            [(variable, place) for row in variables for place, variable in enumerate(row.values())]
        )
    )
    if solve_program(program, node_limit).found:
        preferred = replace(plan, layers=_with_memories(layers, variables))
        if preferred.cost == plan.cost:
            plan = preferred
    return replace(plan, bound=plan.cost)


def _with_memories(
    layers: Sequence[KeptWeights], variables: Sequence[Mapping[str, pulp.LpVariable]]
) -> tuple[KeptWeights, ...]:
    """Return the layers with the memories that the solver chose."""
    return tuple(
        replace(entry, memory=next((n for n, x in row.items() if (x.value() or 0) > 0.5), ""))
        for entry, row in zip(layers, variables, strict=True)
    )


def _nothing_fits(layers: Sequence[KeptWeights], capacity: Mapping[str, int]) -> TilingError:
    required = [entry for entry in layers if entry.loaded_cycles is None]
    needed = sum(entry.bytes for entry in required)
    limits = ", ".join(f"{name} has {size:,} B" for name, size in capacity.items())
    largest = max(required, key=lambda entry: entry.bytes, default=None)
    where = "" if largest is None else f"layer '{largest.layer}' and {len(required) - 1} more"
    return TilingError(
        f"weights of {needed:,} B must be kept, because no tile fits L1 with them; {limits}",
        where=where,
        hint="allow more of L1, or leave these layers to other cores with a policy",
    )
