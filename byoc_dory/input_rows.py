"""An input whose rows the host converts while an accelerator computes the first layers.

The first layers of a region are computed in bands of rows, all of them for one band before the
next.  A band of the last layer needs some rows of those before; rows that two bands need are
computed twice, as what stays in L1 is whole.  The rows of the input that a band needs are converted
before it, and while the accelerator computes the bands before.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from byoc_dory.cost import Cost
from byoc_dory.emit.layout import TensorLayout
from byoc_dory.errors import TileProgramError
from byoc_dory.layers import Convolution, Layer, MapRows, Tensor
from byoc_dory.plan import plan_alone
from byoc_dory.region import Region
from byoc_dory.soc.base import Accelerator
from byoc_dory.tiling.problem import solution_of

_MOST_BANDS = 12


@dataclass(frozen=True, eq=False)
class InputRows:
    """A region whose first layers are computed in bands of rows.

    Attributes:
        layers: all layers of the region, the bands' first, in the order of their execution.
        homes: the accelerator of each, by the layer's name.
        conversions: rows of the input, each with the number of the layer after whose start the host
            converts them; -1: before all layers.
        row_cycles: predicted cycles of converting a row.
        saved: estimated cycles that the bands save.
    """

    layers: tuple[Layer, ...]
    homes: Mapping[str, Accelerator]
    conversions: Mapping[int, MapRows]
    row_cycles: float
    saved: float

    @property
    def starts(self) -> dict[str, int]:
        """The layers that are started, each with its own number: only the host works beside it."""
        parts = [layer for layer in self.layers if isinstance(layer.output, MapRows)]
        return {layer.name: number for number, layer in enumerate(parts)}

    def beside(self, number: int) -> int:
        """Return the predicted cycles of the host's work beside a layer."""
        rows = self.conversions.get(number)
        return 0 if rows is None else round(rows.shape[1] * self.row_cycles)

    @property
    def cycles(self) -> int:
        """Predicted cycles of all conversions."""
        return sum(map(self.beside, self.conversions))


def first_layers_by_rows(
    region: Region, homes: Mapping[str, Accelerator], layout: TensorLayout, cost: Cost
) -> InputRows | None:
    """Return a region with its first layers in bands of rows; None if that saves nothing.

    Args:
        region: its layers, inputs and outputs.
        homes: the accelerator of each layer, by the layer's name.
        layout: layout of the accelerators' tensors.
        cost: cycles on the SoC, with the options of the tiler.
    """
    source = first_input(region)
    if source is None or layout.native(source) or not layout.has_rows_apart(source):
        return None
    best = _first_peak(
        bands
        for layers in _chains(region, homes)
        for bands in _Chain(region, source, layers, homes, layout, cost).in_bands()
    )
    return best if best is not None and best.saved > 0 else None


def _first_peak(found: Iterable[InputRows]) -> InputRows | None:
    """Return the first one that saves more than the next, without asking for those behind.

    More bands, and more layers in bands, hide more of the conversion; from some number on, rows
    that are computed twice take longer than that.
    """
    best: InputRows | None = None
    for bands in found:
        if best is not None and bands.saved < best.saved:
            return best
        best = bands
    return best


def first_input(region: Region) -> Tensor | None:
    """Return the input that the first layer reads, in its layout outside; None if it reads none."""
    name = region.layers[0].inputs[0].name
    return next((tensor for tensor in region.inputs if tensor.name == name), None)


def check_input_rows(
    layers: Sequence[Layer], conversions: Mapping[int, MapRows], region: str
) -> None:
    """Check that the rows of an input that layers read are converted before they are started.

    Args:
        layers: the layers, in the order in which they are started.
        conversions: rows, each with the number of the layer after whose start they are converted.
        region: name of the region, for messages.

    Raises:
        TileProgramError: a layer is started before.
    """
    for number, layer in enumerate(layers):
        for read in layer.inputs:
            before = [
                rows
                for place, rows in conversions.items()
                if place < number and rows.stored.name == read.stored.name
            ]
            if not isinstance(read, MapRows) or not read.inside:
                continue
            missing = _numbers(read).difference(*map(_numbers, before))
            if missing:
                raise TileProgramError(
                    f"row {min(missing)} of '{read.stored.name}' is read before it is converted",
                    where=f"region '{region}', layer '{layer.name}'",
                    hint="convert it before the layer is started",
                )


def _numbers(rows: MapRows) -> set[int]:
    return set(range(rows.first, rows.first + rows.shape[1]))


def _chains(region: Region, homes: Mapping[str, Accelerator]) -> Iterator[tuple[Convolution, ...]]:
    """Yield the first layers, each of which is the only one that reads the one before."""
    outputs = {tensor.name for tensor in region.outputs}
    reads = [tensor.name for layer in region.layers for tensor in layer.inputs]
    chain: list[Convolution] = []
    for layer in region.layers:
        if not isinstance(layer, Convolution) or reads.count(layer.inputs[0].name) > 1:
            return
        if chain and (layer.inputs[0] != chain[-1].output or chain[-1].output.name in outputs):
            return
        if not homes[layer.name].computes_beside_host(layer):
            return
        chain.append(layer)
        yield tuple(chain)


