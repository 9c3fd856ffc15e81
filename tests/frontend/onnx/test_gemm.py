"""Gemm and its kin: transposed matrices, alpha, beta, and summands of every shape."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from htvm.errors import ModelError, UnsupportedError
from tests.frontend.onnx.affine_files import Array, File, ours, theirs

M, K, N = 5, 12, 5
"""A square result, so that a summand of the wrong orientation has a size that fits."""

SUMMANDS = ((), (1,), (N,), (1, N), (M, 1), (M, N), (1, 1))
IN, OUT = (np.float32(0.0313), 5), (np.float32(0.0571), -3)
TRANSPOSED = tuple(product((0, 1), repeat=2))


def matrices(rng: np.random.Generator, trans_a: int, trans_b: int) -> tuple[Array, Array]:
    a = rng.integers(-128, 128, (K, M) if trans_a else (M, K)).astype(np.int8)
    return a, rng.integers(-127, 128, (N, K) if trans_b else (K, N)).astype(np.int8)


def scales(rng: np.random.Generator, weight: Array, axis: int | None) -> Array:
    shape = () if axis is None else (weight.shape[axis],)
    return rng.uniform(0.002, 0.006, shape).astype(np.float32)


def real(integers: Array, scale: Array, axis: int | None) -> Array:
    spread = scale if axis is None else np.expand_dims(scale, 1 - axis)
    return integers.astype(np.float64) * spread


def defined(
    a: Array, b: Array, c: Array, trans: Sequence[int], alpha: float = 1, beta: float = 1
) -> Array:
    """In double precision; matrices and summand as the file has them."""
    turned = [x.T if turn else x for x, turn in zip((a, b), trans, strict=True)]
    return alpha * (turned[0] @ turned[1]) + beta * c


def agree(made: Array, wanted: Array, tolerance: float) -> None:
    """Equal to the rounded reals, but for those within a tolerance, in steps, of a tie."""
    steps = np.clip(wanted / OUT[0] + OUT[1], -128, 127)
    clear = np.abs(steps - np.floor(steps) - 0.5) > tolerance
    assert clear.mean() > 0.5 and np.unique(np.rint(steps)).size > 8
    np.testing.assert_array_equal(made[clear], np.rint(steps)[clear].astype(np.int8))
    assert np.abs(made - steps).max() < 0.5 + tolerance


def a_file(rng, trans: Sequence[int], axis: int | None, summand: str, **attributes):
    """A quantized Gemm up to its int8 result, its input and the reals that it multiplies."""
    file = File()
    a, b = matrices(rng, *trans)
    scale = scales(rng, b, axis)
    x = file.dequantize(file.input("x", a.shape, "int8"), *IN)
    zeros = np.zeros(scale.shape, np.int8)
    weight = file.dequantize(file.constant(b), scale, zeros, axis=axis)
    inputs = [x, weight, *([summand] if summand else [])]
    y = file.node("Gemm", inputs, transA=trans[0], transB=trans[1], **attributes)
    file.output(file.quantize(y, *OUT), "int8")
    return file, a, (a.astype(np.float64) - IN[1]) * IN[0], real(b, scale, axis)


@pytest.mark.parametrize("trans", TRANSPOSED)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_transposed_matrices_and_scales_along_either_axis(
    trans: tuple[int, int], axis: int | None, tmp_path: Path
) -> None:
    file, a, x, weight = a_file(np.random.default_rng(1), trans, axis, "")
    path = file.save(tmp_path)
    (made,) = ours(path, [a])
    agree(made, defined(x, weight, np.zeros(1), trans), 1e-4)
    assert np.abs(made.astype(int) - theirs(path, [a])[0]).max() <= 1


@pytest.mark.parametrize("trans", TRANSPOSED)
@pytest.mark.parametrize("shape", SUMMANDS)
def test_summands_of_every_shape(
    trans: tuple[int, int], shape: tuple[int, ...], tmp_path: Path
) -> None:
    rng = np.random.default_rng(2)
    summand = rng.normal(0, 2, shape).astype(np.float32)
    file, a, x, weight = a_file(rng, trans, None, "c")
    file.constants.append(named(summand, "c"))
    path = file.save(tmp_path)
    (made,) = ours(path, [a])
    # Summands of reals are rounded to steps of the sums, of which each is less than 0.0035 here.
    agree(made, defined(x, weight, summand, trans), 0.002)
    assert np.abs(made.astype(int) - theirs(path, [a])[0]).max() <= 1


def named(array: Array, name: str):
    from onnx import numpy_helper

    return numpy_helper.from_array(array, name)


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 1.0), (1.0, 0.25), (-0.75, -2.0), (0.0, 3.0)])
@pytest.mark.parametrize("shape", [(N,), (M, 1)])
def test_alpha_and_beta(alpha: float, beta: float, shape: tuple[int, ...], tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    summand = rng.normal(0, 0.9, shape).astype(np.float32)
    file, a, x, weight = a_file(rng, (1, 1), 0, "c", alpha=alpha, beta=beta)
    file.constants.append(named(summand, "c"))
    (made,) = ours(file.save(tmp_path), [a])
    wanted = defined(x, weight, summand, (1, 1), alpha, beta)
    if alpha == 0:  # few different values
        np.testing.assert_array_equal(made, np.rint(wanted / OUT[0] + OUT[1]).clip(-128, 127))
    else:
        agree(made, wanted, 0.005)


@pytest.mark.parametrize("trans", TRANSPOSED)
def test_a_summand_and_a_second_matrix_that_are_computed(
    trans: tuple[int, int], tmp_path: Path
) -> None:
    rng = np.random.default_rng(4)
    a, b = matrices(rng, *trans)
    c = rng.normal(0, 2, (M, 1)).astype(np.float32)
    file = File()
    x = file.dequantize(file.input("x", a.shape, "int8"), *IN)
    y = file.dequantize(file.input("y", b.shape, "int8"), 0.005, -9)
    z = file.node("Gemm", [x, y, file.input("c", c.shape)], transA=trans[0], transB=trans[1],
                  alpha=0.5, beta=2.0)  # fmt: skip
    file.output(file.quantize(z, *OUT), "int8")
    (made,) = ours(file.save(tmp_path), [a, b, c])
    left, right = (a.astype(np.float64) - IN[1]) * IN[0], (b.astype(np.float64) + 9) * 0.005
    agree(made, defined(left, right, c, trans, 0.5, 2.0), 1e-4)


@pytest.mark.parametrize("trans", TRANSPOSED)
def test_reals(trans: tuple[int, int], tmp_path: Path) -> None:
    rng, file = np.random.default_rng(5), File()
    a, b = (item.astype(np.float32) for item in matrices(rng, *trans))
    c = rng.normal(0, 2, (M, 1)).astype(np.float32)
    inputs = [file.input("x", a.shape), file.constant(b), file.constant(c)]
    y = file.node("Gemm", inputs, transA=trans[0], transB=trans[1], alpha=0.5, beta=-2.0)
    file.output(y)
    (made,) = ours(file.save(tmp_path), [a])
    np.testing.assert_allclose(made, defined(a, b, c, trans, 0.5, -2.0), rtol=1e-5)


@pytest.mark.parametrize("trans", TRANSPOSED)
@pytest.mark.parametrize("shape", [(), (N,), (M, 1), (M, N)])
@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_qgemm(
    trans: tuple[int, int], shape: tuple[int, ...], alpha: float, tmp_path: Path
) -> None:
    rng, file = np.random.default_rng(6), File()
    a, b = matrices(rng, *trans)
    axis = 0 if trans[1] else 1
    scale = scales(rng, b, axis)
    c = rng.integers(-9000, 9000, shape).astype(np.int32)
    x = [file.input("x", a.shape, "int8"), *file.step(*IN, "int8")]
    weight = [file.constant(b), *file.step(scale, np.zeros(N), "int8")]
    y = file.node(
        "QGemm", [*x, *weight, file.constant(c), *file.step(*OUT, "int8")],
        domain="com.microsoft", transA=trans[0], transB=trans[1], alpha=alpha,
    )  # fmt: skip
    file.output(y, "int8")
    path = file.save(tmp_path)
    (made,) = ours(path, [a])
    sums = defined(a.astype(int) - IN[1], b.astype(int), c, trans)
    agree(made, sums * (np.float64(alpha) * IN[0] * scale), 1e-4)
    np.testing.assert_array_equal(made, theirs(path, [a])[0])


@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
def test_matmul_of_a_transposed_tensor(batch: tuple[int, ...], tmp_path: Path) -> None:
    rng, file = np.random.default_rng(7), File()
    a = rng.integers(-128, 128, (*batch, K, M)).astype(np.int8)
    _, b = matrices(rng, 0, 0)
    x = file.dequantize(file.input("x", a.shape, "int8"), *IN)
    axes = [*range(len(batch)), len(batch) + 1, len(batch)]
    weight = file.dequantize(file.constant(b), np.float32(0.004), np.int8(0))
    y = file.node("MatMul", [file.node("Transpose", [x], perm=axes), weight])
    file.output(file.quantize(y, *OUT), "int8")
    path = file.save(tmp_path)
    (made,) = ours(path, [a])
    turned = (np.swapaxes(a, -1, -2).astype(np.float64) - IN[1]) * IN[0]
    agree(made, turned @ (b * np.float64(np.float32(0.004))), 1e-4)


@pytest.mark.parametrize("shape", [(N + 1,), (M + 1, 1), (2, N), (1, M, N)])
def test_summands_that_do_not_fit(shape: tuple[int, ...], tmp_path: Path) -> None:
    file, *_ = a_file(np.random.default_rng(8), (1, 0), None, "c")
    file.constants.append(named(np.ones(shape, np.float32), "c"))
    with pytest.raises(ModelError, match=r"a summand of shape .* for \[5, 5\]"):
        ours(file.save(tmp_path), [])


def test_an_alpha_that_no_scale_can_have(tmp_path: Path) -> None:
    rng, file = np.random.default_rng(9), File()
    a, b = matrices(rng, 0, 0)
    x = [file.input("x", a.shape, "int8"), *file.step(*IN, "int8")]
    weight = [file.constant(b), *file.step(0.01, 0, "int8")]
    inputs = [*x, *weight, "", *file.step(*OUT, "int8")]
    file.output(file.node("QGemm", inputs, domain="com.microsoft", alpha=-1.0), "int8")
    with pytest.raises(UnsupportedError, match="an alpha of -1"):
        ours(file.save(tmp_path), [])
