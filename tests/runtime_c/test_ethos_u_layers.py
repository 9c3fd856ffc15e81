"""Random layers through Vela's compiler and the Ethos-U's model: equal to TFLite Micro."""

from __future__ import annotations

import ctypes
import multiprocessing
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from patterns.ops.tflite.softmax import WideSoftmax
from tests.frontend import single, wide
from tests.frontend.flatfile import INT16, Graph
from tests.frontend.single import inputs_of
from tests.frontend.sketch import Sketch
from tests.frontend.tflm import reference
from tests.rotation import today
from tests.runtime_c.ethos_u import library
from tests.runtime_c.vela import Program, compiled, vela

Cases = Mapping[str, Callable[[Any], Graph]]

# What Vela 5.2 gets wrong, which the model shows: axes that count from behind, or that disappear;
# padding of channels; slopes of int8 beside int16, whose zero point it takes off twice; sums, which
# it does not round as TFLite Micro.
_REDUCED = ("reduce_max", "reduce_min")
_WRONG = {("int8", "mirror_pad"), ("int16", "prelu"), ("int8", "sum"), ("int16", "sum")}
# It rounds these factors to float32: few results differ, by one.
_ROUNDED = {
    ("int16", "relu"), ("int16", "leaky_relu"), ("int16", "multiply"), ("int8", "multiply"),
}  # fmt: skip
# Two points of its reciprocals for 16 bits are not TFLite Micro's: some of a row differ, by one.
_OTHER_POINTS = {160: 1, 294: -1}
# What it leaves to the CPU.
_OTHERS = {
    "int8": (
        "arg_min", "batch_to_space", "broadcast_to", "depth_to_space", "from_real", "gather",
        "l2_normalization", "log_softmax", "negated", "resize", "resize_bilinear", "reverse",
        "space_to_batch", "space_to_depth", "to_real",
    ),
    "int16": (
        "batch_matmul", "depth_to_space", "from_real", "gather", "resize", "to_real", "widest",
    ),
}  # fmt: skip
_SOURCES: Mapping[str, Cases] = {"int8": single.CASES, "int16": wide.CASES}
CASES = [
    (kind, name)
    for kind, cases in _SOURCES.items()
    for name in cases
    if name not in _OTHERS[kind] and (kind, name) not in _WRONG
]
OFTEN = [
    ("int8", "conv"), ("int8", "depthwise"), ("int8", "average_pool"), ("int8", "softmax"),
    ("int8", "add"), ("int16", "conv"), ("int16", "tanh"),
]  # fmt: skip


@pytest.fixture(scope="module")
def lib() -> ctypes.CDLL:
    # Here, not in the processes that need them.
    vela("ethosu.regor")
    pytest.importorskip("tflite_micro", reason="tflite-micro has no wheel for this machine")
    return library()


def reduces_wrongly(graph: Graph) -> bool:
    """Whether an operator reduces axes that count from behind, or that disappear."""
    (op,) = graph.operators
    axes, options = graph.tensors[op.inputs[1]].data, op.options
    assert axes is not None
    assert options is not None
    return bool((axes < 0).any()) or options[1][0][1] == 0


def outcome(lib: ctypes.CDLL, kind: str, name: str, seed: int, accelerator: str) -> str:
    """``equal``, ``unmapped``, or what is wrong with a layer."""
    rng = np.random.default_rng(seed)
    graph = _SOURCES[kind][name](rng)
    inputs = inputs_of(graph, rng)
    if name in _REDUCED and reduces_wrongly(graph):
        return "unmapped"
    try:
        program = Program(lib, compiled(graph.file(), accelerator))
    except RuntimeError:
        return "unmapped"
    result, outputs = program.run(inputs)
    if result.status:
        return f"{name} {seed}: {result.complaint}"
    for found, wanted in zip(outputs, reference(graph, inputs), strict=True):
        distance = np.abs(found.view(wanted.dtype).astype(np.int64) - wanted.ravel())
        different = np.count_nonzero(distance)
        few = (kind, name) in _ROUNDED and different <= 3
        known = few or (kind, name) == ("int16", "softmax")
        if different and not (known and distance.max() == 1):
            return f"{name} {seed}: {different} of {wanted.size} elements differ"
    return "equal"


