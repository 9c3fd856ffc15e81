"""Tile programs for DIANA's cores: their common parts, and the orders of actions.

The layout in L2 (inside a region) and in L1 is C-y-x with rows padded to the core's pitch; vectors
are padded likewise.  Offsets and sizes are logical bytes: all are multiples of the reversed group
where the DMA is involved, so the reversal is not visible here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from byoc_dory.layers import Add, Dense, Layer, MapRows, Tensor
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.base import round_up
from byoc_dory.soc.diana.packing import Map
from byoc_dory.tileloop.axes import TileAxis, halo_axis, plain_axis
from byoc_dory.tileloop.pipeline import Action, Block, Pipeline, Trigger, Verb
from byoc_dory.tileloop.program import Compute, Operand, TileProgram
from byoc_dory.tileloop.values import Value, add, mul, named
from byoc_dory.tileloop.values import round_up as rounded
from byoc_dory.tiling.problem import Tile


@dataclass(frozen=True)
class MapTrigger(Trigger):
    """The convolution of one tile.

    ``pad_top`` and ``pad_left`` are numbers of zeros before the tile; negative values skip rows or
    columns.
    """

    k: int
    c: int
    iy: int
    ix: int
    oy: int
    ox: int
    fy: int
    fx: int
    stride: int
    pad_top: int
    pad_left: int
    shift: int
    l1_in: int
    l1_out: int
    weight_offset: int


@dataclass(frozen=True)
class ConvTrigger(MapTrigger):
    """A convolution on the digital core.

    If ``depthwise``, there is one trigger per ``channels`` channels: if these are several, each is
    a convolution over them whose weights between different channels are zero.
    """

    relu: bool
    depthwise: bool
    channels: int = 1

    def blocks(self) -> list[int]:
        """Return the numbers of channels of a depthwise layer's triggers."""
        full, left = divmod(self.k, self.channels)
        return [self.channels] * full + [left] * (left > 0)


@dataclass(frozen=True)
class DenseTrigger(Trigger):
    """Outputs of a fully connected layer: one trigger per block of them."""

    k: int
    c: int
    shift: int
    relu: bool
    l1_in: int
    l1_out: int
    weight_offset: int


@dataclass(frozen=True)
class AddTrigger(Trigger):
    """Element-wise sum of two flat runs of bytes."""

    elements: int
    shift: int
    relu: bool
    l1_a: int
    l1_b: int
    l1_out: int


@dataclass(frozen=True)
class AnalogTrigger(MapTrigger):
    """A convolution on an in-memory array, or a matrix times a vector (``vector``).

    The array sums ``c_pass`` channels and computes ``unroll`` output columns at a time; a vector's
    outputs take one trigger per ``slice`` of them. ``gain`` is the right shift before the
    converters.
    """

    gain: int
    clip: tuple[int, int]
    c_pass: int
    unroll: int
    vector: bool
    slice: int
    l1_sums: int


PUBLISHED = Pipeline(
    "published",
    (Action(Verb.LOAD), Action(Verb.COMPUTE), Action(Verb.STORE)),
    blocking=True,
)
"""Load, compute and store, each waited for, as HTVM's published latencies imply."""

IN_TURN = Pipeline(
    "in turn",
    tuple(
        map(
            Action,
            (
                Verb.LOAD,
                Verb.PREPARE,
                Verb.WAIT,
                Verb.START,
                Verb.FINISH,
                Verb.STORE,
                Verb.SETTLE,
            ),
        )
    ),
)
"""The same, with registers written while the DMA loads."""

_BESIDE = Pipeline(
    "beside",
    (
        Action(Verb.LOAD),
        Action(Verb.PREPARE),
        Action(Verb.FINISH, 1),
        Action(Verb.WAIT),
        Action(Verb.START),
        Action(Verb.STORE, 1),
    ),
)
_BESIDE_SEVERAL = Pipeline(
    "beside, several starts",
    (
        Action(Verb.LOAD),
        Action(Verb.FINISH, 1),
        Action(Verb.PREPARE),
        Action(Verb.WAIT),
        Action(Verb.START),
        Action(Verb.STORE, 1),
    ),
)


def _stored_rows(tensor: Tensor, rows: int) -> int:
    """Return the number of rows per channel of the map in L2 that a tensor's rows are in."""
    return tensor.stored.shape[1] if isinstance(tensor, MapRows) else rows


def _first_row(tensor: Tensor) -> int:
    """Return the number of its first one there."""
    return tensor.first if isinstance(tensor, MapRows) and tensor.inside else 0


