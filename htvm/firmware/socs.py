"""Building the simulated machine from a SoC description."""

from __future__ import annotations

from byoc_dory.errors import TargetError
from byoc_dory.soc.base import Soc
from byoc_dory.soc.header import render
from htvm.firmware.host import model_sources
from htvm.firmware.isa import compiled_isa
from htvm.firmware.machine import Machine, SocModel
from htvm.firmware.paths import soc_folder


def machine_of(soc: Soc) -> Machine:
    """Return the simulated machine of a SoC: harts, memories they reach, devices, registers.

    Raises:
        TargetError: its core is not simulated.
    """
    if soc.host.platform != "rv32":
        raise TargetError(
            f"the simulator has no {soc.host.name}",
            where="platform 'rv32'",
            hint=f"use platform='{soc.host.platform}'",
        )
    memory = soc.memory("L2")
    # The simulator has one memory for all: where flash is another, its bytes are added.
    room = 0 if soc.code_memory == "L2" else soc.memory(soc.code_memory).size
    near_memories = [other for other in soc.memories if other.mapped]
    stacks = [other for other in near_memories if other.name == soc.host.stack_memory]
    return Machine(
        name=soc.name,
        ram=(
            (memory.base, memory.size + room),
            *((other.base, other.size + other.reserved) for other in near_memories),
        ),
        putchar=soc.sim.putchar,
        exit=soc.sim.exit,
        trace=soc.sim.trace,
        soc_model=SocModel(
            sources=model_sources(soc),
            includes=(soc_folder(soc),),
            headers=(("htvm_soc.h", render(soc)),),
        ),
        isa=compiled_isa(soc.host),
        harts=soc.cluster.harts if soc.cluster is not None else 1,
        l1=(stacks[0].end, stacks[0].reserved) if stacks else None,
        constants=tuple(
            (other.name, other.base, other.size) for other in soc.memories if other.constants
        ),
        worker_stack=soc.cluster.worker_stack if soc.cluster is not None else 0,
    )
