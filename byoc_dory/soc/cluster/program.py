"""The tile program of a layer on the cores: places of its tiles, kernels, their order."""

from __future__ import annotations

from dataclasses import replace

from byoc_dory.definition import slot
from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import (
    Add,
    CachedAttention,
    Combination,
    Convolution,
    Dense,
    Gemm,
    Layer,
    Matmul,
    Pool,
    Rows,
    Weighted,
)
from byoc_dory.layers.rowwise import AffineNorm, ItaSoftmax, LayerNorm, RmsNorm, TableSoftmax
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.cluster.attention import attention_fields
from byoc_dory.soc.cluster.core import ClusterCores
from byoc_dory.soc.cluster.packing import block_of, has_sum_table, per_channel
from byoc_dory.soc.cluster.requant import (
    Division,
    division_of,
    leaves_32_bits,
    mul_shift,
    norm_leaves_32_bits,
)
from byoc_dory.soc.cluster.rows import map_tiles, row_program
from byoc_dory.soc.cluster.tiles import (
    block_bytes,
    operands_of,
    result_of_rows,
    rows_of,
    scratch_bytes,
    units_of,
)
from byoc_dory.tileloop.axes import TileAxis, halo_axis, plain_axis
from byoc_dory.tileloop.pipeline import Action, Block, Pipeline, Verb
from byoc_dory.tileloop.program import Compute, Operand, TileProgram, weights_of
from byoc_dory.tileloop.values import Entry, Own, Place, Value

CORES_IN_TURN = Pipeline(
    "in turn",
    (Action(Verb.LOAD), Action(Verb.ARRIVE), Action(Verb.COMPUTE), Action(Verb.STORE)),
)
CORES_BESIDE = Pipeline(
    "a tile is computed while the next is loaded",
    (Action(Verb.LOAD), Action(Verb.ARRIVE, 1), Action(Verb.COMPUTE, 1), Action(Verb.STORE, 1)),
)
ENGINE_IN_TURN = Pipeline(
    "in turn",
    (
        Action(Verb.LOAD),
        Action(Verb.ARRIVE),
        Action(Verb.START),
        Action(Verb.FINISH),
        Action(Verb.STORE),
    ),
)
CORES_APART = Pipeline("started, and finished after other layers", ENGINE_IN_TURN.actions)
"""Of a single tile (`LayerPlan.started`): what comes from `Verb.FINISH` on has its own function."""

ENGINE_BESIDE = Pipeline(
    "of three tiles one is loaded, one computed, one stored",
    (
        Action(Verb.ARRIVE, 1),
        Action(Verb.START, 1),
        Action(Verb.FINISH, 2),
        Action(Verb.STORE, 2),
        Action(Verb.LOAD),
    ),
)

ENGINE_BEHIND_COPIES = Pipeline(
    "of three tiles one is loaded, one copied and started, one stored",
    (
        Action(Verb.LOAD),
        Action(Verb.ARRIVE, 1),
        Action(Verb.START, 1),
        Action(Verb.FINISH, 2),
        Action(Verb.STORE, 2),
    ),
)
"""Of tiles that the cores copy before they are started: their buffers are free again then."""


DONE = "done"
"""The call of a tile that was computed together with the layer before."""

_WEIGHTS = Place("weights")
_OUT = Place("out")


