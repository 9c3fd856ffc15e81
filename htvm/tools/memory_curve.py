"""`memory_curve`: what a network costs with less and less memory, built and run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from byoc_dory.errors import DefectError
from htvm.aot.chains import chains_in
from htvm.inputs import seeded_inputs
from htvm.pipeline import build
from htvm.progress import Progress
from htvm.progress_bar import with_progress
from htvm.public import public
from htvm.tools.report.memory_curve import LEAST, NO_LIMIT, MemoryCurve, MemoryPoint

if TYPE_CHECKING:
    from tvm.ir import IRModule

    from byoc_dory.soc.base import Target
    from htvm.build_options import Input
    from htvm.model import Model
    from htvm.module import Module
    from htvm.result import RunResult

_BETWEEN = (0.75, 0.5, 0.25)
"""Limits between the least arena (0) and that without chains (1)."""


@public
@with_progress
def memory_curve(
    model: Model | IRModule | str | Path,
    target: str | Target,
    *,
    input: Input = "kept",
    progress: Progress | None = None,
) -> MemoryCurve:
    """Build a network with less and less memory, and run each build once.

    Args:
        model: a model from `htvm.load`, or anything `htvm.load` takes.
        target: a target without accelerators, whose runs count cycles or instructions.
        input: where inputs are, as for `htvm.build`.
        progress: receives the builds.

    Raises:
        HtvmError: as `htvm.build` and `Module.run`.
        DefectError: two builds differ in their outputs.
    """
    progress = progress or Progress()
    runs: list[tuple[str, Module, RunResult]] = []

    def enter(limit: str, memory: int | Literal["least"] | None) -> Module:
        with progress.stage(f"limit {limit}", (len(runs) + 1, len(_BETWEEN) + 2)):
            module = build(model, target, memory=memory, input=input)
            result = module.run(seeded_inputs(module.compiled.source.inputs))
        for made, wanted in zip(result.outputs, (runs or [(limit, module, result)])[0][2].outputs,
                                strict=True):  # fmt: skip
            if not np.array_equal(made, wanted):
                raise DefectError("the outputs differ from those without it", where=f"{limit} B")
        runs.append((limit, module, result))
        return module

    whole = enter(NO_LIMIT, None)
    least = enter(LEAST, "least")
    room = whole.l2_peak - least.l2_peak
    if room > 0:
        for share in _BETWEEN:
            limit = least.l2_peak + int(room * share)
            enter(str(limit), limit)
    runs = [runs[0], *runs[2:], runs[1]]
    counts_cycles = runs[0][2].cycles is not None
    costs = [result.cycles if counts_cycles else result.instructions for *_, result in runs]
    points = tuple(
        MemoryPoint(
            limit,
            module.l2_peak,
            result.stack_bytes,
            cost or 0,
            (cost or 0) / (costs[0] or 1) - 1,
            ", ".join(str(len(kernel.layers)) for kernel in chains_in(module.compiled.cpu_kernels)),
        )
        for (limit, module, result), cost in zip(runs, costs, strict=True)
    )
    unit = "cycles" if counts_cycles else "instructions"
    return MemoryCurve(whole.name, whole.target, unit, points)
