"""TFLite Micro on a file in memory, for a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["run"]


def run(content: bytes, inputs: Sequence[Any], outputs: int) -> list[Any] | str:
    """Return what TFLite Micro computes, or why it does not run the file."""
    from tflite_micro import runtime

    try:
        interpreter = runtime.Interpreter.from_bytes(content)
        for at, array in enumerate(inputs):
            interpreter.set_input(array, at)
        interpreter.invoke()
        return [interpreter.get_output(at).copy() for at in range(outputs)]
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
