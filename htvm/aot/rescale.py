"""Stores that requantize a sum to int8, each channel by its factor: TFLite's arithmetic.

Schedules ask whether a kernel's output is of this form, and loops over flat buffers that are become
calls: of functions that requantize sums in memory (Helium, RISC-V's vectors), or of those that
compute the sums and leave them in registers (cores with the DSP extension).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import StringImm, TensorLoad
from tvm.tirx.stmt import BufferStore

from htvm.aot.fixed_point import RESCALE, SCALE
from htvm.aot.loops import nest_of, step_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tvm import s_tir
    from tvm.tirx import PrimFunc

_CLIP = "htvm_clip"
LEAST = -128
_SHIFTS = {RESCALE: "int8", SCALE: "uint8"}


@dataclass(frozen=True, eq=False)
class Rescaling:
    """``out = clip(function(total + bias, multiplier, shift) + zero_point, low, high)``.

    Attributes:
        out: the store of a result.
        total, bias, multiplier, shift: loads; no ``bias`` is 0.
        zero_point, low, high: numbers.
    """

    out: BufferStore
    total: TensorLoad
    bias: TensorLoad | None
    multiplier: TensorLoad
    shift: TensorLoad
    zero_point: int
    low: int
    high: int

    @classmethod
    def of(cls, store: Any, function: str = RESCALE) -> Rescaling | None:
        """Read a store; ``None`` if it computes something else.

        Args:
            store: any statement.
            function: `RESCALE` or `SCALE`.
        """
        if not isinstance(store, BufferStore) or not isinstance(store.value, tirx.Cast):
            return None
        clipped = _limited(store.value.value)
        if clipped is None or str(store.value.ty.dtype) != "int8":
            return None
        value, *limits = clipped
        zero_point = 0
        if isinstance(value, (tirx.Add, tirx.Sub)) and isinstance(value.b, tirx.IntImm):
            zero_point = int(value.b) if isinstance(value, tirx.Add) else -int(value.b)
            value = value.a
        scaled = _called(value, function)
        if scaled is None or not all(isinstance(limit, tirx.IntImm) for limit in limits):
            return None
        total, *factors = scaled
        multiplier, shift = (
            each.value if isinstance(each, tirx.Cast) else each for each in factors
        )
        bias = None
        if isinstance(total, tirx.Add):
            total, bias = total.a, total.b
        loads = [total, multiplier, shift, *([] if bias is None else [bias])]
        if not all(isinstance(load, TensorLoad) for load in loads):
            return None
        if str(shift.ty.dtype) != _SHIFTS[function]:
            return None
        return cls(store, total, bias, multiplier, shift, zero_point, *map(int, limits))

    @property
    def is_unlimited(self) -> bool:
        """Whether nothing but int8 limits the result."""
        return (self.low, self.high) == (-128, 127)

    @property
    def alike(self) -> bool:
        """Whether all channels have one multiplier and one shift."""
        factors = (self.multiplier, self.shift)
        return all(isinstance(index, tirx.IntImm) for load in factors for index in load.indices)

    def steps(self, variable: Any) -> tuple[int | None, ...]:
        """Return how far a loop's step moves out, sum, multiplier, shift and bias."""
        places = (self.out, self.total, self.multiplier, self.shift, self.bias)
        return tuple(
            None if each is None else step_of(each.indices[0], variable) for each in places
        )


def ends_scaled(sch: s_tir.Schedule, out: Any) -> Rescaling | None:
    """Return how a block stores its output, if by `SCALE`, and each channel has its own bias."""
    found = Rescaling.of(sch.get(out).body, SCALE)
    if found is None or found.bias is None or not found.is_unlimited:
        return None
    (channel, *others) = [i for i in found.bias.indices if not isinstance(i, tirx.IntImm)] or [None]
    own = [load.indices[0] for load in (found.multiplier, found.shift)]
    if channel is None or others:
        return None
    return found if found.alike or all(index.same_as(channel) for index in own) else None


def rescaled_loops(loop: Any) -> tuple[Sequence[Any], Rescaling] | None:
    """Return the loops and the requantization inside of them; ``None`` if that is another."""
    loops, store = nest_of(loop)
    found = Rescaling.of(store)
    return None if found is None else (loops, found)


def call_least(func: PrimFunc) -> PrimFunc:
    """Replace requantizations whose zero point is the least result, -128, by calls.

    Sums that are not positive become -128 there, as behind a ReLU, whatever their factors.
    """

    def visit(cast: Any) -> Any:
        clipped = _limited(cast.value) if str(cast.ty.dtype) == "int8" else None
        if clipped is None or not all(isinstance(each, tirx.IntImm) for each in clipped[1:]):
            return cast
        moved, low, high = clipped
        if not isinstance(moved, (tirx.Add, tirx.Sub)):
            return cast
        scaled, zero = _called(moved.a, SCALE), LEAST if isinstance(moved, tirx.Add) else -LEAST
        if scaled is None or int(low) != LEAST or not _is_number(moved.b, zero):
            return cast
        return tirx.Cast("int8", tirx.call_extern("int32", f"{SCALE}_least", *scaled, high))

    return func.with_body(tvm_ffi.structural_map(func.body, (tirx.Cast, visit)))


def _limited(value: Any) -> Sequence[Any] | None:
    """Return what is limited, and both limits; ``None`` if nothing is."""
    if isinstance(value, tirx.Max) and isinstance(value.a, tirx.Min):
        return value.a.a, value.b, value.a.b
    return _called(value, _CLIP)


def _is_number(value: Any, number: int) -> bool:
    return isinstance(value, tirx.IntImm) and int(value) == number


def _called(value: Any, name: str) -> Sequence[Any] | None:
    """Return the arguments of a call of a function; ``None`` if it is none."""
    if not isinstance(value, tvm.ir.Call) or not value.args:
        return None
    called = value.args[0]
    if not isinstance(called, StringImm) or str(called.value) != name:
        return None
    return list(value.args[1:])
