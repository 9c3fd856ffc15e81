"""The graph of a program, from the JSON that torch serializes it to (schema version 8)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from byoc_dory.errors import ModelError, UnsupportedError
from byoc_dory.layers import Array
from htvm.frontend.limits import Budget
from htvm.frontend.torch.program import Argument, Ref, TorchNode, TorchProgram, TorchTensor

TYPES = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    12: "bool",
    28: "uint16",
}
"""numpy's names of element types, by their number in the schema."""

_DAMAGED = "the file is damaged; save the program again with torch.export.save"
_PLACES = re.compile(r'File "([^"]*)", line (\d+), in [^\n]*\n\s*([^\n]*)')
_LIBRARY = ("/torch/", "/torchao/", "<")
_LONGEST = 100  # characters of a line in messages


class Fields:
    """An object of JSON, whose fields are checked when they are read.

    Args:
        value: the object.
        where: its place, for messages.

    Raises:
        ModelError: it is no object; methods: a field is missing, or of another kind.
    """

    def __init__(self, value: Any, where: str) -> None:
        self.where = where
        if not isinstance(value, dict):
            raise self.damaged("something else instead of an object")
        self._value: dict[str, Any] = value

    def damaged(self, what: str) -> ModelError:
        """Return an error about a contradiction."""
        return ModelError(f"damaged: {what}", where=self.where, hint=_DAMAGED)

    def get(self, name: str) -> Any:
        """Return a field that may be missing."""
        return self._value.get(name)

    def _of(self, name: str, kind: type) -> Any:
        value = self._value.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.damaged(f"field '{name}' is missing or of another kind")
        return value

    def integer(self, name: str) -> int:
        """Return an integer."""
        value: int = self._of(name, int)
        if abs(value) >= 1 << 63:
            raise self.damaged(f"field '{name}' leaves 64 bits")
        return value

    def text(self, name: str) -> str:
        """Return a text."""
        value: str = self._of(name, str)
        return value

    def list(self, name: str) -> list[Any]:
        """Return a list."""
        value: list[Any] = self._of(name, list)
        return value

    def fields(self, name: str) -> Fields:
        """Return an object."""
        return Fields(self._of(name, dict), self.where)

    def items(self) -> Iterator[tuple[str, Fields]]:
        """Yield all fields, which must be objects."""
        for name, value in self._value.items():
            yield name, Fields(value, f"'{name}', {self.where}")

    def each(self, name: str) -> Iterator[Fields]:
        """Yield the elements of a list, which must be objects."""
        for value in self.list(name):
            yield Fields(value, self.where)

    def union(self) -> tuple[str, Any]:
        """Return the only field: its name, and its value."""
        if len(self._value) != 1:
            raise self.damaged(f"{len(self._value)} alternatives instead of one")
        return next(iter(self._value.items()))

    def sizes(self, name: str) -> tuple[int, ...]:
        """Return a list of sizes, which must be numbers."""
        return tuple(_size(item, name) for item in self.each(name))

    def size(self, name: str) -> int:
        """Return a size, which must be a number."""
        return _size(self.fields(name), name)


def _size(item: Fields, name: str) -> int:
    kind, value = item.union()
    if kind != "as_int":
        raise UnsupportedError(
            f"an open size in '{name}'", where=item.where, hint="export with static shapes"
        )
    return item.integer("as_int")


# ------------------------------------------------------------------------------ the program

TARGET = "htvm_target"
"""Name in the state of the target in whose numbers a program is quantized, in UTF-8."""


def program_of(
    model: Fields, source: str, constant: Callable[[str, TorchTensor], Array], budget: Budget
) -> TorchProgram:
    """Return the program.

    Args:
        model: the content of ``models/model.json``.
        source: name of the file, for messages.
        constant: returns a parameter, buffer or constant, given its name in the state and what the
            graph says of it.
        budget: counts what reading takes.

    Raises:
        ModelError: the file contradicts itself.
        UnsupportedError: a size is open, or it changes its own buffers, or has other inputs or
            outputs than tensors.
    """
    module = model.fields("graph_module")
    graph, signature = module.fields("graph"), module.fields("signature")
    described = dict(graph.fields("tensor_values").items())
    dimensions = _dimensions(signature, described)
    tensors: dict[str, TorchTensor] = {}

    def tensor(name: str) -> TorchTensor:
        if name not in tensors:
            if name not in described:
                raise ModelError(f"no tensor is called '{name}'", where=source, hint=_DAMAGED)
            tensors[name] = _tensor(name, described[name], dimensions)
        return tensors[name]

    inputs, held = _inputs(signature, source)
    outputs = _outputs(signature, source)
    for name in inputs:
        tensor(name)
    items = (item for item in graph.each("nodes") if item.text("target") != _ASSERTION)
    nodes = _needed([_node(item) for item in items], outputs, source, inputs, held)
    read = {ref for node in nodes for ref in refs(node)} | set(outputs)
    kept = {name: label for name, label in held.items() if name in read or label == TARGET}
    constants = {name: constant(label, tensor(name)) for name, label in kept.items()}
    for node in nodes:
        for name in node.outputs:
            tensor(name)
    return TorchProgram(
        source,
        tuple(tensor(name) for name in inputs),
        tuple(outputs),
        tuple(nodes),
        {name: array for name, array in constants.items() if held[name] != TARGET},
        tensors,
        budget,
        _target(constants, held),
    )


