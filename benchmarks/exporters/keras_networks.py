"""The networks of the campaign in Keras: the usual architectures, small, with seeded weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import layers as L

__all__ = ["NETWORKS", "network"]


def _conv(x: Any, k: int, size: int = 3, stride: int = 1, act: str | None = "relu") -> Any:
    x = L.Conv2D(k, size, stride, "same", use_bias=False)(x)
    x = L.BatchNormalization()(x)
    return L.Activation(act)(x) if act else x


def _inverted(x: Any, k: int, stride: int, act: str = "relu6", excite: bool = False) -> Any:
    wide = 4 * x.shape[-1]
    y = _conv(x, wide, 1, act=act)
    y = L.DepthwiseConv2D(3, stride, "same", use_bias=False)(y)
    y = L.Activation(act)(L.BatchNormalization()(y))
    if excite:
        y = _excited(y, act)
    y = _conv(y, k, 1, act=None)
    return L.Add()([x, y]) if stride == 1 and x.shape[-1] == k else y


def _excited(x: Any, act: str) -> Any:
    c = x.shape[-1]
    y = L.Reshape((1, 1, c))(L.GlobalAveragePooling2D()(x))
    y = L.Conv2D(c, 1, activation="sigmoid")(L.Conv2D(c // 4, 1, activation=act)(y))
    return L.Multiply()([x, y])


def _head(x: Any) -> Any:
    return L.Dense(10, activation="softmax")(L.GlobalAveragePooling2D()(x))


def mobilenet_v2(x: Any) -> Any:
    x = _conv(x, 8, 3, 2, "relu6")
    for k, stride in ((8, 1), (16, 2), (16, 1), (24, 2)):
        x = _inverted(x, k, stride)
    return _head(_conv(x, 64, 1, act="relu6"))


def mobilenet_v3(x: Any) -> Any:
    x = _conv(x, 8, 3, 2, "hard_swish")
    x = _inverted(x, 8, 1, "relu", excite=True)
    return _head(_inverted(x, 16, 2, "hard_swish"))


def efficientnet(x: Any) -> Any:
    x = _conv(x, 8, 3, 2, "swish")
    return _head(_inverted(_inverted(x, 8, 1, "swish", True), 16, 2, "swish", True))


def densenet(x: Any) -> Any:
    x = L.MaxPooling2D(3, 2, "same")(_conv(x, 16))
    for block in range(2):
        for _ in range(2):
            y = L.ReLU()(L.BatchNormalization()(x))
            y = L.Conv2D(8, 3, padding="same")(y)
            x = L.Concatenate()([x, y])
        if block == 0:
            x = L.AveragePooling2D(2)(L.Conv2D(16, 1)(L.ReLU()(L.BatchNormalization()(x))))
    return _head(L.ReLU()(L.BatchNormalization()(x)))


def resnet(x: Any) -> Any:
    x = _conv(x, 8)
    for k, stride in ((8, 1), (16, 2), (32, 2)):
        y = _conv(_conv(x, k, 3, stride), k, act=None)
        short = x if stride == 1 else _conv(x, k, 1, stride, None)
        x = L.ReLU()(L.Add()([short, y]))
    return _head(x)


def _unet(x: Any, up: Callable[[Any, int], Any]) -> Any:
    one = _conv(x, 8)
    two = _conv(L.MaxPooling2D()(one), 16)
    x = up(_conv(L.MaxPooling2D()(two), 32), 16)
    x = up(_conv(L.Concatenate()([x, two]), 16), 8)
    return L.Conv2D(2, 1)(_conv(L.Concatenate()([x, one]), 8))


def unet_transposed(x: Any) -> Any:
    return _unet(x, lambda x, k: L.Conv2DTranspose(k, 2, 2, "same")(x))


def unet_nearest(x: Any) -> Any:
    return _unet(x, lambda x, k: L.Conv2D(k, 1)(L.UpSampling2D()(x)))


def unet_bilinear(x: Any) -> Any:
    return _unet(x, lambda x, k: L.Conv2D(k, 1)(L.UpSampling2D(interpolation="bilinear")(x)))


def squeezenet(x: Any) -> Any:
    x = L.MaxPooling2D(3, 2)(L.Conv2D(16, 3, 2, activation="relu")(x))
    for down, k in ((8, 16), (8, 16)):
        x = L.Conv2D(down, 1, activation="relu")(x)
        one, three = L.Conv2D(k, 1, activation="relu")(x), L.Conv2D(k, 3, 1, "same")(x)
        x = L.Concatenate()([one, L.ReLU()(three)])
    x = L.Conv2D(10, 1, activation="relu")(L.Dropout(0.5)(x))
    return L.Softmax()(L.GlobalAveragePooling2D()(x))


def audio(x: Any) -> Any:
    x = L.Conv1D(16, 5, padding="same", activation="relu")(x)
    x = L.Conv1D(24, 3, 2, "same", activation="relu")(L.MaxPooling1D(2)(x))
    x = L.SeparableConv1D(24, 3, padding="same", activation="relu")(x)
    return L.Dense(10, activation="softmax")(L.GlobalAveragePooling1D()(x))


def audio_dilated(x: Any) -> Any:
    x = L.Conv1D(16, 3, padding="causal", dilation_rate=2, activation="relu")(x)
    return L.Dense(10)(L.Flatten()(L.AveragePooling1D(4)(x)))


def mixer(x: Any) -> Any:
    x = L.Reshape((16, 24))(L.Conv2D(24, 8, 8)(x))
    y = L.Permute((2, 1))(L.LayerNormalization()(x))
    y = L.Permute((2, 1))(L.Dense(16)(L.Dense(32, activation="gelu")(y)))
    x = L.Add()([x, y])
    y = L.Dense(24)(L.Dense(48, activation="gelu")(L.LayerNormalization()(x)))
    return L.Dense(10)(L.GlobalAveragePooling1D()(L.Add()([x, y])))


def several(image: Any, vector: Any) -> Any:
    x = L.GlobalAveragePooling2D()(_conv(image, 8, 3, 2))
    y = L.Dense(8, activation="tanh")(vector)
    both = L.Concatenate()([x, y])
    return [L.Dense(10)(both), L.Dense(1, activation="sigmoid")(L.Subtract()([x, y]))]


_IMAGE = ((32, 32, 3),)

NETWORKS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "mobilenet_v2": (mobilenet_v2, _IMAGE),
    "mobilenet_v3": (mobilenet_v3, _IMAGE),
    "efficientnet": (efficientnet, _IMAGE),
    "densenet": (densenet, _IMAGE),
    "resnet": (resnet, _IMAGE),
    "unet_transposed": (unet_transposed, _IMAGE),
    "unet_nearest": (unet_nearest, _IMAGE),
    "unet_bilinear": (unet_bilinear, _IMAGE),
    "squeezenet": (squeezenet, _IMAGE),
    "audio": (audio, ((64, 8),)),
    "audio_dilated": (audio_dilated, ((64, 8),)),
    "mixer": (mixer, _IMAGE),
    "several": (several, ((32, 32, 3), (6,))),
}
"""Name -> what makes the network, and the shapes of its inputs without the batch."""


def network(name: str) -> tuple[Any, tuple[tuple[int, ...], ...]]:
    """Return a network with seeded weights and statistics, and the shapes of its inputs."""
    keras.utils.set_random_seed(sum(map(ord, name)))
    make, shapes = NETWORKS[name]
    inputs = [keras.Input(shape, name=f"in{at}") for at, shape in enumerate(shapes)]
    made = keras.Model(inputs, make(*inputs))
    for layer in made.layers:
        if isinstance(layer, L.BatchNormalization):
            c = layer.gamma.shape[0]
            layer.gamma.assign(keras.random.uniform((c,), 0.7, 1.3))
            layer.beta.assign(keras.random.normal((c,), 0.0, 0.1))
            layer.moving_mean.assign(keras.random.normal((c,), 0.0, 0.1))
            layer.moving_variance.assign(keras.random.uniform((c,), 0.5, 1.5))
    return made, shapes
