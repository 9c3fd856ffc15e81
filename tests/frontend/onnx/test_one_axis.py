"""PULP's integers over one axis, paddings of any axes, and differences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

import htvm
from htvm.errors import UnsupportedError
from patterns.reading.read import graph_of
from tests.frontend.onnxfile import Array, model_of, node, requant, saved
from tests.reference.interpreter import interpret

CHANNELS, LENGTH = 6, 21
SHAPE = (1, CHANNELS, LENGTH)


def integers(shape: tuple[int, ...] = SHAPE, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def made(nodes, constants, folder: Path, *data: Array, **options) -> Array:
    shapes = {name: item.shape for name, item in zip("xz", data, strict=False)}
    path = saved(model_of(nodes, shapes, constants=constants), folder)
    return interpret(htvm.load(path, **options).module, data).outputs[0]


def pooled(x: Array, kernel: int, stride: int, before: int, after: int) -> Array:
    wide = np.pad(x.astype(np.int64), ((0, 0), (0, 0), (before, after)), constant_values=-1000)
    windows = np.lib.stride_tricks.sliding_window_view(wide, kernel, axis=2)
    return windows[:, :, ::stride].max(axis=-1)


def convolved(x: Array, weight: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int64), weight.shape[2], axis=2)
    return np.einsum("ncxt,kct->nkx", windows, weight.astype(np.int64))


def requantized(x: Array) -> Array:
    """As `onnxfile.requant`."""
    return np.clip((x * 3 + 5 + 4) // 8, -128, 127)


@pytest.mark.parametrize(
    ("kernel", "stride", "pads"), [(3, 2, (1, 0)), (2, 2, (0, 0)), (4, 1, (2, 3))]
)
def test_maxima(kernel: int, stride: int, pads: tuple[int, int], tmp_path: Path) -> None:
    constants: dict[str, Array] = {}
    pool = node("MaxPool", ["x"], "p", kernel_shape=[kernel], strides=[stride], pads=list(pads))
    x = integers()
    found = made([pool, requant("p", "y", constants)], constants, tmp_path, x)
    np.testing.assert_array_equal(found, requantized(pooled(x, kernel, stride, *pads)))


@pytest.mark.parametrize(
    "widths",
    [
        ((0, 0), (0, 0), (2, 3)),
        ((0, 0), (1, 2), (0, 0)),
        ((1, 0), (0, 2), (3, 0)),
        ((2, 1),),
        ((0, 0), (0, 0), (1, 2), (3, 4)),
        ((0, 0), (1, 0), (1, 2), (0, 4)),
        ((0, 0), (0, 1), (1, 2), (3, 4), (0, 1)),
    ],
)
def test_paddings_of_any_axes(widths: tuple[tuple[int, int], ...], tmp_path: Path) -> None:
    rank = len(widths)
    pads = [pair[end] for end in (0, 1) for pair in widths]
    constants: dict[str, Array] = {}
    pad = node("Pad", ["x"], "p", pads=pads, value=-7)
    x = integers((1, 3, 4, 2, 3)[:rank] if rank > 1 else (9,))
    found = made([pad, requant("p", "y", constants)], constants, tmp_path, x)
    wide = np.pad(x.astype(np.int64), widths, constant_values=-7)
    np.testing.assert_array_equal(found, requantized(wide))


def chain() -> tuple[list, dict[str, Array]]:
    """A convolution, maxima, a padding and a convolution, all over one axis."""
    rng = np.random.default_rng(1)
    constants: dict[str, Array] = {
        "w": rng.integers(-20, 20, (8, CHANNELS, 3)).astype(np.float32),
        "v": rng.integers(-20, 20, (5, 8, 3)).astype(np.float32),
        "pads": np.asarray([0, 0, 1, 0, 0, 1]),
    }
    return [
        node("Conv", ["x", "w"], "a", kernel_shape=[3]),
        requant("a", "b", constants),
        node("MaxPool", ["b"], "c", kernel_shape=[2], strides=[2]),
        node("Pad", ["c", "pads"], "d"),
        node("Conv", ["d", "v"], "e", kernel_shape=[3]),
        requant("e", "y", constants),
    ], constants


def expected(x: Array, constants: dict[str, Array]) -> Array:
    first = pooled(requantized(convolved(x, constants["w"])), 2, 2, 0, 0)
    return requantized(convolved(np.pad(first, ((0, 0), (0, 0), (1, 1))), constants["v"]))


def test_a_network_over_one_axis(tmp_path: Path) -> None:
    nodes, constants = chain()
    x = integers()
    np.testing.assert_array_equal(made(nodes, constants, tmp_path, x), expected(x, constants))
    # Tensors stay maps of one row between the layers.
    kinds = [item.kind for item in graph_of(htvm.load(tmp_path / "model.onnx").module).in_order]
    assert kinds == ["reshape", "conv2d", "max_pool", "pad", "conv2d", "reshape"]


@pytest.mark.rotating(1)
@pytest.mark.parametrize("target", ["generic.cpu", "siracusa", "diana"])
def test_targets_compute_a_network_over_one_axis(target: str, tmp_path: Path) -> None:
    nodes, constants = chain()
    path = saved(model_of(nodes, {"x": SHAPE}, constants=constants), tmp_path)
    module = htvm.build(htvm.load(path), target=target)
    x = integers(seed=2)
    (found,) = module.run(x).outputs
    np.testing.assert_array_equal(found, module.reference(x)[0])
    if target != "diana":  # one right shift has no factor of 3
        np.testing.assert_array_equal(found, expected(x, constants))


# ------------------------------------------------------------------------------ differences


@pytest.mark.parametrize("second", ["tensor", "number", "channels", "larger"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shifted", [False, True])
def test_differences(second: str, turned: bool, shifted: bool, tmp_path: Path) -> None:
    x, constants = integers(), {}
    other = {
        "tensor": integers(seed=3),
        "number": np.asarray([9.0], np.float32),
        "channels": integers((CHANNELS, 1), 4).astype(np.float32),
        "larger": integers((3, CHANNELS, 1), 4).astype(np.float32),
    }[second]
    data = [x]
    if second == "tensor":
        data.append(other)
    else:
        constants["z"] = other
    operands = ["z", "x"] if turned else ["x", "z"]
    nodes = [node("Sub", operands, "d" if shifted else "y")]
    nodes += [requant("d", "y", constants)] if shifted else []
    found = made(nodes, constants, tmp_path, *data, dialect="pulp")
    wide = x.astype(np.int64) - other.astype(np.int64)
    wide = -wide if turned else wide
    np.testing.assert_array_equal(found, requantized(wide) if shifted else wide)
    assert found.dtype == (np.int8 if shifted else np.int32)


def test_a_lone_difference_of_integers_needs_no_dialect(tmp_path: Path) -> None:
    model = model_of([node("Sub", ["x", "z"], "y")], {"x": SHAPE, "z": SHAPE},
                     dtype=TensorProto.INT8)  # fmt: skip
    module = htvm.build(htvm.load(saved(model, tmp_path)), target="generic.cpu")
    x, z = integers(), integers(seed=5)
    (found,) = module.run([x, z]).outputs
    np.testing.assert_array_equal(found, x.astype(np.int32) - z)


@pytest.mark.parametrize("turned", [False, True])
def test_a_difference_within_a_chain(turned: bool, tmp_path: Path) -> None:
    """Multiply, subtract, divide, floor, clip."""
    constants = {name: np.asarray([value], np.float32)
                 for name, value in (("m", 3), ("s", 40), ("d", 8))}  # fmt: skip
    nodes = [
        node("Mul", ["x", "m"], "a"),
        node("Sub", ["s", "a"] if turned else ["a", "s"], "b"),
        node("Div", ["b", "d"], "c"),
        node("Floor", ["c"], "e"),
        node("Clip", ["e"], "y", min=0.0, max=255.0),
    ]
    x = integers().view(np.uint8)
    wide = x.astype(np.int64) * 3 - 40
    wanted = np.clip((-wide if turned else wide) // 8, 0, 255)
    np.testing.assert_array_equal(made(nodes, constants, tmp_path, x, dialect="quantlib"), wanted)


def test_pools_over_three_axes_are_refused(tmp_path: Path) -> None:
    constants: dict[str, Array] = {}
    pool = node("MaxPool", ["x"], "p", kernel_shape=[2, 2, 2])
    with pytest.raises(UnsupportedError, match="one or two axes"):
        made([pool, requant("p", "y", constants)], constants, tmp_path, integers((1, 2, 4, 4, 4)))
