"""Networks on Siracusa, with N-EUREKA: imported files give their golden outputs, random networks
what the interpreter says; weights have memory of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tvm import relax

import htvm
from byoc_dory.layers import Shift
from byoc_dory.options import TilingOptions
from byoc_dory.soc.registry import resolve
from htvm import zoo
from htvm.errors import L2OverflowError
from htvm.firmware.sizes import check_l2
from htvm.inputs import seeded_inputs
from htvm.tools.project import open as open_project
from patterns.ops.add import Add
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.moves.pad import Pad
from patterns.ops.tflite.averages import AveragePool
from tests.e2e.networks import random_network
from tests.models_onnx import FILES, golden, onnx_path
from tests.reference.interpreter import interpret

EVERY_DAY = {
    "deeploy_kernels/Integer/Conv/DW_3x3_RQ": "rv32",
    "deeploy_kernels/Integer/Conv/Regular_3x3_RQ": "host",
    "deeploy_networks/miniMobileNet": "rv32",
    "deeploy_networks/CNN_Linear2": "host",
}
"""Compiled and run every day, each on one platform."""

SCHEMES = ("mul_shift", "tflite", "shift")


def check_golden(name: str, platform: Any) -> htvm.Module:
    """The file's golden output, bit for bit."""
    model = htvm.load(onnx_path(name))
    inputs, outputs = golden(name, model)
    module = htvm.build(model, target="siracusa", platform=platform)
    for array, wanted in zip(module.run(inputs).outputs, outputs, strict=True):
        np.testing.assert_array_equal(array, wanted)
    return module


@pytest.mark.parametrize("name", EVERY_DAY)
def test_files_give_their_golden_output(name: str) -> None:
    module = check_golden(name, EVERY_DAY[name])
    if "DW" in name:
        return  # so few channels that the cores are quicker
    assert any(row.accelerator == "neureka" for row in module.report().layers)


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["rv32", "host"])
@pytest.mark.parametrize("name", FILES)
def test_all_files_give_their_golden_output(name: str, platform: str) -> None:
    check_golden(name, platform)


