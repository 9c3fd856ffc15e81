"""The four MLPerf Tiny networks as HTVM ran them on DIANA (HTVM, DAC 2023, and its scripts).

`mobilenet_v1_224` is MobileNetV1 as it was published, for systems without DIANA's limits.

Differences from the MLPerf Tiny reference files: padding is the same on opposite sides, ResNet-8
has 12 classes and MobileNet 4 (the chip's tools required sizes divisible by four), and `ds_cnn`
with the 7x5 filter gets a transposed spectrogram, which fills the array's columns better.

Each is drawn in three schemes (see `htvm.zoo.drawing`).  `place` decides how the scheme "mixed"
draws a layer: the first and the last convolution (in a network without any: dense layer) keep 8
bits.
"""

from __future__ import annotations

from htvm.tools.zoo.drawing import Place, Sketch
from htvm.tools.zoo.schemes import Scheme


def resnet8(seed: int = 0, scheme: Scheme = "8-bit") -> Sketch:
    """Return ResNet-8 for CIFAR-10-sized images: 3x32x32 to 12 classes."""
    net = Sketch("resnet8", (3, 32, 32), seed, scheme)
    x = net.conv2d(net.input, 16, (3, 3), place="first")
    for k, stride in ((16, 1), (32, 2), (64, 2)):
        y = net.conv2d(x, k, (3, 3), stride)
        y = net.conv2d(y, k, (3, 3), relu=False)
        if stride > 1:
            place: Place = "last" if k == 64 else "inner"
            x = net.conv2d(x, k, (1, 1), stride, relu=False, place=place)
        x = net.add(x, y)
    net.softmax(net.dense(net.average_pool(x), 12))
    return net


def ds_cnn(seed: int = 0, scheme: Scheme = "8-bit") -> Sketch:
    """Return DS-CNN keyword spotting as in MLPerf Tiny: 1x49x10, first filter 10x4, 12 classes."""
    net = Sketch("ds_cnn", (1, 49, 10), seed, scheme)
    net.conv2d(net.input, 64, (10, 4), 2, pad=(4, 1, 5, 1), place="first")
    _ds_cnn_tail(net)
    return net


def ds_cnn_7x5(seed: int = 0, scheme: Scheme = "8-bit") -> Sketch:
    """Return DS-CNN with HTVM's 7x5 filter, transposed as HTVM ran it: 1x10x49, 5 (y) by 7 (x)."""
    net = Sketch("ds_cnn_7x5", (1, 10, 49), seed, scheme)
    net.conv2d(net.input, 64, (5, 7), 2, place="first")
    _ds_cnn_tail(net)
    return net


def _ds_cnn_tail(net: Sketch) -> None:
    x = net.last
    for block in range(4):
        place: Place = "last" if block == 3 else "inner"
        x = net.conv2d(net.depthwise(x), 64, (1, 1), place=place)
    net.softmax(net.dense(net.average_pool(x), 12))


def mobilenet_v1(seed: int = 0, scheme: Scheme = "8-bit") -> Sketch:
    """Return MobileNetV1, width 0.25, visual wake words: 3x96x96 to 4 classes."""
    net = Sketch("mobilenet_v1", (3, 96, 96), seed, scheme)
    x = net.conv2d(net.input, 8, (3, 3), 2, place="first")
    blocks = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5]
    for k, stride in [*blocks, (256, 2)]:
        x = net.conv2d(net.depthwise(x, stride), k, (1, 1))
    x = net.conv2d(net.depthwise(x), 256, (1, 1), place="last")
    net.softmax(net.dense(net.average_pool(x), 4))
    return net


def mobilenet_v1_224(seed: int = 0, scheme: Scheme = "8-bit") -> Sketch:
    """Return MobileNetV1, width 1.0, for ImageNet: 3x224x224 to 1000 classes, 569 million MAC."""
    net = Sketch("mobilenet_v1_224", (3, 224, 224), seed, scheme)
    x = net.conv2d(net.input, 32, (3, 3), 2, place="first")
    blocks = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5]
    for k, stride in [*blocks, (1024, 2)]:
        x = net.conv2d(net.depthwise(x, stride), k, (1, 1))
    x = net.conv2d(net.depthwise(x), 1024, (1, 1), place="last")
    net.softmax(net.dense(net.average_pool(x), 1000))
    return net


def toyadmos(seed: int = 0, scheme: Scheme = "8-bit") -> Sketch:
    """Return the ToyADMOS autoencoder: 640 - 4 x 128 - 8 - 4 x 128 - 640."""
    net = Sketch("toyadmos", (640,), seed, scheme)
    x = net.dense(net.input, 128, relu=True, place="first")
    for k in (128, 128, 128, 8, 128, 128, 128, 128):
        x = net.dense(x, k, relu=True, place="inner")
    net.dense(x, 640)
    return net
