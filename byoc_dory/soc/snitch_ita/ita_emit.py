"""C for layers on ITA: the tasks of each tile."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.definition import slot
from byoc_dory.emit.staged import call_text
from byoc_dory.emit.text import Expr, add, mul, part_name, rendered
from byoc_dory.emit.tile_text import TileWriter
from byoc_dory.layers import Add, Attend, Gemm, Layer
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.region import Constant, Kernel
from byoc_dory.soc.base import Soc, round_up
from byoc_dory.soc.cluster.emit import row_kernel
from byoc_dory.soc.snitch_ita.ita_core import Ita
from byoc_dory.soc.snitch_ita.ita_program import (
    costs_of,
    identities,
    ita_program,
    pack,
    pitch_of,
)
from byoc_dory.tileloop.cycles import predicted_cycles
from byoc_dory.tileloop.program import TileProgram


@dataclass(frozen=True)
class ItaEmitter:
    """The emitter of ITA (see `byoc_dory.emit.Emitter`)."""

    core: Ita
    soc: Soc
    headers: tuple[str, ...] = ("cluster.h", "cluster_dma.h", "snitch_ita_driver.h")

    def layer(self, layer: Layer, plan: LayerPlan, options: TilingOptions, symbol: str) -> Kernel:
        """Return the function that runs ``layer`` tile by tile."""
        assert isinstance(layer, Gemm | Attend | Add), layer  # judged before
        program = ita_program(self.core, layer, plan)
        writer = TileWriter(program, address="HTVM_L1_BASE + {}")
        running = "running[tile % 2u]" if program.pipelined else "running"
        constant = scratch = None
        if isinstance(layer, Attend):
            scratch = plan.l1_weights
            compute = self._attend(layer, program, writer, running)
        else:
            if isinstance(layer, Add):
                data, what = identities(self.core, layer), "identities that sum the operands"
            else:
                data, what = pack(self.core, layer, plan.solution.tile.k), "weights and biases"
            constant = Constant(part_name(symbol, "weights"), data, f"{what} of {layer.name}")
            compute = call_text(program, writer, "task", running)
        return row_kernel(
            self.core, layer, plan, program, compute, symbol, constant,
            predicted_cycles(program, costs_of(self.soc, self.core, layer, program)),
            finish="snitch_ita_wait_for({})", scratch=scratch,
        )  # fmt: skip

    # ------------------------------------------------------------------ tasks

    def _attend(self, layer: Attend, program: TileProgram, writer: TileWriter, running: str) -> str:
        """Return scores with statistics, then context, for each head and 64 queries of the tile."""
        scores = layer.scores
        query, key, value = program.operands
        pitches = {op.name: op.block.l1_row_stride for op in program.operands}
        out_pitch = pitch_of(program.result)
        size, keys = layer.head_size, round_up(layer.keys, self.core.tile)
        unit = 0 if scores.softmax.step_bits else 1
        head: Expr = mul("head", f"{size}u") if layer.heads > 1 else 0
        rows: dict[str, Expr] = {"rows": self.core.tile, "activation": "SNITCH_ITA_ACT_IDENTITY"}
        row = mul("row", f"{pitches['query']}u")
        first: dict[str, Expr] = {
            **rows,
            "cols": keys,
            "inner": size,
            "length": layer.keys,
            "operation": "SNITCH_ITA_OP_QK",
            "bias_kind": "SNITCH_ITA_BIAS_NONE",
            "flags": "SNITCH_ITA_FLAG_UNIT_SHIFT" if unit else 0,
            **_requant("scores", program, writer),
            "left": _place(add(add(writer.place(query), row), head)),
            "left_stride": writer.value(pitches["query"]),
            "right": _place(add(writer.place(key), head)),
            "right_stride": writer.value(pitches["key"]),
            "out": _place(slot("L1_SCRATCH")),
            "out_stride": keys,
        }
        transposed = add(writer.place(value), mul(head, f"{pitches['value']}u"))
        out = add(writer.place(program.result), mul("row", f"{out_pitch}u"))
        second: dict[str, Expr] = {
            **rows,
            "cols": size,
            "inner": keys,
            "operation": "SNITCH_ITA_OP_AV",
            "bias_kind": "SNITCH_ITA_BIAS_NONE",
            **_requant("context", program, writer),
            "left": _place(slot("L1_SCRATCH")),
            "left_stride": keys,
            "right": _place(transposed),
            "right_stride": writer.value(pitches["value"]),
            "out": _place(add(out, head)),
            "out_stride": writer.value(out_pitch),
        }
        return rendered(
            "byoc_dory.soc.snitch_ita",
            "attend.c.jinja",
            heads=layer.heads,
            rows=writer.entry(program.compute.fields["rows"]),
            step=self.core.tile,
            first=first,
            second=second,
            running=running,
        )


def _requant(task: str, program: TileProgram, writer: TileWriter) -> dict[str, Expr]:
    """The requantization of one of attention's tasks."""
    begin = f"{task}.requant."
    fields = program.compute.fields
    own = {name: entry for name, entry in fields.items() if name.startswith(begin)}
    return {name.removeprefix(f"{task}."): text for name, text in writer.fields(own).items()}


def _place(offset: Expr) -> str:
    """Return the device address of a byte offset in L1."""
    return f"HTVM_L1_BASE + {offset}"
