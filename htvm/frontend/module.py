"""Loading Relax modules: in quantize/dequantize form, or already in the integer form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm import relax
from tvm.ir import IRModule

from byoc_dory.errors import IntegerFormError, ModelError, UnsupportedError
from byoc_dory.layers import AnalogRequant, MulShift, OnnxRequant, Shift, TfliteRequant
from htvm.frontend.check import check
from htvm.frontend.integerize import integer_module
from htvm.frontend.operators import info_of
from htvm.frontend.qdq import read_qdq
from htvm.model import Model, TensorInfo, model_name
from patterns.names import NameCounter, name_of, with_name
from patterns.primitive import dtype_of, shape_of
from patterns.reading.read import bindings_of, kind_of_operator, main_of, operators, output_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patterns.reading.read import Node

__all__ = ["load_module", "scheme_of"]


def load_module(source: Any, name: str | None = None) -> Model:
    """Load a Relax IRModule.

    Args:
        source: the module; function ``main`` in quantize/dequantize form, as TVM's importers write
            it, or in the integer form.
        name: name of the model; ``"model"`` by default.

    Raises:
        ModelError: it is not an IRModule.
        UnsupportedError: a size is not known, or it uses an unsupported operator or quantization.
        IntegerFormError: it is in neither form.
    """
    if not isinstance(source, IRModule):
        raise ModelError(
            f"a {type(source).__name__} is not a model",
            where="what was given as the model",
            hint="give the path of a .tflite or .onnx file, or a Relax IRModule",
        )
    symbol = model_name(name or "model")
    _refuse_unknown_sizes(source)
    if _is_qdq(source):
        network = read_qdq(source)
        module = integer_module(network.inputs, network.outputs)
        nodes = check(module)
        return Model(
            name=symbol,
            module=module,
            inputs=tuple(info_of(key, item, network.steps) for key, item in network.inputs),
            outputs=tuple(
                info_of(label, item, network.steps)
                for label, item in zip(
                    _distinct(output_names(module)), network.outputs, strict=True
                )
            ),
            scheme=scheme_of(nodes),
        )
    # Operators that no result needs would be placed and tiled, but never called.
    module = relax.transform.DeadCodeElimination(["main"])(_named(source))
    nodes = check(module)
    types = {node.name: (node.output_shape, node.output_dtype) for node in nodes}
    main = main_of(module)
    types.update((str(param.name), (shape_of(param), dtype_of(param))) for param in main.params)
    results = output_names(module)
    return Model(
        name=symbol,
        module=module,
        inputs=tuple(TensorInfo(str(p.name), shape_of(p), dtype_of(p)) for p in main.params),
        outputs=tuple(
            TensorInfo(label, *types[name])
            for label, name in zip(_distinct(results), results, strict=True)
        ),
        scheme=scheme_of(nodes),
    )


def scheme_of(nodes: Sequence[Node]) -> str:
    """The requantization that the layers use: one of the schemes of `Model`, or ``"mixed"``."""
    names = {
        Shift: "shift",
        MulShift: "mul_shift",
        TfliteRequant: "tflite",
        OnnxRequant: "onnx",
        AnalogRequant: "ternary",
    }
    found = {names[type(node.scaled.requant)] for node in nodes if node.scaled is not None}
    if len(found) > 1:
        return "mixed"
    return found.pop() if found else "tflite"


def _distinct(names: Sequence[str]) -> list[str]:
    """Return the names, with numbers appended if a tensor is returned again."""
    result: list[str] = []
    for name in names:
        label, number = name, 1
        while label in result or (number > 1 and label in names):
            number += 1
            label = f"{name}_{number}"
        result.append(label)
    return result


def _refuse_unknown_sizes(module: IRModule) -> None:
    """Check that the shapes of all tensors are numbers.

    Raises:
        UnsupportedError: the message names the first size that is none, and its tensor.
    """
    main = main_of(module)
    places = [(param, "parameter") for param in main.params]
    places += [(var, "variable") for var, _ in bindings_of(main)]
    for var, what in places:
        if not isinstance(var.ty, relax.TensorType):
            continue
        where = f"{what} '{var.name}' of function 'main'"
        if var.ty.shape is None:
            raise UnsupportedError(
                "the shape of a tensor is not known when compiling",
                where=where,
                hint="replace the operator that computes it; a shape must not depend on values",
            )
        for axis, size in enumerate(var.ty.shape):
            if not hasattr(size, "value"):
                raise UnsupportedError(
                    f"dimension {axis} of a tensor is '{size}', and must be a number",
                    where=where,
                    hint="bind the sizes first: tvm.relax.transform.BindSymbolicVars",
                )


def _is_qdq(module: IRModule) -> bool:
    names = {
        str(getattr(getattr(value, "op", None), "name", ""))
        for _, value in bindings_of(main_of(module))
    }
    return bool(names & {"relax.quantize", "relax.dequantize"})


def _named(module: IRModule) -> IRModule:
    """Return the module, with its operators named if none of them is."""
    main = main_of(module)
    if any(name_of(value) is not None for _, value in bindings_of(main)):
        return module
    counter = NameCounter(tuple(str(param.name) for param in main.params))
    names = {}
    for operator in operators(module):
        try:
            name = counter.fresh(kind_of_operator(module, operator))
        except IntegerFormError as error:
            where = f"variable '{operator.var.name}' of function 'main', {error.where}"
            raise IntegerFormError(error.what, where=where, hint=error.hint) from error
        names.update(dict.fromkeys(operator.parts, name))
    blocks = []
    for block in main.body.blocks:
        bindings = [
            relax.VarBinding(binding.var, with_name(binding.value, names[binding.var]))
            if binding.var in names and isinstance(binding.value, relax.Call)
            else binding
            for binding in block.bindings
        ]
        blocks.append(type(block)(bindings))
    body = relax.SeqExpr(blocks, main.body.body)
    functions = dict(module.functions.items())
    key = next(var for var in functions if str(var.name_hint) == "main")
    functions[key] = relax.Function(
        main.params, body, main.ret_ty, main.is_pure, main.attrs, main.span
    )
    return relax.transform.Normalize()(IRModule(functions, attrs=module.attrs))
