"""Quantizers: with power-of-two scales, converted modules compute what the target computes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
pytest.importorskip("torchao", reason="needs the extra torch")

import htvm.torch  # noqa: E402
from htvm.errors import InputError, ModelError, TargetError  # noqa: E402
from tests.torch.dyadic import Machine, exponent_of  # noqa: E402
from tests.torch.nets import Chain, Residual, images, random_norms  # noqa: E402


@lru_cache
def calibrated(net: Any, target: str, **options: Any) -> Any:
    """Return a converted module, calibrated with seeded images."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    prepared = htvm.torch.prepare(random_norms(net()), (images(1),), target, **options)
    prepared(images(64))
    return htvm.torch.convert(prepared)


@lru_cache
def program_of(converted: Any) -> Any:
    return torch.export.export(converted, (images(1),))


def called(program: Any, name: str) -> list[Any]:
    return [node for node in program.graph.nodes if name in str(node.target)]


@pytest.mark.rotating(2)
@pytest.mark.parametrize("net", [Residual, Chain])
@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("diana.digital", {}),
        ("diana.analog", {}),
        ("siracusa", {}),
        ("siracusa", {"weight_bits": 2}),
    ],
)
def test_torch_equals_shifts_of_integers(net: Any, target: str, options: Any) -> None:
    converted = calibrated(net, target, **options)
    machine = Machine(program_of(converted))
    inputs = images(24, seed=1)
    with torch.no_grad():
        wanted = np.concatenate([converted(each[None]).numpy() for each in inputs])
    found = np.concatenate([machine.run(each[None].numpy()) for each in inputs])
    assert np.array_equal(found, wanted)
    assert len(np.unique(wanted)) > 10


@pytest.mark.parametrize("target", ["diana.digital", "diana.analog", "siracusa"])
def test_results_of_layers_are_no_ties(target: str) -> None:
    machine = Machine(program_of(calibrated(Chain, target)))
    for each in images(8, seed=2):
        machine.run(each[None].numpy())
    assert machine.ties == 0


def test_a_digital_sum_has_one_scale() -> None:
    program = program_of(calibrated(Residual, "diana.digital"))
    (total,) = called(program, "aten.add.Tensor")
    scales = {operand.args[1] for operand in total.args}
    (relu,) = total.users
    (result,) = relu.users
    assert scales == {result.args[1]}


def test_weights_of_a_digital_core_have_one_scale_and_those_of_a_cluster_many() -> None:
    assert called(program_of(calibrated(Chain, "diana.digital")), "per_channel") == []
    assert len(called(program_of(calibrated(Chain, "siracusa")), "dequantize_per_channel")) == 4


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_weights_have_the_bits_asked_for(bits: int) -> None:
    converted = calibrated(Chain, "siracusa", weight_bits=bits)
    weights = [value.numpy() for name, value in converted.state_dict().items() if "frozen" in name]
    assert weights
    for weight in weights:
        assert weight.min() >= -(1 << (bits - 1))
        assert weight.max() < 1 << (bits - 1)
    assert max(np.abs(weight).max() for weight in weights) >= 1 << (bits - 2)


def test_only_layers_read_unsigned_numbers() -> None:
    """Sums, and what is computed in reals, have operands of int8."""
    found = [
        [str(node.args[5]) for node in called(program_of(calibrated(net, target)), ".quantize_per")]
        for net, target in ((Chain, "siracusa"), (Residual, "siracusa"), (Chain, "snitch_ita"))
    ]
    assert found[0] == ["torch.int8", *["torch.uint8"] * 4, "torch.int8"]
    assert {*found[1], *found[2]} == {"torch.int8"}


@pytest.mark.rotating(2)
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("target", ["siracusa", "siracusa.cluster", "cortex_m4"])
@pytest.mark.parametrize("bits", [2, 8])
def test_unsigned_numbers_are_computed_exactly(bits: int, target: str, training: bool) -> None:
    converted = calibrated(Chain, "siracusa", weight_bits=bits, training=training)
    module = htvm.build(htvm.torch.export(converted), target, "host")
    inputs = images(12, seed=1)
    with torch.no_grad():
        wanted = np.concatenate([converted(each[None]).numpy() for each in inputs])
    found = np.concatenate([module.run(each[None].numpy()).outputs[0] for each in inputs])
    assert np.array_equal(found, wanted) and len(np.unique(wanted)) > 10
    kinds = {node.output_dtype for node in module.compiled.retargeted.model.graph.in_order}
    assert "uint8" in kinds


