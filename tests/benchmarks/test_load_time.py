"""The networks that builds of many layers are measured with."""

from __future__ import annotations

from pathlib import Path

from benchmarks.load_time import BUILDS, convolutions
from htvm.opening import load


def test_convolutions_have_scales_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "chain.onnx"
    path.write_bytes(convolutions(3))
    operators = [node.op for node in load(path).graph.nodes.values()]
    layers = [operator for operator in operators if type(operator).__name__ == "Conv2d"]
    assert len(layers) == 3 and len({str(layer) for layer in layers}) == 3
    assert {make for _, make, _, _ in BUILDS.values()} >= {convolutions}
