"""C for layers on N-EUREKA: constants for each kind of tile, and the start of a tile's jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from byoc_dory.emit.staged import Calls, initialiser, staged_kernel
from byoc_dory.emit.text import Expr, environment
from byoc_dory.emit.tile_text import TileWriter
from byoc_dory.layers import Layer, Weighted
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.region import Constant, Kernel
from byoc_dory.soc.base import Soc
from byoc_dory.soc.cluster.layer_text import move_rows
from byoc_dory.soc.siracusa.neureka_core import Neureka
from byoc_dory.soc.siracusa.neureka_cost import costs_of
from byoc_dory.soc.siracusa.neureka_jobs import Grid, TileShape, jobs_of
from byoc_dory.soc.siracusa.neureka_program import neureka_program
from byoc_dory.soc.siracusa.neureka_registers import registers_of
from byoc_dory.soc.siracusa.neureka_tiles import block_of, pack, packed_weights
from byoc_dory.tileloop.axes import TileAxis
from byoc_dory.tileloop.cycles import predicted_cycles
from byoc_dory.tileloop.program import TileProgram
from byoc_dory.tileloop.values import Place

__all__ = ["NeurekaEmitter"]

_TEMPLATE = "neureka.c.jinja"


@dataclass(frozen=True)
class _Job:
    """A job in C: a comment, and its registers by name."""

    what: str
    registers: dict[str, Expr]


@dataclass(frozen=True)
class NeurekaEmitter:
    """The emitter of N-EUREKA (see `byoc_dory.emit.Emitter`)."""

    core: Neureka
    soc: Soc
    headers: tuple[str, ...] = (
        "htvm_hal.h",
        "cluster.h",
        "cluster_dma.h",
        "siracusa_neureka_driver.h",
        "siracusa_neureka_relu.h",
    )

    def layer(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """Return the function that runs ``layer`` tile by tile."""
        assert isinstance(layer, Weighted), layer  # judged before
        program = neureka_program(layer, plan, self.core)
        writer = TileWriter(program, address="HTVM_L1_BASE + {}")
        text = self._text(layer, plan, program, writer)
        calls = Calls(
            move=move_rows,
            compute=text.start(),
            wait="cluster_dma_wait({})",
            wait_all="cluster_dma_wait_all()",
            finish="siracusa_neureka_wait_for({})",
            fallible=False,
            after=_relu(program, writer),
            declarations=text.declarations(),
        )
        data = pack(layer, plan.solution.tile.k, self.core)
        what = "scales and biases" if self.core.weight_memory else "weights, scales and biases"
        return staged_kernel(
            layer,
            plan,
            program,
            writer,
            calls,
            (self.core.name, self.core.title),
            symbol,
            predicted_cycles(program, costs_of(layer, self.core, self.soc)),
            Constant(f"{symbol}_weights", data, f"{what} of {layer.name}"),
            self._far(layer, symbol),
        )

    def _far(self, layer: Weighted, symbol: str) -> Constant | None:
        """Return the weights that stay in the weight memory."""
        if not self.core.weight_memory:
            return None
        data = packed_weights(layer, self.core).data
        memory = self.core.weight_memory
        return Constant(f"{symbol}_packed", data, f"weights of {layer.name}", memory=memory)

    def _text(
        self, layer: Weighted, plan: LayerPlan, program: TileProgram, writer: TileWriter
    ) -> Any:
        """Return the template's module: the macros ``declarations`` and ``start``."""
        kinds = list(self._kinds(layer, plan, program))
        first = [0]
        for jobs in kinds:
            first.append(first[-1] + len(jobs))
        y, k = program.axes
        places = ("weights", "input", "output", "factors")
        fields = program.compute.fields
        number = len(kinds) == 1
        return _environment().get_template(_TEMPLATE).make_module(
            {
                "jobs": [job for jobs in kinds for job in jobs],
                "many": "the job of each tile" if number else "the jobs of each kind of tile",
                "row_kinds": y.kinds[1],
                "several": any(len(jobs) > 1 for jobs in kinds),
                "first": first,
                "kind": _kind(y, k),
                "places": {name: writer.entry(fields[name]) for name in places},
                "running": "running[tile % 2u]" if program.pipelined else "running",
            }
        )  # fmt: skip

    def _kinds(
        self, layer: Weighted, plan: LayerPlan, program: TileProgram
    ) -> Iterator[tuple[_Job, ...]]:
        """Yield the jobs of each kind of tile: kinds of ranges of rows, then of channels."""
        y, k = program.axes
        block = block_of(layer, plan.solution.tile.k, self.core)
        pitch = program.compute.fields["pitch"]
        assert isinstance(pitch, int), pitch
        for row in y.kinds[0]:
            span = y.spans[row]
            for column in k.kinds[0]:
                outputs = k.spans[column].out_size
                shape = TileShape(span.out_size, span.in_size, span.pad, outputs)
                yield tuple(
                    _Job(
                        _what(layer, job, shape),
                        registers_of(layer, job, shape, block, pitch, self.core),
                    )
                    for job in jobs_of(layer, shape, self.core)
                )


def _relu(program: TileProgram, writer: TileWriter) -> str:
    """Return the statements by which the cores clip a tile's result at 0; empty without ReLU."""
    fields = program.compute.fields
    own = {name: entry for name, entry in fields.items() if name.startswith("relu.")}
    if not own:
        return ""
    values: dict[str, Expr] = {"data": f"cluster_l1({writer.value(Place('out'), offset=True)})"}
    values |= {name.removeprefix("relu."): text for name, text in writer.fields(own).items()}
    return (
        f"const siracusa_neureka_relu_t relu = {{\n{initialiser(values)}}};\n"
        "cluster_run(siracusa_neureka_relu, &relu);\n"
    )


def _what(layer: Weighted, job: Grid, shape: TileShape) -> str:
    """Return a job's sizes as text."""
    pixels = f"{job.rows}x{job.columns} pixels"
    if not job.own_rows and (job.rows, job.columns) != (shape.rows, layer.ox):
        pixels += f" of {shape.rows}x{layer.ox}"
        pixels += f", from pixel {job.first} on" if job.first else ""
    top = f", {shape.top} rows of zeros above" if shape.top else ""
    return f"{pixels}, C={layer.C} -> K={shape.outputs}{top}"


def _kind(y: TileAxis, k: TileAxis) -> str:
    """Return the number of a tile's kind as C."""
    rows, channels = len(y.kinds[0]), len(k.kinds[0])
    terms = []
    if rows > 1:
        terms.append("kind_of[y]" + (f" * {channels}u" if channels > 1 else ""))
    if channels > 1:
        terms.append(f"(k + 1u < {k.count}u ? 0u : 1u)")
    return " + ".join(terms) or "0u"


def _environment() -> Any:
    return environment("byoc_dory.soc.siracusa")
