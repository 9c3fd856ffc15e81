"""The language model's table: figures follow from runs, and nothing needs the published files."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import llama
from benchmarks.siracusa_published import TOKENS
from htvm import zoo
from htvm.tools.zoo.llama import microllama

CELLS = [column.title for column in llama.DECODE]
PROMPT_CELLS = [column.title for column in llama.PREFILL]


def test_figures_follow_from_the_runs() -> None:
    decode = llama.measure(
        "decode", 2, "seeded", zoo.microllama(2, layers=1).step, "siracusa.cluster"
    )
    prompt = llama.Run("prompt", 4, "file", "siracusa", 2 * decode.cycles, decode.l2, False)
    assert decode.exact and decode.tokens == 1 and prompt.tokens == 4
    row = dict(zip(CELLS, llama._row(decode), strict=True))
    other = dict(zip(PROMPT_CELLS, llama._row(prompt), strict=True))
    per_second = 360e6 / decode.cycles
    assert float(row["tokens/s"]) == pytest.approx(per_second, rel=0.01)
    assert float(other["tokens/s"]) == pytest.approx(2 * per_second, rel=0.01)
    assert float(row["of published"]) == pytest.approx(per_second / TOKENS.per_second, rel=0.01)
    assert float(row["uJ/token"]) == pytest.approx(167e3 / per_second, abs=0.51)
    assert (row["= reference"], other["= reference"]) == ("yes", "NO")


def test_networks_without_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(llama, "FOLDER", tmp_path)
    found = [(kind, size, weights) for kind, size, weights, *_ in llama.networks()]
    decode = [("decode", size, "seeded") for size in llama.LENGTHS]
    assert found == [*decode, *(("prompt", size, "seeded") for size in (1, 4, 16, 64))]


def test_the_loop_is_compared_with_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama.zoo, "microllama", lambda length: microllama(length, layers=1))
    monkeypatch.setattr(llama, "LOOP_LENGTH", 4)
    greedy, drawn = llama.measure_loop("siracusa.cluster")
    assert greedy.exact and drawn.exact
    assert greedy.network < greedy.cycles < drawn.cycles
