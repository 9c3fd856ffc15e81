"""Networks on Ethos-U55 and U65: equal or not, operators on each side, estimates, flash and RAM.

    python -m benchmarks.ethos_u [--network NAME] [--target TARGET] [--speed]

The networks are MLPerf Tiny's four TFLite files, where ``shared/models`` is beside the repository,
and the zoo's digits.  They are executed on the model of the device, on this machine.  *Equal* means
element for element what TFLite Micro computes for the files' golden inputs; for digits, what the
same network gives without the accelerator.  Cycles are Vela's estimates, not measurements.
``--speed`` prints how long the model of the device takes for a file instead, without and with all
of its checks, at 128 multiply-accumulates per cycle: the least processor time of ten inferences.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import htvm
from byoc_dory.soc.ethos_u import vela
from byoc_dory.soc.ethos_u.core import EthosUCore
from byoc_dory.soc.ethos_u.lower import networks
from byoc_dory.verdict import CPU
from htvm.compiled import Compiled
from htvm.inputs import seeded_inputs
from tests.runtime_c.ethos_u import library
from tests.runtime_c.vela import Program
from tests.runtime_c.vela import compiled as compiled_file

TARGETS = (
    *(f"ethos_u55:macs={macs}" for macs in (32, 64, 128, 256)),
    "ethos_u65:macs=256",
)
FILES = ("kws_ref_model", "pretrainedResnet_quant", "vww_96_int8", "ad01_int8")
_MODELS = Path(__file__).resolve().parents[2] / "shared" / "models" / "tflite"
_DIGITS = "zoo:digits"
_SEEDS = range(4)
_RUNS = 10
_NETWORKS = (*FILES, _DIGITS)


@dataclass(frozen=True)
class Row:
    """A network on a target.

    Attributes:
        network, target: their names.
        equal, elements: elements of outputs that are right, of all.
        accelerator, cpu: number of the integer form's operators there; names of those on the CPU.
        programs: number of calls of the driver.
        cycles: Vela's estimate of all programs.
        commands, weights: bytes of payloads, and of weights with scales and tables.
        arena: bytes of the arena, scratch included.
        computing: Vela's estimate with memories that are quick enough.
        traffic: Vela's estimates of accesses, by memory: cycles, bytes.
    """

    network: str
    target: str
    equal: int
    elements: int
    accelerator: int
    cpu: tuple[str, ...]
    programs: int
    cycles: int
    commands: int
    weights: int
    arena: int
    computing: int
    traffic: Mapping[str, tuple[int, int]]


def rows(names: Sequence[str], targets: Sequence[str] = TARGETS) -> Iterator[Row]:
    """Yield a row for each network and target."""
    for name in names:
        path = _MODELS / name / "model.tflite"
        if name != _DIGITS and not path.is_file():
            print(f"{name} is not at hand", file=sys.stderr)
            continue
        for target in targets:
            yield _row(name, str(path) if name != _DIGITS else name, target)


def _row(name: str, source: str, target: str) -> Row:
    module = htvm.build(source, target=target, platform="host")
    compiled = module.compiled
    pairs = list(_expected(module, source))
    equal = sum(int((found == wanted).sum()) for found, wanted in pairs)
    places = compiled.dispatch.placement
    kernels = [k for code in compiled.regions.values() for k in code.kernels if k.together]
    constants = [constant for kernel in kernels for constant in kernel.constants]
    commands = [entry for entry in constants if entry.name.endswith("commands")]
    programs = list(_programs(compiled))
    traffic: dict[str, tuple[int, int]] = {}
    for access in (each for made in programs for each in made.traffic):
        cycles, moved = traffic.get(access.memory, (0, 0))
        moved += access.read + access.written
        traffic[access.memory] = cycles + access.cycles, moved
    return Row(
        network=name,
        target=target,
        equal=equal,
        elements=sum(wanted.size for _, wanted in pairs),
        accelerator=sum(place != CPU for place in places.values()),
        cpu=tuple(operator for operator, place in places.items() if place == CPU),
        programs=len(kernels),
        cycles=sum(kernel.predicted_cycles for kernel in kernels),
        commands=sum(entry.data.nbytes for entry in commands),
        weights=sum(e.data.nbytes for e in constants if e not in commands),
        arena=compiled.program.plan.peak,
        computing=sum(made.computing for made in programs),
        traffic={memory: each for memory, each in traffic.items() if each[0]},
    )


def _programs(compiled: Compiled) -> Iterator[vela.Compiled]:
    """Yield what Vela made for a build, which it keeps in this process."""
    (core,) = compiled.target.accelerators
    assert isinstance(core, EthosUCore)
    settings = core.settings(compiled.target.soc, compiled.options.tiling)
    for region in compiled.partition.regions.values():
        for network in networks(region.layers, [tensor.name for tensor in region.outputs]):
            yield vela.compiled_thriftily(network, settings)


def _expected(module: htvm.Module, source: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield outputs beside what they should be."""
    if source != _DIGITS:
        with np.load(Path(source).with_name("golden.npz")) as arrays:
            for given, wanted in zip(arrays["inputs"], arrays["out_tflm"], strict=True):
                yield np.asarray(module.run(given).outputs[0]).ravel(), wanted.ravel()
        return
    alone = htvm.build(source, target="ethos_u.cpu", platform="host")
    for seed in _SEEDS:
        inputs = seeded_inputs(module.model.inputs, seed)
        pairs = zip(module.run(inputs).outputs, alone.run(inputs).outputs, strict=True)
        yield from ((np.asarray(a).ravel(), np.asarray(b).ravel()) for a, b in pairs)


