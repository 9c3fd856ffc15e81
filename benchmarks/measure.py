"""One configuration of a zoo network, built, run and taken apart into what the paper's columns are.

The paper's "Peak" is what layers spend in triggers (weights included) plus what the host does
otherwise; its "HTVM" adds transfers and what a layer costs beside its driver calls.  Both come from
the run of the generated C here.  The host's share is given twice: as measured on the simulated
host, and at the cost the published runs have by the fit (`benchmarks.published_host`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import htvm
from benchmarks.made_of import RowSource, program
from benchmarks.published_host import PUBLISHED_HOST
from byoc_dory.errors import L2OverflowError
from byoc_dory.layers import Dense, Weighted
from byoc_dory.soc.diana.cores import AnalogCore, DigitalCore
from byoc_dory.soc.diana.description import DIANA, DIGITAL
from byoc_dory.soc.diana.packing import stored_bytes
from byoc_dory.soc.diana.program import AnalogTrigger, ConvTrigger, DenseTrigger
from htvm import zoo
from htvm.inputs import seeded_inputs
from patterns.ops.convert import Convert
from tests.byoc_dory.driver_calls import Load, Store, steps_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from byoc_dory.options import ScheduleKind
    from byoc_dory.region import Kernel
    from htvm.firmware.sizes import Sizes
    from htvm.model import Model
    from htvm.module import Module
    from htvm.result import Causes, LayerResult, RunResult
    from htvm.tools.zoo.schemes import Scheme
    from patterns.reading.node import Node

__all__ = [
    "CONFIGURATIONS",
    "NETWORKS",
    "Configuration",
    "Measured",
    "Padding",
    "measure",
    "measure_model",
    "row_of",
]

NETWORKS = ("ds_cnn_7x5", "mobilenet_v1", "resnet8", "toyadmos")
"""The four networks of the paper's tables, as HTVM configured them."""

INPUT_CONVERTED = ("mobilenet_v1", "toyadmos")
"""The networks whose published Peak has room for the conversion of their input, by the fit: with it
the others' would be 0.7 % (DS-CNN) and 10.7 % (ResNet) above the published figure."""


@dataclass(frozen=True)
class Configuration:
    """A column of Table I: ``name`` as in `TABLE_I`, the target and the weights it needs."""

    name: str
    title: str
    target: str
    scheme: Scheme


CONFIGURATIONS = (
    Configuration("digital", "CPU + digital", "diana.digital", "8-bit"),
    Configuration("analog", "CPU + analog", "diana.analog", "ternary"),
    Configuration("both", "CPU + both", "diana.mixed", "mixed"),
)


@dataclass(frozen=True)
class Padding:
    """Bytes of a kind of data, and what of them the layouts of the cores add.

    Attributes:
        what: operator and accelerator, or "maps".
        payload: bytes of weights (2 bits each on the analog core), biases or factors; of maps their
            elements.
        padding: bytes besides.
        why: the layout's reason.
    """

    what: str
    payload: int
    padding: int
    why: str


@dataclass(frozen=True)
class Measured:
    """A run, in cycles.

    Attributes:
        cycles: the whole, our host's included.
        causes: what they were spent on.
        on_cores: steps of layers on accelerators.
        drivers: host cycles of drivers that belong to triggers, by their measured constants.
        calls, commands, moved: DMA calls, their 1-D commands where one call has several, bytes.
        layers: steps of layers on accelerators.
        host_published: the host's share at the published cost.
        exact: whether outputs equal the reference's.
        sizes: bytes of the linked program's parts.
        arena, arena_bound: bytes of L2 for intermediates, and the least possible.
        steps: the run's steps.
        padding: what the cores' layouts force, by kind of layer.
        dense_excess: cycles of the triggers but the first of every dense layer on the digital core,
            by the cycle model: what one trigger for all outputs would save, if the core could.
    """

    cycles: int
    causes: Causes
    on_cores: int
    drivers: int
    calls: int
    commands: int
    moved: int
    layers: int
    host_published: float
    exact: bool
    sizes: Sizes
    arena: int
    arena_bound: int
    steps: tuple[LayerResult, ...]
    padding: tuple[Padding, ...]
    dense_excess: int

    @property
    def host(self) -> int:
        """Cycles outside the layers on accelerators, on the simulated host."""
        return self.cycles - self.on_cores

    @property
    def triggers(self) -> int:
        """Cycles of all triggers, from the driver's call on: cores busy, and their drivers."""
        return self.causes.cores + self.drivers

    @property
    def published_peak(self) -> float:
        """The paper's "Peak": triggers, and the host at the published cost."""
        return self.triggers + self.host_published

    @property
    def published_total(self) -> float:
        """The paper's end to end: with transfers and the published cost of calling a layer."""
        return self.on_cores + self.layers * PUBLISHED_HOST.layer + self.host_published


