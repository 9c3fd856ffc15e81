"""Generating C11 from pointer PrimFuncs, with TVM's own C code generator.

TVM prints the body; signature, headers and names are replaced here, so that a kernel is a plain
function that needs only ``<stdint.h>``.  Before that, two things get a form whose C is right and
plain: what minima and maxima compare (`bind_compared`), and signs (`compare_signs`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import PrimType
from tvm.tirx.stmt import Bind, BufferStore, Evaluate, SeqStmt

from byoc_dory.definition import Definition
from byoc_dory.emit.text import comment as harmless
from byoc_dory.errors import UnsupportedError
from htvm.aot.fixed_point import FLOAT_HEADER, FLOAT_PRODUCT, QUANTIZE_HEADER, QUANTIZED
from htvm.aot.literals import MATH_CALL, c_type
from htvm.aot.lower import UNROLL_SUFFIX, Parameter, PointerFunc

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc


def c_type_of(parameter: Parameter) -> str:
    """Return the C type of a parameter's elements."""
    return c_type(parameter.dtype)


def declarations(parameters: tuple[Parameter, ...]) -> tuple[str, ...]:
    """The C of a kernel's parameters.

    The planner gives every tensor its own bytes, so pointers are ``restrict``, except those of an
    output and the inputs over which it may be written.
    """
    return tuple(
        f"{'const ' if parameter.const else ''}{c_type_of(parameter)} "
        f"*{'restrict ' if parameter.apart else ''}{parameter.name}"
        for parameter in parameters
    )


@dataclass(frozen=True)
class About:
    """What the comment before a kernel says.

    Attributes:
        layers: that it computes.
        operators: that it computes of them.
        lines: further lines.
    """

    layers: tuple[str, ...]
    operators: tuple[str, ...]
    lines: tuple[str, ...]


def define(symbol: str, lowered: PointerFunc, about: About, *, exact: bool = True) -> Definition:
    """Return the complete definition of a kernel.

    Args:
        symbol: name of the function, as lowered.
        lowered: function returned by `htvm.aot.lower.lower`.
        about: for the comment.
        exact: as for `body_of`.

    Raises:
        UnsupportedError: TVM printed code that needs its runtime or another header.
    """
    body = "${signature} " + body_of(lowered.func, symbol, exact=exact)
    return definition(about, lowered.parameters, body)


def definition(about: About, parameters: tuple[Parameter, ...], body: str) -> Definition:
    """A kernel's definition, given its parameters and its text (see `Definition`)."""
    return Definition(
        about.operators[0],
        tuple(map(harmless, about.layers)),
        tuple(map(harmless, (" + ".join(about.operators), *about.lines))),
        "void",
        declarations(parameters),
        body,
        framed=True,
    )


def body_of(func: PrimFunc, symbol: str, *, exact: bool = True) -> str:
    """Return the braces of a function's definition with everything between them.

    Args:
        func: function over pointers, lowered as far as the C code generator needs.
        symbol: name of the function.
        exact: whether the body must not call mathematical functions, whose results depend on the
            library, nor compute in doubles.

    Raises:
        UnsupportedError: as `define`.
    """
    func = bind_compared(compare_signs(func if exact else call_mathematical(func)))
    func, reals = (func, {}) if exact else _named_reals(func)
    module = tvm.IRModule({symbol: func})
    build = tvm.get_global_func("target.build.c")
    text = build(module, tvm.target.Target("c")).inspect_source()
    body = _body(text, symbol)
    body = _plain_values(body)
    body = _plain_names(body)
    body = _unroll_macros(body)
    body = _explain_rounding(body)
    body = re.sub(r"\bbool\b", "_Bool", body)
    for name, literal in reals.items():
        body = re.sub(rf"\b{name}\b", literal, body)
    types, known = ("double|half", _KNOWN) if exact else ("half", f"{_KNOWN}|{MATH_CALL}")
    foreign = re.search(rf"\b(TVM\w*|DL\w+|tvm_\w+|__tvm\w+|{types})\b", body) or re.search(
        rf"\b(?!(?:{known})\b)\w+(?=\()", body
    )
    if foreign is not None:
        raise UnsupportedError(
            f"the C code would need '{foreign.group()}'",
            where=f"kernel '{symbol}'",
            hint="only operators without calls into a runtime or a mathematical library have one",
        )
    return body


