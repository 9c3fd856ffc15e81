"""No bytes make a reader end otherwise than by a network or an error that blames the file."""

from __future__ import annotations

import os
import re

import pytest

from benchmarks.fuzzing import CORPUS, READERS, campaign

RUNS = 30_000  # about a minute


@pytest.mark.skipif(not os.environ.get("CI"), reason="only CI waits: python -m benchmarks.fuzzing")
@pytest.mark.parametrize("reader", READERS)
def test_files_that_reach_new_code(reader: str) -> None:
    pytest.importorskip("atheris", reason="atheris has no wheel for this machine")
    assert re.match(r"Done \d+ runs", campaign(reader, f"-runs={RUNS}"))


@pytest.mark.parametrize("reader", READERS)
def test_the_corpus_is_small(reader: str) -> None:
    """Each clone has it."""
    sizes = [path.stat().st_size for path in (CORPUS / reader).iterdir()]
    assert 50 < len(sizes) and sum(sizes) < 2**20
