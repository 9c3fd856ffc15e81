"""Elementary functions of reals, for hosts without a mathematical library.

They are computed with sums, products and quotients of float32, so that every host gives the same
bits; results are within a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from tvm import te, tirx

from byoc_dory.layers import Array
from patterns.op import operator
from patterns.ops.float32.base import Definitions, RealOp, polynomial, within

# exp(x) = 2**n * exp(r), |r| <= ln(2) / 2.  Coefficients: Cephes, expf.c; ln(2) is split in two
# parts, the first of which has so few bits that its product with n is exact.
_POLYNOMIAL = (
    1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
    5.0000001201e-1, 1.0, 1.0,
)  # fmt: skip
_EXP = (-104.0, 89.0, 1.44269504088896341, 0.693359375, -2.12194440e-4)
_LEAST_POWER, _MOST_POWER = -77, 66  # halves of the results' possible exponents


@operator
@dataclass(frozen=True, eq=False)
class RealExp(RealOp):
    """The exponential of every element of a float32 tensor; infinite above float32's range."""

    kind = "real_exp"
    opaque = True

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the polynomial and the powers of two."""
        figures = np.asarray([*_EXP, *_POLYNOMIAL], "float32")
        powers = np.asarray([2.0**k for k in range(_LEAST_POWER, _MOST_POWER + 1)], "float32")
        return {"figures": figures, "powers": powers}

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        source, figures, scales = tensors
        shape = source.shape

        def inside(*index: Any) -> Any:
            block = Definitions()
            return block.around(within(block, source(*index), figures[0], figures[1]))

        clipped = te.compute(shape, inside, name="clipped")
        # Make it positive before the cast, so that the cast floors.
        shift = tirx.const(160.5, "float32")
        exponent = te.compute(
            shape,
            lambda *i: tirx.Cast("int32", clipped(*i) * figures[2] + shift) - 160,
            name="exponent",
        )

        def element(*index: Any) -> Any:
            block, n = Definitions(), exponent(*index)
            real = block.bind("n", tirx.Cast("float32", n))
            rest = block.bind("rest", clipped(*index) - real * figures[3])
            rest = block.bind("rest", rest - real * figures[4])
            series = polynomial(rest, figures, len(_EXP), len(_POLYNOMIAL))
            # Scale in two factors, because results reach beyond the normal powers of two.
            low, high = scales[(n >> 1) - _LEAST_POWER], scales[n - (n >> 1) - _LEAST_POWER]
            return block.around(series * low * high)

        return te.compute(shape, element, name="exponential")


# log(x) = n log(2) + 2 artanh(s), s = (m - 1) / (m + 1), m in [sqrt(1/2), sqrt(2)).
_ARTANH = (2 / 9, 2 / 7, 2 / 5, 2 / 3, 2.0)
# log(2) in two parts, the first of which has so few bits that its product with n is exact.
_LOG2 = (0.693359375, -2.12194440e-4)
_POWERS = (64, 32, 16, 8, 4, 2, 1)


@operator
@dataclass(frozen=True, eq=False)
class RealLog(RealOp):
    """The natural logarithm of every element; minus infinity for 0, NaN for negative ones."""

    kind = "real_log"
    opaque = True

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the figures, powers of two and their inverses."""
        figures = np.asarray([*_LOG2, math.sqrt(2), 0.5, 1.0, 0.0, -np.inf, np.inf], "float32")
        powers = np.asarray([[2.0**k, 2.0**-k, 2.0 ** (1 - k), k] for k in _POWERS], "float32")
        return {
            "figures": np.concatenate([figures, np.asarray(_ARTANH, "float32")]),
            "powers": powers.reshape(-1),
        }

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        source, figures, powers = tensors
        low, high, root, half, one, zero, least, most = (figures[at] for at in range(8))
        block = Definitions()
        x = block.bind("x", source(*index))
        m, n = x, zero
        for at in range(len(_POWERS)):
            power, inverse, below, k = (powers[4 * at + part] for part in range(4))
            # From both ends: m ends in [1, 2).
            m, n = (
                block.bind("m", tirx.Select(m >= power, m * inverse, m)),
                block.bind("n", tirx.Select(m >= power, n + k, n)),
            )
            m, n = (
                block.bind("m", tirx.Select(m < below, m * power, m)),
                block.bind("n", tirx.Select(m < below, n - k, n)),
            )
        m, n = (
            block.bind("m", tirx.Select(m > root, m * half, m)),
            block.bind("n", tirx.Select(m > root, n + one, n)),
        )
        s = block.bind("s", (m - one) / (m + one))
        square = block.bind("square", s * s)
        series = polynomial(square, figures, 8, len(_ARTANH))
        result = block.bind("result", s * series + n * high + n * low)
        result = tirx.Select(x < zero, x - x + (zero / zero), result)
        result = tirx.Select(x == zero, least, result)
        return block.around(tirx.Select(x < most, result, x))


