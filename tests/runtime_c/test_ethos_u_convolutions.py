"""Convolutions given to the Ethos-U's model through Vela's interface for single operations.

Addresses, layouts, multipliers and shifts are drawn here; results are numpy's.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.runtime_c.ethos_u import ACCELERATORS, DONE, EthosU, aligned, library
from tests.runtime_c.ethos_u_arithmetic import bricks, limited, scaled, unbricked, upscaled
from tests.runtime_c.vela import vela

Array = np.ndarray[Any, Any]
Rng = np.random.Generator

REGION = 1 << 19
OUT = 1 << 18


@pytest.fixture(scope="module")
def lib() -> ctypes.CDLL:
    vela()
    return library()


@dataclass(frozen=True)
class Case:
    """What is drawn of a convolution.

    Attributes:
        size: rows and columns of the result.
        channels: of operand and result.
        kernel, stride, dilation: rows and columns.
        padding: above, left, below, right.
        upscale: 0 none, 1 nearest, 2 zeros between.
        bits: of operands and results.
        bricks: whether operand and result are in bricks.
        zeros: zero points of operand and result.
    """

    depthwise: bool
    size: tuple[int, int]
    channels: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]
    upscale: int
    bits: int
    bricks: tuple[bool, bool]
    zeros: tuple[int, int]
    part_kernel: bool
    rounding: str
    accelerator: str

    @property
    def seen(self) -> tuple[int, int]:
        """Rows and columns of the operand as the kernel sees it."""
        return tuple(  # type: ignore[return-value]
            (size - 1) * stride + (kernel - 1) * dilation + 1 - before - behind
            for size, stride, kernel, dilation, before, behind in zip(
                self.size, self.stride, self.kernel, self.dilation,
                self.padding[:2], self.padding[2:], strict=True,
            )
        )  # fmt: skip


def draw(rng: Rng) -> Case:
    """A convolution with at least one row and column."""
    while True:
        depthwise = bool(rng.random() < 0.35)
        small = bool(rng.random() < 0.8)
        kernel = tuple(int(v) for v in rng.integers(1, 5 if small else 12, 2))
        outer, inner = (int(v) for v in rng.integers(1, 40, 2))
        wide = bool(rng.random() < 0.25)
        upscale = int(rng.choice([0, 0, 0, 1, 2]))
        case = Case(
            depthwise=depthwise,
            size=tuple(int(v) for v in rng.integers(1, 12, 2)),  # type: ignore[arg-type]
            channels=(outer, outer if depthwise else inner),
            kernel=kernel,  # type: ignore[arg-type]
            stride=(1, 1) if upscale else tuple(int(v) for v in rng.integers(1, 4, 2)),  # type: ignore[arg-type]
            dilation=(1, 1) if upscale else tuple(int(v) for v in rng.integers(1, 3, 2)),  # type: ignore[arg-type]
            padding=tuple(int(rng.integers(0, k)) for k in (*kernel, *kernel)),  # type: ignore[arg-type]
            upscale=upscale,
            bits=16 if wide else 8,
            bricks=(bool(rng.random() < 0.5), bool(rng.random() < 0.5)),
            zeros=(0, 0) if wide else tuple(int(v) for v in rng.integers(-128, 128, 2)),  # type: ignore[arg-type]
            part_kernel=not depthwise and bool(rng.random() < 0.5),
            rounding=str(rng.choice(["TFL", "TRUNCATE", "NATURAL"])),
            accelerator=str(rng.choice(list(ACCELERATORS))),
        )
        if min(case.seen) >= 1:
            return case


def draw_weights(rng: Rng, shape: tuple[int, ...]) -> Array:
    """Weights that the encoder compresses differently: by palettes, runs of zeros, indices."""
    kind = int(rng.integers(5))
    if kind == 0:
        return np.asarray(rng.integers(-127, 128, shape))
    if kind == 1:
        return np.clip(np.rint(rng.normal(0, 12, shape)), -127, 127).astype(int)
    if kind == 2:
        return np.asarray(rng.choice(rng.integers(-127, 128, int(rng.integers(1, 34))), shape))
    density = float(rng.choice([0.4, 0.05, 0.002]))
    values = rng.integers(-127, 128, shape) if kind == 3 else rng.choice([5, -7, 0], shape)
    return np.where(rng.random(shape) < density, values, 0)


def feature_map(api: Any, case: Case, shape: tuple[int, int, int], which: int) -> Any:
    """A map of Vela's, whole in one tile."""
    out = api.NpuFeatureMap()
    out.data_type = api.NpuDataType.INT16 if case.bits == 16 else api.NpuDataType.INT8
    out.region, out.shape = 1, api.NpuShape3D(*shape)
    at = OUT if which else 0
    out.tiles = api.NpuTileBox(shape[0], shape[0], shape[1], [at, 0, 0, 0])
    out.quantization = api.NpuQuantization(1.0, case.zeros[which])
    out.layout = api.NpuLayout.NHCWB16 if case.bricks[which] else api.NpuLayout.NHWC
    return out


