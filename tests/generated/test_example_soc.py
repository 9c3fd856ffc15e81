"""Golden C of the documented example of somebody else's SoC (docs/examples/tiny_soc)."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from byoc_dory.layers import Layer, Shift, Tensor, conv2d_layer, dense_layer
from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import Soc
from htvm.tools.skeleton import EXAMPLE, example_folder
from tests.byoc_dory.layers import int8, int32
from tests.generated.golden import check_golden
from tests.generated.kernels import chain, code_of, text_of


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Soc:
    """The example's description, from where it lies."""
    monkeypatch.syspath_prepend(example_folder() / "src")
    soc: Soc = importlib.import_module(f"{EXAMPLE}_soc.description").soc()
    return soc


def layers() -> tuple[Layer, ...]:
    rng = np.random.default_rng(3)
    x = Tensor("x", (24, 12, 10), layout="NHWC")
    conv = conv2d_layer(
        "conv", x, "y", int8(rng, 40, 24, 1, 1), int32(rng, 40), requant=Shift(8), clip=(0, 127)
    )
    source = Tensor("v", (70,), layout="C")
    dense = dense_layer("dense", source, "w", int8(rng, 37, 70), None, requant=Shift(8))
    return conv, dense


@pytest.mark.parametrize("budget", [None, 1_000])
def test_layers(tiny: Soc, budget: int | None, update_golden: bool) -> None:
    parts = []
    for layer in layers():
        code = code_of(chain("region", (layer,)), tiny, TilingOptions(l1_budget=budget), None)
        parts.append(text_of(code))
    name = "layers" if budget is None else "layers_tiled"
    check_golden(f"tiny_soc/{name}.c", "\n".join(parts), update_golden)
