"""Networks beyond a bound are refused at once, by the operator that is too much."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import htvm
from htvm.aot import cpu
from htvm.errors import ModelError, UnsupportedError
from htvm.frontend import limits
from tests.frontend.flatfile import small_network
from tests.frontend.onnxfile import Array, model_of, node, saved


def test_more_bytes_than_32_bits_address(tmp_path: Path) -> None:
    repeats: dict[str, Array] = {"n": np.asarray([40_000, 10_000], np.int64)}
    nodes = [node("Relu", ["x"], "a"), node("Tile", ["a", "n"], "y")]
    with pytest.raises(UnsupportedError, match=r"tensors of 6,400,[0-9,]+ B.*'y' \(Tile\), 2 of 2"):
        htvm.load(saved(model_of(nodes, {"x": (1, 4)}, constants=repeats), tmp_path))


def test_more_multiply_accumulates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = htvm.zoo.resnet8()
    monkeypatch.setattr(limits, "MOST_MACS", 12_501_759)
    with pytest.raises(UnsupportedError, match="12,501,760 multiply-accumulates.*conv2d_1"):
        htvm.load(model.module)
    monkeypatch.setattr(limits, "MOST_MACS", 12_501_760)
    htvm.load(model.module)


def test_more_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["x", "a", "b", "c", "y"]
    nodes = [node("Neg", [a], b) for a, b in zip(names, names[1:], strict=False)]
    path = saved(model_of(nodes, {"x": (1, 4)}), tmp_path)
    monkeypatch.setattr(limits, "MOST_OPERATORS", 3)
    with pytest.raises(UnsupportedError, match=r"4 operators.*node 'y' \(Neg\), 4 of 4"):
        htvm.load(path)
    monkeypatch.setattr(limits, "MOST_OPERATORS", 4)
    htvm.load(path)


def test_more_operators_than_accelerators_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """TVM groups those for accelerators in memory that grows with their square."""
    model = htvm.zoo.resnet8()
    monkeypatch.setattr(limits, "MOST_OFFERED", len(model.graph.nodes) - 1)
    with pytest.raises(
        UnsupportedError, match=r"accelerators take 1\d; .*'diana'.*for 'diana.cpu'"
    ):
        htvm.build(model, "diana")
    htvm.build(model, "diana.cpu")


def test_more_axes_than_arrays_have(tmp_path: Path) -> None:
    ones: tuple[int, ...] = (1,) * 100
    relu = model_of([node("Relu", ["x"], "y")], {"x": ones})
    with pytest.raises(UnsupportedError, match="a tensor of 100 axes; input 'x'"):
        htvm.load(saved(relu, tmp_path))
    add = model_of([node("Add", ["x", "c"], "y")], {"x": (1, 4)}, constants={"c": np.float32(1)})
    for dims in (ones, (0, 2**62, 2**62), (0, *(2**30,) * 3)):
        del add.graph.initializer[0].dims[:]
        add.graph.initializer[0].dims.extend(dims)
        with pytest.raises(ModelError, match="a tensor of shape"):
            htvm.load(saved(add, tmp_path))
    path = tmp_path / "network.tflite"
    network = small_network()
    path.write_bytes(network.with_tensor(0, shape=ones).file())
    with pytest.raises(ModelError, match="100 axes, of at most 32"):
        htvm.load(path)


def test_a_kernel_too_long_for_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = htvm.load(saved(model_of([node("Neg", ["x"], "y")], {"x": (1, 4)}), tmp_path))
    monkeypatch.setattr(cpu, "_MOST_CHARACTERS", 100)
    with pytest.raises(UnsupportedError, match="characters of C, at most 100; operators real_"):
        htvm.build(model, "generic.cpu", platform="host")
