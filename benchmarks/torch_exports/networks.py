"""Fifteen small networks of the kinds that torch's users export."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Cnn(nn.Module):
    """Convolutions with batch norms, and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Linear(32 * 16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.flatten(self.features(x), 1))


class Residual(nn.Module):
    """Blocks with a sum around them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.first = nn.Conv2d(16, 16, 3, padding=1, bias=False)
        self.second = nn.Conv2d(16, 16, 3, padding=1)
        self.pool = nn.AvgPool2d(2)
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.stem(x)))
        x = F.relu(x + self.second(F.relu(self.first(x))))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.pool(x), 1), 1))


class Depthwise(nn.Module):
    """Depthwise and pointwise convolutions with ReLU6, as in MobileNet."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.pointwise = nn.Conv2d(16, 32, 1)
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu6(self.norm(self.stem(x)))
        x = F.relu6(self.pointwise(F.relu6(self.depthwise(x))))
        return self.head(x.mean((2, 3)))


class SqueezeExcite(nn.Module):
    """Channels scaled by what they hold on average, with hard swish and sigmoid."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.reduce, self.expand = nn.Conv2d(16, 8, 1), nn.Conv2d(8, 16, 1)
        self.last = nn.Conv2d(16, 16, 3, padding=1)
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.hardswish(self.stem(x))
        gate = F.relu(self.reduce(F.adaptive_avg_pool2d(x, 1)))
        x = F.hardswish(self.last(x * F.hardsigmoid(self.expand(gate))))
        return F.softmax(self.head(x.mean((2, 3))), -1)


class UNet(nn.Module):
    """Down and up again, with a connection across."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.deep = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.up, self.last = nn.Conv2d(24, 8, 3, padding=1), nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = F.relu(self.down(x))
        deep = F.relu(self.deep(F.max_pool2d(first, 2)))
        wide = F.interpolate(deep, scale_factor=2, mode="nearest")
        return self.last(F.relu(self.up(torch.cat([first, wide], 1))))


class Dense(nn.Module):
    """A block of DenseNet: each layer reads all before it."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.layers = nn.ModuleList(nn.Conv2d(16 + 8 * i, 8, 3, padding=1) for i in range(3))
        self.head = nn.Linear(40, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.stem(x))
        for layer in self.layers:
            x = torch.cat([x, F.relu(layer(x))], 1)
        return self.head(F.avg_pool2d(x, 8).flatten(1))


class Conv1d(nn.Module):
    """Convolutions over time."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv1d(4, 16, 5, padding=2), nn.BatchNorm1d(16)
        self.second = nn.Conv1d(16, 32, 3, stride=2, padding=1)
        self.head = nn.Linear(32, 6)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.second(F.relu(self.norm(self.first(x)))))
        return self.head(x.mean(-1))


class Tcn(nn.Module):
    """Dilated causal convolutions over time, each with a sum around it."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv1d(4, 16, 1)
        self.layers = nn.ModuleList(nn.Conv1d(16, 16, 3, dilation=2**i) for i in range(3))
        self.head = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for index, layer in enumerate(self.layers):
            x = F.relu(x + layer(F.pad(x, (2 * 2**index, 0))))
        return self.head(x[:, :, -1])


class Recurrent(nn.Module):
    """A recurrent layer between two linear ones."""

    def __init__(self, kind: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.enter = nn.Linear(8, 16)
        self.cell = kind(16, 16, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.cell(F.relu(self.enter(x)))
        return self.head(states[:, -1])


class Mixer(nn.Module):
    """MLP-mixer: products along channels, then along places."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 4, stride=4)
        self.norms = nn.ModuleList(nn.LayerNorm(32) for _ in range(2))
        self.places = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.channels = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = x + self.places(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        x = x + self.channels(self.norms[1](x))
        return self.head(x.mean(1))


class Vit(nn.Module):
    """A vision transformer of two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 4, stride=4)
        self.places = nn.Parameter(torch.randn(1, 16, 32) * 0.1)
        # Training does not switch off an attention's dropout in the exported graph.
        layer = nn.TransformerEncoderLayer(
            32, 4, 64, dropout=0.0, activation="gelu", batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        return self.head(self.encoder(x).mean(1))


class Encoder(nn.Module):
    """One layer of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


class Autoencoder(nn.Module):
    """Linear layers through a narrow one, as in MLPerf Tiny's anomaly detection."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [640, 128, 128, 8, 128, 128, 640]
        self.layers = nn.ModuleList(
            nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:], strict=True)
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


class Inputs(nn.Module):
    """Two inputs, an image and a vector, joined."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.vector = nn.Conv2d(1, 8, 3, stride=2), nn.Linear(6, 8)
        self.head = nn.Linear(16, 3)

    def forward(self, image: Tensor, vector: Tensor) -> Tensor:
        seen = F.relu(self.image(image)).mean((2, 3))
        return self.head(torch.cat([seen, torch.sigmoid(self.vector(vector))], 1))


@dataclass(frozen=True)
class Entry:
    """A network, and the shapes of its inputs.

    Attributes:
        make: returns a new network.
        shapes: of its inputs, with a batch of 1.
    """

    make: Callable[[], nn.Module]
    shapes: tuple[tuple[int, ...], ...]


NETWORKS: Mapping[str, Entry] = {
    "cnn": Entry(Cnn, ((1, 3, 16, 16),)),
    "residual": Entry(Residual, ((1, 3, 16, 16),)),
    "depthwise": Entry(Depthwise, ((1, 3, 16, 16),)),
    "squeeze_excite": Entry(SqueezeExcite, ((1, 3, 16, 16),)),
    "unet": Entry(UNet, ((1, 3, 16, 16),)),
    "dense": Entry(Dense, ((1, 3, 8, 8),)),
    "conv1d": Entry(Conv1d, ((1, 4, 64),)),
    "tcn": Entry(Tcn, ((1, 4, 32),)),
    "lstm": Entry(lambda: Recurrent(nn.LSTM), ((1, 8, 8),)),
    "gru": Entry(lambda: Recurrent(nn.GRU), ((1, 8, 8),)),
    "mixer": Entry(Mixer, ((1, 3, 16, 16),)),
    "vit": Entry(Vit, ((1, 3, 16, 16),)),
    "encoder": Entry(Encoder, ((1, 16, 32),)),
    "autoencoder": Entry(Autoencoder, ((1, 640),)),
    "inputs": Entry(Inputs, ((1, 1, 16, 16), (1, 6))),
}
"""Networks by name."""
