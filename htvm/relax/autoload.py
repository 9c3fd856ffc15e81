"""What TVM calls while it is imported: the entry point of its group ``tvm.backends``.

It must be quick, so everything else is imported when it is needed.
"""

from __future__ import annotations

from importlib.metadata import distribution
from typing import TYPE_CHECKING, Any

from htvm import errors
from patterns.byoc import LIBRARY

if TYPE_CHECKING:
    from collections.abc import Sequence

TAG = "htvm/"
"""Beginning of the tags of TVM's targets; the name of the SoC follows."""


def register() -> None:
    """Register in TVM the maker of libraries of regions, tags of SoCs, and types of errors.

    A tag is a target of TVM's C code generator; `htvm.relax.Partition` takes it in place of the
    SoC's name.  Errors that pass through TVM keep their types.
    """
    import tvm_ffi
    from tvm.target.tag_registry.registry import register_tag
    from tvm_ffi import core

    for name in errors.__all__:
        if name not in core.ERROR_NAME_TO_TYPE:
            tvm_ffi.register_error(name, getattr(errors, name))
    tvm_ffi.register_global_func(LIBRARY, _library, override=True)
    # Only this distribution's: a search through all takes ten times as long.
    for point in distribution("htvm").entry_points.select(group="htvm.socs"):
        tag = f"{TAG}{point.name}"  # a key, because a target does not keep its tag
        register_tag(tag, {"kind": "c", "keys": [tag, "cpu"]}, override=True)


def _library(functions: Sequence[Any]) -> Any:
    from htvm.relax.library import region_library

    return region_library(functions)
