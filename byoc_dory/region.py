"""Regions (what goes into code generation) and their code (what comes out of it)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Literal

from byoc_dory.errors import ModelError
from byoc_dory.layers import Array, Layer, Tensor

if TYPE_CHECKING:
    from byoc_dory.plan import LayerPlan, RegionPlan
    from byoc_dory.tileloop.program import TileProgram
    from byoc_dory.tiling.problem import Solution

__all__ = ["BorderMap", "Buffer", "Constant", "Kernel", "Region", "RegionCode"]


def _are_same_rows(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether tensors of these shapes, row by row in memory, are the same bytes."""
    return prod(a) == prod(b) and (a[0] == b[0] or 1 in (len(a), len(b)))


@dataclass(frozen=True, eq=False)
class BorderMap:
    """A function of single bytes, applied while an input enters the region.

    It is how the requantization between the source model's interface and the accelerator's scheme
    costs one table look-up instead of a pass over the tensor.

    Attributes:
        tensor: name of the result, as the layers read it.
        source: name of the region's input it is made from; same shape.
        table: 256 entries uint8: the result for each source byte, both in two's complement.
    """

    tensor: str
    source: str
    table: Array

    def __post_init__(self) -> None:
        if self.table.shape != (256,) or self.table.dtype != "uint8":
            raise ModelError(
                f"the table is {self.table.dtype}{list(self.table.shape)}, not uint8[256]",
                where=f"border map of '{self.tensor}'",
            )


