"""Checking nodes against the standard, and that handlers look at all that is set in them.

Parts of a node that no reader looks at would otherwise be ignored silently, and the result be wrong
without a word: a misspelt attribute, or an operator of the same name from elsewhere.  So every look
is recorded (`OnnxNode.looks`), and after a handler has returned, `read_whole` compares what it
looked at with what the node has.  An attribute with the value that the standard gives it by default
counts as not set; so does what a handler names as without effect (`OnnxNode.ignore`).

Files of research flows mix the forms of several versions of the standard, so a node may use those
of any version.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from byoc_dory.errors import HtvmError, IntegerFormError, ModelError
from htvm.frontend.onnx.graph import brief

if TYPE_CHECKING:
    from onnx.defs import OpSchema

    from byoc_dory.errors import UnsupportedError
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

    fewest_inputs: int
    most_inputs: int
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
    if not form.fewest_inputs <= len(node.inputs) <= form.most_inputs:
        number = (
            str(form.fewest_inputs)
            if form.fewest_inputs == form.most_inputs
            else f"{form.fewest_inputs} to {form.most_inputs}"
        )
        raise node.damaged(f"{len(node.inputs)} inputs", f"{node.op} has {number}")
    unknown = [] if node.domain else [n for n in node.set_attributes if n not in form.attributes]
    if unknown:
        near = difflib.get_close_matches(unknown[0], sorted(form.attributes), n=1)
        known = ", ".join(sorted(form.attributes)) or "no attributes"
        raise node.unsupported(
            f"attribute '{unknown[0]}'",
            f"the nearest is '{near[0]}'" if near else f"{node.op} has {known}",
        )


_Result = TypeVar("_Result")


def read_whole(node: OnnxNode, opset: int, handle: Callable[[], _Result]) -> _Result:
    """Return the result of a handler, after checking that it has read all of the node.

    Args:
        node: the node.
        opset: version of the standard that the file follows, which decides on default values.
        handle: calls the handler.

    Raises:
        ModelError: tensors do not fit the operators that the handler makes.
        UnsupportedError: an input or an attribute is set that the handler does not read.
    """
    node.looks.clear()
    try:
        result = handle()
    except HtvmError as error:
        if error.where:
            raise
        # Operators know what they cannot do, but not for which node.
        kind = ModelError if isinstance(error, IntegerFormError) else type(error)
        raise kind(error.what, where=node.where, hint=error.hint) from error
    inputs = [
        index for index, name in enumerate(node.inputs) if name and index not in node.looks.inputs
    ]
    attributes = [
        name
        for name, value in node.set_attributes.items()
        if name not in node.looks.attributes and not _is_default(node, opset, name, value)
    ]
    if not inputs and not attributes:
        return result
    check_node(node, opset)  # its errors are better for what the standard does not have
    if inputs:
        schema, at = _schema(node.op), inputs[0]
        known = schema is not None and at < len(schema.inputs)
        named = f"input {at} ({schema.inputs[at].name})" if schema and known else f"input {at}"
        raise node.unsupported(
            f"{named} is given, and not supported", f"export {node.op} without it"
        )
    value = node.set_attributes[attributes[0]]
    raise node.unsupported(
        f"attribute '{attributes[0]}' is {brief(value)}, and not supported",
        f"export {node.op} without it",
    )


def unknown_operator(
    node: OnnxNode, known: Mapping[str, object], where: str, nearest: Mapping[str, str]
) -> UnsupportedError:
    """Return the error for an operator without a handler.

    Args:
        node: the node.
        known: the operators that have one.
        where: where they have, for the message.
        nearest: what some others do nearly; for the rest it is an operator of a similar name.
    """
    domain = f" of the domain '{node.domain}'" if node.domain else ""
    similar = difflib.get_close_matches(node.op, list(known), n=1, cutoff=0.4)
    near = nearest.get(node.op, similar[0] if similar else "")
    hint = f"the nearest supported form is {near}; " if near else ""
    return node.unsupported(
        f"operator {node.op}{domain} is not supported {where}",
        f"{hint}supported are {', '.join(sorted(known))}",
    )


def _is_default(node: OnnxNode, opset: int, name: str, value: object) -> bool:
    defaults = _defaults(node.op, "" if node.domain == "com.microsoft" else node.domain, opset)
    return name in defaults and bool(np.array_equal(np.asarray(defaults[name]), np.asarray(value)))


@cache
def _schema(op: str, opset: int = NEWEST_OPSET, domain: str = "") -> OpSchema | None:
    """Return an operator of the standard, as a version of it defines it."""
    from onnx import defs

    try:
        return defs.get_schema(op, opset, domain)
    except defs.SchemaError:
        return None


@cache
def _defaults(op: str, domain: str, opset: int) -> Mapping[str, object]:
    from onnx import AttributeProto, helper

    schema, result = _schema(op, opset, domain), dict[str, object]()
    for name, attribute in schema.attributes.items() if schema is not None else ():
        if attribute.default_value.type != AttributeProto.UNDEFINED:
            value = helper.get_attribute_value(attribute.default_value)
            result[name] = value.decode() if isinstance(value, bytes) else value
    return result
