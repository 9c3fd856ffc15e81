"""Every plan of single layers, with the real driver and devices: results, races, cycles."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import numpy as np
import pytest

from byoc_dory.cost import Cost
from byoc_dory.errors import TilingError
from byoc_dory.layers import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.region import Kernel
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.soc.diana.packing import stored_bytes
from htvm.firmware import host, rv32
from htvm.firmware.paths import runtime_c
from htvm.firmware.socs import machine_of
from htvm.firmware.toolchain import Compiler
from htvm.sim.host import run_host
from htvm.sim.rv32 import run_rv32
from tests.byoc_dory.layers import NETWORKS, OPS, int8, random_layer
from tests.byoc_dory.plans import all_plans, plan_of
from tests.byoc_dory.program import _define
from tests.reference.diana_layers import from_l2, run_layer, to_l2

CORE = DIANA.accelerator("digital")
ALIGNED = "_Alignas(16) int8_t"


def planned_kernels(
    layer: Layer, budget: int, name: str, order="yxk", every: bool = True
) -> list[Kernel]:
    """The layer's kernels under a budget, one per plan; none if no tile fits."""
    options = TilingOptions(budget, "none", loop_order=order, schedule="overlapped")
    try:
        solution = Cost(DIANA, options).best_tile(CORE, layer)
    except TilingError:
        return []
    plans = all_plans(layer, solution) if every else [plan_of(layer, solution, 2)]
    emitter = CORE.emitter(DIANA)
    return [emitter.layer(layer, plan, options, f"{name}_{i}") for i, plan in enumerate(plans)]


def run_in_l1(kernel: Kernel, inputs: list[str], output: str) -> list[str]:
    """Statements that call a kernel; what should be in L1 already is brought there first."""
    assert kernel.layer is not None and kernel.program is not None
    lines, arguments = [], []
    s = kernel.program
    sizes = [stored_bytes(tensor.shape, 16) for tensor in kernel.layer.inputs]
    for name, size, operand in zip(inputs, sizes, s.operands, strict=True):
        at = operand.l1
        if operand.resident:
            block = f"(diana_block_t){{1, 1, {size}, 0, 0, 0, 0}}"
            lines.append(f"code |= diana_dma_in({at}, {name}, &{block});")
        else:
            arguments.append(name)
    if not s.result.resident:
        arguments.append(output)
    lines += ["MARK(0);", f"code |= {kernel.symbol}({', '.join(arguments)});", "MARK(1);"]
    if s.result.resident:
        size = stored_bytes(kernel.layer.output.shape, 16)
        block = f"(diana_block_t){{1, 1, {size}, 0, 0, 0, 0}}"
        lines.append(f"code |= diana_dma_out({output}, {s.result.l1}, &{block});")
    return lines


class Bench:
    """A program that runs kernels of layers and returns their outputs in the core's layout."""

    def __init__(self) -> None:
        self.top: list[str] = []
        self.body: list[str] = []
        self.images: list[bytes] = []
        self.wanted: list[tuple[str, tuple[int, ...], np.ndarray]] = []
        self.kernels: list[Kernel] = []
        self.in_bytes = self.out_bytes = 0

    def add(self, layer: Layer, kernels: list[Kernel], rng: np.random.Generator) -> None:
        values = [int8(rng, *tensor.shape) for tensor in layer.inputs]
        names = []
        for value in values:
            image = to_l2(value, void=0).tobytes()
            names.append(f"all_in + {self.in_bytes}")
            self.images.append(image)
            self.in_bytes += len(image)
        result = run_layer(layer, values)
        for kernel in kernels:
            self.top += [_define(constant) for constant in kernel.constants]
            self.top.append(kernel.source)
            statements = run_in_l1(kernel, names, f"all_out + {self.out_bytes}")
            self.body += ["    " + line for line in statements]
            self.out_bytes += stored_bytes(layer.output.shape, 16)
            self.wanted.append((kernel.symbol, layer.output.shape, result))
            self.kernels.append(kernel)

    def program(self) -> str:
        return "\n".join(
            [
                '#include "htvm_host.h"', '#include "diana_driver.h"', "#define MARK(n) (void)(n)",
                *self.top,
                f"static {ALIGNED} all_in[{self.in_bytes}], all_out[{self.out_bytes}];",
                "int main(void)\n{",
                "    int32_t code = htvm_host_read(0, all_in, sizeof all_in);",
                *self.body,
                "    return code != 0 ? code : htvm_host_write(0, all_out, sizeof all_out);\n}\n",
            ]
        )  # fmt: skip

    def check(self, got: bytes) -> None:
        at = 0
        for symbol, shape, result in self.wanted:
            size = stored_bytes(shape, 16)
            image = np.frombuffer(got, np.uint8, size, at)
            at += size
            np.testing.assert_array_equal(from_l2(image, shape), result, symbol)


