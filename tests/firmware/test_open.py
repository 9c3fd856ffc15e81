"""An exported build is opened, run and exported again, without the compiler it came from."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htvm
from byoc_dory.errors import ExportError, HtvmError, InputError, TargetError
from htvm.aot.literals import c_array, c_type, read_c_arrays
from htvm.firmware.export import MANIFEST
from htvm.firmware.manifest import FILE, StoredArray
from htvm.inputs import seeded_inputs
from htvm.tools.zoo.drawing import Sketch
from htvm.tools.zoo.networks import model


def _model() -> htvm.Model:
    net = Sketch("opened", (3, 8, 8), 0, "8-bit")
    net.softmax(net.dense(net.average_pool(net.conv2d(net.input, 16, (3, 3))), 10))
    return model(net, "NHWC")


@pytest.fixture(scope="module")
def module() -> htvm.Module:
    return htvm.build(_model(), "diana")


@pytest.fixture(scope="module")
def original(module: htvm.Module, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return module.export(tmp_path_factory.mktemp("export") / "p")


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(original, tmp_path / "p"))


def _tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


# --- what it is good for ----------------------------------------------------------------------


def test_it_is_what_was_exported(module: htvm.Module, original: Path) -> None:
    project = htvm.open(original)
    assert (project.name, project.target) == (module.name, module.target)
    assert project.inputs == module.compiled.program.inputs
    assert project.sizes == module.sizes
    assert [step.layer for step in project.program.steps] == [
        step.layer for step in module.compiled.program.steps
    ]
    assert str(project.report()) == str(
        htvm.Module(module.compiled, module.platform, module._built).report()
    )
    inputs, outputs = project.golden
    np.testing.assert_array_equal(inputs[0], seeded_inputs(project.inputs)[0])
    np.testing.assert_array_equal(outputs[0], module.reference(inputs)[0])


def test_it_runs_to_the_cycle_like_the_build(module: htvm.Module, original: Path) -> None:
    project = htvm.open(original, trust=True)
    inputs = seeded_inputs(project.inputs, 5)
    ours, theirs = project.run(inputs), module.run(inputs)
    np.testing.assert_array_equal(ours.outputs[0], theirs.outputs[0])
    assert (ours.cycles, ours.layers) == (theirs.cycles, theirs.layers)
    assert str(project.report()) == str(module.report())
    assert project.check()


def test_it_needs_no_compiler(original: Path) -> None:
    code = (
        "import sys, htvm; p = htvm.open(sys.argv[1], trust=True); "
        "assert p.check(); str(p.report()); "
        "sys.exit(any(name.split('.')[0] == 'tvm' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code, str(original)]).returncode == 0


def test_exported_again_it_is_the_same(original: Path, tmp_path: Path) -> None:
    htvm.open(original).export(tmp_path / "again")
    assert _tree(tmp_path / "again") == _tree(original)


def test_exported_again_with_another_golden(original: Path, tmp_path: Path) -> None:
    inputs = seeded_inputs(_model().inputs, 9)
    again = htvm.open(original, trust=True).export(tmp_path / "again", inputs)
    project = htvm.open(again, trust=True)
    np.testing.assert_array_equal(project.golden[0][0], inputs[0])
    assert project.check()
    before, after = _tree(original), _tree(tmp_path / "again")
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {MANIFEST, FILE, "example/opened_golden.c"}


def test_what_make_leaves_does_not_matter(folder: Path) -> None:
    (folder / "build").mkdir()
    (folder / "build" / "x.o").write_text("object")
    assert htvm.open(folder).name == "opened"


@pytest.mark.slow
def test_a_build_for_the_host_is_opened_for_the_host(tmp_path: Path) -> None:
    htvm.build(_model(), "diana", "host").export(tmp_path / "p")
    project = htvm.open(tmp_path / "p", trust=True)
    assert project.check() and project.run().cycles is None


def test_without_trust_nothing_is_run(original: Path, tmp_path: Path) -> None:
    project = htvm.open(original)
    assert project.name == "opened" and "opened" in str(project.report())
    for run in (project.run, project.check, lambda: project.export(tmp_path, project.golden[0])):
        with pytest.raises(ExportError, match="nobody said that it can be trusted"):
            run()
    assert not list(tmp_path.iterdir()) and project.export(tmp_path / "again").is_dir()


def test_inputs_are_checked(original: Path) -> None:
    with pytest.raises(InputError, match="shape"):
        htvm.open(original, trust=True).run(np.zeros((1, 2, 2, 3), np.int8))


# --- what is no export ------------------------------------------------------------------------


def _rewrite(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the description, and its digest with it."""
    data = json.loads((folder / FILE).read_text("utf-8"))
    change(data)
    text = json.dumps(data)
    (folder / FILE).write_text(text, "utf-8")
    lines = (folder / MANIFEST).read_text("utf-8").splitlines()
    digest = hashlib.sha256(text.encode()).hexdigest()
    lines = [f"{digest}  {FILE}" if line.endswith(f"  {FILE}") else line for line in lines]
    (folder / MANIFEST).write_text("\n".join(lines) + "\n", "utf-8")


