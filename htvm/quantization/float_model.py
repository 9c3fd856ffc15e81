"""`quantize`: an int8 model for a target, from a float network and calibration data.

Networks of torch have quantizers of their own (`torch_model`).  For all others,
onnxruntime's static quantizer adds scales and zero points to a float ONNX file.  Weights are per
channel and symmetric, activations int8 with a zero point.  The range of an activation is the
percentile that its calibration values stay within.  On the digits networks (`benchmarks.digits`),
the signal to noise ratio of the logits against the float network is 36.3 and 37.3 dB with 99.999 %,
36.0 and 37.4 dB with the extreme values, 35.4 and 36.4 dB with 99.99 %, and 33.4 and 34.1 dB with
the extreme values and no zero point.
"""

from __future__ import annotations

import contextlib
import io
import logging
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from byoc_dory.errors import DependencyError, InputError, ModelError
from htvm.model import TensorInfo
from htvm.progress import Progress
from htvm.progress_bar import with_progress
from htvm.public import public
from htvm.quantization.samples import stacked_samples
from htvm.quantization.torch_model import quantized_torch
from htvm.torch_files import is_module, is_program, refuse_torch_file

if TYPE_CHECKING:
    from onnx import ModelProto

    from byoc_dory.layers import Array
    from byoc_dory.soc.base import Target
    from htvm.frontend.limits import Limits
    from htvm.frontend.onnx.graph import OnnxGraph
    from htvm.model import Model
    from htvm.quantization.samples import Data

Source: TypeAlias = "str | PathLike[str] | ModelProto | Any"
"""An ``.onnx`` or ``.tflite`` file, an ``onnx.ModelProto``, a Relax IRModule as TVM's importers of
ONNX and torch write it, or a module or ``ExportedProgram`` of torch."""

_KEPT = 512  # largest number of samples for retargeting: it runs the network on all of them
_QUANTIZED = ("DequantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger")


