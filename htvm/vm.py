"""`RegionMachine`: a build in TVM's own runtime, with accelerators as external functions.

The partitioned module runs in the Relax virtual machine on this machine, everything outside of
regions compiled by TVM.  Each region is a packed function: of a library with its C, drivers and
device models, or, where the SoC's accelerators can execute regions without C, one that hands its
tensors to their simulator and counts cycles (the flow of the parametrised accelerator's paper).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory.errors import HtvmError
from htvm.inputs import bind_inputs
from htvm.relax.library import link
from htvm.sim.native import region_runner

if TYPE_CHECKING:
    from collections.abc import Callable

    from tvm.relax import VirtualMachine
    from tvm.runtime import Executable

    from byoc_dory.soc.regions import RegionCount, RegionRunner
    from htvm.compiled import Compiled
    from htvm.inputs import Inputs


@dataclass(frozen=True)
class RegionRun:
    """One call of a region.

    Attributes:
        layers: names of its layers.
        count: cycles and bytes.
    """

    layers: tuple[str, ...]
    count: RegionCount


class RegionMachine:
    """A build in the Relax virtual machine.

    Args:
        compiled: the results of a build's stages.

    Attributes:
        machine: TVM's virtual machine; its function ``main`` takes and returns TVM's tensors.
        runs: the regions that were called since the last `run` began, in order, where a simulator
            counts cycles.

    Raises:
        TargetError: the target's name does not tell all of its numbers.
        ToolchainError: there is no C compiler, or it failed.
    """

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        self.runs: list[RegionRun] = []
        self._failure: HtvmError | None = None
        runner = region_runner(compiled.target)
        self.machine: VirtualMachine = (
            self._with_library() if runner is None else self._with_simulator(runner)
        )

    def __repr__(self) -> str:
        return f"RegionMachine({self._compiled.source.name!r}, {self._compiled.target.name!r})"

    def run(self, inputs: Inputs) -> list[np.ndarray]:
        """Run one inference.

        Args:
            inputs: an array, a list, or a dict by input name.

        Returns:
            One array per output; equal to those of `Module.run`, element for element.

        Raises:
            InputError: a name, shape or dtype is wrong.
            SimulationError: the accelerator complained.
        """
        import tvm

        arrays = bind_inputs(self._compiled.source.inputs, inputs)
        self.runs.clear()
        self._failure = None
        try:
            result = self.machine["main"](*(tvm.runtime.tensor(array) for array in arrays))
        except RuntimeError as error:
            # An exception that crosses TVM loses its type.
            if self._failure is not None:
                raise self._failure from error
            raise
        if isinstance(result, tvm.runtime.Tensor):
            return [result.numpy()]
        return [field.numpy() for field in result]

    def _with_library(self) -> VirtualMachine:
        """Return the machine with regions as a library of C."""
        import tvm
        from tvm import relax

        from htvm.relax.passes import register_target

        register_target(self._compiled.target)
        module = relax.transform.RunCodegen()(self._compiled.partition.module)
        return relax.VirtualMachine(linked(tvm.compile(module, target="llvm")), tvm.cpu())

    def _with_simulator(self, runner: RegionRunner) -> VirtualMachine:
        """Return the machine with regions as functions of the accelerators' simulator."""
        import tvm
        import tvm_ffi
        from tvm import relax

        from patterns.byoc.codegen import run_codegen

        compiled, target = self._compiled, self._compiled.target
        parts = compiled.partition
        generated = run_codegen(parts, compiled.cost, target.accelerators, compiled.source.name)
        module = generated.module
        # The C of regions is not part of this flow.
        for name in list(module.attrs.keys()) if module.attrs else ():
            module = module.without_attr(name)
        program = linked(tvm.compile(module, target="llvm"))
        functions = {
            symbol: self._external(runner, runner.prepare(region), region.layers)
            for symbol, region in parts.regions.items()
        }
        for symbol, function in functions.items():
            tvm_ffi.register_global_func(symbol, function, override=True)
        try:
            # The machine looks its functions up once, while it is made.
            return relax.VirtualMachine(program, tvm.cpu())
        finally:
            for symbol in functions:
                tvm_ffi.registry.remove_global_func(symbol)

    def _external(self, runner: RegionRunner, region: Any, layers: Any) -> Callable[..., None]:
        """Return the packed function of a region; outputs are its last arguments."""
        names = tuple(layer.name for layer in layers)
        soc, options = self._compiled.target.soc, self._compiled.options.tiling
        inputs = len(region.inputs)

        def call(*tensors: Any) -> None:
            given = [tensor.numpy() for tensor in tensors[:inputs]]
            try:
                outputs, count = runner.run(region, soc, options, given)
            except HtvmError as error:
                self._failure = error
                raise
            self.runs.append(RegionRun(names, count))
            for tensor, values in zip(tensors[inputs:], outputs, strict=True):
                shape = tuple(int(size) for size in tensor.shape)
                tensor.copyfrom(values.reshape(shape))

        return call


def linked(program: Executable) -> Executable:
    """Return what TVM compiled, linked by `htvm.relax.link`.

    Raises:
        ToolchainError: the compiler is not installed, or failed.
    """
    program.jit(fcompile=link)
    return program
