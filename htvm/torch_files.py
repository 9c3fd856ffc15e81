"""Files and programs of torch: which they are, and what is said about those that are not read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from byoc_dory.errors import ModelError

_PICKLED = (".pt", ".pth")
_PROGRAM = ".pt2"
_AS_ONNX = "torch.onnx.export(program, dynamo=True).save('net.onnx')"


def refuse_pickled(path: Path) -> None:
    """Refuse a file of pickled objects, with the way to what can be read; others pass.

    Reading one could run code that is in it, so it is left to torch itself.

    Raises:
        ModelError: the file has an ending of such.
    """
    if path.suffix.lower() in _PICKLED:
        raise ModelError(
            "a file of pickled Python objects is not read",
            where=str(path),
            hint="export the network in torch: program = torch.export.export(net, (x,)), then "
            f"torch.export.save(program, 'net.pt2') if it is quantized, else {_AS_ONNX}",
        )


def refuse_torch_file(path: Path) -> None:
    """Refuse a file that torch writes where a network in reals is expected; others pass.

    Raises:
        ModelError: the file has an ending of torch's.
    """
    refuse_pickled(path)
    if path.suffix.lower() == _PROGRAM:
        raise ModelError(
            "a network in reals is not read from a program's file",
            where=str(path),
            hint=f"in Python: program = torch.export.load({str(path)!r}), then "
            f"htvm.quantize(program, target, data); or {_AS_ONNX}, then htvm quantize net.onnx "
            "--data FILE",
        )


def is_program(model: Any) -> bool:
    """Whether an object is an ``ExportedProgram`` of torch."""
    return type(model).__module__.startswith("torch.export")


def is_module(model: Any) -> bool:
    """Whether an object is a module of torch; without torch, there is none."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)
