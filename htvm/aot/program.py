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
from htvm.aot.assembler import Assembler
from htvm.aot.steps import (
    Alias,
    Call,
    CpuCode,
    Operand,
    Step,
    TensorLike,
    Value,
)

if TYPE_CHECKING:
    from byoc_dory.region import Kernel, RegionCode

__all__ = ["Alias", "BufferUse", "Call", "Operand", "Program", "Step", "Value", "assemble"]


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
        cpu_source, layers_source: the kernels' C definitions.
        prototypes: one declaration per kernel, in order of first use.
        headers: C headers ``layers_source`` needs.
        cpu_headers: C headers ``cpu_source`` needs.
        aliases: (name, name of the tensor whose bytes it shares).
        files: the model's C files, name to text, where they exist already: of an export that was
            opened again.  ``None``: they are printed from the rest.
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

    @property
    def constant_bytes(self) -> int:
        """Bytes of all constants, without alignment gaps."""
        return sum(int(constant.data.nbytes) for constant in self.constants)


def assemble(
    name: str,
    inputs: Sequence[TensorLike],
    outputs: Sequence[TensorLike],
    calls: Sequence[Call | Alias],
    results: Sequence[str],
    cpu_kernels: Sequence[CpuCode] = (),
    regions: Mapping[str, RegionCode] | None = None,
    constants: Mapping[str, Constant] | None = None,
    parameters: Sequence[str] | None = None,
) -> Program:
    """Make the program of a model.

    Args:
        name: C identifier, prefix of all external symbols.
        inputs: of the model.
        outputs: of the model.
        calls: in execution order.
        results: for each output, the tensor (or input, or constant) that is returned.
        cpu_kernels: each called any number of times, by ``symbol``.
        regions: by the name calls use.
        constants: arrays that calls pass to CPU kernels, by the name calls use.  Their C symbol
            is the constant's own name, with the model's name put before it where missing.
        parameters: the names calls use for the inputs, if these are not the inputs' own.

    Returns:
        The program, its arena planned (16-byte aligned offsets).

    Raises:
        ModelError: the calls contradict each other or the kernels' prototypes.
    """
    if c_identifier(name) != name:
        raise ModelError(f"'{name}' is not usable as a C identifier", where="name of the program")
    regions = regions or {}
    kernels = {kernel.symbol: kernel for kernel in cpu_kernels}
    parameters = [info.name for info in inputs] if parameters is None else parameters
    work = Assembler(name, inputs, outputs, results, constants or {}, parameters)
    used = _enter(work, calls, kernels, regions)
    work.results()
    buffers = work.buffers()
    cpu_used = [kernels[key] for key in used if key not in regions]
    regions_used = [regions[key] for key in used if key in regions]
    region_kernels = _distinct([kernel for code in regions_used for kernel in code.kernels])
    headers = [header for code in regions_used for header in code.headers]
    prototypes = [kernel.prototype for kernel in cpu_used]
    prototypes += [kernel.prototype for kernel in region_kernels]
    return Program(
        name=name,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        steps=work.finished_steps(),
        buffers=buffers,
        constants=tuple(work.constants[key] for key in sorted(work.constants)),
        plan=plan_memory(buffers),
        cpu_source="\n".join(kernel.source.strip() + "\n" for kernel in cpu_used),
        layers_source="\n".join(kernel.source.strip() + "\n" for kernel in region_kernels),
        prototypes=tuple(prototype.strip().rstrip("; \n") + ";" for prototype in prototypes),
        headers=tuple(dict.fromkeys(headers)),
        aliases=tuple(sorted(work.aliases.items())),
        cpu_headers=tuple(dict.fromkeys(h for kernel in cpu_used for h in kernel.headers)),
    )


def _enter(
    work: Assembler,
    calls: Sequence[Call | Alias],
    kernels: Mapping[str, CpuCode],
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
