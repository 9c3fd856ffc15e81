"""`Job` and `Task`: what a sweep hands to the processes that execute its designs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from byoc_dory.soc.parameters import Value
    from htvm.compiled import BuildOptions
    from htvm.frontend.limits import Limits
    from htvm.model import Model
    from htvm.tools.sweeping.costs import Costs


@dataclass(frozen=True, eq=False)
class Case:
    """A region with its inputs and the outputs that it must give, flat."""

    region: Any
    inputs: tuple[np.ndarray, ...]
    outputs: tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class Network:
    """A network, compiled once.

    Attributes:
        cases: its regions.
        host_cycles: cycles of everything that the host computes, between regions and at their
            borders.
        host_bytes: bytes that it moves for that.
        macs: multiply-accumulates of one inference.
    """

    cases: tuple[Case, ...]
    host_cycles: int
    host_bytes: int
    macs: int


Networks: TypeAlias = "Mapping[tuple[int, tuple[Value, ...]], Network]"


@dataclass(frozen=True)
class Task:
    """One network on one design.

    Attributes:
        design: number of the design.
        model: number of the network.
        values: the swept parameters by name.
    """

    design: int
    model: int
    values: tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Job:
    """What all tasks of a sweep have in common; it is sent to other processes.

    Attributes:
        digest: identifies the sweep.
        target: name of the target whose parameters are swept.
        models: file or ``zoo:NAME`` of each network; a `Model` only within one process.
        names: the networks' names in rows.
        options: options of the builds.
        costs: coefficients of energy and area.
        seed: seed of the inputs.
        networks: of a SoC that executes regions on many designs (`htvm.tools.sweeping.quick`), the
            networks, compiled once: by number, and the values of the parameters that matter to
            that; None for other SoCs.
        limits: what reading a file may take; the default's if None.
    """

    digest: str
    target: str
    models: tuple[str | Path | Model, ...]
    names: tuple[str, ...]
    options: BuildOptions
    costs: Costs
    seed: int
    networks: Networks | None = None
    limits: Limits | None = None
