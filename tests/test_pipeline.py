"""The stages of a build, as a whole."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from tvm.ir import IRModule

import htvm
from byoc_dory.options import TilingOptions
from htvm import zoo
from htvm.compiled import BuildOptions
from htvm.errors import TargetError
from htvm.pipeline import compile_model
from patterns.reading import read
from tests.quantization.sources import residual


def test_a_module_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[IRModule] = []
    read_graph = read.read_graph

    def counted(module: IRModule) -> tuple[read.Node, ...]:
        seen.append(module)
        return read_graph(module)

    monkeypatch.setattr(read, "read_graph", counted)
    source = residual(3).model()
    module = htvm.build(source, "diana", platform="host")
    module.report()
    module.explain()
    zeros = [np.zeros(info.shape, info.dtype) for info in source.inputs]
    module.verify(zeros)
    assert module.model is not source  # it was written anew, in the digital core's scheme
    assert seen[0] is source.module and seen[1] is module.model.module
    # `explain` also retargets for the other policy, to say what that would gain.
    assert len(seen) <= 3 and len({id(each) for each in seen}) == len(seen)


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
