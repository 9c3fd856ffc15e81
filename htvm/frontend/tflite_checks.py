"""What of TFLite is supported, operator by operator, and whether a file's shapes are consistent.

Each check is given one operator and complains about the first thing that is damaged
(`ModelError`) or not supported (`UnsupportedError`).  What passes all of them can be imported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from byoc_dory.errors import HtvmError, ModelError, UnsupportedError
from htvm.frontend.flatbuffer import Table
from htvm.frontend.operators import BIAS_TOLERANCE
from htvm.frontend.tflite_file import TfliteFile, TfliteOperator, TfliteTensor

__all__ = ["SUPPORTED", "check_file"]

_ACTIVATIONS = {0: "NONE", 1: "RELU", 2: "RELU_N1_TO_1", 3: "RELU6"}
_SAME, _VALID = 0, 1
_LARGEST = 1 << 12  # of kernels and strides
_FULL_INT8 = "quantize the model fully to int8, activations and weights"


def check_file(file: TfliteFile) -> None:
    """Check all operators, and the types at the border.

    Raises:
        ModelError: if shapes or options contradict each other.
        UnsupportedError: if an operator or a quantization is not supported.
    """
    for operator in file.operators:
        if operator.kind not in SUPPORTED:
            raise UnsupportedError(
                f"operator {operator.kind} is not supported",
                where=operator.place,
                hint=f"supported are {', '.join(sorted(SUPPORTED))}",
            )
    for operator in file.operators:
        SUPPORTED[operator.kind](_Check(operator))
    for tensor in (*file.inputs, *file.outputs):
        if tensor.dtype != "int8":
            raise UnsupportedError(
                f"{tensor.dtype} at the border of the model",
                where=tensor.place,
                hint="convert with inference_input_type and inference_output_type int8",
            )


@dataclass(frozen=True)
class _Check:
    """Helpers around one operator."""

    operator: TfliteOperator

    def corrupt(self, what: str) -> HtvmError:
        return ModelError(
            f"corrupt model: {what}",
            where=self.operator.place,
            hint="the file is damaged; fetch or export it again",
        )

    def unsupported(self, what: str, hint: str = "") -> HtvmError:
        return UnsupportedError(what, where=self.operator.place, hint=hint)

    def count(self, inputs: tuple[int, ...], outputs: int = 1) -> None:
        """The number of tensors, optional ones included."""
        if len(self.operator.inputs) not in inputs or len(self.operator.outputs) != outputs:
            raise self.corrupt(
                f"{len(self.operator.inputs)} inputs and {len(self.operator.outputs)} outputs"
            )

    def activation(self, tensor: TfliteTensor | None) -> TfliteTensor:
        """An int8 activation quantized per tensor."""
        if tensor is None:
            raise self.corrupt("an activation is missing")
        if tensor.data is not None:
            raise self.unsupported(f"{tensor.place} is constant, not an activation")
        if tensor.dtype == "float32":
            raise self._float(tensor)
        if tensor.dtype != "int8":
            raise self.unsupported(f"{tensor.dtype} activations ({tensor.place})", _FULL_INT8)
        if len(tensor.scales) != 1:
            raise self.unsupported(
                f"{tensor.place} has {len(tensor.scales)} scales", "quantize activations per tensor"
            )
        if not -128 <= tensor.zero_points[0] <= 127:
            raise self.corrupt(f"zero point {tensor.zero_points[0]} of {tensor.place}")
        return tensor

    def _float(self, tensor: TfliteTensor) -> HtvmError:
        weights = [
            item for item in self.operator.inputs if item is not None and item.dtype == "int8"
        ]
        if weights:
            return self.unsupported(
                f"dynamic-range quantization: float32 activations ({tensor.place}) with int8 "
                f"weights ({weights[0].place})",
                _FULL_INT8 + " (a representative dataset is needed)",
            )
        return self.unsupported(f"float32 activations ({tensor.place})", _FULL_INT8)

    def source(self) -> TfliteTensor:
        """The first input, an activation."""
        return self.activation(self.operator.inputs[0])

    def result(self) -> TfliteTensor:
        """The output, an activation."""
        return self.activation(self.operator.outputs[0])

    def same_step(self) -> None:
        """Input and output have one scale and zero point."""
        source, result = self.source(), self.result()
        close = math.isclose(source.scales[0], result.scales[0], rel_tol=1e-6)
        if not close or source.zero_points != result.zero_points:
            raise self.unsupported("input and output differ in scale or zero point")

    def weights(self, rank: int, axis: int) -> TfliteTensor:
        """Constant int8 weights, symmetric, per tensor or along ``axis``."""
        tensor = self.operator.inputs[1]
        if tensor is None or tensor.data is None:
            raise self.unsupported("its weights are computed at run time", "make them constant")
        if tensor.dtype != "int8":
            raise self.unsupported(f"{tensor.dtype} weights ({tensor.place})", _FULL_INT8)
        if len(tensor.shape) != rank:
            raise self.corrupt(f"weights of shape {tensor.shape}")
        if not tensor.scales:
            raise self.corrupt(f"{tensor.place} has no scale")
        if any(tensor.zero_points):
            raise self.unsupported(
                f"weights with a zero point ({tensor.place})", "quantize weights symmetrically"
            )
        if len(tensor.scales) > 1 and tensor.axis != axis:
            raise self.unsupported(
                f"{tensor.place} has scales along axis {tensor.axis}",
                "quantize weights per output channel",
            )
        return tensor

    def bias(self, channels: int) -> None:
        """An optional constant int32 vector."""
        if len(self.operator.inputs) < 3 or self.operator.inputs[2] is None:
            if len(self.operator.inputs) == 3 and self.operator.kind != "FULLY_CONNECTED":
                raise self.unsupported("its bias is omitted", "give it a bias of zeros")
            return
        tensor = self.operator.inputs[2]
        if tensor.data is None:
            raise self.unsupported("its bias is computed at run time", "make it constant")
        if tensor.dtype != "int32":
            raise self.unsupported(f"a {tensor.dtype} bias ({tensor.place})", _FULL_INT8)
        if tensor.shape != (channels,) or len(tensor.scales) not in (0, 1, channels):
            raise self.corrupt(
                f"{tensor.place} of shape {tensor.shape} with {len(tensor.scales)} scales for "
                f"{channels} channels"
            )
        if any(tensor.zero_points):
            raise self.unsupported(f"a bias with a zero point ({tensor.place})")
        self._bias_scales(tensor, channels)

    def _bias_scales(self, tensor: TfliteTensor, channels: int) -> None:
        """TFLite takes the integers as they are; another scale would be ignored silently."""
        weights = self.operator.inputs[1]
        assert weights is not None
        given, source = tensor.scales, self.source().scales[0]
        for channel in range(channels if given else 0):
            product = source * weights.scales[channel % len(weights.scales)]
            if abs(given[channel % len(given)] - product) > BIAS_TOLERANCE * product:
                raise self.unsupported(
                    f"a bias in steps of {given[channel % len(given)]:g} ({tensor.place})",
                    f"input scale times weight scale is {product:g}",
                )

    def options(self, kind: int) -> Table:
        """The operator's options, which must be of that kind."""
        if self.operator.options is None or self.operator.options_type != kind:
            raise self.corrupt(f"options of type {self.operator.options_type} instead of {kind}")
        return self.operator.options

    def positive(self, table: Table, field: int, name: str, default: int = 0) -> int:
        """A field that must be a sensible positive number."""
        value = table.integer(field, "i", default)
        if not 1 <= value <= _LARGEST:
            raise self.corrupt(f"{name} {value}")
        return value

    def fused(self, table: Table, field: int) -> None:
        """The fused activation function."""
        code = table.integer(field, "b")
        if code not in _ACTIVATIONS:
            raise self.unsupported(f"fused activation function {code}")

    def batch(self, tensor: TfliteTensor, rank: int) -> None:
        """A rank, and a batch of one."""
        if len(tensor.shape) != rank:
            raise self.unsupported(f"{tensor.place} of shape {tensor.shape}", f"use {rank} axes")
        if tensor.shape[0] != 1:
            raise self.unsupported(f"a batch of {tensor.shape[0]}", "export with a batch of 1")

    def window(self, size: int, kernel: int, stride: int, padding: int) -> int:
        """Output size of one axis."""
        if padding == _SAME:
            return math.ceil(size / stride)
        if padding != _VALID:
            raise self.corrupt(f"padding {padding}")
        return (size - kernel) // stride + 1 if size >= kernel else 0

    def result_shape(self, shape: tuple[int, ...]) -> None:
        """The declared shape of the output is what the operator computes."""
        declared = self.result().shape
        if declared != shape:
            raise self.corrupt(
                f"an output of shape {declared}, but inputs and options give {shape}"
            )


