"""Programs of torch with int16 activations, read without torch, against float64 in numpy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import htvm
from patterns.ops.float32.quantize import Dequantize
from patterns.ops.moves.concat import Concat
from patterns.ops.tflite.wide import WideConv2d
from patterns.ops.torch.quantize import TorchQuantize
from tests.frontend.test_torch_programs import computed, loaded
from tests.frontend.torch_archives import Program, T

Array = npt.NDArray[Any]

MAPS = (1, 4, 6, 6)


def quantize(x: Array, scale: float, zero: int, dtype: str = "int16") -> Array:
    """Reals after torch's quantization and dequantization."""
    steps = np.rint(x.astype("float32") * np.float32(1.0 / scale)) + zero
    limits = np.iinfo(dtype)
    return (np.clip(steps, limits.min, limits.max) - zero) * float(np.float32(scale))


def convolved(x: Array, weight: Array, bias: Array) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    views = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], axis=(2, 3))
    return np.einsum("ncyxij,kcij->nkyx", views, weight) + bias.reshape(-1, 1, 1)


def layers(scales: tuple[float, float], bias: float, zero: int) -> tuple[Program, Array, Array]:
    """A convolution with a rectifier, a maximum, a sum, a mean and a linear layer, all of int16."""
    rng, (first, step) = np.random.default_rng(3), scales
    program = Program()
    x = program.quantized(program.input("x", MAPS), first, zero, "int16")
    weights = rng.integers(-127, 128, (4, 4, 3, 3)).astype("int8")
    data = program.weights("w0", weights, np.full(4, step))
    biases = (rng.integers(-(2**20), 2**20, 4) + bias) * first * step
    added = program.parameter("b0", biases.astype("float32"))
    y = program.call(
        "aten.conv2d.default", MAPS, module="conv",
        input=x, weight=data, bias=added, stride=(1, 1), padding=(1, 1),
    )  # fmt: skip
    y = program.quantized(program.call("aten.relu.default", MAPS, self_=y), 8 * first, 0, "int16")
    half = (1, 4, 3, 3)
    y = program.call("aten.max_pool2d.default", half, self_=y, kernel_size=(2, 2))
    y = program.quantized(y, 8 * first, 0, "int16")
    y = program.quantized(program.call("aten.add.Tensor", half, self_=y, other=y), 16 * first, zero,
                          "int16")  # fmt: skip
    y = program.call("aten.mean.dim", (1, 4, 3), self_=y, dim=(3,))
    y = program.quantized(y, 16 * first, zero, "int16")
    y = program.call("aten.view.default", (1, 12), self_=y, size=(1, 12))
    matrix = rng.integers(-127, 128, (5, 12)).astype("int8")
    rows = program.weights("w1", matrix, np.full(5, step))
    y = program.call("aten.linear.default", (1, 5), module="head", input=y, weight=rows)
    program.outputs.append(program.quantized(y, 64 * first, -zero, "int16").name)
    return program, weights * step, matrix * step


def of_layers(
    program: Program, weights: tuple[Array, Array], x: Array, first: float, zero: int
) -> Array:
    """What `layers` computes, in float64 between the quantizations."""
    y = quantize(x, first, zero)
    y = np.maximum(convolved(y, weights[0], program.state["b0"].astype("float64")), 0)
    y = quantize(y, 8 * first, 0)
    y = y.reshape(1, 4, 3, 2, 3, 2).max((3, 5))
    y = quantize(2 * y, 16 * first, zero)
    y = quantize(y.mean(3), 16 * first, zero).reshape(1, 12)
    return quantize(y @ weights[1].T, 64 * first, -zero)


@pytest.mark.parametrize(("bias", "zero"), [(0.0, 0), (0.5, 0), (0.25, 77), (0.0, -32767)])
def test_powers_of_two_are_exact(bias: float, zero: int, tmp_path: Path) -> None:
    scales = 2.0**-13, 2.0**-9
    program, *weights = layers(scales, bias, zero)
    model = loaded(program, tmp_path)
    wide = [node for node in model.graph.in_order if isinstance(node.op, WideConv2d)]
    assert [node.name for node in wide] == ["conv", "head"]
    for seed in range(4):
        x = np.random.default_rng(seed).normal(0, 1, MAPS).astype("float32")
        wanted = of_layers(program, (weights[0], weights[1]), x, scales[0], zero)
        assert (computed(model, x) == wanted).all()


