"""Parameters of SoC descriptions: names, values, errors, and the designs they make."""

from __future__ import annotations

import json
import pickle  # noqa: TID251  (how other processes are given it)
from pathlib import Path

import numpy as np
import pytest
from click.shell_completion import ShellComplete
from hypothesis import given, settings
from hypothesis import strategies as st

import htvm
from byoc_dory.errors import TargetError
from byoc_dory.soc.base import Soc, Target
from byoc_dory.soc.header import render
from byoc_dory.soc.numbers import numbers
from byoc_dory.soc.parameters import Parameter, parse_size, size_text
from byoc_dory.soc.registry import cpu_target, resolve, socs
from htvm.build_options import Platform
from htvm.inputs import seeded_inputs
from htvm.tools.cli import main
from htvm.tools.report.compare import published
from htvm.tools.report.target import target_data

RESNET8_MACS = 12_501_632


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64k", 65_536), ("64KiB", 65_536), ("64kB", 64_000), ("1MiB", 1 << 20), ("1M", 1 << 20),
        ("1.5KiB", 1536), ("65536", 65_536), ("65536B", 65_536), ("2g", 2 << 30), (" 8 KiB", 8192),
        ("0", 0), ("1.3B", None), ("k", None), ("-4k", None), ("4x", None), ("", None),
        ("1e6", None), ("9" * 30, None),
    ],
)  # fmt: skip
def test_sizes(text: str, size: int | None) -> None:
    assert parse_size(text) == size


@given(st.integers(0, 1 << 40))
def test_sizes_are_written_exactly(size: int) -> None:
    assert parse_size(size_text(size)) == size


def test_the_string_and_the_call_are_the_same_value() -> None:
    wanted = htvm.soc("siracusa.cluster", l1="128k", cores=4)
    assert wanted == resolve("siracusa.cluster:cores=4,l1=131072")
    assert wanted == htvm.soc("siracusa.cluster:cores=4", l1=1 << 17) == resolve(wanted)
    assert wanted.name == str(wanted) == "siracusa.cluster:cores=4,l1=128KiB"
    assert wanted.soc.settings == {
        "cores": 4, "l1": 1 << 17, "l2": 2 << 20, "sram": 4 << 20, "mram": 4 << 20, "dma": 8
    }  # fmt: skip
    assert pickle.loads(pickle.dumps(wanted)) == wanted
    assert wanted != resolve("siracusa.cluster")


def test_defaults_are_not_written() -> None:
    plain = resolve("diana")
    assert resolve("diana:rows=16,l1=256kB") == plain == htvm.soc("diana")
    assert plain.soc.values == ()
    assert [entry.default for entry in plain.soc.parameters] == list(plain.soc.settings.values())


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("ethos_u55:macs=256,clock=500,sram=4MiB", "ethos_u55"),
        ("ethos_u65:macs=256,fast=4KiB", "ethos_u65:fast=4KiB"),
        ("ethos_u55:macs=256,clock=100", "ethos_u55:clock=100"),
        ("ethos_u55:board=ek-ra8p1,macs=256,clock=500", "ethos_u55:board=ek-ra8p1"),
        ("dla:pes=64,parallel=both,pes_in=8", "dla:parallel=both"),
        ("dla:pes_in=1", "dla"),
        ("rv32imcv:vlen=128", "rv32imcv"),
    ],
)
def test_a_default_written_out_is_the_same_design(given: str, name: str) -> None:
    """A default may stand for a number, such as that of a board: the name is without both."""
    assert resolve(given) == resolve(name)
    assert resolve(given).name == name


def test_every_default_describes_the_soc_itself() -> None:
    """The function that makes designs, given all defaults, makes what is described."""
    for soc in socs():
        if soc.design is not None:
            made = soc.design(**soc.settings)
            assert render(made) == render(soc), soc.name
            assert made.parameters == soc.parameters


