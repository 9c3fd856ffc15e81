"""LSTM and GRU layers, written out in steps of integers."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
pytest.importorskip("torchao", reason="needs the extra torch")

import htvm  # noqa: E402
import htvm.torch  # noqa: E402
from htvm.torch.recurrent import unroll  # noqa: E402
from tests.torch.transformers import sequences  # noqa: E402


class Recurrent(torch.nn.Module):
    """A recurrent layer between two linear ones."""

    def __init__(self, kind: Any, **options: Any) -> None:
        super().__init__()
        self.enter = torch.nn.Linear(8, 12)
        self.cell = kind(12, 10, batch_first=True, **options)
        self.head = torch.nn.Linear(10, 4)

    def forward(self, x: Any) -> Any:
        states, _ = self.cell(torch.relu(self.enter(x)))
        return self.head(states[:, -1])


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU])
@pytest.mark.parametrize(
    "options",
    [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False}, {"batch_first": True}],
)
def test_steps_are_the_layer(kind: Any, options: Any) -> None:
    torch.manual_seed(0)
    layer = kind(6, 5, **options).eval()
    steps, x = unroll(copy.deepcopy(layer)), torch.randn(4, 4, 6)
    count = (1 + layer.bidirectional) * layer.num_layers
    parts = [torch.randn(count, 4, 5) for _ in range(2)]
    first = tuple(parts) if kind is torch.nn.LSTM else parts[0]
    for given in ((x,), (x, first)):
        (wanted, last), (found, ends) = layer(*given), steps(*given)
        assert torch.allclose(found, wanted, atol=1e-6)
        pairs = zip(ends, last, strict=True) if kind is torch.nn.LSTM else [(ends, last)]
        assert all(torch.allclose(a, b, atol=1e-6) for a, b in pairs)
    wanted, _ = layer(x[0])
    assert torch.allclose(steps(x[0])[0], wanted, atol=1e-6)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU])
@pytest.mark.parametrize("target", ["cortex_m4", "diana.digital"])
def test_a_build_equals_the_module(kind: Any, target: str) -> None:
    torch.manual_seed(0)
    net = Recurrent(kind).eval()
    inputs = sequences(24, 6, 8)
    prepared = htvm.torch.prepare(net, (inputs[:1],), target)
    prepared(inputs)
    converted = htvm.torch.convert(prepared)
    module = htvm.build(converted, target, "host")
    kinds = [type(node.op).__name__ for node in module.model.graph.nodes.values()]
    assert not any(name.startswith("RealMatmul") for name in kinds)
    with torch.no_grad():
        wanted, reals = converted(inputs), net(inputs)
    assert torch.norm(wanted - reals) < 0.12 * torch.norm(reals)
    for x, y in zip(inputs[:4], wanted[:4], strict=True):
        (found,) = module.run(x[None].numpy()).outputs
        assert (found == y[None].numpy()).all()
