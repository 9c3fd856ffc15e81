"""A verification as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from htvm.verification.types import Difference, GoldenCheck, Origin, Verification

__all__ = ["verification_text"]


def verification_text(found: Verification) -> str:
    """Return the findings as text for people."""
    return "\n".join(_lines(found))


def _lines(found: Verification) -> Iterator[str]:
    yield f"{found.network} on {found.target}: {_verdict(found)}"
    yield _coverage(found)
    if found.difference is not None:
        yield ""
        yield from _difference(found.difference)
    for check in found.golden:
        yield ""
        yield from _golden(check, found)


def _verdict(found: Verification) -> str:
    if found.difference is not None:
        return f"differs from the reference at step {found.difference.step}, " \
            f"layer {found.difference.layer}"  # fmt: skip
    return "equal to the reference"


def _coverage(found: Verification) -> str:
    compared = [step for step in found.steps if step.compared]
    elements = sum(step.elements for step in compared)
    inside = len(found.steps) - len(compared)
    text = f"{len(compared)} of {len(found.steps)} steps compared, {elements:,} elements"
    return f"{text}; the other {inside} work inside of an operator" if inside else text


def _difference(found: Difference) -> Iterator[str]:
    axes = ", ".join(f"{n} {i}" for n, i in zip(found.axes, found.element, strict=True))
    rows = [("layer", f"{found.layer} (step {found.step}, {found.place})")]
    if found.overwritten:
        rows.append(("tensor", f"{found.tensor}, which was right before this step"))
    elif found.tensor != found.layer:
        rows.append(("tensor", found.tensor))
    if found.tile is not None:
        rows.append(("tile", _tile(found)))
    rows.append(("element", f"{axes} in {found.memory} at 0x{found.address:08X}"))
    rows.append(("values", f"{found.value} instead of {found.expected}"))
    rows.append(("differ", f"{found.different:,} of {found.elements:,} elements"))
    rows += _origins(found.origins, found.watched)
    for name, text in rows:
        yield f"  {name:8s} {text}".rstrip()


def _tile(found: Difference) -> str:
    tile = found.tile
    assert tile is not None
    axes = ("K", "oy", "ox")
    spans = ", ".join(
        f"{axis} {start}..{start + size - 1}"
        for axis, start, size in zip(axes, tile.start, tile.size, strict=True)
    )
    more = f"; {found.tiles_different} tiles differ" if found.tiles_different > 1 else ""
    return f"{tile.number} of {tile.tiles} ({spans}){more}"


def _origins(origins: tuple[Origin, ...], watched: bool) -> Iterator[tuple[str, str]]:
    if not watched:
        yield "", "the machine's harts cannot be watched, so lines are not known"
    elif not origins:
        yield "written", "by nobody in this run"
    for origin in origins:
        yield "written" if origin is origins[0] else "", f"{origin.what}, cycle {origin.cycle:,}"
        if origin.place is not None:
            yield "", f"  {origin.place}"
            if origin.place.text:
                yield "", f"    {origin.place.text}"
        if origin.inner is not None:
            yield "", f"  through {origin.inner}"


def _golden(check: GoldenCheck, found: Verification) -> Iterator[str]:
    if check.different == 0:
        yield f"golden {check.output}: equal, {check.elements:,} elements"
        return
    yield (
        f"golden {check.output}: {check.different:,} of {check.elements:,} elements differ, "
        f"SQNR {check.sqnr_db:.1f} dB, largest difference {check.largest}"
    )
    yield (f"  first at {list(check.element)}: {check.value} instead of {check.expected}")
    yield f"  {_reason(check, found)}"


def _reason(check: GoldenCheck, found: Verification) -> str:
    """Whose difference it is: the program's, retargeting's, or the golden's own."""
    if found.difference is not None:
        return "mend the difference from the reference first: it may be the cause"
    if not found.retargeted:
        return (
            "no bug of the build: it computes what the file says, so the golden comes from other "
            "arithmetic, other inputs, or another file"
        )
    if check.source_different == 0:
        return (
            "no bug of the build: the network as imported gives the golden exactly, and rewriting "
            "it for the target's arithmetic changed it; target generic.cpu keeps it exact"
        )
    return (
        f"no bug of the build: rewriting the network for the target's arithmetic changed it; as "
        f"imported {check.source_different:,} elements differ from the golden already"
    )