def test_the_header_follows_the_parameters() -> None:
    text = render(resolve("siracusa:cores=3,l1=64KiB,dma=16").soc)
    assert "#define HTVM_CLUSTER_CORES 3u" in text and "#define HTVM_CLUSTER_HARTS 4u" in text
    assert f"#define HTVM_L1_SIZE {(64 << 10) - 4096 - 3 * 1024 - 256}u" in text
    assert "#define SIRACUSA_DMA_BYTES_PER_CYCLE 16u" in text
    ita = render(resolve("snitch_ita:pes=64").soc)
    assert "#define SNITCH_ITA_ITA_TILE_CYCLES 64u" in ita


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("siracusa:kores=4", "no parameter 'kores'; target 'siracusa:kores=4'; did you mean cores? "
         "its parameters are cores: 1 to 8; l1: 16KiB to 4MiB"),
        ("siracusa:cores=0", "cannot be '0'"),
        ("siracusa:cores=-1", "cannot be '-1'"),
        ("siracusa:cores=2.5", "cannot be '2.5'"),
        ("siracusa:cores=many", "give 1 to 8"),
        ("siracusa:cores=9", "give 1 to 8"),
        ("siracusa:l1=100", "give 16KiB to 4MiB"),
        ("siracusa:l1=16385", "multiples of 1KiB"),
        ("siracusa:cores", "'cores' is not a parameter with its value"),
        ("siracusa:", "is not a parameter with its value"),
        ("siracusa:cores=", "'cores=' is not a parameter with its value"),
        ("siracusa:cores=4,cores=5", "cores is given twice: 4 and 5"),
        ("diana:rows=17", "give one of 16, 32, 64"),
        ("snitch_ita:cores=16,l1=16KiB", "16 cores leave -9216 B"),
        ("sirakusa:cores=4", "unknown target 'sirakusa'"),
    ],
)  # fmt: skip
def test_errors_say_what_where_and_what_to_do(name: str, says: str) -> None:
    with pytest.raises(TargetError) as caught:
        resolve(name)
    assert says in str(caught.value)
    with pytest.raises(TargetError):
        htvm.build("zoo:none", target=name)


def test_errors_of_python_values() -> None:
    for bad in (0, -1, 2.5, True, None, [4], float("nan")):
        with pytest.raises(TargetError, match="cores"):
            htvm.soc("siracusa", cores=bad)
    with pytest.raises(TargetError, match="given twice: 4 and 5"):
        htvm.soc("siracusa:cores=4", cores=5)
    with pytest.raises(TargetError, match="a int is not a target"):
        resolve(3)  # type: ignore[arg-type]
    assert htvm.soc("siracusa", cores=np.int64(4)) == resolve("siracusa:cores=4")


def test_kinds_of_parameters() -> None:
    switch = Parameter("fused", True, "one instruction")
    assert switch.parse("off", "") is False and switch.parse(True, "") is True
    assert switch.text(False) == "off" and switch.domain == "on or off"
    real = Parameter("share", 0.5, "a share", low=0, high=1)
    assert real.parse("0.25", "") == 0.25 and real.parse(1, "") == 1.0
    text = Parameter("parallel", "output", "what is parallel", choices=("input", "output"))
    assert text.parse("input", "") == "input" and text.domain == "one of input, output"
    cases: list[tuple[Parameter, object]] = [
        (switch, "maybe"), (switch, 1), (real, "1.5"), (real, "nan"), (text, "both"), (text, 3),
    ]  # fmt: skip
    for parameter, bad in cases:
        with pytest.raises(TargetError, match=parameter.name):
            parameter.parse(bad, "here")


def test_a_soc_without_parameters_says_so() -> None:
    plain = Soc(**{**vars(resolve("diana").soc), "parameters": (), "design": None})
    with pytest.raises(TargetError, match="it has no parameters"):
        plain.designed({"pes": 1})


