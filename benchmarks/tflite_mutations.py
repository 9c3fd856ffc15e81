"""Mutated TFLite files of one operator: whatever is still read must be what TFLite Micro computes.

    python -m benchmarks.mutations --of tflite [--count 5000] [--seed 1]

Each mutant is a network that `tests.frontend.single` draws, with one to three changes, all from a
seed: an optional input is dropped or added, an option is set, removed or replaced by another value,
the element type, the shape, the scale, the zero point or an element of a tensor is changed.  What
is read is run by the interpreter of the integer form, and must equal TFLite Micro's reference
kernels element for element.  These may end the process on a strange file, so they run in one of
their own; what they do not run has no oracle.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import htvm
from benchmarks.mutant import Mutant, failure
from tests.frontend.flatfile import FLOAT32, INT8, INT16, INT32, UINT8, Graph, Op, Tensor
from tests.frontend.single import CASES

__all__ = ["campaign", "drawn", "mutated"]

_DTYPES = {FLOAT32: "float32", INT8: "int8", INT16: "int16", INT32: "int32", UINT8: "uint8"}


def campaign(
    count: int, seed: int, interpret: Callable[..., Any], first: int = 0
) -> Iterator[Mutant]:
    """Yield the outcome of each mutant from a number on; the same ones for the same seed."""
    names = sorted(CASES)
    with _Oracle() as oracle:
        for number in range(first, first + count):
            rng = np.random.default_rng([seed, number])
            name = names[int(rng.integers(len(names)))]
            graph, changes = CASES[name](rng), []
            for _ in range(int(rng.integers(1, 4))):
                graph, change = mutated(graph, rng)
                changes.append(change)
            result, reason = _outcome(graph, rng, interpret, oracle)
            yield Mutant(number, name, tuple(changes), result, reason)


def _outcome(
    graph: Graph, rng: np.random.Generator, interpret: Callable[..., Any], oracle: _Oracle
) -> tuple[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutant.tflite"
        content = graph.file()
        path.write_bytes(content)
        try:
            loaded = htvm.load(path)
            inputs = [drawn(item.shape, item.dtype, rng) for item in loaded.inputs]
            with np.errstate(all="ignore"):
                found = interpret(loaded.module, inputs).outputs
        except Exception as error:  # noqa: BLE001
            return failure(error)
    wanted = oracle.run(content, inputs, len(found))
    if isinstance(wanted, str):
        return "without oracle", wanted
    for got, expected in zip(found, wanted, strict=True):
        if got.shape != expected.shape or got.dtype != expected.dtype:
            return "wrong", f"{got.dtype} {got.shape} for {expected.dtype} {expected.shape}"
        if not np.array_equal(got, expected, equal_nan=got.dtype == np.float32):
            differing = int((got != expected).sum())
            return "wrong", f"{differing} of {got.size} elements"
    return "passed", ""


def drawn(shape: Sequence[int], dtype: str, rng: np.random.Generator) -> Any:
    if dtype == "float32":
        return rng.normal(0, 3, shape).astype(np.float32)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


class _Oracle:
    """TFLite Micro in a process of its own, which is started again when it ends."""

    def __enter__(self) -> _Oracle:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def _start(self) -> None:
        # Spawned, as threads of this process would not survive a fork.
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, mp_context=context)

    def run(self, content: bytes, inputs: Sequence[Any], outputs: int) -> list[Any] | str:
        """Return the results, or why there are none."""
        from benchmarks.micro import run

        try:
            return self._pool.submit(run, content, list(inputs), outputs).result(timeout=60)
        except BrokenProcessPool:
            self._pool.shutdown()
            self._start()
            return "TFLite Micro ends the process"


# ------------------------------------------------------------------------------ changes


def mutated(graph: Graph, rng: np.random.Generator) -> tuple[Graph, str]:
    at = int(rng.integers(len(graph.operators)))
    op = graph.operators[at]
    way = int(rng.integers(8))
    if way == 0 and len(op.inputs) > 1:
        which = int(rng.integers(1, len(op.inputs)))
        last = which == len(op.inputs) - 1 and bool(rng.integers(2))
        inputs = list(op.inputs[:-1] if last else op.inputs)
        if not last:
            inputs[which] = -1
        return graph.with_operator(at, inputs=inputs), f"input {which} dropped"
    if way == 1:
        extra = int(rng.integers(len(graph.tensors)))
        return graph.with_operator(at, inputs=[*op.inputs, extra]), f"tensor {extra} added as input"
    if way in (2, 3):
        return _option(graph, at, op, rng)
    used = [index for index in (*op.inputs, *op.outputs) if index >= 0]
    which = used[int(rng.integers(len(used)))]
    changed, what = _tensor(graph.tensors[which], way, rng)
    tensors = list(graph.tensors)
    tensors[which] = changed
    return replace(graph, tensors=tensors), f"tensor {which}: {what}"


def _option(graph: Graph, at: int, op: Op, rng: np.random.Generator) -> tuple[Graph, str]:
    kind, fields = op.options if op.options is not None else (0, {})
    changed = dict(fields)
    if op.options is None or (rng.integers(6) == 0):
        return graph.with_operator(at, options=None), "options removed"
    number = int(rng.integers(max(changed, default=0) + 2))
    old = changed.get(number)
    if old is not None and rng.integers(4) == 0:
        del changed[number]
        what = f"option {number} removed"
    elif isinstance(old, tuple) and old[0] == "f":
        changed[number] = ("f", float(rng.normal()))
        what = f"option {number} = {changed[number][1]:g}"
    elif isinstance(old, tuple):
        low, high = {"B": (0, 5), "?": (0, 2)}.get(old[0], (-1, 7))
        changed[number] = (old[0], int(rng.integers(low, high)))
        what = f"option {number} = {changed[number][1]}"
    elif old is None:
        changed[number] = ("bi?"[int(rng.integers(3))], int(rng.integers(0, 2)))
        what = f"option {number} added as {changed[number]}"
    else:
        del changed[number]
        what = f"option {number} removed"
    return graph.with_operator(at, options=(kind, changed)), what


def _tensor(tensor: Tensor, way: int, rng: np.random.Generator) -> tuple[Tensor, str]:
    if way == 4:
        code = list(_DTYPES)[int(rng.integers(len(_DTYPES)))]
        data = tensor.data
        if data is not None and rng.integers(2):
            data = data.astype(_DTYPES[code])
        return replace(tensor, code=code, data=data), f"type {_DTYPES[code]}"
    if way == 5:
        factor = float(np.float32(rng.choice([0.25, 0.7, 1.5, 3.0, 1e-4, 1e4, 0.0, -1.0])))
        scales = [scale * factor for scale in tensor.scales]
        return replace(tensor, scales=scales), f"scale times {factor:g}"
    if way == 6:
        kind = int(rng.integers(4))
        if kind == 0:
            return replace(tensor, scales=(), zero_points=()), "no quantization"
        if kind == 1 and tensor.zero_points:
            by = int(rng.choice([-300, -1, 1, 5, 100]))
            return replace(tensor, zero_points=[zero + by for zero in tensor.zero_points]), (
                f"zero point {by:+d}"
            )
        if kind == 2 and tensor.shape:
            axis = int(rng.integers(len(tensor.shape)))
            count = tensor.shape[axis]
            scales = [float(np.float32(scale)) for scale in rng.uniform(0.002, 0.05, count)]
            return replace(tensor, scales=scales, zero_points=[0] * count, axis=axis), (
                f"scales along axis {axis}"
            )
        return replace(tensor, axis=int(rng.integers(-1, 5))), "another axis of scales"
    if tensor.data is not None and tensor.data.size and rng.integers(2):
        flat = tensor.data.copy().reshape(-1)
        flat[int(rng.integers(flat.size))] += np.asarray(rng.integers(-2, 3)).astype(flat.dtype)
        return replace(tensor, data=flat.reshape(tensor.data.shape)), "another element"
    shape = list(tensor.shape)
    if shape and rng.integers(2):
        shape[int(rng.integers(len(shape)))] += int(rng.choice([-1, 1]))
    else:
        shape.insert(int(rng.integers(len(shape) + 1)), 1)
    data = tensor.data
    if data is not None:
        data = np.resize(data, [max(size, 0) for size in shape])
    return replace(tensor, shape=tuple(shape), data=data), f"shape {shape}"
