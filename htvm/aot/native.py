"""Kernels as calls of the host platform's own functions (``runtime_c/native/htvm_native.h``).

Generated kernels are written for microcontrollers, where a core has few registers and no vectors.
Programs that `htvm.build` makes for this machine replace the most expensive ones by calls, which
take the same operands in the same layouts and give the same results; so the rest of the program
does not depend on where it runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tvm
import tvm_ffi
from tvm import sym, tirx
from tvm.ir import TensorLoad
from tvm.tirx.stmt import BufferStore, For, ForKind

from htvm.aot.intrinsics import Depthwise
from htvm.aot.loops import factors_of, step_of

if TYPE_CHECKING:
    from tvm import s_tir
    from tvm.tirx import PrimFunc

    from htvm.aot.intrinsics import Products
    from htvm.aot.lower import Parameter

SUMS = "native_sums"
"""Name of the sums where they are no parameter of a kernel."""

_LARGEST = 1 << 30  # elements of a tensor, so that indices are int32


@dataclass(frozen=True)
class NativeConv:
    """A convolution without padding, NCHW, of int8, by a function of the header.

    Attributes:
        function: computes the sums (`htvm.aot.intrinsics.Products.native`).
        operands: which parameters are data, weights, bias and int32 result; ``None``: no bias, the
            sums are an operand of ``rest``.
        fields: of ``htvm_native_conv_t``, in the lines in which they are printed.
        count: number of sums.
        rest: what follows the sums: loops over the parameters, with the sums before the output;
            ``None`` if nothing does.
    """

    function: str
    operands: tuple[int, int, int | None, int | None]
    fields: tuple[Mapping[str, int], ...]
    count: int
    rest: PrimFunc | None = None

    def body(self, parameters: Sequence[Parameter], rest: str) -> str:
        """Return the body of a kernel (see `byoc_dory.definition.Definition`).

        Args:
            parameters: of the kernel: those of the PrimFunc, then workspaces, which it ignores.
            rest: C of what follows the sums, which are called `SUMS` there; empty for nothing.
        """
        *given, out = (None if at is None else parameters[at].name for at in self.operands)
        names = [name or "0" for name in given] + [out or SUMS]
        ignored = [
            each.name
            for each in parameters
            if each.name not in names and re.search(rf"\b{each.name}\b", rest) is None
        ]
        fields = (", ".join(f".{name} = {n}" for name, n in line.items()) for line in self.fields)
        lines = ["  static const htvm_native_conv_t conv = {"]
        lines += [*(f"      {line}," for line in fields), "  };"]
        if out is None:
            lines.append(f"  int32_t *const {SUMS} = htvm_native_sums({self.count});")
        lines += [
            f"  {self.function}({', '.join(names)}, &conv);",
            *(f"  (void){name};" for name in ignored),
            *(f"  {line}" for line in rest.splitlines()),
        ]
        return "${signature} {\n" + "\n".join(lines) + "\n}\n"


def native_conv(
    sch: s_tir.Schedule, conv: Any, out: Any, func: PrimFunc, row: Products | Depthwise
) -> NativeConv | None:
    """Return what the host platform computes instead of an NCHW convolution.

    Args:
        sch: schedule of the function, everything inlined but not yet transformed.
        conv: block of the sums, over (n, k, y, x, c, fy, fx).
        out: block of the result.
        func: the function.
        row: how cores compute it.

    Returns:
        ``None`` if the result is not element-wise in the sums, or the batch is not 1.
    """
    depthwise = isinstance(row, Depthwise)
    sums, result = sch.get(conv), sch.get(out)
    n, k, y, x, c, ry, rx = (axis.var for axis in sums.iter_vars)
    batch, filters, rows, columns, group, fy, fx = (int(a.dom.extent) for a in sums.iter_vars)
    loads = _operands(sums.body)
    if loads is None or batch != 1 or not row.native:
        return None
    data, weight = loads
    places = [_place(func, each) for each in (data.source, weight.source, result.writes[0].source)]
    bias = _bias(result, sums.writes[0].source, func, filters)
    narrows = bias is None or str(result.writes[0].source.ty.dtype) != "int32"
    rest = _rest(result, sums.writes[0].source, func) if narrows else None
    if None in places or (narrows and rest is None):
        return None
    _, channels, height, width = (int(size) for size in data.source.ty.shape)
    analyzer = sym.Analyzer()
    for axis in sums.iter_vars:
        analyzer.bind(axis.var, axis.dom)
    sy, sx, dy, dx = (
        max(step_of(data.indices[at], var) or 1, 1)
        for at, var in ((2, y), (3, x), (2, ry), (3, rx))
    )
    expected = [n, k if depthwise else c, y * sy + ry * dy, x * sx + rx * dx, k, c, ry, rx]
    found = [*data.indices, *weight.indices]
    if not all(map(analyzer.can_prove_equal, found, expected)):
        return None
    if channels != (filters if depthwise else group) or (depthwise and group != 1):
        return None
    count = filters * rows * columns
    if max(4 * channels * height * width, count) > _LARGEST:
        return None
    data_at, weight_at, out_at = places
    assert data_at is not None and weight_at is not None
    operands = (None, None) if bias is None or narrows else (bias[0], out_at)
    fields = (
        {"channels": channels, "height": height, "width": width},
        {"filters": filters, "rows": rows, "columns": columns},
        {"fy": fy, "fx": fx},
        {"stride_y": sy, "stride_x": sx},
        {"dilation_y": dy, "dilation_x": dx},
    )
    return NativeConv(row.native, (data_at, weight_at, *operands), fields, count, rest)


def _rest(result: Any, sums: Any, func: PrimFunc) -> PrimFunc | None:
    """Return loops that compute the result from the sums, which are the parameter before it.

    ``None`` if an element of the result needs other sums than its own.
    """
    store = result.body
    axes = [axis.var for axis in result.iter_vars]
    if not isinstance(store, BufferStore) or not _same(store.indices, axes):
        return None
    loads: list[Any] = []
    tvm_ffi.structural_walk(store.value, (TensorLoad, loads.append))
    if not all(_same(each.indices, axes) for each in loads if each.source.same_as(sums)):
        return None
    body: Any = store
    for axis in reversed(result.iter_vars):
        body = For(axis.var, 0, axis.dom.extent, ForKind.SERIAL, body)
    *inputs, out = func.params
    return tirx.PrimFunc([*inputs, sums, out], body)


def _same(indices: Any, axes: Sequence[Any]) -> bool:
    return len(indices) == len(axes) and all(map(tvm_ffi.structural_equal, indices, axes))


def _operands(store: Any) -> tuple[Any, Any] | None:
    """Return data and weights of ``sum = sum + int32(data) * int32(weight)``, both int8."""
    loads = factors_of(store)
    if loads is None or str(store.value.ty.dtype) != "int32":
        return None
    if any(len(load.indices) != 4 or str(load.ty.dtype) != "int8" for load in loads):
        return None
    return loads


def _bias(result: Any, sums: Any, func: PrimFunc, filters: int) -> tuple[int | None] | None:
    """Return where the bias is if the result is the sums, or the sums and a bias per filter."""
    store = result.body
    value: Any = getattr(store, "value", None)
    alone = isinstance(value, TensorLoad)
    if not alone and not isinstance(value, tirx.Add):
        return None
    total, bias = (value, None) if alone else (value.a, value.b)
    if not isinstance(total, TensorLoad) or not total.source.same_as(sums):
        return None
    axes = list(store.indices)
    same = len(axes) == 4 and all(map(tvm_ffi.structural_equal, total.indices, axes))
    if not same or not all(isinstance(axis, tvm.ir.Var) for axis in axes):
        return None
    if bias is None:
        return (None,)
    if not isinstance(bias, TensorLoad) or str(bias.ty.dtype) != "int32":
        return None
    shape = [int(size) for size in bias.source.ty.shape]
    channel = [index for index, size in zip(bias.indices, shape, strict=True) if size > 1]
    per_filter = filters == 1 or (len(channel) == 1 and channel[0].same_as(axes[1]))
    place = _place(func, bias.source)
    if max(shape, default=0) != filters or not per_filter or place is None:
        return None
    return (place,)


def _place(func: PrimFunc, buffer: Any) -> int | None:
    return next((at for at, own in enumerate(func.params) if own.same_as(buffer)), None)
