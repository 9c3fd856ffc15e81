"""`BuildOptions`: what a build is told besides its model, its target and its platform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from byoc_dory.errors import TargetError, nearest
from byoc_dory.options import TilingOptions, check_count
from byoc_dory.tiling.objectives import objective_named
from htvm.policy import check_policy

if TYPE_CHECKING:
    from collections.abc import Collection

    from byoc_dory.soc.base import Target
    from htvm.policy import Policy

__all__ = ["BuildOptions", "Input", "Memory", "Platform"]

Platform: TypeAlias = Literal["rv32", "arm", "qemu", "host"]
Memory: TypeAlias = int | Literal["least"]
"""The most bytes of an arena, or as few as possible."""
Input: TypeAlias = Literal["kept", "overwritten", "streamed"]
"""What a run does with its inputs."""


@dataclass(frozen=True)
class BuildOptions:
    """Options of a build besides model, target and platform.

    Attributes:
        cpu_kernels: ``"scheduled"`` (register-blocked, fused) or ``"default"`` (plain TVM's).
        tiling: options of the tiler.
        l2_bytes: size of L2 in bytes, for targets whose L2 is adjustable.
        policy: decides where a layer runs if several cores could run it (see `htvm.policy`);
            ``None`` for the target's own.
        rewrites: ``"on"``: layers that accelerators refuse are computed by other operators with
            the same results where that is quicker (see `htvm.rewriting`); or ``"off"``.
        memory: bytes of the arena at most, or ``"least"``: then operators are computed row by row
            where that is needed (see `htvm.aot.chains`); ``None``: layer after layer.  Only for
            targets without accelerators.
        input: where inputs are: ``"kept"``: in the caller's memory, and not modified; or
            ``"overwritten"``: in the arena, which a run overwrites; or, only for targets without
            accelerators, ``"streamed"``: handed over row by row.

    Raises:
        TargetError: there is no such kind of CPU kernels, or another option is invalid.
        PolicyError: the policy is invalid.
    """

    cpu_kernels: Literal["scheduled", "default"] = "scheduled"
    tiling: TilingOptions = TilingOptions()
    l2_bytes: int | None = None
    policy: Policy | None = None
    rewrites: Literal["on", "off"] = "on"
    memory: Memory | None = None
    input: Input = "kept"

    def __post_init__(self) -> None:
        if self.policy is not None:
            check_policy(self.policy)
        if self.cpu_kernels not in ("scheduled", "default"):
            raise TargetError(
                f"unknown kind of CPU kernels {self.cpu_kernels!r}",
                hint="known kinds: scheduled, default",
            )
        if self.rewrites not in ("on", "off"):
            raise TargetError(
                f"{self.rewrites!r} is not a choice of rewrites",
                where="option 'rewrites'",
                hint="on or off",
            )
        if not isinstance(self.tiling, TilingOptions):
            raise TargetError(
                f"a {type(self.tiling).__name__} is not a choice of tiling",
                where="option 'tiling'",
                hint="give byoc_dory.options.TilingOptions(...)",
            )
        if self.l2_bytes is not None:
            check_count("l2_bytes", self.l2_bytes)
        if self.memory is not None:
            _check_memory(self.memory)
            if self.memory != "least":
                object.__setattr__(self, "memory", int(self.memory))  # numpy's are not hashed alike
        if self.input not in get_args(Input):
            raise TargetError(
                f"{self.input!r} is no way to hand over inputs",
                where="option 'input'",
                hint=" or ".join(get_args(Input)),
            )

    def check_for(self, target: Target) -> None:
        """Refuse options that do not fit a target, before anything is planned.

        Raises:
            TargetError: one does not.
        """
        _check_tiling(self.tiling, target)
        # Regions of accelerators have plans of their own.
        given = ["memory"] * (self.memory is not None) + ["input"] * (self.input == "streamed")
        if given and target.accelerators:
            raise TargetError(
                f"chains of rows are for CPU targets, {target.name} has accelerators",
                where=f"option '{given[0]}'",
                hint=f"leave it out, or build for {target.soc.name}.cpu",
            )

    def check_layers(self, known: Collection[str]) -> None:
        """Refuse objectives of layers that a network does not have.

        Args:
            known: names of its operators and of the kernels made of them.

        Raises:
            TargetError: there is no such layer.
        """
        for name, _ in self.tiling.layers:
            if name not in known:
                raise TargetError(
                    f"there is no layer {name!r} to be tiled",
                    where="option 'tiling'",
                    hint=f"{nearest(name, known)}the network has {len(known)} operators",
                )


def _check_memory(memory: object) -> None:
    """Refuse what is neither a positive number of bytes nor "least"."""
    number = isinstance(memory, int | np.integer) and not isinstance(memory, bool)
    if memory != "least" and not (number and int(memory) > 0):  # type: ignore[call-overload]
        raise TargetError(
            f"{memory!r} is no limit of memory",
            where="option 'memory'",
            hint="give the bytes of the arena at most, or 'least'",
        )


def _check_tiling(options: TilingOptions, target: Target) -> None:
    """Refuse options of the tiler that do not fit a target."""
    accelerators, budget = target.accelerators, options.l1_budget
    for accelerator in accelerators:
        size = target.soc.memory(accelerator.l1).size
        if budget is not None and budget > size:  # code for it would overrun L1
            raise TargetError(
                f"an L1 budget of {budget} B, accelerator '{accelerator.name}' has {size} B",
                where="option 'l1_budget'",
                hint=f"give at most {size}; larger memories can be explored with htvm.explore",
            )
    has_streams = accelerators and all(entry.region_runner for entry in accelerators)
    if options.assembly == "late" and not has_streams:
        raise TargetError(
            "there are no command streams to assemble late",
            where=f"target '{target.name}'",
            hint="leave out assembly='late', or build for dla",
        )
    known = {
        name: objective for entry in accelerators for name, objective in entry.objectives.items()
    }
    for objective in (options.objective, *(asked for _, asked in options.layers)):
        if known and objective is not None:
            objective_named(objective, known, f"target '{target.name}'")
