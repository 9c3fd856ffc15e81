"""`load`: any supported source of a quantized network becomes a `Model`."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from byoc_dory.errors import ModelError

if TYPE_CHECKING:
    from tvm.ir import IRModule

    from htvm.model import Model

__all__ = ["load"]


def load(source: str | PathLike[str] | IRModule, name: str | None = None) -> Model:
    """Load a quantized network.

    Args:
        source: a ``.tflite`` file quantized fully to int8, or a Relax IRModule whose function
            ``main`` is in quantize/dequantize form or already in the integer form.
        name: of the model, used for C symbols; default: the file's name, or ``"model"``.

    Returns:
        The model in the integer form.

    Raises:
        ModelError: if it is not a model, or damaged.
        UnsupportedError: if it uses an operator or quantization that is not supported.
        IntegerFormError: if a module is in neither form.
    """
    if isinstance(source, str | PathLike):
        path = Path(source)
        if _is_folder(path):
            raise ModelError("a folder is not a model", where=str(path), hint="give a file")
        from htvm.frontend.tflite import load_tflite

        return load_tflite(path, name)
    from htvm.frontend.module import load_module

    return load_module(source, name)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long; reading says so
        return False
