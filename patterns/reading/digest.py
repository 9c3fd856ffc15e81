"""The digest of a network in the integer form, the same on every machine."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import tvm
from tvm import relax
from tvm.ir import GenericConst

from patterns.names import name_of
from patterns.reading.walk import bindings_of, main_of

if TYPE_CHECKING:
    from tvm.ir import IRModule


def module_sha256(module: IRModule) -> str:
    """Return the SHA-256 of a module's computation and its operators' names, in hexadecimal.

    It covers ``main`` as TVM prints it, the names of its operators, the attributes of the functions
    that it calls (the whole functions if they have no such attributes), and the bytes of all
    constants.  So it is the same in every process and on every little-endian machine, but may
    change if TVM changes how it prints.
    """
    main = main_of(module)
    parts = [tvm.IRModule({"main": main}).script(show_meta=False)]
    parts += [name_of(value) or "" for _, value in bindings_of(main)]
    for variable, function in sorted(module.functions.items(), key=lambda item: str(item[0])):
        if str(variable.name_hint) != "main":
            attributes = function.attrs
            told = attributes is not None and "htvm.kind" in attributes
            parts.append(f"{variable.name_hint}: {attributes if told else function.script()}")
    digest = hashlib.sha256("\0".join(parts).encode())

    def visit(expr: Any) -> None:
        if isinstance(expr, GenericConst):
            array = expr.value.numpy()
            digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())

    relax.analysis.post_order_visit(main, visit)
    return digest.hexdigest()
