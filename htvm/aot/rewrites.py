"""What is rewritten before fusion: conversions as tables, and channels that make words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax, te, tirx
from tvm.ir import GenericConst
from tvm.relax import op as R

from patterns.names import name_of, with_name
from patterns.primitive import dtype_of, extents, kind_of, shape_of
from patterns.reading.walk import bindings_of, main_of

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import BlockBuilder, Call, Expr, Var

    from byoc_dory.layers import Array


@dataclass(frozen=True, eq=False)
class Conversions:
    """The conversions between int8 scales of a module, which are written as tables.

    onnxruntime's requantization of an int8 tensor takes about a hundred instructions an element,
    and uses its argument about thirty times.  In a kernel in which operators are fused, everything
    before it would be repeated as often, and again with each further operator: a few of them in a
    row cost minutes to compile.  A table of its 256 results is read once.

    Attributes:
        first: variable of a conversion's first binding -> that of its last.
        tables: variable of a conversion's last binding -> its table, int8 [256].
        sources: variable of a conversion's last binding -> the tensor that it converts; filled
            while the module is rewritten.
    """

    first: dict[Var, Var]
    tables: dict[Var, Array]
    sources: dict[Var, Expr]

    @classmethod
    def of(cls, module: IRModule) -> Conversions:
        """Return those of a module in the integer form, which may already call regions."""
        result = cls({}, {}, {})
        values = dict(bindings_of(main_of(module)))
        for last, cast in values.items():
            found = _conversion(module, values, cast)
            if found is not None:
                first, table = found
                result.first[first] = last
                result.tables[last] = table
        return result

    def rewritten(self, builder: BlockBuilder, call: Call, old: Var) -> Call | None:
        """Return a look-up for the last binding of a conversion, and ``None`` for all others.

        Args:
            builder: receives the PrimFunc.
            call: what is bound, with its arguments already rewritten.
            old: the variable that it was bound to.
        """
        if old in self.first:
            self.sources[self.first[old]] = call.args[0]
        table = self.tables.get(old)
        if table is None:
            return None
        source = self.sources[old]
        shape = shape_of(source)
        tensor = te.placeholder(extents(shape), "int8", "x")
        entries = te.placeholder(extents(table.shape), "int8", "table")
        found = te.compute(
            tensor.shape,
            lambda *index: entries[tirx.Cast("int32", tensor(*index)) + 128],
            name="converted",
        )
        func = te.create_prim_func([tensor, entries, found]).without_attr("global_symbol")
        callee = builder.add_func(func.with_attr("htvm.kind", "table"), "table")
        args = [source, relax.const(table, "int8")]
        return relax.call_tir(callee, args, relax.TensorType(shape, "int8"))


def _conversion(
    module: IRModule, values: Mapping[Var, Expr], cast: Expr
) -> tuple[Var, Array] | None:
    """Return the first variable and the table of a conversion that ends in ``cast``.

    ``None`` if it is something else.  It is written as ``clip(product(int32(x) + offset) + zero)``
    by `patterns.ops.convert`.
    """
    clip = _argument(values, cast, "relax.astype")
    moved = _argument(values, clip, "relax.clip")
    product = _argument(values, moved, "relax.add")
    if dtype_of(cast) != "int8" or kind_of(module, product) != "onnx_requantize":
        return None
    assert moved is not None and product is not None
    acc, factors = product.args[1]
    total = values.get(acc)
    wide = _argument(values, total, "relax.add")
    if total is None or wide is None or str(getattr(wide.op, "name", "")) != "relax.astype":
        return None
    constants = (factors, moved.args[1], total.args[1])
    if dtype_of(wide.args[0]) != "int8" or not all(isinstance(c, GenericConst) for c in constants):
        return None
    scale, zero, offset = (constant.value.numpy().reshape(-1) for constant in constants)
    if scale.size != 2 or offset.size != 1:
        return None
    bounds = (int(clip.args[1].value), int(clip.args[2].value))
    return total.args[0], _table(scale, int(offset[0]), int(zero[0]), bounds)


def _argument(values: Mapping[Var, Expr], call: Expr | None, operator: str) -> Any:
    """Return the value of the first argument of a call of this operator, else ``None``."""
    if call is None or str(getattr(getattr(call, "op", None), "name", "")) != operator:
        return None
    return values.get(call.args[0])


def _table(scale: Array, offset: int, zero: int, clip: tuple[int, int]) -> Array:
    """Return what the conversion computes for -128 to 127, in float32 like onnxruntime.

    ``scale`` is a float32 as its mantissa and the number of bits after the point.
    """
    factor = np.ldexp(np.float64(scale[0]), -int(scale[1])).astype("float32")
    centred = (np.arange(-128, 128) + offset).astype("float32")
    rounded = np.rint(centred * factor).astype("float64") + zero
    return np.clip(rounded, *clip).astype("int8")


_LEAST_USES = 6
"""How often an input element must be used: writing one costs as much as a few products save."""


@dataclass(frozen=True, eq=False)
class InWords:
    """A convolution whose channels are made words of four by channels of zeros.

    The products of four elements need channels side by side in words.  A padding writes the
    additional channels, so it is free where the convolution has a padding anyway.

    Attributes:
        padding: call that pads the input.
        layer: name of the layer that the padding belongs to.
        weight: padded weights.
        channels: input channels before.
    """

    padding: Call
    layer: str
    weight: GenericConst
    channels: int


def in_words(conv: Call, padding: Call | None, layer: str) -> InWords | None:
    """Return what makes the channels of a convolution without padding words.

    Args:
        conv: call of a convolution.
        padding: call that pads its input, if there is one.
        layer: name of its layer.

    Returns:
        ``None`` if channels or rows of the filter are words already, if the convolution is no
        ordinary one of int8 in NHWC, or if it would not pay.
    """
    data, weight = conv.args
    attrs = conv.attrs
    if str(attrs.data_layout) != "NHWC" or str(attrs.kernel_layout) != "HWIO":
        return None
    ordinary = int(attrs.groups) == 1 and all(int(step) == 1 for step in attrs.dilation)
    if not ordinary or not isinstance(weight, GenericConst):
        return None
    if dtype_of(data) != "int8" or dtype_of(weight) != "int8":
        return None
    fy, fx, channels, k = shape_of(weight)
    uses = fy * fx * k / (int(attrs.strides[0]) * int(attrs.strides[1]))
    if channels % 4 == 0 or uses < _LEAST_USES:
        return None
    if channels == 1 or channels * fx % 4 == 0:
        return None  # three of four products would be wasted; rows of the filter are words
    source, widths, value = data, [0] * 8, 0
    if padding is not None:
        source, value = padding.args[0], int(padding.attrs.pad_value)
        widths = [int(width) for width in padding.attrs.pad_width]
        layer = name_of(padding) or layer
    more = -channels % 4
    widths[7] += more
    wide = np.pad(weight.value.numpy(), [(0, 0), (0, 0), (0, more), (0, 0)])
    call = with_name(R.nn.pad(source, widths, "constant", value), layer)
    return InWords(call, layer, relax.const(wide, "int8"), channels)
