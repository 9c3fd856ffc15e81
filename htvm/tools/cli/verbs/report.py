"""``htvm report``: one build and its run, as a page, tables, figures or data."""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

import htvm
from byoc_dory.plain import plain
from htvm.errors import ExportError, InputError
from htvm.progress_bar import shown_progress
from htvm.tools.cli import options
from htvm.tools.cli.arguments import Network, shape_text
from htvm.tools.cli.output import fail_if_any, file_to_write, model_word, print_report
from htvm.tools.cli.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from htvm.tools.report.difference import Condition
    from htvm.tools.report.types import Report

_FORMS = {
    "html": ".html",
    "txt": ".txt",
    "csv": ".csv",
    "json": ".json",
    "trace": ".perfetto.json",
    "png": ".png",
}

_ADVICE = 3  # changes to the model that a report advises

# Options that a saved report has already fixed.
_BUILD = (
    "input_shapes", "input_types", "limits", "io", "data", "labels", "target", "board", "policy",
    "schedule", "objective", "l1_budget", "tiling_file", "rewrites", "platform", "given",
)  # fmt: skip


@click.command(
    epilog=options.examples(
        "htvm report zoo:resnet8 --out resnet8.html",
        "htvm report kws.onnx -t diana.digital -o kws.html -o kws.perfetto.json -o kws.json",
        "htvm report kws.json --out kws.png",
    )
)
@options.network
@options.labels
@options.build
@options.platform
@options.given_input
@options.all_tables
@options.wide
@options.fail_if
@options.out(
    "File to write, as its suffix says: .html, .txt, .csv, .json, .perfetto.json (a trace), "
    ".png; may be repeated.  Without, the text is printed.",
    file_to_write("the report"),
    "outs",
    multiple=True,
)
@click.option("--format", "form", type=click.Choice(list(_FORMS)), help="Instead of the suffix.")
@options.common
def command(
    network: Network,
    target: str,
    build: options.Build,
    given: str,
    everything: bool,
    wide: bool,
    conditions: tuple[Condition, ...],
    outs: tuple[Path, ...],
    form: str | None,
    as_json: bool,
) -> None:
    """Build MODEL, run it once, and say where cycles, bytes and energy go.

    MODEL may also be a report that was saved as .json.
    """
    from htvm.tools.report.difference import figures_of
    from htvm.tools.report.save import report_json

    suffixes, model = _suffixes(outs, form), network.text
    if model.lower().endswith(".json"):
        _refuse_build_options()
        report = htvm.report.load(model)
    else:
        opened, inputs = network.open_with(given)
        with shown_progress() as progress:
            module = htvm.build(opened, target, **build, progress=progress)
            with progress.stage("simulating"):
                module.run(inputs)
        report = _with_command(module.report(_ADVICE), model)
    for path, suffix in zip(outs, suffixes, strict=True):
        htvm.report.save(report, path, form=suffix, where=f"--out {path}")
    if as_json:
        echo(report_json(report))
    elif not outs:
        same = "" if target == _default_target() else f" -t {target}"
        page = f"all tables: --all   page: htvm report {model_word(model)}{same} -o report.html"
        print_report(report, everything, wide, page)
    for path in outs:
        echo(f"written: {path}", err=True)
    fail_if_any(conditions, figures_of(report))


def _default_target() -> object:
    """Return the target that is built for if none is given."""
    parameters = click.get_current_context().command.params
    return next(each.default for each in parameters if each.name == "target")


def _suffixes(outs: Sequence[Path], form: str | None) -> list[str]:
    """Return the format of each file; errors are reported before the work begins."""
    from htvm.tools.report.save import format_of

    if form and not outs:
        raise ExportError(
            f"a {form} needs a file to be written to", where="--format", hint="add --out FILE"
        )
    return [_FORMS[form] if form else format_of(path, f"--out {path}") for path in outs]


def _refuse_build_options() -> None:
    """Refuse build options together with a saved report, which has its own."""
    context = click.get_current_context()
    for parameter in context.command.params:
        chosen = context.get_parameter_source(parameter.name or "") == ParameterSource.COMMANDLINE
        if parameter.name in _BUILD and chosen:
            raise InputError(
                "a saved report is of one build and one run, whose options are fixed",
                where=parameter.opts[0],
                hint="leave it out, or give the model instead of the report",
            )


def _with_command(report: Report, model: str) -> Report:
    """Return the report with this command line, and the hash of the model's file if it has one."""
    if report.recipe is None:
        return report
    context = click.get_current_context()
    words = ["htvm", "report", model]
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if parameter.name == "platform":
            value = report.summary.platform  # the target's own, if none was given
        if parameter.name == "limits" and value is not None:
            value = asdict(value)
        if parameter.name not in _BUILD or value in (None, "source"):
            continue
        texts = [str(value)]
        if isinstance(value, dict):  # each by its name
            shaped = parameter.name == "input_shapes"
            texts = [
                shape_text(*each) if shaped else "=".join(map(str, each)) for each in value.items()
            ]
        for text in texts:
            words += [max(parameter.opts, key=len), text]
    path = Path(model)
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    known = replace(
        report.recipe,
        command=plain(shlex.join([*words, "--out", "report.html"])),
        model=plain(model),
        model_sha256=digest,
    )
    return replace(report, recipe=known)