def cluster_program(
    core: ClusterCores, layer: Layer, plan: LayerPlan, all_cores: int
) -> TileProgram:
    """Return the tile program of a layer under a plan.

    Args:
        core: the cores that compute it.
        layer: the layer.
        plan: its plan.
        all_cores: number of cores that are there.

    Raises:
        UnsupportedError: no kernel computes this layer.
    """
    tile = plan.solution.tile
    units, _, out_unit = units_of(layer)
    weighted = isinstance(layer, Weighted)
    y = halo_axis(
        "y", "rows", units, tile.y, rows_of(layer), layer.fy, layer.stride[0], layer.pad[0]
    )
    k = plain_axis("k", "columns", layer.K if weighted else out_unit, tile.k)
    if isinstance(layer, Convolution):
        horizontal = (layer.fx, layer.stride[1], layer.pad[1])
        x = halo_axis("x", "columns of the map", layer.ox, tile.x, layer.ix, *horizontal)
        axes, operands, out = map_tiles(layer, plan, y, x, k)
        kernel = "cluster_depthwise" if layer.depthwise else "cluster_conv2d"
        struct, fields = "cluster_conv", _conv(core, layer, (y, x, k), operands[0], out)
    else:
        axes, operands = (y, k), operands_of(core, layer, plan, y, k)
        out = result_of_rows(core, layer, plan, y, k)
        kernel, struct, fields = _kernel(core, layer, y, k, tile.k, operands, out)
    if plan.ahead:
        done = Compute(DONE, {"in": fields["in"], "out": fields["out"]})
        return row_program(layer, plan, axes, operands, out, done, CORES_IN_TURN, CORES_BESIDE)
    block = block_bytes(core, layer, tile.k)
    if block:
        operands += (weights_of(plan, k.index * block, Block.run(block), block),)
    if scratch_bytes(core, layer):
        fields["scratch"] = f"cluster_l1({slot('L1_SCRATCH')})"
        if core.cores < all_cores:
            fields["workers"] = core.cores
        if core.windows and kernel == "cluster_conv2d":
            fields["windows"] = core.windows
    compute = Compute(
        kernel,
        fields,
        struct=f"{struct}_t",
        function=f"cluster_run({kernel}, &{{}})",
    )
    if plan.started:
        apart = replace(compute, function=f"cluster_start({kernel}, &{{0}}, sizeof {{0}})")
        if plan.l1_output == operands[0].l1:
            out = replace(out, over=operands[0].name)
        return row_program(layer, plan, axes, operands, out, apart, CORES_APART, CORES_APART)
    return row_program(layer, plan, axes, operands, out, compute, CORES_IN_TURN, CORES_BESIDE)


def is_ahead(program: TileProgram) -> bool:
    """Whether the tiles of a program are computed together with the layer before."""
    return not program.compute.struct


def is_apart(program: TileProgram) -> bool:
    """Whether a program's tile is computed without the core in control."""
    return program.in_turn is CORES_APART


# ---------------------------------------------------------------------- kernels

_ROW_KERNELS = {
    TableSoftmax: ("cluster_table_softmax", "cluster_table_softmax"),
    ItaSoftmax: ("cluster_ita_softmax", "cluster_ita_softmax"),
    LayerNorm: ("cluster_layer_norm", "cluster_norm"),
    RmsNorm: ("cluster_rms_norm", "cluster_norm"),
    AffineNorm: ("cluster_affine_norm", "cluster_norm"),
}
_MAP = ("cluster_map", "cluster_map")


def _kernel(
    core: ClusterCores,
    layer: Layer,
    y: TileAxis,
    k: TileAxis,
    tile_k: int,
    operands: tuple[Operand, ...],
    out: Operand,
) -> tuple[str, str, dict[str, Entry]]:
    """Return the tile's kernel, the name of its struct, and the fields of the struct."""
    match layer:
        case Gemm() | Dense():
            return "cluster_gemm", "cluster_gemm", _gemm(core, layer, y, k, tile_k, _pitch(out))
        case CachedAttention():
            return "cluster_attention", "cluster_attention", attention_fields(layer, y)
        case Matmul():
            return "cluster_matmul", "cluster_matmul", _matmul(core, layer, y, k)
        case Add():
            return "cluster_add", "cluster_add", _add(core, layer, y, operands)
        case Combination():
            return "cluster_combine", "cluster_combine", _combine(layer, y, operands)
        case Pool():
            return "cluster_average", "cluster_average", _average(layer, y)
        case Rows():
            kernel, struct = _ROW_KERNELS.get(type(layer.function), _MAP)
            return kernel, struct, _rows(layer, y)
        case _:
            raise UnsupportedError(f"no kernel for {layer.op}", where=f"layer '{layer.name}'")


def _pitch(out: Operand) -> Value:
    """Return the bytes from row to row of a tile's result."""
    return out.block.l2_row_stride if out.resident else out.block.l1_row_stride