@pytest.mark.parametrize("value", [7, -9])
def test_padding_with_another_value_than_zero(value: int) -> None:
    """Layers pad with 0: other values are written by the host, and the answer names them."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 9, 9, 8), "int8"))
    weight = np.random.default_rng(1).integers(-9, 9, (16, 8, 3, 3)).astype(np.int8)
    with bb.function("main", [x]):
        with bb.dataflow():
            padded = Pad(value, (1, 1, 1, 1)).write(bb, [x], "pad_0")
            conv = conv2d_of(weight, np.zeros(16, np.int32), Window(), Shift(5))
            result = bb.emit_output(conv.write(bb, [padded], "conv2d_0"))
        bb.emit_func_output(result)
    model = htvm.load(bb.get())
    module = htvm.build(model, target="siracusa")
    said = {row.layer: row for row in module.explain().rows}
    assert said["pad_0"].placed == "cpu" and said["conv2d_0"].placed != "cpu"
    reasons = {offer.accelerator: offer.reason for offer in said["pad_0"].offers}
    assert reasons["neureka"] == f"no pattern for pad with {value}"
    inputs = seeded_inputs(model.inputs)
    (got,), (wanted,) = module.run(inputs).outputs, interpret(model.module, inputs).outputs
    np.testing.assert_array_equal(got, wanted)


def test_sums_are_computed_beside_the_engine() -> None:
    """Nobody touches what another works on: the device models would complain."""
    rng = np.random.default_rng(2)
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 20, 14, 16), "int8"))
    wide, narrow = (rng.integers(-30, 30, (16, 16, n, n)).astype(np.int8) for n in (3, 1))
    with bb.function("main", [x]):
        with bb.dataflow():
            bias = rng.integers(-999, 999, 16).astype(np.int32)
            first = conv2d_of(narrow, bias, Window(), Shift(6)).write(bb, [x], "conv2d_0")
            window = Window(padding=(1, 1, 1, 1))
            second = conv2d_of(wide, bias, window, Shift(7)).write(bb, [first], "conv2d_1")
            total = Add(Shift(1), (0, 127)).write(bb, [first, second], "add_0")
            result = bb.emit_output(
                conv2d_of(narrow, bias, Window(), Shift(6)).write(bb, [total], "conv2d_2")
            )
        bb.emit_func_output(result)
    model = htvm.load(bb.get())
    module = htvm.build(model, target="siracusa", platform="rv32")
    inputs = seeded_inputs(model.inputs)
    run = module.run(inputs)
    (wanted,) = interpret(module.model.module, inputs).outputs
    np.testing.assert_array_equal(run.outputs[0], wanted)
    cycles = {row.name: row.cycles for row in run.layers}
    assert cycles["add_0"] < 50
    assert cycles["conv2d_1"] > 2000


def network_with_average(
    kernel: tuple[int, int], strides: tuple[int, int], channels: int
) -> htvm.Module:
    """A convolution, averages of windows of its result, and a product with these."""
    rng = np.random.default_rng(5)
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 12, 9, 8), "int8"))
    weights = (rng.integers(-30, 30, (channels, c, 1, 1)).astype(np.int8) for c in (8, channels))
    first, second = (conv2d_of(each, np.zeros(channels, np.int32), Window(), Shift(6))
                     for each in weights)  # fmt: skip
    with bb.function("main", [x]):
        with bb.dataflow():
            maps = first.write(bb, [x], "conv2d_0")
            means = AveragePool(kernel, strides).write(bb, [maps], "average_pool_0")
            result = bb.emit_output(second.write(bb, [means], "conv2d_1"))
        bb.emit_func_output(result)
    return bb.get()


@pytest.mark.parametrize("channels", [16, 6])
@pytest.mark.parametrize(
    ("kernel", "strides"), [((12, 9), (1, 1)), ((3, 2), (2, 1)), ((1, 4), (3, 4))]
)
def test_averages_are_computed_by_the_cores(
    kernel: tuple[int, int], strides: tuple[int, int], channels: int
) -> None:
    """Also in tiles, and nowhere else than a policy says; nothing leaves L1 around them."""
    model = htvm.load(network_with_average(kernel, strides, channels))
    inputs = seeded_inputs(model.inputs)
    (wanted,) = interpret(model.module, inputs).outputs
    for options, place in (
        ({"platform": "rv32"}, "cluster"),
        (
            {"tiling": TilingOptions(l1_budget=1500)},
            "cpu" if kernel[0] > 3 and channels > 6 else "cluster",
        ),
        ({"policy": {"average_pool_0": "cpu"}}, "cpu"),
        ({"tiling": TilingOptions(schedule="published")}, "cpu"),
    ):
        module = htvm.build(model, target="siracusa", **options)
        assert module.placement["average_pool_0"] == place, options
        np.testing.assert_array_equal(module.run(inputs).outputs[0], wanted)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("target", ["siracusa", "siracusa.cluster"])
def test_a_description_without_a_controller_core(target: str) -> None:
    """Then hart 0 is one of the cores, and computes with the others."""
    place = resolve(target)
    assert place.soc.cluster is not None
    cores = place.soc.cluster.cores
    without = replace(place.soc, cluster=replace(place.soc.cluster, harts=cores, first=0))
    network = random_network(6, "mul_shift")
    module = htvm.build(network.model, replace(place, soc=without))
    inputs = network.inputs(1)
    wanted = interpret(module.model.module, inputs).outputs
    for output, expected in zip(module.run(inputs).outputs, wanted, strict=True):
        np.testing.assert_array_equal(output, expected)


def check_random(seed: int) -> None:
    """A random network, built in a random way, equals the interpreter on its integer form."""
    rng = np.random.default_rng([seed, 23])
    scheme: Any = SCHEMES[seed % 3]
    budget = None if rng.random() < 0.5 else int(rng.integers(6_000, 40_000))
    platform: Any = "rv32" if seed % 3 == 2 else "host"
    network = random_network(seed, scheme, free=scheme == "shift")
    words = "\n".join((f"{seed} {scheme} {platform} {budget}", *network.text))
    module = htvm.build(network.model, "siracusa", platform, tiling=TilingOptions(l1_budget=budget))
    inputs = network.inputs(0)
    wanted = interpret(module.model.module, inputs).outputs
    for output, expected in zip(module.run(inputs).outputs, wanted, strict=True):
        np.testing.assert_array_equal(output, expected, err_msg=words)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("seed", range(70, 74))
def test_random_networks_equal_the_interpreter(seed: int) -> None:
    check_random(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6000, 6060))
def test_many_random_networks_equal_the_interpreter(seed: int) -> None:
    check_random(seed)


def module_inputs(module: htvm.Module) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [
        rng.integers(-128, 128, info.shape).astype(info.dtype)
        for info in module.compiled.source.inputs
    ]


def test_weights_are_counted_in_their_own_memory(tmp_path: Any) -> None:
    module = htvm.build(zoo.resnet8(), target="siracusa")
    program = module.compiled.program
    assert program.constant_memories == ("SRAM",)
    size = program.bytes_in("SRAM")
    assert size > 50_000
    assert module.report().summary.memory.apart == (("SRAM", size, 4 << 20),)
    assert f"SRAM: {size:,} of 4,194,304 B = weights" in str(module.report())
    # At the addresses where the engine reads them.
    sram = resolve("siracusa").soc.memory("SRAM")
    symbols = module._built.firmware.symbols
    for constant in program.constants:
        inside = sram.base <= symbols[constant.name].address < sram.end
        assert inside == (constant.memory == "SRAM"), constant.name
    # As an export that is opened again knows.
    folder = module.export(tmp_path / "project")
    opened = open_project(folder, trust=True)
    assert opened.program.bytes_in("SRAM") == size
    np.testing.assert_array_equal(
        opened.run(inputs := module_inputs(module)).outputs[0], module.run(inputs).outputs[0]
    )


def test_too_many_weights_are_an_error_before_anything_is_compiled() -> None:
    module = htvm.build(zoo.resnet8(), target="siracusa")
    soc = module.compiled.target.soc
    small = replace(
        soc, memories=tuple(replace(m, size=1000) if m.name == "SRAM" else m for m in soc.memories)
    )
    with pytest.raises(L2OverflowError, match=r"B of SRAM, there are 1,000 B"):
        check_l2(module.compiled.program, small)
