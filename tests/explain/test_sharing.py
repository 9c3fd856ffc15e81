"""What builds of one network share changes nothing in them."""

from __future__ import annotations

import importlib

import pytest

from byoc_dory.residency.choices import LayerChoices
from htvm import zoo
from htvm.build_options import BuildOptions
from htvm.compiled import Compiled
from htvm.pipeline import compile_model
from htvm.stage_cache import StageCache

# The package has a function of that name.
retarget = importlib.import_module("htvm.quantization.retarget")
POLICIES = ("bitwidth", "latency")


def compiled(policy: str, cache: StageCache) -> Compiled:
    return compile_model(zoo.named("zoo:digits"), "diana", BuildOptions(policy=policy), cache=cache)


def test_a_second_policy_shares_work_and_is_built_as_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    observed: list[object] = []
    own = retarget.observe
    monkeypatch.setattr(retarget, "observe", lambda *args: observed.append(args) or own(*args))
    shared = StageCache(None)
    together = [compiled(policy, shared) for policy in POLICIES]
    assert len(observed) == 1 and shared.shared(retarget.SOURCE)
    alone = compiled(POLICIES[1], StageCache(None))
    assert len(observed) == 2
    assert together[1].program.layers_source == alone.program.layers_source
    assert together[0].program.layers_source != alone.program.layers_source
    packed = [
        [entry.data.tobytes() for entry in made.program.constants] for made in (together[1], alone)
    ]
    assert packed[0] == packed[1]
    assert str(together[1].retargeted.report) == str(alone.retargeted.report)


def test_residents_are_judged_by_their_own_choices() -> None:
    """What is left out of the search changes no cycles."""
    made = compiled("bitwidth", StageCache(None))
    kernels = [kernel for code in made.regions.values() for kernel in code.kernels]
    residents = 0
    for kernel in kernels:
        layer, plan = kernel.layer, kernel.plan
        if layer is None or plan is None:
            continue
        stays = plan.resident_inputs, plan.resident_output
        residents += any(stays[0]) or stays[1]
        home = made.home(kernel.layer_name, kernel.accelerator)
        reads = tuple(tensor.name for tensor in layer.inputs)
        offer = LayerChoices(made.cost.tiler(home, layer), reads, *stays, 0)
        same = [c for c in offer.choices if (c.resident_inputs, c.resident_output) == stays]
        found = made.cost.best_cycles(home, layer, plan)
        assert found == min(choice.cycles for choice in same)
    assert residents > 0
