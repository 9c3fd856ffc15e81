"""C for layers on N-EUREKA: a tile's jobs are started from registers that are among its constants.

There they are loaded into L1 with scales and biases; the cores would wait for each word in L2.

Addresses count from the tile's places: the first register from its weights, the next two from its
input and result, those of scales, shifts and biases from its constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from byoc_dory.emit.staged import Calls, Section, initialiser, staged_kernel
from byoc_dory.emit.text import Expr, part_name, rendered
from byoc_dory.emit.tile_text import TileWriter
from byoc_dory.layers import Array, Layer, Weighted
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.region import Constant, Kernel
from byoc_dory.soc.base import Soc
from byoc_dory.soc.cluster.cost import split_cycles
from byoc_dory.soc.cluster.emit import move_rows
from byoc_dory.soc.siracusa.neureka_core import Mode, Neureka
from byoc_dory.soc.siracusa.neureka_jobs import Grid, TileShape, fastest, planned
from byoc_dory.soc.siracusa.neureka_layer import view_of
from byoc_dory.soc.siracusa.neureka_program import (
    SUM,
    JobKind,
    constants_behind,
    costs_of,
    job_axis,
    job_kinds,
    neureka_program,
)
from byoc_dory.soc.siracusa.neureka_tiles import (
    FactorBlock,
    block_of,
    pack_block,
    packed_bytes,
    packed_weights,
    the_factors,
)
from byoc_dory.tileloop.axes import TileAxis
from byoc_dory.tileloop.cycles import predicted_cycles
from byoc_dory.tileloop.program import TileProgram
from byoc_dory.tileloop.values import Entry, Place

# Bits of the register conf0.
_SCALED = 1 << 4
_MODE = 5
_WEIGHT_MEMORY = 1 << 9
_PREFETCH = 1 << 10
_SCALE_32 = 2 << 12
_WEIGHT_OFFSET = 1 << 15
_SHIFT = 16
_SIGNED_OUTPUT = 1 << 23
_CHANNEL_SHIFT = 1 << 24
_BIAS = 1 << 25
_SIGNED_INPUT = 1 << 26


def registers_of(
    core: Neureka, layer: Weighted, job: Grid, shape: TileShape, block: FactorBlock, pitch: int
) -> Array:
    """Return the values of a job's registers in their order, uint32.

    Args:
        core: the engine's numbers.
        layer: the layer.
        job: the job.
        shape: the tile that it is part of.
        block: offsets in the tile's constants.
        pitch: bytes from pixel to pixel of the result.
    """
    _, prefetch = fastest(core, layer, job, shape)
    plan = planned(core, layer, job, shape, prefetch=prefetch)
    mode, halo = plan.mode, core.window(plan.mode) - 1
    view = view_of(layer)
    pixel, row = view.pixel, view.row
    out_row = pitch * view.columns
    if not job.own_rows:
        row, out_row = pixel * job.columns, pitch * job.columns
    left = view.left
    ko, ki = core.output_channels[mode], core.input_channels[mode]
    last_rows, last_columns = _last(job.rows, core.block), _last(job.columns, core.block)
    bottom, right = plan.padding_bottom, plan.padding_right
    channel = packed_bytes(mode, 1, view.channels, plan.weight_bits, core)
    values = (
        # Weights, input, output; scales, shifts, biases.
        -core.weight_window if core.weight_memory else 0,
        job.first * pixel - shape.top * row - left * pixel,
        job.first * pitch,
        block.scales,
        max(block.shifts, 0),
        max(block.biases, 0),
        # Strides of input, output, weights.
        *(pixel, row, 0),
        *(core.word_bytes, pitch, out_row),
        *(core.word_bytes, 0 if mode == Mode.DEPTHWISE3X3 else channel, 0),
        # The last tile of channels, the last block's outputs and inputs; their numbers.
        _pair(_last(shape.outputs, ko), _last(view.channels, ki)),
        _pair(last_rows, last_columns),
        _pair(last_rows + halo - bottom, last_columns + halo - right),
        _pair(-(-shape.outputs // ko), -(-view.channels // ki)),
        _pair(-(-job.rows // core.block), -(-job.columns // core.block)),
        # Padding, offset of the weights, mask, configuration.
        shape.top << 28 | right << 24 | bottom << 20 | left << 16,
        packed_weights(core, layer).offset,
        0,
        _conf0(core, layer, plan.weight_bits, mode, prefetch=prefetch),
    )
    assert len(values) == core.job_registers, len(values)
    return np.array([value % 2**32 for value in values], "<u4")


def _conf0(core: Neureka, layer: Weighted, bits: int, mode: Mode, *, prefetch: bool) -> int:
    factors = the_factors(layer)
    shift = 0 if factors.shift_per_channel else int(factors.shift[0])
    value = bits - 1 | _SCALED | mode << _MODE | _WEIGHT_OFFSET | shift << _SHIFT
    flags = {
        _WEIGHT_MEMORY: bool(core.weight_memory),
        _PREFETCH: prefetch,
        _SCALE_32: factors.scale_bytes == 4,
        _SIGNED_OUTPUT: factors.signed,
        _CHANNEL_SHIFT: factors.shift_per_channel,
        _BIAS: factors.biased,
        _SIGNED_INPUT: layer.inputs[0].dtype == "int8",
    }
    return value | sum(flag for flag, there in flags.items() if there)


def _last(size: int, step: int) -> int:
    """Return the size of the last part of ``step``."""
    return (size - 1) % step + 1


def _pair(high: int, low: int) -> int:
    return high << 16 | low


_PLACES = ("weights", "input", "output", "factors")
_WAIT_FOR_JOB, _WAIT_FOR_ALL = "siracusa_neureka_wait_for({})", "siracusa_neureka_wait()"
_POINTERS = ("from", "in", "to")  # fields of kernels


@dataclass(frozen=True)
class NeurekaEmitter:
    """The emitter of N-EUREKA (see `byoc_dory.emit.Emitter`)."""

    core: Neureka
    soc: Soc
    headers: tuple[str, ...] = (
        "htvm_hal.h",
        "cluster.h",
        "cluster_dma.h",
        "cluster_kernels.h",  # conversions at the borders of a region
        "siracusa_neureka_driver.h",
        "siracusa_neureka_keep.h",
        "siracusa_neureka_relu.h",
        "siracusa_neureka_windows.h",
    )

    def start(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """Return the function that starts ``layer``, which the one of `layer` waits for."""
        return self._kernel(layer, plan, part_name(symbol, "start"), "start")

    def layer(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """Return the function that runs ``layer`` tile by tile, or completes it."""
        return self._kernel(layer, plan, symbol, "finish" if plan.started else "whole")

    def _kernel(self, layer: Layer, plan: LayerPlan, symbol: str, section: Section) -> Kernel:
        assert isinstance(layer, Weighted), layer  # judged before
        program = neureka_program(self.core, layer, plan)
        if program.left is not None and view_of(layer).copied:
            raise program.error(
                "the cores copy pixels before they complete what the layer before has left",
                "let that layer complete its own tiles",
            )
        writer = TileWriter(program, address="HTVM_L1_BASE + {}")
        kinds = job_kinds(self.core, layer, program.axes[0], plan.solution.tile.k)
        calls = Calls(
            move=move_rows,
            compute=_before(program, writer) + _start(layer, program, writer, kinds, section),
            wait="cluster_dma_wait({})",
            wait_all="cluster_dma_wait_all()",
            finish=_WAIT_FOR_JOB if section == "whole" else _WAIT_FOR_ALL,
            fallible=False,
            after=_after(program, writer) + _sum(program),
            leave=_leave(program, writer),
            declarations=_comment_line(layer, kinds) if section != "finish" else "",
        )
        costs = costs_of(self.soc, self.core, layer)
        cycles = predicted_cycles(program, costs)
        constant, far = self._own_constants(layer, plan, program, symbol, section)
        if plan.hidden is not None:
            cycles = split_cycles(program, costs, plan.hidden)[section == "finish"]
        return staged_kernel(
            layer,
            plan,
            program,
            writer,
            calls,
            (self.core.name, self.core.title),
            symbol,
            cycles,
            constant,
            far,
            section,
        )

    def _own_constants(
        self, layer: Weighted, plan: LayerPlan, program: TileProgram, symbol: str, section: Section
    ) -> tuple[Constant | None, Constant | None]:
        """Return what a layer loads, and weights that stay in the weight memory.

        Behind the layer's constants are those of a sum beside it.
        """
        if section == "finish":
            return None, None
        behind = np.frombuffer(constants_behind(plan), np.uint8)
        data = np.concatenate([constants_of(self.core, layer, program), behind])
        what = "" if self.core.weight_memory else "weights, "
        about = f"jobs, {what}scales and biases of {layer.name}"
        return Constant(part_name(symbol, "weights"), data, about), self._far(layer, symbol)

    def _far(self, layer: Weighted, symbol: str) -> Constant | None:
        """Return the weights that stay in the weight memory."""
        memory = self.core.weight_memory
        if not memory:
            return None
        data = packed_weights(self.core, layer).data
        return Constant(
            part_name(symbol, "packed"), data, f"weights of {layer.name}", memory=memory
        )


def constants_of(core: Neureka, layer: Weighted, program: TileProgram) -> Array:
    """Return the blocks of constants of all ranges of output channels; uint8."""
    y, k = program.axes
    pitch = program.compute.fields["pitch"]
    assert isinstance(pitch, int), pitch
    blocks = []
    for span in k.spans:
        kinds = job_kinds(core, layer, y, span.out_size)
        block = block_of(core, layer, k.step, len(kinds))
        jobs = [registers_of(core, layer, kind.job, kind.shape, block, pitch) for kind in kinds]
        start, size = span.out_start, span.out_size
        blocks.append(pack_block(core, layer, block, np.stack(jobs), start, size))
    return np.concatenate(blocks)


def _start(
    layer: Weighted,
    program: TileProgram,
    writer: TileWriter,
    kinds: tuple[JobKind, ...],
    section: Section,
) -> str:
    """Return the statements that start a tile's jobs."""
    y = job_axis(layer, program.axes[0])
    count = len(y.kinds[0])
    before = [sum(job.kind < kind for job in kinds) for kind in range(count + 1)]
    return rendered(
        "byoc_dory.soc.siracusa",
        "neureka.c.jinja",
        jobs=writer.value(Place("weights"), offset=True),
        places={name: writer.entry(program.compute.fields[name]) for name in _PLACES},
        several=len(kinds) > count,
        first=_by_kind(y, lambda kind: before[kind]),
        end=_by_kind(y, lambda kind: before[kind + 1]),
        running="running[tile % 2u]" if program.pipelined else "running",
        waits=section == "whole",
        behind=program.left is not None,
        apart=program.left is not None and program.left.tiles == 1,
    )


