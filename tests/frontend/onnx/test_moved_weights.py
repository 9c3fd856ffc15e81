"""Weights that moves separate from their DequantizeLinear, against onnxruntime.

The stored weights are what drawn moves, undone, make of those that the layer reads.  Scales are
powers of two, so that reals are exact.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.errors import UnsupportedError
from tests.frontend.onnx.affine_files import Array, File, ours, theirs

Undo = Callable[[Array], Array]
Write = Callable[[File, str], str]


def transpose(rng: random.Random, shape: tuple[int, ...]) -> tuple[Undo, Write]:
    perm = rng.sample(range(len(shape)), len(shape))
    return (
        lambda data: data.transpose(np.argsort(perm)),
        lambda file, x: file.node("Transpose", [x], perm=perm),
    )


def reshape(rng: random.Random, shape: tuple[int, ...]) -> tuple[Undo, Write]:
    if len(shape) == 1:
        return squeeze(rng, shape)
    at = rng.randrange(len(shape) - 1)
    before = (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :])
    return (
        lambda data: data.reshape(before),
        lambda file, x: file.node("Reshape", [x, file.constant(shape, "int64")]),
    )


def unsqueeze(rng: random.Random, shape: tuple[int, ...]) -> tuple[Undo, Write]:
    ones = [axis for axis, size in enumerate(shape) if size == 1]
    if not ones:
        return squeeze(rng, shape)
    at = rng.choice(ones)
    return (
        lambda data: data.squeeze(at),
        lambda file, x: file.node("Unsqueeze", [x, file.constant([at], "int64")]),
    )


def squeeze(rng: random.Random, shape: tuple[int, ...]) -> tuple[Undo, Write]:
    at = rng.randrange(len(shape) + 1)
    return (
        lambda data: np.expand_dims(data, at),
        lambda file, x: file.node("Squeeze", [x, file.constant([at], "int64")]),
    )


def part(rng: random.Random, shape: tuple[int, ...]) -> tuple[Undo, Write]:
    """A slice, or a part of a split."""
    at, more = rng.randrange(len(shape)), rng.randrange(1, 3)
    widths = [(more, 0) if axis == at else (0, 0) for axis in range(len(shape))]
    sizes = [more, shape[at]]

    def write(file: File, x: str) -> str:
        numbers = ([more], [more + shape[at]], [at])
        return file.node("Slice", [x, *(file.constant(each, "int64") for each in numbers)])

    def split(file: File, x: str) -> str:
        name = file.node("Split", [x, file.constant(sizes, "int64")], axis=at)
        file.nodes[-1].output.insert(0, f"{name}_left")
        return name

    return lambda data: np.pad(data, widths, mode="edge"), rng.choice((write, split))


def gather(rng: random.Random, shape: tuple[int, ...]) -> tuple[Undo, Write]:
    at = rng.randrange(len(shape))
    order = rng.sample(range(shape[at]), shape[at])
    return (
        lambda data: data.take(np.argsort(order), at),
        lambda file, x: file.node("Gather", [x, file.constant(order, "int64")], axis=at),
    )


MOVES = (transpose, reshape, unsqueeze, squeeze, part, gather)


def stored(rng: random.Random, file: File, weight: Array, axis: int, per: bool) -> str:
    """Write weights, their DequantizeLinear, and one to three moves; return the last one's name.

    Where the axis of the scales would be lost, moves are drawn again.
    """
    shape = [1] * weight.ndim
    shape[axis] = -1
    scales = 2.0 ** np.random.default_rng(rng.randrange(99)).integers(-9, -5, weight.shape[axis])
    labels = np.broadcast_to(np.arange(len(scales)).reshape(shape), weight.shape)
    while True:
        data, own, writes = weight, labels, []
        for _ in range(rng.randrange(1, 4)):
            undo, write = rng.choice(MOVES)(rng, data.shape)
            data, own = undo(data), undo(own)
            writes.append(write)
        axes = [at for at in range(own.ndim) if (own != own.take([0], at)).any()]
        if len(axes) == 1 or not per:
            break
    zeros = np.arange(len(scales)) % 5 - 2 if per else np.zeros((), int)
    name = file.constant(np.asarray(data, order="C"))
    if per:
        (at,) = axes
        order = own.swapaxes(0, at).reshape(own.shape[at], -1)[:, 0]
        x = file.dequantize(name, scales[order], zeros[order], axis=at)
    else:
        x = file.dequantize(name, scales[0], 0)
    for write in reversed(writes):
        x = write(file, x)
    return x


def agree(file: File, y: str, x: Array, folder: Path) -> None:
    file.output(file.through(y, 2.0**-3, -5))
    path = file.save(folder)
    wanted = theirs(path, [x])[0]
    assert np.unique(wanted).size > 20
    np.testing.assert_array_equal(ours(path, [x])[0], wanted)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("op", ["Conv", "MatMul", "Gemm"])
def test_moves_are_folded(op: str, seed: int, tmp_path: Path) -> None:
    rng, file = random.Random(f"{op} {seed}"), File()
    numbers = np.random.default_rng(seed)
    maps = op == "Conv"
    shape, sizes = ((1, 4, 6, 5), (8, 4, 3, 1)) if maps else ((6, 12), (12, 9))
    weight = numbers.integers(-127, 128, sizes).astype(np.int8)
    x = file.through(file.input("x", shape), 2.0**-4, 3)
    w = stored(rng, file, weight, 0 if maps else 1, rng.random() < 0.8)
    y = file.node(op, [x, w])
    agree(file, y, numbers.normal(0, 3, shape).astype(np.float32), tmp_path)


def test_scales_that_a_reshape_spreads_over_two_axes_are_refused(tmp_path: Path) -> None:
    file = File()
    x = file.through(file.input("x", (1, 8, 4, 4)), 0.1, 3)
    data = np.ones((10, 4, 3, 3), np.int8)
    w = file.dequantize(file.constant(data), np.arange(1, 11) / 100, np.zeros(10), axis=0)
    w = file.node("Reshape", [w, file.constant([5, 8, 3, 3], "int64")])
    file.output(file.through(file.node("Conv", [x, w]), 0.1, 0))
    with pytest.raises(UnsupportedError, match=r"axes \[0, 1\], as node 'Reshape_3'"):
        ours(file.save(tmp_path), [])
