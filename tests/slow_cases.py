"""Helper: what everyday runs leave to the slow ones, because something quicker stays.

A pytest plugin (see `tests/conftest.py`).  Tests that were written as slow ones have the marker
``slow`` themselves; cases of longer lists, and tests whose subject others cover in less time, are
named here, so that one place says what everyday runs leave out.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

SLOW_CASES = {
    "aot/test_token_loop.py": (
        "test_tokens_are_those_of_the_simulated_step[1]",
        "test_tokens_are_those_of_the_simulated_step[5]",
    ),
    "aot/cpu/test_shared_kernels.py": ("test_the_cores_compute_what_one_does[32768-*",),
    "benchmarks/test_llama.py": (
        "test_figures_follow_from_the_runs",
        "test_networks_without_files",
        "test_the_loop_is_compared_with_the_network",
    ),
    "benchmarks/test_predicted.py": (
        "test_layers_on_the_cluster_are_predicted[snitch_ita.cluster]",
    ),
    "byoc_dory/test_emit_native.py": ("test_equals_the_reference[True]",),
    "byoc_dory/test_emit_plans.py": ("test_every_plan_equals_the_reference[True]",),
    "byoc_dory/test_neureka_native.py": ("test_layers[-*]",),
    "byoc_dory/test_schedule_replay.py": ("test_budgets_do_tile",),
    "e2e/test_determinism.py": ("test_builds_are_byte_identical[resnet8-diana.digital]",),
    "e2e/test_tflite_models.py": (
        "test_digital_equals_its_reference[vww_96_int8-*]",
        "test_digital_equals_its_reference[pretrainedResnet_quant-rv32]",
        "test_cpu_equals_tflite_micro[vww_96_int8-*-diana.simd*",
        "test_cpu_equals_tflite_micro[ad01_int8-rv32-diana.simd*",
    ),
    "verification/test_clusters.py": ("test_a_core_that_spoils_a_layer[1-*",),
    "zoo/test_transformers.py": ("test_a_layer_is_what_is_built[relu-*",),
}
"""File below ``tests`` -> names of its tests, in which ``*`` stands for anything."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases as slow."""
    for item in items:
        place = item.nodeid.partition("::")[0].partition("tests/")[2]
        if any(_matches(item.name, pattern) for pattern in SLOW_CASES.get(place, ())):
            item.add_marker(pytest.mark.slow)


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern.replace("[", "[[]"))
