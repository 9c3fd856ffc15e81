"""The walk over a module, and the nodes and constants that it writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from tvm import relax
from tvm.ir import GenericConst

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Array
from patterns.primitive import dtype_of, shape_of
from patterns.reading.walk import bindings_of, main_of

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, ValueInfoProto
    from tvm.ir import IRModule
    from tvm.relax import Call, Expr, Var
    from tvm.tirx import PrimFunc

OPSET = 21  # the first with quantized 16-bit tensors

_Names: TypeAlias = "str | tuple[str, ...]"


class Writer:
    """Walks ``main`` once; each variable gets the name of a tensor, or names of several.

    Args:
        module: the module.
        handlers: function for each operator that writes a call, and returns the results' names.
        join: takes the name of a result, and returns that of one that takes its place, or itself.
        tflite: whether the module comes from TVM's TFLite importer.
    """

    def __init__(
        self,
        module: IRModule,
        handlers: Mapping[str, Handler],
        join: Callable[[Writer, str], str],
        *,
        tflite: bool = False,
    ) -> None:
        self.tflite = tflite
        self._module, self._handlers, self._join = module, handlers, join
        self._main = main_of(module)
        self._names: dict[Var, _Names] = {}
        self._taken: set[str] = {str(param.name) for param in self._main.params}
        self._nodes: list[NodeProto] = []
        self._maker: dict[str, NodeProto] = {}
        self._constants: dict[str, Array] = {}
        self._constant_names: dict[Expr, str] = {}
        self._reads = self._count_reads()
        self._label = ""
        self.where = ""

    def written(self) -> ModelProto:
        """Write all bindings, and return the model."""
        from onnx import helper, numpy_helper

        inputs = [self._input(param) for param in self._parameters()]
        for var, value in bindings_of(self._main):
            self._label = str(var.name)
            self._names[var] = self._evaluate(value)
        self.where = "the outputs of 'main'"
        returned, types = self.names(self._main.body.body), self._main.ret_ty
        results = (returned,) if isinstance(returned, str) else returned
        outputs = []
        for index, name in enumerate(results):
            # The importers drop the names of outputs.
            self._label = "output" if len(results) == 1 else f"output_{index}"
            outputs.append(self.node("Identity", [name]))
        nodes, needed = self._needed(outputs)
        graph = helper.make_graph(
            nodes,
            "main",
            inputs,
            [helper.make_empty_tensor_value_info(name) for name in outputs],
            [
                numpy_helper.from_array(array, name)
                for name, array in self._constants.items()
                if name in needed
            ],
        )
        fields = types.fields if isinstance(types, relax.TupleType) else [types]
        for value, found in zip(graph.output, fields, strict=True):
            value.CopyFrom(_declared(value.name, found))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])

    # -------------------------------------------------------------------------- for handlers

    def unsupported(self, what: str, hint: str = "") -> UnsupportedError:
        """Return an error about the current binding."""
        return UnsupportedError(what, where=self.where, hint=hint)

    def node(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Write a node with one result, and return the result's name."""
        return self.nodes(op, inputs, 1, **attributes)[0]

    def same(self, call: Call, op: str, **attributes: Any) -> str:
        """Write a call as a node with the same arguments, and return the result's name.

        Args:
            call: the call.
            op: the node's operator.
            attributes: those of the node: values, or types, which those of the call are made.
        """
        made = {
            name: kind(getattr(call.attrs, name)) if isinstance(kind, type) else kind
            for name, kind in attributes.items()
        }
        return self.node(op, [self.name(arg) for arg in call.args], **made)

    def nodes(self, op: str, inputs: Sequence[str], count: int, **attributes: Any) -> _Several:
        """Write a node with several results, and return their names."""
        from onnx import helper

        results = tuple(self._fresh(self._label) for _ in range(count))
        made = helper.make_node(op, list(inputs), list(results), name=results[0], **attributes)
        self._nodes.append(made)
        self._maker.update(dict.fromkeys(results, made))
        return results

    def constant(self, values: Any, dtype: str | None = None) -> str:
        """Write a constant, and return its name."""
        name = self._fresh("constant")
        self._constants[name] = np.asarray(values, dtype)
        return name

    def name(self, expr: Expr) -> str:
        """Return the name of a tensor that is an argument."""
        names = self.names(expr)
        if not isinstance(names, str):
            raise self.unsupported("a tuple where a tensor is expected")
        return names

    def names(self, expr: Expr) -> _Names:
        """Return the name of an argument, or the names of its fields."""
        if isinstance(expr, GenericConst):
            if expr not in self._constant_names:
                self._constant_names[expr] = self.constant(expr.value.numpy())
            return self._constant_names[expr]
        if isinstance(expr, relax.ShapeExpr):
            return self.constant([self.integer(size) for size in expr.values], "int64")
        if isinstance(expr, relax.Var) and expr in self._names:
            return self._names[expr]
        if isinstance(expr, relax.Tuple):
            return tuple(self.name(field) for field in expr.fields)
        raise self.unsupported(f"an argument of kind {type(expr).__name__}")

    def integer(self, value: Any) -> int:
        """Return a size or another integer that must be known."""
        return int(self.number(value))

    def number(self, value: Any) -> float:
        """Return a number that must be known."""
        found = getattr(value, "value", value)
        if not isinstance(found, int | float):
            raise self.unsupported(
                f"the number '{value}' is computed at run time", "make it constant"
            )
        return found

    def maker(self, name: str, *ops: str) -> NodeProto | None:
        """Return the node that computes a tensor, if it is of some operators, or of any."""
        found = self._maker.get(name)
        return found if found is not None and found.op_type in (ops or [found.op_type]) else None

    def value(self, name: str) -> Array | None:
        """Return the elements of a tensor that is a constant."""
        return self._constants.get(name)

    def sole_maker(self, expr: Expr, *ops: str) -> NodeProto | None:
        """Return the same for an argument, if nothing else reads it."""
        read = isinstance(expr, relax.Var) and self._reads[expr] == 1
        return self.maker(self.name(expr), *ops) if read else None

    def scaled(self, name: str) -> tuple[str, float]:
        """Return a tensor and its factor, if a tensor is the product of one and a scalar."""
        product = self.maker(name, "Mul")
        factor = None if product is None else self.value(product.input[1])
        if product is None or factor is None or factor.shape != ():
            return name, 1.0
        return str(product.input[0]), float(factor)

    def vector(self, expr: Expr, size: int, axis: int) -> str:
        """Return the name of a vector of constants that an argument spreads along an axis, or "".

        Args:
            expr: the argument.
            size: number of its elements.
            axis: axis along which they lie, counted from the end (-1 is the last).
        """
        shape = shape_of(expr)
        if shape not in ((size,), (1,) * (len(shape) + axis) + (size,) + (1,) * (-1 - axis)):
            return ""
        if shape == (size,) and axis != -1 and size != 1:
            return ""
        name = self.name(expr)
        made = self._maker.get(name)
        if name in self._constants:
            return self.constant(self._constants[name].reshape(-1))
        if made is not None and made.op_type == "Reshape":
            name = str(made.input[0])
            made = self._maker.get(name)
        dequantized = made is not None and made.op_type == "DequantizeLinear"
        constant = name in self._constants or (
            dequantized and made is not None and made.input[0] in self._constants
        )
        return name if constant else ""

    def replace(self, made: NodeProto, op: str, inputs: Sequence[str]) -> str:
        """Write a node in place of one that nothing else reads, with its attributes."""
        from onnx.helper import get_attribute_value

        self._nodes.remove(made)
        attributes = {item.name: get_attribute_value(item) for item in made.attribute}
        return self.node(op, inputs, domain=made.domain, **attributes)

    def function(self, call: Call) -> PrimFunc:
        """Return the loop nest that a ``call_tir`` runs."""
        found = self._module[call.args[0]]
        return found

    # ---------------------------------------------------------------------------- the walk

    def _parameters(self) -> list[Var]:
        """Return the inputs; parameters behind them that the module has as data are constants."""
        params, attrs = list(self._main.params), self._main.attrs
        if attrs is None or "params" not in attrs:
            return params
        first = int(attrs["num_input"])
        if first == len(params):  # TVM's TFLite importer lists its constants all the same
            return params
        for param, data in zip(params[first:], attrs["params"], strict=True):
            self._names[param] = self.constant(data.numpy())
        return params[:first]

    def _input(self, param: Var) -> ValueInfoProto:
        self.where = f"input '{param.name}'"
        self._names[param] = str(param.name)
        return _declared(str(param.name), param.ty)

    def _evaluate(self, value: Expr) -> _Names:
        self.where = f"variable '{self._label}'"
        if isinstance(value, relax.TupleGetItem):
            return self.names(value.tuple_value)[value.index]
        if not isinstance(value, relax.Call):
            return self.names(value)
        name = str(getattr(value.op, "name", type(value.op).__name__))
        self.where = f"operator '{name}' bound to variable '{self._label}'"
        handler = self._handlers.get(name)
        if handler is None:
            raise self.unsupported(
                f"operator '{name}' is not supported",
                f"supported are {', '.join(sorted(self._handlers))}",
            )
        result = handler(self, value)
        return self._join(self, result) if isinstance(result, str) else result

    def _count_reads(self) -> Counter[Var]:
        """Count how often each variable is read."""
        reads: Counter[Var] = Counter()

        def visit(expr: Expr) -> None:
            if isinstance(expr, relax.Var):
                reads[expr] += 1

        for _, value in bindings_of(self._main):
            relax.analysis.post_order_visit(value, visit)
        relax.analysis.post_order_visit(self._main.body.body, visit)
        return reads

    def _fresh(self, wish: str) -> str:
        name, number = wish, 1
        while name in self._taken:
            name, number = f"{wish}_{number}", number + 1
        self._taken.add(name)
        return name

    def _needed(self, outputs: Sequence[str]) -> tuple[list[NodeProto], set[str]]:
        """Return the nodes that the outputs need, and the names of all tensors that they read."""
        read = set(outputs)
        nodes = []
        for node in reversed(self._nodes):
            if read.intersection(node.output):
                nodes.append(node)
                read.update(node.input)
        return nodes[::-1], read


Handler: TypeAlias = Callable[[Writer, "Call"], "str | tuple[str, ...]"]
_Several: TypeAlias = tuple[str, ...]


def _declared(name: str, found: Any) -> ValueInfoProto:
    from onnx import helper

    var = relax.Var(name, found)
    if not isinstance(found, relax.TensorType) or dtype_of(var) in ("uint1", ""):
        raise UnsupportedError(
            f"an input or output of type {found}",
            where=f"'{name}' of function 'main'",
            hint="give each tensor as a parameter or result of its own, of a type of ONNX",
        )
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(dtype_of(var)))
    return helper.make_tensor_value_info(name, dtype, shape_of(var))
