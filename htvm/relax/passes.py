"""Stages of a build as passes of TVM, for a pipeline of one's own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import tvm
from tvm import ir, relax

from byoc_dory.emit.text import c_identifier
from byoc_dory.errors import InputError, IntegerFormError, TargetError
from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import Target
from byoc_dory.soc.registry import resolve
from byoc_dory.verdict import CPU
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.frontend.module import load_module
from htvm.policy import POLICIES, check_policy
from htvm.public import public
from htvm.relax.autoload import TAG, register
from htvm.relax.functions import (
    Rewriting,
    is_of_generator,
    rewritten,
    with_dataflow,
    with_public_functions,
)
from htvm.relax.library import PackedProgram, check_name, library_of
from patterns.byoc.codegen import register_codegen
from patterns.byoc.contract import is_region, target_of
from patterns.byoc.partition import codegen_name
from patterns.byoc.registered import PREFIX, operators_of, register_patterns

if TYPE_CHECKING:
    from tvm.ir import GlobalVar, IRModule
    from tvm.relax import Function
    from tvm.relax.transform import FusionPattern
    from tvm.transform import Pass

    from htvm.policy import Candidate, Decide, LayerInfo, Policy


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
        patterns: which operators are taken; by default all of `registered_patterns`.
            Without ``htvm.conv2d``, convolutions stay on the CPU. Patterns with other names are
            applied before, the first one first, and become regions of their own code generators.
        data: calibration inputs for retargeting, of a module that has one function only.

    Raises:
        TargetError: the target is not known, has no accelerators, or cannot be told by its name.

    The pass raises what `htvm.build` does for models in which regions were found impossible, and
    IntegerFormError for a function with regions of another target.
    """
    found = _named_target(target)
    register_target(found)
    ours = registered_patterns()
    if patterns is not None:
        patterns = _fusion_patterns(patterns)
    others = [entry for entry in patterns or () if not str(entry.name).startswith(PREFIX)]
    if patterns is not None and operators_of(ours) != operators_of(patterns):
        policy = _only(operators_of(ours) - operators_of(patterns), policy or found.policy, found)
    options = BuildOptions(tiling=tiling or TilingOptions(), policy=policy, rewrites=rewrites)

    def rewriting(module: IRModule, name: str) -> IRModule:
        model = load_module(module, name)
        return Compiled(model, found, options, data=data).partition.module

    return _pass("htvm.Partition", found.name, rewriting, others)


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
        attributes = dict(module.attrs.items()) if module.attrs else {}
        public_names = [
            var
            for var, function in module.functions.items()
            if isinstance(function, relax.Function)
            and not is_of_generator(function)
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
            calls.append(PackedProgram(f"{c_identifier(name)}_c", program))
            lowered[var] = _calling(calls[-1].symbol, function)
        attributes["external_mods"] = [
            *attributes.get("external_mods", ()),
            library_of(calls, found.soc),
        ]
        return ir.IRModule(lowered).with_attrs(attributes)

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
    return made.with_attrs(dict(function.attrs.items()))


@public
def registered_patterns() -> list[FusionPattern]:
    """Return the patterns of this project in TVM's registry, those with the highest priority first.

    Each is called ``htvm.`` and the kind of its operator, and gives its composites the attributes
    of `patterns.byoc.contract`.
    """
    register_patterns()
    return list(relax.backend.get_patterns_with_prefix(PREFIX))


def _fusion_patterns(patterns: Any) -> list[FusionPattern]:
    """Return patterns, also those given as tuples, as TVM's passes take them.

    Raises:
        InputError: it is no list of these.
    """
    from tvm.relax.transform import FusionPattern

    try:
        return [
            entry if isinstance(entry, FusionPattern) else FusionPattern(*entry)
            for entry in patterns
        ]
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(
            f"{patterns!r} is no list of patterns",
            where="option 'patterns'",
            hint="give some of htvm.relax.registered_patterns(), and FusionPatterns of your own",
        ) from error


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

    return _pass("htvm.Retarget", found.name, rewriting)


def register_target(target: Target) -> None:
    """Register in TVM the code generators of a target's regions, and what makes their library.

    Raises:
        TargetError: the target's name does not tell all of it.
    """
    check_name(target)
    register()
    for accelerator in target.accelerators:
        register_codegen(codegen_name(target.soc, accelerator))


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


def _pass(
    name: str, target: str, rewriting: Rewriting, others: Sequence[FusionPattern] = ()
) -> Pass:
    """Return a pass that rewrites islands, after the patterns of others have been applied."""

    def run(module: IRModule, _context: Any) -> IRModule:
        module = with_dataflow(with_public_functions(module))
        if others:
            module = relax.transform.FuseOpsByPattern(others, annotate_codegen=True)(module)
        for var, function in module.functions.items():
            if is_region(function) and target_of(function) != target:
                raise IntegerFormError(
                    f"a region of '{target_of(function)}', not of '{target}'",
                    where=f"function '{var.name_hint}'",
                    hint="partition a module for one target",
                )
        return rewritten(module, rewriting)

    return tvm.transform.module_pass(run, opt_level=0, name=name)
