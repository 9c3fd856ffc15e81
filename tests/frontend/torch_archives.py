"""Helper: files of torch's programs, written by hand, so that no torch is needed."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

NUMBERS = {
    "uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float32": 7, "float64": 8,
}  # fmt: skip


@dataclass(frozen=True)
class T:
    """A tensor as an argument."""

    name: str


@dataclass(frozen=True)
class Type:
    """A type of elements as an argument."""

    name: str


def argument(value: Any) -> dict[str, Any]:
    """An argument as the schema writes it."""
    if value is None:
        return {"as_none": True}
    if isinstance(value, T):
        return {"as_tensor": {"name": value.name}}
    if isinstance(value, Type):
        return {"as_scalar_type": NUMBERS[value.name]}
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_int": value}
    if isinstance(value, float):
        return {"as_float": value}
    if isinstance(value, str):
        return {"as_string": value}
    if all(isinstance(item, T) for item in value):
        return {"as_tensors": [{"name": item.name} for item in value]}
    return {"as_ints": list(value)}


def described(shape: Sequence[Any], dtype: str) -> dict[str, Any]:
    """A tensor as the schema describes it; a size may be a symbol."""
    sizes = [
        {"as_int": size} if isinstance(size, int) else {"as_expr": {"expr_str": size}}
        for size in shape
    ]
    steps = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        size = shape[axis + 1]
        steps[axis] = steps[axis + 1] * (size if isinstance(size, int) else 1)
    return {
        "dtype": NUMBERS[dtype],
        "sizes": sizes,
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "strides": [{"as_int": step} for step in steps],
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }


@dataclass
class Program:
    """A program; methods add to it and return tensors.

    Attributes:
        tensors: descriptions by name.
        state: parameters by name.
        nodes: nodes as the schema writes them.
        inputs: names of the inputs.
    """

    tensors: dict[str, dict[str, Any]] = field(default_factory=dict)
    state: dict[str, Array] = field(default_factory=dict)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    def input(self, name: str, shape: Sequence[Any], dtype: str = "float32") -> T:
        """An input of the user's."""
        self.tensors[name] = described(shape, dtype)
        self.inputs.append(name)
        return T(name)

    def parameter(self, name: str, value: Array) -> T:
        """A parameter or buffer."""
        self.tensors[name] = described(value.shape, value.dtype.name)
        self.state[name] = value
        return T(name)

    def call(
        self,
        target: str,
        shape: Sequence[Any],
        made: str = "float32",
        *,
        module: str = "",
        line: int = 0,
        **arguments: Any,
    ) -> T:
        """A call with one result, of type ``made``."""
        name = f"{target.split('.')[1]}_{len(self.nodes)}"
        self.tensors[name] = described(shape, made)
        metadata = {
            "nn_module_stack": f"a,,net.Net;b,{module},net.Part" if module else "a,,net.Net"
        }
        if line:
            metadata["stack_trace"] = (
                f'File "/home/me/net.py", line {line}, in forward\n    y = self.part(x)\n'
                f'  File "/env/torch/nn/modules/conv.py", line 9, in forward\n    return f(x)'
            )
        self.nodes.append(
            {
                "target": f"torch.ops.{target}",
                "inputs": [
                    {"name": key.rstrip("_"), "arg": argument(value), "kind": 1}
                    for key, value in arguments.items()
                ],
                "outputs": [{"as_tensor": {"name": name}}],
                "metadata": metadata,
                "name": name,
            }
        )
        return T(name)

    def quantized(self, x: T, scale: float, zero: int, dtype: str = "int8", **more: Any) -> T:
        """A quantization and the dequantization behind it."""
        shape = [size.get("as_int", "s0") for size in self.tensors[x.name]["sizes"]]
        limits = np.iinfo(dtype)
        parts = {
            "scale": scale, "zero_point": zero,
            "quant_min": int(limits.min), "quant_max": int(limits.max), "dtype": Type(dtype),
            **more,
        }  # fmt: skip
        domain = "quantized_decomposed"
        made = self.call(f"{domain}.quantize_per_tensor.default", shape, dtype, input=x, **parts)
        return self.call(f"{domain}.dequantize_per_tensor.default", shape, input=made, **parts)

    def weights(self, name: str, value: Array, scales: Array) -> T:
        """Dequantized weights with a scale for each output channel."""
        data = self.parameter(name, value)
        factors = self.parameter(f"{name}_scale", scales.astype("float32"))
        zeros = self.parameter(f"{name}_zero", np.zeros(len(scales), "int64"))
        return self.call(
            "quantized_decomposed.dequantize_per_channel.default", value.shape, input=data,
            scales=factors, zero_points=zeros, axis=0, quant_min=-127, quant_max=127,
            dtype=Type("int8"),
        )  # fmt: skip

    # ------------------------------------------------------------------ the file

    def model(self) -> dict[str, Any]:
        """The content of ``models/model.json``."""
        specs: list[dict[str, Any]] = [
            {"parameter": {"arg": {"name": name}, "parameter_name": f"state.{name}"}}
            for name in self.state
        ]
        specs += [{"user_input": {"arg": {"as_tensor": {"name": name}}}} for name in self.inputs]
        outputs = [{"user_output": {"arg": {"as_tensor": {"name": name}}}} for name in self.outputs]
        return {
            "schema_version": {"major": 8, "minor": 20},
            "graph_module": {
                "graph": {"nodes": self.nodes, "tensor_values": self.tensors},
                "signature": {"input_specs": specs, "output_specs": outputs},
            },
        }

    def entries(self) -> dict[str, bytes]:
        """The entries of the archive."""
        config: dict[str, Any] = {}
        found: dict[str, bytes] = {}
        for index, (name, value) in enumerate(self.state.items()):
            config[f"state.{name}"] = {
                "path_name": f"weight_{index}", "is_param": True, "use_pickle": False,
                "tensor_meta": self.tensors[name],
            }  # fmt: skip
            found[f"data/weights/weight_{index}"] = value.tobytes()
        return {
            **found,
            "data/weights/model_weights_config.json": json.dumps({"config": config}).encode(),
            "models/model.json": json.dumps(self.model()).encode(),
            "archive_format": b"pt2",
            "byteorder": b"little",
        }

    def file(self) -> bytes:
        """The whole file."""
        return archive(self.entries())


