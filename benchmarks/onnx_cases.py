"""The node tests of the package onnx, read by this project: what passes, and what is refused.

    python -m benchmarks.onnx_cases [--write docs/onnx-cases.md]

Each case is one operator with inputs and the results that the standard gives.  It is read in three
forms: as it is, with all inputs but the first real one as constants, and with its reals quantized
to uint8 (scale and zero point from the results).  What is read is run by the interpreter of the
integer form, and compared: the first two within the tolerance of the cases, the third within one
step.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import htvm
from benchmarks.mutant import failure
from htvm.frontend.onnx.dialect import READERS

__all__ = ["FORMED", "FORMS", "Outcome", "cases", "run", "table"]

_FLOAT = TensorProto.FLOAT
_TYPES = {TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL,
          TensorProto.UINT8, TensorProto.INT8}  # fmt: skip
FORMS = ("as it is", "constants folded", "quantized")


@dataclass(frozen=True)
class Outcome:
    """What became of a case in one form: passed, refused, wrong or crashed; and why."""

    case: str
    operator: str
    form: str
    result: str
    reason: str = ""


def _known() -> set[str]:
    """The standard operators that any reader has."""
    return {op for entry in READERS.values() for op in entry.load().handlers}


def cases() -> list[Any]:
    """Return the cases of one standard operator that we have, on tensors, reals among them."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    known, result = _known(), []
    for case in found:
        graph = case.model.graph
        values = [*graph.input, *graph.output]
        if len(graph.node) != 1 or graph.node[0].domain or graph.node[0].op_type not in known:
            continue
        if any(value.type.WhichOneof("value") != "tensor_type" for value in values):
            continue
        types = {value.type.tensor_type.elem_type for value in values}
        if types <= _TYPES and _FLOAT in types and case.data_sets:
            result.append(case)
    return sorted(result, key=lambda case: case.name)


def run(case: Any, form: str, interpret: Callable[..., Any]) -> Outcome:
    """Return the outcome of a case in a form.

    Args:
        case: of the package onnx.
        form: one of `FORMS`.
        interpret: runs a module of the integer form on a list of arrays.
    """
    operator = case.model.graph.node[0].op_type
    inputs, outputs = (list(part) for part in case.data_sets[0])

    def outcome(result: str, reason: str = "") -> Outcome:
        return Outcome(case.name, operator, form, result, reason)

    if any(not isinstance(item, np.ndarray) for item in (*inputs, *outputs)):
        return outcome("left out", "no tensors")
    made = FORMED[form](case.model, inputs, outputs)
    if made is None:
        return outcome("left out", "it has no such form")
    model, given, expected, tolerance = made
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.onnx"
        path.write_bytes(model.SerializeToString())
        try:
            loaded = htvm.load(path)
        except Exception as error:  # noqa: BLE001
            return outcome(*failure(error))
        types = [item.dtype for item in loaded.inputs]
        cast = [array.astype(dtype) for array, dtype in zip(given, types, strict=True)]
        if any((a != b).any() for a, b in zip(cast, given, strict=True)):
            return outcome("wrong", f"it takes {', '.join(types)}")
        try:
            with np.errstate(all="ignore"):
                found = interpret(loaded.module, cast).outputs
        except Exception as error:  # noqa: BLE001
            return outcome("crashed", f"{type(error).__name__}: {error}")
    for got, wanted in zip(found, expected, strict=True):
        if got.shape != wanted.shape:
            return outcome("wrong", f"shape {got.shape} for {wanted.shape}")
        if not np.allclose(got, wanted, rtol=1e-3, atol=tolerance, equal_nan=True):
            worst = np.nanmax(np.abs(got.astype("float64") - wanted.astype("float64")))
            return outcome("wrong", f"off by {worst:g}")
    return outcome("passed")


# ------------------------------------------------------------------------------ forms


