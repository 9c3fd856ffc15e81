"""The implementation of `Module.verify`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy.typing as npt

from htvm.progress import Progress
from htvm.tools.verification.types import Verification

if TYPE_CHECKING:
    from htvm.compiled import Compiled
    from htvm.firmware.build import Built
    from htvm.tools.verification.types import Stray

Array: TypeAlias = npt.NDArray[Any]


def verify(
    compiled: Compiled,
    inputs: Sequence[Array],
    golden: Mapping[str, Array] | None = None,
    settings: Mapping[int, int] | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Run a compiled model on the simulated SoC and compare every step with the reference.

    Args:
        compiled: the compiled model.
        inputs: one array per input, checked.
        golden: the user's own outputs by name, checked.
        settings: settings of the device models: register -> value written before the first cycle.
        progress: receives the stages as they are done.

    Raises:
        L2OverflowError: the program does not fit.
        ToolchainError: there is no C compiler, or it failed.
        SimulationError: the core trapped, or a device model complained.
    """
    from htvm.aot.reference import build_llvm_reference
    from htvm.tools.verification.compare import compare_steps, first_difference
    from htvm.tools.verification.golden import compare_golden
    from htvm.tools.verification.observe import ObservableMachine
    from htvm.tools.verification.reference import operator_results
    from htvm.tools.verification.results import step_results
    from htvm.tools.verification.zones import Zones

    progress = progress or Progress()
    with progress.stage("computing the reference"):
        reference = operator_results(compiled.retargeted.model.module, inputs)
        results = step_results(compiled, reference)
    with progress.stage("compiling C for rv32"):
        machine = ObservableMachine(compiled.program, compiled.target.soc, inputs, settings or {})
    with progress.stage("simulating"):
        zones = Zones(compiled, machine)
        observed = machine.observe(results, zones.ranges(), zones.untouched())
        steps, first = compare_steps(machine, observed, results)
        stray = zones.stray(observed)
    difference = None
    if first is not None:
        with progress.stage("finding who wrote it"):
            difference = first_difference(machine, observed, *first)
    checks: tuple[Any, ...] = ()
    if golden is not None:
        with progress.stage("comparing with the golden"):
            source = build_llvm_reference(compiled.source.module)(list(inputs))
            checks = compare_golden(compiled.source.outputs, golden, observed.outputs, source)
    return Verification(
        network=compiled.source.name,
        target=compiled.target.name,
        steps=steps,
        difference=difference,
        golden=checks,
        retargeted=compiled.retargeted.report.changed,
        stray=stray,
    )


def outside(compiled: Compiled, inputs: Sequence[Array], built: Built) -> Stray | None:
    """Run a build and return what a step first writes outside of its results; None if none does.

    Args:
        compiled: the compiled model.
        inputs: one array per input, checked.
        built: its firmware.

    Raises:
        SimulationError: the core trapped, or a device model complained.
    """
    from htvm.tools.verification.observe import ObservableMachine
    from htvm.tools.verification.zones import Zones

    machine = ObservableMachine(compiled.program, compiled.target.soc, inputs, {}, built)
    zones = Zones(compiled, machine)
    observed = machine.observe((), zones.ranges(), zones.untouched())
    return zones.stray(observed, trace=False)
