"""C for DIANA's digital core: one function per layer, plus the conversions at region borders."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.emit.text import environment
from byoc_dory.layers import Array, Layer, Tensor, Weighted
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.region import BorderMap, Constant, Kernel
from byoc_dory.soc.base import Soc
from byoc_dory.soc.diana import borders
from byoc_dory.soc.diana.cost import layer_cycles
from byoc_dory.soc.diana.digital_core import DigitalCore
from byoc_dory.soc.diana.digital_packing import pack_weights
from byoc_dory.soc.diana.digital_schedule import schedule_layer
from byoc_dory.soc.diana.layout import stored_bytes, stored_offsets
from byoc_dory.soc.diana.schedule import Schedule
from byoc_dory.soc.diana.view import LayerView

__all__ = ["DianaEmitter", "layer_kernel"]

_ENVIRONMENT = environment("byoc_dory.soc.diana")


@dataclass(frozen=True)
class DianaEmitter:
    """The emitter of the digital core (see `byoc_dory.emit.Emitter`)."""

    core: DigitalCore
    soc: Soc
    headers: tuple[str, ...] = ("diana_driver.h",)

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
        core, solution = self.core, plan.solution
        schedule = schedule_layer(layer, plan, core, options.schedule, options.loop_order)
        cycles = layer_cycles(schedule, self.soc, core)
        constants: tuple[Constant, ...] = ()
        if isinstance(layer, Weighted):
            packed = pack_weights(layer, solution.tile.k, core)
            constants = (
                Constant(f"{symbol}_weights", packed, f"weights and biases of {layer.name}"),
            )
        view = LayerView(schedule)
        return layer_kernel(layer, plan, schedule, view, constants, cycles, core.name, symbol)

    def prologue(
        self, tensor: Tensor, target: str, symbol: str, mapped: BorderMap | None = None
    ) -> Kernel:
        """The function that converts a source tensor into the accelerator's layout."""
        return borders.prologue(tensor, target, self.core, symbol, mapped)

    def epilogue(self, tensor: Tensor, source: str, symbol: str) -> Kernel:
        """The function that converts a result into the layout of ``tensor``."""
        return borders.epilogue(tensor, source, self.core, symbol)


def layer_kernel(
    layer: Layer,
    plan: LayerPlan,
    schedule: Schedule,
    view: LayerView,
    constants: tuple[Constant, ...],
    cycles: int,
    accelerator: str,
    symbol: str,
) -> Kernel:
    """The kernel of a layer on either core, given its schedule, constants and predicted cycles."""
    signature = _signature(symbol, view.operands, not schedule.resident_out)
    source = _ENVIRONMENT.get_template("layer.c.jinja").render(
        signature=signature,
        layer=layer,
        schedule=schedule,
        solution=plan.solution,
        cycles=cycles,
        weights=constants[0] if constants else None,
        **view.values(),
    )
    inputs = zip(layer.inputs, schedule.resident_in, strict=True)
    return Kernel(
        symbol=symbol,
        layer_name=layer.name,
        kind="layer",
        source=source,
        prototype=f"{signature};",
        inputs=tuple(tensor.name for tensor, resident in inputs if not resident),
        outputs=() if schedule.resident_out else (layer.output.name,),
        constants=constants,
        layer=layer,
        plan=plan,
        schedule=schedule,
        predicted_cycles=cycles,
        accelerator=accelerator,
    )


def _signature(symbol: str, operands: tuple[str, ...], stores: bool) -> str:
    arguments = [f"const int8_t *{operand}" for operand in operands]
    if stores:
        arguments.append("int8_t *out")
    return f"int32_t {symbol}({', '.join(arguments) or 'void'})"
