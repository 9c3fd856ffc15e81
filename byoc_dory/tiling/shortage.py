"""`Shortage`: why no tile of a layer fits, with the numbers, and what would help."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from byoc_dory.errors import TilingError
from byoc_dory.tiling.problem import Tile, TilingProblem


@dataclass(frozen=True)
class Shortage:
    """A memory is too small for every tile of a layer.

    Attributes:
        layer: name of the layer.
        memory: name of the memory.
        limit: size of the memory in bytes.
        demand: bytes that the whole layer would need, untiled.
        tile: the tile that needs least.
        smallest: bytes it needs, with all copies if it is buffered more than once.
        parts: description of these bytes.
        levers: what a user can do, the most direct first.
    """

    layer: str
    memory: str
    limit: int
    demand: int
    tile: Tile
    smallest: int
    parts: str
    levers: tuple[str, ...]

    def error(self) -> TilingError:
        """Return the same as an exception."""
        parts = f" ({self.parts})" if self.parts else ""
        return TilingError(
            f"the smallest tile ({self.tile}) needs {self.smallest} B of {self.memory}{parts}, "
            f"the limit is {self.limit} B, and the whole layer would need {self.demand} B",
            where=f"layer '{self.layer}'",
            hint=f"{', '.join(self.levers[:-1])}, or {self.levers[-1]}",
            limit=self.limit,
            demand=self.demand,
            smallest=self.smallest,
        )


def require_feasible(problem: TilingProblem) -> None:
    """Check that at least the smallest tile fits.

    Raises:
        TilingError: no tile fits; the message names limit, the demand of the layer and of its
            smallest tile, and what would help.
    """
    lacking = shortage_of(problem)
    if lacking is not None:
        raise lacking.error()


def shortage_of(problem: TilingProblem) -> Shortage | None:
    """Return what is lacking, or None if some tile fits.

    Memory grows with every dimension except one: if c is tiled, outputs are int32 partial sums, so
    an untiled c may need less than a tiled one.
    """
    small, copies = problem.smallest, problem.buffering
    channels = problem.c.sizes()
    sizes = (small.k, channels, small.y, small.x)
    weights = np.broadcast_to(problem.weight_bytes(*sizes), channels.shape)
    used = np.broadcast_to(problem.l1_bytes(*sizes), channels.shape)
    possible = (copies * weights <= problem.weights.limit) | problem.weights.in_l1
    if not possible.any():
        return _weight_shortage(problem, small, copies * int(weights[0]))
    least = np.where(possible, used, np.iinfo(np.int64).max)
    best_index = int(np.argmin(least))
    smallest = int(used[best_index])
    if smallest <= problem.l1_limit:
        return None
    return _activation_shortage(problem, replace(small, c=int(channels[best_index])), smallest)


def _activation_shortage(problem: TilingProblem, tile: Tile, smallest: int) -> Shortage:
    used_in, used_out, used_weights = problem.memory(tile)
    whole = problem.whole
    parts = f"{_copies_text(problem)}input {used_in}, output {used_out}"
    if problem.weights.in_l1:
        parts += f", weights {used_weights}"
    once = problem.fixed_bytes + problem.fixed.column * tile.x
    if once:
        parts += f"; once, {once}"
    return Shortage(
        layer=problem.name,
        memory=problem.unit,
        limit=problem.l1_limit,
        demand=int(problem.l1_bytes(whole.k, whole.c, whole.y, whole.x)),
        tile=tile,
        smallest=smallest,
        parts=parts,
        levers=(
            f"raise the {problem.unit} budget to {smallest} B or more",
            *_single_buffering(problem),
            *_layer_changes(problem, tile, input_matters=True),
            "leave the layer to the CPU",
        ),
    )


def _weight_shortage(problem: TilingProblem, tile: Tile, smallest: int) -> Shortage:
    return Shortage(
        layer=problem.name,
        memory="weight memory",
        limit=problem.weights.limit,
        demand=problem.buffering * problem.memory(problem.whole)[2],
        tile=tile,
        smallest=smallest,
        parts=f"{problem.buffering} copies" if problem.buffering > 1 else "",
        levers=(
            *_single_buffering(problem),
            *_layer_changes(problem, tile, input_matters=False),
            "leave the layer to the CPU",
        ),
    )


def _copies_text(problem: TilingProblem) -> str:
    return f"{problem.buffering} copies of " if problem.buffering > 1 else ""


def _single_buffering(problem: TilingProblem) -> tuple[str, ...]:
    if problem.buffering == 1:
        return ()
    return ("keep one copy of each tile (schedule='published')",)


def _layer_changes(problem: TilingProblem, tile: Tile, input_matters: bool) -> tuple[str, ...]:
    """Return changes to the network that make its smallest tile smaller."""
    changes = []
    if not problem.channels_follow_k and tile.c > 1:
        changes.append(f"use fewer input channels than {tile.c}")
    if input_matters and not problem.x.tiled and problem.window.ix > 1:
        changes.append(f"use a narrower input than {problem.window.ix} columns")
    if (problem.window.fy, problem.window.fx) != (1, 1):
        changes.append(f"use a smaller kernel than {problem.window.fy}x{problem.window.fx}")
    return tuple(changes)