def headers_of(kernel: Definition, header: str) -> tuple[str, ...]:
    """Return the headers of the runtime that a kernel needs.

    Args:
        kernel: the kernel.
        header: of the core's intrinsics.
    """
    called = set(re.findall(r"\bhtvm_\w+(?=\()", kernel.body))
    shared = {name for name in called if name.startswith("htvm_parallel_")}
    product, quantized = called & {FLOAT_PRODUCT}, called & QUANTIZED
    needed = {
        PARALLEL_HEADER: shared,
        FLOAT_HEADER: product,
        QUANTIZE_HEADER: quantized,
        header: called - shared - product - quantized,
    }
    return tuple(name for name, functions in needed.items() if functions)


PARALLEL_HEADER = "htvm_parallel.h"
"""Header of the functions with which cores share a kernel."""

UNROLL_MACRO = "HTVM_UNROLL"
"""Macro before a loop that is written out this many times."""

_KNOWN = "|".join(("for", "if", "while", "sizeof", "return", UNROLL_MACRO, r"htvm_\w+"))
"""What may stand before a parenthesis: keywords, and functions of the runtime's headers."""

COMPARED = "v_"
"""Name of a variable for what a minimum or maximum compares, which is the generator's own."""

_ROUNDING = re.compile(r"^( *)\w.* \+ 1\.200000e\+07f\)", re.MULTILINE)
"""Rounding by adding the number that `onnx_quantize` adds, and subtracting it again."""


def _explain_rounding(body: str) -> str:
    """Add a comment on the purpose of the addition, which otherwise looks redundant."""
    words = "/* Floats of this magnitude are integers: the sum is rounded to one, ties to even. */"
    return _ROUNDING.sub(lambda found: f"{found[1]}{words}\n{found[0]}", body)


def _body(text: str, symbol: str) -> str:
    """Return the braces of the definition of ``symbol``, up to the end of the file."""
    match = re.search(rf"void {re.escape(symbol)}\([^)]*\) \{{\n", text)
    if match is None:
        raise UnsupportedError("TVM printed no definition", where=f"kernel '{symbol}'")
    end = text.index("\n}\n", match.end() - 1)
    return "{\n" + text[match.end() : end] + "\n}\n"


def _plain_values(body: str) -> str:
    """Drop the parentheses around the values of the variables of `bind_compared`."""

    def plain(found: re.Match[str]) -> str:
        start, value = found.groups()
        depths = list(accumulate((each == "(") - (each == ")") for each in value))
        return f"{start}{value[1:-1] if 0 not in depths[:-1] else value};"

    return re.sub(rf"^( *\w+ {COMPARED}(?:_\d+)? = )(.*);$", plain, body, flags=re.MULTILINE)


def _plain_names(body: str) -> str:
    """Shorten names of TVM's temporaries: ``cse_v3`` becomes ``t3``, ``v__2`` becomes ``v2``."""
    body = re.sub(r"\bcse_v(\d+)\b", r"t\1", body)
    body = re.sub(r"\bv__(\d+)\b", r"v\1", body)
    body = re.sub(r"\bv_\b", "v0", body)
    body = re.sub(r"\b(\w+)_ptr\b", r"\1", body)
    body = re.sub(r"\b(conv2d_nhwc|group_conv2d_\w+|matmul)_intermediate\b", "acc", body)
    body = re.sub(r"\b([A-Za-z]\w*?)_intermediate(_\d+)?\b", r"\1\2", body)
    # An array with one element is a variable.
    for name in re.findall(r"^ *\w+ (\w+)\[1\];$", body, re.MULTILINE):
        body = re.sub(rf"\b{name}\[(1|0)\]", name, body)
    return body