def _as_it_is(model: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    return model, list(inputs), list(outputs), 1e-6


def _first_real(model: Any, inputs: Sequence[Any]) -> int | None:
    names = [value.name for value in model.graph.input]
    for index, array in enumerate(inputs):
        if array.dtype == np.float32 and array.size and names[index] in model.graph.node[0].input:
            return index
    return None


def _constants(model: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    first = _first_real(model, inputs)
    if first is None or len(inputs) == 1:
        return None
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    values = list(copy.graph.input)
    del copy.graph.input[:]
    for index, (value, array) in enumerate(zip(values, inputs, strict=True)):
        if index == first:
            copy.graph.input.append(value)
        else:
            copy.graph.initializer.append(numpy_helper.from_array(array, value.name))
    return copy, [inputs[first]], list(outputs), 1e-6


_LAYERS = ("Conv", "ConvTranspose", "Gemm", "MatMul")


def _quantized(model: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    """Return the case between DequantizeLinear and QuantizeLinear, and what the standard gives."""
    first = _first_real(model, inputs)
    if first is None or len(outputs) != 1 or outputs[0].dtype != np.float32 or not outputs[0].size:
        return None
    node = onnx.NodeProto.FromString(model.graph.node[0].SerializeToString())
    names = [value.name for value in model.graph.input]
    constants: dict[str, Any] = {}
    nodes = []
    for index, array in enumerate(inputs):
        name = names[index]
        if index != first and node.op_type in _LAYERS and index < 2 and array.dtype == np.float32:
            scale = np.float32(max(float(np.abs(array).max()), 1e-3) / 127)
            constants |= {f"{name}_q": np.rint(array / scale).astype(np.int8), f"{name}_s": scale,
                          f"{name}_z": np.int8(0)}  # fmt: skip
            operands = [f"{name}_q", f"{name}_s", f"{name}_z"]
            nodes.append(helper.make_node("DequantizeLinear", operands, [name]))
        elif index != first:
            constants[name] = array
    x, result = names[first], node.output[0]
    for label, array in ((x, inputs[first]), ("result", outputs[0])):
        finite = array[np.isfinite(array)]
        if not finite.size:
            return None
        low, high = min(float(finite.min()), 0.0), max(float(finite.max()), 0.0)
        scale = np.float32(max(high - low, 1e-3) / 255)
        constants[f"{label}_s"] = scale
        constants[f"{label}_z"] = np.uint8(np.clip(np.rint(-low / scale), 0, 255))
    scales = {label: [f"{label}_s", f"{label}_z"] for label in (x, "result")}
    del node.output[1:]
    nodes += [
        helper.make_node("QuantizeLinear", ["real_in", *scales[x]], ["in_q"]),
        helper.make_node("DequantizeLinear", ["in_q", *scales[x]], [x]),
        node,
        helper.make_node("QuantizeLinear", [result, *scales["result"]], ["out_q"]),
        helper.make_node("DequantizeLinear", ["out_q", *scales["result"]], ["real_out"]),
    ]
    graph = helper.make_graph(
        nodes,
        "quantized",
        [helper.make_tensor_value_info("real_in", _FLOAT, inputs[first].shape)],
        [helper.make_tensor_value_info("real_out", _FLOAT, outputs[0].shape)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    version = max(entry.version for entry in model.opset_import if not entry.domain)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", max(version, 10))])
    from onnx.reference import ReferenceEvaluator

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            expected = ReferenceEvaluator(made).run(None, {"real_in": inputs[first]})
    except Exception:  # noqa: BLE001
        return None
    return made, [inputs[first]], expected, float(constants["result_s"]) * 1.01


FORMED = {"as it is": _as_it_is, "constants folded": _constants, "quantized": _quantized}


# ------------------------------------------------------------------------------ table


def outcomes(interpret: Callable[..., Any]) -> Iterator[Outcome]:
    """Yield the outcome of every case in every form."""
    for case in cases():
        for form in FORMS:
            yield run(case, form, interpret)


def table(found: Sequence[Outcome]) -> str:
    """Return the page with all outcomes, in Markdown."""
    lines = [
        "# ONNX node cases",
        "",
        "The package onnx has test cases for its operators. Those of operators that we read are "
        "run here in three forms: as they are, with all inputs but the first real one as "
        "constants, and quantized to uint8. "
        "`python -m benchmarks.onnx_cases --write docs/onnx-cases.md` writes this page; a slow "
        "test checks it.",
        "",
        "| form | cases | passed | refused | wrong | crashed |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for form in FORMS:
        counts = Counter(item.result for item in found if item.form == form)
        total = sum(counts.values()) - counts["left out"]
        lines.append(
            f"| {form} | {total} | {counts['passed']} | {counts['refused']} | {counts['wrong']} | "
            f"{counts['crashed']} |"
        )
    best: dict[str, str] = {}
    for item in found:
        if item.result == "passed" or item.case not in best:
            best[item.case] = item.result
    passed = sum(result == "passed" for result in best.values())
    lines += ["", f"Of {len(best)} cases, {passed} pass in at least one form.", ""]
    lines += ["| operator | case | " + " | ".join(FORMS) + " |", "|---|---|" + "---|" * len(FORMS)]
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for item in found:
        text = item.result if not item.reason else f"{item.result}: {_short(item.reason)}"
        if item.result == "left out":
            text = ""
        rows.setdefault((item.operator, item.case), {})[item.form] = text
    for (operator, case), parts in sorted(rows.items()):
        cells = " | ".join(parts.get(form, "") for form in FORMS)
        lines.append(f"| {operator} | {case.removeprefix('test_')} | {cells} |")
    return "\n".join(lines) + "\n"


def _short(reason: str) -> str:
    text = " ".join(reason.replace("|", "/").split())
    return text if len(text) <= 80 else text[:77] + "..."


def main() -> None:
    """Run all cases and print the table, or write it."""
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="file for the page")
    arguments = parser.parse_args()
    from tests.reference.interpreter import interpret

    found = list(outcomes(interpret))
    text = table(found)
    if arguments.write is not None:
        arguments.write.write_text(text, encoding="utf-8")
    sys.stdout.write(text[: text.index("| operator | case")])
    for item in found:
        if item.result in ("wrong", "crashed"):
            sys.stdout.write(f"{item.result}: {item.case} ({item.form}): {item.reason}\n")


if __name__ == "__main__":
    main()
