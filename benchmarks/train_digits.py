"""Train the zoo's digits network, in float and with ternary weights, and write both as ONNX.

Run with ``python -m benchmarks.train_digits [folder]``; needs the packages ``jax`` and
``scikit-learn``, which nothing else in the project needs for training.  The weights are part of the
package (`htvm/tools/zoo/weights`), so that this has to run only to change them.

The data are scikit-learn's bundled 8x8 digits (1,797 images of 0..16, here 0..1); every fourth
image is held out.  The network:

    conv 3x3 1->16, conv 3x3 16->32, conv 3x3 32->32 + its input, conv 3x3 stride 2 32->64,
    average over the 4x4 positions, dense 64->10; ReLU after every convolution and after the sum

The ternary version is trained on from the float one.  Its convolutions but the first have weights
{-a_k, 0, a_k}; training sees what the analog core does to them: 7-bit inputs, sums in steps of a
power of two that saturate at 6 bits (straight-through gradients).
"""

from __future__ import annotations

import argparse
import logging
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from htvm.tools.zoo.trained import digits_data

Params: TypeAlias = "dict[str, Any]"

_LOG = logging.getLogger(__name__)

CONVS = (("conv1", 1, 16, 1), ("conv2", 16, 32, 1), ("conv3", 32, 32, 1), ("conv4", 32, 64, 2))
"""Name, C, K, stride of the convolutions; all 3x3, padded to keep the size at stride 1."""
TERNARY = ("conv2", "conv3", "conv4")
CLASSES = 10

_STEPS_7_BIT, _ADC_LOW, _ADC_HIGH = 63, -32, 31


# ---------------------------------------------------------------------- the network


def initial(rng: np.random.Generator) -> Params:
    """Random weights (He), zero biases."""
    params: Params = {}
    for name, channels, k, _ in CONVS:
        deviation = np.sqrt(2 / (9 * channels))
        weight = rng.normal(0, deviation, (k, channels, 3, 3)).astype(np.float32)
        params[name] = {"w": weight, "b": np.zeros(k, np.float32)}
    weight = rng.normal(0, np.sqrt(1 / 64), (CLASSES, 64)).astype(np.float32)
    params["dense"] = {"w": weight, "b": np.zeros(CLASSES, np.float32)}
    return params


def _pass(value: Any, quantized: Any) -> Any:
    """``quantized`` forwards, the gradient of ``value`` backwards."""
    import jax

    return value + jax.lax.stop_gradient(quantized - value)


def ternary(weight: Any) -> tuple[Any, Any]:
    """(signs, scale of each output channel): the nearest {-a, 0, a} for a threshold of 0.7 mean."""
    import jax.numpy as jnp

    magnitude = jnp.abs(weight)
    threshold = 0.7 * magnitude.mean(axis=(1, 2, 3), keepdims=True)
    used = magnitude > threshold
    count = jnp.maximum(used.sum(axis=(1, 2, 3), keepdims=True), 1)
    scale = (magnitude * used).sum(axis=(1, 2, 3), keepdims=True) / count
    return jnp.sign(weight) * used, scale


def _conv(x: Any, weight: Any, stride: int) -> Any:
    import jax

    return jax.lax.conv_general_dilated(x, weight, (stride, stride), [(1, 1), (1, 1)])


def _analog(x: Any, weight: Any, stride: int) -> Any:
    """A convolution as the analog core computes it, in real numbers."""
    import jax
    import jax.numpy as jnp

    signs, scale = ternary(weight)
    step = jax.lax.stop_gradient(jnp.max(x)) / _STEPS_7_BIT + 1e-9
    inputs = _pass(x, jnp.round(x / step) * step)
    sums = _conv(inputs, _pass(weight / scale, signs), stride)
    largest = jax.lax.stop_gradient(jnp.quantile(jnp.abs(sums), 0.9995)) / step
    gain = 2.0 ** jnp.ceil(jnp.log2(jnp.maximum(largest / _ADC_HIGH, 1)))
    limited = jnp.clip(sums / (step * gain), _ADC_LOW, _ADC_HIGH)
    # Retargeting adds half a step, so that the floor of the converter rounds.
    levels = _pass(limited, jnp.round(limited))
    return levels * (step * gain) * scale.reshape(1, -1, 1, 1)


def logits(params: Params, x: Any, is_ternary: bool) -> Any:
    """Logits [N, 10] of images [N, 1, 8, 8]."""
    import jax
    import jax.numpy as jnp

    for name, _, _, stride in CONVS:
        layer = params[name]
        conv = _analog if is_ternary and name in TERNARY else _conv
        y = conv(x, layer["w"], stride) + layer["b"].reshape(1, -1, 1, 1)
        y = jax.nn.relu(y)
        x = jax.nn.relu(y + x) if name == "conv3" else y
    mean = jnp.mean(x, axis=(2, 3))
    return mean @ params["dense"]["w"].T + params["dense"]["b"]


# ---------------------------------------------------------------------- training


