"""C for DIANA's digital core: one function per layer, plus the conversions at region borders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from byoc_dory.cost import layer_cycles
from byoc_dory.emit.text import Expr, add, environment, mul, round_up_expr
from byoc_dory.errors import UnsupportedError
from byoc_dory.layer import Layer, Tensor
from byoc_dory.options import TilingOptions
from byoc_dory.packing import pack_weights
from byoc_dory.plan import LayerPlan
from byoc_dory.region import BorderMap, Constant, Kernel
from byoc_dory.schedule import Schedule, schedule_layer, stored_bytes
from byoc_dory.soc.accelerator import DigitalCore
from byoc_dory.soc.base import Soc, round_up

__all__ = ["DianaEmitter"]


@dataclass(frozen=True)
class DianaEmitter:
    """The emitter of the digital core (see `byoc_dory.emit.Emitter`)."""

    core: DigitalCore
    soc: Soc
    headers: tuple[str, ...] = ("diana_driver.h",)

    def stored_bytes(self, tensor: Tensor) -> int:
        """Bytes of a tensor in the accelerator's layout."""
        return stored_bytes(tensor.shape, self.core.row_pitch)

    def layer(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """The function that runs ``layer`` tile by tile."""
        core, solution = self.core, plan.solution
        schedule = schedule_layer(layer, plan, core, options.loop_order)
        cycles = layer_cycles(schedule, self.soc, core)
        constants: tuple[Constant, ...] = ()
        if layer.weight is not None:
            packed = pack_weights(layer, solution.tile.k, core)
            constants = (
                Constant(f"{symbol}_weights", packed, f"weights and biases of {layer.name}"),
            )
        operands = ("in",) if len(layer.inputs) == 1 else ("in0", "in1")
        signature = _signature(symbol, operands)
        view = _LayerView(schedule)
        source = _ENVIRONMENT.get_template(f"{_TEMPLATES[layer.op]}.c.jinja").render(
            signature=signature,
            layer=layer,
            schedule=schedule,
            solution=solution,
            cycles=cycles,
            operands=operands,
            weights=constants[0] if constants else None,
            core=core,
            **view.values(),
        )
        return Kernel(
            symbol=symbol,
            layer_name=layer.name,
            kind="layer",
            source=source,
            prototype=f"{signature};",
            inputs=tuple(tensor.name for tensor in layer.inputs),
            outputs=(layer.output.name,),
            constants=constants,
            layer=layer,
            plan=plan,
            schedule=schedule,
            predicted_cycles=cycles,
            accelerator=core.name,
        )

    def prologue(
        self, tensor: Tensor, target: str, symbol: str, mapped: BorderMap | None = None
    ) -> Kernel:
        """The function that converts a source tensor into the accelerator's layout."""
        source = tensor.name if mapped is None else mapped.source
        table = None
        if mapped is not None:
            table = Constant(
                f"{symbol}_table",
                mapped.table,
                f"{tensor.name}: what each byte of {source} becomes",
            )
        return self._conversion(tensor, symbol, "prologue", (source,), (target,), table)

    def epilogue(self, tensor: Tensor, source: str, symbol: str) -> Kernel:
        """The function that converts a result into the layout of ``tensor``."""
        return self._conversion(tensor, symbol, "epilogue", (source,), (tensor.name,))

    def _conversion(
        self,
        tensor: Tensor,
        symbol: str,
        kind: Any,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        table: Constant | None = None,
    ) -> Kernel:
        core = self.core
        signature = _signature(symbol, ("in",))
        template = "to_accelerator" if kind == "prologue" else "from_accelerator"
        walk = _walk(tensor, core)
        source = _ENVIRONMENT.get_template(f"{template}.c.jinja").render(
            signature=signature,
            tensor=tensor,
            core=core,
            stored=stored_bytes(tensor.shape, core.row_pitch),
            source=inputs[0],
            table=table,
            **walk,
        )
        return Kernel(
            symbol=symbol,
            layer_name=tensor.name,
            kind=kind,
            source=source,
            prototype=f"{signature};",
            inputs=inputs,
            outputs=outputs,
            constants=() if table is None else (table,),
            layer=None,
            plan=None,
            schedule=None,
            predicted_cycles=_walk_cycles(walk, kind, table is not None),
            accelerator="cpu",
        )


_ENVIRONMENT = environment("byoc_dory.soc.diana")
_TEMPLATES = {"conv2d": "conv", "depthwise": "conv", "dense": "dense", "add": "add"}
_DRIVERS = {
    "conv2d": "diana_digital_conv2d",
    "depthwise": "diana_digital_depthwise",
    "dense": "diana_digital_dense",
    "add": "diana_digital_add",
}


def _fixed(values: dict[str, Expr]) -> bool:
    """Whether all values are numbers, so that a descriptor can be constant."""
    return all(isinstance(value, int) for value in values.values())


def _signature(symbol: str, operands: tuple[str, ...]) -> str:
    arguments = ", ".join(f"const int8_t *{operand}" for operand in operands)
    return f"int32_t {symbol}({arguments}, int8_t *out)"


def _walk_cycles(walk: dict[str, Any], kind: str, looked_up: bool) -> int:
    """Host cycles of a conversion, counted on the instructions of its loops (RV32IMC).

    A word takes four byte accesses, three or six operations, one word access and the loop; how far
    the compiler unrolls decides the rest, so this holds within about a third.
    """
    rows = walk["channels"] * walk["rows"]
    if looked_up:
        # An addition and a load more for each byte.
        return rows * (25 * walk["words"] + 2 + 6 * walk["rest"] + walk["void_words"])
    if kind == "prologue":
        return rows * (15 * walk["words"] + 2 + 3 * walk["rest"] + walk["void_words"])
    return rows * (12 * walk["words"] + 2 + 3 * walk["rest"])


def _walk(tensor: Tensor, core: DigitalCore) -> dict[str, Any]:
    """How a conversion walks a source tensor.

    ``channels`` passes, each from its own first element and with ``step`` elements from one
    column to the next; rows follow each other without a gap in the source, so rows that need no
    padding either are joined.
    """
    if len(tensor.shape) == 1:
        channels, rows, columns, step = 1, 1, tensor.shape[0], 1
    elif tensor.layout == "NHWC":
        channels, rows, columns = tensor.shape
        step = channels
    elif tensor.layout == "NCHW":
        channels, rows, columns = 1, tensor.shape[0] * tensor.shape[1], tensor.shape[2]
        step = 1
    else:
        raise UnsupportedError(
            f"layout '{tensor.layout}' of shape {tensor.shape} cannot be converted",
            where=f"tensor '{tensor.name}'",
            hint="borders of regions are NHWC or NCHW, or C for vectors",
        )
    if columns == round_up(columns, core.row_pitch):
        rows, columns = 1, rows * columns
    pitch = round_up(columns, core.row_pitch)
    words, rest = divmod(columns, core.group)
    return {
        "channels": channels,
        "rows": rows,
        "step": step,
        "words": words,
        "rest": rest,
        "void_words": pitch // core.group - words - (1 if rest else 0),
    }


@dataclass(frozen=True)
class _Loop:
    """One loop over tiles."""

    index: str
    count: int
    what: str


class _LayerView:
    """A schedule as the templates see it: loops, tables, and C expressions for one tile.

    What is the same for all tiles is a number, everything else an expression of loop indices.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        s = schedule
        self.tiled = {
            "k": len(s.k_tiles) > 1, "y": len(s.y_tiles) > 1, "x": len(s.x_tiles) > 1
        }  # fmt: skip
        self.y = self._spatial("y", s.y_tiles)
        self.x = self._spatial("x", s.x_tiles)
        self.k_start: Expr = mul("k", s.tile.k) if self.tiled["k"] else 0
        self.k_size = self._k_size()

    def _spatial(self, axis: str, tiles: tuple[Any, ...]) -> dict[str, Expr]:
        keys = ("out_start", "out_size", "in_start", "in_size", "pad")
        result: dict[str, Expr] = {}
        for key in keys:
            values = {getattr(tile, key) for tile in tiles}
            result[key] = values.pop() if len(values) == 1 else f"{axis}_tiles[{axis}].{key}"
        return result

    def _k_size(self) -> Expr:
        tiles = self.schedule.k_tiles
        if len({tile.size for tile in tiles}) == 1:
            return tiles[0].size
        return f"(k + 1 < {len(tiles)} ? {tiles[0].size} : {tiles[-1].size})"

    def _loops(self) -> tuple[list[_Loop], list[_Loop]]:
        """(loops around the load, loops inside it), outermost first."""
        s = self.schedule
        all_loops = {
            "k": _Loop("k", len(s.k_tiles), "output channels"),
            "y": _Loop("y", len(s.y_tiles), "rows"),
            "x": _Loop("x", len(s.x_tiles), "columns"),
        }
        order = [axis for axis in s.loop_order if self.tiled[axis]]
        needs = {"y", "x"} | ({"k"} if s.input_follows_k else set())
        depth = max((index + 1 for index, axis in enumerate(order) if axis in needs), default=0)
        return [all_loops[a] for a in order[:depth]], [all_loops[a] for a in order[depth:]]

    def _block(self, channels: Expr, rows: Expr, columns: Expr, source: bool) -> dict[str, Expr]:
        s = self.schedule
        where = s.source if source else s.result
        pitch = round_up_expr(columns, s.pitch)
        size = round_up_expr(columns, s.group) if self.tiled["x"] else where.pitch
        return {
            "channels": channels,
            "rows": rows,
            "bytes": size,
            "l2_channel_stride": where.channel,
            "l2_row_stride": where.pitch,
            "l1_channel_stride": mul(rows, pitch),
            "l1_row_stride": pitch,
        }

    def _offset(self, channel: Expr, row: Expr, column: Expr, source: bool) -> Expr:
        # Named in the generated code; untiled axes start at 0 and leave nothing to multiply.
        name = "IN" if source else "OUT"
        return add(add(mul(channel, f"{name}_MAP"), mul(row, f"{name}_ROW")), column)

    def values(self) -> dict[str, Any]:
        """What the templates read."""
        s = self.schedule
        outer, inner = self._loops()
        in_channels = self.k_size if s.input_follows_k else s.channels
        in_start = self.k_start if s.input_follows_k else 0
        load = self._block(in_channels, self.y["in_size"], self.x["in_size"], True)
        store = self._block(self.k_size, self.y["out_size"], self.x["out_size"], False)
        return {
            "outer": outer,
            "inner": inner,
            "loops": outer + inner,
            "y": self.y,
            "x": self.x,
            "k_start": self.k_start,
            "k_size": self.k_size,
            "in_channels": in_channels,
            "load": load,
            "store": store,
            "load_offset": self._offset(in_start, self.y["in_start"], self.x["in_start"], True),
            "store_offset": self._offset(
                self.k_start, self.y["out_start"], self.x["out_start"], False
            ),
            "weight_offset": self._weight_offset(),
            "load_is_fixed": _fixed(load),
            "store_is_fixed": _fixed(store),
            "tile_is_fixed": _fixed({**self.y, **load, **store}) and _fixed(self.x),
            "driver": _DRIVERS[s.op],
            "elements": mul(mul(self.k_size, self.y["out_size"]), s.source.pitch),
            "store_bytes": s.store_block(s.k_tiles[0], s.y_tiles[0], s.x_tiles[0]).bytes,
            "tables": [
                (axis, what, before, tiles)
                for axis, what, before, tiles in (
                    ("y", "rows", "above", s.y_tiles),
                    ("x", "columns", "to the left", s.x_tiles),
                )
                if len(tiles) > 1
            ],
        }

    def _weight_offset(self) -> Expr:
        return mul("k", "WEIGHT_BYTES") if self.tiled["k"] else 0
