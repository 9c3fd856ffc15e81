"""Files and programs of torch, which are networks in reals: what is said about them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from byoc_dory.errors import ModelError

_PICKLED = (".pt", ".pth")
_PROGRAM = ".pt2"
_AS_ONNX = "torch.onnx.export(program, dynamo=True).save('net.onnx')"


def refuse_torch_file(path: Path) -> None:
    """Refuse a file that torch writes, with the way to what can be read; others pass.

    Reading one could run code that is in it, so it is left to torch itself.

    Raises:
        ModelError: the file has an ending of torch's.
    """
    ending = path.suffix.lower()
    if ending in _PICKLED:
        raise ModelError(
            "a file of pickled Python objects is not read",
            where=str(path),
            hint=f"export the network in torch: torch.export.export(net, (x,)), then {_AS_ONNX}",
        )
    if ending != _PROGRAM:
        return
    if not path.is_file():
        raise ModelError("the file cannot be read: there is none", where=str(path))
    if not _is_archive(path):
        raise ModelError(
            "not a program of torch: it is no archive that torch.export.save wrote",
            where=str(path),
            hint="write it again with torch.export.save(program, path)",
        )
    raise ModelError(
        "a program of torch is not read from its file",
        where=str(path),
        hint=f"in Python: program = torch.export.load({str(path)!r}), then htvm.quantize(program, "
        f"target, data); or {_AS_ONNX}, then htvm quantize net.onnx --data FILE",
    )


def is_program(model: Any) -> bool:
    """Whether an object is an ``ExportedProgram`` of torch."""
    return type(model).__module__.startswith("torch.export")


def refuse_program(program: Any) -> None:
    """Refuse an ``ExportedProgram`` where a quantized network is expected; others pass.

    Raises:
        ModelError: it is one.
    """
    if is_program(program):
        raise ModelError(
            "a program of torch is not read directly",
            where="what was given as the model",
            hint="htvm.quantize(program, target, data) makes an int8 model of a network in reals; "
            "a quantized one is read from TVM's importer: from_exported_program(program, "
            "custom_convert_map=htvm.relax.torch_converters())",
        )


def _is_archive(path: Path) -> bool:
    """Whether a file is a zip archive with the parts of a program."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.rpartition("/")[2] for name in archive.namelist()}
    except (OSError, zipfile.BadZipFile):
        return False
    return bool(names & {"archive_format", "archive_version", "serialized_exported_program.json"})
