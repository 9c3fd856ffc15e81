"""The host platform: native programs with device models, built and run from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byoc_dory.errors import ExportError, SimulationError, ToolchainError
from byoc_dory.soc.registry import resolve
from htvm.firmware import host
from htvm.firmware.toolchain import Compiler
from htvm.sim.host import run_host
from tests.runtime_c.device import DIANA
from tests.tools import tool

# Adds two vectors of 64 bytes on the accelerator, then doubles the first on the CPU.
ADD_MAIN = """
#include "htvm_host.h"
#include "htvm_hal.h"
#include "diana_driver.h"

static int8_t a[64], b[64], sum[64], twice[64];

int main(void)
{
    const diana_block_t block = {.channels = 1, .rows = 1, .bytes = 64};
    const diana_add_t add = {.elements = 64, .a = 0, .b = 64, .out = OUT};
    if (htvm_host_read(0, a, sizeof a) != 0 || htvm_host_read(1, b, sizeof b) != 0) {
        return HTVM_HOST_USAGE;
    }
    htvm_hal_trace(0);
    int32_t error = diana_dma_in(0, a, &block);
    error = error != 0 ? error : diana_dma_in(64, b, &block);
    error = error != 0 ? error : diana_digital_add(&add);
    error = error != 0 ? error : diana_dma_out(sum, OUT, &block);
    htvm_hal_trace(1);
    if (error != 0) {
        return error;
    }
    for (int i = 0; i < 64; i++) {
        twice[i] = (int8_t)(2 * a[i]);
    }
    if (htvm_host_write(0, sum, sizeof sum) != 0) {
        return HTVM_HOST_USAGE;
    }
    return htvm_host_write(1, twice, sizeof twice);
}
"""


def build(folder: Path, text: str, sanitize: bool = False, compiler: str | None = None) -> Any:
    source = folder / "main.c"
    source.write_text(text)
    return host.build(
        [source], [], DIANA, folder / "out", Compiler.zig(host=compiler), sanitize=sanitize
    )


@pytest.fixture(scope="module")
def adder(tmp_path_factory: pytest.TempPathFactory) -> host.HostProgram:
    return build(tmp_path_factory.mktemp("adder"), ADD_MAIN.replace("OUT", "128"))


def operands() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    a, b = rng.integers(-128, 128, (2, 64)).astype(np.int8)
    return a, b


def check(program: host.HostProgram) -> None:
    a, b = operands()
    added, twice = run_host(program, [a.tobytes(), b.tobytes()], [64, 64])
    want = np.clip(a.astype(int) + b, -128, 127).astype(np.int8)
    assert added == want.tobytes()
    assert twice == (2 * a).tobytes()


def test_program_reads_computes_and_writes(adder: host.HostProgram) -> None:
    check(adder)


def test_events_tell_what_the_devices_did(adder: host.HostProgram) -> None:
    events: list[dict[str, Any]] = []
    a, b = operands()
    run_host(adder, [a.tobytes(), b.tobytes()], [64, 64], events=events)
    assert any(e["unit"] == "host" for e in events)  # it waits for each of them
    events = [e for e in events if e["unit"] != "host"]
    assert [(e["unit"], e["what"], e["bytes"]) for e in events] == [
        ("dma", "in", 64),
        ("dma", "in", 64),
        ("digital", "add", 0),
        ("dma", "out", 64),
    ]
    assert all(e["start"] < e["end"] for e in events)
    assert all(one["end"] <= two["start"] for one, two in zip(events, events[1:], strict=False))


def test_sanitized_zig(tmp_path: Path) -> None:
    check(build(tmp_path, ADD_MAIN.replace("OUT", "128"), sanitize=True))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_sanitized_other_compilers(tmp_path: Path, compiler: str) -> None:
    tool(compiler)
    check(build(tmp_path, ADD_MAIN.replace("OUT", "128"), sanitize=True, compiler=compiler))


def test_sanitizer_stops_undefined_behaviour(tmp_path: Path) -> None:
    text = ADD_MAIN.replace("OUT", "128").replace("htvm_hal_trace(0);", "x = x + 2147483647;")
    program = build(
        tmp_path, text.replace("int main", "static volatile int x = 1;\nint main"), True
    )
    with pytest.raises(SimulationError, match="crashed|returned"):
        check(program)


def test_device_complaint_becomes_an_error(tmp_path: Path) -> None:
    program = build(tmp_path, ADD_MAIN.replace("OUT", "96"))
    a, b = operands()
    with pytest.raises(SimulationError) as caught:
        run_host(program, [a.tobytes(), b.tobytes()], [64, 64])
    message = str(caught.value)
    assert "digital core: add: output at L1 0x10000060 (64 B) overlaps input" in message
    assert str(program.path) in message


def test_race_becomes_an_error(tmp_path: Path) -> None:
    """Devices are at work at the same time here, too."""
    racing = "int32_t error = diana_dma_in(0, a, &block); diana_dma_in_start(64, b, &block);"
    text = ADD_MAIN.replace("OUT", "128").replace(
        "int32_t error = diana_dma_in(0, a, &block);", racing
    )
    text = text.replace("    error = error != 0 ? error : diana_dma_in(64, b, &block);\n", "")
    a, b = operands()
    with pytest.raises(SimulationError, match="add reads L1 0x10000040 .* while the DMA still"):
        run_host(build(tmp_path, text), [a.tobytes(), b.tobytes()], [64, 64])


def test_stack_is_not_l2(tmp_path: Path) -> None:
    text = ADD_MAIN.replace("OUT", "128").replace("static int8_t a[64],", "static int8_t")
    program = build(
        tmp_path,
        text.replace("    const diana_block_t", "    int8_t a[64];\n    const diana_block_t", 1),
    )
    a, b = operands()
    with pytest.raises(SimulationError, match="DMA: L2 address .* is not memory"):
        run_host(program, [a.tobytes(), b.tobytes()], [64, 64])


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ([b"x" * 64, b"y" * 63], [64, 64], "input 1 is not 64 B"),
        ([b"x" * 64, b"y" * 65], [64, 64], "input 1 is not 64 B"),
        ([b"x" * 64], [64, 64], "no file given for input 1"),
        ([b"x" * 64, b"y" * 64], [64], "no file given for output 1"),
        ([b"x" * 64, b"y" * 64], [64, 60], "output_1 has 64 B, 60 B were expected"),
        ([b"x" * 64, b"y" * 64], [64, 64, 4], "did not write output_2"),
    ],
)
def test_wrong_files(
    adder: host.HostProgram, inputs: list[bytes], outputs: list[int], message: str
) -> None:
    with pytest.raises(SimulationError, match=message):
        run_host(adder, inputs, outputs)


def test_failure_crash_and_hang_are_told_apart(tmp_path: Path) -> None:
    text = """
        #include "htvm_host.h"
        static volatile int mode;
        int main(void)
        {
            unsigned char wish;
            if (htvm_host_read(0, &wish, 1) != 0) { return HTVM_HOST_USAGE; }
            if (wish == 1) { return 5; }
            if (wish == 2) { __builtin_trap(); }
            while (wish == 3) { mode++; }
            return 0;
        }
    """
    program = build(tmp_path, text)
    assert run_host(program, [b"\0"], []) == []
    with pytest.raises(SimulationError, match="returned 5"):
        run_host(program, [b"\1"], [])
    with pytest.raises(SimulationError, match="crashed .SIG"):
        run_host(program, [b"\2"], [])
    with pytest.raises(SimulationError, match="did not end within 0.2 s"):
        run_host(program, [b"\3"], [], timeout_s=0.2)
    program.path.unlink()
    with pytest.raises(SimulationError, match="cannot be started"):
        run_host(program, [b"\0"], [])


def test_a_soc_without_devices(tmp_path: Path) -> None:
    text = """
        #include "htvm_host.h"
        static unsigned char data[3];
        int main(void)
        {
            return htvm_host_read(0, data, 3) != 0 ? 1 : htvm_host_write(0, data, 3);
        }
    """
    source = tmp_path / "main.c"
    source.write_text(text)
    soc = resolve("generic.cpu").soc
    program = host.build([source], [], soc, tmp_path / "out", Compiler.zig())
    assert run_host(program, [b"abc"], [3]) == [b"abc"]


def test_build_errors(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="nonsense"):
        build(tmp_path, "nonsense")
    assert not (tmp_path / "out" / "model").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="cannot write the program"):
        host.build([], [], DIANA, tmp_path / "file", Compiler.zig())