def stream(
    api: Any, case: Case, ifm: tuple[int, int, int], weights: Array, scales: bytes, rng: Rng
) -> tuple[bytes, bytes] | None:
    """The payload, and weights and scales in region 0; nothing if no block fits the buffers."""
    npu = getattr(
        api.NpuAccelerator, case.accelerator.replace("ethos-u", "Ethos_U").replace("-", "_")
    )
    op = api.NpuConvDepthWiseOperation() if case.depthwise else api.NpuConv2DOperation()
    op.ifm = feature_map(api, case, ifm, 0)
    op.ofm = feature_map(api, case, (*case.size, case.channels[1]), 1)
    (height, width), (sy, sx), (dy, dx) = case.kernel, case.stride, case.dilation
    op.kernel = api.NpuKernel(width, height, sx, sy, dx, dy)
    op.padding = api.NpuPadding(*case.padding)
    traversal = api.NpuBlockTraversal
    order = traversal.PART_KERNEL_FIRST if case.part_kernel else traversal.DEPTH_FIRST
    if not case.depthwise:
        op.block_traversal = order
    op.rounding_mode = api.NpuRoundingMode[case.rounding]
    op.ifm_upscale = list(api.NpuResamplingMode)[case.upscale]
    op.activation = api.NpuActivation(api.NpuActivationOp.NONE_OR_RELU)
    op.weights = op.biases = [api.NpuAddressRange(0, 0, 16)]
    try:
        blocks = api.npu_find_block_configs(op, npu)
    except AssertionError:  # Vela's way to say that no block fits its buffers
        return None
    op.block_config = blocks[int(rng.integers(len(blocks)))]
    encoded = bytes(
        api.npu_encode_weights(
            npu, weights, (dx, dy), case.bits, op.block_config.depth, case.depthwise, order
        )
    )
    encoded += bytes(-len(encoded) % 16)
    scales += bytes(-len(scales) % 16)
    op.biases = [api.NpuAddressRange(0, 0, len(scales))]
    op.weights = [api.NpuAddressRange(0, len(scales), len(encoded))]
    words = api.npu_generate_register_command_stream([op], npu)
    return bytes(api.npu_create_driver_payload(words, npu)), scales + encoded


def sums(case: Case, operand: Array, weights: Array) -> Array:
    """Sums of products, from the definition; ``weights`` is [out][row][column][in]."""
    (height, width), (sy, sx), (dy, dx) = case.kernel, case.stride, case.dilation
    rows, columns = case.seen
    top, left, bottom, right = case.padding
    seen = upscaled(operand, case.upscale, rows, columns)
    padded = np.pad(seen, ((top, bottom), (left, right), (0, 0)))
    out = np.zeros((*case.size, case.channels[1]), np.int64)
    for ky in range(height):
        for kx in range(width):
            part = padded[
                ky * dy : ky * dy + (case.size[0] - 1) * sy + 1 : sy,
                kx * dx : kx * dx + (case.size[1] - 1) * sx + 1 : sx,
            ]
            taps = weights[:, ky, kx].astype(np.int64)
            out += part * taps[:, 0] if case.depthwise else part @ taps.T
    return out


