"""The models computed by the compiler equal the sketches computed in numpy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from htvm import zoo
from htvm.tools.zoo.networks import model
from htvm.tools.zoo.schemes import Layout
from htvm.vm import linked
from patterns.ops.tflite.softmax import TfliteSoftmax

ROOT = Path(__file__).parents[2]


@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    ("name", "layout"),
    [(name, "NHWC") for name in zoo.names()] + [("ds_cnn", "NCHW"), ("resnet8", "NCHW")],
)
def test_logits_equal_the_sketch(name: str, layout: Layout) -> None:
    import tvm
    from tvm import relax

    drawn = zoo.sketch(name)
    if isinstance(drawn.steps[-1].op, TfliteSoftmax):
        del drawn.steps[-1]
    built = model(drawn, layout)
    machine = relax.VirtualMachine(linked(relax.build(built.module, "llvm")), tvm.cpu())
    x = drawn.calibration(-1)[:1].astype("int8")
    if layout == "NHWC" and x.ndim == 4:
        x = np.asarray(x.transpose(0, 2, 3, 1), order="C")
    assert x.shape == built.inputs[0].shape
    found = machine["main"](tvm.runtime.tensor(x)).numpy()
    assert found.shape == built.outputs[0].shape
    np.testing.assert_array_equal(found, drawn.calibration(len(drawn.steps) - 1)[:1])


@pytest.mark.parametrize("name", zoo.names())
def test_interface(name: str) -> None:
    built = zoo.build(name)
    assert built.name == name and built.scheme == "shift"
    (source,), (result,) = built.inputs, built.outputs
    assert source.dtype == result.dtype == "int8"
    expected = (0.03125, 0) if name == "toyadmos" else (1 / 256, -128)
    assert (result.scale, result.zero_point) == expected


def test_importing_the_zoo_leaves_the_compiler_alone() -> None:
    code = "import sys, htvm.zoo as z; z.names(); sys.exit('tvm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
