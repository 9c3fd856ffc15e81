"""Transformers for ITA: the converted module computes in ITA's integers, and so does the build."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
pytest.importorskip("torchao", reason="needs the extra torch")

import htvm  # noqa: E402
import htvm.torch  # noqa: E402
from byoc_dory.layers.rowwise import ItaGelu, ItaSoftmax, LayerNorm  # noqa: E402
from htvm.errors import ModelError, UnsupportedError  # noqa: E402
from htvm.torch import operators  # noqa: E402
from htvm.torch.observers import ActivationObserver  # noqa: E402
from htvm.torch.transformers import GeluNumbers, factor_of  # noqa: E402
from tests.reference import matrix_layers  # noqa: E402
from tests.torch.nets import images  # noqa: E402
from tests.torch.transformers import Vit, encoder_layer, sequences  # noqa: E402

RNG = np.random.default_rng(4)


@lru_cache
def converted(heads: int = 1) -> Any:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = encoder_layer(64 * heads, heads).eval()
    prepared = htvm.torch.prepare(net, (sequences(1, width=64 * heads),), "snitch_ita")
    prepared(sequences(8, width=64 * heads))
    return htvm.torch.convert(prepared)


def different(module: Any, wanted: Any, inputs: Any) -> int:
    with torch.no_grad():
        return sum(
            int((module.run(x[None].numpy()).outputs[0] != wanted(x[None]).numpy()).sum())
            for x in inputs
        )


@pytest.mark.parametrize("heads", [1, 2])
def test_an_encoder_layer_is_one_attention_and_equals_the_module(heads: int) -> None:
    module = htvm.build(converted(heads), "snitch_ita", "host")
    layers = [layer for layer in module.compiled.dispatch.layers.values() if layer.op == "mha"]
    assert [layer.attention.heads for layer in layers] == [heads]
    assert module.placement[layers[0].name] == "ita"
    functions = [
        getattr(each, "function", None) for each in module.compiled.dispatch.layers.values()
    ]
    assert sum(isinstance(each, ItaGelu) for each in functions) == 1
    on_cpu = [name for name, place in module.placement.items() if place == "cpu"]
    kinds = {module.compiled.dispatch.kinds[name] for name in on_cpu}
    assert kinds <= {"quantize", "dequantize", "reshape"}
    assert different(module, converted(heads), sequences(6, width=64 * heads, seed=1)) == 0


@pytest.mark.slow
def test_firmware_of_a_trained_vision_transformer_equals_the_module() -> None:
    torch.manual_seed(0)
    inputs, labels = images(32), torch.arange(32) % 10
    prepared = htvm.torch.prepare(Vit(), (inputs[:1],), "snitch_ita", training=True)
    optimizer = torch.optim.Adam(prepared.parameters(), 1e-3)
    for epoch in range(8):
        if epoch == 5:
            htvm.torch.freeze_scales(prepared)
        loss = torch.nn.functional.cross_entropy(prepared(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    prepared.eval()
    module = htvm.torch.convert(prepared)
    with torch.no_grad():
        assert torch.equal(prepared(inputs), module(inputs))
    built = htvm.build(module, "snitch_ita")
    layers = built.compiled.dispatch.layers.values()
    assert [layer.op for layer in layers].count("mha") == 2
    assert different(built, module, images(3, seed=5)) == 0


def test_a_layer_learns_in_integers() -> None:
    torch.manual_seed(0)
    inputs = sequences(8)
    prepared = htvm.torch.prepare(encoder_layer(), (inputs[:1],), "snitch_ita", training=True)
    optimizer = torch.optim.Adam(prepared.parameters(), 0.003)
    wanted, losses = sequences(8, seed=2), []
    for _ in range(16):
        loss = torch.nn.functional.mse_loss(prepared(inputs), wanted)
        losses.append(float(loss.detach()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[-1] < 0.95 * losses[1]
    prepared.eval()
    module = htvm.torch.convert(prepared)
    with torch.no_grad():
        assert torch.equal(prepared(inputs), module(inputs))


# ------------------------------------------------------------------------------ definitions


@pytest.mark.parametrize("length", [1, 16, 37])
@pytest.mark.parametrize("step_bits", [0, 5])
def test_the_softmax_is_the_accelerators(length: int, step_bits: int) -> None:
    function = ItaSoftmax(16, step_bits)
    x = RNG.integers(-128, 128, (60, length)).astype("int8")
    x[:20].sort(axis=1)
    found = operators.softmax_in_integers(torch.from_numpy(x).long(), 16, step_bits, 65280)
    wanted = matrix_layers.row_function(function, x)
    np.testing.assert_array_equal(found.numpy(), wanted.astype("int64"))


def test_gelu_and_norm_are_those_of_the_layers() -> None:
    x = torch.arange(-128, 128).reshape(8, 32)
    numbers = torch.tensor([2.0**-5, 2.0**-4, -80, -7091, 148, 21])
    found = torch.ops.htvm.ita_gelu(x * 2.0**-5, numbers) * 16
    wanted = matrix_layers.row_function(ItaGelu(-80, -7091, 148, 21, 0), x.numpy().astype("int8"))
    np.testing.assert_array_equal(found.clamp(-128, 127).numpy(), wanted)
    weight, bias = torch.linspace(-2, 3, 32), torch.linspace(-1, 1, 32)
    numbers = torch.tensor([2.0**-5, 2.0**-4, 9])
    found = torch.ops.htvm.integer_layer_norm(x * 2.0**-5, weight, bias, numbers, 1e-5) * 16
    factors, summands = (
        np.rint(part.numpy().astype("float64") * 2**13).astype("int32") for part in (weight, bias)
    )
    function = LayerNorm(factors, summands + 256, 9)
    wanted = matrix_layers.row_function(function, x.numpy().astype("int8"))
    np.testing.assert_array_equal(found.clamp(-128, 127).numpy(), wanted)


def test_integers_are_near_the_reals() -> None:
    x = torch.linspace(-3, 3, 193)
    step = 2.0**-5
    c = round(1 / (-0.2888 * step**2 / 2))
    factor = factor_of(step * 0.2888 * step**2 / 4 / step)
    numbers = torch.tensor([step, step, round(-1.769 * 2**0.5 / step), c, *factor])
    assert torch.allclose(
        torch.ops.htvm.ita_gelu(x, numbers), -torch.nn.functional.gelu(x), atol=0.04
    )
    rows = sequences(1, 8)[0]
    numbers = torch.tensor([2.0**-5, 2.0**-5, 8])
    found = torch.ops.htvm.integer_layer_norm(rows, torch.ones(64), torch.zeros(64), numbers, 1e-5)
    assert torch.allclose(found, torch.nn.functional.layer_norm(rows, (64,)), atol=0.15)


@pytest.mark.parametrize("step", [2.0**n for n in range(-6, 9)])
def test_gelu_is_near_the_reals_whatever_its_step(step: float) -> None:
    x = torch.arange(-127, 128) * step
    observers = tuple(ActivationObserver(torch.int8, -128, 127) for _ in range(2))
    for observer in observers:
        observer(x)
    numbers = GeluNumbers(observers, training=False).value(torch.zeros(6))
    found = torch.ops.htvm.ita_gelu(x, numbers)
    assert torch.allclose(found, -torch.nn.functional.gelu(x), atol=max(0.04, 2 * step))


@pytest.mark.parametrize("ratio", [0.5, 1 / 3, 255.0, 254.9, 1e-6, 0.99999])
def test_factors_have_eight_bits(ratio: float) -> None:
    multiplier, shift = factor_of(ratio)
    assert 0 < multiplier <= 255 and 0 <= shift <= 31
    assert abs(multiplier / 2**shift / ratio - 1) <= 1 / 255


def test_gradients_are_those_of_the_reals() -> None:
    read = [sequences(1, 4, 8, seed) for seed in range(3)]
    numbers = torch.tensor([2.0**-4] * 4 + [100, 9, 128, 15])
    found = []
    for given in (numbers, torch.zeros(8)):
        leaves = [each.clone().requires_grad_() for each in read]
        made = torch.ops.htvm.ita_attention(*leaves, given, [16, 5, 65280], 8**-0.5)
        (made * sequences(1, 4, 8, 9)).sum().backward()
        found.append((made.detach(), [each.grad for each in leaves]))
    (integers, first), (reals, second) = found
    assert not torch.equal(integers, reals)
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b) and a.abs().sum() > 0


# ------------------------------------------------------------------------------ what has no form


def test_a_mask_leaves_attention_in_reals() -> None:
    class Causal(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.nn.functional.scaled_dot_product_attention(x, x + 1, x - 1, is_causal=True)

    prepared = htvm.torch.prepare(Causal(), (sequences(1)[None],), "snitch_ita")
    assert not any("ita_attention" in str(node.target) for node in prepared.graph.nodes)


def test_a_negative_factor_leaves_attention_in_reals() -> None:
    class Negative(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.nn.functional.scaled_dot_product_attention(x, x + 1, x - 1, scale=-0.5)

    prepared = htvm.torch.prepare(Negative(), (sequences(1)[None],), "snitch_ita")
    assert not any("ita_attention" in str(node.target) for node in prepared.graph.nodes)


@pytest.mark.parametrize(
    ("operator", "change", "said"),
    [
        ("attention", (4, 300.0), "a multiplier of 300"),
        ("attention", (5, 1.5), "integers of 16 bits"),
        ("attention", (0, 3.0), "the numbers say 3.0"),
        ("gelu", (2, 5.0), "b = 5"),
        ("norm", (2, 40.0), "a shift of 40"),
        ("norm", (1, float("nan")), "numbers"),
        ("norm", (1, 2.0**-9), "quantized with scale"),
    ],
)
def test_changed_numbers_are_refused(operator: str, change: tuple[int, float], said: str) -> None:
    module = htvm.torch.convert(_prepared())
    name = next(name for name, _ in module.named_buffers() if f"{operator}_numbers_on_grid" in name)
    module.get_buffer(name)[change[0]] = change[1]
    with pytest.raises((ModelError, UnsupportedError), match=said):
        htvm.load(module)


@lru_cache
def _prepared() -> Any:
    torch.manual_seed(0)
    prepared = htvm.torch.prepare(encoder_layer(), (sequences(1),), "snitch_ita")
    prepared(sequences(2))
    return prepared
