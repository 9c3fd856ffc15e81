"""What regions and composites say of themselves in a module: their attributes.

Whoever generates code for a region needs nothing but its function.  Each composite in it carries
the fields of its layer, and the region what its composites do not know.  Another code generator may
rely on these attributes; `CONTRACT` changes when their meaning does.

Attributes of a region's function, besides TVM's ``Codegen``:

- ``htvm.contract``: `CONTRACT`.
- ``htvm.region``: name of the region.
- ``htvm.target``: name of the target, with its parameters.
- ``htvm.options``: options of the tiler, as JSON (`byoc_dory.options.TilingOptions`).
- ``htvm.inputs``: names of the tensors that the parameters are, in order.
- ``htvm.content``: TVM's structural hash of the function without this attribute, as text.

Attributes of a composite, besides TVM's ``Composite``:

- ``layer``: name of the layer, which its result also has.
- ``htvm.kind``: class of the layer (`byoc_dory.layers`); ``BorderMap`` for a function of bytes that
  is applied while an input enters the region; ``Alias`` for another name of the same bytes.
- ``htvm.fields``: its fields as JSON. A nested dataclass has its class in ``class``; an array is
  ``{"argument": N, "dtype": ..., "shape": [...]}``, entry N of ``htvm.arrays``. Shapes are without
  the batch axis in the order C-y-x, weights in the order K-C-fy-fx.
- ``htvm.arrays``: the arrays, as constants.
- ``htvm.accelerator``: name of the accelerator that runs the layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory import layers
from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Layer, Tensor
from byoc_dory.options import TilingOptions
from byoc_dory.region import BorderMap, Region
from patterns.fields import decode, encode
from patterns.reading.walk import bindings_of

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Function, Var

    from byoc_dory.layers import Array

CONTRACT = 1
"""Version of the attributes."""

_REGION = tuple(
    f"htvm.{name}" for name in ("contract", "region", "target", "options", "inputs", "content")
)

LAYER_ATTRIBUTE = "layer"
"""Attribute of a composite function that carries the layer's name."""


@dataclass(frozen=True)
class Alias:
    """A reshape inside a region, for which no code runs: ``tensor`` has the bytes of ``source``."""

    tensor: str
    source: str


def composite_attributes(
    name: str, content: Layer | BorderMap | Alias, accelerator: str
) -> dict[str, Any]:
    """Return the attributes of a composite.

    Args:
        name: name of the layer.
        content: what it computes.
        accelerator: name of the accelerator that runs it; empty for none.
    """
    from tvm import relax

    arrays = dict(_arrays(content))
    return {
        LAYER_ATTRIBUTE: name,
        "htvm.kind": type(content).__name__,
        "htvm.fields": encode(content, {path: at for at, path in enumerate(arrays)}),
        # By itself, TVM makes 32 bits of 64.
        "htvm.arrays": [relax.const(array, array.dtype.name) for array in arrays.values()],
        "htvm.accelerator": accelerator,
    }


def _arrays(value: Any, prefix: str = "") -> Iterator[tuple[str, Array]]:
    """Yield the arrays of a dataclass, each with the names of the fields on the way to it."""
    for field in fields(value):
        item = getattr(value, field.name)
        if isinstance(item, np.ndarray):
            yield f"{prefix}{field.name}", item
        elif is_dataclass(item):
            yield from _arrays(item, f"{prefix}{field.name}.")


def with_region_attributes(
    function: Function, name: str, inputs: Sequence[str], target: str, options: TilingOptions
) -> Function:
    """Return a region's function with its attributes.

    Args:
        function: the function, whose composites have theirs.
        name: name of the region.
        inputs: names of the tensors that its parameters are.
        target: name of the target.
        options: options of the tiler.
    """
    function = function.with_attrs(
        {
            "htvm.contract": CONTRACT,
            "htvm.region": name,
            "htvm.target": target,
            "htvm.options": encode(options, {}),
            "htvm.inputs": list(inputs),
        }
    )
    return sealed(function)


def sealed(function: Function) -> Function:
    """Return a region's function with the hash that `check_region` compares."""
    return function.with_attr("htvm.content", _content(function))


def name_of_region(function: Function) -> str:
    """Return the name of the region that a function is."""
    return str(function.attrs["htvm.region"])


def is_region(function: Any) -> bool:
    """Whether a function of a module is a region, which has some of these attributes."""
    attributes = getattr(function, "attrs", None)
    return attributes is not None and any(name in attributes for name in _REGION)


def check_region(symbol: str, function: Function) -> None:
    """Refuse a region that this version did not write as it is.

    Raises:
        IntegerFormError: its attributes are of another contract, some are missing, or the function
            was changed since.
    """
    where = f"function '{symbol}'"
    missing = [name for name in _REGION if name not in function.attrs]
    if missing:
        raise IntegerFormError(
            f"a region lacks {', '.join(missing)}",
            where=where,
            hint="let htvm.relax.Partition make regions, and keep their attributes",
        )
    contract = int(function.attrs["htvm.contract"])
    if contract != CONTRACT:
        raise IntegerFormError(
            f"a region with attributes of contract {contract}, this version reads {CONTRACT}",
            where=where,
            hint="partition the module again, with one version throughout",
        )
    if str(function.attrs["htvm.content"]) != _content(function):
        raise IntegerFormError(
            "a region was changed after the partitioning, so its attributes do not describe it",
            where=where,
            hint="change the module first, and partition it then",
        )


