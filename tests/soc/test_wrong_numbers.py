"""Numbers of descriptions that the model cannot take: the user's error, with the place."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest

import byoc_dory.soc.registry as registry
import htvm
from byoc_dory.errors import TargetError
from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import Soc
from byoc_dory.soc.diana.description import DIANA
from htvm.firmware.diagnostics import refused_number
from htvm.model import Model
from htvm.tools.skeleton import example_folder
from htvm.tools.zoo.drawing import Sketch
from htvm.tools.zoo.networks import model


def installed(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """Let one package register a SoC."""
    point = EntryPoint(name, value, registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: (point,))


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The documented example as an installed package."""
    monkeypatch.syspath_prepend(str(example_folder() / "src"))
    installed(monkeypatch, "tiny", "tiny_soc.description:soc")


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(("lanes", "step"), [(12, 12), (3, 12)])
def test_a_step_that_tiles_cannot_have_is_the_descriptions_mistake(lanes: int, step: int) -> None:
    target = htvm.soc("tiny", **{"mac.lanes": lanes})
    with pytest.raises(TargetError, match=f"step {step} of axis k is not a power of two") as caught:
        htvm.build("zoo:toyadmos", target, "host")
    assert "accelerator 'mac' of SoC tiny, tiling problem of layer 'dense_0'" in str(caught.value)


@pytest.mark.usefixtures("tiny")
def test_a_sweep_records_it() -> None:
    swept = htvm.sweep("zoo:toyadmos", "tiny", {"mac.lanes": [8, 12]}, jobs=1)
    assert [row.status for row in swept.rows] == ["ok", "infeasible"]
    assert "12 of axis k" in swept.rows[1].reason and "'mac' of SoC tiny" in swept.rows[1].where


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("cycles", "said"),
    [(20.5, "20.5, not an integer"), (-5, "-5"), (1 << 32, "4294967296")],
)
def test_an_integer_of_a_description_is_one(
    monkeypatch: pytest.MonkeyPatch, cycles: int, said: str
) -> None:
    from tiny_soc import description

    wrong = replace(description.MAC, start_cycles=cycles)
    monkeypatch.setattr(description, "TINY", replace(description.TINY, accelerators=(wrong,)))
    with pytest.raises(TargetError, match=f"start_cycles is {said}; 'mac' of SoC tiny"):
        registry.resolve("tiny")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("bytes_per_cycle", 0, "is 0; 'DMA'; it is at least 1"),
        ("granule", 0, "is 0; 'DMA'; it is at least 1"),
        ("queue_depth", 0, "is 0; 'DMA'; it is at least 1"),
        ("l1_align", 12, "is 12, not a power of two; 'DMA'"),
        ("l2_align", 0, "is 0, not a power of two; 'DMA'"),
        ("l1_align", 32, "is 32; 'DMA'; tensors begin at multiples of 16 B"),
    ],
)
def test_numbers_that_no_dma_has(field: str, value: int, said: str) -> None:
    with pytest.raises(TargetError, match=f"{field} {said}"):
        replace(DIANA.dma, **{field: value})  # type: ignore[type-var]


def refused_soc() -> Soc:
    """A description that its own records refuse."""
    assert DIANA.dma is not None
    return replace(DIANA, dma=replace(DIANA.dma, bytes_per_cycle=0))


def test_a_package_that_refuses_its_own_number_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "mistaken", f"{__name__}:refused_soc")
    with pytest.raises(TargetError, match="bytes_per_cycle is 0; 'DMA' of SoC mistaken"):
        registry.socs()


@pytest.mark.usefixtures("tiny")
def test_a_number_that_is_divided_by_is_the_descriptions_mistake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tiny_soc import description

    wrong = replace(description.MAC, width=0)
    monkeypatch.setattr(description, "TINY", replace(description.TINY, accelerators=(wrong,)))
    with pytest.raises(TargetError, match="modulo by zero") as caught:
        htvm.build("zoo:toyadmos", "tiny", "host")
    assert "accelerator 'mac' of SoC tiny" in caught.value.where
    assert "mac.py, line " in caught.value.where


def odd() -> Model:
    """A layer whose tiles begin anywhere."""
    sketch = Sketch("odd", (33, 12, 10))
    sketch.conv2d(sketch.input, 33, (1, 1))
    return model(sketch)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("align", ["l1_align", "l2_align"])
def test_an_alignment_that_tiles_lack_is_said_before_anything_runs(align: str) -> None:
    tight = TilingOptions(l1_budget=4_000)
    with pytest.raises(TargetError, match=rf"begins at byte \d+, and the DMA's {align}") as caught:
        htvm.build(odd(), f"tiny:dma.{align}=16", "host", tiling=tight)
    assert caught.value.where == "accelerator 'mac' of SoC tiny, tile program of layer 'conv2d_0'"


@pytest.mark.usefixtures("tiny")
def test_a_sweep_records_designs_whose_tiles_are_not_aligned() -> None:
    swept = htvm.sweep(odd(), "tiny", {"dma.l1_align": [1, 16], "L1.size": [4096]}, jobs=1)
    assert [row.status for row in swept.rows] == ["ok", "infeasible"]
    assert "the DMA's l1_align is 16" in swept.rows[1].reason


def test_a_sweep_refuses_numbers_that_no_design_has() -> None:
    for name in ("dma.l2_align", "digital.group", "analog.row_pitch"):
        with pytest.raises(TargetError, match=f"cannot have {name}=3: .* is 3, not a power of two"):
            htvm.sweep("zoo:toyadmos", "diana", {name: [3]}, jobs=1)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("siracusa:neureka.word_bytes=3", "word_bytes is 3, and a word of weights has 252 bits"),
        ("siracusa:neureka.job_registers=3", "job_registers is 3"),
        ("diana:analog.row_pitch=12", "row_pitch is 12, not a power of two"),
    ],
)
def test_numbers_that_an_accelerator_refuses(name: str, said: str) -> None:
    with pytest.raises(TargetError, match=said):
        htvm.soc(name)


def test_a_number_that_c_is_not_written_for_is_the_descriptions_mistake() -> None:
    with pytest.raises(TargetError, match="not written for these numbers: numbers of jobs") as one:
        htvm.build("zoo:toyadmos", "siracusa:neureka.job_ids=3", "host")
    assert "siracusa_neureka_driver.c, line " in one.value.where


@pytest.mark.parametrize(
    "printed",
    [
        "a.c:7:1: error: static assertion failed due to requirement '3U == 4': four lanes\n",
        'In file included from b.c:\na.c:7:1: error: static assertion failed: "four lanes"\n',
    ],
)
def test_static_assertions_as_compilers_print_them(printed: str) -> None:
    refused = refused_number(printed)
    assert refused is not None and "four lanes" in refused.what
    assert refused.where == "a.c, line 7"
    assert refused_number("a.c:7:1: error: expected ';' after expression\n") is None
