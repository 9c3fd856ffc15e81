"""The operators of a network as text: names, types, fields, results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from htvm.model import Model, TensorInfo
    from patterns.reading.node import Node


def graph_lines(model: Model) -> Iterator[str]:
    """Yield the inputs, the operators in execution order, each with its fields, and the outputs."""
    graph = model.graph
    inputs, outputs = model.interface_with_layouts
    for info in inputs:
        yield f"input {_interface_text(info)}"
    for node in graph.in_order:
        yield f"{node.name}: {type_text(node.output_dtype, node.output_shape)} = {_call(node)}"
        source = model.sources.get(node.name, "")
        if source:
            yield f"    source: {source}"
        for field in fields(node.op):
            value = getattr(node.op, field.name)
            if not _is_default(field, value):
                yield f"    {field.name}: {_brief(value)}"
    for info, name in zip(outputs, graph.results, strict=True):
        yield f"output {_interface_text(info)} = {name}"


def type_text(dtype: str, shape: tuple[int, ...]) -> str:
    """Return a tensor's type, such as ``int8[1,8,8,16]``."""
    return f"{dtype}[{','.join(map(str, shape))}]"


def _interface_text(info: TensorInfo) -> str:
    parts = [f"{info.name}: {type_text(info.dtype, info.shape)}"]
    if info.layout:
        parts.append(info.layout)
    if info.scale is not None:
        parts.append(f"scale {info.scale:.6g}, zero point {info.zero_point}")
    return ", ".join(parts)


def _call(node: Node) -> str:
    types = zip(node.input_dtypes, node.input_shapes, strict=True)
    read = zip(node.inputs, types, strict=True)
    arguments = ", ".join(f"{name}: {type_text(*kind)}" for name, kind in read)
    return f"{node.kind}({arguments})"


def _is_default(field: Field[object], value: object) -> bool:
    """Whether a field has its default, which is not printed."""
    return (
        field.default is not MISSING
        and type(value) is type(field.default)
        and (
            value is field.default or (not isinstance(value, np.ndarray) and value == field.default)
        )
    )


def _brief(value: object) -> str:
    """Return a field's value; of an array only type and range, or its one element."""
    if isinstance(value, np.ndarray):
        kind = type_text(str(value.dtype), value.shape)
        if value.size == 0:
            return kind
        low, high = value.min(), value.max()
        return f"{kind} of {low:.6g}" if low == high else f"{kind} of {low:.6g} to {high:.6g}"
    if is_dataclass(value) and not isinstance(value, type):
        shown = (
            f"{field.name} {_brief(item)}"
            for field in fields(value)
            if not _is_default(field, item := getattr(value, field.name))
        )
        inner = ", ".join(shown)
        return f"{type(value).__name__}({inner})"
    if isinstance(value, tuple):
        return f"({', '.join(map(_brief, value))})"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
