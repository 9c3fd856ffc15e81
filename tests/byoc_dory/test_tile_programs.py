"""Tile programs: when operands are loaded, what moves, what is refused, what C they become."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import pytest

from byoc_dory.emit.tile_text import TileWriter
from byoc_dory.errors import TileProgramError
from byoc_dory.tileloop.axes import Span, TileAxis, halo_axis, plain_axis
from byoc_dory.tileloop.checks import check, check_places
from byoc_dory.tileloop.cycles import (
    ComputeCost,
    Costs,
    Moved,
    Overheads,
    predicted_cycles,
    traffic_of,
)
from byoc_dory.tileloop.elements import elements_of_tiles
from byoc_dory.tileloop.pipeline import (
    HOST_BESIDE,
    HOST_IN_TURN,
    Action,
    Block,
    Pipeline,
    Trigger,
    Verb,
)
from byoc_dory.tileloop.program import Compute, Operand, TileProgram
from byoc_dory.tileloop.values import Of, Place, Value, round_up
from tests.byoc_dory.driver_calls import Load, Queue, Store, Wait, loads_of, steps_of

AHEAD = Pipeline(
    "ahead",
    (Action(Verb.LOAD), Action(Verb.ARRIVE, 1), Action(Verb.COMPUTE, 1), Action(Verb.STORE, 1)),
)


@dataclass(frozen=True)
class Product(Trigger):
    rows: int
    columns: int
    a: int
    b: int
    out: int


def program(
    sizes: tuple[int, int] = (10, 9),
    tiles: tuple[int, int] = (4, 3),
    order: str = "yk",
    overlapped: Pipeline | None = AHEAD,
    **changes: object,
) -> TileProgram:
    """A product of matrices [rows, 8] x [8, columns], rows and columns tiled."""
    axes = {
        "y": plain_axis("y", "rows", sizes[0], tiles[0]),
        "k": plain_axis("k", "columns", sizes[1], tiles[1]),
    }
    y, k = axes["y"], axes["k"]
    a = Operand("a", y.out_start * 8, Block.run(y.out_size * 8), 0, tiles[0] * 8, 2)
    b = Operand("b", k.out_start * 8, Block.run(k.out_size * 8), 100, tiles[1] * 8, 2)
    out = Operand(
        "out",
        y.out_start * sizes[1] + k.out_start,
        Block.of_rows(y.out_size, k.out_size, sizes[1], tiles[1]),
        200,
        tiles[0] * tiles[1],
        2,
    )
    fields: dict[str, Value] = {"rows": y.out_size, "columns": k.out_size}
    fields |= {name: Place(name) for name in ("a", "b", "out")}
    made = {
        "layer": "p",
        "axes": tuple(axes[name] for name in order),
        "operands": (a, b),
        "result": out,
        "compute": Compute(Product, fields, struct="product_t", function="product"),
        "in_turn": HOST_IN_TURN,
        "overlapped": overlapped,
    }
    return TileProgram(**{**made, **changes})  # type: ignore[arg-type]


# ---------------------------------------------------------------------- when operands are loaded


@pytest.mark.parametrize("order", ["yk", "ky"])
@pytest.mark.parametrize("tiles", list(itertools.product((4, 10), (3, 9))))
def test_an_operand_is_loaded_when_its_tile_changes(order: str, tiles: tuple[int, int]) -> None:
    found = program(tiles=tiles, order=order)
    before: dict[str, tuple[int, int]] = {}
    loaded = {"a": 0, "b": 0}
    for tile in found.order():
        names = [found.operands[load.operand].name for load in loads_of(found, tile)]
        for name, axis in (("a", "y"), ("b", "k")):
            span = tile.span(axis)
            wanted = (span.out_start, span.out_size)
            assert (name in names) == (before.get(name) != wanted), (tile.indices, name)
            before[name] = wanted
            # Buffers are used in turn, as many as there are tiles to hold.
            base, size = (0, tiles[0] * 8) if name == "a" else (100, tiles[1] * 8)
            loaded[name] += name in names
            several = found.moves(found.tensor[name]) > 1
            buffer = (loaded[name] - 1) % 2 if several else 0
            assert tile.place(name) == base + buffer * size
    for name, count in loaded.items():
        assert found.moves(found.tensor[name]) == count


def test_what_is_resident_or_the_same_for_all_tiles_moves_once_or_never() -> None:
    base = program()
    whole = replace(base.operands[0], offset=0, block=Block.run(80), l1_bytes=80)
    inside = replace(base.operands[1], resident=True, inside=base.operands[1].offset, l1_bytes=72)
    found = replace(base, operands=(whole, inside))
    loads = [load for tile in found.order() for load in loads_of(found, tile)]
    assert [load.operand for load in loads] == [0]
    assert [tile.place("b") for tile in found.order()][:4] == [100, 124, 148, 100]


def test_windows_that_all_read_everything_are_loaded_once() -> None:
    y = halo_axis("y", "rows", 2, 1, 2, kernel=7, pad=3)
    assert y.count == 2 and (y.in_start, y.in_size) == (0, 2)
    assert y.pad == Of("y", "pad")


def test_steps_are_those_of_the_pipeline() -> None:
    found = program(sizes=(4, 9))
    kinds = [
        ("load", step.transfer.operand)
        if isinstance(step, Queue) and isinstance(step.transfer, Load)
        else "store"
        if isinstance(step, Queue)
        else "wait"
        if isinstance(step, Wait)
        else "compute"
        for step in steps_of(found)
    ]
    tile = ["wait", "compute", "store"]
    assert kinds == [
        ("load", 0), ("load", 1), ("load", 1), *tile, ("load", 1), *tile, *tile, "wait",
    ]  # fmt: skip
    blocking = list(steps_of(program(sizes=(4, 9), overlapped=HOST_BESIDE)))
    assert isinstance(blocking[0], Load) and isinstance(blocking[-1], Store)


# ---------------------------------------------------------------------- bytes and elements


@pytest.mark.parametrize("order", ["yk", "ky"])
def test_traffic_is_the_sum_over_all_steps(order: str) -> None:
    base = program(order=order)
    found = replace(
        base,
        operands=(base.operands[0], replace(base.operands[1], constant=True)),
        compute=replace(base.compute, fetched=base.axes[0].out_size * 5),
    )
    moved = traffic_of(found)
    steps = [step.transfer for step in steps_of(found) if isinstance(step, Queue)]
    loads = [step for step in steps if isinstance(step, Load)]
    assert moved.read == sum(load.block.size for load in loads if load.operand == 0)
    fetched = sum(tile.span(found.axes[0].name).out_size * 5 for tile in found.order())
    constants = sum(load.block.size for load in loads if load.operand == 1)
    assert moved.constants == constants + fetched
    assert moved.written == sum(s.block.size for s in steps if isinstance(s, Store)) == 90


def test_every_element_belongs_to_the_tile_that_writes_it() -> None:
    found = program()
    seen = np.zeros((10, 9), np.int64)
    for tile, made in elements_of_tiles(found, np.arange(90).reshape(10, 9)):
        y, k = tile.span("y"), tile.span("k")
        box = np.zeros((10, 9), np.bool_)
        box[y.out_start : y.out_start + y.out_size, k.out_start : k.out_start + k.out_size] = True
        np.testing.assert_array_equal(made, box)
        seen += made
    assert (seen == 1).all()


# ---------------------------------------------------------------------- cycles


def test_a_tile_hides_what_moves_beside_it() -> None:
    costs = Costs(lambda call: ComputeCost(1000), lambda block: Moved(10), Overheads(start=1))
    found = program(sizes=(4, 9), overlapped=HOST_BESIDE)
    assert found.tiles == 3 and found.moves(found.operands[1]) == 3
    # Four loads and three stores; the computation of a tile hides all but those of both ends.
    in_turn = predicted_cycles(program(sizes=(4, 9), overlapped=None), costs)
    assert in_turn == 3 * 1001 + 7 * 10
    assert predicted_cycles(found, costs) == 3 * 1001 + 2 * 10 + 10


# ---------------------------------------------------------------------- C


def test_values_in_c_are_numbers_where_they_can_be() -> None:
    found = program(sizes=(10, 9), tiles=(4, 9))
    write = TileWriter(found).transfer
    a, b, out = (write(operand) for operand in (*found.operands, found.result))
    assert (a.when, a.l1, a.l2) == ("", "${L1_A} + y % 2u * 32u", "a + (y * 4u) * 8u")
    assert a.bytes == "((y + 1u < 3u ? 4u : 2u)) * 8"
    assert (b.when, b.l1, b.l2, b.bytes) == ("tile == 0u", "${L1_B}", "b", 72)
    assert write(replace(found.operands[1], constant=True)).l2 == "${b}"
    assert out.contiguous and out.l1 == "${L1_OUT} + tile % 2u * 36u"


# ---------------------------------------------------------------------- what is refused


def gapped() -> TileAxis:
    return TileAxis("y", "rows", (Span(0, 4, 0, 4, 0), Span(5, 5, 5, 5, 0)), strided=False)


BASE = program()
A, B = BASE.operands
WRONG = {
    "an operand is read and never loaded": (
        {"operands": (A,)},
        "reads 'b', which is never loaded",
    ),
    "an operand moves no bytes": (
        {"operands": (replace(A, block=Block.run(0)), B)},
        "'a' is never loaded: its block has no bytes",
    ),
    "nothing reads an operand": (
        {"operands": (A, B, replace(B, name="c", l1=400))},
        "nothing reads 'c'",
    ),
    "a value of no axis": (
        {"operands": (replace(A, offset=Of("x", "out_start")), B)},
        "depends on 'x', which is not an axis",
    ),
    "tiles overwrite each other": (
        {"result": replace(BASE.result, offset=Of("y", "out_start"), block=Block.run(12))},
        "tiles along 'k' overwrite each other",
    ),
    "nothing writes the result": (
        {"result": replace(BASE.result, name="other")},
        "reads 'out', which is never loaded",
    ),
    "one buffer of what is stored meanwhile": (
        {"result": replace(BASE.result, buffers=1)},
        "'out' has one buffer",
    ),
    "no buffer": ({"operands": (replace(A, buffers=0), B)}, "'a' has 0 buffers"),
    "two of one name": ({"operands": (A, replace(B, name="a"))}, "two tensors have one name"),
    "two axes of one name": ({"axes": (BASE.axes[0], BASE.axes[0])}, "two axes have one name"),
    "tiles with a gap": ({"axes": (gapped(), BASE.axes[1])}, "along 'y' do not follow each other"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_program_that_contradicts_itself_is_refused(case: str) -> None:
    changes, message = WRONG[case]
    with pytest.raises(TileProgramError, match=message) as error:
        check(replace(BASE, **changes))  # type: ignore[arg-type]
    assert error.value.where == "tile program of layer 'p'" and error.value.hint


def test_tensors_must_lie_apart_once_their_places_are_known() -> None:
    check_places(BASE)
    beside = replace(BASE, operands=(A, replace(B, l1=40)))
    with pytest.raises(TileProgramError, match="'a' ends at byte 64 of L1, 'b' begins at 40"):
        check_places(beside)


def test_round_up_is_a_value_too() -> None:
    tile = next(BASE.order())
    value = round_up(BASE.axes[0].out_size, 16)
    call = replace(
        BASE, compute=replace(BASE.compute, fields={**BASE.compute.fields, "rows": value})
    )
    assert call.call(tile).rows == 16  # type: ignore[attr-defined]
    assert prod(axis.count for axis in BASE.axes) == BASE.tiles == 9
