"""A schedule as the template sees it: loops, tables, and C expressions for one tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from byoc_dory.emit.text import Expr, add, mul, round_up_expr
from byoc_dory.soc.diana.schedule import Schedule

__all__ = ["LayerView"]


@dataclass(frozen=True)
class _Loop:
    """One loop over tiles."""

    index: str
    count: int
    what: str


@dataclass(frozen=True)
class _Operand:
    """An input of the layer: argument, name of its place in L1, and the place of a tile's."""

    name: str
    place: str
    at: Expr
    resident: bool


# Struct and functions of the driver by operator.
_DRIVERS = {
    "conv2d": ("diana_conv_t", "diana_digital_conv2d"),
    "depthwise": ("diana_conv_t", "diana_digital_depthwise"),
    "dense": ("diana_dense_t", "diana_digital_dense"),
    "add": ("diana_add_t", "diana_digital_add"),
}


class LayerView:
    """A schedule for the template.

    What is the same for all tiles is a number, everything else an expression of loop indices and,
    where tiles alternate between two buffers, of how many there have been.
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
        self.outer, self.inner = self._loops()
        self.inputs = self._operands()

    @property
    def operands(self) -> tuple[str, ...]:
        """Names of the arguments that are loaded from L2."""
        return tuple(operand.name for operand in self.inputs if not operand.resident)

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
        needs = {"y", "x"} | ({"k"} if s.loads_each_tile else set())
        depth = max((index + 1 for index, axis in enumerate(order) if axis in needs), default=0)
        return [all_loops[a] for a in order[:depth]], [all_loops[a] for a in order[depth:]]

    # ------------------------------------------------------------------ places in L1

    def _operands(self) -> list[_Operand]:
        s = self.schedule
        names = (("in", "L1_IN"),) if len(s.l1_in) == 1 else (("in0", "L1_A"), ("in1", "L1_B"))
        return [
            _Operand(name, place, self._in_at(place, resident), resident)
            for (name, place), resident in zip(names, s.resident_in, strict=True)
        ]

    def _in_at(self, place: str, resident: bool) -> Expr:
        s = self.schedule
        if resident:
            return add(place, mul(self.k_start, "IN_MAP") if s.input_follows_k else 0)
        # An input that is loaded once has one buffer.
        return f"{place} + in_buffer" if s.pipelined and self.outer else place

    def _out_at(self) -> Expr:
        s = self.schedule
        if s.resident_out:
            return add("L1_OUT", self._channel(self.k_start, "OUT"))
        return "L1_OUT + tiles % 2 * OUT_TILE" if s.pipelined else "L1_OUT"

    def _channel(self, channel: Expr, name: str) -> Expr:
        """Bytes in front of a channel; a dense output is one byte per channel."""
        return channel if self.schedule.op == "dense" else mul(channel, f"{name}_MAP")

    # ------------------------------------------------------------------ transfers

    def _block(self, channels: Expr, rows: Expr, columns: Expr, source: bool) -> dict[str, Expr]:
        s = self.schedule
        where = s.source if source else s.result
        if s.op == "dense":
            size = where.pitch if source else round_up_expr(channels, s.pitch)
            return {"channels": 1, "rows": 1, "bytes": size}
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
        return add(add(self._channel(channel, name), mul(row, f"{name}_ROW")), column)

    # ------------------------------------------------------------------ the template's values

    def _descriptor(self) -> dict[str, Expr]:
        """Fields of the driver's descriptor of one tile."""
        s = self.schedule
        fixed: dict[str, Expr] = {"shift": s.shift, "relu": int(s.relu)}
        places = [operand.at for operand in self.inputs]
        out = self._out_at()
        if s.op == "add":
            elements = mul(mul(self.k_size, self.y["out_size"]), s.source.pitch)
            return {"elements": elements, **fixed, "a": places[0], "b": places[1], "out": out}
        if s.op == "dense":
            return {"k": self.k_size, "c": s.channels, **fixed, "in": places[0], "out": out}
        return {
            "k": self.k_size,
            "c": self.k_size if s.input_follows_k else s.channels,
            "iy": self.y["in_size"],
            "ix": self.x["in_size"],
            "oy": self.y["out_size"],
            "ox": self.x["out_size"],
            "fy": s.fy,
            "fx": s.fx,
            "stride": s.stride,
            "pad_top": self.y["pad"],
            "pad_left": self.x["pad"],
            **fixed,
            "in": places[0],
            "out": out,
        }

    def values(self) -> dict[str, Any]:
        """What the template reads."""
        s = self.schedule
        in_channels = self.k_size if s.input_follows_k else s.channels
        in_start = self.k_start if s.input_follows_k else 0
        load = self._block(in_channels, self.y["in_size"], self.x["in_size"], True)
        store = self._block(self.k_size, self.y["out_size"], self.x["out_size"], False)
        descriptor = self._descriptor()
        struct, driver = _DRIVERS[s.op]
        return {
            "outer": self.outer,
            "inner": self.inner,
            "places": "".join(
                f"{operand.place} = {at}, "
                for operand, at in zip(self.inputs, s.l1_in, strict=True)
            ),
            "loaded": [operand for operand in self.inputs if not operand.resident],
            "load": load,
            "store": store,
            "load_is_fixed": _fixed(load),
            "store_is_fixed": _fixed(store),
            "load_offset": self._offset(in_start, self.y["in_start"], self.x["in_start"], True),
            "store_offset": self._offset(
                self.k_start, self.y["out_start"], self.x["out_start"], False
            ),
            "weight_offset": mul("k", "WEIGHT_BYTES") if self.tiled["k"] else 0,
            "struct": struct,
            "driver": driver,
            "descriptor": descriptor,
            "tile_is_fixed": _fixed(descriptor),
            "tables": [
                (axis, what, before, tiles)
                for axis, what, before, tiles in (
                    ("y", "rows", "above", s.y_tiles),
                    ("x", "columns", "to the left", s.x_tiles),
                )
                if len(tiles) > 1
            ],
        }


def _fixed(values: dict[str, Expr]) -> bool:
    """Whether a descriptor with these values can be constant: numbers, or places in L1."""
    return all(
        isinstance(value, int) or value in ("L1_IN", "L1_A", "L1_B", "L1_OUT")
        for value in values.values()
    )
