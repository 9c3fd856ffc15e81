"""Layers of the cores beside layers of ITA: results, what is split, guards, and when it is not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from byoc_dory.blocks import Schedule, schedule_blocks
from byoc_dory.codegen import generate
from byoc_dory.cost import Cost
from byoc_dory.errors import TileProgramError
from byoc_dory.layers import (
    Attend,
    Layer,
    MulShift,
    Scores,
    Tensor,
    add_layer,
    attend_layer,
    gemm_layer,
    matrix,
    rows_layer,
)
from byoc_dory.layers.rowwise import AffineNorm, ItaSoftmax, LayerNorm, RowFunction, TableMap
from byoc_dory.options import TilingOptions
from byoc_dory.planning import expand
from byoc_dory.region import Region, RegionCode
from byoc_dory.soc.base import Soc
from byoc_dory.soc.cluster.accelerator import ClusterAccelerator
from byoc_dory.soc.cluster.emit import ClusterEmitter
from byoc_dory.soc.registry import resolve
from byoc_dory.soc.snitch_ita.description import SNITCH_ITA
from byoc_dory.under_way import Running, check_under_way
from htvm.firmware import host, rv32
from htvm.firmware.paths import driver_folders
from htvm.firmware.socs import machine_of
from htvm.firmware.toolchain import Compiler
from htvm.sim.rv32 import run_rv32
from tests.byoc_dory.program import Case
from tests.byoc_dory.snitch_cases import attention_layer
from tests.byoc_dory.test_emit_rv32 import firmware_main
from tests.byoc_dory.test_snitch_native import check as check_native
from tests.reference import matrix_layers


def int8(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-128, 128, shape).astype(np.int8)


def requant(rng: np.random.Generator, shift: int) -> MulShift:
    return MulShift((int(rng.integers(1, 256)),), (shift,), (1 << shift - 1,))


def product(rng: np.random.Generator, name: str, source: Tensor, columns: int) -> Layer:
    weight = int8(rng, columns, source.shape[0])
    bias = rng.integers(-3000, 3000, columns).astype(np.int32)
    return gemm_layer(name, source, weight, bias, requant=requant(rng, 14))


def function(rng: np.random.Generator, columns: int) -> RowFunction:
    weight = rng.integers(-90, 90, columns).astype(np.int32)
    bias = rng.integers(-9000, 9000, columns).astype(np.int32)
    kinds: tuple[RowFunction, ...] = (
        AffineNorm(weight, bias, 1, 7),
        LayerNorm(weight, bias, 5),
        TableMap(rng.integers(0, 256, 256).astype(np.uint8)),
    )
    return kinds[int(rng.integers(len(kinds)))]


def stack(seed: int, depth: int = 2, rows: int = 128) -> Region:
    """Feed-forward networks: two products on ITA, a sum, and a function of rows on the cores."""
    rng = np.random.default_rng(seed)
    columns, hidden = 64 * int(rng.integers(1, 3)), 64 * int(rng.integers(1, 5))
    source = matrix("x", rows, columns)
    tensor, layers, homes = source, [], []
    for n in range(depth):
        inner = product(rng, f"inner{n}", tensor, hidden)
        outer = product(rng, f"outer{n}", inner.output, columns)
        total = add_layer(f"sum{n}", outer.output, tensor, f"sum{n}", requant=requant(rng, 8))
        norm = rows_layer(f"norm{n}", total.output, function(rng, columns))
        layers += [inner, outer, total, norm]
        homes += ["ita", "ita", "ita", "cluster"]
        tensor = norm.output
    return Region(f"r{seed}", tuple(layers), (source,), (tensor,), homes=tuple(homes))


def code_of(region: Region, soc: Soc = SNITCH_ITA, **options: object) -> RegionCode:
    return generate(region, Cost(soc, TilingOptions(**options)), region.name)  # type: ignore[arg-type]


def case_of(region: Region, seed: int) -> Case:
    rng = np.random.default_rng(seed)
    values = {tensor.name: int8(rng, *tensor.shape) for tensor in region.inputs}
    for layer in region.layers:
        given = [values[tensor.name] for tensor in layer.inputs]
        values[layer.output.name] = matrix_layers.evaluate(layer, given)
    return Case(
        code_of(region),
        tuple(matrix_layers.stored(values[tensor.name]) for tensor in region.inputs),
        tuple(matrix_layers.stored(values[tensor.name]) for tensor in region.outputs),
    )


def started(code: RegionCode) -> list[str]:
    return [kernel.layer_name for kernel in code.kernels if kernel.kind == "start"]


def running(code: RegionCode) -> list[Running]:
    return [
        Running(kernel.layer, kernel.accelerator, kernel.program)
        for kernel in code.kernels
        if kernel.kind == "layer" and kernel.layer is not None and kernel.program is not None
    ]


def attention(seed: int, joined: bool = False) -> Region:
    """Attention on ITA, a sum and a norm of its result, and a feed-forward network behind them."""
    rng = np.random.default_rng([seed, joined])
    heads = attention_layer(rng, "heads", 128, 128, 2, joined)
    (source,) = heads.inputs
    total = add_layer("sum", heads.output, source, "sum", requant=requant(rng, 8))
    norm = rows_layer("norm", total.output, function(rng, 128))
    inner = product(rng, "inner", norm.output, 256)
    outer = product(rng, "outer", inner.output, 128)
    layers = (heads, total, norm, inner, outer)
    homes = ("ita", "ita", "cluster", "ita", "ita")
    return Region(f"a{seed}", layers, (source,), (outer.output,), homes=homes)


# ---------------------------------------------------------------------- results


@pytest.mark.slow
def test_results_of_random_networks(tmp_path: Path) -> None:
    """On this machine the cores compute as late as they may: what does not wait is wrong."""
    cases = [case_of(stack(seed, depth=1 + seed % 3), seed) for seed in range(6)]
    cases += [case_of(attention(seed, joined=seed == 2), seed) for seed in range(3)]
    assert sum(bool(started(case.code)) for case in cases) > 3
    check_native(cases, tmp_path, sanitize=True)


@pytest.mark.parametrize("joined", [False, True])
def test_attention_is_split_by_its_queries(joined: bool, tmp_path: Path) -> None:
    """All keys and values are there for both halves, while the cores compute the first one's."""
    case = case_of(attention(2, joined), 2)
    queries = [each.layer for each in running(case.code) if isinstance(each.layer, Attend)]
    assert [layer.oy for layer in queries][-2:] == [64, 64]
    assert {layer.keys for layer in queries} == {128}
    got, beside = simulated(case, tmp_path)
    assert np.array_equal(got, case.outputs[0].view(np.uint8))
    assert "cluster" in beside