Map: TypeAlias = Literal["erf", "tanh"]

# Odd rational functions x * P(x**2) / Q(x**2), highest power first, and the arguments at which they
# reach their limits.  Coefficients: Eigen, ptanh_float and perf_float (MathFunctionsImpl.h).
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


@operator
@dataclass(frozen=True, eq=False)
class RealMap(RealOp):
    """A function of every element of a float32 tensor; a NaN gives its upper limit.

    Attributes:
        function: name of the function.
    """

    kind = "real_map"
    opaque = True

    function: Map

    @property
    def stem(self) -> str:
        return f"real_{self.function}"

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the limits and both polynomials."""
        limit, above, below = _RATIONAL[self.function]
        return {"figures": np.asarray((-limit, limit, *above, *below), "float32")}

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        source, figures = tensors
        _, above, below = _RATIONAL[self.function]
        block = Definitions()
        x = within(block, source(*index), figures[0], figures[1])
        square = block.bind("square", x * x)
        numerator = polynomial(square, figures, 2, len(above))
        denominator = polynomial(square, figures, 2 + len(above), len(below))
        return block.around(x * numerator / denominator)


_EXPONENTS = range(-148, 128, 4)  # number of powers of 16 that a number is compared with
_NEWTON_STEPS = 5  # the start is off by a factor of at most two: 25 %, 2.5 %, 3e-4, 5e-8, 1e-15


@operator
@dataclass(frozen=True, eq=False)
class RealSqrt(RealOp):
    """The square root of every element of a float32 tensor; negative elements give 0.

    Newton's method, starting from the nearest power of four below.
    """

    kind = "real_sqrt"
    opaque = True

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: powers of 16, and starting values of roots."""
        squares = np.asarray([2.0**k for k in _EXPONENTS], "float32")
        starts = np.asarray([2.0 ** (k // 2 + 1) for k in _EXPONENTS], "float32")
        return {"squares": squares, "starts": starts}

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        source, limits, roots = tensors
        shape = source.shape
        zero, half = tirx.const(0.0, "float32"), tirx.const(0.5, "float32")
        k = te.reduce_axis((0, tirx.const(len(_EXPONENTS), "int64")), "k")
        near = te.compute(
            shape,
            lambda *i: te.max(tirx.Select(source(*i) >= limits[k], roots[k], roots[0]), axis=[k]),
            name="start",
        )

        def closer(root: te.Tensor) -> Any:
            return lambda *i: (root(*i) + source(*i) / root(*i)) * half

        for step in range(_NEWTON_STEPS):
            near = te.compute(shape, closer(near), name=f"near{step}")
        return te.compute(
            shape, lambda *i: tirx.Select(source(*i) > zero, near(*i), zero), name="result"
        )


# From this number on, float32 has no fractions, so adding it rounds to integers, ties to even.
_FRACTIONS_END = float(2**23)


@operator
@dataclass(frozen=True, eq=False)
class RealRound(RealOp):
    """The elements of a float32 tensor of any shape, rounded to integers, ties to even."""

    kind = "real_round"
    opaque = True

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: two equal numbers.

        There are two, because with one number a compiler would cancel the addition and subtraction.
        """
        return {"ends": np.full(2, _FRACTIONS_END, "float32")}

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        source, ends = tensors
        value, plus, minus = source(*index), ends[0], ends[1]
        up, down = (value + plus) - minus, (value - plus) + minus
        near = tirx.Select(value >= tirx.const(0.0, "float32"), up, down)
        inside = tirx.all(value < plus, value > -plus)
        return tirx.Select(inside, near, value)
