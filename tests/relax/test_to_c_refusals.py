"""What `htvm.relax.to_c` cannot compile is one typed error that names function and binding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tvm
from tvm import relax
from tvm.relax import op as R
from tvm.script import ir as I
from tvm.script import relax as Rx
from tvm.script import tirx as T

from htvm.errors import ExportError, ModelError, UnsupportedError
from htvm.relax import to_c
from tests.relax.modules import Case, number, real
from tests.relax.modules import write as written


def of(body: Any, *inputs: Any) -> Any:
    """A module with one function ``f``."""
    bb = relax.BlockBuilder()
    written(bb, "f", Case(inputs, body))
    return bb.finalize()


def dynamic() -> Any:
    size = tvm.tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((1, size), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("f", [x]):
        with bb.dataflow():
            result = bb.emit_output(R.exp(x))
        bb.emit_func_output(result)
    return bb.finalize()


@I.ir_module
class Branches:
    @Rx.function
    def f(c: Rx.Tensor((), "bool"), x: Rx.Tensor((2,), "float32")) -> Rx.Tensor((2,), "float32"):
        if c:
            w: Rx.Tensor((2,), "float32") = Rx.add(x, x)
        else:
            w: Rx.Tensor((2,), "float32") = Rx.multiply(x, x)
        return w


@I.ir_module
class Recursive:
    @Rx.function
    def f(x: Rx.Tensor((2,), "float32")) -> Rx.Tensor((2,), "float32"):
        y: Rx.Tensor((2,), "float32") = Recursive.f(x)
        return y


@I.ir_module
class Effects:
    @Rx.function(pure=False)
    def f(x: Rx.Tensor((2,), "float32")) -> Rx.Tensor((2,), "float32"):
        said = Rx.print(x, format="{}")  # noqa: F841
        return x


@I.ir_module
class Threads:
    @T.prim_func(private=True, s_tir=True)
    def loops(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in T.thread_binding(4, thread="threadIdx.x"):
            with T.sblock("doubled"):
                v = T.axis.spatial(4, i)
                y[v] = x[v] * T.float32(2)

    @Rx.function
    def f(x: Rx.Tensor((4,), "float32")) -> Rx.Tensor((4,), "float32"):
        cls = Threads
        with Rx.dataflow():
            y = Rx.call_tir(cls.loops, (x,), out_ty=Rx.Tensor((4,), "float32"))
            Rx.output(y)
        return y


def packed() -> Any:
    def body(bb: Any, x: Any) -> Any:
        out = relax.TensorType((2, 3), "float32")
        return relax.call_dps_packed("my.function", [x], out)

    return of(body, ((2, 3), "float32"))


def partitioned() -> Any:
    """A module whose product is a region of a code generator."""
    module = of(lambda bb, x: R.nn.relu(R.matmul(x, real(3, 4))), ((2, 3), "float32"))
    from tvm.relax.dpl import is_op, wildcard

    pattern = is_op("relax.matmul")(wildcard(), wildcard())
    fused = relax.transform.FuseOpsByPattern(
        [("dnnl.matmul", pattern)], bind_constants=False, annotate_codegen=True
    )
    return fused(module)


CASES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "a dimension without a number": (
        dynamic, ("dimension 1 of parameter 'x' is 'n'", "function 'f'", "BindSymbolicVars"),
    ),
    "a shape that depends on data": (
        lambda: of(lambda bb, x: R.nonzero(x), ((4,), "float32")),
        ("'relax.nonzero'", "function 'f', binding "),
    ),
    "an operator without loops": (
        lambda: of(lambda bb, x: R.sort(x), ((4,), "float32")),
        ("'relax.sort'", "function 'f', binding "),
    ),
    "an operator that TVM refuses": (
        lambda: of(lambda bb, x: R.power(x, number(2, "int32")), ((4,), "int32")),
        ("power only applies to float", "function 'f', binding ", "relax.power"),
    ),
    "control flow": (lambda: Branches, ("control flow", "function 'f', binding 'w'")),
    "recursion": (lambda: Recursive, ("calls itself", "function 'f'")),
    "an effect": (lambda: Effects, ("'relax.print' has an effect", "function 'f', binding 'said'")),
    "a packed function": (packed, ("'my.function'", "function 'f', binding ")),
    "a region": (partitioned, ("'dnnl'", "function 'f', binding 'lv'", "before partitioning")),
    "loops over threads": (lambda: Threads, ("threadIdx", "function 'f'", "y")),
    "half precision": (
        lambda: of(lambda bb, x: R.astype(R.exp(R.astype(x, "float16")), "float32"),
                   ((4,), "float32")),
        ("float16", "function 'f', binding "),
    ),
    "an empty tensor": (
        lambda: of(lambda bb, x: R.add(x, x), ((0, 4), "float32")),
        ("dimension 0 of parameter 'x0' is 0", "function 'f'"),
    ),
    "more elements than int32 counts": (
        lambda: of(lambda bb, x: R.sum(R.broadcast_to(x, (2**20, 2**11))), ((1, 2**11), "int8")),
        ("2,147,483,648 elements", "function 'f', binding "),
    ),
    "a shape as the result": (
        lambda: of(lambda bb, x: R.shape_of(x), ((2, 4), "float32")), ("function 'f'", "no tensor"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("given", CASES)
def test_what_has_no_c_is_named_with_function_and_binding(given: str, tmp_path: Path) -> None:
    module, parts = CASES[given]
    with pytest.raises((UnsupportedError, ModelError)) as caught:
        to_c(module()).write(tmp_path / "c")
    assert [part for part in parts if part not in str(caught.value)] == [], str(caught.value)
    assert not (tmp_path / "c").exists()


def test_the_hint_for_dynamic_shapes_helps() -> None:
    fixed = relax.transform.BindSymbolicVars({"n": 3}, "f")(dynamic())
    assert to_c(fixed).functions[0].inputs[0].shape == (1, 3)


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(ModelError, match="a dict is no Relax module"):
        to_c({})  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="no public Relax function"):
        to_c(tvm.IRModule())
    with pytest.raises(ModelError, match="no Relax function 'g'.*it has f"):
        to_c(dynamic(), entry="g")
    with pytest.raises(ModelError, match="no function is named"):
        to_c(dynamic(), entry=[])
    for name in ("a-b", "features", "test"):
        with pytest.raises(ModelError, match=f"'{name}' is not usable as a C identifier"):
            to_c(of(lambda bb, x: R.exp(x), ((2,), "float32")), name=name)


def test_a_folder_with_other_files_is_left_unchanged(tmp_path: Path) -> None:
    library = to_c(of(lambda bb, x: R.exp(x), ((2,), "float32")))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(ExportError, match=r"notes\.txt"):
        library.write(tmp_path / "mine")
    library.write(tmp_path / "new")
    library.write(tmp_path / "new")  # unchanged, so it is replaced
    (tmp_path / "new" / "README.md").write_text("changed")
    with pytest.raises(ExportError, match=r"README\.md"):
        library.write(tmp_path / "new")
