"""The networks of the campaign in torch: the usual architectures, small, with seeded weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

__all__ = ["NETWORKS", "network"]

Shapes = tuple[tuple[int, ...], ...]


def _conv(c: int, k: int, size: int = 3, stride: int = 1, groups: int = 1, act: Any = None) -> Any:
    layers = [
        nn.Conv2d(c, k, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(k),
    ]
    return nn.Sequential(*layers, *([] if act is None else [act()]))


class _Residual(nn.Module):
    """x + inner(x), with an activation behind it or not."""

    def __init__(self, inner: Any, short: Any = None, act: Any = None) -> None:
        super().__init__()
        self.inner, self.short = inner, short or nn.Identity()
        self.act = nn.Identity() if act is None else act()

    def forward(self, x: Any) -> Any:
        return self.act(self.short(x) + self.inner(x))


class _Excite(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, c: int, inner: Any = nn.ReLU, gate: Any = nn.Hardsigmoid) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(c, c // 4, 1), nn.Conv2d(c // 4, c, 1)
        self.inner, self.gate = inner(), gate()

    def forward(self, x: Any) -> Any:
        return x * self.gate(self.up(self.inner(self.down(F.adaptive_avg_pool2d(x, 1)))))


def _head(c: int, act: Any = None) -> list[Any]:
    last = [] if act is None else [act()]
    return [*last, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 10)]


def _inverted(c: int, k: int, stride: int, act: Any, size: int = 3, excite: Any = None) -> Any:
    wide = 4 * c
    inner = nn.Sequential(
        _conv(c, wide, 1, act=act),
        _conv(wide, wide, size, stride, wide, act),
        *([] if excite is None else [excite(wide)]),
        _conv(wide, k, 1),
    )
    return _Residual(inner) if stride == 1 and c == k else inner


def mobilenet_v2() -> Any:
    blocks = [(8, 8, 1), (8, 16, 2), (16, 16, 1), (16, 24, 2), (24, 24, 1)]
    return nn.Sequential(
        _conv(3, 8, 3, 2, act=nn.ReLU6),
        *[_inverted(c, k, stride, nn.ReLU6) for c, k, stride in blocks],
        _conv(24, 64, 1, act=nn.ReLU6),
        *_head(64),
    )


def mobilenet_v3() -> Any:
    return nn.Sequential(
        _conv(3, 8, 3, 2, act=nn.Hardswish),
        _inverted(8, 8, 1, nn.ReLU, excite=_Excite),
        _inverted(8, 16, 2, nn.ReLU, 5),
        _inverted(16, 16, 1, nn.Hardswish, 5, _Excite),
        _conv(16, 32, 1, act=nn.Hardswish),
        nn.AdaptiveAvgPool2d(1),
        nn.Conv2d(32, 48, 1),
        nn.Hardswish(),
        nn.Flatten(),
        nn.Linear(48, 10),
    )


def efficientnet() -> Any:
    def excite(c: int) -> Any:
        return _Excite(c, nn.SiLU, nn.Sigmoid)

    return nn.Sequential(
        _conv(3, 8, 3, 2, act=nn.SiLU),
        _inverted(8, 8, 1, nn.SiLU, excite=excite),
        _inverted(8, 16, 2, nn.SiLU, 5, excite),
        _conv(16, 32, 1, act=nn.SiLU),
        *_head(32),
    )


class _Dense(nn.Module):
    def __init__(self, c: int, grow: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, 2 * grow, 1, bias=False),
            nn.BatchNorm2d(2 * grow), nn.ReLU(),
            nn.Conv2d(2 * grow, grow, 3, padding=1, bias=False),
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        return torch.cat([x, self.inner(x)], 1)


def densenet() -> Any:
    return nn.Sequential(
        _conv(3, 16, 3, 1, act=nn.ReLU), nn.MaxPool2d(3, 2, 1),
        _Dense(16, 8), _Dense(24, 8),
        nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 16, 1), nn.AvgPool2d(2, 2),
        _Dense(16, 8), _Dense(24, 8),
        nn.BatchNorm2d(32), *_head(32, nn.ReLU),
    )  # fmt: skip


def _basic(c: int, k: int, stride: int) -> Any:
    inner = nn.Sequential(_conv(c, k, 3, stride, act=nn.ReLU), _conv(k, k))
    short = None if stride == 1 and c == k else _conv(c, k, 1, stride)
    return _Residual(inner, short, nn.ReLU)


def _bottleneck(c: int, k: int, stride: int) -> Any:
    inner = nn.Sequential(
        _conv(c, k // 4, 1, act=nn.ReLU),
        _conv(k // 4, k // 4, 3, stride, act=nn.ReLU),
        _conv(k // 4, k, 1),
    )
    short = None if stride == 1 and c == k else _conv(c, k, 1, stride)
    return _Residual(inner, short, nn.ReLU)


def resnet18() -> Any:
    stages = [_basic(16, 16, 1), _basic(16, 32, 2), _basic(32, 64, 2), _basic(64, 64, 1)]
    return nn.Sequential(_conv(3, 16, act=nn.ReLU), *stages, *_head(64))


def resnet50() -> Any:
    stem = [_conv(3, 16, 7, 2, act=nn.ReLU), nn.MaxPool2d(3, 2, 1)]
    stages = [_bottleneck(16, 32, 1), _bottleneck(32, 32, 1), _bottleneck(32, 64, 2)]
    return nn.Sequential(*stem, *stages, *_head(64))


class _UNet(nn.Module):
    """Two levels; up by repeated pixels, or by transposed convolutions."""

    def __init__(self, up: Callable[[int, int], Any]) -> None:
        super().__init__()
        self.first, self.second = _conv(3, 8, act=nn.ReLU), _conv(8, 16, act=nn.ReLU)
        self.third = _conv(16, 32, act=nn.ReLU)
        self.up2, self.up1 = up(32, 16), up(16, 8)
        self.back2, self.back1 = _conv(32, 16, act=nn.ReLU), _conv(16, 8, act=nn.ReLU)
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x: Any) -> Any:
        one = self.first(x)
        two = self.second(F.max_pool2d(one, 2))
        three = self.third(F.max_pool2d(two, 2))
        two = self.back2(torch.cat([self.up2(three), two], 1))
        return self.last(self.back1(torch.cat([self.up1(two), one], 1)))


def unet_nearest() -> Any:
    return _UNet(lambda c, k: nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(c, k, 1)))


def unet_transposed() -> Any:
    return _UNet(lambda c, k: nn.ConvTranspose2d(c, k, 2, 2))


class _Shuffle(nn.Module):
    """A block of ShuffleNet V2."""

    def __init__(self, c: int) -> None:
        super().__init__()
        half = c // 2
        self.inner = nn.Sequential(
            _conv(half, half, 1, act=nn.ReLU),
            _conv(half, half, 3, 1, half),
            _conv(half, half, 1, act=nn.ReLU),
        )

    def forward(self, x: Any) -> Any:
        kept, changed = x.chunk(2, dim=1)
        x = torch.cat([kept, self.inner(changed)], 1)
        n, c, y, width = x.shape
        return x.view(n, 2, c // 2, y, width).transpose(1, 2).reshape(n, c, y, width)


def shufflenet() -> Any:
    stem = [_conv(3, 16, 3, 2, act=nn.ReLU), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(
        *stem, _Shuffle(16), _Shuffle(16), _conv(16, 32, 1, act=nn.ReLU), *_head(32)
    )


class _Fire(nn.Module):
    def __init__(self, c: int, down: int, k: int) -> None:
        super().__init__()
        self.down = nn.Conv2d(c, down, 1)
        self.one, self.three = nn.Conv2d(down, k, 1), nn.Conv2d(down, k, 3, padding=1)

    def forward(self, x: Any) -> Any:
        x = F.relu(self.down(x))
        return torch.cat([F.relu(self.one(x)), F.relu(self.three(x))], 1)


def squeezenet() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True),
        _Fire(16, 8, 16), _Fire(32, 8, 16), nn.MaxPool2d(3, 2, ceil_mode=True), _Fire(32, 12, 24),
        nn.Dropout(), nn.Conv2d(48, 10, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )  # fmt: skip


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.qkv = heads, nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        n, rows, width = x.shape
        parts = self.qkv(x).reshape(n, rows, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-2, -1)) * (width // self.heads) ** -0.5
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, rows, width))


class _ViT(nn.Module):
    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.2)
        self.places = nn.Parameter(torch.randn(1, 17, width) * 0.2)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.last = _Attention(width, heads), nn.Linear(width, 10)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        x = x + self.attention(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        return self.last(x[:, 0])


class _Mixer(nn.Module):
    def __init__(self, rows: int = 16, width: int = 24) -> None:
        super().__init__()
        self.patches, self.last = nn.Conv2d(3, width, 8, 8), nn.Linear(width, 10)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.rows = nn.Sequential(nn.Linear(rows, 32), nn.GELU(), nn.Linear(32, rows))
        self.columns = nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width))

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = x + self.rows(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.columns(self.norm2(x))
        return self.last(x.mean(1))


def audio() -> Any:
    return nn.Sequential(
        nn.Conv1d(8, 16, 5, padding=2), nn.BatchNorm1d(16), nn.ReLU(), nn.MaxPool1d(2),
        nn.Conv1d(16, 16, 3, padding=1, groups=16), nn.Conv1d(16, 24, 1), nn.ReLU(),
        nn.AvgPool1d(2), nn.Conv1d(24, 24, 3, stride=2, padding=1), nn.LeakyReLU(0.1),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(24, 10), nn.Softmax(-1),
    )  # fmt: skip


class _Several(nn.Module):
    """An image and a vector to classes, a map and a number."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.vector = _conv(3, 8, 3, 2, act=nn.ReLU), nn.Linear(6, 8)
        self.map, self.number = nn.Conv2d(8, 1, 1), nn.Linear(8, 1)
        self.classes = nn.Linear(16, 10)

    def forward(self, image: Any, vector: Any) -> Any:
        x, y = self.image(image), torch.tanh(self.vector(vector))
        x = x * 0.5 + 0.1
        both = torch.cat([x.mean((2, 3)), y], 1)
        return self.classes(both), torch.sigmoid(self.map(x)), self.number(y)


