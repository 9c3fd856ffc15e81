"""`load`: turns any supported source of a quantized network into a `Model`; `opened`: or takes one.

Everything public that takes a model takes what `opened` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from byoc_dory.errors import InputError, ModelError
from htvm.public import public
from htvm.torch_files import is_module, is_program, refuse_pickled

if TYPE_CHECKING:
    from tvm.ir import IRModule

    from htvm.frontend.limits import Limits
    from htvm.frontend.torch import Semantics
    from htvm.model import Model
    from htvm.quantization.samples import Data, Labels

PRINTED = "Value after the stage "
"""How the text of a printed stage begins (`htvm.tools.printing`)."""

_ZOO = "zoo:"


@public
def load(
    source: str | PathLike[str] | IRModule,
    name: str | None = None,
    *,
    dialect: str | None = None,
    input_types: Mapping[str, str] | None = None,
    dimensions: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    limits: Limits | None = None,
    semantics: Semantics | None = None,
) -> Model:
    """Load a quantized network.

    Args:
        source: a ``.tflite`` file quantized fully to int8, an ``.onnx`` file, a quantized program
            of torch (a ``.pt2`` file or an ``ExportedProgram``), a built-in network such as
            ``"zoo:resnet8"`` (see `htvm.zoo.named`), or a Relax IRModule whose function ``main`` is
            as TVM's importers write it (with zero points of the type of their tensors it has ONNX's
            arithmetic, with int32 ones TFLite's), or already in the integer form.
        name: name of the model, used for C symbols; by default the file's name, or ``"model"``.
        dialect: dialect of an ONNX file (see `htvm.frontend.onnx.dialect.READERS`); recognised if
            not given.
        input_types: integer types of an ONNX file's inputs that are declared as reals, e.g.
            ``{"input": "uint8"}``.
        dimensions: sizes of named dimensions that an ONNX file leaves open, e.g. ``{"batch": 1}``.
        input_shapes: shapes of inputs of an ONNX file that leaves sizes open, e.g.
            ``{"keys": (1, 16, 0, 4)}``; by default those of the arrays in ``inputs.npz`` beside the
            file, if it is there. An input without elements, such as an empty cache, is no input of
            the model.
        limits: what reading a file may take (`htvm.Limits`), for one that is refused for it.
        semantics: arithmetic of a program of torch: ``"torch"`` (the default), its own in integers,
            or ``"tflite"``, that of TFLite's kernels, which differs by a step here and there.

    Returns:
        The model in the integer form.

    Raises:
        ModelError: it is not a model, or damaged.
        UnsupportedError: it uses an unsupported operator or quantization, or reading it takes more
            than the limits.
        IntegerFormError: the module is in neither form.
        DependencyError: the built-in network is trained, and the extra ``digits`` is not installed.
    """
    if limits is not None:
        from htvm.frontend.limits import Limits

        if not isinstance(limits, Limits):
            raise InputError(
                f"a {type(limits).__name__} is no limit of reading",
                where="option 'limits'",
                hint="give htvm.Limits(...)",
            )
    options: dict[str, object] = {
        "dialect": dialect,
        "input_types": input_types,
        "dimensions": dimensions,
        "input_shapes": input_shapes,
    }
    if isinstance(source, str) and source.startswith(_ZOO):
        from htvm.tools.zoo import named

        _refuse_onnx_options(options, source)
        _refuse_semantics(semantics, source)
        found = named(source)
        return found if name is None else replace(found, name=name)
    if isinstance(source, str | PathLike):
        path = Path(source)
        if not str(source):  # else the current folder
            raise ModelError(
                "the name of the model is empty",
                where="model",
                hint="give a .tflite, .onnx or .pt2 file, or zoo:NAME",
            )
        if _is_folder(path):
            raise ModelError("a folder is not a model", where=str(path), hint="give a file")
        if _is_device(path):
            # Reading a pipe, or some devices, may never end.
            raise ModelError("a device or pipe is not a model", where=str(path), hint="give a file")
        _refuse_printed(path)
        for option in ("input_types", "dimensions", "input_shapes"):
            given = options[option]
            if given is not None and not isinstance(given, Mapping):
                raise ModelError(
                    f"a {type(given).__name__} is no choice of {option}",
                    where=f"option '{option}'",
                    hint="give a dict by name",
                )
        if path.suffix.lower() == ".onnx":
            from htvm.frontend.onnx import load_onnx

            _refuse_semantics(semantics, str(path))
            return load_onnx(
                path,
                name,
                dialect=dialect,
                input_types=input_types,
                dimensions=dimensions,
                input_shapes=input_shapes,
                limits=limits,
            )
        refuse_pickled(path)
        _refuse_onnx_options(options, str(path))
        if path.suffix.lower() == ".pt2":
            from htvm.frontend.torch import load_pt2

            return load_pt2(path, name, limits, semantics)
        _refuse_semantics(semantics, str(path))
        from htvm.frontend.tflite import load_tflite

        return load_tflite(path, name, limits)
    if is_module(source):
        from htvm.torch import export

        source = export(source)
    if is_program(source):
        from htvm.frontend.torch import load_program

        _refuse_onnx_options(options, "a program of torch")
        return load_program(source, name, limits, semantics)
    _refuse_onnx_options(options, "an IRModule")
    _refuse_semantics(semantics, "an IRModule")
    from htvm.frontend.module import load_module

    return load_module(source, name)


def opened(model: Model | str | PathLike[str] | IRModule, limits: Limits | None = None) -> Model:
    """Return a model as it is, and anything else as `load` does, with its errors."""
    from htvm.model import Model

    return model if isinstance(model, Model) else load(model, limits=limits)


def with_samples(
    model: Model | str | PathLike[str] | IRModule, data: Data | None, labels: Labels | None
) -> Model:
    """Return a model with calibration inputs, and with their labels.

    Args:
        model: what `opened` takes.
        data: its new calibration inputs, in its inputs' numbers; None for those that it has.
        labels: the right class of each; None for none.

    Raises:
        InputError: data or labels are not possible, or there are labels without data.
    """
    from htvm.quantization.samples import checked_labels, stacked_samples

    model = opened(model)
    if data is not None:
        model = replace(model, calibration=stacked_samples(data, model.inputs), labels=None)
    if labels is None:
        return model
    if model.calibration is None:
        raise InputError(
            "labels without the inputs that they belong to",
            where="option 'labels'",
            hint="give data=..., on the command line --data FILE, with as many inputs",
        )
    samples = len(next(iter(model.calibration.values())))
    return replace(model, labels=checked_labels(labels, samples, model.outputs))


def _refuse_onnx_options(options: Mapping[str, object], where: str) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise ModelError(f"'{given[0]}' is for ONNX files alone", where=where, hint="leave it out")


def _refuse_semantics(given: object, where: str) -> None:
    if given is not None:
        raise ModelError(
            "'semantics' is for programs of torch alone", where=where, hint="leave it out"
        )


def _refuse_printed(path: Path) -> None:
    """Refuse the text of a printed stage; others pass, also what cannot be read."""
    try:
        with path.open("rb") as file:
            is_printed = file.read(len(PRINTED)) == PRINTED.encode()
    except (OSError, ValueError):
        return
    if is_printed:
        raise ModelError(
            "a printed stage is no input: it is for reading, and lacks weights",
            where=str(path),
            hint="give the file that it was printed from",
        )


def _is_device(path: Path) -> bool:
    try:
        return path.exists() and not path.is_file()
    except (OSError, ValueError):
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long; reading reports it
        return False
