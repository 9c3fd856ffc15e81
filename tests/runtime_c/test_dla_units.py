"""The accelerator's model in C: random instructions, plain and with sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from htvm.firmware.host import sanitizing
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler
from tests.runtime_c.test_c_units import STRICT
from tests.tools import tool


@pytest.mark.parametrize(
    ("name", "sanitize"), [("zig", True), pytest.param("gcc", True, marks=pytest.mark.slow)]
)
def test_random_instructions(tmp_path: Path, name: str, sanitize: bool) -> None:
    if name != "zig":
        tool(name)
    compiler = Compiler.zig(host=None if name == "zig" else name)
    if sanitize:
        compiler = sanitizing(compiler)
    root = runtime_c()
    models = [
        path
        for path in sorted((root / "soc" / "dla" / "model").glob("*.c"))
        if path.name != "dla_soc.c"
    ]
    program = compiler.compile_host(
        [root / "tests" / "soc" / "dla" / "random_check.c", *models],
        tmp_path / "test",
        [root / "soc" / "dla", root / "soc" / "dla" / "model"],
        STRICT,
    )
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
