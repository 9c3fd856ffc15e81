"""C of a region: a function per layer, which hands its commands to the driver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from byoc_dory.emit.text import part_name, rendered
from byoc_dory.layers import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan, PlacedBuffer, RegionPlan
from byoc_dory.region import Constant, Kernel, Region, RegionKernels
from byoc_dory.soc.base import Soc
from byoc_dory.soc.dla.assemble import Stream, assemble
from byoc_dory.soc.dla.design import Design, DlaCore
from byoc_dory.soc.dla.late import late_kernels
from byoc_dory.soc.dla.memory import LayerMemory, MemoryPlan, plan
from byoc_dory.soc.dla.program import memory_of, predicted, tile_program
from byoc_dory.soc.dla.region_file import block_of, lower
from byoc_dory.tiling.problem import Solution, Tile


@dataclass(frozen=True)
class DlaEmitter:
    """Assembles regions ahead of time."""

    core: DlaCore
    soc: Soc
    headers: tuple[str, ...] = ("dla_driver.h",)

    def region(
        self, region: Region, options: TilingOptions, symbol: Callable[[str], str]
    ) -> RegionKernels:
        """Return the kernels of a region's layers, and its plan.

        Raises:
            TilingError: the smallest tile of a layer does not fit SRAM.
        """
        design = self.core.design_for(self.soc, options)
        file, weights = lower(region)
        memory = plan(file, design)
        stream = assemble(file, design, memory)
        plans = [
            self._plan(layer, entry, design)
            for layer, entry in zip(region.layers, memory.layers, strict=True)
        ]
        kernels = tuple(
            self._kernel(layer, plans[number], stream, number, design, symbol(layer.name))
            for number, layer in enumerate(region.layers)
        )
        planned = self._region_plan(region, plans, memory, design, kernels)
        if options.assembly == "late":
            made = late_kernels(
                region, file, weights, stream, design, kernels, symbol, options.l1_budget
            )
            return RegionKernels(made, replace(planned, resident=()))
        return RegionKernels(kernels, planned)

    def _plan(self, layer: Layer, memory: LayerMemory, design: Design) -> LayerPlan:
        tile = memory.tile
        found = LayerPlan(
            accelerator=self.core.name,
            solution=Solution(
                Tile(tile.k, layer.C, tile.y, layer.ox),
                *memory_of(layer, design, tile),
                objective=0,
                objective_name="cycles" if design.rows else "largest tile",
                status="feasible",
                gap=None,
                solver="assembler",
            ),
            buffers=1,
            resident_inputs=memory.resident,
            resident_output=memory.stays,
            l1_inputs=memory.operands,
            l1_output=memory.result,
            l1_weights=memory.weights,
        )
        return found

    def _kernel(
        self,
        layer: Layer,
        plan: LayerPlan,
        stream: Stream,
        number: int,
        design: Design,
        symbol: str,
    ) -> Kernel:
        words = np.frombuffer(stream.layer(number).tobytes(), dtype=np.int32)
        commands = Constant(part_name(symbol, "commands"), words, f"command stream of {layer.name}")
        constants = [commands]
        slots = ["NULL"] * 4
        block = block_of(layer)
        if block.size:
            constants.append(
                Constant(part_name(symbol, "weights"), block, f"weights and biases of {layer.name}")
            )
            slots[0] = part_name(symbol, "weights")
        arguments, inputs = [], []
        for place, tensor in enumerate(layer.inputs):
            if not plan.resident_inputs[place]:
                slots[1 + place] = f"in{place}"
                arguments.append(f"const int8_t *in{place}")
                inputs.append(tensor.name)
        if not plan.resident_output:
            slots[3] = "out"
            arguments.append("int8_t *out")
        signature = f"int32_t {symbol}({', '.join(arguments) or 'void'})"
        tile = plan.solution.tile
        text = rendered(
            "byoc_dory.soc.dla",
            "layer.c.jinja",
            layer=layer,
            tile=tile,
            count=len(words),
            words=len(words),
            signature=signature,
            slots=slots,
            stream=commands.name,
        )
        return Kernel(
            symbol=symbol,
            layer_name=layer.name,
            kind="layer",
            source=text,
            prototype=f"{signature};",
            inputs=tuple(inputs),
            outputs=() if plan.resident_output else (layer.output.name,),
            constants=tuple(constants),
            layer=layer,
            plan=plan,
            program=tile_program(self.core, layer, plan),
            predicted_cycles=predicted(self.core, layer, plan, design),
            accelerator=self.core.name,
        )

    def _region_plan(
        self,
        region: Region,
        plans: list[LayerPlan],
        memory: MemoryPlan,
        design: Design,
        kernels: tuple[Kernel, ...],
    ) -> RegionPlan:
        cycles = sum(kernel.predicted_cycles for kernel in kernels)
        staying = [
            layer.output.name
            for layer, entry in zip(region.layers, memory.layers, strict=True)
            if entry.stays
        ]
        return RegionPlan(
            layers=tuple(plans),
            resident=tuple(staying),
            l1_limit=design.sram,
            l1_peak=memory.peak,
            l1_live=max(memory.used),
            l1_used=memory.used,
            cycles=cycles,
            cycles_alone=cycles,
            bound=cycles,
            method="late assembler's algorithm",
            l1_map=tuple(_buffers(region, plans, memory)),
        )


def _buffers(region: Region, plans: list[LayerPlan], memory: MemoryPlan) -> list[PlacedBuffer]:
    """Return what is in SRAM over time."""
    last = {t.name: n for n, layer in enumerate(region.layers) for t in layer.inputs}
    found = []
    for number, (layer, own, entry) in enumerate(
        zip(region.layers, plans, memory.layers, strict=True)
    ):
        size = own.solution.l1_in // len(layer.inputs)
        for tensor, place, resident in zip(
            layer.inputs, entry.operands, entry.resident, strict=True
        ):
            if not resident:
                found.append(PlacedBuffer(tensor.name, place, size, number, number, False))
        name = layer.output.name
        if entry.stays:
            whole = layer.output.elements
            found.append(PlacedBuffer(name, entry.result, whole, number, last[name], True))
        else:
            size = own.solution.l1_out
            found.append(PlacedBuffer(name, entry.result, size, number, number, False))
        if entry.sums != entry.result:
            size = own.solution.l1_out
            found.append(PlacedBuffer(f"sums of {name}", entry.sums, size, number, number, False))
        if own.solution.l1_weights:
            size = own.solution.l1_weights
            found.append(
                PlacedBuffer(f"weights of {name}", entry.weights, size, number, number, False)
            )
    return found
