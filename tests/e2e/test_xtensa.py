"""Networks on Xtensa cores: compiled by GCC for an LX106, executed by QEMU."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import htvm
from byoc_dory.errors import DependencyError, ToolchainError
from byoc_dory.soc.registry import resolve
from htvm.firmware.packages import FLAGS
from htvm.firmware.user_compiler import user_compiler
from htvm.inputs import seeded_inputs
from tests.models import MODELS, golden
from tests.tools import tool

_GCC = "xtensa-lx106-elf-gcc"
_STRICT = ("-Wall", "-Wextra", "-Werror", "-mlongcalls", "-c")


@pytest.fixture(autouse=True)
def machine() -> None:
    for name in (_GCC, "qemu-xtensa"):
        tool(name)


@pytest.mark.parametrize("target", ["xtensa_lx7", "esp32", "esp32-s3:cores=2"])
def test_digits_are_equal_and_counted(target: str) -> None:
    module = htvm.build("zoo:digits", target)
    inputs = seeded_inputs(module.model.inputs)
    result = module.run(inputs)
    np.testing.assert_array_equal(result.outputs[0], module.reference(inputs)[0])
    assert result.instructions is not None and result.instructions > 100_000
    assert module.built.compiler.gcc.startswith(_GCC)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["esp32", "esp32-s3:cores=2"])
@pytest.mark.parametrize("name", MODELS)
def test_networks_equal_their_goldens(name: str, target: str) -> None:
    case = golden(name)
    module = htvm.build(htvm.load(case.path), target)
    for number in range(2):
        (output,) = module.run([case.inputs[number]]).outputs
        np.testing.assert_array_equal(output, case.outputs[number])


@pytest.mark.parametrize("target", ["esp32", "esp32:cores=2"])
def test_a_component_has_no_warnings(target: str, tmp_path: Path) -> None:
    module = htvm.build("zoo:digits", target)
    package = module.export(tmp_path / "net", kind="esp-idf")
    libc = Path(htvm.__file__).parents[1] / "runtime_c/platform/rv32/libc"
    folders = (package / "include", package / "src", libc)
    for source in sorted((package / "src").glob("*.c")):
        subprocess.run(
            [_GCC, *FLAGS, *_STRICT, *(f"-I{each}" for each in folders), source, "-o", "/dev/null"],
            check=True,
            timeout=300,
        )


def test_a_compiler_for_another_core_is_refused() -> None:
    with pytest.raises(ToolchainError, match="no GCC for Xtensa LX6.*such as xtensa-lx106-elf-gcc"):
        user_compiler(tool("gcc"), resolve("esp32").soc)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == _GCC else found(name))
    with pytest.raises(DependencyError, match="need xtensa-lx106-elf-gcc; .*gcc-xtensa-lx106"):
        htvm.build("zoo:digits", "esp32")
