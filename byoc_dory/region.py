"""Regions, the input of code generation, and their code, its output."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from byoc_dory.definition import Definition
from byoc_dory.errors import ModelError
from byoc_dory.layers import Array, Layer, Reshaping, Tensor
from byoc_dory.plan import LayerPlan, RegionPlan
from byoc_dory.tileloop.program import TileProgram
from byoc_dory.tiling.problem import Solution


def are_same_rows(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether tensors of these shapes, stored row by row, have the same bytes."""
    return prod(a) == prod(b) and (a[0] == b[0] or 1 in (len(a), len(b)))


@dataclass(frozen=True, eq=False)
class BorderMap:
    """A function of single bytes, applied while an input enters the region.

    It replaces the requantization between the source model's interface and the accelerator's scheme
    by a table look-up, which saves a pass over the tensor.

    Attributes:
        tensor: name of the result, which the layers read.
        source: name of the region's input that it is computed from; it has the same shape.
        table: uint8 [256]: the result for each source byte, both in two's complement.
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
        name: unique name within the model.
        layers: layers in execution order, connected by the names of tensors.
        inputs: tensors that the region reads, in their layout outside.
        outputs: tensors that the region produces, in their layout outside.
        maps: inputs that the layers read through a function of bytes.
        homes: name of the accelerator of each layer, in the layers' order; empty if all run on the
            one given to code generation.

    Raises:
        ModelError: a tensor is read before it is written, written twice, or has two shapes; or an
            output is never written, listed twice, or an input.  Layers of matrices may use
            different axes for a tensor's rows (``(C, B, M)`` is ``(C, B * M, 1)``), or treat it as
            a vector: the bytes are the same.
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
                    f"the map of '{entry.tensor}' reads '{entry.source}', which is not an input",
                    where=f"region '{self.name}'",
                )
        return tuple(replace(sources[entry.source], name=entry.tensor) for entry in self.maps)

    def _define(self, shapes: dict[str, tuple[int, ...]], tensor: Tensor) -> None:
        if tensor.name in shapes:
            raise ModelError(
                f"tensor '{tensor.name}' is written twice", where=f"region '{self.name}'"
            )
        shapes[tensor.name] = tensor.shape
        shapes[tensor.stored.name] = tensor.stored.shape

    def _read(self, shapes: dict[str, tuple[int, ...]], tensor: Tensor, place: str) -> None:
        where = f"region '{self.name}', {place}"
        tensor = tensor if tensor.name in shapes else tensor.stored
        if tensor.name not in shapes:
            raise ModelError(f"tensor '{tensor.name}' is read but never written", where=where)
        written = shapes[tensor.name]
        of_matrices = any(
            layer.of_matrices or isinstance(layer, Reshaping) for layer in self.layers
        )
        if written != tensor.shape and not (of_matrices and are_same_rows(written, tensor.shape)):
            raise ModelError(
                f"tensor '{tensor.name}' is {written} where written and {tensor.shape} where read",
                where=where,
                hint="end the region at the reshape",
            )


@dataclass(frozen=True, eq=False)
class Constant:
    """Read-only data of a kernel, to be defined as a C array with this name.

    Attributes:
        name: C symbol of the array.
        data: the values, one-dimensional: uint8, int8 or int32.
        comment: description of its contents, for the generated source.
        align: required alignment of its first byte, in bytes.
        memory: name of the memory that must hold it; empty for L2.
        file: name of a file beside the C that has the same bytes in exports; empty for none.
        elsewhere: whether another program, which is linked with this one, defines it.
    """

    name: str
    data: Array
    comment: str
    align: int = 16
    memory: str = ""
    file: str = ""
    elsewhere: bool = False


@dataclass(frozen=True)
class Share:
    """What a layer takes of a kernel that computes several as one program, by an estimate.

    Attributes:
        cycles: its cycles.
        causes: what binds its operators, with cycles that add up to these.
        memory_cycles: memories, with the cycles that its accesses take, beside each other and the
            computation.
    """

    cycles: int
    causes: tuple[tuple[str, int], ...]
    memory_cycles: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Access:
    """Estimated accesses of a memory.

    Attributes:
        memory: its name.
        cycles: cycles that they take, beside the computation and those of other memories.
        read, written: bytes.
    """

    memory: str
    cycles: int
    read: int
    written: int


@dataclass(frozen=True, eq=False)
class Kernel:
    """One generated C function ``int32_t symbol(const int8_t *in0, ..., int8_t *out)``.

    It returns 0, or the first nonzero code of the driver.  Tensors that stay in L1 are not
    arguments.

    Attributes:
        symbol: C name of the function.
        layer_name: the layer it belongs to (for a prologue or epilogue: the tensor).
        kind: ``layer``, ``start`` of a layer for which a later kernel waits, the conversion of
            layouts at a border of the region, or ``cpu`` for an operator of the host that reads the
            accelerator's layout.
        source: the complete C definition; ``constants`` are declared before it (in the model's
            header of constants).
        prototype: the C declaration.
        inputs, outputs: names of the tensors or buffers passed, in argument order.
        constants: the data that its source refers to.
        definition: the source before it is decided which layers share it; ``None`` if it cannot be
            shared.
        together: the layers of a kernel that computes several as one program; it then has no
            ``layer``, and is named after the last of them.
        shares: what each of these takes of it.
        accesses: what it moves by itself, where that is estimated.
        ready: C function ``int32_t ready(void)`` of its source, which a run calls before its first
            step: 0 if what the kernels refer to is there, or a code; empty for none.
        over: (buffer, tensor): the buffer may have bytes of the tensor, all of which is read, or
            moved with ``memmove``, before the buffer is written.
        layer, plan, program: the layer, its plan and its tile program; ``None`` for conversions.
        accelerator: name of the accelerator that runs it, or ``cpu`` for conversions.
        predicted_cycles: cycles of host and accelerator predicted by the cost model.
    """

    symbol: str
    layer_name: str
    kind: Literal["layer", "start", "prologue", "epilogue", "cpu"]
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
    definition: Definition | None = None
    together: tuple[Layer, ...] = ()
    shares: tuple[Share, ...] = ()
    accesses: tuple[Access, ...] = ()
    over: tuple[tuple[str, str], ...] = ()
    ready: str = ""

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers that it computes; none of a conversion."""
        return self.together or (() if self.layer is None else (self.layer,))

    @property
    def solution(self) -> Solution | None:
        """The tile, with the solver's information about it; ``None`` for conversions."""
        return None if self.plan is None else self.plan.solution


