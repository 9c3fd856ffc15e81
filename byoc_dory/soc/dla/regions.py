"""`DlaRegions`: executes regions natively, assembled late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from byoc_dory.errors import TilingError
from byoc_dory.layers import Array, Tensor
from byoc_dory.options import TilingOptions
from byoc_dory.region import BorderMap, Region
from byoc_dory.soc.base import Soc
from byoc_dory.soc.dla.design import Design, DlaCore
from byoc_dory.soc.dla.late import LateAssembler
from byoc_dory.soc.dla.region_file import RegionFile, lower
from byoc_dory.soc.dla.simulator import LayerCount, Simulator
from byoc_dory.soc.dla.tiles import memory_need, smallest
from byoc_dory.soc.regions import RegionCount


@dataclass(frozen=True)
class PreparedRegion:
    """A region as a file, and what is needed at its borders.

    Attributes:
        json, weights: contents of the region's two files.
        file: the same, read.
        inputs, outputs: tensors at the border, in their layout outside.
        maps: functions of bytes that inputs pass.
    """

    json: bytes
    weights: bytes
    file: RegionFile
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    maps: tuple[BorderMap, ...]


class DlaRegions:
    """Executes regions: the late assembler in C, then the simulator.

    Args:
        library: the simulator's shared library.
    """

    structure: tuple[str, ...] = ("depthwise", "host")
    # Enough for any layer that the library's own networks have, and for most others.
    roomy: dict[str, Any] = {"sram": 64 << 20, "pes": 64, "rows": "tiled"}  # noqa: RUF012

    def __init__(self, library: Path) -> None:
        self._library = library
        self._assembler = LateAssembler(library)
        self._simulator: tuple[Design, Simulator] | None = None

    def prepare(self, region: Region) -> PreparedRegion:
        """Return the region as JSON with its weights."""
        file, weights = lower(region)
        json = msgspec.json.encode(file)
        return PreparedRegion(json, weights, file, region.inputs, region.outputs, region.maps)

    def run(
        self,
        prepared: PreparedRegion,
        soc: Soc,
        options: TilingOptions,
        inputs: Sequence[Array],
    ) -> tuple[list[Array], RegionCount]:
        """Assemble and execute a region; see `byoc_dory.soc.regions.RegionRunner`."""
        core = soc.accelerators[0]
        assert isinstance(core, DlaCore)
        design = core.design_for(soc, options)
        try:
            late = self._assembler.assemble(prepared.json, design)
        except TilingError as error:
            raise _explained(prepared.file, design, error) from error
        given = {t.name: _to_device(t, x) for t, x in zip(prepared.inputs, inputs, strict=True)}
        for entry in prepared.maps:
            table = entry.table.view(np.int8)
            given[entry.tensor] = table[given[entry.source].view(np.uint8)]
        simulator = self._simulator_of(design)
        # The hash of weights that never leave this process is not checked.
        found, counts = simulator.run(prepared.file, prepared.weights, given, late.stream)
        outputs = [_from_device(t, found[t.name]) for t in prepared.outputs]
        return outputs, _count(core, counts)

    def _simulator_of(self, design: Design) -> Simulator:
        if self._simulator is None or self._simulator[0] != design:
            self._simulator = design, Simulator(self._library, design)
        return self._simulator[1]


def _count(core: DlaCore, counts: Sequence[LayerCount]) -> RegionCount:
    kinds: dict[str, int] = {}
    for count in counts:
        for kind, cycles in count.cycles.items():
            kinds[kind] = kinds.get(kind, 0) + cycles
    instructions = sum(sum(count.instructions.values()) for count in counts)
    host = core.exposed_issue_cycles * instructions + core.exposed_call_cycles * len(counts)
    moved = sum(count.bytes for count in counts)
    return RegionCount(sum(kinds.values()), host, moved, tuple(kinds.items()))


def _explained(file: RegionFile, design: Design, error: TilingError) -> TilingError:
    """Return the error with the layer's name, and the bytes of the layer that needs most."""
    layer, least = max(
        ((layer, memory_need(file, layer, design, smallest(file, layer, design)).total)
         for layer in file.layers),
        key=lambda found: found[1],
    )  # fmt: skip
    levers = f"give {least} B of SRAM or more"
    return TilingError(
        error.what,
        where=f"layer '{layer.name}'",
        hint=levers if design.rows else f"{levers}, or tile rows, too (rows=tiled)",
        limit=design.sram,
        smallest=least,
    )


def _to_device(tensor: Tensor, array: Array) -> Array:
    """Return a tensor in rows of pixels of channels."""
    flat = np.asarray(array, order="C").reshape(-1).view(np.int8)
    if len(tensor.shape) == 1:
        return flat.reshape(1, 1, -1)
    channels, rows, columns = tensor.shape
    if tensor.layout == "NCHW":
        return np.asarray(flat.reshape(channels, rows, columns).transpose(1, 2, 0), order="C")
    return flat.reshape(rows, columns, channels)


def _from_device(tensor: Tensor, array: Array) -> Array:
    """Return the elements in the order of the tensor's layout outside."""
    ordered = array.transpose(2, 0, 1) if tensor.layout == "NCHW" else array
    return np.asarray(ordered, order="C").reshape(-1)
