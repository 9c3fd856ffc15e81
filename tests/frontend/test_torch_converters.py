"""Int8 programs of torch through TVM's importer: its module computes what torch does, and is read.

Nodes of a program are written by hand, as torch's importer hands them to a converter; the last
tests need torch itself.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tvm
import tvm_ffi
from tvm import relax
from tvm.relax import op as R

import htvm
from htvm.errors import UnsupportedError
from htvm.relax import torch_converters
from tests.frontend.onnx.affine_files import File
from tests.reference.interpreter import interpret

RNG = np.random.default_rng(5)
WEIGHTS = RNG.integers(-127, 128, (4, 3, 3, 3)).astype("int8")
STEPS = RNG.uniform(0.001, 0.02, 4).astype("float32")
BIAS = RNG.normal(0, 0.1, 4).astype("float32")


@dataclass(frozen=True)
class Node:
    """A node of torch.fx: arguments are other nodes or values."""

    target: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    name: str = "q1"


class Program:
    """A module in the making by TVM's importer of torch."""

    def __init__(self, shape: tuple[int, ...], dtype: str = "float32") -> None:
        self.builder = relax.BlockBuilder()
        self.x = relax.Var("x", relax.TensorType(shape, dtype))
        self.env: dict[str, Any] = {"x": self.x}

    def call(self, target: str, *args: Any, **kwargs: Any) -> str:
        """The result of a converter."""
        node = Node(target, args, kwargs, f"n{len(self.env)}")
        importer = SimpleNamespace(env=self.env, block_builder=self.builder)
        self.env[node.name] = torch_converters()[target](node, importer)
        return node.name

    def keep(self, value: Any) -> str:
        """The result of an operator that TVM converts, or a constant."""
        name = f"n{len(self.env)}"
        self.env[name] = value if isinstance(value, relax.Var) else relax.const(value)
        return name

    def quantize(self, x: str, scale: Any, zero: int, *more: Any) -> str:
        bounds = more or (-128, 127, "torch.int8")
        return self.call("quantize_per_tensor.default", x, scale, zero, *bounds)

    def dequantize(self, x: str, scale: float, zero: int, *more: Any, **kwargs: Any) -> str:
        bounds = more or (-128, 127, "torch.int8")
        return self.call("dequantize_per_tensor.default", x, scale, zero, *bounds, **kwargs)

    def weights(self) -> str:
        zeros = self.keep(np.zeros(4, "int64"))
        data, steps = self.keep(WEIGHTS), self.keep(STEPS)
        bounds = (0, -127, 127, "torch.int8")
        return self.call("dequantize_per_channel.default", data, steps, zeros, *bounds)


def module_of(shape: tuple[int, ...], write: Any, dtype: str = "float32") -> Any:
    program = Program(shape, dtype)
    with program.builder.function("main", [program.x]):
        with program.builder.dataflow():
            result = program.env[write(program)]
            output = program.builder.emit_output(relax.Tuple([result]))
        program.builder.emit_func_output(output)
    return program.builder.finalize()


