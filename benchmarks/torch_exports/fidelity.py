"""How near HTVM's integers are to torch, one quantize node at a time, and end to end.

A program is cut at its quantize nodes: each becomes an output, and what reads it reads an input of
the same integers instead.  Fed with torch's own integers, every output then has what one region
between dequantize and quantize computes.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch

import htvm
from htvm.frontend.torch import model_of_program
from htvm.frontend.torch.archive import read_archive
from htvm.frontend.torch.program import Argument, Ref, TorchNode, TorchProgram

_BORDER = "border_"
_RESULTS, _FEWEST, _MOST = 100_000, 20, 200
_NEAR = 1e-5  # of the largest output: reals that are not quantized differ in their last bits


@dataclass(frozen=True)
class Fidelity:
    """Elements that differ from torch.

    Attributes:
        elements: results of quantize nodes that were compared, each fed with torch's integers.
        different: of them, those that differ.
        largest: the largest difference, in steps.
        ends: elements of the outputs, end to end.
        ends_different: of them, those that differ.
        doubles_different: of the elements, torch's own that are others if it computes in float64.
        plain_different: of the elements, torch's own that are others by its kernels for SSE, which
            add in another order.
    """

    elements: int
    different: int
    largest: int
    ends: int
    ends_different: int
    doubles_different: int
    plain_different: int = 0


def cut(program: TorchProgram) -> TorchProgram:
    """Return a program whose quantized tensors are outputs, and inputs of what reads them."""
    borders = {
        node.outputs[0]: f"{_BORDER}{node.outputs[0]}"
        for node in program.nodes
        if _quantizes(node.target)
    }

    def moved(value: Argument) -> Argument:
        if isinstance(value, Ref):
            return Ref(borders.get(value.name, value.name))
        if isinstance(value, tuple):
            return tuple(moved(item) for item in value)  # type: ignore[return-value]
        return value

    nodes = [
        replace(node, arguments={key: moved(value) for key, value in node.arguments.items()})
        for node in program.nodes
    ]
    read = {item.name for node in nodes for item in _refs(node)}
    tensors = dict(program.tensors)
    inputs = list(program.inputs)
    for name, border in borders.items():
        if border in read:
            tensors[border] = replace(tensors[name], name=border)
            inputs.append(tensors[border])
    kept = [item for item in inputs if item.name in read]
    return replace(
        program,
        inputs=tuple(kept),
        outputs=tuple(borders),
        nodes=_needed(nodes, set(borders)),
        tensors=tensors,
    )


def _refs(node: TorchNode) -> list[Ref]:
    values = [
        item
        for value in node.arguments.values()
        for item in (value if isinstance(value, tuple) else (value,))
    ]
    return [item for item in values if isinstance(item, Ref)]


def _needed(nodes: list[TorchNode], wanted: set[str]) -> tuple[TorchNode, ...]:
    kept = []
    for node in reversed(nodes):
        if wanted.intersection(node.outputs):
            wanted.update(item.name for item in _refs(node))
            kept.append(node)
    return tuple(reversed(kept))


class _Tensors(torch.fx.Interpreter):
    """Runs a program, and keeps every tensor by the name that its file has for it."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module)
        self.found: dict[str, Any] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        made = super().run_node(n)
        if isinstance(made, torch.Tensor):
            self.found[n.name] = made.detach().numpy()
        return made


class _Fed(_Tensors):
    """Runs a program whose quantize nodes' results are read as another run has them."""

    def __init__(self, module: torch.fx.GraphModule, others: Mapping[str, Any]) -> None:
        super().__init__(module)
        self._others = others

    def run_node(self, n: torch.fx.Node) -> Any:
        made = super().run_node(n)
        return torch.from_numpy(self._others[n.name]) if _quantizes(n.target) else made

    def different(self, names: Iterable[str]) -> int:
        """Return how many results of quantize nodes are others than those of the other run."""
        return sum(int((self.found[name] != self._others[name]).sum()) for name in names)


