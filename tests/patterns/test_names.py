"""Names of operators: counted, carried and found again."""

from __future__ import annotations

import pytest
from tvm import relax
from tvm.relax import op as R

from byoc_dory.errors import IntegerFormError
from htvm.model import model_name
from patterns.names import NameCounter, name_of, tensor_name, with_name


def test_counted_per_kind_and_never_twice() -> None:
    names = NameCounter(taken=("conv2d_1",))
    assert [names.fresh("conv2d") for _ in range(3)] == ["conv2d_0", "conv2d_2", "conv2d_3"]
    assert names.fresh("dense") == "dense_0"


def test_carried_by_the_call() -> None:
    x = relax.Var("x", relax.TensorType((2,), "int8"))
    call = R.add(x, x)
    assert name_of(call) is None
    named = with_name(call, "add_0")
    assert name_of(named) == tensor_name(named) == "add_0"
    assert tensor_name(x) == "x"
    with pytest.raises(IntegerFormError, match="no name"):
        tensor_name(call)


@pytest.mark.parametrize(
    ("text", "identifier"),
    [
        ("resnet8", "resnet8"),
        ("my-model.v2 (int8)", "my_model_v2_int8"),
        ("8bit", "model_8bit"),
        ("int", "model_int"),
        ("", "model"),
        ("__x__", "x"),
        ("größe", "gr_e"),
        ("features", "model_features"),
        ("Math", "model_Math"),
        ("test", "model_test"),
        ("ALL_BUILD", "model_ALL_BUILD"),
    ],
)
def test_model_name(text: str, identifier: str) -> None:
    assert model_name(text) == identifier
