"""``htvm compile``: a model as a folder of C."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click

import htvm
from byoc_dory.emit.text import c_identifier
from htvm.errors import InputError
from htvm.progress_bar import shown_progress
from htvm.tools.cli import options
from htvm.tools.cli.arguments import Network
from htvm.tools.cli.output import model_word, print_json, print_report, refuse_file_name
from htvm.tools.cli.terminal import echo


def _name(_context: click.Context, _option: click.Parameter, given: str | None) -> str | None:
    if given is not None and c_identifier(given) != given:
        raise InputError(
            f"'{given}' is not usable as a C identifier",
            where="--name",
            hint=f"give for example {c_identifier(given)}",
        )
    return given


@click.command(
    epilog=options.examples(
        "htvm compile resnet8_int8.tflite --out build/resnet8",
        "htvm compile zoo:ds_cnn --target diana.cpu --out build/ds_cnn",
        "htvm compile kws.tflite --board nucleo-l4r5zi --as zephyr --out modules/kws",
        "htvm compile kws.tflite --input yes.npy --out build/kws",
    )
)
@options.network
@options.labels
@options.build
@options.l2
@options.given_input
@options.cc
@options.all_tables
@options.wide
@options.out(options.EXPORT_FOLDER, required=True)
@click.option(
    "--name",
    callback=_name,
    help="What C functions and files are named after, instead of the file: kws for kws_run.",
)
@click.option(
    "--as",
    "kind",
    metavar="KIND",
    help="A package instead of a project: zephyr, esp-idf, arduino, platformio, cmsis, cmake, or "
    "mlf (TVM's Model Library Format, a tar file).",
)
@click.option(
    "--assembly",
    type=click.Choice(["ahead", "late"]),
    help="Command streams made ahead of time, or by the device at start-up (dla).",
)
@options.common
def command(
    network: Network,
    target: str,
    build: options.Build,
    given: str,
    everything: bool,
    wide: bool,
    out: Path,
    name: str | None,
    kind: str | None,
    as_json: bool,
) -> None:
    """Write a self-contained C project for MODEL into a folder.

    It has a sample, random or that of --input, and the outputs that are right for it.
    """
    from byoc_dory.soc.registry import resolve
    from htvm.firmware.export import check_folder
    from htvm.firmware.mlf import check_tar
    from htvm.firmware.packages import MLF, kind_written
    from htvm.tools.report.save import report_json

    kind = kind_written(kind, resolve(target).soc)
    if kind == MLF:
        if given != "random":
            raise InputError(
                "the Model Library Format has no sample",
                where="--input",
                hint="leave it out, or choose another --as",
            )
        check_tar(out)
    else:
        refuse_file_name(out, "--out")
        check_folder(out, kind)
    opened, inputs = network.open_with(given)
    if name is not None:
        opened = replace(opened, name=name)
    with shown_progress() as progress:
        module = htvm.build(opened, target=target, **build, progress=progress)
        with progress.stage("writing the project"):
            folder = module.export(out, inputs, kind=kind)
    report = module.report()
    if as_json:
        print_json("compile", {"folder": str(folder), "report": json.loads(report_json(report))})
    else:
        counted = "instructions" if report.summary.platform in ("arm", "qemu") else "cycles"
        more = f"all tables: --all   {counted}: htvm run {model_word(network.text)} -t {target}"
        print_report(report, everything, wide, more)
        echo(f"\nwritten to {folder}")
