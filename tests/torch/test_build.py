"""From a module to a program: what was trained in torch is what the simulated chip computes."""

from __future__ import annotations

import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
pytest.importorskip("torchao", reason="needs the extra torch")

import htvm  # noqa: E402
import htvm.torch  # noqa: E402
from htvm.errors import InputError, ModelError  # noqa: E402
from tests.torch.nets import Chain, Residual, images, random_norms  # noqa: E402


@lru_cache
def converted(net: Any, target: str) -> Any:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    prepared = htvm.torch.prepare(random_norms(net()), (images(1),), target)
    prepared(images(64))
    return htvm.torch.convert(prepared)


def different(module: Any, wanted: Any, inputs: Any) -> int:
    """Return how many outputs of a build differ from those of a module of torch."""
    with torch.no_grad():
        return sum(
            int((module.run(x[None].numpy()).outputs[0] != wanted(x[None]).numpy()).sum())
            for x in inputs
        )


@pytest.mark.rotating(2)
@pytest.mark.parametrize("net", [Chain, Residual])
@pytest.mark.parametrize(
    ("target", "core"),
    [
        ("diana.digital", "digital"), ("diana.analog", "analog"), ("siracusa", "neureka"),
        ("ethos_u55:macs=64", "ethos_u55"),
    ],
)  # fmt: skip
def test_a_build_equals_the_module(net: Any, target: str, core: str) -> None:
    if core.startswith("ethos"):
        pytest.importorskip("ethosu.regor", reason="ethos-u-vela is not installed")
    module = htvm.build(converted(net, target), target, "host")
    assert different(module, converted(net, target), images(16, seed=3)) == 0
    assert list(module.placement.values()).count(core) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("target", ["diana.digital", "diana.analog", "siracusa"])
def test_firmware_equals_the_module(target: str) -> None:
    module = htvm.build(converted(Chain, target), target)
    assert different(module, converted(Chain, target), images(2, seed=3)) == 0


def test_every_layer_with_weights_is_on_the_array() -> None:
    model = htvm.load(converted(Chain, "diana.analog"))
    kinds = [type(node.op).__name__ for node in model.graph.in_order if node.layer is not None]
    assert kinds == ["AnalogConv2d", "AnalogConv2d", "AnalogConv2d", "AnalogDense"]
    names = [node.name for node in model.graph.in_order if node.layer is not None]
    assert names == ["conv1", "conv2", "conv3", "dense"]


def test_other_numbers_are_no_layer_of_an_array() -> None:
    module = copy.deepcopy(converted(Chain, "diana.analog"))
    name = next(name for name, _ in module.named_buffers() if name.endswith("_bias_on_grid"))
    module.get_buffer(name).mul_(1.001)
    graph = htvm.load(module).graph
    kinds = [type(node.op).__name__ for node in graph.in_order if node.layer is not None]
    assert kinds.count("AnalogConv2d") == 2 and "Conv2d" in kinds


def test_passes_become_one_layer() -> None:
    torch.manual_seed(0)
    wide = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(2500, 4))
    prepared = htvm.torch.prepare(wide, (images(1, size=50),), "diana.analog")
    prepared(images(8, size=50))
    made = htvm.torch.convert(prepared)
    module = htvm.build(made, "diana.analog", "host")
    assert different(module, made, images(8, seed=1, size=50)) == 0
    (requant,) = {
        node.layer.requant for node in htvm.load(made).graph.in_order if node.layer is not None
    }
    assert requant.rows == 1152


@pytest.mark.rotating(1)
@pytest.mark.parametrize("target", ["cortex_m4", "diana.digital"])
def test_a_network_in_reals_in_one_call(target: str) -> None:
    torch.manual_seed(0)
    net = random_norms(Chain()).eval()
    module = htvm.build(net, target, "host", data=images(48).numpy())
    inputs = images(16, seed=3)
    with torch.no_grad():
        wanted = net(inputs).numpy()
    found = np.concatenate([module.run(x[None].numpy()).outputs[0] for x in inputs])
    noise = np.square(found - wanted).sum() / np.square(wanted).sum()
    assert 10 * np.log10(1 / noise) > 25
    assert module.compiled.source.quantized_for == target


def test_data_have_many_forms(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = Chain().eval()
    array = images(6).numpy()
    np.savez(tmp_path / "data.npz", whatever=array)
    program = torch.export.export(net, (images(1),))
    made = [
        htvm.quantize(net, "cortex_m4", array),
        htvm.quantize(net, "cortex_m4", images(6)),
        htvm.quantize(net, "cortex_m4", list(array)),
        htvm.quantize(net, "cortex_m4", {"x": array}),
        htvm.quantize(net, "cortex_m4", tmp_path / "data.npz"),
        htvm.quantize(program, "cortex_m4", array),
    ]
    assert len({model.sha256 for model in made}) == 1
    for model in made:
        assert model.calibration is not None
        assert next(iter(model.calibration.values())).shape == (6, 1, 1, 8, 8)


def test_a_file_keeps_the_target(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    torch.export.save(htvm.torch.export(converted(Chain, "diana.digital")), path)
    assert htvm.load(path).quantized_for == "diana.digital"
    with pytest.raises(InputError, match=r"quantized for diana.digital.*siracusa"):
        htvm.build(path, "siracusa")
    # A host computes any numbers, and both of DIANA's digital targets the same.
    assert htvm.build(path, "cortex_m4", "host").placement
    assert htvm.build(path, "diana", "host").placement


def test_reals_without_data_are_refused() -> None:
    net = Chain().eval()
    for given in (net, torch.export.export(net, (images(1),))):
        with pytest.raises(InputError, match="without data"):
            htvm.build(given, "diana.digital")
    with pytest.raises(ModelError, match="not quantized"):
        htvm.load(net)
    with pytest.raises(InputError, match="dimensions"):
        htvm.quantize(net, "diana", images(4).numpy(), dimensions={"n": 1})


def test_what_is_quantized_is_not_quantized_again() -> None:
    module = converted(Chain, "diana.digital")
    for given in (module, htvm.torch.export(module)):
        with pytest.raises(ModelError, match="already"):
            htvm.quantize(given, "diana.digital", images(4).numpy())


def test_other_data_are_refused() -> None:
    net = Chain().eval()
    with pytest.raises(InputError, match="data for 'y'"):
        htvm.quantize(net, "cortex_m4", {"y": images(4).numpy()})
    with pytest.raises(InputError, match="no calibration data"):
        htvm.quantize(net, "cortex_m4", [])
    with pytest.raises(InputError, match="NaN"):
        htvm.quantize(net, "cortex_m4", np.full((2, 1, 8, 8), np.nan))
