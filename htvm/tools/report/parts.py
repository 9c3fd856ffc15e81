"""Parts of a report beside its steps: operators, the SoC, energy, the recipe, decisions.

Units: sizes in bytes, times in cycles of the SoC's clock, energies in microjoules.  Anything not
measured is ``None``, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from htvm.activity import MemoryBlock, MemoryMap

__all__ = [
    "MemoryBlock", "Core", "Energy", "Estimate", "SocInfo", "MemoryAccess", "MemoryMap",
    "NetworkNode", "Recipe",
]  # fmt: skip


@dataclass(frozen=True)
class NetworkNode:
    """One operator of the network.

    Attributes:
        name: layer name.
        op: operator.
        accelerator: short name of the accelerator that runs it, or "cpu".
        inputs: names of the operators and network inputs that it reads.
        macs: multiply-accumulates; 0 for operators without any.
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
        title: its full name.
        peak_macs: peak multiply-accumulates per cycle; None if not defined.
    """

    name: str
    title: str = ""
    peak_macs: float | None = None


@dataclass(frozen=True)
class Estimate:
    """A layer of a program that an accelerator's own compiler planned, by its estimate.

    Attributes:
        layer: layer name.
        accelerator: short name of the accelerator.
        cycles: estimated cycles of the accelerator.
        causes: what binds its operators, with cycles that add up to these.
        memory_cycles: memories, with the cycles that its accesses take, beside each other and the
            computation.
    """

    layer: str
    accelerator: str
    cycles: int
    causes: tuple[tuple[str, int], ...]
    memory_cycles: tuple[tuple[str, int], ...] = ()

    @property
    def bound(self) -> str:
        """What takes most of the cycles; empty without any."""
        return max(self.causes, key=lambda cause: cause[1], default=("", 0))[0]


@dataclass(frozen=True)
class MemoryAccess:
    """Estimated accesses of a memory by such programs.

    Attributes:
        memory: its name.
        cycles: cycles that they take, beside the computation and those of other memories.
        read, written: bytes.
    """

    memory: str
    cycles: int
    read: int
    written: int


@dataclass(frozen=True)
class SocInfo:
    """The SoC, as far as figures need it.

    Attributes:
        title: its name.
        host: its host core.
        cores: the accelerators that the target may use.
        dma_bytes_per_cycle: width of the DMA's port in bytes; None without a DMA.
    """

    title: str
    host: str
    cores: tuple[Core, ...] = ()
    dma_bytes_per_cycle: float | None = None

    def peak_of(self, accelerator: str) -> float | None:
        """Return an accelerator's peak multiply-accumulates per cycle; None if unknown."""
        return next((core.peak_macs for core in self.cores if core.name == accelerator), None)


@dataclass(frozen=True)
class Energy:
    """Energy of a run, derived from published average powers.

    Attributes:
        microjoules: energy of the steps with a known power.
        cycles: number of cycles of these steps.
        powers: each power that was used, as text with its source.
    """

    microjoules: float
    cycles: int
    powers: tuple[str, ...]


@dataclass(frozen=True)
class Recipe:
    """How to reproduce the build and the report.

    Attributes:
        version: version of this library.
        command: a command line, or a line of Python, that reproduces it.
        options: (name, value) of every choice of the build, defaults included.
        model: source of the model.
        model_sha256: hash of the model's file; empty without a file.
        program_sha256: hash of the generated C, which depends only on model, target and options.
    """

    version: str
    command: str
    options: tuple[tuple[str, str], ...]
    model: str
    model_sha256: str = ""
    program_sha256: str = ""


@dataclass(frozen=True)
class Decisions:
    """Decisions on inputs with labels; a decision is the largest output (the first of equal ones).

    Attributes:
        samples: number of inputs.
        source: of these, decided by the source model as the label says.
        build: of these, decided by the build as the label says.
        same: of these, decided by both alike, rightly or not.
    """

    samples: int
    source: int
    build: int
    same: int

    @property
    def accuracy(self) -> float:
        """Top-1 accuracy of the build, 0 to 1."""
        return self.build / self.samples

    @property
    def source_accuracy(self) -> float:
        """Top-1 accuracy of the source model, 0 to 1."""
        return self.source / self.samples

    @property
    def words(self) -> str:
        """The accuracies and the agreement in a few words."""

        def share(number: int) -> str:
            return f"{100 * number / self.samples:.1f} %"

        return (
            f"{share(self.build)}, the source's {share(self.source)}, "
            f"same decision {share(self.same)}, on {self.samples:,} inputs"
        )

    def __str__(self) -> str:
        return f"accuracy (top-1): {self.words}"
