"""The targets that a user can build for."""

from __future__ import annotations

from byoc_dory.soc import registry
from byoc_dory.soc.base import Target
from htvm.public import public


@public
def targets() -> tuple[str, ...]:
    """Return the names of all known targets, e.g. ``("diana", "diana.digital", ...)``."""
    return registry.targets()


@public
def soc(name: str, **parameters: object) -> Target:
    """Return a target with values of its SoC's parameters.

    The result can be given wherever a target's name can. It is the same value as the name with the
    parameters in it: ``htvm.soc("siracusa", cores=4)`` is ``siracusa:cores=4``.

    Args:
        name: one of `htvm.targets()`, which may have parameters itself.
        parameters: values by name; sizes in bytes, or as text such as ``"64k"`` or ``"1MiB"``.
            ``htvm targets show NAME`` lists a target's parameters.

    Raises:
        TargetError: the name or a parameter is unknown, a value is not possible or given twice, or
            values contradict each other.
    """
    return registry.resolve(name, parameters=parameters)
