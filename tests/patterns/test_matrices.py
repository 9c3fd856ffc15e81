"""Operators of matrices as layers: what is read means what was written, and is found again."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byoc_dory.layers.layer import Layer, MulShift, Shift
from byoc_dory.layers.rowwise import ItaGelu, ItaSoftmax
from patterns.ops.add import Add
from patterns.ops.convert import Convert
from patterns.ops.dense import Dense
from patterns.ops.integer.combine import IntegerMatmul
from patterns.ops.integer.rescale import Rescale
from patterns.ops.moves.reshape import Reshape
from patterns.ops.pulp.elementwise import Accumulate, PulpGelu, PulpHardSwish
from patterns.ops.pulp.ita import ItaActivation, ItaMax
from patterns.ops.pulp.norm import PulpAffineNorm, PulpLayerNorm, PulpRmsNorm, PulpSoftmax
from tests.patterns.fake import cut, fake, layers_of, placed_on
from tests.patterns.test_types import drawn, module_of
from tests.reference.interpreter import interpret
from tests.reference.matrix_layers import evaluate

Array = npt.NDArray[Any]
Types = list[tuple[tuple[int, ...], str]]

RNG = np.random.default_rng(11)
GELU = ItaGelu(b=-80, c=-7091, mul=148, shift=21, add=0)
REQUANT = MulShift((77,), (14,), (8192,))


def in_tensor(values: Array, tensor_shape: tuple[int, ...]) -> Array:
    """Values of the integer form in a layer's tensor: a vector, or (columns, rows, 1)."""
    if len(tensor_shape) == 1:
        return values.reshape(-1)
    columns, y, x = tensor_shape
    return values.reshape(y, x, columns).transpose(2, 0, 1)


def layers_mean_what_was_written(types: Types, write: Callable[..., Any]) -> list[Layer]:
    """Every operator is in one region, and its layers compute what the interpreter does."""
    module = module_of(types, write)
    placed, parts = cut(module, fake())
    (region,) = parts.regions.values()
    assert set(placed.placement.values()) == {"cores"}
    inputs = drawn(types)
    known = {f"input_{index}": values for index, values in enumerate(inputs)}
    for layer in region.layers:
        operands = [in_tensor(known[tensor.name], tensor.shape) for tensor in layer.inputs]
        found = evaluate(layer, operands)
        known[layer.name] = found if found.ndim == 1 else found.transpose(1, 2, 0)
    wanted = interpret(module, inputs).outputs
    for tensor, expected in zip(region.outputs, wanted, strict=True):
        values = known[tensor.name]
        assert values.dtype == expected.dtype
        np.testing.assert_array_equal(values.reshape(expected.shape), expected)
    return list(region.layers)


def weights(k: int, channels: int) -> tuple[Array, Array]:
    return (
        RNG.integers(-128, 128, (k, channels)).astype(np.int8),
        RNG.integers(-5000, 5000, k).astype(np.int32),
    )


SIZES = st.integers(1, 9)
LEADS = st.sampled_from([(), (1,), (1, 1), (3,), (1, 4), (2, 3)])


@settings(max_examples=20)
@given(LEADS, st.integers(2, 9), SIZES, SIZES, st.sampled_from(["int8", "uint8"]), st.booleans())
def test_a_product_with_constants(
    lead: tuple[int, ...], rows: int, channels: int, k: int, dtype: str, per_channel: bool
) -> None:
    weight, bias = weights(k, channels)
    requant = REQUANT
    if per_channel:
        requant = MulShift(tuple(range(20, 20 + k)), (13,) * k, tuple(range(k)))
    lead = tuple(size for size in lead if size == 1)  # the builder's: a batch of 1
    types: Types = [((*lead, rows, channels), dtype)]
    (layer,) = layers_mean_what_was_written(
        types, lambda bb, x: Dense(weight, bias, requant).write(bb, [x], "linear_0")
    )
    assert layer.op == "gemm" and layer.inputs[0].shape == (channels, rows, 1)
    assert layer.requant == requant