@pytest.mark.slow
@pytest.mark.parametrize("start", range(10, 110, 10))
def test_results_of_many_random_networks(tmp_path: Path, start: int) -> None:
    cases = [
        case_of(stack(seed, depth=1 + seed % 3, rows=(128, 256)[seed % 2]), seed)
        for seed in range(start, start + 10)
    ]
    check_native(cases, tmp_path, sanitize=False)


def simulated(case: Case, folder: Path) -> tuple[np.ndarray, set[str]]:
    """The output of a network on the simulated cluster, and the units that work beside ITA."""
    source, compiler = folder / "main.c", Compiler.zig()
    source.write_text(firmware_main(case))
    firmware = rv32.build_firmware(
        [source, *host.driver_sources(SNITCH_ITA)],
        driver_folders(SNITCH_ITA),
        machine_of(SNITCH_ITA),
        folder / "out",
        compiler,
        stack_bytes=SNITCH_ITA.host.stack,
    )
    (values,), (expected,) = case.inputs, case.outputs
    sizes = {"out_0": expected.size}
    result = run_rv32(firmware, {"in_0": values.tobytes()}, sizes, compiler=compiler)
    engine = [each for each in result.events if each["unit"] == "ita"]
    beside = {
        str(other["unit"])
        for other in result.events
        for each in engine
        if other["start"] < each["end"] and each["start"] < other["end"]
    }
    return np.frombuffer(result.outputs["out_0"], np.uint8), beside


@pytest.mark.parametrize(
    "seed", [2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(200, 300))]
)
def test_the_simulated_cores_compute_beside_ita(tmp_path: Path, seed: int) -> None:
    """Device models complain of races."""
    case = case_of(stack(seed), seed)
    got, beside = simulated(case, tmp_path)
    assert np.array_equal(got, case.outputs[0].view(np.uint8))
    assert ("cluster" in beside) == bool(started(case.code))


