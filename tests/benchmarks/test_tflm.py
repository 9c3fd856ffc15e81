"""TFLite Micro beside ours: the page, what is compared, and which sources are compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import htvm
from benchmarks.tflm import cells as cells_module
from benchmarks.tflm.__main__ import BLOCK, CORES, QUOTING, SETTINGS, main
from benchmarks.tflm.cells import FAST, OURS, Cell, Store, cells, data_of, results_of
from benchmarks.tflm.compilers import GCC, kit_of
from benchmarks.tflm.firmware import OPERATORS, Sources, compiled_sources
from benchmarks.tflm.layers import best, side_by_side
from benchmarks.tflm.page import headline, page
from benchmarks.tflm.run import Counted, Layer, Network, of_operators, ours
from byoc_dory.errors import InputError, ToolchainError
from byoc_dory.soc.registry import resolve
from htvm.tools.cli.app import exit_code
from tests.models import golden
from tests.tools import tool

ROOT = Path(__file__).parents[2]


def counted(cycles: int, *, flash: int = 60, ram: int = 80) -> Counted:
    """What an inference of one kernel took."""
    layer = Layer("CONV_2D 0", cycles // 2, (cycles - 2, cycles + 2), 10)
    return Counted(True, cycles // 2, layer.estimate, (layer,), 10, flash, 50, ram, 0, 0)


def cell(by: str, setting: str = "gcc:-O2", *, assembly: bool = False) -> Cell:
    """A cell of ResNet-8 on the M4."""
    name, _, level = setting.partition(":")
    return Cell("ResNet-8", "cortex_m4", by, name, level, assembly)


RESULTS = {
    cell(OURS): counted(120),
    cell(OURS, "zig:-O2"): counted(90, flash=61),
    cell(FAST): counted(130, flash=100, ram=100),
    cell(FAST, assembly=True): counted(100, flash=100, ram=100),
    cell(FAST, "zig:-O2"): counted(110, flash=101, ram=100),
}


def test_the_committed_page_is_of_the_committed_data() -> None:
    text = (ROOT / "docs" / "results" / "tflm.json").read_text("utf-8")
    results, versions = results_of(text)
    assert data_of(results, versions) == text
    assert page(results, versions) == (ROOT / "docs" / "tflm.md").read_text("utf-8")
    for name in QUOTING:
        quoted = BLOCK.search((ROOT / name).read_text("utf-8"))
        assert quoted is not None and headline(results) in quoted[0], name
    for core in CORES:
        for setting in SETTINGS:
            name, _, level = setting.partition(":")
            for network in ("ResNet-8", "DS-CNN", "MobileNet", "autoencoder"):
                wanted = {*cells([network], [core], [(name, level)])}
                said = f"left out: {network} on {core} by {setting}, not measured yet"
                assert wanted <= {*results} or said in versions
    for each, one in results.items():
        assert one.equal, each
        assert 0.97 < sum(layer.instructions for layer in one.layers) / one.instructions <= 1, each


def test_each_sides_best_is_compared() -> None:
    pair = best(RESULTS, "cortex_m4", "ResNet-8")
    assert (pair.ours.setting, pair.theirs.setting) == ("zig -O2", "gcc -O2, assembly")
    assert pair.share == 0.9
    same = best(RESULTS, "cortex_m4", "ResNet-8", ("gcc", "-O2"))
    assert (same.mine, same.theirs.assembly, same.share) == (RESULTS[cell(OURS)], True, 1.2)
    with pytest.raises(ValueError):
        best(RESULTS, "cortex_m55", "ResNet-8")


def test_instructions_are_compared_where_no_cycles_are_known() -> None:
    def without(one: Counted) -> Counted:
        layers = tuple(replace(layer, estimate=None) for layer in one.layers)
        return replace(one, estimate=None, layers=layers, instructions=one.instructions + 1)

    pair = best({key: without(one) for key, one in RESULTS.items()}, "cortex_m4", "ResNet-8")
    assert pair.share == 46 / 51
    [(mine, other, share)] = pair.kernels()
    assert (mine.instructions, other.instructions, share) == (45, 50, 0.9)


def test_what_is_worse_comes_first() -> None:
    slow = {**RESULTS, cell(OURS, "zig:-O2"): counted(105, flash=61, ram=81)}
    text = page(slow, ["tflm 1"])
    worse, figures = text.index("slower kernels: CONV_2D 0 1.05"), text.index("## Each side's best")
    assert worse < figures
    assert "takes 105% on the M4 (ResNet-8)" in headline(slow)
    assert "the worst takes 120% (ResNet-8, M4, gcc -O2)" in headline(slow)
    assert "ResNet-8, M4: 81 B of RAM, with CMSIS-NN 100: 81%" in text
    assert "of flash, with" not in text  # GCC's 60 B
    large = {key: replace(one, flash=one.flash + 10) for key, one in RESULTS.items()}
    said = "70 B of flash, with CMSIS-NN 110: 64%; constants (weights, biases, factors), 50 B or 45"
    assert said in page(large, [])
    assert "No kernel is slower." in page(RESULTS, [])


def test_kernels_side_by_side() -> None:
    lines = side_by_side(cell(OURS), RESULTS).splitlines()
    assert "CMSIS-NN gcc -O2, assembly" in lines[1] and "zig" not in lines[1]
    assert lines[2].split() == "CONV_2D 0 120 60 130 65 0.92 0.92 100 50 1.20 1.20".split()
    unequal = {**RESULTS, cell(FAST): replace(RESULTS[cell(FAST)], equal=False)}
    assert "NOT EQUAL to the golden: gcc -O2" in side_by_side(cell(OURS), unequal)


def step(name: str, instructions: int, macs: int = 0) -> Any:
    """A step of a run, whose estimate is twice its instructions."""
    estimate = (2 * instructions, 2 * instructions)
    return htvm.LayerResult(name, "cpu", "cpu", None, 0, macs, None, None, instructions, estimate)


def file_of(*kinds: str) -> Any:
    """A file with these operators."""
    return SimpleNamespace(operators=[SimpleNamespace(kind=kind) for kind in kinds])


def test_steps_are_added_up_to_the_files_operators() -> None:
    file = file_of("CONV_2D", "DEPTHWISE_CONV_2D", "RESHAPE", "CONV_2D")
    steps = [step("pad_0", 1), step("conv2d_0", 10, 5), step("depthwise_0+conv2d_1", 7, 3)]
    first, second = of_operators([*steps, step("depthwise_0+conv2d_1", 2)], file)
    assert first == Layer("CONV_2D 0", 11, (22, 22), 5)
    assert second == Layer("DEPTHWISE_CONV_2D 0+CONV_2D 1", 9, (18, 18), 3)
    with pytest.raises(ValueError, match="no step computes CONV_2D 1, DEPTHWISE_CONV_2D 0"):
        of_operators(steps[:2], file)


def test_the_option_of_cmsis_nn_is_not_for_the_m0() -> None:
    found = [*cells(["DS-CNN"], ["cortex_m0plus", "cortex_m4"], [("gcc", "-O2")])]
    assert [(each.core, each.by, each.assembly) for each in found] == [
        ("cortex_m0plus", OURS, False), ("cortex_m0plus", FAST, False),
        ("cortex_m4", OURS, False), ("cortex_m4", FAST, False), ("cortex_m4", FAST, True),
    ]  # fmt: skip


def test_what_is_known_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[Cell] = []

    def measure(one: Cell, *_others: object) -> Counted:
        measured.append(one)
        return RESULTS[one]

    monkeypatch.setattr(cells_module, "_measured", measure)
    monkeypatch.setattr(Store, "_program", lambda *_cell: "as before")
    sources = Sources(*[tmp_path] * 4, versions=("tflm 1",))
    for _ in range(2):
        store = Store(tmp_path, sources, lambda name: Network(name, tmp_path, None, None))
        assert store.measure(cell(OURS, "zig:-O2")) == RESULTS[cell(OURS, "zig:-O2")]
        store.measure(cell(FAST, "zig:-O2"))
    assert len(measured) == 2
    monkeypatch.setattr(Store, "_program", lambda *_cell: "changed")
    store = Store(tmp_path, sources, lambda name: Network(name, tmp_path, None, None))
    store.measure(cell(OURS, "zig:-O2"))
    assert store.is_known(cell(OURS, "zig:-O2")) and not store.is_known(cell(OURS))
    store.measure(cell(FAST, "zig:-O2"))
    assert len(measured) == 3
    other = Store(tmp_path, replace(sources, versions=("tflm 2",)), store._network)
    other.measure(cell(FAST, "zig:-O2"))
    assert len(measured) == 4


def names_of(folder: Path, names: Sequence[str]) -> list[str]:
    """The sources that are compiled of a convolution's network, below a folder."""
    kernels = folder / "tensorflow" / "lite" / "micro" / "kernels"
    nn = folder / "nn" / "Source" / "ConvolutionFunctions"
    for place in (kernels / "cmsis_nn", nn):
        place.mkdir(parents=True)
    for name in ("kernel_util.cc", "conv.cc", "conv_common.cc", "conv_test.cc", "cmsis_nn/conv.cc"):
        (kernels / name).touch()
    for name in names:
        (nn / name).touch()
    sources = Sources(folder, folder, folder, folder, folder / "nn", folder)
    _, quick = compiled_sources(sources, ["CONV_2D"])
    own = str(kernels.relative_to(folder))
    return [str(path.relative_to(folder)).replace(own, "k") for path in quick]


