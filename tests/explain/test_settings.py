"""Settings that are quicker: what is tried, what is said of it, and what is not worth a line."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

import pytest

from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.errors import DefectError, HtvmError, UnsupportedError
from htvm.pipeline import compile_model
from htvm.tools.cli.arguments import open_model
from htvm.tools.explain.explanation import explanation_of, settings
from htvm.tools.explain.step_costs import build_costs
from htvm.tools.report.explain import explain_data, explain_text
from htvm.tools.report.verdicts import Numbers, Setting, settings_text

GOOD, BAD = Numbers(33.4, 0.99), Numbers(9.0, 0.667)
FOUND = Setting("--policy latency", 1_000, 800, ("conv2d_1", "conv2d_2"), GOOD, BAD)


PLAIN = BuildOptions()


@functools.cache
def compiled(name: str, target: str, options: BuildOptions = PLAIN) -> Compiled:
    return compile_model(open_model(f"zoo:{name}"), target, options)


def test_a_quicker_setting_says_what_it_gains_and_what_it_loses() -> None:
    said = settings_text((FOUND,))
    assert "--policy latency: -200 cycles (20.0 % of all), 1,000 -> 800" in said
    assert "LOSES ACCURACY: SQNR 9.0 dB, same decision 66.7 %, now SQNR 33.4 dB" in said
    assert "moves conv2d_1, conv2d_2" in said
    assert settings_text(()) == ""


def test_equal_numbers_are_no_loss() -> None:
    same = replace(FOUND, changed=GOOD)
    assert same.same and not same.loses
    assert "SQNR 33.4 dB, same decision 99.0 %, as now" in same.sentence
    assert not replace(FOUND, changed=Numbers(31.0, 0.99)).loses
    assert replace(FOUND, numbers=Numbers()).loses
    assert not replace(FOUND, changed=Numbers()).loses


@pytest.mark.slow
def test_the_policy_by_cycles_is_tried_where_it_would_move_layers() -> None:
    made = compiled("ds_cnn", "diana")
    costs = build_costs(made, measure=False)
    (found,) = settings(made, costs, lambda options: compiled("ds_cnn", "diana", options))
    assert found.option == "--policy latency" and found.before == costs.total
    other = compiled("ds_cnn", "diana", BuildOptions(policy="latency"))
    assert found.after == build_costs(other, measure=False).total and found.gain > 0
    places = other.dispatch.placement
    assert set(found.moved) == {
        name for name, place in places.items() if place != made.dispatch.placement.get(name)
    }
    assert found.changed.sqnr_db == other.retargeted.report.output_sqnr_db != found.numbers.sqnr_db


def test_a_defect_is_not_taken_for_a_setting_that_cannot_be_built() -> None:
    made = compiled("toyadmos", "diana")
    costs = build_costs(made, measure=False)

    def broken(error: HtvmError) -> Callable[[BuildOptions], Compiled]:
        def compile_with(_: BuildOptions) -> Compiled:
            raise error

        return compile_with

    assert settings(made, costs, broken(UnsupportedError("it cannot be built"))) == ()
    with pytest.raises(DefectError):
        settings(made, costs, broken(DefectError("a defect")))


@pytest.mark.slow
def test_explanations_have_the_settings() -> None:
    made = compiled("ds_cnn", "diana")
    found = explanation_of(
        made, 1, measure=False,
        compile_with=lambda options: compiled("ds_cnn", "diana", options),
    )  # fmt: skip
    (setting,) = found.settings
    said = " ".join(explain_text(found, 80).split())
    assert setting.sentence in said and "a core that is quicker alone was not chosen" in said
    (data,) = explain_data(found)["settings"]
    assert data["option"] == "--policy latency" and data["loses"] == setting.loses
    assert explanation_of(made, 1, measure=False).settings == ()


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("target", "policy"), [("diana", None), ("diana", "latency"), ("diana.cpu", None)]
)
def test_nothing_is_said_where_nothing_would_gain(target: str, policy: str | None) -> None:
    made = compiled("toyadmos", target, BuildOptions(policy=policy))
    costs = build_costs(made, measure=False)
    found = settings(made, costs, lambda options: compiled("toyadmos", target, options))
    assert found == ()
