"""Helper: run quantized ONNX files in onnxruntime, and only where its arithmetic is exact.

On x86 CPUs with AVX2 but no VNNI, onnxruntime multiplies uint8 by int8 with ``vpmaddubsw``, which
adds two products in int16 and saturates.  What it computes there is wrong, and differs from what it
computes on other CPUs.  So the library is asked first: `find_arithmetic` runs small files whose
exact results are known.  Where sums saturate, sessions get ``session.x64quantprecision``, with
which they do not.  Some operators of int8 have no kernel then: `exact_session` is None.  Tests run
their files by the numpy definition of `tests.reference.onnx_products`, with a warning that says
so; `benchmarks.exporters` counts them as unchecked.

Float files need none of this.
"""

from __future__ import annotations

import enum
import functools
import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.reference.onnx_products import defined_outputs

Array = npt.NDArray[Any]
Run = Callable[[Sequence[Array]], list[Array]]

_log = logging.getLogger(__name__)

PRECISE = ("session.x64quantprecision", "1")
"""The entry of a session's configuration that keeps it from saturating."""


class Arithmetic(enum.Enum):
    """How to get exact sums of products from onnxruntime on this machine."""

    PLAIN = "any session is exact"
    PRECISE = "sessions saturate unless they are made precise"
    NONE = "sessions saturate even where they are made precise"


NO_KERNEL = "onnxruntime has no exact kernel on this CPU"
"""Why there is no exact session of a file."""


class FromDefinition(UserWarning):
    """onnxruntime has no exact kernel for a file; its results are those of the definition."""


# ------------------------------------------------------------------------------ probes

DEPTH = 32
PROBED = ("MatMulInteger", "QLinearConv", "QLinearMatMul", "QGemm", "Conv", "MatMul", "Gemm")
"""Operators that are probed; the last three between DequantizeLinear and QuantizeLinear."""

_STEP = np.float32(2**14)  # of the results; the sums reach 2**20
_ONNX = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int32": TensorProto.INT32,
         "float32": TensorProto.FLOAT}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Probe:
    """A file whose exact result is known, and in which sums of two products exceed int16.

    Attributes:
        model: the file's content.
        data: its input.
        exact: its output.
    """

    model: bytes
    data: Array
    exact: Array


