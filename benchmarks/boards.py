"""MLPerf Tiny's networks on microcontroller cores: equal or not, instructions, flash and RAM.

Networks are the four TFLite files (with ``shared/models`` beside the repository; without, they are
left out), the zoo's digits, and a Relax module written by hand.  *Equal* means element for element:
with what TFLite Micro computes, where the file has goldens, else with TVM's own code on this
machine.  Cores are executed by the emulator of ``platform="arm"``, RISC-V by our simulator; where
QEMU is installed, its machines run the same networks once more, independently.

Counts are **instructions, not cycles**.  Published milliseconds of MLPerf Tiny (closed division,
measured on chips by others, with their own software) stand beside, as cycles at the published
clock; dividing them by our instructions says what an instruction may take for us to be as fast, and
no more.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import htvm
from benchmarks import qemu
from benchmarks.artefact import Artefact, main, write
from byoc_dory.soc.registry import board_target, resolve
from htvm.cli.arguments import open_model
from htvm.inputs import seeded_inputs
from htvm.progress import Progress
from htvm.report.table import Column, Table, text

__all__ = ["PUBLISHED", "handwritten", "run"]

TARGETS = (
    "cortex_m0plus", "cortex_m3", "cortex_m4", "cortex_m7", "cortex_m33", "cortex_m55",
    "rv32imc", "rv32imac",
)  # fmt: skip

FILES = {
    "ResNet-8": "pretrainedResnet_quant",
    "DS-CNN": "kws_ref_model",
    "MobileNet": "vww_96_int8",
    "autoencoder": "ad01_int8",
}
_MODELS = Path(__file__).resolve().parents[2] / "shared" / "models" / "tflite"

PUBLISHED: Mapping[str, tuple[str, str, int, Mapping[str, float]]] = {
    "cortex_m4": (
        "STM32L4R5, X-CUBE-AI, v1.2", "nucleo-l4r5zi", 120,
        {"ResNet-8": 165.1, "DS-CNN": 43.2, "MobileNet": 88.9, "autoencoder": 5.26},
    ),
    "cortex_m33": (
        "STM32U575, v1.3", "", 160,
        {"ResNet-8": 109.5, "DS-CNN": 29.0, "MobileNet": 59.3, "autoencoder": 3.21},
    ),
    "cortex_m7": (
        "STM32H7A3, v1.2", "nucleo-h7a3zi-q", 280,
        {"ResNet-8": 40.8, "DS-CNN": 11.3, "MobileNet": 23.8, "autoencoder": 1.23},
    ),
    "cortex_m0plus": (
        "STM32G0B1, v1.2", "nucleo-g0b1re", 64,
        {"ResNet-8": 1522.0, "DS-CNN": 475.0, "MobileNet": 1414.0, "autoencoder": 40.9},
    ),
}  # fmt: skip
"""Core -> chip and round, our board of it, its clock in MHz, milliseconds of each network."""

TABLE = (
    Column("network"),
    Column("target"),
    Column("emulator"),
    Column("equal"),
    Column("QEMU"),
    Column("instructions", number=True),
    Column("per MAC", number=True),
    Column("flash B", number=True),
    Column("RAM B", number=True),
    Column("stack B", number=True),
)
BESIDE = (
    Column("network"),
    Column("core"),
    Column("instructions", number=True),
    Column("per MAC", number=True),
    Column("published ms", number=True),
    Column("published cycles/MAC", number=True),
    Column("their cycles / our instructions", number=True),
    Column("measured on"),
)


@dataclass(frozen=True)
class Row:
    """One network on one target.

    Attributes:
        network, target: names.
        emulator: what executed it; empty if nothing here does.
        equal: whether every element was equal; None without an execution.
        qemu: the same on QEMU; None where it is not installed or has no such machine.
        instructions: of one inference; None without a count.
        macs: of one inference.
        flash, ram: bytes; RAM with the stack as measured, or reserved if nothing measured it.
        stack: bytes that a run used; None without one.
    """

    network: str
    target: str
    emulator: str
    equal: bool | None
    qemu: bool | None
    instructions: int | None
    macs: int
    flash: int
    ram: int
    stack: int | None


@dataclass(frozen=True, eq=False)
class Case:
    """A network with inputs, and the outputs that it must compute if they are known."""

    name: str
    model: htvm.Model
    inputs: list[Any]
    outputs: list[Any] | None


def handwritten() -> Any:
    """Return a Relax module as somebody would write it: two convolutions, a pool, a product."""
    from tvm import relax
    from tvm.relax import op as R

    rng = np.random.default_rng(0)

    def constant(*shape: int, dtype: str = "int8", limit: int = 127) -> Any:
        return relax.const(rng.integers(-limit, limit + 1, shape).astype(dtype), dtype)

    def narrowed(acc: Any, bias: int, shift: int) -> Any:
        total = bb.emit(R.add(acc, constant(bias, dtype="int32", limit=1000)))
        shifted = bb.emit(R.right_shift(total, relax.const(shift, "int32")))
        return bb.emit(R.astype(bb.emit(R.clip(shifted, 0, 127)), "int8"))

    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO", "out_dtype": "int32"}
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 16, 16, 4), "int8"))
    with bb.function("main", [x]):
        with bb.dataflow():
            first = R.nn.conv2d(x, constant(3, 3, 4, 16), padding=(1, 1, 1, 1), **layouts)
            y = narrowed(bb.emit(first), 16, 9)
            second = R.nn.conv2d(y, constant(3, 3, 16, 32), strides=(2, 2), **layouts)
            y = narrowed(bb.emit(second), 32, 10)
            flat = bb.emit(R.reshape(y, (1, 7 * 7 * 32)))
            product = R.matmul(flat, constant(7 * 7 * 32, 10), out_dtype="int32")
            result = bb.emit_output(narrowed(bb.emit(product), 10, 11))
        bb.emit_func_output(result)
    return bb.finalize()


def cases() -> list[Case]:
    """Return the networks that are at hand."""
    found = []
    for name, folder in FILES.items():
        path = _MODELS / folder / "model.tflite"
        if path.is_file():
            with np.load(path.with_name("golden.npz")) as arrays:
                one = [arrays["inputs"][0]], [arrays["out_tflm"][0]]
            found.append(Case(name, htvm.load(path), *one))
    for name, source in (("digits", open_model("zoo:digits")), ("Relax", htvm.load(handwritten()))):
        found.append(Case(name, source, list(seeded_inputs(source.inputs)), None))
    return found


def measure(case: Case, target: str) -> Row:
    """Build a network for a target and run it wherever that is possible here."""
    module = htvm.build(case.model, target)
    compiled, host = module.compiled, module.compiled.target.soc.host
    reference = module.reference(case.inputs)
    wanted = reference
    if case.outputs is not None:
        shapes = [array.shape for array in reference]
        wanted = [one.reshape(s) for one, s in zip(case.outputs, shapes, strict=True)]
    macs = sum(step.macs for step in compiled.program.steps)
    sizes, result = module.sizes, None
    emulator = {"rv32": "own simulator", "arm": "unicorn", "qemu": "QEMU"}[host.platform]
    known = host.platform != "qemu" or shutil.which(qemu.PROGRAM) is not None
    if known:
        result = module.run(case.inputs)
    stack = None if result is None else result.stack_bytes
    return Row(
        case.name,
        target,
        emulator if known else "",
        None if result is None else all(map(np.array_equal, result.outputs, wanted)),
        _on_qemu(module, case.inputs, wanted),
        None if result is None else result.instructions,
        macs,
        sizes.code + sizes.constants,
        sizes.arena + sizes.io + sizes.other + (sizes.stack if stack is None else stack),
        stack,
    )


def _on_qemu(module: htvm.Module, inputs: list[Any], wanted: list[Any]) -> bool | None:
    if module.target not in qemu.machines() or shutil.which(qemu.PROGRAM) is None:
        return None
    with tempfile.TemporaryDirectory(prefix="htvm-qemu-") as folder:
        return qemu.different(module.compiled, inputs, wanted, Path(folder)) == 0


def run(out: Path, progress: Progress) -> Artefact:
    """Build and run each network for each core; print instructions, flash and RAM."""
    rows = []
    for case in cases():
        for target in TARGETS:
            with progress.stage(f"{case.name} on {target}"):
                rows.append(measure(case, target))
    artefact = Artefact(
        "boards",
        "Microcontroller cores: instructions (not cycles), flash and RAM",
        _text(rows),
        [asdict(row) for row in rows],
    )
    write(artefact, out)
    return artefact


def _text(rows: list[Row]) -> str:
    beside = [row for row in rows if row.network in FILES and row.target in PUBLISHED]
    parts = [
        text(Table(TABLE, tuple(map(_cells, rows)))),
        "equal: element for element, with TFLite Micro's outputs for the TFLite files, else with "
        "TVM's code on\nthis machine. RISC-V cores are simulated with the timing of another core; "
        "its cycles are not given here.\nThe M55's instructions are counted in QEMU's log of what "
        "it executes.",
    ]
    if beside:
        title = (
            "beside what others measured on chips (MLPerf Tiny, closed division, published): "
            "their cycles, our\ninstructions; different things"
        )
        parts.append(text(Table(BESIDE, tuple(map(_beside, beside)), title=title)))
    fit = [_fit(row) for row in beside if PUBLISHED[row.target][1]]
    if fit:
        parts.append("all of these fit their boards: " + ("yes" if all(fit) else "NO"))
    return "\n\n".join(parts)


def _fit(row: Row) -> bool:
    flash, ram = resolve(board_target(PUBLISHED[row.target][1])).soc.memories
    return row.flash <= flash.size and row.ram <= ram.size


def _cells(row: Row) -> tuple[str, ...]:
    said = {None: "-", True: "yes", False: "NO"}
    counted = row.instructions is not None
    return (
        row.network,
        row.target,
        row.emulator or "none",
        said[row.equal],
        said[row.qemu],
        f"{row.instructions:,}" if counted else "-",
        f"{(row.instructions or 0) / row.macs:.2f}" if counted else "-",
        f"{row.flash:,}",
        f"{row.ram:,}",
        "-" if row.stack is None else f"{row.stack:,}",
    )


def _beside(row: Row) -> tuple[str, ...]:
    chip, _, megahertz, published = PUBLISHED[row.target]
    milliseconds = published[row.network]
    cycles = milliseconds * megahertz * 1000
    assert row.instructions is not None
    return (
        row.network,
        row.target,
        f"{row.instructions:,}",
        f"{row.instructions / row.macs:.2f}",
        f"{milliseconds:g}",
        f"{cycles / row.macs:.2f}",
        f"{cycles / row.instructions:.2f}",
        f"{chip}, {megahertz} MHz",
    )


if __name__ == "__main__":
    sys.exit(main(run))
