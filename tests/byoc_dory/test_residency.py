"""Joint planning of regions: the integer program against an independent dynamic program, places in
L1 replayed, and never slower than each layer alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byoc_dory.cost import Cost
from byoc_dory.errors import TilingError
from byoc_dory.layers import (
    Layer,
    MulShift,
    Shift,
    Tensor,
    add_layer,
    conv2d_layer,
    depthwise_layer,
)
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan, RegionPlan
from byoc_dory.planning import plan_region
from byoc_dory.region import Region
from byoc_dory.residency import joint
from byoc_dory.residency.milp import solve_joint
from byoc_dory.residency.problem import Choice, RegionProblem, Stay
from byoc_dory.soc.base import round_up
from byoc_dory.soc.diana.description import DIANA, DIGITAL
from byoc_dory.soc.siracusa.description import SIRACUSA
from byoc_dory.tiling import Tile
from tests.byoc_dory.driver_calls import Load, Queue, steps_of
from tests.byoc_dory.layers import NETWORKS, int8
from tests.byoc_dory.plans import program_of
from tests.stopwatch import yardsticks

TILE = Tile(1, 1, 1, 1)


# ------------------------------------------------------------------ the reference


def dynamic(problem: RegionProblem) -> int:
    """Fewest cycles, layer by layer over all sets of tensors that may be in L1."""
    stays = {stay.name: stay for stay in problem.stays}
    best: dict[frozenset[str], int] = {frozenset(): 0}
    for layer, offered in enumerate(problem.choices):
        after: dict[frozenset[str], int] = {}
        for inside, cycles in best.items():
            for choice in offered:
                reads = zip(problem.reads[layer], choice.resident_inputs, strict=True)
                if any(resident != (name in inside) for name, resident in reads):
                    continue
                now = set(inside)
                if choice.resident_output:
                    now.add(problem.writes[layer])
                if choice.bytes + sum(stays[name].bytes for name in now) > problem.limit:
                    continue
                left = frozenset(name for name in now if stays[name].last > layer)
                after[left] = min(after.get(left, 1 << 60), cycles + choice.cycles)
        best = after
    return best[frozenset()]


@st.composite
def problems(draw: st.DrawFn) -> RegionProblem:
    """Graphs of a few layers, with choices of random bytes and cycles."""
    count = draw(st.integers(1, 6))
    reads = []
    for layer in range(count):
        sources = ["x", *(f"t{other}" for other in range(layer))]
        operands = draw(st.lists(st.sampled_from(sources), min_size=1, max_size=2))
        # A chain at least: the layer before is read.
        reads.append((sources[-1], *operands[1:]))
    stays = []
    for layer in range(count):
        readers = [other for other in range(count) if f"t{layer}" in reads[other]]
        if readers and draw(st.booleans()):
            stays.append(Stay(f"t{layer}", draw(st.integers(1, 40)), layer, max(readers)))
    names = {stay.name for stay in stays}
    choices = []
    for layer in range(count):
        alone = (False,) * len(reads[layer])
        offered = [
            Choice(TILE, 1, alone, False, draw(st.integers(1, 40)), draw(st.integers(20, 60)))
            for _ in range(draw(st.integers(1, 3)))
        ]
        for _ in range(draw(st.integers(0, 6))):
            inside = {name: name in names and draw(st.booleans()) for name in reads[layer]}
            leave = f"t{layer}" in names and draw(st.booleans())
            resident = tuple(inside[name] for name in reads[layer])
            size, cycles = draw(st.integers(0, 40)), draw(st.integers(0, 60))
            offered.append(Choice(TILE, 1, resident, leave, size, cycles))
        choices.append(tuple(offered))
    writes = tuple(f"t{layer}" for layer in range(count))
    return RegionProblem("r", 60, tuple(reads), writes, tuple(choices), tuple(stays))


@settings(max_examples=60)
@given(problems())
def test_the_program_finds_what_dynamic_programming_finds(problem: RegionProblem) -> None:
    found = solve_joint(problem, 1_000)
    assert found is not None
    assert found.cycles == dynamic(problem) == found.bound
    assert found == solve_joint(problem, 1_000)


@settings(max_examples=25)
@given(problems(), st.data())
def test_tensors_that_must_not_stay_together_do_not(
    problem: RegionProblem, data: st.DataObject
) -> None:
    first = solve_joint(problem, 1_000)
    assert first is not None
    if not first.stays:
        return
    group = frozenset(data.draw(st.sets(st.sampled_from(first.stays), min_size=1)))
    second = solve_joint(replace(problem, together=(group,)), 1_000)
    assert second is not None
    assert not group <= set(second.stays)
    assert second.cycles >= first.cycles


def test_a_wrong_decision_is_noticed() -> None:
    alone, stays = Choice(TILE, 1, (False,), False, 10, 5), Choice(TILE, 1, (False,), True, 10, 5)
    last = Choice(TILE, 1, (True,), False, 10, 5)
    choices = ((alone, stays), (alone, last))
    stay = Stay("t", 15, 0, 1)
    problem = RegionProblem("r", 30, (("x",), ("t",)), ("t", "y"), choices, (stay,))
    assert problem.decision((1, 1), ("t",), 0, "").cycles == 10
    with pytest.raises(TilingError, match="one layer only"):
        problem.decision((1, 0), ("t",), 0, "")
    with pytest.raises(TilingError, match="takes 25 B of L1, the limit is 20"):
        replace(problem, limit=20).decision((1, 1), ("t",), 0, "")
    with pytest.raises(TilingError, match="must not"):
        replace(problem, together=(frozenset("t"),)).decision((1, 1), ("t",), 0, "")


# ------------------------------------------------------------------ regions of layers


def region_of(layers: list[Layer], *outputs: str) -> Region:
    written = {layer.output.name for layer in layers}
    entering = {t.name: t for layer in layers for t in layer.inputs if t.name not in written}
    leaving = [x.output for x in layers if x.output.name in outputs or x is layers[-1]]
    return Region("r", tuple(layers), tuple(entering.values()), tuple(leaving))


def planned(region: Region, budget: int, objective: str | None = None) -> RegionPlan:
    options = TilingOptions(budget, objective, schedule="overlapped")
    return plan_region(
        region, dict.fromkeys((x.name for x in region.layers), DIGITAL), Cost(DIANA, options)
    )


def _written(layer: Layer, channels: int) -> int:
    """Maps the core writes for a tile, the surplus included."""
    if layer.op == "depthwise":
        return channels + 15
    return channels if layer.op == "add" else round_up(channels, 16)


def _whole(tensor: Tensor) -> int:
    if len(tensor.shape) == 1:
        return round_up(tensor.shape[0], 16)
    channels, rows, columns = tensor.shape
    return channels * rows * round_up(columns, 16)


def _moved(layer: Layer, its: LayerPlan) -> list[tuple[int, int]]:
    """From where to where in L1 each tensor that is not resident has its buffers."""
    starts: dict[int, set[int]] = {}
    for step in steps_of(program_of(layer, its)):
        if isinstance(step, Queue):
            operand = step.transfer.operand if isinstance(step.transfer, Load) else -1
            starts.setdefault(operand, set()).add(step.transfer.l1_offset)
    sizes = {-1: its.solution.l1_out}
    return [
        (min(at), max(at) + sizes.get(operand, its.solution.l1_in // len(layer.inputs)))
        for operand, at in starts.items()
    ]


def replay(region: Region, plan: RegionPlan, budget: int) -> None:
    """What each layer needs in L1, from its shapes and its schedule, against the offsets."""
    inside: dict[str, int] = {}
    last = {t.name: n for n, layer in enumerate(region.layers) for t in layer.inputs}
    sizes = {layer.output.name: _whole(layer.output) for layer in region.layers}
    for number, (layer, its) in enumerate(zip(region.layers, plan.layers, strict=True)):
        spans = [(at, at + sizes[name]) for name, at in inside.items()]
        for tensor, resident, at in zip(
            layer.inputs, its.resident_inputs, its.l1_inputs, strict=True
        ):
            assert resident == (tensor.name in inside)
            assert not resident or at == inside[tensor.name]
        spans += _moved(layer, its)
        if its.resident_output:
            shape, tile = layer.output.shape, its.solution.tile
            assert (tile.y, tile.x) == (layer.oy, layer.ox)
            end = max(
                start + _written(layer, min(tile.k, layer.K - start))
                for start in range(0, layer.K, tile.k)
            )
            size = max(_whole(layer.output), end * _whole(layer.output) // shape[0])
            spans.append((its.l1_output, its.l1_output + size))
            inside[layer.output.name] = its.l1_output
        spans.sort()
        assert all(low % 16 == 0 for low, _ in spans)
        assert all(a[1] <= b[0] for a, b in pairwise(spans)), (number, spans)
        assert spans[-1][1] <= min(plan.l1_peak, budget)
        assert sum(high - low for low, high in spans) <= plan.l1_used[number]
        for name in [name for name in inside if last[name] == number]:
            del inside[name]
    assert not inside


def random_region(rng: np.random.Generator) -> Region:
    """Chains of convolutions with residual additions, of small odd shapes."""
    x = Tensor("x", (int(rng.integers(1, 20)), int(rng.integers(4, 12)), int(rng.integers(4, 20))))
    layers: list[Layer] = []
    same = [x]
    for number in range(int(rng.integers(2, 9))):
        name, c = f"l{number}", x.shape[0]
        op = rng.choice(["conv", "depthwise", "add", "point"])
        requant = {"requant": Shift(int(rng.integers(0, 8)))}
        matching = [tensor for tensor in same if tensor.shape == x.shape]
        if op == "add":
            other = matching[int(rng.integers(len(matching)))]
            layer = add_layer(name, x, other, f"t{number}", **requant)
        elif op == "depthwise":
            weight = int8(rng, c, 1, 3, 3)
            layer = depthwise_layer(
                name, x, f"t{number}", weight, None, pad=(1, 1, 1, 1), **requant
            )
        else:
            f = 3 if op == "conv" else 1
            k = c if rng.random() < 0.5 else int(rng.integers(1, 40))
            pad = (f // 2,) * 4
            layer = conv2d_layer(
                name, x, f"t{number}", int8(rng, k, c, f, f), None, pad=pad, **requant
            )
        layers.append(layer)
        x = layer.output
        same.append(x)
    extra = [layer.output.name for layer in layers[:-1] if rng.random() < 0.15]
    unread = {layer.output.name for layer in layers} - {
        tensor.name for layer in layers for tensor in layer.inputs
    }
    return region_of(layers, *extra, *unread)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("seed", range(8))
def test_random_regions_are_placed_and_never_slower_than_their_layers_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    region = random_region(rng)
    demand = max(_whole(layer.output) for layer in region.layers)
    for budget in (8_000, demand * 2 + 3_000, 256_000):
        plan = planned(region, budget)
        replay(region, plan, budget)
        assert plan.cycles <= plan.cycles_alone
        assert plan.bound <= plan.cycles
        leaving = {tensor.name for tensor in (*region.outputs, *region.inputs)}
        assert not leaving & set(plan.resident)
        published = plan_region(
            region, dict.fromkeys((x.name for x in region.layers), DIGITAL),
            Cost(DIANA, TilingOptions(budget)),
        )  # fmt: skip
        # Weights without holes in L2 may cost up to a twentieth.
        assert 20 * plan.cycles <= 21 * published.cycles


@pytest.mark.rotating(3)
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("budget", [64_000, 16_000])
def test_networks_equal_dynamic_programming(
    network: str, budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan of fewest cycles there is, offsets and all."""
    seen: list[RegionProblem] = []

    def spy(problem: RegionProblem, node_limit: int) -> joint.Decision | None:
        seen.append(problem)
        return solve_joint(problem, node_limit)

    monkeypatch.setattr(joint, "solve_joint", spy)
    region = region_of(NETWORKS[network]())
    plan, spent = yardsticks(lambda: planned(region, budget))
    assert spent < 500
    replay(region, plan, budget)
    assert plan.cycles <= plan.cycles_alone
    for problem in seen:
        assert plan.cycles == plan.bound == dynamic(problem)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("objective", ["array", "paper", "none"])
