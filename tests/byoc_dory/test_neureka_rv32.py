"""Generated C for N-EUREKA on the simulated SoC: the same results, and the predicted cycles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.layers import Weighted
from byoc_dory.region import Kernel
from byoc_dory.soc.base import Soc
from byoc_dory.soc.siracusa.description import CLUSTER_CORES, SIRACUSA
from byoc_dory.soc.siracusa.neureka import NEUREKA
from byoc_dory.soc.siracusa.neureka_layer import in_blocks, in_windows
from htvm.firmware import host, rv32
from htvm.firmware.paths import driver_folders
from htvm.firmware.socs import machine_of
from htvm.firmware.toolchain import Compiler
from htvm.sim.rv32 import run_rv32
from tests.byoc_dory.neureka_cases import image_layer
from tests.byoc_dory.program import Case, sources
from tests.byoc_dory.test_neureka_native import cases


def firmware_main(found: list[Case]) -> str:
    """A main that runs every case on inputs and outputs of its own, with marks around cases.

    Results between the kernels of a case stay in L1.
    """
    lines = ['#include "htvm_hal.h"\n', sources([case.code for case in found])]
    place = '__attribute__((section(".noinit"), aligned(16))) int8_t'
    body = []
    for number, case in enumerate(found):
        lines.append(f"{place} in_{number}[{case.inputs[0].size}];\n")
        lines.append(f"{place} out_{number}[{case.outputs[0].size}];\n")
        body.append(f"    htvm_hal_trace({2 * number});\n")
        for kernel in case.code.kernels:
            places = [f"in_{number}" for _ in kernel.inputs]
            places += [f"out_{number}" for _ in kernel.outputs]
            body.append(f"    code |= {kernel.symbol}({', '.join(places)});\n")
        body.append(f"    htvm_hal_trace({2 * number + 1});\n")
    begin = "int main(void)\n{\n    int32_t code = 0;\n"
    return "".join([*lines, begin, *body, "    return code;\n}\n"])


def measure(found: list[Case], folder: Path, soc: Soc) -> list[tuple[Kernel, int]]:
    """Run the cases, check their outputs, return the cycles of each, with its first kernel."""
    source = folder / "main.c"
    source.write_text(firmware_main(found))
    compiler = Compiler.zig()
    firmware = rv32.build_firmware(
        [source, *host.driver_sources(soc)],
        driver_folders(soc),
        machine_of(soc),
        folder / "out",
        compiler,
        stack_bytes=soc.host.stack,
    )
    result = run_rv32(
        firmware,
        {f"in_{number}": case.inputs[0].tobytes() for number, case in enumerate(found)},
        {f"out_{number}": case.outputs[0].size for number, case in enumerate(found)},
        compiler=compiler,
    )
    for number, case in enumerate(found):
        got = np.frombuffer(result.outputs[f"out_{number}"], np.uint8)
        assert np.array_equal(got, case.outputs[0]), case.code.kernels[0].source
    at = {event: cycle for cycle, event in result.marks}
    return [
        (case.code.kernels[0], at[2 * number + 1] - at[2 * number])
        for number, case in enumerate(found)
    ]


@pytest.mark.rotating(1)
@pytest.mark.parametrize("weights", ["", "SRAM"])
def test_cycles_are_as_predicted(weights: str, tmp_path: Path) -> None:
    core = replace(NEUREKA, weight_memory=weights)
    soc = replace(SIRACUSA, accelerators=(core, CLUSTER_CORES))
    measured = measure(cases(40, 3000, soc), tmp_path, soc)
    errors: dict[bool, list[float]] = {False: [], True: []}
    for kernel, cycles in measured:
        assert isinstance(kernel.layer, Weighted)
        errors[in_windows(kernel.layer)].append(abs(kernel.predicted_cycles / cycles - 1))
    assert np.median(errors[False]) < 0.05 and max(errors[False]) < 0.2
    # The cores that copy windows meet in the banks of L1.
    assert np.median(errors[True]) < 0.2 and max(errors[True]) < 0.5


def test_cycles_of_images_are_as_predicted(tmp_path: Path) -> None:
    errors = []
    for kernel, cycles in measure(cases(30, 3100, SIRACUSA, image_layer), tmp_path, SIRACUSA):
        assert isinstance(kernel.layer, Weighted) and in_blocks(kernel.layer)
        errors.append(abs(kernel.predicted_cycles / cycles - 1))
    assert np.median(errors) < 0.06 and max(errors) < 0.15
