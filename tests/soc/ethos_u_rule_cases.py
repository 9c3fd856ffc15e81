"""Helper: what each rule of the Ethos-U accepts, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from byoc_dory.layers import (
    Concatenation,
    Difference,
    Doubling,
    Elementwise,
    Interleaving,
    Layer,
    MulShift,
    OnnxRequant,
    Product,
    Repetition,
    Rows,
    Shift,
    Slicing,
    Tensor,
    TfliteRequant,
    TorchRequant,
    add_layer,
)
from byoc_dory.layers.rowwise import FixedPointSoftmax, TableMap, TableSoftmax
from tests.soc.rule_layers import (
    TABLE,
    TFLITE,
    Cases,
    conv,
    gemm,
    grouped,
    pool,
    total,
    with_weights,
)

# A sum of two tensors of one scale, and sums whose operands' scales differ.
_SUM = TfliteRequant((1 << 30, 1 << 30, 1 << 30), (0, 0, -19), 0, (0, 0))
_UNSCALED = TfliteRequant((1 << 29, 1 << 29, 1 << 30), (0, 0, -19), 0, (0, 0))
_STEEP = TorchRequant((1 << 30,), (26,), (1 << 29,))
# Sums of int16, with a multiplier of 15 bits, and a half.
_SHORT = MulShift((20000,), (31,), (1 << 30,))
WIDE = (-(1 << 15), (1 << 15) - 1)
_SOFTMAX = FixedPointSoftmax(1717986918, 23)


def rows(function: TableMap | FixedPointSoftmax | TableSoftmax, columns: int = 12) -> Layer:
    """A function of one row."""
    shape = (columns, 1, 1)
    return Rows(
        name="layer", inputs=(Tensor("x", shape),), output=Tensor("y", shape), function=function
    )


def tflite(**changes: object) -> Layer:
    """A convolution in TFLite's numbers."""
    return conv(requant=TFLITE, **changes)  # type: ignore[arg-type]


def of_int16(
    requant: MulShift | TfliteRequant = _SHORT, bias: int = 1 << 36, dtype: str = "int64"
) -> Layer:
    """A convolution of int16 in TFLite's numbers, as far as they are not given."""
    types = {"dtype": "int16", "result": "int16"}
    fields = {"bias": np.full(8, bias, dtype), "clip": WIDE, "input_range": WIDE}
    return conv(requant=requant, **types, **fields)  # type: ignore[arg-type]


def sum_of_int16(multipliers: tuple[int, int] = (1 << 30, 1518500249)) -> Layer:
    """A sum of int16 in TFLite's numbers."""
    layer = added(TfliteRequant((*multipliers, 1 << 30), (0, -1, -14), 0, (0, 0)))
    tensors = (replace(tensor, dtype="int16") for tensor in (*layer.inputs, layer.output))
    first, second, result = tensors
    return replace(layer, inputs=(first, second), output=result, clip=WIDE)


def combined(kind: type[Elementwise], dtype: str = "int16", shift: int = -12) -> Layer:
    """A difference or product of two maps."""
    factors = ((1 << 30,), (shift,)) if kind is Product else ((1 << 30,) * 3, (0, 0, -14))
    clip = WIDE if dtype == "int16" else (-128, 127)
    first, second, result = (Tensor(name, (4, 8, 8), dtype) for name in ("a", "b", "y"))
    return kind(
        name="layer", inputs=(first, second), output=result,
        requant=TfliteRequant(*factors, 0, (0, 0)), clip=clip,
    )  # fmt: skip


def near_ties() -> Layer:
    """A convolution in onnxruntime's numbers, with a factor of 0.004."""
    return conv(requant=OnnxRequant((8589935,), (31,)), weight=127, bias=np.ones(8, np.int32))


def added(requant: TfliteRequant = _SUM, last: tuple[int, ...] = (4, 8, 8)) -> Layer:
    """A sum in TFLite's numbers."""
    layer = add_layer("layer", Tensor("a", (4, 8, 8)), Tensor("b", (4, 8, 8)), "y", requant=requant)
    return replace(layer, inputs=(layer.inputs[0], Tensor("b", last)))


def joined() -> Layer:
    """Two maps, one behind the other along the channels."""
    parts = (Tensor("a", (4, 8, 8)), Tensor("b", (3, 8, 8)))
    return Concatenation(name="layer", inputs=parts, output=Tensor("y", (7, 8, 8)), axis=0)


def part(size: int = 8) -> Layer:
    """Two channels of a map of this width."""
    source, result = Tensor("x", (4, 8, size)), Tensor("y", (2, 8, size))
    return Slicing(name="layer", inputs=(source,), output=result, begin=(1, 0, 0))


def repeated(factor: int = 2) -> Layer:
    """A map of which each row and column is repeated."""
    source, result = Tensor("x", (4, 8, 8)), Tensor("y", (4, 8 * factor, 8 * factor))
    return Repetition(name="layer", inputs=(source,), output=result, factor=factor)


def doubled() -> Layer:
    """A map of twice the size."""
    source, result = Tensor("x", (4, 8, 8)), Tensor("y", (4, 16, 16))
    return Doubling(name="layer", inputs=(source,), output=result, centred=True)


def spread(channels: int = 4) -> Layer:
    """A map of rows of eight elements spread over one of twice the size."""
    source, result = Tensor("x", (channels, 8, 8)), Tensor("y", (channels, 16, 16))
    return Interleaving(
        name="layer", inputs=(source,), output=result, value=0, start=(0, 0), distance=(2, 2)
    )


