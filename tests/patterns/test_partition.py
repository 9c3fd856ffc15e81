"""Dispatch and partitioning: who takes what, and which regions follow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tvm import relax

import htvm
from byoc_dory.cost import Cost
from byoc_dory.layers import Layer, MulShift, Shift
from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import Accelerator, Soc, Target
from byoc_dory.soc.registry import resolve
from byoc_dory.verdict import CPU, Accepted, Refused, Verdict
from patterns.byoc.codegen import run_codegen
from patterns.byoc.partition import Partition, partition
from patterns.dispatch.dispatching import dispatch
from patterns.ops.add import Add
from patterns.ops.convert import Convert
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.tflite.averages import AveragePool
from patterns.reading.read import graph_of

RNG = np.random.default_rng(3)


class Net:
    """Writes small networks in the shift scheme."""

    def __init__(self, shape: tuple[int, ...] = (1, 8, 8, 16)) -> None:
        self.bb = relax.BlockBuilder()
        self.x = relax.Var("x", relax.TensorType(shape, "int8"))

    def conv(self, x: relax.Var, name: str, *, size: int = 3, stride: int = 1) -> relax.Var:
        weight = RNG.integers(-8, 8, (16, 16, size, size)).astype("int8")
        bias = RNG.integers(-99, 99, 16).astype("int32")
        pad = (size // 2,) * 4
        return conv2d_of(
            weight, bias, Window(strides=(stride, stride), padding=pad), Shift(6)
        ).write(self.bb, [x], name)

    def finish(self, body) -> relax.IRModule:  # type: ignore[no-untyped-def]
        with self.bb.function("main", [self.x]):
            with self.bb.dataflow():
                result = body(self)
                results = result if isinstance(result, tuple) else (result,)
                out = [self.bb.emit_output(value) for value in results]
            self.bb.emit_func_output(out[0] if len(out) == 1 else relax.Tuple(out))
        return self.bb.get()


def cut(module: relax.IRModule, target: str = "diana.digital") -> Partition:
    place = resolve(target)
    graph = graph_of(module)
    placed = dispatch(graph, place.soc, place.accelerators)
    return partition(graph, placed, place, TilingOptions())


def layers_of(parts: Partition) -> list[list[str]]:
    return [[layer.name for layer in region.layers] for region in parts.regions.values()]


def test_a_residual_block_is_one_region() -> None:
    def body(net: Net) -> relax.Var:
        a = net.conv(net.x, "conv2d_0")
        b = net.conv(a, "conv2d_1")
        return Add(Shift(1), (0, 127)).write(net.bb, [a, b], "add_0")

    parts = cut(Net().finish(body))
    assert layers_of(parts) == [["conv2d_0", "conv2d_1", "add_0"]]
    (region,) = parts.regions.values()
    assert [(tensor.name, tensor.layout) for tensor in region.inputs] == [("x", "NHWC")]
    assert [(tensor.name, tensor.layout) for tensor in region.outputs] == [("add_0", "NHWC")]
    assert {tensor.layout for layer in region.layers for tensor in layer.inputs} == {"CHW"}


def test_a_cpu_operator_between_splits_acyclically() -> None:
    """conv2d_0 feeds the pool and, behind it, the add: one region would contain a cycle."""

    def body(net: Net) -> relax.Var:
        a = net.conv(net.x, "conv2d_0")
        pooled = AveragePool(kernel=(3, 3), strides=(1, 1), padding=(1, 1, 1, 1)).write(
            net.bb, [a], "average_pool_0"
        )
        b = net.conv(pooled, "conv2d_1")
        return Add(Shift(1), (0, 127)).write(net.bb, [a, b], "add_0")

    parts = cut(Net().finish(body))
    assert layers_of(parts) == [["conv2d_0"], ["conv2d_1", "add_0"]]
    second = list(parts.regions.values())[1]
    assert {tensor.name for tensor in second.inputs} == {"average_pool_0", "conv2d_0"}


def test_an_inner_tensor_that_is_also_a_result_is_an_output_of_its_region() -> None:
    def body(net: Net) -> tuple[relax.Var, ...]:
        a = net.conv(net.x, "conv2d_0")
        return net.conv(a, "conv2d_1"), a

    parts = cut(Net().finish(body))
    (region,) = parts.regions.values()
    assert {tensor.name for tensor in region.outputs} == {"conv2d_0", "conv2d_1"}
    place = resolve("diana.digital")
    made = run_codegen(parts, Cost(place.soc, TilingOptions()), place.accelerators, "net")
    (code,) = made.code.values()
    assert [tensor.name for tensor in code.outputs] == [tensor.name for tensor in region.outputs]


def test_both_operands_of_an_add_may_be_inputs_of_the_region() -> None:
    def body(net: Net) -> relax.Var:
        pools = [
            AveragePool(kernel=(k, k), strides=(1, 1), padding=(k // 2,) * 4).write(
                net.bb, [net.x], name
            )
            for k, name in ((3, "average_pool_0"), (5, "average_pool_1"))
        ]
        return Add(Shift(1)).write(net.bb, [pools[1], pools[0]], "add_0")

    (region,) = cut(Net().finish(body)).regions.values()
    assert {tensor.name for tensor in region.inputs} == {"average_pool_0", "average_pool_1"}
    assert [tensor.name for tensor in region.layers[0].inputs] == [
        "average_pool_1",
        "average_pool_0",
    ]


def test_without_accelerators_nothing_is_grouped() -> None:
    module = Net().finish(lambda net: net.conv(net.x, "conv2d_0"))
    assert cut(module, "diana.cpu").regions == {}


def _no_stride_two(_soc: Soc, _core: Accelerator, layer: Layer) -> Verdict:
    """Stride is 1x1."""
    if layer.stride != (1, 1):
        return Refused(f"stride is {layer.stride[0]}x{layer.stride[1]}")
    return Accepted()


def test_the_first_refusal_is_the_verdict_and_the_operator_stays_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def body(net: Net) -> relax.Var:
        a = net.conv(net.x, "conv2d_0", stride=2)
        return AveragePool(kernel=(4, 4), strides=(4, 4)).write(net.bb, [a], "average_pool_0")

    module = Net().finish(body)
    place = resolve("diana.digital")
    monkeypatch.setattr(type(place.accelerators[0]), "rules", (("DIGITAL-1", _no_stride_two),))
    placed = dispatch(graph_of(module), place.soc, place.accelerators)
    assert placed.placement == {"conv2d_0": CPU, "average_pool_0": CPU}
    conv, pool = placed.verdicts
    assert (conv.accepted, conv.reason) == (False, "stride is 2x2")
    assert conv.rule == "DIGITAL-1: Stride is 1x1."
    assert not pool.accepted and "no pattern" in pool.reason


def test_the_first_accelerator_that_accepts_gets_the_operator() -> None:
    module = Net().finish(lambda net: net.conv(net.x, "conv2d_0"))
    place = resolve("diana.digital")
    (core,) = place.accelerators
    twin = replace(core, name="twin")
    soc = replace(place.soc, accelerators=(twin, core))
    placed = dispatch(graph_of(module), soc, (twin, core))
    assert placed.placement == {"conv2d_0": "twin"}
    parts = partition(graph_of(module), placed, Target("fake", soc, (twin, core)), TilingOptions())
    assert [set(region.homes) for region in parts.regions.values()] == [{"twin"}]
    for order in ((twin, core), (core, twin)):
        ordered = replace(soc, accelerators=order)
        made = run_codegen(parts, Cost(ordered, TilingOptions()), order, "net")
        assert {kernel.accelerator for code in made.code.values() for kernel in code.kernels} == {
            "cpu",
            "twin",
        }


def _converted(net: Net, offset: int = 129) -> relax.Var:
    return Convert(Shift(1), (-128, 127), offset=offset).write(net.bb, [net.x], "convert_0")


def test_a_conversion_is_absorbed_by_the_region_that_reads_it() -> None:
    module = Net().finish(lambda net: net.conv(_converted(net), "conv2d_0"))
    parts = cut(module)
    (region,) = parts.regions.values()
    assert [tensor.name for tensor in region.inputs] == ["x"]
    (entry,) = region.maps
    assert (entry.tensor, entry.source) == ("convert_0", "x")
    for byte in range(256):
        value = byte - 256 if byte > 127 else byte
        assert int(entry.table[byte]) == min(127, (value + 129) >> 1) & 0xFF


def test_a_conversion_somebody_else_reads_stays_outside() -> None:
    def read_by_a_pool(net: Net) -> tuple[relax.Var, ...]:
        x = _converted(net)
        pool = AveragePool(kernel=(8, 8), strides=(8, 8)).write(net.bb, [x], "average_pool_0")
        return net.conv(x, "conv2d_0"), pool

    def returned(net: Net) -> tuple[relax.Var, ...]:
        x = _converted(net)
        return net.conv(x, "conv2d_0"), x

    for body in (read_by_a_pool, returned):
        (region,) = cut(Net().finish(body)).regions.values()
        assert region.maps == ()
        assert [tensor.name for tensor in region.inputs] == ["convert_0"]


def test_a_conversion_of_a_result_is_not_absorbed() -> None:
    """What it reads is made on the core, so it would not lie at the region's border."""

    def body(net: Net) -> relax.Var:
        a = net.conv(net.x, "conv2d_0")
        b = Convert(Shift(1), (-128, 127), offset=1).write(net.bb, [a], "convert_0")
        return net.conv(b, "conv2d_1")

    parts = cut(Net().finish(body))
    assert layers_of(parts) == [["conv2d_0"], ["conv2d_1"]]
    assert all(region.maps == () for region in parts.regions.values())


