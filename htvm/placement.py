"""Placement: which core shall run each layer, decided from shapes before retargeting.

The cores of a SoC may differ in their arithmetic, so that the choice changes the numbers: it is a
*plan*.  Here each layer of the source is offered to each accelerator in the form it would be
retargeted to (`executed_form`), judged, estimated where the policy wants to know, and placed.
Retargeting then writes the layers in their cores' forms, and `patterns.dispatching.dispatch` judges
what was really written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory.cost import cpu_cycles, layout_cycles
from byoc_dory.errors import PolicyError, TilingError
from byoc_dory.layer import AnalogRequant, Layer, MulShift, Shift
from byoc_dory.planning import tile_layer
from byoc_dory.soc.analog_core import AnalogCore
from byoc_dory.verdict import Refused
from htvm.policy import CPU, POLICIES, Candidate, LayerInfo, check_policy, info_of
from htvm.quantization.read import is_mul_shift_scheme, is_ternary_scheme
from htvm.quantization.retarget import has_multipliers
from patterns.dispatching import offers_of
from patterns.graph import Graph
from patterns.groups import Group

if TYPE_CHECKING:
    from byoc_dory.options import TilingOptions
    from byoc_dory.soc.accelerator import Accelerator
    from byoc_dory.soc.base import Soc, Target
    from htvm.policy import Decide, Policy
    from patterns.read import Node

__all__ = ["Estimator", "Placement", "executed_form", "place"]

_OF_MAPS = ("conv2d", "depthwise", "dense", "add")


@dataclass(frozen=True, eq=False)
class Placement:
    """The plan.

    Attributes:
        policy: name of the policy that decided, ``"a function"`` or ``"a table"``.
        places: layer -> accelerator or ``"cpu"``, in execution order; operators that an accelerator
            takes together all have its name.
        candidates: layer -> what was offered, in the order of the accelerators, the CPU last; a
            layer of several operators has the name of the last.
        binding: layers that the user placed; they must be executed there.
        final: whether the model's layers are executed as they are, without retargeting.
    """

    policy: str
    places: Mapping[str, str]
    candidates: Mapping[str, tuple[Candidate, ...]]
    binding: frozenset[str] = frozenset()
    final: bool = False


def place(
    nodes: Sequence[Node],
    target: Target,
    options: TilingOptions,
    policy: Policy | None = None,
) -> Placement:
    """Plan who runs each layer of a model.

    Args:
        nodes: of the source model, as `patterns.read.read_graph` gives them.
        target: whose accelerators are asked.
        options: of the tiler, whose tiles are estimated.
        policy: name, function or table; the target's own by default.  What accelerators take
            together (an attention, a product and its activation) is decided about first, under
            the name of its last operator; left to the CPU, its operators are decided about.

    Raises:
        PolicyError: the policy is none, or names an unknown layer or accelerator, or one that
            cannot take the layer.
        TilingError: a policy that asks for estimates, and no tile of a layer fits.
    """
    chosen = target.policy if policy is None else policy
    check_policy(chosen)
    layers = _layers(nodes)
    final = _is_final(tuple(nodes), target)
    asked = _Asked(target, Estimator(target.soc, options), final=final)
    estimates = callable(chosen) or "latency" in (chosen, target.policy)
    asked_about = {name: asked.candidates(layer, estimates) for name, layer in layers.items()}
    # Of matrices, only what an accelerator takes is somebody's choice.
    offers = {
        name: candidates
        for name, candidates in asked_about.items()
        if layers[name].op in _OF_MAPS or _is_taken(candidates)
    }
    together = [
        (group, candidates)
        for group in _groups(nodes, target)
        if _is_taken(candidates := asked.candidates(group.layer, estimates))
    ]
    if isinstance(chosen, Mapping):
        _check_layers(chosen, [*offers, *(group.name for group, _ in together)])
    decide = _decider(chosen, target.policy, final)
    places: dict[str, str] = {}
    for group, candidates in together:
        alone = group.name in offers
        if any(name in places for name in group.parts):
            continue
        if alone and _is_of_one(chosen, group, candidates):
            continue
        where = decide(info_of(group.layer), candidates)
        if where != CPU:
            places |= dict.fromkeys(group.parts, where)
            for name in group.parts:
                offers.pop(name, None)
            offers[group.name] = candidates
        elif not alone:
            places[group.name] = CPU
            offers[group.name] = candidates
    infos = _infos([layers[name] for name in offers if name not in places])
    places |= {name: decide(infos[name], offers[name]) for name in infos}
    ordered = {node.name: places[node.name] for node in nodes if node.name in places}
    if isinstance(chosen, Mapping):
        return Placement("a table", ordered, offers, frozenset(chosen), final)
    if isinstance(chosen, str):
        return Placement(chosen, ordered, offers, final=final)
    return Placement("a function", ordered, offers, frozenset(ordered), final)


def _is_taken(candidates: Sequence[Candidate]) -> bool:
    """Whether an accelerator accepts."""
    return any(candidate.accepted for candidate in candidates if candidate.name != CPU)


def _groups(nodes: Sequence[Node], target: Target) -> Iterator[Group]:
    """Operators that are offered together, as `patterns.dispatching` will offer them."""
    if target.accelerators:
        for found in offers_of(Graph(nodes, ())):
            if isinstance(found, Group):
                yield found


def _is_of_one(chosen: Policy, group: Group, candidates: Sequence[Candidate]) -> bool:
    """Whether a table means the last operator of a group by its name, not the group."""
    if not isinstance(chosen, Mapping) or group.name not in chosen:
        return False
    return chosen[group.name] not in {c.name for c in candidates if c.accepted and c.name != CPU}


def _decider(chosen: Policy, default: str, final: bool) -> Decide:
    """What the user chose, as a function whose answers are checked."""
    if isinstance(chosen, str):
        return _named(chosen, final)
    if isinstance(chosen, Mapping):
        otherwise = _named(default, final)

        def of_table(layer: LayerInfo, candidates: Sequence[Candidate]) -> str:
            if layer.name in chosen:
                return _checked(chosen[layer.name], layer.name, candidates, "the table")
            return otherwise(layer, candidates)

        return of_table
    return lambda layer, candidates: _checked(
        _ask(chosen, layer, candidates), layer.name, candidates, "it"
    )


def _is_final(nodes: tuple[Node, ...], target: Target) -> bool:
    """Whether retargeting leaves every layer as it is, by what its form is."""
    # Layers in a ternary core's form cannot be retargeted again.
    return is_ternary_scheme(nodes) or (
        has_multipliers(target.accelerators) and is_mul_shift_scheme(nodes)
    )


def _named(policy: str, final: bool) -> Decide:
    """A built-in policy; where layers are executed as they are, any core that accepts is exact."""
    decide = POLICIES[policy]
    if not final or policy == "latency":
        return decide

    def first_accepting(layer: LayerInfo, candidates: Sequence[Candidate]) -> str:
        answer = decide(layer, candidates)
        if answer != CPU:
            return answer
        return next(candidate.name for candidate in candidates if candidate.accepted)

    return first_accepting


# ------------------------------------------------------------------------------ layers


def _layers(nodes: Sequence[Node]) -> dict[str, Layer]:
    """The layers as they will be after retargeting, which takes paddings into them."""
    pads = {node.name: node for node in nodes if node.kind == "pad"}
    return {node.name: _behind_pad(node.layer, pads) for node in nodes if node.layer is not None}


def _behind_pad(layer: Layer, pads: Mapping[str, Node]) -> Layer:
    source = layer.inputs[0]
    if source.name not in pads or layer.op not in ("conv2d", "depthwise") or any(layer.pad):
        return layer
    node = pads[source.name]
    padding: Any = node.attrs["padding"]
    top, left, bottom, right = padding
    channels, iy, ix = source.shape
    inner = (channels, iy - top - bottom, ix - left - right)
    name = node.inputs[0]
    return replace(
        layer, inputs=(replace(source, name=name, shape=inner),), iy=inner[1], ix=inner[2],
        pad=(top, left, bottom, right),
    )  # fmt: skip


def _infos(layers: Sequence[Layer]) -> dict[str, LayerInfo]:
    kinds = {layer.op for layer in layers}
    inner = "conv2d" if "conv2d" in kinds else "dense"
    products = [layer.name for layer in layers if layer.op == inner]
    border = {*products[:1], *products[-1:]}
    return {
        layer.name: info_of(
            layer, border=layer.name in border, convolutional=bool({"conv2d"} & kinds)
        )
        for layer in layers
    }


def executed_form(layer: Layer, accelerator: Accelerator) -> Layer:
    """A layer as retargeting would write it for an accelerator, with numbers that stand for any.

    Shapes are the layer's own; types, weights, requantization and clip satisfy the arithmetic of
    the accelerator's scheme, so that only rules about shapes can object.  Layers for which no such
    form exists (an add has no ternary one) keep their shift form.  Layers of matrices are not
    retargeted: their form is the one they have.
    """
    if layer.op not in _OF_MAPS:
        return layer
    rectified = layer.relu
    requant = MulShift((1,), (0,)) if accelerator.scheme == "mul_shift" else Shift(0)
    common: dict[str, Any] = {
        "inputs": tuple(replace(tensor, dtype="int8") for tensor in layer.inputs),
        "output": replace(layer.output, dtype="int8"),
        "clip": (0, 127) if rectified else (-128, 127),
    }
    if layer.weight is None:
        return replace(layer, requant=requant, **common)
    if isinstance(accelerator, AnalogCore):
        return replace(
            layer,
            weight=np.zeros(layer.weight.shape, np.int8),
            bias=None,
            requant=AnalogRequant(1, (1,), (0,), 0, accelerator.rows),
            input_range=accelerator.activation_range,
            **common,
        )
    return replace(layer, bias=np.zeros(layer.K, np.int32), requant=requant, **common)


# ------------------------------------------------------------------------------ asking


class Estimator:
    """Predicted cycles of layers with the tiles the tiler picks; each geometry is solved once.

    Args:
        soc: description of the SoC.
        options: of the tiler; their kind of schedule is what is estimated.
    """

    def __init__(self, soc: Soc, options: TilingOptions) -> None:
        self._soc = soc
        self._options = options
        self._known: dict[tuple[object, ...], int] = {}

    def cycles(self, layer: Layer, accelerator: Accelerator) -> int:
        """Cycles of a layer alone on an accelerator that accepts it.

        Raises:
            TargetError: the accelerator has no such tiling objective.
            TilingError: no tile fits the budget.
        """
        key = (accelerator.name, layer.geometry)
        if key not in self._known:
            tile = tile_layer(layer, self._soc, accelerator, self._options).tile
            schedule = self._options.schedule
            self._known[key] = accelerator.cost(layer, tile, self._soc, schedule)
        return self._known[key]


class _Asked:
    """The accelerators of a target, asked layer by layer."""

    def __init__(self, target: Target, estimator: Estimator, *, final: bool) -> None:
        self._soc = target.soc
        self._accelerators = target.accelerators
        self._estimator = estimator
        self._final = final

    def candidates(self, layer: Layer, estimates: bool) -> tuple[Candidate, ...]:
        """What each accelerator says, and the CPU.

        Raises:
            TilingError: the layer would run on an accelerator, had L1 not been made too small.
        """
        offers, errors = [], []
        for entry in self._accelerators:
            try:
                offers.append(self._offer(layer, entry, estimates))
            except TilingError as error:
                errors.append(error)
                offers.append(
                    Candidate(entry.name, False, error.what, "A tile fits L1.", entry.scheme)
                )
        if errors and not any(offer.accepted for offer in offers):
            raise errors[0]
        cycles = self._cpu(layer) if estimates else None
        return (*offers, Candidate(CPU, True, cycles=cycles))

    def _offer(self, layer: Layer, accelerator: Accelerator, estimates: bool) -> Candidate:
        """What one accelerator says; `TilingError` where no tile to estimate fits."""
        form = layer if self._final else executed_form(layer, accelerator)
        verdict = accelerator.judge(form, self._soc)
        name, scheme = accelerator.name, accelerator.scheme
        if isinstance(verdict, Refused):
            return Candidate(name, False, verdict.reason, verdict.rule, scheme)
        cycles = self._estimator.cycles(form, accelerator) if estimates else None
        return Candidate(name, True, scheme=scheme, cycles=cycles)

    def _cpu(self, layer: Layer) -> int:
        """The layer on the host, and its tensors in and out of the accelerators' layout."""
        if not self._accelerators:
            return cpu_cycles(layer, self._soc)
        moved = sum(tensor.elements for tensor in (*layer.inputs, layer.output))
        return cpu_cycles(layer, self._soc) + layout_cycles(moved, self._soc)


