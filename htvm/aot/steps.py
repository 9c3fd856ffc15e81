"""The elements of programs: calls between tensors, and the C calls made from them.

A :class:`ModelCall` or :class:`Alias` is an operation of the model on its tensors; a :class:`Step`
is one C call with its operands in their places (:func:`htvm.aot.program.assemble` makes steps from
calls).  Nothing here depends on the compiler IR.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from byoc_dory.emit.text import c_identifier, comment
from byoc_dory.errors import ModelError

if TYPE_CHECKING:
    from byoc_dory.definition import Definition
    from byoc_dory.region import Constant
    from htvm.aot.overlay import Overlay
    from htvm.aot.row_calls import RowCalls

OperandKind: TypeAlias = Literal["input", "output", "buffer", "constant"]
StepKind: TypeAlias = Literal["cpu", "layer", "prologue", "epilogue", "copy"]


@dataclass(frozen=True)
class Provenance:
    """The provenance of a program, stated in the head of each of its files.

    Attributes:
        version: of this library.
        source: source of the model: the name of a file, or of the function that made it.
        sha256: hash of the model, in hexadecimal (`htvm.model.Model.sha256`).
    """

    version: str
    source: str
    sha256: str


@dataclass(frozen=True, eq=False)
class CpuKernel:
    """A C function ``void symbol(inputs and constants..., outputs..., workspaces...)``.

    Attributes:
        symbol: C name, starting with the model's.
        source: complete definition; needs ``<stdint.h>`` and ``headers``.
        prototype: declaration without the semicolon.
        params: (name, dtype, shape) of each pointer parameter, workspaces last.
        n_outputs: number of outputs, not counting workspaces.
        workspaces: bytes of each trailing workspace parameter.
        layers: names of the layers it computes (a padding may be a kernel of its own).
        operators: names of the operators it computes, e.g. ``("pad",)`` or ``("conv2d", "add",
            ...)``.
        schedule: description of its loops, in a few words.
        headers: headers of the SoC's runtime, which kernels for several cores need.
        definition: its source before it is known which layers share it.
        plain: whether its loops are TVM's, because no schedule is for its operators.
        overlays: inputs over which its output may be written.
        apart: a simpler definition for calls whose output has bytes of its own, if there is one.
        constants: arrays that the source names, besides those that calls pass.
        rows: by which calls it computes its operators row by row; ``None``: as a whole.
    """

    symbol: str
    source: str
    prototype: str
    params: tuple[tuple[str, str, tuple[int, ...]], ...]
    n_outputs: int
    workspaces: tuple[int, ...]
    layers: tuple[str, ...]
    operators: tuple[str, ...]
    schedule: str
    headers: tuple[str, ...] = ()
    definition: Definition | None = None
    plain: bool = False
    overlays: tuple[Overlay, ...] = ()
    apart: Definition | None = None
    constants: tuple[Constant, ...] = ()
    rows: RowCalls | None = None

    def of_layers(self, symbol: str, layers: tuple[str, ...]) -> CpuKernel:
        """The same code as the kernel of other layers, under another name."""
        if self.definition is None or (symbol, layers) == (self.symbol, self.layers):
            return self
        named = tuple(map(comment, layers))
        definition = replace(self.definition, layers=named)
        return replace(
            self,
            symbol=symbol,
            layers=layers,
            source=definition.text(symbol),
            prototype=definition.prototype(symbol),
            definition=definition,
            apart=None if self.apart is None else replace(self.apart, layers=named),
        )

    @property
    def without_overlays(self) -> CpuKernel:
        """The kernel in its simpler form, for an output that shares no bytes with an input."""
        if self.apart is None or self.definition is None:
            return self
        text, prototype = self.apart.text(self.symbol), self.apart.prototype(self.symbol)
        return replace(self, source=text, prototype=prototype, definition=self.apart, apart=None)


@dataclass(frozen=True)
class Value:
    """A tensor between two calls: its name, shape and numpy dtype name."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * int(np.dtype(self.dtype).itemsize)


