"""Keys of layers: everything but names (`value_of`), or but names and numbers (`sizes_of`)."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from functools import lru_cache

import numpy as np

from byoc_dory.layers.layer import Layer
from byoc_dory.layers.tensor import Tensor


@lru_cache(maxsize=256)  # asked several times for each layer of a region
def value_of(layer: Layer) -> bytes:
    """Return a digest of all fields of a layer, with the elements of its arrays.

    Equal layers may be computed, and planned, as one.  No field is left out by choice, so that none
    can be forgotten; only names are, of which it matters which operands are the same tensor.
    """
    found = hashlib.sha256()
    names: dict[str, int] = {}
    _enter(found, layer, names)
    return found.digest()


def sizes_of(layer: Layer) -> tuple[object, ...]:
    """Return kind and sizes of a layer, its tensors' types, and which operands are the same."""
    tensors = tuple((each.shape, each.dtype, each.layout) for each in (*layer.inputs, layer.output))
    return (layer.geometry, tensors, tuple(layer.inputs.index(each) for each in layer.inputs))


def _enter(found: hashlib._Hash, value: object, names: dict[str, int]) -> None:
    """Enter a value with its type and length, so that different ones give different texts."""
    found.update(f"{type(value).__module__}.{type(value).__qualname__}:".encode())
    if isinstance(value, np.ndarray):
        found.update(f"{value.dtype}{value.shape}".encode())
        found.update(value.tobytes())
    elif is_dataclass(value):
        for entry in fields(value):
            inner = getattr(value, entry.name)
            if entry.name == "name" and isinstance(value, Layer | Tensor):
                inner = names.setdefault(inner, len(names)) if isinstance(value, Tensor) else ""
            _enter(found, inner, names)
    elif isinstance(value, tuple | list):
        found.update(f"{len(value)}:".encode())
        for inner in value:
            _enter(found, inner, names)
    else:
        text = repr(value).encode()
        found.update(f"{len(text)}:".encode() + text)
