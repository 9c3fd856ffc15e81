"""The order of a pipeline's actions: what `check_order` accepts is what computes every tile.

The definition of "computes every tile" is `Machine`: it performs the actions on symbols, with a DMA
and a device that execute what they were given at any time before the host waits for it, and tries
all of these times.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byoc_dory.codegen import generate
from byoc_dory.cost import Cost
from byoc_dory.errors import TileProgramError
from byoc_dory.layers import MulShift, Tensor, conv2d_layer
from byoc_dory.options import TilingOptions
from byoc_dory.region import Region
from byoc_dory.soc.cluster import program as cluster
from byoc_dory.soc.cluster import program as cluster_program
from byoc_dory.soc.diana import program as diana
from byoc_dory.soc.snitch_ita.description import SNITCH_ITA
from byoc_dory.tileloop.axes import plain_axis
from byoc_dory.tileloop.checks import check
from byoc_dory.tileloop.order import check_order
from byoc_dory.tileloop.pipeline import HOST_BESIDE, HOST_IN_TURN, Action, Block, Pipeline, Verb
from byoc_dory.tileloop.program import Compute, Operand, TileProgram
from byoc_dory.tileloop.values import Place

OVERLAPPED = (
    HOST_BESIDE, diana._BESIDE, diana._BESIDE_SEVERAL, cluster.CORES_BESIDE, cluster.ENGINE_BESIDE,
)  # fmt: skip
IN_TURN = (
    HOST_IN_TURN, diana.PUBLISHED, diana.IN_TURN, cluster.CORES_IN_TURN, cluster.ENGINE_IN_TURN,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A pipeline, and the loop that it is used for.

    Operand ``a`` depends on the outer axis, ``b`` on the inner one.
    """

    pipeline: Pipeline
    tiles: tuple[int, int] = (3, 4)
    buffers: tuple[int, int, int] = (2, 2, 2)  # of a, b and the result
    resident: tuple[bool, bool, bool] = (False, False, False)
    reloaded: bool = False  # whether every tile loads ``a``
    overlapped: bool = True
    several: bool = False

    def program(self) -> TileProgram:
        """Return the tile program."""
        y, k = (
            plain_axis(name, name, count, 1) for name, count in zip("yk", self.tiles, strict=True)
        )
        places = (y.out_start, k.out_start, y.out_start * self.tiles[1] + k.out_start)
        a, b, out = (
            Operand(name, place, Block.run(1), 0, 1, number, resident=stays, inside=place)
            for name, place, number, stays in zip(
                ("a", "b", "out"), places, self.buffers, self.resident, strict=True
            )
        )
        return TileProgram(
            "p",
            (y, k),
            (replace(a, reloaded=self.reloaded), b),
            out,
            Compute(
                "sum",
                {name: Place(name) for name in ("a", "b", "out")},
                several=self.several,
            ),
            self.pipeline,
            self.pipeline if self.overlapped else None,
        )

    def loads(self) -> list[dict[str, int]]:
        """For each tile, the tile that loaded each operand it reads; resident ones are left out."""
        found: list[dict[str, int]] = []
        latest: dict[str, int] = {}
        data: dict[str, int] = {}
        for tile, (y, k) in enumerate(itertools.product(*map(range, self.tiles))):
            for name, index, stays in zip("ab", (y, k), self.resident, strict=False):
                new = data.get(name) != index or (name == "a" and self.reloaded)
                if new and not stays:
                    latest[name], data[name] = tile, index
            found.append(dict(latest))
        return found


class Garbage(Exception):
    """A tile is not computed from its own data, or not stored, if the times are unfortunate."""


@dataclass(frozen=True)
class State:
    """All that can differ between two moments: who holds what, and who still has to do what."""

    at: int  # number of actions that the host has performed
    memory: frozenset[tuple[object, object]]
    dma: tuple[tuple[str, int], ...]
    device: tuple[int, ...]


