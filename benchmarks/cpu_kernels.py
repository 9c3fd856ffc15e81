"""Cycles per MAC of the CPU kernels, per layer and per kind of layer, on the simulated RV32 host.

    python -m benchmarks.cpu_kernels [NETWORK ...] [--scheme tflite|shift] [--default] [--simd]

Networks are those of `htvm.zoo`; with ``--scheme tflite`` (the default) their layers are
requantized as TFLite does, per channel and with zero points, which costs most.  ``--simd``: for a
core with the CORE-V extensions.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
from tvm import relax

from byoc_dory.layers import Shift, TfliteRequant
from byoc_dory.soc.cores import CV32E40P_SIMD
from byoc_dory.soc.registry import resolve
from htvm import zoo
from htvm.aot.cpu import compile_cpu
from htvm.aot.program import Assembly, assemble
from htvm.firmware.build import build_rv32
from htvm.model import TensorInfo
from htvm.sim.runner import run
from patterns.names import NameCounter
from patterns.op import INT8, Op
from patterns.ops.add import Add
from patterns.ops.convolution import Conv2d
from patterns.ops.dense import Dense
from patterns.ops.moves.pad import Pad
from patterns.ops.tflite.binary import AddFactors, TfliteAdd
from patterns.ops.tflite.softmax import TfliteSoftmax
from patterns.primitive import shape_of

NETWORKS = ("resnet8", "ds_cnn", "mobilenet_v1", "toyadmos")


def tflite_module(name: str) -> Any:
    """A network of the zoo as TFLite would quantize it, with seeded scales."""
    sketch, rng, names = zoo.sketch(name), np.random.default_rng(0), NameCounter()
    shape = sketch.shape
    shape = (1, *shape[1:], shape[0]) if len(shape) == 3 else (1, *shape)
    bb = relax.BlockBuilder()
    x = relax.Var("input", relax.TensorType(shape, "int8"))
    values: list[Any] = [x]
    with bb.function("main", [x]):
        with bb.dataflow():
            for step in sketch.steps:
                sources = [values[handle.index] for handle in step.inputs]
                values.append(_write(bb, step.op, sources, names, rng))
            result = bb.emit_output(values[-1])
        bb.emit_func_output(result)
    return bb.finalize()


def _write(bb: Any, op: Op, sources: list[Any], names: NameCounter, rng: Any) -> Any:
    """The operator as TFLite would have it."""
    source = sources[0]
    if isinstance(op, Add):
        op = TfliteAdd(AddFactors.from_scales((0.1, 0.13, 0.17), (-128, 4, -128)))
    elif isinstance(op, TfliteSoftmax):
        op = TfliteSoftmax.of_scale(1 / 16)
    elif isinstance(op, Conv2d | Dense):
        assert isinstance(op.requant, Shift)
        channels = len(op.weight)
        multiplier = tuple(int(m) for m in rng.integers(2**30, 2**31, channels))
        requant = TfliteRequant(multiplier, (-op.requant.shift,) * channels, -128)
        op = replace(op, requant=requant, clip=INT8)
    if isinstance(op, Conv2d) and any(op.window.padding):
        pad = Pad(-128, op.window.padding)
        source = pad.write(bb, [source], names.fresh("pad"))
        op = replace(op, window=replace(op.window, padding=(0, 0, 0, 0)))
    return op.write(bb, [source, *sources[1:]], names.fresh(op.stem))


def measure(name: str, scheme: str, kernels: Any, simd: bool) -> None:
    """Compile, run one inference and print."""
    module = tflite_module(name) if scheme == "tflite" else zoo.build(name).module
    code = compile_cpu(module, name, kernels=kernels, simd="corev" if simd else "")
    main = code.module["main"]
    info = TensorInfo("input", shape_of(main.params[0]), "int8")
    last = (
        code.calls[-1].output
        if not hasattr(code.calls[-1], "outputs")
        else code.calls[-1].outputs[0]
    )
    outputs = (TensorInfo("output", last.shape, last.dtype),)
    program = assemble(
        Assembly(
            name=name,
            inputs=(info,),
            outputs=outputs,
            calls=code.calls,
            results=code.results,
            cpu_kernels=code.kernels,
            regions={},
            constants=code.constants,
        )
    )
    soc = resolve("generic.cpu").soc
    if simd:
        soc = replace(soc, host=replace(CV32E40P_SIMD, stack=soc.host.stack))
    built = build_rv32(program, soc)
    data = np.random.default_rng(1).integers(-128, 128, info.shape).astype("int8")
    result = run(built, [data])
    notes = {kernel.symbol: kernel.schedule for kernel in code.kernels}
    kinds: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for step, cycles in zip(program.steps, result.step_cycles, strict=True):
        kind = step.layer.rsplit("_", 1)[0] + (" (pad)" if step.symbol.endswith("_pad") else "")
        kinds[kind][0] += cycles
        kinds[kind][1] += step.macs
        rate = f"{cycles / step.macs:6.2f}" if step.macs else "      "
        print(f"  {step.symbol:32}{cycles:>12,}{step.macs:>12,} {rate}  {notes[step.symbol]}")
    macs = sum(step.macs for step in program.steps)
    print(f"{soc.host.name}")
    print(f"{name}, {scheme}, {kernels}: {result.cycles:,} cycles, {macs:,} MAC,", end=" ")
    print(
        f"{result.cycles / macs:.2f} cycles/MAC, code {built.sizes}, L2 arena {program.plan.peak}"
    )
    for kind, (cycles, count) in kinds.items():
        rate = f"{cycles / count:.2f} cycles/MAC" if count else ""
        print(f"  {kind:20}{cycles:>12,} cycles  {rate}")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--scheme", choices=("tflite", "shift"), default="tflite")
    parser.add_argument("--default", action="store_true", help="plain TVM as it comes")
    parser.add_argument("--simd", action="store_true", help="on a core with CORE-V extensions")
    arguments = parser.parse_args()
    for name in arguments.networks:
        kernels = "default" if arguments.default else "scheduled"
        measure(name, arguments.scheme, kernels, arguments.simd)


if __name__ == "__main__":
    main()
