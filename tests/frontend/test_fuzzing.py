"""No bytes make a reader end otherwise than by a network or an error that blames the file."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from benchmarks.fuzzing import CORPUS, READERS

RUNS = (1_500, pytest.param(100_000, marks=pytest.mark.slow))  # the latter in about a minute


@pytest.mark.skipif(not os.environ.get("CI"), reason="only CI waits: python -m benchmarks.fuzzing")
@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("reader", READERS)
def test_files_that_reach_new_code(reader: str, runs: int) -> None:
    pytest.importorskip("atheris", reason="atheris has no wheel for this machine")
    # By the command: a process begins with the peak memory of the one that it was forked from, and
    # libFuzzer would take that of a worker of the tests for its own.
    command = [sys.executable, "-m", "benchmarks.fuzzing", "--of", reader, "--runs", str(runs)]
    done = subprocess.run(command, cwd=CORPUS.parents[1], stdout=subprocess.PIPE, text=True)
    assert re.match(rf"{reader}: Done \d+ runs", done.stdout)


@pytest.mark.parametrize("reader", READERS)
def test_the_corpus_is_small(reader: str) -> None:
    """Each clone has it."""
    sizes = [path.stat().st_size for path in (CORPUS / reader).iterdir()]
    assert 50 < len(sizes) and sum(sizes) < 2**20