def _content(function: Function) -> str:
    """Return the hash of a region's function, without what is added later."""
    import tvm_ffi

    for name in ("htvm.content", "global_symbol"):
        function = function.without_attr(name) if name in function.attrs else function
    return f"{tvm_ffi.structural_hash(function, map_free_vars=True):016x}"


def target_of(function: Function) -> str:
    """Return the name of the target that a region was made for."""
    return str(function.attrs["htvm.target"])


def options_of(function: Function) -> TilingOptions:
    """Return the options of the tiler that a region was made with."""
    options: TilingOptions = decode(TilingOptions, str(function.attrs["htvm.options"]), ())
    return options


def region_of(symbol: str, function: Function) -> Region:
    """Return the region that a function describes.

    Args:
        symbol: name of the function.
        function: a function with the attributes of a region.

    Raises:
        IntegerFormError: its composites do not have the attributes that belong to it.
    """
    from tvm import relax

    names: dict[Var, str] = dict(
        zip(function.params, map(str, function.attrs["htvm.inputs"]), strict=True)
    )
    composites: dict[Var, Function] = {}
    found: list[tuple[Layer, str]] = []
    maps: list[BorderMap] = []
    aliases: dict[str, str] = {}
    for var, value in bindings_of(function):
        if isinstance(value, relax.Function):
            composites[var] = value
        elif isinstance(value, relax.Var):
            names[var] = names[value]
        elif isinstance(value, relax.Call):
            composite = composites[value.op]
            content = _content_of(symbol, composite)
            name = names[var] = str(composite.attrs[LAYER_ATTRIBUTE])
            if isinstance(content, Alias):
                names[var] = aliases[name] = names[value.args[0]]
            elif isinstance(content, BorderMap):
                maps.append(replace(content, source=names[value.args[0]]))
            else:
                home = str(composite.attrs["htvm.accelerator"])
                found.append((_reading(content, aliases), home))
    border = _border_tensors([layer for layer, _ in found])
    for entry in maps:
        # A map keeps shape and layout; only layers determine them.
        border.setdefault(entry.source, replace(border[entry.tensor], name=entry.source))
    return Region(
        name=name_of_region(function),
        layers=tuple(_inner(layer) for layer, _ in found),
        inputs=tuple(border[names[param]] for param in function.params),
        outputs=tuple(border[names[var]] for var in returned_by(function)),
        maps=tuple(maps),
        homes=tuple(home for _, home in found),
    )


_CONTENTS: Mapping[str, type[Any]] = {
    cls.__name__: cls
    for cls in (*vars(layers).values(), BorderMap, Alias)
    if isinstance(cls, type) and is_dataclass(cls)
}


def _content_of(symbol: str, composite: Function) -> Layer | BorderMap | Alias:
    kind = str(composite.attrs["htvm.kind"]) if "htvm.kind" in composite.attrs else "nothing"
    cls = _CONTENTS.get(kind)
    if cls is None:
        raise IntegerFormError(
            f"a composite '{composite.attrs['Composite']}' is of no known kind: {kind}",
            where=f"function '{symbol}'",
            hint="let a region have composites of one partitioning only",
        )
    content: Layer | BorderMap | Alias = decode(
        cls, str(composite.attrs["htvm.fields"]), list(composite.attrs["htvm.arrays"])
    )
    return content


def returned_by(function: Function) -> list[Var]:
    """Return the variables that a region's function returns."""
    from tvm import relax

    body = function.body.body
    return list(body.fields) if isinstance(body, relax.Tuple) else [body]


def _reading(layer: Layer, aliases: Mapping[str, str]) -> Layer:
    """Return the layer reading the tensors that its inputs are other names of."""
    if not any(tensor.name in aliases for tensor in layer.inputs):
        return layer
    inputs = (replace(t, name=aliases.get(t.name, t.name)) for t in layer.inputs)
    return replace(layer, inputs=tuple(inputs))


def _border_tensors(layers: Sequence[Layer]) -> dict[str, Tensor]:
    """Return every tensor that the layers touch, in its layout outside of the region."""
    tensors: dict[str, Tensor] = {}
    for layer in layers:
        for tensor in (*layer.inputs, replace(layer.output, name=layer.name)):
            tensors.setdefault(tensor.name, tensor)
    return tensors


def _inner(layer: Layer) -> Layer:
    """Return the layer with its tensors in the accelerator's layout."""
    return replace(
        layer,
        inputs=tuple(replace(tensor, layout="CHW") for tensor in layer.inputs),
        output=replace(layer.output, name=layer.name, layout="CHW"),
    )


def without_regions(module: IRModule) -> IRModule:
    """Return a module whose regions are in the functions again that they were cut out of."""
    from tvm import relax

    module = relax.transform.LambdaLift()(module)
    cut = {
        var: function
        for var, function in module.functions.items()
        if isinstance(function, relax.Function) and _is_cut(function)
    }
    for var, function in list(module.functions.items()):
        if isinstance(function, relax.Function) and var not in cut:
            module.update_func(var, function.inline_functions(cut))
    for var in cut:
        del module[var]
    return relax.transform.CanonicalizeBindings()(module)


def _is_cut(function: Function) -> bool:
    attributes = function.attrs
    return attributes is not None and ("htvm.kind" in attributes or is_region(function))
