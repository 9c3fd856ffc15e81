"""The room of torch without its packages, or with others of them."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys

import pytest

from htvm.errors import DependencyError

_THERE = all(importlib.util.find_spec(name) for name in ("torch", "torchao"))


@pytest.mark.skipif(_THERE, reason="torch is installed")
def test_without_torch_the_room_names_the_extra() -> None:
    with pytest.raises(DependencyError, match=r"not installed.*htvm\[torch\]"):
        importlib.import_module("htvm.torch")


@pytest.mark.skipif(not _THERE, reason="needs the extra torch")
def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from htvm.torch import packages

    monkeypatch.setattr(packages.metadata, "version", {"torch": "2.13.1", "torchao": "0.17"}.get)
    with pytest.raises(DependencyError, match=r"torchao 0.17 is installed.*0.18.*htvm\[torch\]"):
        packages.check_packages()


def test_htvm_does_not_load_torch() -> None:
    code = "import sys, htvm; sys.exit('torch' in sys.modules or 'htvm.torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
