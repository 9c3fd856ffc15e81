"""`Program`: a model as a sequence of C calls over one planned L2 arena.

:func:`assemble` takes the results of the earlier stages (CPU kernels, region code, constants) and
the order in which the model calls them, inlines every region as its kernels, gives every tensor its
place (a pointer of the caller, a constant, or bytes of the arena) and plans the arena.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from byoc_dory.emit.text import c_identifier
from byoc_dory.errors import ModelError
from byoc_dory.memory.arena import BufferUse, MemoryPlan, plan_memory, written_over
from byoc_dory.region import Constant
from byoc_dory.sharing import share_functions
from htvm.aot.assembler import Assembler, Assembly
from htvm.aot.constants import stored_once
from htvm.aot.steps import (
    Alias,
    CpuKernel,
    ModelCall,
    Provenance,
    Step,
    StepOperand,
    Streamed,
    Value,
)

if TYPE_CHECKING:
    from byoc_dory.region import Kernel, RegionCode
    from htvm.model import TensorInfo

__all__ = [
    "Alias",
    "Assembly",
    "BufferUse",
    "ModelCall",
    "StepOperand",
    "Program",
    "Step",
    "Value",
    "assemble",
    "buffers_of",
]


@dataclass(frozen=True, eq=False)
class Program:
    """All parts of a built model that become C.

    Attributes:
        name: C identifier that prefixes every external symbol of the model.
        inputs, outputs: inputs and outputs of the model, in the order of the entry function's
            parameters.
        steps: steps in execution order; a step's index is also that of its trace mark.
        buffers: buffers in the arena.
        constants: C arrays, sorted by name; of some, the definition may be in another program.
        plan: offset of each buffer in the arena.
        cpu_source, layers_source: C definitions of the kernels, those of equal geometry shared.
        prototypes: one declaration per function, in order of first use; then those that say
            whether all is ready.
        headers: C headers that ``layers_source`` needs.
        cpu_headers: C headers that ``cpu_source`` needs.
        aliases: (name, name of the tensor whose bytes it shares).
        files: the model's C files, name to text, if they already exist because an export was
            opened. ``None``: they are printed from the other fields.
        origin: provenance that the files' heads state; ``None`` for none.
        native: (definition in ``cpu_source``, what replaces it in programs of this machine).
        places: (number, address) of each input that stays in a memory besides L2 between runs.
        stack_bytes: reserved on the target for the stack; 0 if unknown.
        overwritten: (number, buffer) of each input that lies in the arena, where a run overwrites
            it.
        streamed: how the only input comes row by row; ``None``: as a whole.
    """

    name: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
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
    origin: Provenance | None = None
    native: tuple[tuple[str, str], ...] = ()
    places: tuple[tuple[int, int], ...] = ()
    stack_bytes: int = 0
    overwritten: tuple[tuple[int, str], ...] = ()
    streamed: Streamed | None = None

    @property
    def l2_inputs(self) -> tuple[TensorInfo, ...]:
        """The caller's inputs in L2: all but those with a place elsewhere or in the arena.

        Of one that comes row by row, that is a row.
        """
        if self.streamed is not None:
            batch, _, *others = self.inputs[0].shape
            return (replace(self.inputs[0], shape=(batch, 1, *others)),)
        elsewhere = {**dict(self.places), **dict(self.overwritten)}
        return tuple(each for number, each in enumerate(self.inputs) if number not in elsewhere)

    @property
    def native_source(self) -> str:
        """``cpu_source`` with what `native` replaces; empty if that is nothing."""
        source = self.cpu_source
        for definition, other in self.native:
            source = source.replace(definition, other)
        return "" if source == self.cpu_source else source

    @property
    def constant_bytes(self) -> int:
        """Bytes of all constants in L2 that it defines, not counting alignment gaps."""
        return self.bytes_in("")

    @property
    def constant_memories(self) -> tuple[str, ...]:
        """The memories besides L2 that hold constants."""
        return tuple(sorted({constant.memory for constant in self.constants} - {""}))

    def bytes_in(self, memory: str) -> int:
        """Return the bytes of constants in a memory, "" for L2, not counting alignment gaps."""
        own = [each for each in self.constants if not each.elsewhere]
        return sum(int(each.data.nbytes) for each in own if each.memory == memory)


def assemble(given: Assembly) -> Program:
    """Return the program of a model.

    Args:
        given: the calls, and everything that they refer to.

    Returns:
        The program with its planned arena (16-byte aligned offsets).

    Raises:
        ModelError: the calls contradict each other or the kernels' prototypes.
    """
    name, regions = given.name, stored_once(given.regions)
    if c_identifier(name) != name:
        raise ModelError(f"'{name}' is not usable as a C identifier", where="name of the program")
    kernels = {kernel.symbol: kernel for kernel in given.cpu_kernels}
    work = Assembler(given)
    used = _enter(work, given.calls, kernels, regions)
    work.results()
    buffers = work.buffers()
    plan = plan_memory(buffers)
    new = written_over(plan, buffers)
    over = {work.steps[use.first].symbol for use in buffers if use.name in new}
    cpu_used = _as_used([kernels[key] for key in used if key not in regions], over)
    regions_used = [regions[key] for key in used if key in regions]
    region_kernels = _distinct([kernel for code in regions_used for kernel in code.kernels])
    headers = [header for code in regions_used for header in code.headers]
    symbols = [kernel.symbol for kernel in cpu_used] + [kernel.symbol for kernel in region_kernels]
    _check_names(name, [*symbols, *work.constants])
    taken = {step.symbol for step in work.steps} | set(work.constants)
    taken |= {use.name for use in buffers}
    cpu_functions = share_functions(cpu_used, name, taken)
    taken |= {function.symbol for function in cpu_functions.functions}
    layer_functions = share_functions(region_kernels, name, taken)
    sharing = cpu_functions.merged_with(layer_functions)
    return Program(
        name=name,
        inputs=work.inputs,
        outputs=work.outputs,
        steps=work.finished_steps(sharing),
        buffers=buffers,
        constants=tuple(work.constants[key] for key in sorted(work.constants)),
        plan=plan,
        cpu_source=cpu_functions.source,
        layers_source=layer_functions.source,
        prototypes=(
            *(f.prototype.strip().rstrip("; \n") + ";" for f in sharing.functions),
            *(f"int32_t {kernel.ready}(void);" for kernel in region_kernels if kernel.ready),
        ),
        headers=tuple(dict.fromkeys(headers)),
        aliases=tuple(sorted(work.aliases.items())),
        cpu_headers=tuple(dict.fromkeys(h for kernel in cpu_used for h in kernel.headers)),
        origin=given.origin,
        native=tuple(
            (function.source.strip(), function.native.strip())
            for function in cpu_functions.functions
            if function.native
        ),
        places=tuple(sorted(given.places.items())),
        stack_bytes=given.stack_bytes,
        overwritten=work.overwritten(),
        streamed=work.streamed(),
    )


def buffers_of(given: Assembly) -> tuple[tuple[BufferUse, ...], int]:
    """Return the buffers of a program's arena, and the number of its steps."""
    work = Assembler(given)
    kernels = {kernel.symbol: kernel for kernel in given.cpu_kernels}
    _enter(work, given.calls, kernels, given.regions)
    work.results()
    return work.buffers(), len(work.steps)


