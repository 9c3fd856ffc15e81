"""Finding SoC descriptions and their targets.

SoCs come from the entry-point group ``htvm.socs``; each entry point is a function without arguments
that returns a :class:`~byoc_dory.soc.base.Soc`.  The built-in ones are registered the same way by
the distribution; :data:`BUILT_IN` repeats them for a source tree that was never installed.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import fields, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TypeVar

from byoc_dory.errors import TargetError, nearest
from byoc_dory.soc.base import Accelerator, Soc, Target
from byoc_dory.soc.board import SUFFIX, board_called, boards
from byoc_dory.soc.numbers import numbers, with_numbers
from byoc_dory.soc.parameters import parameters_text
from byoc_dory.soc.parts import TargetSpec
from byoc_dory.soc.schemes import NumberScheme

_Kind = TypeVar("_Kind", bound=NumberScheme)

GROUP = "htvm.socs"

BUILT_IN = {
    "diana": "byoc_dory.soc.diana.description:soc",
    "dla": "byoc_dory.soc.dla.description:soc",
    "ethos_u": "byoc_dory.soc.ethos_u.description:soc",
    "generic": "byoc_dory.soc.generic.description:soc",
    "microcontroller": "byoc_dory.soc.boards.description:soc",
    "siracusa": "byoc_dory.soc.siracusa.description:soc",
    "snitch_ita": "byoc_dory.soc.snitch_ita.description:soc",
}
_WITHOUT_ACCELERATORS = ("generic", "microcontroller")


def _references() -> dict[str, EntryPoint]:
    """Return the entry point of each SoC, built-in ones first, then the others by name.

    Raises:
        TargetError: two packages register different SoCs under one name.
    """
    references = {name: EntryPoint(name, value, GROUP) for name, value in BUILT_IN.items()}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        known = references.setdefault(point.name, point)
        if known.value != point.value:
            raise TargetError(
                f"two packages register a SoC called {point.name!r}: "
                f"{known.value} and {point.value}",
                where=f"entry-point group {GROUP}",
                hint="uninstall one of them, or rename its SoC",
            )
    return references


def _load(entry_point: EntryPoint) -> Soc:
    try:
        soc = entry_point.load()()
    except TargetError as error:  # the description's own objection
        if entry_point.name not in error.where:
            error.where = (
                f"{error.where} of SoC {entry_point.name}"
                if error.where
                else f"SoC {entry_point.name}"
            )
        raise
    except Exception as error:  # noqa: BLE001 - whatever the code of a description raises
        text = str(error) if isinstance(error, (ImportError, TypeError)) else _error_text(error)
        raise TargetError(
            f"the SoC {entry_point.name!r} cannot be loaded from {entry_point.value}: {text}",
            where=_place(error) or f"entry-point group {GROUP}",
            hint="repair the description, or uninstall the package that registers it",
        ) from error
    if not isinstance(soc, Soc):
        raise TargetError(
            f"the SoC {entry_point.name!r} is a {type(soc).__name__}, not a description",
            where=entry_point.value,
            hint="let the entry point's function return a byoc_dory.soc.base.Soc",
        )
    _check_integers(soc)
    for accelerator in soc.accelerators:
        _check_identifiers(accelerator, f"accelerator '{accelerator.name}' of SoC {soc.name}")
    return soc


def _check_integers(soc: Soc) -> None:
    """Refuse an integer field of a device that C would lack, or have with another value."""
    for device in (*soc.accelerators, *(() if soc.dma is None else (soc.dma,))):
        for field in fields(device):
            value = getattr(device, field.name)
            if field.type in ("int", int) and not isinstance(value, int):
                raise TargetError(
                    f"{field.name} is {value!r}, not an integer",
                    where=f"'{device.name}' of SoC {soc.name}",
                    hint="each integer field is a constant in C",
                )
            if isinstance(value, int) and not 0 <= value < 1 << 32:
                raise TargetError(
                    f"{field.name} is {value}",
                    where=f"'{device.name}' of SoC {soc.name}",
                    hint="each integer field is a constant in C: from 0 to 2^32 - 1",
                )


def _check_identifiers(accelerator: Accelerator, where: str) -> None:
    """Refuse rules without identifiers, or with others than the accelerator's, one for each."""
    name = accelerator.name.upper()
    try:
        entries = tuple(accelerator.rules)
    except Exception as error:  # noqa: BLE001 - whatever the code of a description raises
        raise TargetError(
            f"its rules cannot be read: {_error_text(error)}",
            where=_place(error) or where,
            hint=f'let `rules` return ("{name}-1", rule) and so on',
        ) from error
    unnumbered = [entry for entry in entries if not isinstance(entry, tuple) or len(entry) != 2]
    expected = [f"{name}-{number}" for number in range(1, len(entries) + 1)]
    given = [] if unnumbered else [identifier for identifier, _ in entries]
    if {*given} != {*expected} or len(given) != len(expected):
        objection = (
            f"the rule {getattr(unnumbered[0], '__name__', unnumbered[0])} has no identifier"
            if unnumbered
            else f"the rules' identifiers are {', '.join(map(str, given))}"
        )
        raise TargetError(
            objection,
            where=where,
            hint=f'let `rules` return ("{name}-1", rule) and so on, each number once, without gaps',
        )


