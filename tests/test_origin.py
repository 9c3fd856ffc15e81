"""Every generated file says which library made it, of what; the hash is that model's alone."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import htvm
from byoc_dory.layers import Shift
from htvm.aot.entry import model_sources
from htvm.aot.program import Program
from htvm.build_options import BuildOptions
from htvm.firmware.project import project_files
from htvm.pipeline import compile_model
from patterns.ops.dense import Dense
from tests.frontend.flatfile import small_network
from tests.frontend.onnx.test_affine_bad_input import conv, started
from tests.generated.operators import module_of

ROOT = Path(__file__).parents[1]
ONCE_FOR_ALL = ("runtime/", "simulator/")
"""Files that are the same whatever the model."""


def model(weight: int = 3, name: str = "dense", clip: tuple[int, int] = (-128, 127)) -> htvm.Model:
    """A dense layer; each argument is another model."""
    matrix = np.full((4, 6), weight, np.int8)

    def write(bb: Any, x: Any) -> list[Any]:
        bias = np.arange(4, dtype=np.int32)
        return [Dense(matrix, bias, Shift(3), clip).write(bb, [x], name)]

    return htvm.load(module_of((((1, 6), "int8"),), write), name="net")


def files_of(program: Program, soc: Any) -> dict[str, str]:
    zeros = [
        [np.zeros(info.shape, info.dtype) for info in infos]
        for infos in (program.inputs, program.outputs)
    ]
    return project_files(program, soc, (zeros[0], zeros[1]))


def test_every_file_names_version_source_and_hash() -> None:
    source = model()
    made = compile_model(source, "diana.digital", BuildOptions())
    texts = files_of(made.program, made.target.soc)
    own = {name: text for name, text in texts.items() if not name.startswith(ONCE_FOR_ALL)}
    assert len(own) > 10
    for name, text in own.items():
        said = " ".join(text[:800].replace("\n *", " ").replace("\n#", " ").split())
        wanted = f"HTVM {htvm.__version__} from a Relax module, SHA-256 {source.sha256}."
        assert wanted in said, name


def test_the_hash_is_of_what_is_computed() -> None:
    same = model().sha256
    assert model().sha256 == same and len(same) == 64
    others = {model(weight=4).sha256, model(name="other").sha256, model(clip=(0, 127)).sha256}
    assert len(others | {same}) == 4


def test_the_hash_of_a_file_is_the_files(tmp_path: Path) -> None:
    path = tmp_path / "small.tflite"
    path.write_bytes(small_network().file())
    loaded = htvm.load(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert (loaded.file_sha256, loaded.sha256) == (digest, digest)
    made = compile_model(loaded, "generic.cpu", BuildOptions())
    assert f"from small.tflite,\n * SHA-256 {digest}" in model_sources(made.program)["small.c"]


def test_the_hash_covers_weights_in_other_files(tmp_path: Path) -> None:
    """The ONNX file itself is the same then."""
    file, x = started()
    file.output(file.through(conv(file, x), 0.1, 0))
    path, data = tmp_path / "net.onnx", tmp_path / "data.bin"
    onnx.save_model(
        file.model(), path, save_as_external_data=True, location=data.name, size_threshold=64
    )
    before, text = htvm.load(path).sha256, path.read_bytes()
    weights = bytearray(data.read_bytes())
    weights[0] ^= 1
    data.write_bytes(weights)
    assert path.read_bytes() == text
    assert htvm.load(path).sha256 != before


SCRIPT = "import htvm; print(htvm.zoo.build('toyadmos').sha256)"


def test_another_process_finds_the_same_hash(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == htvm.zoo.build("toyadmos").sha256