def _requant(core: ClusterCores | None, layer: Layer, tile_k: int) -> dict[str, Entry]:
    """Return the fields of a requantization; kernels for SIMD find most of it in their records."""
    requant = mul_shift(layer)
    assert requant is not None
    fields: dict[str, Entry] = {}
    if core is not None and core.simd:
        pass
    elif per_channel(layer):
        assert isinstance(layer, Weighted)
        block = block_of(layer, tile_k)
        fields["requant.muls"] = _WEIGHTS + block.muls
        fields["requant.adds"] = _WEIGHTS + block.adds
        fields["requant.shifts"] = _WEIGHTS + block.shifts
    else:
        fields["requant.mul"] = Own("mul", requant.mul[0])
        fields["requant.add"] = Own("add", requant.add[0])
        fields["requant.shift"] = Own("shift", requant.shift[0])
    low, high = layer.clip
    return {**fields, "requant.low": low, "requant.high": high}


def _flags(layer: Layer, *more: str) -> str:
    flags = list(more)
    if layer.inputs[0].dtype == "uint8":
        flags.append("CLUSTER_IN_UNSIGNED")
    if layer.output.dtype == "uint8":
        flags.append("CLUSTER_OUT_UNSIGNED")
    requant = mul_shift(layer)
    if isinstance(layer, Rows):
        division = division_of(layer)
        if norm_leaves_32_bits(layer) or division is Division.SLOW:
            flags.append("CLUSTER_WIDE")
        elif division is Division.LONG:
            flags.append("CLUSTER_LONG")
    elif requant is not None:
        if leaves_32_bits(layer, requant):
            flags.append("CLUSTER_WIDE")
        if isinstance(layer, Weighted) and per_channel(layer):
            flags.append("CLUSTER_PER_CHANNEL")
    return " | ".join(flags) or "0"


def _weights(core: ClusterCores, layer: Weighted, tile_k: int) -> dict[str, Entry]:
    block = block_of(layer, tile_k, simd=core.simd)
    fields: dict[str, Entry] = {"weights": _WEIGHTS + block.weights}
    if block.bias >= 0:
        fields["bias"] = _WEIGHTS + block.bias
    return fields


def _gemm(
    core: ClusterCores,
    layer: Gemm | Dense,
    y: TileAxis,
    k: TileAxis,
    tile_k: int,
    out_pitch: Value,
) -> dict[str, Entry]:
    block = block_of(layer, tile_k, simd=core.simd)
    fields: dict[str, Entry] = {"in": Place("in"), **_weights(core, layer, tile_k), "out": _OUT}
    if block.table >= 0:
        fields["table"] = _WEIGHTS + block.table
    transposed = isinstance(layer, Gemm) and layer.transposed
    flags = ("CLUSTER_OUT_TRANSPOSED",) if transposed else ()
    return {
        **fields,
        "rows": y.out_size,
        "k": k.out_size,
        "c": layer.C,
        "in_pitch": layer.C,
        "out_pitch": out_pitch,
        "flags": _flags(layer, *flags),
        **_requant(core, layer, tile_k),
    }


def _conv(
    core: ClusterCores,
    layer: Convolution,
    axes: tuple[TileAxis, TileAxis, TileAxis],
    source: Operand,
    out: Operand,
) -> dict[str, Entry]:
    y, x, k = axes
    splits = layer.depthwise and k.count > 1
    return {
        "in": Place("in"),
        **_weights(core, layer, k.step),
        "out": _OUT,
        "k": k.out_size,
        "c": k.out_size if splits else layer.C,
        "iy": y.in_size,
        "ix": x.in_size,
        "oy": y.out_size,
        "ox": x.out_size,
        "fy": layer.fy,
        "fx": layer.fx,
        "stride_y": layer.stride[0],
        "stride_x": layer.stride[1],
        "pad_top": y.pad,
        "pad_left": x.pad,
        "in_pitch": k.step if splits and not source.resident else layer.C,
        "out_pitch": layer.K if out.resident else k.step,
        "flags": _flags(layer),
        **_requant(core, layer, k.step),
    }


