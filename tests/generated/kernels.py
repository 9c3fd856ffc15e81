"""A helper of tests: the kernels of a region as one text."""

from __future__ import annotations

from byoc_dory.codegen import generate
from byoc_dory.cost import Cost
from byoc_dory.layers import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.region import Region, RegionCode
from byoc_dory.soc.base import Soc


def chain(name: str, layers: tuple[Layer, ...], homes: tuple[str, ...] = ()) -> Region:
    """Layers as a region: it reads what none of them makes, and its output is the last one's."""
    made = {layer.output.name for layer in layers}
    entering = {t.name: t for layer in layers for t in layer.inputs if t.name not in made}
    return Region(name, layers, tuple(entering.values()), (layers[-1].output,), homes=homes)


def code_of(region: Region, soc: Soc, options: TilingOptions, home: str | None) -> RegionCode:
    """The code of a region whose C names start with ``net``."""
    return generate(region, Cost(soc, options), "net", home)


def text_of(code: RegionCode) -> str:
    """All kernels in order, and the constants they need as declarations with their sizes."""
    parts = []
    for kernel in code.kernels:
        constants = "".join(
            f"/* constant: {c.name}[{c.data.size}], {c.data.dtype}, aligned to {c.align}: "
            f"{c.comment} */\n"
            for c in kernel.constants
        )
        parts.append(constants + kernel.source.strip() + "\n")
    return "\n".join(parts)
