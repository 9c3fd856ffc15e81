"""The numbers of the accelerator, which its rules, tiles and generator work with."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import Accelerator, Soc
from byoc_dory.soc.dla.design import Design


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