def _enter(
    work: Assembler,
    calls: Sequence[ModelCall | Alias],
    kernels: Mapping[str, CpuKernel],
    regions: Mapping[str, RegionCode],
) -> tuple[str, ...]:
    """Enter all calls; return the kernels and regions that they name, in order of first use."""
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


def _as_used(kernels: Sequence[CpuKernel], over: Collection[str]) -> list[CpuKernel]:
    """Return the kernels, those in their simpler form whose output is never written over an input.

    A kernel that would share its function with one of ``over`` stays as it is.
    """
    shapes = {
        kernel.definition.shape
        for kernel in kernels
        if kernel.symbol in over and kernel.definition is not None
    }
    return [
        kernel
        if kernel.definition is not None and kernel.definition.shape in shapes
        else kernel.without_overlays
        for kernel in kernels
    ]


def _check_names(model: str, names: Sequence[str]) -> None:
    """Refuse two things of one name, which an emitter may make that chooses names itself."""
    known: set[str] = set()
    for name in names:
        if name in known:
            raise ModelError(
                f"two functions or arrays are called '{name}'",
                where=f"program '{model}'",
                hint="emitters name arrays with byoc_dory.emit.text.part_name",
            )
        known.add(name)


def _distinct(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Drop repetitions: two regions that read the same tensor convert it with the same function."""
    known: dict[str, Kernel] = {}
    for kernel in kernels:
        if known.setdefault(kernel.symbol, kernel).source != kernel.source:
            raise ModelError(f"two different kernels are called '{kernel.symbol}'", where="regions")
    return list(known.values())