def test_the_plan_saves_what_the_cores_hide() -> None:
    code = code_of(stack(1))
    plan = code.plan
    assert plan is not None and plan.saved_cycles > 0
    predicted = sum(kernel.predicted_cycles for kernel in code.kernels)
    assert predicted == plan.cycles - plan.saved_cycles
    for number, first in plan.starts.items():
        assert plan.layers[number].started
        assert first < number


def test_weights_are_loaded_before_the_cores_are_waited_for() -> None:
    """The layer in front of a join loads what the layer behind it multiplies by."""
    code = code_of(stack(1))
    plan = code.plan
    assert plan is not None
    across = [
        number
        for number, each in enumerate(plan.layers)
        if each.preloaded and number - 1 in plan.starts
    ]
    assert across
    kernels = [kernel for kernel in code.kernels if kernel.kind == "layer"]
    for number in across:
        loader = max(turn for turn in range(number) if turn not in plan.starts)
        preload, weights = plan.layers[loader].preload, kernels[number].constants[0].name
        assert preload is not None and preload.l1 == plan.layers[number].l1_weights
        assert weights in kernels[loader].source


# ---------------------------------------------------------------------- what is split


def test_halves_of_rows_are_ranges_of_what_others_read() -> None:
    region, cost = stack(4), Cost(SNITCH_ITA, TilingOptions())
    expanded = expand(cost, region)
    schedule, homes = schedule_blocks(
        expanded.region.layers, expanded.homes, ["norm1"], SNITCH_ITA, cost.best_cycles
    )
    assert schedule.reason == ""
    assert {homes[layer.name].name for layer in schedule.layers} == {"ita", "cluster"}
    by_name = {layer.name: layer for layer in schedule.layers}
    lower = by_name["norm1.rows1"].output
    assert (lower.inside, lower.first, lower.stored.name) == (True, lower.elements, "norm1")
    between = by_name["inner1.rows1"].output
    assert (between.inside, between.stored) == (False, between)
    assert [layer.whole_name for layer in schedule.layers].count("inner1") == 2


@pytest.mark.parametrize(
    ("region", "target", "options"),
    [
        (stack(1, rows=64), "snitch_ita", {}),  # one tile of ITA: there are no halves
        (stack(1, rows=192), "snitch_ita", {}),  # halves of 96 rows are none of ITA's tiles
        (stack(1), "snitch_ita", {"schedule": "published"}),
        (stack(1), "snitch_ita", {"schedule": "decoupled"}),
        (stack(1), "snitch_ita", {"objective": "array"}),
        (stack(1), "snitch_ita:cores=1", {}),  # nobody is left to compute
    ],
)
def test_layers_run_one_after_another(region: Region, target: str, options: dict[str, str]) -> None:
    code = code_of(region, resolve(target).soc, **options)
    assert not started(code)
    assert code.plan is not None and not code.plan.starts


def test_keys_of_a_run_are_not_split() -> None:
    """All queries need all keys, which the run computes between two layers on the cores."""
    rng = np.random.default_rng(3)
    one, value = matrix("x", 128, 64), matrix("value", 64, 128)
    weight = rng.integers(1, 90, 64).astype(np.int32)
    norm = rows_layer("norm", one, AffineNorm(weight, weight, 3, 6))
    query, key = product(rng, "query", norm.output, 64), product(rng, "key", norm.output, 64)
    scores = Scores((1, 9, 256), ItaSoftmax(), (1, 8, 128))
    context = attend_layer("context", query.output, key.output, value, scores)
    last = rows_layer("last", context.output, AffineNorm(weight, weight, 3, 6))
    layers = (norm, query, key, context, last)
    homes = {layer.name: SNITCH_ITA.accelerator("ita") for layer in layers}
    homes |= dict.fromkeys(("norm", "last"), SNITCH_ITA.accelerator("cluster"))
    schedule, _ = schedule_blocks(
        layers, homes, ["last"], SNITCH_ITA, lambda home, layer: 50.0 + layer.macs + layer.oy
    )
    assert schedule.layers == layers and not schedule.starts


def test_why_nothing_is_started() -> None:
    soc = resolve("snitch_ita:cores=1").soc
    expanded = expand(Cost(soc, TilingOptions()), stack(1))
    schedule, _ = schedule_blocks(
        expanded.region.layers, expanded.homes, ["norm1"], soc, lambda home, layer: 100.0
    )
    assert not schedule.starts
    assert "the only core drives the other devices" in schedule.reason