def _conv(check: _Check) -> None:
    check.count((2, 3))
    source, weights = check.source(), check.weights(rank=4, axis=0)
    check.batch(source, 4)
    options = check.options(1)
    channels = weights.shape[0]
    if source.shape[3] % weights.shape[3] or channels % (source.shape[3] // weights.shape[3]):
        raise check.corrupt(f"weights of shape {weights.shape} for {source.shape[3]} channels")
    if weights.shape[3] != source.shape[3]:
        raise check.unsupported("a grouped convolution that is not depthwise")
    check.bias(channels)
    check.fused(options, 3)
    _check_window(check, options, weights.shape[1:3], (1, 2), (4, 5), channels)


def _depthwise(check: _Check) -> None:
    check.count((2, 3))
    source, weights = check.source(), check.weights(rank=4, axis=3)
    check.batch(source, 4)
    options = check.options(2)
    channels = weights.shape[3]
    multiplier = check.positive(options, 3, "depth multiplier")
    if weights.shape[0] != 1 or channels != source.shape[3] * multiplier:
        raise check.corrupt(
            f"weights of shape {weights.shape} for {source.shape[3]} channels times {multiplier}"
        )
    if len(weights.scales) == 1 and weights.axis != 0:
        raise check.unsupported(f"one scale along axis {weights.axis} ({weights.place})")
    check.bias(channels)
    check.fused(options, 4)
    _check_window(check, options, weights.shape[1:3], (1, 2), (5, 6), channels)


def _check_window(
    check: _Check,
    options: Table,
    kernel: tuple[int, ...],
    strides: tuple[int, int],
    dilations: tuple[int, int] | None,
    channels: int,
) -> None:
    """Strides and dilations (fields x, y) and the output's shape."""
    _, iy, ix, _ = check.source().shape
    padding = options.integer(0, "b")
    sizes = []
    for size, taps, which in ((iy, kernel[0], 1), (ix, kernel[1], 0)):
        stride = check.positive(options, strides[which], "stride")
        dilation = 1
        if dilations is not None:
            dilation = check.positive(options, dilations[which], "dilation", 1)
        sizes.append(check.window(size, dilation * (taps - 1) + 1, stride, padding))
    check.result_shape((1, sizes[0], sizes[1], channels))


def _fully_connected(check: _Check) -> None:
    check.count((2, 3))
    source, weights = check.source(), check.weights(rank=2, axis=0)
    options = check.options(8)
    if options.integer(1, "b"):
        raise check.unsupported("shuffled weights")
    if len(weights.scales) == 1 and weights.axis != 0:
        raise check.unsupported(f"one scale along axis {weights.axis} ({weights.place})")
    channels, features = weights.shape
    if math.prod(source.shape) != features:
        raise check.unsupported(
            f"an input of shape {source.shape} for weights of shape {weights.shape}",
            "only one row is supported",
        )
    if source.shape[-1] != features:
        raise check.unsupported(
            f"an input of shape {source.shape}", f"reshape it to (1, {features}) before"
        )
    check.bias(channels)
    check.fused(options, 0)
    if math.prod(check.result().shape) != channels:
        raise check.corrupt(f"an output of shape {check.result().shape} for {channels} channels")
    check.result_shape((*source.shape[:-1], channels))


def _add(check: _Check) -> None:
    check.count((2,))
    first, second = (check.activation(tensor) for tensor in check.operator.inputs)
    if first.shape != second.shape:
        raise check.unsupported(
            f"operands of shapes {first.shape} and {second.shape}", "broadcasting is not supported"
        )
    check.fused(check.options(11), 0)
    check.result_shape(first.shape)


def _pool(check: _Check) -> None:
    check.count((1,))
    source = check.source()
    check.batch(source, 4)
    check.same_step()
    options = check.options(5)
    kernel = tuple(check.positive(options, field, "kernel") for field in (4, 3))
    check.fused(options, 5)
    _check_window(check, options, kernel, (1, 2), None, source.shape[3])


def _max_pool(check: _Check) -> None:
    _pool(check)
    if check.options(5).integer(5, "b"):
        raise check.unsupported("a maximum pool with an activation function")


def _softmax(check: _Check) -> None:
    check.count((1,))
    source, result = check.source(), check.result()
    beta = check.options(9).real(0)
    if beta != 1.0:
        raise check.unsupported(f"a softmax with beta {beta}", "use 1")
    if result.scales[0] != 1 / 256 or result.zero_points[0] != -128:
        raise check.unsupported(
            f"a softmax with output scale {result.scales[0]:g}, zero point {result.zero_points[0]}",
            "int8 softmax has scale 1/256 and zero point -128",
        )
    check.result_shape(source.shape)


def _reshape(check: _Check) -> None:
    check.count((1, 2))
    check.same_step()
    source, result = check.source(), check.result()
    if math.prod(source.shape) != math.prod(result.shape):
        raise check.corrupt(f"a reshape of {source.shape} to {result.shape}")
    target: tuple[int, ...]
    if len(check.operator.inputs) == 2:
        tensor = check.operator.inputs[1]
        if tensor is None or tensor.data is None or tensor.dtype != "int32":
            raise check.unsupported("a shape that is not constant int32")
        target = tuple(int(size) for size in tensor.data)
    else:
        found = check.options(17).vector(0, "int32")
        target = () if found is None else tuple(int(size) for size in found)
    free = target.count(-1)
    known = math.prod(size for size in target if size != -1)
    whole = math.prod(source.shape)
    if free > 1 or known < 1 or whole % known or (not free and known != whole):
        raise check.corrupt(f"a reshape of {source.shape} to {target}")
    check.result_shape(tuple(whole // known if size == -1 else size for size in target))


def _pad(check: _Check) -> None:
    check.count((2,))
    source = check.source()
    check.batch(source, 4)
    check.same_step()
    tensor = check.operator.inputs[1]
    if tensor is None or tensor.data is None or tensor.dtype != "int32":
        raise check.unsupported("paddings that are not constant int32")
    if tensor.shape != (4, 2):
        raise check.corrupt(f"paddings of shape {tensor.shape}")
    widths = [int(width) for width in tensor.data]
    if any(not 0 <= width <= _LARGEST for width in widths):
        raise check.corrupt(f"paddings {widths}")
    if any(widths[:2]) or any(widths[6:]):
        raise check.unsupported(f"paddings {widths}", "pad height and width only")
    shape = tuple(
        size + before + after
        for size, before, after in zip(source.shape, widths[::2], widths[1::2], strict=True)
    )
    check.result_shape(shape)


def _unary(check: _Check) -> None:
    check.count((1,))
    check.result_shape(check.source().shape)


SUPPORTED: Mapping[str, Callable[[_Check], None]] = {
    "ADD": _add,
    "AVERAGE_POOL_2D": _pool,
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _fully_connected,
    "MAX_POOL_2D": _max_pool,
    "PAD": _pad,
    "QUANTIZE": _unary,
    "RESHAPE": _reshape,
    "SOFTMAX": _softmax,
}
"""Check of each supported TFLite operator."""
