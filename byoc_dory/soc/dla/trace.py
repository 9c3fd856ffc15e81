"""A disassembled trace: what each instruction of a stream did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byoc_dory.soc.dla.isa import disassemble
from byoc_dory.soc.dla.simulator import Executed


def trace_lines(words: Sequence[int], done: Sequence[Executed], pes: int) -> Iterator[str]:
    """Yield one line per word or register write; instructions with their cycles.

    Args:
        words: a region's command stream.
        done: what `Simulator.run` traced of it.
        pes: number of PEs, for their utilisation.
    """
    at = {each.word: each for each in done}
    start = 0
    for line in disassemble(words):
        found = at.get(int(line.split(maxsplit=1)[0]))
        if found is None:
            yield line
            continue
        work = f"{found.bytes:,} B"
        if found.kind != "DMA":
            work = f"{found.macs:,} MAC, {100 * found.utilisation(pes):.0f} % of the PEs"
        yield f"{line:<40} at {start:>10,}: {found.cycles:,} cycles, {work}"
        start += found.cycles
