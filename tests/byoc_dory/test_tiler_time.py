"""The tiler is quick enough to be run in every build."""

from __future__ import annotations

import pytest

from byoc_dory.errors import TilingError
from byoc_dory.layers import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.tiling import Solution
from byoc_dory.tiling.milp import solve_milp
from tests.byoc_dory.layers import NETWORKS
from tests.stopwatch import yardsticks

CORE = DIANA.accelerator("digital")
OBJECTIVES = CORE.objectives


@pytest.mark.rotating(4)
@pytest.mark.parametrize("budget", [64_000, 16_000, 8_000])
@pytest.mark.parametrize("network", NETWORKS)
def test_a_network_takes_less_than_a_second(network: str, budget: int) -> None:
    """All layers of each MLPerf Tiny network through the solver, even those that fit."""
    solved, spent = yardsticks(lambda: _solve_all(NETWORKS[network](), budget))
    print(f"{network}, {budget} B: {len(solved)} distinct layers in {spent:.0f} yardsticks")
    assert spent < 100


def _solve_all(layers: list[Layer], budget: int) -> dict[object, Solution | str]:
    solved: dict[object, Solution | str] = {}
    for layer in layers:
        problem = CORE.tiling_problem(DIANA, layer, TilingOptions(budget, schedule="published"))
        if problem.key() in solved:
            continue
        try:
            solved[problem.key()] = solve_milp(problem, OBJECTIVES["array"], 20_000)
        except TilingError as error:
            # 8 kB are too few for one row of the widest layers; that is an answer as well.
            solved[problem.key()] = str(error)
    return solved