def _spoil(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text("spoilt")


def _remove(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def _set(**fields: Any) -> Callable[[Path], object]:
    return lambda folder: _rewrite(folder, lambda data: data.update(fields))


def _unlist(folder: Path) -> None:
    """As an export that an earlier version wrote."""
    lines = (folder / MANIFEST).read_text("utf-8").splitlines()
    kept = [line for line in lines if not line.endswith(f"  {FILE}")]
    (folder / MANIFEST).write_text("\n".join(kept) + "\n", "utf-8")


def _list(name: str) -> Callable[[Path], object]:
    """Name a file among those written."""

    def spoil(folder: Path) -> None:
        (folder.parent / "outside").write_text("somebody's")
        (folder / "link").symlink_to(folder.parent / "outside")
        (folder / "inside").symlink_to(folder / "src")
        os.mkfifo(folder / "pipe")
        with (folder / "sparse").open("wb") as file:
            file.truncate(1 << 36)
        with (folder / MANIFEST).open("a", encoding="utf-8") as file:
            file.write(f"00  {name}\n")

    return spoil


def _unlisted_link(folder: Path) -> None:
    """Let a file that need not be there be one from elsewhere."""
    path = folder / "src" / "opened_weights.c"
    lines = (folder / MANIFEST).read_text("utf-8").splitlines()
    kept = [line for line in lines if not line.endswith("  src/opened_weights.c")]
    (folder / MANIFEST).write_text("\n".join(kept) + "\n", "utf-8")
    path.rename(folder.parent / "weights")
    path.symlink_to(folder.parent / "weights")


def _constant_file(folder: Path) -> None:
    """Let an export of it write beside its folder."""
    _rewrite(folder, lambda data: data["constants"][0].update(file="../../x"))


@pytest.mark.parametrize(
    ("spoil", "kind", "message"),
    [
        *((_list(name), ExportError, f"'{name}' is {why}") for name, why in [
            ("/etc/passwd", "a link, or outside of the folder"),
            ("../outside", "a link, or outside of the folder"),
            ("link", "a link, or outside of the folder"),
            ("inside/opened.c", "a link, or outside of the folder"),
            ("pipe", "no file"),
            ("src", "no file"),
            ("sparse", "too large"),
        ]),
        (_list("x" * 3000), ExportError, "cannot read the export: File name too long"),
        (_unlisted_link, ExportError, "the constant '.*' is missing"),
        (_constant_file, ExportError, "'../../x' is not a name of a file"),
        (_set(name="x" * 3000), ExportError, "the constant '.*' is missing"),
        (shutil.rmtree, ExportError, "there is no such folder"),
        (_remove(MANIFEST), ExportError, "this is not an export: it has no"),
        (_remove("src/opened_layers.c"), ExportError, "'src/opened_layers.c' is missing"),
        (_spoil("src/opened.c"), ExportError, "'src/opened.c' was changed"),
        (_spoil(FILE), ExportError, f"'{FILE}' was changed"),
        (_unlist, ExportError, "has no htvm.json and cannot be opened"),
        (_set(schema=2), ExportError, "schema 2, this version reads up to 1"),
        (_set(schema="x"), ExportError, "schema is 'x'"),
        (_set(kind="report"), ExportError, "describes no export"),
        (_set(steps=3), ExportError, "description is damaged"),
        (_set(name="../x"), ExportError, "is not a name of a model"),
        (_set(target="mars"), TargetError, "mars"),
        (_set(target="generic.cpu"), TargetError, "described otherwise"),
        (_set(golden_inputs=[{"dtype": "int8", "shape": [2], "data": "AA=="}]), ExportError,
         "contradict"),
        (_set(golden_inputs=[{"dtype": "no", "shape": [1], "data": "AA=="}]), ExportError,
         "damaged"),
    ],
)  # fmt: skip
def test_what_cannot_be_opened(
    spoil: Callable[[Path], object], kind: type[HtvmError], message: str, folder: Path
) -> None:
    spoil(folder)
    with pytest.raises(kind, match=message):
        htvm.open(folder)


def test_a_file_instead_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("mine")
    with pytest.raises(ExportError, match="no such folder"):
        htvm.open(tmp_path / "p")


# --- arrays -----------------------------------------------------------------------------------

_ENDS = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
}


@pytest.mark.parametrize("dtype", [*_ENDS, "float32"])
def test_arrays_come_back_from_their_c(dtype: str) -> None:
    rng = np.random.default_rng(3)
    if dtype == "float32":
        values = np.concatenate([rng.standard_normal(99), [0.0, -0.0, 1e-45, 3e38]])
    else:
        values = np.concatenate([rng.integers(*_ENDS[dtype], 99, endpoint=True, dtype=dtype),
                                 np.array(_ENDS[dtype], dtype)])  # fmt: skip
    array = values.astype(dtype)
    text = (
        f"/* x */\n_Alignas(16) const {c_type(dtype)} a[{array.size}] = {{\n{c_array(array)}\n}};\n"
    )
    back = read_c_arrays(text, "w.c")["a"]
    assert back.dtype == array.dtype and back.tobytes() == array.tobytes()
    stored = StoredArray.of(array.reshape(-1, 1)).array()
    assert stored.dtype == array.dtype and stored.tobytes() == array.tobytes()


def test_arrays_that_never_end_take_linear_time() -> None:
    began = time.process_time()
    assert not read_c_arrays("const int8_t a[1] = {\n" * 200_000, "w.c")
    assert time.process_time() - began < 5


@pytest.mark.parametrize("change", ["a[3]", "zero_t a[2]", "x1, 2,", f"a[{'9' * 5000}]"])
def test_arrays_that_are_not_as_printed(change: str) -> None:
    text = "const int8_t a[2] = {\n    1, 2,\n};\n"
    old = {"zero_t a[2]": "int8_t a[2]", "x1, 2,": "1, 2,"}.get(change, "a[2]")
    with pytest.raises(HtvmError, match="the array 'a'"):
        read_c_arrays(text.replace(old, change), "w.c")