def test_elsewhere_few_elements_differ_by_a_step(tmp_path: Path) -> None:
    scales = 1 / 7011, 0.0023
    program, *weights = layers(scales, 0.3, -5)
    model = loaded(program, tmp_path)
    steps = []
    for seed in range(20):
        x = np.random.default_rng(seed).normal(0, 1, MAPS).astype("float32")
        wanted = of_layers(program, (weights[0], weights[1]), x, scales[0], -5)
        steps.append(np.rint(np.abs(computed(model, x) - wanted) / np.float32(64 * scales[0])))
    assert np.max(steps) <= 1 and np.mean(steps) < 0.05


@pytest.mark.parametrize("target", ["generic.cpu", "cortex_m4", "diana.digital", "ethos_u55"])
def test_it_is_built(target: str, tmp_path: Path) -> None:
    program, *_ = layers((1 / 7011, 0.0023), 0.3, -5)
    model = loaded(program, tmp_path)
    x = np.random.default_rng(1).normal(0, 1, MAPS).astype("float32")
    (made,) = htvm.build(model, target, platform="host").run(x).outputs
    assert (made == computed(model, x)).all()


def other(
    seed: int, dtypes: tuple[str, str], write: Callable[[Program, T, T], T]
) -> tuple[Program, Array]:
    """A function of a convolution's result, quantized before and after; and a fitting input."""
    rng = np.random.default_rng(seed)
    program = Program()
    x = program.quantized(program.input("x", MAPS), 0.017, 0, dtypes[0])
    weight = program.weights("w", rng.integers(-127, 128, (4, 4, 3, 3)).astype("int8"),
                             rng.uniform(0.001, 0.003, 4))  # fmt: skip
    y = program.call(
        "aten.conv2d.default", MAPS, input=x, weight=weight, stride=(1, 1), padding=(1, 1)
    )
    made = program.quantized(write(program, y, x), 0.013, 1, dtypes[1])
    program.outputs.append(made.name)
    return program, rng.normal(0, 1, MAPS).astype("float32")


@pytest.mark.parametrize("dtypes", [("int16", "int8"), ("int8", "int16"), ("int16", "int16")])
def test_types_may_change_at_a_layer(dtypes: tuple[str, str], tmp_path: Path) -> None:
    program, x = other(1, dtypes, lambda program, y, _: y)
    weight = program.state["w"] * program.state["w_scale"].astype("float64").reshape(-1, 1, 1, 1)
    wanted = convolved(quantize(x, 0.017, 0, dtypes[0]), weight, np.zeros(4))
    made = computed(loaded(program, tmp_path), x)
    apart = np.abs(made - quantize(wanted, 0.013, 1, dtypes[1]))
    assert apart.max() < 1.01 * 0.013 and (apart > 1e-6).sum() <= 1


def test_functions_and_layers_may_stay_in_reals(tmp_path: Path) -> None:
    program, x = other(
        2,
        ("int16", "int16"),
        lambda program, y, _: program.call("aten.tanh.default", MAPS, self_=y),
    )
    weight = program.state["w"] * program.state["w_scale"].astype("float64").reshape(-1, 1, 1, 1)
    wanted = np.tanh(convolved(quantize(x, 0.017, 0), weight, np.zeros(4)))
    made = computed(loaded(program, tmp_path), x)
    assert np.abs(made - quantize(wanted, 0.013, 1)).max() < 1.01 * 0.013


def test_parts_of_one_scale_are_joined_as_integers(tmp_path: Path) -> None:
    program = Program()
    x = program.quantized(program.input("x", MAPS), 0.017, 3, "int16")
    y = program.call("aten.permute.default", MAPS, self_=x, dims=(0, 1, 3, 2))
    y = program.call("aten.cat.default", (1, 8, 6, 6), tensors=[x, y], dim=1)
    program.outputs.append(program.quantized(y, 0.017, 3, "int16").name)
    model = loaded(program, tmp_path)
    kinds = [type(node.op) for node in model.graph.in_order]
    assert kinds.count(Concat) == kinds.count(TorchQuantize) == kinds.count(Dequantize) == 1
    given = np.random.default_rng(0).normal(0, 1, MAPS).astype("float32")
    wanted = quantize(np.concatenate([given, given.transpose(0, 1, 3, 2)], 1), 0.017, 3)
    assert (computed(model, given) == wanted.astype("float32")).all()
