"""onnxruntime's static quantizer: adds scales and zero points to a float ONNX file.

Weights are per channel and symmetric, activations int8 with a zero point.  The range of an
activation is the percentile that its calibration values stay within.  On the digits networks
(`benchmarks.digits`), the signal to noise ratio of the logits against the float network is 36.3 and
37.3 dB with 99.999 %, 36.0 and 37.4 dB with the extreme values, 35.4 and 36.4 dB with 99.99 %, and
33.4 and 34.1 dB with the extreme values and no zero point.
"""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byoc_dory.errors import DependencyError, ModelError

if TYPE_CHECKING:
    from byoc_dory.layers import Array

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
