"""A helper of tests: every group of operators, as a small module in the integer form.

A group is read by nobody but the tests of generated C: it is there so that a change of the C of
its operators is seen.  What they compute is tested elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from tvm import relax

from byoc_dory.layers import (
    AnalogRequant,
    MulShift,
    OnnxRequant,
    Requant,
    Shift,
    TfliteRequant,
    TorchRequant,
)
from byoc_dory.layers.rowwise import ItaGelu, ItaSoftmax
from patterns.ops.add import Add
from patterns.ops.analog.products import AnalogConv2d
from patterns.ops.convert import Convert, TableLookup
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense
from patterns.ops.float32.combine import RealArgExtreme, RealCombine, RealMatmul, RealReduce
from patterns.ops.float32.elementary import RealExp, RealLog, RealMap, RealRound, RealSqrt
from patterns.ops.float32.maps import RealAverage, RealConv2d
from patterns.ops.float32.quantize import Dequantize, Quantize
from patterns.ops.integer.combine import Combine, IntegerMatmul
from patterns.ops.integer.reduction import ArgExtreme, Extreme, IntegerMean, ReduceExtreme, Total
from patterns.ops.integer.rescale import Cast, Rescale
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.concat import Attach, Concat, Gather, Nearest, Select, Take
from patterns.ops.moves.pad import Interleave, Pad, PadAxes
from patterns.ops.moves.reshape import Reshape, Slice, Transpose
from patterns.ops.onnxruntime.average import OnnxAverage, OnnxSoftmax
from patterns.ops.onnxruntime.binary import OnnxAdd, OnnxBinary
from patterns.ops.onnxruntime.rounding import OnnxQuantize, float_scale
from patterns.ops.pulp.elementwise import Accumulate, PulpDivide, PulpGelu, PulpHardSwish
from patterns.ops.pulp.ita import ItaActivation, ItaMax
from patterns.ops.pulp.norm import PulpAffineNorm, PulpLayerNorm, PulpRmsNorm, PulpSoftmax
from patterns.ops.tflite.averages import AveragePool, TfliteBilinear, TfliteMean, mean_factor
from patterns.ops.tflite.binary import AddFactors, SquareFactors, TfliteAdd, TfliteBinary
from patterns.ops.tflite.log_softmax import TfliteL2Normalization, TfliteLogSoftmax
from patterns.ops.tflite.matmul import TfliteMatmul, WideMatmul
from patterns.ops.tflite.softmax import TfliteSoftmax, WideSoftmax
from patterns.ops.tflite.wide import PiecewiseRescale, WideConv2d, WideSigmoid

Types: TypeAlias = tuple[tuple[tuple[int, ...], str], ...]
Write: TypeAlias = Callable[..., list[Any]]

SAME = (1, 1, 1, 1)
MAPS: Types = (((1, 5, 6, 8), "int8"),)
ROWS: Types = (((4, 12), "int8"),)


def module_of(types: Types, write: Write) -> Any:
    """A module with inputs of these shapes and dtypes, and what ``write`` returns as outputs."""
    bb = relax.BlockBuilder()
    params = [
        relax.Var(f"input_{index}", relax.TensorType(size, dtype))
        for index, (size, dtype) in enumerate(types)
    ]
    with bb.function("main", params):
        with bb.dataflow():
            results = [bb.emit_output(result) for result in write(bb, *params)]
        bb.emit_func_output(results[0] if len(results) == 1 else relax.Tuple(results))
    return bb.get()


def _rng() -> np.random.Generator:
    return np.random.default_rng(3)


def _int8(*size: int) -> Any:
    return _rng().integers(-128, 128, size).astype(np.int8)


def _bias(size: int) -> Any:
    return _rng().integers(-2000, 2000, size).astype(np.int32)


def _tflite(channels: int, zero: int = 3) -> TfliteRequant:
    multipliers = _rng().integers(2**30, 2**31, channels)
    return TfliteRequant(tuple(int(m) for m in multipliers), (-7,) * channels, zero)


def _onnx(scales: list[float], zero: int = 0, inputs: tuple[int, ...] = (0,)) -> OnnxRequant:
    multipliers, shifts = zip(*(float_scale(scale) for scale in scales), strict=True)
    return OnnxRequant(multipliers, shifts, zero, inputs)


def _per_channel(channels: int) -> MulShift:
    return MulShift(
        tuple(int(m) for m in _rng().integers(1, 200, channels)), (15,) * channels, (1000,)
    )


def _convolution(requant: Requant) -> tuple[Types, Write]:
    def write(bb: Any, x: Any) -> list[Any]:
        first = conv2d_of(_int8(10, 8, 3, 3), _bias(10), Window(padding=SAME), requant, (0, 127))
        pointwise = conv2d_of(_int8(4, 10, 1, 1), _bias(4), Window(), Shift(9))
        return [pointwise.write(bb, [first.write(bb, [x], "conv")], "pointwise")]

    return MAPS, write


def _rare_convolutions() -> tuple[Types, Write]:
    def write(bb: Any, x: Any, y: Any) -> list[Any]:
        one, two = _int8(8, 1, 3, 3), _int8(6, 4, 3, 3)
        full = _int8(4, 8, 3, 3)
        return [
            conv2d_of(
                one, _bias(8), Window((2, 2), (0, 0, 1, 1), groups=8), Shift(8)
            ).write(bb, [x], "depthwise"),
            conv2d_of(two, _bias(6), Window(groups=2), Shift(8)).write(bb, [x], "grouped"),
            conv2d_of(full, _bias(4), Window(dilation=(2, 2)), Shift(8)).write(
                bb, [x], "dilated"
            ),
            conv2d_of(
                full, _bias(4), Window(padding=SAME, layout="NCHW"), _tflite(4)
            ).write(bb, [y], "first"),
        ]  # fmt: skip

    return (*MAPS, ((1, 8, 5, 6), "int8")), write


def _analog_convolution() -> tuple[Types, Write]:
    def write(bb: Any, x: Any) -> list[Any]:
        weight = _rng().integers(-1, 2, (5, 150, 3, 3)).astype(np.int8)
        requant = AnalogRequant(4, (9,) * 5, (3,) * 5, 4, 1152)
        return [AnalogConv2d(weight, requant, window=Window(padding=SAME)).write(bb, [x], "conv")]

    return (((1, 3, 3, 150), "int8"),), write


def _dense() -> tuple[Types, Write]:
    def write(bb: Any, x: Any, y: Any) -> list[Any]:
        weight, bias = _int8(10, 12), _bias(10)
        return [
            Dense(weight, bias, _tflite(1)).write(bb, [x], "dense_tflite"),
            Dense(weight, bias, _onnx([0.004], 7)).write(bb, [x], "dense_onnx"),
            Dense(weight, bias, _per_channel(10)).write(bb, [y], "rows"),
        ]

    return (((1, 12), "int8"), ((4, 12), "int8")), write


def _sums() -> tuple[Types, Write]:
    def write(bb: Any, a: Any, b: Any) -> list[Any]:
        tflite = AddFactors.from_scales((0.03, 0.7, 0.4), (-128, 5, 127))
        onnx = _onnx([0.013, 1.7], 4, (1, -9))
        product = OnnxBinary(_onnx([0.02], 4, (1, -9)), function="multiply")
        total = Add(Shift(1), (0, 127)).write(bb, [a, b], "add")
        return [
            Convert(MulShift((77,), (7,), (64,)), offset=-9).write(bb, [total], "convert"),
            TfliteAdd(tflite).write(bb, [a, b], "tflite_add"),
            OnnxAdd(onnx).write(bb, [a, b], "onnx_add"),
            product.write(bb, [a, b], "onnx_multiply"),
            TfliteBinary("subtract", tflite).write(bb, [a, b], "tflite_subtract"),
        ]

    return MAPS * 2, write


def _sums_in_reals() -> tuple[Types, Write]:
    def write(bb: Any, a: Any, b: Any) -> list[Any]:
        whole = OnnxAdd(_onnx([0.5, 0.25], 3, (1, -9)), steps=(0.0625, 0.03125, 0.125))
        requant, steps = _onnx([0.5, 0.2], 3, (1, -9)), (0.05, 0.02, 0.1)
        real = OnnxBinary(requant, function="subtract", steps=steps)
        return [whole.write(bb, [a, b], "onnx_add"), real.write(bb, [a, b], "subtract")]

    return MAPS * 2, write


def _pools() -> tuple[Types, Write]:
    def write(bb: Any, x: Any) -> list[Any]:
        window: Any = {"kernel": (3, 2), "strides": (2, 2), "padding": (1, 0, 1, 1)}
        onnx = _onnx([1.1 / 16], 2, (-3,))
        factor = mean_factor((0.1, 0.07), 30)
        return [
            AveragePool(**window).write(bb, [x], "average_pool"),
            MaxPool(**window).write(bb, [x], "max_pool"),
            MaxPool(**window, dilation=(1, 2)).write(bb, [x], "max_pool_dilated"),
            OnnxAverage(onnx, kernel=(4, 4), strides=(1, 1), layout="NHWC").write(
                bb, [x], "onnx_average"
            ),
            TfliteMean((1, 2), *factor, (3, -4)).write(bb, [x], "tflite_mean"),
        ]

    return MAPS, write


def _movement() -> tuple[Types, Write]:
    def write(bb: Any, x: Any) -> list[Any]:
        return [
            Pad(-7, (1, 2, 3, 1)).write(bb, [x], "pad"),
            PadAxes(5, ((0, 0), (0, 1), (0, 0), (2, 0))).write(bb, [x], "pad_axes"),
            Transpose((0, 3, 1, 2)).write(bb, [x], "transpose"),
            Concat(3).write(bb, [x, x], "concat"),
            Slice((0, 1, 0, 2), (1, 3, 3, 6), (1, 1, 2, 1)).write(bb, [x], "slice"),
            Nearest((0, 0, 1, 1, 4), (0, 2, 5)).write(bb, [x], "nearest"),
            Interleave(-3, (11, 13), (1, 1), (2, 2)).write(bb, [x], "interleave"),
            Reshape((1, 240)).write(bb, [x], "reshape"),
        ]

    return MAPS, write


def _softmaxes() -> tuple[Types, Write]:
    def write(bb: Any, x: Any) -> list[Any]:
        return [
            TfliteSoftmax.of_scale(1 / 16).write(bb, [x], "tflite_softmax"),
            TfliteLogSoftmax.of_scale(1 / 16).write(bb, [x], "log_softmax"),
            OnnxSoftmax(0.1, 1 / 256, -128).write(bb, [x], "onnx_softmax"),
            PulpSoftmax((1, 345, 62395), 255, 256).write(bb, [x], "softmax"),
            ItaMax(ItaSoftmax()).write(bb, [x], "ita_softmax"),
        ]

    return ROWS, write


def _norms() -> tuple[Types, Write]:
    def write(bb: Any, x: Any) -> list[Any]:
        weight, bias = (_rng().integers(-3000, 3000, 12) for _ in range(2))
        return [
            PulpLayerNorm.of(weight, bias, 2**14).write(bb, [x], "layer_norm"),
            PulpRmsNorm.of(weight, 2**12).write(bb, [x], "rms_norm"),
            PulpAffineNorm.of(weight, bias, 37, 2**13).write(bb, [x], "affine_norm"),
            TfliteL2Normalization(-3).write(bb, [x], "l2_normalization"),
        ]

    return ROWS, write


def _activations() -> tuple[Types, Write]:
    def write(bb: Any, x: Any) -> list[Any]:
        table = np.arange(256)[::-1].astype(np.int8)
        return [
            PulpGelu(-42, 1929).write(bb, [x], "gelu"),
            PulpHardSwish(122, 244, 42).write(bb, [x], "hard_swish"),
            PulpDivide(16384 * 200000, 400001).write(bb, [x], "divide"),
            ItaActivation(ItaGelu(-37, 1200, 200, 18, -3)).write(bb, [x], "ita_gelu"),
            TableLookup(table).write(bb, [x], "table_map"),
        ]

    return ROWS, write


def _integers() -> tuple[Types, Write]:
    def write(bb: Any, x: Any, y: Any) -> list[Any]:
        product = IntegerMatmul(transpose_b=True).write(bb, [x, y], "matmul")
        mul, add = _rng().integers(-40000, 40000, (4, 1)), np.asarray(500)
        return [
            Rescale(mul, add, 14, (-128, 127)).write(bb, [product], "rescale"),
            Combine("multiply").write(bb, [x, y], "combine"),
            IntegerMean((0,)).write(bb, [x], "mean"),
            Total((1,)).write(bb, [x], "total"),
            Cast("int32").write(bb, [x], "cast"),
            Accumulate(11, 4, 5).write(bb, [x, y], "accumulate"),
        ]

    return ROWS * 2, write


def _borders() -> tuple[Types, Write]:
    def write(bb: Any, x: Any, y: Any) -> list[Any]:
        return [
            OnnxQuantize(0.0123456789, -3).write(bb, [x], "onnx_quantize"),
            OnnxQuantize(0.5, 3, "uint8").write(bb, [x], "onnx_quantize_exact"),
            Quantize(0.02, -5).write(bb, [x], "quantize"),
            Dequantize(0.02, -5).write(bb, [y], "dequantize"),
        ]

    return (((1, 24), "float32"), ((1, 24), "int8")), write


def _reals() -> tuple[Types, Write]:
    def write(bb: Any, x: Any, y: Any) -> list[Any]:
        weight, bias, matrix = (
            _rng().random(size).astype(np.float32) for size in ((3, 2, 3, 3), 3, (12, 5))
        )
        mask = _rng().integers(0, 2, (4, 12)).astype(np.int8)
        return [
            RealCombine("divide").write(bb, [x, x], "divide"),
            RealRound().write(bb, [x], "round"),
            RealMatmul(b=matrix).write(bb, [x], "matmul"),
            RealMap("erf").write(bb, [x], "erf"),
            RealMap("tanh").write(bb, [x], "tanh"),
            RealExp().write(bb, [x], "exp"),
            RealSqrt().write(bb, [x], "sqrt"),
            RealReduce("maximum", (1,)).write(bb, [x], "max"),
            RealAverage(kernel=(2, 2), strides=(2, 2)).write(bb, [y], "average"),
            RealAverage(kernel=(2, 2), dilation=(2, 3)).write(bb, [y], "average_dilated"),
            RealArgExtreme("maximum", 1).write(bb, [x], "arg_maximum"),
            Select(mask, b=np.full((1, 1), -np.inf, np.float32)).write(bb, [x], "select"),
            RealConv2d(weight, bias, padding=SAME).write(bb, [y], "conv"),
        ]

    return (((4, 12), "float32"), ((1, 2, 4, 6), "float32")), write


def _parts() -> tuple[Types, Write]:
    def write(bb: Any, x: Any, y: Any, places: Any) -> list[Any]:
        beside = _rng().integers(-128, 128, (4, 3)).astype(np.int8)
        return [
            Take(1, (3, 0, 0, 7)).write(bb, [x], "take"),
            Gather(0, table=beside).write(bb, [places], "lookup"),
            Gather(1, -3).write(bb, [y, places], "gather"),
            Attach(beside, 1, True).write(bb, [x], "attach"),
            RealLog().write(bb, [y], "log"),
            PadAxes(0, ((0, 0), (1, 2))).write(bb, [y], "pad_reals"),
        ]

    return (((4, 12), "int8"), ((4, 12), "float32"), ((2, 3), "int32")), write


def _comparisons() -> tuple[Types, Write]:
    def write(bb: Any, x: Any, y: Any, maps: Any) -> list[Any]:
        rows = np.asarray([[0, 0, 2, 4], [0, 1, 3, 4]], np.int32)
        weights = np.asarray([[1024, 300, 512, 1024], [0, 724, 512, 0]], np.int32)
        squares = SquareFactors.from_scales((0.03, 0.07, 0.4), (-128, 5, 127))
        return [
            ReduceExtreme("maximum", (1,)).write(bb, [x], "reduce_maximum"),
            Extreme("minimum").write(bb, [x, y], "minimum"),
            ArgExtreme("maximum", 1).write(bb, [x], "arg_maximum"),
            TfliteBilinear(rows, rows, weights, weights).write(bb, [maps], "bilinear"),
            TfliteMatmul(
                2**30 + 77, -6, (3, -4, 5), transposed=(False, True)
            ).write(bb, [x, y], "batch_matmul"),
            TfliteBinary("squared_difference", squares).write(bb, [x, y], "squared_difference"),
        ]  # fmt: skip

    return (*ROWS * 2, *MAPS), write


def _wide() -> tuple[Types, Write]:
    def write(bb: Any, x: Any) -> list[Any]:
        weight = _int8(6, 3, 3, 8)
        bias = _rng().integers(-(2**40), 2**40, 6).astype(np.int64)
        multipliers, shifts = np.asarray([20000], np.int32), np.asarray([24], np.int32)
        halved = TorchRequant((1518500249,), (51,), (77,), 3)
        sums = AddFactors.from_scales((0.03, 0.07, 0.4), (0, 0, 0), 15)
        other = _rng().integers(-(2**15), 2**15, 8).astype(np.int16)
        slopes = np.arange(-4, 4, dtype=np.int32)
        return [
            WideConv2d(weight, bias, multipliers, shifts, strides=(2, 1)).write(bb, [x], "conv"),
            WideConv2d.in_torch(weight, bias, halved).write(bb, [x], "conv_in_torch"),
            PiecewiseRescale((2**30, 1), (-(2**30), -3)).write(bb, [x], "leaky"),
            PiecewiseRescale((2**30, 1), (2**30, -6), slopes=slopes).write(bb, [x], "prelu"),
            TfliteBinary("add", sums, (-(2**15), 2**15 - 1), b=other).write(bb, [x], "add"),
            WideMatmul(20011, 24, (0, 0, 0), (-(2**15), 2**15 - 1), (False, True)).write(
                bb, [x, x], "batch_matmul"
            ),
            WideSigmoid.of_scale("logistic", 0.0001).write(bb, [x], "logistic"),
            WideSigmoid.of_scale("tanh", 2.0**-12).write(bb, [x], "tanh"),
            WideSoftmax.of_scale(0.0003).write(bb, [x], "softmax"),
            TfliteMean((1, 2), *mean_factor((0.01, 0.007), 30), (0, 0)).write(bb, [x], "mean"),
        ]

    return (((1, 5, 6, 8), "int16"),), write


GROUPS: dict[str, tuple[Types, Write]] = {
    "convolution_shift": _convolution(Shift(9)),
    "convolution_mul_shift": _convolution(_per_channel(10)),
    "convolution_tflite": _convolution(_tflite(10)),
    "convolution_onnx": _convolution(_onnx([0.0005 * (n + 1) for n in range(10)], -5)),
    "convolutions_rare": _rare_convolutions(),
    "convolution_analog": _analog_convolution(),
    "dense": _dense(),
    "sums": _sums(),
    "sums_in_reals": _sums_in_reals(),
    "pools": _pools(),
    "movement": _movement(),
    "softmaxes": _softmaxes(),
    "norms": _norms(),
    "activations": _activations(),
    "integers": _integers(),
    "borders": _borders(),
    "reals": _reals(),
    "parts": _parts(),
    "comparisons": _comparisons(),
    "wide": _wide(),
}
"""Inputs and writer of each group, by name."""
