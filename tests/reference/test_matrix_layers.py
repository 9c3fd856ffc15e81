"""The reference of layers of matrices, held to examples worked out by hand."""

from __future__ import annotations

import numpy as np

from byoc_dory.layers import (
    Attention,
    MulShift,
    Projection,
    Scores,
    Shift,
    attend_layer,
    gemm_layer,
    matmul_layer,
    matrix,
    mha_layer,
    rows_layer,
)
from byoc_dory.layers.rowwise import (
    AffineNorm,
    ItaGelu,
    ItaSoftmax,
    LayerNorm,
    RmsNorm,
    RowFunction,
    TableMap,
    TableSoftmax,
)
from tests.reference.matrix_layers import evaluate, loaded, stored


def int8(*rows: list[int]) -> np.ndarray:
    """Rows as a tensor (columns, rows, 1)."""
    return np.array(rows, np.int8).T[:, :, None]


def rows_of(values: np.ndarray) -> list[list[int]]:
    return values[:, :, 0].T.tolist()


def test_a_gemm_and_its_bytes() -> None:
    weight = np.array([[1, 2], [3, -4], [5, 6]], np.int8)
    bias = np.array([10, 0, -7], np.int32)
    requant = MulShift((2, 1, 1), (1, 0, 2), (1, 0, 3))
    x = int8([1, 2], [-3, 100])
    layer = gemm_layer("g", matrix("x", 2, 2), weight, bias, requant=requant, clip=(-100, 127))
    # (15*2+1)>>1, -5, (10+3)>>2; (207*2+1)>>1, -409, (578+3)>>2
    expected = [[15, -5, 3], [127, -100, 127]]
    assert rows_of(evaluate(layer, [x])) == expected
    flipped = gemm_layer(
        "g", matrix("x", 2, 2), weight, bias, requant=requant, clip=(-100, 127), transposed=True
    )
    bytes_of = stored(evaluate(flipped, [x]))
    assert bytes_of.view(np.int8).tolist() == [15, 127, -5, -100, 3, 127]
    np.testing.assert_array_equal(loaded(bytes_of, flipped.output), evaluate(flipped, [x]))


def test_a_matmul_of_heads() -> None:
    a = np.arange(-6, 6, dtype=np.int8).reshape(2, 2, 3)  # 2 heads, 2x3
    b = np.arange(12, dtype=np.int8).reshape(2, 3, 2)  # 2 heads, 3x2
    expected = a.astype(int) @ b.astype(int) >> 1
    first, second = matrix("a", 4, 3), matrix("b", 6, 2)
    layer = matmul_layer("m", first, second, requant=Shift(1), batch=2)
    operands = [loaded(v.reshape(-1).view(np.uint8), t) for v, t in ((a, first), (b, second))]
    got = stored(evaluate(layer, operands)).view(np.int8).reshape(2, 2, 2)
    np.testing.assert_array_equal(got, expected)
    rows = matrix("b", 4, 3)
    layer = matmul_layer("m", first, rows, requant=Shift(1), transposed=True, batch=2)
    turned = np.asarray(b.transpose(0, 2, 1), order="C").reshape(-1).view(np.uint8)
    got = stored(evaluate(layer, [operands[0], loaded(turned, rows)])).view(np.int8)
    np.testing.assert_array_equal(got.reshape(2, 2, 2), expected)


def rows_result(function: RowFunction, *rows: list[int], dtype: str = "int8") -> list[list[int]]:
    layer = rows_layer("r", matrix("x", len(rows), len(rows[0])), function, dtype)
    return rows_of(evaluate(layer, [int8(*rows)]))


def test_functions_of_rows() -> None:
    # distances 0, 1, 3: 100, 50, 10 of 160.
    table = TableSoftmax((100, 50, 20, 10, *(0,) * 252))
    assert rows_result(table, [5, 4, 2], dtype="uint8") == [[159, 79, 15]]
    # mean trunc(-5/2) = -2; squares 9+4 -> 13//2+1 = 7, root 2.
    norm = LayerNorm(np.array([4, 3], np.int32), np.array([1, -1], np.int32), 1)
    assert rows_result(norm, [-5, 0]) == [[(-6 + 1) >> 1, (3 - 1) >> 1]]
    # squares 25//2+1 = 13, root 3: trunc(-15/3), trunc(16/3).
    assert rows_result(RmsNorm(np.array([5, 4], np.int32), 1), [-3, 4]) == [[-3, 2]]
    affine = AffineNorm(np.array([2, 3], np.int32), np.array([1, 200], np.int32), 3, 2)
    assert rows_result(affine, [-4, 100]) == [[-21 >> 2, 127]]
    assert rows_result(TableMap(np.arange(256, dtype=np.uint8)[::-1].copy()), [-1, 0, 5]) == [
        [0, -1, -6]
    ]


def test_softmax_of_groups() -> None:
    # The first two give 256 + (256 >> 1) = 384; the maximum then grows by 64: 384 >> 2, plus 256.
    function = ItaSoftmax(group=2, step_bits=5, numerator=65280)
    inverse = 65280 // (96 + 256 + 128)
    expected = [inverse >> 2, inverse >> 3, inverse, inverse >> 1]
    assert rows_result(function, [0, -32, 64, 32], dtype="uint8") == [expected]


def test_gelu_as_formula_and_as_table() -> None:
    for function in (ItaGelu(-80, -7091, 148, 21, 3), ItaGelu(-3, 5, 1, 0, -1)):
        x = np.arange(-128, 128).tolist()
        assert rows_result(function, x) == rows_result(function.table(), x)


def test_one_head_joined_and_accumulated() -> None:
    one = Projection(np.eye(2, dtype=np.int8), np.zeros(2, np.int32), 1, 0, 0)
    twice = Projection(2 * np.eye(2, dtype=np.int8), np.array([1, 2], np.int32), 1, 0, 0)
    scores = Scores((1, 2, 0), ItaSoftmax(), (1, 8, 128))
    x = int8([8, 0], [0, 8])
    # Scores 16 on the diagonal, 0 beside: a distance of 16 halves. 65280 // 384 = 170, 85.
    context = [[(170 * 8 + 128) >> 8, (85 * 8 + 128) >> 8]]
    context.append(context[0][::-1])
    layer = attend_layer("a", matrix("q", 2, 2), matrix("k", 2, 2), matrix("v", 2, 2), scores)
    assert rows_of(evaluate(layer, [x, x, x])) == context
    joined = Attention((one,), (one,), (one,), scores, (twice,), None)
    result = rows_of(evaluate(mha_layer("m", matrix("x", 2, 2), joined), [x]))
    assert result == [[2 * a + 1, 2 * b + 2] for a, b in context]
    heads = Attention((one,) * 2, (one,) * 2, (one,) * 2, scores, (one, twice), (3, 1, 1))
    result = rows_of(evaluate(mha_layer("m", matrix("x", 2, 2), heads), [x]))
    assert result == [[((3 * a + 1) * 3 + 1) >> 1, ((3 * b + 2) * 3 + 1) >> 1] for a, b in context]
