"""What onnxruntime is trusted with: the probes see sums that saturate, and wrong results are none.

The numpy definition that replaces onnxruntime is compared with it in
`tests/frontend/onnx/test_qoperator.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.reference.onnx_session import (
    DEPTH,
    PROBED,
    Arithmetic,
    Array,
    FromDefinition,
    Probe,
    classify,
    find_arithmetic,
    options_of,
    probe,
    quantized,
    run_probe,
    wrong_probes,
)

TYPES = ("uint8", "int8")
HAVE_A_DEFINITION = ("QLinearConv", "QLinearMatMul", "QGemm")


def saturated(item: Probe) -> Array:
    """The result of a probe whose sums of two products are cut to int16, as ``vpmaddubsw`` does.

    Activations of int8 are moved to uint8 first, by 128.
    """
    weights = onnx.load_from_string(item.model).graph.initializer
    weight = next(numpy_helper.to_array(w) for w in weights if w.name == "w").astype(np.int64)
    weight = weight.reshape(weight.shape[:2])
    columns = weight if weight.shape[0] == DEPTH else weight.T
    x = item.data.reshape(2, DEPTH).astype(np.int64)
    moved = 128 if x.min() < 0 else 0
    pairs = ((x + moved)[:, :, None] * columns[None]).reshape(2, DEPTH // 2, 2, -1).sum(axis=2)
    sums = np.clip(pairs, -(2**15), 2**15 - 1).sum(axis=1) - moved * columns.sum(axis=0)
    if item.exact.dtype == np.int32:
        return sums.astype(np.int32)
    limits = np.iinfo("int8" if moved else "uint8")
    steps = np.clip(np.rint(sums / 2**14), limits.min, limits.max).reshape(item.exact.shape)
    if item.exact.dtype == np.float32:
        steps = steps * 2**14
    return steps.astype(item.exact.dtype)


def file_of(item: Probe, folder: Path) -> Path:
    path = folder / "probe.onnx"
    path.write_bytes(item.model)
    return path


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", PROBED)
def test_a_probe_tells_saturating_sums(op: str, dtype: str) -> None:
    item = probe(op, dtype)
    assert not np.array_equal(saturated(item), item.exact)


@pytest.mark.filterwarnings("ignore::tests.reference.onnx_session.FromDefinition")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", PROBED)
def test_the_reference_is_exact_on_this_machine(op: str, dtype: str, tmp_path) -> None:
    item = probe(op, dtype)
    (found,) = quantized(file_of(item, tmp_path))([item.data])
    assert found.dtype == item.exact.dtype
    np.testing.assert_array_equal(found, item.exact)


@pytest.mark.filterwarnings("ignore::tests.reference.onnx_session.FromDefinition")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", PROBED)
def test_precise_sessions_or_the_definition_are_exact(op: str, dtype: str, tmp_path) -> None:
    item = probe(op, dtype)
    (found,) = quantized(file_of(item, tmp_path), Arithmetic.PRECISE)([item.data])
    np.testing.assert_array_equal(found, item.exact)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", HAVE_A_DEFINITION)
def test_the_definition_is_exact_and_said(op: str, dtype: str, tmp_path) -> None:
    item = probe(op, dtype)
    with pytest.warns(FromDefinition, match=f"a file of {op}: compared with the definition"):
        run = quantized(file_of(item, tmp_path), Arithmetic.NONE)
    np.testing.assert_array_equal(run([item.data])[0], item.exact)


def test_what_has_neither_kernel_nor_definition_fails(tmp_path) -> None:
    item = probe("Conv", "int8")
    with pytest.warns(FromDefinition):
        run = quantized(file_of(item, tmp_path), Arithmetic.NONE)
    with pytest.raises(NotImplementedError, match=r"probe.onnx has Conv: .* add the definition"):
        run([item.data])


def test_saturating_sessions_are_made_precise_or_not_used() -> None:
    def run(item: Probe, precise: bool) -> Array | None:
        if item is probe("QGemm", "int8") and precise:
            return None
        saturates = item is probe("MatMul", "uint8") and not precise
        return saturated(item) if saturates else item.exact

    assert wrong_probes(run, False) == ["MatMul of uint8"] and wrong_probes(run, True) == []
    assert classify(run) is Arithmetic.PRECISE
    assert classify(lambda item, _: item.exact) is Arithmetic.PLAIN
    assert classify(lambda item, _: saturated(item)) is Arithmetic.NONE


def test_only_precise_sessions_are_configured() -> None:
    assert options_of(True).get_session_config_entry("session.x64quantprecision") == "1"
    with pytest.raises(RuntimeError, match="x64quantprecision"):  # has no such entry
        options_of(False).get_session_config_entry("session.x64quantprecision")


def test_this_machine_is_known() -> None:
    assert (find_arithmetic() is Arithmetic.PLAIN) == (wrong_probes(run_probe, False) == [])
