"""Builds of a model whose module the user's own passes were applied to.

TVM lowers the module as it lowers that of the plain configuration (``cpu_kernels="default"``), with
the same memory planning, compiler and core, so that their figures can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from byoc_dory.errors import HtvmError, InputError, ModelError, UnsupportedError
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.module import Module
from htvm.pipeline import program_makers

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.ir.transform import Pass

    from htvm.model import Model, TensorInfo
    from htvm.progress import Progress
    from patterns.byoc.partition import Partition

_LONGEST = 300  # characters of what another's error says


def check_pipelines(given: Mapping[str, Pass], names: Sequence[str]) -> Mapping[str, Pass]:
    """Check passes by name, before they are applied to anything.

    Args:
        given: the passes, by the names of their configurations.
        names: those of the other configurations.

    Raises:
        InputError: they are no mapping of names to passes, or a name is in use.
    """
    from tvm.ir.transform import Pass

    if not isinstance(given, Mapping):
        raise InputError(
            f"a {type(given).__name__} is no mapping of names to passes",
            where="option 'baselines'",
            hint='give a dict, such as {"my pipeline": tvm.transform.Sequential([...])}',
        )
    for name, found in given.items():
        if not isinstance(name, str) or not name or name in names:
            raise InputError(
                f"{name!r} cannot be a configuration's name",
                where="option 'baselines'",
                hint=f"use a text other than {', '.join(map(repr, names))}",
            )
        if not isinstance(found, Pass):
            what = found.__name__ if isinstance(found, type) else type(found).__name__
            raise InputError(
                f"{'the class' if isinstance(found, type) else 'a'} {what} is no pass of TVM",
                where=f"baseline '{name}'",
                hint="give what tvm.transform.Sequential([...]), a pass's class or "
                "tvm.transform.module_pass returns",
            )
    return given


def apply_pipeline(model: Model, name: str, given: Pass) -> IRModule:
    """Return the model's module after a pass that keeps its interface.

    Args:
        model: the model.
        name: name of the configuration, for messages.
        given: the pass.

    Raises:
        InputError: it fails; the message names the innermost pass under way, the cause is what it
            raised.
        ModelError: it returns no module, none with a function ``main``, or one with other inputs
            or outputs.
        UnsupportedError: a shape in the result is not known.
    """
    import tvm
    from tvm import relax

    from htvm.frontend.module import refuse_unknown_sizes

    where = f"baseline '{name}'"
    under_way = _under_way()
    current = tvm.transform.PassContext.current()
    context = tvm.transform.PassContext(
        opt_level=current.opt_level,
        required_pass=current.required_pass,
        disabled_pass=current.disabled_pass,
        instruments=[*(current.instruments or []), under_way],
        config=current.config,
    )
    try:
        with context, tvm.target.Target("c"):
            module = given(model.module)
    except Exception as error:
        raise InputError(
            f"pass '{under_way.innermost}' failed with {_said(error)}",
            where=where,
            hint="apply it to the model's module to see more: baselines[name](model.module)",
        ) from error
    main = next((f for var, f in module.functions.items() if var.name_hint == "main"), None)
    if not isinstance(main, relax.Function):
        raise ModelError(
            "its module has no Relax function 'main'",
            where=where,
            hint=f"it has {', '.join(sorted(var.name_hint for var in module.functions))}",
        )
    with _of_baseline(where):
        refuse_unknown_sizes(main)
    results = main.ret_ty.fields if isinstance(main.ret_ty, relax.TupleType) else [main.ret_ty]
    _check_interface("input", model.inputs, [param.ty for param in main.params], where)
    _check_interface("output", model.outputs, results, where)
    return module


def build_pipeline(
    model: Model, name: str, module: IRModule, target: str, progress: Progress
) -> Module:
    """Build a model from its module after a pass, which plain TVM lowers.

    Args:
        model: the model.
        name: name of the configuration, for messages.
        module: what `apply_pipeline` returned.
        target: a target without accelerators.
        progress: receives the stages.

    Raises:
        UnsupportedError: TVM cannot lower it, or what it lowers it to has no C form.
        IntegerFormError: ``main`` is not a single dataflow block.
        L2OverflowError: the program exceeds L2.
    """
    compiled = _FromModule(model, target, BuildOptions("default"), progress=progress)
    compiled.module = module
    where = f"baseline '{name}'"
    soc = compiled.target.soc
    with _of_baseline(where):
        try:
            compiled.finish()
        except HtvmError:
            raise
        except Exception as error:
            raise UnsupportedError(
                f"TVM cannot lower its module to C: {_said(error)}",
                hint="leave out passes for other targets than C on one core",
            ) from error
    built = program_makers()[soc.host.platform](compiled.program, soc, None)
    return Module(compiled, soc.host.platform, built)


class _FromModule(Compiled):
    """A build for a target without accelerators, of a module in place of the model's."""

    module: IRModule

    @cached_property
    def partition(self) -> Partition:
        """The module: there are no accelerators that could take anything."""
        from patterns.byoc.partition import Partition

        return Partition(self.module, {})


def _check_interface(what: str, infos: Sequence[TensorInfo], types: Any, where: str) -> None:
    """Refuse tensors other than the model's; their names do not matter.

    Raises:
        ModelError: the message has the first difference.
    """
    from tvm import relax

    from patterns.primitive import dtype_of, shape_of

    if len(infos) != len(types):
        raise ModelError(
            f"its module has {len(types)} {what}s, and the model {len(infos)}",
            where=where,
            hint="passes must keep the interface of 'main'",
        )
    for info, found in zip(infos, types, strict=True):
        wanted, tensor = f"{info.dtype} {list(info.shape)}", str(found)
        if isinstance(found, relax.TensorType):
            var = relax.Var("x", found)
            tensor = f"{dtype_of(var)} {list(shape_of(var))}"
        if tensor != wanted:
            raise ModelError(
                f"its module has {tensor} for {what} '{info.name}' of {wanted}",
                where=where,
                hint="passes must keep the interface of 'main'",
            )


@contextmanager
def _of_baseline(where: str) -> Iterator[None]:
    """Say in errors of ours which baseline they are about."""
    try:
        yield
    except HtvmError as error:
        error.where = f"{error.where}, {where}" if error.where else where
        raise


def _said(error: Exception) -> str:
    """Return an error's type and what it says, in one line that is not too long."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:_LONGEST]}"


def _under_way() -> Any:
    """Return an instrument of TVM that knows the innermost pass under way (``innermost``)."""
    import tvm

    @tvm.ir.instrument.pass_instrument
    class UnderWay:
        def __init__(self) -> None:
            self.names: list[str] = []

        @property
        def innermost(self) -> str:
            return self.names[-1] if self.names else "?"

        def run_before_pass(self, _: IRModule, info: Any) -> None:
            self.names.append(str(info.name))

        def run_after_pass(self, _: IRModule, __: Any) -> None:
            self.names.pop()

    return UnderWay()