def test_a_heuristic_keeps_its_tiles(objective: str) -> None:
    """Residency is planned jointly, but every tile that moves is one the heuristic picks."""
    region = region_of(NETWORKS["resnet8"]())
    plan = planned(region, 32_000, objective)
    replay(region, plan, 32_000)
    assert plan.resident
    best = planned(region, 32_000)
    assert best.cycles <= plan.cycles <= plan.cycles_alone
    for its in plan.layers:
        if not (any(its.resident_inputs) or its.resident_output):
            assert its.solution.objective_name == objective


# ------------------------------------------------------------------ what may stay


def _conv(name: str, source: Tensor, target: str, k: int = 16) -> Layer:
    weight = np.ones((k, source.shape[0], 1, 1), np.int8)
    return conv2d_layer(name, source, target, weight, None, requant=Shift(4))


def test_results_that_leave_the_region_are_stored() -> None:
    x = Tensor("x", (16, 8, 16))
    a = _conv("a", x, "ta")
    b = _conv("b", a.output, "tb")
    assert planned(region_of([a, b]), 64_000).resident == ("ta",)
    assert planned(region_of([a, b], "ta"), 64_000).resident == ()


def test_a_tensor_stays_for_all_its_readers_or_for_none() -> None:
    """The second reader makes so many maps that the tensor cannot be in L1 beside a tile of it."""
    x = Tensor("x", (16, 30, 16))
    a = _conv("a", x, "ta")
    b = _conv("b", a.output, "tb")
    wide = _conv("c", a.output, "tc", 64)
    roomy = planned(region_of([a, b, wide], "tb"), 64_000)
    assert roomy.resident == ("ta",)
    tight = planned(region_of([a, b, wide], "tb"), 20_000)
    for its in tight.layers[1:]:
        assert its.resident_inputs == (("ta" in tight.resident),)


