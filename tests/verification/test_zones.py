"""Bytes that a step writes outside of its results are found, also where nobody reads them."""

from __future__ import annotations

import pytest

from byoc_dory.errors import SimulationError
from htvm.firmware.build import build_host
from htvm.sim.host import run_host
from htvm.verification.types import Stray, Verification
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
    work = compiled(probe(), l1_budget=6000)
    wrong = broken(work, "cpu_source", lambda text: text.replace("i3 < 24;", "i3 < 25;", 1))
    found = verified(wrong)
    assert found.equal
    outside = stray(found)
    assert (outside.layer, outside.place, outside.bytes) == ("average_pool_0", "cpu", 1)
    assert outside.memory == "L2" and "0 B past the end of average_pool_0" in outside.beside
    assert outside.origins[0].place is not None
    assert "out[i3] =" in outside.origins[0].place.text
    assert "writes outside of its results" in str(found).splitlines()[0]


def test_a_transfer_that_stores_too_much() -> None:
    """The last tile of the first convolution stores 320 bytes more, as wrong loops do."""
    work = compiled(probe(), l1_budget=6000)
    finish = "    code = diana_digital_conv2d_finish();\n    if (code != 0) {\n"
    more = "    to += 320;\n"
    wrong = broken(work, "layers_source", lambda text: text.replace(finish, more + finish, 1))
    assert stray(verified(wrong)).layer == "conv2d_0"


def test_a_write_into_memory_that_is_free() -> None:
    """Before the operand, where a buffer was that nobody needs any more."""
    work = compiled(probe(), l1_budget=6000)
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