def archive(entries: Mapping[str, bytes], root: str = "net", *, compressed: bool = False) -> bytes:
    """An archive with these entries below a root."""
    buffer = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(buffer, "w", kind) as made:
        for name, content in entries.items():
            made.writestr(f"{root}/{name}", content)
    return buffer.getvalue()


def small(
    scale: float = 1 / 32, zero: int = 3, *, shape: Sequence[Any] = (1, 2, 6, 6), seed: int = 0
) -> Program:
    """A convolution with a rectifier, and a linear layer behind a mean over the maps."""
    rng = np.random.default_rng(seed)
    program = Program()
    x = program.quantized(program.input("x", shape), scale, zero)
    weight = program.weights(
        "w0", rng.integers(-127, 128, (4, 2, 3, 3)).astype("int8"), rng.uniform(0.001, 0.01, 4)
    )
    bias = program.parameter("b0", rng.normal(0, 0.2, 4).astype("float32"))
    maps = (1, 4, 6, 6)
    y = program.call(
        "aten.conv2d.default", maps, module="features.0", line=12,
        input=x, weight=weight, bias=bias, stride=(1, 1), padding=(1, 1),
    )  # fmt: skip
    y = program.quantized(program.call("aten.relu.default", maps, self_=y), 0.011, -128)
    y = program.call("aten.mean.dim", (1, 4), self_=y, dim=(2, 3))
    y = program.quantized(y, 0.007, -128)
    weight = program.weights(
        "w1", rng.integers(-127, 128, (5, 4)).astype("int8"), rng.uniform(0.001, 0.01, 5)
    )
    y = program.call("aten.linear.default", (1, 5), module="head", input=y, weight=weight)
    program.outputs.append(program.quantized(y, 0.009, 1).name)
    program.parameter("unused", rng.normal(0, 1, (64, 64)).astype("float32"))
    return program
