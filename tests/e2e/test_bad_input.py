"""Whatever is wrong ends in one typed error that says what, where and what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import htvm
from htvm import errors


@pytest.fixture(scope="module")
def module() -> htvm.Module:
    return htvm.build(htvm.zoo.build("toyadmos"), "diana.cpu", "host")


@pytest.fixture(scope="module")
def sample(module: htvm.Module) -> np.ndarray:
    (info,) = module.compiled.source.inputs
    return np.zeros(info.shape, info.dtype)


def test_unknown_target_lists_the_known_ones() -> None:
    with pytest.raises(errors.TargetError, match="diana.digital"):
        htvm.build(htvm.zoo.build("toyadmos"), "diane")


def test_missing_file() -> None:
    with pytest.raises(errors.ModelError, match="nowhere.tflite"):
        htvm.load("nowhere.tflite")


def test_not_a_model(tmp_path: Path) -> None:
    path = tmp_path / "text.tflite"
    path.write_text("this is no model")
    with pytest.raises(errors.ModelError, match="text.tflite"):
        htvm.load(path)


def test_unknown_file_type(tmp_path: Path) -> None:
    path = tmp_path / "model.pb"
    path.write_bytes(b"\0" * 64)
    with pytest.raises(errors.HtvmError, match=r"\.tflite"):
        htvm.load(path)


def test_wrong_input_name(module: htvm.Module, sample: np.ndarray) -> None:
    with pytest.raises(errors.InputError, match="no input 'bogus'"):
        module.run({"bogus": sample})


def test_wrong_input_shape(module: htvm.Module, sample: np.ndarray) -> None:
    with pytest.raises(errors.InputError, match="shape"):
        module.run(sample[:, :-1])


def test_wrong_input_dtype(module: htvm.Module, sample: np.ndarray) -> None:
    with pytest.raises(errors.InputError, match="float32 instead of int8"):
        module.run(sample.astype("float32"))


def test_wrong_number_of_inputs(module: htvm.Module, sample: np.ndarray) -> None:
    with pytest.raises(errors.InputError, match="2 inputs given"):
        module.run([sample, sample])


def test_not_an_array(module: htvm.Module) -> None:
    with pytest.raises(errors.InputError, match="not a numpy array"):
        module.run(["zeros"])  # type: ignore[list-item]


def test_unwritable_folder(module: htvm.Module, tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    with pytest.raises(errors.ExportError, match="file"):
        module.export(blocker / "project")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_a_foreign_folder_is_left_alone(module: htvm.Module, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(errors.ExportError):
        module.export(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_network_that_exceeds_l2() -> None:
    with pytest.raises(errors.L2OverflowError, match="L2"):
        htvm.build(htvm.zoo.build("toyadmos"), "generic.cpu", l2_bytes=65_536)


def test_a_layer_whose_smallest_tile_exceeds_l1() -> None:
    from byoc_dory.options import TilingOptions

    with pytest.raises(errors.TilingError, match="conv2d_0"):
        htvm.build(htvm.zoo.build("resnet8"), "diana.digital", tiling=TilingOptions(l1_budget=128))


def test_every_error_is_one_family() -> None:
    kinds = [getattr(errors, name) for name in errors.__all__]
    assert all(issubclass(kind, errors.HtvmError) for kind in kinds)


@pytest.mark.parametrize("name", ["a\0b", "a" * 5000], ids=["NUL", "too long"])
def test_impossible_path(name: str) -> None:
    with pytest.raises(errors.ModelError, match="cannot be read"):
        htvm.load(name)


def test_a_file_beyond_any_flatbuffer_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.tflite"
    with path.open("wb") as stream:
        stream.truncate(1 << 40)  # a hole: nothing is stored
    with pytest.raises(errors.ModelError, match="more than a flatbuffer can have"):
        htvm.load(path)


@pytest.mark.parametrize("seed", [-1, "x", None, 2.5])
def test_zoo_seed(seed: object) -> None:
    with pytest.raises(errors.ModelError, match="seed"):
        htvm.zoo.build("toyadmos", seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [0, -1, 2.5, "x", True])
@pytest.mark.parametrize("option", ["l1_budget", "node_limit"])
def test_numbers_of_the_tiler(option: str, given: object) -> None:
    from byoc_dory.options import TilingOptions

    with pytest.raises(errors.TargetError, match=option):
        TilingOptions(**{option: given})  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [3, ["latency"]])
def test_objectives_that_are_no_names(given: object) -> None:
    from byoc_dory.options import TilingOptions

    with pytest.raises(errors.TargetError, match="no objective"):
        TilingOptions(objective=given)  # type: ignore[arg-type]


def test_an_l1_budget_beyond_l1() -> None:
    from byoc_dory.options import TilingOptions

    tiling = TilingOptions(l1_budget=256_001)
    with pytest.raises(errors.TargetError, match="256001 B.*at most 256000"):
        htvm.build(htvm.zoo.build("toyadmos"), "diana.digital", "host", tiling=tiling)


@pytest.mark.parametrize(
    ("option", "given"),
    [("l2_bytes", "x"), ("l2_bytes", -16), ("l2_bytes", 2.5), ("tiling", {}), ("tiling", "milp"),
     ("platform", ["rv32"]), ("platform", 3)],
)  # fmt: skip
def test_options_of_a_build(option: str, given: object) -> None:
    with pytest.raises(errors.TargetError, match=option):
        htvm.build(htvm.zoo.build("toyadmos"), "generic.cpu", **{option: given})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data", [3, [], None.__class__, [np.zeros(2), np.zeros(3)], {"input": None}, np.int8(3)]
)
def test_calibration_data(data: object) -> None:
    from htvm.quantization.samples import stacked_samples

    with pytest.raises(errors.InputError, match="option 'data'"):
        stacked_samples(data, htvm.zoo.build("toyadmos").inputs)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["stdint", "a" * 300, "htvm_hal", "diana_driver", "main", "int"])
def test_names_that_collide_become_others(name: str) -> None:
    from htvm.model import model_name

    made = model_name(name)
    assert made.isidentifier() and made != name and len(made) < 80
    assert model_name(made) == made
