"""The tiler: how long it takes, for heuristic objectives and for latency.

Layers of the four MLPerf Tiny networks (DS-CNN with HTVM's 7x5 filter) under small L1 budgets, one
layer at a time.
"""

from __future__ import annotations

import time

from byoc_dory.cost import Cost
from byoc_dory.options import TilingOptions
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.tiling import shortage_of
from htvm.tools.report.table import Column, Table, text
from tests.byoc_dory.layers import NETWORKS

BUDGETS = (256_000, 64_000, 32_000, 16_000, 8_000, 4_000)
OBJECTIVES = ("array", "latency")

CORE = DIANA.accelerator("digital")


def times() -> Table:
    """Processor milliseconds, each distinct layer once, as in a build."""
    rows = []
    for name, build in NETWORKS.items():
        layers = {layer.geometry: layer for layer in build()}
        for budget in BUDGETS:
            for objective in OBJECTIVES:
                options = TilingOptions(budget, objective, schedule="published")
                spent = []
                for layer in layers.values():
                    if (
                        shortage_of(
                            CORE.tiling_problem(
                                DIANA, layer, TilingOptions(budget, schedule="published")
                            )
                        )
                        is not None
                    ):
                        continue
                    start = time.process_time()
                    Cost(DIANA, options).best_tile(CORE, layer)
                    spent.append(1000 * (time.process_time() - start))
                if spent:
                    numbers = (sum(spent), sum(spent) / len(spent), max(spent))
                    milliseconds = (f"{number:.0f}" for number in numbers)
                    rows.append((name, f"{budget:,}", objective, str(len(spent)), *milliseconds))
    columns = ("network", "L1 B", "objective", "distinct layers", "ms in all", "mean", "worst")
    return Table(
        tuple(Column(title, number not in (0, 2)) for number, title in enumerate(columns)),
        tuple(rows),
        title="Time to tile the layers of a network",
    )


def main() -> None:
    """Print the table."""
    print(text(times()))


if __name__ == "__main__":
    main()