# ------------------------------------------------------------------------------ the user's own


def _ask(policy: Callable[..., str] | Decide, info: LayerInfo, offers: Sequence[Candidate]) -> str:
    try:
        answer = policy(info, offers)
    except Exception as error:
        raise PolicyError(
            f"the policy failed: {type(error).__name__}: {error}",
            where=f"layer '{info.name}'",
            hint="it is called with a LayerInfo and a tuple of Candidates, and names one of them",
        ) from error
    if not isinstance(answer, str):
        raise PolicyError(
            f"the policy answered {answer!r}",
            where=f"layer '{info.name}'",
            hint=f"answer one of {', '.join(offer.name for offer in offers)}",
        )
    return answer


def _check_layers(table: Mapping[str, str], known: Collection[str]) -> None:
    for name in table:
        if name not in known:
            raise PolicyError(
                f"there is no layer {name!r}",
                where="option 'policy'",
                hint=f"layers that can be placed: {', '.join(known) or 'none'}",
            )


def _checked(answer: str, layer: str, offers: Sequence[Candidate], who: str) -> str:
    """The answer, if it names a candidate that takes the layer."""
    for offer in offers:
        if offer.name == answer:
            if offer.accepted:
                return answer
            raise PolicyError(
                f"'{answer}' cannot take the layer: {offer.reason}",
                where=f"layer '{layer}', by {who}",
                hint=f"its rule: {offer.rule}",
            )
    raise PolicyError(
        f"there is no accelerator {answer!r} on this target",
        where=f"layer '{layer}', by {who}",
        hint=f"one of {', '.join(offer.name for offer in offers)}",
    )
