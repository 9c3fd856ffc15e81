"""The kernels of a chain: each unit's for one row, generated like the kernels of whole tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tvm import relax

from byoc_dory.emit.text import Symbols
from byoc_dory.memory.arena import plan_memory, written_over
from htvm.aot.assembler import Assembly
from htvm.aot.constants import ConstantPool
from htvm.aot.cpu import CpuCode, Kernels, compile_cpu
from htvm.aot.intrinsics import KERNELS_OF_ROWS, PAIRED, image_words
from htvm.aot.program import assemble
from htvm.aot.steps import Alias, ModelCall
from htvm.model import TensorInfo

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import BlockBuilder, Expr

    from htvm.aot.chains.network import Network, Unit
    from htvm.aot.program import Program
    from htvm.aot.steps import CpuKernel


Band = tuple[int, int]
"""A unit's number, and how many rows of its result are computed at once; 0: a single one, by
kernels that take no bytes for speed."""

_BAND_PAYS = 4
"""Rows of a map from which on bands are quicker than pixels, whatever its width."""

_BAND_BYTES = 1 << 16
"""Bytes that kernels for several rows may take besides: whether they pay, the planner counts."""


@dataclass(frozen=True, eq=False)
class RowKernels:
    """What computes a row of a unit's result, or several at once.

    Attributes:
        program: the calls, with the places of what is between them in a workspace.
        kernels: the kernels that they call.
        wide: bytes of the pixels of rows with channels of zeros, 0 if it reads none: then
            `of_wide` computes the same from such rows, which need not be made for each row of the
            result again.
        of_wide: that program.
    """

    program: Program
    kernels: tuple[CpuKernel, ...]
    wide: int = 0
    of_wide: Program | None = None


@dataclass(frozen=True, eq=False)
class RowCompiler:
    """Compiles units for one row of their results, or for several at once.

    Attributes:
        name: of the model.
        simd: what kernels are built from, as for `compile_cpu`.
        kernels: how they are scheduled, likewise.
        scarce: whether memory is, likewise.
        symbols: names that are in use in the program.
        pool: its constants.
    """

    name: str
    simd: str
    kernels: Kernels
    scarce: bool
    symbols: Symbols
    pool: ConstantPool

    def rows(self, network: Network, bands: Sequence[Band]) -> dict[Band, RowKernels]:
        """Return what computes rows from the rows of their readings, by unit and number of rows.

        All units are one module for the compiler, which makes what is equal in them once.
        """
        module, inputs = _module_of(network, bands)
        code = compile_cpu(
            module,
            self.name,
            kernels=self.kernels,
            simd=self.simd,
            table=KERNELS_OF_ROWS,
            scarce=self.scarce,
            symbols=_RowSymbols(self.name, self.symbols),
            pool=self.pool,
            spare=_BAND_BYTES if any(rows for _, rows in bands) else 0,
        )
        return {
            band: self._rows(network, network.units[band[0]], infos, code, result)
            for band, infos, result in zip(bands, inputs, code.results, strict=True)
        }

    def way(
        self, network: Network, band: Band, made: RowKernels | None
    ) -> Literal["line", "bands", "pixels"] | None:
        """Return how rows of a depthwise convolution are computed, as far as that is known.

        Args:
            network: the units.
            band: one of them, and how many rows are computed at once.
            made: what computes them, if that is known.

        Returns:
            By one call for a row, by bands of rows, or by blocks of pixels; ``None`` if its whole
            map is not computed by bands.
        """
        unit, rows = network.units[band[0]], band[1]
        ways = [row for row in KERNELS_OF_ROWS[self.simd].depthwise if row.lines or row.band]
        tensor, window = network.tensors[unit.result], unit.reads[0].window
        line = next((row for row in ways if not row.band), None)
        few = next((row for row in ways if row.band), None)
        if line is None or few is None or window is None or unit.nodes[0].kind != "depthwise":
            return None
        if (window.size, window.stride) != (few.width, 1) or tensor.pixel % few.band:
            return None
        if tensor.rows < _BAND_PAYS:
            return None
        if made is not None:
            called = "".join(kernel.source for kernel in made.kernels)
            if line.name in called:
                return "line"
            return "bands" if any(row.name in called for row in ways) else "pixels"
        pitch = (window.left + tensor.width + window.right) * tensor.pixel
        if line.is_of(max(rows, 1), tensor.width, pitch, tensor.pixel):
            return "line"
        several = rows in few.lines and tensor.width % few.lines[rows] == 0
        return "bands" if rows >= _BAND_PAYS or several else "pixels"

    def calls(self, network: Network, band: Band, single: RowKernels | None) -> int:
        """Return in how many calls a unit multiplies pairs of pixels; 0 if it does not.

        Args:
            network: the units.
            band: one of them, and how many rows are computed at once.
            single: what computes single rows of it by kernels that take no bytes for speed, if that
                is known.
        """
        unit, rows = network.units[band[0]], band[1]
        tensor = network.tensors[unit.result]
        columns = [row.column for row in KERNELS_OF_ROWS[self.simd].products if row.column]
        if single is None or not any(f"{PAIRED}(" in each.source for each in single.kernels):
            return 0
        pixels = max(rows, 1) * tensor.width
        taps = sum(call.macs for call in unit.calls) // tensor.bytes
        pairs = columns[0].pairs_together(pixels, taps, _BAND_BYTES if rows else 0)
        return tensor.rows * tensor.width // (2 * pairs)

    def parts(self, width: int, made: RowKernels) -> int:
        """Return in how many parts kernels multiply rows of an image, of so many pixels; else 1."""
        columns = [row.column for row in KERNELS_OF_ROWS[self.simd].products]
        images = [column.image for column in columns if column is not None and column.image]
        for kernel in made.kernels:
            if any(image in kernel.source for image in images):
                windows = kernel.workspaces[0] // 4
                return next(n for n in range(1, width) if image_words(width // n) <= windows)
        return 1

    def _rows(
        self,
        network: Network,
        unit: Unit,
        inputs: tuple[TensorInfo, ...],
        code: CpuCode,
        result: str,
    ) -> RowKernels:
        """Return a unit's part of the code."""
        calls = _calls_for(result, code.calls)
        called = {call.target for call in calls if isinstance(call, ModelCall)}
        kernels = tuple(kernel for kernel in code.kernels if kernel.symbol in called)
        (shape,) = (
            each.shape
            for call in calls
            for each in ([call.output] if isinstance(call, Alias) else call.outputs)
            if each.name == result
        )
        dtype = network.tensors[unit.result].dtype
        program = assemble(
            Assembly(
                name=self.name,
                inputs=inputs,
                outputs=(TensorInfo(unit.result, shape, dtype),),
                calls=calls,
                results=(result,),
                cpu_kernels=kernels,
                constants=code.constants,
            )
        )
        over = written_over(program.plan, program.buffers)
        simple = kernels if over else tuple(each.without_overlays for each in kernels)
        return _with_wide(RowKernels(program, simple), inputs, calls[0])


