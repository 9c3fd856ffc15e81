"""Stages of a build as passes of TVM, for a pipeline of one's own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import tvm
import tvm_ffi
from tvm import ir, relax

from byoc_dory.errors import HtvmError, IntegerFormError, TargetError, UnsupportedError
from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import Target
from byoc_dory.soc.registry import resolve
from byoc_dory.verdict import CPU
from htvm.compiled import BuildOptions, Compiled
from htvm.frontend.module import load_module, refuse_unknown_sizes
from htvm.frontend.relax_onnx import HANDLERS
from htvm.policy import POLICIES, check_policy
from htvm.public import public
from htvm.relax.autoload import TAG, register
from htvm.relax.islands import Island, parts_of
from htvm.relax.library import PackedProgram, check_name, library_of
from patterns.byoc.codegen import register_codegen
from patterns.byoc.contract import is_region, name_of_region, sealed
from patterns.byoc.partition import codegen_name
from patterns.byoc.registered import PREFIX, operators_of, register_patterns
from patterns.primitive import kind_of

if TYPE_CHECKING:
    from tvm.ir import GlobalVar, IRModule
    from tvm.relax import Binding, Expr, Function, Var
    from tvm.relax.transform import FusionPattern
    from tvm.transform import Pass

    from htvm.policy import Candidate, Decide, LayerInfo, Policy

_log = logging.getLogger(__name__)

_Rewriting = Callable[["IRModule", str], "IRModule"]
"""From a module whose ``main`` is an island, and its name, to one whose ``main`` replaces it."""


@public
def Partition(  # noqa: N802 - passes of TVM are named like classes
    target: str | Target | tvm.target.Target,
    *,
    policy: Policy | None = None,
    tiling: TilingOptions | None = None,
    patterns: Sequence[FusionPattern] | None = None,
    rewrites: Literal["on", "off"] = "on",
    data: Any = None,
) -> Pass:
    """Return the pass that cuts the regions of a target's accelerators out of a module.

    Every function is partitioned as `htvm.build` would: what can be read in it is retargeted,
    placed, and grouped into regions, functions of their own that ``relax.transform.RunCodegen``
    turns into a library on the SoC's device models.  They carry all that this needs as attributes
    (`patterns.byoc.contract`).  The operators around them are those of the integer form.  What is
    not quantized stays as it is, and so does what cannot be read; of that, the log says why.
    Private functions are put where they are called.

    Args:
        target, policy, tiling, rewrites: as for `htvm.build`; the target by name, or as TVM's with
            a tag such as ``htvm/diana``.
        patterns: which operators are taken; by default all that `register_patterns` registered.
            Without ``htvm.conv2d``, convolutions stay on the CPU. Patterns with other names are
            applied before, the first one first, and become regions of their own code generators.
        data: calibration inputs for retargeting, of a module that has one function only.

    Raises:
        TargetError: the target is not known, has no accelerators, or cannot be told by its name.

    The pass raises what `htvm.build` does for models in which regions were found impossible, and
    IntegerFormError for a function with regions of another target.
    """
    found = _named_target(target)
    register()
    for accelerator in found.accelerators:
        register_codegen(codegen_name(found.soc, accelerator))
    ours = registered_patterns()
    others = [entry for entry in patterns or () if not str(entry.name).startswith(PREFIX)]
    if patterns is not None and operators_of(ours) != operators_of(patterns):
        policy = _only(operators_of(ours) - operators_of(patterns), policy or found.policy, found)
    options = BuildOptions(tiling=tiling or TilingOptions(), policy=policy, rewrites=rewrites)

    def rewriting(module: IRModule, name: str) -> IRModule:
        model = load_module(module, name)
        return Compiled(model, found, options, data=data).partition.module

    return _pass("htvm.Partition", rewriting, others)


@public
def LowerToC(  # noqa: N802 - passes of TVM are named like classes
    target: str | Target | tvm.target.Target,
    *,
    policy: Policy | None = None,
    tiling: TilingOptions | None = None,
    rewrites: Literal["on", "off"] = "on",
    data: Any = None,
) -> Pass:
    """Return the pass that makes each function one call of the C that `htvm.build` makes of it.

    TVM's virtual machine then runs that C, on the target's device models.  A function that was
    partitioned for the target keeps its regions.

    Args:
        target, policy, tiling, rewrites, data: as for `Partition`; CPU targets, too.

    Raises:
        TargetError: the target is not known, or cannot be told by its name.

    The pass raises what `htvm.build` does; every function must be readable as a whole.
    """
    found = _known_target(target)
    options = BuildOptions(tiling=tiling or TilingOptions(), policy=policy, rewrites=rewrites)

    def run(module: IRModule, _context: Any) -> IRModule:
        public_names = [
            var
            for var, function in module.functions.items()
            if isinstance(function, relax.Function)
            and not _is_generators(function)
            and "global_symbol" in (function.attrs or ())
        ]
        others = {
            var: function for var, function in module.functions.items() if var not in public_names
        }
        calls = []
        lowered: dict[GlobalVar, Function] = {}
        for var in public_names:
            name, function = str(var.name_hint), module[var]
            main = function.with_attr("global_symbol", "main")
            model = load_module(ir.IRModule({**others, ir.GlobalVar("main"): main}), name)
            program = Compiled(model, found, options, data=data).program
            calls.append(PackedProgram(f"{name}_c", program))
            lowered[var] = _calling(calls[-1].symbol, function)
        return ir.IRModule(lowered).with_attr("external_mods", [library_of(calls, found.soc)])

    return tvm.transform.module_pass(run, opt_level=0, name="htvm.LowerToC")


def _calling(symbol: str, function: Function) -> Function:
    """Return a function with the same interface that calls an external one."""
    params = [relax.Var(str(param.name), param.ty) for param in function.params]
    builder = relax.BlockBuilder()
    with builder.function(str(function.attrs["global_symbol"]), params):
        with builder.dataflow():
            kinds = function.ret_ty
            kinds = list(kinds.fields) if isinstance(kinds, relax.TupleType) else kinds
            result = builder.emit_output(
                relax.call_dps_packed(symbol, relax.Tuple(params), out_ty=kinds)
            )
        builder.emit_func_output(result)
    (made,) = builder.get().functions.values()
    return made


@public
def registered_patterns() -> list[FusionPattern]:
    """Return the patterns of this project in TVM's registry, those with the highest priority first.

    Each is called ``htvm.`` and the kind of its operator, and gives its composites the attributes
    of `patterns.byoc.contract`.
    """
    register_patterns()
    return list(relax.backend.get_patterns_with_prefix(PREFIX))


def _only(left_out: Collection[str], policy: Policy, target: Target) -> Decide:
    """Return the policy that leaves operators of some kinds on the CPU, and else is another."""
    check_policy(policy)

    def decide(layer: LayerInfo, candidates: Sequence[Candidate]) -> str:
        if ("conv2d" if layer.op == "depthwise" else layer.op) in left_out:
            return CPU
        if isinstance(policy, Mapping):
            return policy.get(layer.name) or POLICIES[target.policy](layer, candidates)
        return (POLICIES[policy] if isinstance(policy, str) else policy)(layer, candidates)

    return decide


@public
def Retarget(  # noqa: N802 - passes of TVM are named like classes
    target: str | Target | tvm.target.Target,
    *,
    policy: Policy | None = None,
    rewrites: Literal["on", "off"] = "on",
    data: Any = None,
) -> Pass:
    """Return the pass that writes what can be read of a module in a target's number schemes.

    It is the first half of `Partition`, with the same arguments and errors.
    """
    found = _named_target(target)
    options = BuildOptions(policy=policy, rewrites=rewrites)

    def rewriting(module: IRModule, name: str) -> IRModule:
        model = load_module(module, name)
        return Compiled(model, found, options, data=data).retargeted.model.module

    return _pass("htvm.Retarget", rewriting)


def _named_target(target: str | Target | tvm.target.Target) -> Target:
    """Return a target with accelerators, whose name tells everything about it."""
    found = _known_target(target)
    if not found.accelerators:
        raise TargetError(
            "it has no accelerators, so there are no regions",
            where=f"target '{found.name}'",
            hint="htvm.relax.to_c makes C of a module for the CPU alone",
        )
    return found


def _known_target(target: str | Target | tvm.target.Target) -> Target:
    """Return a target whose name tells everything about it."""
    if isinstance(target, tvm.target.Target):
        keys = [str(key) for key in target.keys]
        target = next((key.removeprefix(TAG) for key in keys if key.startswith(TAG)), str(target))
    found = resolve(target)
    check_name(found)
    return found


def _pass(name: str, rewriting: _Rewriting, others: Sequence[FusionPattern] = ()) -> Pass:
    """Return a pass that rewrites islands, after the patterns of others have been applied."""

    def run(module: IRModule, _context: Any) -> IRModule:
        module = relax.transform.ConvertToDataflow()(_with_public_functions(module))
        if others:
            module = relax.transform.FuseOpsByPattern(others, annotate_codegen=True)(module)
        for var, function in list(module.functions.items()):
            if isinstance(function, relax.Function) and not _is_generators(function):
                module = _FunctionRewriter(module, var, function, rewriting).rewritten()
        return module

    return tvm.transform.module_pass(run, opt_level=0, name=name)


def _with_public_functions(module: IRModule) -> IRModule:
    """Return a module whose private functions are where they are called.

    RunCodegen makes code of regions in public functions only.
    """
    own = {
        var: function
        for var, function in module.functions.items()
        if isinstance(function, relax.Function) and not _is_generators(function)
    }
    private = {
        var: function
        for var, function in own.items()
        if "global_symbol" not in (function.attrs or ())
    }
    if not private or relax.analysis.detect_recursion(module):
        return module
    found = module.clone()
    for var in set(own) - set(private):
        found.update_func(var, own[var].inline_functions(private))
    for var in private:
        del found[var]
    return found


def _is_generators(function: Function) -> bool:
    """Whether a function belongs to a code generator."""
    attributes = function.attrs
    return attributes is not None and any(
        name in attributes for name in ("Codegen", "Composite", "Primitive")
    )


class _FunctionRewriter:
    """Puts what ``rewriting`` makes of a function's islands in their places."""

    def __init__(
        self, module: IRModule, var: GlobalVar, function: Function, rewriting: _Rewriting
    ) -> None:
        self._module = module
        self._builder = relax.BlockBuilder(module)
        self._var, self._function, self._rewriting = var, function, rewriting
        self._islands: dict[GlobalVar, Function] = {}
        self._quantized = _quantized(function)
        self._left: set[Var] = set()

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
            _log.warning("function '%s': %d bindings stay: %s", where, len(own), error.what)
        self._left |= unknown or own

    def _enter(self, found: IRModule) -> GlobalVar:
        """Enter what takes an island's place, with what it calls; return its name."""
        own = str(self._var.name_hint)
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
