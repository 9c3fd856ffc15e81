"""What a report draws beside its tables: plain frozen values.

Units: sizes in bytes, times in cycles of the SoC's clock, energies in microjoules.  What was not
measured is ``None``, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Block", "Core", "Energy", "Machine", "MemoryMap", "Node", "Recipe"]


@dataclass(frozen=True)
class Block:
    """Bytes of a memory that are taken for a while.

    Attributes:
        name: the tensor that lies there.
        offset: of the first byte.
        bytes: how many.
        first, last: indices of the first and the last step (a row of the report) that need it,
            both inclusive.
        resident: whether it is in L1 as a whole and stays there between layers.
    """

    name: str
    offset: int
    bytes: int
    first: int
    last: int
    resident: bool = False


@dataclass(frozen=True)
class MemoryMap:
    """What lies where in a memory, and when.

    Attributes:
        memory: its name, "L1", or "L2 arena".
        limit: bytes there are.
        peak: bytes that are used.
        blocks: what lies there, in the order of their first step.
    """

    memory: str
    limit: int
    peak: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Node:
    """One operator of the network.

    Attributes:
        name: layer name.
        op: operator.
        accelerator: where it runs: short name of an accelerator, or "cpu".
        inputs: names of the operators and inputs of the network that it reads.
        macs: multiply-accumulates; 0 for operators without.
    """

    name: str
    op: str
    accelerator: str
    inputs: tuple[str, ...]
    macs: int = 0


@dataclass(frozen=True)
class Core:
    """An accelerator of the target.

    Attributes:
        name: short name.
        title: what it is called.
        peak_macs: multiply-accumulates per cycle at best; None where there is no such figure.
    """

    name: str
    title: str = ""
    peak_macs: float | None = None


@dataclass(frozen=True)
class Machine:
    """What the SoC is, as far as figures need it.

    Attributes:
        title: its name.
        host: its host core.
        cores: the accelerators that the target may use.
        dma_bytes_per_cycle: width of the DMA's port; None without a DMA.
    """

    title: str
    host: str
    cores: tuple[Core, ...] = ()
    dma_bytes_per_cycle: float | None = None

    def peak_of(self, accelerator: str) -> float | None:
        """Multiply-accumulates per cycle of an accelerator at best; None where unknown."""
        return next((core.peak_macs for core in self.cores if core.name == accelerator), None)


@dataclass(frozen=True)
class Energy:
    """Energy of a run, derived from published average powers.

    Attributes:
        microjoules: of the steps for which there is a power.
        cycles: of these steps.
        powers: each power that was used, in words, with its source.
    """

    microjoules: float
    cycles: int
    powers: tuple[str, ...]


@dataclass(frozen=True)
class Recipe:
    """How to make the same build, and the same report, again.

    Attributes:
        version: of this library.
        command: a command line, or a line of Python, that does it.
        options: (name, value) of every choice of the build, defaults included.
        model: where the model came from.
        model_sha256: of the model's file; empty where it was none.
        program_sha256: of the generated C: the same model, target and options give the same.
    """

    version: str
    command: str
    options: tuple[tuple[str, str], ...]
    model: str
    model_sha256: str = ""
    program_sha256: str = ""