def _calls_for(result: str, calls: Sequence[ModelCall | Alias]) -> list[ModelCall | Alias]:
    """Return those calls that compute a result."""
    needed, found = {result}, list[ModelCall | Alias]()
    for call in reversed(calls):
        made = [call.output] if isinstance(call, Alias) else call.outputs
        if any(value.name in needed for value in made):
            needed.update([call.source] if isinstance(call, Alias) else call.inputs)
            found.append(call)
    return found[::-1]


def _with_wide(
    rows: RowKernels, inputs: tuple[TensorInfo, ...], call: ModelCall | Alias
) -> RowKernels:
    """Enter the program for rows with channels of zeros, if the first step adds these."""
    program = rows.program
    kernels = {kernel.symbol: kernel for kernel in rows.kernels}
    first = kernels[program.steps[0].symbol]
    source, target = program.steps[0].args[0], program.steps[0].args[-1]
    if len(inputs) != 1 or first.operators != ("pad",) or target.kind != "buffer":
        return rows
    assert isinstance(call, ModelCall)
    (*frame, channels), (*widened, wide) = inputs[0].shape, call.outputs[0].shape
    if frame != widened or wide <= channels or inputs[0].dtype != "int8":
        return rows
    steps = tuple(
        replace(step, args=tuple(source if arg == target else arg for arg in step.args))
        for step in program.steps[1:]
    )
    buffers = tuple(
        replace(use, first=use.first - 1, last=use.last - 1, over="", below=0, above=0)
        for use in program.buffers
        if use.name != target.name
    )
    plan = plan_memory(buffers)
    return replace(
        rows, wide=wide, of_wide=replace(program, steps=steps, buffers=buffers, plan=plan)
    )


class _RowSymbols(Symbols):
    """Names of a program, where those of functions say that they compute a row."""

    def __init__(self, model: str, symbols: Symbols) -> None:
        super().__init__(model)
        self._of_program = symbols

    def function(self, preferred: str) -> str:
        return self._of_program.function(f"{preferred}_row")

    def constant(self, preferred: str) -> str:
        return self._of_program.constant(preferred)


def _module_of(
    network: Network, bands: Sequence[Band]
) -> tuple[IRModule, list[tuple[TensorInfo, ...]]]:
    """Return the units' operators for these rows, and what each of them takes: one per reading."""
    builder = relax.BlockBuilder()
    units = [network.units[number] for number, _ in bands]
    infos = [_rows_of(network, network.units[number], rows) for number, rows in bands]
    given = [
        relax.Var(info.name, relax.TensorType(info.shape, info.dtype))
        for own in infos
        for info in own
    ]
    waiting = iter(given)
    with builder.function("main", given):
        with builder.dataflow():
            results = [_written(builder, unit, waiting) for unit in units]
            result = builder.emit_output(relax.Tuple(results))
        builder.emit_func_output(result)
    return builder.get(), infos


def _rows_of(network: Network, unit: Unit, rows: int) -> tuple[TensorInfo, ...]:
    """Return the rows that a unit reads for so many rows of its result."""
    found = []
    for number, reading in enumerate(unit.reads):
        assert reading.window is not None
        tensor, window = network.tensors[reading.tensor], reading.window.of_band(max(rows, 1))
        batch, _, width, channels = tensor.shape
        shape = (batch, window.size, window.left + width + window.right, channels)
        dtype = tensor.dtype
        if unit.of_sums is not None:
            shape, dtype = (batch, 1, 1, channels), "int32"
        found.append(TensorInfo(f"rows_{number}_of_{rows}_of_{unit.name}", shape, dtype))
    return tuple(found)


def _written(builder: BlockBuilder, unit: Unit, inputs: Iterator[Expr]) -> Expr:
    """Write the operators of a unit, which take the next inputs."""
    known: dict[str, Expr] = {}
    for node in unit.nodes:
        read = [known[name] if name in known else next(inputs) for name in node.inputs]
        op = node.op.unpadded if unit.of_sums is None else unit.of_sums
        known[node.name] = op.write(builder, read, node.name)
    return known[unit.nodes[-1].name]
