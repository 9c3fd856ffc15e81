"""Operators in one kernel that compare the same expression of a variable written in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from htvm.firmware.toolchain import Compiler
from patterns.ops.tflite.binary import AddFactors, Function, TfliteBinary
from tests.aot.cpu import native
from tests.aot.cpu.modules import module
from tests.reference.interpreter import interpret

SHAPE = (1, 8, 8, 4)


@pytest.mark.parametrize("mode", native.MODES)
@pytest.mark.parametrize("functions", [("add", "add"), ("add", "subtract", "add")])
def test_sums_of_one_scale_one_after_the_other(
    functions: tuple[Function, ...], mode: str, tmp_path: Path, compiler: Compiler
) -> None:
    """The sum of each has the same step, so both round and clip with the same numbers."""
    numbers = np.asarray([[1], [60], [-90]], np.int8)
    parameters = AddFactors.from_scales((0.04, 0.04, 0.04), (-7, -7, -7))

    def write(builder: Any, value: Any) -> Any:
        for at, (function, number) in enumerate(zip(functions, numbers, strict=False)):
            op = TfliteBinary(function, parameters, b=number)
            value = op.write(builder, [value], f"{function}_{at}")
        return value

    network = module({"x": SHAPE}, write)
    code = native.compiled(network, "net", mode)
    assert len(code.kernels) == 1
    data = np.arange(-128, 128, dtype=np.int8).reshape(SHAPE)
    (made,) = native.run(code, native.library([code], tmp_path, compiler), {"x": data})
    np.testing.assert_array_equal(made, interpret(network, [data]).outputs[0])