def test_targets_show_parameters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["targets"]) == 0
    assert "htvm targets show NAME says what they are" in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "120")  # narrower, cells are wrapped
    assert main(["targets", "show", "siracusa:cores=4"]) == 0
    printed = capsys.readouterr().out
    assert "siracusa:cores=4" in printed
    assert "multiples of 1KiB" in printed
    assert main(["targets", "show", "siracusa:cores=4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["parameters"][0]
    assert (found["name"], found["value"], found["default"]) == ("cores", 4, 8)
    assert main(["targets", "show", "siracusa:cores=40"]) == 2
    assert "give 1 to 8" in capsys.readouterr().err


def test_names_of_parameters_are_completed() -> None:
    from htvm.tools.cli.app import app

    shell = ShellComplete(app, {}, "htvm", "_HTVM_COMPLETE")
    found = shell.get_completions(["run", "zoo:resnet8", "--target"], "siracusa.cpu:cores=4,l")
    assert [entry.value for entry in found] == [
        "siracusa.cpu:cores=4,l1=", "siracusa.cpu:cores=4,l2=",
    ]  # fmt: skip


def test_figures_of_the_chip_are_not_those_of_other_designs() -> None:
    assert published(RESNET8_MACS, "diana")
    assert not published(RESNET8_MACS, "diana:l1=128KiB")
    assert target_data(resolve("siracusa"))["powers"]
    assert not target_data(resolve("siracusa:cores=4"))["powers"]
    assert cpu_target("diana.simd.digital:l1=128KiB") == "diana.simd.cpu:l1=128KiB"


# ------------------------------------------------------------------------------ designs that run

DESIGNS = ["diana.digital:rows=32,columns=8,l1=8KiB,dma=4"]
MORE = [
    *(f"diana.digital:rows={rows}" for rows in (32, 64)),
    *(f"diana.digital:columns={columns}" for columns in (4, 8, 32, 64)),
    *(f"diana.digital:weights={size}" for size in ("4KiB", "16KiB", "1MiB")),
    *(f"diana:l1={size},dma={dma}" for size in ("4KiB", "64KiB", "1MiB") for dma in (8, 32)),
    *(f"siracusa:cores={cores}" for cores in range(1, 8)),
    *(f"siracusa:l1={size},dma={dma}" for size in ("16KiB", "4MiB") for dma in (4, 32)),
    *(f"snitch_ita.cluster:cores={cores}" for cores in (1, 2, 3, 7, 12, 16)),
    *(f"snitch_ita:l1={size},dma=16" for size in ("24KiB", "1MiB")),
    "generic.cpu:l2=1MiB",
]


def check(model: htvm.Model, target: str | Target, platform: Platform) -> htvm.Module:
    module = htvm.build(model, target=target, platform=platform)
    for seed in (1, 2):
        inputs = seeded_inputs(model.inputs, seed)
        found = module.run(inputs).outputs
        wanted = module.reference(inputs)
        assert all(map(np.array_equal, found, wanted))
    return module


@pytest.fixture(scope="module")
def digits() -> htvm.Model:
    return htvm.zoo.build("digits")


@pytest.mark.parametrize("target", DESIGNS)
def test_designs_are_exact(digits: htvm.Model, target: str) -> None:
    check(digits, target, "host")


@pytest.mark.slow
@pytest.mark.parametrize("target", MORE)
def test_more_designs_are_exact_and_counted(digits: htvm.Model, target: str) -> None:
    module = check(digits, target, "rv32")
    assert module.report().summary.target == target


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 3, 4, 7])
def test_simd_cores_are_exact(cores: int) -> None:
    check(htvm.zoo.build("toyadmos"), f"siracusa.cluster:cores={cores}", "rv32")


@pytest.mark.slow
def test_itas_lanes_change_its_cycles_only() -> None:
    """Quarter, once, four times the lanes: the same results; a tile's products take as long."""
    model = htvm.zoo.single_head_attention()
    cycles = []
    for pes in (4, 16, 64):
        module = check(model, f"snitch_ita:pes={pes}", "rv32")
        counted = module.report().summary.cycles
        assert counted is not None and "ita" in module.placement.values()
        cycles.append(counted)
    assert cycles[0] > 2 * cycles[1] > 2 * cycles[2]


def test_exports_and_reports_have_the_whole_name(digits: htvm.Model, tmp_path: Path) -> None:
    target = "siracusa:cores=3,l1=64KiB,l2=128KiB,dma=16"
    design = htvm.soc("siracusa", cores=3, l1="64k", dma=16, l2="128KiB")
    module = check(digits, design, "host")
    assert module.target == target
    assert module.report().summary.target == target
    project = htvm.open(module.export(tmp_path / "out"), trust=True)
    assert project.target == target
    assert project.soc == module.compiled.target.soc
    assert project.check()


