"""Helper: what everyday runs leave to the slow ones, because something quicker stays.

A pytest plugin (see `tests/conftest.py`).  Tests that were written as slow ones have the marker
``slow`` themselves, and those of which some cases suffice on every commit the marker ``rotating``
(`tests.rotation`); other cases of longer lists, and tests whose subject others cover in less time,
are named here.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from tests.rotation import left_out, today

SLOW_CASES = {
    "aot/program/test_arena_type.py": ("test_optimizers_that_trust_types_compute_the_same[clang]",),
    "aot/test_token_loop.py": (
        "test_tokens_are_those_of_the_simulated_step[*",
        "test_caches_of_a_prompt_are_continued_or_refused[siracusa.cluster*",
    ),
    "aot/cpu/test_compile.py": ("test_the_same_bytes_in_every_process[scheduled]",),
    "aot/cpu/test_kernels.py": ("test_requantize_by_any_factor[factors0-scheduled]",),
    "aot/cpu/test_shared_kernels.py": ("test_the_cores_compute_what_one_does[32768-*",),
    "benchmarks/test_compilers.py": (
        "test_firmware_of_users_compilers_computes_the_same[*",
        "test_pairs_of_settings_compile_without_a_warning[*",
    ),
    "benchmarks/test_house.py": (
        "test_a_build_imports_no_other_accelerators*",
        "test_a_build_is_counted",
        "test_classes_that_hold_the_convolution_are_found",
        "test_counts_are_the_same_again",
    ),
    "benchmarks/test_llama.py": (
        "test_figures_follow_from_the_runs",
        "test_networks_without_files",
        "test_the_loop_is_compared_with_the_network",
    ),
    # All cases are made to find one; tests/frontend has each operator.
    "benchmarks/test_onnx_cases.py": ("test_some_cases_are_computed_as_the_standard_says[*",),
    "benchmarks/test_mutations.py": ("test_no_onnx_mutant_is_wrong_and_none_crashes[*",),
    "benchmarks/test_predicted.py": (
        "test_layers_on_the_cluster_are_predicted[snitch_ita.cluster]",
    ),
    "benchmarks/test_sizes.py": ("test_all_state_the_same[*",),
    "benchmarks/test_snitch_table_i.py": ("test_figures_follow_from_the_runs",),
    "byoc_dory/test_emit_native.py": (
        "test_equals_the_reference[True]",
        "test_compiles_without_warnings[zig]",
    ),
    "byoc_dory/test_emit_plans.py": ("test_every_plan_equals_the_reference[True]",),
    "byoc_dory/test_narrow_tiles.py": ("test_native[simd]", "test_simulated[plain]"),
    "byoc_dory/test_neureka_beside.py": ("test_sums_beside_the_engine[True]",),
    "byoc_dory/test_neureka_native.py": ("test_layers[*",),
    "byoc_dory/test_neureka_rows.py": ("test_regions_in_ranges_of_rows[True]",),
    "byoc_dory/test_schedule_replay.py": ("test_budgets_do_tile",),
    "byoc_dory/test_tiling_milp.py": ("test_large_layers",),
    "cli/test_generate.py": ("test_it_writes_the_tokens_of_the_library",),
    "cli/test_interface.py": ("test_data_are_what_retargeting_is_fitted_to",),
    "cli/test_labels.py": ("test_a_report_has_the_accuracy_of_source_and_build",),
    "cli/test_verbs.py": (
        "test_interrupting_is_clean[*",
        "test_no_colour_and_no_bar_off_a_terminal",
    ),
    # `make docs` builds the same pages, and as strictly.
    "docs/test_site.py": ("test_*",),
    "e2e/test_both_cores.py": ("test_networks_of_the_zoo[ds_cnn_7x5-ternary-diana-host]",),
    "e2e/test_determinism.py": ("test_builds_are_byte_identical[*",),
    "e2e/test_random_networks.py": (
        "test_a_build_equals_the_integer_form[20?-*",
        "test_a_build_equals_the_integer_form[22?-*",
    ),
    "e2e/test_siracusa.py": (
        "test_random_networks_equal_the_interpreter[71]",
        "test_random_networks_equal_the_interpreter[73]",
    ),
    "e2e/test_siracusa_weights.py": (
        "test_resnet8_with_a_small_weight_memory",
        "test_the_same_c_every_time",
    ),
    "e2e/test_snitch.py": (
        "test_random_networks_equal_the_interpreter[41]",
        "test_random_networks_equal_the_interpreter[42]",
    ),
    "e2e/test_state.py": ("test_numbers_beside_the_best_of_four_steps_are_tried",),
    "e2e/test_tflite_models.py": (
        "test_digital_equals_its_reference[vww_96_int8-*]",
        "test_digital_equals_its_reference[pretrainedResnet_quant-*",
        "test_digital_equals_its_reference[kws_ref_model-host]",
        "test_cpu_equals_tflite_micro[vww_96_int8-*",
        "test_cpu_equals_tflite_micro[kws_ref_model-rv32-diana.simd*",
        "test_cpu_equals_tflite_micro[ad01_int8-rv32-diana.simd*",
        "test_retargeted_classifiers_decide_as_tflite_micro_does",
    ),
    "firmware/test_packages_on_boards.py": ("test_platformio_follows_the_board[teensy-41-*",),
    "frontend/test_goldens.py": ("test_tvm_equals_tflite_micro_on_all_goldens[vww_96_int8]",),
    "frontend/test_limits.py": ("test_a_list_that_all_tensors_share",),
    "frontend/test_qdq.py": ("test_random_networks",),
    # All notebooks have a step of their own in CI.
    "notebooks/test_notebooks.py": ("test_a_notebook_runs[*",),
    "patterns/test_cached_attention.py": ("test_it_computes_what_its_operators_do[False-1*",),
    "quantization/test_large.py": (
        "test_work_for_each_operator_is_bounded[branches]",
        "test_work_for_each_operator_is_bounded[dense residual]",
    ),
    "quantization/test_mul_shift.py": ("test_no_worse_than_one_shift",),
    "quantization/test_retarget.py": ("test_each_refinement_helps",),
    # Sanitizers find what they find with zig's compiler, too; each kind of program has one of
    # clang's, which alone looks at addresses.
    "runtime_c/test_cluster_units.py": (
        "test_c_units[*-gcc]",
        "test_c_units[test_driver.c-clang]",
        "test_c_units[test_races.c-clang]",
    ),
    "runtime_c/test_c_units.py": ("test_c_units[*-gcc-True]",),
    "runtime_c/test_host_platform.py": ("test_sanitized_other_compilers[gcc]",),
    "runtime_c/test_siracusa_units.py": (
        "test_c_units[*-gcc]",
        "test_c_units[test_complaints.c-clang]",
        "test_c_units[test_dma.c-clang]",
        "test_c_units[test_driver.c-clang]",
    ),
    "sim/test_c_units.py": (
        "test_units[*-gcc]",
        "test_units[*-clang]",
        "test_simulator_under_sanitizers[gcc-*",
        "test_simulator_under_sanitizers[clang-]",
        "test_simulator_under_sanitizers[zig-corev]",
    ),
    "soc/test_boards.py": ("test_a_board_and_its_own_target_agree",),
    "soc/test_parameters.py": ("test_exports_and_reports_have_the_whole_name",),
    # Others damage what is kept, and interrupt verbs.
    "test_faults.py": ("test_a_killed_build_is_repeated", "test_builds_at_the_same_time[*"),
    "test_generation.py": ("test_simulated_targets_write_the_same[siracusa.cluster-rv32]",),
    "test_rotation.py": ("test_workers_tell_what_they_left_out",),
    "verification/test_clusters.py": (
        "test_a_core_that_spoils_a_layer[1-*",
        "test_a_core_that_spoils_a_layer[6-snitch_ita.cluster]",
        "test_a_core_that_spoils_attention_over_a_cache[siracusa]",
    ),
    "verification/test_dla.py": ("test_the_instruction_of_a_wrong_element_is_named[on-9KiB]",),
    "verification/test_golden.py": ("test_what_retargeting_changed_is_no_bug",),
    "zoo/test_llama.py": (
        "test_it_has_the_files_operators_and_interface[*-microllama:64]",
        "test_it_has_the_files_operators_and_interface[*-microllama:prompt1]",
    ),
    "zoo/test_model.py": ("test_logits_equal_the_sketch[mobilenet_v1-*",),
    "zoo/test_transformers.py": (
        "test_a_layer_is_what_is_built[relu-*",
        "test_a_layer_is_what_is_built[gelu-snitch_ita.cpu]",
    ),
}
"""File below ``tests`` -> names of its tests, in which ``*`` stands for anything."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases as slow."""
    for item in items:
        place = item.nodeid.partition("::")[0].partition("tests/")[2]
        if any(_matches(item.name, pattern) for pattern in SLOW_CASES.get(place, ())):
            item.add_marker(pytest.mark.slow)
    for item in left_out(items, today()):
        item.add_marker(pytest.mark.slow)


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern.replace("[", "[[]"))
