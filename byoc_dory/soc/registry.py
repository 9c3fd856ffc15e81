"""Finding SoC descriptions and their targets.

SoCs come from the entry-point group ``htvm.socs``; each entry point is a function without arguments
that returns a :class:`~byoc_dory.soc.base.Soc`.  The built-in ones are registered the same way by
the distribution; :data:`BUILT_IN` repeats them for a source tree that was never installed.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from byoc_dory.errors import TargetError
from byoc_dory.soc.base import Soc, Target
from byoc_dory.soc.schemes import NumberScheme

__all__ = ["BUILT_IN", "GROUP", "cpu_target", "resolve", "scheme_of", "socs", "targets"]

_Kind = TypeVar("_Kind", bound=NumberScheme)

GROUP = "htvm.socs"

BUILT_IN = {
    "diana": "byoc_dory.soc.diana.description:soc",
    "generic": "byoc_dory.soc.generic.description:soc",
    "siracusa": "byoc_dory.soc.siracusa.description:soc",
    "snitch_ita": "byoc_dory.soc.snitch_ita.description:soc",
}


def _references() -> dict[str, EntryPoint]:
    """Return the entry point of each SoC, built-in ones first, then the others by name.

    Raises:
        TargetError: two packages register different SoCs under one name.
    """
    found = {name: EntryPoint(name, value, GROUP) for name, value in BUILT_IN.items()}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        known = found.setdefault(point.name, point)
        if known.value != point.value:
            raise TargetError(
                f"two packages register a SoC called {point.name!r}: "
                f"{known.value} and {point.value}",
                where=f"entry-point group {GROUP}",
                hint="uninstall one of them, or rename its SoC",
            )
    return found


def _load(point: EntryPoint) -> Soc:
    try:
        soc = point.load()()
    except (ImportError, AttributeError, TypeError) as error:
        raise TargetError(
            f"the SoC {point.name!r} cannot be loaded from {point.value}: {error}",
            where=f"entry-point group {GROUP}",
            hint="repair or uninstall the package that registers it",
        ) from error
    if not isinstance(soc, Soc):
        raise TargetError(
            f"the SoC {point.name!r} is a {type(soc).__name__}, not a description",
            where=point.value,
            hint="let the entry point's function return a byoc_dory.soc.base.Soc",
        )
    return soc


def socs() -> tuple[Soc, ...]:
    """Return all known SoCs.

    Raises:
        TargetError: a registered SoC cannot be loaded, or two share a name.
    """
    return tuple(_load(point) for point in _references().values())


def targets() -> tuple[str, ...]:
    """Return the names of all targets, in the order of their SoCs."""
    return tuple(spec.name for soc in socs() for spec in soc.targets)


def scheme_of(kind: type[_Kind]) -> _Kind:
    """Return the number scheme of the first accelerator with a scheme of this kind.

    Raises:
        TargetError: no known accelerator has one.
    """
    for soc in map(_load, _references().values()):
        for accelerator in soc.accelerators:
            if isinstance(accelerator.scheme, kind):
                return accelerator.scheme
    raise TargetError(f"no known accelerator has a {kind.__name__}")


def cpu_target(name: str) -> str:
    """Return the target without accelerators of the same SoC and host as a target.

    Raises:
        TargetError: the name is unknown, or there is no such target.
    """
    for soc in map(_load, _references().values()):
        for spec in soc.targets:
            if spec.name != name:
                continue
            for other in soc.targets:
                if not other.accelerators and other.host == spec.host:
                    return other.name
            raise TargetError(
                "there is no target without accelerators to compare with",
                where=f"SoC {soc.name}",
                hint="its description should have one",
            )
    return resolve(name).name


def resolve(name: str, *, l2_bytes: int | None = None) -> Target:
    """Return the target called ``name``.

    Args:
        name: name of the target, e.g. "diana.digital"; :func:`targets` lists them.
        l2_bytes: size of L2 in bytes, for SoCs whose L2 is adjustable.

    Raises:
        TargetError: the name is unknown (the message lists the known ones), or L2 cannot have that
            size.
    """
    known = []
    # One after another: a package that cannot be loaded must not affect another's target.
    for soc in map(_load, _references().values()):
        for spec in soc.targets:
            known.append(spec.name)
            if spec.name == name:
                hosted = soc if spec.host is None else replace(soc, host=spec.host)
                sized = hosted if l2_bytes is None else hosted.resized("L2", l2_bytes)
                return Target(
                    name=name,
                    soc=sized,
                    accelerators=tuple(sized.accelerator(entry) for entry in spec.accelerators),
                    policy=spec.policy,
                )
    raise TargetError(f"unknown target {name!r}", hint="known targets: " + ", ".join(known))
