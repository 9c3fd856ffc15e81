"""Where tensors live and when: regions inlined, reshapes shared, outputs written in place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from byoc_dory.errors import ModelError
from byoc_dory.region import Constant, RegionCode
from htvm.aot.program import Alias, Assembly, ModelCall, Program, StepOperand, Value, assemble
from htvm.aot.steps import local_name, parameter_types
from tests.aot import tiny
from tests.aot.tiny import Info


def test_steps_are_the_kernels_in_order() -> None:
    program = tiny.program()
    assert [step.symbol for step in program.steps] == [
        "tiny_scale",
        "tiny_r_in",
        "tiny_reverse",
        "tiny_add",
    ]
    assert [step.kind for step in program.steps] == ["cpu", "prologue", "layer", "cpu"]
    assert [step.accelerator for step in program.steps] == ["cpu", "cpu", "digital", "cpu"]
    assert [step.returns_code for step in program.steps] == [False, True, True, True]
    assert program.steps[3].layer == "add_0+relu_0"
    assert program.steps[0].comment == "1x4x8 int8 -> 1x4x8 int8"
    assert program.steps[0].macs == 32


def test_operands() -> None:
    steps = tiny.program().steps
    assert steps[0].args == (
        StepOperand("input", "input_0"),
        StepOperand("constant", "tiny_gain"),
        StepOperand("buffer", "a"),
        StepOperand("buffer", "tiny_scale_workspace_0"),
    )
    # The reshape makes output 0 the place of the region's result, and the add reads it back.
    assert steps[2].args == (StepOperand("buffer", "x_packed"), StepOperand("output", "output_0"))
    assert steps[3].args[1:] == (
        StepOperand("output", "output_0"),
        StepOperand("output", "output_1"),
    )


def test_lifetimes() -> None:
    uses = {use.name: (use.bytes, use.first, use.last) for use in tiny.program().buffers}
    assert uses == {
        "a": (32, 0, 3),
        "tiny_scale_workspace_0": (128, 0, 0),
        "x_packed": (32, 1, 2),
    }
    plan = tiny.program().plan
    assert plan.peak == plan.live == 160


def test_constants_are_sorted_and_prefixed() -> None:
    program = tiny.program("other")
    assert [constant.name for constant in program.constants] == ["other_gain", "other_reverse_bias"]
    assert program.constant_bytes == 32 + 16
    assert program.aliases == (("c", "b"),)


def _copying(results: list[str], calls: list[ModelCall | Alias] | None = None) -> list[str]:
    program = assemble(
        Assembly(
            name="m",
            inputs=[Info("x", (4,))],
            outputs=[Info(f"o{i}", (4,)) for i in range(len(results))],
            calls=calls or [],
            results=results,
            constants={"k": Constant("m_k", np.zeros(4, np.int8), "")},
        )
    )
    return [f"{step.args[0].name}>{step.args[1].name}" for step in program.steps]


def test_a_result_that_has_a_place_already_is_copied() -> None:
    assert _copying(["x"]) == ["input_0>output_0"]
    assert _copying(["k"]) == ["m_k>output_0"]
    reshape = Alias("x", Value("y", (2, 2), "int8"))
    assert _copying(["y", "x"], [reshape]) == ["input_0>output_0", "input_0>output_1"]


def test_calls_may_have_their_own_names_for_the_inputs() -> None:
    program = assemble(
        Assembly(
            name="m",
            inputs=[Info("serving/x:0", (4,))],
            outputs=[Info("o", (4,))],
            calls=[],
            results=["x"],
            parameters=["x"],
        )
    )
    assert program.steps[0].args[0] == StepOperand("input", "input_0")
    assert program.inputs[0].name == "serving/x:0"


def test_two_regions_may_share_a_conversion() -> None:
    """Both read the model's input, so both bring the same prologue."""
    first, second = tiny.region("m"), tiny.region("m")
    calls = [
        ModelCall("r", ("x",), (Value("y", (32,), "int8"),)),
        ModelCall("s", ("x",), (Value("z", (32,), "int8"),)),
    ]

    def make(second: RegionCode) -> Program:
        return assemble(
            Assembly(
                name="m",
                inputs=[Info("x", (32,))],
                outputs=[Info("y", (32,)), Info("z", (32,))],
                calls=calls,
                results=["y", "z"],
                regions={"r": first, "s": replace(second, name="s")},
            )
        )

    program = make(second)
    assert len(program.steps) == 4 and len(program.prototypes) == 2
    assert [use.name for use in program.buffers] == ["x_packed", "x_packed_2"]
    other = [replace(kernel, source=kernel.source + "\n") for kernel in second.kernels]
    with pytest.raises(ModelError, match="two different kernels are called 'm_r_in'"):
        make(replace(second, kernels=tuple(other)))


