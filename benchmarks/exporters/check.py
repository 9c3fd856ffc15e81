"""Reading what exporters wrote: exact, within one step, wrong, refused, unchecked or crashed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import htvm
from benchmarks.mutant import failure
from htvm.quantization.float_model import calibrated
from tests.reference.onnx_session import NO_KERNEL

__all__ = ["Outcome", "checked", "outcomes"]

_TINY = 3e-6
"""How far reals at a border may be apart, relative to the largest: order of float32 sums."""


_CLOSE = 10.0
"""Decibels between a float network and what `htvm.quantize` makes of it, at least."""


@dataclass(frozen=True)
class Outcome:
    """What became of one export.

    Attributes:
        exporter: "torch" or "keras".
        network, way: which one, and how it was quantized.
        result: "exact", "one step" (elements off by one step of their quantization, at most),
            "wrong", "refused", "crashed", "unchecked" (read, but no session of onnxruntime
            is exact on the CPU that the files were made on), or for a float network "quantized".
        detail: what it equals, how many elements differ, or why it is refused.
    """

    exporter: str
    network: str
    way: str
    result: str
    detail: str = ""


def outcomes(folder: Path, interpret: Callable[..., Any]) -> Iterator[Outcome]:
    """Yield the outcome of every export below a folder, in order.

    Args:
        folder: has ``torch/CASE`` and ``keras/CASE`` as the exporting programs write them.
        interpret: runs a module of the integer form on a list of arrays.
    """
    for exporter in ("torch", "keras"):
        for case in sorted((folder / exporter).glob("*-*")):
            yield checked(exporter, case, interpret)


def checked(exporter: str, case: Path, interpret: Callable[..., Any]) -> Outcome:
    """Return the outcome of one export; arguments as of `outcomes`, ``case`` is its folder."""
    network, way = case.name.split("-", 1)

    def outcome(result: str, detail: str = "") -> Outcome:
        return Outcome(exporter, network, way, result, detail)

    with np.load(case / "runs.npz") as arrays:
        kept: dict[str, Any] = {name: arrays[name] for name in arrays.files}
    path = next(path for path in case.iterdir() if path.suffix in (".onnx", ".tflite"))
    try:
        if way == "float":
            return outcome(*_quantized(path, kept, interpret))
        model = htvm.load(path)
        found = [interpret(model.module, _of(kept, "in", run)).outputs for run in _runs(kept)]
    except Exception as error:  # noqa: BLE001
        result, _ = failure(error)
        return outcome(result, str(error))
    verdicts = []
    for kind, oracle in _oracles(path, kept):
        wanted = [array for run in oracle for array in run]
        verdict = _compared([array for run in found for array in run], wanted)
        if verdict == ("exact", ""):
            return outcome("exact", kind)
        verdicts.append((verdict, kind))
    if not verdicts:
        return outcome("unchecked", NO_KERNEL)
    (result, detail), kind = verdicts[0]
    return outcome(result, f"{detail} from {kind}")


def _runs(kept: dict[str, Any]) -> list[int]:
    return sorted({int(name[2:].split("_")[0]) for name in kept if name.startswith("in")})


def _of(kept: dict[str, Any], kind: str, run: int) -> list[Any]:
    prefix = f"{kind}{run}_"
    names = [name for name in kept if name.startswith(prefix)]
    return [kept[name] for name in sorted(names, key=lambda name: int(name[len(prefix) :]))]


def _oracles(path: Path, kept: dict[str, Any]) -> Iterator[tuple[str, list[list[Any]]]]:
    """Yield name and results of each runtime that an export is compared with, the best first."""
    runs = _runs(kept)
    if path.suffix == ".onnx":
        # A session whose sums saturate where the files were made has left no results.
        for kind, name in (("fused", "onnxruntime"), ("plain", "onnxruntime without optimization")):
            if _of(kept, kind, runs[0]):
                yield name, [_of(kept, kind, run) for run in runs]
        return
    micro = _by_micro(path, [_of(kept, "in", run) for run in runs])
    if micro is not None:
        yield "TFLite Micro", micro
    yield "LiteRT's reference kernels", [_of(kept, "ref", run) for run in runs]


def _by_micro(path: Path, inputs: Sequence[Sequence[Any]]) -> list[list[Any]] | None:
    try:
        from tflite_micro import runtime

        interpreter = runtime.Interpreter.from_file(str(path))
    except Exception:  # noqa: BLE001
        return None  # not installed, or it lacks an operator
    results = []
    for arrays in inputs:
        for at, array in enumerate(arrays):
            interpreter.set_input(array, at)
        interpreter.invoke()
        count = len(htvm.load(path).outputs)
        results.append([interpreter.get_output(at).copy() for at in range(count)])
    return results


def _compared(found: Sequence[Any], wanted: Sequence[Any]) -> tuple[str, str]:
    differing, total, largest = 0, 0, 0.0
    for got, expected in zip(found, wanted, strict=True):
        if got.shape != expected.shape:
            return "wrong", f"shape {got.shape} for {expected.shape}"
        apart = np.abs(got.astype("float64") - expected.astype("float64"))
        apart[apart <= _TINY * max(float(np.abs(expected).max(initial=0)), 1e-3)] = 0
        values = np.unique(np.concatenate([got.reshape(-1), expected.reshape(-1)]))
        gaps = np.diff(values.astype("float64"))
        step = float(gaps[gaps > _TINY].min(initial=np.inf))
        if apart.any():
            largest = max(largest, float(apart.max()) / step)
        differing, total = differing + int((apart > 0).sum()), total + apart.size
    if not differing:
        return "exact", ""
    detail = f"{differing} of {total} elements differ, by at most {largest:.2g} steps"
    return ("one step" if largest < 1.01 else "wrong"), detail


def _quantized(path: Path, kept: dict[str, Any], interpret: Callable[..., Any]) -> tuple[str, str]:
    """Quantize a float network, and say how close it comes to the float results."""
    runs, names = _runs(kept), [str(name) for name in kept["names"]]
    rng, shapes = np.random.default_rng(5), [array.shape for array in _of(kept, "in", runs[0])]
    data = {
        name: rng.normal(size=(16, *shape[1:])).astype("float32")
        for name, shape in zip(names, shapes, strict=True)
    }
    model = calibrated(path, data)
    noise, signal = 0.0, 0.0
    for run in runs:
        found = interpret(model.module, _of(kept, "in", run)).outputs
        for got, wanted in zip(found, _of(kept, "ref", run), strict=True):
            if got.shape != wanted.shape:
                return "wrong", f"shape {got.shape} for {wanted.shape}"
            noise += float(((got.astype("float64") - wanted) ** 2).sum())
            signal += float((wanted.astype("float64") ** 2).sum())
    decibels = 10 * np.log10(signal / max(noise, 1e-30))
    return (
        "quantized" if decibels > _CLOSE else "wrong",
        f"{decibels:.0f} dB from its float results",
    )