_IMAGE: Shapes = ((1, 3, 32, 32),)

NETWORKS: dict[str, tuple[Callable[[], Any], Shapes]] = {
    "mobilenet_v2": (mobilenet_v2, _IMAGE),
    "mobilenet_v3": (mobilenet_v3, _IMAGE),
    "efficientnet": (efficientnet, _IMAGE),
    "densenet": (densenet, _IMAGE),
    "resnet18": (resnet18, _IMAGE),
    "resnet50": (resnet50, _IMAGE),
    "unet_nearest": (unet_nearest, _IMAGE),
    "unet_transposed": (unet_transposed, _IMAGE),
    "shufflenet": (shufflenet, _IMAGE),
    "squeezenet": (squeezenet, _IMAGE),
    "vit": (_ViT, _IMAGE),
    "mixer": (_Mixer, _IMAGE),
    "audio": (audio, ((1, 8, 64),)),
    "several": (_Several, ((1, 3, 32, 32), (1, 6))),
    "yolo": (lambda: _Yolo(), _IMAGE),
}
"""Name -> what makes the network, and the shapes of its inputs."""


class _Yolo(nn.Module):
    """A small detector: pools over the same map, maps of two sizes, boxes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(_conv(3, 8, 3, 2, act=nn.SiLU), _conv(8, 16, 3, 2, act=nn.SiLU))
        self.join, self.deep = _conv(48, 16, 1, act=nn.SiLU), _conv(16, 16, 3, 2, act=nn.SiLU)
        self.boxes = nn.Conv2d(32, 12, 1)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        y = F.max_pool2d(x, 5, 1, 2)
        x = self.join(torch.cat([x, y, F.max_pool2d(y, 5, 1, 2)], 1))
        x = torch.cat([F.interpolate(self.deep(x), scale_factor=2), x], 1)
        boxes = self.boxes(x).flatten(2)
        centre, size, score = boxes.split((4, 4, 4), 1)
        return torch.cat([torch.sigmoid(centre) * 2 - 0.5, torch.exp(size), score], 1)


def network(name: str) -> tuple[Any, Shapes]:
    """Return a network with seeded weights and statistics, for inference; shapes of its inputs."""
    torch.manual_seed(sum(map(ord, name)))
    make, shapes = NETWORKS[name]
    made = make()
    for layer in made.modules():
        if isinstance(layer, nn.BatchNorm2d | nn.BatchNorm1d):
            layer.running_mean.normal_(0.0, 0.1)
            layer.running_var.uniform_(0.5, 1.5)
            layer.weight.data.uniform_(0.7, 1.3)
            layer.bias.data.normal_(0.0, 0.1)
    return made.eval(), shapes
