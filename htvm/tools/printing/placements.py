"""Where operators run, and each accelerator's answer, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from byoc_dory.verdict import CPU, OperatorVerdict, statement
from htvm.policy import POLICIES, Candidate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from htvm.compiled import Compiled


def placement_lines(compiled: Compiled) -> Iterator[str]:
    """Yield the plan: for each operator the core that a policy chose, and all candidates."""
    planned, target = compiled.planned, compiled.target
    decides = POLICIES.get(planned.policy)
    stated = f" ({statement(decides)})" if decides else ""
    yield f"policy: {planned.policy}{stated}"
    if target.accelerators:
        yield "answers go by sizes; a layer is written in its core's numbers by the stage retarget"
    groups, inner = planned.groups, _inner(planned.groups)
    for node in compiled.source.graph.in_order:
        name, kind = node.name, node.kind
        if name in inner:
            continue
        place = planned.places.get(name, CPU)
        offered = planned.candidates.get(name, ())
        how = "required by the user" if name in planned.binding else f"policy {planned.policy}"
        if not target.accelerators:
            how = f"{target.name} has no accelerators"
        elif not offered:
            how = "part of another layer" if place != CPU else "no accelerator has such a layer"
        yield f"{name} ({kind}) -> {place}: {how}"
        if name in groups:
            yield f"    one layer of {', '.join(groups[name])}"
        for candidate in offered:
            if candidate.name != CPU or candidate.cycles is not None:  # it takes everything
                yield f"    {_answer(candidate, 'could take it')}"
        if name in planned.rewrites:
            (chosen,) = (offer for offer in offered if offer.name == place)
            yield f"    rewritten: {chosen.rewrite}"


def dispatch_lines(compiled: Compiled) -> Iterator[str]:
    """Yield the place of each operator as written, and each accelerator's verdict."""
    dispatch, planned = compiled.dispatch, compiled.planned
    verdicts: dict[str, list[OperatorVerdict]] = {}
    for verdict in dispatch.verdicts:
        verdicts.setdefault(verdict.layer, []).append(verdict)
    if not compiled.target.accelerators:
        yield f"{compiled.target.name} has no accelerators"
    inner = _inner(dispatch.groups)
    for name, place in dispatch.placement.items():
        if name in inner:  # the layer has the answers
            continue
        notes = [f"{name} ({dispatch.kinds[name]}) -> {place}"]
        if name in dispatch.groups:
            notes.append(f"one layer of {', '.join(dispatch.groups[name])}")
        if name in dispatch.renamed:
            notes.append("only another name of its input inside a region")
        if name in dispatch.absorbed:
            notes.append("computed where the region's input is converted")
        if name not in compiled.source.graph.nodes:
            layers = [layer for layer in compiled.rewritten if name.startswith(f"{layer}_")]
            notes += [f"part of {layer}, rewritten" for layer in sorted(layers, key=len)[-1:]]
        yield "; ".join(notes)
        offered = {each.name: each for each in planned.candidates.get(name, ())}
        if any(offer.accepted for offer in offered.values() if offer.name != CPU):
            how = "the user" if name in planned.binding else f"policy {planned.policy}"
            costs = [f"{each.name} {each.cycles:,}" for each in offered.values() if each.cycles]
            told = f" (cycles: {', '.join(costs)})" if costs else ""
            chosen = planned.places.get(name, CPU)
            unwritten = ": not written in a core's numbers" if chosen == CPU else ""
            yield f"    planned on {chosen} by {how}{told}{unwritten}"
        for verdict in verdicts.get(name, ()):
            before = offered.get(verdict.accelerator)
            if verdict.accepted and before is not None and not before.accepted:
                yield f"    {_answer(before, '')} when the stage place asked"
            else:
                yield f"    {_answer(verdict, 'takes it')}"


def _inner(groups: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Return the operators of layers of several, but for the last ones, which have their names."""
    return {part for parts in groups.values() for part in parts[:-1]}


def _answer(verdict: OperatorVerdict, takes: str) -> str:
    """Return an answer as a sentence, a refusal with the statement of its rule."""
    who = verdict.accelerator
    if not verdict.accepted:
        rule = f" (rule: {verdict.rule})" if verdict.rule else ""
        return f"{who} refuses: {verdict.reason}{rule}"
    parts = [f"{who} {takes}"]
    if verdict.reason:
        parts.append(verdict.reason)
    if verdict.cycles is not None:
        parts.append(f"{verdict.cycles:,} cycles")
    if isinstance(verdict, Candidate) and verdict.rewrite:
        parts.append(verdict.rewrite)
    return ", ".join(parts)
