"""Means and pools that keep their input's scale: float32's errors decide how ties are rounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
pytest.importorskip("torchao", reason="needs the extra torch")

import torchao.quantization.pt2e.quantize_pt2e  # noqa: E402, F401  (registers operators)
from torch.nn import functional  # noqa: E402

import htvm  # noqa: E402
from patterns.ops.torch.total import torch_total  # noqa: E402
from tests.reference.torch_arithmetic import total  # noqa: E402

_DECOMPOSED = torch.ops.quantized_decomposed
torch.set_num_threads(1)  # several divide large sums, which are then added in another order


class Averaged(torch.nn.Module):
    """What is quantized, averaged and quantized with the same scale.

    Args:
        average: function of the dequantized tensor.
        scale: of both.
    """

    def __init__(self, average: Callable[[Any], Any], scale: float) -> None:
        super().__init__()
        self.average, self.step = average, (scale, -11, -128, 127, torch.int8)

    def forward(self, x: Any) -> Any:
        x = _DECOMPOSED.quantize_per_tensor(x, *self.step)
        x = self.average(_DECOMPOSED.dequantize_per_tensor(x, *self.step))
        x = _DECOMPOSED.quantize_per_tensor(x, *self.step)
        return _DECOMPOSED.dequantize_per_tensor(x, *self.step)


AVERAGES: Mapping[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "rows": (lambda x: x.mean(-1), (1, 32, 40)),
    "columns": (lambda x: x.mean(1), (1, 16, 44)),
    "few columns": (lambda x: x.mean(1), (1, 20, 7)),
    "channels last": (lambda x: x.mean((1, 2)), (1, 4, 4, 40)),
    "turned": (lambda x: x.transpose(1, 2).mean(1), (1, 44, 16)),
    "maps": (lambda x: x.mean((2, 3)), (1, 24, 7, 8)),
    "large maps": (lambda x: x.mean((2, 3), keepdim=True), (1, 4, 26, 24)),
    "global pool": (lambda x: functional.adaptive_avg_pool2d(x, 1), (1, 24, 4, 4)),
    "global pool of rows": (lambda x: functional.adaptive_avg_pool1d(x, 1), (1, 24, 16)),
    "adaptive pool": (lambda x: functional.adaptive_avg_pool2d(x, 2), (1, 8, 6, 6)),
    "pool": (lambda x: functional.avg_pool2d(x, 2), (1, 8, 8, 8)),
    "pool of rows": (lambda x: functional.avg_pool1d(x, 4), (1, 8, 32)),
}


@pytest.mark.parametrize("name", AVERAGES)
def test_ties_are_rounded_as_torch_rounds_them(name: str) -> None:
    average, shape = AVERAGES[name]
    generator = torch.Generator().manual_seed(3)
    for scale in (0.021345, 0.031):
        net = Averaged(average, scale)
        program = torch.export.export(net, (torch.randn(shape),))
        module = htvm.build(htvm.load(program), "generic.cpu", platform="host")
        for _ in range(12):
            x = torch.randn(shape, generator=generator)
            assert (module.run([x.numpy()]).outputs[0] == net(x).numpy()).all()


@pytest.mark.parametrize("size", [1, 3, 8, 17, 49, 100, 200, 600, 1089, 5000])
@pytest.mark.parametrize("other", [1, 3, 8, 10, 33, 77])
@pytest.mark.parametrize("layout", ["rows", "columns", "apart", "maps"])
def test_sums_have_the_bits_of_torchs(size: int, other: int, layout: str) -> None:
    shape = {"rows": (other, size), "maps": (other, 3, size)}.get(layout, (size, other))
    rng, axes = np.random.default_rng(size + other), (0,) if shape[0] == size else (1,)
    integers = torch.from_numpy(rng.integers(-128, 128, shape).astype("int8"))
    if layout == "apart":
        integers = torch.nn.functional.pad(integers, (0, 5))[:, :other]
    if layout == "maps":
        integers, axes = integers.transpose(1, 2), (1,)
    scale, zero = 0.0123, 5
    step = (scale, zero, -128, 127, torch.int8)
    real = _DECOMPOSED.dequantize_per_tensor(integers, *step)
    if layout == "apart":
        real = torch.nn.functional.pad(real, (0, 5))[:, :other]
    op = torch_total(tuple(real.shape), real.stride(), axes, scale, zero)
    if op is None:
        assert size == 1
        return
    attrs = {f"htvm.{item.name}": getattr(op, item.name) for item in fields(op)}
    made = total(attrs, integers.numpy(), np.asarray([scale], "float32"))
    assert (made == real.sum(axes).numpy()).all()