def test_calls_of_a_users_accelerator_block() -> None:
    ita = SNITCH_ITA.accelerator("ita")
    (layer, *_) = stack(1).layers
    assert ita.held_back(SNITCH_ITA, layer) == "calls of 'ita' return when their layer is done"


class BlockingEmitter:
    """Generates what the cores' emitter does, but nothing that starts a layer."""

    def __init__(self, emitter: ClusterEmitter) -> None:
        self.headers, self.layer = emitter.headers, emitter.layer


class BlockingCores(ClusterAccelerator):
    """A user's accelerator whose layers might be started, but whose C has calls that block."""

    def emitter(self, soc: Soc) -> ClusterEmitter:
        return cast(ClusterEmitter, BlockingEmitter(super().emitter(soc)))


def test_layers_whose_c_blocks_are_executed_in_their_turn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cores = SNITCH_ITA.accelerator("cluster")
    fields = {item.name: getattr(cores, item.name) for item in dataclasses.fields(cores)}
    engine = SNITCH_ITA.accelerator("ita")
    soc = replace(SNITCH_ITA, accelerators=(engine, BlockingCores(**fields)))
    reason = "the C of 'cluster' starts no layers"
    with caplog.at_level("INFO", "byoc_dory"):
        code = code_of(stack(2), soc)
    assert code.plan is not None and reason in code.plan.in_turn and not started(code)
    assert f"executed layer by layer: {code.plan.in_turn}" in caplog.text
    check_native([replace(case_of(stack(2), 2), code=code)], tmp_path, sanitize=False)