def test_the_same_result_twice() -> None:
    kernel = tiny.cpu_kernel("m_f", "", "void m_f(int8_t* x, int8_t* y)", (), ())
    program = assemble(
        Assembly(
            name="m",
            inputs=[Info("x", (4,))],
            outputs=[Info("o", (4,)), Info("p", (4,))],
            calls=[ModelCall("m_f", ("x",), (Value("y", (4,), "int8"),))],
            results=["y", "y"],
            cpu_kernels=[kernel],
        )
    )
    assert [step.kind for step in program.steps] == ["cpu", "copy"]
    assert program.steps[1].args == (
        StepOperand("output", "output_0"),
        StepOperand("output", "output_1"),
    )
    assert program.steps[0].layer == "m_f"


def test_names_of_locals_never_clash() -> None:
    kernel = tiny.cpu_kernel("m_f", "", "void m_f(int8_t* x, int8_t* y)", (), ())
    names = ["int", "a/b", "a:b", "input_0", "7"]
    calls = [
        ModelCall("m_f", (source,), (Value(target, (4,), "int8"),))
        for source, target in zip(["x", *names], [*names, "end"], strict=True)
    ]
    program = assemble(
        Assembly(
            name="m",
            inputs=[Info("x", (4,))],
            outputs=[Info("o", (4,))],
            calls=calls,
            results=["end"],
            cpu_kernels=[kernel],
        )
    )
    assert [use.name for use in program.buffers] == ["t_int", "a_b", "a_b_2", "input_0_2", "t_7"]


def test_names_of_locals_are_short() -> None:
    """A region's results are called as the region calls them, whatever the caller says."""
    long = "fused_" * 100
    calls = [
        ModelCall("r", ("x",), (Value(long, (32,), "int8"),)),
        ModelCall("m_f", (long,), (Value(long + "2", (32,), "int8"),)),
        ModelCall("m_f", (long + "2",), (Value("end", (32,), "int8"),)),
    ]
    kernel = tiny.cpu_kernel("m_f", "", "void m_f(int8_t* x, int8_t* y)", (), ())
    program = assemble(
        Assembly(
            name="m",
            inputs=[Info("x", (32,))],
            outputs=[Info("o", (32,))],
            calls=calls,
            results=["end"],
            cpu_kernels=[kernel],
            regions={"r": tiny.region("m")},
        )
    )
    assert [use.name for use in program.buffers] == ["x_packed", "y", ("fused_" * 100)[:48]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"calls": [ModelCall("nobody", (), ())]}, "neither a kernel nor a region called 'nobody'"),
        ({"calls": [ModelCall("m_f", ("z",), (Value("y", (4,), "int8"),))]}, "'z' is used, but"),
        (
            {"calls": [ModelCall("m_f", ("x", "x"), (Value("y", (4,), "int8"),))]},
            "3 pointers, but takes 2",
        ),
        (
            {"calls": [ModelCall("m_f", ("x",), (Value("x", (4,), "int8"),))]},
            "'x' is defined twice",
        ),
        ({"calls": [Alias("x", Value("y", (5,), "int8"))]}, "'y' has 5 B, but 'x'"),
        (
            {"calls": [ModelCall("r", ("x",), (Value("y", (4,), "int8"),))] * 2},
            "'r' is called twice",
        ),
        ({"calls": [ModelCall("r", (), (Value("y", (4,), "int8"),))]}, "called with 0 and 1"),
        ({"results": ["y"]}, "'y' is used, but"),
        ({"outputs": [Info("o", (5,))]}, "output 'o' has 5 B, but 'x' has 4 B"),
        ({"name": "a-b"}, "not usable as a C identifier"),
    ],
)
def test_contradictions_are_model_errors(change: dict, message: str) -> None:
    arguments = {
        "name": "m",
        "inputs": [Info("x", (4,))],
        "outputs": [Info("o", (4,))],
        "calls": [],
        "results": ["x"],
        "cpu_kernels": [tiny.cpu_kernel("m_f", "", "void m_f(int8_t* x, int8_t* y)", (), ())],
        "regions": {"r": tiny.region("m")},
    }
    with pytest.raises(ModelError, match=message):
        assemble(Assembly(**{**arguments, **change}))


def test_parameter_types() -> None:
    assert parameter_types("void f(const int8_t *restrict a, int32_t* b)") == (
        "const int8_t *",
        "int32_t *",
    )
    assert parameter_types("int32_t f(void);") == ()
    with pytest.raises(ModelError, match="'int n' is not a plain pointer"):
        parameter_types("void f(int8_t *a, int n)")


def test_names_of_locals() -> None:
    assert [local_name(t) for t in ["a", "1", "_x", "", "for", "ä.b", "arena"]] == [
        "a", "t_1", "t_x", "t", "t_for", "t__b", "t_arena",
    ]  # fmt: skip
