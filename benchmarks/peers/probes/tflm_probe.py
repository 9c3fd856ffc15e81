"""TFLite Micro: a TFLite file in its interpreter, with reference kernels."""

from __future__ import annotations

from typing import Any

from common import compared, main, timed


def probe(case: dict[str, str]) -> dict[str, Any]:
    from tflite_micro.python.tflite_micro.runtime import Interpreter

    def smallest() -> tuple[Any, int]:
        """Return an interpreter with the smallest arena, to 1 KiB, that it takes."""
        low, high = 0, 1024
        while high <= 4096 and not fits(high * 1024):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if fits(middle * 1024) else (middle, high)
        return Interpreter.from_file(case["path"], arena_size=high * 1024), high * 1024

    def fits(size: int) -> bool:
        try:
            Interpreter.from_file(case["path"], arena_size=size)
        except RuntimeError:
            return False
        return True

    (interpreter, arena), _ = timed(smallest)
    shape = interpreter.get_input_details(0)["shape"]

    def run(x: Any) -> Any:
        interpreter.set_input(x.reshape(shape), 0)
        interpreter.invoke()
        return interpreter.get_output(0)

    return compared(case, run) | {"ram_bytes": arena, "size_of": "arena, to 1 KiB"}


main(probe)
