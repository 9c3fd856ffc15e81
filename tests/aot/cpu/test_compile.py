"""What holds for all generated code: plain C, determinism, names, aliases, errors."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from tvm import relax
from tvm.relax import op as R
from tvm.script import tirx as T

from byoc_dory.errors import HtvmError, InputError, UnsupportedError
from byoc_dory.layers import MulShift, Shift, TorchRequant
from htvm import zoo
from htvm.aot.cpu import compile_cpu
from htvm.aot.fuse import _without_unread
from htvm.aot.lower import STACK_BYTES
from htvm.aot.reference import build_llvm_reference
from htvm.aot.steps import Alias
from htvm.firmware.isa import RV32_CFLAGS, rv32_flags
from htvm.firmware.toolchain import Compiler
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense
from patterns.ops.tflite.wide import WideConv2d
from tests.aot.cpu import native
from tests.aot.cpu.modules import bias_of, int8, module
from tests.generated.operators import module_of
from tests.tools import tool

MODES = ("scheduled", "default")


@pytest.fixture(scope="module")
def networks():
    """All networks of the zoo, the autoencoder last."""
    names = [*(name for name in zoo.names() if name != "toyadmos"), "toyadmos"]
    return {name: compile_cpu(zoo.build(name).module, name) for name in names}


@pytest.fixture(scope="module", params=MODES)
def resnet(request):
    return compile_cpu(zoo.resnet8().module, "resnet8", kernels=request.param)


@pytest.mark.rotating(1)
def test_nothing_of_tvm_remains(resnet):
    text = native.source_of(resnet)
    assert not re.search(r"(?<!H)TVM|tvm|DLTensor|PackedFunc|#include (?!<stdint.h>)", text)
    assert not re.search(r"\b(float|double|bool|__of__)\b", text)


def test_names_and_signatures(resnet):
    for kernel in resnet.kernels:
        assert re.fullmatch(r"resnet8_[a-z0-9_]+", kernel.symbol) and len(kernel.symbol) < 48
        assert kernel.source.count(kernel.symbol) == 1
        *inputs, output = (
            kernel.prototype.split("(")[1]
            .rstrip(")")
            .split(", ")[: len(kernel.params) - len(kernel.workspaces)]
        )
        assert all(entry.startswith("const ") for entry in inputs)
        assert not output.startswith("const ") and output.endswith(" *restrict out")
        assert kernel.layers and f" * {', '.join(kernel.layers)}: " in kernel.source
    assert len({kernel.symbol for kernel in resnet.kernels}) == len(resnet.kernels)


def test_macs(resnet):
    assert sum(call.macs for call in resnet.calls if not isinstance(call, Alias)) == 12_501_760


def test_every_layer_is_computed_once(networks):
    for name, code in networks.items():
        kernels = [kernel for kernel in code.kernels if not kernel.symbol.endswith("_pad")]
        layers = [layer for kernel in kernels for layer in kernel.layers]
        assert len(layers) == len(set(layers)), name
    assert len([layer for layer in layers if layer.startswith("dense")]) == 10  # of the last


def test_a_reshape_is_an_alias(resnet):
    aliases = [call for call in resnet.calls if isinstance(call, Alias)]
    assert [alias.source for alias in aliases] == ["average_pool_0"]
    assert aliases[0].output.shape == (1, 64)


def test_scheduled_kernels_have_no_large_intermediates(networks):
    for code in networks.values():
        assert all(not kernel.workspaces for kernel in code.kernels)
        tensors = [value for call in code.calls for value in getattr(call, "outputs", ())]
        assert {value.dtype for value in tensors} == {"int8"}


def test_default_kernels_have_workspaces_instead_of_stack():
    code = compile_cpu(zoo.resnet8().module, "resnet8", kernels="default")
    kernel = next(kernel for kernel in code.kernels if kernel.layers == ("conv2d_1",))
    assert max(kernel.workspaces) >= 32 * 32 * 16 * 4
    assert [parameter[0] for parameter in kernel.params][-1].startswith("workspace_")
    local = re.findall(r"^ +int(\d+)_t \w+\[(\d+)\];", kernel.source, re.MULTILINE)
    assert all(int(bits) // 8 * int(size) <= STACK_BYTES for bits, size in local)


def test_no_division_in_the_inner_loops(networks):
    for code in networks.values():
        for kernel in code.kernels:
            if kernel.layers[0].startswith(("conv2d", "depthwise", "dense", "add", "pad")):
                assert not re.search(r"[/%] ", kernel.source.split("*/", 1)[1]), kernel.symbol


@pytest.mark.rotating(1)
@pytest.mark.parametrize("mode", MODES)
def test_the_same_bytes_in_every_process(mode, tmp_path):
    program = (
        "import sys; from htvm import zoo; from htvm.aot.cpu import compile_cpu\n"
        f"code = compile_cpu(zoo.ds_cnn().module, 'net', kernels={mode!r})\n"
        "print(*[k.source + k.prototype for k in code.kernels], *code.constants, code.calls)\n"
    )
    texts = set()
    for seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(filter(None, sys.path))},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        texts.add(done.stdout)
    assert len(texts) == 1 and len(texts.pop()) > 10_000


@pytest.mark.rotating(3)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("command", ["zig", "rv32", "gcc", "clang"])
def test_compiles_without_a_warning(command, mode, tmp_path):
    code = compile_cpu(zoo.ds_cnn().module, "net", kernels=mode)
    path = tmp_path / "kernels.c"
    path.write_text(native.source_of(code), encoding="utf-8")
    flags = (*native.STRICT, "-c")
    if command == "rv32":
        made, flags = tmp_path / "kernels.o", (*flags, *RV32_CFLAGS)
        Compiler.zig().compile_cross([path], made, [], rv32_flags(), None, flags)
        return
    if command != "zig":
        tool(command)
    compiler = Compiler.zig(host=None if command == "zig" else command)
    compiler.compile_host([path], tmp_path / "kernels.o", flags=(*flags, "-pedantic"))


def test_compilers_that_know_no_pragma_see_none(tmp_path):
    """They would warn; GCC before version 8 does, and others do."""
    path = tmp_path / "kernels.c"
    path.write_text(native.source_of(compile_cpu(zoo.ds_cnn().module, "net")), encoding="utf-8")
    compiler = Compiler.zig()

    def pragmas(*flags: str) -> list[str]:
        out = compiler.compile_host([path], tmp_path / "kernels.i", flags=("-E", *flags))
        lines = out.read_text(encoding="utf-8").splitlines()
        return [line.split("#pragma ")[1] for line in lines if "#pragma " in line]

    counts = [line.split()[-1] for line in pragmas()]
    assert counts and all(int(count) > 1 for count in counts)
    assert pragmas("-U__clang__", "-U__GNUC__", "-D__GNUC__=8") == [
        f"GCC unroll {count}" for count in counts
    ]
    assert not pragmas("-U__clang__", "-U__GNUC__", "-D__GNUC__=7")
    assert not pragmas("-U__clang__", "-U__GNUC__")


@pytest.mark.rotating(1)
@pytest.mark.parametrize("mode", MODES)
def test_a_network_equals_the_reference_without_undefined_behaviour(mode, tmp_path, compiler):
    model = zoo.ds_cnn()
    code = compile_cpu(model.module, "net", kernels=mode)
    loaded = native.library([code], tmp_path, native.trapping(compiler))
    reference = build_llvm_reference(model.module)
    samples = [int8(np.random.default_rng(seed), *model.inputs[0].shape) for seed in range(2)]
    expected = [reference([data])[0] for data in samples]

    def run() -> None:
        for data, wanted in zip(samples, expected, strict=True):
            (result,) = native.run(code, loaded, {"input": data})
            np.testing.assert_array_equal(result, wanted)

    native.in_child(run)


def test_inputs_are_returned_and_tensors_passed_to_regions():
    def write(bb, a, b):
        region = bb.emit(
            relax.call_dps_packed("net_region_0", (a, b), [relax.TensorType((1, 4), "int8")] * 2)
        )
        first = bb.emit(relax.TupleGetItem(region, 0))
        second = bb.emit(relax.TupleGetItem(region, 1))
        total = bb.emit(R.maximum(first, bb.emit(R.reshape(second, (1, 4)))))
        return relax.Tuple([total, a, second])

    code = compile_cpu(module({"a": (1, 4), "b": (1, 4)}, write), "net")
    region, alias, kernel = code.calls
    assert region.target == "net_region_0" and region.inputs == ("a", "b")
    assert alias.source == region.outputs[1].name
    assert kernel.inputs == (region.outputs[0].name, alias.output.name)
    assert code.results == (kernel.outputs[0].name, "a", region.outputs[1].name)


def test_an_operator_without_a_plain_form_is_named():
    built = module(
        {"x": (1, 4)}, lambda bb, x: bb.emit(R.astype(R.exp(R.astype(x, "float32")), "int8"))
    )
    with pytest.raises(HtvmError, match="float|exp"):
        compile_cpu(built, "net")


def dense_with(bias, requant):
    weight = np.full((1, 4), 100, "int8")
    offset = np.array([bias], "int64")
    return module(
        {"x": (1, 4)}, lambda bb, x: Dense(weight, offset, requant).write(bb, [x], "dense_7")
    )


@pytest.mark.parametrize("bias", [2**31 - 1, -(2**31)])
def test_sums_that_may_overflow_are_refused(bias):
    with pytest.raises(UnsupportedError, match="layer 'dense_7'"):
        compile_cpu(dense_with(bias, Shift(9)), "net")
    # 4 * 100 * 127 above, 4 * 100 * 128 below.
    compile_cpu(dense_with(2**31 - 1 - 50_800, Shift(9)), "net")
    compile_cpu(dense_with(-(2**31) + 51_200, Shift(9)), "net")


def test_products_that_may_overflow_are_computed_in_64_bits():
    for mul, wide in ((2**15, False), (2**16, True)):
        code = compile_cpu(dense_with(1000, MulShift((mul,), (20,), (0,))), "net")
        assert any("int64_t" in kernel.source for kernel in code.kernels) == wide


def test_the_reference_refuses_other_inputs():
    reference = build_llvm_reference(zoo.toyadmos().module)
    with pytest.raises(InputError, match="input"):
        reference([np.zeros((1, 640), "uint8")])
    with pytest.raises(InputError, match="2 inputs"):
        reference([np.zeros((1, 640), "int8")] * 2)


@pytest.mark.parametrize("core", ["", "dsp", "mve"])
def test_no_array_is_accessed_as_one_of_another_type(core):
    """An int8 array that is also one of int32 would be misaligned, which Cortex-M may trap."""
    rng = np.random.default_rng(3)
    layer = conv2d_of(
        int8(rng, 6, 8, 1, 1), bias_of(rng, 6), Window(layout="NCHW"), Shift(8)
    )  # its sums fit into the bytes of the column, once that is read
    net = module({"x": (1, 8, 1, 1)}, lambda bb, x: layer.write(bb, [x], "conv2d_0"))
    code = compile_cpu(net, "net", simd=core, scarce=True)
    assert not re.search(r"_t ?\*\)", native.source_of(code))


@pytest.mark.parametrize("shifts", [(20,), (20, 21, 20, 21, 20, 21)])
@pytest.mark.parametrize("kind", ["torch", "wide"])
def test_what_a_kernel_does_not_read_is_no_parameter(kind, shifts):
    """One shift for all channels is a number in the code; its array takes no flash."""
    rng = np.random.default_rng(3)
    factors, bias = np.full(len(shifts), 900, "int32"), bias_of(rng, 6)
    if kind == "torch":
        dtype, requant = "int8", TorchRequant(tuple(factors.tolist()), shifts)
        layer = conv2d_of(int8(rng, 6, 8, 1, 1), bias, Window(), requant)
    else:
        dtype, each = "int16", np.asarray(shifts, "int32")
        layer = WideConv2d(int8(rng, 6, 1, 1, 8), bias.astype("int64"), factors, each)
    net = module_of((((1, 3, 3, 8), dtype),), lambda bb, x: [layer.write(bb, [x], "conv2d_0")])
    found = [(name, each) for each in compile_cpu(net, "net").kernels for name, *_ in each.params]
    assert all(len(re.findall(rf"\b{name}\b", each.source)) > 1 for name, each in found)
    assert any("shift" in name for name, _ in found) == (len(shifts) > 1)


def test_a_constant_that_a_view_reads_stays():
    @T.prim_func(s_tir=True)
    def added(
        x: T.Buffer((4,), "float32"),
        viewed: T.Buffer((4,), "float32"),
        unread: T.Buffer((4,), "float32"),
        out: T.Buffer((4,), "float32"),
    ):
        view = T.decl_buffer((4,), "float32", data=viewed.data)
        for i in range(4):
            out[i] = x[i] + view[i]

    constant = relax.const(np.zeros(4, "float32"))
    x = relax.Var("x", relax.TensorType((4,), "float32"))
    func, args = _without_unread(added, [x, constant, constant])
    assert [str(each.name) for each in func.params] == ["x", "viewed", "out"]
    assert len(args) == 2
