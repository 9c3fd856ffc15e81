"""Tables are text, wherever they are made."""

from __future__ import annotations

import pytest

from htvm.tools.report.table import Column, Table, text


def test_a_table_in_a_notebook_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    # rich looks for IPython's shell, and shows tables there instead of writing them.
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert text(Table((Column("layer"),), (("conv2d_0",),))).splitlines()[-1].strip() == "conv2d_0"
