"""`Whole`: kernels of whole maps that are made when they are asked for."""

from __future__ import annotations

from unittest import mock

import pytest

from htvm import zoo
from htvm.aot.assembler import Assembly
from htvm.aot.chains import Whole
from htvm.aot.cpu import _Compiler, compile_cpu
from htvm.aot.entry import model_sources
from htvm.aot.steps import ModelCall
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from tests.aot.chains.networks import chained_network


def whole_of(seed: int, simd: str, *, on_demand: bool) -> Whole:
    model = chained_network(seed)
    code = compile_cpu(model.module, "model", simd=simd, scarce=True, on_demand=on_demand)
    inputs, outputs = model.interface_with_layouts
    given = Assembly(
        name="model",
        inputs=inputs,
        outputs=outputs,
        calls=code.calls,
        results=code.results,
        cpu_kernels=code.kernels,
        constants=code.constants,
        parameters=[str(each.name) for each in code.module["main"].params],
    )
    return Whole(given, code.made)


@pytest.mark.parametrize("simd", ["", "dsp"])
@pytest.mark.parametrize("seed", range(8))
def test_sketches_take_at_most_the_bytes_of_their_kernels(seed: int, simd: str) -> None:
    whole = whole_of(seed, simd, on_demand=True)
    before, least = whole.live, whole.least
    calls = [call for call in whole.sketch.calls if isinstance(call, ModelCall)]
    assert not whole.is_made(calls)
    for number, call in enumerate(calls):
        whole.made(call)
        assert whole.is_made(calls[: number + 1])
        assert all(now >= then for now, then in zip(whole.live, before, strict=True))
    assert least <= whole.least == whole.program.plan.peak
    at_once = whole_of(seed, simd, on_demand=False)
    assert whole.live == at_once.live
    assert model_sources(whole.program) == model_sources(at_once.program)


def test_kernels_are_made_in_any_order() -> None:
    whole = whole_of(2, "dsp", on_demand=True)
    for call in reversed(whole.sketch.calls):
        if isinstance(call, ModelCall):
            whole.made(call)
    assert model_sources(whole.program) == model_sources(
        whole_of(2, "dsp", on_demand=False).program
    )


def test_what_chains_compute_is_not_compiled_as_a_whole() -> None:
    code_of = _Compiler._compile
    with mock.patch.object(_Compiler, "_compile", autospec=True, side_effect=code_of) as made:
        limited = Compiled(
            zoo.build("resnet8"), "cortex_m4", BuildOptions(memory="least", input="streamed")
        )
        assert limited.by_rows
    wholes = [call for call in made.call_args_list if not call.args[3].endswith("_row")]
    assert len(wholes) < 5 < len(made.call_args_list)  # of 27
