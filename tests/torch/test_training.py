"""Training in a target's numbers: what was trained is what is converted."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
pytest.importorskip("torchao", reason="needs the extra torch")

import htvm.torch  # noqa: E402
from tests.torch.nets import Chain, Residual, images, random_norms  # noqa: E402


def trained(net: Any, target: str, steps: int = 6, **options: Any) -> Any:
    """Return a prepared module after some steps towards seeded labels, and the last loss."""
    torch.manual_seed(0)
    module = random_norms(net())
    prepared = htvm.torch.prepare(module, (images(1),), target, training=True, **options)
    optimizer = torch.optim.SGD(prepared.parameters(), 0.05)
    losses = []
    for step in range(steps):
        if step == steps - 2:
            htvm.torch.freeze_scales(prepared)
        optimizer.zero_grad()
        labels = torch.arange(16) % 10
        loss = torch.nn.functional.cross_entropy(prepared(images(16)), labels)
        loss.backward()
        losses.append(float(loss.detach()))
        optimizer.step()
    return prepared, losses


@pytest.mark.rotating(2)
@pytest.mark.parametrize("net", [Residual, Chain])
@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("diana.digital", {}),
        ("diana.analog", {"noise": 0.5}),
        ("siracusa", {"weight_bits": 4}),
        ("cortex_m4", {}),
    ],
)
def test_trained_equals_converted(net: Any, target: str, options: Any) -> None:
    prepared, losses = trained(net, target, **options)
    converted = htvm.torch.convert(prepared)
    prepared.eval()
    inputs = images(64, seed=1)
    with torch.no_grad():
        assert torch.equal(prepared(inputs), converted(inputs))
    assert losses[-1] < losses[0]


def test_in_evaluation_scales_stay_and_there_is_no_noise() -> None:
    prepared, _ = trained(Chain, "diana.analog", steps=1, noise=2.0)
    inputs = images(16, seed=2)
    with torch.no_grad():
        assert not torch.equal(prepared(inputs), prepared(inputs))
        prepared.eval()
        before = prepared(inputs)
        prepared(100 * inputs)
        assert torch.equal(prepared(inputs), before)
        prepared.train()
        assert not torch.equal(prepared(inputs), prepared(inputs))


def test_frozen_scales_stay_in_training() -> None:
    prepared, _ = trained(Chain, "diana.digital", steps=1)
    prepared.eval()
    htvm.torch.freeze_scales(prepared)
    prepared.train()
    with torch.no_grad():
        before = prepared(images(4))
        prepared(100 * images(4))
        assert torch.equal(prepared(images(4)), before)


def test_biases_are_trained() -> None:
    prepared, _ = trained(Chain, "diana.digital", steps=1)
    gradients = [
        parameter.grad for name, parameter in prepared.named_parameters() if "bias" in name
    ]
    assert gradients
    assert all(gradient is not None and gradient.abs().sum() > 0 for gradient in gradients)


def test_converting_leaves_the_prepared_module_as_it_is() -> None:
    prepared, _ = trained(Chain, "diana.digital")
    htvm.torch.convert(prepared)
    assert prepared(images(2)).requires_grad
