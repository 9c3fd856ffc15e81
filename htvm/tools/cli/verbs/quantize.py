"""``htvm quantize``: an int8 network from a float one and typical inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from htvm.progress_bar import shown_progress
from htvm.tools.cli import options
from htvm.tools.cli.arguments import read_named, read_size
from htvm.tools.cli.output import PATH, file_to_write, print_json
from htvm.tools.cli.terminal import echo

if TYPE_CHECKING:
    from htvm.frontend.limits import Limits


@click.command(
    epilog=options.examples(
        "htvm quantize float.onnx --data samples.npz --out int8.onnx",
        "htvm run int8.onnx --io int8 --data samples.npz",
    )
)
@click.argument("network", metavar="MODEL", type=PATH)
@click.option(
    "--data",
    "-d",
    required=True,
    type=PATH,
    metavar="FILE",
    help="An .npz or .npy file with real inputs, [N, ...], as varied as in use; a hundred often "
    "suffice.",
)
@options.out(
    "The .onnx file to write, with int8 weights and activations (QDQ).",
    file_to_write("the quantized network", ".onnx"),
    required=True,
)
@click.option(
    "--dimension",
    "dimensions",
    multiple=True,
    metavar="NAME=SIZE",
    help="Size of a dimension that MODEL leaves open, e.g. height=32; may be repeated. An open "
    "first one, the batch, is 1.",
)
@options.limits
@options.common
def command(
    network: Path,
    data: Path,
    out: Path,
    dimensions: tuple[str, ...],
    limits: Limits | None,
    as_json: bool,
) -> None:
    """Quantize the float network MODEL (.onnx or .tflite) to int8, and write it as ONNX.

    Scales and zero points come from the data, by onnxruntime's static quantizer.  The file keeps
    the float inputs and outputs; --io int8 of the other verbs leaves their conversions out.
    """
    from htvm.files import write_whole
    from htvm.quantization.float_model import quantized_file

    sizes = dict(map(_size, dimensions))
    with shown_progress() as progress:
        text, samples = quantized_file(
            network, data, dimensions=sizes or None, limits=limits, progress=progress
        )
    write_whole(out, text, "the quantized network", f"--out {out}")
    if as_json:
        print_json("quantize", {"file": str(out), "bytes": len(text), "samples": samples})
    else:
        echo(f"written to {out}: {len(text):,} B, fitted to {samples} samples")
        echo(f"next: htvm run {out} --io int8 --data {data} --check")


def _size(text: str) -> tuple[str, int]:
    def size(value: str) -> int:
        if (found := read_size(value)) < 1:
            raise ValueError
        return found

    return read_named(text, size, "size of a dimension", "--dimension", "batch=1")
