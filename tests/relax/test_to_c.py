"""`htvm.relax.to_c`: any Relax module as C that computes what TVM's virtual machine computes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tvm
from tvm import relax
from tvm.relax import op as R
from tvm.relax.frontend.onnx import from_onnx
from tvm.script import ir as I
from tvm.script import relax as Rx
from tvm.script import tirx as T

from htvm.relax import to_c
from htvm.zoo.trained import digits_data, weights_file
from tests.relax.modules import CASES, GROUPS, Case, module_of, real
from tests.relax.modules import write as written
from tests.relax.native import Native, Reference, assert_same, flat
from tests.tools import tool


def of(body: Any, *inputs: Any) -> Any:
    """A module with one function ``main``."""
    bb = relax.BlockBuilder()
    written(bb, "main", Case(inputs, body))
    return bb.finalize()


def test_every_function_is_in_a_group() -> None:
    assert sorted(name for group in GROUPS.values() for name in group) == sorted(CASES)
    assert len(CASES) >= 30


@pytest.mark.rotating(1)
@pytest.mark.parametrize("group", list(GROUPS))
def test_functions_compute_what_tvm_computes(group: str, tmp_path: Path) -> None:
    module = module_of(GROUPS[group])
    library = to_c(module, name=group)
    library.write(tmp_path / "c")
    assert [each.function for each in library.functions] == sorted(GROUPS[group])
    reference = Reference(module)
    natives = [Native(tmp_path / "c", library, compiler) for compiler in ("gcc", "clang")]
    for function in library.functions:
        assert function.arena_bytes == function.arena_bound, function
        arrays = CASES[function.function].arrays()
        expected = reference.run(function.function, arrays)
        for native in natives:
            assert_same(native.run(function, flat(arrays)), expected)
    for native in natives:
        assert_only_mathematics(native)


def assert_only_mathematics(native: Native) -> None:
    """Nothing is allocated: what the C needs from outside are functions of ``math.h``."""
    listed = subprocess.run(
        [tool("nm"), "-D", "--undefined-only", str(native.path)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    found = re.findall(r" [Uw] (\w+)", listed.stdout)
    allowed = {"memcpy", "memset", "memmove", "__stack_chk_fail"}  # what compilers make of loops
    outside = {name for name in found if not name.startswith(("_ITM", "__cxa", "__gmon"))} - allowed
    code = "\n".join(native.library.sources.values())
    assert {name for name in outside if f"{name}(" not in code} <= {"sincosf", "sincos"}
    assert not re.search(r"\b(?:malloc|calloc|realloc|free|alloca)\b", code)


# ------------------------------------------------------------------------------ functions


@I.ir_module
class Calls:
    """Two public functions, one that calls the other, and subroutines with tuples."""

    @T.prim_func(private=True, s_tir=True)
    def main(x: T.Buffer((4, 8), "float32"), y: T.Buffer((4, 8), "float32")):
        for i in T.parallel(4):
            for j in T.vectorized(8):
                with T.sblock("doubled"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = x[vi, vj] * T.float32(0.123456789) + T.float32(1e-3)

    @Rx.function(private=True)
    def sum_and_difference(
        given: Rx.Tuple(Rx.Tensor((4, 8), "float32"), Rx.Tensor((8,), "float32")),
    ) -> Rx.Tuple(Rx.Tensor((4, 8), "float32"), Rx.Tensor((4, 8), "float32")):
        left = given[0]
        right = given[1]
        total = Rx.add(left, right)
        difference = Rx.subtract(left, right)
        return (total, difference)

    @Rx.function(private=True)
    def any_size(x: Rx.Tensor(("n", "m"), "float32")) -> Rx.Tensor(("n", "m"), "float32"):
        n, m = T.int64(), T.int64()
        y: Rx.Tensor((n, m), "float32") = Rx.multiply(x, x)
        return y

    @Rx.function
    def encode(x: Rx.Tensor((4, 8), "float32"), y: Rx.Tensor((8,), "float32")) -> Rx.Tensor(
        (4, 8), "float32"
    ):
        cls = Calls

        @Rx.function
        def local(z: Rx.Tensor((4, 8), "float32")) -> Rx.Tensor((4, 8), "float32"):
            w: Rx.Tensor((4, 8), "float32") = Rx.subtract(z, x)
            return w

        both = cls.sum_and_difference((x, y))
        total = both[0]
        difference = both[1]
        squared = cls.any_size(difference)
        scaled = Rx.call_tir(cls.main, (squared,), out_ty=Rx.Tensor((4, 8), "float32"))
        summed = Rx.add(scaled, total)
        result = local(summed)
        return result

    @Rx.function
    def encode_cpu(
        x: Rx.Tensor((4, 8), "float32"),
    ) -> Rx.Tuple(Rx.Tensor((4, 8), "float32"), Rx.Tensor((8,), "float32")):
        cls = Calls
        row = Rx.sum(x, axis=[0])
        inner = cls.encode(x, row)
        again = cls.encode(inner, row)
        return (again, row)


def test_functions_call_each_other(tmp_path: Path) -> None:
    library = to_c(Calls, name="net")
    # One is called like a file of the other.
    assert [each.name for each in library.functions] == ["net_encode", "net_encode_cpu_2"]
    library.write(tmp_path / "c")
    native = Native(tmp_path / "c", library)
    reference = Reference(relax.transform.LambdaLift()(Calls))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4, 8)).astype("float32"), rng.normal(size=8).astype("float32")
    first, second = library.functions
    assert_same(native.run(first, [x, y]), reference.run("encode", [x, y]))
    assert_same(native.run(second, [x]), reference.run("encode_cpu", [x]))
    alone = to_c(Calls, name="net", entry="encode_cpu")
    assert [each.name for each in alone.functions] == ["net"]
    assert alone.functions[0].arena_bytes == alone.functions[0].arena_bound


def test_the_same_module_gives_the_same_bytes() -> None:
    module = module_of(["mlp", "truth"])
    assert to_c(module).files == to_c(tvm.IRModule(dict(module.functions))).files


def test_constants_are_moved_ahead_of_time() -> None:
    def body(bb: Any, x: Any) -> Any:
        return R.linear(R.reshape(x, (1, 6)), real(4, 6))

    library = to_c(of(body, ((2, 3), "float32")))
    (function,) = library.functions
    assert (function.steps, function.arena_bytes, function.constant_bytes) == (1, 0, 4 * 6 * 4)


@pytest.mark.slow
def test_the_folder_is_a_cmake_library_for_c_and_cpp(tmp_path: Path) -> None:
    to_c(module_of(["mlp", "truth"]), name="net").write(tmp_path / "net")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(app C CXX)\nadd_subdirectory(net)\n"
        "target_compile_options(net PRIVATE -Werror)\n"
        "add_executable(app main.cpp)\ntarget_link_libraries(app net)\n"
    )
    (tmp_path / "main.cpp").write_text(
        '#include "net.h"\n'
        "int main() { float x[NET_MLP_INPUT_0_ELEMENTS] = {}, y[NET_MLP_OUTPUT_0_ELEMENTS];\n"
        "  bool unused = true; (void)unused; return net_mlp_run(x, y); }\n"
    )
    for command in (["-S", ".", "-B", "build"], ["--build", "build"]):
        subprocess.run([tool("cmake"), *command], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run([tmp_path / "build" / "app"], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_guides_program_runs(compiler: str, tmp_path: Path) -> None:
    module = from_onnx(onnx.load(weights_file("digits")))
    library = to_c(module, name="digits")
    library.write(tmp_path / "digits")
    native, reference = Native(tmp_path / "digits", library, compiler), Reference(module)
    (function,) = library.functions
    image = digits_data()[0][:1].astype("float32").reshape(function.inputs[0].shape)
    expected = reference.run("main", [image])
    assert_same(native.run(function, [image]), expected)
    guide = Path(__file__).parents[2] / "docs" / "guides" / "relax-to-c.md"
    program = re.search(r"```c\n(.*?)```", guide.read_text("utf-8"), re.DOTALL)
    command = re.search(r"```sh\ncc (.*?)\n```", guide.read_text("utf-8"))
    assert program is not None and command is not None
    (tmp_path / "main.c").write_text(program[1])
    subprocess.run(f"{tool(compiler)} {command[1]}", shell=True, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "a.out"], check=True, capture_output=True).stdout[:2] == b"0:"


def test_functions_share_constants(tmp_path: Path) -> None:
    weight, bias = real(8, 16), real(16)
    bb = relax.BlockBuilder()
    for name, rows in (("decode", 1), ("prefill", 4)):
        layer = Case(
            (((rows, 8), "float32"),),
            lambda bb, x: R.nn.relu(R.add(R.matmul(x, weight), bias)),
        )
        written(bb, name, layer)
    module = bb.finalize()
    library = to_c(module, name="net")
    assert [each.constant_bytes for each in library.functions] == [(8 * 16 + 16) * 4, 0]
    assert "net_prefill_weights.c" not in library.sources
    library.write(tmp_path / "c")
    native, reference = Native(tmp_path / "c", library), Reference(module)
    for function in library.functions:
        x = np.random.default_rng(1).normal(size=function.inputs[0].shape).astype("float32")
        assert_same(native.run(function, [x]), reference.run(function.function, [x]))
