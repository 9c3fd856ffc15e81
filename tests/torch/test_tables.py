"""Learned tables: embeddings of words, and of places that are added to them, are integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
pytest.importorskip("torchao", reason="needs the extra torch")

import htvm  # noqa: E402
import htvm.torch  # noqa: E402
from patterns.ops.float32.combine import RealCombine  # noqa: E402

_WIDTH, _ROWS = 16, 12


class Tables(torch.nn.Module):
    """Rows that tables are combined with."""

    def __init__(self, combined: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.combined = combined
        self.words, self.at = torch.nn.Embedding(50, _WIDTH), torch.nn.Embedding(20, _WIDTH)
        self.places = torch.nn.Parameter(0.1 * torch.randn(1, 20, _WIDTH))
        self.scale = torch.nn.Parameter(torch.rand(_WIDTH))
        mask = torch.triu(torch.full((_ROWS, _ROWS), float("-inf")), 1)
        self.register_buffer("mask", mask)
        self.enter, self.leave = torch.nn.Linear(_WIDTH, _WIDTH), torch.nn.Linear(_WIDTH, _WIDTH)

    def forward(self, x: Any) -> Any:
        x = self.enter(x) if x.is_floating_point() else self.words(x)
        return self.leave(self.combined(self, x))


COMBINED: Mapping[str, Callable[[Any, Any], Any]] = {
    "parameter": lambda net, x: torch.relu(x + net.places[:, :_ROWS]),
    "first": lambda net, x: net.places[:, :_ROWS] + x,
    "embedding": lambda net, x: x + net.at(torch.arange(x.shape[1])),
    "difference": lambda net, x: x - net.at.weight[:_ROWS],
    "product": lambda net, x: x * net.scale,
}


def rows(words: bool, seed: int, count: int = 1) -> Any:
    """Return seeded inputs ``[N, rows, width]``, or numbers of words ``[N, rows]``."""
    generator = torch.Generator().manual_seed(seed)
    if words:
        return torch.randint(0, 50, (count, _ROWS), generator=generator)
    return torch.randn(count, _ROWS, _WIDTH, generator=generator)


def prepared(net: Any, target: str, words: bool, training: bool = False) -> Any:
    made = htvm.torch.prepare(net, (rows(words, 0),), target, training=training)
    steps = torch.optim.SGD(made.parameters(), lr=0.01)
    for seed in range(4):
        loss = made(rows(words, seed, 4)).square().mean()
        if training:
            steps.zero_grad()
            loss.backward()
            steps.step()
    return made.eval() if training else made


@pytest.mark.rotating(6)
@pytest.mark.parametrize("target", ["cortex_m4", "diana.digital", "snitch_ita", "siracusa"])
@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("combined", COMBINED)
def test_tables_are_integers(combined: str, words: bool, target: str) -> None:
    torch.manual_seed(0)
    net = Tables(COMBINED[combined])
    converted = htvm.torch.convert(prepared(net, target, words))
    program = htvm.torch.export(converted)
    reals = [a.op for a in htvm.load(program).graph.in_order if isinstance(a.op, RealCombine)]
    inputs = rows(words, 9)
    (found,) = htvm.build(program, target, "host").run(inputs.numpy()).outputs
    with torch.no_grad():
        assert not reals and (found == converted(inputs).numpy()).all()


@pytest.mark.parametrize("target", ["cortex_m4", "siracusa"])
def test_tables_are_trained(target: str) -> None:
    torch.manual_seed(0)
    net = Tables(COMBINED["parameter"])
    made = prepared(net, target, False, training=True)
    (trained,) = [each for name, each in made.named_parameters() if name.endswith("places")]
    assert not torch.equal(trained[:, :_ROWS], net.places[:, :_ROWS])
    converted, inputs = htvm.torch.convert(made), rows(False, 9)
    with torch.no_grad():
        wanted = made(inputs)
        assert torch.equal(converted(inputs), wanted)
    (found,) = htvm.build(htvm.torch.export(converted), target, "host").run(inputs.numpy()).outputs
    assert (found == wanted.numpy()).all()


def test_a_mask_that_is_added_stays_in_reals() -> None:
    torch.manual_seed(0)
    net = Tables(lambda net, x: (x @ x.transpose(1, 2) + net.mask).softmax(-1) @ x)
    converted, inputs = htvm.torch.convert(prepared(net, "cortex_m4", False)), rows(False, 9)
    with torch.no_grad():
        wanted = converted(inputs).numpy()
    (found,) = (
        htvm.build(htvm.torch.export(converted), "cortex_m4", "host").run(inputs.numpy()).outputs
    )
    assert abs(found - wanted).max() <= abs(wanted).max() / 100
