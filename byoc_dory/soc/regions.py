"""`RegionRunner`: executes regions on an accelerator's simulator, without C of their own.

Sweeps use it, because a region is prepared once for all designs, and so does the virtual machine of
`htvm.vm`, which calls regions as functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from byoc_dory.layers import Array
    from byoc_dory.options import TilingOptions
    from byoc_dory.region import Region


@dataclass(frozen=True)
class RegionCount:
    """What one execution of a region took.

    Attributes:
        device: cycles of the accelerator and its transfers, counted by the simulator.
        host: cycles of the driver between them, predicted.
        bytes: bytes moved between system memory and the accelerator.
        kinds: cycles of the accelerator by kind of instruction.
    """

    device: int
    host: int
    bytes: int
    kinds: tuple[tuple[str, int], ...]


class RegionCheck(Protocol):
    """Executes regions once while they are built, to find what another compiler did wrong."""

    def culprit(self, region: Region) -> tuple[str, str] | None:
        """Return the layer to leave to the CPU, and what is wrong; None if nothing is."""
        ...


class RegionRunner(Protocol):
    """Executes regions for the designs of one SoC.

    Attributes:
        structure: names of the SoC's parameters that decide which layers a region has; all others
            may change between two runs of a prepared region.
        roomy: values of parameters with which every region can be executed.
    """

    structure: tuple[str, ...]
    roomy: dict[str, Any]

    def prepare(self, region: Region) -> Any:
        """Return a region in a form that does not depend on the design, for any process."""
        ...

    def run(
        self, prepared: Any, soc: Any, options: TilingOptions, inputs: Sequence[Array]
    ) -> tuple[list[Array], RegionCount]:
        """Execute a prepared region.

        Args:
            prepared: from `prepare`; it has the region's ``inputs`` and ``outputs``.
            soc: the design, a `byoc_dory.soc.base.Soc`.
            options: budget and schedule.
            inputs: the region's inputs in their layout outside of it, with any leading axes.

        Returns:
            The region's outputs, flat, in their layout outside of it; and what it took.

        Raises:
            TilingError: the smallest tile of a layer does not fit.
            SimulationError: the accelerator complained.
        """
        ...
