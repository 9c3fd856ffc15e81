"""Attention over a cache is found around its softmax, and is one layer of cores with SIMD."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import htvm
from byoc_dory.errors import ModelError
from byoc_dory.layers import CachedAttention
from byoc_dory.options import TilingOptions
from byoc_dory.soc.cluster.attention import attention_obstacle
from htvm import zoo
from htvm.inputs import seeded_inputs
from htvm.model import Model
from htvm.tools.language.rewrite import in_place
from patterns.dispatch.together import together_in
from tests.reference.interpreter import interpret


@cache
def step(length: int) -> Model:
    return zoo.microllama(length, layers=1).step


def found(model: Model) -> CachedAttention:
    (group,) = (g for g in together_in(model.graph).groups if g.kind == "attention")
    assert isinstance(group.layer, CachedAttention)
    return group.layer


def test_a_cache_and_the_tokens_own_are_read_where_they_are() -> None:
    layer = found(in_place(step(5)))
    assert (layer.heads, layer.cached, layer.positions, layer.queries) == (16, 5, 6, 1)
    names = ["layer_0_keys", "layer_0_values", "layer_0_query_heads", "mask"]
    names += ["layer_0_key_heads", "layer_0_value_heads"]
    assert [tensor.name for tensor in layer.inputs] == names
    assert layer.macs == 2 * 16 * 6 * 4


def test_a_whole_cache_that_is_returned_is_read_from_there() -> None:
    layer = found(step(5))
    assert (layer.cached, layer.positions, layer.apart) == (6, 6, False)
    assert layer.inputs[0].name == "layer_0_keys_joined"


def test_prompts_have_several_queries() -> None:
    layer = found(zoo.microllama_prompt(3, layers=1))
    assert (layer.queries, layer.positions, layer.masks) == (3, 3, 3)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("length", [1, 5, 18])
@pytest.mark.parametrize("whole", [False, True])
def test_it_computes_what_its_operators_do(length: int, whole: bool) -> None:
    model = step(length) if whole else in_place(step(length))
    inputs = seeded_inputs(model.inputs, seed=length)
    if length > 1:
        inputs[1][...] = np.where(np.arange(length + 1) < length // 2, -128, 0)
    module = htvm.build(model, "siracusa.cluster", "host")
    wanted = interpret(model.module, inputs).outputs
    for ours, theirs in zip(module.run(inputs).outputs, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    (verdict,) = (each for each in module.verdicts if each.kind == "attention")
    assert verdict.accepted and verdict.layer == "layer_0_context"


@pytest.mark.slow
def test_its_operators_are_taken_one_by_one_where_l1_is_too_small_for_it() -> None:
    model = in_place(step(256))
    tiling = TilingOptions(l1_budget=4096)
    module = htvm.build(model, "siracusa.cluster", "host", tiling=tiling)
    refused = [each for each in module.verdicts if each.kind == "attention"]
    assert "needs 5973 B of L1" in refused[0].reason and "limit is 4096 B" in refused[0].reason
    assert not any(each.kind == "attention" for each in module.verdicts if each.accepted)
    inputs = seeded_inputs(model.inputs)
    wanted = interpret(model.module, inputs).outputs
    for ours, theirs in zip(module.run(inputs).outputs, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_what_the_kernel_cannot_compute_is_said() -> None:
    layer = found(in_place(step(5)))
    assert attention_obstacle(layer) == ""
    wide = replace(layer, weighing=replace(layer.weighing, scores=(2**20, 0, 16)))
    assert attention_obstacle(wide) == "scores of up to 68719476736, shifted by 16, leave 32 bits"
    large = tuple(2**24 for _ in range(256))
    softmax = replace(layer.weighing.softmax, exponentials=large)
    wide = replace(layer, weighing=replace(layer.weighing, softmax=softmax))
    assert attention_obstacle(wide) == "6 exponentials of up to 16777216 leave 32 bits"


def test_tensors_must_fit_together() -> None:
    layer = found(in_place(step(5)))
    with pytest.raises(ModelError, match="3 heads do not divide"):
        replace(layer, heads=3)
    with pytest.raises(ModelError, match=r"'mask' has shape \(5, 1, 1\), not \(6, 1, 1\)"):
        mask = replace(layer.inputs[3], shape=(5, 1, 1))
        replace(layer, inputs=(*layer.inputs[:3], mask, *layer.inputs[4:]))
