"""C for layers on the cores: the kernel of each tile, from the library in ``runtime_c``."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.emit import row_layout
from byoc_dory.emit.text import Expr, add, mul
from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import (
    Add,
    Array,
    Convolution,
    Dense,
    Gemm,
    Layer,
    Matmul,
    Rows,
    Tensor,
    Weighted,
)
from byoc_dory.layers.rowwise import AffineNorm, ItaSoftmax, LayerNorm, RmsNorm, TableSoftmax
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.region import BorderMap, Constant, Kernel
from byoc_dory.soc.base import Soc
from byoc_dory.soc.snitch_ita import borders
from byoc_dory.soc.snitch_ita.cluster_core import ClusterCores
from byoc_dory.soc.snitch_ita.cluster_cost import layer_cycles
from byoc_dory.soc.snitch_ita.cluster_packing import block_of, pack, per_channel, row_constants
from byoc_dory.soc.snitch_ita.cluster_tiles import walk_of
from byoc_dory.soc.snitch_ita.layer_text import layer_kernel
from byoc_dory.soc.snitch_ita.requant import (
    leaves_32_bits,
    mul_shift,
    norm_leaves_32_bits,
)
from byoc_dory.soc.snitch_ita.view import WalkView

__all__ = ["ClusterEmitter"]


@dataclass(frozen=True)
class ClusterEmitter:
    """The emitter of the cores (see `byoc_dory.emit.Emitter`)."""

    core: ClusterCores
    soc: Soc
    headers: tuple[str, ...] = ("snitch_cluster.h", "snitch_dma.h", "snitch_kernels.h")

    def native(self, tensor: Tensor) -> bool:
        """Whether a border tensor lies row by row."""
        return row_layout.native(tensor)

    def stored_bytes(self, tensor: Tensor) -> int:
        """Bytes of a tensor: nothing is padded."""
        return tensor.elements

    def offsets(self, tensor: Tensor) -> Array:
        """Where each element of a tensor lies."""
        return row_layout.offsets(tensor)

    def layer(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """The function that runs ``layer`` tile by tile."""
        walk = walk_of(layer, plan)
        function, struct, fields = _tile(layer, WalkView(walk), plan.solution.tile.k)
        lines = "".join(f"    .{name} = {value},\n" for name, value in fields.items())
        compute = (
            f"const {struct}_t args = {{\n{lines}}};\nsnitch_cluster_run({function}, &args);\n"
        )
        return layer_kernel(
            layer, plan, walk, compute, self.core, symbol,
            layer_cycles(layer, walk, self.core, self.soc),
            constants=_constants(layer, plan, symbol),
        )  # fmt: skip

    def prologue(
        self, tensor: Tensor, target: str, symbol: str, mapped: BorderMap | None = None
    ) -> Kernel:
        """The function that brings a source tensor into rows."""
        return borders.prologue(tensor, target, symbol, mapped, self.soc)

    def epilogue(self, tensor: Tensor, source: str, symbol: str) -> Kernel:
        """The function that brings a result into the layout of ``tensor``."""
        return borders.epilogue(tensor, source, symbol, self.soc)


def _constants(layer: Layer, plan: LayerPlan, symbol: str) -> Constant | None:
    if isinstance(layer, Weighted):
        data = pack(layer, plan.solution.tile.k)
        return Constant(f"{symbol}_weights", data, f"weights and biases of {layer.name}")
    data = row_constants(layer.function) if isinstance(layer, Rows) else None
    if data is None or not data.size:
        return None
    return Constant(f"{symbol}_constants", data, f"constants of {layer.name}")


_ROW_KERNELS = {
    TableSoftmax: ("snitch_table_softmax", "snitch_table_softmax"),
    ItaSoftmax: ("snitch_ita_softmax", "snitch_ita_softmax"),
    LayerNorm: ("snitch_layer_norm", "snitch_norm"),
    RmsNorm: ("snitch_rms_norm", "snitch_norm"),
    AffineNorm: ("snitch_affine_norm", "snitch_norm"),
}
_MAP = ("snitch_map", "snitch_map")


def _at(place: Expr) -> str:
    return f"snitch_l1({place})"


def _tile(layer: Layer, view: WalkView, tile_k: int) -> tuple[str, str, dict[str, Expr]]:
    """The tile's kernel, the name of its struct, and the fields of that."""
    match layer:
        case Gemm() | Dense():
            return "snitch_gemm", "snitch_gemm", _gemm(layer, view, tile_k)
        case Convolution():
            kernel = "snitch_depthwise" if layer.depthwise else "snitch_conv2d"
            return kernel, "snitch_conv", _conv(layer, view, tile_k)
        case Matmul():
            return "snitch_matmul", "snitch_matmul", _matmul(layer, view)
        case Add():
            return "snitch_add", "snitch_add", _add(layer, view)
        case Rows():
            kernel, struct = _ROW_KERNELS.get(type(layer.function), _MAP)
            return kernel, struct, _rows(layer, view)
        case _:
            raise UnsupportedError(f"no kernel for {layer.op}", where=f"layer '{layer.name}'")


def _requant(layer: Layer, view: WalkView | None, tile_k: int) -> dict[str, Expr]:
    requant = mul_shift(layer)
    assert requant is not None
    fields: dict[str, Expr] = {}
    if per_channel(layer):
        assert isinstance(layer, Weighted) and view is not None
        block = block_of(layer, tile_k)
        fields["requant.muls"] = _at(add(view.weights_at, block.muls))
        fields["requant.adds"] = _at(add(view.weights_at, block.adds))
        fields["requant.shifts"] = _at(add(view.weights_at, block.shifts))
    else:
        fields["requant.mul"] = requant.mul[0]
        fields["requant.add"] = requant.add[0]
        fields["requant.shift"] = requant.shift[0]
    low, high = layer.clip
    return {**fields, "requant.low": low, "requant.high": high}