def _error_text(error: Exception) -> str:
    """Return the error as Python would print it, without the line of a SyntaxError's file."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _place(error: Exception) -> str:
    """Return file and line of a description's mistake; empty if it has none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename != __file__
        and not frame.filename.startswith("<")
        and "importlib" not in Path(frame.filename).parts
    ]
    return f"{own[-1].filename}, line {own[-1].lineno}" if own else ""


def loadable() -> tuple[tuple[Soc, ...], tuple[TargetError, ...]]:
    """Return all SoCs that can be loaded, and for each other one what is wrong with it.

    Raises:
        TargetError: two packages register different SoCs under one name.
    """
    descriptions, faults = [], []
    for point in _references().values():
        try:
            descriptions.append(_load(point))
        except TargetError as error:
            faults.append(error)
    return tuple(descriptions), tuple(faults)


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


def split_name(name: str) -> tuple[str, dict[str, str]]:
    """Return the name of a target without parameters, and the parameters' texts by name.

    Raises:
        TargetError: a parameter has no value, or is given twice.
    """
    base, colon, listed = name.partition(":")
    given: dict[str, str] = {}
    for entry in listed.split(",") if colon else ():
        parameter, equals, value = (part.strip() for part in entry.partition("="))
        if not parameter or not equals or not value:
            raise TargetError(
                f"{entry.strip()!r} is not a parameter with its value",
                where=f"target {name!r}",
                hint=f"write {base}:NAME=VALUE,NAME=VALUE",
            )
        if parameter in given:
            raise TargetError(
                f"{parameter} is given twice: {given[parameter]} and {value}",
                where=f"target {name!r}",
                hint="give each parameter once",
            )
        given[parameter] = value
    return base.strip(), given


def _specified(base: str) -> tuple[Soc, TargetSpec] | None:
    """Return the target of this name with its SoC, or ``None``.

    SoCs are loaded one after another, as a package that cannot be loaded must not affect another's
    target: first the one that targets are usually named after, then those that are quick to load.
    """
    named_after = base.partition(".")[0]
    points = sorted(
        _references().values(),
        key=lambda point: (point.name != named_after, point.name not in _WITHOUT_ACCELERATORS),
    )
    for soc in map(_load, points):
        for spec in soc.targets:
            if spec.name == base:
                return soc, spec
    return None


def cpu_target(name: str) -> str:
    """Return the target without accelerators of the same SoC, parameters and host as a target.

    Raises:
        TargetError: the name is unknown, or there is no such target.
    """
    base, _ = split_name(name)
    found = _specified(base)
    if found is None:
        return resolve(name).name
    soc, spec = found
    for other in soc.targets:
        if not other.accelerators and other.host == spec.host:
            return resolve(other.name + name[len(base) :]).name
    raise TargetError(
        "there is no target without accelerators to compare with",
        where=f"SoC {soc.name}",
        hint="its description should have one",
    )


def board_target(name: str) -> str:
    """Return the target of a board, e.g. "cortex_m4:board=nucleo-l4r5zi".

    Of a board with an NPU, the NPU's: "ethos_u55:board=grove-vision-ai-v2"; its core alone is
    "cortex_m55:board=grove-vision-ai-v2".

    Args:
        name: name of a board, or path of a board's file.

    Raises:
        TargetError: there is no such board, the file is not a board's, or there is no such core.
    """
    board = board_called(name)
    for target in (board.core, board.target):
        if _specified(target) is None:
            known = targets()
            what = "NPU" if target == board.npu else "core"
            raise TargetError(
                f"there is no {what} {target!r}",
                where=name,
                hint=f"{nearest(target, known)}known targets: {', '.join(known)}",
            )
    if {*name} & {*",:="}:
        raise TargetError(
            "a board's path is part of its target's name, and cannot have ',', ':' or '='",
            where=name,
            hint="go to the file's folder, and name the file alone",
        )
    return f"{board.target}:board={name}"


def _is_board(name: str) -> bool:
    return name.endswith(SUFFIX) or name in boards()


