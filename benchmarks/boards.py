"""MLPerf Tiny's networks on microcontroller cores: equal or not, instructions, flash and RAM.

Networks are the four TFLite files (with ``shared/models`` beside the repository; without, they are
left out), the zoo's digits, and a Relax module written by hand.  *Equal* means element for element:
with what TFLite Micro computes, where the file has goldens, else with TVM's own code on this
machine.  Cores are executed by the emulator of ``platform="arm"``, RISC-V by our simulator; where
QEMU is installed, its machines run the same networks once more, independently, and its user mode
runs their C on a big-endian and on a 64-bit machine.

Counts are **instructions, not cycles**.  Where the manual of a core gives cycles, an estimate
stands beside what others measured on chips with their own software (MLPerf Tiny, closed division,
published).
"""

from __future__ import annotations

import multiprocessing
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import htvm
from benchmarks import qemu
from benchmarks.artefact import Artefact, main, write
from benchmarks.boards_text import Row, written
from benchmarks.made_of import RowSource, program
from benchmarks.qemu_user import MACHINES, computed
from htvm.inputs import seeded_inputs
from htvm.progress import Progress
from htvm.tools.cli.arguments import open_model

__all__ = ["FILES", "handwritten", "made_of", "run"]

TARGETS = (
    "cortex_m0plus", "cortex_m3", "cortex_m4", "cortex_m7", "cortex_m33", "cortex_m55",
    "rv32imc", "rv32imac", "hazard3",
)  # fmt: skip
_OF_LINUX = ("cortex_m4", ("s390x", "aarch64", "riscv64"))
"""Whose kernels run as programs of Linux, and on which machines."""

FILES = {
    "ResNet-8": "pretrainedResnet_quant",
    "DS-CNN": "kws_ref_model",
    "MobileNet": "vww_96_int8",
    "autoencoder": "ad01_int8",
}
_OTHERS = ("digits", "Relax")
_MODELS = Path(__file__).resolve().parents[2] / "shared" / "models" / "tflite"


@dataclass(frozen=True, eq=False)
class Case:
    """A network with inputs, and the outputs that it must compute."""

    name: str
    model: htvm.Model
    inputs: list[Any]
    outputs: list[Any]


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


def networks() -> list[str]:
    """Return the names of the networks that are at hand."""
    return [*(name for name in FILES if file_of(name).is_file()), *_OTHERS]


def file_of(name: str) -> Path:
    """Return the file of one of `FILES`."""
    return _MODELS / FILES[name] / "model.tflite"


def model_of(name: str) -> htvm.Model:
    """Return a network by its name."""
    if name in FILES:
        return htvm.load(file_of(name))
    return open_model("zoo:digits") if name == "digits" else htvm.load(handwritten())


def made_of(
    targets: Sequence[str] = TARGETS, others: Sequence[str] = _OTHERS
) -> Iterator[RowSource]:
    """Every program that the table is made of."""
    for name in (*FILES, *others):
        needs = file_of(name) if name in FILES else None
        for target in targets:
            yield program(name, partial(model_of, name), target, needs=needs)


def case_of(name: str) -> Case:
    """Return a network with inputs and outputs by its name."""
    model = model_of(name)
    if name in FILES:
        with np.load(file_of(name).with_name("golden.npz")) as arrays:
            return Case(name, model, [arrays["inputs"][0]], [arrays["out_tflm"][0]])
    inputs = list(seeded_inputs(model.inputs))
    # Cores without accelerators leave a network's numbers as they are.
    return Case(name, model, inputs, htvm.build(model, "cortex_m4").reference(inputs))


def measure(case: Case, target: str) -> Iterator[Row]:
    """Build a network for a target and run it wherever that is possible here."""
    module = htvm.build(case.model, target)
    host, sizes = module.compiled.target.soc.host, module.sizes
    macs = sum(step.macs for step in module.compiled.program.steps)
    emulator = {"rv32": "own simulator", "arm": "unicorn", "qemu": "QEMU"}[host.platform]
    known = host.platform != "qemu" or shutil.which(qemu.PROGRAM) is not None
    result = module.run(case.inputs) if known else None
    stack = None if result is None else result.stack_bytes
    yield Row(
        case.name,
        target,
        emulator if known else "",
        None if result is None else _equal(case, result.outputs),
        _on_qemu(module, case),
        None if result is None else result.instructions,
        macs,
        sizes.code + sizes.constants,
        sizes.arena + sizes.io + sizes.other + (sizes.stack if stack is None else stack),
        stack,
        None if result is None else result.estimated_cycles,
    )
    whose, machines = _OF_LINUX
    for name in machines if target == whose else ():
        if MACHINES[name].program is not None:
            equal = _equal(case, computed(module.compiled, MACHINES[name], case.inputs))
            yield Row(case.name, name, f"qemu-{name}", equal, None, None, macs, None, None, None)


def _equal(case: Case, outputs: list[Any]) -> bool:
    pairs = zip(outputs, case.outputs, strict=True)
    return all(np.array_equal(np.ravel(one), np.ravel(other)) for one, other in pairs)


def _on_qemu(module: htvm.Module, case: Case) -> bool | None:
    if module.target not in qemu.machines() or shutil.which(qemu.PROGRAM) is None:
        return None
    shapes = [tuple(info.shape) for info in module.compiled.program.outputs]
    wanted = [one.reshape(s) for one, s in zip(case.outputs, shapes, strict=True)]
    with tempfile.TemporaryDirectory(prefix="htvm-qemu-") as folder:
        return qemu.different(module.compiled, case.inputs, wanted, Path(folder)) == 0


def _of_network(name: str) -> list[Row]:
    case = case_of(name)
    return [row for target in TARGETS for row in measure(case, target)]


def run(out: Path, progress: Progress) -> Artefact:
    """Build and run each network for each core; print instructions, flash and RAM."""
    rows: list[Row] = []
    # Two at a time: a build and a run are one thread each.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        names = networks()
        for name, found in zip(names, pool.map(_of_network, names), strict=True):
            with progress.stage(name):
                rows += found
    artefact = Artefact(
        "boards",
        "Microcontroller cores: instructions (not cycles), flash and RAM",
        written(rows),
        [asdict(row) for row in rows],
    )
    write(artefact, out)
    return artefact


if __name__ == "__main__":
    sys.exit(main(run))
