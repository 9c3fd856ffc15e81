"""`Whole`: a program without chains, whose kernels are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from byoc_dory.memory.arena import live_bytes
from htvm.aot.program import assemble, buffers_of
from htvm.aot.steps import ModelCall

if TYPE_CHECKING:
    from htvm.aot.assembler import Assembly
    from htvm.aot.program import Program
    from htvm.aot.steps import Alias, CpuKernel

Make: TypeAlias = Callable[[ModelCall], tuple[ModelCall, "CpuKernel"]]


class Whole:
    """A program that computes each operator as a whole.

    What it takes is known to be at least something as long as kernels are sketches.  Chains need
    few of them, and making all takes as long as making the chains.

    Args:
        sketch: what the program is assembled from, with sketches of kernels.
        make: makes a call and its kernel from a sketch's (`htvm.aot.cpu.CpuCode.made`); ``None``:
            all are made.
    """

    def __init__(self, sketch: Assembly, make: Make | None = None) -> None:
        self.sketch = sketch
        self._make = make
        kernels = {kernel.symbol: kernel for kernel in sketch.cpu_kernels}
        self._now: dict[str, tuple[ModelCall, CpuKernel]] = {
            _key(call): (call, kernels[call.target])
            for call in sketch.calls
            if isinstance(call, ModelCall) and call.target in kernels
        }
        self._sketches = set() if make is None else set(self._now)

    def is_made(self, calls: Iterable[ModelCall]) -> bool:
        """Whether the kernels of these calls are made."""
        return self._sketches.isdisjoint(map(_key, calls))

    def made(self, call: ModelCall) -> tuple[ModelCall, CpuKernel]:
        """Return a call of the sketch with all that it passes, and its kernel."""
        if _key(call) in self._sketches:
            assert self._make is not None
            self._now[_key(call)] = self._make(call)
            self._sketches.remove(_key(call))
            vars(self).pop("live", None)
        return self._now[_key(call)]

    @cached_property
    def live(self) -> tuple[int, ...]:
        """The bytes that each call needs in the arena; at least these for sketches."""
        buffers, steps = buffers_of(self._assembly)
        return live_bytes(buffers, steps)

    @property
    def least(self) -> int:
        """Bytes that the arena takes at least; those that it takes if all kernels are made."""
        return max(self.live, default=0) if self._sketches else self.program.plan.peak

    @cached_property
    def assembly(self) -> Assembly:
        """What the program is assembled from; makes all kernels."""
        for call in self.sketch.calls:
            if isinstance(call, ModelCall) and not self.is_made([call]):
                self.made(call)
        return self._assembly

    @cached_property
    def program(self) -> Program:
        """The program; makes all kernels."""
        return assemble(self.assembly)

    @property
    def _assembly(self) -> Assembly:
        if self._make is None:
            return self.sketch

        def now(call: ModelCall | Alias) -> ModelCall | Alias:
            return self._now[_key(call)][0] if isinstance(call, ModelCall) else call

        kernels = {kernel.symbol: kernel for _, kernel in self._now.values()}
        return replace(
            self.sketch,
            calls=tuple(map(now, self.sketch.calls)),
            cpu_kernels=tuple(kernels.values()),
        )


def _key(call: ModelCall) -> str:
    return call.outputs[0].name
