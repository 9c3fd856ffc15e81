"""The packages of the extra ``torch``: installed, and of the versions that this is made for."""

from __future__ import annotations

import importlib.util
from importlib import metadata

from byoc_dory.errors import DependencyError

VERSIONS = {"torch": "2.13", "torchao": "0.18"}
"""Package -> its version: graphs that these make are read, and their quantizers called."""

_HINT = "pip install 'htvm[torch]'"


def check_packages() -> None:
    """Check that torch and torchao are there.

    Raises:
        DependencyError: one is not installed, or of another version.
    """
    for package, wanted in VERSIONS.items():
        if importlib.util.find_spec(package) is None:
            raise DependencyError(
                f"the package '{package}' is not installed", where="htvm.torch", hint=_HINT
            )
        found = metadata.version(package)
        if found.split(".")[:2] != wanted.split("."):
            raise DependencyError(
                f"{package} {found} is installed, and this is made for {wanted}",
                where="htvm.torch",
                hint=_HINT,
            )
