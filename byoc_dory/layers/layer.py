"""`Layer`: one quantized operator with exact shapes, as every later stage sees it.

A layer knows nothing of how it was found (no compiler IR) and nothing of where it will run (no
SoC).  Rules judge it, the tiler tiles it, the code generator turns it into C.  All shapes are
without the batch axis and in the order C-y-x, weights in the order K-C-fy-fx, whatever the
source's layout was; only the tensors at the border of a region remember the source's layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from byoc_dory.errors import ModelError
from byoc_dory.layers.attention import Attention, Scores
from byoc_dory.layers.requantization import (
    AnalogRequant,
    MulShift,
    OnnxRequant,
    Requant,
    Shift,
    TfliteRequant,
)
from byoc_dory.layers.rowwise import RowFunction
from byoc_dory.layers.tensor import Array, Layout, Tensor

__all__ = [
    "SCALED_OPS",
    "AnalogRequant",
    "Array",
    "Layer",
    "Layout",
    "MulShift",
    "OnnxRequant",
    "Op",
    "Requant",
    "Shift",
    "Tensor",
    "TfliteRequant",
    "add_layer",
    "conv2d_layer",
    "dense_layer",
    "depthwise_layer",
]

Op: TypeAlias = Literal[
    "conv2d", "depthwise", "dense", "add", "gemm", "matmul", "rows", "mha", "attend"
]

SCALED_OPS: tuple[Op, ...] = ("conv2d", "depthwise", "dense", "add")
"""Layers of maps and vectors, which retargeting writes in a core's number scheme; those of matrices
keep the one they have."""

_OPS = get_args(Op)
# Those whose inputs all have the output's shape.
_ELEMENTWISE = ("add", "rows")


@dataclass(frozen=True, eq=False)
class Layer:
    """One operator together with its bias, requantization and clip.

    ``out[k,y,x] = clip(requant(sum in[c, y*sy - top + i*dy, x*sx - left + j*dx] * weight + bias))``
    with zeros outside the input.  An add is ``clip(requant(a + b))``, or of more operands.

    A matrix of M rows is a tensor ``(columns, M, 1)``, row by row in memory (``NHWC``); B matrices
    of M rows are ``(columns, B * M, 1)``, one after another.  On these:

    - ``gemm``: ``x W' + bias``, requantized, clipped, and then ``function`` if there is one;
      ``transposed``: the result is stored as ``(M, K, 1)``, column by column.
    - ``matmul``: ``a b``, requantized and clipped, of ``groups`` pairs of matrices;
      ``transposed``: the second operand is given as its rows, ``(C, B * K, 1)`` instead of
      ``(K, B * C, 1)``.
    - ``rows``: ``function`` of each row.
    - ``mha``: ``attention`` of one matrix.
    - ``attend``: ``scores`` of query ``(C, M, 1)``, key ``(C, N, 1)`` and transposed value
      ``(N, K, 1)``: one head without its products.

    Attributes:
        name: unique within the model; names the generated function.
        op: ``conv2d``, ``depthwise`` (``groups == C == K``), ``dense``, ``add``, or one of matrices
            (see above).
        inputs: one tensor, two and more for an add, two for a ``matmul``, three for ``attend``.
        output: the result.
        K, C: output and input channels.
        iy, ix, oy, ox: input and output height and width (1 for vectors).
        fy, fx: kernel height and width (1 for dense and add).
        stride: (y, x).
        pad: zeros added at (top, left, bottom, right).
        weight: ``[K, C / groups, fy, fx]``; ``None`` where there is none.
        bias: int32 ``[K]``, or ``None`` for zero.
        requant: how the int32 accumulator becomes the output type.
        clip: inclusive (low, high) of the output.
        dilation: (y, x).
        groups: 1, or the number of channel groups, of a matmul's matrices, of an attend's heads.
        input_range: inclusive (low, high) in which all inputs are known to lie.
        function: of the rows; behind a gemm, an activation.
        attention: of ``mha``.
        scores: of ``attend``.
        transposed: see ``gemm`` and ``matmul``.

    Raises:
        ModelError: where the fields contradict each other.
    """

    name: str
    op: Op
    inputs: tuple[Tensor, ...]
    output: Tensor
    K: int
    C: int
    iy: int
    ix: int
    oy: int
    ox: int
    fy: int
    fx: int
    stride: tuple[int, int]
    pad: tuple[int, int, int, int]
    weight: Array | None
    bias: Array | None
    requant: Requant
    clip: tuple[int, int]
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    input_range: tuple[int, int] = (-128, 127)
    function: RowFunction | None = None
    attention: Attention | None = None
    scores: Scores | None = None
    transposed: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            raise ModelError("a layer has no name", where=f"a {self.op} layer")
        if self.op not in _OPS:
            raise self._error(f"unknown operator '{self.op}'", f"one of {_OPS}")
        self._check_geometry()
        self._check_tensors()
        self._check_parameters()

    # ------------------------------------------------------------------ derived quantities

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the layer, without padding (0 for an add or a row function)."""
        if self.op in _ELEMENTWISE:
            return 0
        if self.op == "attend":
            keys = self.inputs[1].shape[1]
            return self.oy * keys * (self.C + self.K)
        if self.attention is not None:
            return self.attention.macs(self.oy)
        if self.op == "matmul":
            return self.K * self.C * self.oy
        return self.K * (self.C // self.groups) * self.oy * self.ox * self.fy * self.fx

    @property
    def relu(self) -> bool:
        """Whether the clip range starts at zero."""
        return self.clip[0] == 0

    @property
    def geometry(self) -> tuple[object, ...]:
        """Everything but names and values: layers of one geometry take the same cycles."""
        return (
            self.op, self.K, self.C, self.iy, self.ix, self.oy, self.ox, self.fy, self.fx,
            self.stride, self.pad, self.dilation, self.groups, len(self.output.shape),
            len(self.inputs), tuple(tensor.shape for tensor in self.inputs[1:]), self.transposed,
            type(self.function),
        )  # fmt: skip

    @property
    def shape_text(self) -> str:
        """The geometry in a few words, for comments and messages."""
        if self.op == "dense":
            return f"C={self.C} -> K={self.K}"
        if self.op in _ELEMENTWISE:
            return "x".join(str(size) for size in self.output.shape)
        if self.op in ("gemm", "matmul"):
            batch = f"{self.groups} of " if self.groups > 1 else ""
            return f"{batch}{self.oy // self.groups}x{self.C} times {self.C}x{self.K}"
        if self.op == "attend":
            return f"{self.oy} queries, {self.inputs[1].shape[1]} keys, head size {self.C}"
        if self.attention is not None:
            return f"{self.oy}x{self.C}, {self.attention.heads} heads of {self.attention.head_size}"
        return (
            f"C={self.C} {self.iy}x{self.ix} -> K={self.K} {self.oy}x{self.ox}, "
            f"kernel {self.fy}x{self.fx}, stride {self.stride[0]}x{self.stride[1]}"
        )

    # ------------------------------------------------------------------ validation

    def _error(self, what: str, hint: str = "") -> ModelError:
        return ModelError(what, where=f"layer '{self.name}' ({self.op})", hint=hint)

    def _check_geometry(self) -> None:
        sizes = (self.K, self.C, self.iy, self.ix, self.oy, self.ox, self.fy, self.fx, self.groups)
        if any(size < 1 for size in (*sizes, *self.stride, *self.dilation)):
            raise self._error(f"a size is below 1 in {self.shape_text}")
        if any(pad < 0 for pad in self.pad):
            raise self._error(f"negative padding {self.pad}")
        if self.op not in ("conv2d", "depthwise") and (self.fy, self.fx) != (1, 1):
            raise self._error(f"a kernel of {self.fy}x{self.fx}")
        divided = (self.oy,) if self.op == "matmul" else (self.C, self.K)
        if any(size % self.groups for size in divided):
            raise self._error(f"groups={self.groups} does not divide C={self.C} and K={self.K}")
        if self.op == "depthwise" and not self.groups == self.C == self.K:
            raise self._error(
                f"depthwise needs groups == C == K, got groups={self.groups}, C={self.C}, "
                f"K={self.K}"
            )
        top, left, bottom, right = self.pad
        for axis, size, before, after, kernel, stride, dilation, out in (
            ("y", self.iy, top, bottom, self.fy, self.stride[0], self.dilation[0], self.oy),
            ("x", self.ix, left, right, self.fx, self.stride[1], self.dilation[1], self.ox),
        ):
            span = size + before + after - dilation * (kernel - 1) - 1
            expected = span // stride + 1 if span >= 0 else 0
            if expected != out:
                raise self._error(
                    f"o{axis}={out}, but i{axis}={size}, pads {before}+{after}, kernel {kernel}, "
                    f"stride {stride}, dilation {dilation} give {expected}"
                )

    def _check_tensors(self) -> None:
        wanted_inputs = {"add": max(2, len(self.inputs)), "matmul": 2, "attend": 3}.get(self.op, 1)
        if len(self.inputs) != wanted_inputs:
            raise self._error(f"{len(self.inputs)} input tensors instead of {wanted_inputs}")
        result = (self.K, self.oy, self.ox)
        if self.op == "gemm" and self.transposed:
            self._check_shape(self.output, (self.oy, self.K, 1))
        else:
            self._check_shape(self.output, result)
        if self.op in _ELEMENTWISE and (self.C, self.iy, self.ix) != result:
            raise self._error(f"{self.op} has i sizes other than its o sizes")
        if self.op == "add":
            # Operands may still be broadcast; that is for rules to judge.
            return
        self._check_shape(self.inputs[0], (self.C, self.iy, self.ix))
        if self.op == "matmul":
            shape = (self.C, self.groups * self.K, 1)
            if not self.transposed:
                shape = (self.K, self.groups * self.C, 1)
            self._check_shape(self.inputs[1], shape)
        if self.op == "attend":
            keys = self.inputs[1].shape[1]
            self._check_shape(self.inputs[1], (self.C, keys, 1))
            self._check_shape(self.inputs[2], (keys, self.K, 1))

    def _check_shape(self, tensor: Tensor, expected: tuple[int, int, int]) -> None:
        vector = self.op == "dense" or (self.op == "add" and len(tensor.shape) == 1)
        wanted = expected[:1] if vector else expected
        if tensor.shape != wanted or (vector and expected[1:] != (1, 1)):
            hint = "dense layers take and give vectors (C,)" if self.op == "dense" else ""
            raise self._error(
                f"tensor '{tensor.name}' has shape {tensor.shape}, not {wanted}", hint
            )

    def _check_parameters(self) -> None:
        low, high = self.clip
        if low > high:
            raise self._error(f"clip range [{low}, {high}] is empty")
        for what, wanted in (("attention", "mha"), ("scores", "attend")):
            if (getattr(self, what) is None) == (self.op == wanted):
                raise self._error(f"{what} belongs to {wanted} layers, and each has one")
        if self.op == "rows" and self.function is None:
            raise self._error("the function of the rows is missing")
        if self.function is not None and self.op not in ("rows", "gemm"):
            raise self._error("only rows and gemm have a function")
        if self.op not in ("conv2d", "depthwise", "dense", "gemm"):
            if self.weight is not None or self.bias is not None:
                raise self._error(f"{self.op} has neither weight nor bias")
            return
        expected = (self.K, self.C // self.groups, self.fy, self.fx)
        if self.weight is None:
            raise self._error("the weight is missing")
        if self.weight.shape != expected:
            raise self._error(f"weight has shape {self.weight.shape}, not {expected}")
        if self.bias is not None and self.bias.shape != (self.K,):
            raise self._error(f"bias has shape {self.bias.shape}, not ({self.K},)")


# ---------------------------------------------------------------------- builders


def _out_size(size: int, pads: int, kernel: int, stride: int) -> int:
    return (size + pads - kernel) // stride + 1


def conv2d_layer(
    name: str,
    source: Tensor,
    output: str,
    weight: Array,
    bias: Array | None,
    *,
    stride: tuple[int, int] = (1, 1),
    pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    requant: Requant,
    clip: tuple[int, int] = (-128, 127),
) -> Layer:
    """A convolution of one group; output shape derived.  ``source`` is (C, y, x)."""
    channels, iy, ix = source.shape
    k, _, fy, fx = weight.shape
    oy = _out_size(iy, pad[0] + pad[2], fy, stride[0])
    ox = _out_size(ix, pad[1] + pad[3], fx, stride[1])
    return Layer(
        name, "conv2d", (source,), Tensor(output, (k, oy, ox)), k, channels, iy, ix, oy, ox,
        fy, fx, stride, pad, weight, bias, requant, clip,
    )  # fmt: skip


def depthwise_layer(
    name: str,
    source: Tensor,
    output: str,
    weight: Array,
    bias: Array | None,
    *,
    stride: tuple[int, int] = (1, 1),
    pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    requant: Requant,
    clip: tuple[int, int] = (-128, 127),
) -> Layer:
    """A depthwise convolution (weight ``[C, 1, fy, fx]``); output shape derived."""
    channels, iy, ix = source.shape
    _, _, fy, fx = weight.shape
    oy = _out_size(iy, pad[0] + pad[2], fy, stride[0])
    ox = _out_size(ix, pad[1] + pad[3], fx, stride[1])
    return Layer(
        name, "depthwise", (source,), Tensor(output, (channels, oy, ox)), channels, channels,
        iy, ix, oy, ox, fy, fx, stride, pad, weight, bias, requant, clip, groups=channels,
    )  # fmt: skip


def dense_layer(
    name: str,
    source: Tensor,
    output: str,
    weight: Array,
    bias: Array | None,
    *,
    requant: Requant,
    clip: tuple[int, int] = (-128, 127),
) -> Layer:
    """A fully connected layer (weight ``[K, C]`` or ``[K, C, 1, 1]``) of a vector ``(C,)``."""
    k, channels = weight.shape[:2]
    return Layer(
        name, "dense", (source,), Tensor(output, (k,)), k, channels, 1, 1, 1, 1, 1, 1, (1, 1),
        (0, 0, 0, 0), weight.reshape(k, channels, 1, 1), bias, requant, clip,
    )  # fmt: skip


def add_layer(
    name: str,
    a: Tensor,
    b: Tensor,
    output: str,
    *,
    requant: Requant,
    clip: tuple[int, int] = (-128, 127),
) -> Layer:
    """The element-wise sum of two tensors of one shape."""
    k, y, x = a.shape if len(a.shape) == 3 else (a.shape[0], 1, 1)
    return Layer(
        name, "add", (a, b), Tensor(output, a.shape), k, k, y, x, y, x, 1, 1, (1, 1),
        (0, 0, 0, 0), None, None, requant, clip,
    )  # fmt: skip