@dataclass(frozen=True)
class ModelCall:
    """A call of a CPU kernel or a region by the model.

    Attributes:
        target: symbol of a CPU kernel, or name of a region.
        inputs: names of tensors, model inputs or constants, in argument order.
        outputs: the tensors that it defines, in argument order.
        macs: multiply-accumulates, for reports (regions have their own).
    """

    target: str
    inputs: tuple[str, ...]
    outputs: tuple[Value, ...]
    macs: int = 0


@dataclass(frozen=True)
class Alias:
    """``output`` is ``source`` with another name and shape (a reshape): no code, same bytes."""

    source: str
    output: Value


@dataclass(frozen=True)
class Streamed:
    """How a program takes its only input row by row.

    Attributes:
        rows: number of rows.
        state: the buffer in which the first step keeps from row to row where it is: int32, the
            number of the next row first.
    """

    rows: int
    state: str


@dataclass(frozen=True)
class StepOperand:
    """One argument of a step.

    Attributes:
        kind: a pointer of the caller (``input``, ``output``), a place in the arena (``buffer``) or
            a C array (``constant``).
        name: C identifier of the parameter, the buffer in the plan, or the array.
    """

    kind: OperandKind
    name: str


@dataclass(frozen=True)
class Step:
    """One C call of the entry function.

    Attributes:
        symbol: symbol of the kernel, unique unless a kernel is called twice; empty for kind
            ``copy`` (first operand to the second, ``bytes``).
        args: operands in argument order.
        returns_code: whether it returns ``int32_t``, 0 for success; otherwise ``void``.
        layers: names of its layers, at least one; several if TVM fused them.
        accelerator: name of the accelerator, or "cpu".
        kind: role of the step for the layer.
        predicted_cycles: cycles predicted by the cost model; 0 without an estimate (CPU kernels).
        macs: multiply-accumulates.
        comment: shapes, for the generated source.
        bytes: bytes of a copy, else 0.
        function: C function that is called: the kernel's own, or one that it shares with others.
        values: what a shared function is passed after the tensors: (parameter, value in C).
        part: which part of the layer it is, behind the name; empty for all of it.
        ready: C function that is called before the first step (`Kernel.ready`); empty for none.
    """

    symbol: str
    args: tuple[StepOperand, ...]
    returns_code: bool
    layers: tuple[str, ...]
    accelerator: str
    kind: StepKind
    predicted_cycles: int
    macs: int
    comment: str
    bytes: int = 0
    function: str = ""
    values: tuple[tuple[str, str], ...] = ()
    part: str = ""
    ready: str = ""

    @property
    def layer(self) -> str:
        """The names of its layers, joined by "+", and which part of it."""
        return "+".join(self.layers) + self.part


# Names that the entry function itself uses, besides the keywords of C.
_RESERVED = frozenset(
    "int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uintptr_t size_t NULL STEP "
    "arena base code copy misaligned".split()
)


def local_name(text: str) -> str:
    """Return ``text`` as the name of a local of the entry function."""
    name = c_identifier(text)
    return f"t_{name}" if name in _RESERVED else name


def parameter_types(prototype: str, values: int = 0) -> tuple[str, ...]:
    """Return the C type of every parameter of a declaration, e.g. ``("const int8_t *",)``.

    Args:
        prototype: the declaration.
        values: parameters at its end that are left out.
    """
    inner = prototype[prototype.index("(") + 1 : prototype.rindex(")")].strip()
    if inner in ("", "void"):
        return ()
    types = []
    parameters = inner.split(",")
    for parameter in parameters[: len(parameters) - values]:
        text = re.sub(r"\b(restrict|__restrict__|__restrict)\b", " ", parameter)
        match = re.fullmatch(r"\s*((?:const\s+)?\w+)\s*\*\s*\w*\s*", text)
        if match is None:
            raise ModelError(
                f"parameter '{parameter.strip()}' is not a plain pointer",
                where=f"prototype '{prototype.strip()}'",
            )
        types.append(" ".join(match.group(1).split()) + " *")
    return tuple(types)
