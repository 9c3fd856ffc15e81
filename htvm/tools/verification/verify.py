"""The implementation of `Module.verify`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from byoc_dory.errors import InputError, TargetError
from byoc_dory.soc.registry import resolve
from htvm.aot.reference import build_llvm_reference
from htvm.arrays import read_arrays
from htvm.progress import Progress
from htvm.tools.verification.types import GoldenCheck, Verification

if TYPE_CHECKING:
    from tvm.ir import IRModule

    from byoc_dory.layers import Array
    from byoc_dory.soc.base import Soc
    from htvm.compiled import Compiled
    from htvm.firmware.build import Built
    from htvm.model import TensorInfo
    from htvm.tools.verification.types import Number, Stray

_ANY_CORE = "generic.cpu"  # whose SoC executes the C for any core


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
        TargetError: the simulator has no core that executes its program.
        L2OverflowError: the program does not fit.
        ToolchainError: there is no C compiler, or it failed.
        SimulationError: the core trapped, or a device model complained.
    """
    from htvm.tools.verification.compare import compare_steps, first_difference
    from htvm.tools.verification.observe import ObservableMachine, step_results
    from htvm.tools.verification.rows import checks_of, made_rows, row_difference, rows_of
    from htvm.tools.verification.zones import Zones

    progress = progress or Progress()
    soc = simulated(compiled.target.soc)
    with progress.stage("computing the reference"):
        reference = operator_results(compiled.retargeted.model.module, inputs)
        results = step_results(compiled, reference)
    with progress.stage("compiling C for rv32"):
        machine = ObservableMachine(compiled.program, soc, inputs, settings or {})
    with progress.stage("simulating"):
        zones = Zones(compiled, machine)
        rows = rows_of(compiled, machine, reference)
        calls = [each.call for each in rows]
        observed = machine.observe(results, zones.ranges(), zones.untouched(), calls)
        steps, first = compare_steps(machine, observed, results)
        made = made_rows(rows, observed)
        steps = tuple(replace(step, members=checks_of(made, step)) for step in steps)
        stray = zones.stray(observed)
    wrong = next((each for each in made if each.wrong.any()), None)
    difference = None
    if wrong is not None or first is not None:
        with progress.stage("finding who wrote it"):
            if wrong is not None and (first is None or wrong.rows.step <= first[1]):
                difference = row_difference(machine, observed, made, wrong)
            elif first is not None:
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
        executed="" if soc is compiled.target.soc else soc.host.name,
    )


def simulated(soc: Soc) -> Soc:
    """Return the SoC on whose simulated core the steps of a SoC's programs are watched.

    Programs for one Cortex-M or Xtensa core without devices have the same plan, calls and C on any
    core, but for the assembly of kernels, which is plain C with the same results.

    Raises:
        TargetError: its programs need cores that the simulator does not have.
    """
    if soc.host.platform == "rv32":
        return soc
    host = soc.host
    if (host.arm or host.xtensa) is None or soc.accelerators or soc.cluster is not None:
        raise TargetError(
            f"steps are watched on the simulator, which has no {host.name}",
            where="htvm verify",
            hint="htvm run --check compares its outputs with the reference",
        )
    return resolve(_ANY_CORE).soc


def written_outside(compiled: Compiled, inputs: Sequence[Array], built: Built) -> Stray | None:
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


Golden: TypeAlias = "str | Path | Mapping[str, npt.NDArray[np.generic]]"


def bind_golden(infos: Sequence[TensorInfo], golden: Golden) -> dict[str, Array]:
    """Return the user's outputs by name; outputs may be missing.

    Args:
        infos: the model's outputs.
        golden: a mapping from output name to array, or an ``.npz`` file with such arrays; for a
            model with one output also an ``.npy`` file, or an ``.npz`` file with one array of any
            name.

    Raises:
        InputError: the file holds no arrays, a name, shape or dtype is wrong, or nothing is given.
    """
    expected = ", ".join(f"{info.name}: {info.dtype}{list(info.shape)}" for info in infos)
    where, named = "golden", golden
    if isinstance(golden, (str, Path)):
        where = f"golden '{golden}'"
        named = read_arrays(Path(golden), "give an .npz file with the outputs' names", "outputs")
        if len(named) == 1 and len(infos) == 1:
            named = {infos[0].name: next(iter(named.values()))}
    if not isinstance(named, Mapping):
        raise InputError(
            f"{type(named).__name__} instead of arrays by name",
            where=where,
            hint=f"give a dict or an .npz file; the model gives {expected}",
        )
    if not named:
        raise InputError(
            "there are no outputs in it", where=where, hint=f"the model gives {expected}"
        )
    infos_by_name = {info.name: info for info in infos}
    for name, array in named.items():
        if name not in infos_by_name:
            raise InputError(
                f"the model has no output '{name}'", where=where, hint=f"it gives {expected}"
            )
        _check(infos_by_name[name], array, where)
    return dict(named)


