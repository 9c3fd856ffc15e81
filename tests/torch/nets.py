"""Helper: small networks of torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Residual(nn.Module):
    """Convolutions with batch norms, one without bias, a sum, pools, and a linear layer."""

    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, channels, 3, padding=1)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)
        self.depthwise = nn.Conv2d(channels, channels, 3, stride=2, padding=1, groups=channels)
        self.pool = nn.MaxPool2d(2)
        self.dense = nn.Linear(channels, 10, bias=False)

    def forward(self, x: Any) -> Any:
        x = functional.relu(self.first_norm(self.first(x)))
        x = functional.relu(x + self.second_norm(self.second(x)))
        x = functional.relu6(self.depthwise(self.pool(x)))
        return self.dense(torch.flatten(functional.adaptive_avg_pool2d(x, 1), 1))


class Chain(nn.Module):
    """Three convolutions and a linear layer, without a sum."""

    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, channels, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(2 * channels, 2 * channels, 1)
        self.dense = nn.Linear(2 * channels * 16, 10)

    def forward(self, x: Any) -> Any:
        x = functional.relu(self.norm1(self.conv1(x)))
        x = functional.relu(self.conv3(functional.relu(self.conv2(x))))
        return self.dense(torch.flatten(x, 1))


def random_norms(module: nn.Module) -> nn.Module:
    """Return the module, its batch norms with statistics as of a trained one."""
    for norm in module.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.running_mean.normal_(0, 0.2)
            norm.running_var.uniform_(0.5, 2)
            norm.weight.data.uniform_(0.5, 1.5)
            norm.bias.data.normal_(0, 0.2)
    return module


def images(count: int, seed: int = 0, size: int = 8) -> Any:
    """Return seeded images ``[N, 1, size, size]`` in 0..1."""
    return torch.rand(count, 1, size, size, generator=torch.Generator().manual_seed(seed))
