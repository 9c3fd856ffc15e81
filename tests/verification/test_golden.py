"""The user's own outputs: bad ones are refused, and differences are told apart from bugs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htvm
from byoc_dory.errors import InputError
from htvm.inputs import seeded_inputs
from htvm.tools.verification.verify import bind_golden, compare_golden
from tests.e2e.networks import random_network
from tests.verification.probe import Array, probe

INFOS = (
    htvm.TensorInfo("scores", (1, 4), "int8", 0.5, 2),
    htvm.TensorInfo("boxes", (1, 2, 2), "float32"),
)
SCORES = np.arange(4, dtype=np.int8).reshape(1, 4)


@pytest.mark.parametrize(
    ("golden", "message"),
    [
        ({}, "there are no outputs in it"),
        ({"score": SCORES}, "the model has no output 'score'; .*it gives scores: int8"),
        ({"scores": SCORES[0]}, r"shape \[4\] instead of \[1, 4\]"),
        ({"scores": SCORES.astype(np.int16)}, "dtype int16 instead of int8"),
        ({"boxes": np.zeros((1, 2, 2))}, r"dtype float64 instead of float32"),
        ({"scores": [1, 2]}, "a list is not a numpy array"),
        (SCORES, "ndarray instead of arrays by name; .*scores: int8"),
    ],
)
def test_a_bad_golden(golden: Any, message: str) -> None:
    with pytest.raises(InputError, match="(?s)" + message):
        bind_golden(INFOS, golden)


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read outputs: No such file"):
        bind_golden(INFOS, tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("no numbers")
    with pytest.raises(InputError, match="it holds no numpy arrays"):
        bind_golden(INFOS, tmp_path / "text.npz")
    np.savez(tmp_path / "wrong.npz", other=SCORES)
    with pytest.raises(InputError, match="wrong.npz.*no output 'other'|no output 'other'"):
        bind_golden(INFOS, tmp_path / "wrong.npz")


def test_files_of_one_output_need_no_name(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", SCORES)
    np.savez(tmp_path / "a.npz", anything=SCORES)
    for name in ("a.npy", "a.npz"):
        bound = bind_golden(INFOS[:1], tmp_path / name)
        np.testing.assert_array_equal(bound["scores"], SCORES)


def test_not_every_output_is_needed() -> None:
    assert list(bind_golden(INFOS, {"scores": SCORES})) == ["scores"]


def test_the_numbers_of_a_comparison() -> None:
    run = SCORES.copy()
    run[0, 2] += 3
    zeros = np.zeros((1, 2, 2), np.float32)
    (check,) = compare_golden(INFOS, {"scores": SCORES}, [run, zeros], [SCORES, zeros])
    assert (check.different, check.elements, check.largest) == (1, 4, 3)
    assert (check.element, check.value, check.expected) == ((0, 2), 5, 2)
    assert check.source_different == 0
    # signal: (0-2)^2 + (1-2)^2 + 0 + (3-2)^2 = 6; noise: 9
    assert check.sqnr_db == pytest.approx(10 * np.log10(6 / 9))


def _expected(module: htvm.Module, inputs: list[Array]) -> Mapping[str, Array]:
    outputs = module.run(inputs).outputs
    return {info.name: o for info, o in zip(module.compiled.source.outputs, outputs, strict=True)}


def test_an_equal_golden_and_one_of_other_arithmetic() -> None:
    module = htvm.build(probe(), "diana")
    inputs = seeded_inputs(probe().inputs)
    golden = dict(_expected(module, inputs))
    result = module.verify(inputs, golden)
    assert result.equal and result.agrees
    (name,) = golden
    golden[name] = golden[name] + np.int8(1)
    result = module.verify(inputs, golden)
    assert result.equal and not result.agrees
    assert result.golden[0].different == golden[name].size
    assert "no bug of the build: it computes what the file says" in str(result)


def test_what_retargeting_changed_is_no_bug() -> None:
    network = next(
        net
        for seed in range(60)
        for net in [random_network(seed, "tflite")]
        if any("conv2d" in line for line in net.text) and len(net.model.inputs) == 1
    )
    inputs = network.inputs(1)
    exact = htvm.build(network.model, "diana.cpu", "host")
    golden = _expected(exact, inputs)
    # As imported, the network gives the golden; for the accelerators it was rewritten.
    result = htvm.build(network.model, "diana").verify(inputs, golden)
    assert result.equal and result.retargeted and not result.agrees
    assert all(check.source_different == 0 for check in result.golden)
    assert "the network as imported gives the golden exactly" in str(result)