@dataclass(frozen=True, eq=False)
class Region:
    """Layers that run one after another on the accelerators of one family.

    Attributes:
        name: unique within the model.
        layers: in execution order; tensors connect them by name.
        inputs: what the region reads, with the layout the outside has it in.
        outputs: what the region leaves behind, with the layout the outside wants.
        maps: inputs that the layers read through a function of bytes.
        homes: name of the accelerator of each layer, in the layers' order; empty where all run on
            the one that code generation is told.

    Raises:
        ModelError: where a tensor is read before it is written, written twice, has two shapes,
            or an output is never written, named twice or an input.  Where there are layers of
            matrices, a tensor's rows may be counted along other axes by one layer than by another
            (``(C, B, M)`` is ``(C, B * M, 1)``), or taken for a vector: the bytes are the same.
    """

    name: str
    layers: tuple[Layer, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    maps: tuple[BorderMap, ...] = ()
    homes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shapes: dict[str, tuple[int, ...]] = {}
        for tensor in self.inputs:
            self._define(shapes, tensor)
        for mapped in self.mapped:
            self._define(shapes, mapped)
        for layer in self.layers:
            for tensor in layer.inputs:
                self._read(shapes, tensor, f"layer '{layer.name}'")
            self._define(shapes, layer.output)
        for tensor in self.outputs:
            self._read(shapes, tensor, "outputs")
        if self.homes and len(self.homes) != len(self.layers):
            raise ModelError(
                f"{len(self.layers)} layers have {len(self.homes)} homes",
                where=f"region '{self.name}'",
            )
        if not self.layers or not self.outputs:
            raise ModelError("a region without layers or outputs", where=f"region '{self.name}'")
        outputs = {tensor.name for tensor in self.outputs}
        if {tensor.name for tensor in self.inputs} & outputs:
            raise ModelError("an output is also an input", where=f"region '{self.name}'")
        if len(outputs) != len(self.outputs):
            raise ModelError("a tensor is an output twice", where=f"region '{self.name}'")

    @property
    def mapped(self) -> tuple[Tensor, ...]:
        """The results of the maps, in the layout of their sources."""
        sources = {tensor.name: tensor for tensor in self.inputs}
        for entry in self.maps:
            if entry.source not in sources:
                raise ModelError(
                    f"the map of '{entry.tensor}' reads '{entry.source}', which is no input",
                    where=f"region '{self.name}'",
                )
        return tuple(replace(sources[entry.source], name=entry.tensor) for entry in self.maps)

    def _define(self, shapes: dict[str, tuple[int, ...]], tensor: Tensor) -> None:
        if tensor.name in shapes:
            raise ModelError(
                f"tensor '{tensor.name}' is written twice", where=f"region '{self.name}'"
            )
        shapes[tensor.name] = tensor.shape

    def _read(self, shapes: dict[str, tuple[int, ...]], tensor: Tensor, place: str) -> None:
        where = f"region '{self.name}', {place}"
        if tensor.name not in shapes:
            raise ModelError(f"tensor '{tensor.name}' is read but never written", where=where)
        known = shapes[tensor.name]
        of_matrices = any(layer.of_matrices for layer in self.layers)
        if known != tensor.shape and not (of_matrices and _are_same_rows(known, tensor.shape)):
            raise ModelError(
                f"tensor '{tensor.name}' is {known} where written and {tensor.shape} where read",
                where=where,
                hint="end the region at the reshape",
            )


@dataclass(frozen=True, eq=False)
class Constant:
    """Read-only data of a kernel, to be defined as a C array of that name.

    Attributes:
        name: C symbol.
        data: uint8, int8 or int32, one-dimensional.
        comment: what it holds, for the generated source.
        align: required alignment of its first byte in L2, in bytes.
    """

    name: str
    data: Array
    comment: str
    align: int = 16


@dataclass(frozen=True, eq=False)
class Kernel:
    """One generated C function ``int32_t symbol(const int8_t *in0, ..., int8_t *out)``.

    It returns 0, or the first nonzero code of the driver.  Tensors that stay in L1 are no
    arguments.

    Attributes:
        symbol: C name of the function.
        layer_name: the layer it belongs to (for a prologue or epilogue: the tensor).
        kind: ``layer``, or the conversion of layouts at a border of the region.
        source: the complete C definition; ``constants`` are declared before it (by the model's
            header of constants).
        prototype: the C declaration.
        inputs, outputs: names of the tensors or buffers passed, in argument order.
        constants: the data its source refers to.
        layer, plan, program: what it was made from; ``None`` for conversions.
        accelerator: name of what runs it: an accelerator, or ``cpu`` for conversions.
        predicted_cycles: host and accelerator cycles by the cost model.
    """

    symbol: str
    layer_name: str
    kind: Literal["layer", "prologue", "epilogue"]
    source: str
    prototype: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: tuple[Constant, ...]
    layer: Layer | None
    plan: LayerPlan | None
    program: TileProgram | None
    predicted_cycles: int
    accelerator: str

    @property
    def solution(self) -> Solution | None:
        """The tile and what the solver says about it; ``None`` for conversions."""
        return None if self.plan is None else self.plan.solution


@dataclass(frozen=True)
class Buffer:
    """Bytes in L2 that live inside the region, to be planned by the caller (16-byte aligned)."""

    name: str
    bytes: int


@dataclass(frozen=True, eq=False)
class RegionCode:
    """The code of a region: call the kernels in order.

    Attributes:
        name: of the region.
        kernels: in execution order.
        buffers: internal tensors in the accelerator's layout, including the accelerator-layout
            copies of the region's inputs and outputs.
        inputs, outputs: of the region, with the layouts of the outside.
        headers: C headers the sources need.
        plan: where everything lies in L1, what stays there, and what that is worth.
    """

    name: str
    kernels: tuple[Kernel, ...]
    buffers: tuple[Buffer, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    headers: tuple[str, ...]
    plan: RegionPlan | None = None

    @property
    def l1_used(self) -> dict[str, int]:
        """Bytes in L1 while a layer's kernel runs, by the kernel's symbol."""
        layers = [kernel.symbol for kernel in self.kernels if kernel.kind == "layer"]
        used = () if self.plan is None else self.plan.l1_used
        return dict(zip(layers, used, strict=False))
