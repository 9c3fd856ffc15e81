"""Functions and reductions of float32 tensors, for hosts without a mathematical library.

They are sums, products and quotients of float32, so that every host computes the same bits; results
are within a few units in the last place.  Of what is no number, `map_real` takes the upper end of
the function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from patterns.ops.requantize import array_constant
from patterns.primitive import call_primitive, dtype_of, extents, primitive, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var


__all__ = ["PRIMITIVES", "Map", "Reduction", "exp_real", "map_real", "reduce_real", "sqrt_real"]

Map: TypeAlias = Literal["erf", "tanh"]
Reduction: TypeAlias = Literal["add", "maximum"]

PRIMITIVES = {
    "real_exp": "real_exp",
    "real_map": "real_map",
    "real_reduce": "real_reduce",
    "real_sqrt": "real_sqrt",
}
"""Kind of the PrimFunc -> kind of the operator."""

_OPAQUE = 8  # TVM's OpPatternKind: must not be fused, because operands are read several times

# Odd rational functions x * P(x**2) / Q(x**2), highest power first, and where they reach their
# limits.  Figures: Eigen, ptanh_float and perf_float (MathFunctionsImpl.h).
_RATIONAL: Mapping[str, tuple[float, tuple[float, ...], tuple[float, ...]]] = {
    "tanh": (
        7.90531110763549805,
        (-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
         1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03),
        (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03),
    ),
    "erf": (
        4.0,
        (-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
         -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02),
        (-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03,
         -7.37332916720468e-03, -1.42647390514189e-02),
    ),
}  # fmt: skip

# exp(x) = 2**n * exp(r), |r| <= ln(2) / 2.  Figures: Cephes, expf.c; ln(2) is in two parts, the
# first of which has so few bits that its product with n is exact.
_EXP_POLYNOMIAL = (
    1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
    5.0000001201e-1, 1.0, 1.0,
)  # fmt: skip
_EXP = (-104.0, 89.0, 1.44269504088896341, 0.693359375, -2.12194440e-4)
_LEAST_POWER, _MOST_POWER = -77, 66  # halves of the exponents that results have

_ROOT_EXPONENTS = range(-148, 128, 4)  # of the powers of 16 that a number is compared with
_NEWTON_STEPS = 5  # from a factor of two at most: 25 %, 2.5 %, 3e-4, 5e-8, 1e-15


class _Body:
    """Nested definitions: TVM would write an expression anew wherever its value is used."""

    def __init__(self) -> None:
        self._bound: list[tuple[Any, Any]] = []

    def bind(self, name: str, value: Any, dtype: str = "float32") -> Any:
        variable = tirx.Var(f"{name}{len(self._bound)}", dtype)
        self._bound.append((variable, value))
        return variable

    def around(self, result: Any) -> Any:
        for variable, value in reversed(self._bound):
            result = tirx.Let(variable, value, result)
        return result


def map_real(bb: BlockBuilder, function: Map, x: Expr, *, name: str) -> Var:
    """Write a function of every element of a float32 tensor.

    Raises:
        IntegerFormError: if the type is another.
    """
    shape = shape_of(x)
    _check_type(name, x)
    constants, write = _FUNCTIONS[function]
    table = np.asarray(constants, "float32")

    def body(source: te.Tensor, figures: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            block = _Body()
            return block.around(write(block, source(*index), figures))

        return te.compute(extents(shape), element, name=function)

    inputs = [("x", shape, "float32"), ("figures", table.shape, "float32")]
    func = primitive("real_map", inputs, body, {"function": function})
    func = func.with_attr("op_pattern", _OPAQUE)
    return call_primitive(bb, func, [x, array_constant(table)], shape, "float32", name, last=True)


def _check_type(name: str, x: Expr) -> None:
    if dtype_of(x) != "float32":
        raise IntegerFormError(f"an operand of type {dtype_of(x)}", where=f"operator '{name}'")


_Writer: TypeAlias = Callable[[_Body, Any, te.Tensor], Any]


def _within(block: _Body, x: Any, low: Any, high: Any) -> Any:
    # Asked so that a NaN, for which no comparison holds, goes to the upper end.
    x = block.bind("x", x)
    upper = block.bind("upper", tirx.Select(x < high, x, high))
    return block.bind("inside", tirx.Select(upper > low, upper, low))


def _polynomial(x: Any, figures: te.Tensor, first: int, count: int) -> Any:
    result = figures[first]
    for place in range(first + 1, first + count):
        result = result * x + figures[place]
    return result


def _rational(function: str) -> tuple[Sequence[float], _Writer]:
    limit, above, below = _RATIONAL[function]

    def write(block: _Body, x: Any, figures: te.Tensor) -> Any:
        x = _within(block, x, figures[0], figures[1])
        square = block.bind("square", x * x)
        numerator = _polynomial(square, figures, 2, len(above))
        return x * numerator / _polynomial(square, figures, 2 + len(above), len(below))

    return (-limit, limit, *above, *below), write


_FUNCTIONS: Mapping[str, tuple[Sequence[float], _Writer]] = {
    "erf": _rational("erf"),
    "tanh": _rational("tanh"),
}


def exp_real(bb: BlockBuilder, x: Expr, *, name: str) -> Var:
    """Write the exponential of every element of a float32 tensor; beyond float32 it is infinite.

    Raises:
        IntegerFormError: if the type is another.
    """
    shape = shape_of(x)
    _check_type(name, x)
    table = np.asarray([*_EXP, *_EXP_POLYNOMIAL], "float32")
    powers = np.asarray([2.0**k for k in range(_LEAST_POWER, _MOST_POWER + 1)], "float32")

    def body(source: te.Tensor, figures: te.Tensor, scales: te.Tensor) -> te.Tensor:
        def inside(*index: Any) -> Any:
            block = _Body()
            return block.around(_within(block, source(*index), figures[0], figures[1]))

        clipped = te.compute(extents(shape), inside, name="clipped")
        # Positive before the cast, so that it floors.
        shift = tirx.const(160.5, "float32")
        exponent = te.compute(
            extents(shape),
            lambda *i: tirx.Cast("int32", clipped(*i) * figures[2] + shift) - 160,
            name="exponent",
        )

        def element(*index: Any) -> Any:
            block, n = _Body(), exponent(*index)
            real = block.bind("n", tirx.Cast("float32", n))
            rest = block.bind("rest", clipped(*index) - real * figures[3])
            rest = block.bind("rest", rest - real * figures[4])
            series = _polynomial(rest, figures, len(_EXP), len(_EXP_POLYNOMIAL))
            # In two factors, because results reach further than powers of two that are normal.
            low, high = scales[(n >> 1) - _LEAST_POWER], scales[n - (n >> 1) - _LEAST_POWER]
            return block.around(series * low * high)

        return te.compute(extents(shape), element, name="exponential")

    inputs = [
        ("x", shape, "float32"), ("figures", table.shape, "float32"),
        ("powers", powers.shape, "float32"),
    ]  # fmt: skip
    func = primitive("real_exp", inputs, body, {}).with_attr("op_pattern", _OPAQUE)
    args = [x, array_constant(table), array_constant(powers)]
    return call_primitive(bb, func, args, shape, "float32", name, last=True)


def sqrt_real(bb: BlockBuilder, x: Expr, *, name: str) -> Var:
    """Write the square root of every element of a float32 tensor; that of negatives is 0.

    Newton's method, from the power of four that is nearest from below.

    Raises:
        IntegerFormError: if the type is another.
    """
    shape = shape_of(x)
    _check_type(name, x)
    squares = np.asarray([2.0**k for k in _ROOT_EXPONENTS], "float32")
    starts = np.asarray([2.0 ** (k // 2 + 1) for k in _ROOT_EXPONENTS], "float32")
    zero, half = tirx.const(0.0, "float32"), tirx.const(0.5, "float32")

    def body(source: te.Tensor, limits: te.Tensor, roots: te.Tensor) -> te.Tensor:
        k = te.reduce_axis((0, tirx.const(squares.size, "int64")), "k")
        near = te.compute(
            extents(shape),
            lambda *i: te.max(tirx.Select(source(*i) >= limits[k], roots[k], roots[0]), axis=[k]),
            name="start",
        )

        def closer(root: te.Tensor) -> Any:
            return lambda *i: (root(*i) + source(*i) / root(*i)) * half

        for step in range(_NEWTON_STEPS):
            near = te.compute(extents(shape), closer(near), name=f"near{step}")
        return te.compute(
            extents(shape), lambda *i: tirx.Select(source(*i) > zero, near(*i), zero), name="result"
        )

    places = (squares.size,)
    inputs = [
        ("x", shape, "float32"), ("squares", places, "float32"), ("starts", places, "float32"),
    ]  # fmt: skip
    func = primitive("real_sqrt", inputs, body, {}).with_attr("op_pattern", _OPAQUE)
    args = [x, array_constant(squares), array_constant(starts)]
    return call_primitive(bb, func, args, shape, "float32", name, last=True)


def reduce_real(
    bb: BlockBuilder, function: Reduction, x: Expr, axes: Sequence[int], *, name: str
) -> Var:
    """Write the sum or the maximum over some axes of a float32 tensor, which keep a size of 1.

    Raises:
        IntegerFormError: if the type is another.
    """
    shape = shape_of(x)
    _check_type(name, x)
    axes = tuple(sorted({axis % len(shape) for axis in axes}))
    out = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    combine = te.sum if function == "add" else te.max

    def body(source: te.Tensor) -> te.Tensor:
        spans = {
            axis: te.reduce_axis((0, tirx.const(shape[axis], "int64")), f"k{axis}") for axis in axes
        }

        def element(*index: Any) -> Any:
            places = [spans.get(axis, place) for axis, place in enumerate(index)]
            return combine(source(*places), axis=list(spans.values()))

        return te.compute(extents(out), element, name="reduced")

    parameters: dict[str, int | str | tuple[int, ...]] = {"function": function, "axes": axes}
    func = primitive("real_reduce", [("x", shape, "float32")], body, parameters)
    return call_primitive(bb, func, [x], out, "float32", name, last=True)
