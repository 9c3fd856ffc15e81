"""`Program`: a model as a straight line of C calls over one planned L2 arena.

:func:`assemble` takes what the earlier stages made (CPU kernels, region code, constants) and the
order in which the model calls them, inlines every region as its kernels, gives every tensor its
place (a pointer of the caller, a constant, or bytes of the arena) and plans the arena.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.emit.text import c_identifier
from byoc_dory.errors import ModelError
from byoc_dory.memory.arena import BufferUse, MemoryPlan, plan_memory
from byoc_dory.region import Constant
from byoc_dory.sharing import share
from htvm.aot.assembler import Assembler, Assembly
from htvm.aot.steps import (
    Alias,
    Call,
    KernelCode,
    Operand,
    Origin,
    Step,
    TensorLike,
    Value,
)

if TYPE_CHECKING:
    from byoc_dory.region import Kernel, RegionCode

__all__ = [
    "Alias",
    "Assembly",
    "BufferUse",
    "Call",
    "Operand",
    "Program",
    "Step",
    "Value",
    "assemble",
]


@dataclass(frozen=True, eq=False)
class Program:
    """Everything of a built model that becomes C.

    Attributes:
        name: C identifier; every external symbol of the model starts with it.
        inputs, outputs: of the model, in the order of the entry function's parameters.
        steps: in execution order; the index is the trace mark's index.
        buffers: what the arena holds.
        constants: C arrays, sorted by name.
        plan: where each buffer lies in the arena.
        cpu_source, layers_source: C definitions of the kernels, those of equal geometry shared.
        prototypes: one declaration per function, in order of first use.
        headers: C headers ``layers_source`` needs.
        cpu_headers: C headers ``cpu_source`` needs.
        aliases: (name, name of the tensor whose bytes it shares).
        files: the model's C files, name to text, where they exist already: of an export that was
            opened again.  ``None``: they are printed from the rest.
        origin: what the files' heads say that it was made of; ``None``: nothing.
    """

    name: str
    inputs: tuple[TensorLike, ...]
    outputs: tuple[TensorLike, ...]
    steps: tuple[Step, ...]
    buffers: tuple[BufferUse, ...]
    constants: tuple[Constant, ...]
    plan: MemoryPlan
    cpu_source: str
    layers_source: str
    prototypes: tuple[str, ...]
    headers: tuple[str, ...]
    aliases: tuple[tuple[str, str], ...]
    files: Mapping[str, str] | None = None
    cpu_headers: tuple[str, ...] = ()
    origin: Origin | None = None

    @property
    def constant_bytes(self) -> int:
        """Bytes of all constants, without alignment gaps."""
        return sum(int(constant.data.nbytes) for constant in self.constants)


def assemble(given: Assembly) -> Program:
    """Make the program of a model.

    Args:
        given: the calls, and what they name.

    Returns:
        The program, its arena planned (16-byte aligned offsets).

    Raises:
        ModelError: the calls contradict each other or the kernels' prototypes.
    """
    name, regions = given.name, given.regions
    if c_identifier(name) != name:
        raise ModelError(f"'{name}' is not usable as a C identifier", where="name of the program")
    kernels = {kernel.symbol: kernel for kernel in given.cpu_kernels}
    work = Assembler(given)
    used = _enter(work, given.calls, kernels, regions)
    work.results()
    buffers = work.buffers()
    cpu_used = [kernels[key] for key in used if key not in regions]
    regions_used = [regions[key] for key in used if key in regions]
    region_kernels = _distinct([kernel for code in regions_used for kernel in code.kernels])
    headers = [header for code in regions_used for header in code.headers]
    taken = {step.symbol for step in work.steps} | set(work.constants)
    taken |= {use.name for use in buffers}
    cpu_functions = share(cpu_used, name, taken)
    taken |= {function.symbol for function in cpu_functions.functions}
    layer_functions = share(region_kernels, name, taken)
    sharing = cpu_functions.joined(layer_functions)
    return Program(
        name=name,
        inputs=work.inputs,
        outputs=work.outputs,
        steps=work.finished_steps(sharing),
        buffers=buffers,
        constants=tuple(work.constants[key] for key in sorted(work.constants)),
        plan=plan_memory(buffers),
        cpu_source=cpu_functions.source,
        layers_source=layer_functions.source,
        prototypes=tuple(
            function.prototype.strip().rstrip("; \n") + ";" for function in sharing.functions
        ),
        headers=tuple(dict.fromkeys(headers)),
        aliases=tuple(sorted(work.aliases.items())),
        cpu_headers=tuple(dict.fromkeys(h for kernel in cpu_used for h in kernel.headers)),
        origin=given.origin,
    )


def _enter(
    work: Assembler,
    calls: Sequence[Call | Alias],
    kernels: Mapping[str, KernelCode],
    regions: Mapping[str, RegionCode],
) -> tuple[str, ...]:
    """Enter all calls; return the kernels and regions they name, in order of first use."""
    used: dict[str, None] = {}
    for call in calls:
        if isinstance(call, Alias):
            work.alias(call)
            continue
        if call.target in regions:
            if call.target in used:
                raise ModelError(
                    f"region '{call.target}' is called twice", where=f"program '{work.name}'"
                )
            work.region(call, regions[call.target])
        elif call.target in kernels:
            work.cpu(call, kernels[call.target])
        else:
            raise ModelError(
                f"there is neither a kernel nor a region called '{call.target}'",
                where=f"program '{work.name}'",
            )
        used[call.target] = None
    return tuple(used)


def _distinct(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Drop repetitions: two regions that read one tensor convert it with the same function."""
    known: dict[str, Kernel] = {}
    for kernel in kernels:
        if known.setdefault(kernel.symbol, kernel).source != kernel.source:
            raise ModelError(f"two different kernels are called '{kernel.symbol}'", where="regions")
    return list(known.values())