def _target(constants: Mapping[str, Array], held: Mapping[str, str]) -> str:
    """Return the name of the target that is in the state; empty if there is none."""
    named = (array for name, array in constants.items() if held[name] == TARGET)
    array = next(named, None)
    return "" if array is None else array.tobytes().decode(errors="replace")


def refs(node: TorchNode) -> Iterator[str]:
    """Yield the names of the tensors that a node reads."""
    for value in node.arguments.values():
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Ref):
                yield item.name


def _needed(
    nodes: list[TorchNode], outputs: list[str], source: str, inputs: list[str], held: dict[str, str]
) -> list[TorchNode]:
    """Return the nodes that outputs need, which come after those that they read.

    Raises:
        ModelError: a tensor is read before it is computed, or computed twice.
    """
    known = {*inputs, *held}
    for node in nodes:
        unknown = next((name for name in refs(node) if name not in known), None)
        if unknown is not None:
            raise node.damaged(f"it reads '{unknown}', which nothing before computes", _DAMAGED)
        twice = next((name for name in node.outputs if name in known), None)
        if twice is not None:
            raise node.damaged(f"two tensors are called '{twice}'", _DAMAGED)
        known.update(node.outputs)
    missing = next((name for name in outputs if name not in known), None)
    if missing is not None:
        raise ModelError(f"nothing computes the output '{missing}'", where=source, hint=_DAMAGED)
    wanted, kept = set(outputs), []
    for node in reversed(nodes):
        if wanted.intersection(node.outputs):
            wanted.update(refs(node))
            kept.append(node)
    return kept[::-1]


def _tensor(name: str, described: Fields, dimensions: dict[str, str]) -> TorchTensor:
    sizes = []
    for axis, item in enumerate(described.each("sizes")):
        kind, value = item.union()
        if kind != "as_int":
            text = value.get("expr_str", "") if isinstance(value, dict) else ""
            origin = dimensions.get(str(text), "")
            raise UnsupportedError(
                f"dimension {axis} of tensor '{name}' is open ({text or 'no number'})"
                + (f": it is {origin}" if origin else ""),
                where=described.where,
                hint="export with static shapes: torch.export.export(module, example_inputs) "
                "without dynamic_shapes",
            )
        sizes.append(item.integer("as_int"))
    number = described.integer("dtype")
    if number not in TYPES:
        raise UnsupportedError(
            f"tensor '{name}' of the type with number {number}",
            where=described.where,
            hint="float32 and integers are supported",
        )
    if min(sizes, default=0) < 0 or math.prod(sizes) >= 1 << 40:
        raise ModelError(f"tensor '{name}' of shape {sizes}", where=described.where, hint=_DAMAGED)
    strides = described.sizes("strides")
    if len(strides) != len(sizes):
        raise ModelError(
            f"tensor '{name}' has {len(strides)} strides for {len(sizes)} axes",
            where=described.where,
            hint=_DAMAGED,
        )
    return TorchTensor(name, tuple(sizes), TYPES[number], strides)


def _dimensions(signature: Fields, described: dict[str, Fields]) -> dict[str, str]:
    """Return where the symbols of open sizes come from: dimensions of the user's inputs."""
    found: dict[str, str] = {}
    for spec in signature.each("input_specs"):
        kind, value = spec.union()
        if kind != "user_input":
            continue
        _, argument = Fields(value, spec.where).fields("arg").union()
        name = argument.get("name") if isinstance(argument, dict) else None
        if name not in described:
            continue
        for axis, item in enumerate(described[name].each("sizes")):
            kind, size = item.union()
            if kind == "as_expr" and isinstance(size, dict):
                text = str(size.get("expr_str", ""))
                found.setdefault(text, f"dimension {axis} of input '{name}'")
    return found


def _inputs(signature: Fields, source: str) -> tuple[list[str], dict[str, str]]:
    """Return the names of the user's inputs, and the state's name of each other input."""
    inputs, held = [], {}
    for spec in signature.each("input_specs"):
        kind, value = spec.union()
        given = Fields(value, f"the signature of {source}")
        if kind == "user_input":
            argument, content = given.fields("arg").union()
            if argument != "as_tensor":
                raise UnsupportedError(
                    f"an input that is no tensor ({argument.removeprefix('as_')})",
                    where=given.where,
                    hint="export a module that takes tensors alone",
                )
            inputs.append(Fields(content, given.where).text("name"))
            continue
        label = {
            "parameter": "parameter_name",
            "buffer": "buffer_name",
            "tensor_constant": "tensor_constant_name",
        }.get(kind)
        if label is None:
            raise UnsupportedError(
                f"an input of kind '{kind}'",
                where=given.where,
                hint="export a module that takes tensors alone",
            )
        held[given.fields("arg").text("name")] = given.text(label)
    return inputs, held


