"""Checking nodes against the standard: the inputs and attributes that an operator can have.

Parts of a node that no reader looks at would otherwise be ignored silently: a misspelt attribute,
or an operator of the same name from elsewhere.  Files of research flows mix the forms of several
versions of the standard, so a node may use those of any version.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode

__all__ = ["check_node"]

# Domains whose operators are the same as the standard's operators of the same names.
_SAME_MEANING = ("", "com.microsoft")


@dataclass(frozen=True)
class _Form:
    """The numbers of inputs and the attribute names over all versions of an operator."""

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


def check_node(node: OnnxNode) -> None:
    """Compare a node with its operator in the standard; operators beyond it are the readers'.

    Raises:
        ModelError: it has too few or too many inputs.
        UnsupportedError: it has an attribute that no version of the operator has, or is from
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
    unknown = [] if node.domain else [n for n in node.set_attributes if n not in form.attributes]
    if unknown:
        near = difflib.get_close_matches(unknown[0], sorted(form.attributes), n=1)
        known = ", ".join(sorted(form.attributes)) or "no attributes"
        raise node.unsupported(
            f"attribute '{unknown[0]}'",
            f"the nearest is '{near[0]}'" if near else f"{node.op} has {known}",
        )