class Machine:
    """Performs a case in all possible ways."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.loads = case.loads()
        self.tiles = len(self.loads)
        moves = not all(case.resident)
        self.beside = case.overlapped and self.tiles > 1 and moves
        self.prepares = any(action.verb is Verb.PREPARE for action in case.pipeline.actions)
        self.settles = any(action.verb is Verb.SETTLE for action in case.pipeline.actions)
        # Number the loads of each operand, to find the buffer of each.
        self.numbers = {
            name: sorted({tile[name] for tile in self.loads if name in tile}) for name in "ab"
        }
        self.every = all(tile in self.loads[tile].values() for tile in range(self.tiles))
        self.host = list(self._host())

    def _host(self) -> Iterator[tuple[Verb, int]]:
        actions = self.case.pipeline.actions
        last = max(action.distance for action in actions)
        for round_, action in itertools.product(range(self.tiles + last), actions):
            if 0 <= round_ - action.distance < self.tiles:
                yield action.verb, round_ - action.distance

    def buffer(self, name: str, tile: int) -> tuple[str, int]:
        """The buffer of an operand that a tile uses, or of its result."""
        if name == "out":
            count = min(self.case.buffers[2], self.tiles) if self.beside else 1
            return name, tile % count
        moved = self.numbers[name]
        count = min(self.case.buffers["ab".index(name)], len(moved)) if self.beside else 1
        return name, moved.index(self.loads[tile][name]) % count

    def waits_for_readers(self, name: str, tile: int) -> bool:
        """Whether a load has to wait for the device, as there is a single buffer."""
        single = self.case.buffers["ab".index(name)] == 1
        return self.beside and single and len(self.numbers[name]) > 1

    # What the DMA and the device do when they get to it.

    def moved(self, memory: dict[object, object], order: tuple[str, int]) -> None:
        name, tile = order
        if name == "out":
            memory["stored", tile] = memory.get(self.buffer(name, tile))
        else:
            memory[self.buffer(name, tile)] = tile

    def computed(self, memory: dict[object, object], tile: int, prepared: bool) -> None:
        for name, loaded in self.loads[tile].items():
            if memory.get(self.buffer(name, tile)) != loaded:
                raise Garbage(f"tile {tile} reads {name}")
        if prepared and memory.get("registers") != tile:
            raise Garbage(f"tile {tile} in the wrong registers")
        if not self.case.resident[2]:
            memory[self.buffer("out", tile)] = tile
        memory["computed", tile] = True

    # All ways.

    def run(self) -> None:
        """Raise `Garbage` if any way leads to a wrong tile."""
        begin = State(0, frozenset(), (), ())
        seen, todo = {begin}, [begin]
        while todo:
            state = todo.pop()
            for after in self.after(state):
                if after not in seen:
                    seen.add(after)
                    todo.append(after)

    def after(self, state: State) -> Iterator[State]:
        """The states after one step of the DMA, of the device, or of the host."""
        if state.dma:
            memory = dict(state.memory)
            self.moved(memory, state.dma[0])
            yield replace(state, memory=frozenset(memory.items()), dma=state.dma[1:])
        if state.device:
            memory = dict(state.memory)
            self.computed(memory, state.device[0], self.prepares and self.case.several)
            yield replace(state, memory=frozenset(memory.items()), device=state.device[1:])
        if state.at < len(self.host):
            after = self.step(state, *self.host[state.at])
            if after is not None:
                yield after
        else:
            self.end(state)

    def step(self, state: State, verb: Verb, tile: int) -> State | None:
        """The state after the host's next action; None if it has to wait."""
        memory, dma, device = dict(state.memory), state.dma, state.device
        mine = {name for name, loaded in self.loads[tile].items() if loaded == tile}
        pending = [number for name, number in dma if name != "out"]
        if verb is Verb.LOAD:
            if any(self.waits_for_readers(name, tile) for name in mine):
                if any(other < tile for other in device):
                    return None
            orders = tuple((name, tile) for name in "ab" if name in mine)
            dma = self.ordered(memory, dma, orders)
        elif verb is Verb.STORE and not self.case.resident[2]:
            dma = self.ordered(memory, dma, (("out", tile),))
        elif verb is Verb.WAIT and dma and (self.beside or not all(self.case.resident[:2])):
            return None
        elif verb is Verb.ARRIVE:
            if any(number <= tile for number in pending):
                return None
            ours = self.buffer("out", tile)
            if self.tiles > 1 and not self.every:
                if any(name == "out" and self.buffer(name, n) == ours for name, n in dma):
                    return None
        elif verb is Verb.SETTLE and ("out", tile) in dma:
            return None
        elif verb is Verb.PREPARE:
            memory["registers"] = tile
        elif verb is Verb.START:
            if self.prepares and (device or memory.get("registers") != tile):
                raise Garbage(f"start of tile {tile}")
            memory["started", tile] = True
            device += (tile,)
        elif verb is Verb.FINISH:
            if ("started", tile) not in memory:
                raise Garbage(f"tile {tile} was not started")
            if any(other <= tile for other in device):
                return None
        elif verb is Verb.COMPUTE:
            self.computed(memory, tile, False)
        return State(state.at + 1, frozenset(memory.items()), dma, device)

    def ordered(
        self,
        memory: dict[object, object],
        dma: tuple[tuple[str, int], ...],
        orders: Sequence[tuple[str, int]],
    ) -> tuple[tuple[str, int], ...]:
        if not self.case.pipeline.blocking:
            return (*dma, *orders)
        for order in orders:
            self.moved(memory, order)
        return dma

    def end(self, state: State) -> None:
        """Check what the layer leaves; without SETTLE it waits for all transfers at the end."""
        if state.device or (state.dma and self.settles):
            raise Garbage("still at work")
        memory = dict(state.memory)
        for tile in range(self.tiles):
            if ("computed", tile) not in memory:
                raise Garbage(f"tile {tile} is missing")
            if not (state.dma or self.case.resident[2]) and memory.get(("stored", tile)) != tile:
                raise Garbage(f"result {tile}")