def _outputs(signature: Fields, source: str) -> list[str]:
    outputs = []
    for spec in signature.each("output_specs"):
        kind, value = spec.union()
        given = Fields(value, f"the signature of {source}")
        if kind != "user_output":
            raise UnsupportedError(
                f"a program with results of kind '{kind}'",
                where=given.where,
                hint="export for inference (module.eval()), without state that it changes itself",
            )
        argument, content = given.fields("arg").union()
        if argument != "as_tensor":
            raise UnsupportedError(
                f"an output that is no tensor ({argument.removeprefix('as_')})",
                where=given.where,
                hint="return tensors alone",
            )
        outputs.append(Fields(content, given.where).text("name"))
    if not outputs:
        raise ModelError("the program returns nothing", where=source)
    return outputs


# ------------------------------------------------------------------------------ nodes

# Says that a tensor has the type with which it was exported, wherever a module converts one.
_ASSERTION = "torch.ops.aten._assert_tensor_metadata.default"


def _node(item: Fields) -> TorchNode:
    target = item.text("target").removeprefix("torch.ops.")
    metadata = item.fields("metadata")
    name = item.get("name")
    outputs = tuple(
        output
        for union in item.each("outputs")
        for output in _results(*union.union(), target, item.where)
    )
    node = TorchNode(
        target,
        name if isinstance(name, str) and name else outputs[0] if outputs else target,
        {},
        outputs,
        _module_of(metadata.get("nn_module_stack")),
        _line_of(metadata.get("stack_trace")),
    )
    if not outputs:
        raise node.unsupported("a node without results", "export for inference")
    arguments = {
        given.text("name"): _argument(node, *given.fields("arg").union())
        for given in item.each("inputs")
    }
    return TorchNode(target, node.name, arguments, outputs, node.module, node.line)


def _results(kind: str, value: Any, target: str, where: str) -> Iterator[str]:
    if kind == "as_tensor":
        yield Fields(value, where).text("name")
    elif kind == "as_tensors" and isinstance(value, list):
        for item in value:
            yield Fields(item, where).text("name")
    else:
        raise UnsupportedError(
            f"a result of {target} that is no tensor ({kind.removeprefix('as_')})", where=where
        )


def _argument(node: TorchNode, kind: str, value: Any) -> Argument:
    """Return an argument, which must be of the kind that its alternative says."""
    if kind == "as_none":
        return None
    if kind == "as_tensor" and isinstance(value, dict):
        return Ref(str(value.get("name")))
    if kind == "as_optional_tensor" and isinstance(value, dict):
        return _argument(node, *Fields(value, node.where).union())
    if kind == "as_tensors" and isinstance(value, list):
        return tuple(Ref(Fields(item, node.where).text("name")) for item in value)
    if kind in ("as_scalar_type", "as_memory_format", "as_layout") and isinstance(value, int):
        return TYPES.get(value, f"number {value}") if kind == "as_scalar_type" else str(value)
    if kind == "as_device":
        return "device"
    if kind == "as_string" and isinstance(value, str):
        return value
    if kind == "as_bool" and isinstance(value, bool):
        return value
    if kind in ("as_int", "as_float") and isinstance(value, int | float):
        return value
    if kind == "as_float" and value in ("Infinity", "-Infinity", "NaN"):
        return float(value)
    if kind in ("as_ints", "as_floats", "as_bools") and isinstance(value, list):
        if all(isinstance(item, int | float) for item in value):
            return tuple(value)
    if kind.startswith("as_sym"):
        raise node.unsupported("an argument is computed from an open size", "export static shapes")
    raise node.unsupported(f"an argument of kind '{kind.removeprefix('as_')}'")


def _module_of(stack: Any) -> str:
    """Return the path of the innermost module, from ``key,path,type;key,path,type``."""
    if not isinstance(stack, str) or ";" not in stack:
        return ""
    parts = stack.split(";")[-1].split(",")
    return parts[1] if len(parts) > 1 else ""


def _line_of(trace: Any) -> str:
    """Return the user's innermost line of a stack: the last that is not the library's."""
    if not isinstance(trace, str):
        return ""
    found = ""
    for file, number, text in _PLACES.findall(trace[-(1 << 14) :]):
        if any(part in file for part in _LIBRARY):
            continue
        found = f"{file.rpartition('/')[2]}:{number} ({text[:_LONGEST]})"
    return found
