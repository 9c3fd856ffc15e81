"""Averages of regions' results: where they read the accelerator's layout, and what they return."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import relax

import htvm
from byoc_dory.layers import TfliteRequant
from htvm.inputs import seeded_inputs
from htvm.model import Model, TensorInfo
from htvm.module import Module
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.tflite.averages import AveragePool
from patterns.reading.read import graph_of
from tests.reference.interpreter import interpret


def network(size: int = 9, kernel: int | None = None, twice: bool = False) -> Model:
    """A convolution and the average of its maps, or of windows; ``twice``: both are results."""
    rng = np.random.default_rng(3)
    weight = rng.integers(-127, 128, (32, 16, 3, 3)).astype("int8")
    bias = rng.integers(-999, 999, 32).astype("int32")
    requant = TfliteRequant((1 << 30,), (-9,), 0)
    window = Window((1, 1), (1, 1, 1, 1), (1, 1), 1, "NHWC")
    conv = conv2d_of(weight, bias, window, requant)
    pool = AveragePool((kernel or size,) * 2, (kernel or size,) * 2)
    bb = relax.BlockBuilder()
    given = relax.Var("x", relax.TensorType((1, size, size, 16), "int8"))
    with bb.function("main", [given]):
        with bb.dataflow():
            maps = conv.write(bb, [given], "conv2d_0")
            averages = pool.write(bb, [maps], "average_pool_0")
            outs = [bb.emit_output(each) for each in ([averages, maps] if twice else [averages])]
        bb.emit_func_output(relax.Tuple(outs) if twice else outs[0])
    module = bb.get()
    found = module["main"].body.ty
    types = list(found.fields) if twice else [found]
    outputs = [
        TensorInfo(f"y{n}", tuple(int(each) for each in kind.shape), "int8", 0.1, 0)
        for n, kind in enumerate(types)
    ]
    inputs = (TensorInfo("x", (1, size, size, 16), "int8", 0.1, 0),)
    return Model("net", graph_of(module), inputs, tuple(outputs))


def steps_of(module: Module) -> list[tuple[str, str]]:
    return [(step.kind, step.layer) for step in module.compiled.program.steps]


def built(model: Model, target: str = "diana.digital", **options: Any) -> Module:
    return htvm.build(model, target=target, platform="host", **options)


@pytest.mark.parametrize("size", [1, 9, 16])
def test_an_average_reads_the_layout_of_the_core(size: int) -> None:
    module = built(network(size))
    assert steps_of(module)[-1] == ("cpu", "average_pool_0")
    assert "epilogue" not in [kind for kind, _ in steps_of(module)]
    inputs = seeded_inputs(module.model.inputs)
    expected = interpret(module.compiled.retargeted.model.graph.module, inputs)
    np.testing.assert_array_equal(module.run(inputs).outputs[0], expected.outputs[0])
    result = module.verify(inputs)
    assert result.equal and result.contained
    assert "average_pool_0" in {step.layer for step in result.steps}


@pytest.mark.parametrize(
    ("model", "target", "options"),
    [
        (network(kernel=3), "diana.digital", {}),
        (network(twice=True), "diana.digital", {}),
        (network(), "diana.digital", {"schedule": "published"}),
        (network(), "snitch_ita", {}),
    ],
    ids=["windows", "read twice", "published", "rows of channels"],
)
def test_otherwise_the_result_is_converted(
    model: Model, target: str, options: dict[str, Any]
) -> None:
    module = built(model, target, **options)
    kinds = {kernel.kind for _, kernel in module.compiled.kernels.values()}
    assert "cpu" not in kinds
    assert [layer for kind, layer in steps_of(module) if kind == "cpu"]
