"""Gather with indices that are inputs or computed: embeddings, and choices of a network's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import htvm
from htvm.errors import InputError, ModelError, UnsupportedError
from tests.frontend.onnx.affine_files import Array, File, ours, theirs

ROWS, WIDTH = 11, 6
ZERO = {"int8": 9, "uint8": 137}


def table(dtype: str = "int8") -> Array:
    limits = np.iinfo(dtype)
    shape = (ROWS, WIDTH)
    return np.random.default_rng(1).integers(limits.min, limits.max + 1, shape).astype(dtype)


def indices(shape: tuple[int, ...], size: int = ROWS) -> Array:
    """From the first to the last, counted from either end."""
    return np.random.default_rng(2).integers(-size, size, shape)


def compare(file: File, folder: Path, inputs: list[Array]) -> Array:
    """Equal to onnxruntime, given int64 where we take int32."""
    path = file.save(folder)
    model = htvm.load(path)
    narrow = [x.astype(info.dtype) for x, info in zip(inputs, model.inputs, strict=True)]
    (made,), (wanted,) = ours(path, narrow), theirs(path, inputs)
    assert made.shape == wanted.shape
    np.testing.assert_array_equal(made, wanted)
    return made


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(7,), (1, 5), (2, 1, 3)])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_a_dequantized_table(
    dtype: str, axis: int, shape: tuple[int, ...], kind: str, tmp_path: Path
) -> None:
    file, data = File(), table(dtype)
    rows = file.dequantize(file.constant(data), 0.031, ZERO[dtype], dtype)
    y = file.node("Gather", [rows, file.input("ids", shape, kind)], axis=axis)
    file.output(file.through(y, 0.031, ZERO[dtype], dtype))
    made = compare(file, tmp_path, [indices(shape, data.shape[axis]).astype(kind)])
    assert np.unique(made).size > 5
    assert htvm.load(tmp_path / "net.onnx").inputs[0].dtype == "int32"


@pytest.mark.parametrize("kind", ["int8", "per row", "reals", "int64"])
def test_other_tables(kind: str, tmp_path: Path) -> None:
    file, ids = File(), None
    ids = file.input("ids", (2, 4), "int64")
    if kind == "int8":
        y = file.dequantize(file.node("Gather", [file.constant(table()), ids]), 0.031, 9)
    elif kind == "per row":
        scale = np.random.default_rng(3).uniform(0.01, 0.05, ROWS).astype(np.float32)
        rows = file.dequantize(file.constant(table()), scale, np.zeros(ROWS, np.int8), axis=0)
        y = file.node("Gather", [rows, ids])
    else:
        values = table().astype(np.float32) * 0.7 if kind == "reals" else table().astype(np.int64)
        y = file.node("Gather", [file.constant(values), ids])
    file.output(y, "int64" if kind == "int64" else "float32")
    if kind == "int64":  # nothing in such a network says which dialect it is
        file.output(file.through(file.input("x", (1, 2)), 0.1, 0))
        path, given = file.save(tmp_path), indices((2, 4))
        real = np.zeros((1, 2), np.float32)
        made = ours(path, [given.astype(np.int32), real])[0]
        np.testing.assert_array_equal(made, table()[given])
        return
    compare(file, tmp_path, [indices((2, 4))])


@pytest.mark.parametrize("state", ["quantized", "dequantized", "real", "pending"])
def test_elements_of_a_computed_tensor(state: str, tmp_path: Path) -> None:
    file = File()
    x = file.input("x", (1, ROWS, WIDTH))
    quantized = file.quantize(x, 0.031, 9)
    source = {
        "quantized": lambda: quantized,
        "dequantized": lambda: file.dequantize(quantized, 0.031, 9),
        "real": lambda: file.node("Exp", [x]),
        "pending": lambda: file.node("Relu", [file.dequantize(quantized, 0.031, 9)]),
    }[state]()
    y = file.node("Gather", [source, file.input("ids", (3,), "int64")], axis=1)
    y = file.dequantize(y, 0.031, 9) if state == "quantized" else file.through(y, 0.031, 9)
    file.output(y)
    x = np.random.default_rng(4).normal(0, 2, (1, ROWS, WIDTH)).astype(np.float32)
    compare(file, tmp_path, [x, indices((3,))])


def test_a_place_that_the_network_finds(tmp_path: Path) -> None:
    file = File()
    x = file.through(file.input("x", (4, ROWS)), 0.031, 9)
    rows = file.dequantize(file.constant(table()), 0.02, 3)
    y = file.node("Gather", [rows, file.node("ArgMax", [x], axis=1, keepdims=0)])
    file.output(file.through(y, 0.02, 3))
    compare(file, tmp_path, [np.random.default_rng(5).normal(0, 2, (4, ROWS)).astype(np.float32)])


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16"])
def test_narrow_indices_that_the_file_casts(kind: str, tmp_path: Path) -> None:
    file = File()
    ids = file.node("Cast", [file.input("ids", (2, 3), kind)], to=7)
    ids = file.node("Reshape", [ids, file.constant([1, 6], "int64")])
    rows = file.dequantize(file.constant(table()), 0.02, 3)
    file.output(file.through(file.node("Gather", [rows, ids]), 0.02, 3))
    given = indices((2, 3)) if kind != "uint8" else np.abs(indices((2, 3))) % ROWS
    compare(file, tmp_path, [given.astype(kind)])
    assert htvm.load(tmp_path / "net.onnx").inputs[0].dtype == kind


def test_a_table_on_an_axis_that_it_does_not_have(tmp_path: Path) -> None:
    file = File()
    rows = file.dequantize(file.constant(table()), 0.02, 3)
    y = file.node("Gather", [rows, file.input("ids", (2,), "int64")], axis=2)
    file.output(file.through(y, 0.02, 3))
    with pytest.raises(ModelError, match="axis 2"):
        htvm.load(file.save(tmp_path))


def test_a_table_of_integers_that_do_not_fit(tmp_path: Path) -> None:
    file = File()
    y = file.node("Gather", [file.constant([1 << 40, 2], "int64"), file.input("i", (2,), "int64")])
    file.output(y, "int64")
    file.output(file.through(file.input("x", (1, 2)), 0.1, 0))
    with pytest.raises(UnsupportedError, match="beyond int32"):
        htvm.load(file.save(tmp_path))


# ------------------------------------------------------------------------------ generated code


def embedding(folder: Path, shape: tuple[int, ...] = (1, 5)) -> Path:
    """A table with a zero point of its own, and a layer behind it."""
    file, rng = File(), np.random.default_rng(6)
    rows = file.dequantize(file.constant(table()), 0.031, 9)
    y = file.node("Gather", [rows, file.input("ids", shape, "int64")])
    y = file.through(file.node("Flatten", [file.through(y, 0.031, 9)]), 0.031, 9)
    weight = rng.integers(-127, 128, (4, 5 * WIDTH)).astype(np.int8)
    y = file.node("Gemm", [y, file.dequantize(file.constant(weight), 0.004, 0)], transB=1)
    file.output(file.through(y, 0.06, 2))
    return file.save(folder)


def test_places_outside_of_the_table_read_its_ends(tmp_path: Path) -> None:
    path = embedding(tmp_path)
    module = htvm.build(htvm.load(path), target="generic.cpu")
    limits = np.iinfo(np.int32)
    given = np.array([[limits.min, -ROWS - 1, ROWS, limits.max, 3]])
    clamped = np.array([[0, 0, ROWS - 1, ROWS - 1, 3]])
    (made,) = module.run(given).outputs
    np.testing.assert_array_equal(made, theirs(path, [clamped])[0])
    np.testing.assert_array_equal(made, module.reference(given)[0])
    assert module.outside(given) is None


def test_indices_of_int64_are_taken_where_they_fit(tmp_path: Path) -> None:
    module = htvm.build(htvm.load(embedding(tmp_path)), target="generic.cpu", platform="host")
    given = indices((1, 5))
    assert given.dtype == np.int64
    made = module.run(given).outputs[0]
    np.testing.assert_array_equal(made, module.run(given.astype(np.int32)).outputs[0])
    given[0, 3] = 1 << 31
    with pytest.raises(InputError, match="2147483648 does not fit int32; input 'ids'"):
        module.run(given)
    with pytest.raises(InputError, match="dtype int16 instead of int32; input 'ids'"):
        module.run(given.astype(np.int16))


@pytest.mark.rotating(1)
@pytest.mark.parametrize("target", ["diana", "siracusa"])
@pytest.mark.parametrize("calibrated", [False, True])
def test_accelerators_run_the_layers_behind_a_table(
    target: str, calibrated: bool, tmp_path: Path
) -> None:
    path = embedding(tmp_path)
    data = np.random.default_rng(7).integers(-ROWS, ROWS, (64, 1, 5)) if calibrated else None
    module = htvm.build(htvm.load(path), target=target, platform="host", data=data)
    assert set(module.placement.values()) != {"cpu"}
    off = []
    for given in np.random.default_rng(8).integers(-ROWS, ROWS, (16, 1, 5)):
        (made,) = module.run(given).outputs
        np.testing.assert_array_equal(made, module.reference(given)[0])
        off.append(made - theirs(path, [given])[0])
    assert np.abs(off).max() < 4 * 0.06  # steps of the output


@pytest.mark.parametrize(
    ("data", "words"),
    [(np.zeros((4, 1, 5), np.float32), "type float32"), (np.zeros((4, 3), np.int64), "shape")],
)
def test_calibration_data_that_are_no_indices(data: Array, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"calibration data of {words}.*input 'ids'"):
        htvm.build(htvm.load(embedding(tmp_path)), target="diana", data=data)


def test_an_interface_of_integers_keeps_the_indices(tmp_path: Path) -> None:
    model = htvm.with_integer_io(htvm.load(embedding(tmp_path)))
    assert [info.dtype for info in (*model.inputs, *model.outputs)] == ["int32", "int8"]


def test_a_convolution_behind_a_table_pads_with_its_zero_point(tmp_path: Path) -> None:
    file, rng = File(), np.random.default_rng(9)
    rows = file.dequantize(file.constant(table()), 0.031, 9)
    y = file.through(file.node("Gather", [rows, file.input("ids", (1, 5), "int64")]), 0.031, 9)
    y = file.node("Reshape", [y, file.constant([1, 1, 5, WIDTH], "int64")])
    weight = rng.integers(-127, 128, (4, 1, 3, 3)).astype(np.int8)
    weights = file.dequantize(file.constant(weight), 0.004, 0)
    y = file.node("Conv", [file.through(y, 0.031, 9), weights], pads=[1, 1, 1, 1])
    file.output(file.through(y, 0.06, 2))
    path = file.save(tmp_path)
    module = htvm.build(htvm.load(path), target="diana", platform="host")
    assert "pad_0" not in module.placement and "digital" in module.placement.values()
    given = rng.integers(-ROWS, ROWS, (1, 5))
    (made,) = module.run(given).outputs
    np.testing.assert_array_equal(made, module.reference(given)[0])
    assert np.abs(made - theirs(path, [given])[0]).max() < 3 * 0.06