class _Doubles(_Fed):
    """Runs a program in float64; what quantize nodes make is read as float32 has it."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if "_assert_tensor_metadata" in str(target):
            return None  # Asserts float32.
        if _quantizes(target):
            values, scale, zero_point, least, most, dtype = args
            steps = torch.round(values / scale) + zero_point
            return torch.clamp(steps, least, most).to(dtype)
        if ".dequantize_per_tensor" in str(target):
            values, scale, zero_point, *_ = args
            return (values.double() - zero_point) * scale
        made = super().call_function(target, args, kwargs)
        is_single = isinstance(made, torch.Tensor) and made.dtype == torch.float32
        return made.double() if is_single else made


def _quantizes(target: object) -> bool:
    return ".quantize_per_tensor" in str(target)


_PLAIN = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
}
"""What has torch, MKL and oneDNN take their kernels for SSE, if set before they first compute."""


def _choose_plain() -> None:
    import htvm.torch  # noqa: F401 - a program is loaded with its operators

    os.environ.update(_PLAIN)
    torch.set_num_threads(1)
    assert torch.backends.cpu.get_cpu_capability() == "DEFAULT"


@contextmanager
def plain_torch() -> Iterator[ProcessPoolExecutor]:
    """Return a process where torch computes by its kernels for SSE, for `measured`."""
    with ProcessPoolExecutor(1, get_context("spawn"), _choose_plain) as pool:
        yield pool


def _different(saved: bytes, runs: list[tuple[list[Any], dict[str, Any]]]) -> int:
    """Return how many results of quantize nodes are others here, fed with those given."""
    program = torch.export.load(io.BytesIO(saved))
    different = 0
    with torch.no_grad():
        for given, quantized in runs:
            fed = _Fed(program.graph_module, quantized)
            fed.run(*_state(program), *(torch.from_numpy(item) for item in given))
            different += fed.different(quantized)
    return different


def measured(
    program: torch.export.ExportedProgram,
    inputs: int = 0,
    seed: int = 1,
    plain: ProcessPoolExecutor | None = None,
) -> Fidelity:
    """Return how a program's integers compare with torch's, over random inputs.

    Args:
        program: a quantized one.
        inputs: how many; 0: as many as give `_RESULTS`, of which a single one that differs is
            below any bound of interest, but from `_FEWEST` to `_MOST`.
        seed: of the inputs.
        plain: where torch is run once more, by other kernels.
    """
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    read = read_archive(buffer.getvalue(), "the program")
    parts = htvm.build(model_of_program(cut(read), "parts"), "generic.cpu", platform="host")
    whole = htvm.build(htvm.load(program), "generic.cpu", platform="host")
    interpreter = _Tensors(program.graph_module)
    state = _state(program)
    generator = torch.Generator().manual_seed(seed)
    results = sum(math.prod(item.shape) for item in parts.model.outputs)
    inputs = inputs or min(max(_FEWEST, _RESULTS // results), _MOST)
    elements = different = largest = ends = ends_different = doubles_different = 0
    runs = []
    with torch.no_grad():
        for _ in range(inputs):
            given = [torch.randn(item.shape, generator=generator) for item in read.inputs]
            results = interpreter.run(*state, *given)
            found = interpreter.found
            doubles = _Doubles(program.graph_module, found)
            doubles.run(*(_double(item) for item in (*state, *given)))
            fed = {item.name: found[item.name.removeprefix(_BORDER)] for item in parts.model.inputs}
            names = (item.name for item in parts.model.outputs)
            made = dict(zip(names, parts.run(fed).outputs, strict=True))
            for name in made:
                apart = np.abs(found[name].astype("int64") - made[name].astype("int64"))
                elements, different = elements + apart.size, different + int((apart != 0).sum())
                largest = max(largest, int(apart.max()))
            doubles_different += doubles.different(made)
            runs.append(([item.numpy() for item in given], {name: found[name] for name in made}))
            outputs = whole.run(runs[-1][0]).outputs
            for own, wanted in zip(outputs, results, strict=True):
                ends += own.size
                reals = wanted.detach().numpy()
                near = _NEAR * float(np.abs(reals).max())
                ends_different += int((np.abs(own - reals) > near).sum())
    others = plain.submit(_different, buffer.getvalue(), runs).result() if plain else 0
    return Fidelity(elements, different, largest, ends, ends_different, doubles_different, others)


def _double(value: Any) -> Any:
    is_single = isinstance(value, torch.Tensor) and value.dtype == torch.float32
    return value.double() if is_single else value


def _state(program: torch.export.ExportedProgram) -> list[Any]:
    """Return the parameters, buffers and constants in the order of the graph's inputs."""
    found: Mapping[str, Any] = {**program.state_dict, **program.constants}
    return [
        found[spec.target]
        for spec in program.graph_signature.input_specs
        if spec.kind is not torch.export.graph_signature.InputKind.USER_INPUT
    ]


__all__ = ["Fidelity", "cut", "measured", "plain_torch"]