def heavy(weight: int) -> Layer:
    """A convolution of which a channel's absolute weights sum up to 65536 of these."""
    return tflite(shape=(32768, 1, 2), k=1, kernel=(1, 2), weight=weight)


def _cases(name: str) -> dict[str, Cases]:
    tables = (
        Cases(
            (
                tflite, added, pool, lambda: rows(TABLE), joined, part, repeated, doubled, spread,
                lambda: combined(Product, "int8"), lambda: combined(Difference, "int8"),
            ),
            (
                (lambda: rows(TableSoftmax((1,) * 256)), "TableSoftmax"),
                (grouped, "2 groups of 2 channels"),
                (lambda: total(3), "3 operands"),
                (gemm, "operator is gemm"),
                (lambda: repeated(3), "repeated 3 times"),
            ),
        ),
        Cases(
            (
                lambda: tflite(shape=(1, 65535, 1), kernel=(1, 1)), of_int16, sum_of_int16,
                lambda: added(last=(4, 1, 1)),
            ),
            (
                (lambda: tflite(dtype="uint8"), "'x' is uint8"),
                (lambda: tflite(dtype="int16"), "'x' is int16"),
                (lambda: of_int16(dtype="int32", bias=1), "the bias is int32"),
                (lambda: with_weights(of_int16(), np.int16), "the weights are int16"),
                (lambda: with_weights(tflite(), np.int16), "int16"),
                (lambda: tflite(bias=np.ones(8, np.int64)), "int64"),
                (lambda: tflite(shape=(1, 65536, 1), kernel=(1, 1)), "a dimension of 65536"),
                (lambda: added(last=(4, 2, 8)), "(4, 2, 8) for a result of (4, 8, 8)"),
                (lambda: added(last=(4,)), "(4,) for a result of (4, 8, 8)"),
                (lambda: part(65536), "a dimension of 65536"),
                (lambda: spread(4096), "a dimension of 65536"),
            ),
        ),
        Cases(
            (
                lambda: tflite(shape=(1, 64, 64), k=1, kernel=(64, 64)),
                lambda: tflite(stride=(3, 3)),
            ),
            (
                (lambda: tflite(shape=(1, 65, 1), k=1, kernel=(65, 1)), "65 high"),
                (lambda: tflite(shape=(1, 64, 65), k=1, kernel=(64, 65)), "64x65"),
                (lambda: tflite(stride=(4, 1)), "4x1"),
                (lambda: tflite(pad=(128, 0, 0, 0)), "128, 0, 0, 0"),
            ),
        ),
        Cases((lambda: tflite(weight=127),), ((lambda: heavy(-128), "8388608"),)),
        Cases(
            (
                lambda: pool(shape=(1, 256, 256), kernel=(256, 256)),
                lambda: pool(kernel=(9, 9), stride=(9, 9)),
            ),
            (
                (lambda: pool(shape=(1, 257, 1), kernel=(257, 1)), "257x1"),
                (lambda: pool(kernel=(2, 2), stride=(4, 4)), "4x4"),
                (lambda: pool(pad=(0, 128, 0, 0)), "0, 128, 0, 0"),
            ),
        ),
        Cases(
            (lambda: pool("average"), lambda: pool(pad=(1, 1, 1, 1))),
            ((lambda: pool("average", pad=(1, 0, 0, 0)), "1, 0, 0, 0"),),
        ),
        Cases(
            (
                lambda: conv(requant=TfliteRequant((1 << 30,), (2,))),
                lambda: conv(requant=OnnxRequant((12345678,), (33,))),
                # A power of two, of which every step is a tie, and each other one goes down.
                lambda: conv(requant=OnnxRequant((1,), (4,))),
                lambda: conv(requant=TorchRequant((12345678,), (33,), (7654321,))),
                lambda: conv(requant=Shift(4)),
                # A factor that float32 rounds: steps near 128 are no ties, those near 64 are.
                near_ties,
                total,
                lambda: rows(_SOFTMAX, 4095),
                of_int16,
                # Two powers of two more than 15 bits have, as channels of one shift get.
                lambda: of_int16(MulShift((4 * 20001,), (33,), (1 << 32,))),
                sum_of_int16,
                lambda: sum_of_int16((1 << 30, 1 << 30)),
                lambda: combined(Difference),
                lambda: combined(Product, shift=-31),
            ),
            (
                (lambda: of_int16(MulShift((20000,), (31,))), "0 is added to products"),
                (lambda: of_int16(MulShift((40001,), (31,), (1 << 30,))), "of 16 bits, not 15"),
                (lambda: of_int16(bias=1 << 39), "exceed 40 bits"),
                (lambda: of_int16(TFLITE), "channel 0 exceed 32 bits"),
                (lambda: sum_of_int16((1 << 29, 1 << 29)), "neither operand"),
                (lambda: combined(Product, shift=-32), "a shift of 63 bits"),
                (lambda: conv(requant=TfliteRequant((1 << 30,), (30,))), "a shift of 1 bits"),
                (lambda: conv(requant=TfliteRequant((1 << 30,), (29,))), "0 exceed 32 bits"),
                (lambda: conv(requant=_STEEP, weight=127), "no room for fractions"),
                (lambda: added(_UNSCALED), "neither operand"),
                (lambda: rows(_SOFTMAX, 4096), "4096 values"),
            ),
        ),
    )  # fmt: skip
    return {f"{name.upper()}-{number}": cases for number, cases in enumerate(tables, 1)}


ETHOS_U55 = _cases("ethos_u55")
ETHOS_U65 = _cases("ethos_u65")