def in_a_fork(outcome: Callable[[int], str], seeds: Sequence[int]) -> list[str]:
    """Outcomes of seeds until one ends the process: files can end Vela's compiler."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work() -> None:
        for seed in seeds:
            sender.send(outcome(seed))

    process = context.Process(target=work)
    process.start()
    sender.close()
    found: list[str] = []
    while len(found) < len(seeds):
        try:
            found.append(receiver.recv())
        except EOFError:
            break
    process.join()
    return found


def outcomes(
    lib: ctypes.CDLL, kind: str, name: str, seeds: range, accelerator: str
) -> Counter[str]:
    """Outcomes of many layers."""
    found = in_a_fork(lambda seed: outcome(lib, kind, name, seed, accelerator), seeds)
    assert len(found) == len(seeds), f"{name} ends Vela's compiler, seed {seeds[len(found)]}"
    return Counter(found)


@pytest.mark.parametrize(("kind", "name"), OFTEN)
def test_random_layers(lib: ctypes.CDLL, kind: str, name: str) -> None:
    found = outcomes(lib, kind, name, range(4), "ethos-u55-256")
    assert set(found) <= {"equal", "unmapped"}
    assert found["equal"]


@pytest.mark.parametrize("kind", ["LOGISTIC", "TANH"])
def test_curves_of_every_number_of_int16(lib: ctypes.CDLL, kind: str) -> None:
    """Equal to TFLite Micro's as the model has them, which nobody has compared with the NPU's."""
    numbers = np.arange(-(1 << 15), 1 << 15).astype(np.int16).reshape(1, 256, 256)
    for scale in (2.0**-15, 2.0**-12 * 1.0004, 2.0**-11, 3.3e-4, 0.017, 2.4):
        sketch = Sketch(np.random.default_rng(0))
        source = sketch.input(numbers.shape, float(np.float32(scale)), 0, code=INT16)
        out = sketch.tensor(numbers.shape, 1 / 32768, 0, code=INT16)
        sketch.op(kind, [source], [out], None)
        graph = sketch.graph(out)
        result, (found,) = Program(lib, compiled(graph.file(), "ethos-u55-128")).run([numbers])
        assert not result.status
        (wanted,) = reference(graph, [numbers])
        np.testing.assert_array_equal(found.view(np.int16), wanted.ravel(), err_msg=str(scale))


def test_two_points_of_reciprocals_are_not_tflite_micros(lib: ctypes.CDLL) -> None:
    """The cause of what `outcome` allows a softmax of 16 bits."""
    graph = wide.CASES["softmax"](np.random.default_rng(0))
    constants = bytes(compiled(graph.file(), "ethos-u55-128").read_only.data)
    points = WideSoftmax.of_scale(1.0).constants()["reciprocal"][:-1].astype(np.int64)
    differences = []
    for start in range(0, len(constants) - 4 * len(points) + 1, 16):
        table = np.frombuffer(constants, "<i2", 2 * len(points), start)[::2]
        moved = table - points
        if np.count_nonzero(moved) < 10:
            differences.append({int(at): int(moved[at]) for at in np.flatnonzero(moved)})
    assert differences == [_OTHER_POINTS]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), CASES)
@pytest.mark.parametrize("accelerator", ["ethos-u55-32", "ethos-u55-128", "ethos-u65-256"])
def test_random_layers_at_length(lib: ctypes.CDLL, kind: str, name: str, accelerator: str) -> None:
    """Others on every commit: ``python -m benchmarks.ethos_u_layers`` draws the first 10,000."""
    first = 50 * (today() % 1000)
    found = outcomes(lib, kind, name, range(first, first + 50), accelerator)
    assert set(found) <= {"equal", "unmapped"}, found
    assert found["equal"]