def _by_kind(y: TileAxis, number: Callable[[int], int]) -> str:
    """Return a number of each kind of tile as a C expression of ``y``."""
    numbers = [number(kind) for kind in y.kinds[1]]
    text = f"{numbers[-1]}u"
    for at in range(len(numbers) - 1, 0, -1):
        if numbers[at - 1] != numbers[at]:
            text = f"y < {at}u ? {numbers[at - 1]}u : {text}"
    return text


def _before(program: TileProgram, writer: TileWriter) -> str:
    """Return the statements by which the cores copy what a tile's jobs read; may be empty."""
    return "".join(
        f"{declared}cluster_run(siracusa_neureka_{name}, &{name});\n"
        for name in ("windows", "blocks")
        if (declared := _kernel(name, program, writer, {}))
    )


def _after(program: TileProgram, writer: TileWriter) -> str:
    """Return the statements by which the cores complete a tile's result; empty if they do not."""
    return "".join(
        f"{declared}cluster_run(siracusa_neureka_{name}, &{name});\n"
        for name, declared in _finishing(program, writer)
    )


def _leave(program: TileProgram, writer: TileWriter) -> str:
    """Return the statements by which a tile is left to the next layer."""
    for name, declared in _finishing(program, writer):
        call = f"siracusa_neureka_leave({{}}, siracusa_neureka_{name}, &{name}, sizeof {name});\n"
        return declared.replace("{", "{{").replace("}", "}}") + call
    return "siracusa_neureka_leave({}, NULL, NULL, 0u);\n"