def _unroll_macros(body: str) -> str:
    """Turn the mark in a loop variable's name into a macro: a pragma where compilers know it."""
    lines = []
    for line in body.splitlines():
        match = re.match(rf"( *)for \(int32_t \w+?{UNROLL_SUFFIX}(\d+)(?:_\d+)? = ", line)
        if match is not None:
            lines.append(f"{match.group(1)}{UNROLL_MACRO}({match.group(2)})")
        lines.append(line)
    return re.sub(rf"{UNROLL_SUFFIX}\d+", "", "\n".join(lines)) + "\n"


# ------------------------------------------------------------------------------ before printing


def call_mathematical(func: PrimFunc) -> PrimFunc:
    """Return a function that calls what C has and TVM's generator does not know."""

    def visit(call: Any) -> Any:
        name = str(getattr(call.op, "name", ""))
        dtype = str(call.ty.dtype) if name in _UNKNOWN else ""
        if dtype not in ("float32", "float64"):
            return call
        function = name.removeprefix("tirx.") + ("f" if dtype == "float32" else "")
        return tirx.call_pure_extern(dtype, function, *call.args)

    return func.with_body(tvm_ffi.structural_map(func.body, (tvm.ir.Call, visit)))


def _named_reals(func: PrimFunc) -> tuple[PrimFunc, Mapping[str, str]]:
    """Return a function with names for reals that TVM would not print as C needs them.

    It prints seven digits, and a float32 may need nine; what is not finite has no literal.

    Returns:
        The function, whose names are parameters, and what they stand for in C.
    """
    variables: dict[tuple[str, str], Any] = {}
    literals: dict[str, str] = {}

    def visit(real: Any) -> Any:
        dtype, value = str(real.ty.dtype), float(real.value)
        if dtype not in ("float32", "float64"):
            return real
        kind = np.dtype(dtype).type
        if not math.isfinite(value):
            literal = "NAN" if math.isnan(value) else f"({'-' if value < 0 else ''}INFINITY)"
        elif kind(f"{value:e}") == kind(value):
            return real
        else:
            literal = f"{kind(value)!s}{'f' if dtype == 'float32' else ''}"
        key = dtype, literal
        if key not in variables:
            variables[key] = tvm.ir.Var(f"{_REAL}{len(variables)}", PrimType(dtype))
            literals[variables[key].name] = literal
        return variables[key]

    body = tvm_ffi.structural_map(func.body, (tirx.FloatImm, visit))
    if not variables:
        return func, literals
    parameters = [*func.params, *variables.values()]
    return tirx.PrimFunc(parameters, body, attrs=func.attrs), literals


_REAL = "htvm_real_"
"""Begins the name of a real number while a function is printed."""

_UNKNOWN = ("tirx.exp2", "tirx.fabs", "tirx.fmod")


def compare_signs(func: PrimFunc) -> PrimFunc:
    """Return a function with ``x - (x < 0)`` where there was ``x + (x >> 31)``.

    C leaves right shifts of negative numbers to its implementation, and analysers object to one by
    all bits but the sign.  Compilers make the same instruction of both forms.
    """
    changes = (tirx.RShift, _compared), (tirx.Add, _subtracted)
    return func.with_body(tvm_ffi.structural_map(func.body, changes))


def _compared(shift: Any) -> Any:
    dtype = str(shift.ty.dtype)
    if not isinstance(shift.b, tirx.IntImm) or dtype != f"int{int(shift.b) + 1}":
        return shift
    return tirx.Sub(tirx.const(0, dtype), tirx.Cast(dtype, shift.a < 0))


def _subtracted(total: Any) -> Any:
    """``a + (0 - b)`` is ``a - b``."""
    if isinstance(total.b, tirx.Sub) and isinstance(total.b.a, tirx.IntImm) and int(total.b.a) == 0:
        return tirx.Sub(total.a, total.b.b)
    return total


def bind_compared(func: PrimFunc) -> PrimFunc:
    """Return a function whose minima and maxima compare only constants and variables.

    TVM's generator stores each operand in a variable, and takes a variable of the same scope again
    whose text is the same, even if the memory that the text reads has been written since.  Here
    every operand that is computed gets a variable of its own beforehand.  What depends on a
    condition stays: it has a scope and a variable of its own in the C code.
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
