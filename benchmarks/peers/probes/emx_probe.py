"""emx-onnx-cgen: C of an ONNX file, compiled for RV32IMC and natively by the compiler given."""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import compared, golden, main, timed


def probe(case: dict[str, str]) -> dict[str, Any]:
    import numpy as np

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        source = Path("network.c").resolve()
        command = [str(Path(sys.executable).parent / "emx-onnx-cgen"), "compile", case["path"],
                   str(source), "--model-name", "model", "--large-weight-threshold", "0",
                   "--large-temp-threshold", "0"]  # fmt: skip
        _, seconds = timed(lambda: _call(command))
        compiler = json.loads(case["compiler"])
        library, object_ = folder / "model.so", folder / "model.o"
        _call([*compiler, "-O3", "-shared", "-fPIC", "-o", str(library), str(source), "-lm"])
        target = ["--target=riscv32-linux-musl", "-mcpu=generic_rv32+m+c", "-mabi=ilp32"]
        sizes: dict[str, Any] = {}
        try:
            _call([*compiler, *target, "-Os", "-c", "-o", str(object_), str(source)])
            sizes = _sizes(object_)
        except RuntimeError as error:
            sizes = {"reason": f"no object for RV32: {error}"[:120]}
        inputs, outputs = golden(case)
        name = _entry(source.read_text())
        entry = getattr(ctypes.CDLL(str(library)), name)

        def run(x: Any) -> Any:
            x = np.asarray(x, order="C")
            result = np.empty(outputs[0].shape, outputs.dtype)
            entry(x.ctypes.data_as(ctypes.c_void_p), result.ctypes.data_as(ctypes.c_void_p))
            return result

        answer = compared(case, run)
    return answer | sizes | {"compile_seconds": seconds, "entry": name}


def _entry(text: str) -> str:
    """Return the name of the function that runs the whole network."""
    return re.findall(r"^void (model\w*)\(", text, re.M)[-1]


def _sizes(path: Path) -> dict[str, Any]:
    from elftools.elf.elffile import ELFFile

    kinds = {"code_bytes": ".text", "data_bytes": ".rodata", "ram_bytes": (".data", ".bss")}
    with path.open("rb") as file:
        sections = [(s.name, s["sh_size"]) for s in ELFFile(file).iter_sections()]
    sizes = {
        kind: sum(size for name, size in sections if name.startswith(begins))
        for kind, begins in kinds.items()
    }
    return sizes | {"size_of": "RV32IMC object, -Os; RAM without stack"}


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["failed"])[-1])


main(probe)
