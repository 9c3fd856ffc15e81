"""CPU kernels: everything that no accelerator takes, through TVM, as plain C functions.

The way of a module: TVM legalizes and fuses it (`htvm.aot.fuse`), each fused PrimFunc is scheduled
(`htvm.aot.schedules`), lowered to loops over pointers (`htvm.aot.lower`) and printed by TVM's C
code generator (`htvm.aot.codegen_c`).  A reshape is no kernel but an alias.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import tvm_ffi
from tvm import relax, tirx
from tvm.ir import GenericConst
from tvm.s_tir import SBlock

from byoc_dory.emit.text import c_identifier
from byoc_dory.errors import IntegerFormError, UnsupportedError
from htvm.aot.codegen_c import About, define
from htvm.aot.constants import ConstantPool, distinct
from htvm.aot.fixed_point import name_wide_operands
from htvm.aot.flags import RV32_CFLAGS
from htvm.aot.float_product import spell_float_products
from htvm.aot.fuse import Fused, Group, fuse
from htvm.aot.lower import lower
from htvm.aot.parallel import HEADER, Cores, share
from htvm.aot.ranges import check_ranges
from htvm.aot.schedules import Scheduled, schedule
from htvm.aot.steps import Alias, Call, Value

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Expr, Var
    from tvm.tirx import PrimFunc

    from byoc_dory.definition import Definition
    from byoc_dory.region import Constant

__all__ = ["RV32_CFLAGS", "CpuCode", "CpuKernel", "Kernels", "compile_cpu"]

_log = logging.getLogger(__name__)

Kernels: TypeAlias = Literal["scheduled", "default"]


@dataclass(frozen=True, eq=False)
class CpuKernel:
    """A C function ``void symbol(inputs and constants..., outputs..., workspaces...)``.

    Attributes:
        symbol: C name, starting with the model's.
        source: complete definition; needs ``<stdint.h>`` and ``headers``.
        prototype: declaration without semicolon.
        params: (name, dtype, shape) of each pointer parameter, workspaces last.
        n_outputs: how many of them are written, workspaces aside.
        workspaces: bytes of each trailing workspace parameter.
        layers: names of the layers it computes (a padding may be a kernel of its own).
        operators: what it computes of them, e.g. ``("pad",)`` or ``("conv2d", "add", ...)``.
        schedule: how it is looped over, in a few words.
        headers: of the SoC's runtime, which kernels for several cores need.
        definition: its source before it is known which layers share it.
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


@dataclass(frozen=True, eq=False)
class CpuCode:
    """What `compile_cpu` makes of a module.

    Attributes:
        module: ``main`` after fusion: it calls PrimFuncs named like the kernels (``call_tir``),
            regions (``call_dps_packed``) and reshapes.
        kernels: in order of first use.
        calls: the same ``main`` as calls and aliases of named tensors.
        results: name of the tensor that each output of the model is.
        constants: arrays the calls pass, by name.
    """

    module: IRModule
    kernels: tuple[CpuKernel, ...]
    calls: tuple[Call | Alias, ...]
    results: tuple[str, ...]
    constants: Mapping[str, Constant]


def compile_cpu(
    module: IRModule, prefix: str, *, kernels: Kernels = "scheduled", cores: Cores | None = None
) -> CpuCode:
    """Compile everything in ``main`` that is not a call of a region.

    Args:
        module: integer form, in which regions are calls of external functions
            (``call_dps_packed``).
        prefix: the model's name, put before every symbol.
        kernels: ``"scheduled"``: loops fused, blocked for registers, paddings apart;
            ``"default"``: as TVM lowers an unscheduled module, large intermediates included.
        cores: that share scheduled kernels; without, they run on the host core, on operands where
            these are.

    Raises:
        IntegerFormError: ``main`` is not a single dataflow block.
        UnsupportedError: an operator has no plain C form, or an int32 value may overflow.
    """
    check_ranges(module)
    fused = fuse(module, rewrite=kernels == "scheduled")
    return _Compiler(fused, prefix, kernels, cores).run()


