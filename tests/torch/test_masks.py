"""Attention with masks: constant, computed from constants, or an input."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
pytest.importorskip("torchao", reason="needs the extra torch")

import htvm  # noqa: E402
import htvm.torch  # noqa: E402
from benchmarks.torch_exports.fidelity import measured  # noqa: E402
from htvm.errors import UnsupportedError  # noqa: E402
from tests.torch.transformers import sequences  # noqa: E402

attend = torch.nn.functional.scaled_dot_product_attention


class Masked(torch.nn.Module):
    """Attention over 12 rows of 16, with a mask of one kind."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.enter = kind, torch.nn.Linear(16, 16)
        self.heads = torch.nn.MultiheadAttention(16, 2, batch_first=True)
        self.register_buffer("left", torch.tril(torch.ones(12, 12, dtype=torch.bool)))
        self.register_buffer("bias", torch.linspace(-1, 2, 144).reshape(12, 12))

    def forward(self, x: Any) -> Any:
        x = self.enter(x)
        if self.kind == "heads":
            return self.heads(x, x, x, attn_mask=~self.left, need_weights=False)[0]
        if self.kind == "causal":
            return attend(x, x, x, is_causal=True)
        masks = {
            "booleans": self.left,
            "reals": self.bias,
            "both": self.bias.masked_fill(~self.left, float("-inf")),
            "made": torch.tril(torch.ones(12, 12, dtype=torch.bool)),
            "nothing": self.left & ~self.left[0],
        }
        return attend(x, x, x, attn_mask=masks[self.kind])


def exported(kind: str) -> Any:
    torch.manual_seed(0)
    prepared = htvm.torch.prepare(Masked(kind), (sequences(1, 12, 16),), "cortex_m4")
    prepared(sequences(8, 12, 16))
    return htvm.torch.export(htvm.torch.convert(prepared))


@pytest.mark.rotating(3)
@pytest.mark.parametrize("kind", ["causal", "booleans", "reals", "both", "made", "heads"])
def test_masked_attention_equals_torch(kind: str) -> None:
    found = measured(exported(kind), inputs=3)
    assert found.elements > 500 and found.different == found.ends_different == 0


class Unbound(torch.nn.Module):
    """Attention of two heads whose query, key and value are one product, taken apart."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = torch.nn.Linear(16, 48)

    def forward(self, x: Any) -> Any:
        parts = self.enter(x).reshape(1, 12, 3, 2, 8).permute(2, 0, 3, 1, 4)
        return attend(*parts.unbind(0)).transpose(1, 2).reshape(1, 12, 16)


@pytest.mark.parametrize("target", ["cortex_m4", "snitch_ita"])
def test_attention_of_one_product_equals_torch(target: str) -> None:
    torch.manual_seed(0)
    prepared = htvm.torch.prepare(Unbound(), (sequences(1, 12, 16),), target)
    for seed in range(8):
        prepared(sequences(1, 12, 16, seed=seed))
    found = measured(htvm.torch.export(htvm.torch.convert(prepared)), inputs=3)
    assert found.elements > 500 and found.different == found.ends_different == 0


def test_masks_matter() -> None:
    inputs = sequences(1, 12, 16, seed=4)
    with torch.no_grad():
        results = [exported(kind).module()(inputs) for kind in ("causal", "booleans", "reals")]
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_a_mask_whose_type_is_converted_is_read() -> None:
    """Programs then assert what type it had."""

    class Converted(Masked):
        def forward(self, x: Any) -> Any:
            mask = torch.tril(torch.ones(12, 12)).bool()
            return attend(*(self.enter(x) for _ in range(3)), attn_mask=mask)

    torch.manual_seed(0)
    prepared = htvm.torch.prepare(Converted("converted"), (sequences(1, 12, 16),), "cortex_m4")
    prepared(sequences(8, 12, 16))
    module, inputs = htvm.torch.convert(prepared), sequences(1, 12, 16, seed=4)
    (found,) = htvm.build(module, "cortex_m4", "host").run(inputs.numpy()).outputs
    with torch.no_grad():
        assert (found == module(inputs).numpy()).all()


def test_a_query_without_keys_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="leaves nothing to a query"):
        htvm.load(exported("nothing"))
