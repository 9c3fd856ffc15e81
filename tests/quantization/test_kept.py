"""Retargeting networks with operators that only move elements, and with some that are kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import htvm
from htvm.frontend.check import check
from htvm.quantization import retarget
from htvm.quantization.report import sqnr_db
from tests.frontend.flatfile import INT32, Graph
from tests.frontend.single import inputs_of
from tests.frontend.sketch import Sketch
from tests.frontend.test_tflite_operators import everything
from tests.reference.interpreter import interpret


def convolution(sketch: Sketch, source: int, channels: int, zero: int = 0, fused: int = 0) -> int:
    """3x3, padded; weights per channel; a scale that suits what it computes."""
    given = sketch.tensors[source]
    shape = (channels, 3, 3, given.shape[3])
    scales = [sketch.scale(0.003, 0.01) for _ in range(channels)]
    zeros = [0] * channels
    weights = sketch.tensor(
        shape, 1, 0, data=sketch.bytes(*shape), scales=scales, zero_points=zeros
    )
    products = [given.scales[0] * scale for scale in scales]
    data = sketch.rng.integers(-500, 500, channels).astype(np.int32)
    bias = sketch.tensor(
        (channels,), 1, 0, code=INT32, data=data, scales=products, zero_points=zeros
    )
    step = max(products) * 40 * np.sqrt(9 * given.shape[3])
    out = sketch.tensor((*given.shape[:3], channels), float(np.float32(step)), zero)
    one = ("i", 1)
    options = {0: ("b", 0), 1: one, 2: one, 3: ("b", fused)}
    sketch.op("CONV_2D", [source, weights, bias], [out], (1, options))
    return out


def joined(sketch: Sketch, source: int) -> int:
    """Parts with zero points of their own make, one of them rectified."""
    parts = [convolution(sketch, source, 4, fused=1), convolution(sketch, source, 3)]
    scale = max(sketch.tensors[part].scales[0] for part in parts)
    same = []
    for part in parts:
        same.append(sketch.tensor(sketch.tensors[part].shape, scale, -20))
        sketch.op("QUANTIZE", [part], [same[-1]], None)
    out = sketch.tensor((1, 6, 6, 7), scale, -20)
    sketch.op("CONCATENATION", same, [out], (10, {0: ("i", 3)}))
    return out


def parted(sketch: Sketch, source: int) -> int:
    halves = [sketch.like(source, (1, 6, 6, 2)) for _ in range(2)]
    sketch.op("SPLIT", [sketch.integers(3), source], halves, (35, {0: ("i", 2)}))
    out = sketch.like(source, (1, 6, 6, 4))
    sketch.op("CONCATENATION", halves[::-1], [out], (10, {0: ("i", 3)}))
    return out


def resized(sketch: Sketch, source: int) -> int:
    out = sketch.like(source, (1, 9, 4, 4))
    modes = {0: ("B", 0), 1: ("B", 1)}
    sketch.op("RESIZE_NEAREST_NEIGHBOR", [source, sketch.integers([9, 4])], [out], (74, modes))
    return out


def turned(sketch: Sketch, source: int) -> int:
    out = sketch.like(source, (1, 4, 6, 6))
    sketch.op("TRANSPOSE", [source, sketch.integers([0, 3, 1, 2])], [out], None)
    return out


def padded(value: int | None) -> Callable[[Sketch, int], int]:
    """With the number zero, or with another."""

    def pad(sketch: Sketch, source: int) -> int:
        given = sketch.tensors[source]
        out = sketch.like(source, (1, 8, 6, 5))
        widths = sketch.integers([[0, 0], [2, 0], [0, 0], [0, 1]])
        if value is None:
            sketch.op("PAD", [source, widths], [out], None)
        else:
            data = np.asarray([value], np.int8)
            fill = sketch.constant(data, given.scales[0], given.zero_points[0])
            sketch.op("PADV2", [source, widths, fill], [out], None)
        return out

    return pad


def squashed(sketch: Sketch, source: int) -> int:
    out = sketch.tensor(sketch.tensors[source].shape, 1 / 128, 0)
    sketch.op("TANH", [source], [out], None)
    return out


def gated(sketch: Sketch, source: int) -> int:
    """Squeeze and excite: the map times a number for each of its channels."""
    given = sketch.tensors[source]
    average = sketch.tensor((1, 1, 1, 4), given.scales[0], given.zero_points[0])
    sketch.op("MEAN", [source, sketch.integers([1, 2])], [average], (27, {0: ("B", 1)}))
    gate = sketch.tensor((1, 1, 1, 4), 1 / 256, -128)
    sketch.op("LOGISTIC", [average], [gate], None)
    out = sketch.tensor(given.shape, given.scales[0] * 0.6, 7)
    sketch.op("MUL", [source, gate], [out], (21, {0: ("b", 0)}))
    return out


PARTS: dict[str, Callable[[Sketch, int], int]] = {
    "joined": joined,
    "parted": parted,
    "resized": resized,
    "turned": turned,
    "padded": padded(None),
    "padded with another number": padded(100),
    "squashed": squashed,
    "gated": gated,
}


def network(part: Callable[[Sketch, int], int]) -> Graph:
    """A part between two convolutions."""
    sketch = Sketch(np.random.default_rng(3))
    source = sketch.input((1, 6, 6, 3), 0.03, -12)
    middle = part(sketch, convolution(sketch, source, 4, zero=-10))
    return sketch.graph(convolution(sketch, middle, 5, zero=4))


@pytest.mark.rotating(3)
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_a_part_between_convolutions_keeps_its_meaning(
    tmp_path: Path, part: Callable[[Sketch, int], int]
) -> None:
    graph = network(part)
    path = tmp_path / "network.tflite"
    path.write_bytes(graph.file())
    model = htvm.load(path)
    result = retarget(model)
    assert result.report.changed
    check(result.model.module)
    rng, noise, signal = np.random.default_rng(0), [], []
    for _ in range(8):
        inputs = inputs_of(graph, rng)
        (wanted,) = interpret(model.module, inputs).outputs
        (found,) = interpret(result.model.module, inputs).outputs
        signal.append(wanted.astype(np.float64) - 4)
        noise.append(found.astype(np.float64) - 4)
    assert sqnr_db(np.stack(signal), np.stack(noise)) >= 22.0


def test_everything_runs_on_the_digital_core(tmp_path: Path) -> None:
    graph = everything(borders=False)
    path = tmp_path / "network.tflite"
    path.write_bytes(graph.file())
    module = htvm.build(path, "diana.digital", "host")
    report = module.compiled.retargeted.report
    assert report.output_sqnr_db is not None and report.output_sqnr_db >= 30.0
    places = module.placement
    assert [places[f"conv2d_{at}"] for at in (0, 2)] == ["digital"] * 2
    # What a transposed convolution is made of: its host part, and a convolution.
    assert places["interleave_0"] == "cpu"
    inputs = inputs_of(graph, np.random.default_rng(0))
    wanted = interpret(module.compiled.retargeted.model.module, inputs).outputs
    for made, expected in zip(module.run(inputs).outputs, wanted, strict=True):
        np.testing.assert_array_equal(made, expected)


def test_a_conversion_beside_a_table_is_a_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "network.tflite"
    path.write_bytes(network(squashed).file())
    result = retarget(htvm.load(path))
    kinds = [node.kind for node in check(result.model.module).in_order]
    assert kinds.count("table") == 1
    # One conversion brings the input in, one takes the output out at most; none is in between.
    assert "convert" not in kinds[1:-1]
