"""Networks as Keras, torch and onnxruntime's quantizer write them, against their runtimes."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import htvm
from benchmarks.exporters.cases import BEFORE, cases
from htvm.build_options import BuildOptions
from htvm.pipeline import compile_model
from tests.reference.interpreter import Array, interpret

FOLDER = Path(__file__).parents[3] / "shared" / "models" / "exporters"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="../shared/models/exporters is not there"
)

EXACT = (
    "torch_Dense_qdq_s8pc",
    "torch_Dense_qdq_s8sym",
    "torch_Multi_qdq_u8s8",
    "keras_squeezenet_u8io",
)


def file_of(name: str) -> Path:
    (path,) = [item for item in (FOLDER / name).iterdir() if item.suffix in (".onnx", ".tflite")]
    return path


def runs(name: str) -> list[tuple[list[Array], list[Array]]]:
    """The inputs and outputs of each run in golden.npz."""
    with np.load(FOLDER / name / "golden.npz") as arrays:
        found: dict[str, Array] = {key: arrays[key] for key in arrays.files}
    numbers = sorted({int(key[2:].split("_")[0]) for key in found if key.startswith("in")})

    def of(kind: str, number: int) -> list[Array]:
        keys = [key for key in found if key.startswith(f"{kind}{number}_")]
        return [found[key] for key in sorted(keys, key=lambda key: int(key.split("_")[1]))]

    return [(of("in", number), of("out", number)) for number in numbers]


@pytest.mark.parametrize("name", EXACT)
def test_every_element_equals_the_runtime(name: str) -> None:
    module = htvm.load(file_of(name)).module
    for inputs, outputs in runs(name):
        for found, wanted in zip(interpret(module, inputs).outputs, outputs, strict=True):
            np.testing.assert_array_equal(found, wanted.reshape(found.shape))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["generic.cpu", "diana"])
@pytest.mark.parametrize(
    "name",
    ["add_scalar_without_dimensions", "max_of_three", "pad_axes_ignored", "tensors_without_names",
     "qdq_symmetric_add_relu_slow", "keras_squeezenet_u8io", "shuffle_pt2e_diana_crash",
     "keras_dynamic_batch_densenet", "torch_Dense_qdq_s8sym", "vit_concat_constant"],
)  # fmt: skip
def test_it_builds_and_runs(name: str, target: str) -> None:
    module = htvm.build(htvm.load(file_of(name)), target, platform="host")
    rng = np.random.default_rng(1)
    inputs = []
    for info in module.model.inputs:
        if info.dtype == "float32":
            inputs.append(rng.normal(size=info.shape).astype(np.float32))
        else:
            limits = np.iinfo(info.dtype)
            inputs.append(rng.integers(limits.min, limits.max + 1, info.shape).astype(info.dtype))
    found = module.run(inputs).outputs
    assert len(found) == len(module.model.outputs)


def test_a_uint8_interface_is_no_obstacle_for_an_accelerator() -> None:
    model = htvm.load(file_of("keras_squeezenet_u8io"))
    placement = compile_model(model, "diana", BuildOptions()).dispatch.placement
    assert "digital" in placement.values()


def test_every_file_has_a_row() -> None:
    page = (Path(__file__).parents[2] / "docs" / "exporter-cases.md").read_text(encoding="utf-8")
    names = {item.name for item in FOLDER.iterdir() if item.is_dir()}
    assert names == set(BEFORE)
    rows = {line.split(" | ")[0].strip("| "): line for line in page.splitlines() if "|" in line}
    for name in names:
        _, then, *today = rows[name].split(" | ")
        assert then == BEFORE[name]
        assert [cell for cell in today if cell.startswith(("wrong", "crashed", "refused"))] == []


def test_results_are_compared(tmp_path: Path) -> None:
    """A row is made of what comes out: other outputs beside the file are seen."""
    name = "keras_squeezenet_u8io"
    (tmp_path / name).mkdir()
    shutil.copy(file_of(name), tmp_path / name)
    with np.load(FOLDER / name / "golden.npz") as arrays:
        kept = {key: arrays[key] for key in arrays.files}
    kept["out0_0"] = kept["out0_0"] + np.uint8(3)
    np.savez(tmp_path / name / "golden.npz", **kept)
    (case,) = cases(tmp_path, interpret, targets=())
    assert case.result.startswith("wrong: 10 of")
