"""Digits on a terminal, and the demo that shows them."""

from __future__ import annotations

import numpy as np
import pytest

from htvm.tools.cli.demo import demo, recognised


def test_the_image_the_scores_and_the_decision() -> None:
    image = np.zeros((1, 8, 8), np.float32)
    image[0, 2, 3] = 1.0
    logits = np.array([[0.5, -1.5, 2.5]], np.float32)
    lines = recognised(image, logits, 2).splitlines()
    assert lines[3].startswith("|      @@        |")
    assert lines[0].endswith("0    0.50 ############")
    assert lines[1].endswith("1   -1.50")
    assert lines[2].endswith("2    2.50 ########################  <")
    assert lines[-1] == "decision: 2, the label: 2, right"
    assert recognised(image, logits, 1).endswith("the label: 1, WRONG")


def test_equal_scores_are_no_division_by_zero() -> None:
    assert "decision: 0" in recognised(np.ones((8, 8)), np.zeros(10), 3)


@pytest.mark.slow
def test_the_demo_recognises_digits(capsys: pytest.CaptureFixture[str]) -> None:
    demo.main([], standalone_mode=False)
    shown = capsys.readouterr().out
    assert "decision: 0, the label: 0, right" in shown
    assert "of all 450 held-out digits 44" in shown
    assert "plain TVM" in shown and "NO" not in shown.split()
