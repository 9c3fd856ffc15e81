"""LiteRT: a TFLite file, one thread, default kernels."""

from __future__ import annotations

from typing import Any

from common import compared, main, timed


def probe(case: dict[str, str]) -> dict[str, Any]:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=case["path"], num_threads=1)
    _, seconds = timed(interpreter.allocate_tensors)
    (source,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()

    def run(x: Any) -> Any:
        interpreter.set_tensor(source["index"], x.reshape(source["shape"]))
        interpreter.invoke()
        return interpreter.get_tensor(result["index"])

    return compared(case, run) | {"compile_seconds": seconds}


main(probe)
