"""Loops that requantize sums to int8, as one call: TFLite's arithmetic, channel by channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tvm
from tvm import tirx
from tvm.ir import StringImm, TensorLoad
from tvm.tirx.stmt import BufferStore

from htvm.aot.fixed_point import RESCALE
from htvm.aot.loops import nest_of, step_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_CLIP = "htvm_clip"


@dataclass(frozen=True, eq=False)
class Rescaling:
    """``out = clip(htvm_rescale(sum + bias, multiplier, left) + zero_point, low, high)``.

    Attributes:
        out: the store of a result.
        total, bias, multiplier, left: loads; no ``bias`` is 0.
        zero_point, low, high: numbers.
    """

    out: BufferStore
    total: TensorLoad
    bias: TensorLoad | None
    multiplier: TensorLoad
    left: TensorLoad
    zero_point: int
    low: int
    high: int

    @classmethod
    def of(cls, store: Any) -> Rescaling | None:
        """Read a store; ``None`` if it computes something else."""
        if not isinstance(store, BufferStore) or not isinstance(store.value, tirx.Cast):
            return None
        clipped = _limited(store.value.value)
        if clipped is None or str(store.value.ty.dtype) != "int8":
            return None
        value, low, high = clipped
        zero_point = 0
        if isinstance(value, (tirx.Add, tirx.Sub)) and isinstance(value.b, tirx.IntImm):
            zero_point = int(value.b) if isinstance(value, tirx.Add) else -int(value.b)
            value = value.a
        scaled = _called(value, RESCALE)
        limits = (low, high)
        if scaled is None or not all(isinstance(limit, tirx.IntImm) for limit in limits):
            return None
        total, multiplier, left = scaled
        bias = None
        if isinstance(total, tirx.Add):
            total, bias = total.a, total.b
        left = left.value if isinstance(left, tirx.Cast) else left
        loads = [total, multiplier, left, *([] if bias is None else [bias])]
        if not all(isinstance(load, TensorLoad) for load in loads):
            return None
        if str(left.ty.dtype) != "int8":
            return None
        return cls(store, total, bias, multiplier, left, zero_point, int(low), int(high))

    def steps(self, variable: Any) -> tuple[int | None, ...]:
        """Return how far a loop's step moves out, sum, multiplier, left shift and bias."""
        places = (self.out, self.total, self.multiplier, self.left, self.bias)
        return tuple(
            None if each is None else step_of(each.indices[0], variable) for each in places
        )


def rescaled_loops(loop: Any) -> tuple[Sequence[Any], Rescaling] | None:
    """Return the loops and the requantization inside of them; ``None`` if that is another."""
    loops, store = nest_of(loop)
    found = Rescaling.of(store)
    return None if found is None else (loops, found)


def _limited(value: Any) -> Sequence[Any] | None:
    """Return what is limited, and both limits; ``None`` if nothing is."""
    if isinstance(value, tirx.Max) and isinstance(value.a, tirx.Min):
        return value.a.a, value.b, value.a.b
    return _called(value, _CLIP)


def _called(value: Any, name: str) -> Sequence[Any] | None:
    """Return the arguments of a call of a function; ``None`` if it is none."""
    if not isinstance(value, tvm.ir.Call) or not value.args:
        return None
    called = value.args[0]
    if not isinstance(called, StringImm) or str(called.value) != name:
        return None
    return list(value.args[1:])