def _check(info: TensorInfo, array: object, where: str) -> None:
    where = f"{where}, output '{info.name}'"
    if not isinstance(array, np.ndarray):
        raise InputError(f"a {type(array).__name__} is not a numpy array", where=where)
    if array.dtype != np.dtype(info.dtype):
        raise InputError(
            f"dtype {array.dtype} instead of {info.dtype}", where=where,
            hint="give the integers that the model gives, not real values"
            if info.dtype != "float32" else "convert it with array.astype('float32')",
        )  # fmt: skip
    if array.shape != tuple(info.shape):
        raise InputError(
            f"shape {list(array.shape)} instead of {list(info.shape)}", where=where,
            hint="give the outputs of one inference, with the batch axis",
        )  # fmt: skip


def compare_golden(
    infos: Sequence[TensorInfo],
    golden: Mapping[str, Array],
    outputs: Sequence[Array],
    source: Sequence[Array],
) -> tuple[GoldenCheck, ...]:
    """Compare a run's outputs with the user's.

    Args:
        infos: the model's outputs.
        golden: outputs from `bind_golden`.
        outputs: outputs of the run.
        source: outputs of the source model as imported, for the same inputs.
    """
    return tuple(
        _compared(info, golden[info.name], run, own)
        for info, run, own in zip(infos, outputs, source, strict=True)
        if info.name in golden
    )


def _compared(info: TensorInfo, golden: Array, run: Array, source: Array) -> GoldenCheck:
    wrong = run != golden
    missed = int((source != golden).sum())
    if not wrong.any():
        return GoldenCheck(info.name, wrong.size, 0, source_different=missed)
    first = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    noise = run.astype(np.float64) - golden.astype(np.float64)
    signal = golden.astype(np.float64) - (info.zero_point or 0)
    value, expected, largest = (x.item() for x in (run[first], golden[first], np.abs(noise).max()))
    return GoldenCheck(
        info.name, wrong.size, int(wrong.sum()), _decibels(signal, noise),
        _plain_number(largest, run.dtype), first, value, expected, missed,
    )  # fmt: skip


def _plain_number(value: float, dtype: np.dtype[Any]) -> Number:
    return value if dtype.kind == "f" else int(value)


def _decibels(signal: Array, noise: Array) -> float:
    """Return 10 log10 of the ratio of the powers."""
    power = float((signal**2).sum())
    return 10.0 * float(np.log10(power / float((noise**2).sum()))) if power else -np.inf


def operator_results(module: IRModule, inputs: Sequence[Array]) -> dict[str, Array]:
    """Compute the results of all operators, and of the inputs, by name.

    Args:
        module: module in the integer form, before partitioning.
        inputs: one array per parameter of ``main``.

    Returns:
        Name of operator (or input) -> array in the module's own layout.  Operators with several
        results are left out.
    """
    main = module["main"]
    names, extended = _with_all_results(module)
    arrays = build_llvm_reference(extended)(list(inputs))
    results: dict[str, Array] = dict(zip(names, arrays, strict=True))
    parameters: Mapping[str, Array] = {
        str(param.name): array for param, array in zip(main.params, inputs, strict=True)
    }
    return {**parameters, **results}


def _with_all_results(module: IRModule) -> tuple[list[str], IRModule]:
    """The module with every operator's last value as a result of ``main``, and their names."""
    from tvm import relax

    from patterns.names import name_of

    main = module["main"]
    last: dict[str, Any] = {}
    blocks = list(main.body.blocks)
    for block in blocks:
        for binding in block.bindings:
            name = name_of(binding.value)
            if name is not None and isinstance(binding.var.ty, relax.TensorType):
                last[name] = binding.var
    together = relax.Tuple(list(last.values()))
    every = relax.Var("every_result", relax.TupleType([var.ty for var in last.values()]))
    ending = blocks[-1]
    bindings = [*ending.bindings, relax.VarBinding(every, together)]
    blocks[-1] = relax.DataflowBlock(bindings)
    function = relax.Function(
        main.params, relax.SeqExpr(blocks, every), every.ty, main.is_pure, main.attrs
    )
    extended = module.clone()
    extended["main"] = function
    return list(last), extended