@settings(max_examples=20)
@given(LEADS, SIZES, SIZES, SIZES, st.booleans(), st.sampled_from(["int8", "uint8"]))
def test_a_matmul_and_its_rescaling(
    lead: tuple[int, ...], rows: int, channels: int, k: int, transposed: bool, dtype: str
) -> None:
    second = (k, channels) if transposed else (channels, k)
    types: Types = [((*lead, rows, channels), "uint8"), ((*lead, *second), "int8")]
    low, high = (0, 255) if dtype == "uint8" else (-128, 127)

    def write(bb: Any, a: Any, b: Any) -> Any:
        product = IntegerMatmul(transpose_b=transposed).write(bb, [a, b], "matmul_0")
        return Rescale(np.array([[9]]), np.array([512]), 10, (low, high), dtype=dtype).write(
            bb, [product], "rescale_0"
        )

    (layer,) = layers_mean_what_was_written(types, write)
    assert (layer.op, layer.name) == ("matmul", "rescale_0")
    assert layer.output.shape == (k, prod(lead) * rows, 1) and layer.batch == prod(lead)
    assert layer.requant == MulShift((9,), (10,), (512,))


def _norms(bb: Any, x: Any) -> Any:
    columns = int(x.ty.shape[-1])
    weight, bias = RNG.integers(-500, 500, (2, columns))
    a = PulpLayerNorm.of(weight, bias, 16).write(bb, [x], "layer_norm_0")
    b = PulpRmsNorm.of(weight, 32).write(bb, [a], "rms_norm_0")
    return PulpAffineNorm.of(weight, bias, -7, 4096).write(bb, [b], "affine_norm_0")


def _softmaxes(bb: Any, x: Any) -> Any:
    a = PulpSoftmax((1, 173, 15599), 127, 256).write(bb, [x], "integer_softmax_0")
    b = ItaMax(ItaSoftmax(4, 5, 127 * 256), dtype="int8").write(bb, [a], "ita_max_0")
    return ItaMax(ItaSoftmax()).write(bb, [b], "ita_softmax_0")


def _tables(bb: Any, x: Any) -> Any:
    def scaled(value: Any, name: str, mul: int, dtype: str = "int8") -> Any:
        low, high = (0, 255) if dtype == "uint8" else (-128, 127)
        return Rescale(np.array(mul), np.array(99), 12, (low, high), dtype=dtype).write(
            bb, [value], name
        )

    a = scaled(PulpGelu(-42, 1929).write(bb, [x], "gelu_0"), "rescale_0", 3)
    b = PulpHardSwish(48, 96, 3).write(bb, [a], "hard_swish_0")
    c = Convert(REQUANT, offset=3).write(bb, [scaled(b, "rescale_1", -2)], "convert_0")
    d = ItaActivation(GELU).write(bb, [c], "ita_gelu_0")
    return scaled(PulpGelu(-9, 300).write(bb, [d], "gelu_1"), "rescale_2", 5, "uint8")


def _sums(bb: Any, x: Any) -> Any:
    parts = [Convert(MulShift((m,), (8,))).write(bb, [x], f"convert_{m}") for m in range(4)]
    total = Accumulate(5, 1, 3).write(bb, parts, "accumulate_0")
    return Add(MulShift((5,), (4,), (9,))).write(bb, [total, x], "add_0")


@pytest.mark.parametrize("write", [_norms, _softmaxes, _tables, _sums])
@pytest.mark.parametrize("size", [(6, 8), (1, 1, 8), (1, 5, 16), (1, 3, 4, 20), (1, 7)])
def test_functions_of_rows(write: Callable[..., Any], size: tuple[int, ...]) -> None:
    if write is _sums and len(size) == 4:
        pytest.skip("sums of four axes are of maps")
    if write is _sums and size[0] != 1:
        size = (1, *size)
    layers_mean_what_was_written([(size, "int8")], write)


