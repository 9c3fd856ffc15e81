"""C of one layer: the walk over its tiles around what the cores or ITA do with each."""

from __future__ import annotations

import re
from collections.abc import Sequence

from byoc_dory.emit.text import environment
from byoc_dory.layers.layer import Layer
from byoc_dory.plan import LayerPlan
from byoc_dory.region import Constant, Kernel
from byoc_dory.soc.base import Accelerator
from byoc_dory.soc.snitch_ita.view import WalkView
from byoc_dory.soc.snitch_ita.walk import Walk

__all__ = ["ENVIRONMENT", "layer_kernel"]

ENVIRONMENT = environment("byoc_dory.soc.snitch_ita")
_NAMES = frozenset(("tile", "y", "k"))


def _used(code: str) -> frozenset[str]:
    """Which of the loop's names a piece of C uses; a struct's member of that name is no use."""
    return frozenset(re.findall(r"(?<![.\w])[A-Za-z_]\w*", code)) & _NAMES


def layer_kernel(
    layer: Layer,
    plan: LayerPlan,
    walk: Walk,
    compute: str,
    core: Accelerator,
    symbol: str,
    cycles: int,
    *,
    constants: Constant | None,
    notes: Sequence[str] = (),
    device: bool = False,
) -> Kernel:
    """The function that walks the tiles of a layer.

    Args:
        layer: the layer.
        plan: its plan.
        walk: its tiles under that plan.
        compute: C that computes a tile, of ``tile``, ``y`` and ``k``; on a device it orders that,
            and leaves the order's number in ``running``.
        core: what computes.
        symbol: C name.
        cycles: predicted.
        constants: the packed blocks.
        notes: lines for the comment.
        device: whether the computation runs beside the host.
    """
    view = WalkView(walk)
    arguments = [f"const int8_t *{o.name}" for o in walk.operands if not o.resident]
    if not walk.result.resident:
        arguments.append("int8_t *out")
    signature = f"int32_t {symbol}({', '.join(arguments) or 'void'})"
    places = [f"L1_{operand.name.upper()} = {operand.place}" for operand in walk.operands]
    places.append(f"L1_OUT = {walk.result.place}")
    if walk.weights is not None:
        places.append(f"L1_WEIGHTS = {walk.weights.place}")
    if "L1_SCRATCH" in compute:
        places.append(f"L1_SCRATCH = {walk.scratch}")
    pipelined = walk.double and walk.tiles > 1
    source = ENVIRONMENT.get_template("layer.c.jinja").render(
        layer=layer,
        plan=plan,
        walk=walk,
        view=view,
        title=core.title,
        cycles=cycles,
        notes=notes,
        signature=signature,
        places=", ".join(places),
        weights=constants,
        compute=compute,
        device=device,
        pipelined=pipelined,
        # A result's buffer is free when its last transfer is done, which waiting for a later load
        # tells, if there is one.
        watch=pipelined and not walk.result.resident and not walk.loads_every_tile,
        loads=view.loads(constants.name if constants else ""),
        store=view.store(),
        used=_used,
    )
    inputs = zip(layer.inputs, walk.operands, strict=True)
    return Kernel(
        symbol=symbol,
        layer_name=layer.name,
        kind="layer",
        source=source,
        prototype=f"{signature};",
        inputs=tuple(tensor.name for tensor, operand in inputs if not operand.resident),
        outputs=() if walk.result.resident else (layer.output.name,),
        constants=() if constants is None else (constants,),
        layer=layer,
        plan=plan,
        schedule=None,
        predicted_cycles=cycles,
        accelerator=core.name,
    )