@settings(max_examples=50)
@given(st.sampled_from([s for s in socs() if s.parameters]), st.data())
def test_names_of_random_designs_name_them(soc: Soc, data: st.DataObject) -> None:
    """A design's name makes the design again; values that cannot be together are refused."""
    values: dict[str, object] = {}
    for entry in soc.parameters:
        if entry.choices:
            values[entry.name] = data.draw(st.sampled_from(entry.choices))
        elif isinstance(entry.default, bool):
            values[entry.name] = data.draw(st.booleans())
        else:
            assert entry.low is not None and entry.high is not None
            low, high = int(entry.low) // entry.step, int(entry.high) // entry.step
            values[entry.name] = data.draw(st.integers(low, high)) * entry.step
    name = soc.targets[0].name
    try:
        found = htvm.soc(name, **values)
    except TargetError as error:
        assert error.hint
        return
    assert resolve(found.name) == found
    # What is not in the name makes no difference.
    kept = {name for name in values if found.soc.settings[name] == values[name]}
    defaults = {entry.name: entry.default for entry in soc.parameters}
    assert found.soc.settings == {
        name: (values if name in kept else defaults)[name] for name in values
    }
    assert soc.design is not None
    assert render(soc.design(**values)) == render(found.soc)


# ------------------------------------------------------------------ numbers of a description


def test_every_number_of_every_description_has_a_name_and_can_be_given() -> None:
    for soc in socs():
        name = soc.targets[0].name
        target = resolve(name)
        for entry in numbers(target.soc):
            assert resolve(name, parameters={entry.name: entry.default}) == target, entry.name
    known = [entry.name for entry in numbers(resolve("diana").soc)]
    assert {"clock_hz", "L2.size", "digital.lanes", "digital.filters.3", "dma.granule",
            "host.cost.conv_mac"} <= {*known}  # fmt: skip
    assert not [name for name in known if name.endswith((".registers", ".base", ".mapped"))]


def test_a_number_is_part_of_the_name_and_of_the_description() -> None:
    target = resolve("diana.digital:digital.row_cycles=2,rows=32,L2.size=1MiB")
    assert target.name == "diana.digital:rows=32,L2.size=1MiB,digital.row_cycles=2"
    assert resolve(target.name) == target
    (core,) = target.accelerators
    assert core is target.soc.accelerator("digital") and core.row_cycles == 2  # type: ignore[attr-defined]
    assert "#define DIANA_DIGITAL_ROW_CYCLES 2u" in render(target.soc)
    assert target.soc.powers == () != resolve("diana").soc.powers
    assert cpu_target(target.name) == target.name.replace("digital", "cpu", 1)
    assert pickle.loads(pickle.dumps(target)) == target
    assert resolve("diana.digital:digital.row_cycles=1") == resolve("diana.digital")


def test_a_number_of_two_records_of_one_name_is_one_number() -> None:
    soc = resolve("siracusa:cluster.cores=4").soc
    assert soc.cluster is not None
    assert soc.cluster.cores == 4 == soc.accelerator("cluster").cores  # type: ignore[attr-defined]


def test_the_host_of_a_target_has_the_number() -> None:
    assert resolve("diana.simd:host.stack=8k").soc.host.corev
    assert resolve("diana.simd:host.stack=8k").soc.host.stack == 8192
    with pytest.raises(TargetError, match="size of L2 is given twice: 65536 and 128k"):
        resolve("generic.cpu:l2=128k", l2_bytes=65536)


def test_a_number_that_a_parameter_sets_has_no_other_name() -> None:
    for name, says in (
        ("ethos_u55:sram=32k,L2.size=64k", "L2.size is sram here"),
        ("siracusa:L2.size=1MiB", "L2.size is l2 here"),
        ("generic.cpu:L2.size=1MiB", "L2.size is l2 here"),
        ("diana:L1.size=64k", "L1.size is l1 here"),
    ):
        with pytest.raises(TargetError, match=says):
            resolve(name)
    with pytest.raises(TargetError, match="size of L2 is given twice: 65536 and 32k"):
        resolve("ethos_u55:sram=32k", l2_bytes=65536)