def test_an_array_floors_multiplies_and_adds_in_sixteen_bits() -> None:
    program = program_of(calibrated(Chain, "diana.analog"))
    state = Machine(program).state
    products = [*called(program, "aten.conv2d"), *called(program, "aten.linear")]
    assert len(products) == 4
    for product in products:
        read, weight, offset = product.args[:3]
        (converter,) = product.users
        assert converter.args[3:5] == (-32, 31)
        assert weight.args[1:3] == (1.0, 0)
        assert set(np.unique(state[weight.args[0].name])) == {-1, 0, 1}
        gain = converter.args[1] / read.args[1]
        assert 1 <= gain == 2.0 ** exponent_of(gain)
        assert read.args[3:5] == (-64, 63)
        # Adding it and rounding to the nearest is dividing by the gain and flooring.
        floors = (1 - gain) / 2 if gain > 1 else 0
        assert np.array_equal(
            state[offset.name], np.full(len(offset.meta["val"]), floors * read.args[1])
        )
    for scaled in called(program, "aten.mul.Tensor"):
        converted, factor = scaled.args
        (result,) = scaled.users
        step = converted.args[1] * factor.args[1]
        last = result
        while "quantize_per_tensor" not in str(last.target):
            (last,) = last.users
        half = last.args[1] / step / 2
        assert half >= 1
        added = np.floor(state[result.args[1].name] / step) + half
        assert added.min() >= -(1 << 15) and added.max() < 1 << 15


def test_a_wide_layer_takes_passes() -> None:
    torch.manual_seed(0)
    wide = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(2500, 4))
    prepared = htvm.torch.prepare(wide, (images(1, size=50),), "diana.analog")
    prepared(images(8, size=50))
    converted = htvm.torch.convert(prepared)
    program = torch.export.export(converted, (images(1, size=50),))
    rows = [node.meta["val"].shape[-1] for node in called(program, "aten.slice")]
    assert rows == [1152, 1152, 196]
    machine = Machine(program)
    for each in images(8, seed=1, size=50):
        assert np.array_equal(machine.run(each[None].numpy()), converted(each[None]).numpy())


def test_noise_is_for_arrays_and_no_other_word() -> None:
    with pytest.raises(TargetError, match="no in-memory array"):
        htvm.torch.Quantizer("diana.digital", noise=0.5)
    for noise in (-1, float("nan"), "0.5", True):
        with pytest.raises(InputError, match="noise"):
            htvm.torch.Quantizer("diana.analog", noise=noise)
    with pytest.raises(InputError, match="ternary"):
        htvm.torch.Quantizer("diana.analog", weight_bits=4)


def test_a_host_gets_free_scales_and_clips_in_layers() -> None:
    program = program_of(calibrated(Residual, "cortex_m4"))
    (clip,) = called(program, "relu6")
    assert "conv2d" in str(clip.args[0].target)
    scales = [node.args[1] for node in called(program, "aten.quantize_per_tensor")]
    scales += [node.args[1] for node in called(program, "quantized_decomposed.quantize_per")]
    with pytest.raises(AssertionError, match="no power of two"):
        for scale in scales:
            exponent_of(scale)


def test_the_target_is_part_of_the_program() -> None:
    program = program_of(calibrated(Chain, "diana.digital"))
    assert bytes(program.state_dict["htvm_target"].tolist()).decode() == "diana.digital"


def test_stock_torchao_may_use_it() -> None:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    torch.manual_seed(0)
    exported = torch.export.export(random_norms(Chain()).eval(), (images(1),)).module()
    prepared = prepare_pt2e(exported, htvm.torch.Quantizer("diana.digital"))
    for each in images(16):
        prepared(each[None])
    machine = Machine(program_of(convert_pt2e(prepared)))
    machine.run(images(1).numpy())
    assert machine.ties == 0


@pytest.mark.parametrize("target", ["diana.analog", "diana.digital", "cortex_m4"])
def test_layers_of_a_transformer_take_any_batch(target: str) -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    prepared = htvm.torch.prepare(layer, (torch.zeros(1, 4, 16),), target)
    prepared(torch.rand(8, 4, 16))
    converted = htvm.torch.convert(prepared)
    with torch.no_grad():
        assert converted(torch.rand(3, 4, 16)).shape == (3, 4, 16)


def test_the_module_given_stays_as_it_is() -> None:
    torch.manual_seed(0)
    net = Residual()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    prepared = htvm.torch.prepare(net, (images(1),), "diana.digital", training=True)
    prepared(images(4))
    assert net.training
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


@pytest.mark.parametrize("bits", [1, 9, 2.0, True, "4"])
def test_other_bits_are_refused(bits: Any) -> None:
    with pytest.raises(InputError, match="2"):
        htvm.torch.Quantizer("siracusa", weight_bits=bits)


def test_other_targets_are_refused() -> None:
    with pytest.raises(TargetError, match="diana.digitall"):
        htvm.torch.Quantizer("diana.digitall")


def test_no_module_and_no_inputs_are_refused() -> None:
    with pytest.raises(ModelError, match="dict is no module"):
        htvm.torch.prepare({}, (images(1),), "diana.digital")
    with pytest.raises(InputError, match="at least one"):
        htvm.torch.prepare(Chain(), (), "diana.digital")


def test_what_torch_cannot_export_is_refused() -> None:
    class Branches(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x

    with pytest.raises(ModelError, match="cannot export"):
        htvm.torch.prepare(Branches(), (images(1),), "diana.digital")


def test_converting_without_data_is_refused() -> None:
    prepared = htvm.torch.prepare(Chain(), (images(1),), "diana.digital")
    with pytest.raises(InputError, match="no data went through"):
        htvm.torch.convert(prepared)
    with pytest.raises(ModelError, match="not prepared"):
        htvm.torch.convert(Chain())