@pytest.mark.parametrize("kind", ["gelu", "hard_swish"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_tables_of_every_byte(kind: str, dtype: str) -> None:
    def write(bb: Any, x: Any) -> Any:
        made = {
            "gelu": lambda: PulpGelu(-42, 1929).write(bb, [x], "inner"),
            "hard_swish": lambda: PulpHardSwish(48, 96, 3).write(bb, [x], "inner"),
        }[kind]()
        return Rescale(np.array(5), np.array(-77), 12, (-120, 99)).write(bb, [made], "outer")

    module = module_of([((1, 256), dtype)], write)
    placed = placed_on(module, fake())
    assert placed.kinds == {"inner": kind, "outer": kind}
    x = np.arange(256, dtype=np.uint8).view(dtype).reshape(1, 256)
    found = evaluate(placed.layers["outer"], [in_tensor(x, (256, 1, 1))])
    np.testing.assert_array_equal(found.reshape(1, 256), interpret(module, [x]).outputs[0])


@pytest.mark.parametrize("reshaped", [False, True])
def test_a_product_and_its_gelu_are_one_layer(reshaped: bool) -> None:
    weight, bias = weights(5, 6)

    def write(bb: Any, x: Any) -> Any:
        y = Dense(weight, bias, REQUANT).write(bb, [x], "linear_0")
        if reshaped:
            y = Reshape((1, 7, 5)).write(bb, [y], "reshape_0")
        return ItaActivation(GELU).write(bb, [y], "ita_gelu_0")

    (layer,) = layers_mean_what_was_written([((7, 6), "int8")], write)
    assert (layer.op, layer.name, layer.function) == ("gemm", "ita_gelu_0", GELU)


def _shared(bb: Any, x: Any) -> Any:
    weight, bias = weights(5, 6)
    y = Dense(weight, bias, REQUANT).write(bb, [x], "linear_0")
    return [ItaActivation(GELU).write(bb, [y], "ita_gelu_0"), y]


def _wide(bb: Any, x: Any) -> Any:
    product = IntegerMatmul(transpose_b=True).write(bb, [x, x], "matmul_0")
    scaled = Rescale(np.array(3), np.array(0), 9, (-128, 127)).write(bb, [product], "rescale_0")
    return [scaled, product]


def _per_row(bb: Any, x: Any) -> Any:
    product = IntegerMatmul(transpose_b=True).write(bb, [x, x], "matmul_0")
    mul = np.arange(1, 8).reshape(7, 1)
    return Rescale(mul, np.array(0), 9, (-128, 127)).write(bb, [product], "rescale_0")


def test_what_others_read_is_no_inner_value() -> None:
    placed = placed_on(module_of([((7, 6), "int8")], _shared), fake())
    assert placed.placement == {"linear_0": "cores", "ita_gelu_0": "cores"}
    assert placed.groups == {} and placed.layers["linear_0"].function is None
    for write in (_wide, _per_row):
        placed, parts = cut(module_of([((7, 6), "int8")], write), fake())
        assert set(placed.placement.values()) == {"cpu"} and not parts.regions
        reasons = {verdict.reason for verdict in placed.verdicts}
        assert reasons == {"no pattern for matmul", "no pattern for rescale"}


def test_a_product_with_itself() -> None:
    def write(bb: Any, x: Any) -> Any:
        product = IntegerMatmul(transpose_b=True).write(bb, [x, x], "matmul_0")
        return Rescale(np.array(3), np.array(0), 9, (-128, 127)).write(bb, [product], "rescale_0")

    (layer,) = layers_mean_what_was_written([((1, 7, 6), "int8")], write)
    assert [tensor.name for tensor in layer.inputs] == ["input_0", "input_0"]


def test_parts_of_a_layer_say_what_they_are_part_of() -> None:
    def write(bb: Any, a: Any, b: Any) -> Any:
        product = IntegerMatmul().write(bb, [a, b], "matmul_0")
        return Rescale(np.array(3), np.array(0), 9, (-128, 127)).write(bb, [product], "rescale_0")

    module = module_of([((7, 6), "int8"), ((6, 7), "int8")], write)
    placed, parts = cut(module, fake("none", ("dense",)), fake())
    assert placed.groups == {"rescale_0": ("matmul_0", "rescale_0")}
    assert placed.inner == {"matmul_0"}
    assert placed.kinds == {"matmul_0": "matmul", "rescale_0": "matmul"}
    assert [(v.layer, v.accelerator, v.accepted, v.reason) for v in placed.verdicts] == [
        ("matmul_0", "none", False, "the operator is matmul"),
        ("matmul_0", "cores", True, "part of matmul 'rescale_0'"),
        ("rescale_0", "none", False, "the operator is matmul"),
        ("rescale_0", "cores", True, ""),
    ]
    assert layers_of(parts) == [["rescale_0"]]
    placed = placed_on(module, fake("none", ("dense",)))
    assert placed.placement == {"matmul_0": "cpu", "rescale_0": "cpu"}
    assert {verdict.reason for verdict in placed.verdicts} == {"the operator is matmul"}
    placed = placed_on(module, fake(), wanted={"rescale_0": "cpu"})
    assert placed.placement == {"matmul_0": "cpu", "rescale_0": "cpu"} and not placed.groups


def test_a_shift_that_is_no_multiplication() -> None:
    weight, bias = weights(3, 6)
    (layer,) = layers_mean_what_was_written(
        [((4, 6), "int8")], lambda bb, x: Dense(weight, bias, Shift(9)).write(bb, [x], "linear_0")
    )
    assert layer.requant == Shift(9)
