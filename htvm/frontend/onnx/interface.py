"""Inputs and outputs as an ONNX file declares them, and what it leaves open: sizes and types.

Research flows declare every tensor as FLOAT, whatever it holds, and keep inputs beside the network,
in ``inputs.npz``, which have both.  What neither file says comes from the user.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import ModelError, UnsupportedError
from byoc_dory.layers import Array
from htvm.arrays import read_arrays
from htvm.errors import InputError
from htvm.frontend.onnx.dialect import Options
from htvm.frontend.onnx.graph import OnnxGraph, OnnxTensor
from htvm.frontend.onnx.tensors import dtype_name, text_of

if TYPE_CHECKING:
    from onnx import ValueInfoProto

_log = logging.getLogger(__name__)


def samples_beside(path: Path, inputs: Sequence[str]) -> dict[str, Array]:
    """Return arrays by the names of inputs; empty if there is no such file, or it cannot be read.

    Args:
        path: path of the network.
        inputs: names of its inputs. The arrays have these names, or are in this order.
    """
    file = path.with_name("inputs.npz")
    if not file.is_file():
        return {}
    try:
        samples = read_arrays(file, "it is left out")
    except InputError as error:
        _log.warning("%s", error)
        return {}
    named = all(name in samples for name in inputs)
    order = list(inputs) if named else list(samples)
    return {name: samples[key] for name, key in zip(inputs, order, strict=False)}


@dataclass(frozen=True)
class Sizes:
    """Sizes that are not in the file.

    Attributes:
        path: the file.
        inputs: names of its inputs.
        dimensions: sizes of named dimensions, from the user.
        shapes: shapes of inputs, from the user.
    """

    path: Path
    inputs: tuple[str, ...]
    dimensions: Mapping[str, int]
    shapes: Mapping[str, Sequence[int]]

    def check(self, names: set[str]) -> None:
        """Check what the user gave.

        Args:
            names: names of the dimensions that the file leaves open.

        Raises:
            ModelError: there is no such dimension or input, or a size is no size.
        """
        source = self.path.name
        for name, size in self.dimensions.items():
            if name not in names:
                raise ModelError(
                    f"no input has a dimension called '{name}'",
                    where=source,
                    hint=f"it has {', '.join(sorted(filter(None, names))) or 'none with a name'}",
                )
            if not _is_size(size, least=1):
                raise ModelError(f"{size!r} is no size for dimension '{name}'", where=source)
        for name, shape in self.shapes.items():
            if name not in self.inputs:
                raise ModelError(
                    f"no input is called '{name}'",
                    where=f"input_shapes for {source}",
                    hint=f"its inputs are {', '.join(self.inputs)}",
                )
            if not isinstance(shape, Sequence) or not all(_is_size(size) for size in shape):
                raise ModelError(f"{shape!r} is no shape for input '{name}'", where=source)

    def shape(self, name: str, rank: int) -> Sequence[int] | None:
        """Return the shape of an input, given or beside the file; None if it is not known."""
        if name in self.shapes:
            return self.shapes[name]
        sample = self._samples.get(name)
        return sample.shape if sample is not None and sample.ndim == rank else None

    @cached_property
    def _samples(self) -> dict[str, Array]:
        return samples_beside(self.path, self.inputs)


def _is_size(value: object, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def declared_tensor(
    value: ValueInfoProto, kind: str, source: str, sizes: Sizes | None
) -> OnnxTensor:
    """Return an input or output as declared.

    Args:
        value: the declaration.
        kind: "input" or "output", for messages.
        source: name of the file, for messages.
        sizes: what else is known of inputs; None for an output, whose shape may then be unknown.

    Raises:
        ModelError: a given shape contradicts the file.
        UnsupportedError: it is no tensor, or an input has no dimensions or one of unknown size.
    """
    where = f"{kind} '{text_of(value.name, f'an {kind} of {source}')}' of {source}"
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        raise UnsupportedError("it is no tensor", where=where)
    dtype = dtype_name(tensor.elem_type, where)
    if not tensor.HasField("shape"):
        if sizes is not None:
            raise UnsupportedError(
                "the file does not say its shape", where=where, hint="export it with static shapes"
            )
        return OnnxTensor(value.name, None, dtype)
    numbers = [size.dim_value if size.HasField("dim_value") else None for size in tensor.shape.dim]
    if sizes is not None and not numbers:
        raise UnsupportedError(
            "an input without dimensions", where=where, hint="give it the shape [1]"
        )
    names = [text_of(size.dim_param, where) for size in tensor.shape.dim]
    if sizes is None:
        known = tuple(int(size) for size in numbers if size is not None and size > 0)
        return OnnxTensor(value.name, known if len(known) == len(numbers) else None, dtype)
    return OnnxTensor(value.name, _completed(value.name, numbers, names, sizes, where), dtype)


def _completed(
    name: str, numbers: Sequence[int | None], names: Sequence[str], sizes: Sizes, where: str
) -> tuple[int, ...]:
    """Return an input's shape with the sizes that the file leaves open, or declares as 0 or -1."""
    sizes_found = [None if number is None or number < 1 else number for number in numbers]
    result = [
        sizes.dimensions.get(label) if size is None else size
        for size, label in zip(sizes_found, names, strict=True)
    ]
    whole = sizes.shape(name, len(sizes_found)) if None in result or name in sizes.shapes else None
    if whole is not None:
        pairs = zip(result, whole, strict=False)
        if len(whole) != len(result) or any(size not in (None, given) for size, given in pairs):
            raise ModelError(
                f"the file declares {_text(sizes_found, names)}, given is {list(whole)}",
                where=where,
                hint="give the sizes that the file has, and any for those that it leaves open",
            )
        result = list(whole)
    for axis, size in enumerate(result):
        if size is None:
            raise _open(name, axis, names[axis], numbers[axis], where)
    return tuple(int(size) for size in result if size is not None)


