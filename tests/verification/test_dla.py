"""`verify` on the parametrised accelerator: the instruction that computed a wrong element."""

from __future__ import annotations

from typing import Any

import pytest

import htvm
from byoc_dory.soc.dla import assemble as assembly
from htvm.inputs import seeded_inputs


def test_a_right_program_is_verified() -> None:
    module = htvm.build(htvm.zoo.build("toyadmos"), target="dla:sram=2KiB,rows=tiled")
    found = module.verify(seeded_inputs(module.model.inputs))
    assert found.difference is None
    assert sum(check.elements > 0 for check in found.steps) >= 6


@pytest.mark.parametrize(
    ("fused", "sram"), [("on", "9KiB"), pytest.param("off", "16KiB", marks=pytest.mark.slow)]
)
def test_the_instruction_of_a_wrong_element_is_named(
    fused: str, sram: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second tile of the first layer gets a wrong shift."""
    name = "OP_CONV_RELU" if fused == "on" else "OP_E32_SHR"
    put, seen = assembly._Writer.put, []

    def wrong(self: Any, instruction: str, flags: int, values: dict[str, int]) -> None:
        if instruction == name:
            seen.append(instruction)
            if len(seen) == 2:
                values = values | {"SHIFT": values["SHIFT"] + 1}
        put(self, instruction, flags, values)

    monkeypatch.setattr(assembly._Writer, "put", wrong)
    module = htvm.build(htvm.zoo.build("ds_cnn"), target=f"dla:sram={sram},fused={fused}")
    monkeypatch.undo()
    found = module.verify(seeded_inputs(module.model.inputs)).difference
    assert found is not None
    assert found.layer == "conv2d_0" and found.tile is not None and found.tile.number == 1
    assert any(name in origin.what for origin in found.origins), found.origins
