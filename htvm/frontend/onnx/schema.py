"""What the standard says about a node: which inputs and attributes its operator can have.

What readers leave unread would otherwise be left out silently: an attribute that is misspelt, or
an operator of the same name from somewhere else.  Files of research flows mix the forms of several
versions of the standard, so a node may have what any version allows.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import Node

__all__ = ["check_node"]

# Domains whose operators mean what the standard's operators of the same names mean.
_SAME_MEANING = ("", "com.microsoft")


@dataclass(frozen=True)
class _Form:
    """Least and most inputs, and names of attributes, over all versions of an operator."""

    least: int
    most: int
    attributes: frozenset[str]


@cache
def _form(op: str) -> _Form | None:
    from onnx import defs

    versions = [
        schema
        for schema in defs.get_all_schemas_with_history()
        if schema.name == op and not schema.domain
    ]
    if not versions:
        return None
    return _Form(
        min(schema.min_input for schema in versions),
        max(schema.max_input for schema in versions),
        frozenset(name for schema in versions for name in schema.attributes),
    )


def check_node(node: Node) -> None:
    """Compare a node with its operator in the standard; operators beyond it are the readers'.

    Raises:
        ModelError: if it has too few or too many inputs.
        UnsupportedError: if it has an attribute that no version of the operator has, or is of
            another domain.
    """
    form = _form(node.op)
    if form is None:
        return
    if node.domain not in _SAME_MEANING:
        raise node.unsupported(
            f"operator {node.op} of the domain '{node.domain}'",
            f"the nearest supported form is {node.op} of the standard",
        )
    if not form.least <= len(node.inputs) <= form.most:
        number = str(form.least) if form.least == form.most else f"{form.least} to {form.most}"
        raise node.damaged(f"{len(node.inputs)} inputs", f"{node.op} has {number}")
    unknown = [] if node.domain else [n for n in node.attributes if n not in form.attributes]
    if unknown:
        near = difflib.get_close_matches(unknown[0], sorted(form.attributes), n=1)
        known = ", ".join(sorted(form.attributes)) or "no attributes"
        raise node.unsupported(
            f"attribute '{unknown[0]}'",
            f"the nearest is '{near[0]}'" if near else f"{node.op} has {known}",
        )
