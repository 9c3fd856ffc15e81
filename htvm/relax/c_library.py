"""`to_c`: the functions of any Relax module as self-contained C, without a target."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byoc_dory.emit.text import INTERFACE, Symbols, c_identifier
from byoc_dory.errors import HtvmError, ModelError, UnsupportedError, first_line, nearest
from htvm.aot.constants import ConstantPool, distinct
from htvm.aot.entry import origin_lines, render
from htvm.aot.program import Assembly, Program, assemble
from htvm.aot.steps import Provenance
from htvm.firmware.export import write_project
from htvm.firmware.manifest import FILE, SCHEMA
from htvm.firmware.packages import library_files
from htvm.firmware.paths import network_path
from htvm.model import TensorInfo, model_name
from htvm.public import boundary
from htvm.version import __version__

if TYPE_CHECKING:
    from tvm.ir import IRModule

_FILES = ("", "_cpu", "_kernels", "_layers", "_weights")
"""Ends of the names of a function's files."""


@boundary
@dataclass(frozen=True, eq=False)
class CFunction:
    """A function of a module in C: ``int32_t <name>_run(inputs..., outputs...)``.

    Attributes:
        function: its name in the module.
        name: what its names in C begin with.
        inputs: its tensors in the order of the parameters; the fields of a tuple one by one.
        outputs: its results, in the same way.
        header: text of its header.
        arena_bytes: bytes of its intermediate tensors.
        arena_bound: the largest sum of the intermediate tensors that live at the same time: no
            plan takes fewer bytes. A result may lie over a tensor that nobody reads again.
        constant_bytes: bytes of its constants, without those of functions before it, which it
            shares.
        steps: number of kernels that it calls.
    """

    function: str
    name: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    header: str = field(repr=False)
    arena_bytes: int
    arena_bound: int
    constant_bytes: int
    steps: int


@boundary
@dataclass(frozen=True, eq=False)
class CLibrary:
    """Functions of a module as self-contained C11.

    Attributes:
        name: what all names begin with.
        functions: one for each function of the module that others may call.
        files: path inside a folder -> text: C in ``src``, headers in ``include``,
            ``CMakeLists.txt``, ``README.md``, and the interface as data in ``htvm.json``.
    """

    name: str
    functions: tuple[CFunction, ...]
    files: Mapping[str, str] = field(repr=False)

    @cached_property
    def sources(self) -> Mapping[str, str]:
        """The C files and headers alone, by name."""
        return {
            Path(path).name: text
            for path, text in self.files.items()
            if path.endswith((".c", ".h"))
        }

    @property
    def header(self) -> str:
        """Text of ``<name>.h``, which has the interface of all functions."""
        return self.files[f"include/{self.name}.h"]

    @property
    def arena_bytes(self) -> int:
        """Bytes of the intermediate tensors of all functions: each has an arena of its own."""
        return sum(each.arena_bytes for each in self.functions)

    @property
    def constant_bytes(self) -> int:
        """Bytes of the constants of all functions."""
        return sum(each.constant_bytes for each in self.functions)

    def write(self, folder: str | Path) -> Path:
        """Write the files as a CMake library, completely or not at all.

        Args:
            folder: folder to create; it may exist if it is empty or holds an unchanged earlier one.

        Returns:
            The folder.

        Raises:
            ExportError: the folder cannot be written, or holds something else; it is left
                unchanged.
        """
        return write_project(self.files, Path(folder))


@boundary
def to_c(
    module: IRModule, *, name: str = "model", entry: str | Sequence[str] | None = None
) -> CLibrary:
    """Compile functions of a Relax module to self-contained C.

    Any module whose shapes are static and whose operators TVM lowers to loops: float or integer,
    with tuples, PrimFuncs of one's own, and functions that call others. TVM legalizes, fuses and
    prints the kernels; memory is planned here. The C needs ``math.h`` if the network calls
    mathematical functions, allocates nothing, and is the same each time.

    Args:
        module: the module.
        name: C identifier that all names begin with. A module with one function to compile has
            ``<name>_run``; with several, each has ``<name>_<function>_run``.
        entry: the function to compile, or several; by default, all that the module makes public.

    Raises:
        ModelError: this is no Relax module, it has no such function, a function calls itself, or
            ``name`` is no C identifier, or is taken by a header of C or a target of CMake.
        UnsupportedError: a shape is not static, or something has no C form: an operator that TVM
            does not lower, control flow, a call of a function outside of the module. The message
            names function and binding.
    """
    functions = _entries(module, entry)
    if model_name(name) != name:
        raise ModelError(
            f"'{name}' is not usable as a C identifier, or is what a header or target is called",
            where="option 'name'",
            hint=f"{model_name(name)} can",
        )
    names = [name] if len(functions) == 1 else _names(name, functions)
    used = {f"{each}_{word}" for each in names for word in INTERFACE}
    programs = []
    pool = ConstantPool()
    for function, prefix in zip(functions, names, strict=True):
        pool = pool.elsewhere()
        programs.append(_program(module, function, prefix, used, pool))
        used |= {step.function for step in programs[-1].steps}
        used |= {constant.name for constant in programs[-1].constants}
    return _library(name, functions, programs)


