"""Helper: random layers for the analog core."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from byoc_dory.layers import AnalogRequant, Layer, Tensor, conv2d_layer, dense_layer

ROWS = 1152
CLIPS = ((-128, 127), (0, 127), (-64, 63), (0, 63))


def seven_bits(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-64, 64, shape).astype(np.int8)


def ternary(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-1, 2, shape).astype(np.int8)


def requant(rng: np.random.Generator, k: int, terms: int) -> AnalogRequant:
    """Factors with which outputs spread over their range."""
    # A sum of n products of 7 bits has a standard deviation of about 30 * sqrt(n).
    spread = 30 * np.sqrt(terms)
    gain = 1 << max(0, int(np.log2(spread / 10)) + int(rng.integers(-1, 2)))
    shift = int(rng.integers(0, 13))
    count = k if rng.random() < 0.8 else 1
    mul = np.clip(rng.integers(-6, 7, count) << shift, -32768, 32767)
    add = np.clip(rng.integers(-40, 41, count) << shift, -32768, 32767)
    mul = np.where(mul + count * 3 > 32767, 32767, mul + rng.integers(0, 3, count))
    return AnalogRequant(gain, tuple(mul.tolist()), tuple(add.tolist()), shift, ROWS)


def analog_conv(
    rng: np.random.Generator,
    name: str,
    source: Tensor,
    k: int,
    kernel: tuple[int, int],
    stride: int = 1,
    pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    clip: tuple[int, int] = (-64, 63),
) -> Layer:
    weight = ternary(rng, k, source.shape[0], *kernel)
    factors = requant(rng, k, source.shape[0] * kernel[0] * kernel[1])
    layer = conv2d_layer(
        name, source, f"{name}_out", weight, None,
        stride=(stride, stride), pad=pad, requant=factors, clip=clip,
    )  # fmt: skip
    return known_to_have_seven_bits(layer)


def known_to_have_seven_bits(layer: Layer) -> Layer:
    return replace(layer, input_range=(-64, 63))


def random_analog_layer(rng: np.random.Generator, name: str, largest: int = 20) -> Layer:
    """A layer the analog core takes: odd shapes, several passes, more outputs than columns."""
    clip = CLIPS[int(rng.integers(4))]
    if rng.random() < 0.2:
        c = int(rng.integers(1, 2600 if rng.random() < 0.4 else 200))
        k = int(rng.integers(1, 1100 if rng.random() < 0.2 else 90))
        layer = dense_layer(
            name, Tensor("in", (c,)), "out", ternary(rng, k, c), None,
            requant=requant(rng, k, min(c, ROWS)), clip=clip,
        )  # fmt: skip
        return known_to_have_seven_bits(layer)
    fy, fx = (int(v) for v in rng.integers(1, 8, 2))
    size = [int(v) for v in rng.integers(1, largest + 1, 2)]
    pad = [int(rng.integers(0, f)) for f in (fy, fx, fy, fx)]
    pad[0] += max(0, fy - size[0] - pad[0] - pad[2])
    pad[1] += max(0, fx - size[1] - pad[1] - pad[3])
    # Channels of up to three passes.
    passes = int(rng.choice([1, 1, 1, 2, 3]))
    c = int(rng.integers(1, 1 + min(200, passes * (ROWS // (fy * fx)))))
    k = int(rng.integers(513, 700) if rng.random() < 0.05 else rng.integers(1, 70))
    source = Tensor("in", (c, *size))
    stride = int(rng.integers(1, 3))
    pads = (min(pad[0], fy - 1), min(pad[1], fx - 1), pad[2], pad[3])
    if size[0] + pads[0] + pads[2] < fy or size[1] + pads[1] + pads[3] < fx:
        return random_analog_layer(rng, name, largest)
    return analog_conv(rng, name, source, k, (fy, fx), stride, pads, clip)