def is_right(case: Case) -> bool:
    """Whether every way of performing a case computes every tile."""
    try:
        Machine(case).run()
    except Garbage:
        return False
    return True


def is_accepted(case: Case) -> bool:
    """Whether the check accepts it; an error must say what is wrong and what to do."""
    try:
        check_order(case.program())
    except TileProgramError as error:
        assert error.where == "tile program of layer 'p'" and error.hint
        assert f"pipeline '{case.pipeline.name}'" in str(error)
        return False
    return True


# ---------------------------------------------------------------------- all orders


@pytest.mark.parametrize("pipeline", [*OVERLAPPED, *IN_TURN], ids=lambda pipeline: pipeline.name)
def test_every_pipeline_in_use_is_right(pipeline: Pipeline) -> None:
    several = pipeline in (diana._BESIDE_SEVERAL, diana.IN_TURN)
    for tiles in ((1, 1), (1, 5), (5, 1), (3, 4)):
        case = Case(pipeline, tiles, overlapped=pipeline in OVERLAPPED, several=several)
        assert is_right(case) and is_accepted(case)


@pytest.mark.parametrize("pipeline", [*OVERLAPPED, *IN_TURN], ids=lambda pipeline: pipeline.name)
def test_a_permutation_is_accepted_if_and_only_if_it_is_right(pipeline: Pipeline) -> None:
    found = {True: 0, False: 0}
    # Seven actions have too many permutations: the first, of load, stays where it is.
    first = len(pipeline.actions) == 7
    head, rest = pipeline.actions[:first], pipeline.actions[first:]
    for actions in itertools.permutations(rest):
        mixed = replace(pipeline, actions=(*head, *actions))
        case = Case(mixed, (1, 4), overlapped=pipeline in OVERLAPPED)
        right = is_right(case)
        assert is_accepted(case) == right, [action.verb.value for action in mixed.actions]
        found[right] += 1
    assert found[True] and found[False] > found[True]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A pipeline like those in use, with a few actions elsewhere, or missing."""
    overlapped = draw(st.booleans())
    base = draw(st.sampled_from(OVERLAPPED if overlapped else IN_TURN))
    actions = list(base.actions)
    for _ in range(draw(st.integers(0, 2))):
        moved = actions.pop(draw(st.integers(0, len(actions) - 1)))
        change = draw(st.sampled_from(("place", "distance", "missing")))
        if change == "missing" and actions:
            continue
        if change == "distance":
            moved = replace(moved, distance=draw(st.integers(0, 3)))
        actions.insert(draw(st.integers(0, len(actions))), moved)
    blocking = base.blocking != (draw(st.integers(0, 4)) == 0)
    return Case(
        Pipeline("mixed", tuple(actions), blocking),
        draw(st.sampled_from(((1, 1), (1, 3), (2, 2), (3, 3), (9, 1), (2, 8)))),
        draw(st.tuples(*[st.integers(1, 3)] * 3)),
        draw(st.tuples(*[st.booleans()] * 3)),
        draw(st.booleans()),
        overlapped,
        draw(st.booleans()),
    )


@settings(max_examples=400, deadline=None)
@given(cases())
def test_any_pipeline_is_accepted_if_and_only_if_it_is_right(case: Case) -> None:
    assert is_accepted(case) == is_right(case)


# ---------------------------------------------------------------------- messages


def pipeline(text: str, blocking: bool = False) -> Pipeline:
    """A pipeline from words, each with its distance if it is not 0: ``load arrive:1``."""
    words = (word.partition(":") for word in text.split())
    actions = tuple(Action(Verb(verb), int(distance or 0)) for verb, _, distance in words)
    return Pipeline("wrong", actions, blocking)


WRONG = {
    "load start:1 arrive:1 finish:1 store:1": "'start' of tile 0 reads 'a' before it has arrived",
    "start load finish store": "'start' of tile 0 reads 'a' before its 'load'",
    "load arrive:2 start:2 finish:2 store:2": "'load' of tile 2 overwrites 'b' before 'start' of "
    "tile 0 reads it",
    "load arrive start finish:2 store:2": "'load' of tile 2 overwrites 'b', which tile 0 is being "
    "computed from",
    "load arrive start store finish": "'store' of tile 0 comes before its 'finish'",
    "load arrive store compute": "'store' of tile 0 comes before it is computed",
    "load arrive finish start store": "'finish' of tile 0 comes before its 'start'",
    "load arrive compute store:2": "'compute' of tile 2 overwrites the result of tile 0 before its "
    "'store'",
    "load store:3 arrive:2 compute:2": "'compute' of tile 2 overwrites a result that is being "
    "stored",
    "load arrive": "tiles are never computed",
    "load arrive compute": "the result is never stored",
    "load arrive compute settle store": "'store' of tile 11 is still under way at the end",
    "load load arrive compute store": "'load' appears more than once",
    "load wait start prepare finish store": "finds the registers of another tile",
    "load prepare wait start finish:1 store:1": "'start' of tile 1 comes before the 'finish' of "
    "tile 0",
}


@pytest.mark.parametrize("text", WRONG)
def test_the_message_names_the_misplaced_action(text: str) -> None:
    case = Case(pipeline(text), buffers=(2, 3, 2) if "store:3" in text else (2, 2, 2))
    with pytest.raises(TileProgramError, match=re.escape(WRONG[text])) as error:
        check(case.program())
    assert "belongs" in error.value.hint or error.value.hint.startswith(("add", "list"))


def test_registers_are_free_after_the_last_of_several_starts() -> None:
    case = Case(diana._BESIDE, several=True)
    with pytest.raises(TileProgramError, match="'prepare' of tile 1 overwrites the registers of"):
        check(case.program())


# ---------------------------------------------------------------------- in the compiler

LAYER = conv2d_layer(
    "c",
    Tensor("c.x", (16, 2, 8), "int8", "NHWC"),
    "c.y",
    np.ones((3, 16, 5, 5), np.int8),
    None,
    pad=(2, 2, 2, 2),
    requant=MulShift((3,), (7,), (0,)),
)


@pytest.mark.parametrize(
    ("copied", "buffers", "message"),
    [
        ({"a"}, 2, ""),
        (set(), 2, "which tile 0 is being computed from"),
        ({"b"}, 2, "which tile 0 is being computed from"),
        ({"a"}, 1, "before 'start' of tile 0 reads it"),
    ],
)
def test_buffers_of_what_is_copied_are_free_when_a_tile_is_started(
    copied: set[str], buffers: int, message: str
) -> None:
    pipeline = cluster.ENGINE_BEHIND_COPIES
    case = Case(pipeline, (4, 1), (buffers, 2, 2), resident=(False, True, True))
    program = case.program()
    program = replace(program, compute=replace(program.compute, copied=frozenset(copied)))
    if not message:
        check(program)
        return
    with pytest.raises(TileProgramError, match=message):
        check(program)


@pytest.mark.parametrize("name", ["CORES_IN_TURN", "CORES_BESIDE"])
def test_planning_refuses_a_wrong_pipeline(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_program, name, pipeline("load compute arrive store"))
    cluster = SNITCH_ITA.accelerator("cluster")
    with pytest.raises(TileProgramError, match="before it has arrived"):
        Cost(SNITCH_ITA, TilingOptions()).best_tile(cluster, LAYER)


def test_c_waits_for_a_store_if_a_tile_has_nothing_to_load() -> None:
    # All rows of this layer read the whole input, which is loaded once; there is room for one
    # buffer of the result.
    region = Region("r", (LAYER,), LAYER.inputs, (LAYER.output,))
    code = generate(region, Cost(SNITCH_ITA, TilingOptions(l1_budget=1592)), "r", "cluster")
    (kernel,) = (kernel for kernel in code.kernels if kernel.program is not None)
    assert kernel.program is not None
    assert kernel.program.tiles == 2 and not kernel.program.pipelined
    loop = kernel.source[kernel.source.index("for (uint32_t step") :]
    waits, runs, stores = (
        loop.index(text)
        for text in ("cluster_dma_wait(stored)", "cluster_run", "stored = cluster_dma_start")
    )
    assert waits < runs < stores
    assert "uint32_t stored = 0;" in kernel.source
