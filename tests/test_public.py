"""What users import from `htvm` is called so in tracebacks, reprs and help."""

from __future__ import annotations

import pickle  # noqa: TID251  (how other processes are given it)
import traceback
from types import FunctionType, ModuleType

import pytest

import htvm
from htvm import errors


@pytest.mark.parametrize("name", htvm.__all__)
def test_every_exported_name_is_shown_as_it_is_imported(name: str) -> None:
    value = getattr(htvm, name)
    if isinstance(value, ModuleType):
        assert value.__name__ == f"htvm.{name}"
    elif isinstance(value, type):
        assert repr(value) == f"<class 'htvm.{name}'>"
        assert pickle.loads(pickle.dumps(value)) is value
    elif isinstance(value, FunctionType):
        assert (value.__module__, value.__qualname__) == ("htvm", name)
        assert pickle.loads(pickle.dumps(value)) is value
    else:
        assert name == "__version__"


@pytest.mark.defects
def test_every_error_is_exported() -> None:
    for name in errors.__all__:
        kind = getattr(htvm, name)
        assert kind is getattr(errors, name)
        error = kind("the problem", where="here")
        assert traceback.format_exception_only(error) == [f"htvm.{name}: the problem; here\n"]
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind and str(again) == str(error)


def test_results_name_their_types() -> None:
    info = htvm.TensorInfo("x", (1, 2), "int8")
    assert f"{type(info).__module__}.{type(info).__qualname__}" == "htvm.TensorInfo"
    assert pickle.loads(pickle.dumps(info)) == info
    costs = htvm.Costs(mac_pj=1.0)
    assert pickle.loads(pickle.dumps(costs)) == costs
