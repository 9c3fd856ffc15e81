"""What the digital core's number scheme costs: TFLite models before and after retargeting.

Each model's golden inputs (outputs by TFLite Micro), and 200 other seeded inputs, half uniform
integers and half rounded normals around the input's zero point, which calibration never sees.
"Top-1" is the share of inputs whose largest output stays the same, under "ties" with any of several
equal largest outputs of TFLite Micro taken for right; SQNR is of the last layer before the softmax,
in real numbers.

What can be reached at all: "unrounded" is the source itself in real numbers, clipped as the source
clips but rounded nowhere, which no retargeting can be closer to without imitating the source's own
roundings; "rounded once" imitates them but for one thing: each operator's exact real result is
rounded to the nearest integer, where TFLite Micro rounds twice in fixed point (XNNPACK rounds
once, too).  An input whose decision those already change has no decision.  With ``--variants``:
each refinement of retargeting alone, and calibration with 128 other inputs of the two kinds that
are measured.  With ``--layers``: the loss of each layer.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from byoc_dory.layers import Add, Weighted
from htvm.opening import load
from htvm.quantization import RetargetOptions, retarget
from htvm.quantization.annotated import Annotated, is_end
from htvm.quantization.effects import channel_factors, operand_factors, product_of
from htvm.quantization.forward import forward
from htvm.quantization.report import sqnr_db
from htvm.quantization.units import annotated
from htvm.tools.report.table import Column, Table, text
from patterns.ops.tflite.averages import AveragePool
from patterns.reading.node import Node

_ROOT = Path(__file__).resolve().parents[1]
MODELS = ("kws_ref_model", "pretrainedResnet_quant", "vww_96_int8", "ad01_int8")
VARIANTS = {
    "one scale per tensor, nearest weights": RetargetOptions(False, False, False),
    "+ bias correction": RetargetOptions(False, False, True),
    "+ error feedback": RetargetOptions(False, True, True),
    "+ a scale per channel": RetargetOptions(),
    "+ calibration data": RetargetOptions(),
}
SEED = 20_000
DATA_SEED, DATA_COUNT = 900_000, 128  # inputs to calibrate with, others than measured with
BATCH = 25

Array = Any


def inputs_of(net: Annotated, count: int, seed: int = SEED) -> Array:
    """``count`` inputs, alternately uniform and normal, from seeds of their own."""
    (name, shape), *_ = net.inputs.items()
    samples = []
    for index in range(count):
        rng = np.random.default_rng(seed + index)
        normal = np.rint(rng.normal(net.zeros[name], 32, shape))
        samples.append(normal if index % 2 else rng.integers(-128, 128, shape))
    return np.clip(np.stack(samples), -128, 127).astype(np.int8)


def last_of(net: Annotated) -> Node:
    """The last layer before the softmax."""
    return net.products[-1]


def integer_outputs(net: Annotated, x: Array) -> Array:
    """Outputs of the last layer, relative to nothing, int8."""
    (name,) = net.inputs
    parts = [forward(net, {name: x[i : i + BATCH]}) for i in range(0, len(x), BATCH)]
    return np.concatenate([part[last_of(net).name] for part in parts])


def in_reals(net: Annotated, x: Array, *, rounded: bool) -> Array:
    """Outputs of the last layer of the source, each operator real, or rounded once; relative to
    zero."""
    (name,) = net.inputs
    results = []
    for start in range(0, len(x), BATCH):
        values = {name: x[start : start + BATCH].astype(np.float64) - net.zeros[name]}
        for node in net.nodes:
            if not is_end(node):
                values[node.name] = real_operator(net, node, [values[i] for i in node.inputs])
                if rounded:
                    values[node.name] = np.rint(values[node.name])
        results.append(values[last_of(net).name])
    return np.concatenate(results)


def real_operator(net: Annotated, node: Node, inputs: list[Array]) -> Array:
    """One operator of the source in real numbers; values relative to the zero points."""
    x = inputs[0]
    match node.scaled or node.op:
        case Weighted() as layer:
            weight = layer.weight.astype(np.float64)
            bias = layer.bias + net.zeros[node.inputs[0]] * weight.reshape(layer.K, -1).sum(axis=1)
            operands = product_of(node).operands(x)
            parts = weight.reshape(len(operands), -1, operands.shape[-1])
            sums = np.einsum("b...d,bkd->...bk", operands, parts)
            out = (sums.reshape(*sums.shape[:-2], -1) + bias) * channel_factors(layer)
        case Add():
            first, second = operand_factors(node)
            out = inputs[0] * first + inputs[1] * second
        case AveragePool():
            out = x.mean(axis=(1, 2), keepdims=True)
        case _:
            out = x.reshape(len(x), *net.shape(node.name))
    zero, (low, high) = net.zeros[node.name], net.clip(node.name)
    return np.clip(out, low - zero, high - zero)


def top1(first: Array, second: Array) -> str:
    """On how many of the inputs the largest output is the same one, as ``n/all``."""
    same = int((first.argmax(axis=-1) == second.argmax(axis=-1)).sum())
    return f"{same}/{len(first)}"


def top1_of_ties(first: Array, second: Array) -> str:
    """The same, where any of several equal largest outputs of ``first`` is as good."""
    chosen = np.take_along_axis(first, second.argmax(axis=-1)[..., None], axis=-1)[..., 0]
    return f"{int((chosen == first.max(axis=-1)).sum())}/{len(first)}"


def row(
    path: Path, options: RetargetOptions, count: int, label: str, *, layers: bool = False
) -> tuple[str, ...]:
    """One line of the table."""
    model = load(path)
    data = None
    if label.endswith("calibration data"):
        data = inputs_of(annotated(model), DATA_COUNT, DATA_SEED)
    start = time.perf_counter()
    result = retarget(model, data=data, options=options)
    if layers:
        print(result.report, end="\n\n")
    seconds = time.perf_counter() - start
    nets = [annotated(m) for m in (model, result.model)]
    zero = nets[0].zeros[last_of(nets[0]).name]
    with np.load(path.with_name("golden.npz")) as arrays:
        wanted = arrays["logits_tflm" if "logits_tflm" in arrays else "out_tflm"][:, 0]
        golden = arrays["inputs"][:, 0]
    found = integer_outputs(nets[1], golden)
    x = inputs_of(nets[0], count)
    before, after = (integer_outputs(net, x).astype(float) - zero for net in nets)
    real, once = (in_reals(nets[0], x, rounded=rounded) for rounded in (False, True))
    decides = any(is_end(node) for node in nets[0].nodes)
    return (
        label,
        top1(wanted, found) if decides else "",
        f"{sqnr_db(wanted.astype(float) - zero, found.astype(float) - zero):.1f}",
        top1(before, after) if decides else "",
        top1_of_ties(before, after) if decides else "",
        f"{sqnr_db(before, after):.1f}",
        top1(before, real) if decides else "",
        f"{sqnr_db(before, real):.1f}",
        top1(before, once) if decides else "",
        f"{sqnr_db(before, once):.1f}",
        f"{seconds:.1f}",
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, default=_ROOT.parent / "shared/models/tflite")
    parser.add_argument("--inputs", type=int, default=200, help="seeded inputs per model")
    parser.add_argument("--variants", action="store_true", help="also without each refinement")
    parser.add_argument("--layers", action="store_true", help="print the loss of each layer")
    arguments = parser.parse_args()
    rows = []
    for name in MODELS:
        path = arguments.models / name / "model.tflite"
        if not path.is_file():
            print(f"{path} is not at hand, skipped", file=sys.stderr)
            continue
        variants = VARIANTS if arguments.variants else {"": RetargetOptions()}
        for label, options in variants.items():
            title = f"{name} {label}".strip()
            rows.append(row(path, options, arguments.inputs, title, layers=arguments.layers))
    titles = (
        "model", "golden top-1", "golden dB", "seeded top-1", "ties", "seeded dB",
        "unrounded top-1", "dB", "rounded once top-1", "dB", "seconds",
    )  # fmt: skip
    columns = tuple(Column(title, index > 0) for index, title in enumerate(titles))
    print(text(Table(columns, tuple(rows), title="Retargeted against the source")))


if __name__ == "__main__":
    main()