def _text(found: Sequence[int | None], names: Sequence[str]) -> str:
    parts = (
        name or "?" if size is None else str(size) for size, name in zip(found, names, strict=True)
    )
    return f"[{', '.join(parts)}]"


def _open(name: str, axis: int, label: str, number: int | None, where: str) -> UnsupportedError:
    hint = f'give its shape: htvm.load(..., input_shapes={{"{name}": ...}})'
    if label:
        hint = f'give its size: htvm.load(..., dimensions={{"{label}": 1}})'
    hint += f", or --input-shape {name}=..., with sizes as in 1x3x224x224"
    if label:
        hint += f"; htvm quantize: --dimension {label}=..."
    if number is not None:
        return UnsupportedError(f"dimension {axis} is declared as {number}", where=where, hint=hint)
    text = f"'{label}'" if label else "which has no name"
    return UnsupportedError(f"dimension {axis}, {text}, is dynamic", where=where, hint=hint)


INTEGERS = ("int8", "uint8", "int16", "int32")
"""Types from narrow to wide; signed ones first."""


def input_types_of(graph: OnnxGraph, path: Path, given: Mapping[str, str] | None) -> Options:
    """Return the integer types of inputs declared as reals, as far as they are known.

    Args:
        graph: the file.
        path: path of the file.
        given: types given by the user, by name; the rest come from ``inputs.npz``.

    Raises:
        ModelError: there is no such input, or it is declared as integers.
        UnsupportedError: a type is not allowed for activations.
    """
    types = _types_beside(graph, path)
    declared = {item.name: item.dtype for item in graph.inputs}
    for name, dtype in (given or {}).items():
        if name not in declared:
            raise ModelError(
                f"no input is called '{name}'",
                where=f"input_types for {graph.source}",
                hint=f"its inputs are {', '.join(declared)}",
            )
        if dtype not in INTEGERS:
            raise UnsupportedError(
                f"type {dtype!r} for input '{name}'",
                where=graph.source,
                hint=f"one of {', '.join(INTEGERS)}",
            )
        if declared[name] not in ("float32", dtype):
            raise ModelError(
                f"input '{name}' is declared as {declared[name]}, not as {dtype}",
                where=graph.source,
            )
        types[name] = dtype
    return Options(types, tuple(name for name in given or {} if declared[name] == "float32"))


def _types_beside(graph: OnnxGraph, path: Path) -> dict[str, str]:
    samples = samples_beside(path, graph.declared)
    types = {}
    for item in graph.inputs:
        sample = samples.get(item.name)
        if item.dtype != "float32" or sample is None or sample.shape != item.shape:
            continue
        dtype = narrowest(sample)
        if dtype is not None:
            types[item.name] = dtype
            _log.info("input '%s' holds %s, says inputs.npz", item.name, dtype)
    return types


def narrowest(values: Array) -> str | None:
    """Return the narrowest type for these values; ``None`` if not integers or too large."""
    if values.dtype.kind not in "iuf" or not values.size:
        return None
    if not np.isfinite(values).all() or (values != np.rint(values)).any():
        return None
    low, high = int(values.min()), int(values.max())
    for dtype in INTEGERS:
        limits = np.iinfo(dtype)
        if limits.min <= low and high <= limits.max:
            return dtype
    return None
