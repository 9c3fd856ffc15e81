"""What the digital core takes and why it refuses the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from byoc_dory.codegen import generate
from byoc_dory.cost import Cost
from byoc_dory.errors import TargetError, TilingError, UnsupportedError
from byoc_dory.layers import (
    Layer,
    MulShift,
    Shift,
    Tensor,
    TfliteRequant,
    add_layer,
    conv2d_layer,
    dense_layer,
    depthwise_layer,
)
from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import judge
from byoc_dory.soc.diana import digital_rules
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.soc.generic.description import GENERIC
from byoc_dory.verdict import Accepted, Refused, statement
from tests.byoc_dory.layers import NETWORKS, OPS, int8, random_layer
from tests.byoc_dory.program import region_of

CORE = DIANA.accelerator("digital")


def conv(shape=(4, 8, 8), k=8, f=(3, 3), **kwargs) -> Layer:
    weight = np.ones((k, shape[0], *f), np.int8)
    kwargs.setdefault("requant", Shift(4))
    return conv2d_layer("c", Tensor("x", shape), "y", weight, None, **kwargs)


def dilated() -> Layer:
    base = conv(pad=(1, 1, 1, 1))
    return replace(base, pad=(2, 2, 2, 2), dilation=(2, 2))


def grouped() -> Layer:
    return replace(conv(pad=(1, 1, 1, 1)), groups=2, weight=np.ones((8, 2, 3, 3), np.int8))


def unsigned() -> Layer:
    base = conv()
    return replace(base, inputs=(replace(base.inputs[0], dtype="uint8"),))


def broadcast() -> Layer:
    a, b = Tensor("a", (4, 8, 8)), Tensor("b", (4, 1, 1))
    return add_layer("a", a, b, "y", requant=Shift(0))


def of_three() -> Layer:
    parts = tuple(Tensor(name, (4, 8, 8)) for name in "abc")
    layer = add_layer("a", parts[0], parts[1], "y", requant=Shift(0))
    return replace(layer, inputs=parts)


CASES = {
    "three operands": (of_three, "3 operands"),
    "uint8 input": (unsigned, "'x' is uint8"),
    "int16 weights": (lambda: replace(conv(), weight=np.ones((8, 4, 3, 3), np.int16)), "int16"),
    "int64 bias": (lambda: replace(conv(), bias=np.ones(8, np.int64)), "int64"),
    "10x4 kernel": (lambda: conv((1, 49, 10), f=(10, 4)), "10x4"),
    "stride 3": (lambda: conv(stride=(3, 3)), "3x3"),
    "stride 2x1": (lambda: conv(stride=(2, 1)), "2x1"),
    "dilation": (dilated, "2x2"),
    "groups": (grouped, "groups are 2"),
    "mul and shift": (lambda: conv(requant=MulShift((3,), (4,))), "MulShift"),
    "tflite": (lambda: conv(requant=TfliteRequant((1 << 30,), (-3,))), "TfliteRequant"),
    "shift 32": (lambda: conv(requant=Shift(32)), "shift is 32"),
    "shift -1": (lambda: conv(requant=Shift(-1)), "shift is -1"),
    "ReLU6": (lambda: conv(clip=(0, 6)), "[0, 6]"),
    "broadcast add": (broadcast, "(4, 8, 8) and (4, 1, 1)"),
    "wide padding": (lambda: conv(pad=(3, 1, 1, 1)), "(3, 1, 1, 1)"),
    "65536 columns": (lambda: conv((1, 1, 1 << 16), f=(1, 1)), "65536"),
    "weights of a block": (lambda: conv((512, 3, 3), f=(3, 3)), "73792 B of weight memory"),
}


@pytest.mark.parametrize("case", CASES)
def test_refusals_name_the_value(case: str) -> None:
    make, value = CASES[case]
    verdict = CORE.judge(DIANA, make())
    assert isinstance(verdict, Refused), case
    assert value in verdict.reason
    assert verdict.rule in [statement(rule) for rule in digital_rules.RULES]


@pytest.mark.parametrize("op", OPS)
def test_accepts_what_it_executes(op: str) -> None:
    for seed in range(40):
        layer = random_layer(np.random.default_rng([seed, 17]), op)
        assert isinstance(CORE.judge(DIANA, layer), Accepted)


@pytest.mark.parametrize("network", NETWORKS)
def test_accepts_the_benchmark_networks(network: str) -> None:
    for layer in NETWORKS[network]():
        assert isinstance(CORE.judge(DIANA, layer), Accepted), layer.name


def test_every_rule_has_a_public_statement() -> None:
    for rule in digital_rules.RULES:
        text = statement(rule)
        assert text.endswith(".") and len(text) < 100 and text != rule.__name__


def test_first_objection_wins() -> None:
    layer = conv(stride=(3, 3), clip=(0, 6))
    verdict = judge(DIANA, CORE, layer, digital_rules.RULES)
    assert isinstance(verdict, Refused) and "stride" in verdict.reason


def test_every_rule_is_the_first_to_object_somewhere() -> None:
    """A rule that no case can trigger is either dead or hidden."""
    rules = {CORE.judge(DIANA, make()).rule for make, _ in CASES.values() if not accepted(make)}
    hidden = {statement(rule) for rule in digital_rules.RULES} - rules
    # Layer itself knows no other operators.
    assert hidden == {statement(digital_rules.operator_is_known)}


def accepted(make) -> bool:
    return isinstance(CORE.judge(DIANA, make()), Accepted)


# ---------------------------------------------------------------------- errors of generate


def options(**kwargs) -> TilingOptions:
    return TilingOptions(**kwargs)


def test_refused_layer_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"stride is 3x3.*layer 'c'.*1x1 or 2x2"):
        generate(region_of(conv(stride=(3, 3)), "r", "NHWC"), Cost(DIANA, options()), "p")


def test_unknown_objective_lists_the_known() -> None:
    with pytest.raises(TargetError, match=r"'best'.*array.*paper.*none"):
        generate(region_of(conv(), "r", "NHWC"), Cost(DIANA, options(objective="best")), "p")


def test_soc_without_accelerator() -> None:
    with pytest.raises(TargetError, match="no accelerator"):
        generate(region_of(conv(), "r", "NHWC"), Cost(GENERIC, options()), "p")


@pytest.mark.parametrize("solver", ["milp", "exhaustive"])
@pytest.mark.parametrize(
    ("layer", "demand"),
    [
        # One row of 4 columns and 4 channels in 16 B pitch; 16 maps of 16 B.
        (conv((4, 8, 8)), r"k=1, c=4, y=1, x=4.*needs 448 B of L1 \(input 192, output 256\)"),
        (
            depthwise_layer(
                "d", Tensor("x", (4, 8, 8)), "y", np.ones((4, 1, 3, 3), np.int8), None,
                requant=Shift(4),
            ),
            r"needs 304 B of L1 \(input 48, output 256\)",
        ),
        (
            dense_layer(
                "f", Tensor("x", (150,)), "y", np.ones((40, 150), np.int8), None, requant=Shift(4)
            ),
            r"k=16, c=150.*needs 176 B of L1 \(input 160, output 16\)",
        ),
        (
            add_layer(
                "a", Tensor("x", (2, 3, 40)), Tensor("z", (2, 3, 40)), "y", requant=Shift(0)
            ),
            r"needs 144 B of L1 \(input 96, output 48\)",
        ),
    ],
    ids=["conv2d", "depthwise", "dense", "add"],
)  # fmt: skip
def test_infeasible_names_demand_limit_and_levers(layer: Layer, demand: str, solver) -> None:
    chosen = options(l1_budget=100, solver=solver)
    with pytest.raises(TilingError, match=demand) as caught:
        generate(region_of(layer, "r", "NHWC"), Cost(DIANA, chosen), "p")
    assert "limit is 100 B" in str(caught.value)
    assert f"'{layer.name}'" in caught.value.where
    assert "L1 budget" in caught.value.hint


def test_smallest_tile_at_its_own_demand() -> None:
    """One byte below the smallest tile's demand fails, exactly the demand succeeds."""
    layer = conv((4, 8, 8))
    region = region_of(layer, "r", "NHWC")
    with pytest.raises(TilingError):
        generate(region, Cost(DIANA, options(l1_budget=447)), "p")
    code = generate(region, Cost(DIANA, options(l1_budget=448)), "p")
    (kernel,) = (k for k in code.kernels if k.solution is not None)
    assert kernel.solution is not None
    # All tiles of up to 16 maps need the same; the largest is taken.
    assert (kernel.solution.tile.k, kernel.solution.l1_in + kernel.solution.l1_out) == (8, 448)


def test_weights_decide_about_dense() -> None:
    wide = dense_layer(
        "f", Tensor("x", (4000,)), "y", int8(np.random.default_rng(0), 3, 4000), None,
        requant=Shift(4),
    )  # fmt: skip
    verdict = CORE.judge(DIANA, wide)
    assert isinstance(verdict, Refused) and "64256 B of weight memory" in verdict.reason