def _flags(layer: Layer, *more: str) -> str:
    flags = list(more)
    if layer.inputs[0].dtype == "uint8":
        flags.append("SNITCH_IN_UNSIGNED")
    if layer.output.dtype == "uint8":
        flags.append("SNITCH_OUT_UNSIGNED")
    requant = mul_shift(layer)
    if isinstance(layer, Rows):
        if norm_leaves_32_bits(layer):
            flags.append("SNITCH_WIDE")
    elif requant is not None:
        if leaves_32_bits(layer, requant):
            flags.append("SNITCH_WIDE")
        if isinstance(layer, Weighted) and per_channel(layer):
            flags.append("SNITCH_PER_CHANNEL")
    return " | ".join(flags) or "0"


def _weights(layer: Weighted, view: WalkView, tile_k: int) -> dict[str, Expr]:
    block = block_of(layer, tile_k)
    fields: dict[str, Expr] = {"weights": _at(add(view.weights_at, block.weights))}
    if block.bias >= 0:
        fields["bias"] = _at(add(view.weights_at, block.bias))
    return fields


def _gemm(layer: Gemm | Dense, view: WalkView, tile_k: int) -> dict[str, Expr]:
    block = block_of(layer, tile_k)
    fields: dict[str, Expr] = {
        "in": _at(view.operand_at(view.walk.operands[0])),
        **_weights(layer, view, tile_k),
        "out": _at(view.result_at),
    }
    if block.table >= 0:
        fields["table"] = _at(add(view.weights_at, block.table))
    transposed = isinstance(layer, Gemm) and layer.transposed
    flags = ("SNITCH_OUT_TRANSPOSED",) if transposed else ()
    return {
        **fields,
        "rows": view.rows("out_size"),
        "k": view.k_size,
        "c": layer.C,
        "in_pitch": view.walk.operands[0].pitch,
        "out_pitch": view.result_pitch,
        "flags": _flags(layer, *flags),
        **_requant(layer, view, tile_k),
    }


def _conv(layer: Convolution, view: WalkView, tile_k: int) -> dict[str, Expr]:
    return {
        "in": _at(view.operand_at(view.walk.operands[0])),
        **_weights(layer, view, tile_k),
        "out": _at(view.result_at),
        "k": view.k_size,
        "c": layer.C,
        "iy": view.rows("in_size"),
        "ix": layer.ix,
        "oy": view.rows("out_size"),
        "ox": layer.ox,
        "fy": layer.fy,
        "fx": layer.fx,
        "stride_y": layer.stride[0],
        "stride_x": layer.stride[1],
        "pad_top": view.rows("pad"),
        "pad_left": layer.pad[1],
        "in_pitch": layer.C,
        "out_pitch": view.result_pitch,
        "flags": _flags(layer),
        **_requant(layer, view, tile_k),
    }


def _matmul(layer: Matmul, view: WalkView) -> dict[str, Expr]:
    batch = layer.batch
    a, second = view.walk.operands
    count = view.rows("out_size")
    start = view.rows("out_start")
    at: Expr = view.operand_at(second)
    if batch > 1:
        at = add(at, mul(start, f"{layer.C * layer.K}u"))
    return {
        "a": _at(view.operand_at(a)),
        "second": _at(at),
        "out": _at(view.result_at),
        "batch": count if batch > 1 else 1,
        "rows": layer.rows if batch > 1 else count,
        "k": layer.K,
        "c": layer.C,
        "flags": _flags(layer, *(("SNITCH_B_ROWS",) if layer.transposed else ())),
        **_requant(layer, None, 0),
    }


def _add(layer: Add, view: WalkView) -> dict[str, Expr]:
    places = ", ".join(_at(view.operand_at(operand)) for operand in view.walk.operands)
    return {
        "in": f"{{{places}}}",
        "out": _at(view.result_at),
        "operands": len(layer.inputs),
        "elements": mul(view.rows("out_size"), view.walk.operands[0].row_bytes),
        "flags": _flags(layer),
        **_requant(layer, None, 0),
    }


def _rows(layer: Rows, view: WalkView) -> dict[str, Expr]:
    function = layer.function
    rows = mul(view.rows("out_size"), layer.ox)
    fields: dict[str, Expr] = {
        "in": _at(view.operand_at(view.walk.operands[0])),
        "out": _at(view.result_at),
    }
    shape: dict[str, Expr] = {"rows": rows, "n": layer.K}
    if isinstance(function, ItaSoftmax):
        return {
            **fields,
            **shape,
            "group": function.group or layer.K,
            "step_bits": function.step_bits,
            "numerator": function.numerator,
            "flags": _flags(layer),
        }
    constants = view.weights_at
    if isinstance(function, TableSoftmax):
        more: dict[str, Expr] = {"levels": function.levels, "flags": _flags(layer)}
        return {**fields, "exponentials": _at(constants), **shape, **more}
    if isinstance(function, LayerNorm | AffineNorm | RmsNorm):
        fields["weight"] = _at(constants)
        if not isinstance(function, RmsNorm):
            fields["bias"] = _at(add(constants, 4 * layer.K))
        fields |= {**shape, "shift": function.shift, "flags": _flags(layer)}
        if isinstance(function, AffineNorm):
            fields["mul"] = function.mul
        return fields
    return {**fields, "table": _at(constants), "elements": mul(rows, layer.K)}
