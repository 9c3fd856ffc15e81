"""Helper: small modules in the integer form, and running them through TVM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import IRModule

from htvm.vm import linked

Writer = Callable[..., Any]


def module_of(shapes: Sequence[tuple[int, ...]], write: Writer, dtype: str = "int8") -> IRModule:
    """A module whose ``main`` is what ``write(builder, *inputs)`` emits."""
    builder = relax.BlockBuilder()
    inputs = [
        relax.Var(f"input_{index}", relax.TensorType(shape, dtype))
        for index, shape in enumerate(shapes)
    ]
    with builder.function("main", inputs):
        with builder.dataflow():
            result = builder.emit_output(write(builder, *inputs))
        builder.emit_func_output(result)
    return builder.get()


def run_tvm(module: IRModule, *inputs: Any) -> Any:
    """``main`` executed by TVM on the host."""
    machine = relax.VirtualMachine(linked(relax.build(module, "llvm")), tvm.cpu())
    return machine["main"](*(tvm.runtime.tensor(np.asarray(x, order="C")) for x in inputs)).numpy()
