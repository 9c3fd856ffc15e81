"""``htvm run``: one inference on the simulated SoC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import htvm
from htvm.progress_bar import shown_progress
from htvm.tools.cli import options
from htvm.tools.cli.arguments import Network
from htvm.tools.cli.output import (
    fail_if_any,
    file_to_write,
    model_word,
    print_json,
    print_report,
    save_arrays,
)
from htvm.tools.cli.terminal import echo, terminal_width

if TYPE_CHECKING:
    from htvm.result import RunResult
    from htvm.tools.report.difference import Condition
    from htvm.tools.verification.types import Stray


@click.command(
    epilog=options.examples(
        "htvm run zoo:resnet8 --check",
        "htvm run kws.onnx --input samples.npz --out outputs.npz",
        "htvm run zoo:digits --platform host --json",
    )
)
@options.network
@options.labels
@options.build
@options.platform
@options.l2
@options.cc
@options.given_input
@options.all_tables
@options.wide
@options.fail_if
@options.out("Write the outputs as .npz.", file_to_write("the outputs", ".npz"))
@click.option(
    "--check",
    is_flag=True,
    help="Compare with the reference, and watch red zones around all buffers; exit code 1 if the "
    "outputs are not equal, or a step writes outside of its results.",
)
@options.common
def command(
    network: Network,
    target: str,
    build: options.Build,
    given: str,
    everything: bool,
    wide: bool,
    conditions: tuple[Condition, ...],
    out: Path | None,
    check: bool,
    as_json: bool,
) -> None:
    """Build MODEL and run it once on the simulated SoC."""
    from htvm.tools.report.difference import figures_of
    from htvm.tools.report.table import wrapped

    opened, inputs = network.open_with(given)
    with shown_progress() as progress:
        module = htvm.build(opened, target, **build, progress=progress)
        with progress.stage("simulating"):
            result = module.run(inputs)
        equal, stray, guarded = None, None, check and module.platform == "rv32"
        if check:
            with progress.stage("computing the reference"):
                reference = module.reference(inputs)
            equal = all(map(np.array_equal, result.outputs, reference))
        if guarded:
            with progress.stage("simulating with red zones"):
                stray = module.outside(inputs)
    outputs = {info.name: array for info, array in zip(opened.outputs, result.outputs, strict=True)}
    if out is not None:
        save_arrays(out, outputs)
    if as_json:
        found = {"guarded": guarded, "stray": None if stray is None else asdict(stray)}
        print_json("run", {**_run_data(outputs, result, equal), **found})
    else:
        more = f"all tables: --all   reasons: htvm explain {model_word(network.text)} -t {target}"
        print_report(module.report(), everything, wide, more)
        echo()
        for name, array in outputs.items():
            echo("\n".join(wrapped([f"{name}: {_brief(array)}"], terminal_width())))
        if equal is not None:
            echo(f"equal to the reference: {'yes' if equal else 'NO'}")
            echo(_guards_text(stray, guarded))
    if equal is False or stray is not None:
        raise click.exceptions.Exit(1)
    fail_if_any(conditions, figures_of(module.report()))


def _guards_text(stray: Stray | None, guarded: bool) -> str:
    """Return what the red zones say."""
    if not guarded:
        return "red zones: not watched on this platform"
    if stray is None:
        return "red zones around all buffers: untouched"
    return f"a step writes OUTSIDE of its results; htvm verify names the line of C\n{stray}"


def _run_data(
    outputs: Mapping[str, np.ndarray], result: RunResult, equal: bool | None
) -> dict[str, Any]:
    """Return the data that ``run --json`` prints."""
    return {
        "cycles": result.cycles,
        "latency_ms": result.latency_ms,
        "instructions": result.instructions,
        "estimated_cycles": result.estimated_cycles,
        "equal_to_reference": equal,
        "outputs": {name: array.tolist() for name, array in outputs.items()},
        "layers": [asdict(layer) for layer in result.layers],
    }


def _brief(array: np.ndarray) -> str:
    """Return shape, dtype, the first values, and the largest of a short vector."""
    values = array.reshape(-1)
    shown = " ".join(str(value) for value in values[:16])
    dots = " ..." if values.size > 16 else ""
    return f"{array.dtype}{list(array.shape)} {shown}{dots} (largest at {values.argmax()})"
