"""Dispatch policies: what each decides, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from byoc_dory.verdict import CPU
from htvm.errors import PolicyError
from htvm.policy import (
    Candidate,
    LayerInfo,
    bitwidth,
    check_policy,
    is_ternary,
    latency,
    mixed,
)

CONV = LayerInfo("conv2d_0", "conv2d", 16, 16, 8, 8, 8, 8, 3, 3, (1, 1), 147_456, product=True)
DIGITAL = Candidate("digital", True, scheme="shift", cycles=900)
ANALOG = Candidate("analog", True, scheme="ternary", cycles=400)
HOST = Candidate(CPU, True, cycles=90_000)
BOTH = (DIGITAL, ANALOG, HOST)


def no(candidate: Candidate) -> Candidate:
    return replace(candidate, accepted=False, reason="the stride is 3x3", cycles=None)


def test_bits_decide_between_two_kinds_of_core() -> None:
    assert bitwidth(CONV, BOTH) == "digital"
    assert bitwidth(replace(CONV, ternary=True), BOTH) == "analog"


def test_eight_bits_hold_ternary_weights_but_not_the_other_way_round() -> None:
    ternary = replace(CONV, ternary=True)
    assert bitwidth(ternary, (DIGITAL, no(ANALOG), HOST)) == "digital"
    assert bitwidth(CONV, (no(DIGITAL), ANALOG, HOST)) == CPU


def test_the_only_core_takes_all_it_can() -> None:
    assert bitwidth(CONV, (ANALOG, HOST)) == "analog"
    assert bitwidth(replace(CONV, ternary=True), (DIGITAL, HOST)) == "digital"
    assert mixed(CONV, (DIGITAL, HOST)) == "digital"
    assert bitwidth(CONV, (no(ANALOG), HOST)) == CPU
    assert bitwidth(CONV, (HOST,)) == CPU


def test_the_cheapest_wins_the_cpu_included() -> None:
    assert latency(CONV, BOTH) == "analog"
    assert latency(CONV, (DIGITAL, no(ANALOG), HOST)) == "digital"
    assert latency(CONV, (DIGITAL, ANALOG, replace(HOST, cycles=280))) == CPU
    assert latency(CONV, (DIGITAL, ANALOG, replace(HOST, cycles=390))) == "analog", "too close"
    assert latency(CONV, (no(DIGITAL), no(ANALOG), HOST)) == CPU
    assert latency(CONV, (DIGITAL, replace(ANALOG, cycles=900), HOST)) == "digital"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({}, "analog"),
        ({"border": True}, "digital"),
        ({"op": "depthwise", "product": False}, "digital"),
        ({"op": "add", "product": False}, "digital"),
        ({"op": "dense", "product": False}, "digital"),
        ({"op": "dense"}, "analog"),
        ({"op": "dense", "border": True}, "digital"),
        ({"ternary": True, "op": "dense", "product": False}, "digital"),
    ],
)
def test_the_published_rule(change: dict[str, object], place: str) -> None:
    assert mixed(replace(CONV, **change), BOTH) == place  # type: ignore[arg-type]


def test_the_published_rule_gives_the_digital_core_what_the_other_refuses() -> None:
    assert mixed(CONV, (DIGITAL, no(ANALOG), HOST)) == "digital"
    assert mixed(replace(CONV, op="add", product=False), (no(DIGITAL), ANALOG, HOST)) == CPU


def test_weights_are_ternary_up_to_a_scale_per_channel() -> None:
    weight = np.array([[-3, 0, 3], [7, 7, 0], [0, 0, 0]], np.int8)
    assert is_ternary(weight)
    assert is_ternary(weight.reshape(3, 3, 1, 1))
    for row, value in ((0, 2), (1, 6), (1, -1)):
        other = weight.copy()
        other[row, 0] = value
        assert not is_ternary(other), (row, value)
    assert is_ternary(np.array([[-128, 0, -128]], np.int8))
    assert not is_ternary(np.array([[-128, 127]], np.int8))
    assert not is_ternary(np.array([[5]], np.int8))
    assert not is_ternary(None)


@pytest.mark.parametrize(
    "policy", ["bits", "", 3, None, {"conv2d_0": 1}, {0: "digital"}, ["mixed"]]
)
def test_what_is_no_policy_is_refused(policy: object) -> None:
    with pytest.raises(PolicyError, match="bitwidth, latency, mixed"):
        check_policy(policy)


def test_names_functions_and_tables_are_policies() -> None:
    for policy in ("mixed", latency, lambda layer, offers: CPU, {}, {"conv2d_0": "digital"}):
        check_policy(policy)