def check(lib: ctypes.CDLL, seed: int) -> bool:
    """Draw a convolution; compare the model with numpy, unless Vela has no stream for it."""
    api, rng = vela(), np.random.default_rng(seed)
    case = draw(rng)
    kind = np.int16 if case.bits == 16 else np.int8
    rows, columns = (-(-size // 2) if case.upscale else size for size in case.seen)
    ifm = (rows, columns, case.channels[0])
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    data = rng.integers(low, high + 1, ifm).astype(kind)
    inner = 1 if case.depthwise else case.channels[0]
    weights = draw_weights(rng, (case.channels[1], *case.kernel, inner))
    count = case.channels[1]
    spread = np.maximum(1, np.sqrt((weights**2).sum((1, 2, 3))) * (1 << case.bits) / 3)
    bias = (rng.normal(size=count) * spread).astype(np.int64)
    multiplier = rng.integers(1 << 30, 1 << 31, count)
    # Most results are within their range; some shifts are below 31, where roundings are one.
    shift = 33 + np.log2(spread).astype(int) - case.bits + rng.integers(-1, 3, count)
    lower = np.minimum(shift - 1, int(rng.choice([0, 0, 12])))
    multiplier, shift = multiplier >> lower, shift - lower
    scales = b"".join(
        bytes(api.npu_encode_bias(np.int64(b), int(m), int(s)))
        for b, m, s in zip(bias, multiplier, shift, strict=True)
    )
    made = stream(api, case, ifm, weights.astype(np.int16), scales, rng)
    if made is None:
        return False
    payload, constants = made
    npu = EthosU(lib, {0: aligned(constants), 1: aligned(REGION)}, frozenset({0}))
    stored = (bricks(data) if case.bricks[0] else data).tobytes()
    npu.regions[1][: len(stored)] = np.frombuffer(stored, np.uint8)
    known = [(0, 0, len(constants)), (1, 0, len(stored))]
    result = npu.run(payload, written=known, accelerator=case.accelerator)
    assert (result.status, result.complaint) == (DONE, ""), case
    total = sums(case, data.astype(np.int64) - case.zeros[0], weights) + bias
    wanted = limited(scaled(total, multiplier, shift, case.rounding), case.zeros[1], low, high)
    size = (case.size[0], -(-count // 16), case.size[1], 16) if case.bricks[1] else wanted.shape
    raw = npu.regions[1][OUT : OUT + int(np.prod(size)) * case.bits // 8].view(kind).reshape(size)
    found = unbricked(raw, count) if case.bricks[1] else raw
    assert (found == wanted).all(), (case, int((found != wanted).sum()))
    return True


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_convolutions(lib: ctypes.CDLL, first: int) -> None:
    assert sum(check(lib, seed) for seed in range(first, first + 10)) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 200))
def test_random_convolutions_at_length(lib: ctypes.CDLL, first: int) -> None:
    assert sum(check(lib, seed) for seed in range(first, first + 200)) >= 190


def test_small_workspaces_take_channels_in_turns(lib: ctypes.CDLL) -> None:
    """The same result where not all weights of a block fit beside each other."""
    api, rng = vela(), np.random.default_rng(5)
    case = Case(
        depthwise=False, size=(2, 3), channels=(512, 64), kernel=(3, 3), stride=(1, 1),
        dilation=(1, 1), padding=(1, 1, 1, 1), upscale=0, bits=8, bricks=(False, False),
        zeros=(3, -4), part_kernel=False, rounding="TFL", accelerator="ethos-u55-128",
    )  # fmt: skip
    weights = rng.integers(-127, 128, (64, 3, 3, 512)).astype(np.int16)
    scales = bytes(api.npu_encode_bias(np.int64(100), 1 << 30, 45)) * 64
    made = stream(api, case, (2, 3, 512), weights, scales, rng)
    assert made is not None
    payload, constants = made
    results = []
    for workspace in (96 * 1024, 1 << 20):
        npu = EthosU(lib, {0: aligned(constants), 1: aligned(REGION)}, workspace=workspace)
        npu.regions[1][: 2 * 3 * 512] = np.arange(2 * 3 * 512) % 251
        assert npu.run(payload).status == DONE
        results.append(npu.regions[1][OUT : OUT + 2 * 3 * 64].copy())
    assert (results[0] == results[1]).all()
    assert len(np.unique(results[0])) > 20


def test_streams_that_end_early(lib: ctypes.CDLL) -> None:
    """Weights cut short, scales cut short, shifts beyond their field."""
    api, rng = vela(), np.random.default_rng(6)
    case = draw(rng)
    while case.depthwise or case.upscale or case.bits != 8:
        case = draw(rng)
    shape = (case.channels[1], *case.kernel, case.channels[0])
    weights = rng.integers(-127, 128, shape).astype(np.int16)
    scale = bytes(api.npu_encode_bias(np.int64(1), 1 << 30, 40))
    ifm = (*case.seen, case.channels[0])
    made = stream(api, case, ifm, weights, scale * case.channels[1], rng)
    assert made is not None
    payload, constants = made
    words = np.frombuffer(payload, np.uint32).copy()

    def register(code: int) -> int:
        return int(np.flatnonzero(words & 0xFFFF == code)[0]) + 1

    def complaint(changes: dict[int, int], data: bytes = constants) -> str:
        new = words.copy()
        for at, value in changes.items():
            new[at] = value
        npu = EthosU(lib, {0: aligned(data), 1: aligned(REGION)})
        return npu.run(new.tobytes()).complaint

    assert complaint({}) == ""
    floats = register(0x0124) - 1
    assert "ACC_FORMAT = 2: the model knows" in complaint({floats: 0x0124 | 2 << 16})
    length = register(0x4021)
    assert "the weight stream of 16 B (WEIGHT_LENGTH) ends within" in complaint({length: 16})
    assert "SCALE_LENGTH = 0" in complaint({register(0x4023): 0})
    damaged = bytearray(constants)
    damaged[9] = 64
    assert "the scale of channel 0 has the shift 64" in complaint({}, bytes(damaged))


@pytest.mark.parametrize(("bits", "fits"), [(8, False), (16, True)])
def test_accumulators_that_overflow(lib: ctypes.CDLL, bits: int, fits: bool) -> None:
    """Sums of 32 bits with operands of 8; Vela gives operands of 16 bits 40."""
    api, rng = vela(), np.random.default_rng(7)
    case = Case(
        depthwise=False, size=(1, 1), channels=(70_000 if bits == 8 else 300, 8), kernel=(1, 1),
        stride=(1, 1), dilation=(1, 1), padding=(0, 0, 0, 0), upscale=0, bits=bits,
        bricks=(False, False), zeros=(127 if bits == 8 else 0, 0), part_kernel=False,
        rounding="TFL", accelerator="ethos-u55-128",
    )  # fmt: skip
    count = min(case.channels[0], 65_536)
    weights = np.full((8, 1, 1, count), 255, np.int16)
    scales = bytes(api.npu_encode_bias(np.int64(0), 1 << 30, 60)) * 8
    made = stream(api, case, (1, 1, count), weights, scales, rng)
    assert made is not None
    npu = EthosU(lib, {0: aligned(made[1]), 1: aligned(REGION)})
    npu.regions[1][: count * bits // 8] = 0x80  # the least of 8 bits, a low number of 16
    result = npu.run(made[0])
    assert (result.status == DONE) == fits, result
    assert fits or "does not fit into the accumulators" in result.complaint
