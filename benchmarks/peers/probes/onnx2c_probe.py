"""onnx2c: C of an ONNX file, compiled natively by the compiler given."""

from __future__ import annotations

import ctypes
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from common import compared, golden, main, timed

_ENTRY = "entry"


def probe(case: dict[str, str]) -> dict[str, Any]:
    import numpy as np

    source = Path("network.c").resolve()
    done, seconds = timed(
        lambda: subprocess.run(["onnx2c", case["path"]], capture_output=True, text=True)
    )
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["failed"])[-1])
    source.write_text(done.stdout)
    with tempfile.TemporaryDirectory() as place:
        library = Path(place) / "model.so"
        line = [*json.loads(case["compiler"]), "-O3", "-shared", "-fPIC", "-w"]
        subprocess.run([*line, "-o", str(library), str(source), "-lm"], check=True)
        outputs = golden(case)[1]
        entry = getattr(ctypes.CDLL(str(library)), _ENTRY)

        def run(x: Any) -> Any:
            x = np.asarray(x, order="C")
            result = np.empty(outputs[0].shape, outputs.dtype)
            entry(x.ctypes.data_as(ctypes.c_void_p), result.ctypes.data_as(ctypes.c_void_p))
            return result

        answer = compared(case, run)
    return answer | {"compile_seconds": seconds, "entry": _ENTRY, "size_of": "on the M4"}


main(probe)
