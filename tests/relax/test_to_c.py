"""`htvm.relax.to_c`: any Relax module as C that computes what TVM's virtual machine computes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tvm import relax

from htvm.relax import to_c
from tests.relax.modules import CASES, GROUPS, Case, module_of
from tests.relax.modules import write as written
from tests.relax.native import Native, Reference, assert_same, flat
from tests.rotation import rotating
from tests.tools import tool


def of(body: Any, *inputs: Any) -> Any:
    """A module with one function ``main``."""
    bb = relax.BlockBuilder()
    written(bb, "main", Case(inputs, body))
    return bb.finalize()


def test_every_function_is_in_a_group() -> None:
    assert sorted(name for group in GROUPS.values() for name in group) == sorted(CASES)
    assert len(CASES) >= 30


@pytest.mark.parametrize("group", rotating(list(GROUPS)))
def test_functions_compute_what_tvm_computes(group: str, tmp_path: Path) -> None:
    module = module_of(GROUPS[group])
    library = to_c(module, name=group)
    library.write(tmp_path / "c")
    assert [each.function for each in library.functions] == sorted(GROUPS[group])
    reference = Reference(module)
    natives = [Native(tmp_path / "c", library, compiler) for compiler in ("gcc", "clang")]
    for function in library.functions:
        assert function.arena_bytes == function.arena_bound, function
        arrays = CASES[function.function].arrays()
        expected = reference.run(function.function, arrays)
        for native in natives:
            assert_same(native.run(function, flat(arrays)), expected)
    for native in natives:
        assert_only_mathematics(native)


def assert_only_mathematics(native: Native) -> None:
    """Nothing is allocated: what the C needs from outside are functions of ``math.h``."""
    listed = subprocess.run(
        [tool("nm"), "-D", "--undefined-only", str(native.path)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    found = re.findall(r" [Uw] (\w+)", listed.stdout)
    allowed = {"memcpy", "memset", "memmove", "__stack_chk_fail"}  # what compilers make of loops
    outside = {name for name in found if not name.startswith(("_ITM", "__cxa", "__gmon"))} - allowed
    code = "\n".join(native.library.sources.values())
    assert {name for name in outside if f"{name}(" not in code} <= {"sincosf", "sincos"}
    assert not re.search(r"\b(?:malloc|calloc|realloc|free|alloca)\b", code)
