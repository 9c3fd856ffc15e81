"""`Compiled`: the stages of a build before the C compiler, with their values."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from byoc_dory.cost import Cost
from byoc_dory.emit.text import Symbols
from byoc_dory.errors import CapacityError, ModelError, PolicyError, TargetError
from byoc_dory.pinning import WeightPlan
from byoc_dory.soc.registry import resolve
from byoc_dory.verdict import CPU
from htvm.arithmetic import check_numbers
from htvm.firmware.paths import driver_folders
from htvm.opening import opened
from htvm.progress import Progress
from htvm.stage_cache import StageCache
from htvm.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tvm.ir import IRModule

    from byoc_dory.emit.layout import TensorLayout
    from byoc_dory.options import TilingOptions
    from byoc_dory.region import Kernel, RegionCode
    from byoc_dory.soc.base import Accelerator, Soc, Target
    from byoc_dory.soc.regions import RegionCheck
    from byoc_dory.state import StatePlan
    from htvm.aot.assembler import Assembly
    from htvm.aot.chains import Whole
    from htvm.aot.constants import ConstantPool
    from htvm.aot.cpu import CpuCode, CpuKernel
    from htvm.aot.program import Program
    from htvm.build_options import BuildOptions, Memory
    from htvm.model import Model
    from htvm.placement.plan import Placement
    from htvm.policy import Policy
    from htvm.quantization.as_planned import Executed
    from htvm.quantization.retarget import Retargeted
    from patterns.byoc.codegen import Generated
    from patterns.byoc.partition import Partition
    from patterns.dispatch.dispatching import Dispatch

_log = logging.getLogger(__name__)

STAGE_COUNT = 8
"""Number of stages of `htvm.build`, including the C compiler."""

_KEPT = ("regions", "dispatch", "weights", "state", "cpu_kernels", "program", "by_rows")
"""The values that the cache keeps together; the first one leads to the second in its own stage."""
_OF_CPU = ("_cpu", "_plain", "_maps", "_assembly", "_pool")
_MODULES = ("_placed", "_region_checks", "partition", "_generated", *_OF_CPU)
"""Values that lead to these, with the weights as constants of TVM."""


class Compiled:
    """A build before the C compiler: the value of each stage, computed when it is first read.

    Reading a value computes those before it, so that a build that fails leaves the values of the
    stages that it reached.

    Args:
        model: a model, or anything `htvm.load` takes.
        target: what it is built for.
        options: options of the build.
        data: calibration inputs for retargeting.
        progress: receives the stages.
        cache: keeps results, which are then not computed again.

    Attributes:
        target: the target, resolved.
        options: as given.

    Raises:
        TargetError: the target or an option is not known, or does not fit it.
    """

    def __init__(
        self,
        model: Model | IRModule | str | Path,
        target: str | Target,
        options: BuildOptions,
        *,
        data: Any = None,
        progress: Progress | None = None,
        cache: StageCache | None = None,
    ) -> None:
        self.target = resolve(target, l2_bytes=options.l2_bytes)
        options.check_for(self.target)
        self._model = model
        self.options = options
        self._data = data
        self._progress = progress or Progress()
        self._callers_cache = cache
        self._cache = StageCache(None) if cache is None else cache

    @cached_property
    def source(self) -> Model:
        """The model as imported."""
        with self._progress.stage("importing", (1, STAGE_COUNT)):
            return opened(self._model)

    @cached_property
    def cost(self) -> Cost:
        """Cycles on the target with the options of the tiler."""
        costs: dict[object, Cost] = self._cache.shared("costs")
        soc, tiling = self.target.soc, self.options.tiling
        return costs.setdefault((soc, tiling), Cost(soc, tiling))

    @cached_property
    def key(self) -> str:
        """Hash of everything that the values depend on; empty if that is not known."""
        policy = _as_partitioned(self.source, self.target, self.options.policy)
        # The code of a policy that is a function is not known.
        told = policy is None or isinstance(policy, str | Mapping)
        if not self._cache or not told:
            return ""
        return self._cache.key(self.source.identity, self.target, self.options, self._data)

    @cached_property
    def planned(self) -> Placement:
        """The plan made before retargeting of which core runs each layer."""
        from htvm.frontend.limits import check_offered
        from htvm.placement.plan import place

        graph, options = self.source.graph, self.options
        check_numbers(self.source.quantized_for, self.target)
        _check_name(self.source.name, self.target.soc)
        check_offered(graph.nodes, self.target)
        rewrites = options.rewrites == "on"

        policy = _as_partitioned(self.source, self.target, options.policy)

        def plan() -> Placement:
            return place(graph, self.target, self.cost, policy, rewrites=rewrites)

        with self._progress.stage("placing layers", (2, STAGE_COUNT)):
            return self._cache.get("placing", self.key, plan)

    @cached_property
    def executed(self) -> Executed:
        """The model in the scheme of the target's accelerators, with layers rewritten for them."""
        from htvm.placement.elsewhere import advise
        from htvm.quantization.as_planned import as_planned

        source, planned, target = self.source, self.planned, self.target
        with self._progress.stage("retargeting", (3, STAGE_COUNT)):
            found = as_planned(source, planned, target, data=self._data, cache=self._callers_cache)
        if found.retargeted.report.impossible and target.accelerators:
            self._cache.get("advising", self.key, lambda: advise(source, target))
        return found

    @cached_property
    def dispatch(self) -> Dispatch:
        """Where each operator runs, and why."""
        return self._placed[0]

    @cached_property
    def _placed(self) -> tuple[Dispatch, Partition | None]:
        """Where operators run, and the module cut accordingly, if that was needed to know.

        A region whose program proves wrong leaves the layer that is to blame to the CPU.
        """
        refused: dict[str, str] = {}
        while True:
            placed = self._dispatched(refused)
            checks = self._region_checks
            if not checks:
                return placed, None
            parts = self._cut(placed)
            found = [
                culprit
                for region in parts.regions.values()
                if region.homes[0] in checks
                and (culprit := checks[region.homes[0]].culprit(region)) is not None
            ]
            if not found:
                return placed, parts
            for name, reason in found:
                _log.warning("%s runs on the CPU: %s", name, reason)
            refused |= dict(found)

    @cached_property
    def _region_checks(self) -> Mapping[str, RegionCheck]:
        """What checks the regions of accelerators that ask for it, by name."""
        soc, tiling = self.target.soc, self.options.tiling
        makers = {
            entry.name: maker
            for entry in self.target.accelerators
            if (maker := entry.region_check(soc, tiling)) is not None
        }
        if not makers:
            return {}
        from htvm.firmware.host import model_library

        library = model_library(soc)
        return {name: maker(library) for name, maker in makers.items()}

    def _dispatched(self, refused: Mapping[str, str]) -> Dispatch:
        from patterns.dispatch.dispatching import dispatch

        executed, target = self.executed, self.target
        return dispatch(
            self.retargeted.model.graph,
            target.soc,
            target.accelerators,
            executed.places,
            executed.binding,
            self.options.tiling.l1_budget,
            refused,
        )

    def _cut(self, placed: Dispatch) -> Partition:
        from patterns.byoc.partition import Partition, partition

        graph, target = self.retargeted.model.graph, self.target
        if not target.accelerators:  # there is nothing to group
            return Partition(graph.module, {})
        return partition(graph, placed, target, self.options.tiling)

    @property
    def retargeted(self) -> Retargeted:
        """The model in the scheme of the accelerators, and the loss of accuracy."""
        return self.executed.retargeted

    @property
    def rewritten(self) -> Mapping[str, str]:
        """Rewritten layer -> what is computed instead, with the same result."""
        homes = {entry.name: entry for entry in self.target.accelerators}
        placed = self.dispatch
        inside = {
            name: homes[place].instead(layer)
            for name, layer in placed.layers.items()
            if (place := placed.placement[name]) in homes
        }
        return {**self.executed.rewritten, **{name: says for name, says in inside.items() if says}}

    @cached_property
    def partition(self) -> Partition:
        """The module cut into regions."""
        with self._progress.stage("partitioning", (4, STAGE_COUNT)):
            placed = self.dispatch
            parts = vars(self).get("_placed", (placed, None))[1]
            return self._cut(placed) if parts is None else parts

    @cached_property
    def _generated(self) -> Generated:
        from patterns.byoc.codegen import Generated, run_codegen

        parts, source = self.partition, self.source
        with self._progress.stage("generating accelerator code", (5, STAGE_COUNT)):
            if not self.target.accelerators:
                return Generated(parts.module, {}, WeightPlan())
            kept = [at for at, info in enumerate(source.inputs) if info.name in source.state]
            return run_codegen(
                parts, self.cost, self.target.accelerators, source.name, kept, self._symbols
            )

    @cached_property
    def regions(self) -> Mapping[str, RegionCode]:
        """Code of the accelerators' regions, by name of the region."""
        return self._plain.regions if self._generated.code else {}

    @cached_property
    def weights(self) -> WeightPlan:
        """Where the weights of accelerators' layers are, if these have a choice."""
        return self._generated.weights

    @cached_property
    def state(self) -> StatePlan:
        """Where the inputs are that the caller keeps between runs."""
        return self._generated.state

    @cached_property
    def _cpu(self) -> CpuCode:
        from htvm.aot.cpu import compile_cpu
        from htvm.aot.parallel import cores_of

        regions, target = self._generated, self.target
        with self._progress.stage("compiling CPU kernels", (6, STAGE_COUNT)):
            budget = regions.state.options(self.options.tiling).l1_budget
            return compile_cpu(
                regions.module,
                self.source.name,
                kernels=self.options.cpu_kernels,
                cores=cores_of(target, budget),
                pool=self._pool,
                on_demand=not target.accelerators
                and (self.options.memory is not None or self.options.input == "streamed"),
                **self._cpu_options,
            )

    @property
    def _cpu_options(self) -> dict[str, Any]:
        """What kernels of whole tensors and of rows have in common."""
        soc = self.target.soc
        return {
            "simd": soc.host.simd,
            "scarce": soc.code_memory != "L2",
            "symbols": self._symbols,
        }

    @cached_property
    def cpu_kernels(self) -> tuple[CpuKernel, ...]:
        """Kernels of the operators outside of regions."""
        return tuple(self._assembly.cpu_kernels)

    @cached_property
    def program(self) -> Program:
        """C sources, memory plan, entry function."""
        planned = self._planned
        with self._progress.stage("assembling", (7, STAGE_COUNT)):
            return self._maps.program if planned is None else planned[1]

    @cached_property
    def by_rows(self) -> str:
        """What is computed by rows, and what the arena takes otherwise; empty if nothing is."""
        from htvm.aot.chains import chains_in

        chains = chains_in(self._assembly.cpu_kernels)
        if not chains:
            return ""
        count = sum(len(kernel.layers) for kernel in chains)
        words = f"{len(chains)} chains" if len(chains) > 1 else "a chain"
        least = f"else the arena takes at least {self._maps.least:,} B"
        return f"{count} operators in {words}, {least}"

    @cached_property
    def _maps(self) -> Whole:
        """The program without chains."""
        from htvm.aot.chains import Whole

        return Whole(self._plain, self._cpu.made)

    @property
    def _assembly(self) -> Assembly:
        """What the program is assembled from."""
        return self._maps.assembly if self._planned is None else self._planned[0]

    @cached_property
    def _planned(self) -> tuple[Assembly, Program] | None:
        """The program within a limit of memory, and what it is assembled from; ``None``: there is
        no limit."""
        from htvm.firmware.sizes import room_for_arena

        memory, streamed = self.options.memory, self.options.input == "streamed"
        if memory is None and not self.target.accelerators:
            # What a board is too small for, layer after layer, may fit by rows.
            memory = room_for_arena(self._maps.program, self.target.soc, streamed=streamed)
            if memory is not None:
                try:
                    return self._by_rows(memory)
                except CapacityError:
                    memory = None
        plain = memory is None and not streamed
        return None if plain else self._by_rows(memory)

    @cached_property
    def _plain(self) -> Assembly:
        """What the program is assembled from without chains; kernels may be sketches."""
        from htvm.aot.assembler import Assembly
        from htvm.aot.steps import Provenance

        source, cpu, state, soc = self.source, self._cpu, self.state, self.target.soc
        parameters = [str(parameter.name) for parameter in cpu.module["main"].params]
        places = {
            number: soc.memory(state.memory).base + state.offsets[name]
            for number, name in enumerate(parameters)
            if name in state.offsets
        }
        inputs, outputs = source.interface_with_layouts
        assembly = Assembly(
            name=source.name,
            inputs=inputs,
            outputs=outputs,
            calls=cpu.calls,
            results=cpu.results,
            cpu_kernels=cpu.kernels,
            regions=self._generated.code,
            constants=cpu.constants,
            parameters=parameters,
            places=places,
            origin=Provenance(__version__, source.source, source.sha256),
            stack_bytes=soc.host.stack,
            overwritten=self._overwritten(parameters),
        )
        return self._with_pools_inside(assembly)

    def _overwritten(self, parameters: Sequence[str]) -> tuple[int, ...]:
        """Return the numbers of the inputs that lie in the arena.

        Raises:
            TargetError: one keeps its contents, or is read by no operator.
        """
        from htvm.aot.steps import Alias, Value

        if self.options.input == "kept":
            return ()
        kept = [name for name in parameters if name in self.source.state]
        if kept:
            raise TargetError(
                f"input '{kept[0]}' keeps its contents from run to run, and must be kept",
                where="option 'input'",
                hint="leave it out",
            )
        if self.options.input == "streamed":
            return ()
        read = {*self._cpu.results}
        for call in self._cpu.calls:
            read.update([call.source] if isinstance(call, Alias) else call.inputs)
        for name, info in zip(parameters, self.source.inputs, strict=True):
            if name not in read:
                size = Value(info.name, info.shape, info.dtype).bytes
                raise TargetError(
                    f"input '{info.name}' {info.shape} is read by no operator: none could take its "
                    f"{size:,} B, and the arena would be {size:,} B larger",
                    where="option 'input'",
                    hint="leave the input out of the model, or give input='kept'",
                )
        return tuple(range(len(parameters)))

    def _with_pools_inside(self, assembly: Assembly) -> Assembly:
        """Return a program whose averages read the accelerators' layout where that is quicker."""
        from htvm.aot.pools import with_pools_inside

        soc = self.target.soc
        if self.options.tiling.schedule == "published" or not self.target.accelerators:
            return assembly

        def layout_of(code: RegionCode) -> TensorLayout:
            home = next(kernel.accelerator for kernel in code.kernels if kernel.kind == "layer")
            return soc.accelerator(home).layout(soc)

        return with_pools_inside(assembly, self.retargeted.model.graph, layout_of)

    def _by_rows(self, memory: Memory | None) -> tuple[Assembly, Program]:
        """Return a program whose arena stays within a limit, and what it is assembled from."""
        from htvm.aot.chains import RowCompiler, by_rows

        options, streamed = self.options, self.options.input == "streamed"
        compiler = RowCompiler(
            self.source.name,
            kernels=options.cpu_kernels,
            **self._cpu_options,
            pool=self._pool,
        )
        with self._progress.stage("planning chains of rows", (7, STAGE_COUNT)):
            graph = self.retargeted.model.graph
            return by_rows(graph, self._maps, memory, compiler, streamed=streamed)

    @cached_property
    def _symbols(self) -> Symbols:
        return Symbols(self.source.name)

    @cached_property
    def _pool(self) -> ConstantPool:
        from htvm.aot.constants import ConstantPool

        return ConstantPool()

    def finish(self) -> Compiled:
        """Compute the values of all stages, or take them from the cache."""
        operators = {*self.source.graph.nodes, *self.retargeted.model.graph.nodes}

        def made() -> dict[str, Any]:
            return {name: getattr(self, name) for name in _KEPT}

        vars(self).update(self._cache.get("generating", self.key, made))
        for name in _MODULES:
            vars(self).pop(name, None)
        # Whoever keeps the values needs to keep neither what a cache shares nor a progress bar.
        self._callers_cache, self._cache, self._progress = None, StageCache(None), Progress()
        kernels = {kernel.layer_name for _, kernel in self.kernels.values()}
        self.options.check_layers(operators | kernels)
        return self

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


def _as_partitioned(source: Model, target: Target, policy: Policy | None) -> Policy | None:
    """Return the policy that leaves a partitioned module's layers where they are.

    Raises:
        TargetError: it was partitioned for another target.
        PolicyError: there is another policy, too.
    """
    placed = source.placed
    if placed is None:
        return policy
    if placed.target != target.name:
        raise TargetError(
            f"the module was partitioned for '{placed.target}', not for '{target.name}'",
            where=f"model '{source.name}'",
            hint="build it for that target, or partition the unpartitioned module again",
        )
    if policy is not None:
        raise PolicyError(
            "the layers of a partitioned module have their places",
            where="option 'policy'",
            hint="give the policy to htvm.relax.Partition",
        )
    return lambda layer, _: placed.places.get(layer.name, CPU)


def _check_name(name: str, soc: Soc) -> None:
    """Refuse a model whose header would shadow one of the SoC's driver."""
    folders = driver_folders(soc)
    if any(path.name == f"{name}.h" for folder in folders for path in folder.rglob("*.h")):
        raise ModelError(
            f"a model for {soc.name} cannot be called {name!r}: its driver has a header of that "
            "name",
            where=f"model '{name}'",
            hint="load it under another name: htvm.load(..., name=...)",
        )
