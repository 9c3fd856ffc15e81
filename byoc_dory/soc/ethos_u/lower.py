"""Layers of a region as networks for Vela.

A region becomes one network in TOSA's format, which keeps multipliers.  A softmax is one of its
own, and so is a sum that comes out differently there: they are in TFLite's format.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np

from byoc_dory.layers import (
    Add,
    Array,
    Concatenation,
    Convolution,
    Difference,
    Doubling,
    Interleaving,
    Layer,
    Padding,
    Pool,
    Product,
    Repetition,
    Reshaping,
    Rows,
    Slicing,
    Tensor,
    TfliteRequant,
    Weighted,
)
from byoc_dory.layers.rowwise import FixedPointSoftmax, TableMap
from byoc_dory.soc.ethos_u.exact import (
    Fractions,
    Scaling,
    parts_of,
    scaling_of,
    scaling_of_product,
)
from byoc_dory.soc.ethos_u.model import (
    limits_of,
    output_zero_point_of,
    stored_shape,
    zero_points_of,
)
from byoc_dory.soc.ethos_u.sums import sum_of
from byoc_dory.soc.ethos_u.tflite import (
    activation_of,
    factors_of,
    scales_of,
    softmax_file,
    sum_file,
)
from byoc_dory.soc.ethos_u.tosa import TosaGraph

_UNIT_BITS = 30
_UNIT = 1 << _UNIT_BITS
_SHORT_UNIT_BITS = 14
_SHORT_UNIT = 1 << _SHORT_UNIT_BITS
_TAPS = {True: (1, 2, 1), False: (1, 1)}
"""What a doubled map is filtered with along an axis, centred or not, after it was repeated."""
_TAPS_SUM = 64
"""To what the weights of such a filter add up: enough for double rounding to find ties."""


@dataclass(frozen=True)
class Network:
    """A network for Vela.

    In TOSA's format, names of tensors begin with the number of the layer that they belong to.

    Attributes:
        format: of the file, as Vela calls it.
        content: the file.
        layers: the layers that it computes.
        inputs, outputs: the tensors that it is given, and those that it returns, in its order.
        uncropped: another file of the same, in which convolutions take the columns that their
            stride leaves over for products with zeros; empty if there are none.  They are more
            products, but Vela stores a map whose columns are cropped by pixels instead of bricks of
            16 channels, and does not write a sum over an operand that is stored otherwise.
    """

    format: Literal["TOSA", "TFLITE"]
    content: bytes
    layers: tuple[Layer, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    uncropped: bytes = b""


def networks(layers: Sequence[Layer], results: Sequence[str]) -> tuple[Network, ...]:
    """Return the networks that compute layers, in order.

    Args:
        layers: layers that the accelerator's rules accept, in execution order.
        results: names of the tensors that are read outside of them.
    """
    parts: list[list[Layer]] = []
    for layer in layers:
        if is_apart(layer) or not parts or is_apart(parts[-1][-1]):
            parts.append([])
        parts[-1].append(layer)
    found = []
    for number, part in enumerate(parts):
        read = {t.name for later in parts[number + 1 :] for layer in later for t in layer.inputs}
        made = {layer.output.name for layer in part}
        inputs = {t.name: t for layer in part for t in layer.inputs if t.name not in made}
        outputs = [layer.output for layer in part if layer.output.name in {*results, *read}]
        tensors = tuple(part), tuple(inputs.values()), tuple(outputs)
        if is_apart(part[0]):
            found.append(Network("TFLITE", _apart(part[0]), *tensors))
        else:
            writer = _Writer(part)
            content, uncropped = writer.content(*tensors), b""
            if writer.crops_columns:
                uncropped = _Writer(part, crop_columns=False).content(*tensors)
            found.append(Network("TOSA", content, *tensors, uncropped))
    return tuple(found)


def is_apart(layer: Layer) -> bool:
    """Whether a layer is a network of its own."""
    if isinstance(layer, Add | Difference):
        return isinstance(sum_of(layer), str)
    return isinstance(layer, Rows) and isinstance(layer.function, FixedPointSoftmax)


def _apart(layer: Layer) -> bytes:
    """Return a layer as a file in TFLite's format."""
    if isinstance(layer, Add | Difference):
        scales, activation = scales_of(layer), activation_of(layer)
        assert scales is not None and activation is not None  # by a rule
        shapes = [_shape(layer.inputs[at]) for at in (0, -1)]
        return sum_file(layer, [*shapes, _shape(layer.output)], scales, activation)
    assert isinstance(layer, Rows) and isinstance(layer.function, FixedPointSoftmax)
    factors = factors_of(layer.function)
    assert factors is not None  # by a rule
    return softmax_file(layer.output.elements // layer.K, layer.K, *factors)


class _Writer:
    """Writes layers into a network in TOSA's format.

    Args:
        layers: in execution order.
        crop_columns: whether convolutions read maps without the columns that strides leave over.

    Attributes:
        crops_columns: whether one does, of what is written.
    """

    def __init__(self, layers: Sequence[Layer], *, crop_columns: bool = True) -> None:
        self.crops_columns = False
        self._crop_columns = crop_columns
        self._graph = TosaGraph()
        self._layers = layers
        self._places: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._numbers: Iterator[int] = iter(range(1 << 30))
        self._layer_number = 0
        self._absorbed = _absorbed_moves(layers)

    def content(
        self, layers: Sequence[Layer], inputs: Sequence[Tensor], outputs: Sequence[Tensor]
    ) -> bytes:
        """Return the file."""
        wanted = {tensor.name for tensor in outputs}
        for number, tensor in enumerate(inputs):
            shape = _shape(tensor)
            place = self._graph.input(f"input_{number}", shape, tensor.dtype)
            self._places[tensor.name] = place, shape
        for layer in layers:
            if layer.name in self._absorbed and layer.output.name not in wanted:
                continue
            self._layer_number = self._layers.index(layer)
            self._layer(layer, wanted)
        for tensor in outputs:
            self._graph.outputs.append(self._places[tensor.name][0])
        return self._graph.content()

    # ------------------------------------------------------------------ tensors

    def _fresh(self) -> str:
        return f"{self._layer_number}:{next(self._numbers)}"

    def _of_shape(self, name: str, shape: tuple[int, ...]) -> str:
        """Return a tensor in a shape of as many elements."""
        place, known = self._places[name]
        if known == shape:
            return place
        return self._graph.reshape(place, self._fresh(), shape)

    def _read(self, tensor: Tensor) -> str:
        return self._of_shape(tensor.name, _shape(tensor))

    def _keep(self, layer: Layer, place: str) -> None:
        self._places[layer.output.name] = place, _shape(layer.output)

    # ------------------------------------------------------------------ layers

    def _layer(self, layer: Layer, wanted: set[str]) -> None:
        graph, shape = self._graph, _shape(layer.output)
        if isinstance(layer, Weighted):
            self._keep(layer, self._weighted(layer))
        elif isinstance(layer, Add | Difference):
            self._keep(layer, self._sum(layer))
        elif isinstance(layer, Product):
            self._keep(layer, self._product(layer))
        elif isinstance(layer, Pool):
            source, pad, _ = self._fitted(layer, layer.inputs[0], layer.pad)
            place = graph.pool(
                layer.function, source, self._fresh(), shape, kernel=layer.kernel,
                stride=layer.stride, pad=pad,
            )  # fmt: skip
            self._keep(layer, self._clipped(layer, place, shape))
        elif isinstance(layer, Padding):
            source = self._read(layer.inputs[0])
            place = graph.pad(source, layer.sizes, layer.value, self._fresh(), shape)
            self._keep(layer, place)
        elif isinstance(layer, Interleaving):
            self._keep(layer, self._spread(layer))
        elif isinstance(layer, Repetition):
            source = self._read(layer.inputs[0])
            self._keep(layer, graph.repeat(source, layer.factor, self._fresh(), shape))
        elif isinstance(layer, Doubling):
            self._keep(layer, self._doubled(layer))
        elif isinstance(layer, Slicing):
            begin = (0, *stored_shape(layer.begin))
            place = graph.crop(self._read(layer.inputs[0]), begin, shape, self._fresh())
            self._keep(layer, place)
        elif isinstance(layer, Concatenation):
            axis = 1 + stored_shape(tuple(range(len(shape) - 1))).index(layer.axis)
            parts = [self._read(tensor) for tensor in layer.inputs]
            self._keep(layer, graph.concat(parts, axis, self._fresh(), shape))
        elif isinstance(layer, Rows) and isinstance(layer.function, TableMap):
            values = np.roll(layer.function.table.view(np.int8), 128)
            source = self._read(layer.inputs[0])
            self._keep(layer, graph.table(source, values, self._fresh(), shape))
        else:
            assert isinstance(layer, Reshaping), type(layer).__name__
            name = layer.inputs[0].name
            self._places[layer.output.name] = self._places[name]
            if layer.output.name in wanted:
                self._keep(layer, graph.reshape(self._places[name][0], self._fresh(), shape))

    def _weighted(self, layer: Weighted) -> str:
        graph = self._graph
        scaling = scaling_of(layer)
        assert not isinstance(scaling, str)  # by a rule
        source = layer.inputs[0]
        zero_point = zero_points_of(layer.requant)[0]
        bias = _bias(layer)
        absorbed = self._absorbed_by(layer)
        if absorbed is not None:
            source = absorbed.inputs[0]
            bias = _bias_around(layer, absorbed.value)
            zero_point = absorbed.value
        bias = bias.astype(np.int32 if source.dtype == "int8" else np.int64)
        maps = (1, layer.oy, layer.ox, layer.K)
        weight = np.moveaxis(layer.weight, 1, 3)  # [K, fy, fx, C / groups]
        if isinstance(absorbed, Interleaving):
            sums = graph.transposed(
                self._read(source), weight[:, ::-1, ::-1], bias, self._fresh(), maps,
                before=_before(layer, absorbed), stride=absorbed.distance, zero_point=zero_point,
            )  # fmt: skip
        else:
            pad = layer.pad if absorbed is None else absorbed.sizes
            place, pad, more = self._fitted(layer, source, pad)
            weight = np.pad(weight, ((0, 0), (0, 0), (0, more), (0, 0)))
            depthwise = isinstance(layer, Convolution) and layer.groups > 1
            if depthwise:
                each = layer.K // layer.C
                taps = weight.reshape(layer.C, each, *weight.shape[1:3])
                weight = np.transpose(taps, (2, 3, 0, 1))
            sums = graph.convolution(
                place, weight, bias, self._fresh(), maps, depthwise=depthwise, pad=pad,
                stride=layer.stride, dilation=layer.dilation, zero_point=zero_point,
            )  # fmt: skip
        if isinstance(scaling, Fractions):
            found = self._of_fractions(layer, sums, scaling, maps)
        else:
            zero, dtype = output_zero_point_of(layer), layer.output.dtype
            if dtype == "int16" and scaling.rounding == "double":
                # Sums of 48 bits have factors of 15 bits, and round once.
                sums = graph.rescale(
                    sums, (_SHORT_UNIT,), (_SHORT_UNIT_BITS,), "single", self._fresh(), maps,
                    zero_points=(0, 0), dtype="int32",
                )  # fmt: skip
            found = self._narrowed(sums, scaling, zero, maps, dtype)
        found = self._clipped(layer, found, maps)
        shape = _shape(layer.output)
        return found if shape == maps else graph.reshape(found, self._fresh(), shape)

    def _spread(self, layer: Interleaving) -> str:
        """Return a map with elements spread over it: each is padded by those behind it."""
        graph, (rows, columns, channels) = self._graph, _map(layer.inputs[0])
        (above, before), (dy, dx) = layer.start, layer.distance
        place = self._of_shape(layer.inputs[0].name, (1, rows * columns, 1, channels))
        wide = (1, rows * columns, dx, channels)
        place = graph.pad(place, (0, 0, 0, dx - 1), layer.value, self._fresh(), wide)
        row = columns * dx * channels
        place = graph.reshape(place, self._fresh(), (1, rows, 1, row))
        high = (1, rows, dy, row)
        place = graph.pad(place, (0, 0, 0, dy - 1), layer.value, self._fresh(), high)
        sizes = [rows * dy, columns * dx]
        place = graph.reshape(place, self._fresh(), (1, *sizes, channels))
        behind = layer.oy - above - sizes[0], layer.ox - before - sizes[1]
        if min(behind) < 0:
            sizes = [size + min(more, 0) for size, more in zip(sizes, behind, strict=True)]
            place = graph.crop(place, (0, 0, 0, 0), (1, *sizes, channels), self._fresh())
        below, after = (max(more, 0) for more in behind)
        pad = (above, before, below, after)
        return graph.pad(place, pad, layer.value, self._fresh(), _shape(layer.output))

    def _doubled(self, layer: Doubling) -> str:
        """Return a map of twice the size: repeated, with more of its ends, and filtered."""
        graph, channels = self._graph, layer.C
        before, (rows, columns) = int(layer.centred), (layer.iy, layer.ix)
        place = self._read(layer.inputs[0])
        for axis in (1, 2):
            sizes = [1, rows, columns, channels]
            last = [0, 0, 0, 0]
            last[axis] = sizes[axis] - 1
            end = [size if n != axis else 1 for n, size in enumerate(sizes)]
            parts = [place, graph.crop(place, last, end, self._fresh())]
            if before:
                parts.insert(0, graph.crop(place, (0, 0, 0, 0), end, self._fresh()))
            sizes[axis] += 1 + before
            place = graph.concat(parts, axis, self._fresh(), sizes)
            rows, columns = sizes[1:3]
        place = graph.repeat(place, 2, self._fresh(), (1, 2 * rows, 2 * columns, channels))
        taps = np.multiply.outer(_TAPS[layer.centred], _TAPS[layer.centred])
        weight = (taps * (_TAPS_SUM // taps.sum())).astype(np.int8)
        sizes = [layer.oy + len(taps) - 1, layer.ox + len(taps) - 1]
        place = graph.crop(place, (0, before, before, 0), (1, *sizes, channels), self._fresh())
        sums = graph.convolution(
            place, np.tile(weight[:, :, None, None], (1, 1, channels, 1)),
            np.zeros(channels, np.int32), self._fresh(), _shape(layer.output), depthwise=True,
            pad=(0, 0, 0, 0), stride=(1, 1), dilation=(1, 1), zero_point=0,
        )  # fmt: skip
        bits = _UNIT_BITS + _TAPS_SUM.bit_length() - 1
        return self._narrowed(sums, Scaling((_UNIT,), (bits,), "double"), 0, _shape(layer.output))

    def _narrowed(
        self, sums: str, scaling: Scaling, zero: int, shape: tuple[int, ...], dtype: str = "int8"
    ) -> str:
        """Return sums as bytes, or as another type."""
        return self._graph.rescale(
            sums, scaling.multipliers, scaling.shifts, scaling.rounding, self._fresh(), shape,
            zero_points=(0, zero), dtype=dtype,
        )  # fmt: skip

    def _widened(self, place: str, shape: tuple[int, ...]) -> str:
        """Return bytes as they are, as int32."""
        return self._graph.rescale(
            place, (_UNIT,), (_UNIT_BITS,), "single", self._fresh(), shape,
            zero_points=(0, 0), dtype="int32",
        )  # fmt: skip

    def _of_fractions(
        self, layer: Weighted, sums: str, how: Fractions, shape: tuple[int, ...]
    ) -> str:
        scaling = how.scaling
        parts = self._graph.rescale(
            sums, scaling.multipliers, scaling.shifts, scaling.rounding, self._fresh(), shape,
            zero_points=(0, 0), dtype="int32",
        )  # fmt: skip
        last = Scaling((_UNIT,), (_UNIT_BITS + how.bits,), "single")
        zero = output_zero_point_of(layer)
        return self._offset(parts, how.offsets, last, zero, shape, how.others)

    def _offset(
        self,
        parts: str,
        offsets: Sequence[tuple[int, ...]],
        last: Scaling,
        zero: int,
        shape: tuple[int, ...],
        others: Sequence[int] = (),
    ) -> str:
        """Return results with fraction bits as bytes; with two offsets, parts of both ways."""
        graph, ends = self._graph, []
        for offset in offsets:
            added = parts
            if any(offset):
                constant = graph.constant(np.array(offset, np.int32).reshape(1, 1, 1, -1))
                added = graph.add(parts, constant, self._fresh(), shape)
            ends.append(self._narrowed(added, last, zero, shape))
        if len(ends) == 1:
            return ends[0]
        first, second = (
            self._widened(graph.table(end, table, self._fresh(), shape), shape)
            for end, table in zip(ends, parts_of(zero, others), strict=True)
        )
        total = graph.add(first, second, self._fresh(), shape)
        return self._narrowed(total, Scaling((_UNIT,), (_UNIT_BITS,), "single"), 0, shape)

    def _product(self, layer: Product) -> str:
        graph, shape, requant = self._graph, _shape(layer.output), layer.requant
        assert isinstance(requant, TfliteRequant)  # by a rule
        scaling = scaling_of_product(requant)
        assert not isinstance(scaling, str)  # by a rule
        first, second = (
            self._centred(layer.inputs[at], requant.input_zero_points[at]) for at in (0, -1)
        )
        products = graph.multiply(first, second, self._fresh(), shape)
        zero, dtype = requant.output_zero_point, layer.output.dtype
        result = self._narrowed(products, scaling, zero, shape, dtype)
        return self._clipped(layer, result, shape)

    def _centred(self, tensor: Tensor, zero: int) -> str:
        """Return a tensor as int16, without its zero point."""
        place = self._read(tensor)
        if tensor.dtype == "int16":
            return place
        return self._graph.rescale(
            place, (_UNIT,), (_UNIT_BITS,), "single", self._fresh(), _shape(tensor),
            zero_points=(zero, 0), dtype="int16",
        )  # fmt: skip

    def _sum(self, layer: Add | Difference) -> str:
        graph, shape = self._graph, _shape(layer.output)
        found = sum_of(layer)
        assert not isinstance(found, str)  # by a rule
        first, second = (
            graph.rescale(
                self._read(tensor), (multiplier,), (shift,), found.rounding, self._fresh(),
                _shape(tensor), zero_points=(zero, 0), dtype="int32",
            )
            for tensor, multiplier, shift, zero in zip(
                (layer.inputs[0], layer.inputs[-1]), found.multipliers, found.shifts,
                found.zero_points, strict=False,
            )
        )  # fmt: skip
        combine = graph.subtract if isinstance(layer, Difference) else graph.add
        total = combine(first, second, self._fresh(), shape)
        last = Scaling(found.multipliers[2:], found.shifts[2:], found.rounding)
        if layer.output.dtype == "int16":
            result = self._narrowed(total, last, 0, shape, "int16")
        else:
            offsets = [(offset,) for offset in found.offsets]
            result = self._offset(total, offsets, last, output_zero_point_of(layer), shape)
        return self._clipped(layer, result, shape)

    def _clipped(self, layer: Layer, place: str, shape: tuple[int, ...]) -> str:
        if layer.clip == limits_of(layer.output):
            return place
        return self._graph.clamp(place, layer.clip, self._fresh(), shape)

    def _fitted(
        self, layer: Layer, tensor: Tensor, pad: tuple[int, int, int, int]
    ) -> tuple[str, tuple[int, int, int, int], int]:
        """Return the map and padding that windows read: TOSA takes nothing behind the last one.

        The third is 0, or how many columns of a wider kernel read what is not cropped.
        """
        rows, columns, channels = _map(tensor)
        top, left, bottom, right = pad
        (sy, sx), (dy, dx) = layer.stride, layer.dilation
        unread_rows = rows + top + bottom - (layer.fy - 1) * dy - 1 - (layer.oy - 1) * sy
        unread_columns = columns + left + right - (layer.fx - 1) * dx - 1 - (layer.ox - 1) * sx
        less = (max(unread_rows - bottom, 0), max(unread_columns - right, 0))
        more = 0
        if isinstance(layer, Weighted) and less[1] and less[1] % dx == 0:
            self.crops_columns |= self._crop_columns
            if not self._crop_columns:
                less, more = (less[0], 0), less[1] // dx
        place = self._of_shape(tensor.name, (1, rows, columns, channels))
        if any(less):
            sizes = (1, rows - less[0], columns - less[1], channels)
            place = self._graph.crop(place, (0, 0, 0, 0), sizes, self._fresh())
        kept = max(bottom - unread_rows, 0), max(right - unread_columns, 0)
        return place, (top, left, *kept), more

    def _absorbed_by(self, layer: Weighted) -> Padding | Interleaving | None:
        return next(
            (
                move
                for move in self._layers
                if isinstance(move, Padding | Interleaving)
                and move.name in self._absorbed
                and move.output.name == layer.inputs[0].name
            ),
            None,
        )


def _absorbed_moves(layers: Sequence[Layer]) -> set[str]:
    """Return the paddings and interleavings that convolutions behind them take for their own."""
    found = set()
    for move in layers:
        if not isinstance(move, Padding | Interleaving):
            continue
        readers = [each for each in layers if move.output.name in {t.name for t in each.inputs}]
        if readers and all(_takes(reader, move) for reader in readers):
            found.add(move.name)
    return found


def _takes(layer: Layer, move: Padding | Interleaving) -> bool:
    """Whether a convolution may pad its input itself, or be a transposed one."""
    if not isinstance(layer, Convolution) or any(layer.pad):
        return False
    if isinstance(move, Interleaving):
        alike = layer.groups == 1 and layer.stride == layer.dilation == (1, 1)
        # Others make Vela refuse the network, or place products wrongly.
        if not alike or move.distance != (2, 2) or max(_before(layer, move)) > 0:
            return False
    if layer.inputs[0].dtype == "int16":
        return move.value == 0  # the only zero point that there is
    bias = _bias_around(layer, move.value)
    return bool(np.array_equal(bias, bias.astype(np.int32)))


def _before(layer: Weighted, move: Interleaving) -> tuple[int, int]:
    """Return where the first element's first product goes: row and column of the sums."""
    return move.start[0] - layer.fy + 1, move.start[1] - layer.fx + 1


def _bias(layer: Weighted) -> Array:
    """Return the biases of a layer as it is requantized, int64 ``[K]``."""
    scaling = scaling_of(layer)
    more = scaling.biases if isinstance(scaling, Scaling) else ()
    own = np.zeros(layer.K, np.int64) if layer.bias is None else layer.bias.astype(np.int64)
    return own + np.array(more or 0, np.int64)


def _bias_around(layer: Weighted, zero_point: int) -> Array:
    """Return the biases with which the sums are the same around another zero point; int64."""
    moved = zero_point - zero_points_of(layer.requant)[0]
    sums = layer.weight.reshape(layer.K, -1).astype(np.int64).sum(1)
    return moved * sums + _bias(layer)


def _map(tensor: Tensor) -> tuple[int, int, int]:
    """Return rows, columns and channels of a map or vector."""
    if len(tensor.shape) == 1:
        return 1, 1, prod(tensor.shape)
    channels, rows, columns = tensor.shape
    return rows, columns, channels


def _shape(tensor: Tensor) -> tuple[int, ...]:
    """Return the shape of a tensor with the batch: rows of channels."""
    return (1, *stored_shape(tensor.shape))