def row_of(network: str, configuration: Configuration, schedule: str) -> RowSource:
    """What a column of Table I is made of."""
    model = partial(zoo.build, network, scheme=configuration.scheme)
    name = f"{network} ({configuration.scheme})"
    return program(name, model, configuration.target, schedule=schedule)


def measure(
    network: str, configuration: Configuration, schedule: ScheduleKind, policy: str | None = None
) -> Measured | None:
    """Build a zoo network for a column of Table I and run it; ``None`` where it exceeds L2."""
    model = zoo.build(network, scheme=configuration.scheme)
    return measure_model(model, configuration.target, schedule, policy, network=network)


def measure_model(
    model: Model,
    target: str,
    schedule: ScheduleKind,
    policy: str | None = None,
    *,
    network: str = "",
) -> Measured | None:
    """Build a model and run it once; ``None`` where it exceeds L2."""
    try:
        module = htvm.build(model, target, schedule=schedule, policy=policy)
    except L2OverflowError:
        return None
    inputs = seeded_inputs(module.model.inputs)
    run = module.run(inputs)
    return _taken_apart(network, module, run, _equal(run, module.reference(inputs)))


def _equal(run: RunResult, wanted: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(run.outputs, wanted, strict=True))


def _taken_apart(network: str, module: Module, run: RunResult, exact: bool) -> Measured:
    assert run.cycles is not None and run.causes is not None
    steps = [step for step in run.layers if step.kind == "layer"]
    kernels = [
        kernel
        for code in module.compiled.regions.values()
        for kernel in code.kernels
        if kernel.program is not None
    ]
    blocks = [block for kernel in kernels for block in _blocks(kernel)]
    return Measured(
        cycles=run.cycles,
        causes=run.causes,
        on_cores=sum(step.cycles or 0 for step in steps),
        drivers=sum(_drivers(kernel) for kernel in kernels),
        calls=len(blocks),
        commands=sum(commands for commands, _ in blocks if commands > 1),
        moved=sum(commands * size for commands, size in blocks),
        layers=len(steps),
        host_published=_host_published(network, module),
        exact=exact,
        sizes=module.sizes,
        arena=module.compiled.program.plan.peak,
        arena_bound=module.compiled.program.plan.bound,
        steps=run.layers,
        padding=(*_constant_padding(kernels), *_map_padding(module)),
        dense_excess=sum(_dense_excess(kernel) for kernel in kernels),
    )


