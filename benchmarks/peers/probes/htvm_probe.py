"""This project: a file for one RV32 core, and the exported C as a native library."""

from __future__ import annotations

import ctypes
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from common import compared, golden, main, timed


def probe(case: dict[str, str]) -> dict[str, Any]:
    import htvm

    model = htvm.load(case["path"])
    module, seconds = timed(lambda: htvm.build(model, "generic.cpu"))
    memory = module.report().summary.memory
    with tempfile.TemporaryDirectory() as name:
        folder = module.export(Path(name) / "project")
        answer = compared(case, _native(folder, module.name, case))
    return answer | {
        "code_bytes": memory.code,
        "data_bytes": memory.constants,
        "ram_bytes": memory.arena + memory.stack + memory.io,
        "size_of": "RV32IMC firmware",
        "compile_seconds": seconds,
    }


def _native(folder: Path, name: str, case: dict[str, str]) -> Any:
    """Return a function that runs the exported C, compiled with -O3."""
    import numpy as np

    library = folder / "native.so"
    platform = folder / "simulator" / "platform" / "host"
    sources = [path for path in (folder / "src").glob("*.c")]
    sources += [*folder.glob("*/soc/**/*.c"), platform / "htvm_host.c"]
    stub = folder / "stub.c"  # the platform calls a program, which is not wanted here
    stub.write_text("int htvm_program_main(void); int htvm_program_main(void) { return 0; }\n")
    folders = ("include", "src", "runtime/include", "simulator/include")
    includes = [f"-I{path}" for path in (platform, *(folder / name for name in folders))]
    subprocess.run(
        [*json.loads(case["compiler"]), "-std=c11", "-O3", "-ffp-contract=off", "-shared", "-fPIC",
         "-o", str(library), *map(str, [*sources, stub]), *includes, "-lm"],
        check=True,
    )  # fmt: skip
    entry = getattr(ctypes.CDLL(str(library)), f"{name}_run")
    outputs = golden(case)[1]

    def run(x: Any) -> Any:
        x = x.copy()  # aligned, as the entry function asks for
        result = np.empty(outputs[0].shape, outputs.dtype)
        error = entry(x.ctypes.data_as(ctypes.c_void_p), result.ctypes.data_as(ctypes.c_void_p))
        if error:
            raise RuntimeError(f"the entry function returned {error}")
        return result

    return run


main(probe)
