"""Statistics of each tensor of the source on calibration inputs; seeded inputs.

Without data, inputs are drawn from three kinds of noise in the input's own quantization: uniform
integers (hard contrast), rounded normals around the zero point, and smooth waves (which excite
features that white noise averages away).  None of them is the data that the network was made for;
the file's own ranges stay the outer bound of everything that is derived from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from byoc_dory.layers import Array
from htvm.quantization.annotated import Annotated
from htvm.quantization.effects import before_clip
from htvm.quantization.forward import forward
from htvm.quantization.islands import Island
from htvm.quantization.products import weighted

_BUDGET = 400_000_000  # multiply-accumulates spent on one forward pass of all samples
_ROWS = 1024  # positions kept per tensor for the clipping error
_REACH = 4.0  # standard deviations: one value in 16,000 of a normal distribution lies beyond


def sample_count(net: Annotated) -> int:
    """How many inputs to draw for calibration to take seconds: 24 to 512, a multiple of 3."""
    macs = sum(weighted(node).macs for node in net.products)
    macs += sum(node.op.macs for node in net.nodes if isinstance(node.op, Island))
    return int(np.clip(_BUDGET // max(macs, 1), 24, 512)) // 3 * 3


def noise_inputs(net: Annotated, count: int, seed: int) -> dict[str, Array]:
    """Return ``count`` int8 inputs, a third of each kind of noise; equal on every run."""
    rng = np.random.default_rng(seed)
    samples: dict[str, list[Array]] = {name: [] for name in net.inputs}
    for index in range(count):
        for name, shape in net.inputs.items():
            zero = net.zeros[name]
            if index % 3 == 0:
                x = rng.integers(-128, 128, shape).astype(np.float64)
            elif index % 3 == 1:
                x = rng.normal(zero, 32.0, shape)
            else:
                x = _waves(shape, rng)
            samples[name].append(np.clip(np.rint(x), -128, 127).astype(np.int8))
    return {name: np.stack(values) for name, values in samples.items()}


def _waves(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return a sum of six plane waves of random direction, wavelength, phase and strength."""
    axes = [np.linspace(0.0, 1.0, size) for size in shape[:-1] or shape]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    total = np.zeros(shape)
    for _ in range(6):
        direction = rng.normal(0.0, 2.0, grid.shape[-1])
        wave = np.sin(2 * np.pi * (grid @ direction + rng.uniform()))
        total += wave[..., None] * rng.normal(size=shape[-1]) if len(shape) > 1 else wave
    return np.asarray(total * rng.uniform(15.0, 50.0) + rng.uniform(-90.0, 90.0))


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics of the source on the calibration inputs.  Units: steps of the source.

    Attributes:
        tensors: name -> int8 array of every tensor.
        variance: name -> ``[C]``, variance of the values relative to the zero point.
        active: name -> ``[C]``, share of the positions that are positive before a rectifier.
        before_clip: name -> ``[S, C]``, values before the source clips them, relative to its zero
            point, at some random positions.
        extremes: name -> ``[4, C]``, likewise the smallest and the largest value seen, and bounds
            that a normal distribution with the same mean and variance hardly ever exceeds.
    """

    tensors: Mapping[str, Array]
    variance: Mapping[str, Array]
    active: Mapping[str, Array]
    before_clip: Mapping[str, Array]
    extremes: Mapping[str, Array]


def observe(net: Annotated, inputs: Mapping[str, Array], seed: int) -> Statistics:
    """Run the source and collect its statistics."""
    tensors = forward(net, inputs)
    rng = np.random.default_rng(seed)
    variance, active, before, extremes = {}, {}, {}, {}
    for name, values in tensors.items():
        real = values.reshape(-1, values.shape[-1]).astype(np.float32) - net.zeros[name]
        # The bias can correct the mean; a small part of it remains.
        variance[name] = real.var(axis=0) + 0.05 * np.square(real).mean(axis=0)
        rectified = net.rectified(name)
        active[name] = (real > 0).mean(axis=0) if rectified else np.ones(real.shape[-1])
        exact = _before_clip(net, name, tensors)
        rows = exact if len(exact) <= _ROWS else exact[rng.permutation(len(exact))[:_ROWS]]
        before[name] = rows.astype(np.float32)
        mean, reach = exact.mean(axis=0), _REACH * exact.std(axis=0)
        ends = np.stack([exact.min(axis=0), exact.max(axis=0), mean - reach, mean + reach])
        node = net.producer(name)
        if node is None or node.scaled is None:
            ends = np.clip(ends, -128 - net.zeros[name], 127 - net.zeros[name])
        extremes[name] = ends.astype(np.float32)
    return Statistics(tensors, variance, active, before, extremes)


def _before_clip(net: Annotated, name: str, tensors: Mapping[str, Array]) -> Array:
    node = net.producer(name)
    if node is None:
        real = tensors[name].astype(np.float64) - net.zeros[name]
    else:
        real = before_clip(net, node, tensors)
    return np.asarray(real.reshape(-1, real.shape[-1]))