def speeds(names: Sequence[str]) -> Iterator[str]:
    """Yield a line for each file on how long the model of the device takes for it."""
    lib = library()
    for name in names:
        path = _MODELS / name / "model.tflite"
        program = Program(lib, compiled_file(path.read_bytes(), "ethos-u55-128"))
        with np.load(path.with_name("golden.npz")) as arrays:
            inputs = [arrays["inputs"][0]]
        least = []
        for checked in (False, True):
            times = []
            for _ in range(_RUNS):
                start = time.process_time()
                result, _ = program.run(inputs, checked=checked)
                times.append(time.process_time() - start)
                assert not result.status, result.complaint
            least.append(1000 * min(times))
        yield f"{name:24}{least[0]:6.1f} ms, with all checks {least[1]:6.1f} ms"


def text(found: Sequence[Row]) -> str:
    """Return rows as a table."""
    head = (
        f"{'network':24}{'target':22}{'equal':>14}{'NPU':>5}{'CPU':>5}{'calls':>7}"
        f"{'cycles (est.)':>15}{'commands B':>12}{'weights B':>11}{'arena B':>9}"
    )
    lines = [head]
    for row in found:
        lines.append(
            f"{row.network:24}{row.target:22}{f'{row.equal}/{row.elements}':>14}"
            f"{row.accelerator:>5}{len(row.cpu):>5}{row.programs:>7}{row.cycles:>15,}"
            f"{row.commands:>12,}{row.weights:>11,}{row.arena:>9,}"
        )
    lines += ["", "of the cycles, computing; each memory's accesses, which run beside it"]
    for row in found:
        said = [f"computing {row.computing:,}"]
        for memory, (cycles, moved) in row.traffic.items():
            rate = f"{moved / row.cycles:.2f} B a cycle of all"
            said.append(f"{memory} {cycles:,} for {moved:,} B ({rate})")
        lines.append(f"{row.network:24}{row.target:22}{'; '.join(said)}")
    for name, operators in dict.fromkeys((row.network, row.cpu) for row in found if row.cpu):
        lines.append(f"{name}, on the CPU: {', '.join(operators)}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table; fail if an element is wrong."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--network", action="append", help="one of " + ", ".join(_NETWORKS))
    parser.add_argument("--target", action="append", help="e.g. ethos_u55:macs=64, or a board")
    parser.add_argument("--speed", action="store_true", help="of the model, not of the NPU")
    options = parser.parse_args(arguments)
    if options.speed:
        for line in speeds(options.network or FILES):
            print(line)
        return
    found = list(rows(options.network or _NETWORKS, options.target or TARGETS))
    print(text(found))
    if any(row.equal < row.elements for row in found):
        sys.exit("outputs differ")


if __name__ == "__main__":
    main()