def in_virtual_machine(module: Any, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    machine = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
    return np.asarray(machine["main"](tvm.runtime.tensor(x))[0].numpy())


def network(program: Program, scale: float = 1 / 255) -> str:
    emit, env = program.builder.emit, program.env
    weights = program.weights()
    x = program.dequantize(program.quantize("x", 0.03, 7), 0.03, 7)
    product = emit(R.nn.conv2d(env[x], env[weights], padding=1))
    biased = emit(R.add(product, emit(R.reshape(relax.const(BIAS), [1, -1, 1, 1]))))
    y = program.keep(emit(R.nn.relu(biased)))
    return program.dequantize(program.quantize(y, scale, -128), scale, -128)


def test_a_module_is_read_as_the_file_with_its_quantizations(tmp_path: Path) -> None:
    """With the program's scales, although the module multiplies by their reciprocals."""
    file = File()
    weights = file.dequantize(file.constant(WEIGHTS), STEPS, np.zeros(4), axis=0)
    x = file.through(file.input("x", (1, 3, 6, 6)), 0.03, 7)
    y = file.node("Conv", [x, weights, file.constant(BIAS)], pads=[1, 1, 1, 1])
    file.output(file.through(file.node("Relu", [y]), 1 / 255, -128))
    of_module = htvm.load(module_of((1, 3, 6, 6), network))
    assert of_module.scheme == "onnx"
    assert tvm_ffi.structural_equal(of_module.module, htvm.load(file.save(tmp_path)).module)


@pytest.mark.parametrize("scale", [0.0372, 1 / 255])
def test_quantization_is_torchs(scale: float) -> None:
    """A product with the rounded reciprocal, ties to even before an odd zero point is added."""
    ties = (np.arange(-150, 151) + 0.5) * scale
    x = np.concatenate([np.nextafter(np.float32(ties), np.float32(n)) for n in (-99, 0, 99)])
    x = np.concatenate([x, np.float32(ties)])
    found = in_virtual_machine(module_of(x.shape, lambda p: p.quantize("x", scale, 7)), x)
    products = x * np.float32(1.0 / scale)
    np.testing.assert_array_equal(found, np.clip(np.rint(products) + np.float32(7), -128, 127))
    assert found.dtype == np.int8


def test_dequantization_is_torchs() -> None:
    q = np.arange(-128, 128, dtype="int8")
    module = module_of(q.shape, lambda p: p.dequantize("x", 1 / 255, -9), "int8")
    wanted = (q.astype("float32") + np.float32(9)) * np.float32(1 / 255)
    np.testing.assert_array_equal(in_virtual_machine(module, q), wanted)


@pytest.mark.parametrize(
    ("low", "high", "dtype"), [(-127, 127, "int8"), (0, 127, "uint8"), (-128, 127, "int8")]
)
def test_bounds_of_the_program_hold(low: int, high: int, dtype: str) -> None:
    module = module_of((1, 60), lambda p: p.quantize("x", 0.05, 3, low, high, f"torch.{dtype}"))
    x = np.linspace(-9, 9, 60, dtype="float32").reshape(1, -1)
    (found,) = interpret(htvm.load(module).module, [x]).outputs
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.clip(np.rint(x / np.float32(0.05)) + 3, low, high))


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (
            lambda p: p.quantize("x", 0.1, 0, -8, 7, "torch.float8_e4m3fn"),
            ("of type float8_e4m3fn", "'n1' (quantize_per_tensor.default)", "int8, uint8"),
        ),
        (
            lambda p: p.quantize("x", Node("choose_qparams.tensor", ()), 0),
            ("argument 1 is computed at run time", "'n1'", "quantize statically"),
        ),
        (
            lambda p: p.dequantize(p.quantize("x", 0.1, 0), 0.1, 0, out_dtype="torch.float16"),
            ("a result of type float16", "'n2'", "float32"),
        ),
    ],
)
def test_what_a_converter_cannot_write_is_named(write: Any, said: tuple[str, ...]) -> None:
    with pytest.raises(UnsupportedError) as caught:
        module_of((1, 4), write)
    for words in said:
        assert words in str(caught.value)


def test_a_program_of_torch_is_its_module() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    importlib.import_module("torch.ao.quantization.fx._decomposed")  # registers the operators
    from tvm.relax.frontend.torch import from_exported_program

    ops = torch.ops.quantized_decomposed
    int8 = (-128, 127, torch.int8)

    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weights", torch.from_numpy(WEIGHTS))
            self.register_buffer("steps", torch.from_numpy(STEPS))
            self.register_buffer("zeros", torch.zeros(4, dtype=torch.int64))
            self.register_buffer("bias", torch.from_numpy(BIAS))

        def forward(self, x: Any) -> Any:
            def through(x: Any, scale: float, zero: int) -> Any:
                q = ops.quantize_per_tensor(x, scale, zero, *int8)
                return ops.dequantize_per_tensor(q, scale, zero, *int8)

            weights = ops.dequantize_per_channel(
                self.weights, self.steps, self.zeros, 0, -127, 127, torch.int8
            )
            y = torch.nn.functional.conv2d(through(x, 0.03, 7), weights, self.bias, padding=1)
            return through(torch.relu(y), 0.013, -128)

    sample = torch.from_numpy(RNG.normal(0, 1.5, (1, 3, 6, 6)).astype("float32"))
    program = torch.export.export(Net(), (sample,))
    module = from_exported_program(program, custom_convert_map=torch_converters())
    wanted = Net()(sample).numpy()
    np.testing.assert_array_equal(in_virtual_machine(module, sample.numpy()), wanted)
    (found,) = interpret(htvm.load(module).module, [sample.numpy()]).outputs
    np.testing.assert_array_equal(found, wanted)