def _shifted(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Every image moved by up to one pixel each way, and a little noise."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    result = np.empty_like(images)
    for index, (dy, dx) in enumerate(rng.integers(0, 3, (len(images), 2))):
        result[index] = padded[index, :, dy : dy + 8, dx : dx + 8]
    noisy = result + rng.normal(0, 0.03, result.shape)
    return np.clip(noisy, 0, 1).astype(np.float32)


def train(
    params: Params,
    images: np.ndarray,
    labels: np.ndarray,
    *,
    is_ternary: bool,
    epochs: int,
    rate: float,
    rng: np.random.Generator,
) -> Params:
    """Adam with a cosine rate on the cross entropy; batches of 64, weight decay 1e-4."""
    import jax
    import jax.numpy as jnp

    def loss(weights: Params, x: Any, y: Any) -> Any:
        scores = jax.nn.log_softmax(logits(weights, x, is_ternary))
        wanted = jax.nn.one_hot(y, CLASSES) * 0.95 + 0.05 / CLASSES
        return -jnp.mean(jnp.sum(wanted * scores, axis=1))

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(weights: Params, moments: Any, x: Any, y: Any, count: Any, speed: Any) -> Any:
        gradients = jax.grad(loss)(weights, x, y)
        first, second = moments
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)

        def moved(w: Any, m: Any, v: Any) -> Any:
            direction = m / (1 - 0.9**count) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)
            return w - speed * (direction + 1e-4 * w)

        return jax.tree.map(moved, weights, first, second), (first, second)

    weights = jax.tree.map(jnp.asarray, params)
    moments = (jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights))
    batch, count = 64, 0
    steps = epochs * (len(images) // batch)
    for _ in range(epochs):
        order = rng.permutation(len(images))
        moved = _shifted(images, rng)
        for start in range(0, len(images) - batch + 1, batch):
            chosen = order[start : start + batch]
            count += 1
            speed = rate * 0.5 * (1 + np.cos(np.pi * count / steps))
            weights, moments = step(
                weights, moments, moved[chosen], labels[chosen], float(count), float(speed)
            )
    return {
        name: {part: np.asarray(value) for part, value in layer.items()}
        for name, layer in weights.items()
    }


def accuracy(params: Params, images: np.ndarray, labels: np.ndarray, is_ternary: bool) -> float:
    """Share of images whose largest logit is the label's."""
    found = np.asarray(logits(params, images, is_ternary)).argmax(axis=1)
    return float((found == labels).mean())


# ---------------------------------------------------------------------- writing


def to_onnx(params: Params, is_ternary: bool) -> Any:
    """The network as an ONNX model, input ``image`` [1, 1, 8, 8], output ``logits`` [1, 10]."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes, tensors, source = [], [], "image"

    def constant(name: str, value: np.ndarray) -> str:
        tensors.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    for name, _, _, stride in CONVS:
        weight = params[name]["w"]
        if is_ternary and name in TERNARY:
            signs, scale = ternary(weight)
            weight = np.asarray(signs) * np.asarray(scale)
        operands = [source, constant(f"{name}.weight", weight)]
        operands.append(constant(f"{name}.bias", params[name]["b"]))
        nodes.append(
            helper.make_node(
                "Conv", operands, [f"{name}.sum"], name, kernel_shape=[3, 3],
                strides=[stride, stride], pads=[1, 1, 1, 1],
            )
        )  # fmt: skip
        nodes.append(helper.make_node("Relu", [f"{name}.sum"], [name], f"{name}.relu"))
        if name == "conv3":
            nodes.append(helper.make_node("Add", [name, source], ["add.sum"], "add"))
            nodes.append(helper.make_node("Relu", ["add.sum"], ["add"], "add.relu"))
        source = "add" if name == "conv3" else name
    nodes.append(helper.make_node("GlobalAveragePool", [source], ["mean"], "mean"))
    nodes.append(helper.make_node("Flatten", ["mean"], ["features"], "flatten", axis=1))
    dense = [constant("dense.weight", params["dense"]["w"])]
    dense.append(constant("dense.bias", params["dense"]["b"]))
    nodes.append(helper.make_node("Gemm", ["features", *dense], ["logits"], "dense", transB=1))
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, CLASSES])],
        tensors,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def main() -> None:
    """Train both and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    default = Path(__file__).parents[1] / "htvm" / "zoo" / "weights"
    parser.add_argument("folder", nargs="?", type=Path, default=default)
    parser.add_argument("--epochs", type=int, default=60)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    rng = np.random.default_rng(0)
    images, labels, held_out, wanted = digits_data()
    plain = train(
        initial(rng), images, labels, is_ternary=False, epochs=options.epochs, rate=3e-3, rng=rng
    )
    _LOG.info("float: %.2f %%", 100 * accuracy(plain, held_out, wanted, False))
    tuned = train(plain, images, labels, is_ternary=True, epochs=options.epochs, rate=1e-3, rng=rng)
    _LOG.info("ternary, as trained: %.2f %%", 100 * accuracy(tuned, held_out, wanted, True))
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, params, is_ternary in (("digits", plain, False), ("digits_ternary", tuned, True)):
        path = options.folder / f"{name}.onnx"
        path.write_bytes(to_onnx(params, is_ternary).SerializeToString())
        _LOG.info("%s: %d bytes", path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
