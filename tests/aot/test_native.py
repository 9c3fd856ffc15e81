"""Convolutions of the host platform in whole programs: where they are, and what they compute."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htvm
from htvm.aot.entry import model_sources
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.firmware.build import build_host
from htvm.firmware.host import native_sources
from htvm.pipeline import compile_model
from htvm.sim.host import run_host
from patterns.ops.convolution import Window, conv2d_of
from tests.aot.cpu.modules import bias_of, int8
from tests.aot.cpu.test_onnx_kernels import requant
from tests.patterns.build import module_of

CALLS = ("htvm_native_conv(", "htvm_native_depthwise(")


def compiled(
    name: str, *, k: int = 10, groups: int = 1, target: str = "generic.cpu", **window: Any
) -> Compiled:
    """A network of one 3x3 convolution of 8 x 11 x 9."""
    rng = np.random.default_rng(k)
    layout = window.setdefault("layout", "NCHW")
    shape = (1, 8, 11, 9) if layout == "NCHW" else (1, 11, 9, 8)
    weight, bias = int8(rng, k, 8 // groups, 3, 3), bias_of(rng, k)
    op = conv2d_of(
        weight, bias, Window(groups=groups, **window), requant([0.003] * k, -5), (-128, 120)
    )
    module = module_of([shape], lambda bb, x: op.write(bb, [x], "conv2d_0"))
    return compile_model(htvm.load(module, name=name), target, BuildOptions())


@pytest.mark.parametrize(
    ("name", "arguments", "calls"),
    [
        ("padded", {"padding": (1, 1, 1, 1)}, CALLS[:1]),
        ("strided", {"strides": (2, 2), "padding": (1, 0, 1, 2)}, CALLS[:1]),
        ("depthwise", {"k": 8, "groups": 8}, CALLS[1:]),
        ("groups", {"k": 8, "groups": 2}, ()),
        ("multiplied", {"k": 16, "groups": 8}, ()),
        ("last", {"layout": "NHWC"}, ()),
        ("columns", {"target": "cortex_m4"}, ()),
    ],
)
def test_kernels_that_have_one(
    name: str, arguments: dict[str, Any], calls: tuple[str, ...]
) -> None:
    program = compiled(f"native_{name}", **arguments).program
    found = program.native_source
    assert tuple(call for call in CALLS if call in found) == calls
    # What is exported, or built for other platforms, has nothing of it.
    assert not any("htvm_native" in text for text in model_sources(program).values())
    natively = model_sources(program, native=True)[f"native_{name}_cpu.c"]
    assert ('#include "htvm_native.h"' in natively) == bool(calls)


@pytest.mark.parametrize("sanitize", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("strided_too", {"strides": (2, 1), "padding": (1, 0, 1, 2)}),
        ("depthwise_too", {"k": 8, "groups": 8, "strides": (2, 2)}),
    ],
)
def test_results_are_those_of_the_generated_kernels(
    name: str, arguments: dict[str, Any], sanitize: bool, tmp_path: Path
) -> None:
    made = compiled(f"native_{name}", **arguments)
    data = int8(np.random.default_rng(7), *made.program.inputs[0].shape).tobytes()
    size = int(np.prod(made.program.outputs[0].shape))
    outputs = []
    for native in (False, True):
        built = build_host(
            made.program, made.target.soc, cache_dir=tmp_path, native=native, sanitize=sanitize
        )
        assert built.native is not None
        outputs += run_host(built.native, [data], [size])
    assert outputs[0] == outputs[1]
    assert len(set(outputs[0])) > 20


def test_changed_kernels_stay() -> None:
    """An edited definition is what is built, not what it was before."""
    program = compiled("native_edited", padding=(1, 1, 1, 1)).program
    (entry,) = program.native
    edited = program.cpu_source.replace("conv2d_nchw[", "sums[")
    assert entry[0] not in edited
    assert replace(program, cpu_source=edited).native_source == ""


def test_built_for_the_host_only(tmp_path: Path) -> None:
    """`htvm.build` uses them; builds that ask for nothing do not."""
    made = compiled("native_whole", padding=(1, 1, 1, 1))
    module = htvm.build(made.source, "generic.cpu", platform="host")
    plain = build_host(made.program, made.target.soc)
    symbol = b"htvm_native_conv"
    assert symbol in module.built.path.read_bytes()
    assert symbol not in plain.path.read_bytes()
    assert all(path.is_file() for path in native_sources())
