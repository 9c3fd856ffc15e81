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

NEWEST_OPSET = 28
"""Newest version of the standard whose operators the handlers follow."""

# Domains whose operators are the same as the standard's operators of the same names.
_SAME_MEANING = ("", "com.microsoft")


@dataclass(frozen=True)
class _Form:
    """Inputs and attributes over all versions of an operator, and the version after `NEWEST_OPSET`.

    ``changed`` is 0 if there is none.
    """

    least: int
    most: int
    attributes: frozenset[str]
    changed: int


def newest_opset() -> int:
    """Return the newest version that can be read: operators of later ones may mean other things."""
    from onnx import defs

    return max(NEWEST_OPSET, defs.onnx_opset_version())


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
        min((v.since_version for v in versions if v.since_version > NEWEST_OPSET), default=0),
    )


def is_standard(op: str) -> bool:
    """Whether any version of the standard has an operator of this name."""
    return _form(op) is not None


def check_node(node: OnnxNode, opset: int) -> None:
    """Compare a node with its operator in the standard; operators beyond it are the readers'.

    Args:
        node: the node.
        opset: version of the standard that the file follows.

    Raises:
        ModelError: it has too few or too many inputs.
        UnsupportedError: it has an attribute that no version of the operator has, is from another
            domain, or as a version defines it that is newer than the readers.
    """
    form = _form(node.op)
    if form is None:
        return
    if node.domain not in _SAME_MEANING:
        raise node.unsupported(
            f"operator {node.op} of the domain '{node.domain}'",
            f"the nearest supported form is {node.op} of the standard",
        )
    if not node.domain and 0 < form.changed <= opset:
        raise node.unsupported(
            f"{node.op} as opset {form.changed} defines it",
            f"export with opset {NEWEST_OPSET} or an earlier one",
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
