"""Rewriting the functions of a module, island by island."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tvm_ffi
from tvm import ir, relax

from byoc_dory.emit.text import c_identifier
from byoc_dory.errors import HtvmError, IntegerFormError, UnsupportedError
from htvm.frontend.module import refuse_unknown_sizes
from htvm.frontend.relax_onnx import HANDLERS
from htvm.relax.islands import Island, parts_of
from patterns.byoc.contract import is_region, name_of_region, sealed
from patterns.primitive import kind_of

if TYPE_CHECKING:
    from tvm.ir import GlobalVar, IRModule
    from tvm.relax import Binding, Expr, Function, Var

_log = logging.getLogger(__name__)

Rewriting = Callable[["IRModule", str], "IRModule"]
"""From a module whose ``main`` is an island, and its name, to one whose ``main`` replaces it."""


def rewritten(module: IRModule, rewriting: Rewriting) -> IRModule:
    """Return a module with the islands of its functions rewritten, except code generators'.

    Raises:
        UnsupportedError: a function with quantized tensors has a size that is not known.
    """
    for var, function in list(module.functions.items()):
        if isinstance(function, relax.Function) and not is_of_generator(function):
            module = _FunctionRewriter(module, var, function, rewriting).rewritten()
    return module


def with_dataflow(module: IRModule) -> IRModule:
    """Return a module whose functions have dataflow blocks; code generators' are as they were."""
    found = relax.transform.ConvertToDataflow()(module)
    for var, function in module.functions.items():
        if isinstance(function, relax.Function) and is_of_generator(function):
            found.update_func(var, function)
    return found


def with_public_functions(module: IRModule) -> IRModule:
    """Return a module whose private functions are where they are called.

    RunCodegen makes code of regions in public functions only.
    """
    own = {
        var: function
        for var, function in module.functions.items()
        if isinstance(function, relax.Function) and not is_of_generator(function)
    }
    private = {
        var: function
        for var, function in own.items()
        if "global_symbol" not in (function.attrs or ())
    }
    if not private or relax.analysis.detect_recursion(module):
        return module
    found = module.clone()
    for var, function in own.items():
        if var not in private:
            found.update_func(var, function.inline_functions(private))
    for var in private:
        del found[var]
    return found


def is_of_generator(function: Function) -> bool:
    """Whether a function belongs to a code generator."""
    attributes = function.attrs
    return attributes is not None and any(
        name in attributes for name in ("Codegen", "Composite", "Primitive")
    )


class _FunctionRewriter:
    """Puts what ``rewriting`` makes of a function's islands in their places."""

    def __init__(
        self, module: IRModule, var: GlobalVar, function: Function, rewriting: Rewriting
    ) -> None:
        self._module = module
        self._builder = relax.BlockBuilder(module)
        self._var, self._function, self._rewriting = var, function, rewriting
        self._islands: dict[GlobalVar, Function] = {}
        self._quantized = _quantized(function)
        self._left: set[Var] = set()
        self._params = set(function.params)

    def rewritten(self) -> IRModule:
        """Return the module with this function rewritten."""
        function = self._function
        bound = (binding.var for block in function.body.blocks for binding in block.bindings)
        if any(map(_has_bytes, bound)):
            refuse_unknown_sizes(function, str(self._var.name_hint))
        blocks = [
            self._block(block) if isinstance(block, relax.DataflowBlock) else block
            for block in function.body.blocks
        ]
        if not self._islands:
            return self._module
        body = relax.SeqExpr(blocks, function.body.body)
        made = relax.Function(
            list(function.params), body, function.ret_ty, function.is_pure, function.attrs
        )
        module = self._builder.get()
        inlined = made.inline_functions(self._islands)
        module.update_func(self._var, relax.analysis.remove_all_unused(inlined))
        for name in self._islands:
            del module[name]
        return relax.transform.Normalize()(module)

    def _block(self, block: relax.DataflowBlock) -> relax.DataflowBlock:
        done: dict[Island, IRModule] | None = None
        while done is None:  # what cannot be read is left out, and changes what is around it
            parts = parts_of(block, self._is_readable)
            islands = [part for part in parts if isinstance(part, Island) and _is_quantized(part)]
            done = self._rewritten(islands)
        bindings: list[Binding] = []
        for part in parts:
            if not isinstance(part, Island):
                bindings += part
            elif part in done:
                bindings += part.call(self._enter(done[part]))
            else:
                bindings += part.bindings
        return relax.DataflowBlock(bindings)

    def _rewritten(self, islands: Sequence[Island]) -> dict[Island, IRModule] | None:
        """Return what takes the islands' places; None if one cannot be read, which is left out."""
        done = {}
        for island in islands:
            main = island.function().with_attr("global_symbol", "main")
            primitives = {
                var: function
                for var, function in self._module.functions.items()
                if not isinstance(function, relax.Function)
            }
            module = ir.IRModule({**primitives, ir.GlobalVar("main"): main})
            try:
                done[island] = self._rewriting(module, str(self._var.name_hint))
            except (IntegerFormError, UnsupportedError) as error:
                self._leave(island, error)
                return None
        return done

    def _leave(self, island: Island, error: HtvmError) -> None:
        """Leave out calls that may be the reason why an island cannot be read, or all of it."""
        own = {binding.var for binding in island.bindings}
        unknown = {each.var for each in island.bindings if self._is_unknown_call(each.value)}
        if not unknown:
            where = self._var.name_hint
            reason = str(error).replace(" of function 'main'", "")  # the island's own name
            _log.warning("function '%s': %d bindings stay: %s", where, len(own), reason)
        self._left |= unknown or own

    def _enter(self, found: IRModule) -> GlobalVar:
        """Enter what takes an island's place, with what it calls; return its name."""
        own = c_identifier(str(self._var.name_hint))
        names: dict[GlobalVar, GlobalVar] = {}
        # Regions may call PrimFuncs, and the main function calls both.
        for var, function in sorted(found.functions.items(), key=lambda item: _rank(*item)):
            made = _renamed(function, names)
            if not is_region(made):
                names[var] = self._builder.add_func(made, str(var.name_hint))
                continue
            name = names[var] = self._builder.add_func(made, f"{own}_{name_of_region(made)}")
            symbol = str(name.name_hint)
            self._builder.update_func(name, sealed(made.with_attr("global_symbol", symbol)))
        main = names[found.get_global_var("main")]
        self._islands[main] = self._builder.get()[main].without_attr("global_symbol")
        return main

    def _is_readable(self, binding: Binding) -> bool:
        """Whether a binding is quantized, readers have a handler for it, and it is not left out."""
        value = binding.value
        if binding.var in self._left or binding.var not in self._quantized:
            return False
        if not isinstance(binding, relax.VarBinding) or not _is_static(binding.var):
            return False
        if isinstance(value, relax.TupleGetItem) and value.tuple_value in self._params:
            return False  # readers take tensors, so the item is an input of the island
        if not isinstance(value, relax.Call):
            return not isinstance(value, relax.Function | relax.If)
        return isinstance(value.op, ir.Op) and str(value.op.name) in _OPERATORS

    def _is_unknown_call(self, value: Expr) -> bool:
        """Whether a value is a call of a PrimFunc that is no operator of the integer form."""
        name = str(getattr(getattr(value, "op", None), "name", ""))
        return name == "relax.call_tir" and kind_of(self._module, value) is None


