"""`region_library`: regions as a library that TVM's virtual machine calls, saves and loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byoc_dory import generate
from byoc_dory.cost import Cost
from byoc_dory.emit.text import Symbols
from byoc_dory.errors import TargetError, UnsupportedError
from byoc_dory.soc.registry import resolve
from htvm.aot.entry import model_sources, render, template_fields
from htvm.aot.program import Assembly, Program, assemble
from htvm.aot.steps import ModelCall, Value
from htvm.firmware import host
from htvm.firmware.builds import kept_build
from htvm.firmware.diagnostics import CompileError
from htvm.firmware.toolchain import HOST_FLAGS, Compiler
from htvm.model import TensorInfo
from htvm.public import public
from patterns.byoc.codegen import weights_of
from patterns.byoc.contract import check_region, options_of, region_of, returned_by, target_of
from patterns.primitive import dtype_of, shape_of

if TYPE_CHECKING:
    from tvm.relax import Function, Var
    from tvm.runtime import Module

    from byoc_dory.region import RegionCode
    from byoc_dory.soc.base import Soc, Target


@dataclass(frozen=True, eq=False)
class PackedProgram:
    """A program, and the name that TVM calls it by.

    Attributes:
        symbol: name of the packed function.
        program: the program; the function takes its inputs and outputs, in order.
    """

    symbol: str
    program: Program


def region_library(functions: Sequence[Function]) -> Module:
    """Return a library of TVM's with the regions, their drivers and the SoC's device models.

    It exports a packed function for each region, so that a module that was saved with it needs
    neither this project nor a compiler to run.  Every call begins with the devices as after a
    reset.

    Args:
        functions: the regions' functions, with the attributes of `patterns.byoc.contract`.

    Raises:
        IntegerFormError: a region was changed, or is of another version.
        UnsupportedError: the regions are of several targets, whose device models cannot be in one
            library.
        TargetError, TilingError: as for `htvm.build`.
        ToolchainError: there is no C compiler, or it failed.
    """
    named = [(str(function.attrs["global_symbol"]), function) for function in functions]
    for symbol, function in named:
        check_region(symbol, function)
    settings = {(target_of(function), options_of(function)) for function in functions}
    if len(settings) != 1:
        targets = sorted({name for name, _ in settings})
        raise UnsupportedError(
            f"regions of {' and '.join(targets)}"
            + (" with different options" if len(targets) == 1 else "")
            + " cannot be in one library",
            where=f"functions {', '.join(symbol for symbol, _ in named)}",
            hint="partition all functions of a module for one target with the same options",
        )
    ((target, options),) = settings
    soc = resolve(target).soc
    cost = Cost(soc, options)
    regions = {symbol: region_of(symbol, function) for symbol, function in named}
    weights = weights_of(regions.values(), cost)
    calls = []
    for number, (symbol, function) in enumerate(named):
        name = f"{soc.name}_region_{number}"
        code = generate(regions[symbol], cost, name, weights=weights.homes, symbols=Symbols(name))
        calls.append(PackedProgram(symbol, _program(name, function, code, soc)))
    return library_of(calls, soc)


def library_of(calls: Sequence[PackedProgram], soc: Soc) -> Module:
    """Return a library of TVM's with programs as packed functions, on a SoC's device models.

    Raises:
        ToolchainError: there is no C compiler, or it failed.
    """
    from tvm.runtime import load_static_library

    return load_static_library(str(_compiled(calls, soc)), [call.symbol for call in calls])


def check_name(target: Target) -> None:
    """Refuse a target whose name, which is all that regions carry of it, does not tell all of it.

    Raises:
        TargetError: the target of that name has other numbers.
    """
    if resolve(target.name) != target:
        raise TargetError(
            "its name does not tell all of its numbers, and regions carry the name",
            where=f"target '{target.name}'",
            hint="register the SoC as a package (docs/packages.md), or give parameters in the name",
        )


def _program(name: str, function: Function, code: RegionCode, soc: Soc) -> Program:
    """Return the program that consists of one region."""

    def described(names: Sequence[str], variables: Sequence[Var]) -> list[TensorInfo]:
        pairs = zip(names, variables, strict=True)
        return [TensorInfo(label, shape_of(var), dtype_of(var)) for label, var in pairs]

    inputs = described([tensor.name for tensor in code.inputs], list(function.params))
    outputs = described([tensor.name for tensor in code.outputs], returned_by(function))
    values = tuple(Value(info.name, info.shape, info.dtype) for info in outputs)
    call = ModelCall(code.name, tuple(info.name for info in inputs), values)
    return assemble(
        Assembly(
            name=name,
            inputs=inputs,
            outputs=outputs,
            calls=[call],
            results=[value.name for value in values],
            regions={code.name: code},
            stack_bytes=soc.host.stack,
        )
    )


def _compiled(calls: Sequence[PackedProgram], soc: Soc) -> Path:
    """Return the object file of the regions, building it if necessary."""
    compiler = Compiler.zig()
    described = [{**template_fields(call.program), "symbol": call.symbol} for call in calls]
    files = {"packed.c": render("packed.c.jinja", calls=described, soc=soc.name)}
    for call in calls:
        files |= model_sources(call.program, strings=True)

    def make(folder: Path, sources: list[Path]) -> None:
        host.build_object(sources, soc, folder / "regions.o", compiler)

    return kept_build(
        "regions.o", files, soc, ("library", *HOST_FLAGS, *compiler.host), compiler, None, make
    )


@public
def link(library: str, objects: Sequence[str], **_: Any) -> None:
    """Link a library of TVM's by the C compiler that is installed as a package.

    To be given as ``fcompile`` to ``export_library`` and ``jit`` of what ``tvm.compile`` returns:
    by itself, TVM calls a compiler of the system, which there may not be.

    Args:
        library: the library to be written.
        objects: object files and sources.

    Raises:
        ToolchainError: the compiler is not installed, or failed.
        UnsupportedError: there are two libraries of regions, each with device models.
    """
    try:
        Compiler.zig().compile_host([Path(each) for each in objects], Path(library), shared=True)
    except CompileError as error:
        if "htvm_host_begin" not in error.output:
            raise
        raise UnsupportedError(
            "two libraries of regions in one program, each with device models of its own",
            where=library,
            hint="run RunCodegen or LowerToC once, after all functions are partitioned",
        ) from error