def test_an_addition_of_a_tensor_to_itself() -> None:
    """It is in L1 as both operands or as none, wherever both fits less well than one."""
    a = _conv("a", Tensor("x", (16, 8, 16)), "ta")
    twice = add_layer("twice", a.output, a.output, "y", requant=Shift(1))
    region = region_of([a, twice])
    plan = planned(region, 64_000)
    assert plan.resident == ("ta",)
    assert plan.layers[1].l1_inputs == (plan.layers[0].l1_output,) * 2
    for budget in range(2_000, 9_000, 500):
        plan = planned(region, budget)
        replay(region, plan, budget)
        assert len(set(plan.layers[1].resident_inputs)) == 1


# ------------------------------------------------------------------ when it gets difficult


def test_what_finds_no_place_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Placement fails as often as anything stays; in the end nothing does."""
    region = region_of(NETWORKS["resnet8"]())
    place, attempts = joint.place, []

    def crowded(
        problem: RegionProblem, decision: joint.Decision, taken: object, **held: object
    ) -> joint.Placement:
        found = place(problem, decision, taken, **held)  # type: ignore[arg-type]
        attempts.append(set(decision.stays))
        if not decision.stays:
            return found
        return replace(
            found,
            plan=replace(found.plan, peak=problem.limit + 16),
            crowded=(frozenset(decision.stays[:1]),),
        )

    monkeypatch.setattr(joint, "place", crowded)
    plan = planned(region, 64_000)
    assert plan.resident == () and plan.cycles == plan.cycles_alone
    assert len(attempts) <= 13
    assert all(len(later) < len(region.layers) and later != a for a, later in pairwise(attempts))
    assert plan.gap > 0


def test_long_regions_are_planned_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    region = region_of(NETWORKS["mobilenet"]())
    whole = planned(region, 64_000)
    monkeypatch.setattr(joint, "_LAYERS_AT_ONCE", 9)
    plan = planned(region, 64_000)
    replay(region, plan, 64_000)
    assert plan.method.endswith("pieces")
    assert plan.bound <= whole.cycles <= plan.cycles <= plan.cycles_alone
    boundaries = {region.layers[index].output.name for index in (8, 17, 26)}
    assert not boundaries & set(plan.resident)
    assert len(plan.resident) > 10


@pytest.mark.slow
@pytest.mark.parametrize("budget", [40_000, 64_000])
def test_a_hundred_layers_take_seconds(budget: int) -> None:
    rng = np.random.default_rng(0)
    x = Tensor("x", (24, 20, 20))
    layers: list[Layer] = []
    for block in range(25):
        k, requant = 24 + 4 * (block % 9), {"requant": Shift(4)}
        wide = conv2d_layer(f"c{block}", x, f"tc{block}", int8(rng, k, 24, 1, 1), None, **requant)
        deep = depthwise_layer(
            f"d{block}", wide.output, f"td{block}", int8(rng, k, 1, 3, 3), None,
            pad=(1, 1, 1, 1), **requant,
        )  # fmt: skip
        flat = conv2d_layer(
            f"e{block}", deep.output, f"te{block}", int8(rng, 24, k, 1, 1), None, **requant
        )
        layers += [
            wide,
            deep,
            flat,
            add_layer(f"a{block}", x, flat.output, f"ta{block}", **requant),
        ]
        x = layers[-1].output
    region = region_of(layers)
    plan, spent = yardsticks(lambda: planned(region, budget))
    assert spent < 1000
    replay(region, plan, budget)
    assert plan.cycles < plan.cycles_alone


@pytest.mark.parametrize("wide", range(4))
def test_layers_of_one_shape_have_the_cycles_of_their_own_weights(wide: int) -> None:
    """N-EUREKA takes more cycles for weights of more bits, in whichever layer these are."""
    core, options = SIRACUSA.accelerator("neureka"), TilingOptions()
    source, layers = Tensor("x", (28, 24, 24)), []
    for number in range(4):
        weight = np.zeros((28, 28, 3, 3), np.int8)
        weight.flat[:2] = (-128, 127) if number == wide else (-2, 1)
        name = f"t{number}"
        layers.append(
            conv2d_layer(
                name,
                source,
                name,
                weight,
                None,
                pad=(1, 1, 1, 1),
                requant=MulShift((3,), (10,), (7,)),
            )
        )
        source = layers[-1].output
    region = region_of(list(layers))
    cost = Cost(SIRACUSA, options)
    plan = plan_region(region, dict.fromkeys((x.name for x in layers), core), cost)
    own = [
        core.plan_cost(SIRACUSA, layer, its, options)
        for layer, its in zip(layers, plan.layers, strict=True)
    ]
    assert plan.cycles - plan.saved_cycles == sum(own)
    assert len(cost.choices) == (3 if wide in (0, 3) else 4)
