"""Boards that are too small layer after layer: rows by themselves, and what is said of them."""

from __future__ import annotations

import numpy as np
import pytest

import htvm
from htvm import zoo
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.firmware.sizes import check_l2
from htvm.tools.report.screen import screen_text
from tests.aot.chains.networks import inputs_of

SMALL, LARGE = "nrf52-dk", "nrf52840-dk"
"""64 KiB of RAM, and 256 KiB, around the same core."""


def test_a_network_that_fits_only_by_rows_is_built_by_rows() -> None:
    model = zoo.build("mobilenet_v1")
    small = Compiled(model, SMALL, BuildOptions())
    large = Compiled(model, LARGE, BuildOptions())
    check_l2(small.program, small.target.soc)
    assert large.by_rows == ""
    assert f"else the arena takes at least {large.program.plan.peak:,} B" in small.by_rows
    assert small.program.plan.peak < large.program.plan.peak


@pytest.mark.slow
def test_the_first_screen_and_fit_say_so() -> None:
    model = zoo.build("mobilenet_v1")
    module = htvm.build(model, SMALL)
    inputs = inputs_of(model, 1)
    result = module.run(inputs)
    wanted = htvm.build(model, LARGE, "host").run(inputs).outputs
    np.testing.assert_array_equal(result.outputs[0], wanted[0])
    screen = screen_text(module.report())
    assert "by rows" in screen and "else the arena takes" in screen
    fit = htvm.fit(model, SMALL)
    assert fit.fits == "yes"
    assert "by rows: " in fit.levels[-1].note


def test_rows_that_come_one_by_one_fit_half_of_that_board() -> None:
    model = zoo.build("mobilenet_v1")
    streamed = Compiled(model, "ek-ra4m1", BuildOptions(input="streamed"))
    check_l2(streamed.program, streamed.target.soc)


def test_a_board_that_is_too_small_by_rows_too_changes_nothing() -> None:
    small = Compiled(zoo.build("mobilenet_v1"), "ek-ra4m1", BuildOptions())
    assert small.by_rows == ""
    assert not any("htvm_chain.h" in kernel.headers for kernel in small.cpu_kernels)