def _dense_excess(kernel: Kernel) -> int:
    if not isinstance(kernel.layer, Dense) or kernel.accelerator != DIGITAL.name:
        return 0
    more = -(-kernel.layer.K // DIGITAL.dense_max_k) - 1
    return more * (DIGITAL.dense_trigger_cycles - DIGITAL.dense_ahead_cycles)


_WHY = {
    ("conv2d", "digital"): "K to 16 per block",
    ("depthwise", "digital"): "zero weights between the 16 channels of a block",
    ("dense", "digital"): "C and K to 16, 16 B per bias",
    ("conv2d", "analog"): "rows to 288, columns to 128",
    ("dense", "analog"): "rows to 288, columns to 128",
}


def _constant_padding(kernels: Sequence[Kernel]) -> list[Padding]:
    """Of weights with biases or factors."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for kernel in kernels:
        layer = kernel.layer
        if not isinstance(layer, Weighted):
            continue
        bits = 2 if kernel.accelerator == "analog" else 8
        payload = -(-layer.weight.size * bits // 8) + 4 * layer.K
        stored = sum(int(constant.data.nbytes) for constant in kernel.constants)
        key = (layer.op, kernel.accelerator)
        before = found.get(key, (0, 0))
        found[key] = (before[0] + payload, before[1] + stored - payload)
    return [
        Padding(" on ".join(key), payload, padding, _WHY[key])
        for key, (payload, padding) in found.items()
    ]


def _map_padding(module: Module) -> list[Padding]:
    """Of tensors in the cores' layout that lie in L2, and of those that stay in L1."""
    payload = padding = 0
    for code in module.compiled.regions.values():
        for kernel in code.kernels:
            if kernel.layer is None:
                continue
            shape = kernel.layer.output.shape
            payload += kernel.layer.output.elements
            padding += stored_bytes(shape, DIGITAL.row_pitch) - kernel.layer.output.elements
    return [Padding("maps (results of layers on cores)", payload, padding, "rows to 16 B")]


def _blocks(kernel: Kernel) -> list[tuple[int, int]]:
    """(commands, bytes of each) of every DMA call of a layer, executed tile by tile."""
    assert kernel.program is not None
    found = []
    for step in steps_of(kernel.program):
        if isinstance(step, Load) and step.block.by_rows:
            found.append((step.block.channels * step.block.rows, step.block.bytes))
        elif isinstance(step, Load | Store):
            found.append(step.block.commands())
    return found


def _drivers(kernel: Kernel) -> int:
    """Host cycles inside the constants of all triggers of a layer."""
    assert kernel.program is not None and DIANA.dma is not None
    core = DIANA.accelerator(kernel.accelerator)
    total = 0
    for tile in kernel.program.order():
        trigger = kernel.program.call(tile)
        if isinstance(trigger, AnalogTrigger):
            assert isinstance(core, AnalogCore)
            passes = -(-trigger.c // trigger.c_pass)
            slices = -(-trigger.k // trigger.slice) if trigger.vector else 1
            total += core.driver_cycles + (passes * slices - 1) * (
                core.driver_cycles - core.ahead_cycles
            )
            continue
        assert isinstance(core, DigitalCore)
        if isinstance(trigger, ConvTrigger) and trigger.channels > 1:
            blocks = len(trigger.blocks())
            total += blocks * core.conv_driver_cycles - (blocks - 1) * core.dense_ahead_cycles
        elif isinstance(trigger, ConvTrigger) and trigger.depthwise:
            total += trigger.k * core.depthwise_driver_cycles
        elif isinstance(trigger, ConvTrigger):
            total += core.conv_driver_cycles
        elif isinstance(trigger, DenseTrigger):
            total += -(-trigger.k // core.lanes) * core.dense_driver_cycles
        else:
            total += core.add_driver_cycles
    return total


# ---------------------------------------------------------------------- the published host


def _host_published(network: str, module: Module) -> float:
    nodes = module.compiled.retargeted.model.graph.in_order
    on_cpu = [node for node in nodes if module.placement[node.name] == "cpu"]
    kernels = sum(_kernel_cycles(node) for node in on_cpu)
    return kernels + PUBLISHED_HOST.layout_byte * _border_bytes(network, module, nodes)


def _kernel_cycles(node: Node) -> float:
    cost = PUBLISHED_HOST
    elements = int(np.prod(node.input_shapes[0])) if node.input_shapes else 0
    if node.kind == "average_pool":
        sides = node.input_shapes[0][1:3]
        even = all(size & (size - 1) == 0 for size in sides)
        return elements * (cost.pool_element_pow2 if even else cost.pool_element)
    if node.kind == "softmax":
        return cost.softmax
    if node.kind == "add":
        return elements * cost.add_element
    if node.kind == "depthwise" and node.layer is not None:
        return node.layer.macs * cost.depthwise_mac
    if node.layer is not None and not isinstance(node.op, Convert):
        raise ValueError(f"{node.name}: the fit has no cost for a {node.kind} on the host")
    return 0.0


def _border_bytes(network: str, module: Module, nodes: tuple[Node, ...]) -> int:
    """Bytes that change their layout between cores and host code.

    Adds work in either layout: one on the host leaves its result in that of the cores.
    """
    in_cores_layout = {
        node.name: module.placement[node.name] != "cpu" or node.kind == "add" for node in nodes
    }
    kinds = {node.name: node.kind for node in nodes}
    sizes = {node.name: int(np.prod(node.output_shape)) for node in nodes}
    crossing: dict[str, int] = {}
    for node in nodes:
        for name, shape in zip(node.inputs, node.input_shapes, strict=False):
            if kinds.get(name) in (None, "convert") and network not in INPUT_CONVERTED:
                continue
            if in_cores_layout.get(name, False) != in_cores_layout[node.name]:
                crossing[name] = int(np.prod(shape))
    read = {name for node in nodes for name in node.inputs}
    results = [name for name in sizes if name not in read and in_cores_layout[name]]
    return sum(crossing.values()) + sum(sizes[name] for name in results)
