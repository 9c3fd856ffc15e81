"""Variables for what minima and maxima compare.

TVM's C code generator stores each operand of a minimum or maximum in a variable, and takes a
variable of the same scope again whose text is the same, even if the memory that the text reads has
been written since.  Here every operand that is computed gets a variable of its own beforehand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.tirx.stmt import Bind, BufferStore, Evaluate, SeqStmt

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

COMPARED = "v_"
"""Name of such a variable, which is the generator's own."""


def bind_compared(func: PrimFunc) -> PrimFunc:
    """Return a function whose minima and maxima compare only constants and variables.

    What depends on a condition stays: it has a scope and a variable of its own in the C code.
    """
    body = tvm_ffi.structural_map(func.body, ((BufferStore, Evaluate, Bind), _with_variables))
    return func.with_body(body)


def _with_variables(stmt: Any) -> Any:
    """Return a statement behind its variables."""
    variables = _Variables()
    changed = tvm_ffi.structural_mutate(stmt, variables.changes)
    return SeqStmt([*variables.bound, changed]) if variables.bound else changed


class _Variables:
    """The variables of a statement, in the order in which the generator prints them."""

    def __init__(self) -> None:
        self.bound: list[Any] = []
        self._lets: list[tuple[Any, Any]] = []
        self.changes = (
            ((tirx.Min, tirx.Max), self._compared),
            (tirx.Let, self._let),
            (tvm.ir.Call, self._call),
            (tvm.ir.Var, lambda variable, _: self._renamed(variable)),
        )
        # Under a condition, what is bound already is not bound again.
        self._guarded = ((tirx.Let, self._guarded_let), self.changes[-1])

    def _compared(self, node: Any, mutator: Any) -> Any:
        first = self._variable(mutator.mutate(node.a))
        return type(node)(first, self._variable(mutator.mutate(node.b)))

    def _variable(self, operand: Any) -> Any:
        if isinstance(operand, (tirx.IntImm, tirx.FloatImm, tvm.ir.Var)) or _depends(operand):
            return operand
        for known in self.bound:
            if tvm_ffi.structural_equal(known.value, operand):
                return known.var
        return self._bind(COMPARED, operand)

    def _bind(self, name: str, value: Any) -> Any:
        self.bound.append(Bind(tvm.ir.Var(name, value.ty), value))
        return self.bound[-1].var

    def _let(self, node: Any, mutator: Any) -> Any:
        if not self._is_bound(node.var):
            made = self._bind(node.var.name, mutator.mutate(node.value))
            self._lets.append((node.var, made))
        return mutator.mutate(node.body)

    def _guarded_let(self, node: Any, mutator: Any) -> Any:
        bound = self._is_bound(node.var)
        return mutator.mutate(node.body) if bound else mutator.default_mutate(node)

    def _call(self, call: Any, mutator: Any) -> Any:
        if not _depends(call):
            return mutator.default_mutate(call)
        condition = mutator.mutate(call.args[0])
        branches = [tvm_ffi.structural_mutate(part, self._guarded) for part in call.args[1:]]
        args = [condition, *branches]
        return tvm.ir.Call(call.op, args, call.attrs, call.ty_args, call.span, call.ty)

    def _is_bound(self, variable: Any) -> bool:
        return any(variable.same_as(old) for old, _ in self._lets)

    def _renamed(self, variable: Any) -> Any:
        return next((new for old, new in self._lets if variable.same_as(old)), variable)


def _depends(value: Any) -> bool:
    """Whether a value is computed under a condition."""
    return getattr(getattr(value, "op", None), "name", "") == "prim.if_then_else"
