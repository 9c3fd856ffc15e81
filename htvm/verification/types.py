"""What a verification found: plain frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from htvm.firmware.lines import Place

__all__ = [
    "Difference",
    "GoldenCheck",
    "Number",
    "Origin",
    "Place",
    "StepCheck",
    "TileAt",
    "Verification",
]

Number: TypeAlias = "int | float"


@dataclass(frozen=True)
class Origin:
    """Who wrote an element.

    Attributes:
        what: in words, e.g. "stored by the host", "computed by trigger 5 of digital".
        cycle: when, counted from the entry function's call: the store, or the command.
        place: the line of the generated C that did it or led to it; None if there is none.
        inner: the line of runtime or driver in which it was done; None if that is ``place``.
    """

    what: str
    cycle: int
    place: Place | None
    inner: Place | None = None


@dataclass(frozen=True)
class TileAt:
    """The tile of a layer that an element belongs to.

    Attributes:
        number: in the order of execution, from 0.
        tiles: how many the layer has.
        index: position along K, oy and ox, in tiles.
        start: first output channel, row and column.
        size: output channels, rows and columns.
    """

    number: int
    tiles: int
    index: tuple[int, int, int]
    start: tuple[int, int, int]
    size: tuple[int, int, int]


@dataclass(frozen=True)
class StepCheck:
    """One step of the entry function.

    Attributes:
        index: of the step, from 0.
        layer: its name; several joined by "+".
        place: accelerator or "cpu"; conversions are "cpu, prologue" and the like.
        tensor: what was compared; empty where the step makes nothing that has a reference.
        elements: how many were compared.
        different: how many of them differ.
    """

    index: int
    layer: str
    place: str
    tensor: str
    elements: int = 0
    different: int = 0

    @property
    def compared(self) -> bool:
        """Whether the step's result was compared."""
        return self.elements > 0


@dataclass(frozen=True)
class Difference:
    """The first difference from the reference.

    Attributes:
        step: index of the step after which it was seen.
        layer: of that step.
        place: accelerator or "cpu"; conversions are "cpu, prologue" and the like.
        tensor: which differs.
        overwritten: the tensor was right when an earlier step had made it, so this one, which had
            no business with it, destroyed it.
        axes: names of the element's coordinates, e.g. ("K", "oy", "ox").
        element: the coordinates of the first element that differs: in the order of execution of
            tiles, and within a tile channel by channel, row by row.
        value: what the simulated SoC has.
        expected: what the reference has.
        different, elements: how many elements of the tensor differ, of how many.
        memory, address: where the element lies: name of the memory, device address.
        tile: which tile it belongs to; None off accelerators.
        tiles_different: how many tiles have elements that differ; 0 off accelerators.
        origins: who wrote the element, the last first; empty if nobody did in this run, or if
            nobody knows.
        watched: whether the host's stores could be watched.
    """

    step: int
    layer: str
    place: str
    tensor: str
    overwritten: bool
    axes: tuple[str, ...]
    element: tuple[int, ...]
    value: Number
    expected: Number
    different: int
    elements: int
    memory: str
    address: int
    tile: TileAt | None = None
    tiles_different: int = 0
    origins: tuple[Origin, ...] = ()
    watched: bool = True

    @property
    def where(self) -> Place | None:
        """The line of generated C that wrote the element."""
        return next((origin.place for origin in self.origins if origin.place), None)


@dataclass(frozen=True)
class GoldenCheck:
    """One output beside the user's own.

    Attributes:
        output: its name.
        elements: how many it has.
        different: how many of the run's differ from the golden.
        sqnr_db: signal to noise of the run against the golden, in dB; None if they are equal.
        largest: largest absolute difference, in steps (of reals: in units).
        element, value, expected: the first element that differs, in the output's own axes.
        source_different: how many of the source model's differ, as imported, before retargeting.
    """

    output: str
    elements: int
    different: int
    sqnr_db: float | None = None
    largest: Number = 0
    element: tuple[int, ...] = ()
    value: Number = 0
    expected: Number = 0
    source_different: int = 0


@dataclass(frozen=True, repr=False)
class Verification:
    """What `Module.verify` found.

    Attributes:
        network, target: what was verified.
        steps: one entry per step of the entry function.
        difference: the first from the reference; None if there is none.
        golden: one entry per output that the user gave; empty without.
        retargeted: whether the network was rewritten for the target, so that its outputs may
            differ from the source model's.
    """

    network: str
    target: str
    steps: tuple[StepCheck, ...]
    difference: Difference | None
    golden: tuple[GoldenCheck, ...] = ()
    retargeted: bool = False

    @property
    def equal(self) -> bool:
        """Whether the run equals the reference, element for element."""
        return self.difference is None

    @property
    def agrees(self) -> bool:
        """Whether the run equals the user's golden; true without one."""
        return all(check.different == 0 for check in self.golden)

    def __str__(self) -> str:
        """The findings as text."""
        from htvm.verification.text import verification_text

        return verification_text(self)

    __repr__ = __str__
