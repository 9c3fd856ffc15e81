"""From a SoC description to the machine that simulates it."""

from __future__ import annotations

from byoc_dory.soc.base import Soc
from byoc_dory.soc.header import render
from htvm.sim.host import model_sources
from htvm.sim.machine import Machine, SocModel
from htvm.sim.paths import runtime_c

__all__ = ["machine_of"]


def machine_of(soc: Soc) -> Machine:
    """Return the simulated machine of a SoC: L2 as its RAM, its devices, simulator registers."""
    memory = soc.memory("L2")
    return Machine(
        name=soc.name,
        ram=((memory.base, memory.size),),
        putchar=soc.sim.putchar,
        exit=soc.sim.exit,
        trace=soc.sim.trace,
        soc_model=SocModel(
            sources=model_sources(soc),
            includes=(runtime_c() / "soc" / soc.driver,),
            headers=(("htvm_soc.h", render(soc)),),
        ),
    )