class _Compiler:
    """Walks ``main`` once; every called PrimFunc becomes a kernel."""

    def __init__(self, fused: Fused, prefix: str, kernels: Kernels, cores: Cores | None) -> None:
        self.fused = fused
        self.prefix = prefix
        self.mode = kernels
        self.cores = cores if kernels == "scheduled" else None
        self.pool = ConstantPool()
        self.kernels: dict[str, CpuKernel] = {}
        self.calls: list[Call | Alias] = []
        self.names: dict[Var, tuple[str, ...]] = {}  # of a tensor, or of a tuple's fields
        self.taken: set[str] = set()

    def run(self) -> CpuCode:
        main = self.fused.module["main"]
        for param in main.params:
            self.names[param] = (self._fresh(str(param.name)),)
        for block in main.body.blocks:
            for binding in block.bindings:
                self._binding(binding.var, binding.value)
        body = main.body.body
        if isinstance(body, relax.Tuple):
            results = tuple(self._tensor(field) for field in body.fields)
        else:
            results = self.names[body]
        return CpuCode(
            self.fused.module,
            tuple(self.kernels.values()),
            tuple(self.calls),
            results,
            self.pool.constants,
        )

    def _fresh(self, wish: str) -> str:
        name, number = wish, 1
        while name in self.taken:
            number += 1
            name = f"{wish}_{number}"
        self.taken.add(name)
        return name

    # --- main --------------------------------------------------------------------------------

    def _binding(self, var: Var, value: Expr) -> None:
        if isinstance(value, relax.Var):
            self.names[var] = self.names[value]
        elif isinstance(value, relax.Tuple):
            self.names[var] = tuple(self._tensor(field) for field in value.fields)
        elif isinstance(value, relax.TupleGetItem):
            self.names[var] = (self.names[value.tuple_value][value.index],)
        elif isinstance(value, relax.Call):
            self._call(var, value)
        else:
            raise self._unsupported(f"a binding of {type(value).__name__}", var)

    def _call(self, var: Var, call: Any) -> None:
        operator = str(getattr(call.op, "name", ""))
        if operator == "relax.reshape":
            output = self._value(var, str(var.name).split("__of__")[0])
            self.calls.append(Alias(self._tensor(call.args[0]), output))
        elif operator == "relax.call_tir":
            self._kernel_call(var, call)
        elif operator == "relax.call_dps_packed":
            symbol = str(call.args[0].global_symbol)
            inputs = tuple(self._tensor(arg) for arg in call.args[1])
            self.calls.append(Call(symbol, inputs, self._values(var, symbol)))
        else:
            raise self._unsupported(f"'{operator or call.op}'", var)

    def _unsupported(self, what: str, var: Var) -> UnsupportedError:
        return UnsupportedError(
            f"{what} is neither a kernel, a region nor a reshape",
            where=f"binding '{var.name}' of 'main'",
            hint="TVM has no C form for this operator",
        )

    def _tensor(self, expr: Expr) -> str:
        if isinstance(expr, GenericConst):
            return self.pool.add(self._fresh("constant"), expr.value.numpy(), "constant")
        names = self.names.get(expr, ()) if isinstance(expr, relax.Var) else ()
        if len(names) != 1:
            raise IntegerFormError(f"'{expr}' is no tensor", where="CPU compilation")
        return names[0]

    def _value(self, var: Var, wish: str) -> Value:
        (value,) = self._values(var, wish)
        return value

    def _values(self, var: Var, wish: str) -> tuple[Value, ...]:
        """Enter the tensor or tensors that ``var`` stands for."""
        fields = var.ty.fields if isinstance(var.ty, relax.TupleType) else [var.ty]
        values = tuple(
            Value(self._fresh(wish), tuple(int(n) for n in ty.shape), str(ty.dtype.dtype))
            for ty in fields
        )
        self.names[var] = tuple(value.name for value in values)
        return values

    # --- kernels -----------------------------------------------------------------------------

    def _kernel_call(self, var: Var, call: Any) -> None:
        callee, args = call.args[0], list(call.args[1])
        group = self.fused.groups[callee.name_hint]
        base = _base_name(group)
        inputs = []
        roles = self._roles(group, args)
        for arg, role in zip(args, roles, strict=True):
            if isinstance(arg, GenericConst):
                where = f"{role} of {', '.join(group.layers)}"
                name = self._fresh(f"{base}_{role}")
                inputs.append(self.pool.add(name, arg.value.numpy(), where))
            else:
                inputs.append(self._tensor(arg))
        wish = f"{base}ded" if base.endswith("_pad") else group.layers[-1]
        outputs = self._values(var, wish)
        func = self.fused.module[callee]
        if callee.name_hint not in self.kernels:
            names = distinct([*roles, *["out"] * len(outputs)])
            kernel = self._compile(func, base, group, names, len(outputs))
            self.kernels[callee.name_hint] = kernel
        symbol = self.kernels[callee.name_hint].symbol
        self.calls.append(Call(symbol, tuple(inputs), outputs, _macs(func)))

    def _roles(self, group: Group, args: list[Any]) -> list[str]:
        """C names of a kernel's inputs and constants."""
        constants = sum(isinstance(arg, GenericConst) for arg in args)
        roles = iter(group.roles)
        if len(group.roles) != constants:
            roles = iter([f"constant_{number}" for number in range(constants)])
        tensors = iter(range(len(args)))
        return distinct(
            next(roles) if isinstance(arg, GenericConst) else f"in{next(tensors)}" for arg in args
        )

    def _compile(
        self, func: PrimFunc, base: str, group: Group, names: list[str], outputs: int
    ) -> CpuKernel:
        symbol = self._fresh(f"{self.prefix}_{base}")
        if self.mode == "scheduled":
            scheduled = schedule(func, group.operators)
            spelled = spell_float_products(scheduled.func)
            scheduled = replace(scheduled, func=name_wide_operands(spelled))
        else:
            scheduled = Scheduled(func, "not scheduled")
        lowered = lower(scheduled.func, symbol, names, outputs, unroll=self.mode == "default")
        first, last = (_shape_text(func.params[index]) for index in (0, len(names) - 1))
        about = About(group.layers, group.operators, (f"{first} -> {last}", scheduled.note))
        shared = None if self.cores is None else share(lowered, symbol, about, self.cores)
        found = define(symbol, lowered, about) if shared is None else shared.definition
        note = scheduled.note if shared is None else f"{scheduled.note}; {shared.note}"
        parameters = lowered.parameters if shared is None else shared.parameters
        _log.debug("%s: %s", symbol, note)
        return CpuKernel(
            symbol,
            found.text(symbol),
            found.prototype(symbol),
            tuple((p.name, p.dtype, p.shape) for p in parameters),
            outputs,
            lowered.workspaces if shared is None else shared.workspaces,
            group.layers,
            group.operators,
            note,
            () if shared is None else (HEADER,),
            found,
        )


def _shape_text(buffer: Any) -> str:
    return f"{buffer.ty.dtype} {'x'.join(str(int(size)) for size in buffer.ty.shape)}"


def _base_name(group: Group) -> str:
    base = c_identifier("_".join(group.layers))
    if group.operators == ("pad",) and not base.startswith("pad_"):
        base += "_pad"
    return base


def _macs(func: PrimFunc) -> int:
    """Multiply-accumulates of all sums of products in an unscheduled PrimFunc."""
    total = 0

    def visit(block: Any) -> None:
        nonlocal total
        reduces = any(int(axis.iter_type) == 2 for axis in block.iter_vars)
        value = getattr(block.body, "value", None)
        if reduces and isinstance(value, tirx.Add) and isinstance(value.b, tirx.Mul):
            total += math.prod(int(axis.dom.extent) for axis in block.iter_vars)

    tvm_ffi.structural_walk(func.body, (SBlock, visit))
    return total
