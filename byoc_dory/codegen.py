"""Generating C for a region: plan every layer, pack its weights, emit its function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from byoc_dory.emit import RegionEmitter
from byoc_dory.emit.symbols import Symbols
from byoc_dory.errors import UnsupportedError
from byoc_dory.expansion import expand
from byoc_dory.layers import Layer, Tensor
from byoc_dory.options import TilingOptions
from byoc_dory.orders import with_long_before_sums
from byoc_dory.plan import LayerPlan, RegionPlan
from byoc_dory.planning import plan_region, require_accepted
from byoc_dory.region import BorderMap, Buffer, Kernel, Region, RegionCode, RegionKernels
from byoc_dory.residency import Known
from byoc_dory.soc.base import Accelerator, Soc
from byoc_dory.soc.objections import named
from byoc_dory.tileloop.checks import check_alignment

__all__ = ["generate"]

# Name of the copy of a border tensor in the accelerator's layout.
_COPY = ".core"


def generate(
    region: Region,
    soc: Soc,
    options: TilingOptions,
    prefix: str,
    accelerator: str | None = None,
    weights: Mapping[str, str] | None = None,
    held: Mapping[str, int] | None = None,
    known: Known | None = None,
    symbols: Symbols | None = None,
) -> RegionCode:
    """Generate the code of a region.

    Args:
        region: layers, and border tensors in their layouts outside of the region.
        soc: description of the SoC.
        options: options of the tiler.
        prefix: prefix of all C names, usually the model's name.
        accelerator: name of the accelerator for layers without a home in the region; the SoC's
            first one by default.
        weights: name of the memory that keeps a layer's weights, "" if they are loaded with its
            tiles (`byoc_dory.pinning`); layers that are not in it do as their accelerator is
            described.
        held: byte offset in L1 of each input that stays there between runs (`byoc_dory.state`).
        known: choices of layers that were planned for this SoC with these options; new ones are
            added.
        symbols: names that are in use in the program; new ones are added.

    Returns:
        Kernels in execution order (conversions of inputs, layers, conversions of outputs) and the
        buffers to be planned.  A border tensor that already has the accelerator's layout is used
        in place.  A layer that its accelerator expands becomes several.

    Raises:
        TargetError: the SoC has no such accelerator, the objective is unknown, or the DMA cannot
            begin where tiles do.
        UnsupportedError: the accelerator's rules refuse a layer, or a border layout is unknown.
        TilingError: no tile of a layer fits.
    """
    found = expand(region, soc, options, accelerator)
    kept = {} if weights is None else weights
    homes = {
        name: home.keeping(kept[name]) if name in kept else home
        for name, home in found.homes.items()
    }
    symbols = Symbols(prefix) if symbols is None else symbols
    return _Generator(found.region, soc, homes, options, symbols, held or {}, known).run()


class _Generator:
    """One run of `generate`."""

    def __init__(
        self,
        region: Region,
        soc: Soc,
        homes: Mapping[str, Accelerator],
        options: TilingOptions,
        symbols: Symbols,
        held: Mapping[str, int],
        known: Known | None,
    ) -> None:
        self.known = {} if known is None else known
        self.region = region
        self.soc = soc
        self.homes = homes
        self.options = options
        self.symbols = symbols
        self.held = held
        self._emitters = {name: home.emitter(soc) for name, home in homes.items()}
        # All emitters belong to one family, so they share one layout.
        self.layout = homes[region.layers[0].name].layout(soc)

    def run(self) -> RegionCode:
        """Return prologues, layers and epilogues."""
        region = self.region
        read = {tensor.name for layer in region.layers for tensor in layer.inputs}
        entering = [tensor for tensor in region.inputs if tensor.name in read]
        renamed = {
            tensor.name: tensor.name + _COPY
            for tensor in (*entering, *region.outputs)
            if not self.layout.native(tensor)
        }
        renamed |= {tensor.name: tensor.name + _COPY for tensor in region.mapped}
        kernels = [self._prologue(tensor, renamed) for tensor in entering if tensor.name in renamed]
        kernels += [self._prologue(mapped, renamed, entry) for mapped, entry in self._maps()]
        layers = self._layers()
        planned = layers.plan
        kernels += [_rename(kernel, renamed) for kernel in layers.kernels]
        kernels += [
            self.layout.epilogue(
                tensor, renamed[tensor.name], self._conversion(tensor, "from_core")
            )
            for tensor in region.outputs
            if tensor.name in renamed
        ]
        self.symbols.enter(entry.name for kernel in kernels for entry in kernel.constants)
        return RegionCode(
            name=region.name,
            kernels=tuple(kernels),
            buffers=self._buffers(entering, renamed, set(planned.resident)),
            inputs=region.inputs,
            outputs=region.outputs,
            headers=tuple(
                dict.fromkeys(
                    header for emitter in self._emitters.values() for header in emitter.headers
                )
            ),
            plan=planned,
        )

    def _maps(self) -> Iterator[tuple[Tensor, BorderMap]]:
        for mapped, entry in zip(self.region.mapped, self.region.maps, strict=True):
            if mapped.layout == "CHW":
                raise UnsupportedError(
                    f"the map of '{entry.tensor}' has no layout to convert",
                    where=f"region '{self.region.name}'",
                    hint="give its source in the outside's layout",
                )
            yield mapped, entry

    def _prologue(
        self, tensor: Tensor, renamed: dict[str, str], mapped: BorderMap | None = None
    ) -> Kernel:
        # Another region may convert the map's result itself, so the two functions' names differ.
        suffix = "to_core" if mapped is None else "mapped_to_core"
        symbol = self._conversion(tensor, suffix)
        return self.layout.prologue(tensor, renamed[tensor.name], symbol, mapped)

    def _conversion(self, tensor: Tensor, suffix: str) -> str:
        """Return a conversion's C name: regions that convert the same tensor share the function."""
        return self.symbols.function_of((tensor.name, suffix), f"{tensor.name}_{suffix}")

    def _layers(self) -> RegionKernels:
        """Return the kernels of the layers, from the accelerator if it assembles whole regions."""
        emitter = next(iter(self._emitters.values()))
        if isinstance(emitter, RegionEmitter):
            require_accepted(self.region.layers, self.homes, self.soc)
            return emitter.region(self.region, self.options, self._symbol)
        layers, planned = self._planned()
        plans = zip(layers, planned.layers, strict=True)
        return RegionKernels(tuple(self._layer(layer, plan) for layer, plan in plans), planned)

    def _planned(self) -> tuple[tuple[Layer, ...], RegionPlan]:
        """Return the layers in the order that takes fewest predicted cycles, and their plan."""
        planned = plan_region(
            self.region, self.homes, self.soc, self.options, self.held, self.known
        )
        other = with_long_before_sums(self.region, self.homes)
        if other is not self.region:
            again = plan_region(other, self.homes, self.soc, self.options, self.held, self.known)
            if again.cycles - again.beside < planned.cycles - planned.beside:
                return other.layers, again
        return self.region.layers, planned

    def _layer(self, layer: Layer, plan: LayerPlan) -> Kernel:
        emitter = self._emitters[layer.name]
        assert not isinstance(emitter, RegionEmitter)  # its regions have one accelerator
        kernel = emitter.layer(layer, plan, self.options, self._symbol(layer.name))
        dma = self.soc.dma
        if kernel.program is not None and dma is not None:
            with named(kernel.accelerator, self.soc.name):
                check_alignment(kernel.program, dma.l1_align, dma.l2_align)
        return kernel

    def _symbol(self, name: str) -> str:
        """Return the C name of a layer."""
        return self.symbols.function_of((self.region.name, name), name)

    def _buffers(
        self, entering: list[Tensor], renamed: dict[str, str], resident: set[str]
    ) -> tuple[Buffer, ...]:
        """Buffers for tensors in the accelerator's layout that are internal and not resident."""
        outside = {tensor.name for tensor in (*self.region.inputs, *self.region.outputs)}
        tensors: list[Tensor] = [
            *entering,
            *self.region.mapped,
            *(layer.output for layer in self.region.layers),
        ]
        return tuple(
            Buffer(renamed.get(tensor.name, tensor.name), self.layout.stored_bytes(tensor))
            for tensor in tensors
            if tensor.name in renamed or tensor.name not in outside | resident
        )


def _rename(kernel: Kernel, renamed: dict[str, str]) -> Kernel:
    """Return the kernel with border tensors replaced by their accelerator-layout copies."""
    return replace(
        kernel,
        inputs=tuple(renamed.get(name, name) for name in kernel.inputs),
        outputs=tuple(renamed.get(name, name) for name in kernel.outputs),
    )
