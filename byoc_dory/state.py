"""Inputs that the caller keeps between the runs of a network, such as caches, and their places."""

from __future__ import annotations

from dataclasses import dataclass, replace

from byoc_dory.options import TilingOptions


@dataclass(frozen=True)
class StateInput:
    """An input that the caller keeps between runs.

    Attributes:
        name: name of the tensor.
        bytes: its size.
        offset: byte offset in L1; None if it is in L2, and loaded in each run.
        reason: why it is there.
    """

    name: str
    bytes: int
    offset: int | None
    reason: str


@dataclass(frozen=True)
class StatePlan:
    """Where the inputs are that the caller keeps between runs.

    Attributes:
        inputs: these inputs, in order.
        memory: name of the memory with an offset; empty if all are in L2.
        l1_budget: bytes of it that everything else may use; None for what the options say.
        kept_cycles, loaded_cycles: predicted cycles of all layers with this plan, and with all of
            them in L2; None if there was nothing to decide.
    """

    inputs: tuple[StateInput, ...] = ()
    memory: str = ""
    l1_budget: int | None = None
    kept_cycles: int | None = None
    loaded_cycles: int | None = None

    @property
    def offsets(self) -> dict[str, int]:
        """Byte offset in L1 of each input that is there, by name."""
        return {each.name: each.offset for each in self.inputs if each.offset is not None}

    @property
    def bytes(self) -> int:
        """Bytes of L1 that they take."""
        return sum(each.bytes for each in self.inputs if each.offset is not None)

    @property
    def text(self) -> str:
        """Where they are, and why, as a sentence; empty if there are none."""
        if not self.inputs:
            return ""
        kept, all_ = len(self.offsets), len(self.inputs)
        loaded = [each for each in self.inputs if each.offset is None]
        reasons = "; ".join(dict.fromkeys(each.reason for each in loaded))
        if not kept:
            size = sum(each.bytes for each in self.inputs)
            return (
                f"{all_} inputs that the caller keeps between runs, {size:,} B, are in L2 and "
                f"loaded in each run: {reasons}."
            )
        others = f", the others in L2: {reasons}" if loaded else ""
        return (
            f"{kept} of {all_} inputs that the caller keeps between runs, {self.bytes:,} B, stay "
            f"in {self.memory}: {self.kept_cycles:,} cycles predicted, {self.loaded_cycles:,} with "
            f"all of them in L2{others}."
        )

    def options(self, given: TilingOptions) -> TilingOptions:
        """Return the options of the tiler with the L1 that is left."""
        return given if self.l1_budget is None else replace(given, l1_budget=self.l1_budget)
