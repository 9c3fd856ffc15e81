"""IREE: machine code for this machine's kind of processor, run by its runtime."""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import compared, main, timed

_TRIPLES = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu"}


def probe(case: dict[str, str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        compiled = Path(folder) / "model.vmfb"
        _, seconds = timed(lambda: _compile(Path(case["path"]), Path(folder), compiled))
        blob = compiled.read_bytes()
    from iree import runtime

    config = runtime.Config("local-sync")
    context = runtime.SystemContext(config=config)
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, blob))
    (module,) = (part for name, part in context.modules.items() if name != "hal")
    names = [name for name in module.vm_module.function_names if not name.startswith("__")]
    entry = next(name for name in names if not name.endswith("$async"))

    def run(x: Any) -> Any:
        found = module[entry](x)
        return found.to_host()

    answer = compared(case, run)
    return answer | {
        "compile_seconds": seconds,
        "data_bytes": len(blob),
        "size_of": "compiled module",
    }


def _compile(source: Path, folder: Path, compiled: Path) -> None:
    tools = Path(sys.executable).parent
    imported = folder / "model.mlir"
    if source.suffix == ".tflite":
        _call(tools / "iree-import-tflite", source, "-o", imported)
        kind = "tosa"
    else:
        _call(tools / "iree-import-onnx", source, "-o", imported)
        kind = "onnx"
    triple = _TRIPLES[platform.machine()]
    _call(
        tools / "iree-compile", imported, "-o", compiled, f"--iree-input-type={kind}",
        "--iree-hal-target-backends=llvm-cpu", f"--iree-llvmcpu-target-triple={triple}",
        "--iree-llvmcpu-target-cpu=generic",
    )  # fmt: skip


def _call(*words: Any) -> None:
    if not Path(words[0]).exists():
        raise RuntimeError(f"the packages have no {Path(words[0]).name}")
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        raise RuntimeError((lines or done.stderr.splitlines() or ["failed"])[-1])


main(probe)