@dataclass(frozen=True)
class MapLoop:
    """The tile loop of a layer with padded maps as activations, for either core.

    Attributes:
        layer: a layer that the core's rules accept.
        plan: plan of the layer.
        options: schedule and loop order; the published schedule has the order kyx.
        tile: the plan's tile, or the core's version of it.
        fy, fx: kernel size that the core executes.
        pitch, group: multiple that rows are padded to, and size of a reversed group, in bytes.

    Raises:
        ValueError: the schedule or the tile does not allow what the plan contains.
    """

    layer: Layer
    plan: LayerPlan
    options: TilingOptions
    tile: Tile
    fy: int
    fx: int
    pitch: int
    group: int

    def __post_init__(self) -> None:
        layer, plan = self.layer, self.plan
        resident = plan.resident_output or any(plan.resident_inputs)
        if self.published and (resident or plan.buffers != 1):
            raise ValueError(f"layer '{layer.name}': the published schedule keeps nothing in L1")
        tile = plan.solution.tile
        if resident and (tile.y < layer.oy or tile.x < self._columns[1]):
            raise ValueError(f"layer '{layer.name}': a map that is tiled cannot stay in L1")

    @property
    def published(self) -> bool:
        """Whether nothing runs in parallel."""
        return self.options.schedule == "published"

    @cached_property
    def dense(self) -> bool:
        """Whether it is a matrix-vector product."""
        return isinstance(self.layer, Dense)

    @property
    def follows(self) -> bool:
        """Whether each output channel reads only its own input channel."""
        return isinstance(self.layer, Add) or self.layer.groups > 1

    @cached_property
    def _columns(self) -> tuple[int, int, int]:
        """(channels, output columns, input columns); an add of vectors is one padded row."""
        layer = self.layer
        if isinstance(layer, Add) and layer.of_vectors:
            return 1, layer.K, layer.K
        return layer.K, layer.ox, layer.ix

    # ------------------------------------------------------------------ axes

    @cached_property
    def k(self) -> TileAxis:
        """The axis of output channels."""
        return plain_axis("k", "output channels", self._columns[0], self.tile.k)

    @cached_property
    def y(self) -> TileAxis:
        """The axis of rows."""
        layer = self.layer
        return halo_axis(
            "y", "rows", layer.oy, self.tile.y, layer.iy, self.fy, layer.stride[0], layer.pad[0]
        )

    @cached_property
    def x(self) -> TileAxis:
        """The axis of columns."""
        layer, (_, out, size) = self.layer, self._columns
        stride, pad = layer.stride[1], layer.pad[1]
        return halo_axis("x", "columns", out, self.tile.x, size, self.fx, stride, pad, self.group)

    @property
    def axes(self) -> tuple[TileAxis, ...]:
        """The axes, outermost first; ``yxk`` loads an input tile once for all its channel tiles."""
        order = "kyx" if self.published else self.options.loop_order
        return tuple(getattr(self, name) for name in order)

    # ------------------------------------------------------------------ maps

    @property
    def source(self) -> Map:
        """The input; for a dense layer, one vector."""
        if self.dense:
            return Map(1, round_up(self.layer.C, self.pitch))
        rows = _stored_rows(self.layer.inputs[0], self.layer.iy)
        return Map(rows, round_up(self._columns[2], self.pitch))

    @property
    def result(self) -> Map:
        """The output; for a dense layer, a run of bytes."""
        if self.dense:
            return Map(1, 1)
        rows = _stored_rows(self.layer.output, self.layer.oy)
        return Map(rows, round_up(self._columns[1], self.pitch))

    @property
    def channels(self) -> Value:
        """Number of input channels of a tile."""
        return self.k.out_size if self.follows else self.layer.C

    def inputs(self) -> tuple[Operand, ...]:
        """Return the operands."""
        layer, plan, source = self.layer, self.plan, self.source
        first = self.k.out_start if self.follows else 0
        names = ("in",) if len(layer.inputs) == 1 else ("in0", "in1")
        block = Block.run(source.pitch)
        if not self.dense:
            block = self._block(self.channels, self.y.in_size, self.x.in_size, source)
        if self.published and isinstance(layer, Add):
            block = replace(block, by_rows=True)
        row, channel = named("IN_ROW", source.pitch), named("IN_MAP", source.channel)
        vector = len(layer.inputs[0].shape) == 1
        whole = source.channel * (1 if vector else layer.inputs[0].shape[0])
        inside = mul(first, channel)
        offset = add(add(inside, self.y.in_start * row), self.x.in_start)
        offset = add(offset, _first_row(layer.inputs[0]) * source.pitch)
        return tuple(
            Operand(
                name,
                offset,
                block,
                l1,
                whole if resident else plan.solution.l1_in // len(layer.inputs),
                buffers=plan.buffers,
                resident=resident,
                inside=inside,
                reloaded=self.published,
            )
            for name, l1, resident in zip(names, plan.l1_inputs, plan.resident_inputs, strict=True)
        )

    def output(self) -> Operand:
        """Return the result."""
        plan, result = self.plan, self.result
        if self.dense:
            block = Block.run(rounded(self.k.out_size, self.pitch))
            offset = inside = self.k.out_start
            whole = round_up(self.layer.K, self.pitch)
        else:
            block = self._block(self.k.out_size, self.y.out_size, self.x.out_size, result)
            row, channel = named("OUT_ROW", result.pitch), named("OUT_MAP", result.channel)
            inside = mul(self.k.out_start, channel)
            offset = inside + self.y.out_start * row + self.x.out_start
            offset = add(offset, _first_row(self.layer.output) * result.pitch)
            whole = self._columns[0] * result.channel
        return Operand(
            "out",
            offset,
            block,
            plan.l1_output,
            whole if plan.resident_output else plan.solution.l1_out,
            buffers=plan.buffers,
            resident=plan.resident_output,
            inside=inside,
        )

    def _block(self, channels: Value, rows: Value, columns: Value, where: Map) -> Block[Value]:
        # Whole rows are moved with their padding, so that they are contiguous; parts of rows are
        # moved as whole reversed groups.
        pitch = rounded(columns, self.pitch)
        return Block(
            channels=channels,
            rows=rows,
            bytes=where.pitch if self.x.count == 1 else rounded(columns, self.group),
            l2_channel_stride=where.channel,
            l2_row_stride=where.pitch,
            l1_channel_stride=mul(rows, pitch),
            l1_row_stride=pitch,
        )

    # ------------------------------------------------------------------ the program

    def program(self, compute: Compute) -> TileProgram:
        """Return the tile program, given the core's computation of a tile."""
        overlapped = None
        if not self.published and self.plan.buffers > 1:
            overlapped = _BESIDE_SEVERAL if compute.several else _BESIDE
        return TileProgram(
            self.layer.name,
            self.axes,
            self.inputs(),
            self.output(),
            compute,
            PUBLISHED if self.published else IN_TURN,
            overlapped,
        )
