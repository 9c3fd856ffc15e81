"""`Design`: the numbers of one accelerator, all that assembler and simulator need to know of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from byoc_dory.errors import TargetError

DEPTHWISE = ("cpu", "emulated", "native")
"""Who computes depthwise layers: the host, OP_CONV one filter at a time, or OP_DEPTH_CONV."""


@dataclass(frozen=True)
class Design:
    """An accelerator.

    Attributes:
        pes_in: input channels that are multiplied in parallel.
        pes_out: output channels that are computed in parallel; there are pes_in * pes_out
            processing elements (PEs).
        sram: bytes of SRAM.
        dma_bytes: bytes per cycle between system memory and SRAM.
        dma_setup: cycles of each transfer besides.
        depthwise: index in `DEPTHWISE`.
        fused: whether a convolution requantizes its sums itself; otherwise it writes int32, which a
            separate instruction requantizes.
        rows: whether rows are tiled, too; otherwise only output channels, as published.
        resident: whether results may stay in SRAM between layers.

    Raises:
        TargetError: a number is not positive, or out of range.
    """

    pes_in: int
    pes_out: int
    sram: int
    dma_bytes: int = 16
    dma_setup: int = 50
    depthwise: int = 2
    fused: bool = True
    rows: bool = False
    resident: bool = True

    def __post_init__(self) -> None:
        for name, low, high in (
            ("pes_in", 1, 4096),
            ("pes_out", 1, 4096),
            ("sram", 1, 256 << 20),
            ("dma_bytes", 1, 1024),
            ("dma_setup", 0, 100_000),
            ("depthwise", 0, len(DEPTHWISE) - 1),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or not low <= value <= high:
                raise TargetError(
                    f"{name} cannot be {value!r}",
                    where="design of the accelerator",
                    hint=f"give a whole number from {low} to {high}",
                )
        if self.pes > 4096:
            raise TargetError(
                f"{self.pes_in} x {self.pes_out} PEs are {self.pes}",
                where="design of the accelerator",
                hint="give at most 4096 PEs",
            )

    @property
    def pes(self) -> int:
        """Number of processing elements."""
        return self.pes_in * self.pes_out

    @property
    def emulated(self) -> bool:
        """Whether depthwise layers run through OP_CONV, one filter at a time."""
        return DEPTHWISE[self.depthwise] == "emulated"

    @property
    def sum_bytes(self) -> int:
        """Bytes of an element that a convolution writes."""
        return 1 if self.fused else 4


def array_of(pes: int, parallel: str, pes_in: int = 0) -> tuple[int, int]:
    """Return how many input and output channels ``pes`` PEs work on in parallel.

    Args:
        pes: number of PEs, 1 to 4096.
        parallel: ``input``, ``output`` or ``both``.
        pes_in: parallel input channels, for ``both`` only; 0 for the largest divisor of ``pes``
            that is not above its square root.

    Raises:
        TargetError: ``pes_in`` does not divide ``pes``, or is given without ``both``.
    """
    where = "design of the accelerator"
    if parallel != "both":
        if pes_in not in (0, pes if parallel == "input" else 1):
            raise TargetError(
                f"pes_in={pes_in} contradicts parallel={parallel}",
                where=where,
                hint="pes_in is for parallel=both",
            )
        return (pes, 1) if parallel == "input" else (1, pes)
    chosen = pes_in or max(n for n in range(1, isqrt(pes) + 1) if pes % n == 0)
    if pes % chosen:
        divisors = ", ".join(str(n) for n in range(1, pes + 1) if pes % n == 0)
        raise TargetError(
            f"pes_in={chosen} does not divide pes={pes}", where=where, hint=f"one of {divisors}"
        )
    return chosen, pes // chosen