@dataclass(frozen=True)
class Buffer:
    """A buffer in L2 for use inside the region, to be planned by the caller (16-byte aligned)."""

    name: str
    bytes: int


@dataclass(frozen=True, eq=False)
class RegionKernels:
    """The functions of a region's layers, in order, and the plan that they follow.

    Attributes:
        kernels: the functions.
        plan: the plan.
        buffers: what they pass besides the region's tensors.
    """

    kernels: tuple[Kernel, ...]
    plan: RegionPlan
    buffers: tuple[Buffer, ...] = ()


@dataclass(frozen=True, eq=False)
class RegionCode:
    """The code of a region: its kernels, to be called in order.

    Attributes:
        name: name of the region.
        kernels: kernels in execution order.
        buffers: buffers of internal tensors in the accelerator's layout, including the
            accelerator-layout copies of the region's inputs and outputs.
        inputs, outputs: tensors of the region's interface, in their layouts outside.
        headers: C headers that the sources need.
        plan: offsets in L1, the tensors that stay there, and the predicted cycles.
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
        """Bytes of L1 in use while a layer's kernel runs, by the kernel's symbol."""
        layers = [kernel.symbol for kernel in self.kernels if kernel.kind == "layer"]
        used = () if self.plan is None else self.plan.l1_used
        return dict(zip(layers, used, strict=False))
