"""Helper: random layers, and the layers of the four MLPerf Tiny topologies (only shapes)."""

from __future__ import annotations

import numpy as np

from byoc_dory.layers import (
    Layer,
    Shift,
    Tensor,
    add_layer,
    conv2d_layer,
    dense_layer,
    depthwise_layer,
)

OPS = ("conv2d", "depthwise", "dense", "add")


def int8(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-128, 128, shape).astype(np.int8)


def int32(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.integers(-5000, 5000, count).astype(np.int32)


def random_layer(rng: np.random.Generator, op: str, name: str = "l", largest: int = 40) -> Layer:
    """A layer the digital core takes; ``largest`` bounds channels and image sizes."""

    def size(low: int = 1, high: int = largest) -> int:
        # Sizes around multiples of 16 and small ones are where mistakes live.
        if rng.random() < 0.3:
            return int(np.clip(16 * rng.integers(1, 4) + rng.integers(-1, 2), low, high))
        return int(rng.integers(low, high + 1))

    shift = int(rng.integers(0, 13))
    clip = (0, 127) if rng.random() < 0.5 else (-128, 127)
    extra = {"requant": Shift(shift), "clip": clip}
    if op == "dense":
        k, c = size(high=3 * largest), size(high=3 * largest)
        bias = int32(rng, k) if rng.random() < 0.9 else None
        return dense_layer(name, Tensor("in", (c,)), "out", int8(rng, k, c), bias, **extra)
    if op == "add":
        shape = (size(),) if rng.random() < 0.2 else (size(), size(), size())
        extra["requant"] = Shift(int(rng.integers(0, 4)))
        return add_layer(name, Tensor("a", shape), Tensor("b", shape), "out", **extra)
    stride = int(rng.integers(1, 3))
    fy, fx = (int(v) for v in rng.integers(1, 8, 2))
    iy, ix = size(max(1, fy - 1)), size(max(1, fx - 1))
    # At most what the kernel allows, at least what the input needs to produce an output.
    pad = [int(rng.integers(0, f)) for f in (fy, fx, fy, fx)]
    if iy + pad[0] + pad[2] < fy:
        pad[0] = fy - iy
    if ix + pad[1] + pad[3] < fx:
        pad[1] = fx - ix
    common = {"stride": (stride, stride), "pad": tuple(pad), **extra}
    c = size()
    source = Tensor("in", (c, iy, ix))
    if op == "depthwise":
        weight = int8(rng, c, 1, fy, fx)
        return depthwise_layer(name, source, "out", weight, int32(rng, c), **common)
    k = size(high=2 * largest)
    bias = int32(rng, k) if rng.random() < 0.9 else None
    return conv2d_layer(name, source, "out", int8(rng, k, c, fy, fx), bias, **common)


# ---------------------------------------------------------------------- MLPerf Tiny


class _Net:
    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.rng = np.random.default_rng(0)

    def conv(
        self,
        source: Tensor,
        k: int,
        f: tuple[int, int],
        stride: int,
        pad: tuple[int, int, int, int],
        depthwise: bool = False,
    ) -> Tensor:
        name = f"l{len(self.layers)}"
        channels = source.shape[0]
        extra = {"stride": (stride, stride), "pad": pad, "requant": Shift(7)}
        if depthwise:
            weight = int8(self.rng, channels, 1, *f)
            layer = depthwise_layer(name, source, f"t_{name}", weight, None, **extra)
        else:
            weight = int8(self.rng, k, channels, *f)
            layer = conv2d_layer(name, source, f"t_{name}", weight, None, **extra)
        self.layers.append(layer)
        return layer.output

    def dense(self, c: int, k: int) -> None:
        name = f"l{len(self.layers)}"
        source = Tensor(f"in_{name}", (c,))
        self.layers.append(
            dense_layer(name, source, f"t_{name}", int8(self.rng, k, c), None, requant=Shift(7))
        )

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        name = f"l{len(self.layers)}"
        layer = add_layer(name, a, b, f"t_{name}", requant=Shift(1))
        self.layers.append(layer)
        return layer.output


def resnet8() -> list[Layer]:
    """ResNet-8, CIFAR-10."""
    net = _Net()
    same, odd = (1, 1, 1, 1), (0, 0, 1, 1)
    x = net.conv(Tensor("x", (3, 32, 32)), 16, (3, 3), 1, same)
    y = net.conv(net.conv(x, 16, (3, 3), 1, same), 16, (3, 3), 1, same)
    x = net.add(x, y)
    for k in (32, 64):
        y = net.conv(net.conv(x, k, (3, 3), 2, odd), k, (3, 3), 1, same)
        x = net.add(net.conv(x, k, (1, 1), 2, (0, 0, 0, 0)), y)
    net.dense(64, 10)
    return net.layers


def ds_cnn() -> list[Layer]:
    """DS-CNN with HTVM's 7x5 filter (10x4 is larger than the core's filters)."""
    net = _Net()
    x = net.conv(Tensor("x", (1, 49, 10)), 64, (7, 5), 2, (2, 1, 3, 2))
    for _ in range(4):
        x = net.conv(x, 64, (3, 3), 1, (1, 1, 1, 1), depthwise=True)
        x = net.conv(x, 64, (1, 1), 1, (0, 0, 0, 0))
    net.dense(64, 12)
    return net.layers


def mobilenet() -> list[Layer]:
    """MobileNetV1 0.25, visual wake words."""
    net = _Net()
    x = net.conv(Tensor("x", (3, 96, 96)), 8, (3, 3), 2, (0, 0, 1, 1))
    plan = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5]
    for k, stride in [*plan, (256, 2), (256, 1)]:
        pad = (1, 1, 1, 1) if stride == 1 else (0, 0, 1, 1)
        x = net.conv(x, x.shape[0], (3, 3), stride, pad, depthwise=True)
        x = net.conv(x, k, (1, 1), 1, (0, 0, 0, 0))
    net.dense(256, 2)
    return net.layers


def toyadmos() -> list[Layer]:
    """The anomaly detection autoencoder."""
    net = _Net()
    for c, k in [(640, 128), *[(128, 128)] * 3, (128, 8), (8, 128), *[(128, 128)] * 3, (128, 640)]:
        net.dense(c, k)
    return net.layers


NETWORKS = {"resnet8": resnet8, "ds_cnn": ds_cnn, "mobilenet": mobilenet, "toyadmos": toyadmos}
