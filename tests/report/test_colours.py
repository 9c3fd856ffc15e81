"""The colours of figures and pages: one meaning each, the same in every result."""

from __future__ import annotations

import pytest

import htvm
from byoc_dory.soc.registry import resolve
from htvm.tools.plots.colours import CLASSES, DARK, LIGHT, painted, unit_class, unit_classes
from htvm.tools.report.html import report_html
from tests.report.whole import WHOLE

# Paper and writing are no meanings: the card may be as white as what is written on bars.
_PAPER = {"paper", "card", "hover", "on"}


def test_every_meaning_has_a_colour_on_light_and_on_dark_paper() -> None:
    assert list(LIGHT) == list(DARK)
    for colours in (LIGHT, DARK):
        meant = [colour for name, colour in colours.items() if name not in _PAPER]
        assert len(set(meant)) == len(meant)


def test_a_class_has_a_colour() -> None:
    assert {name for name, _ in CLASSES.values()} <= set(LIGHT)
    assert painted("u-host") == LIGHT["host"] and painted("dma") == LIGHT["dma"]
    assert painted("m-tile") == (LIGHT["arena"], 0.45)


@pytest.mark.parametrize("name", htvm.targets())
def test_units_of_a_target_have_their_own_colours_everywhere(name: str) -> None:
    target = resolve(name)
    cores = ["core0", "core1-7"] if target.soc.cluster is not None else []
    units = ["cpu", "dma", *(entry.name for entry in target.accelerators), *cores]
    found = unit_classes(units)
    # A name alone decides: that of a core does not depend on the others of its SoC.
    assert found == {unit: unit_class(unit) for unit in units}
    assert len({found[core] for core in cores}) == bool(cores)
    assert len(set(found.values())) == len(units) - bool(cores)


def test_kinds_that_would_share_a_colour_get_the_next_one() -> None:
    same = [name for name in map(chr, range(97, 123)) if unit_class(name) == "u-0"][:2]
    first, second = unit_classes(same).values()
    assert (first, second) == ("u-0", "u-1")
    assert unit_classes(["host", "cpu"]) == {"host": "u-host", "cpu": "u-host"}


def test_the_page_has_these_colours_and_no_others() -> None:
    page = report_html(WHOLE)
    style = page[page.index("<style>") : page.index("</style>")]
    for colours in (LIGHT, DARK):
        for name, colour in colours.items():
            assert f"--{name}: {colour};" in style
    screen = style[: style.index("@media print")]
    known = {*LIGHT.values(), *DARK.values()}
    written = {word.strip(";}") for word in screen.split() if word.startswith("#")}
    assert written - known <= {"#0003"}  # a shadow
