"""Two checkouts that read or build a network differently are told apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import identical


def test_a_network_has_a_digest_or_the_words_of_its_refusal(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.tflite"
    damaged.write_bytes(b"no network")
    networks = ["zoo:toyadmos", str(damaged)]
    found = identical.digests(identical.HERE, networks, ["cortex_m4"])
    assert list(found) == [(networks[0], ""), (networks[0], "cortex_m4"), (networks[1], "")]
    read, built, refused = found.values()
    assert len({read, built}) == 2
    assert refused.startswith("ModelError: ")


@pytest.mark.parametrize("changed", [False, True])
def test_what_differs_is_said(changed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = {("net", ""): "1", ("net", "diana"): "2"}, {("net", ""): "1"}
    there["net", "diana"] = "3" if changed else "2"
    monkeypatch.setattr(
        identical,
        "digests",
        lambda checkout, networks, targets: here if checkout == identical.HERE else there,
    )
    result = CliRunner().invoke(identical.main, ["/"])
    assert result.exit_code == changed
    assert ("net diana:\n  3\n  2\n" in result.output) == changed
    assert f"{1 if changed else 2} of 2 the same: 7 networks" in result.output