@functools.cache
def probe(op: str, dtype: str) -> Probe:
    """The probe of an operator of `PROBED` and a type of activations; weights are int8.

    Rows of the extreme values of activations meet columns of the extreme values of weights.
    """
    limits = np.iinfo(dtype)
    x = np.repeat(np.array([[limits.max], [limits.min]], dtype), DEPTH, axis=1)
    weight = np.repeat(np.array([[127, -128] * 8], np.int8), DEPTH, axis=0)
    sums = x.astype(np.int64) @ weight.astype(np.int64)
    steps = np.clip(np.rint(sums / _STEP), limits.min, limits.max).astype(dtype)
    assert np.abs(2 * x.astype(np.int64)[:, :1] @ weight[:1].astype(np.int64)).max() > 2**15 - 1
    if op.endswith("Conv"):
        x, steps, weight = x[:, :, None, None], steps[:, :, None, None], weight.T[:, :, None, None]

    zero = np.array(0, dtype)
    constants = {"w": np.asarray(weight, order="C"), "s": np.float32(1), "z": zero,
                 "wz": np.array(0, np.int8), "ys": _STEP}  # fmt: skip
    operands = ["x", "s", "z", "w", "s", "wz"]
    data, exact = x, steps
    if op == "MatMulInteger":
        nodes = [helper.make_node(op, ["x", "w", "z", "wz"], ["y"])]
        exact = sums.astype(np.int32)
    elif op == "QGemm":
        inputs = [*operands, "", "ys", "z"]
        nodes = [helper.make_node(op, inputs, ["y"], domain="com.microsoft")]
    elif op.startswith("QLinear"):
        nodes = [helper.make_node(op, [*operands, "ys", "z"], ["y"])]
    else:
        # A float input: onnxruntime makes uint8 of int8 only where it finds the QuantizeLinear.
        nodes = [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
            helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xf"]),
            helper.make_node("DequantizeLinear", ["w", "s", "wz"], ["wf"]),
            helper.make_node(op, ["xf", "wf"], ["yf"]),
            helper.make_node("QuantizeLinear", ["yf", "ys", "z"], ["yq"]),
            helper.make_node("DequantizeLinear", ["yq", "ys", "z"], ["y"]),
        ]
        data, exact = x.astype(np.float32), steps.astype(np.float32) * _STEP
    graph = helper.make_graph(
        nodes, "probe", [_described("x", data)], [_described("y", exact)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return Probe(model.SerializeToString(), data, exact)


def _described(name: str, data: Array) -> Any:
    return helper.make_tensor_value_info(name, _ONNX[data.dtype.name], data.shape)


# ------------------------------------------------------------------------------ what is exact


def _runtime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        import pytest  # where exporters run, there is onnxruntime, but not pytest

        pytest.skip("onnxruntime is not installed (extra 'test')")
    return onnxruntime


def options_of(precise: bool, optimized: bool = True) -> Any:
    """onnxruntime's options of a session that is precise, or of a plain one."""
    runtime = _runtime()
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    if precise:
        options.add_session_config_entry(*PRECISE)
    if not optimized:
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options


def session(
    model: bytes | str, precise: bool, optimized: bool = True, disabled: Sequence[str] = ()
) -> Any:
    """An onnxruntime session, or None where a precise one has no kernel for an operator.

    Args:
        model: a file's content or path.
        precise: which session.
        optimized: with graph optimizations.
        disabled: optimizers that are left out.
    """
    runtime = _runtime()
    state = runtime.capi.onnxruntime_pybind11_state
    try:
        return runtime.InferenceSession(
            model,
            options_of(precise, optimized),
            providers=["CPUExecutionProvider"],
            disabled_optimizers=list(disabled),
        )
    except (state.NotImplemented, state.Fail):  # it fails where layers share their weights
        if precise:
            return None
        raise


def wrong_probes(run: Callable[[Probe, bool], Array | None], precise: bool) -> list[str]:
    """Names of the probes whose result is not the exact one.

    Args:
        run: runs a probe in a precise session or another; None if there is no kernel.
        precise: which session.
    """
    wrong = []
    for op in PROBED:
        for dtype in ("uint8", "int8"):
            found = run(probe(op, dtype), precise)
            if found is not None and not np.array_equal(found, probe(op, dtype).exact):
                wrong.append(f"{op} of {dtype}")
    return wrong


def run_probe(item: Probe, precise: bool) -> Array | None:
    """What onnxruntime computes, or None if it has no kernel."""
    made = session(item.model, precise)
    return None if made is None else made.run(None, {"x": item.data})[0]


def classify(run: Callable[[Probe, bool], Array | None]) -> Arithmetic:
    """What the probes say of a runtime."""
    plain = wrong_probes(run, False)
    if not plain:
        return Arithmetic.PLAIN
    _log.warning("onnxruntime saturates sums of products on this CPU: %s", ", ".join(plain))
    return Arithmetic.NONE if wrong_probes(run, True) else Arithmetic.PRECISE


@functools.cache
def find_arithmetic() -> Arithmetic:
    """What onnxruntime does on this machine; probed once per process."""
    return classify(run_probe)


# ------------------------------------------------------------------------------ running files


def exact_session(
    model: bytes | str,
    optimized: bool = True,
    disabled: Sequence[str] = (),
    arithmetic: Arithmetic | None = None,
) -> Any:
    """A session whose sums of products do not saturate, or None where this CPU has none.

    Args:
        model, optimized, disabled: as of `session`.
        arithmetic: as of `quantized`.
    """
    arithmetic = arithmetic or find_arithmetic()
    if arithmetic is Arithmetic.NONE:
        return None
    return session(model, arithmetic is Arithmetic.PRECISE, optimized, disabled)


def quantized(path: Path, arithmetic: Arithmetic | None = None) -> Run:
    """A function from the inputs of a quantized ONNX file to its outputs, as onnxruntime means it.

    Args:
        path: the file.
        arithmetic: as if onnxruntime did this; default: what it does on this machine.
    """
    made = exact_session(str(path), arithmetic=arithmetic)
    if made is not None:
        names = [item.name for item in made.get_inputs()]
        return lambda inputs: made.run(None, dict(zip(names, inputs, strict=True)))
    operators = sorted({node.op_type for node in onnx.load(str(path)).graph.node})
    warnings.warn(
        f"{NO_KERNEL} for a file of {', '.join(operators)}: "
        "compared with the definition in tests/reference/onnx_products.py instead",
        FromDefinition,
        stacklevel=3,
    )
    return lambda inputs: defined_outputs(path, inputs)
