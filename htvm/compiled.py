"""`Compiled`: the results of the stages before the C compiler, and their options."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from byoc_dory.errors import TargetError
from byoc_dory.options import TilingOptions, check_count
from byoc_dory.state import StatePlan
from htvm.policy import check_policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from byoc_dory.cost import Cost
    from byoc_dory.pinning import WeightPlan
    from byoc_dory.region import Kernel, RegionCode
    from byoc_dory.soc.base import Accelerator, Target
    from htvm.aot.cpu import CpuKernel
    from htvm.aot.program import Program
    from htvm.model import Model
    from htvm.placement.plan import Placement
    from htvm.policy import Policy
    from htvm.quantization.retarget import Retargeted
    from patterns.dispatch.dispatching import Dispatch

Platform: TypeAlias = Literal["rv32", "arm", "qemu", "host"]


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

    Raises:
        TargetError: there is no such kind of CPU kernels, or another option is invalid.
        PolicyError: the policy is invalid.
    """

    cpu_kernels: Literal["scheduled", "default"] = "scheduled"
    tiling: TilingOptions = TilingOptions()
    l2_bytes: int | None = None
    policy: Policy | None = None
    rewrites: Literal["on", "off"] = "on"

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


@dataclass(frozen=True, eq=False, repr=False)
class Compiled:
    """The results of the stages before the C compiler.

    Attributes:
        source: the model as imported.
        target: the target it is compiled for.
        options: options of the build.
        cost: cycles on the target with the options of the tiler.
        planned: the plan made before retargeting of which core runs each layer.
        retargeted: the model in the scheme of the target's accelerators, layers rewritten for them,
            and the loss of accuracy.
        rewritten: rewritten layer -> what is computed instead, with the same result.
        dispatch: where each operator runs, and why.
        regions: code of the accelerators' regions, by name of the region.
        weights: where the weights of accelerators' layers are, if these have a choice.
        state: where the inputs are that the caller keeps between runs.
        cpu_kernels: kernels compiled by TVM.
        program: C sources, memory plan, entry function.
        key: hash of everything that these results depend on (`htvm.stage_cache`); empty if it is
            not known.
    """

    source: Model
    target: Target
    options: BuildOptions
    cost: Cost
    planned: Placement
    retargeted: Retargeted
    dispatch: Dispatch
    regions: Mapping[str, RegionCode]
    weights: WeightPlan
    cpu_kernels: tuple[CpuKernel, ...]
    program: Program
    rewritten: Mapping[str, str] = field(default_factory=dict[str, str])
    key: str = ""
    state: StatePlan = StatePlan()

    @property
    def tiling(self) -> TilingOptions:
        """The options of the tiler, with the L1 that inputs kept there leave."""
        return self.state.options(self.options.tiling)

    @property
    def kernels(self) -> dict[str, tuple[RegionCode, Kernel]]:
        """The kernels of all regions, each with its region, by symbol."""
        return {
            kernel.symbol: (code, kernel)
            for code in self.regions.values()
            for kernel in code.kernels
        }

    def home(self, layer: str, accelerator: str) -> Accelerator:
        """Return an accelerator with a layer's weights where they are, given the names of both."""
        home = self.target.soc.accelerator(accelerator)
        memory = self.weights.homes.get(layer)
        return home if memory is None or not home.weight_memories else home.keeping(memory)

    def __repr__(self) -> str:
        return f"Compiled({self.source.name!r}, target={self.target.name!r})"
