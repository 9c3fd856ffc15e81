"""Executing the integer form through TVM on the host: the reference for every build."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from byoc_dory.errors import InputError
from patterns.primitive import shape_of

if TYPE_CHECKING:
    from tvm.ir import IRModule

Array: TypeAlias = npt.NDArray[np.generic]
Reference: TypeAlias = Callable[[list[Array]], list[Array]]


def build_llvm_reference(module: IRModule) -> Reference:
    """Compile a module in the integer form for this machine, with LLVM in process.

    No C compiler is needed.  It uses nothing from `htvm.aot`, so that results can be compared with
    it.

    Args:
        module: module in the integer form, before partitioning, with the function ``main``.

    Returns:
        A function from the inputs (one array per parameter of ``main``, its shape and dtype) to
        the list of outputs.  It raises `InputError` for other inputs.
    """
    import tvm
    from tvm import relax

    # Higher levels of optimization take longer than they save in the few runs of a reference.
    target = tvm.target.Target({"kind": "llvm", "opt-level": 1})
    machine = relax.VirtualMachine(tvm.compile(module, target=target), tvm.cpu())
    params = [
        (str(param.name), shape_of(param), str(param.ty.dtype.dtype))
        for param in module["main"].params
    ]

    def run(inputs: list[Array]) -> list[Array]:
        if len(inputs) != len(params):
            raise InputError(f"{len(inputs)} inputs are given, but the model has {len(params)}")
        for array, (name, shape, dtype) in zip(inputs, params, strict=True):
            if array.shape != shape or array.dtype.name != dtype:
                raise InputError(
                    f"an array of {array.dtype.name} {list(array.shape)} is given",
                    where=f"input '{name}'",
                    hint=f"it takes {dtype} {list(shape)}",
                )
        result = machine["main"](*(tvm.runtime.tensor(np.asarray(a, order="C")) for a in inputs))
        if isinstance(result, tvm.runtime.Tensor):
            return [result.numpy()]
        return [field.numpy() for field in result]

    return run
