"""The reference: the results of all operators of the integer form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from htvm.aot.reference import build_llvm_reference

if TYPE_CHECKING:
    from tvm.ir import IRModule


def operator_results(
    module: IRModule, inputs: Sequence[npt.NDArray[Any]]
) -> dict[str, npt.NDArray[Any]]:
    """Compute the results of all operators, and of the inputs, by name.

    Args:
        module: module in the integer form, before partitioning.
        inputs: one array per parameter of ``main``.

    Returns:
        Name of operator (or input) -> array in the module's own layout.  Operators with several
        results are left out.
    """
    main = module["main"]
    names, extended = _with_all_results(module)
    arrays = build_llvm_reference(extended)(list(inputs))
    found: dict[str, npt.NDArray[Any]] = dict(zip(names, arrays, strict=True))
    parameters: Mapping[str, npt.NDArray[Any]] = {
        str(param.name): array for param, array in zip(main.params, inputs, strict=True)
    }
    return {**parameters, **found}


def _with_all_results(module: IRModule) -> tuple[list[str], IRModule]:
    """The module with every operator's last value as a result of ``main``, and their names."""
    from tvm import relax

    from patterns.names import name_of

    main = module["main"]
    last: dict[str, Any] = {}
    blocks = list(main.body.blocks)
    for block in blocks:
        for binding in block.bindings:
            name = name_of(binding.value)
            if name is not None and isinstance(binding.var.ty, relax.TensorType):
                last[name] = binding.var
    together = relax.Tuple(list(last.values()))
    every = relax.Var("every_result", relax.TupleType([var.ty for var in last.values()]))
    ending = blocks[-1]
    bindings = [*ending.bindings, relax.VarBinding(every, together)]
    blocks[-1] = relax.DataflowBlock(bindings)
    function = relax.Function(
        main.params, relax.SeqExpr(blocks, every), every.ty, main.is_pure, main.attrs
    )
    extended = module.clone()
    extended["main"] = function
    return list(last), extended
