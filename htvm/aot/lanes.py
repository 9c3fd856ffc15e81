"""Expressions as calls of intrinsics: sums, limits to int8, several elements at once.

A schedule for cores with vectors marks loops over neighbours (`LANES`).  After lowering to flat
buffers each becomes one expression of calls, which are vector instructions on such a core and plain
C elsewhere: over four elements of ``runtime_c/simd/htvm_lanes.h``, over up to 16 of
``htvm_many.h``, whose calls end with how many.  A loop whose operations have no such form stays as
it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tvm
import tvm_ffi
from tvm import sym, tirx
from tvm.ir import StringImm, TensorLoad
from tvm.tirx.stmt import BufferStore

from htvm.aot.fixed_point import FLOAT_PRODUCT, RESCALE
from htvm.aot.loops import call, substituted, without_note

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

LANES = "htvm_lanes"
"""Annotation of a loop over neighbouring elements."""

FOUR = 4
"""Elements of a vector that has a fixed length: no fewer are computed at once."""

_BINARY = {
    tirx.Add: "add",
    tirx.Sub: "sub",
    tirx.Mul: "mul",
    tirx.Min: "min",
    tirx.Max: "max",
    tirx.RShift: "right",
    tirx.LShift: "left",
}
_CALLED = {RESCALE: "rescale", "htvm_clip": "clip", FLOAT_PRODUCT: "float_product"}
_WITH_NUMBERS = {*_BINARY.values(), "rescale", "clip"}
"""Operations that also have a form with the same further operands for all lanes."""

_FOUR_WITH_NUMBERS = {"add", "sub", "mul", "right", "rescale"}
"""Those of them with four lanes: the others have no instruction with a scalar register."""

_LOADS = {"int32": "load32", "int8": "load8", "uint8": "load8u"}
_STORES = {"int32": "store32", "int8": "store8"}
_SCATTERS = {"int32": "scatter32", "int8": "scatter8"}
_WORDS = ("int32", "uint32")


class _NoForm(Exception):
    """An expression has no form over lanes."""


def lanes_of(loop: Any, most: int) -> Any:
    """Return the call that a marked loop over flat buffers becomes, or the loop itself.

    Args:
        loop: the loop.
        most: elements that the core computes at once: exactly four, or up to this number.
    """
    try:
        return _Lanes(loop, most).statement()
    except _NoForm:
        return without_note(loop, LANES)


def call_mac(func: PrimFunc) -> PrimFunc:
    """Replace what is left of int32 sums of products, ``acc += x * w``, by calls."""

    def visit(store: Any) -> Any:
        total = store.value
        if not isinstance(total, tirx.Add) or str(total.ty.dtype) != "int32":
            return store
        loaded = total.a
        same = (
            isinstance(loaded, TensorLoad)
            and loaded.source.same_as(store.buffer)
            and tvm_ffi.structural_equal(loaded.indices, store.indices)
        )
        if not same or not isinstance(total.b, tirx.Mul):
            return store
        value = tirx.call_extern("int32", "htvm_mac", total.b.a, total.b.b, loaded)
        return BufferStore(store.buffer, value, store.indices)

    return func.with_body(tvm_ffi.structural_map(func.body, (BufferStore, visit)))


def call_clip(func: PrimFunc) -> PrimFunc:
    """Replace casts of limited numbers to int8, ``int8(max(min(x, 127), -128))``, by calls."""

    def visit(cast: Any) -> Any:
        limited = cast.value
        if str(cast.ty.dtype) != "int8" or str(limited.ty.dtype) != "int32":
            return cast
        if not isinstance(limited, tirx.Max) or not isinstance(limited.a, tirx.Min):
            return cast
        limits = (limited.b, limited.a.b)
        if not all(isinstance(limit, tirx.IntImm) for limit in limits):
            return cast
        return tirx.Cast("int8", tirx.call_extern("int32", "htvm_clip", limited.a.a, *limits))

    return func.with_body(tvm_ffi.structural_map(func.body, (tirx.Cast, visit)))


def magic(divisor: int) -> tuple[int, int]:
    """Return what a 32-bit number is divided with: a multiplier and a right shift.

    The multiplier is the next number above 2^(32 + shift) / divisor, which may have wrapped around
    in 32 bits; its error is below a quotient's step for every number (Warren, Hacker's Delight,
    10-1).

    Args:
        divisor: from 2 to 2^31 - 1.
    """
    if divisor < 2:
        raise _NoForm
    for shift in range(31):
        multiplier = (1 << (32 + shift)) // divisor + 1
        # Numbers are of 31 bits and a sign.
        if (multiplier * divisor - (1 << (32 + shift))) << 31 <= 1 << (32 + shift):
            return multiplier - (multiplier >> 31 << 32), shift
    raise _NoForm


class _Lanes:
    """The call that a marked loop becomes."""

    def __init__(self, loop: Any, most: int) -> None:
        self.loop, self.variable, self.number = loop, loop.loop_var, int(loop.extent)
        self.most = most
        self.analyzer = sym.Analyzer()

    def statement(self) -> Any:
        store = self.loop.body
        fits = self.number == FOUR if self.most == FOUR else self.number <= self.most
        if not fits or not isinstance(store, BufferStore):
            raise _NoForm
        dtype, value = str(store.value.ty.dtype), store.value
        if dtype == "int8" and isinstance(value, tirx.Cast):
            value = value.value
        if dtype not in _STORES or str(value.ty.dtype) != "int32":
            raise _NoForm
        first, distance = self._place(store.indices)
        target, lanes = tirx.address_of(store.buffer[first]), self._lanes(value)
        if distance == 1:
            return call(*self._named(_STORES[dtype], target, lanes))
        stride = tirx.const(distance, "uint32")
        return call(*self._named(_SCATTERS[dtype], target, stride, lanes))

    def _place(self, indices: Any) -> tuple[Any, int]:
        """Return the index of the first element, and how far each is from the next."""
        if len(indices) != 1:
            raise _NoForm
        first, *others = (
            self.analyzer.simplify(substituted(indices[0], {self.variable: n}))
            for n in range(self.number)
        )
        distances = [self.analyzer.simplify(other - first) for other in others]
        if not all(isinstance(distance, tirx.IntImm) for distance in distances):
            raise _NoForm
        steps = [int(distance) for distance in distances]
        step = steps[0] if steps else 1
        if step < 1 or steps != [step * n for n in range(1, self.number)]:
            raise _NoForm
        return first, step

    def _address(self, buffer: Any, indices: Any) -> Any:
        """Return the address of the first of neighbours."""
        first, distance = self._place(indices)
        if distance != 1:
            raise _NoForm
        return tirx.address_of(buffer[first])

    def _varies(self, value: Any) -> bool:
        found = False

        def visit(var: Any) -> None:
            nonlocal found
            found = found or var.same_as(self.variable)

        tvm_ffi.structural_walk(value, (tvm.ir.Var, visit))
        return found

    def _lanes(self, value: Any) -> Any:
        """Return the call whose lanes are the values of an int32 expression."""
        dtype = str(value.ty.dtype)
        if isinstance(value, tirx.Cast) and {dtype, str(value.value.ty.dtype)} <= set(_WORDS):
            return self._lanes(value.value)
        if dtype not in _WORDS:
            raise _NoForm
        if not self._varies(value):
            same = value if dtype == "int32" else tirx.Cast("int32", value)
            return self._call("all", same)
        if isinstance(value, tirx.Cast) and isinstance(value.value, TensorLoad):
            return self._load(value.value)
        if isinstance(value, TensorLoad):
            return self._load(value)
        if self.most == FOUR and isinstance(value, tirx.Div) and isinstance(value.b, tirx.IntImm):
            numbers = (int(value.b), *magic(int(value.b)))
            constants = [tirx.const(number, "int32") for number in numbers]
            return self._call("divide", self._lanes(value.a), *constants)
        if self.most == FOUR and isinstance(value, tirx.Select):
            return self._by_sign(value)
        if type(value) in _BINARY and dtype == "int32":
            first, second = value.a, value.b
            if isinstance(value, (tirx.Add, tirx.Mul)) and not self._varies(first):
                first, second = second, first
            return self._operation(_BINARY[type(value)], first, second)
        if isinstance(value, tvm.ir.Call):
            return self._of_call(value)
        raise _NoForm

    def _load(self, load: Any) -> Any:
        dtype = str(load.ty.dtype)
        if dtype not in _LOADS:
            raise _NoForm
        return self._call(_LOADS[dtype], self._address(load.source, load.indices))

    def _of_call(self, call: Any) -> Any:
        name = call.args[0] if call.args else None
        known = _CALLED.get(str(name.value)) if isinstance(name, StringImm) else None
        if known is None:
            raise _NoForm
        return self._operation(known, *call.args[1:])

    def _operation(self, name: str, first: Any, *others: Any) -> Any:
        """Return the call for an operation; further operands may be the same for all lanes."""
        known = _FOUR_WITH_NUMBERS if self.most == FOUR else _WITH_NUMBERS
        if name not in known or any(map(self._varies, others)):
            return self._call(name, *map(self._lanes, (first, *others)))
        numbers = [
            other if str(other.ty.dtype) == "int32" else tirx.Cast("int32", other)
            for other in others
        ]
        return self._call(f"{name}_x", self._lanes(first), *numbers)

    def _by_sign(self, value: Any) -> Any:
        """Return the call that chooses between two numbers by a third one's sign."""
        condition, choices = value.condition, (value.true_value, value.false_value)
        zero = isinstance(condition, tirx.LE) and isinstance(condition.a, tirx.IntImm)
        if not zero or int(condition.a) != 0 or any(map(self._varies, choices)):
            raise _NoForm
        return self._call("by_sign", self._lanes(condition.b), *choices)

    def _call(self, name: str, *arguments: Any) -> Any:
        # The type is that of a lane; calls are only nested, so no variable is declared with it.
        return tirx.call_extern("int32", *self._named(name, *arguments))

    def _named(self, name: str, *arguments: Any) -> tuple[Any, ...]:
        """Return the function for an operation, and its arguments."""
        if self.most == FOUR:
            return (f"htvm_lanes_{name}", *arguments)
        return (f"htvm_many_{name}", *arguments, tirx.const(self.number, "uint32"))
