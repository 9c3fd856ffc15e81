"""`htvm.relax.to_c` on a Cortex-M4, in the emulator: compiled by Arm's GCC with its newlib."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.soc.registry import resolve
from htvm.firmware.arm import linker_script
from htvm.firmware.linked import Firmware
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler
from htvm.relax import CFunction, to_c
from htvm.sim.arm import run_arm
from tests.relax.modules import CASES, module_of
from tests.relax.native import Reference, assert_same, flat
from tests.tools import tool

FLAGS = ("-mthumb", "-mcpu=cortex-m4", "-mfloat-abi=soft", "-O2", "-fno-stack-protector")
NAMES = ["mlp", "conv_nhwc", "int8_qdq", "lstm", "attention_written_out", "layer_norm"]


def main_text(function: CFunction) -> str:
    """A program that calls a function with arrays that the emulator fills and reads."""
    place = '__attribute__((section(".noinit"), aligned(16)))'
    groups = (("input", function.inputs), ("output", function.outputs))
    tensors = [
        (f"{kind}_{at}", int(np.prod(info.shape)) * np.dtype(info.dtype).itemsize)
        for kind, infos in groups
        for at, info in enumerate(infos)
    ]
    arrays = "".join(f"{place} unsigned char {name}[{size}];\n" for name, size in tensors)
    arguments = ", ".join(f"(void *){name}" for name, _ in tensors)
    return (
        f'#include "{function.name}.h"\n{arrays}'
        # The emulator waits for the return to main.
        f"int main(void)\n{{\n    const int32_t code = {function.name}_run({arguments});\n"
        '    __asm__ volatile("" ::: "memory");\n    return code;\n}\n'
    )


@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", NAMES)
def test_functions_compute_the_same_on_a_microcontroller(name: str, tmp_path: Path) -> None:
    module = module_of([name])
    library = to_c(module, name="net")
    library.write(tmp_path / "c")
    (function,) = library.functions
    (tmp_path / "main.c").write_text(main_text(function))
    soc = resolve("cortex_m4").soc
    (tmp_path / "link.ld").write_text(linker_script(soc))
    platform = runtime_c() / "platform" / "arm"
    sources = [tmp_path / "main.c", platform / "startup.c", *(tmp_path / "c" / "src").glob("*.c")]
    command = [
        *(
            tool("arm-none-eabi-gcc"),
            *FLAGS,
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            f"-I{tmp_path / 'c' / 'include'}",
        ),
        *("-nostartfiles", "-specs=nosys.specs", f"-T{tmp_path / 'link.ld'}", "-Wl,--gc-sections"),
        *(*map(str, sources), "-lm", "-o", str(tmp_path / "firmware.elf")),
    ]
    subprocess.run(command, check=True)
    arrays = CASES[name].arrays()
    run = run_arm(
        Firmware.open(tmp_path / "firmware.elf", soc, soc.host.stack),
        {f"input_{at}": each.tobytes() for at, each in enumerate(flat(arrays))},
        {
            f"output_{at}": int(np.prod(info.shape)) * np.dtype(info.dtype).itemsize
            for at, info in enumerate(function.outputs)
        },
        entry="net_run",
        kernels=[],
        compiler=Compiler.zig(),
    )
    found = [
        np.frombuffer(run.outputs[f"output_{at}"], info.dtype).reshape(info.shape)
        for at, info in enumerate(function.outputs)
    ]
    assert_same(found, Reference(module).run(name, arrays))
