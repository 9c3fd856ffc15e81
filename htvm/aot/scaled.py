"""Kernels that end in TFLite's requantization to int8, which sums need not leave registers for.

Such a kernel stores ``int8(clip(htvm_scale(sum, multiplier[k], shift[k]) + zero, -128, 127))``, and
its sums begin with a bias of the channel.  Schedules ask whether a function's output is of this
form; calls are made of the store over flat buffers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvm import tirx
from tvm.ir import Call, StringImm, TensorLoad
from tvm.tirx.stmt import BufferStore

if TYPE_CHECKING:
    from tvm import s_tir

_LIMITS = (-128, 127)


@dataclass(frozen=True, eq=False)
class Scaled:
    """The parts of such a store.

    Attributes:
        total: the sum, or the sum of it and a bias.
        multiplier, shift: loads of the channel's.
        zero: what is added to the product.
    """

    total: Any
    multiplier: TensorLoad
    shift: TensorLoad
    zero: int

    @property
    def alike(self) -> bool:
        """Whether all channels have one multiplier and one shift."""
        factors = (self.multiplier, self.shift)
        return all(isinstance(index, tirx.IntImm) for load in factors for index in load.indices)


def ends_scaled(sch: s_tir.Schedule, out: Any) -> Scaled | None:
    """Return how a block stores its output, if in this form and each channel has its own bias."""
    found = scaled_of(sch.get(out).body)
    if found is None or not isinstance(found.total, tirx.Add):
        return None
    total, bias = found.total.a, found.total.b
    if not isinstance(total, TensorLoad) or not isinstance(bias, TensorLoad):
        return None
    (channel, *others) = [i for i in bias.indices if not isinstance(i, tirx.IntImm)] or [None]
    own = [load.indices[0] for load in (found.multiplier, found.shift)]
    if channel is None or others:
        return None
    return found if found.alike or all(index.same_as(channel) for index in own) else None


def scaled_of(store: Any) -> Scaled | None:
    """Return the parts of a store; ``None`` for others."""
    value = store.value if isinstance(store, BufferStore) else None
    if not isinstance(value, tirx.Cast) or str(value.ty.dtype) != "int8":
        return None
    moved = _unlimited(value.value)
    if not isinstance(moved, (tirx.Add, tirx.Sub)) or not isinstance(moved.b, tirx.IntImm):
        return None
    zero = int(moved.b) if isinstance(moved, tirx.Add) else -int(moved.b)
    args = _arguments(moved.a, "htvm_scale")
    if len(args) != 3:
        return None
    total, *factors = args
    multiplier, shift = (each.value if isinstance(each, tirx.Cast) else each for each in factors)
    if not all(isinstance(load, TensorLoad) for load in (multiplier, shift)):
        return None
    if (str(multiplier.ty.dtype), str(shift.ty.dtype)) != ("int32", "uint8"):
        return None
    return Scaled(total, multiplier, shift, zero)


def _unlimited(value: Any) -> Any:
    """Return what is limited to int8, written as a call or not; ``None`` for others."""
    called = _arguments(value, "htvm_clip")
    if called:
        number, limits = called[0], called[1:]
    elif isinstance(value, tirx.Max) and isinstance(value.a, tirx.Min):
        number, limits = value.a.a, [value.b, value.a.b]
    else:
        return None
    known = tuple(int(limit) for limit in limits if isinstance(limit, tirx.IntImm))
    return number if known == _LIMITS else None


def _arguments(value: Any, function: str) -> list[Any]:
    """Return the arguments of a call of this function; nothing for others."""
    if not isinstance(value, Call) or not value.args or not isinstance(value.args[0], StringImm):
        return []
    return list(value.args[1:]) if str(value.args[0].value) == function else []
