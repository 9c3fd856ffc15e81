"""Helper: an accelerator that takes whatever operators a test wants it to take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from byoc_dory.layers import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import Accelerator, Rules, Soc, Target
from byoc_dory.soc.generic.description import GENERIC
from byoc_dory.soc.schemes import MulShiftScheme, NumberScheme
from byoc_dory.verdict import Accepted, Refused, Verdict
from patterns.byoc.partition import Partition, partition
from patterns.dispatch.dispatching import Dispatch, dispatch
from patterns.reading.read import graph_of

ALL = ("conv2d", "depthwise", "dense", "add", "gemm", "matmul", "rows", "mha")


@dataclass(frozen=True)
class Fake(Accelerator):
    """Takes layers of some operators; its layout is row by row."""

    takes: tuple[str, ...] = ALL
    form: NumberScheme = MulShiftScheme()

    @property
    def rules(self) -> Rules:
        return ((f"{self.name.upper()}-1", operator_is_taken),)

    @property
    def scheme(self) -> NumberScheme:
        return self.form

    @property
    def objectives(self) -> Mapping[str, Any]:
        return {}

    def tiling_problem(self, soc: Soc, layer: Layer, options: TilingOptions) -> Any:
        raise NotImplementedError

    def tile_program(self, soc: Soc, layer: Layer, plan: Any, options: Any) -> Any:
        raise NotImplementedError

    def costs(self, soc: Soc, layer: Layer, program: Any, options: Any) -> Any:
        raise NotImplementedError

    def emitter(self, soc: Soc) -> Any:
        raise NotImplementedError


def operator_is_taken(soc: Soc, core: Any, layer: Layer) -> Verdict:
    """The operator is one of a list."""
    if layer.op in core.takes:
        return Accepted()
    return Refused(f"the operator is {layer.op}")


def fake(name: str = "cores", takes: tuple[str, ...] = ALL, family: str = "cluster") -> Fake:
    return Fake(name, "a fake", 0x1000, "L1", family, takes=takes)


def soc_of(*accelerators: Accelerator) -> Soc:
    return replace(GENERIC, accelerators=accelerators)


def target_of(*accelerators: Accelerator) -> Target:
    return Target("fake", soc_of(*accelerators), accelerators)


def placed_on(
    module: Any, *accelerators: Accelerator, wanted: dict[str, str] | None = None
) -> Dispatch:
    soc = soc_of(*accelerators)
    return dispatch(graph_of(module), soc, accelerators, wanted)


def cut(
    module: Any, *accelerators: Accelerator, wanted: dict[str, str] | None = None
) -> tuple[Dispatch, Partition]:
    placed = placed_on(module, *accelerators, wanted=wanted)
    return placed, partition(graph_of(module), placed, target_of(*accelerators), TilingOptions())


def layers_of(parts: Partition) -> list[list[str]]:
    return [[layer.name for layer in region.layers] for region in parts.regions.values()]