@public
@with_progress
def quantize(
    model: Source,
    target: str | Target,
    data: Data,
    *,
    name: str | None = None,
    dimensions: Mapping[str, int] | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Model:
    """Quantize a float network to int8 with calibration data, and retarget it.

    onnxruntime's static quantizer finds scales and zero points (see the module); networks of torch
    are quantized in the target's own numbers by its quantizer (`htvm.torch`). The resulting model
    keeps its float inputs and outputs and the data, so that `htvm.build` uses
    the data when it retargets the model for any target. The loss of accuracy from retargeting to
    ``target`` is logged here, and is part of a build's report.

    Args:
        model: an ``.onnx`` file, a float ``.tflite`` file (its operators: see
            `htvm.quantization.tflite_float`; inputs and outputs stay NHWC), an
            ``onnx.ModelProto``, a Relax IRModule as TVM's importers of these write it, or a
            ``torch.nn.Module`` or ``torch.export.ExportedProgram``.
        target: one of `htvm.targets()`.
        data: real inputs, as many and as varied as in use (a hundred often suffice): an array ``[N,
            ...]``, arrays by input name, an iterable of samples (arrays, or dicts by input name),
            or the path of an npz or npy file.
        name: name of the model, used for C symbols; by default the file's name, or ``"model"``.
        dimensions: sizes of named dimensions that a file leaves open, e.g. ``{"height": 32}``.
            A first dimension that is open, as exporters leave that of the batch, is 1 by default.
        limits: what reading ``model`` may take, as for `htvm.load`.
        progress: receives the stages; by default a bar on a terminal
            and in a notebook, if it takes a while.

    Returns:
        The int8 model in the integer form.

    Raises:
        ModelError: ``model`` is not a model, is damaged, or is already quantized.
        UnsupportedError: it uses an unsupported feature.
        InputError: ``data`` do not fit the model's inputs, are not finite, or there are none.
        TargetError: the target is unknown.
        DependencyError: onnxruntime is not installed, or for networks of torch the extra ``torch``.
    """
    from byoc_dory.cost import Cost
    from byoc_dory.options import TilingOptions
    from byoc_dory.soc.registry import resolve
    from htvm.placement.plan import place
    from htvm.quantization.retarget import retarget

    progress = progress or Progress()
    resolved = resolve(target)
    if is_module(model) or is_program(model):
        if dimensions is not None:
            raise InputError(
                "sizes of dimensions for a network of torch",
                where="option 'dimensions'",
                hint="leave it out: sizes are those of the data",
            )
        result = quantized_torch(model, target, data, name=name, limits=limits, progress=progress)
    else:
        result = calibrated(
            model, data, name=name, dimensions=dimensions, limits=limits, progress=progress
        )
    with progress.stage("retargeting"):
        # It logs the loss of accuracy, and refuses what it does not support.
        planned = place(result.graph, resolved, Cost(resolved.soc, TilingOptions()), None)
        retarget(result, resolved.accelerators, places=planned.places)
    return result


def calibrated(
    model: Source,
    data: Data,
    *,
    name: str | None = None,
    dimensions: Mapping[str, int] | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Model:
    """Quantize a float network to int8 for any target; arguments and errors as for `quantize`."""
    from htvm.frontend.onnx import load_onnx

    progress = progress or Progress()
    with tempfile.TemporaryDirectory(prefix="htvm-") as folder:
        made, model_name, samples = _quantized(
            model, data, dimensions, limits, Path(folder), progress
        )
        with progress.stage("importing"):
            quantized = load_onnx(
                made, name or Path(model_name).stem, dimensions=dimensions, limits=limits
            )
    count = len(next(iter(samples.values())))
    kept = np.unique(np.linspace(0, count - 1, min(count, _KEPT)).astype(np.int64))
    calibration = {key: array[kept] for key, array in samples.items()}
    # The file that was read is a temporary one, which nobody else has.
    return replace(quantized, source=model_name, file_sha256="", calibration=calibration)


def quantized_file(
    model: Source,
    data: Data,
    *,
    dimensions: Mapping[str, int] | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> tuple[bytes, int]:
    """Quantize a float network; return the int8 ONNX file, and the number of samples used.

    The file has the sizes of ``dimensions``. Arguments and errors are those of `quantize`.
    """
    import onnx

    progress = progress or Progress()
    with tempfile.TemporaryDirectory(prefix="htvm-") as folder:
        quantized, _, samples = _quantized(model, data, dimensions, limits, Path(folder), progress)
        written = onnx.load(quantized)
    graph = written.graph
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dimension in value.type.tensor_type.shape.dim:
            if dimension.dim_param in (dimensions or {}):
                dimension.dim_value = (dimensions or {})[dimension.dim_param]
    return written.SerializeToString(), len(next(iter(samples.values())))


def _quantized(
    model: Source,
    data: Data,
    dimensions: Mapping[str, int] | None,
    limits: Limits | None,
    folder: Path,
    progress: Progress,
) -> tuple[Path, str, dict[str, Array]]:
    """Write the int8 network into a folder; return its path, the model's name and the samples."""
    from htvm.frontend.onnx.file import read_file

    with progress.stage("reading the float model"):
        path, model_name = _as_file(model, limits, folder)
        path = _single(path, dimensions or {}, folder)
        graph = read_file(path, dimensions, limits=limits)
        _refuse_quantized(graph)
        infos = [TensorInfo(item.name, item.shape or (), item.dtype) for item in graph.inputs]
        samples = stacked_samples(data, infos)
    count = len(next(iter(samples.values())))
    quantized = folder / f"{Path(model_name).stem}_int8.onnx"
    with progress.stage(f"calibrating with {count} samples"):
        quantize_file(path, quantized, samples)
    return quantized, model_name, samples


def _single(path: Path, dimensions: Mapping[str, int], folder: Path) -> Path:
    """Return the file, or a copy in which a batch that was left open is one sample.

    Sizes that are given, or that arrays beside the file have, are left to them.
    """
    import onnx

    from htvm.frontend.onnx.file import open_batches

    batches = {name: size for name, size in open_batches(path).items() if size not in dimensions}
    if not batches or (path.parent / "inputs.npz").exists():
        return path
    model = onnx.load(path)
    names = {*filter(None, batches.values())}
    graph = model.graph
    for value in (*graph.input, *graph.output, *graph.value_info):
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
            first = axis == 0 and value.name in batches
            if first or dimension.dim_param in names:
                dimension.dim_value = 1
    place = folder / "single"
    place.mkdir()
    onnx.save(model, place / path.name)
    return place / path.name


def _refuse_quantized(graph: OnnxGraph) -> None:
    for node in graph.nodes:
        if node.op in _QUANTIZED:
            raise ModelError(
                "the model is quantized already", where=node.where, hint="give it to htvm.load"
            )
    if not graph.inputs:
        raise ModelError("the model has no inputs", where=graph.source)


# ------------------------------------------------------------------------------ sources


def _as_file(model: Source, limits: Limits | None, folder: Path) -> tuple[Path, str]:
    """Return the model as an ONNX file, and its name."""
    path = folder / "model.onnx"
    model_name = path.name
    if isinstance(model, (str, PathLike)):
        source = Path(model)
        model_name = source.name
        if isinstance(model, str) and model.startswith("zoo:"):
            raise ModelError(
                f"{model} is quantized already", where="htvm.quantize", hint="give it to htvm.build"
            )
        refuse_torch_file(source)
        if source.suffix.lower() != ".tflite":
            return source, model_name
        from htvm.quantization.tflite_float import float_onnx

        model = float_onnx(source, limits)
    if type(model).__module__.startswith("tvm.ir"):
        from htvm.frontend.relax_onnx import onnx_of

        model = onnx_of(model)
    if not hasattr(model, "SerializeToString"):
        raise ModelError(
            f"a {type(model).__name__} is not a float model",
            where="htvm.quantize",
            hint="give an .onnx or float .tflite file, an onnx.ModelProto, a "
            "or a Relax IRModule, or a module or program of torch",
        )
    try:
        path.write_bytes(model.SerializeToString())
    except ValueError as error:
        raise ModelError(f"the model cannot be written: {error}", where="htvm.quantize") from error
    return path, model_name


_log = logging.getLogger(__name__)

PERCENTILE = 99.999


def quantize_file(source: Path, target: Path, samples: Mapping[str, Array]) -> None:
    """Write ``source``, calibrated with ``samples``, to ``target``.

    Args:
        source: a float ONNX file.
        target: the file to write.
        samples: input -> ``[N, *shape]``.

    Raises:
        DependencyError: onnxruntime is not installed.
        ModelError: onnxruntime refuses the file.
    """
    quantization, preparation = _packages()

    prepared = target.with_name(f"prepared_{target.name}")
    printed = io.StringIO()  # the calibrators print
    try:
        with contextlib.redirect_stdout(printed), _quiet():
            preparation.quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
            quantization.quantize_static(
                str(prepared),
                str(target),
                _reader(quantization, samples),
                quant_format=quantization.QuantFormat.QDQ,
                per_channel=True,
                activation_type=quantization.QuantType.QInt8,
                weight_type=quantization.QuantType.QInt8,
                calibrate_method=quantization.CalibrationMethod.Percentile,
                extra_options={
                    "WeightSymmetric": True,
                    "CalibPercentile": PERCENTILE,
                    "ForceQuantizeNoInputCheck": _transposes_an_input(prepared),
                },
            )
    except Exception as error:
        # Any error that onnxruntime's runtime and tools raise for a file they do not support.
        raise ModelError(
            f"onnxruntime cannot quantize the model: {str(error).strip()}",
            where=source.name,
            hint="check that onnxruntime runs it",
        ) from error
    finally:
        _log.debug("%s", printed.getvalue())


def _transposes_an_input(path: Path) -> bool:
    """Whether the network begins with a Transpose, like those with NHWC inputs.

    Such an input should be quantized first: moving integers costs less, and retargeting needs
    inputs that are quantized immediately.  Otherwise the quantizer leaves it in float.
    """
    import onnx

    graph = onnx.load(str(path)).graph
    inputs = {item.name for item in graph.input}
    return any(node.op_type == "Transpose" and node.input[0] in inputs for node in graph.node)


def _packages() -> tuple[Any, Any]:
    try:
        from onnxruntime import quantization
        from onnxruntime.quantization import shape_inference
    except ImportError as error:
        raise DependencyError(
            "calibrating a float model needs the package 'onnxruntime', which is not installed",
            where="htvm.quantize",
            hint="pip install 'htvm[quantize]'",
        ) from error
    return quantization, shape_inference


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress onnxruntime's advice on the root logger, which users cannot act on."""
    root = logging.getLogger()

    def ours(record: logging.LogRecord) -> bool:
        return record.name != "root"

    root.addFilter(ours)
    try:
        yield
    finally:
        root.removeFilter(ours)


def _reader(quantization: Any, samples: Mapping[str, Array]) -> Any:
    """Return the samples, one after the other, in the calibrators' form."""

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            count = len(next(iter(samples.values())))
            self._rest = iter(
                [{name: array[i] for name, array in samples.items()} for i in range(count)]
            )

        def get_next(self) -> dict[str, Array] | None:
            return next(self._rest, None)

    return Reader()
