"""Outputs written over inputs: kernels compute the same at the distances that they promise."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import pytest
from tvm import relax
from tvm.relax import op as R

import htvm
from byoc_dory.layers import Shift
from htvm import zoo
from htvm.aot.cpu import compile_cpu
from htvm.aot.lower import _may_alias
from htvm.aot.steps import ModelCall
from patterns.ops.convolution import Window, conv2d_of
from tests.aot.cpu import native
from tests.generated.operators import module_of

KINDS = ("", "dsp", "thumb", "mve")
NETWORKS = ("resnet8", "ds_cnn", "mobilenet_v1")
MOST = 1_500_000
"""Multiply-accumulates of the largest kernel that is called: some of each kind are below."""


@dataclass(frozen=True)
class Call:
    """A kernel's call on arrays.

    Attributes:
        function: of the library.
        arguments: inputs and constants.
        bytes: of the output.
        workspaces: bytes of each.
    """

    function: object
    arguments: list[np.ndarray]
    bytes: int
    workspaces: tuple[int, ...]

    def apart(self) -> np.ndarray:
        """The output, in bytes of its own."""
        out = np.empty(self.bytes, "uint8")
        self._call([array.copy() for array in self.arguments], out)
        return out

    def over(self, which: int, distance: int) -> np.ndarray:
        """The output, starting that many bytes after an input (before it, if negative)."""
        given = self.arguments[which]
        start = max(0, -distance)
        shared = np.zeros(max(start + given.nbytes, start + distance + self.bytes), "uint8")
        source = shared[start : start + given.nbytes]
        source[:] = given.view("uint8").reshape(-1)
        out = shared[start + distance : start + distance + self.bytes]
        others = [source if at == which else a.copy() for at, a in enumerate(self.arguments)]
        self._call(others, out)
        return out.copy()

    def _call(self, arguments: list[np.ndarray], out: np.ndarray) -> None:
        spaces = [np.empty(size, "uint8") for size in self.workspaces]
        pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (*arguments, out, *spaces)]
        self.function(*pointers)


def calls_of(network, kind, folder, compiler):
    """Yield (operators, overlay, call) of all kernels that may write over an input."""
    code = compile_cpu(zoo.build(network).module, "net", simd=kind, scarce=True)
    loaded = native.library([code], folder, compiler)
    kernels = {kernel.symbol: kernel for kernel in code.kernels}
    draw = np.random.default_rng(3)
    for call in code.calls:
        if not isinstance(call, ModelCall) or call.macs > MOST:
            continue
        kernel = kernels[call.target]
        function = getattr(loaded, kernel.symbol)
        function.restype = None
        arguments = [
            code.constants[name].data
            if name in code.constants
            else draw.integers(-128, 128, shape, "int8").view(dtype)
            for name, (_, dtype, shape) in zip(call.inputs, kernel.params, strict=False)
        ]
        for overlay in kernel.overlays:
            made = Call(function, arguments, call.outputs[0].bytes, kernel.workspaces)
            yield kernel.operators, overlay, made


@pytest.mark.parametrize(
    ("network", "kind"),
    [
        pytest.param(
            network, kind, marks=[pytest.mark.slow] * ((network, kind) != ("ds_cnn", "dsp"))
        )
        for network in NETWORKS
        for kind in KINDS
    ],
)
def test_outputs_over_inputs_are_the_same(network, kind, tmp_path, compiler):
    seen, tight = set(), 0
    for operators, overlay, call in calls_of(network, kind, tmp_path, compiler):
        wanted, given = call.apart(), call.arguments[overlay.parameter]
        if overlay.below < call.bytes:
            made = call.over(overlay.parameter, -overlay.below)
            np.testing.assert_array_equal(made, wanted, err_msg=f"{operators} below")
        if overlay.above < given.nbytes:
            made = call.over(overlay.parameter, overlay.above)
            np.testing.assert_array_equal(made, wanted, err_msg=f"{operators} above")
        seen.add(operators[0])
        # Half a tensor less is too near for those that cannot be written in place.
        wrong = call.over(overlay.parameter, -(overlay.below - call.bytes // 2))
        tight += not np.array_equal(wrong, wanted)
    assert {"pad", "conv2d", *(["depthwise"] * (network != "resnet8"))} <= seen
    assert tight


def test_pointers_that_may_meet_are_not_restrict():
    code = compile_cpu(zoo.build("ds_cnn").module, "net", simd="dsp", scarce=True)
    kernels = [kernel for kernel in code.kernels if kernel.overlays]
    assert kernels
    for kernel in kernels:
        parameters = kernel.prototype.split("(")[1].split(",")
        shared = {overlay.parameter for overlay in kernel.overlays}
        shared.add(len(parameters) - len(kernel.workspaces) - 1)
        for number, parameter in enumerate(parameters):
            assert ("restrict" in parameter) == (number not in shared), kernel.prototype
    alone = compile_cpu(zoo.build("ds_cnn").module, "net", simd="dsp")
    assert not any(kernel.overlays for kernel in alone.kernels)


def test_a_comment_says_where_the_output_may_lie():
    code = compile_cpu(zoo.build("ds_cnn").module, "net", simd="dsp", scarce=True)
    for kernel in code.kernels:
        assert kernel.source.count("may overlap") == len(kernel.overlays)
        for each in kernel.overlays:
            said = f"at least {each.below} B before it or {each.above} B after it"
            assert f"out may overlap in{each.parameter} if it starts {said}" in kernel.source


@pytest.mark.parametrize(
    ("types", "allowed"),
    [
        (("int32", "float32"), False),
        (("int32", "uint32"), False),
        (("int32", "int32"), True),
        (("int32", "int8"), True),
        (("uint8", "float32"), True),
    ],
)
def test_bytes_are_not_two_wide_types_at_once(types, allowed):
    """Compilers may write a float before they read the int32 whose bytes it takes."""
    assert _may_alias(*types) == allowed


def test_an_input_of_the_model_is_never_written():
    code = compile_cpu(zoo.build("ds_cnn").module, "net", simd="dsp", scarce=True)
    first = next(call for call in code.calls if isinstance(call, ModelCall))
    (kernel,) = [kernel for kernel in code.kernels if kernel.symbol == first.target]
    assert kernel.overlays == ()


def test_copied_runs_do_not_overlap() -> None:
    """A row is padded on the left only: memcpy must not get parts of one array that overlap."""
    rng, bb = np.random.default_rng(0), relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 1, 40, 8), "int8"))
    zeros = np.zeros(8, "int32")
    with bb.function("main", [x]):
        with bb.dataflow():
            first = conv2d_of(rng.integers(-9, 9, (8, 8, 1, 1), "int8"), zeros, Window(), Shift(3))
            made = first.write(bb, [x], "conv2d_0")
            window = Window(padding=(0, 2, 0, 0))
            second = conv2d_of(rng.integers(-9, 9, (8, 8, 1, 3), "int8"), zeros, window, Shift(5))
            out = bb.emit_output(second.write(bb, [made], "conv2d_1"))
        bb.emit_func_output(out)
    code = compile_cpu(bb.get(), "net", simd="dsp", scarce=True)
    (pad,) = [kernel for kernel in code.kernels if "pad" in kernel.operators]
    (overlay,) = pad.overlays
    assert "htvm_copy((&(out[16])), (&(in0[0])), (uint32_t)320)" in pad.source
    # The copy's destination begins 16 bytes behind the output's start.
    assert overlay.below - 16 >= 320 and overlay.above + 16 >= 320


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
def test_runs_are_copied_in_elements_of_every_type(dtype):
    """Calls copy bytes of int8; others are loops."""
    rng, widths = np.random.default_rng(0), [0, 0, 1, 2, 2, 1, 0, 0]
    data = rng.integers(0, 100, (1, 5, 6, 3)).astype(dtype)
    net = module_of(
        ((data.shape, dtype),), lambda bb, x: [bb.emit(R.nn.pad(x, widths, "constant", 7))]
    )
    found = htvm.build(net, "cortex_m4").run([data]).outputs[0]
    wanted = np.pad(data, [(0, 0), (1, 2), (2, 1), (0, 0)], constant_values=7)
    np.testing.assert_array_equal(found, wanted)
