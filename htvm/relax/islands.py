"""Islands: the parts of a function that can be read as a network, cut out and put back.

A function of somebody else's may have bindings that no reader knows: calls of external functions,
of other code generators' regions, operators on other types.  What can be read between these is an
island.  A binding's level is the number of borders on the longest way to it; the readable bindings
of one block and level are an island, as no way from one of them to another leaves it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from tvm import relax

if TYPE_CHECKING:
    from tvm.ir import GlobalVar
    from tvm.relax import Binding, DataflowBlock, Function, Var

Readable: TypeAlias = Callable[["Binding"], bool]
"""Whether a binding can be part of an island."""


class Island:
    """Bindings of one dataflow block that are read together.

    Args:
        bindings: the bindings, in execution order.
        constants: bindings of the block that compute on constants alone; each island has its own.
        needed: whether a variable is read outside of the bindings.

    Attributes:
        bindings: the bindings.
        inputs: variables that they read and do not bind, in order of first use.
        outputs: variables that they bind and others read, in execution order.
    """

    def __init__(
        self,
        bindings: Sequence[Binding],
        constants: Sequence[Binding],
        needed: Callable[[Var], bool],
    ) -> None:
        self.bindings = bindings
        self._whole = _with_constants(bindings, constants)
        bound = {binding.var for binding in self._whole}
        read = [var for binding in self._whole for var in relax.analysis.free_vars(binding.value)]
        self.inputs = [var for var in dict.fromkeys(read) if var not in bound]
        self.outputs = [binding.var for binding in bindings if needed(binding.var)]

    def function(self) -> Function:
        """Return the island as a function of its inputs, which returns its outputs."""
        results = [relax.Var(f"{var.name}_result", var.ty) for var in self.outputs]
        copies = [relax.VarBinding(*pair) for pair in zip(results, self.outputs, strict=True)]
        block = relax.DataflowBlock([*self._whole, *copies])
        returned = results[0] if len(results) == 1 else relax.Tuple(results)
        made = relax.Function(list(self.inputs), relax.SeqExpr([block], returned), returned.ty)
        # The same variables stay in the function that the island is cut out of.
        return relax.utils.copy_with_new_vars(made)

    def call(self, name: GlobalVar) -> list[Binding]:
        """Return the bindings that take the island's place, given the name of its function."""
        called = relax.Call(name, list(self.inputs))
        if len(self.outputs) == 1:
            return [relax.VarBinding(self.outputs[0], called)]
        result = relax.DataflowVar("results", relax.TupleType([var.ty for var in self.outputs]))
        items = [relax.TupleGetItem(result, at) for at in range(len(self.outputs))]
        bound = zip(self.outputs, items, strict=True)
        return [relax.VarBinding(result, called), *(relax.VarBinding(*pair) for pair in bound)]


def _with_constants(bindings: Sequence[Binding], constants: Sequence[Binding]) -> list[Binding]:
    """Return bindings, after those of ``constants`` that they depend on."""
    read = {var for binding in bindings for var in relax.analysis.free_vars(binding.value)}
    found: list[Binding] = []
    for binding in reversed(constants):
        if binding.var in read:
            found.insert(0, binding)
            read.update(relax.analysis.free_vars(binding.value))
    return [*found, *bindings]


def parts_of(block: DataflowBlock, readable: Readable) -> list[Island | tuple[Binding, ...]]:
    """Return a block in an order of execution, as islands and the bindings between them.

    Args:
        block: the block.
        readable: whether a binding can be part of an island.
    """
    levels: dict[Var, tuple[int, bool]] = {}
    groups: dict[tuple[int, bool], list[Binding]] = {}
    readers: dict[Var, set[tuple[int, bool]]] = {}
    constants: list[Binding] = []
    constant: set[Var] = set()
    for binding in block.bindings:
        kind = readable(binding)
        free = relax.analysis.free_vars(binding.value)
        if kind and constant.issuperset(free) and isinstance(binding.var, relax.DataflowVar):
            constants.append(binding)
            constant.add(binding.var)
            continue
        read = [var for var in free if var in levels]
        before = (levels[var] for var in read)
        key = max((level + (other != kind) for level, other in before), default=0), kind
        levels[binding.var] = key
        groups.setdefault(key, []).append(binding)
        for var in read:
            readers.setdefault(var, set()).add(key)

    def needed(var: Var) -> bool:
        leaves = not isinstance(var, relax.DataflowVar)
        return leaves or bool(readers.get(var, set()) - {levels[var]})

    return [
        tuple(constants),
        *(
            Island(groups[key], constants, needed) if key[1] else tuple(groups[key])
            for key in sorted(groups)
        ),
    ]
