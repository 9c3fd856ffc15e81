"""Executing a network's regions on designs of the accelerator, for the tables about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from byoc_dory.region import Region, RegionCode
from byoc_dory.soc.dla.assemble import assemble
from byoc_dory.soc.dla.design import Design
from byoc_dory.soc.dla.memory import MemoryPlan, plan
from byoc_dory.soc.dla.region_file import RegionFile, lower
from byoc_dory.soc.dla.simulator import LayerCount, Simulator
from byoc_dory.soc.registry import resolve
from htvm import zoo
from htvm.build_options import BuildOptions
from htvm.inputs import seeded_inputs
from htvm.pipeline import compile_model
from htvm.sim.native import native_library
from htvm.tools.verification.verify import operator_results

__all__ = ["SCENARIOS", "Ran", "Workload", "execute", "workload"]

SCENARIOS = {"cpu": 1, "emulated": 2, "native": 3}
"""The paper's scenarios by who computes depthwise convolutions."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Workload:
    """The regions of a network under one kind of support for depthwise convolutions.

    Attributes:
        regions: each with its weights.
        tensors: the reference's int8 tensors by name, rows of pixels of channels.
    """

    regions: tuple[tuple[RegionFile, bytes], ...]
    tensors: Mapping[str, Array]


@dataclass(frozen=True)
class Ran:
    """A network that ran on a design.

    Attributes:
        layers: what each layer did, in order.
        plans: memory plan of each region.
        written, unchanged: register writes, and those left out.
    """

    layers: tuple[LayerCount, ...]
    plans: tuple[MemoryPlan, ...]
    written: int
    unchanged: int

    def segments(self) -> dict[str, int]:
        """Return the cycles of the paper's kinds of subgraphs: CONV, REQUANT and DEPTH.

        Transfers are not counted, as published, and neither is the dense layer.
        """
        found = {"CONV": 0, "REQUANT": 0, "DEPTH": 0}
        for layer in self.layers:
            if layer.op == "dense":
                continue
            requant = layer.cycles["REQUANT"]
            found["REQUANT"] += requant
            found["DEPTH" if layer.op == "depthwise" else "CONV"] += layer.computing - requant
        return found

    @property
    def computing(self) -> int:
        """Cycles of the three kinds together."""
        return sum(self.segments().values())

    @property
    def moving(self) -> int:
        """Cycles of transfers."""
        return sum(layer.cycles["DMA"] for layer in self.layers)

    @property
    def bytes(self) -> int:
        """Bytes between system memory and SRAM."""
        return sum(layer.bytes for layer in self.layers)

    def utilisation(self, pes: int) -> float:
        """Return the share of the PEs' multiply-accumulates while convolutions are computed."""
        own = [layer for layer in self.layers if layer.op != "dense"]
        cycles = sum(layer.cycles["CONV"] + layer.cycles["DEPTH"] for layer in own)
        return sum(layer.macs for layer in own) / (cycles * pes)


def workload(network: str, depthwise: str) -> Workload:
    """Compile a network of the zoo for designs with this support of depthwise convolutions."""
    model = zoo.build(network)
    compiled = compile_model(model, f"dla:depthwise={depthwise},sram=256MiB", BuildOptions())
    module = compiled.retargeted.model.module
    reference = operator_results(module, seeded_inputs(model.inputs))
    regions = tuple(lower(_region(code)) for code in compiled.regions.values())
    entries = [entry for region, _ in regions for entry in region.tensors]
    tensors = {
        entry.name: _int8(reference[entry.name], (entry.rows, entry.columns, entry.channels))
        for entry in entries
    }
    return Workload(regions, tensors)


def _region(code: RegionCode) -> Region:
    layers = tuple(kernel.layer for kernel in code.kernels if kernel.layer is not None)
    return Region(code.name, layers, code.inputs, code.outputs)


def _int8(values: Array, shape: tuple[int, ...]) -> Array:
    assert values.dtype == np.int8  # networks of the zoo are NHWC
    return np.asarray(values.reshape(shape), order="C")


def execute(work: Workload, design: Design) -> Ran:
    """Run all regions on a design, and compare every result with the reference.

    Raises:
        TilingError: a layer's smallest tile does not fit SRAM.
    """
    simulator = Simulator(native_library(resolve("dla").soc), design)
    layers: list[LayerCount] = []
    plans, written, unchanged = [], 0, 0
    for region, weights in work.regions:
        planned = plan(region, design)
        stream = assemble(region, design, planned)
        outputs, counts = simulator.run(region, weights, work.tensors, stream)
        for name, found in outputs.items():
            np.testing.assert_array_equal(found, work.tensors[name], err_msg=f"{name}, {design}")
        layers += counts
        plans.append(planned)
        written += stream.written
        unchanged += stream.unchanged
    return Ran(tuple(layers), tuple(plans), written, unchanged)