def _finishing(program: TileProgram, writer: TileWriter) -> Iterator[tuple[str, str]]:
    """Yield the kernel with which the cores complete a tile's result, and its declared fields."""
    out = _pointer(Place("out"), writer)
    for name, pointer in (("relu", "data"), ("keep", "to")):
        declared = _kernel(name, program, writer, {pointer: out})
        if declared:
            yield name, declared


def _sum(program: TileProgram) -> str:
    """Return the statements by which the cores compute the sum of a tile; empty if they do not."""
    writer = TileWriter(program, address="cluster_l1({})")
    fields = {
        name.removeprefix(f"{SUM}."): writer.entry(entry)
        for name, entry in program.compute.fields.items()
        if name.startswith(f"{SUM}.")
    }
    if not fields:
        return ""
    return (
        f"const cluster_add_t sum = {{\n{initialiser(fields)}}};\ncluster_run(cluster_add, &sum);\n"
    )


def _kernel(name: str, program: TileProgram, writer: TileWriter, values: Mapping[str, Expr]) -> str:
    """Return the fields of a kernel as C, if they are in the program; empty if none are."""
    own = {
        field.removeprefix(f"{name}."): entry
        for field, entry in program.compute.fields.items()
        if field.startswith(f"{name}.")
    }
    if not own:
        return ""
    fields = dict(values)
    for field, entry in own.items():
        fields[field] = _pointer(entry, writer) if field in _POINTERS else writer.entry(entry)
    return f"const siracusa_neureka_{name}_t {name} = {{\n{initialiser(fields)}}};\n"


def _pointer(place: Entry, writer: TileWriter) -> str:
    assert not isinstance(place, str | tuple), place
    return f"cluster_l1({writer.value(place, offset=True)})"


def _comment_line(layer: Weighted, kinds: tuple[JobKind, ...]) -> str:
    """Return a comment that lists the jobs."""
    lines = ["/* The jobs of a tile, whose registers begin its constants:\n"]
    lines += [f" *   {number}: {text}\n" for number, text in enumerate(_jobs(layer, kinds))]
    return "".join([*lines, " */\n"])


def _jobs(layer: Weighted, kinds: tuple[JobKind, ...]) -> Iterator[str]:
    for kind in kinds:
        job, shape = kind.job, kind.shape
        text = f"{job.rows}x{job.columns} pixels"
        if not job.own_rows and (job.rows, job.columns) != (shape.rows, layer.ox):
            text += f" of {shape.rows}x{layer.ox}"
            text += f", from pixel {job.first} on" if job.first else ""
        if shape.top:
            text += f", {shape.top} row{'s' if shape.top > 1 else ''} of zeros above"
        yield text
