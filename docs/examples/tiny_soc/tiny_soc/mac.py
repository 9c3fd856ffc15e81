"""What the accelerator takes, what a tile needs, what it costs."""

from __future__ import annotations

from byoc_dory.layers import Convolution, Dense, Layer
from byoc_dory.soc.base import Rule, Soc
from byoc_dory.soc.rules import (
    ACCEPTED,
    data_are_int8,
    requantization_is_one_shift,
    smallest_tile_fits,
)
from byoc_dory.tiling import (
    Axis,
    Heuristic,
    Objective,
    Size,
    TileWeights,
    TilingProblem,
    Window,
)
from byoc_dory.verdict import Refused, Verdict
from tiny_soc.description import Mac

__all__ = ["OBJECTIVES", "RULES", "tiling_problem"]

# ---------------------------------------------------------------------- what it takes

# A rule is asked about one layer.  The first line of its docstring is what the public reads; a
# refusal says the value that it objects to.


def operator_is_a_product(layer: Layer, core: Mac, soc: Soc) -> Verdict:
    """The operator is dense, or a 1x1 convolution of stride 1 without padding and groups."""
    depthwise = isinstance(layer, Convolution) and layer.depthwise
    if depthwise or not isinstance(layer, Dense | Convolution):
        return Refused(f"the operator is {layer.op}")
    if (layer.fy, layer.fx) != (1, 1):
        return Refused(f"the kernel is {layer.fy}x{layer.fx}")
    if layer.stride != (1, 1):
        return Refused(f"the stride is {layer.stride[0]}x{layer.stride[1]}")
    if any(layer.pad):
        return Refused(f"the padding is {layer.pad}")
    if layer.groups != 1:
        return Refused(f"there are {layer.groups} groups")
    return ACCEPTED


RULES: tuple[Rule, ...] = (
    operator_is_a_product,
    data_are_int8,
    requantization_is_one_shift,
    smallest_tile_fits,
)

# ---------------------------------------------------------------------- tiles


def tiling_problem(layer: Layer, core: Mac, l1_budget: int) -> TilingProblem:
    """What a tile needs of L1: rows of pixels, and blocks of output channels with their weights.

    Input channels are never tiled, so that no sum has to be kept.  A block is biases of four bytes,
    then weights of ``C`` bytes for each output channel.
    """
    return TilingProblem(
        name=layer.name,
        k=Axis(layer.K, step=core.lanes),
        c=Axis(layer.C, tiled=False),
        y=Axis(layer.oy),
        x=Axis(layer.ox, tiled=False),
        window=Window(layer.iy, layer.ix),
        l1_limit=l1_budget,
        weights=TileWeights(channel=1, block=4, in_l1=True),
        unit=core.l1,
    )


OBJECTIVES = {
    objective.name: objective
    for objective in (
        Objective("none"),
        Objective(
            "array",
            (Heuristic("output channels", Size("k"), 1_000, "the input is copied once for each"),),
        ),
    )
}