@pytest.mark.parametrize("sanitize", [False, True])
def test_every_plan_equals_the_reference(sanitize: bool, tmp_path: Path) -> None:
    """No device complains of a race, and every output is right."""
    bench = Bench()
    for seed in range(12):
        rng = np.random.default_rng([seed, 5])
        op = OPS[seed % len(OPS)]
        layer = random_layer(rng, op, largest=18)
        smallest = (layer.C + 15) // 16 * 16 + 32 if op == "dense" else 900
        for number, budget in enumerate((9_000, 2_500, smallest)):
            order = ("yxk", "kyx")[(seed // 4 + number) % 2]
            bench.add(layer, planned_kernels(layer, budget, f"l{seed}_{number}", order), rng)
    assert len(bench.kernels) >= 100
    assert sum(k.program.pipelined for k in bench.kernels if k.program) >= 20
    source = tmp_path / "main.c"
    source.write_text(bench.program())
    program = host.build([source], [], DIANA, tmp_path / "out", Compiler.zig(), sanitize=sanitize)
    (got,) = run_host(program, [b"".join(bench.images)], [bench.out_bytes])
    bench.check(got)


def measure(
    layers: list[tuple[Layer, list[Kernel]]], folder: Path, step_polls: bool = False
) -> list[tuple[Kernel, int]]:
    """Cycles of every kernel on the simulated host; all read and write the same memory."""
    noinit = '__attribute__((section(".noinit"), aligned(16))) int8_t'
    tensors = [t for layer, _ in layers for t in (*layer.inputs, layer.output)]
    size = max(stored_bytes(tensor.shape, 16) for tensor in tensors)
    top, body, kernels = [], [], []
    for layer, planned in layers:
        for kernel in planned:
            top += [*map(_define, kernel.constants), kernel.source]
            for line in run_in_l1(kernel, ["source"] * len(layer.inputs), "result"):
                body.append("    " + line.replace("MARK(", f"htvm_hal_trace({2 * len(kernels)} + "))
            kernels.append(kernel)
    source = folder / "main.c"
    source.write_text(
        '#include "htvm_hal.h"\n#include "diana_driver.h"\n'
        + f"{noinit} source[{size}];\n{noinit} result[{size}];\n"
        + "\n".join([*top, "int main(void)\n{\n    int32_t code = 0;", *body])
        + "\n    return code;\n}\n"
    )
    firmware = rv32.build_firmware(
        [source, *host.driver_sources(DIANA)],
        [runtime_c() / "soc" / DIANA.driver],
        machine_of(DIANA),
        folder / "out",
        Compiler.zig(),
    )
    result = run_rv32(firmware, {}, {}, step_polls=step_polls, compiler=Compiler.zig())
    at = {event: cycle for cycle, event in result.marks}
    return [(kernel, at[2 * i + 1] - at[2 * i]) for i, kernel in enumerate(kernels)]


# Layers and budgets that tile them; two buffers of such a tile still fit L1.
SHARES = (("resnet8", (0, 1, 3, 4, 6)), ("mobilenet", (0, 1, 2, 3, 8)), ("ds_cnn", (0, 1, 2)))


def test_cycles_of_every_plan_are_as_predicted(tmp_path: Path) -> None:
    layers = []
    for network, chosen in SHARES:
        for index in chosen:
            layer = NETWORKS[network]()[index]
            for budget in (256_000, 24_000, 9_000):
                name = f"{network}_{index}_{budget}"
                layers.append((layer, planned_kernels(layer, budget, name, every=False)))
    for network, index in (("resnet8", 6), ("resnet8", 7), ("toyadmos", 1)):
        layer = NETWORKS[network]()[index]
        layers.append((layer, planned_kernels(layer, 24_000, f"{network}_{index}_stay")))
    ratios = []
    pipelined = 0
    for kernel, cycles in measure(layers, tmp_path):
        ratios.append(cycles / kernel.predicted_cycles)
        assert kernel.program is not None
        pipelined += kernel.program.pipelined
    assert pipelined >= 20
    assert abs(median(ratios) - 1) < 0.02
    # Furthest off are small layers that need many commands.
    assert 0.93 < min(ratios) and max(ratios) < 1.08


def test_skipping_polls_is_exact_with_devices_at_work_together(tmp_path: Path) -> None:
    layers = []
    for network, index in (("resnet8", 6), ("resnet8", 7), ("mobilenet", 7), ("toyadmos", 5)):
        layer = NETWORKS[network]()[index]
        for budget in (24_000, 5_000, 200):
            layers.append((layer, planned_kernels(layer, budget, f"{network}_{index}_{budget}")))
    skipped = measure(layers, tmp_path)
    assert sum(k.program.pipelined for k, _ in skipped if k.program is not None) >= 8
    assert skipped == measure(layers, tmp_path, step_polls=True)
