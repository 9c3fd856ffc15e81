"""C for layers on ITA: the tasks of each tile."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.emit import row_layout
from byoc_dory.emit.text import Expr, add, mul
from byoc_dory.layers import Array, Attend, Gemm, Layer, Tensor
from byoc_dory.layers.rowwise import ItaGelu
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.region import BorderMap, Constant, Kernel
from byoc_dory.soc.base import Soc, round_up
from byoc_dory.soc.snitch_ita import borders
from byoc_dory.soc.snitch_ita.ita_core import Ita
from byoc_dory.soc.snitch_ita.ita_cost import layer_cycles
from byoc_dory.soc.snitch_ita.ita_tiles import bias_at, pack, walk_of
from byoc_dory.soc.snitch_ita.layer_text import ENVIRONMENT, layer_kernel
from byoc_dory.soc.snitch_ita.requant import ItaRequant, ita_requant, mul_shift
from byoc_dory.soc.snitch_ita.view import WalkView
from byoc_dory.soc.snitch_ita.walk import Operand

__all__ = ["ItaEmitter"]

_IDENTITY = ItaRequant(1, 0, 0)


@dataclass(frozen=True)
class ItaEmitter:
    """The emitter of ITA (see `byoc_dory.emit.Emitter`)."""

    core: Ita
    soc: Soc
    headers: tuple[str, ...] = ("snitch_cluster.h", "snitch_dma.h", "snitch_ita_driver.h")

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
        walk = walk_of(layer, plan, self.core)
        view = WalkView(walk)
        running = "running[tile % 2u]" if walk.double and walk.tiles > 1 else "running"
        constants = None
        if isinstance(layer, Attend):
            compute = self._attend(layer, view, running)
        else:
            assert isinstance(layer, Gemm)
            compute = _program(running, self._product(layer, view, plan.solution.tile.k))
            constants = Constant(
                f"{symbol}_weights",
                pack(layer, plan.solution.tile.k, self.core),
                f"weights and biases of {layer.name}",
            )
        return layer_kernel(
            layer, plan, walk, compute, self.core, symbol,
            layer_cycles(layer, walk, self.core, self.soc),
            constants=constants, device=True,
        )  # fmt: skip

    def prologue(
        self, tensor: Tensor, target: str, symbol: str, mapped: BorderMap | None = None
    ) -> Kernel:
        """The function that brings a source tensor into rows."""
        return borders.prologue(tensor, target, symbol, mapped, self.soc)

    def epilogue(self, tensor: Tensor, source: str, symbol: str) -> Kernel:
        """The function that brings a result into the layout of ``tensor``."""
        return borders.epilogue(tensor, source, symbol, self.soc)

    # ------------------------------------------------------------------ tasks

    def _padded(self, size: Expr) -> Expr:
        if isinstance(size, int):
            return round_up(size, self.core.tile)
        return f"({size} + {self.core.tile - 1}u) & ~{self.core.tile - 1}u"

    def _requant(self, mul_: int, shift: int, offset: int) -> str:
        found = ita_requant(mul_, shift, offset, self.core.max_shift)
        assert isinstance(found, ItaRequant), found
        return _requant_text(found)

    def _product(self, layer: Gemm, view: WalkView, tile_k: int) -> dict[str, Expr]:
        """The task of a product; transposed, the weights are its left operand."""
        operand = view.walk.operands[0]
        data = (
            _place(view.operand_at(operand)),
            operand.pitch,
            self._padded(view.rows("out_size")),
        )
        pitch = round_up(layer.C, self.core.tile)
        weights = (_place(view.weights_at), pitch, self._padded(view.k_size))
        left, right = (weights, data) if layer.transposed else (data, weights)
        requant = mul_shift(layer)
        assert requant is not None
        fields: dict[str, Expr] = {
            "rows": left[2],
            "cols": right[2],
            "inner": pitch,
            "operation": "SNITCH_ITA_OP_LINEAR",
            "bias_kind": "SNITCH_ITA_BIAS_ROWS" if layer.transposed else "SNITCH_ITA_BIAS_COLS",
            "requant": self._requant(requant.mul[0], requant.shift[0], requant.add[0]),
        }
        if isinstance(layer.function, ItaGelu):
            gelu = layer.function
            fields["activation"] = "SNITCH_ITA_ACT_GELU"
            fields["act_requant"] = _requant_text(ItaRequant(gelu.mul, gelu.shift, gelu.add))
            fields["gelu_b"], fields["gelu_c"] = gelu.b, gelu.c
        elif layer.relu:
            fields["activation"] = "SNITCH_ITA_ACT_RELU"
            fields["act_requant"] = _requant_text(_IDENTITY)
        else:
            fields["activation"] = "SNITCH_ITA_ACT_IDENTITY"
        bias = add(view.weights_at, bias_at(layer, tile_k, self.core))
        return fields | {
            "left": left[0],
            "left_stride": left[1],
            "right": right[0],
            "right_stride": right[1],
            "bias": _place(bias),
            "out": _place(view.result_at),
            "out_stride": view.result_pitch,
        }

    def _attend(self, layer: Attend, view: WalkView, running: str) -> str:
        """For each head and 64 queries of the tile: scores with their statistics, then context."""
        scores = layer.scores
        query, key, value = view.walk.operands
        size, keys = layer.head_size, round_up(layer.keys, self.core.tile)
        unit = 0 if scores.softmax.step_bits else 1
        head: Expr = mul("head", f"{size}u") if layer.heads > 1 else 0
        rows: dict[str, Expr] = {"rows": self.core.tile, "activation": "SNITCH_ITA_ACT_IDENTITY"}
        first: dict[str, Expr] = {
            **rows,
            "cols": keys,
            "inner": size,
            "length": layer.keys,
            "operation": "SNITCH_ITA_OP_QK",
            "bias_kind": "SNITCH_ITA_BIAS_NONE",
            "flags": "SNITCH_ITA_FLAG_UNIT_SHIFT" if unit else 0,
            "requant": self._requant(*scores.scores),
            "left": _place(add(_row(view.operand_at(query), query, "row"), head)),
            "left_stride": query.pitch,
            "right": _place(add(view.operand_at(key), head)),
            "right_stride": key.pitch,
            "out": _place("L1_SCRATCH"),
            "out_stride": keys,
        }
        transposed = add(view.operand_at(value), mul(head, f"{value.pitch}u"))
        out = add(view.result_at, mul("row", f"{view.result_pitch}u"))
        second: dict[str, Expr] = {
            **rows,
            "cols": size,
            "inner": keys,
            "operation": "SNITCH_ITA_OP_AV",
            "bias_kind": "SNITCH_ITA_BIAS_NONE",
            "requant": self._requant(*scores.context),
            "left": _place("L1_SCRATCH"),
            "left_stride": keys,
            "right": _place(transposed),
            "right_stride": value.pitch,
            "out": _place(add(out, head)),
            "out_stride": view.result_pitch,
        }
        return ENVIRONMENT.get_template("attend.c.jinja").render(
            heads=layer.heads,
            rows=view.rows("out_size"),
            step=self.core.tile,
            first=first,
            second=second,
            running=running,
        )


def _row(place: Expr, operand: Operand, index: str) -> Expr:
    return add(place, mul(index, f"{operand.pitch}u"))


def _place(offset: Expr) -> str:
    """Device address of a byte offset in L1."""
    return f"HTVM_L1_BASE + {offset}"


def _requant_text(requant: ItaRequant) -> str:
    return f"{{.mult = {requant.mult}, .shift = {requant.shift}, .add = {requant.add}}}"


def _program(running: str, fields: dict[str, Expr]) -> str:
    lines = "".join(f"    .{name} = {value},\n" for name, value in fields.items())
    return (
        f"const snitch_ita_task_t task = {{\n{lines}}};\n{running} = snitch_ita_program(&task);\n"
    )
