"""QLinearAdd and QLinearMul: every pair of bytes as onnxruntime's kernels for x86 round it."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htvm
from htvm.aot.reference import build_llvm_reference
from tests.frontend.onnx.affine_files import Array, File, ours, theirs

pytestmark = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"),
    reason="onnxruntime's kernels of other CPUs add in another order",
)

DTYPES = ("int8", "uint8")
OPERATORS = ("QLinearAdd", "QLinearMul")


def every(dtype: str) -> Array:
    limits = np.iinfo(dtype)
    return np.arange(limits.min, limits.max + 1).astype(dtype)


def drawn(rng: np.random.Generator, dtype: str, decimal: bool) -> list[tuple[Any, int]]:
    """Scales and zero points of both operands and of the result; of decimals many sums are ties."""
    scales = rng.integers(1, 100, 3) / 1000 if decimal else np.exp(rng.uniform(-4, 0, 3))
    zeros = rng.choice(every(dtype).astype(int), 3)
    return list(zip(scales.astype(np.float32), zeros.tolist(), strict=True))


def a_file(op: str, dtype: str, steps: list[tuple[Any, int]], shapes: Any, constant: Any = None):
    file = File()
    names = [file.input(name, shape, dtype) for name, shape in zip("ab", shapes, strict=False)]
    if constant is not None:
        names.append(file.constant(constant))
    a, b, c = (file.step(*step, dtype) for step in steps)
    file.output(file.node(op, [names[0], *a, names[1], *b, *c], "com.microsoft"), dtype)
    return file


@pytest.mark.rotating(6)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPERATORS)
def test_every_pair_of_bytes(op: str, dtype: str, seed: int, tmp_path: Path) -> None:
    steps = drawn(np.random.default_rng(seed), dtype, decimal=seed % 2 == 0)
    a, b = np.repeat(every(dtype), 256), np.tile(every(dtype), 256)
    path = a_file(op, dtype, steps, [a.shape, b.shape]).save(tmp_path)
    (made,) = build_llvm_reference(htvm.load(path).module)([a, b])
    np.testing.assert_array_equal(made, theirs(path, [a, b])[0])
    if seed == 0:
        np.testing.assert_array_equal(ours(path, [a, b])[0], made)


SHAPES = (
    ((256, 1), (1, 256)),
    ((1, 256), (256, 1)),
    ((2, 8, 16, 1), (2, 1, 1, 256)),
    ((256, 1, 1), (1, 4, 64)),
    ((64, 4), (256, 64, 4)),
    ((16, 1, 16), (16, 16, 16)),
)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_operands_that_are_repeated(dtype: str, shapes: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(sum(map(len, shapes)))
    a, b = (rng.choice(every(dtype), shape) for shape in shapes)
    for trial in range(6):
        path = a_file("QLinearAdd", dtype, drawn(rng, dtype, trial % 2 == 0), shapes).save(tmp_path)
        (made,) = build_llvm_reference(htvm.load(path).module)([a, b])
        np.testing.assert_array_equal(made, theirs(path, [a, b])[0])
    if shapes[0] == (256, 1):
        np.testing.assert_array_equal(ours(path, [a, b])[0], made)


def test_single_elements(tmp_path: Path) -> None:
    """Of these sums the order of the operands decides."""
    steps = [(np.float32(scale), zero) for scale, zero in ((0.09, 97), (0.027, -81), (0.036, -112))]
    path = a_file("QLinearAdd", "int8", steps, [(1,), (1,)]).save(tmp_path)
    reference = build_llvm_reference(htvm.load(path).module)
    b = np.asarray([-127], np.int8)
    for first in range(105, 120, 2):
        a = np.asarray([first], np.int8)
        np.testing.assert_array_equal(reference([a, b])[0], theirs(path, [a, b])[0])


@pytest.mark.rotating(4)
@pytest.mark.parametrize("shape", [(), (1,), (7, 1, 1), (256,), (7, 5, 256)])
@pytest.mark.parametrize("op", OPERATORS)
def test_a_constant_operand(op: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    rng = np.random.default_rng(len(shape))
    a = rng.choice(every("int8"), (7, 5, 256))
    constant = rng.choice(every("int8"), shape)
    steps = drawn(rng, "int8", decimal=True)
    path = a_file(op, "int8", steps, [a.shape], np.asarray(constant, np.int8)).save(tmp_path)
    (made,) = build_llvm_reference(htvm.load(path).module)([a])
    np.testing.assert_array_equal(made, theirs(path, [a])[0])


@pytest.mark.rotating(1)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_functions_between_dequantized_tensors(op: str, dtype: str, tmp_path: Path) -> None:
    """Here a session makes uint8 of int8, and adds zero points of uint8."""
    rng, file = np.random.default_rng(7), File()
    steps = drawn(rng, dtype, decimal=True)
    names = [file.through(file.input(name, (256, 256)), *step, dtype)
             for name, step in zip("ab", steps, strict=False)]  # fmt: skip
    file.output(file.through(file.node(op, names), *steps[2], dtype))
    path = file.save(tmp_path)
    data = [
        (part.astype(np.float32) - zero) * scale
        for part, (scale, zero) in zip(np.meshgrid(every(dtype), every(dtype)), steps, strict=False)
    ]
    (made,) = build_llvm_reference(htvm.load(path).module)(data)
    np.testing.assert_array_equal(made, theirs(path, data)[0])


@pytest.mark.rotating(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPERATORS)
def test_generated_code_rounds_the_same(op: str, dtype: str, tmp_path: Path) -> None:
    steps = drawn(np.random.default_rng(8), dtype, decimal=True)
    a, b = np.repeat(every(dtype), 256), np.tile(every(dtype), 256)
    path = a_file(op, dtype, steps, [a.shape, b.shape]).save(tmp_path)
    module = htvm.build(htvm.load(path), target="generic.cpu")
    np.testing.assert_array_equal(module.run([a, b]).outputs[0], theirs(path, [a, b])[0])
