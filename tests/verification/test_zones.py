"""Bytes that a step writes outside of its results are found, also where nobody reads them."""

from __future__ import annotations

import json

import pytest

import htvm
from byoc_dory.errors import SimulationError, TargetError
from htvm.compiled import Compiled
from htvm.firmware.build import build_host, build_rv32
from htvm.inputs import seeded_inputs
from htvm.sim.host import run_host
from htvm.tools.cli.app import main
from htvm.tools.verification.types import Stray, Verification
from tests.verification.probe import broken, compiled, probe, verified


def stray(found: Verification) -> Stray:
    assert found.stray is not None, str(found)
    assert not found.contained
    return found.stray


@pytest.mark.parametrize("l1", [None, 6000])
def test_a_right_program_stays_within_its_results(l1: int | None) -> None:
    assert verified(compiled(probe(), l1_budget=l1)).contained


def test_a_cpu_kernel_that_writes_past_its_result() -> None:
    """One channel too many: in the arena, behind a buffer of 24 bytes, where nothing lives."""
    work = compiled(probe(), l1_budget=6000, schedule="published")
    wrong = broken(work, "cpu_source", lambda text: text.replace("i3 < 24;", "i3 < 25;", 1))
    found = verified(wrong)
    assert found.equal
    outside = stray(found)
    assert (outside.layer, outside.place, outside.bytes) == ("average_pool_0", "cpu", 1)
    assert outside.memory == "L2" and "0 B past the end of average_pool_0" in outside.beside
    assert outside.origins[0].place is not None
    assert "out[i3] =" in outside.origins[0].place.text
    assert "writes outside of its results" in str(found).splitlines()[0]


@pytest.mark.parametrize("past", [0, 1, 5])
def test_a_zero_past_an_output_in_what_fills_its_last_words(past: int) -> None:
    """Behind the output's 10 bytes are a variable of the firmware's and zeros."""
    work = compiled(probe(), l1_budget=6000)

    def with_zero(text: str) -> str:
        end = text.rindex("}")
        return f"{text[:end]}  out[{10 + past}] = 0;\n{text[end:]}"

    outside = stray(verified(broken(work, "cpu_source", with_zero)))
    assert (outside.layer, outside.bytes) == ("softmax_0", 1)
    assert f"{past} B past the end of output" in outside.beside


def test_a_transfer_that_stores_too_much() -> None:
    """The last tile of the first convolution stores 320 bytes more, as wrong loops do."""
    work = compiled(probe(), l1_budget=6000)
    finish = "    code = diana_digital_conv2d_finish();\n    if (code != 0) {\n"
    more = "    to += 320;\n"
    wrong = broken(work, "layers_source", lambda text: text.replace(finish, more + finish, 1))
    assert stray(verified(wrong)).layer == "conv2d_0"


def test_a_write_into_memory_that_is_free() -> None:
    """Before the operand, where a buffer was that nobody needs any more."""
    work = compiled(probe(), l1_budget=6000, schedule="published")
    line = "    out[i3] ="
    wrong = broken(
        work,
        "cpu_source",
        lambda text: text.replace(line, f"    ((int8_t *)in0)[i3 - 99] ^= 1;\n{line}", 1),
    )
    found = verified(wrong)
    outside = stray(found)
    assert found.equal and outside.bytes == 24 and "in the arena" in outside.beside


def test_a_native_program_that_writes_past_an_output() -> None:
    work = compiled(probe())
    built = build_host(
        broken(work, "cpu_source", lambda text: text.replace("i1 < 10;", "i1 < 11;")).program,
        work.target.soc,
    )
    assert built.native is not None
    with pytest.raises(SimulationError, match="past the end of output"):
        run_host(built.native, [bytes(16 * 20 * 3)], [10])


# ------------------------------------------------------------------------------ run --check


def overrun() -> Compiled:
    """The last step writes 320 bytes past the output."""
    more = "    for (int32_t i = 0; i < 320; ++i) { ((uint8_t *)out)[10 + i] ^= 0x55; }\n"

    def wrong(text: str) -> str:
        begin = text.index("probe_softmax_0")
        end = text.index("\n}\n", begin)
        last = text.rindex("return 0;", begin, end) if "return 0;" in text[begin:end] else end + 1
        return text[:last] + more + text[last:]

    return broken(compiled(probe()), "cpu_source", wrong)


def module_of(work: Compiled) -> htvm.Module:
    return htvm.Module(work, "rv32", build_rv32(work.program, work.target.soc))


def test_run_check_names_layer_and_buffer_of_an_overrun(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = module_of(overrun())
    monkeypatch.setattr("htvm.build", lambda *_, **__: module, raising=False)
    monkeypatch.setattr("htvm.tools.cli.arguments.open_model", lambda *_: probe())
    assert main(["run", "probe.tflite", "--check"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "equal to the reference: yes a step writes OUTSIDE of its results" in shown
    assert "layer softmax_0 (step" in shown and "outside 320 B in L2" in shown
    assert "where 0 B past the end of output" in shown
    assert main(["run", "probe.tflite", "--check", "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["equal_to_reference"] and data["guarded"]
    assert (data["stray"]["layer"], data["stray"]["bytes"]) == ("softmax_0", 320)
    assert main(["run", "probe.tflite"]) == 0


def test_run_check_says_that_nothing_is_written_outside(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = module_of(compiled(probe()))
    monkeypatch.setattr("htvm.build", lambda *_, **__: module, raising=False)
    monkeypatch.setattr("htvm.tools.cli.arguments.open_model", lambda *_: probe())
    assert main(["run", "probe.tflite", "--check"]) == 0
    assert "red zones around all buffers: untouched" in capsys.readouterr().out


def test_red_zones_are_of_the_simulator() -> None:
    work = compiled(probe())
    module = htvm.Module(work, "host", build_host(work.program, work.target.soc))
    with pytest.raises(TargetError, match="platform 'host'; build for platform rv32"):
        module.outside(seeded_inputs(work.source.inputs))