def test_more_layers_than_a_driver_holds(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The schedule falls back to one layer after another, and says which, and how many."""

    def crowded(*args: Any) -> tuple[Schedule, Any]:
        schedule, homes = schedule_blocks(*args)
        (_, first), (name, _), *_ = schedule.starts.items()
        return replace(schedule, starts={**schedule.starts, name: first}), homes

    assert started(code_of(stack(1)))
    monkeypatch.setattr("byoc_dory.codegen.schedule_blocks", crowded)
    with caplog.at_level("INFO", "byoc_dory"):
        code = code_of(stack(1))
    said = "'cluster' holds 1 layer at a time, 2 are under way: 'norm0.rows0', 'norm0.rows1'"
    assert code.plan is not None and code.plan.in_turn == said and not started(code)
    assert said in caplog.text


def test_one_context_of_ita_is_enough(tmp_path: Path) -> None:
    """The driver waits until a context is free."""
    shortest = replace(
        SNITCH_ITA,
        accelerators=tuple(
            replace(each, contexts=1) if each.name == "ita" else each  # type: ignore[call-arg]
            for each in SNITCH_ITA.accelerators
        ),
    )
    assert started(code_of(stack(2), shortest))


def branches() -> Region:
    """A norm whose operand, a sum on the cores, is read by products on ITA, too."""
    rng = np.random.default_rng(5)
    one, other = matrix("x", 128, 128), matrix("y", 128, 128)
    total = replace(
        add_layer("sum", one, other, "sum", requant=requant(rng, 8)),
        output=matrix("sum", 128, 128),
    )
    weight = rng.integers(1, 90, 128).astype(np.int32)
    layers, homes, results = [total], ["cluster"], []
    for n in range(2):
        inner = product(rng, f"inner{n}", total.output, 128)
        outer = product(rng, f"outer{n}", inner.output, 128)
        layers, homes = [*layers, inner, outer], [*homes, "ita", "ita"]
        results.append(outer.output)
    norm = rows_layer("norm", total.output, AffineNorm(weight, weight, 3, 6))
    layers, homes, results = [*layers, norm], [*homes, "cluster"], [*results, norm.output]
    return Region("b", tuple(layers), (one, other), tuple(results), homes=tuple(homes))


@pytest.mark.parametrize("budget", [None, 80_000, 60_000])
def test_what_others_read_in_l1_is_not_overwritten(budget: int | None) -> None:
    """On this machine the cores compute last, when the others have read it: so it runs there."""
    code = code_of(branches(), l1_budget=budget)
    assert "norm" in started(code)
    for each in running(code):
        assert not each.program.result.over or not each.program.operands[0].resident


# ---------------------------------------------------------------------- guards


def mutants(code: RegionCode, rng: np.random.Generator) -> tuple[list[Running], Mapping[int, int]]:
    """One change: a start or an end elsewhere, layers swapped, or a result or weights moved."""
    layers, plan = running(code), code.plan
    assert plan is not None
    starts = dict(plan.starts)
    kind, number = int(rng.integers(5)), int(rng.choice(list(starts)))
    if kind == 0:
        starts[number] = int(rng.integers(-1, len(layers)))
    elif kind == 1:
        one, other = rng.integers(0, len(layers), 2)
        layers[one], layers[other] = layers[other], layers[one]
    elif kind == 2:
        layer = layers.pop(number)
        at = int(rng.integers(0, len(layers) + 1))
        layers.insert(at, layer)
        starts[at] = starts.pop(number)
    else:
        at, place = int(rng.integers(len(layers))), int(rng.integers(0, 6000)) * 16
        program = layers[at].program
        if kind == 3:
            program = replace(program, result=replace(program.result, l1=place))
        else:
            operands = [
                replace(operand, l1=place) if operand.name == "weights" else operand
                for operand in program.operands
            ]
            program = replace(program, operands=tuple(operands))
        layers[at] = replace(layers[at], program=program)
    return layers, starts


def is_harmless(layers: Sequence[Running], starts: Mapping[int, int]) -> bool:
    """Another way to see it: run each layer in cycles of its own, and note who touches what."""
    begins = [starts.get(number, number) for number in range(len(layers))]
    if any(not 0 <= first < number for number, first in starts.items()):
        return False
    written: dict[str, list[int]] = {}
    for number, each in enumerate(layers):
        for name in {each.layer.output.name, each.layer.output.stored.name}:
            written.setdefault(name, []).append(number)
    for number, each in enumerate(layers):
        for tensor in each.layer.inputs:
            name = tensor.name if tensor.name in written else tensor.stored.name
            if any(writer >= begins[number] for writer in written.get(name, [])):
                return False
        for other in range(begins[number], number):
            if layers[other].accelerator == each.accelerator:
                return False
    owners: dict[tuple[int, int], str] = {}
    for number, each in enumerate(layers):
        program = each.program
        for operand in (*program.operands, program.result):
            is_result = operand is program.result
            if is_result and operand.over and _is_read_by_others(layers, number, begins[number]):
                return False
            if operand.beside or operand.over or (operand.resident and not is_result):
                continue
            last = number
            if operand.resident:
                readers = [
                    later
                    for later, reader in enumerate(layers)
                    if each.layer.output.name in [t.name for t in reader.layer.inputs]
                ]
                last = max([number, *readers])
            owner, begin = f"{number} {operand.name}", begins[number]
            if operand.preloaded:
                begin = max((turn for turn in range(number) if turn not in starts), default=begin)
            for cycle in range(begin, last + 1):
                for line in range(operand.l1 // 16, -(-program.end(operand) // 16)):
                    if owners.setdefault((cycle, line), owner) != owner:
                        return False
    return True


def _is_read_by_others(layers: Sequence[Running], number: int, first: int) -> bool:
    """Whether an operand that stays in L1, and over which a result goes, has other readers."""
    own = layers[number]
    (source,), (operand, *_) = own.layer.inputs, own.program.operands
    return operand.resident and any(
        source.name in [tensor.name for tensor in other.layer.inputs]
        for turn, other in enumerate(layers)
        if turn >= first and other is not own
    )


def rejected(layers: Sequence[Running], starts: Mapping[int, int]) -> bool:
    try:
        check_under_way(layers, starts, "r")
    except TileProgramError:
        return True
    return False


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_mutants_of_schedules_are_found(count: int) -> None:
    codes = [code_of(region) for region in (stack(1), stack(2), attention(1))]
    for code in codes:
        assert code.plan is not None
        assert is_harmless(running(code), code.plan.starts)
    rng = np.random.default_rng(5)
    harmful = 0
    while harmful < count:
        layers, starts = mutants(codes[harmful % len(codes)], rng)
        harmless = is_harmless(layers, starts)
        assert rejected(layers, starts) == (not harmless)
        harmful += not harmless


def test_a_missing_wait_is_found(tmp_path: Path) -> None:
    """Without waiting for the cores, results are not there."""
    case = case_of(stack(4), 4)
    kernels = tuple(
        replace(kernel, source=kernel.source.replace("cluster_join();", ""))
        for kernel in case.code.kernels
    )
    with pytest.raises(AssertionError, match="differ"):
        check_native([replace(case, code=replace(case.code, kernels=kernels))], tmp_path, False)