def resolve(
    name: str | Target,
    *,
    l2_bytes: int | None = None,
    parameters: Mapping[str, object] | None = None,
) -> Target:
    """Return the target called ``name``.

    Args:
        name: name of the target, e.g. "diana.digital" or "siracusa:cores=4" (:func:`targets` lists
            the names without parameters), or of a board, which stands for the target of its core;
            or a target, which is returned as it is.
        l2_bytes: size of L2 in bytes, for SoCs whose L2 is adjustable.
        parameters: values of parameters, or of numbers of the description
            (:mod:`byoc_dory.soc.numbers`), by name, in addition to those in the name.

    Raises:
        TargetError: the name or a parameter is unknown (the message lists the known ones), a
            value is not possible, given twice or refused by the description, or L2 cannot have that
            size.
    """
    if isinstance(name, Target):
        if l2_bytes is None and not parameters:
            return name
        name = name.name
    if not isinstance(name, str):
        raise TargetError(
            f"a {type(name).__name__} is not a target",
            hint="give a name, such as diana, or what htvm.soc(...) returns",
        )
    base, texts = split_name(name)
    for parameter, value in (parameters or {}).items():
        if parameter in texts:
            raise TargetError(
                f"{parameter} is given twice: {texts[parameter]} and {value}",
                where=f"target {name!r}",
                hint="give each parameter once",
            )
    given: dict[str, object] = {**texts, **(parameters or {})}
    if _is_board(base):
        return resolve(board_target(base), l2_bytes=l2_bytes, parameters=given)
    found = _specified(base)
    if found is not None:
        return _designed(*found, given, l2_bytes, f"target {name!r}")
    known = targets()
    hint = (
        f"{nearest(base, [*known, *boards()])}known targets: {', '.join(known)}; or a board's name"
    )
    raise TargetError(f"unknown target {base!r}", hint=hint)


def _designed(
    soc: Soc, spec: TargetSpec, given: Mapping[str, object], l2_bytes: int | None, where: str
) -> Target:
    """Return a target of a SoC with values of its parameters and of other numbers.

    Values that make no difference are left out, so that equal designs have one name.
    """
    declared = {entry.name for entry in soc.parameters}
    design_values = {name: value for name, value in given.items() if name in declared}
    number_values = {name: value for name, value in given.items() if name not in declared}
    setting = next((entry.name for entry in soc.parameters if entry.sets == "L2.size"), "L2.size")
    if l2_bytes is not None and setting in given:
        raise TargetError(
            f"the size of L2 is given twice: {l2_bytes} and {given[setting]}",
            where=where,
            hint=f"give l2_bytes or {setting}",
        )
    found = _target(soc.designed(design_values, where), spec, l2_bytes)
    for name in [name for name in found.soc.settings if name in design_values]:
        fewer = {other: value for other, value in design_values.items() if other != name}
        try:
            same = _target(soc.designed(fewer, where), spec, l2_bytes)
        except TargetError:
            continue
        if _nameless(same) == _nameless(found):
            found, design_values = same, fewer
    return _with_numbers(found, number_values, where) if number_values else found


def _nameless(target: Target) -> Target:
    """Return a target without what tells how it was asked for."""
    return replace(target, name="", soc=replace(target.soc, values=(), targets=()))


def _target(soc: Soc, found: TargetSpec, l2_bytes: int | None) -> Target:
    """Return a target of a SoC with the values of its parameters."""
    # The description may have made other targets for these values, e.g. with another host.
    spec = next((entry for entry in soc.targets if entry.name == found.name), None)
    if spec is None:
        raise TargetError(
            f"there is no {found.name} with {parameters_text(soc.parameters, soc.settings)}",
            where=soc.title,
            hint="there is " + ", ".join(entry.name for entry in soc.targets),
        )
    hosted = soc if spec.host is None else replace(soc, host=spec.host)
    sized = hosted if l2_bytes is None else hosted.resized("L2", l2_bytes)
    values = parameters_text(soc.parameters, soc.settings)
    return Target(
        name=f"{spec.name}:{values}" if values else spec.name,
        soc=sized,
        accelerators=tuple(sized.accelerator(entry) for entry in spec.accelerators),
        policy=spec.policy,
    )


def _with_numbers(target: Target, given: Mapping[str, object], where: str) -> Target:
    """Return a target whose description has other numbers, which are part of its name."""
    soc = with_numbers(target.soc, given, where)
    if not soc.numbers:
        return target
    texts = {entry.name: entry for entry in numbers(target.soc)}
    listed = ",".join(f"{name}={texts[name].text(value)}" for name, value in soc.numbers)
    return replace(
        target,
        name=f"{target.name}{',' if ':' in target.name else ':'}{listed}",
        soc=soc,
        accelerators=tuple(soc.accelerator(entry.name) for entry in target.accelerators),
    )
