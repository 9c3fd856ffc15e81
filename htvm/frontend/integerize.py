"""Writing the operators of a quantized network as a module in the integer form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from byoc_dory.errors import HtvmError
from htvm.frontend.bounds import check_sizes
from htvm.frontend.operators import Activation, Applied
from patterns.names import NameCounter, tensor_name

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import BlockBuilder, Var

__all__ = ["integer_module", "named_module"]


def integer_module(
    inputs: Sequence[tuple[str, Activation]], outputs: Sequence[Activation]
) -> IRModule:
    """Write the operators that the outputs need, in the source's order.

    Args:
        inputs: name and tensor of each parameter of ``main``.
        outputs: tensors that ``main`` returns; a tuple if there are several.

    Raises:
        UnsupportedError: a constant, an accumulator or a number of elements does not fit int32, a
            bound is exceeded (`htvm.frontend.bounds`), or a builder refuses its operator.
        ModelError: a tensor is empty.
    """
    return named_module(inputs, outputs)[0]


def named_module(
    inputs: Sequence[tuple[str, Activation]], outputs: Sequence[Activation]
) -> tuple[IRModule, dict[Activation, str]]:
    """Return the result of `integer_module`, and the name of each tensor."""
    from tvm import relax

    operators = _in_order(outputs)
    check_sizes(operators)
    builder = relax.BlockBuilder()
    writer = _Writer(builder, NameCounter(tuple(name for name, _ in inputs)))
    for name, activation in inputs:
        variable = relax.Var(name, relax.TensorType(activation.shape, activation.dtype))
        writer.variables[activation] = variable
    parameters = [writer.variables[activation] for _, activation in inputs]
    refused: HtvmError | None = None
    names = {activation: name for name, activation in inputs}
    with builder.function("main", parameters):
        with builder.dataflow():
            results = list(parameters)
            try:
                for operator, activation in operators:
                    variable = writer.write(operator)
                    writer.variables[activation] = variable
                    names[activation] = tensor_name(builder.lookup_binding(variable))
                results = [writer.variables[item] for item in outputs]
            except HtvmError as error:
                # Raised below: TVM warns if a builder is abandoned in the middle.
                refused = error
            results = [builder.emit_output(result) for result in results]
        builder.emit_func_output(results[0] if len(results) == 1 else relax.Tuple(results))
    if refused is not None:
        raise refused
    return builder.get(), names


def _in_order(outputs: Sequence[Activation]) -> list[tuple[Applied, Activation]]:
    """Return each operator that the outputs need, with its result, by position."""
    found: dict[Activation, Applied] = {}
    waiting = list(outputs)
    while waiting:
        activation = waiting.pop()
        if activation in found or isinstance(activation.origin, str):
            continue
        found[activation] = activation.origin
        waiting.extend(activation.origin.inputs)
    return [(found[item], item) for item in sorted(found, key=lambda item: found[item].position)]


class _Writer:
    """Writes operators, and names them."""

    def __init__(self, builder: BlockBuilder, names: NameCounter) -> None:
        self.variables: dict[Activation, Var] = {}
        self._builder = builder
        self._names = names

    def write(self, operator: Applied) -> Var:
        """Write one operator whose inputs have been written."""
        sources = [self.variables[activation] for activation in operator.inputs]
        name = self._names.fresh(operator.stem or operator.op.stem)
        return operator.op.write(self._builder, sources, name)