_OPERATORS = {*HANDLERS, "relax.right_shift"}
"""Operators that modules in the quantize/dequantize form or in the integer form consist of."""


def _has_bytes(var: Var) -> bool:
    """Whether a variable is a tensor of bytes or of pairs of them, as quantizations compute."""
    types = (str(getattr(kind, "dtype", "")) for kind in _types(var))
    return any(name in ("int8", "uint8", "int16", "uint16") for name in types)


def _is_quantized(island: Island) -> bool:
    """Whether an island has tensors of bytes."""
    tensors = [*island.inputs, *(binding.var for binding in island.bindings)]
    return bool(island.outputs) and any(map(_has_bytes, tensors))


def _rank(var: GlobalVar, function: Any) -> tuple[int, str]:
    """Return a key by which functions come before those that call them."""
    is_main = var.name_hint == "main"
    return 2 if is_main else int(isinstance(function, relax.Function)), str(var.name_hint)


def _renamed(function: Any, names: Mapping[GlobalVar, GlobalVar]) -> Any:
    """Return a function that calls others by new names."""

    def new(var: GlobalVar) -> GlobalVar:
        return names.get(var, var)

    return tvm_ffi.structural_map(function, (ir.GlobalVar, new))


def _types(var: Var) -> list[Any]:
    """Return the types of a variable's tensors, one or those of a tuple."""
    return list(var.ty.fields) if isinstance(var.ty, relax.TupleType) else [var.ty]


def _is_static(var: Var) -> bool:
    """Whether a variable is a tensor of known shape, or a tuple of these."""
    return all(
        isinstance(kind, relax.TensorType)
        and kind.shape is not None
        and all(hasattr(size, "value") for size in kind.shape)
        for kind in _types(var)
    )


def _is_real(var: Var) -> bool:
    return any(str(getattr(kind, "dtype", "")).startswith("float") for kind in _types(var))


def _quantized(function: Function) -> set[Var]:
    """Return the variables of integers, and of reals on the way from one to a quantization."""
    bindings = [binding for block in function.body.blocks for binding in block.bindings]
    read = {binding.var: relax.analysis.free_vars(binding.value) for binding in bindings}
    integers = {var for var in (*function.params, *read) if not _is_real(var)}
    behind: set[Var] = set()
    for var, inputs in read.items():
        if all(each in integers or each in behind for each in inputs):
            behind.add(var)
    before: set[Var] = set()
    for var, inputs in reversed(read.items()):
        if var in integers or var in before:
            before.update(inputs)
    dequantized = {
        binding.var
        for binding in bindings
        if str(getattr(getattr(binding.value, "op", None), "name", "")) == "relax.dequantize"
    }
    return integers | dequantized | behind & before
