"""Loading Relax modules: in quantize/dequantize form, or already in the integer form."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm import relax
from tvm.ir import IRModule

from byoc_dory.errors import IntegerFormError, ModelError, UnsupportedError
from htvm.frontend.check import check
from htvm.frontend.integerize import scheme_of
from htvm.frontend.onnx import model_of, network_of, tflite_qdq
from htvm.frontend.onnx.dialect import Options
from htvm.frontend.onnx.file import read_file
from htvm.frontend.relax_onnx import onnx_of
from htvm.model import Model, Placed, TensorInfo, model_name
from patterns.byoc.contract import (
    check_region,
    is_region,
    region_of,
    target_of,
    without_regions,
)
from patterns.names import NameCounter, name_of, with_name
from patterns.primitive import dtype_of, kind_of
from patterns.reading.read import kind_of_operator
from patterns.reading.walk import bindings_of, main_of, operators

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tvm.relax import Function

_QUANTIZE = "htvm.quantize(module, target, data) makes an int8 model of a network in reals"


def load_module(source: Any, name: str | None = None) -> Model:
    """Load a Relax IRModule.

    Args:
        source: the module; function ``main`` as TVM's importers of TFLite, ONNX and torch write it
            (float ones compute in float32), or in the integer form.
        name: name of the model; ``"model"`` by default.

    Raises:
        ModelError: it is not an IRModule.
        UnsupportedError: a size is not known, it uses an unsupported operator or quantization, or
            it has regions of another code generator or of several targets.
        IntegerFormError: it is in neither form.
    """
    if not isinstance(source, IRModule):
        raise ModelError(
            f"a {type(source).__name__} is not a model",
            where="what was given as the model",
            hint="give the path of a .tflite or .onnx file, or a Relax IRModule",
        )
    if any(is_region(function) for function in source.functions.values()):
        return _of_partitioned(source, name)
    symbol = model_name(name or "model")
    _refuse_generators(source)
    refuse_unknown_sizes(main_of(source))
    zero_points = _zero_points(source)
    if any(found != wanted for found, wanted in zero_points):
        return _named_outputs(_of_onnx(source, symbol, tflite=True))
    if zero_points:
        return _of_onnx(source, symbol)
    try:
        return _of_integer_form(source, symbol)
    except IntegerFormError as error:
        bindings = bindings_of(main_of(source))
        if any(kind_of(source, value) is not None for _, value in bindings):
            raise  # an operator was written by a class of `patterns.ops`
        try:
            return _of_onnx(source, symbol)
        except UnsupportedError as refusal:
            if not _has_reals(source):
                raise error from None
            refusal.hint = f"{refusal.hint}; {_QUANTIZE}" if refusal.hint else _QUANTIZE
            raise


def _of_partitioned(source: IRModule, name: str | None) -> Model:
    """Read a module that `htvm.relax.Partition` made, with the places of its layers."""
    targets: set[str] = set()
    places: dict[str, str] = {}
    for var, function in source.functions.items():
        if is_region(function):
            symbol = str(var.name_hint)
            check_region(symbol, function)
            region = region_of(symbol, function)
            targets.add(target_of(function))
            layers = (layer.name for layer in region.layers)
            places |= zip(layers, region.homes, strict=True)
    if len(targets) > 1:
        raise UnsupportedError(
            f"regions of {' and '.join(sorted(targets))} in one module",
            where="function 'main'",
            hint="partition it for one target",
        )
    model = load_module(without_regions(source), name)
    return replace(model, placed=Placed(targets.pop(), places))


def _refuse_generators(module: IRModule) -> None:
    """Refuse functions that other code generators will compile."""
    for var, function in module.functions.items():
        attributes = getattr(function, "attrs", None)
        if attributes is not None and "Codegen" in attributes:
            raise UnsupportedError(
                f"a region of the code generator '{attributes['Codegen']}', which makes no C here",
                where=f"function '{var.name_hint}'",
                hint="build the module before it is partitioned for that one, or run it in "
                "relax.VirtualMachine",
            )


def _of_onnx(source: IRModule, name: str, *, tflite: bool = False) -> Model:
    """Read a module as TVM's importers write it, as the ONNX file that it means.

    Args:
        source: the module.
        name: name of the model.
        tflite: whether it comes from a TFLite file, and means TFLite's arithmetic.
    """
    model = onnx_of(source, tflite=tflite)
    with tempfile.TemporaryDirectory(prefix="htvm-") as folder:
        path = Path(folder) / "the module"  # what messages call it
        path.write_bytes(model.SerializeToString())
        graph = read_file(path)
    if tflite:
        return model_of(graph, tflite_qdq.read(graph), name)
    return replace(model_of(graph, network_of(graph, Options()), name), source="")


def _named_outputs(model: Model) -> Model:
    """Return a model whose outputs have the names of the operators that compute them."""
    labels = _distinct(model.graph.results)
    pairs = zip(model.outputs, labels, strict=True)
    return replace(model, outputs=tuple(replace(info, name=label) for info, label in pairs))


def _of_integer_form(source: IRModule, name: str) -> Model:
    # Operators that no result needs would be placed and tiled, but never called.
    module = relax.transform.DeadCodeElimination(["main"])(_named(source))
    graph = check(module)
    types = dict(graph.inputs) | {node.name: node.result for node in graph.in_order}

    def info(label: str, name: str) -> TensorInfo:
        return TensorInfo(label, types[name].shape, types[name].dtype)

    return Model(
        name=name,
        graph=graph,
        inputs=tuple(info(name, name) for name, _ in graph.inputs),
        outputs=tuple(map(info, _distinct(graph.results), graph.results)),
        scheme=scheme_of(graph.in_order),
    )


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


def refuse_unknown_sizes(main: Function, name: str = "main") -> None:
    """Check that the shapes of all tensors of a function, given its name, are numbers.

    Raises:
        UnsupportedError: the message names the first size that is none, and its tensor.
    """
    places = [(param, "parameter") for param in main.params]
    places += [(var, "variable") for var, _ in bindings_of(main)]
    for var, what in places:
        if not isinstance(var.ty, relax.TensorType):
            continue
        where = f"{what} '{var.name}' of function '{name}'"
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


def _zero_points(module: IRModule) -> list[tuple[str, str]]:
    """Return the types of all zero points, and of the tensors that they quantize.

    ONNX's have the type of their tensor.  TVM's TFLite importer writes int32, which tells whose
    arithmetic a module means.
    """
    found = []
    for _, value in bindings_of(main_of(module)):
        name = str(getattr(getattr(value, "op", None), "name", ""))
        if name in ("relax.quantize", "relax.dequantize"):
            quantized = dtype_of(value if name == "relax.quantize" else value.args[0])
            found.append((dtype_of(value.args[2]), quantized))
    return found


def _has_reals(module: IRModule) -> bool:
    main = main_of(module)
    variables = [*main.params, *(var for var, _ in bindings_of(main))]
    return any(dtype_of(var).startswith("float") for var in variables)


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
