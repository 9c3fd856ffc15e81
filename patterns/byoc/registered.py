"""The patterns that TVM's registry has of this project: operators of the integer form, for any SoC.

They tell other code generators what an operator is (`patterns.byoc.contract`), and
`htvm.relax.Partition` which operators may leave the CPU.  `patterns.byoc.table` makes the patterns
of one build, which also know where each operator runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from byoc_dory.errors import HtvmError
from patterns.byoc.contract import composite_attributes
from patterns.byoc.table import leaks
from patterns.names import name_of
from patterns.ops.add import Add
from patterns.ops.convolution import Conv2d
from patterns.ops.dense import Dense
from patterns.primitive import type_of
from patterns.relax_op import ComposedOp, Match, compositions

if TYPE_CHECKING:
    from tvm.relax import Expr
    from tvm.relax.transform import PatternCheckContext

    from byoc_dory.layers import Layer

PREFIX = "htvm."
"""Beginning of the patterns' names; the kind of the operator follows."""


def register_patterns() -> None:
    """Register the patterns in TVM; registering again does nothing."""
    from tvm.relax.backend import pattern_registry

    entries = [
        entry
        for cls, match in compositions((Add, Conv2d, Dense))
        if pattern_registry.get_pattern((entry := _entry(cls, match))[0]) is None
    ]
    pattern_registry.register_patterns(entries)


def _entry(cls: type[ComposedOp], match: Match) -> tuple[Any, ...]:
    """Return a pattern as TVM registers it."""

    def check(context: PatternCheckContext) -> bool:
        try:
            layer = _layer(cls, match, context.annotated_expr)
        except HtvmError:
            return False
        return layer is not None and not leaks(context)

    def attributes(annotated: Mapping[str, Expr]) -> dict[str, Any]:
        layer = _layer(cls, match, annotated)
        assert layer is not None  # checked
        return composite_attributes(layer.name, layer, "")

    slots = {"root": match.pattern, **match.slots}
    return f"{PREFIX}{match.kind}", match.pattern, slots, check, attributes


def _layer(cls: type[ComposedOp], match: Match, annotated: Mapping[str, Expr]) -> Layer | None:
    """Return the layer of a match; its tensors have the names of their places."""
    slots = {name: annotated[name] for name in match.slots if name in annotated}
    op = cls.read(slots)
    root = annotated["root"]
    read = [(name, type_of(slots[name])) for name in ("x", "a", "b") if name in slots]
    return op.layer(name_of(root) or match.kind, read, type_of(root))


def operators_of(patterns: Sequence[Any]) -> frozenset[str]:
    """Return the kinds of operators that these patterns of TVM's registry describe."""
    names = (str(entry.name) for entry in patterns)
    return frozenset(name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX))