def test_kernels_of_cmsis_nn_replace_those_of_the_interpreter(tmp_path: Path) -> None:
    assert names_of(tmp_path, ["arm_convolve_s8.c", "arm_convolve_f16.c"]) == [
        "k/kernel_util.cc",
        "k/cmsis_nn/conv.cc",
        "k/conv_common.cc",
        "nn/Source/ConvolutionFunctions/arm_convolve_s8.c",
    ]


def test_operators_of_the_files_are_known() -> None:
    with pytest.raises(KeyError):
        compiled_sources(Sources(*[Path()] * 4), ["LSTM"])
    assert {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "SOFTMAX"} <= set(OPERATORS)


def test_sources_are_found_with_and_without_versions(tmp_path: Path) -> None:
    for name in ("tflm@90b983c", "flatbuffers", "gemmlowp", "ruy", "cmsis_nn@1", "cmsis@2"):
        (tmp_path / name).mkdir()
    sources = Sources.below(tmp_path)
    assert (sources.cmsis.name, sources.cmsis_nn.name) == ("cmsis@2", "cmsis_nn@1")
    assert sources.versions[:2] == ("tflm 90b983c", "flatbuffers")
    (tmp_path / "ruy").rmdir()
    with pytest.raises(InputError, match="there is no folder ruy or ruy@VERSION"):
        Sources.below(tmp_path)


