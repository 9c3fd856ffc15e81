"""What real exporters write is read exactly; the page says so."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.exporters.__main__ import EXPORTERS, export
from benchmarks.exporters.check import Outcome, checked, outcomes
from benchmarks.exporters.cores import BEFORE
from benchmarks.exporters.page import page
from benchmarks.exporters.torch_export import results
from benchmarks.peers.environments import InstallError
from tests.reference import onnx_session
from tests.reference.interpreter import interpret
from tests.reference.onnx_session import NO_KERNEL, Arithmetic

PAGE = Path(__file__).parents[2] / "docs" / "exporters.md"
CASE = Path(__file__).parents[3] / "shared" / "models" / "exporters" / "torch_Dense_qdq_s8sym"


def kept(folder: Path, change: float, kinds: tuple[str, ...] = ("fused", "plain")) -> Path:
    """A case as the exporting programs write it, with its results changed."""
    with np.load(CASE / "golden.npz") as arrays:
        golden = {name: arrays[name] for name in arrays.files}
    runs = {name: value for name, value in golden.items() if name.startswith("in")}
    for kind in kinds:
        for name, value in golden.items():
            if name.startswith("out"):
                runs[name.replace("out", kind)] = value + np.float32(change) * (
                    value == value.max()
                )
    case = folder / "torch" / "dense-s8"
    case.mkdir(parents=True)
    np.savez(case / "runs.npz", **runs)
    shutil.copy(CASE / "model.onnx", case)
    return case


@pytest.mark.skipif(not CASE.is_dir(), reason="../shared/models/exporters is not there")
def test_exact_and_wrong_results_are_told_apart(tmp_path: Path) -> None:
    assert checked("torch", kept(tmp_path / "same", 0.0), interpret).result == "exact"
    assert checked("torch", kept(tmp_path / "other", 3.0), interpret).result == "wrong"
    case = kept(tmp_path / "damaged", 0.0)
    (case / "model.onnx").write_bytes(b"no model")
    assert checked("torch", case, interpret).result == "refused"


@pytest.mark.skipif(not CASE.is_dir(), reason="../shared/models/exporters is not there")
def test_without_an_exact_session_a_file_is_neither_exact_nor_wrong(tmp_path: Path) -> None:
    found = checked("torch", kept(tmp_path / "none", 0.0, ()), interpret)
    assert (found.result, found.detail) == ("unchecked", NO_KERNEL)
    found = checked("torch", kept(tmp_path / "plain", 0.0, ("plain",)), interpret)
    assert (found.result, found.detail) == ("exact", "onnxruntime without optimization")
    assert checked("torch", kept(tmp_path / "other", 3.0, ("plain",)), interpret).result == "wrong"


@pytest.mark.skipif(not CASE.is_dir(), reason="../shared/models/exporters is not there")
@pytest.mark.parametrize("arithmetic", Arithmetic)
def test_only_results_of_exact_sessions_are_kept(arithmetic: Arithmetic, monkeypatch) -> None:
    made = []

    def session(model: str, precise: bool, optimized: bool = True, disabled=()) -> object:
        made.append((precise, optimized))
        return None if precise and optimized else SimpleNamespace(run=lambda *_: [0, 1])

    monkeypatch.setattr(onnx_session, "find_arithmetic", lambda: arithmetic)
    monkeypatch.setattr(onnx_session, "session", session)
    kinds = {name[:-3] for name in results(CASE / "model.onnx", [[1], [2]], ["x"])}
    wanted = {
        Arithmetic.PLAIN: ({"fused", "plain"}, [(False, True), (False, False)]),
        Arithmetic.PRECISE: ({"plain"}, [(True, True), (True, False)]),
        Arithmetic.NONE: (set(), []),
    }
    assert (kinds, made) == wanted[arithmetic]


def test_the_page_counts_and_names_every_file() -> None:
    found = [
        Outcome("torch", "vit", "qdq_u8", "exact", "onnxruntime"),
        Outcome("torch", "vit", "qop_u8", "refused", "an | operator"),
        Outcome("torch", "vit", "qop_s8", "unchecked", "no kernel"),
        Outcome("keras", "unet", "float", "quantized", "30 dB"),
    ]
    text = page(found, "torch 1")
    assert "| torch | 3 | 1 | 0 | 0 | 1 | 1 | 0 | 0 |" in text
    assert "| vit | exact | refused: an / operator | unchecked: no kernel |" in text
    assert "| unet | quantized: 30 dB |" in text


def test_the_committed_page_has_no_wrong_file() -> None:
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith(("| torch |", "| keras |")):
            *_, wrong, crashed = (cell.strip() for cell in line.strip("| ").split("|"))
            assert (wrong, crashed) == ("0", "0")


@pytest.mark.slow
@pytest.mark.parametrize(("exporter", "network"), [("torch", "audio"), ("keras", "several")])
def test_files_of_an_exporter_made_here(exporter: str, network: str, tmp_path: Path) -> None:
    try:
        export(exporter, tmp_path, tmp_path / "environments", network)
    except InstallError as error:
        pytest.skip(f"{EXPORTERS[exporter].title} cannot be installed: {error}")
    found = list(outcomes(tmp_path, interpret))
    assert len(found) >= 4
    allowed = {"exact", "quantized"}
    if onnx_session.find_arithmetic() is not Arithmetic.PLAIN:
        allowed.add("unchecked")
    assert {item.result for item in found} <= allowed


def test_the_page_of_cores_has_all_networks() -> None:
    text = (PAGE.parent / "exporter-cores.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if "cortex_m" in line]
    assert {(row[0], row[1]) for row in rows} == set(BEFORE)
    for name, core, *figures, _ in rows:
        then = BEFORE[name, core]
        numbers = [int(figure.replace(",", "")) for figure in figures]
        assert numbers[::2] == [then.arena, then.code, then.instructions]
        assert numbers[1] < numbers[0] and numbers[5] < numbers[4], (name, core)
    assert "WRONG" not in text
