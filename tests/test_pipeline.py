"""The stages of a build, as a whole."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import pytest
from tvm.relax import BlockBuilder, Expr, Var

import htvm
from byoc_dory.options import TilingOptions
from htvm import zoo
from htvm.build_options import BuildOptions
from htvm.errors import TargetError
from htvm.pipeline import compile_model
from patterns.op import Op
from patterns.ops.convolution import Conv2d
from patterns.ops.dense import Dense
from tests.quantization.sources import residual


def test_a_network_is_written_once_and_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    source = residual(3).model()
    written: list[Conv2d] = []
    write = Conv2d.write

    def counted(op: Conv2d, bb: BlockBuilder, inputs: Sequence[Expr], name: str) -> Var:
        written.append(op)
        return write(op, bb, inputs, name)

    def read(*_: object) -> None:
        raise AssertionError("read")

    monkeypatch.setattr(Conv2d, "write", counted)
    monkeypatch.setattr("patterns.reading.read.read_node", read)
    module = htvm.build(source, "diana", platform="host")
    module.report()
    module.explain()
    zeros = [np.zeros(info.shape, info.dtype) for info in source.inputs]
    module.verify(zeros)
    assert module.model is not source  # it was written anew, in the digital core's scheme
    assert written and len({id(op) for op in written}) == len(written)


def test_an_unknown_objective_is_refused_before_anything_is_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def planned(*_: object) -> None:
        raise AssertionError("planned")

    monkeypatch.setattr(sys.modules["htvm.placement.plan"], "place", planned)
    tiling = TilingOptions(objective="speed")
    with pytest.raises(TargetError, match=r"no tiling objective 'speed'.*diana.*latency"):
        htvm.build(zoo.build("toyadmos"), "diana", tiling=tiling)


def test_a_build_leaves_the_model_as_it_was() -> None:
    """Or the next build of the same model would be of another one."""
    model = zoo.named("zoo:digits")
    before = model.module.script()
    for target in ("siracusa.cluster", "generic.cpu"):
        compile_model(model, target, BuildOptions())
        assert model.module.script() == before


@pytest.mark.rotating(1)
@pytest.mark.parametrize("kind", [Conv2d, Dense])
def test_a_layer_whose_pattern_is_missing_goes_to_the_cpu(
    kind: type[Op], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that has the form of another: the pattern decides, whatever placing planned."""
    source = zoo.resnet8()
    data = np.random.default_rng(1).integers(-128, 128, source.inputs[0].shape, "int8")
    whole = htvm.build(source, "diana.digital", platform="host")
    monkeypatch.setattr(kind, "matches", classmethod(lambda cls: ()))
    module = htvm.build(source, "diana.digital", platform="host")
    placement = module.compiled.dispatch.placement
    nodes = module.model.graph.nodes
    assert {placement[name] for name, node in nodes.items() if isinstance(node.op, kind)} == {"cpu"}
    assert "digital" in placement.values()
    np.testing.assert_array_equal(module.run(data).outputs[0], whole.run(data).outputs[0])
