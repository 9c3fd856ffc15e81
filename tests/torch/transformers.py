"""Helper: small transformers of torch, whose heads ITA takes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def encoder_layer(width: int = 64, heads: int = 1, inner: int = 128) -> nn.Module:
    """Return one layer of a transformer, with GELU."""
    return nn.TransformerEncoderLayer(
        width, heads, inner, dropout=0.0, activation="gelu", batch_first=True
    )


class Vit(nn.Module):
    """A vision transformer of two layers for images of 8x8."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, 64, 2, stride=2)
        self.places = nn.Parameter(torch.randn(1, 16, 64) * 0.1)
        self.encoder = nn.TransformerEncoder(encoder_layer(), 2, enable_nested_tensor=False)
        self.head = nn.Linear(64, 10)

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        return self.head(self.encoder(x).mean(1))


def sequences(count: int, rows: int = 20, width: int = 64, seed: int = 0) -> Any:
    """Return seeded sequences ``[N, rows, width]``."""
    return torch.randn(count, rows, width, generator=torch.Generator().manual_seed(seed))