def test_a_folder_without_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(main, [str(tmp_path), "--store", str(tmp_path / "store")]) == 2
    assert "there is no folder tflm" in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


def test_a_compiler_too_old_for_a_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(GCC)
    (tmp_path / "clang").write_text(
        "#!/bin/sh\ncase $1 in --version) echo clang version 9.0.1; exit;; esac\n"
        "echo \"error: the clang compiler does not support '-mcpu=cortex-m55'\" >&2\nexit 1\n"
    )
    (tmp_path / "clang").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(
        ToolchainError, match=r"clang 9\.0\.1 does not compile for cortex-m55: error"
    ):
        kit_of("clang", "-O2", resolve("cortex_m55").soc)


@pytest.mark.parametrize("name", ["gcc", "clang", "zig"])
def test_our_side_by_each_compiler(name: str) -> None:
    """Equal, counted by operator, estimated."""
    for program in {"gcc": [GCC], "clang": [GCC, "clang"], "zig": []}[name]:
        tool(program)
    known = golden("ad01_int8")
    network = Network("autoencoder", known.path, known.inputs[0], known.outputs[0])
    found = ours(network, "cortex_m4", kit_of(name, "-O2", resolve("cortex_m4").soc))
    assert found.equal and len(found.layers) == 10 and found.macs == 264_192
    assert found.estimate is not None and found.layers[0].estimate is not None
    total = [layer.estimate or (0, 0) for layer in found.layers]
    assert 0.97 < sum(low for low, _ in total) / found.estimate[0] <= 1
