"""Weights are kept where this saves most cycles: every choice of small networks is tried."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from byoc_dory.cost import Cost
from byoc_dory.errors import TilingError
from byoc_dory.layers import Layer, Shift, Tensor, conv2d_layer
from byoc_dory.options import TilingOptions
from byoc_dory.pinning import KeptWeights, choose_memories, plan_weights
from byoc_dory.soc.base import Soc
from byoc_dory.soc.siracusa.description import SIRACUSA
from byoc_dory.soc.siracusa.neureka import NEUREKA

NODES = 20_000


def best(layers: list[KeptWeights], room: dict[str, int]) -> int | None:
    """Fewest cycles lost, of all choices that fit; None if none does."""
    least = None
    for places in itertools.product(["", *room], repeat=len(layers)):
        pairs = list(zip(layers, places, strict=True))
        if any(not place and entry.loaded_cycles is None for entry, place in pairs):
            continue
        used = {name: sum(e.bytes for e, place in pairs if place == name) for name in room}
        if any(used[name] > room[name] for name in room):
            continue
        lost = sum(entry.saved_cycles or 0 for entry, place in pairs if not place)
        least = lost if least is None else min(least, lost)
    return least


@pytest.mark.parametrize("seed", range(30))
def test_no_other_choice_costs_less(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layers = []
    for number in range(int(rng.integers(1, 8))):
        kept = int(rng.integers(100, 1000))
        loaded = None if rng.integers(6) == 0 else kept + int(rng.integers(0, 500))
        size = 16 * int(rng.integers(1, 200))
        layers.append(KeptWeights(f"l{number}", "engine", size, "A", kept, loaded))
    half = sum(entry.bytes for entry in layers) // 2
    room = {"A": int(rng.integers(0, half + 1)), "B": int(rng.integers(0, half + 1))}
    wanted = best(layers, room)
    if wanted is None:
        with pytest.raises(TilingError, match="must be kept"):
            choose_memories(layers, [("A", "B")] * len(layers), room, NODES)
        return
    plan = choose_memories(layers, [("A", "B")] * len(layers), room, NODES)
    assert plan.cost == plan.bound == wanted
    for name, size in room.items():
        assert sum(entry.bytes for entry in plan.layers if entry.memory == name) <= size
    assert plan == choose_memories(layers, [("A", "B")] * len(layers), room, NODES)


def conv(name: str, channels: int, outputs: int, size: int) -> Layer:
    weight = np.random.default_rng(0).integers(-128, 128, (outputs, channels, 3, 3))
    source = Tensor("x", (channels, size, size), "int8", "NHWC")
    layer = conv2d_layer(
        name, source, name, weight.astype(np.int8), None, pad=(1, 1, 1, 1), requant=Shift(8)
    )
    return replace(layer, output=replace(layer.output, layout="NHWC"))


def siracusa(sram: int, mram: int) -> Soc:
    sizes = {"SRAM": sram, "MRAM": mram}
    memories = (replace(m, size=sizes.get(m.name, m.size)) for m in SIRACUSA.memories)
    return replace(SIRACUSA, memories=tuple(memories))


LAYERS = [conv("a", 64, 64, 8), conv("b", 32, 32, 16), conv("c", 28, 32, 3)]


def test_the_first_memory_keeps_everything_if_there_is_room() -> None:
    plan = plan_weights(
        [(layer, NEUREKA) for layer in LAYERS], Cost(siracusa(1 << 20, 1 << 20), TilingOptions())
    )
    assert plan.homes == dict.fromkeys("abc", "SRAM")
    assert not plan.loaded and plan.cost == 0


def test_a_second_memory_is_used_before_anything_is_loaded() -> None:
    sizes = [NEUREKA.kept_bytes(layer) for layer in LAYERS]
    soc = siracusa(sizes[0], sizes[1] + sizes[2])
    plan = plan_weights([(layer, NEUREKA) for layer in LAYERS], Cost(soc, TilingOptions()))
    assert plan.homes == {"a": "SRAM", "b": "MRAM", "c": "MRAM"}


def test_the_most_valuable_bytes_are_kept() -> None:
    size = NEUREKA.kept_bytes(LAYERS[0])
    plan = plan_weights(
        [(layer, NEUREKA) for layer in LAYERS], Cost(siracusa(size, 0), TilingOptions())
    )
    values = {entry.layer: (entry.saved_cycles or 0, entry.bytes) for entry in plan.layers}
    kept = [name for name, memory in plan.homes.items() if memory]
    assert sum(values[name][1] for name in kept) <= size
    assert all(saved > 0 for saved, _ in values.values())
    assert 0 < plan.cost < sum(saved for saved, _ in values.values())


def test_weights_that_fit_nowhere_are_an_error_with_their_size() -> None:
    pairs = [(layer, NEUREKA) for layer in LAYERS]
    with pytest.raises(TilingError, match=r"must be kept.*SRAM has 100 B") as caught:
        plan_weights(pairs, Cost(siracusa(100, 0), TilingOptions(l1_budget=6000)))
    assert "layer 'a'" in str(caught.value)