@pytest.mark.rotating(1)
@pytest.mark.parametrize("offset", [129, -82, 0])
def test_absorbed_conversions_compute_what_the_integer_form_says(offset: int) -> None:
    def body(net: Net) -> relax.Var:
        x = _converted(net, offset)
        return Add(Shift(1), (0, 127)).write(net.bb, [net.conv(x, "conv2d_0"), x], "add_0")

    model = htvm.load(Net((1, 6, 5, 16)).finish(body), name="border")
    module = htvm.build(model, "diana.digital", "host")
    x = RNG.integers(-128, 128, (1, 6, 5, 16)).astype("int8")
    np.testing.assert_array_equal(module.run(x).outputs[0], module.reference(x)[0])


def test_two_regions_may_read_one_absorbed_conversion() -> None:
    """The second region reads what the first one converted, by a function of its own."""

    def body(net: Net) -> relax.Var:
        x = _converted(net)
        a = net.conv(x, "conv2d_0")
        pool = AveragePool(kernel=(1, 1), strides=(1, 1)).write(net.bb, [a], "average_pool_0")
        return Add(Shift(1), (0, 127)).write(net.bb, [pool, x], "add_0")

    model = htvm.load(Net((1, 6, 5, 16)).finish(body), name="border")
    module = htvm.build(model, "diana.digital", "host")
    assert len(module.compiled.regions) == 2
    x = RNG.integers(-128, 128, (1, 6, 5, 16)).astype("int8")
    np.testing.assert_array_equal(module.run(x).outputs[0], module.reference(x)[0])


@pytest.mark.parametrize("maps", [1, 16])
def test_a_conversion_of_channels_apart_is_no_table(maps: int) -> None:
    requant = MulShift(tuple(range(3, 3 + maps)), (4,), (8,))

    def body(net: Net) -> relax.Var:
        x = Convert(requant, (-128, 127), offset=3).write(net.bb, [net.x], "convert_0")
        return net.conv(x, "conv2d_0")

    model = htvm.load(Net((1, 6, 5, 16)).finish(body), name="border")
    module = htvm.build(model, "diana.digital", "host")
    (region,) = module.compiled.regions.values()
    assert [tensor.name for tensor in region.inputs] == ["x" if maps == 1 else "convert_0"]
    x = RNG.integers(-128, 128, (1, 6, 5, 16)).astype("int8")
    np.testing.assert_array_equal(module.run(x).outputs[0], module.reference(x)[0])
