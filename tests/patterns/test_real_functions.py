"""Functions of reals in generated kernels are within a few units of the true ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import htvm
from patterns.ops.float32.combine import RealReduce
from patterns.ops.float32.elementary import RealExp, RealMap, RealSqrt
from tests.patterns.build import module_of
from tests.reference.interpreter import interpret

RNG = np.random.default_rng(5)


def runs(write: Callable[..., Any], data: Any) -> tuple[Any, Any]:
    """What the compiled kernels compute, and the definition."""
    module = module_of([data.shape], write, "float32")
    built = htvm.build(htvm.load(module), target="generic.cpu", platform="host")
    (made,) = built.run([data]).outputs
    # TVM's own kernels may fuse products and sums.
    np.testing.assert_allclose(made, built.reference([data])[0], rtol=2e-6, atol=2e-6)
    return made, interpret(module, [data]).outputs[0]


@pytest.mark.parametrize(
    ("function", "special", "relative", "absolute"),
    [
        ("erf", [0.0, -0.0, 4.1, -4.1, 1e30, -3e38, 1e-20], 5e-7, 1e-7),
        ("tanh", [0.0, -0.0, 8.1, -8.1, 1e30, -3e38, 1e-20], 5e-7, 1e-7),
    ],
)
def test_functions(function: Any, special: list[float], relative: float, absolute: float) -> None:
    data = (RNG.standard_normal((1, 512)) * 4).astype(np.float32)
    data[0, : len(special)] = special
    made, wanted = runs(lambda bb, x: RealMap(function).write(bb, [x], "map_0"), data)
    np.testing.assert_allclose(made, wanted, rtol=relative, atol=absolute)


def test_exponentials() -> None:
    data = (RNG.standard_normal((1, 512)) * 20).astype(np.float32)
    data[0, :7] = [0.0, 87.9, 88.8, 1e30, -87.2, -200.0, -3e38]
    made, wanted = runs(lambda bb, x: RealExp().write(bb, [x], "exp_0"), data)
    np.testing.assert_allclose(made, wanted, rtol=3e-7, atol=3e-45)


def test_square_roots() -> None:
    data = np.exp(RNG.standard_normal((1, 512)) * 20).astype(np.float32)
    data[0, :9] = [0.0, -1.0, 1e-38, 1.0, 4.0, 3e38, 0.25, 0.2499999, 255.0]
    made, wanted = runs(lambda bb, x: RealSqrt().write(bb, [x], "sqrt_0"), data)
    np.testing.assert_allclose(made, wanted, rtol=2e-7)


@pytest.mark.parametrize("axes", [(-1,), (0, 2), (1,)])
@pytest.mark.parametrize("function", ["add", "maximum"])
def test_reductions(function: Any, axes: tuple[int, ...]) -> None:
    data = RNG.standard_normal((3, 5, 7)).astype(np.float32)
    made, wanted = runs(lambda bb, x: RealReduce(function, axes).write(bb, [x], "reduce_0"), data)
    np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-6)


def test_integers_are_refused() -> None:
    with pytest.raises(Exception, match="an operand of type int8"):
        module_of([(1, 4)], lambda bb, x: RealExp().write(bb, [x], "exp_0"))
