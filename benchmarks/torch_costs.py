"""What importing and quantizing networks of torch costs, and a transformer's layer on ITA.

    python -m benchmarks.torch_costs [resnet18] [file] [encoder] [recurrent]

ResNet-18 (11.7 million parameters, written below; random weights) for images of 3x224x224 is
quantized with 8 images for a Cortex-M7.  A network of linear layers is written as a ``.pt2`` file
of 4 MB, which is read.  Seconds are of the clock unless said otherwise, MB the peak of the process,
torch included, each in a process of its own.  A layer of a transformer (128x128, 2 heads of 64, 512
inside, GELU) runs on the simulated Snitch cluster with ITA in the integers of
`htvm.torch.Quantizer`, beside `htvm.zoo`'s encoder with one layer of these sizes.  Recurrent
layers run on a Cortex-M4, in int8 as `htvm.torch.prepare` writes them, in reals as torch does.

Needs the extra torch.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

import htvm
import htvm.torch
from benchmarks.torch_exports.networks import Recurrent
from htvm.tools.zoo.transformers import encoder

_TARGET = "snitch_ita"


class _Block(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride > 1:
            projection = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(outputs))

    def forward(self, x: Any) -> Any:
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


def resnet18() -> nn.Module:
    """Return ResNet-18 (He et al., 2016) with random weights, for images ``[N, 3, 224, 224]``."""
    sizes = (64, 64, 64, 128, 128, 256, 256, 512, 512)
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        *(_Block(a, b) for a, b in zip(sizes[:-1], sizes[1:], strict=True)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, 1000),
    )


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _resnet18() -> str:
    torch.manual_seed(0)
    net, images = resnet18().eval(), torch.randn(8, 3, 224, 224)
    start, worked = time.perf_counter(), time.process_time()
    model = htvm.quantize(net, "cortex_m7", images.numpy())
    spent, worked = time.perf_counter() - start, time.process_time() - worked
    layers = sum(node.layer is not None for node in model.graph.nodes.values())
    return (
        f"ResNet-18: {spent:.1f} s ({worked:.1f} s of processors), {_peak_mb():.0f} MB, "
        f"{layers} layers"
    )


def _file() -> str:
    torch.manual_seed(0)
    example = torch.randn(1, 512)
    net = nn.Sequential(*(nn.Linear(512, 512) for _ in range(3)))
    prepared = htvm.torch.prepare(net, (example,), "cortex_m4")
    prepared(example)
    program = htvm.torch.export(htvm.torch.convert(prepared))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.pt2"
        torch.export.save(program, path)
        spent = []
        for _ in range(2):
            start = time.perf_counter()
            htvm.load(path)
            spent.append(time.perf_counter() - start)
        size = path.stat().st_size / 1e6
    return (
        f"a file of {size:.1f} MB: {spent[1]:.2f} s (the first, which loads TVM: {spent[0]:.1f} s)"
    )


def _encoder() -> str:
    torch.manual_seed(0)
    net = nn.TransformerEncoderLayer(
        128, 2, 512, dropout=0.0, activation="gelu", batch_first=True
    ).eval()
    inputs = torch.randn(8, 128, 128)
    prepared = htvm.torch.prepare(net, (inputs[:1],), _TARGET)
    prepared(inputs)
    converted = htvm.torch.convert(prepared)
    built = htvm.build(converted, _TARGET)
    with torch.no_grad():
        wanted = converted(inputs[:1]).numpy()
    different = int((built.run(inputs[:1].numpy()).outputs[0] != wanted).sum())
    lines = [f"an encoder layer of torch: {different} of {wanted.size} elements differ"]
    integers = htvm.build(htvm.torch.export(converted), _TARGET, io="int8")
    drawn = htvm.build(encoder(1, heads=2, stacked=1, activation="gelu"), _TARGET)
    for name, module in (("torch's, int8 in and out", integers), ("zoo's", drawn)):
        (info,) = module.model.inputs
        x = np.random.default_rng(0).integers(-128, 128, info.shape).astype("int8")
        result = module.run(x)
        assert result.latency_ms is not None
        per_second = 1000 / result.latency_ms
        lines.append(f"  {name}: {result.cycles:,} cycles, {per_second:,.0f} inferences/s")
    return "\n".join(lines)


def _recurrent() -> str:
    lines = []
    for kind in (nn.LSTM, nn.GRU):
        torch.manual_seed(0)
        net, inputs = Recurrent(kind).eval(), torch.randn(64, 8, 8)
        # Exported beforehand, the layer is one operator, which quantizers leave as it is.
        graph = torch.export.export(net, (inputs[:1],)).module(check_guards=False)
        one = prepare_pt2e(graph, htvm.torch.Quantizer("cortex_m4"))
        steps = htvm.torch.prepare(net, (inputs[:1],), "cortex_m4")
        for each in inputs:
            one(each[None])
            steps(each[None])
        ways = {"in reals": convert_pt2e(one), "in int8": htvm.torch.convert(steps)}
        for way, converted in ways.items():
            lines.append(f"{kind.__name__} of 16 units over 8 steps, {way}: ")
            lines[-1] += _cost_of_recurrent(net, converted, inputs)
    return "\n".join(lines)


def _cost_of_recurrent(net: nn.Module, converted: Any, inputs: torch.Tensor) -> str:
    with torch.no_grad():
        wanted, found = (torch.cat([each(x[None]) for x in inputs]) for each in (net, converted))
    noise = 10 * torch.log10(wanted.square().sum() / (wanted - found).square().sum())
    loaded = htvm.load(converted, "recurrent")
    result = htvm.build(loaded, "cortex_m4").run(inputs[:1].numpy())
    return f"{result.instructions:,} instructions, {noise:.1f} dB"


PARTS: Mapping[str, Callable[[], str]] = {
    "resnet18": _resnet18,
    "file": _file,
    "encoder": _encoder,
    "recurrent": _recurrent,
}
"""What is measured, by name."""


def _main(chosen: list[str]) -> None:
    unknown = set(chosen) - set(PARTS)
    if unknown:
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for name in chosen or PARTS:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            print(pool.submit(PARTS[name]).result(), flush=True)


if __name__ == "__main__":
    _main(sys.argv[1:])