class _Chain:
    """The first layers of a region, and what they take in bands."""

    def __init__(
        self,
        region: Region,
        source: Tensor,
        layers: Sequence[Convolution],
        homes: Mapping[str, Accelerator],
        layout: TensorLayout,
        cost: Cost,
    ) -> None:
        self._region, self._layers, self._homes, self._cost = region, layers, homes, cost
        self._source = source
        whole = _rows_of(self._source, range(self._source.shape[1]), 0, inside=True)
        conversion = layout.prologue(self._source, self._source.name, "_", rows=whole)
        self._row_cycles = conversion.predicted_cycles / self._source.shape[1]

    def in_bands(self) -> Iterator[InputRows]:
        """Yield the layers in the number of bands that saves most; nothing if no band fits L1."""
        best = _first_peak(self._in_more_bands())
        if best is not None:
            yield best

    def _in_more_bands(self) -> Iterator[InputRows]:
        """Yield the layers in more and more bands, as far as they fit L1."""
        height, in_turn = self._layers[-1].oy, self._in_turn()
        steps = {-(-height // count) for count in range(2, _MOST_BANDS + 1)}
        for step in sorted(steps, reverse=True):
            bands = [
                self._band(number, range(first, min(first + step, height)))
                for number, first in enumerate(range(0, height, step))
            ]
            found = self._scheduled(bands, in_turn)
            if found is not None:
                yield found

    def _in_turn(self) -> float:
        """Return the cycles of conversion and layers if they are not divided.

        What the last layer leaves in L1 is then not loaded by the first one that reads it.
        """
        result = self._layers[-1].output.name
        following = next(
            (
                layer
                for layer in self._region.layers[len(self._layers) :]
                if layer.inputs[0].name == result
            ),
            None,
        )
        total = self._source.shape[1] * self._row_cycles
        for number, layer in enumerate(self._layers):
            total += self._cycles(layer, found=number > 0, stays=following is not None)
        if following is not None:
            total += self._cycles(following, found=True, stays=True)
            total -= self._cycles(following, found=False, stays=True)
        return total

    def _scheduled(self, bands: Sequence[Sequence[Layer]], in_turn: float) -> InputRows | None:
        """Return bands with the conversions beside them; None if one does not fit L1."""
        conversions: dict[int, MapRows] = {}
        last, done = _end(bands[-1]), 0
        now = 0.0

        def convert(number: int, end: int) -> float:
            nonlocal done
            rows = range(done, min(end, last))
            if rows:
                conversions[number] = _rows_of(self._source, rows, len(conversions), inside=True)
                done = rows.stop
            return len(rows) * self._row_cycles

        now += convert(-1, _end(bands[0]))
        # What the next band needs must be there at the end of this one.
        needed = {band[-1].name: _end(after) for band, after in itertools.pairwise(bands)}
        parts = list(itertools.chain(*bands))
        for number, part in enumerate(parts):
            home = self._homes[part.whole_name]
            if not _fits(home, part, self._cost):
                return None
            computing = home.started_cycles(self._cost.soc, part, self._cost.options)
            position = number % len(self._layers)
            now += self._cycles(part, found=position > 0, stays=position + 1 < len(self._layers))
            end = max(done + round(computing / self._row_cycles), needed.get(part.name, 0))
            now += max(0.0, convert(number, end) - computing)
        rest = self._region.layers[len(self._layers) :]
        homes = {layer.name: self._homes[layer.whole_name] for layer in (*parts, *rest)}
        return InputRows((*parts, *rest), homes, conversions, self._row_cycles, in_turn - now)

    def _cycles(self, layer: Layer, *, found: bool, stays: bool) -> float:
        """Return the predicted cycles of a layer in one tile, or as it does best by itself.

        ``found``, ``stays``: whether its operand is in L1, and its result stays there.
        """
        home, cost = self._homes[layer.whole_name], self._cost
        if not _fits(home, layer, cost):
            return cost.best_cycles(home, layer)
        problem = home.problem(cost.soc, layer, cost.options)
        plan = plan_alone(layer, solution_of(problem, problem.whole), home.name, problem)
        residents = (found, *(False,) * (len(layer.inputs) - 1))
        return cost.layer_cost(home, layer)(
            replace(plan, resident_inputs=residents, resident_output=stays)
        )

    def _band(self, number: int, rows: range) -> list[Layer]:
        """Return the parts of all layers that some rows of the last one's result need."""
        parts: list[Layer] = []
        inside = True  # the input, and the last result, are in L2
        for layer in reversed(self._layers):
            top, left, bottom, right = layer.pad
            first = rows.start * layer.stride[0] - top
            end = rows[-1] * layer.stride[0] - top + (layer.fy - 1) * layer.dilation[0] + 1
            read = range(max(first, 0), min(end, layer.iy))
            source = layer.inputs[0]
            part = replace(
                layer,
                name=_name(layer.name, number),
                inputs=(_rows_of(source, read, number, inside=layer is self._layers[0]),),
                output=_rows_of(layer.output, rows, number, inside=inside),
                pad=(max(0, -first), left, max(0, end - layer.iy), right),
            )
            parts.insert(0, part)
            rows, inside = read, False
        return parts


def _fits(home: Accelerator, layer: Layer, cost: Cost) -> bool:
    problem = home.problem(cost.soc, layer, cost.options)
    return problem.tile_fits(problem.whole)


def _end(band: Sequence[Layer]) -> int:
    """Return the number of the row of the input behind those that a band reads."""
    rows = band[0].inputs[0]
    assert isinstance(rows, MapRows)
    return rows.first + rows.shape[1]


def _rows_of(tensor: Tensor, rows: range, number: int, *, inside: bool) -> MapRows:
    channels, _, columns = tensor.shape
    return MapRows(
        _name(tensor.name, number),
        (channels, len(rows), columns),
        tensor.dtype,
        tensor.layout,
        whole=tensor,
        first=rows.start,
        inside=inside,
    )


def _name(name: str, number: int) -> str:
    return f"{name}.r{number}"
