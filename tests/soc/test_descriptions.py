"""SoC descriptions, their registry, and the C header rendered from them."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import byoc_dory.soc.registry as registry
from byoc_dory.errors import TargetError
from byoc_dory.layers import Layer
from byoc_dory.soc.base import Accelerator, Soc, round_up
from byoc_dory.soc.diana.cores import DigitalCore
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.soc.header import render
from byoc_dory.verdict import Accepted, OperatorVerdict, Refused, Verdict
from htvm.tools.cli import main
from tests.soc.rule_layers import conv


def core() -> DigitalCore:
    found = DIANA.accelerator("digital")
    assert isinstance(found, DigitalCore)
    return found


def test_built_in_targets_without_installation() -> None:
    assert set(registry.targets()) >= {"diana", "diana.digital", "diana.cpu", "generic.cpu"}


@pytest.mark.parametrize(
    ("name", "accelerators"),
    [
        ("diana", ["digital", "analog"]),
        ("diana.analog", ["analog"]),
        ("diana.mixed", ["digital", "analog"]),
        ("diana.digital", ["digital"]),
        ("diana.cpu", []),
        ("generic.cpu", []),
    ],
)
def test_targets_name_their_accelerators(name: str, accelerators: list[str]) -> None:
    target = registry.resolve(name)
    assert target.name == name
    assert [entry.name for entry in target.accelerators] == accelerators


def test_unknown_target_lists_the_known() -> None:
    with pytest.raises(TargetError) as caught:
        registry.resolve("dyana")
    assert "unknown target 'dyana'" in str(caught.value)
    for name in registry.targets():
        assert name in str(caught.value)


def test_generic_has_the_l2_asked_for() -> None:
    assert registry.resolve("generic.cpu", l2_bytes=1 << 24).soc.memory("L2").size == 1 << 24
    assert registry.resolve("generic.cpu").soc.memory("L2").size > 512_000


@pytest.mark.parametrize("size", [0, -16, 17, 1 << 40])
def test_impossible_l2(size: int) -> None:
    with pytest.raises(TargetError, match="L2 cannot have"):
        registry.resolve("generic.cpu", l2_bytes=size)


def test_diana_has_the_l2_it_has() -> None:
    with pytest.raises(TargetError, match="fixed at 512000 B"):
        registry.resolve("diana.cpu", l2_bytes=1 << 20)


def fake_entry_points(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str]) -> None:
    found = tuple(EntryPoint(name, value, registry.GROUP) for name, value in points)
    monkeypatch.setattr(registry, "entry_points", lambda group: found)


def test_a_broken_package_leaves_other_targets_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_entry_points(monkeypatch, ("broken", "no_such_package_anywhere:soc"))
    assert registry.resolve("snitch_ita").soc.name == "snitch_ita"
    with pytest.raises(TargetError, match="no_such_package_anywhere"):
        registry.resolve("no such target")


def test_a_soc_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "outside_soc.py").write_text(
        "from dataclasses import replace\n"
        "from byoc_dory.soc.base import TargetSpec\n"
        "from byoc_dory.soc.diana.description import DIANA\n"
        "def soc():\n"
        "    return replace(DIANA, name='mine', targets=(TargetSpec('mine', ('digital',)),))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    fake_entry_points(
        monkeypatch, ("mine", "outside_soc:soc"), ("diana", registry.BUILT_IN["diana"])
    )
    assert registry.targets()[-1] == "mine"
    assert registry.resolve("mine").soc.name == "mine"


@pytest.mark.parametrize(
    ("point", "message"),
    [
        (("diana", "outside:soc"), "two packages register a SoC called 'diana'"),
        (("broken", "no_such_module_anywhere:soc"), "'broken' cannot be loaded"),
        (("broken", "byoc_dory.soc.base:nothing"), "'broken' cannot be loaded"),
        (("odd", "builtins:dict"), "is a dict, not a description"),
    ],
)
def test_bad_registrations(
    monkeypatch: pytest.MonkeyPatch, point: tuple[str, str], message: str
) -> None:
    fake_entry_points(monkeypatch, point)
    with pytest.raises(TargetError, match=message):
        registry.targets()


def test_registered_entry_points_are_the_built_in_ones() -> None:
    """Where the distribution is installed, it registers what the source tree knows."""
    points = importlib.metadata.entry_points(group=registry.GROUP)
    if not points:
        pytest.skip("the distribution is not installed here")
    installed = {point.name: point.value for point in points}
    assert {name: installed.get(name) for name in registry.BUILT_IN} == registry.BUILT_IN


def test_descriptions_are_constants() -> None:
    assert hash(DIANA) == hash(replace(DIANA))
    with pytest.raises(FrozenInstanceError):
        DIANA.name = "other"  # type: ignore[misc]


def test_memories_and_devices_do_not_overlap() -> None:
    assert DIANA.dma is not None
    spans = [(memory.base, memory.end) for memory in DIANA.memories]
    bases = (DIANA.dma.registers, *(device.registers for device in DIANA.accelerators))
    spans += [(base, base + 0x1000) for base in bases]
    spans += [(DIANA.sim.putchar, DIANA.sim.trace + 4)]
    spans.sort()
    assert all(one[1] <= two[0] for one, two in zip(spans, spans[1:], strict=False))


def test_unknown_memory_and_accelerator_list_the_known() -> None:
    with pytest.raises(TargetError, match="no memory 'L3'.*it has L1, L2"):
        DIANA.memory("L3")
    with pytest.raises(TargetError, match="no accelerator 'optical'.*digital, analog"):
        DIANA.accelerator("optical")


def test_published_latency_of_a_millisecond() -> None:
    assert DIANA.cycles_to_ms(260_000) == 1.0


def test_dma_cost_of_calls_and_commands() -> None:
    dma = DIANA.dma
    assert dma is not None
    assert dma.cycles(1) == 50 + 2
    assert dma.cycles(33) == 50 + 4
    assert dma.cycles(32, commands=10) == 50 + 10 * (36 + 2)


def test_weight_bytes_of_the_layer_table() -> None:
    assert core().conv_weight_bytes(16, 16, 3, 3) // 16 == 148  # ResNet c2
    assert core().conv_weight_bytes(12, 3, 3, 3) == core().conv_weight_bytes(16, 3, 3, 3)
    assert core().dense_weight_bytes(64) // 16 == 80  # ResNet dense
    assert 8 * core().dense_weight_bytes(640) // 16 == 5_248  # ToyAdmos d1


def test_round_up() -> None:
    assert [round_up(value, 16) for value in (0, 1, 16, 17)] == [0, 16, 16, 32]


def no(soc: Soc, core: Accelerator, layer: Layer) -> Verdict:
    """Never."""
    return Refused("first")


def test_rules_are_judged_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def yes(soc: Soc, core: Accelerator, layer: Layer) -> Verdict:
        """Always."""
        return Accepted()

    rules = ("MAC-1", yes), ("MAC-3", no), ("MAC-2", lambda soc, core, layer: Refused("second"))
    monkeypatch.setattr(type(core()), "rules", rules)
    verdict = core().judge(DIANA, conv())
    assert verdict == Refused("first", "MAC-3: Never.")
    verdict = OperatorVerdict("mac", False, verdict.reason, verdict.rule)
    assert verdict.objection == "first (MAC-3)"
    assert OperatorVerdict("mac", False, "no pattern for pad").objection == "no pattern for pad"


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ((no,), "the rule no has no identifier"),
        ((("DIGITAL-1", no), no), "the rule no has no identifier"),
        ((("DIGITAL-1", no), ("DIGITAL-1", no)), "identifiers are DIGITAL-1, DIGITAL-1"),
        ((("DIGITAL-1", no), ("DIGITAL-3", no)), "identifiers are DIGITAL-1, DIGITAL-3"),
        ((("MAC-1", no),), "identifiers are MAC-1"),
        (((1, no),), "identifiers are 1"),
        ((("DIGITAL-1", no), (2, no)), "identifiers are DIGITAL-1, 2"),
        (None, "its rules cannot be read: TypeError"),
    ],
)
def test_rules_without_numbers_of_their_own_are_no_rules(
    rules: object, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(core()), "rules", rules)
    with pytest.raises(TargetError, match=words) as caught:
        registry.resolve("diana")
    assert caught.value.where == "accelerator 'digital' of SoC diana"
    assert '("DIGITAL-1", rule)' in caught.value.hint


def test_an_accelerator_without_its_methods_is_a_typed_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "half_a_soc.py").write_text(
        "from byoc_dory.soc.base import Accelerator\n"
        "def soc():\n    return Accelerator('mac', 'a mac', 0, 'L1', 'mac')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    point = importlib.metadata.EntryPoint("half", "half_a_soc:soc", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    with pytest.raises(TargetError, match="'half' cannot be loaded.*abstract.*emitter"):
        registry.socs()


def test_an_accelerator_that_answers_no_cost_is_a_typed_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "costless_soc.py").write_text(
        "from byoc_dory.soc.base import Accelerator\n"
        "class Mac(Accelerator):\n"
        "    rules = objectives = tiling_problem = tile_program = emitter = None\n"
        "def soc():\n    return Mac('mac', 'a mac', 0, 'L1', 'mac')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    point = importlib.metadata.EntryPoint("costless", "costless_soc:soc", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    said = r"'costless' cannot be loaded from costless_soc:soc: .*abstract.*\bcosts\b"
    with pytest.raises(TargetError, match=said):
        registry.socs()


def test_description_loads_without_a_solver() -> None:
    code = (
        "import sys, byoc_dory.soc.registry as r; r.resolve('diana');"
        "assert not {'pulp', 'tvm', 'highspy'} & set(sys.modules), sys.modules.keys()"
    )
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


def test_header_holds_every_number_of_core_and_dma() -> None:
    text = render(DIANA)
    macros = dict(re.findall(r"^#define (\w+) (.+)$", text, re.MULTILINE))
    devices = (
        ("DIANA_DMA", DIANA.dma),
        ("DIANA_DIGITAL", core()),
        ("DIANA_ANALOG", DIANA.accelerator("analog")),
    )
    for prefix, device in devices:
        for field in fields(device):  # type: ignore[arg-type]
            value = getattr(device, field.name)
            if isinstance(value, int):
                assert int(macros[f"{prefix}_{field.name.upper()}"].rstrip("u"), 0) == value
    assert macros["HTVM_L2_BASE"] == "0x1C000000u"
    assert macros["HTVM_L1_SIZE"] == "256000u"
    assert macros["DIANA_DIGITAL_FILTERS"] == "1u, 3u, 5u, 7u"
    assert text == render(DIANA)


def test_header_of_a_soc_without_devices() -> None:
    soc: Soc = registry.resolve("generic.cpu").soc
    text = render(soc)
    assert "HTVM_L2_SIZE" in text and "DIANA" not in text and "HTVM_L1" not in text


def test_each_target_of_diana_is_offered_with_both_hosts() -> None:
    names = [name for name in registry.targets() if name.split(".")[0] == "diana"]
    scalar = [name for name in names if "simd" not in name]
    assert len(scalar) == 5 and len(names) == 10
    for name in scalar:
        plain = registry.resolve(name)
        simd = registry.resolve(name.replace("diana", "diana.simd"))
        assert not plain.soc.host.corev and simd.soc.host.corev
        assert replace(simd.soc, host=plain.soc.host) == plain.soc
        assert (simd.accelerators, simd.policy) == (plain.accelerators, plain.policy)
        assert registry.cpu_target(name) == "diana.cpu"
        assert registry.cpu_target(simd.name) == "diana.simd.cpu"


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("def soc(:\n    pass\n", "SyntaxError: ", 1),
        ("import math\n\n\ndef soc():\n    return 1 // 0\n", "ZeroDivisionError: integer", 5),
        ("raise RuntimeError\n", "RuntimeError", 1),
        ("import no_such_module_anywhere\n", "No module named 'no_such_module_anywhere'", 1),
    ],
)
def test_a_mistake_in_a_description_is_named_with_its_line(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    said: str,
    line: int,
) -> None:
    path = tmp_path / f"mistaken_{line}_{len(text)}.py"
    path.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    fake_entry_points(monkeypatch, ("mistaken", f"{path.stem}:soc"))
    with pytest.raises(TargetError) as caught:
        registry.socs()
    assert "'mistaken' cannot be loaded" in str(caught.value) and said in str(caught.value)
    assert f"{path}, line {line}" in str(caught.value)
    # The others are listed, and can be built for.
    assert registry.resolve("diana").soc.name == "diana"
    assert main(["targets"]) == 0
    shown = capsys.readouterr()
    assert "diana.digital" in shown.out and "mistaken" not in shown.out
    assert "htvm: warning: " in shown.err and f"line {line}" in shown.err
