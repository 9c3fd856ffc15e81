"""Policies: they decide where a layer runs if several cores could run it.

A policy is a function of a layer's shape and of the candidates that could run it, and returns the
name of one.  The built-in policies are such functions, too.  They decide before retargeting,
because cores with different arithmetic give different results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from byoc_dory.errors import PolicyError
from byoc_dory.layers import Layer, Weighted
from byoc_dory.verdict import CPU, OperatorVerdict

if TYPE_CHECKING:
    from byoc_dory.layers import Array
    from byoc_dory.soc.schemes import SchemeName


@dataclass(frozen=True)
class LayerInfo:
    """The properties of a layer that a policy can use.

    Attributes:
        name: name of the layer, as in reports.
        op: ``conv2d``, ``depthwise``, ``dense``, ``add``, or for layers of matrices ``gemm``,
            ``matmul``, ``rows`` or ``mha``.
        K, C: output and input channels.
        iy, ix, oy, ox: input and output height and width (1 for vectors).
        fy, fx: kernel height and width.
        stride: stride (y, x).
        macs: multiply-accumulates; 0 for an add.
        ternary: whether the weights of each output channel are -t, 0 and t.
        product: whether it is one of the network's main products: a convolution that is not
            depthwise, or in a network without such convolutions a dense layer.
        border: whether it is the first or the last of these products.
    """

    name: str
    op: str
    K: int
    C: int
    iy: int
    ix: int
    oy: int
    ox: int
    fy: int
    fx: int
    stride: tuple[int, int]
    macs: int
    ternary: bool = False
    product: bool = False
    border: bool = False


@dataclass(frozen=True)
class Candidate(OperatorVerdict):
    """A core that might run a layer.

    Attributes:
        name: name of the accelerator, or ``"cpu"``, which is always the last candidate.
        accepted: whether it can take the layer in the form in which retargeting would write it.
        reason: if not, a sentence with the offending value.
        rule: public statement of the rule that objects.
        cycles: estimated cycles; ``None`` if refused or not needed.
        scheme: its number scheme; ``None`` for the CPU, which supports all.
        rewrite: what it computes instead of the layer, with the same result; empty if it takes the
            layer as it is.
        layer, kind: the layer offered; ``accelerator`` is the same as ``name``.
    """

    scheme: SchemeName | None = None
    rewrite: str = ""

    @property
    def name(self) -> str:
        """The accelerator's name, or ``"cpu"``: the value that a policy returns."""
        return self.accelerator


_EIGHT_BITS: tuple[SchemeName, ...] = ("shift", "mul_shift")
_CPU_ERROR = 1.4  # tests/soc/test_host_cost.py checks that the estimates are within 40 %

Decide: TypeAlias = Callable[[LayerInfo, Sequence[Candidate]], str]
Policy: TypeAlias = "str | Decide | Mapping[str, str]"
"""Name of a built-in policy, a function, or a table by layer name."""


def bitwidth(layer: LayerInfo, candidates: Sequence[Candidate]) -> str:
    """Ternary weights go to a ternary core, all others to one with 8-bit weights.

    If the target has only one kind of core, it gets both.
    """
    return _preferring(candidates, "ternary" if layer.ternary else "shift")


def latency(layer: LayerInfo, candidates: Sequence[Candidate]) -> str:
    """Choose the lowest estimate, and the first among equal ones.

    The CPU's estimates are rough, and leaving a region costs more than its borders, so the CPU must
    win by more than the error of its estimates.
    """
    del layer
    costs = {
        c.name: c.cycles * (_CPU_ERROR if c.name == CPU else 1.0)
        for c in candidates
        if c.accepted and c.cycles is not None
    }
    return min(costs, key=lambda name: costs[name], default=CPU)


def mixed(layer: LayerInfo, candidates: Sequence[Candidate]) -> str:
    """Convolutions go to a ternary core, except the first and the last; all else to 8 bits.

    The published rule for DIANA (HTVM, DAC 2023, IV): first and last eligible layer, depthwise
    convolutions, additions and dense layers on the digital core.  In a network without
    convolutions, dense layers take the place of convolutions.
    """
    scheme: SchemeName = "ternary" if layer.product and not layer.border else "shift"
    return _preferring(candidates, scheme)


POLICIES: Mapping[str, Decide] = {"bitwidth": bitwidth, "latency": latency, "mixed": mixed}
"""The built-in policies by name."""


def _preferring(candidates: Sequence[Candidate], scheme: SchemeName) -> str:
    """Return the first candidate of a scheme that accepts, else one with at least as many bits.

    Eight bits can hold ternary weights, but not the other way round: only a target without any
    8-bit core gives such layers to a ternary one.
    """
    kinds = {c.scheme for c in candidates}
    eight_bits: list[SchemeName] = [kind for kind in _EIGHT_BITS if kind in kinds]
    ternary: list[SchemeName] = ["ternary"]
    first = eight_bits if scheme == "shift" else [scheme]
    for wanted in (*first, *(eight_bits or ternary)):
        for candidate in candidates:
            if candidate.scheme == wanted and candidate.accepted:
                return candidate.name
    return CPU


def is_ternary(weight: Array | None) -> bool:
    """Whether the weights ``[K, ...]`` of each output channel are -t, 0 and t for some t.

    A channel with a single weight does not count either way.
    """
    if weight is None or weight[0].size < 2:
        return False
    rows = np.abs(weight.reshape(len(weight), -1).astype(np.int64))
    return bool(((rows == 0) | (rows == rows.max(axis=1, keepdims=True))).all())


def info_of(layer: Layer, *, product: bool = False, border: bool = False) -> LayerInfo:
    """Return the properties of a layer that a policy can use (see `LayerInfo`)."""
    return LayerInfo(
        layer.name, layer.op, layer.K, layer.C, layer.iy, layer.ix, layer.oy, layer.ox,
        layer.fy, layer.fx, layer.stride, layer.macs,
        ternary=isinstance(layer, Weighted) and is_ternary(layer.weight), product=product,
        border=border,
    )  # fmt: skip


def check_policy(policy: object) -> None:
    """Refuse a value that is not a policy.

    Raises:
        PolicyError: it is neither the name of a policy, nor a function, nor a table of names.
    """
    if isinstance(policy, str):
        if policy in POLICIES:
            return
        raise PolicyError(
            f"there is no policy {policy!r}",
            where="option 'policy'",
            hint=f"one of {', '.join(POLICIES)}, a function, or a dict from layer to accelerator",
        )
    if callable(policy):
        return
    if isinstance(policy, Mapping) and all(
        isinstance(name, str) and isinstance(place, str) for name, place in policy.items()
    ):
        return
    raise PolicyError(
        f"a {type(policy).__name__} is not a policy",
        where="option 'policy'",
        hint=f"give one of {', '.join(POLICIES)}, a function of a LayerInfo and its candidates, "
        "or a dict from layer to accelerator",
    )
