"""onnxruntime: an ONNX file, one thread, default optimizations."""

from __future__ import annotations

from typing import Any

from common import compared, main, timed


def probe(case: dict[str, str]) -> dict[str, Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session, seconds = timed(
        lambda: onnxruntime.InferenceSession(
            case["path"], options, providers=["CPUExecutionProvider"]
        )
    )
    name = session.get_inputs()[0].name

    def run(x: Any) -> Any:
        return session.run(None, {name: x})[0]

    return compared(case, run) | {"compile_seconds": seconds}


main(probe)
