"""Every build of a network equals its integer form, run by the interpreter in numpy.

The networks are random (`tests.e2e.networks`), and so are target, platform and options.  What is
built for the digital core is compared with the module that retargeting has made, everything else
with the module it was built from.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pytest

import htvm
from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import Target
from byoc_dory.soc.diana.description import DIGITAL
from byoc_dory.soc.registry import resolve
from byoc_dory.verdict import Accepted
from htvm.inputs import seeded_inputs
from htvm.quantization import retarget
from patterns.reading.read import graph_of
from tests.e2e.draws import Scheme
from tests.e2e.networks import Network, random_network
from tests.reference.interpreter import interpret

EVERYDAY = range(202, 227)
MANY = range(1000, 1300)


@dataclass(frozen=True)
class Case:
    """How a network is built.

    Attributes:
        seed: of the network and of everything below.
        scheme: of its layers.
        target, platform, cpu_kernels: of the build.
        tight: factor between the least L1 under which every layer has a tile and the tiler's
            budget; ``None``: the whole L1.
        tiling: its other options.
        free: whether the network may hold what retargeting does not know.
    """

    seed: int
    scheme: Scheme
    target: str
    platform: Literal["host", "rv32"]
    cpu_kernels: Literal["scheduled", "default"]
    tight: float | None
    tiling: TilingOptions
    free: bool

    @property
    def on_core(self) -> bool:
        """Whether the target has an accelerator."""
        return self.target in ("diana", "diana.digital")

    def __str__(self) -> str:
        place = f"{self.seed}-{self.scheme}-{self.target}-{self.platform}-{self.cpu_kernels}"
        if not self.on_core:
            return place
        order = self.tiling.loop_order
        return f"{place}-{self.tight}-{self.tiling.schedule}-{self.tiling.tiles_for('')}-{order}"


def case_of(seed: int) -> Case:
    """The case of a seed: of any 20 in a row, 11 are for the digital core."""
    rng = np.random.default_rng([seed, 5])
    scheme, target, platform, cpu_kernels = _WAYS[seed % len(_WAYS)]
    # Half of the builds are what a user gets who asks for nothing: joint, of least latency.
    objective = str(rng.choice(list(DIGITAL.objectives))) if rng.random() < 0.5 else None
    tiling = TilingOptions(
        objective=objective,
        loop_order="yxk" if rng.random() < 0.5 else "kyx",
        solver="exhaustive" if objective is not None and rng.random() < 0.2 else "milp",
        schedule="published" if rng.random() < 0.2 else "overlapped",
    )
    tight = round(float(rng.choice([1.0, 1.0, rng.uniform(1, 4)])), 2)
    retargeted = target.startswith("diana") and target != "diana.cpu" and scheme != "shift"
    return Case(
        seed, scheme, target, platform, cpu_kernels,
        None if rng.random() < 0.2 else tight, tiling, not retargeted and bool(rng.random() < 0.7),
    )  # fmt: skip


_WAYS: tuple[tuple[Scheme, str, Literal["host", "rv32"], Literal["scheduled", "default"]], ...] = (
    ("shift", "diana.digital", "host", "scheduled"),
    ("tflite", "diana.cpu", "host", "scheduled"),
    ("shift", "diana.digital", "host", "scheduled"),
    ("tflite", "diana.digital", "host", "scheduled"),
    ("shift", "diana.digital", "host", "default"),
    ("mul_shift", "generic.cpu", "host", "scheduled"),
    ("shift", "diana.digital", "rv32", "scheduled"),
    ("tflite", "diana.cpu", "host", "default"),
    ("shift", "diana.digital", "host", "scheduled"),
    ("shift", "diana.cpu", "host", "scheduled"),
    ("tflite", "diana.digital", "host", "scheduled"),
    ("tflite", "diana.cpu", "rv32", "scheduled"),
    ("shift", "diana", "host", "scheduled"),
    ("mul_shift", "diana.digital", "host", "scheduled"),
    ("mul_shift", "diana.cpu", "host", "default"),
    ("shift", "diana.digital", "host", "scheduled"),
    ("tflite", "diana.digital", "rv32", "scheduled"),
    ("shift", "diana.cpu", "host", "default"),
    ("mul_shift", "diana.cpu", "rv32", "default"),
    ("tflite", "diana.cpu", "host", "scheduled"),
)


def least_l1(model: htvm.Model, target: Target) -> int:
    """Bytes of L1 that the smallest tiles of the layers an accelerator takes need at least."""
    needs = [1]
    for node, core in itertools.product(graph_of(model.module).in_order, target.accelerators):
        if node.layer is not None and isinstance(core.judge(target.soc, node.layer), Accepted):
            problem = core.tiling_problem(
                target.soc, node.layer, TilingOptions(schedule="published")
            )
            tiles_in, tiles_out, _ = problem.memory(problem.smallest)
            needs.append(tiles_in + tiles_out)
    return max(needs)


def build(case: Case, network: Network) -> htvm.Module:
    """Build the network as the case says."""
    tiling = case.tiling
    if case.tight is not None and case.on_core:
        place = resolve(case.target)
        model = retarget(network.model, place.accelerators).model
        tiling = replace(tiling, l1_budget=int(least_l1(model, place) * case.tight))
    return htvm.build(
        network.model, case.target, case.platform, cpu_kernels=case.cpu_kernels, tiling=tiling
    )


def check(case: Case, operators: int | None = None) -> tuple[htvm.Module, list[Any]]:
    """Build and run the network of a case; returns the module and the outputs compared.

    Only retargeting changes numbers.  Where there is none, the source says what is expected, even
    if layers are computed by other operators.
    """
    network = random_network(case.seed, case.scheme, free=case.free, operators=operators)
    words = "\n".join((str(case), *network.text))
    module = build(case, network)
    if not case.on_core:
        assert module.model.module is network.model.module, words
    kept = not case.on_core or case.scheme == "shift"
    expected = network.model.module if kept else module.model.module
    compared = []
    for number in range(2):
        inputs = network.inputs(number)
        outputs = module.run(inputs).outputs
        wanted = interpret(expected, inputs).outputs
        assert len(outputs) == len(wanted), words
        infos = network.model.outputs
        for info, output, right in zip(infos, outputs, wanted, strict=True):
            assert (output.shape, output.dtype) == (info.shape, np.int8), words
            where = f"{words}\noutput {info.name} of inputs {number}"
            np.testing.assert_array_equal(output, right, err_msg=where)
            compared.append(output)
    return module, compared


@pytest.mark.rotating(3)
@pytest.mark.parametrize("seed", EVERYDAY, ids=lambda seed: str(case_of(seed)))
def test_a_build_equals_the_integer_form(seed: int) -> None:
    check(case_of(seed))


def test_the_networks_are_worth_comparing() -> None:
    """Layers of every kind run on the core, and outputs are more than a few values repeated."""
    places, kinds, varied = set(), set(), []
    for seed in EVERYDAY:
        case = case_of(seed)
        network = random_network(seed, case.scheme, free=case.free)
        target = resolve(case.target)
        for node in graph_of(network.model.module).in_order:
            kinds.add(node.kind)
            for core in target.accelerators:
                if node.layer and isinstance(core.judge(target.soc, node.layer), Accepted):
                    places.add(node.kind)
        tensors = interpret(network.model.module, network.inputs(1)).tensors.values()
        varied += [len(np.unique(tensor)) >= min(8, tensor.size // 4) for tensor in tensors]
    assert places == {"conv2d", "depthwise", "dense", "add"}
    assert kinds >= places | {"convert", "average_pool", "max_pool", "pad", "reshape", "softmax"}
    assert np.mean(varied) > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY, ids=lambda seed: str(case_of(seed)))
def test_many_builds_equal_the_integer_form(seed: int) -> None:
    module, _ = check(case_of(seed))
    if seed % 5 == 0:
        inputs = seeded_inputs(module.compiled.source.inputs)
        for output, expected in zip(
            module.run(inputs).outputs, module.reference(inputs), strict=True
        ):
            np.testing.assert_array_equal(output, expected)
