"""ITA's results against their definition in numpy."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference import ita as reference
from tests.reference.ita import Requant
from tests.runtime_c import cluster as c
from tests.runtime_c.cluster import ITA, Array, Cluster, bias_bytes

PLAIN = Requant(1, 0)
SMALL = (64, 64, 64)
LEFT, RIGHT, OUT, BIAS = 0, 32768, 65536, 98304
PROPERTY = settings(max_examples=60, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


def int8(rng: np.random.Generator, *shape: int) -> Array:
    return rng.integers(-128, 128, shape).astype(np.int8)


def square(cluster: Cluster, requant: Requant, **options: Any) -> None:
    """Start the product of 64 x 64 values at LEFT and at RIGHT."""
    cluster.program(SMALL, (LEFT, 64), (RIGHT, 64), (OUT, 64), requant, **options)


def result(cluster: Cluster, rows: int = 64, cols: int = 64) -> Array:
    cluster.finish(ITA)
    return cluster.window(OUT, rows, cols).view(np.int8).copy()


def spread(cluster: Cluster) -> Array:
    """Operands whose 64 x 64 sums are every number from -128 to 127, 16 times."""
    left = np.zeros((64, 64), np.int8)
    right = np.zeros((64, 64), np.int8)
    left[:, 0], left[:, 1] = np.arange(64) - 32, 1
    right[:, 0], right[:, 1] = 4, np.arange(64) % 4
    cluster.put(LEFT, left)
    cluster.put(RIGHT, right)
    sums = reference.product(left, right)
    assert set(sums.ravel()) == set(range(-128, 128))
    return sums


# A sum, and what ends just on one side of a rounding or a saturation for most multipliers.
CORNERS = np.array(
    [-(2**23), -(2**23) + 1, -65536, -32769, -4097, -1025, -257, -129, -128, -127, -64, -3, -2, -1]
    + [0, 1, 2, 3, 63, 64, 127, 128, 129, 255, 256, 257, 511, 512, 1023, 4095, 4096, 32767, 65535]
    + [65536, 2**20, 2**22 - 1, 2**23 - 2, 2**23 - 1],
)
CASES = [
    Requant(mult, shift, add)
    for mult in range(256)
    for shift in range(32)
    if mult in (0, 1, 2, 3, 127, 128, 254, 255) or shift in (0, 1, 8, 15, 31)
    for add in (((mult + shift) % 3) * 127 - 127,)
] + [Requant(255, 8, add) for add in range(-128, 128)]


def test_requantization_at_its_corners(cluster: Cluster) -> None:
    """Every multiplier and every shift; sums are corners plus 0 to 4095 in all."""
    rng = np.random.default_rng(0)
    left = rng.integers(-8, 9, (64, 64)).astype(np.int8)
    right = np.zeros((64, 64), np.int8)
    right[:, :2] = rng.integers(-8, 9, (64, 2))
    right[: len(CORNERS)] = 0  # exactly the corners
    bias = np.resize(CORNERS, 64)
    sums = reference.product(left, right, bias)
    cluster.put(LEFT, left)
    cluster.put(RIGHT, right)
    cluster.put(BIAS, bias_bytes(bias))
    for case in CASES:
        square(cluster, case, bias=BIAS)
        got = result(cluster)
        assert np.array_equal(got, reference.requantize(sums, case)), case
    assert cluster.error is None


def test_relu_requantizes_again(cluster: Cluster) -> None:
    sums = spread(cluster)
    for second in (PLAIN, Requant(255, 8, 3), Requant(77, 5, -128), Requant(3, 1, 127)):
        square(
            cluster,
            PLAIN,
            activation=c.RELU,
            act_requant=second,
        )
        want = reference.activate(reference.requantize(sums, PLAIN), "relu", second)
        np.testing.assert_array_equal(result(cluster), want)


SCALES = (0.0079, 0.0125, 0.016, 0.02, 0.031, 0.05, 0.0625, 0.1, 0.17, 0.25, 0.5, 1.0, 2.6, 6.0)


@pytest.mark.parametrize("scale", SCALES)
def test_gelu_of_every_input(cluster: Cluster, scale: float) -> None:
    sums = spread(cluster)
    b, k = reference.gelu_constants(scale)
    x = reference.requantize(sums, PLAIN)
    for second in (
        Requant(255, 24, 0),
        Requant(201, 18, -5),
        Requant(1, 0, 0),
        Requant(140, 12, 9),
    ):
        square(
            cluster,
            PLAIN,
            activation=c.GELU,
            act_requant=second,
            gelu=(b, k),
        )
        want = reference.activate(x, "gelu", gelu=reference.Gelu(b, k, second))
        np.testing.assert_array_equal(result(cluster), want)


def test_gelu_is_gelu() -> None:
    """The definition itself: the polynomial is near the function that it is named after."""
    from math import erf, sqrt

    scale = 0.04
    b, k = reference.gelu_constants(scale)
    x = np.arange(-127, 128)
    factor = -(scale**3) * 0.2888 / 4  # of which c and 2 / a are a half each
    got = reference.gelu_sums(x, b, k) * factor
    want = [v * scale / 2 * (1 + erf(v * scale / sqrt(2))) for v in x.tolist()]
    np.testing.assert_allclose(got, want, atol=0.05)


def test_gelu_wraps_at_26_bits(cluster: Cluster) -> None:
    """Constants beyond those of any sensible scale."""
    sums = spread(cluster)
    x = reference.requantize(sums, PLAIN)
    for b, k in ((-32768, -32768), (-32768, 32767), (-20000, 0), (0, -1)):
        second = Requant(255, 26, 1)
        square(
            cluster,
            PLAIN,
            activation=c.GELU,
            act_requant=second,
            gelu=(b, k),
        )
        want = reference.activate(x, "gelu", gelu=reference.Gelu(b, k, second))
        np.testing.assert_array_equal(result(cluster), want)


TILES = st.integers(1, 4).map(lambda n: 64 * n)
REQUANTS = st.builds(Requant, st.integers(0, 255), st.integers(0, 31), st.integers(-128, 127))


@PROPERTY
@given(TILES, TILES, TILES, REQUANTS, st.sampled_from((None, 1, 2)), SEEDS)
def test_products(
    cluster_models: ctypes.CDLL,
    rows: int,
    cols: int,
    inner: int,
    requant: Requant,
    kind: int | None,
    seed: int,
) -> None:
    """Any sizes, parts of larger matrices, with each kind of bias; nothing else is written."""
    rng = np.random.default_rng(seed)
    cluster = Cluster(cluster_models)
    cluster.l1[:] = rng.integers(0, 256, cluster.l1.size)
    limit = cluster.l1.size // 3 // 8 * 8
    at, strides = [], []
    for n, (height, width) in enumerate(((rows, inner), (cols, inner), (rows, cols))):
        room = min(limit - 800, 40_000)
        gap = int(rng.integers(0, max(1, (room // height - width) // 8 + 1))) * 8
        at.append(n * limit + 8 * int(rng.integers(0, 4)) + (784 if n == 0 else 0))
        strides.append(width + max(gap, 0))
        if height * strides[-1] + 900 > limit:
            strides[-1] = width
        if height * strides[-1] + 900 > limit:
            cluster.close()
            return
    left = cluster.window(at[0], rows, inner, strides[0]).view(np.int8)
    right = cluster.window(at[1], cols, inner, strides[1]).view(np.int8)
    bias = rng.integers(-(2**23), 2**23, rows if kind == 2 else cols)
    if kind is not None:
        cluster.put(0, bias_bytes(bias))
    aligned = {None: None, 1: bias, 2: bias[:, None]}[kind]
    want = reference.requantize(reference.product(left, right, aligned), requant)
    before = cluster.l1.copy()
    cluster.program(
        (rows, cols, inner),
        (at[0], strides[0]),
        (at[1], strides[1]),
        (at[2], strides[2]),
        requant,
        bias=None if kind is None else 0,
        bias_kind=kind or 0,
    )
    cluster.finish(ITA)
    got = cluster.window(at[2], rows, cols, strides[2])
    np.testing.assert_array_equal(got.view(np.int8), want)
    got[:] = np.lib.stride_tricks.as_strided(before[at[2] :], (rows, cols), (strides[2], 1))
    np.testing.assert_array_equal(cluster.l1, before)
    cluster.close()


def test_the_largest_sums(cluster: Cluster) -> None:
    """512 products of -128 and -128, and a bias: as large as a signed product can be."""
    sizes = (64, 64, 512)
    for value in (-128, 127):
        cluster.put(LEFT, np.full((64, 512), -128, np.int8))
        cluster.put(RIGHT, np.full((64, 512), value, np.int8))
        bias = np.full(64, 2**23 - 1 if value < 0 else -(2**23))
        cluster.put(BIAS, bias_bytes(bias))
        cluster.program(
            sizes, (LEFT, 512), (RIGHT, 512), (OUT, 64), Requant(255, 26, -7), bias=BIAS
        )
        total = 512 * -128 * value + int(bias[0])
        want = reference.requantize(np.full((64, 64), total), Requant(255, 26, -7))
        np.testing.assert_array_equal(result(cluster), want)


def rows_of_scores(style: str, length: int, seed: int) -> tuple[Array, Array, Requant]:
    """Q [64, 64] and K [length, 64] whose scores are of a kind."""
    rng = np.random.default_rng(seed)
    if style == "noise":
        return int8(rng, 64, 64), int8(rng, length, 64), Requant(int(rng.integers(1, 30)), 14)
    q, k = np.zeros((64, 64), np.int8), np.zeros((length, 64), np.int8)
    if style == "equal":
        q[:, 0], k[:, 0] = int8(rng, 64), 1
        return q, k, PLAIN
    # Scores between q and q + step * column, saturated: the maximum grows, or does not.
    q[:, 0], q[:, 1], q[:, 2] = int8(rng, 64), rng.integers(0, 128, 64), 1
    k[:, 0], k[:, 1] = 1, np.linspace(0, 4, length).astype(np.int8)
    k[:, 2] = rng.integers(-20, 21, length)
    if style == "falling":
        k = k[::-1].copy()
    return q, k, PLAIN


@PROPERTY
@given(
    st.sampled_from(("noise", "equal", "growing", "falling")),
    st.integers(1, 512),
    st.sampled_from((5, 0)),
    SEEDS,
)
def test_softmax(
    cluster_models: ctypes.CDLL, style: str, length: int, shift: int, seed: int
) -> None:
    """QK, then AV with columns of the unit matrix as V: the weights themselves, less 128."""
    cols = -(-length // 64) * 64
    q, k, requant = rows_of_scores(style, cols, seed)
    cluster = Cluster(cluster_models)
    scores_at, vt_at, out_at = 40960, 0, 80000
    cluster.put(112_000 - 4096, q)
    cluster.put(0, k)
    cluster.program(
        (64, cols, 64),
        (112_000 - 4096, 64),
        (0, 64),
        (scores_at, cols),
        requant,
        operation=c.QK,
        length=length,
        flags=0 if shift else c.UNIT_SHIFT,
    )
    cluster.finish(ITA)
    scores = cluster.window(scores_at, 64, cols).view(np.int8)
    np.testing.assert_array_equal(scores, reference.requantize(reference.product(q, k), requant))
    want = reference.softmax(scores, length, shift) - 128
    for first in range(0, cols, 64):
        cluster.put(vt_at, np.eye(64, cols, first, np.int8))
        cluster.program(
            (64, 64, cols),
            (scores_at, cols),
            (vt_at, cols),
            (out_at, 64),
            Requant(1, 0, -128),
            operation=c.AV,
        )
        cluster.finish(ITA)
        got = cluster.window(out_at, 64, 64).view(np.int8)
        np.testing.assert_array_equal(got, want[:, first : first + 64])
    cluster.close()


def test_softmax_definition_by_hand() -> None:
    """Three elements at 0, 16 and 48 below the maximum: 256, 128 and 64 in one group."""
    highest, total = reference.softmax_statistics(np.array([[100, 84, 52]]))
    assert (highest[0], total[0]) == (100, 448)
    assert reference.softmax(np.array([[100, 84, 52]])).tolist() == [[145, 72, 36]]
    # Each group's sum is cut when a later one has a larger maximum: 256 + 15 * 256, shifted by 8.
    late = np.array([[-128] * 16 + [127] + [-128] * 15])
    assert reference.softmax_statistics(late)[1][0] == (4096 >> 8) + 256 + 15 * 1
    assert reference.softmax_statistics(late, 0)[1][0] == 256
    assert reference.halvings(np.array([0, 15, 16, 47, 48, 255]), 5).tolist() == [0, 0, 1, 1, 2, 8]


def draw_head(rng: np.random.Generator, embed: int, proj: int) -> reference.Head:
    def scaled(inner: int) -> Requant:
        return Requant(int(rng.integers(90, 256)), 14 + inner.bit_length() // 2, 3)

    biases = [rng.integers(-9000, 9000, n) for n in (proj, proj, proj, embed)]
    weights = [int8(rng, proj, embed) for _ in range(3)]
    return reference.Head(
        *weights,
        int8(rng, embed, proj),
        *biases,
        q=scaled(embed),
        k=scaled(embed),
        v=scaled(embed),
        qk=Requant(150, 15, -4),
        av=Requant(120, 13, 1),
        o=scaled(proj),
    )


@dataclass
class Places:
    """Where in L1 the tensors of a head are, one behind another."""

    offsets: dict[str, int]
    top: int = 0

    def add(self, name: str, size: int) -> int:
        """Take ``size`` bytes; return their offset."""
        self.offsets[name] = self.top
        self.top += -(-size // 8) * 8
        return self.offsets[name]

    def at(self, name: str, stride: int, row: int = 0) -> tuple[int, int]:
        """Offset of a row, and the stride."""
        return self.offsets[name] + row * stride, stride


def place_head(cluster: Cluster, x: Array, head: reference.Head, pitch: int) -> Places:
    """Store what a head reads, and find room for what it writes; its context's rows are ``pitch``
    bytes apart."""
    seq, embed = x.shape
    proj = len(head.wq)
    places = Places({})
    weights = {"wq": head.wq, "wk": head.wk, "wv": head.wv, "wo": head.wo}
    for name, data in {"x": x, **weights}.items():
        cluster.put(places.add(name, data.size), data)
    for name, bias in {"bq": head.bq, "bk": head.bk, "bv": head.bv, "bo": head.bo}.items():
        cluster.put(places.add(name, 3 * bias.size), bias_bytes(bias))
    for name, size in (("q", seq * proj), ("k", seq * proj), ("vt", proj * seq)):
        places.add(name, size)
    places.add("scores", 64 * seq)
    places.add("context", seq * pitch)
    assert seq * embed <= 3 * proj * embed
    places.offsets["out"] = places.offsets["wq"]  # done by then, as are the weights behind it
    return places


Task = tuple[
    tuple[int, int, int],
    tuple[int, int],
    tuple[int, int],
    tuple[int, int],
    Requant,
    dict[str, int],
]


def head_tasks(
    places: Places, sizes: tuple[int, int, int], head: reference.Head, length: int, pitch: int
) -> list[Task]:
    """The steps of a head in their order; ``sizes`` are sequence, embedding and projection."""
    seq, embed, proj = sizes
    at = places.at
    x, q, k, vt, scores = (
        at("x", embed),
        at("q", proj),
        at("k", proj),
        at("vt", seq),
        at("scores", seq),
    )
    b = places.offsets
    rows_of_v = {"bias": b["bv"], "bias_kind": c.BIAS_ROWS}
    tasks: list[Task] = [
        ((seq, proj, embed), x, at("wq", embed), q, head.q, {"bias": b["bq"]}),
        ((seq, proj, embed), x, at("wk", embed), k, head.k, {"bias": b["bk"]}),
        ((proj, seq, embed), at("wv", embed), x, vt, head.v, rows_of_v),
    ]
    for row in range(0, seq, 64):
        some, qk = at("q", proj, row), {"operation": c.QK, "length": length}
        context = at("context", pitch, row)
        tasks.append(((64, seq, proj), some, k, scores, head.qk, qk))
        tasks.append(((64, proj, seq), scores, vt, context, head.av, {"operation": c.AV}))
    context, out = at("context", pitch), at("out", embed)
    tasks.append(((seq, embed, proj), context, at("wo", proj), out, head.o, {"bias": b["bo"]}))
    return tasks


@pytest.mark.parametrize(
    ("seq", "embed", "proj", "length"), [(128, 128, 64, 128), (192, 64, 64, 150), (64, 64, 128, 40)]
)
def test_one_head(cluster: Cluster, seq: int, embed: int, proj: int, length: int) -> None:
    """All steps, one task after another programmed while the one before runs."""
    rng = np.random.default_rng(seq)
    x = int8(rng, seq, embed)
    head = draw_head(rng, embed, proj)
    pitch = 2 * proj  # another head's columns lie between
    places = place_head(cluster, x, head, pitch)
    for *task, options in head_tasks(places, (seq, embed, proj), head, length, pitch):
        cluster.wait_for_context()
        cluster.program(*task, **options)
    cluster.finish(ITA)
    want = reference.run_head(x, head, length)
    for name, tensor, stride in (
        ("q", want.q, proj),
        ("k", want.k, proj),
        ("vt", want.vt, seq),
        ("context", want.context, pitch),
        ("out", want.out, embed),
    ):
        got = cluster.window(places.offsets[name], *tensor.shape, stride).view(np.int8)
        np.testing.assert_array_equal(got, tensor, err_msg=name)
    assert len(np.unique(want.context)) > 20  # the test would notice


def test_heads_are_summed_by_the_cores() -> None:
    rng = np.random.default_rng(3)
    x = int8(rng, 64, 64)
    heads = [draw_head(rng, 64, 64) for _ in range(2)]
    parts = [reference.run_head(x, head).out.astype(int) for head in heads]
    got = reference.multi_head_attention(x, heads, Requant(1, 1))
    np.testing.assert_array_equal(got, np.clip((parts[0] + parts[1] + 1) >> 1, -128, 127))
