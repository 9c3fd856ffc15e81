"""Chains of rows: consecutive operators that advance together, so that few rows of maps exist.

Layer after layer, two whole maps exist at the peak.  In a chain, each operator computes a row as
soon as the rows that it reads are there, and a map between two of them is a *strip*: the few rows
that are still read, contiguous as kernels expect them, which slide.  Every row is computed once.
A chain is one CPU kernel, its strips are the kernel's workspaces; so arena, entry function and
reports treat it as any other kernel.

* `network`: the operators and calls of a model as `Unit`s that read rows;
* `chain`: `Chain` and `Strip`, the order in which rows are computed and the rows a strip needs;
* `whole`: the program without chains, whose kernels are made when they are asked for;
* `planning`: which units become chains, so that the arena stays within a limit;
* `room`: what chains do with the bytes that are left;
* `kernels`: the units' kernels for one row, generated like any others;
* `emit`: a chain as C.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from htvm.aot.chains.emit import HEADER
from htvm.aot.chains.kernels import RowCompiler
from htvm.aot.chains.planning import by_rows
from htvm.aot.chains.whole import Whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from htvm.aot.steps import CpuKernel

__all__ = ["RowCompiler", "Whole", "by_rows", "chains_in"]


def chains_in(kernels: Sequence[CpuKernel]) -> list[CpuKernel]:
    """Return those kernels that are chains."""
    return [kernel for kernel in kernels if HEADER in kernel.headers]
