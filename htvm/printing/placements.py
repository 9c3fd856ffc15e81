"""Where operators run, and each accelerator's answer, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from byoc_dory.verdict import OperatorVerdict, statement
from htvm.policy import CPU, POLICIES, Candidate

if TYPE_CHECKING:
    from htvm.compiled import Compiled

__all__ = ["dispatch_lines", "placement_lines"]


def placement_lines(compiled: Compiled) -> Iterator[str]:
    """Yield the plan: for each operator the core that a policy chose, and all candidates."""
    planned = compiled.planned
    decides = POLICIES.get(planned.policy)
    stated = f" ({statement(decides)})" if decides else ""
    yield f"policy: {planned.policy}{stated}"
    for node in compiled.source.graph.in_order:
        name, kind = node.name, node.kind
        place = planned.places.get(name, CPU)
        offered = planned.candidates.get(name, ())
        how = "required by the user" if name in planned.binding else f"policy {planned.policy}"
        if not compiled.target.accelerators:
            how = f"{compiled.target.name} has no accelerators"
        elif not offered and place != CPU:
            how = "part of a layer of several operators"
        elif not offered:
            how = "no layer that a policy places: the stage dispatch has the answers"
        yield f"{name} ({kind}) -> {place}: {how}"
        for candidate in offered:
            if candidate.name != CPU or candidate.cycles is not None:  # it takes everything
                yield f"    {_answer(candidate)}"
        if name in planned.rewrites:
            yield f"    rewritten: {compiled.rewritten.get(name, 'not after all')}"


def dispatch_lines(compiled: Compiled) -> Iterator[str]:
    """Yield the place of each operator as written, and each accelerator's verdict."""
    found, planned = compiled.dispatch, compiled.planned
    said: dict[str, list[OperatorVerdict]] = {}
    for verdict in found.verdicts:
        said.setdefault(verdict.layer, []).append(verdict)
    if not compiled.target.accelerators:
        yield f"{compiled.target.name} has no accelerators"
    layer_of = {part: name for name, parts in found.groups.items() for part in parts[:-1]}
    for name, place in found.placement.items():
        if name in layer_of:  # the layer has the answers
            yield f"{name} ({found.kinds[name]}) -> {place}; part of the layer {layer_of[name]}"
            continue
        notes = [f"{name} ({found.kinds[name]}) -> {place}"]
        if name in found.groups:
            notes.append(f"one layer of {', '.join(found.groups[name])}")
        if name in found.renamed:
            notes.append("only another name of its input inside a region")
        if name in found.absorbed:
            notes.append("computed where the region's input is converted")
        yield "; ".join(notes)
        for verdict in said.get(name, ()):
            yield f"    {_answer(verdict)}"
        if place == CPU and any(verdict.accepted for verdict in said.get(name, ())):
            how = "by the user" if name in planned.binding else f"by policy {planned.policy}"
            yield f"    the plan has it on the CPU, {how}"


def _answer(verdict: OperatorVerdict) -> str:
    """Return an answer as a sentence, a refusal with the statement of its rule."""
    who = verdict.accelerator
    if not verdict.accepted:
        rule = f" (rule: {verdict.rule})" if verdict.rule else ""
        return f"{who} refuses: {verdict.reason}{rule}"
    parts = [f"{who} takes it"]
    if verdict.reason:
        parts.append(verdict.reason)
    if verdict.cycles is not None:
        parts.append(f"{verdict.cycles:,} cycles")
    if isinstance(verdict, Candidate) and verdict.rewrite:
        parts.append(verdict.rewrite)
    return ", ".join(parts)
