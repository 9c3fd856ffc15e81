"""Helper: a small network that is tiled, and programs of it that are wrong on purpose."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import htvm
from byoc_dory.options import TilingOptions
from byoc_dory.soc.diana.description import ANALOG, DIANA, DIGITAL
from byoc_dory.soc.diana.faults import fault_settings
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.inputs import seeded_inputs
from htvm.pipeline import compile_model
from htvm.tools.verification import verify as verifying
from htvm.tools.verification.types import Verification
from htvm.tools.verification.verify import operator_results, verify
from htvm.tools.zoo.drawing import Sketch
from htvm.tools.zoo.networks import model
from htvm.tools.zoo.schemes import Scheme

Array = np.ndarray[Any, Any]


@functools.cache
def probe(scheme: Scheme = "8-bit", layout: Any = "NHWC") -> htvm.Model:
    """conv2d_0 -> depthwise_0 -> conv2d_1 -> average_pool_0 -> dense_0 -> softmax_0."""
    net = Sketch("probe", (3, 16, 20), 0, scheme)
    x = net.conv2d(net.input, 32, (3, 3), place="first")
    x = net.conv2d(net.depthwise(x), 24, (3, 3))
    net.softmax(net.dense(net.average_pool(x), 10))
    return model(net, layout)


@functools.cache
def compiled(net: htvm.Model, target: str = "diana", **tiling: Any) -> Compiled:
    """Everything but the C compiler's work."""
    return compile_model(net, target, BuildOptions(tiling=TilingOptions(**tiling)))


def fault(trigger: int, byte: int, flip: int, *, analog: bool = False) -> dict[int, int]:
    """Settings that make one byte of the result of one trigger of a core wrong."""
    return fault_settings(DIANA, ANALOG if analog else DIGITAL, trigger, byte, flip)


@functools.cache
def _reference(module: Any) -> dict[str, Array]:
    return operator_results(module, seeded_inputs(INPUTS))


INPUTS = (htvm.TensorInfo("input", (1, 16, 20, 3), "int8"),)


def verified(work: Compiled, settings: Mapping[int, int] | None = None) -> Verification:
    """Verify with seeded inputs; the reference of a module is computed once."""
    inputs = seeded_inputs(work.source.inputs)
    with pytest.MonkeyPatch.context() as patch:
        if work.source.inputs[0].shape == INPUTS[0].shape:
            patch.setattr(verifying, "operator_results", lambda module, _inputs: _reference(module))
        return verify(work, inputs, settings=settings)


def broken(work: Compiled, part: str, change: Callable[[str], str]) -> Compiled:
    """The same with ``cpu_source`` or ``layers_source`` changed by hand."""
    before = getattr(work.program, part)
    after = change(before)
    assert after != before, "the change changed nothing"
    changed = copy.copy(work)
    vars(changed)["program"] = replace(work.program, **{part: after})
    return changed
