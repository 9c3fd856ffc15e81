"""The commands: compile, run, compare, explain, explore, targets."""

from __future__ import annotations

import functools
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import numpy as np

import htvm
from htvm.cli.arguments import open_model, read_inputs, read_samples
from htvm.cli.terminal import Interrupts, log_to_stderr, report_defect, shown_progress
from htvm.errors import ExportError, HtvmError
from htvm.inputs import bind_inputs

if TYPE_CHECKING:
    from htvm.result import RunResult

__all__ = ["app", "exit_code", "main"]

EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130

Command = TypeVar("Command", bound=Callable[..., None])


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(htvm.__version__)
def app() -> None:
    """Quantized networks as self-contained C for SoCs with accelerators.

    MODEL is a quantized .tflite or .onnx file, a network for handwritten digits (zoo:digits,
    zoo:digits_ternary), or a built-in one with random weights: zoo:NAME, e.g. zoo:resnet8, with a
    scheme of weights (8-bit, ternary, mixed) zoo:resnet8:ternary, and with another seed
    zoo:resnet8@1.
    """


def _common(command: Command) -> Command:
    """Options of every command."""

    @click.option("-v", "--verbose", count=True, help="Say what is done; -vv says everything.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
    @functools.wraps(command)
    def wrapped(verbose: int, **options: Any) -> None:
        log_to_stderr(verbose)
        command(**options)

    return wrapped  # type: ignore[return-value]


_FOLDER = "Folder to write: a new or empty one, or an earlier export, which is replaced."

_model = click.argument("model")


def _known_target(_context: click.Context, _option: click.Parameter, name: str) -> str:
    """Refuse a target that does not exist before a model is opened, which takes longer."""
    from byoc_dory.soc.registry import resolve

    return resolve(name).name


_target = click.option(
    "--target",
    "-t",
    default="diana",
    show_default=True,
    callback=_known_target,
    help="What to build for; `htvm targets` lists them.",
)
_policy = click.option(
    "--policy",
    type=click.Choice(["bitwidth", "latency", "mixed"]),
    help="Who runs what several cores could run: by bits of the weights, by estimated cycles, or "
    "by the published rule; the target's own by default.",
)
_schedule = click.option(
    "--schedule",
    type=click.Choice(["published", "overlapped"]),
    help="Layer by layer as published, or transfers beside the cores.",
)
_platform = click.option(
    "--platform",
    type=click.Choice(["rv32", "host"]),
    default="rv32",
    show_default=True,
    help="Firmware on the instruction-set simulator, or the same C natively (no cycles).",
)
_input = click.option(
    "--input",
    "-i",
    "given",
    default="random",
    show_default=True,
    help="An .npz or .npy file of integers as the model takes them, or random:SEED.",
)


@app.command("compile")
@_model
@_target
@_policy
@_schedule
@click.option("--out", "-o", required=True, type=click.Path(path_type=Path), help=_FOLDER)
@_common
def compile_command(
    model: str, target: str, policy: str | None, schedule: Any, out: Path, as_json: bool
) -> None:
    """Write a self-contained C project for MODEL into a folder."""
    from htvm.report.layers import report_json

    with shown_progress() as progress:
        module = htvm.build(
            open_model(model), target=target, policy=policy, schedule=schedule, progress=progress
        )
        with progress.stage("writing the project"):
            folder = module.export(out)
    report = module.report()
    click.echo(report_json(report) if as_json else f"{report}\n\nwritten to {folder}")


@app.command()
@_model
@_target
@_policy
@_schedule
@_platform
@_input
@click.option("--out", "-o", type=click.Path(path_type=Path), help="Write the outputs as .npz.")
@click.option("--check", is_flag=True, help="Compare with the reference; exit code 1 if not equal.")
@_common
def run(
    model: str,
    target: str,
    policy: str | None,
    schedule: Any,
    platform: Any,
    given: str,
    out: Path | None,
    check: bool,
    as_json: bool,
) -> None:
    """Build MODEL and run it once on the simulated SoC."""

    opened = open_model(model)
    inputs = bind_inputs(opened.inputs, read_inputs(given, opened.inputs))
    with shown_progress() as progress:
        module = htvm.build(
            opened, target=target, platform=platform, policy=policy, schedule=schedule,
            progress=progress,
        )  # fmt: skip
        with progress.stage("simulating"):
            result = module.run(inputs)
        equal = None
        if check:
            with progress.stage("computing the reference"):
                reference = module.reference(inputs)
            equal = all(map(np.array_equal, result.outputs, reference))
    outputs = {info.name: array for info, array in zip(opened.outputs, result.outputs, strict=True)}
    if out is not None:
        _save(out, outputs)
    if as_json:
        click.echo(json.dumps(_run_data(outputs, result, equal), indent=2))
    else:
        click.echo(f"{module.report()}\n")
        for name, array in outputs.items():
            click.echo(f"{name}: {_brief(array)}")
        if equal is not None:
            click.echo(f"equal to the reference: {'yes' if equal else 'NO'}")
    if equal is False:
        raise click.exceptions.Exit(1)


def _run_data(
    outputs: Mapping[str, np.ndarray], result: RunResult, equal: bool | None
) -> dict[str, Any]:
    """What ``run --json`` prints."""
    return {
        "cycles": result.cycles,
        "latency_ms": result.latency_ms,
        "equal_to_reference": equal,
        "outputs": {name: array.tolist() for name, array in outputs.items()},
        "layers": [asdict(layer) for layer in result.layers],
    }


def _save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays to an .npz file of exactly this name, or nothing at all.

    Raises:
        ExportError: it cannot be written.
    """
    hint = "name a file in a folder that exists and is writable"
    try:
        # The file a link points to, not the link.
        place = path.resolve()
        if place.exists() and not place.is_file():
            # A folder, or a device, which the move below would replace.
            raise ExportError(
                "cannot write the outputs: this is no file", where=f"--out {path}", hint=hint
            )
        with tempfile.TemporaryDirectory(prefix=".htvm-", dir=place.parent) as folder:
            partial = Path(folder) / "outputs.npz"
            with partial.open("wb") as stream:
                np.savez(stream, **dict(arrays))  # type: ignore[arg-type]
            partial.replace(place)
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, an impossible name
        reason = getattr(error, "strerror", None) or str(error)
        raise ExportError(
            f"cannot write the outputs: {reason}", where=f"--out {path}", hint=hint
        ) from error


def _brief(array: np.ndarray) -> str:
    """Shape, dtype, the first values, and the largest of a short vector."""
    values = array.reshape(-1)
    shown = " ".join(str(value) for value in values[:16])
    dots = " ..." if values.size > 16 else ""
    return f"{array.dtype}{list(array.shape)} {shown}{dots} (largest at {values.argmax()})"


@app.command()
@_model
@_target
@_policy
@_schedule
@_input
@click.option(
    "--count",
    "-n",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Inputs to try: seeds from SEED on, or entries of the file.",
)
@_common
def compare(
    model: str,
    target: str,
    policy: str | None,
    schedule: Any,
    given: str,
    count: int,
    as_json: bool,
) -> None:
    """Compare MODEL on a target with plain TVM, on the same simulated SoC."""
    from htvm.report.compare import comparison_json

    opened = open_model(model)
    samples = read_samples(given, opened.inputs, count)
    with shown_progress() as progress:
        found = htvm.compare(
            opened, target=target, inputs=samples, policy=policy, schedule=schedule,
            progress=progress,
        )  # fmt: skip
    click.echo(comparison_json(found) if as_json else str(found))


@app.command()
@_model
@_target
@_policy
@_schedule
@_common
def explain(model: str, target: str, policy: str | None, schedule: Any, as_json: bool) -> None:
    """Say where each operator of MODEL runs, and why not elsewhere."""
    from byoc_dory.options import TilingOptions
    from htvm.describe import explanation_of
    from htvm.pipeline import BuildOptions, compile_model
    from htvm.report.explain import explain_json

    opened = open_model(model)
    with shown_progress() as progress:
        # Verdicts need no C compiler, and no memory that is large enough.
        tiling = TilingOptions() if schedule is None else TilingOptions(schedule=schedule)
        options = BuildOptions(tiling=tiling, policy=policy)
        found = explanation_of(compile_model(opened, target, options, progress=progress))
    click.echo(explain_json(found.rows) if as_json else str(found))


@app.command()
@_model
@_target
@_policy
@_schedule
@click.option("--objective", "objectives", multiple=True, help="Which to try; all by default.")
@click.option("--l1", "budgets", multiple=True, type=click.IntRange(min=1), help="Bytes of L1.")
@click.option("--alpha", "alphas", multiple=True, type=int, help="Weight of a byte of L1.")
@click.option("--beta", "betas", multiple=True, metavar="HEURISTIC=W[,W...]", help="Weights.")
@click.option("--out", "-o", type=click.Path(path_type=Path), help="Folder for CSV and figures.")
@_common
def explore(model: str, as_json: bool, out: Path | None, **choices: Any) -> None:
    """Tile the layers of MODEL under every choice of objective, weights and L1 budget."""
    from htvm.cli.sweeps import explored, write_sweep

    with shown_progress() as progress:
        found = explored(open_model(model), progress=progress, **choices)
    files = [] if out is None else write_sweep(found, out)
    click.echo(json.dumps(found.records, indent=2) if as_json else str(found))
    for path in files:
        click.echo(f"written: {path}", err=True)
    if found.interrupted:
        raise click.exceptions.Exit(EXIT_INTERRUPTED)


@app.command()
@_common
def targets(as_json: bool) -> None:
    """List what a model can be built for."""
    from byoc_dory.soc.registry import resolve, targets
    from htvm.report.table import Column, Table, count, text

    known = [resolve(name) for name in targets()]
    if as_json:
        data = [
            {
                "target": target.name,
                "soc": target.soc.title,
                "accelerators": [accelerator.name for accelerator in target.accelerators],
                "clock_hz": target.soc.clock_hz,
                "l2_bytes": target.soc.memory("L2").size,
            }
            for target in known
        ]
        click.echo(json.dumps(data, indent=2))
        return
    columns = (
        Column("target"),
        Column("accelerators"),
        Column("MHz", number=True),
        Column("L2 bytes", number=True),
        Column("SoC"),
    )
    rows = tuple(
        (
            target.name,
            ", ".join(accelerator.name for accelerator in target.accelerators) or "none",
            f"{target.soc.clock_hz / 1e6:g}",
            count(target.soc.memory("L2").size),
            target.soc.title,
        )
        for target in known
    )
    click.echo(text(Table(columns, rows)))


def exit_code(command: click.Command, argv: Sequence[str] | None) -> int:
    """Run a command and turn what can go wrong into one message and an exit code.

    Args:
        command: what to run.
        argv: its arguments; those of the process by default.

    Returns:
        0, or what the command asks for; 2 for what the user can mend; 130 when interrupted.  What
        no one foresaw ends the process with 1 and a message, with ``-v`` the traceback.
    """
    interrupts = Interrupts()
    if argv is None:
        sys.excepthook = report_defect
        interrupts.watch()
    try:
        code = command.main(args=None if argv is None else list(argv), standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        return _interrupted()
    except Exception as error:
        # Anything: an interrupt that met a callback of the compiler, or ended a child first, comes
        # out as some other error.  What is no message to the user goes on to `report_defect`.
        if interrupts.seen:
            return _interrupted()
        if isinstance(error, HtvmError):
            click.echo(f"htvm: error: {error}", err=True)
            return EXIT_USER_ERROR
        if isinstance(error, click.ClickException):
            error.show()
            return error.exit_code
        raise
    finally:
        if argv is None:
            interrupts.ignore()
    return code if isinstance(code, int) else 0


def _interrupted() -> int:
    click.echo("htvm: interrupted", err=True)
    return EXIT_INTERRUPTED


def main(argv: Sequence[str] | None = None) -> int:
    """The console command ``htvm``; see `exit_code`."""
    return exit_code(app, argv)
