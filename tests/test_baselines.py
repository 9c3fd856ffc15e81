"""Passes of the user's as configurations of a comparison: same outputs, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax, tirx
from tvm.relax import op as R
from tvm.relax import transform as T

import htvm
from htvm.errors import HtvmError, InputError, ModelError, UnsupportedError
from htvm.progress import Progress
from htvm.tools.baselines import apply_pipeline, build_pipeline
from tests.frontend.flatfile import small_network

TARGET = "generic.cpu"
FUSED = tvm.transform.Sequential(
    [
        T.LegalizeOps(), T.AnnotateTIROpPattern(), T.FoldConstant(), T.FuseOps(), T.FuseTIR(),
    ]
)  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> htvm.Model:
    path = tmp_path_factory.mktemp("model") / "small.tflite"
    path.write_bytes(small_network().file())
    return htvm.load(path)


def returning(make: Callable[[Any], Any], name: str = "Mine") -> Any:
    """A pass that is a function of the module."""

    @tvm.transform.module_pass(opt_level=0, name=name)
    def made(module: Any, _: Any) -> Any:
        return make(module)

    return made


def with_last(module: Any, emit: Callable[[Any], Any]) -> Any:
    """The module with an operator behind its only output."""
    main = module["main"]
    builder = relax.BlockBuilder(
        tvm.IRModule({var: f for var, f in module.functions.items() if var.name_hint != "main"})
    )
    with builder.function("main", list(main.params)):
        with builder.dataflow():
            for binding in main.body.blocks[0].bindings:
                builder.emit_normalized(binding)
            result = builder.emit_output(emit(main.body.body))
        builder.emit_func_output(result)
    return builder.finalize()


def without_main(module: Any) -> Any:
    return tvm.IRModule({v: f for v, f in module.functions.items() if v.name_hint != "main"})


def test_pipelines_stand_beside_plain_tvm(model: htvm.Model) -> None:
    """In their order; one that fuses as TVM does costs what plain TVM costs."""
    wrong = returning(lambda module: with_last(module, R.bitwise_not))
    pipelines = {"fused": FUSED, "inverted": wrong}
    found = htvm.compare(model, TARGET, baselines=pipelines)
    names = [row.configuration for row in found.rows]
    assert names == ["generic.cpu, plain TVM", *pipelines, "generic.cpu, our schedules"]
    plain, fused, inverted, _ = found.rows
    assert fused.cycles == pytest.approx(plain.cycles, rel=0.01)
    assert [row.exact for row in found.rows] == [True, True, False, True]
    agreement = inverted.agreement
    assert agreement is not None and agreement.equal == 0 and agreement.max_difference > 1
    assert found.baseline != "inverted"
    text = str(found)
    assert "NO" in text and "fused, inverted: the model's module after the given" in text


def test_a_pass_sees_the_models_module_and_its_target(model: htvm.Model) -> None:
    seen = []

    def look(module: Any) -> Any:
        seen.append((module, str(tvm.target.Target.current().kind)))
        raise ValueError("seen enough")

    with (
        tvm.transform.PassContext(opt_level=3, config={"relax.FuseOps.max_depth": 5}),
        pytest.raises(InputError) as caught,
    ):
        later = tvm.transform.Sequential([T.FoldConstant(), returning(look, "Look")])
        htvm.compare(model, TARGET, baselines={"mine": later})
    assert "pass 'Look' failed with ValueError: " in str(caught.value)
    assert "seen enough" in str(caught.value) and "baseline 'mine'" in str(caught.value)
    assert caught.value.__cause__ is not None
    ((module, kind),) = seen
    assert kind == "c" and "main" in {var.name_hint for var in module.functions}


def symbolic(module: Any) -> Any:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((tirx.Var("n", "int64"), 4), "int8"))
    with builder.function("main", [x]):
        builder.emit_func_output(x)
    return builder.finalize()


def external(module: Any) -> Any:
    (shape, dtype) = module["main"].ret_ty.shape, "int8"
    return with_last(
        module,
        lambda x: relax.call_dps_packed("mine", [x], out_ty=relax.TensorType(shape, dtype)),
    )


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (without_main, ModelError, ("no Relax function 'main'", "it has ")),
        (symbolic, UnsupportedError, ("is 'n', and must be a number", "parameter 'x' of ")),
        (
            lambda module: with_last(module, lambda x: R.astype(x, "int16")),
            ModelError,
            ("int16 [1, 5] for output 'probabilities' of int8 [1, 5]", "keep the interface"),
        ),
        (
            lambda module: with_last(module, lambda x: relax.Tuple([x, x])),
            ModelError,
            ("has 2 outputs, and the model 1",),
        ),
        (external, HtvmError, ("mine",)),
        (
            tvm.transform.Sequential([T.LegalizeOps(), T.CallTIRRewrite()]),
            UnsupportedError,
            ("'relax.builtin.alloc_tensor' is neither a kernel,",),
        ),
    ],
)
def test_a_result_that_cannot_be_compared_is_named(
    make: Any, error: type[HtvmError], said: tuple[str, ...], model: htvm.Model
) -> None:
    given = make if isinstance(make, tvm.ir.transform.Pass) else returning(make)
    with pytest.raises(error) as caught:
        module = apply_pipeline(model, "mine", given)
        build_pipeline(model, "mine", module, TARGET, Progress())
    for words in (*said, "baseline 'mine'"):
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([T.FoldConstant()], "a list is no mapping of names to passes"),
        ({"mine": lambda module: module}, "a function is no pass of TVM; baseline 'mine'"),
        ({"mine": tvm.transform.Sequential}, "the class Sequential is no pass"),
        ({"": T.FoldConstant()}, "'' cannot be a configuration's name"),
        ({"generic.cpu, plain TVM": FUSED}, "'generic.cpu, plain TVM' cannot be"),
    ],
)
def test_what_is_no_pass_is_refused_before_anything_is_opened(given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        htvm.compare("no such file.tflite", TARGET, baselines=given)


@pytest.mark.slow
def test_another_layout_gives_the_same_outputs(model: htvm.Model) -> None:
    inputs = [
        {info.name: np.random.default_rng(seed).integers(-128, 128, info.shape).astype(info.dtype)}
        for seed in range(4)
        for info in model.inputs
    ]
    channels_first = T.ConvertLayout({"relax.nn.conv2d": ["NCHW", "OIHW"]})
    found = htvm.compare(model, TARGET, inputs, baselines={"NCHW": channels_first})
    row = found.row("NCHW")
    assert row.exact and row.agreement is not None and row.agreement.equal == 4
    assert row.cycles != found.rows[0].cycles