def _matmul(core: ClusterCores, layer: Matmul, y: TileAxis, k: TileAxis) -> dict[str, Entry]:
    has_batches = layer.batch > 1
    second: Value = Place("second")
    if has_batches and not core.apart:
        second = second + y.out_start * (layer.C * layer.K)
    return {
        "a": Place("in"),
        "second": second,
        "out": _OUT,
        "batch": y.out_size if has_batches else 1,
        "rows": layer.rows if has_batches else y.out_size,
        "k": layer.K if has_batches else k.out_size,
        "c": layer.C,
        "flags": _flags(layer, *(("CLUSTER_B_ROWS",) if layer.transposed else ())),
        **_requant(None, layer, 0),
    }


def _add(
    core: ClusterCores, layer: Add, y: TileAxis, operands: tuple[Operand, ...]
) -> dict[str, Entry]:
    terms = tuple(Place(operand.name) for operand in operands)
    table = _WEIGHTS if core.simd and has_sum_table(layer) else None
    return sum_fields(layer, terms, _OUT, y.out_size * units_of(layer)[1], table)


def sum_fields(
    layer: Add, terms: tuple[Value, ...], out: Value, elements: Value, table: Value | None
) -> dict[str, Entry]:
    """Return the fields of ``cluster_add_t`` for some elements.

    Args:
        layer: the add.
        terms, out, table: places of the operands, of the result, and of the table, if there is one.
        elements: their number.
    """
    return {
        "in": terms,
        "out": out,
        "operands": len(layer.inputs),
        "elements": elements,
        "flags": _flags(layer),
        **_requant(None, layer, 0),
        **({} if table is None else {"table": table}),
    }


def _combine(layer: Combination, y: TileAxis, operands: tuple[Operand, ...]) -> dict[str, Entry]:
    fields: dict[str, Entry] = {"in": tuple(Place(each.name) for each in operands[:2])}
    offset = 0
    for number, table in enumerate(layer.tables):
        if table is not None:
            fields[f"tables[{number}]"] = _WEIGHTS + offset
            offset += 256
    return {
        **fields,
        "out": _OUT,
        "elements": y.out_size * units_of(layer)[1],
        "flags": "CLUSTER_MULTIPLY" if layer.function == "multiply" else "0",
        **_requant(None, layer, 0),
    }


def _average(layer: Pool, y: TileAxis) -> dict[str, Entry]:
    return {
        "in": Place("in"),
        "out": _OUT,
        "channels": layer.C,
        "ix": layer.ix,
        "oy": y.out_size,
        "ox": layer.ox,
        "fy": layer.fy,
        "fx": layer.fx,
        "stride_y": layer.stride[0],
        "stride_x": layer.stride[1],
        "reciprocal": -(-(1 << 32) // (layer.fy * layer.fx)),
    }


def _rows(layer: Rows, y: TileAxis) -> dict[str, Entry]:
    function = layer.function
    rows = y.out_size * layer.ox
    fields: dict[str, Entry] = {"in": Place("in"), "out": _OUT}
    shape: dict[str, Entry] = {"rows": rows, "n": layer.K}
    if isinstance(function, ItaSoftmax):
        return {
            **fields,
            **shape,
            "group": function.group or layer.K,
            "step_bits": function.step_bits,
            "numerator": function.numerator,
            "flags": _flags(layer),
        }
    if isinstance(function, TableSoftmax):
        more: dict[str, Entry] = {"levels": function.levels, "flags": _flags(layer)}
        return {**fields, "exponentials": _WEIGHTS, **shape, **more}
    if isinstance(function, LayerNorm | AffineNorm | RmsNorm):
        fields["weight"] = _WEIGHTS
        if not isinstance(function, RmsNorm):
            fields["bias"] = _WEIGHTS + 4 * layer.K
        fields |= {**shape, "shift": Own("shift", function.shift), "flags": _flags(layer)}
        if isinstance(function, AffineNorm) and norm_leaves_32_bits(layer):
            fields["mul"] = Own("mul", function.mul)
        return fields
    return {**fields, "table": _WEIGHTS, "elements": rows * layer.K}
