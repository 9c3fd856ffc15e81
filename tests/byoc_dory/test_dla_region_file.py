"""Regions as files: written and read again, and what is wrong with others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import htvm
from byoc_dory.errors import ModelError, PolicyError, TargetError, TilingError
from byoc_dory.options import TilingOptions
from byoc_dory.soc.dla.design import Design
from byoc_dory.soc.dla.memory import plan
from byoc_dory.soc.dla.region_file import lower
from tests.byoc_dory.dla_draws import draw_region
from tests.byoc_dory.region_reading import read_region, write_region


def test_files_are_read_as_they_were_written(tmp_path: Path) -> None:
    for seed in range(20):
        file, weights = lower(draw_region(np.random.default_rng(seed), 4))
        path, beside = write_region(file, weights, tmp_path / "region.json")
        assert read_region(path.read_bytes(), beside.read_bytes()) == file


def text_of(change: dict[str, Any], layer: dict[str, Any] | None = None) -> tuple[bytes, bytes]:
    file, weights = lower(draw_region(np.random.default_rng(12), 2))
    data = json.loads(msgspec.json.encode(file)) | change
    data["layers"][0] |= layer or {}
    return json.dumps(data).encode(), weights


@pytest.mark.parametrize(
    ("change", "layer", "message"),
    [
        ({"version": 2}, {}, "its schema has version 2, this program knows 1"),
        ({"format": "onnx"}, {}, "the format is 'onnx'"),
        ({"weights_sha256": "0" * 64}, {}, "the weights are those of another network"),
        ({"weights_bytes": 16}, {}, "exceed those of the region|B of weights, not 16"),
        ({"extra": 1}, {}, "extra"),
        ({}, {"inputs": [99]}, "it has operands"),
        ({}, {"inputs": [1]}, "read before it is written"),
        ({}, {"shift": 32}, "shift 32"),
        ({}, {"clip": [5, 4]}, "clip"),
        ({}, {"stride": [0, 1]}, "the window is"),
        ({}, {"pad": [9, 9, 9, 9]}, "its result cannot have"),
        ({}, {"weights": 8}, "its weights are at 8"),
        ({}, {"op": "lstm"}, "lstm"),
    ],
)
def test_wrong_files_are_refused(
    change: dict[str, Any], layer: dict[str, Any], message: str
) -> None:
    text, weights = text_of(change, layer)
    with pytest.raises(ModelError, match=message) as caught:
        read_region(text, weights, "net.json")
    assert "net.json" in str(caught.value)


def test_truncated_files_are_refused() -> None:
    text, weights = text_of({})
    read_region(text, weights)
    for size in (0, 1, len(text) // 2, len(text) - 1):
        with pytest.raises(ModelError, match="no JSON"):
            read_region(text[:size], weights)
    with pytest.raises(ModelError, match="B of weights, not"):
        read_region(text, weights[:-1])


def test_a_small_sram_is_refused_with_what_would_help() -> None:
    file, _ = lower(draw_region(np.random.default_rng(12), 1))
    with pytest.raises(TilingError) as caught:
        plan(file, Design(pes_in=1, pes_out=4, sram=64, fused=False))
    said = str(caught.value)
    assert "the limit is 64 B" in said and "the whole layer would need" in said
    assert "give" in said and "rows=tiled" in said and "fused" in said and "layer_0" in said


def test_a_network_that_must_fit_says_why_it_does_not() -> None:
    model = htvm.zoo.build("toyadmos")
    with pytest.raises(PolicyError, match="needs .* B of SRAM .* give .* or more"):
        htvm.build(model, target="dla:sram=1KiB,fused=off", policy={"dense_0": "dla"})
    with pytest.raises(TilingError, match="B of SRAM"):
        htvm.build(model, target="dla", tiling=TilingOptions(l1_budget=600))


@pytest.mark.parametrize(
    "wrong", [{"pes_in": 0}, {"pes_out": -1}, {"sram": 0}, {"dma_bytes": 0}, {"pes_in": 2.5}]
)
def test_designs_of_no_accelerator_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(TargetError, match=f"{next(iter(wrong))} cannot be"):
        Design(**({"pes_in": 1, "pes_out": 1, "sram": 1024} | wrong))
