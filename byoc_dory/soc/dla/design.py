"""The numbers of the accelerator: `Design`, all that assembler and simulator need to know of it,
and `DlaCore`, which its rules, tiles and generator work with.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

from byoc_dory.errors import TargetError
from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import Accelerator, Soc

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
    inputs = pes_in or max(n for n in range(1, isqrt(pes) + 1) if pes % n == 0)
    if pes % inputs:
        divisors = ", ".join(str(n) for n in range(1, pes + 1) if pes % n == 0)
        raise TargetError(
            f"pes_in={inputs} does not divide pes={pes}", where=where, hint=f"one of {divisors}"
        )
    return inputs, pes // inputs


@dataclass(frozen=True)
class DlaCore(Accelerator):
    """An accelerator that executes command streams.

    Its requantization is one right shift, because the instruction set has shifts of 32-bit data,
    but no multiplication by a scale (paper, Table 2 and Appendix B).

    Attributes:
        pes_in, pes_out: input and output channels that are worked on in parallel.
        dma_bytes, dma_setup: bytes per cycle of transfers, and cycles of each besides.
        depthwise: index in `byoc_dory.soc.dla.design.DEPTHWISE`.
        fused: 1 if convolutions requantize their sums themselves.
        rows: 1 if rows are tiled, too.
        max_shift: largest right shift.
        issue_cycles: host cycles of starting an instruction and noticing the end of the one before,
            for predictions; writing registers hides behind instructions.
        call_cycles: the same of a layer besides.
        load_cycles: the same of a layer that begins with a transfer of its operands, whose
            registers nothing hides.
        exposed_issue_cycles: host cycles of an instruction that no other one hides: registers are
            written while the instruction before runs.
        exposed_call_cycles: the same of a layer besides.
    """

    pes_in: int
    pes_out: int
    dma_bytes: int
    dma_setup: int
    depthwise: int
    fused: int
    rows: int
    max_shift: int
    issue_cycles: int
    call_cycles: int
    load_cycles: int
    exposed_issue_cycles: int
    exposed_call_cycles: int

    def design(self, sram: int, *, resident: bool = True) -> Design:
        """Return the numbers that the assembler needs, with ``sram`` bytes of SRAM."""
        return Design(
            pes_in=self.pes_in,
            pes_out=self.pes_out,
            sram=sram,
            dma_bytes=self.dma_bytes,
            dma_setup=self.dma_setup,
            depthwise=self.depthwise,
            fused=bool(self.fused),
            rows=bool(self.rows),
            resident=resident,
        )

    def design_for(self, soc: Soc, options: TilingOptions) -> Design:
        """Return the same under the user's options: a budget, a schedule."""
        sram = self.budget(soc, options)
        return self.design(sram, resident=options.schedule == "overlapped")

    @property
    def peak_macs(self) -> float:
        """One multiply-accumulate per PE and cycle."""
        return self.pes_in * self.pes_out

    def can_clip_to(self, bounds: tuple[int, int]) -> bool:
        """See `Accelerator.can_clip_to`: the bounds are a register's."""
        return True
