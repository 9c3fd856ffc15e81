"""The comment of a pipelined loop says what its conditions do."""

from __future__ import annotations

import pytest

from byoc_dory.emit.tile_text import Stage, condition, phases

STAGES = (Stage("start", 1, ""), Stage("finish, store", 2, ""), Stage("load", 0, ""))


def test_the_table_of_a_loop() -> None:
    assert phases(STAGES, 8).splitlines()[2:-1] == [
        " *   step     load        start           finish, store",
        " *   0        tile 0      -               -               prologue",
        " *   1        tile 1      tile 0          -               prologue",
        " *   2 to 7   tile step   tile step - 1   tile step - 2   steady state",
        " *   8        -           tile 7          tile 6          epilogue",
        " *   9        -           -               tile 7          epilogue",
    ]


def test_too_few_tiles_for_a_steady_state() -> None:
    text = phases(STAGES, 2)
    assert "too few tiles" in text and "steady state\n" not in text.replace("a steady state.", "")
    assert [line.split()[-1] for line in text.splitlines()[3:7]] == [
        "prologue", "prologue", "epilogue", "epilogue",
    ]  # fmt: skip


@pytest.mark.parametrize("tiles", [2, 3, 4, 9])
def test_conditions_and_table_agree(tiles: int) -> None:
    """Each condition, evaluated, is where the table has a tile."""
    longest = 2
    rows = [line.strip(" *").split("   ") for line in phases(STAGES, tiles).splitlines()[3:-1]]
    table = {row[0].strip(): [cell.strip() for cell in row if cell.strip()] for row in rows}
    for step in range(tiles + longest):
        for stage in STAGES:
            text = condition(stage, tiles, tiles + longest).replace("u", "").replace("&&", "and")
            there = bool(eval(text, {"step": step}))  # noqa: S307
            assert there == (0 <= step - stage.distance < tiles)
            row = table.get(str(step))
            if row is not None and "steady state" not in row:
                assert (f"tile {step - stage.distance}" in row) == there
