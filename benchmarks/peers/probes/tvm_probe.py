"""TVM as it comes: its own importer, default pipeline, LLVM, the Relax virtual machine."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from common import compared, golden, main, timed


def probe(case: dict[str, str]) -> dict[str, Any]:
    import numpy as np
    import tvm
    from tvm import relax

    module = _imported(case)
    executable, seconds = timed(lambda: tvm.compile(module, "llvm"))
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "lib.so"
        executable.export_library(str(library))
        size = library.stat().st_size
    machine = relax.VirtualMachine(executable, tvm.cpu())
    shape = golden(case)[0][0].shape

    def run(x: Any) -> Any:
        found = machine["main"](tvm.runtime.tensor(np.asarray(x.reshape(shape), order="C")))
        while not hasattr(found, "numpy"):
            found = found[0]
        return found.numpy()

    answer = compared(case, run)
    return answer | {"compile_seconds": seconds, "data_bytes": size, "size_of": "shared library"}


def _imported(case: dict[str, str]) -> Any:
    if case["path"].endswith(".onnx"):
        import onnx
        from tvm.relax.frontend.onnx import from_onnx

        return from_onnx(onnx.load(case["path"]), keep_params_in_input=False)
    import tflite
    from tvm.relax.frontend.tflite import from_tflite

    with open(case["path"], "rb") as file:
        return from_tflite(tflite.Model.GetRootAsModel(file.read(), 0))


main(probe)
