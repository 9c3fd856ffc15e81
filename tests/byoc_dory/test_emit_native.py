"""Generated C with the real driver and device models, compiled for this machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from byoc_dory.layers import (
    Shift,
    Tensor,
    add_layer,
    conv2d_layer,
    dense_layer,
    depthwise_layer,
)
from byoc_dory.options import TilingOptions
from byoc_dory.region import Region
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.soc.header import render
from htvm.firmware import host
from htvm.firmware.toolchain import Compiler
from htvm.sim.host import run_host
from tests.byoc_dory.layers import int8, int32
from tests.byoc_dory.program import Case, main_program, make_case, packed, random_cases, sources
from tests.tools import tool


def residual_region() -> Region:
    """Layers that hand tensors on in the accelerator's layout, two inputs, two outputs."""
    rng = np.random.default_rng(4)
    x = Tensor("x", (3, 18, 18))
    first = conv2d_layer(
        "first", x, "t1", int8(rng, 20, 3, 4, 3), int32(rng, 20),
        pad=(1, 1, 2, 1), requant=Shift(8), clip=(0, 127),
    )  # fmt: skip
    down = depthwise_layer(
        "dw/down", first.output, "t2", int8(rng, 20, 1, 3, 3), int32(rng, 20),
        stride=(2, 2), pad=(0, 0, 1, 1), requant=Shift(8),
    )  # fmt: skip
    point = conv2d_layer("pw", down.output, "t3", int8(rng, 20, 20, 1, 1), None, requant=Shift(8))
    join = add_layer("dw:down", point.output, down.output, "t4", requant=Shift(1))
    twice = add_layer("twice", join.output, join.output, "t5", requant=Shift(0), clip=(0, 127))
    head = dense_layer(
        "fc", Tensor("v", (70,)), "logits", int8(rng, 37, 70), int32(rng, 37), requant=Shift(9)
    )
    tail = dense_layer("fc2", head.output, "more", int8(rng, 5, 37), None, requant=Shift(8))
    return Region(
        "residual",
        (first, down, point, join, twice, head, tail),
        (Tensor("x", x.shape, layout="NHWC"), Tensor("v", (70,), layout="C")),
        (
            Tensor("t4", join.output.shape, layout="NCHW"),
            Tensor("t5", join.output.shape, layout="NHWC"),
            Tensor("more", (5,), layout="C"),
        ),
    )


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    made = random_cases(36)
    for number, budget in enumerate((2_600, 7_000, None)):
        options = TilingOptions(l1_budget=budget)
        made.append(make_case(residual_region(), options, f"net{number}", number))
    return made


@pytest.mark.parametrize("sanitize", [False, True])
def test_equals_the_reference(cases: list[Case], tmp_path: Path, sanitize: bool) -> None:
    """All cases in one program, also with undefined behaviour trapped."""
    tiled = [
        kernel.program.tiles > 1 for case in cases for kernel in case.code.kernels if kernel.program
    ]
    assert len(tiled) >= 40 and sum(tiled) >= 20
    source = tmp_path / "main.c"
    source.write_text(main_program(cases))
    program = host.build([source], [], DIANA, tmp_path / "out", Compiler.zig(), sanitize)
    expected = packed(cases, outputs=True)
    (got,) = run_host(program, [packed(cases, outputs=False)], [len(expected)])
    at = 0
    for case in cases:
        for tensor, values in zip(case.code.outputs, case.outputs, strict=True):
            part = np.frombuffer(got, np.int8, values.size, at).reshape(values.shape)
            at += values.size
            np.testing.assert_array_equal(part, values, f"{case.code.name}: {tensor.name}")


@pytest.mark.rotating(1)
@pytest.mark.parametrize("compiler", ["zig", "gcc", "clang"])
def test_compiles_without_warnings(cases: list[Case], tmp_path: Path, compiler: str) -> None:
    if compiler != "zig":
        tool(compiler)
    chosen = Compiler.zig(host=None if compiler == "zig" else compiler)
    source = tmp_path / "kernels.c"
    source.write_text(sources([case.code for case in cases]))
    (tmp_path / "htvm_soc.h").write_text(render(DIANA))
    chosen.compile_host(
        [source],
        tmp_path / "kernels.o",
        [tmp_path, *host.include_folders(DIANA)],
        ["-c", "-std=c11", "-Wall", "-Wextra", "-Werror"],
    )
