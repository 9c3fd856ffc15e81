"""Helper: what `htvm.relax.to_c` returned, compiled and called on this machine."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relax

from htvm.relax import CFunction, CLibrary
from htvm.vm import linked
from tests.tools import tool

CHECKS = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-ffp-contract=off")


class Native:
    """A library compiled by one compiler.

    Args:
        folder: where `CLibrary.write` wrote it.
        library: the library.
        compiler: name of the compiler.
        level: of optimization.
    """

    def __init__(
        self, folder: Path, library: CLibrary, compiler: str = "gcc", level: str = "-O1"
    ) -> None:
        out = folder.parent / f"{folder.name}_{compiler}.so"
        sources = sorted(str(path) for path in (folder / "src").glob("*.c"))
        command = [tool(compiler), *CHECKS, level, "-shared", "-fPIC", f"-I{folder / 'include'}"]
        subprocess.run([*command, *sources, "-o", str(out), "-lm"], check=True)
        self.path = out
        self.library = library
        self._loaded = ctypes.CDLL(str(out))

    def run(self, function: CFunction, arrays: list[Any]) -> list[np.ndarray]:
        """Outputs of a function, for its inputs in order."""
        given = [np.array(each, order="C") for each in arrays]
        for info, array in zip(function.inputs, given, strict=True):
            assert (info.shape, info.dtype) == (array.shape, array.dtype.name), info
        results = [np.zeros(info.shape, info.dtype) for info in function.outputs]
        call = getattr(self._loaded, f"{function.name}_run")
        pointers = [each.ctypes.data_as(ctypes.c_void_p) for each in (*given, *results)]
        assert call(*pointers) == 0
        return results


def flat(value: Any) -> list[Any]:
    """The leaves of nested sequences of arrays, in order."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, tvm.runtime.Tensor):
        return [value.numpy()]
    return [leaf for each in value for leaf in flat(each)]


class Reference:
    """A module in TVM's virtual machine."""

    def __init__(self, module: tvm.IRModule) -> None:
        program = linked(tvm.compile(module, target="llvm"))
        self.machine = relax.VirtualMachine(program, tvm.cpu())

    def run(self, function: str, arrays: list[Any]) -> list[np.ndarray]:
        """Outputs of a function, for its inputs (nested lists for tuples)."""

        def tensor(each: Any) -> Any:
            if isinstance(each, list):
                return tuple(tensor(part) for part in each)
            return tvm.runtime.tensor(each)

        return flat(self.machine[function](*map(tensor, arrays)))


def assert_same(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """Integers are equal, reals within 1e-5 of the largest in the tensor."""
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        if np.issubdtype(mine.dtype, np.floating):
            finite = np.abs(theirs[np.isfinite(theirs)])
            np.testing.assert_allclose(
                mine, theirs, rtol=1e-5, atol=1e-6 * float(finite.max(initial=0))
            )
        else:
            np.testing.assert_array_equal(mine, theirs)
