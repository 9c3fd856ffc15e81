"""The integer types of inputs that a file declares as reals.

Research flows declare every tensor as FLOAT, whatever it holds.  The type of an input comes from
the user, or from the flow's own ``inputs.npz``, which it keeps beside the network for this purpose:
the narrowest type that its values fit.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from byoc_dory.errors import ModelError, UnsupportedError
from byoc_dory.layers import Array
from htvm.frontend.onnx.graph import OnnxGraph
from htvm.frontend.onnx.network import Options
from htvm.frontend.onnx.samples import samples_beside

_log = logging.getLogger(__name__)

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
    types = _beside(graph, path)
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


def _beside(graph: OnnxGraph, path: Path) -> dict[str, str]:
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