def _entries(module: IRModule, entry: str | Sequence[str] | None) -> list[str]:
    """Return the names of the functions to compile.

    Raises:
        ModelError: this is no module, or has no such functions.
    """
    from tvm import relax
    from tvm.ir import IRModule

    if not isinstance(module, IRModule):
        raise ModelError(
            f"a {type(module).__name__} is no Relax module",
            hint="give a tvm.IRModule, such as an importer of tvm.relax.frontend returns",
        )
    functions = {
        str(var.name_hint): function
        for var, function in module.functions.items()
        if isinstance(function, relax.Function)
    }
    if entry is None:
        public = [name for name, each in functions.items() if _is_public(each.attrs or {})]
        if not public:
            raise ModelError(
                "the module has no public Relax function",
                where="module",
                hint="name one with the option 'entry'" if functions else "",
            )
        return sorted(public)
    if not isinstance(entry, str) and not isinstance(entry, Iterable):
        raise ModelError(
            f"a {type(entry).__name__} names no function",
            where="option 'entry'",
            hint="give a name, or several",
        )
    chosen = [entry] if isinstance(entry, str) else list(entry)
    if not chosen:
        raise ModelError("no function is named", where="option 'entry'", hint="name at least one")
    for each in chosen:
        if each not in functions:
            raise ModelError(
                f"the module has no Relax function '{each}'",
                where="option 'entry'",
                hint=f"{nearest(each, functions)}it has {', '.join(sorted(functions)) or 'none'}",
            )
    return list(dict.fromkeys(chosen))


def _is_public(attrs: Any) -> bool:
    """Whether others may call a function: not one that a pass has cut out of another."""
    parts = ("Codegen", "Composite", "Primitive")
    return "global_symbol" in attrs and not any(part in attrs for part in parts)


def _names(name: str, functions: Sequence[str]) -> list[str]:
    """Return a name in C for each function, so that no two have a file of the same name."""
    names, files = list[str](), {name}
    for function in functions:
        base = found = c_identifier(f"{name}_{function}")
        number = 1
        while files & {f"{found}{end}" for end in _FILES}:
            number += 1
            found = f"{base}_{number}"
        files |= {f"{found}{end}" for end in _FILES}
        names.append(found)
    return names


def _program(
    module: IRModule, function: str, name: str, used: set[str], pool: ConstantPool
) -> Program:
    """Compile one function.

    Args:
        module: that has it.
        function: its name.
        name: what its names in C begin with.
        used: names in C of the functions before it.
        pool: their constants; its own are added.
    """
    from htvm.aot.cpu import compile_cpu
    from htvm.relax.checks import shape_of
    from htvm.relax.flatten import culprit, flattened
    from patterns.reading.walk import module_sha256

    flat = flattened(module, function)
    symbols = Symbols(name)
    symbols.enter(used)
    try:
        cpu = compile_cpu(flat.module, name, symbols=symbols, exact=False, scarce=True, pool=pool)
    except HtvmError as error:
        error.where = ", ".join(filter(None, (f"function '{function}'", error.where)))
        raise
    except RuntimeError as error:  # of TVM's own checks
        raise UnsupportedError(
            f"TVM does not lower it: {first_line(error)}",
            where=f"function '{function}'{culprit(flat.module)}",
            hint="write this operator as a PrimFunc, or with other operators",
        ) from error
    main = flat.module["main"]
    results = main.ret_ty.fields

    def infos(names: Sequence[str], types: Sequence[Any]) -> list[TensorInfo]:
        pairs = zip(distinct(names), types, strict=True)
        return [TensorInfo(each, shape_of(ty), str(ty.dtype.dtype)) for each, ty in pairs]

    return assemble(
        Assembly(
            name=name,
            inputs=infos(flat.inputs, [param.ty for param in main.params]),
            outputs=infos(flat.results, results),
            calls=cpu.calls,
            results=cpu.results,
            cpu_kernels=cpu.kernels,
            constants=cpu.constants,
            parameters=[str(param.name) for param in cpu.module["main"].params],
            origin=Provenance(__version__, "IRModule", module_sha256(flat.module)),
        )
    )


def _library(name: str, functions: Sequence[str], programs: Sequence[Program]) -> CLibrary:
    texts: dict[str, str] = {}
    described = []
    for function, program in zip(functions, programs, strict=True):
        files = library_files(program)
        texts |= {network_path(program.name, file): text for file, text in files.items()}
        plan = program.plan
        described.append(
            CFunction(
                function=function,
                name=program.name,
                inputs=program.inputs,
                outputs=program.outputs,
                header=files[f"{program.name}.h"],
                arena_bytes=plan.peak,
                arena_bound=plan.bound,
                constant_bytes=program.constant_bytes,
                steps=len(program.steps),
            )
        )
    fields = {
        "name": name,
        "NAME": name.upper(),
        "functions": described,
        "version": __version__,
        "sources": sorted(path for path in texts if path.endswith(".c")),
        "math": any("#include <math.h>" in text for text in texts.values()),
        "origin": origin_lines(programs[0].origin),
    }
    if len(programs) > 1:
        texts[f"include/{name}.h"] = render("package/relax.h.jinja", **fields)
    for path in ("CMakeLists.txt", "README.md"):
        texts[path] = render(f"package/relax_{path}.jinja", **fields)
    texts[FILE] = _manifest(name, described, programs[0].origin)
    return CLibrary(name, tuple(described), dict(sorted(texts.items())))


def _manifest(name: str, functions: Sequence[CFunction], origin: Provenance | None) -> str:
    """Return the interface as data; as in other packages, memory is in bytes."""
    data = {
        "schema": SCHEMA,
        "kind": "package",
        "htvm": __version__,
        "name": name,
        "build_system": "relax",
        "functions": [
            {key: value for key, value in asdict(each).items() if key != "header"}
            for each in functions
        ],
        "origin": None if origin is None else asdict(origin),
    }
    return json.dumps(data, indent=1, allow_nan=False) + "\n"
