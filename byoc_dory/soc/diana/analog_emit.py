"""C for DIANA's analog core: one function per layer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from byoc_dory.emit.text import Expr, add
from byoc_dory.layers.layer import Array, Layer, Tensor
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.region import BorderMap, Constant, Kernel
from byoc_dory.soc.base import Soc
from byoc_dory.soc.diana import borders
from byoc_dory.soc.diana.analog_core import AnalogCore
from byoc_dory.soc.diana.analog_packing import pack_weights
from byoc_dory.soc.diana.analog_schedule import AnalogSchedule, analog_schedule
from byoc_dory.soc.diana.cost import layer_cycles
from byoc_dory.soc.diana.digital_emit import layer_kernel
from byoc_dory.soc.diana.layout import stored_bytes, stored_offsets
from byoc_dory.soc.diana.view import LayerView

__all__ = ["AnalogEmitter"]


@dataclass(frozen=True)
class AnalogEmitter:
    """The emitter of the analog core (see `byoc_dory.emit.Emitter`).

    Tensors have the digital core's layout, so the conversions at a region's borders are its, too.
    """

    core: AnalogCore
    soc: Soc
    headers: tuple[str, ...] = ("diana_driver.h", "diana_analog_driver.h")

    def native(self, tensor: Tensor) -> bool:
        """Whether a border tensor lies in the accelerator's layout."""
        return tensor.layout == "CHW"

    def stored_bytes(self, tensor: Tensor) -> int:
        """Bytes of a tensor in the accelerator's layout."""
        return stored_bytes(tensor.shape, self.core.row_pitch)

    def offsets(self, tensor: Tensor) -> Array:
        """Where each element of a tensor lies in the accelerator's layout."""
        return stored_offsets(tensor.shape, self.core.row_pitch, self.core.group)

    def layer(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """The function that runs ``layer`` tile by tile.

        Its arguments are the tensors in L2: those that stay in L1 are none.
        """
        core = self.core
        schedule = analog_schedule(layer, plan, core, options.schedule, options.loop_order)
        packed = pack_weights(layer, plan.solution.tile.k, schedule.unroll, core)
        weights = Constant(f"{symbol}_weights", packed, f"array images and factors of {layer.name}")
        cycles = layer_cycles(schedule, self.soc, core)
        view = AnalogView(schedule)
        return layer_kernel(layer, plan, schedule, view, (weights,), cycles, core.name, symbol)

    def prologue(
        self, tensor: Tensor, target: str, symbol: str, mapped: BorderMap | None = None
    ) -> Kernel:
        """The function that converts a source tensor into the accelerator's layout."""
        return borders.prologue(tensor, target, self.core, symbol, mapped)

    def epilogue(self, tensor: Tensor, source: str, symbol: str) -> Kernel:
        """The function that converts a result into the layout of ``tensor``."""
        return borders.epilogue(tensor, source, self.core, symbol)


class AnalogView(LayerView):
    """A schedule of the analog core for the template."""

    schedule: AnalogSchedule

    def values(self) -> dict[str, Any]:
        """What the template reads."""
        return {
            **super().values(),
            "struct": "diana_analog_conv_t",
            "driver": self._driver(),
            "tile_is_fixed": all(map(_is_constant, self._descriptor().values())),
        }

    def _driver(self) -> str:
        if self.schedule.sliced:
            return "diana_analog_dense"
        return "diana_analog_passes" if self.schedule.passes > 1 else "diana_analog_conv2d"

    def _descriptor(self) -> dict[str, Expr]:
        s = self.schedule
        vector = s.op == "dense"
        out = self._out_at()
        values: dict[str, Expr] = {
            "k": self.k_size,
            "c": s.channels,
            # A vector is a map of one position.
            "iy": 1 if vector else self.y["in_size"],
            "ix": 1 if vector else self.x["in_size"],
            "oy": self.y["out_size"],
            "ox": self.x["out_size"],
            "fy": s.fy,
            "fx": s.fx,
            "stride": s.stride,
            "pad_top": self.y["pad"],
            "pad_left": self.x["pad"],
            "gain": s.gain,
            "shift": s.shift,
            "clip": _clip(s),
            "in": self.inputs[0].at,
            "out": out,
            "mode": f"{s.unroll} | DIANA_ANALOG_VECTOR" if vector else s.unroll,
        }
        if s.several_triggers:
            values["c_pass"] = s.c_pass
        if s.passes > 1:
            values["partial"] = add("L1_OUT" if s.resident_out else out, s.sums)
            values["pass_bytes"] = self._pass_bytes()
        return values

    def _pass_bytes(self) -> Expr:
        sizes = self.schedule.pass_bytes
        if len(set(sizes)) == 1:
            return sizes[0]
        return f"(k + 1 < {len(sizes)} ? {sizes[0]} : {sizes[-1]})"


def _clip(schedule: AnalogSchedule) -> Expr:
    low, high = schedule.clip
    flags = ["DIANA_ANALOG_CLIP_RELU"] if low == 0 else []
    if high < 127:
        flags.append("DIANA_ANALOG_CLIP_SHORT")
    return " | ".join(flags) or 0


def _is_constant(value: Expr) -> bool:
    """Whether an expression is made of numbers and of names of constants."""
    return re.fullmatch(r"[A-Z0-9_]+( [|+] [A-Z0-9_]+)*", str(value)) is not None or isinstance(
        value, int
    )
